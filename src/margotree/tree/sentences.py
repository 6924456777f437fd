"""The path of a sample as sentences: what the sample has, the limit it is compared with, and the side of the limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.table.table_description import raw_columns
from margotree.tree.protocol import SplitTree
from margotree.tree.rules import decimal_text
from margotree.tree.scaling import FloatArray
from margotree.tree.text import Rule, rule_of

#: A rule with more features is shown with its first features only, and the sum.
_MOST_TERMS = 4
#: A value with more characters is shown with fewer digits.
_LONGEST_VALUE = 10
_FEWEST_DIGITS, _MOST_DIGITS = 5, 17


def step_sentence(tree: SplitTree, t: int, x: FloatArray, *, right: bool) -> str:
    """Return what a sample has at node ``t``, such as "lactate = 3.5 is above 2.9"; empty if the node does not split.

    Parameters
    ----------
    x : array
        The features of the sample in the units of the user.
    right : bool
        Whether the sample goes right, so that it meets the rule of the node.
    """
    if not tree.splits.w[t].any():
        return ""
    rule = rule_of(tree, t)
    if rule.literals and all(literal.applies(x.tolist()) for literal in rule.literals):
        return _logic_sentence(rule, x, right)
    features, weights, limit = printed_sum(tree, t)
    if len(rule.features) == 1:
        j = rule.features[0]
        value = float(x[j])
        shown, limit_text = _on_its_side(value, limit, rule, right, value_text(value))
        return f"{tree.features[j]} = {shown} is {_comparison(rule, right)} {limit_text}"
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(weights @ x[features])
    given = _terms(tree, rule, x)
    if len(given) > _MOST_TERMS:
        terms = f"{_sum_text(given[:2])} + ... ({len(given)} terms)"
    elif _sum_text(given) == given[0].name:
        terms = given[0].name
    else:
        terms = f"{_sum_text(given)} = {_sum_text(given, values=True)}"
    if not math.isfinite(total):  # beyond the range of floating-point numbers
        return f"{terms} is {_comparison(rule, right)} {rule.threshold}"
    shown, limit_text = _on_its_side(total, limit, rule, right)
    return f"{terms} = {shown} is {_comparison(rule, right)} {limit_text}"


def printed_sum(tree: SplitTree, t: int) -> tuple[NDArray[np.int64], FloatArray, float]:
    """Return features, weights and threshold of the sum that the printed rule of node ``t`` compares, not rounded."""
    rule, split = rule_of(tree, t), tree.split(t)
    if len(rule.features) == 1:
        j = rule.features[0]
        return np.array([j]), np.ones(1), float(split.threshold / split.weights[j])
    factor = (-1.0 if rule.at_most else 1.0) / (tree.rules[t].factor if t in tree.rules else 1.0)
    features = np.flatnonzero(split.weights)
    return features, factor * split.weights[features], float(factor * split.threshold)


def value_text(value: float) -> str:
    """Return a value of a feature as text: all of its digits if they are few, otherwise six."""
    value = float(value) + 0.0  # no "-0"
    text = np.format_float_positional(value, trim="-")
    return text if len(text) <= _LONGEST_VALUE else decimal_text(value, 6)


def percentage(share: float) -> str:
    """Return a probability as a percentage, which is never shown as 0 or 100 unless it is."""
    if 0.0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1.0:
        return "more than 99.9 %"
    return f"{100 * share:.1f} %" if min(share, 1.0 - share) < 0.1 and 0.0 < share < 1.0 else f"{100 * share:.0f} %"


def _comparison(rule: Rule, right: bool) -> str:
    """Return the relation of the sum to the threshold of the rule in words."""
    if rule.at_most:
        return "at most" if right else "above"
    return "at least" if right else "below"


def _on_its_side(value: float, limit: float, rule: Rule, right: bool, text: str = "") -> tuple[str, str]:
    """Return a value and the limit as texts of so many digits that the value is on its side of the limit."""
    tries = [(text, rule.threshold)] if text else []
    tries += [(decimal_text(value, digits), rule.threshold) for digits in range(_FEWEST_DIGITS, _MOST_DIGITS)]
    tries += [(decimal_text(value, d), decimal_text(limit, d)) for d in range(_FEWEST_DIGITS, _MOST_DIGITS + 1)]
    for shown, limit_text in tries:
        above = float(shown) - float(limit_text)
        if (above <= 0 if rule.at_most else above >= 0) == right:
            return shown, limit_text
    # The difference is smaller than rounding errors, which count as 0.
    return f"{rule.threshold} (within rounding errors)", rule.threshold


class _Term(NamedTuple):
    """A term of the sum of a sample: weight, name and value of a feature; or what a word adds, which has no value."""

    weight: str
    name: str
    value: str


def _terms(tree: SplitTree, rule: Rule, x: FloatArray) -> list[_Term]:
    """Return the terms of a sum: of the 0/1 features of words those that are 1, such as "ward is Surgery"."""
    cells, found = raw_columns(tree).rules_by_feature(), []
    for j, weight in zip(rule.features, rule.weights, strict=True):
        name, column = tree.features[j], cells[j][0].column
        if name == f"{column} missing" or name.startswith(f"{column}="):
            word = name[len(column) + 1 :]
            if x[j] == 1.0:
                found.append(_Term(weight, f"{column} is {word}", ""))
            if x[j] in (0.0, 1.0):
                continue
        found.append(_Term(weight, name, value_text(x[j])))
    return found or [
        _Term(weight, tree.features[j], value_text(x[j])) for j, weight in zip(rule.features, rule.weights, strict=True)
    ]


def _sum_text(terms: Sequence[_Term], *, values: bool = False) -> str:
    """Return the sum with the names, or with the values, of its terms."""
    parts: list[str] = []
    for weight, name, value in terms:
        number, minus = weight.removeprefix("-"), weight.startswith("-")
        sign = ("- " if minus else "+ ") if parts else ("-" if minus else "")
        if not value:  # a word
            parts.append(f"{sign}{number}" if values else f"{sign}{number} ({name})")
            continue
        text = value if values else name
        factor = f"({text})" if text.startswith("-") and (number != "1" or parts) else text
        parts.append(f"{sign}{factor}" if number == "1" else f"{sign}{number} * {factor}")
    return " ".join(parts)


def _logic_sentence(rule: Rule, x: FloatArray, right: bool) -> str:
    """Return which statements of a rule are true of a sample."""
    met = [literal.text for literal in rule.literals if literal.holds(x.tolist())]
    failed = [literal.text for literal in rule.literals if not literal.holds(x.tolist())]
    if right:
        return " and ".join(met)
    if not met:
        return f"it is not true that {' or '.join(failed)}"
    least = "all" if rule.least == len(rule.literals) else f"at least {rule.least}"
    return f"{' and '.join(met)}, but not {' and not '.join(failed)} ({least} would have to be true)"
