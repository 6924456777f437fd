"""The numbers and names on the card of a node, before drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.plots.text_fitting import one_line
from margotree.tree import HyperplaneTree, RegressionTree, Tree
from margotree.tree.formulas import limits_text, printed_formula
from margotree.tree.outline import Outline
from margotree.tree.scaling import FloatArray
from margotree.tree.text import Rule, rule_of

_AT_LEAST, _AT_MOST = "\N{GREATER-THAN OR EQUAL TO}", "\N{LESS-THAN OR EQUAL TO}"


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A feature of a split: ``length`` is its weight in scaled units, relative to the largest of the node."""

    name: str
    length: float
    number: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Card:
    """The card of a node that splits.

    ``bars`` are the features with the largest weights, ``more`` is the number of further features, ``rule`` the
    condition under which a sample goes right, ``logic`` whether it is a statement about words. ``target_classes`` are
    the classes that should go left and right, at upper nodes of trees for several classes.
    """

    node: int
    counts: FloatArray
    bars: tuple[Bar, ...]
    more: int
    rule: str
    logic: bool = False
    target_classes: tuple[list[int], list[int]] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class LeafCard:
    """The card of a leaf: ``code`` is the position of its class, ``label`` the name."""

    node: int
    counts: FloatArray
    code: int
    label: str


@dataclass(frozen=True, kw_only=True, eq=False)
class FormulaCard:
    """The card of a leaf with a formula: ``head`` is its left side and its constant, the bars are its weights.

    ``limits`` are the smallest and the largest prediction as text, empty for a constant.
    """

    node: int
    counts: FloatArray
    head: str
    bars: tuple[Bar, ...]
    more: int
    limits: str


AnyCard = Card | LeafCard | FormulaCard


def cards(
    tree: HyperplaneTree, shape: Outline, counts: FloatArray, max_features: int, units: str
) -> dict[int, AnyCard]:
    """Return the cards of all nodes and leaves of an outline, with at most ``max_features`` bars each."""
    found: dict[int, AnyCard] = {t: _card(tree, t, counts[t], max_features, units) for t in shape.nodes}
    for v in shape.leaves:
        if isinstance(tree, RegressionTree):
            found[v] = _formula(tree, v, shape.label[v] + tree.n_nodes, counts[v], max_features, units)
        else:
            assert isinstance(tree, Tree)
            found[v] = _leaf(tree, v, shape.label[v], counts[v])
    return found


def _card(tree: HyperplaneTree, t: int, counts: FloatArray, max_features: int, units: str) -> Card:
    rule = rule_of(tree, t, units=units)  # with the numbers of ``export_text``
    shown = _n_bars(len(rule.features), max_features)
    weights = tree.splits.w[t][list(rule.features)]
    lengths = weights / np.abs(weights).max() * (-1 if rule.at_most else 1)
    single = len(rule.features) == 1
    without_numbers = single or bool(rule.literals)
    bars = tuple(
        Bar(
            name=one_line(tree.features[j]),
            length=float(length),
            number="" if without_numbers else signed(number),
        )
        for j, length, number in zip(rule.features[:shown], lengths, rule.weights, strict=False)
    )
    more, condition = len(rule.features) - shown, _condition(tree, rule)
    target_classes = tree.target_classes(t) if isinstance(tree, Tree) else None
    return Card(
        node=t, counts=counts, bars=bars, more=more, rule=condition, logic=bool(rule.literals),
        target_classes=target_classes,
    )  # fmt: skip


def _n_bars(n_features: int, max_features: int) -> int:
    """The number of bars of a card: one more bar needs no more space than the line "+ 1 more"."""
    return n_features if n_features <= max_features + 1 else max_features


def _formula(tree: RegressionTree, v: int, leaf: int, counts: FloatArray, max_features: int, units: str) -> FormulaCard:
    formula = printed_formula(tree, leaf, units=units)  # with the numbers of ``export_text``
    shown = _n_bars(len(formula.features), max_features)
    weights = tree.hyperplanes.w[leaf][list(formula.features)]
    bars = tuple(
        Bar(name=one_line(tree.features[j]), length=float(weight / np.abs(weights).max()), number=signed(number))
        for j, weight, number in zip(formula.features[:shown], weights, formula.weights, strict=False)
    )
    head = f"{one_line(tree.target_name)} = {signed(formula.constant)}" + (" + sum" if bars else "")
    limits = signed(limits_text(tree, leaf)) if bars and units == "user" else ""
    return FormulaCard(node=v, counts=counts, head=head, bars=bars, more=len(formula.features) - shown, limits=limits)


def _condition(tree: HyperplaneTree, rule: Rule) -> str:
    if rule.literals:
        return one_line(rule.condition(tree.features))
    name = "sum" if len(rule.features) > 1 else one_line(tree.features[rule.features[0]])
    return f"{name} {_AT_MOST if rule.at_most else _AT_LEAST} {signed(rule.threshold)}"


def _leaf(tree: Tree, v: int, code: int, counts: FloatArray) -> LeafCard:
    return LeafCard(node=v, counts=counts, code=code, label=one_line(tree.classes[code]))


def signed(number: str) -> str:
    """Replace hyphens by minus signs."""
    return number.replace("-", "\N{MINUS SIGN}")
