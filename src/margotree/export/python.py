"""A tree as a Python module that imports nothing but the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from margotree.export.common import Plan, Term, nested, plan_of, signed
from margotree.table.described import described
from margotree.table.encoding import Category, Number

if TYPE_CHECKING:
    from margotree.tree import Tree


def to_python(tree: Tree) -> str:
    """Source of a module with ``predict(sample)`` and ``predict_many(samples)``, for any Python from 3.6 on.

    A sample is a sequence of numbers in the order of ``FEATURES``, or a mapping (a row of ``csv.DictReader``, a JSON
    object) from names to numbers; where the tree was trained by ``margotree fit``, columns of words are given by their
    words.  Values that are missing, no numbers or unknown words are a ``ValueError``, as they are in margotree.
    """
    words, fills = _columns(tree)
    return _MODULE.format(
        features=_listed(tree.features),
        classes=_listed(tree.classes.tolist()),
        words=_listed_pairs(words),
        fills=_listed_pairs(fills),
        rules=_lines(plan_of(tree), "    "),
    )


_MODULE = '''"""A classification tree, written by margotree.  It needs Python 3.6 or later and nothing else."""

from math import isfinite

#: The names of the numbers of a sample, in their order.
FEATURES = ({features})

#: The labels.
CLASSES = ({classes})

#: Features that come of a column of words: the column, the word that makes it 1, and all words of that column.
WORDS = {{{words}}}

#: What stands in for a missing value of a column.
FILLS = {{{fills}}}


def predict(sample):
    """The label of one sample: numbers in the order of FEATURES, or a mapping from names to values."""
    return CLASSES[_position(_numbers(sample))]


def predict_many(samples):
    """The labels of several samples."""
    return [predict(sample) for sample in samples]


def _position(x):
{rules}


def _numbers(sample):
    if hasattr(sample, "keys"):
        x = [_feature(sample, name) for name in FEATURES]
    else:
        x = [float(value) for value in sample]
    if len(x) != len(FEATURES):
        raise ValueError("a sample has %d numbers, got %d" % (len(FEATURES), len(x)))
    for name, value in zip(FEATURES, x):
        if not isfinite(value):
            raise ValueError("the value of %r is not finite" % (name,))
    return x


def _feature(sample, name):
    if name not in WORDS:
        return float(_cell(sample, name))
    column, word, known = WORDS[name]
    cell = str(_cell(sample, column)).strip()
    if cell not in known:
        same = [other for other in known if other.casefold() == cell.casefold()]
        if len(same) != 1:
            raise ValueError("%r of %r was in no training row, which had %s" % (cell, column, ", ".join(known)))
        cell = same[0]
    return float(cell == word)


def _cell(sample, column):
    if column not in sample:
        raise ValueError("the sample lacks %r" % (column,))
    cell = sample[column]
    if cell is None or cell != cell or str(cell).strip() == "":
        if column not in FILLS:
            raise ValueError("the value of %r is missing" % (column,))
        cell = FILLS[column]
    return cell
'''


def _columns(tree: Tree) -> tuple[dict[str, object], dict[str, object]]:
    """The features that come of words, and what stands in for missing cells."""
    encoding = described(tree)
    columns = () if encoding is None else encoding.columns
    words: dict[str, object] = {}
    fills: dict[str, object] = {}
    for column in columns:
        if isinstance(column, Category):
            for feature, word in zip(column.features, column.shown, strict=True):
                words[feature] = (column.name, word, tuple(column.values))
        if isinstance(column, (Category, Number)) and column.fill is not None:
            fills[column.name] = column.fill
    return words, fills


def _listed(items: object) -> str:
    assert isinstance(items, (list, tuple))
    return "".join(f"\n    {item!r}," for item in items) + "\n"


def _listed_pairs(pairs: dict[str, object]) -> str:
    return "".join(f"\n    {key!r}: {value!r}," for key, value in pairs.items()) + ("\n" if pairs else "")


def _lines(plan: Plan, indent: str) -> str:
    if isinstance(plan, int):
        return f"{indent}return {plan}"
    inner = indent + "    "
    total = nested([_term(term) for term in plan.terms], inner)
    return (
        f"{indent}if (\n{inner}{total}\n{inner}>= {plan.threshold!r}\n{indent}):\n"
        f"{_lines(plan.met, inner)}\n"
        f"{_lines(plan.otherwise, indent)}"
    )


def _term(term: Term) -> str:
    value = f"x[{term.feature}]"
    if term.origin:
        value = f"({value} {'-' if term.origin > 0 else '+'} {abs(term.origin)!r})"
    return signed(repr(term.weight), value)
