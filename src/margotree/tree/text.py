"""The rules of a tree as text, with numbers that can be checked by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margotree.tree.outline import Outline, outline
from margotree.tree.protocol import TreeLike
from margotree.tree.rules import decimal_text
from margotree.tree.scaling import FloatArray

#: The largest change of ``h`` by rounding of printed numbers, for a sample in the training range, in margins.
_ROUNDING_TOL = 0.01

#: Indentation of the rules below a split.
_BAR = "|   "

#: Keeps a term on one line when lines are wrapped; replaced by a space afterwards.
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def export_text(
    tree: TreeLike, *, digits: int | None = None, units: str = "user", width: int = 100, simplify: bool = True
) -> str:
    """Return the rules from the root down, with feature names and the numbers of training samples per class.

    Samples that meet a rule go to the first block below it, the others to the block after ``else``. Only selected
    features (:data:`~margotree.tree.SELECTED`) are shown, the largest weight first, with the number of features left
    out. A node that never splits (``w = 0``, up to rounding) is replaced by its child.

    Parameters
    ----------
    digits : int, optional
        Digits of each number. By default as many as keep ``h`` of every sample in the training range to a hundredth of
        the margin; :meth:`~margotree.tree.Tree.save` keeps all digits.
    units : {"user", "scaled"}
        The units of the numbers.
    width : int
        The line length.
    simplify : bool
        Whether to leave out splits that do not change the label of any training sample; they are named below the rules.
    """
    shape = outline(tree, simplify=simplify)
    lines = _lines(tree, shape, shape.root, digits, units, width)
    note = left_out_text(shape)
    if note:
        lines.append(f"({note})")
    return "\n".join(lines)


def left_out_text(shape: Outline) -> str:
    """Return a note about the splits that a simplified outline leaves out; empty if there are none."""
    if not shape.left_out:
        return ""
    which = ", ".join(f"[{t}]" for t in shape.left_out)
    one = len(shape.left_out) == 1
    return f"not shown: split{'' if one else 's'} {which}, which change{'s' if one else ''} no training sample's label"


def _lines(tree: TreeLike, shape: Outline, v: int, digits: int | None, units: str, width: int) -> list[str]:
    if v not in shape.children:
        return [f"=> {tree.classes[shape.label[v]]}   ({_samples(tree, v)})"]
    inner = width - len(_BAR)
    left, right = shape.children[v]
    met = _lines(tree, shape, right, digits, units, inner)
    rest = _lines(tree, shape, left, digits, units, inner)
    return [
        f"[{v}] {_samples(tree, v)}",
        *_rule(tree, v, digits, units, width),
        *_target_sides_lines(tree, v, width),
        *(_BAR + line for line in met),
        "else",
        *(_BAR + line for line in rest),
    ]


def _target_sides_lines(tree: TreeLike, t: int, width: int) -> list[str]:
    """Return lines that name the classes that an upper split should send right and left; empty for two classes."""
    words = target_sides_text(tree, t)
    return textwrap.wrap(f"({words})", width, initial_indent="   ", subsequent_indent="    ") if words else []


def target_sides_text(tree: TreeLike, t: int) -> str:
    """Return a note about the classes that should meet the rule of node ``t``; empty without target sides."""
    targets = tree.target_classes(t)
    if targets is None:
        return ""
    left, right = (", ".join(str(tree.classes[k]) for k in side) or "none" for side in targets)
    return f"meant for {right}; else {left}"


def _samples(tree: TreeLike, v: int) -> str:
    counts = tree.counts[v]
    if not counts.any():
        return "no training samples"
    # With more than three classes, classes without samples are left out.
    shown = [(c, label) for c, label in zip(counts, tree.classes, strict=True) if c or len(counts) <= 3]
    parts = ", ".join(f"{count_text(c)} {label}" for c, label in shown)
    total = count_text(counts.sum())
    return f"{total} sample{'' if total == '1' else 's'}: {parts}"


def count_text(c: float) -> str:
    """Format a number of samples, with two decimals if it is not whole."""
    return f"{c:.0f}" if abs(c - round(c)) < 1e-9 * max(1.0, c) else f"{c:.2f}"


def _rule(tree: TreeLike, t: int, digits: int | None, units: str, width: int) -> list[str]:
    rule = rule_of(tree, t, digits=digits, units=units)
    lines = textwrap.wrap(
        "if " + rule.condition(tree.features), width, subsequent_indent="   ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    lines = [line.replace(_NO_BREAK_SPACE, " ") for line in lines]
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
    """

    features: tuple[int, ...]
    weights: tuple[str, ...]
    threshold: str
    at_most: bool
    left_out: int = 0

    @property
    def relation(self) -> str:
        """``<=`` or ``>=``; a sum equal to the threshold meets the rule in both cases."""
        return "<=" if self.at_most else ">="

    def condition(self, names: Sequence[str]) -> str:
        """Return the rule as text, with no-break spaces inside terms."""
        parts: list[str] = []
        for j, weight in zip(self.features, self.weights, strict=True):
            number, sign = weight.removeprefix("-"), "- " if weight.startswith("-") else "+ " if parts else ""
            parts.append(f"{sign}{names[j]}" if number == "1" else f"{sign}{number} * {names[j]}")
        return " ".join(part.replace(" ", _NO_BREAK_SPACE) for part in [*parts, f"{self.relation} {self.threshold}"])


def rule_text(tree: TreeLike, t: int) -> str:
    """Return the rule of node ``t`` on one line, in the units of the user; empty if the node does not split."""
    if not tree.splits.w[t].any():
        return ""
    return rule_of(tree, t).condition(tree.features).replace(_NO_BREAK_SPACE, " ")


def rule_of(tree: TreeLike, t: int, *, digits: int | None = None, units: str = "user") -> Rule:
    """Return the rule of node ``t``; ``digits`` and ``units`` as in :func:`export_text`."""
    if t in tree.rules and units == "user" and digits is None:
        rounded = tree.rules[t]
        return Rule(
            features=rounded.features, weights=rounded.weights, threshold=rounded.threshold, at_most=rounded.at_most
        )
    shown = tree.selected()[t]
    if not shown.any():
        shown = tree.splits.w[t] != 0
    order = np.flatnonzero(shown)[np.argsort(-np.abs(tree.splits.w[t][shown]), kind="stable")]
    split = tree.split(t, units=units)
    weights, threshold = split.weights[order], split.threshold
    at_most = bool(weights[0] < 0)
    if at_most:
        weights, threshold = -weights, -threshold
    if len(order) == 1:
        # A limit of the feature is easier to read than a limit of its product with a weight.
        limit = threshold / weights[0]
        printed = ["1", decimal_text(limit, digits or _digits_needed(np.array([limit]), weights))]
    else:
        largest = np.append(_largest(tree, units)[order], 1.0)
        digits = digits or _digits_needed(np.append(weights, threshold), largest)
        printed = [decimal_text(x, digits) for x in (*weights, threshold)]
    return Rule(
        features=tuple(int(j) for j in order),
        weights=tuple(printed[:-1]),
        threshold=printed[-1],
        at_most=at_most,
        left_out=int(np.count_nonzero(tree.splits.w[t])) - len(order),
    )


def _largest(tree: TreeLike, units: str) -> FloatArray:
    """Return the largest absolute training value of each feature, from the scaling."""
    if units == "scaled":
        return np.ones(tree.n_features)
    return np.maximum(np.abs(tree.scaling.offset), np.abs(tree.scaling.offset + tree.scaling.scale))


def _digits_needed(numbers: FloatArray, size: FloatArray) -> int:
    """Return the least number of digits, at least 3, that changes the sum of ``numbers * size`` by 0.01 at most."""
    for digits in range(3, 17):
        rounded = np.array([float(decimal_text(x, digits)) for x in numbers])
        if np.abs(rounded - numbers) @ size <= _ROUNDING_TOL:
            return digits
    return 17
