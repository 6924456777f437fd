"""What all exports share: the rules in the user's units with the tie rule in their thresholds, and the labels.

An exported tree asks ``sum of weight * (x - origin) >= threshold`` where the tree asks ``h >= -tie`` in scaled units.
The two sums differ by rounding alone, which is orders of magnitude below the tie, so that a sample on a hyperplane goes
the same way in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from margotree.problem import topology
from margotree.tree import Tree
from margotree.tree.scaling import FloatArray

#: A feature whose values lie this many times further from 0 than they lie apart (a time stamp) keeps its origin:
#: multiplied out, its weight times its value would lose the digits in which the samples differ.
_FAR = 1e3

#: Powers of two from 1 down to the smallest number of full precision.
_SMALLEST_EXPONENT = 1020

#: Terms that stand in one sum; longer ones are nested, for parsers that limit how deep an expression may be.
_TERMS = 50


@dataclass(frozen=True, kw_only=True)
class Term:
    """``weight * (x[feature] - origin)``, in the user's units; ``origin`` is 0 for most features."""

    feature: int
    weight: float
    origin: float


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A node that decides: ``met`` is where a sample goes whose sum of ``terms`` is at least ``threshold``."""

    node: int
    terms: tuple[Term, ...]
    threshold: float
    met: Plan
    otherwise: Plan


#: What remains to be done for a sample: ask a rule, or give it the class at this position.
Plan = Rule | int


def plan_of(tree: Tree) -> Plan:
    """The rules from the root down; a node both of whose sides always give the same label is left out."""
    weights, threshold = folded(tree)
    origin = origins(tree)

    def below(v: int) -> Plan:
        if v >= tree.n_nodes:
            return int(tree.leaf_class[v - tree.n_nodes])
        used = np.flatnonzero(weights[v])
        if not len(used):
            return below(topology.right(v) if threshold[v] <= 0 else topology.left(v))
        met, otherwise = below(topology.right(v)), below(topology.left(v))
        if isinstance(met, int) and met == otherwise:
            return met
        terms = tuple(Term(feature=int(j), weight=float(weights[v, j]), origin=float(origin[j])) for j in used)
        return Rule(node=v, terms=terms, threshold=float(threshold[v]), met=met, otherwise=otherwise)

    return below(0)


def folded(tree: Tree) -> tuple[FloatArray, FloatArray]:
    """The weights on ``x - origin`` and the threshold of every node: scaling and tie are in them.

    Raises a ValueError if a weight cannot be written in the user's units.
    """
    scaling, origin = tree.scaling, origins(tree)
    with np.errstate(over="ignore"):
        weights = tree.splits.w / scaling.scale
    lost = ~np.isfinite(weights) | ((weights == 0) & (tree.splits.w != 0))
    if lost.any():
        name = tree.features[int(np.argwhere(lost)[0, 1])]
        raise ValueError(
            f"the weight of {name!r} in its own units is beyond what a float holds; train on that column divided by a "
            "constant"
        )
    moved = weights * (scaling.offset - origin)
    parts = [(*moved[t], -tree.splits.b[t], -tree.tie(t)) for t in range(tree.n_nodes)]
    return _without_overflow(weights, np.array([math.fsum(part) for part in parts]))


def _without_overflow(weights: FloatArray, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same rules, multiplied by powers of two where that is needed for no sum of finite values to overflow.

    A sum stays finite if the weights of its rule add up to no more than 1/2.  Powers of two change no digit, so that
    ordinary samples get the sums they would get without.  Subnormal weights would lose digits: down to those, no rule
    is multiplied.
    """
    exponent = np.frexp(np.abs(weights).sum(axis=1))[1] + 1
    smallest = np.min(np.abs(weights), axis=1, where=weights != 0, initial=np.inf)
    room = np.where(np.isfinite(smallest), np.frexp(smallest)[1] + _SMALLEST_EXPONENT, 0)
    power = -np.clip(exponent, 0, np.maximum(room, 0))
    return np.ldexp(weights, power[:, None]), np.ldexp(threshold, power)


def origins(tree: Tree) -> FloatArray:
    """What is taken from each feature before it is weighed: 0, or its smallest training value where that is far off."""
    offset, scale = tree.scaling.offset, tree.scaling.scale
    return np.where(np.abs(offset) > _FAR * scale, offset, 0.0)


def used_features(plan: Plan) -> list[int]:
    """The features that some rule asks for."""
    if isinstance(plan, int):
        return []
    own = {term.feature for term in plan.terms}
    return sorted(own | set(used_features(plan.met)) | set(used_features(plan.otherwise)))


def label_type(tree: Tree) -> type:
    """The one type of all labels: bool, int, float or str."""
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
    """The sum of signed terms (``+ 2 * a``, ``- b``), one per line; sums of many terms in parentheses of their own."""
    return _joined(grouped(terms, lambda group: f"+ ({_joined(group, indent)})"), indent)


def grouped(parts: Sequence[str], wrap: Callable[[Sequence[str]], str]) -> list[str]:
    """At most so many parts as a parser takes in a row: where there are more, groups of them, wrapped up."""
    parts = list(parts)
    while len(parts) > _TERMS:
        parts = [wrap(parts[i : i + _TERMS]) for i in range(0, len(parts), _TERMS)]
    return parts


def _joined(parts: Sequence[str], indent: str) -> str:
    first = parts[0].removeprefix("+ ")
    first = "-" + first.removeprefix("- ") if first.startswith("- ") else first
    return f"\n{indent}".join([first, *parts[1:]])


def signed(weight: str, factor: str) -> str:
    """A term of a sum, its sign in front."""
    sign = "-" if weight.startswith("-") else "+"
    return f"{sign} {weight.removeprefix('-')} * {factor}"


def without_nul(text: str, what: str) -> str:
    """The text, or an error where a zero byte would end it early."""
    if "\0" in text:
        raise ValueError(f"{what} {text!r} holds a zero byte, which cannot be exported; rename it")
    return text
