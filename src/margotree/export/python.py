"""Export of a tree to a Python module that imports only the standard library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from margotree.export.common import (
    Excess,
    LeafFormula,
    RuleTree,
    excesses,
    leaf_formulas,
    leaf_table,
    margin_rule,
    nested,
    rule_tree_of,
    term_text,
)
from margotree.table.table_description import raw_columns
from margotree.tree import RegressionTree
from margotree.tree.probabilities import LABEL_LEAD
from margotree.tree.score import NO_OTHER_LABEL, leaf_targets

if TYPE_CHECKING:
    from margotree.tree import Tree


def to_python(tree: Tree | RegressionTree) -> str:
    """Return the source of a module with ``predict(sample)`` and ``predict_many(samples)``, for Python 3.6 or later.

    ``predict_proba(sample)`` returns the probabilities of ``CLASSES``; in the module of a regression tree there are
    numbers only.

    A sample is a sequence of numbers in the order of ``FEATURES``, or a mapping (a row of ``csv.DictReader``, a JSON
    object) from column names to numbers or text. For a tree of ``margotree fit`` the columns are those of the training
    table, and text is read as by ``margotree predict``, with words, units, decimal commas and missing cells; otherwise
    the columns are the features. Missing values that are not imputed, unknown words and other text that is not a
    number raise ``ValueError``, as in margotree.
    """
    raw = raw_columns(tree)
    if isinstance(tree, RegressionTree):
        formulas = leaf_formulas(tree)
        kind, outcomes_text, outcomes = "A regression tree", "The name of the target.", f"TARGET = {tree.target_name!r}"
        functions = _OF_NUMBERS.format(
            rules=_lines(rule_tree_of(tree), "    ", lambda k, indent: _formula(formulas[k], indent))
        )
    else:
        kind, outcomes_text = "A classification tree", "The labels."
        outcomes = f"CLASSES = ({_listed(tree.classes.tolist())})"
        functions = _OF_CLASSES.format(
            rules=_lines(rule_tree_of(tree), "    ", lambda k, indent: f"{indent}return {k}"),
            excesses=_listed_excesses(excesses(tree)),
            probabilities=_probabilities(tree),
        )
    return _MODULE.format(
        kind=kind,
        features=_listed(tree.features),
        outcomes_text=outcomes_text,
        outcomes=outcomes,
        columns=_listed([tuple(rule.record().values()) for rule in raw.rules]),
        missing=_listed(list(raw.missing)),
        comma=raw.comma,
        functions=functions.rstrip() + "\n",
    )


_MODULE = '''"""{kind}, written by margotree.  It needs Python 3.6 or later and nothing else."""

import re
from datetime import date
from math import exp, inf, isfinite

#: The names of the numbers of a sample, in their order.
FEATURES = ({features})

#: {outcomes_text}
{outcomes}

#: How a cell becomes features: the column, its features, their values where the cell is missing (None: an error), words
#: and their values, whether other cells are numbers, the units that may follow a number, the values of the features for
#: all other cells (None: an error), and for dates their form and the date from which on days are counted.
COLUMNS = ({columns})

#: Cells that mean "not known".
MISSING = ({missing})

#: Whether fractions may be written with a decimal comma.
COMMA = {comma}


{functions}

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


def _values(sample, column, features, missing, words, numeric, units, other, dates):
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
    if other is not None:
        return other
    if not numeric:
        raise ValueError("%r of %r was in no training row, which had %s" % (cell, column, ", ".join(words)))
    try:
        number = float(_plain(cell, units)) if dates is None else _days(text, *dates)
    except (TypeError, ValueError):
        kind = "number" if dates is None else "date of the form %s" % dates[0]
        raise ValueError("%r of %r is not a %s" % (cell, column, kind))
    return [number] + [0.0] * (len(features) - 1)


def _days(text, form, since):
    """The number of days from a date (YYYY-MM-DD) to the one in a text."""
    pattern = re.sub("[YMD]", "[0-9]", re.escape(form)) + "([ Tt].*)?"
    if not re.match(pattern + r"\\Z", text, re.DOTALL):
        raise ValueError("no date")
    year, month, day = (int("".join(c for c, f in zip(text, form) if f == part)) for part in "YMD")
    return float((date(year, month, day) - date(*map(int, since.split("-")))).days)


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


_OF_CLASSES = '''def predict(sample):
    """The label of one sample: numbers in the order of FEATURES, or a mapping from the names of columns to values."""
    return CLASSES[_position(_numbers(sample))]


def predict_many(samples):
    """The labels of several samples."""
    return [predict(sample) for sample in samples]


def predict_proba(sample):
    """The probabilities of CLASSES for one sample."""
    excess = _excess(_numbers(sample))
    node = 0
    while node < len(excess):
        node = 2 * node + (2 if excess[node] >= 0 else 1)
    return _probabilities(excess, node - len(excess))


def _position(x):
{rules}


def _excess(x):
    """By how much a sample exceeds the threshold of each split, in margins; it goes right from 0 on."""
    return [{excesses}    ]


{probabilities}
'''

_OF_NUMBERS = '''def predict(sample):
    """The prediction for one sample: numbers in the order of FEATURES, or a mapping from columns to values."""
    return _prediction(_numbers(sample))


def predict_many(samples):
    """The predictions for several samples."""
    return [predict(sample) for sample in samples]


def _prediction(x):
{rules}


def _limited(total, low, high, unit):
    return min(max(total, low), high) * unit
'''

_BY_LEAF = """#: The probabilities of each leaf.
SHARES = ({shares})


def _probabilities(excess, leaf):
    return list(SHARES[leaf])
"""

_BY_MARGIN = '''#: The position of the label of each leaf; for each label the leaves that count for distances.
LABELS = {labels}
TARGETS = ({targets})

#: The rounding error allowed at each split; None if it sends all samples to one side.
TIES = {ties}

#: The log odds: constants, changes per margin of distance from each label, and what those of the label gain.
INTERCEPT = {intercept}
SLOPE = ({slope})
STEP = {step}
CLASS_WEIGHT = {class_weight}


def _probabilities(excess, leaf):
    own = LABELS[leaf]
    distances = [0.0 if k == own else min(_distance(excess, TARGETS[k]), {farthest}) for k in range(len(TARGETS))]
    odds = [c + sum(row[k] * d for row, d in zip(SLOPE, distances)) for k, c in enumerate(INTERCEPT)]
    odds[own] = max(odds[own] + STEP[own], max(value for k, value in enumerate(odds) if k != own) + {lead})
    shares = [exp(value - odds[own]) for value in odds]
    total = sum(shares)
    shares = [({rest} * share / total + {floor}) / weight for share, weight in zip(shares, CLASS_WEIGHT)]
    total = sum(shares)
    return [share / total for share in shares]


def _distance(excess, targets):
    """The smallest cost of a path to one of the leaves; a path costs the largest margin that has to be crossed."""
    distance = [inf] * len(excess) + [0.0 if leaf else inf for leaf in targets]
    for node in reversed(range(len(excess))):
        tie, right = TIES[node], excess[node] >= 0
        cost = inf if tie is None else max(excess[node] - tie, 0.0) if right else tie - excess[node]
        distance[node] = min(
            max(0.0 if right else cost, distance[2 * node + 2]), max(cost if right else 0.0, distance[2 * node + 1])
        )
    return {no_other} if distance[0] == inf else distance[0]
'''


def _listed_excesses(splits: list[Excess]) -> str:
    lines = []
    for split in splits:
        if split.terms:
            total = nested([term_text(term) for term in split.terms], " " * 12)
            lines.append(
                f"\n        (\n            {total}\n            - ({split.threshold!r})\n        ) * {split.unit!r},"
            )
        else:
            lines.append(f"\n        {split.constant!r},")
    return "".join(lines) + "\n"


def _probabilities(tree: Tree) -> str:
    table = leaf_table(tree)
    if table is not None:
        return _BY_LEAF.format(shares=_listed([tuple(row) for row in table.tolist()]))
    rule = margin_rule(tree)
    return _BY_MARGIN.format(
        labels=tree.leaf_class.tolist(),
        targets=_listed([tuple(map(int, row)) for row in leaf_targets(tree).T.tolist()]),
        ties=[split.tie if split.terms else None for split in excesses(tree)],
        intercept=rule.intercept.tolist(),
        slope=_listed([tuple(row) for row in rule.slope.tolist()]),
        step=rule.step.tolist(),
        class_weight=rule.class_weight.tolist(),
        farthest=repr(rule.farthest),
        lead=repr(LABEL_LEAD),
        rest=repr(1.0 - rule.floor),
        floor=repr(rule.floor / len(rule.intercept)),
        no_other=NO_OTHER_LABEL if len(rule.intercept) == 2 else "inf",
    )


def _listed(items: object) -> str:
    assert isinstance(items, (list, tuple))
    return "".join(f"\n    {item!r}," for item in items) + "\n"


def _lines(rule_tree: RuleTree, indent: str, leaf: Callable[[int, str], str]) -> str:
    """Return the rules; ``leaf`` returns the code of a leaf for its position and the indent."""
    if isinstance(rule_tree, int):
        return leaf(rule_tree, indent)
    inner = indent + "    "
    total = nested([term_text(term) for term in rule_tree.terms], inner)
    return (
        f"{indent}if (\n{inner}{total}\n{inner}>= {rule_tree.threshold!r}\n{indent}):\n"
        f"{_lines(rule_tree.met, inner, leaf)}\n"
        f"{_lines(rule_tree.otherwise, indent, leaf)}"
    )


def _formula(formula: LeafFormula, indent: str) -> str:
    if formula.number is not None:
        return f"{indent}return {formula.number!r}"
    inner = indent + "    "
    total = nested([repr(formula.constant), *(term_text(term) for term in formula.terms)], inner)
    limits = f"{formula.low!r}, {formula.high!r}, {formula.unit!r}"
    return f"{indent}return _limited(\n{inner}{total},\n{inner}{limits}\n{indent})"
