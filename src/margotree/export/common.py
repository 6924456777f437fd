"""The rules of a tree in the units of the user, the labels and the formulas of leaves, for all exports.

An exported tree evaluates ``sum of weight * (x - origin) >= threshold`` in place of ``h >= -tie`` in scaled units.
Both sums differ only by rounding, which is orders of magnitude smaller than the tie, so that a sample on a hyperplane
goes to the same side in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree import HyperplaneTree, RegressionTree, Tree
from margotree.tree.probabilities import MarginProbabilities, SharesOfLeaves
from margotree.tree.scaling import FloatArray

#: A feature whose values are this many times farther from 0 than its range (a time stamp) keeps an origin, because
#: weight times value would lose the digits in which the samples differ.
_FAR = 1e3

#: The smallest normal float64 is about 2 to minus this.
_SMALLEST_EXPONENT = 1020

#: The largest number of terms in one sum; longer sums are nested, because parsers limit the depth of expressions.
_TERMS = 50


@dataclass(frozen=True, kw_only=True)
class Term:
    """``weight * (x[feature] - origin)`` in the units of the user; ``origin`` is 0 for most features."""

    feature: int
    weight: float
    origin: float


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The split of tree node ``node`` with its subtrees.

    Samples whose sum of ``terms`` is at least ``threshold`` continue with ``met``, other samples with ``otherwise``.
    """

    node: int
    terms: tuple[Term, ...]
    threshold: float
    met: RuleTree
    otherwise: RuleTree


#: A tree of rules: a rule with two subtrees, or a leaf: the position of its label in ``tree.classes``, or in a tree of
#: numbers that of its formula among the leaves.
RuleTree = Rule | int


def rule_tree_of(tree: HyperplaneTree) -> RuleTree:
    """Return the rules of a tree, in the units of the user; the root is the first rule.

    Nodes without features, and nodes whose two sides give the same prediction, are left out.
    """
    weights, threshold = unscaled_hyperplanes(tree)
    origin = origins(tree)

    def rules_below(v: int) -> RuleTree:
        if v >= tree.n_nodes:
            return int(tree.leaf_outcome[v - tree.n_nodes])
        used = np.flatnonzero(weights[v])
        if not len(used):
            return rules_below(topology.right(v) if threshold[v] <= 0 else topology.left(v))
        met, otherwise = rules_below(topology.right(v)), rules_below(topology.left(v))
        if isinstance(met, int) and met == otherwise:
            return met
        terms = tuple(Term(feature=int(j), weight=float(weights[v, j]), origin=float(origin[j])) for j in used)
        return Rule(node=v, terms=terms, threshold=float(threshold[v]), met=met, otherwise=otherwise)

    return rules_below(0)


def unscaled_hyperplanes(tree: HyperplaneTree) -> tuple[FloatArray, FloatArray]:
    """Return the hyperplanes of a tree in the units of the user: weights of shape (nodes, features), and thresholds.

    A sample ``x`` goes right at node ``t`` if ``weights[t] @ (x - origins(tree)) >= threshold[t]``.  Raises ValueError
    if a weight overflows or becomes 0 in the units of the user.
    """
    weights, threshold, _ = _hyperplanes(tree)
    return weights, threshold


def _hyperplanes(tree: HyperplaneTree) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Return the hyperplanes, and the power of two by which each is multiplied."""
    scaling = tree.scaling
    weights = _unscaled(tree, tree.splits.w)
    moved = weights * (scaling.offset - origins(tree))
    parts = [(*moved[t], -tree.splits.b[t], -tree.tie(t)) for t in range(tree.n_nodes)]
    return _without_overflow(weights, np.array([math.fsum(part) for part in parts]))


def _unscaled(tree: HyperplaneTree, w: FloatArray, unit: float = 1.0) -> FloatArray:
    """Return weights times ``unit`` for features in the units of the user."""
    with np.errstate(over="ignore"):
        weights: FloatArray = w * unit / tree.scaling.scale
    lost = ~np.isfinite(weights) | ((weights == 0) & (w != 0))
    if lost.any():
        name = tree.features[int(np.argwhere(lost)[0, 1])]
        raise ValueError(
            f"the weight of {name!r} in its own units is beyond the range of a float; train on that column divided by "
            "a constant"
        )
    return weights


def _without_overflow(weights: FloatArray, threshold: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Multiply rules by powers of two so that no sum of finite values overflows.

    Return the powers, too. A sum is finite if the absolute weights of its rule add up to at most 1/2. Powers of two
    change no digit, so that sums without overflow have the same digits as before. Weights do not become subnormal,
    which would lose digits.
    """
    exponent = np.frexp(np.abs(weights).sum(axis=1))[1] + 1
    smallest = np.min(np.abs(weights), axis=1, where=weights != 0, initial=np.inf)
    room = np.where(np.isfinite(smallest), np.frexp(smallest)[1] + _SMALLEST_EXPONENT, 0)
    power = -np.clip(exponent, 0, np.maximum(room, 0))
    return np.ldexp(weights, power[:, None]), np.ldexp(threshold, power), power


def origins(tree: HyperplaneTree) -> FloatArray:
    """Return the number that is subtracted from each feature: its smallest training value if that is far from 0,
    otherwise 0."""
    offset, scale = tree.scaling.offset, tree.scaling.scale
    return np.where(np.abs(offset) > _FAR * scale, offset, 0.0)


@dataclass(frozen=True, kw_only=True)
class Excess:
    """By how much the sum of a node exceeds its threshold, in margins: ``(sum of terms - threshold) * unit``.

    A sample goes right from 0 on. Without terms the excess is ``constant``. The part ``tie`` of it is an allowed
    rounding error.
    """

    terms: tuple[Term, ...]
    threshold: float
    unit: float
    tie: float
    constant: float


def excesses(tree: Tree) -> list[Excess]:
    """Return the excess at every node, from which exported code computes probabilities."""
    weights, threshold, power = _hyperplanes(tree)
    origin, found = origins(tree), []
    for t in range(tree.n_nodes):
        used = np.flatnonzero(weights[t])
        terms = tuple(Term(feature=int(j), weight=float(weights[t, j]), origin=float(origin[j])) for j in used)
        unit, tie = float(np.ldexp(1.0, -power[t])), tree.tie(t)
        constant = float(tree.splits.b[t]) + tie
        found.append(Excess(terms=terms, threshold=float(threshold[t]), unit=unit, tie=tie, constant=constant))
    return found


@dataclass(frozen=True, kw_only=True)
class LeafFormula:
    """The prediction of a leaf in a tree of numbers: the sum of ``constant`` and ``terms``, times ``unit``.

    Before the multiplication the sum is limited to at least ``low`` and at most ``high``. ``unit`` is a power of two,
    with which no sum of finite values overflows.
    """

    terms: tuple[Term, ...]
    constant: float
    low: float
    high: float
    unit: float

    @property
    def number(self) -> float | None:
        """The prediction of a leaf whose formula is a constant; None for others."""
        return None if self.terms else min(max(self.constant, self.low), self.high) * self.unit


def leaf_formulas(tree: RegressionTree) -> list[LeafFormula]:
    """Return the formula of every leaf, from left to right."""
    target, origin = tree.target, origins(tree)
    weights = _unscaled(tree, tree.models.w, target.scale)
    moved = weights * (origin - tree.scaling.offset)
    parts = [(*row, target.center, target.scale * b) for row, b in zip(moved, tree.models.b.tolist(), strict=True)]
    constants = np.array([math.fsum(part) for part in parts])
    if not np.all(np.isfinite(constants)):
        raise ValueError("a formula has a constant beyond the range of a float; train on smaller numbers")
    weights, constants, power = _without_overflow(weights, constants)
    limits = np.ldexp(tree.limits, power[:, None])
    found = []
    for k, constant in enumerate(constants.tolist()):
        used = np.flatnonzero(weights[k])
        terms = tuple(Term(feature=int(j), weight=float(weights[k, j]), origin=float(origin[j])) for j in used)
        low, high = limits[k].tolist()
        unit = float(np.ldexp(1.0, -power[k]))
        found.append(LeafFormula(terms=terms, constant=constant, low=low, high=high, unit=unit))
    return found


def features_of(splits: Sequence[Excess | LeafFormula]) -> list[int]:
    """Return the features that nodes or formulas use."""
    return sorted({term.feature for split in splits for term in split.terms})


def leaf_table(tree: Tree) -> FloatArray | None:
    """Return the probabilities of each leaf, one row per leaf; None if they depend on margins."""
    rule = tree.probabilities
    return rule.table(tree) if isinstance(rule, SharesOfLeaves) else None


def margin_rule(tree: Tree) -> MarginProbabilities:
    """Return the rule of probabilities that depend on margins."""
    assert isinstance(tree.probabilities, MarginProbabilities)
    return tree.probabilities


def used_features(rule_tree: RuleTree) -> list[int]:
    """Return the features that the rules use."""
    if isinstance(rule_tree, int):
        return []
    own = {term.feature for term in rule_tree.terms}
    return sorted(own | set(used_features(rule_tree.met)) | set(used_features(rule_tree.otherwise)))


def shown_leaves(rule_tree: RuleTree) -> list[int]:
    """Return the leaves of a tree of rules, each once, in ascending order."""
    if isinstance(rule_tree, int):
        return [rule_tree]
    return sorted({*shown_leaves(rule_tree.met), *shown_leaves(rule_tree.otherwise)})


def features_in_use(tree: RegressionTree, rule_tree: RuleTree) -> list[int]:
    """Return the features that the rules and the formulas of their leaves use."""
    formulas = leaf_formulas(tree)
    return sorted({*used_features(rule_tree), *features_of([formulas[k] for k in shown_leaves(rule_tree)])})


def label_type(tree: Tree) -> type:
    """Return the type of all labels: bool, int, float or str; ValueError if they have several."""
    values = tree.classes.tolist()
    types = {type(value) for value in values}
    if len(types) > 1:
        raise ValueError(
            f"this export gives labels of one type, but the classes {values!r} are of several; train on labels that "
            "are all words or all numbers"
        )
    if not all(math.isfinite(value) for value in values if isinstance(value, float)):
        raise ValueError(f"this export cannot write the labels {values!r}; train on finite ones")
    return types.pop()


def nested(terms: Sequence[str], indent: str) -> str:
    """Return the sum of signed terms (``+ 2 * a``, ``- b``), one per line; long sums are nested in parentheses."""
    return _joined(grouped(terms, lambda group: f"+ ({_joined(group, indent)})"), indent)


def grouped(parts: Sequence[str], wrap: Callable[[Sequence[str]], str]) -> list[str]:
    """Wrap groups of parts with ``wrap`` until at most :data:`_TERMS` parts are left."""
    parts = list(parts)
    while len(parts) > _TERMS:
        parts = [wrap(parts[i : i + _TERMS]) for i in range(0, len(parts), _TERMS)]
    return parts


def _joined(parts: Sequence[str], indent: str) -> str:
    first = parts[0].removeprefix("+ ")
    first = "-" + first.removeprefix("- ") if first.startswith("- ") else first
    return f"\n{indent}".join([first, *parts[1:]])


def signed(weight: str, factor: str) -> str:
    """Return ``weight * factor`` as a term of a sum, with its sign in front."""
    sign = "-" if weight.startswith("-") else "+"
    return f"{sign} {weight.removeprefix('-')} * {factor}"


def term_text(term: Term) -> str:
    """Return a term of a sum in C and Python, with its sign in front."""
    value = f"x[{term.feature}]"
    if term.origin:
        value = f"({value} {'-' if term.origin > 0 else '+'} {abs(term.origin)!r})"
    return signed(repr(term.weight), value)


def without_nul(text: str, what: str) -> str:
    """Return the text; ValueError if it contains a zero byte, which would end it."""
    if "\0" in text:
        raise ValueError(f"{what} {text!r} contains a zero byte, which cannot be exported; rename it")
    return text
