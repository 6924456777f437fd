"""Tables as they come: a file becomes columns of text, and an encoding that can be kept turns those into numbers.

The encoding is learned once, from the training file, and travels in the saved tree, so that a new file is read the same
way.  NumPy and the standard library are all it needs (Parquet files need pyarrow, Excel files openpyxl).
"""

from margotree._moved import renamed
from margotree.table.column_inference import ColumnOptions, learn_encoding
from margotree.table.encoding import Category, Encoding, Number, Samples
from margotree.table.file_notes import notes_about
from margotree.table.read_file import read_table
from margotree.table.read_options import Reading
from margotree.table.table import MissingCells, Table, TableError

__all__ = [
    "Category",
    "ColumnOptions",
    "Encoding",
    "MissingCells",
    "Number",
    "Reading",
    "Samples",
    "Table",
    "TableError",
    "learn_encoding",
    "notes_about",
    "read_table",
]

__getattr__ = renamed(__name__, {"Wishes": "ColumnOptions", "learn": "learn_encoding", "remarks": "notes_about"})
