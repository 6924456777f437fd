"""The rules of a tree as text, with numbers that can be checked by hand."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.table.table_description import raw_columns
from margotree.tree.column_logic import Column, Literal, columns_of, logic, terms_of
from margotree.tree.outline import Outline, outline
from margotree.tree.protocol import SplitTree, TreeLike
from margotree.tree.rules import NO_BREAK_SPACE, decimal_text
from margotree.tree.scaling import FloatArray

#: The largest change of ``h`` by rounding of printed numbers, for a sample in the training range, in margins.
ROUNDING_TOL = 0.01

#: Sums this close to the threshold, relative to the size of their terms, may be on either side by rounding errors.
_UNDECIDED = 1e-9

#: Indentation of the rules below a split.
_BAR = "|   "


@dataclass(frozen=True, kw_only=True)
class TextStyle:
    """The options of :meth:`HyperplaneTree.export_text` that all lines have in common."""

    digits: int | None = None
    units: str = "user"
    verbose: bool = False


class TextParts(Protocol):
    """What texts say about the nodes and leaves of a tree."""

    @property
    def outcome(self) -> str:
        """The word for what a leaf predicts."""
        ...

    def leaf(self, v: int, outcome: int, width: int) -> list[str]:
        """Return the lines about a leaf with the number ``outcome`` of :attr:`Outline.label`."""
        ...

    def samples(self, v: int) -> str:
        """Return the numbers of training samples that pass node or leaf ``v``."""
        ...

    def notes(self, t: int) -> str:
        """Return a note about a split for verbose texts; empty if there is none."""
        ...


def export_text(tree: SplitTree, parts: TextParts, style: TextStyle, *, width: int = 100, simplify: bool = True) -> str:
    """Return the rules of a tree; :meth:`~margotree.tree.base.HyperplaneTree.export_text` explains the options."""
    shape = outline(tree, simplify=simplify)
    lines = _Writer(tree, parts, shape, style).lines(shape.root, width)
    note = left_out_text(shape, verbose=style.verbose, outcome=parts.outcome)
    if note:
        lines.append(f"({note})")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Writer:
    tree: SplitTree
    parts: TextParts
    shape: Outline
    style: TextStyle

    def lines(self, v: int, width: int) -> list[str]:
        """Return the lines of the subtree at ``v``."""
        if v not in self.shape.children:
            return self.parts.leaf(v, self.shape.label[v], width)
        inner = width - len(_BAR)
        left, right = self.shape.children[v]
        verbose = self.style.verbose
        return [
            *([f"[{v}] {self.parts.samples(v)}"] if verbose else []),
            *_rule(self.tree, v, self.style, width),
            *(_note_lines(self.parts.notes(v), width) if verbose else []),
            *(_BAR + line for line in self.lines(right, inner)),
            "else",
            *(_BAR + line for line in self.lines(left, inner)),
        ]


def _note_lines(words: str, width: int) -> list[str]:
    return textwrap.wrap(f"({words})", width, initial_indent="   ", subsequent_indent="    ") if words else []


@dataclass(frozen=True)
class ClassParts:
    """What texts say about the nodes and leaves of a tree of classes."""

    tree: TreeLike
    outcome: str = "label"

    def leaf(self, v: int, outcome: int, width: int) -> list[str]:
        return [f"=> {self.tree.classes[outcome]}   ({self.samples(v)})"]

    def samples(self, v: int) -> str:
        counts = self.tree.counts[v]
        if not counts.any():
            return "no training samples"
        # With more than three classes, classes without samples are left out.
        shown = [(c, label) for c, label in zip(counts, self.tree.classes, strict=True) if c or len(counts) <= 3]
        return f"{samples_text(counts.sum())}: {class_counts_text(shown)}"

    def notes(self, t: int) -> str:
        return target_sides_text(self.tree, t)


def left_out_text(shape: Outline, *, verbose: bool = True, outcome: str = "label") -> str:
    """Return a note about the splits that a simplified outline leaves out; empty if there are none.

    ``outcome`` is the word for what a leaf predicts.
    """
    if not shape.left_out:
        return ""
    one, n = len(shape.left_out) == 1, len(shape.left_out)
    splits = f"split{'' if one else 's'}"
    which = f"{splits} {', '.join(f'[{t}]' for t in shape.left_out)}" if verbose else f"{n} {splits}"
    return f"not shown: {which}, which change{'s' if one else ''} no training sample's {outcome}"


def target_sides_text(tree: TreeLike, t: int) -> str:
    """Return a note about the classes that should meet the rule of node ``t``; empty without target sides."""
    targets = tree.target_classes(t)
    if targets is None:
        return ""
    left, right = (", ".join(str(tree.classes[k]) for k in side) or "none" for side in targets)
    return f"meant for {right}; else {left}"


def samples_text(total: float) -> str:
    """Format a number of samples with the noun: "38 samples"."""
    count = count_text(total)
    return f"{count} sample{'' if count == '1' else 's'}"


def class_counts_text(shown: Iterable[tuple[float, object]]) -> str:
    """Format the numbers of samples of some classes: "38 ill, 2 healthy", or "class 0: 38" for labels like numbers."""
    shown = list(shown)
    if any(_like_number(label) for _, label in shown):
        return ", ".join(f"class {label}: {count_text(c)}" for c, label in shown)
    return ", ".join(f"{count_text(c)} {label}" for c, label in shown)


def _like_number(label: object) -> bool:
    """Whether a label begins with a digit or a sign, so that it reads like a count."""
    return re.match(r"[-+.]?\d", str(label)) is not None


def count_text(c: float) -> str:
    """Format a number of samples, with two decimals if it is not whole."""
    return f"{c:.0f}" if abs(c - round(c)) < 1e-9 * max(1.0, c) else f"{c:.2f}"


def _rule(tree: SplitTree, t: int, style: TextStyle, width: int) -> list[str]:
    rule = rule_of(tree, t, digits=style.digits, units=style.units)
    lines = textwrap.wrap(
        "if " + rule.condition(tree.features), width, subsequent_indent="   ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    lines = [line.replace(NO_BREAK_SPACE, " ") for line in lines]
    left_out = f"   (of negligible weight and left out: {rule.left_out} of the features)"
    return lines + ([left_out] if rule.left_out else [])


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The rule of a node with numbers as they are printed; samples that meet it go right.

    Attributes
    ----------
    features : tuple of int
        Positions of the features, the largest weight (in scaled units) first.
    weights : tuple of str
        Signed numbers, the first one positive. In a rule with one feature the weight is 1 and the threshold is the
        limit of the feature.
    threshold : str
        The threshold of the weighted sum.
    at_most : bool
        Whether the threshold is an upper limit (``<=``) and not a lower one (``>=``).
    left_out : int
        The number of features with negligible weight.
    literals : tuple of Literal
        Statements such as "smoker is no" if the rule holds exactly if ``least`` of them are true; else empty.
    terms : tuple of str
        The terms of the weighted sum by columns, where columns hold words or missing cells; empty for other rules.
    columns : tuple of Column
        The columns of these terms, with the printed weights.
    """

    features: tuple[int, ...]
    weights: tuple[str, ...]
    threshold: str
    at_most: bool
    left_out: int = 0
    literals: tuple[Literal, ...] = ()
    least: int = 0
    terms: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()

    @property
    def relation(self) -> str:
        """``<=`` or ``>=``; a sum equal to the threshold meets the rule in both cases."""
        return "<=" if self.at_most else ">="

    def condition(self, names: Sequence[str]) -> str:
        """Return the rule as text, with no-break spaces inside terms."""
        if self.literals:
            return self._logic()
        if self.terms:
            return " ".join([*self.terms, f"{self.relation} {self.threshold}".replace(" ", NO_BREAK_SPACE)])
        parts: list[str] = []
        for j, weight in zip(self.features, self.weights, strict=True):
            number, sign = weight.removeprefix("-"), "- " if weight.startswith("-") else "+ " if parts else ""
            parts.append(f"{sign}{names[j]}" if number == "1" else f"{sign}{number} * {names[j]}")
        return " ".join(part.replace(" ", NO_BREAK_SPACE) for part in [*parts, f"{self.relation} {self.threshold}"])

    def _logic(self) -> str:
        literals = [literal.text.replace(" ", NO_BREAK_SPACE) for literal in self.literals]
        if self.least in (1, len(literals)):
            return (" AND " if self.least == len(literals) else " OR ").join(literals)
        return f"at least {self.least} of: {', '.join(literals)}"


def rule_text(tree: SplitTree, t: int) -> str:
    """Return the rule of node ``t`` on one line, in the units of the user; empty if the node does not split."""
    if not tree.splits.w[t].any():
        return ""
    return rule_of(tree, t).condition(tree.features).replace(NO_BREAK_SPACE, " ")


def rule_of(tree: SplitTree, t: int, *, digits: int | None = None, units: str = "user") -> Rule:
    """Return the rule of node ``t``; ``digits`` and ``units`` as in :func:`export_text`."""
    if t in tree.rules and units == "user" and digits is None:
        rounded = tree.rules[t]
        rule = Rule(
            features=rounded.features, weights=rounded.weights, threshold=rounded.threshold, at_most=rounded.at_most
        )
        return _in_words(tree, t, rule)
    shown = tree.selected()[t]
    if not shown.any():
        shown = tree.splits.w[t] != 0
    order = np.flatnonzero(shown)[np.argsort(-np.abs(tree.splits.w[t][shown]), kind="stable")]
    if digits is None and units == "user" and np.all(np.isfinite(tree.empty_range(t))):
        kept = _rule_for_samples(tree, t, order)
        if kept is not None:
            return _in_words(tree, t, kept)
    split = tree.split(t, units=units)
    weights, threshold = split.weights[order], split.threshold
    at_most = bool(weights[0] < 0)
    if at_most:
        weights, threshold = -weights, -threshold
    if len(order) == 1:
        # A limit of the feature is easier to read than a limit of its product with a weight.
        limit = threshold / weights[0]
        printed = ["1", decimal_text(limit, digits or digits_needed(np.array([limit]), weights))]
    else:
        largest = np.append(largest_values(tree, units)[order], 1.0)
        # Where weights are small, h varies by less than the margin.
        tolerance = ROUNDING_TOL * min(1.0, float(np.abs(tree.splits.w[t]).sum()))
        digits = digits or digits_needed(np.append(weights, threshold), largest, tolerance)
        printed = [decimal_text(x, digits) for x in (*weights, threshold)]
    rule = Rule(
        features=tuple(int(j) for j in order),
        weights=tuple(printed[:-1]),
        threshold=printed[-1],
        at_most=at_most,
        left_out=int(np.count_nonzero(tree.splits.w[t])) - len(order),
    )
    return _in_words(tree, t, rule) if units == "user" and t not in tree.rules else rule


def _rule_for_samples(tree: SplitTree, t: int, order: NDArray[np.int64]) -> Rule | None:
    """The rule of node ``t`` with as few digits as keep the sides of its training samples, in the units of the user.

    It also changes ``h`` by no more than :data:`ROUNDING_TOL`.

    ``order`` are the features shown, the most important one first; if the others change a side, all are shown. None if
    numbers of 17 digits do not keep the sides.
    """
    w, split, largest = tree.splits.w[t], tree.split(t), largest_values(tree, "user")
    middle = tree.scaling.offset + 0.5 * tree.scaling.scale
    rest = np.setdiff1d(np.flatnonzero(w), order)
    every = np.concatenate([order, rest[np.argsort(-np.abs(w[rest]), kind="stable")]])
    tolerance = ROUNDING_TOL * min(1.0, float(np.abs(w).sum()))
    for features in (order, every) if len(rest) else (order,):
        left_out = np.setdiff1d(every, features)
        weights, size = split.weights[features], largest[features]
        threshold = split.threshold - float(split.weights[left_out] @ middle[left_out])
        uncertain = 0.5 * float(np.abs(w[left_out]).sum())
        # A limit of a single feature is easier to read than a limit of its product with a weight.
        unit = (float(np.abs(weights[0])) if len(features) == 1 else 1.0) * (-1.0 if weights[0] < 0 else 1.0)
        weights, threshold = weights / unit, threshold / unit
        low, high = sorted(threshold + h / unit for h in tree.empty_range(t))
        for digits in range(3, 18):
            texts = [decimal_text(x, digits) for x in weights]
            error = float(np.abs(np.array([float(x) for x in texts]) - weights) @ size) + uncertain / abs(unit)
            for limit in (decimal_text(x, digits) for x in (threshold, 0.5 * (low + high))):
                change = abs(unit) * (error + abs(float(limit) - threshold)) - uncertain
                if change <= tolerance and low + error < float(limit) < high - error:
                    return Rule(
                        features=tuple(int(j) for j in features), weights=tuple(texts), threshold=limit,
                        at_most=unit < 0, left_out=len(left_out),
                    )  # fmt: skip
    return None


def _in_words(tree: SplitTree, t: int, rule: Rule) -> Rule:
    """Return the rule in the words of its columns: as logic if it is a logical statement, else as sums by column.

    A rule of rounded numbers is shown from these numbers, another one from the weights of the split.
    """
    raw = raw_columns(tree)
    is_rounded = t in tree.rules
    zero_one = is_rounded and tree.rules[t].zero_one
    if raw.numeric_cells and not zero_one:
        return rule
    cells = raw.rules_by_feature()
    printed = {j: Fraction(weight) for j, weight in zip(rule.features, rule.weights, strict=True)}
    sign = -1 if rule.at_most else 1
    if is_rounded:
        weights, threshold, tolerance = printed, Fraction(rule.threshold), Fraction(0)
    else:
        split = tree.split(t)
        used: list[int] = [*rule.features, *(j for j in np.flatnonzero(split.weights).tolist() if j not in printed)]
        weights = {j: Fraction(sign * float(split.weights[j])) for j in used}
        threshold = Fraction(sign * float(split.threshold))
        tolerance = Fraction(_UNDECIDED) * (sum(map(abs, weights.values())) + abs(threshold))
    columns = columns_of(cells, {j: sign * weight for j, weight in weights.items()}, zero_one)
    if all(column.states for column in columns):
        found = logic(columns, sign * threshold, tolerance)
        if found is not None:
            return replace(rule, literals=found[0], least=found[1], left_out=0)
    if len(rule.features) == 1 and columns[0].states:
        return rule  # its only number is a limit
    summed = sum_columns(tree, rule.features, rule.weights)
    return replace(rule, terms=terms_of(summed), columns=tuple(summed))


def sum_columns(tree: SplitTree, features: Sequence[int], weights: Sequence[str]) -> list[Column]:
    """Return the columns of a weighted sum; empty if all of them hold numbers without missing cells."""
    raw = raw_columns(tree)
    cells = raw.rules_by_feature()
    if raw.numeric_cells or all(len(cells[j][0].features) == 1 and not cells[j][0].words for j in features):
        return []
    return columns_of(cells, {j: Fraction(weight) for j, weight in zip(features, weights, strict=True)})


def largest_values(tree: SplitTree, units: str) -> FloatArray:
    """Return the largest absolute training value of each feature, from the scaling."""
    if units == "scaled":
        return np.ones(tree.n_features)
    return np.maximum(np.abs(tree.scaling.offset), np.abs(tree.scaling.offset + tree.scaling.scale))


def digits_needed(numbers: FloatArray, size: FloatArray, tolerance: float = ROUNDING_TOL) -> int:
    """Return the least number of digits, at least 3, that changes the sum of ``numbers * size`` by a tolerance."""
    for digits in range(3, 17):
        rounded = np.array([float(decimal_text(x, digits)) for x in numbers])
        if np.abs(rounded - numbers) @ size <= tolerance:
            return digits
    return 17
