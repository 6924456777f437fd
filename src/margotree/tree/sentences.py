"""The path of a sample as sentences: what the sample has, the limit it is compared with, and the side of the limit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

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
    names = [tree.features[j] for j in rule.features]
    shares = [column.share(x.tolist()) for column in rule.columns]
    if shares and None not in shares and len(shares) <= _MOST_TERMS:
        terms = _shares_text(rule, [share for share in shares if share is not None], x)
    elif len(names) > _MOST_TERMS:
        terms = f"{_sum_text(rule, names, 2)} + ... ({len(names)} features)"
    else:
        terms = f"{_sum_text(rule, names)} = {_sum_text(rule, [value_text(x[j]) for j in rule.features])}"
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


def _sum_text(rule: Rule, names: list[str], most: int | None = None) -> str:
    parts: list[str] = []
    for weight, name in list(zip(rule.weights, names, strict=True))[:most]:
        number, minus = weight.removeprefix("-"), weight.startswith("-")
        sign = ("- " if minus else "+ ") if parts else ("-" if minus else "")
        factor = f"({name})" if name.startswith("-") and (number != "1" or parts) else name
        parts.append(f"{sign}{factor}" if number == "1" else f"{sign}{number} * {factor}")
    return " ".join(parts)


def _shares_text(rule: Rule, shares: list[tuple[Fraction, str]], x: FloatArray) -> str:
    """Return what each column adds to the sum, with its cell: "18 (age) + 0 (ward is ICU)"."""
    parts: list[str] = []
    for column, (adds, words) in zip(rule.columns, shares, strict=True):
        is_plain = not column.states and words == column.cell.column
        # A weighted number is shown as a product.
        number, size = column.weights[0], x[column.first]
        text = value_text(abs(float(adds)))
        if is_plain and abs(number) != 1:
            text = f"{value_text(abs(float(number)))} * {value_text(abs(float(size)))}"
        sign = ("- " if adds < 0 else "+ ") if parts else ("-" if adds < 0 else "")
        parts.append(f"{sign}{text} ({words})")
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
