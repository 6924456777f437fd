"""A tree in words: rules that can be checked by hand."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from margotree.problem import topology
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from margotree.tree.tree import Split, Tree

#: How far rounding the printed numbers may move ``h`` of any sample in the training range, in margins.
_BLUR = 0.01

#: Weights that a solver leaves where it means 0, relative to the offset.
_NOISE = 1e-9

_BAR = "|   "

#: Keeps a term on one line while wrapping; turned into a plain space at the end.
_GLUE = "\N{NO-BREAK SPACE}"


def export_text(tree: Tree, *, digits: int | None = None, units: str = "user", width: int = 100) -> str:
    """The rules from the root down, with the features' names and the training samples of each class.

    The samples that meet a rule go into the first block below it, the others into the block after ``else``.
    Only selected features (:data:`~margotree.tree.SELECTED`) are shown, the heaviest first; how many smaller ones
    were left out is said.  A node that never splits (``w = 0``, up to rounding) is shown as what lies behind it.
    Numbers get as many ``digits`` as it takes to place every sample of the training range to a hundredth of the
    margin, or the number asked for; :meth:`~margotree.tree.Tree.save` keeps all of them.
    """
    return "\n".join(_lines(tree, 0, digits, units, width))


def _lines(tree: Tree, v: int, digits: int | None, units: str, width: int) -> list[str]:
    v = _first_real(tree, v)
    if v >= tree.n_nodes:
        return [_leaf(tree, v)]
    inner = width - len(_BAR)
    met = _lines(tree, topology.right(v), digits, units, inner)
    rest = _lines(tree, topology.left(v), digits, units, inner)
    return [
        f"[{v}] {_samples(tree, v)}",
        *_rule(tree, v, digits, units, width),
        *(_BAR + line for line in met),
        "else",
        *(_BAR + line for line in rest),
    ]


def _first_real(tree: Tree, v: int) -> int:
    """The first node or leaf at or below ``v`` at which something is decided."""
    while v < tree.n_nodes and _never_splits(tree, v):
        v = topology.right(v) if tree.splits.b[v] >= 0 else topology.left(v)
    return v


def _never_splits(tree: Tree, t: int) -> bool:
    """No weight at all, or only rounding noise that parted no training samples."""
    if not tree.splits.w[t].any():
        return True
    noise = np.abs(tree.splits.w[t]).max() <= _NOISE * (1 + abs(tree.splits.b[t]))
    return bool(noise and not (tree.counts[topology.left(t)].any() and tree.counts[topology.right(t)].any()))


def _leaf(tree: Tree, v: int) -> str:
    return f"=> {tree.classes[tree.leaf_class[v - tree.n_nodes]]}   ({_samples(tree, v)})"


def _samples(tree: Tree, v: int) -> str:
    counts = tree.counts[v]
    if not counts.any():
        return "no training samples"
    parts = ", ".join(f"{_count(c)} {label}" for c, label in zip(counts, tree.classes, strict=True))
    total = _count(counts.sum())
    return f"{total} sample{'' if total == '1' else 's'}: {parts}"


def _count(c: float) -> str:
    return f"{c:.0f}" if abs(c - round(c)) < 1e-9 * max(1.0, c) else f"{c:.2f}"


def _rule(tree: Tree, t: int, digits: int | None, units: str, width: int) -> list[str]:
    shown = tree.selected()[t]
    if not shown.any():
        shown = tree.splits.w[t] != 0
    split = tree.split(t, units=units)
    largest = _largest(tree, units)
    order = np.flatnonzero(shown)[np.argsort(-np.abs(tree.splits.w[t][shown]), kind="stable")]
    condition = _single(tree, split, order[0], digits) if len(order) == 1 else _sum(tree, split, order, digits, largest)
    lines = textwrap.wrap(
        "if " + condition, width, subsequent_indent="   ", break_long_words=False, break_on_hyphens=False
    )
    lines = [line.replace(_GLUE, " ") for line in lines]
    left_out = int(np.count_nonzero(tree.splits.w[t])) - len(order)
    return lines + ([f"   (of negligible weight and left out: {left_out} of the features)"] if left_out else [])


def _largest(tree: Tree, units: str) -> FloatArray:
    """The largest absolute training value of each feature, by the scaling."""
    if units == "scaled":
        return np.ones(tree.n_features)
    return np.maximum(np.abs(tree.scaling.offset), np.abs(tree.scaling.offset + tree.scaling.scale))


def _single(tree: Tree, split: Split, j: int, digits: int | None) -> str:
    """One feature against a limit: easier to read than its product with a weight."""
    weight = split.weights[j]
    limit = split.threshold / weight
    digits = digits or _enough(np.array([limit]), np.array([abs(weight)]))
    return f"{tree.features[j]} {'>=' if weight > 0 else '<='} {_number(limit, digits)}"


def _sum(tree: Tree, split: Split, order: np.ndarray, digits: int | None, largest: FloatArray) -> str:
    weights = split.weights[order]
    digits = digits or _enough(np.append(weights, split.threshold), np.append(largest[order], 1.0))
    terms = [f"{_number(abs(w), digits)} * {tree.features[j]}" for j, w in zip(order, weights, strict=True)]
    signs = ["-" if weights[0] < 0 else "", *("- " if w < 0 else "+ " for w in weights[1:])]
    parts = [sign + term for sign, term in zip(signs, terms, strict=True)]
    return " ".join(part.replace(" ", _GLUE) for part in [*parts, f">= {_number(split.threshold, digits)}"])


def _enough(numbers: FloatArray, size: FloatArray) -> int:
    """The fewest digits, from 3 on, whose rounding moves the sum of ``numbers * size`` by no more than the blur."""
    for digits in range(3, 17):
        rounded = np.array([float(_number(x, digits)) for x in numbers])
        if np.abs(rounded - numbers) @ size <= _BLUR:
            return digits
    return 17


def _number(x: float, digits: int) -> str:
    if x != 0 and not 1e-5 <= abs(x) < 1e9:
        return f"{x:.{digits - 1}e}"
    return np.format_float_positional(x, precision=digits, unique=False, fractional=False, trim="-")
