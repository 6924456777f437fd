"""Read tables from files and encode their columns as numeric features.

:func:`read_table` reads a file into columns of text.  :func:`learn_encoding` learns an :class:`Encoding` from the
training file, which turns those columns into features and labels.  The encoding is saved with the tree, so that new
files are encoded in the same way.  The package needs NumPy and the standard library; Parquet files also need pyarrow,
Excel files openpyxl.  Start reading with ``read_file``, ``column_inference`` and ``encoding``.

Files to text:
    ``read_file`` chooses the reader; ``decoding`` (bytes to text), ``delimited`` (CSV), ``excel`` and ``parquet`` are
    the readers; ``read_options`` holds the options of a reader; ``headers`` checks column names; ``table`` holds the
    result.
Text to numbers:
    ``column_inference`` learns the encoding; ``encoding`` applies it; ``cells``, ``amounts`` (numbers with units),
    ``dates`` and ``normalised_words`` interpret single cells; ``cell_rules`` describes the encoding for exports and
    report pages.
Data frames:
    ``frame_columns`` reads columns of frames and arrays; ``frame_encoding`` learns an encoding from them.
Saved trees:
    ``encoding_json`` converts encodings to JSON values; ``table_description`` reads them from a tree.
Notes for the user:
    ``suspect_columns`` (identifiers, dates, leakage), ``missing_cells``, ``file_notes`` (new files) and ``frames``
    (data frames that are not numeric).
"""

from margotree._moved import renamed
from margotree.table.column_inference import ColumnOptions, learn_encoding
from margotree.table.encoding import Category, Date, Encoding, Number, Ordered, Samples
from margotree.table.file_notes import notes_about
from margotree.table.read_file import read_table
from margotree.table.read_options import ReadOptions
from margotree.table.table import MissingCells, Table, TableError

__all__ = [
    "Category",
    "ColumnOptions",
    "Date",
    "Encoding",
    "MissingCells",
    "Number",
    "Ordered",
    "ReadOptions",
    "Samples",
    "Table",
    "TableError",
    "learn_encoding",
    "notes_about",
    "read_table",
]

__getattr__ = renamed(
    __name__,
    {"Wishes": "ColumnOptions", "Reading": "ReadOptions", "learn": "learn_encoding", "remarks": "notes_about"},
)
