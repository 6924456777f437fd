"""The formulas in the leaves of trees of numbers, as text."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from margotree.tree.column_logic import terms_of, without_breaks
from margotree.tree.protocol import SplitTree
from margotree.tree.rules import NO_BREAK_SPACE, decimal_text
from margotree.tree.scaling import FloatArray, TargetScaling
from margotree.tree.text import ROUNDING_TOL, TextStyle, digits_needed, largest_values, samples_text, sum_columns


@dataclass(frozen=True, kw_only=True, eq=False)
class Formula:
    """The prediction of a leaf: ``constant + weights . x``, but at least ``low`` and at most ``high``.

    The limits are in the units of the user.
    """

    leaf: int
    weights: FloatArray
    constant: float
    low: float
    high: float


class FormulaTree(SplitTree, Protocol):
    """A tree of numbers; :class:`~margotree.tree.RegressionTree` explains its parts."""

    @property
    def target(self) -> TargetScaling: ...

    @property
    def target_name(self) -> str: ...

    def formula(self, leaf: int, *, units: str = ...) -> Formula: ...


@dataclass(frozen=True, kw_only=True)
class PrintedFormula:
    """A formula with numbers as they are printed.

    Attributes
    ----------
    features : tuple of int
        Positions of the features, the largest weight (in scaled units) first.
    weights : tuple of str
        Signed numbers.
    constant : str
        The constant term.
    left_out : int
        The number of features with negligible weight.
    columns : tuple of str
        The terms by columns, where columns hold words or missing cells; otherwise empty.
    """

    features: tuple[int, ...]
    weights: tuple[str, ...]
    constant: str
    left_out: int = 0
    columns: tuple[str, ...] = ()

    def terms(self, names: tuple[str, ...]) -> list[str]:
        """Return the terms of the sum, each with its sign, such as ``+ 0.11 * cement``."""
        if self.columns:
            return [self.constant, *self.columns]
        found = [self.constant]
        for j, weight in zip(self.features, self.weights, strict=True):
            sign, number = ("-", weight[1:]) if weight.startswith("-") else ("+", weight)
            found.append(f"{sign} {names[j]}" if number == "1" else f"{sign} {number} * {names[j]}")
        return found


def printed_formula(tree: FormulaTree, leaf: int, *, digits: int | None = None, units: str = "user") -> PrintedFormula:
    """Return the formula of a leaf with short numbers.

    By default numbers have as many digits as change no prediction in the training range by more than a hundredth of the
    spread of the targets.
    """
    formula, used = tree.formula(leaf, units=units), tree.selected()[leaf]
    order = np.flatnonzero(used)[np.argsort(-np.abs(tree.hyperplanes.w[leaf][used]), kind="stable")]
    numbers = np.append(formula.weights[order], formula.constant)
    if digits is None:
        tolerance = ROUNDING_TOL * (tree.target.scale if units == "user" else 1.0)
        digits = digits_needed(numbers, np.append(largest_values(tree, units)[order], 1.0), tolerance)
    *weights, constant = (decimal_text(x, digits) for x in numbers)
    return PrintedFormula(
        features=tuple(int(j) for j in order),
        weights=tuple(weights),
        constant=constant,
        left_out=int(np.count_nonzero(tree.hyperplanes.w[leaf])) - len(order),
        columns=terms_of(sum_columns(tree, order.tolist(), weights), after_constant=True) if units == "user" else (),
    )


def formula_text(tree: FormulaTree, leaf: int, *, digits: int | None = None, units: str = "user") -> str:
    """Return the formula of a leaf as text, such as ``strength = 12.1 + 0.11 * cement``.

    The blanks inside terms are no-break spaces.
    """
    shown = printed_formula(tree, leaf, digits=digits, units=units)
    target = tree.target_name
    if units == "scaled":
        target = f"({target} - {tree.target.center:.6g}) / {tree.target.scale:.6g}"
    return f"{target} = " + " ".join(without_breaks(term) for term in shown.terms(tree.features))


def limits_text(tree: FormulaTree, leaf: int) -> str:
    """Return the limits of the predictions of a leaf; empty for a constant, which needs none."""
    formula = tree.formula(leaf)
    if not np.any(formula.weights) or not np.isfinite([formula.low, formula.high]).all():
        return ""
    digits = digits_needed(np.array([formula.low, formula.high]), np.ones(2), ROUNDING_TOL * tree.target.scale)
    return f"limited to {decimal_text(formula.low, digits)} to {decimal_text(formula.high, digits)}"


def result_text(tree: FormulaTree, leaf: int, value: float) -> str:
    """Return the sentence about the prediction for one sample, with the formula that gives it."""
    formula = formula_text(tree, leaf).replace(NO_BREAK_SPACE, " ")
    limits = limits_text(tree, leaf)
    return f"the prediction is {tree.target_name} = {value:.6g} ({formula}{', ' + limits if limits else ''})"


@dataclass(frozen=True)
class FormulaParts:
    """What texts say about the nodes and leaves of a tree of numbers."""

    tree: FormulaTree
    style: TextStyle
    outcome: str = "prediction"

    def leaf(self, v: int, outcome: int, width: int) -> list[str]:
        leaf = outcome + self.tree.n_nodes
        shown = printed_formula(self.tree, leaf, digits=self.style.digits, units=self.style.units)
        notes = [self.samples(v), limits_text(self.tree, leaf)]
        if shown.left_out:
            notes.append(f"{shown.left_out} features of negligible weight left out")
        note = "; ".join(filter(None, notes)).replace(" ", NO_BREAK_SPACE)
        formula = formula_text(self.tree, leaf, digits=self.style.digits, units=self.style.units)
        lines = textwrap.wrap(
            f"=> {formula}   ({note})", width, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False
        )
        return [line.replace(NO_BREAK_SPACE, " ") for line in lines]

    def samples(self, v: int) -> str:
        total = float(self.tree.counts[v].sum())
        return samples_text(total) if total else "no training samples"

    def notes(self, t: int) -> str:
        return ""
