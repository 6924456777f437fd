"""Export of a tree to a Python module that imports only the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from margotree.export.common import RuleTree, Term, nested, rule_tree_of, signed
from margotree.table.table_description import raw_columns

if TYPE_CHECKING:
    from margotree.tree import Tree


def to_python(tree: Tree) -> str:
    """Return the source of a module with ``predict(sample)`` and ``predict_many(samples)``, for Python 3.6 or later.

    A sample is a sequence of numbers in the order of ``FEATURES``, or a mapping (a row of ``csv.DictReader``, a JSON
    object) from column names to numbers or text. For a tree of ``margotree fit`` the columns are those of the training
    table, and text is read as by ``margotree predict``, with words, units, decimal commas and missing cells; otherwise
    the columns are the features. Missing values that are not imputed, unknown words and other text that is not a
    number raise ``ValueError``, as in margotree.
    """
    raw = raw_columns(tree)
    return _MODULE.format(
        features=_listed(tree.features),
        classes=_listed(tree.classes.tolist()),
        columns=_listed([tuple(rule.record().values()) for rule in raw.rules]),
        missing=_listed(list(raw.missing)),
        comma=raw.comma,
        rules=_lines(rule_tree_of(tree), "    "),
    )


_MODULE = '''"""A classification tree, written by margotree.  It needs Python 3.6 or later and nothing else."""

import re
from math import isfinite

#: The names of the numbers of a sample, in their order.
FEATURES = ({features})

#: The labels.
CLASSES = ({classes})

#: How a cell becomes features: the column, its features, their values where the cell is missing (None: an error), words
#: and their values, whether other cells are numbers, and the units that may follow a number.
COLUMNS = ({columns})

#: Cells that mean "not known".
MISSING = ({missing})

#: Whether fractions may be written with a decimal comma.
COMMA = {comma}


def predict(sample):
    """The label of one sample: numbers in the order of FEATURES, or a mapping from the names of columns to values."""
    return CLASSES[_position(_numbers(sample))]


def predict_many(samples):
    """The labels of several samples."""
    return [predict(sample) for sample in samples]


def _position(x):
{rules}


def _numbers(sample):
    if hasattr(sample, "keys"):
        x = [value for column in COLUMNS for value in _values(sample, *column)]
    else:
        x = [float(value) for value in sample]
    if len(x) != len(FEATURES):
        raise ValueError("a sample has %d numbers, got %d" % (len(FEATURES), len(x)))
    for name, value in zip(FEATURES, x):
        if not isfinite(value):
            raise ValueError("the value of %r is not finite" % (name,))
    return x


def _values(sample, column, features, missing, words, numeric, units):
    """The features of one cell."""
    if column not in sample:
        raise ValueError("the sample has no %r" % (column,))
    cell = sample[column]
    text = "" if cell is None or cell != cell else str(cell).strip()
    if text.casefold() in MISSING:
        if missing is None:
            raise ValueError("the value of %r is missing" % (column,))
        return missing
    same = [word for word in words if word == text] or [word for word in words if _fold(word) == _fold(text)]
    if len(same) == 1:
        return words[same[0]]
    if not numeric:
        raise ValueError("%r of %r was in no training row, which had %s" % (cell, column, ", ".join(words)))
    try:
        return [float(_plain(cell, units))] + [0.0] * (len(features) - 1)
    except (TypeError, ValueError):
        raise ValueError("%r of %r is not a number" % (cell, column))


def _fold(word):
    return " ".join(word.casefold().split())


def _plain(cell, units):
    """A number as Python reads it: without its unit, with a decimal point."""
    if not isinstance(cell, str):
        return cell
    amount = re.match(r"([+-]?[\\d.,]*\\d(?:[eE][+-]?\\d+)?)\\s*(%|[^\\W\\d_]+)$", cell.strip())
    if amount and amount.group(2).casefold() in units:
        cell = amount.group(1)
    return cell.replace(",", ".") if COMMA and cell.count(",") == 1 and "." not in cell else cell
'''


def _listed(items: object) -> str:
    assert isinstance(items, (list, tuple))
    return "".join(f"\n    {item!r}," for item in items) + "\n"


def _lines(rule_tree: RuleTree, indent: str) -> str:
    if isinstance(rule_tree, int):
        return f"{indent}return {rule_tree}"
    inner = indent + "    "
    total = nested([_term(term) for term in rule_tree.terms], inner)
    return (
        f"{indent}if (\n{inner}{total}\n{inner}>= {rule_tree.threshold!r}\n{indent}):\n"
        f"{_lines(rule_tree.met, inner)}\n"
        f"{_lines(rule_tree.otherwise, indent)}"
    )


def _term(term: Term) -> str:
    value = f"x[{term.feature}]"
    if term.origin:
        value = f"({value} {'-' if term.origin > 0 else '+'} {abs(term.origin)!r})"
    return signed(repr(term.weight), value)
