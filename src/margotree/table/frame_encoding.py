"""The encoding of data frames: columns of numbers, truth values, words and ordered words, with missing cells.

The encoding is the same as that of files (:mod:`margotree.table.encoding`): it is saved with the tree, and exports and
report pages read raw cells by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.table.amounts import TRUTH
from margotree.table.encoding import Category, Column, Date, Encoding, Number, Ordered, known_words
from margotree.table.frame_columns import FrameColumn
from margotree.table.normalised_words import Spellings, fold, merged
from margotree.table.table import TableError

FloatArray = NDArray[np.float64]

#: The largest number of words of a column that have a feature; less frequent ones are "other".
MAX_LEVELS = 32
#: Words with fewer rows than this number, and than this share of all rows, are "other", too: trees overfit their rows.
#: Three words have a feature anyway.
MIN_ROWS, MIN_SHARE = 10, 0.01


def is_plain(columns: Sequence[FrameColumn], categorical: Collection[int] = (), *, dates: bool = False) -> bool:
    """Whether all columns hold numbers and no cell is missing, so that no encoding is needed.

    With ``dates``, columns of dates may become numbers.
    """
    if categorical or (dates and any(column.date_form() is not None for column in columns)):
        return False
    return all(not column.has_words and not np.any(np.isnan(column.numbers())) for column in columns)


def learn_frame_encoding(
    columns: Sequence[FrameColumn],
    *,
    categorical: Collection[int] = (),
    target: str = "",
    dates: bool = False,
    others: bool = True,
    **labels: Any,
) -> Encoding:
    """Learn the encoding of a training frame.

    A missing number becomes the median, a missing word the most frequent one, and a 0/1 feature shows where, if cells
    of the column are missing in training. Columns with no number, and with a single word, are left out. A word has a
    feature if it is one of the 32 most frequent words of its column and, with ``others``, has ten rows or one in a
    hundred; at least three words of a column have one.

    Parameters
    ----------
    columns : sequence of FrameColumn
        The training columns.
    categorical : collection of int
        Positions of columns whose cells are words even if all of them are numbers.
    target : str
        The name of the target.
    dates : bool
        Whether columns of dates become numbers of days since the first one.
    others : bool
        Whether new rows may have other words.
    **labels
        Fields of :class:`Encoding` about labels.
    """
    learnt = [_learn(column, k in categorical, dates, others) for k, column in enumerate(columns)]
    kept = tuple(column for column in learnt if column is not None)
    if not kept:
        raise ValueError("no column of X has a number or two different words, so no split is possible")
    encoding = Encoding(columns=kept, target=target, missing="indicator", **labels)
    repeated = [name for name, times in Counter(encoding.features).items() if times > 1]
    if repeated:
        raise ValueError(f"two features would have the name {repeated[0]!r}; rename one of the columns")
    return encoding


def encode_columns(encoding: Encoding, columns: Sequence[FrameColumn]) -> FloatArray:
    """The features of the rows of a frame; columns are found by their names, further ones are ignored."""
    by_name = {column.name: column for column in columns}
    absent = [column.name for column in encoding.columns if column.name not in by_name]
    if absent:
        raise TableError(f"X has no columns {absent}, on which the tree was trained")
    return np.hstack([_encoded(column, by_name[column.name]) for column in encoding.columns])


def _learn(column: FrameColumn, is_categorical: bool, dates: bool, others: bool) -> Column | None:
    if column.order is not None:
        return _ordered(column, column.order, others)
    if dates and not is_categorical and (form := column.date_form()) is not None:
        return Date.learnt(column.name, form, column.words(), fills=True, indicates=True)
    return _category(column, others) if is_categorical or column.has_words else _number(column)


def _number(column: FrameColumn) -> Number | None:
    values = column.numbers()
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    median = float(np.median(known))
    unit = TRUTH if column.is_boolean else None
    return Number(name=column.name, fill=median, unit=unit, flag=len(known) < len(values), typical=median)


def _category(column: FrameColumn, others: bool) -> Category | None:
    cells = column.words()
    counts, _ = merged(cells)
    if len(counts) < 2:
        return None
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    if len(frequent) > MAX_LEVELS and not others:
        raise TableError(
            f"column {column.name!r} holds {len(frequent)} different words, of which {MAX_LEVELS} have features: the "
            "others cannot be errors; use handle_unknown='ignore', or join words"
        )
    if others:
        least = min(MIN_ROWS, MIN_SHARE * len(cells))
        frequent = [word for k, word in enumerate(frequent) if k < 3 or counts[word] >= least]
    frequent = frequent[:MAX_LEVELS]
    return Category(
        name=column.name, values=tuple(sorted(frequent)), fill=frequent[0], flag="" in cells, typical=frequent[0],
        others=others,
    )  # fmt: skip


def _ordered(column: FrameColumn, order: tuple[str, ...], others: bool) -> Ordered | None:
    cells = column.words()
    counts, _ = merged(cells)
    seen = {fold(word) for word in counts}
    values = tuple(word for word in order if fold(word) in seen)
    if len(values) < 2:
        return None
    spelled = Spellings(values)
    positions = [values.index(word) for cell in cells if cell and (word := spelled(cell)) is not None]
    median = values[int(np.sort(positions)[len(positions) // 2])]
    return Ordered(name=column.name, values=values, fill=median, flag="" in cells, typical=median, others=others)


def _encoded(column: Column, cells: FrameColumn) -> FloatArray:
    if isinstance(column, Number):
        return column.coded(cells.numbers())
    words = cells.words()
    if not isinstance(column, Date) and (unknown := column.unknown_positions(words)):
        raise TableError(
            f"{words[unknown[0]]!r} in column {column.name!r} is not a word of the training data (in {len(unknown)} "
            f"row{'s' * (len(unknown) > 1)}); its words are {known_words(column)}, and handle_unknown='ignore' allows "
            "others"
        )
    return column.coded(words)
