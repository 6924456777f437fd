"""The samples at one split, projected onto the normal of its hyperplane and onto a direction along it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from margotree.plots.figures import BACKGROUND, TEXT_COLOUR, given_or_new_axes, legend_above, style_axes, tree_of
from margotree.plots.palette import class_colour, tint
from margotree.plots.samples import draw_samples, draw_support_vectors
from margotree.plots.text_fitting import one_line
from margotree.problem import topology
from margotree.tree import RegressionTree, Tree
from margotree.tree.outline import first_splitting, outline
from margotree.tree.sample_paths import SamplePaths
from margotree.tree.scaling import FloatArray
from margotree.tree.text import rule_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_node(tree: Any, X: ArrayLike, y: ArrayLike, node: int, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Plot the samples that reach ``node``.

    The horizontal axis is ``h`` (0 is the hyperplane, -1 and 1 are the margins); the vertical axis is the direction
    along the hyperplane with the largest variance. Both are linear projections of the samples in scaled units, with
    the features that the split uses. The grey area is the margin; rings (thin ones if there are many) mark support
    vectors. With a single feature there is no direction along the hyperplane, and samples are stacked.

    Parameters
    ----------
    tree : Tree or fitted estimator
        The tree.
    X, y : array
        Samples with labels.
    node : int
        The number of a node that splits.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.
    legend : bool
        Whether to draw a legend.

    Returns
    -------
    matplotlib axes
    """
    tree = tree_of(tree)
    if isinstance(tree, RegressionTree):
        raise TypeError("this plot is for trees of classes; plot_predictions and plot_residuals show trees of numbers")
    if not 0 <= node < tree.n_nodes:
        raise ValueError(f"there is no node {node}: the nodes of this tree are 0 to {tree.n_nodes - 1}")
    if node not in outline(tree).children:
        splitting = ", ".join(map(str, outline(tree).nodes)) or "none"
        raise ValueError(
            f"node {node} does not split, or no sample can reach it: there is no hyperplane to show; nodes that split: "
            f"{splitting}"
        )
    paths = SamplePaths.of(tree, X, y)
    ax = given_or_new_axes(ax, 7.0, 4.6)
    h, rows = paths.h(node), paths.at(node)
    used = sorted(rule_of(tree, node).features)
    across = spread(paths.scaled[rows][:, used], tree.splits.w[node, used])
    points = np.column_stack([h, across.position])
    _sides(ax, tree, node, h)
    draw_samples(ax, points, paths.code[rows], tree.classes)
    draw_support_vectors(ax, points[paths.support(node)], len(points))
    ax.set_xlabel(f"h at node {node} of {len(rows)} samples (0: hyperplane, \N{PLUS-MINUS SIGN}1: margin)")
    ax.set_ylabel(_along([tree.features[j] for j in used], across), parse_math=False)
    style_axes(ax)
    if legend:
        legend_above(ax)
    return ax


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """Samples along a hyperplane.

    ``direction`` is a unit vector orthogonal to ``w`` (0 if there is none), ``position`` the samples along it, and
    ``share`` its share of the variance along the hyperplane.
    """

    position: FloatArray
    direction: FloatArray
    share: float


def spread(scaled: FloatArray, w: FloatArray) -> Spread:
    """Return the direction along the hyperplane of ``w`` with the largest variance of the samples."""
    normal = w / np.linalg.norm(w)
    if len(scaled) < 2:
        return Spread(position=np.zeros(len(scaled)), direction=np.zeros(len(w)), share=0.0)
    centred = scaled - scaled.mean(axis=0)
    flat = centred - np.outer(centred @ normal, normal)
    _, size, directions = np.linalg.svd(flat, full_matrices=False)
    if size[0] <= 1e-9 * max(1.0, float(np.abs(centred).max())):
        return Spread(position=_stacked(centred @ normal), direction=np.zeros(len(w)), share=0.0)
    # The sign is free: the feature with the largest weight points upwards, so that plots do not flip.
    first = directions[0] * np.sign(directions[0][np.argmax(np.abs(directions[0]))])
    return Spread(position=flat @ first, direction=first, share=float(size[0] ** 2 / np.sum(size**2)))


def _stacked(values: FloatArray) -> FloatArray:
    """Return vertical positions that separate samples with nearly equal values."""
    bins = np.digitize(values, np.linspace(values.min(), values.max(), 60))
    height = np.zeros(len(values))
    for k in np.unique(bins):
        here = np.flatnonzero(bins == k)
        height[here] = np.arange(len(here))
    return height


def _along(features: Sequence[str], across: Spread) -> str:
    if not across.direction.any():
        return "samples, stacked"
    heavy = np.argsort(-np.abs(across.direction))[:2]
    names = [one_line(features[j]) for j in heavy if abs(across.direction[j]) > 0.2]
    short = [name if len(name) <= 24 else name[:15] + "\N{HORIZONTAL ELLIPSIS}" + name[-8:] for name in names]
    mostly = "".join(f"\n{word} {name}" for word, name in zip(("mostly", "and"), short, strict=False))
    return f"along the hyperplane ({100 * across.share:.0f} % of the spread){mostly}"


def _sides(ax: Axes, tree: Tree, node: int, h: FloatArray) -> None:
    low = -1.15 * max(1.6, float(-h.min(initial=0.0)))
    high = 1.15 * max(1.6, float(h.max(initial=0.0)))
    for start, end, child in ((low, 0.0, topology.left(node)), (0.0, high, topology.right(node))):
        ax.axvspan(start, end, facecolor=_side_colour(tree, child), zorder=0)
    ax.axvspan(-1, 1, facecolor="#8a949c", alpha=0.18, zorder=0.5, linewidth=0)
    ax.axvline(0, color=TEXT_COLOUR, linewidth=1.6, zorder=2)
    for margin in (-1, 1):
        ax.axvline(margin, color=TEXT_COLOUR, linewidth=0.9, linestyle="--", zorder=2, alpha=0.7)
    ax.set_xlim(low, high)


def _side_colour(tree: Tree, child: int) -> str:
    """Return the colour of the label of a side, or the background if several labels are below it."""
    shape = outline(tree)
    codes = {int(tree.leaf_class[v - tree.n_nodes]) for v in shape.below(first_splitting(tree, child))}
    return tint(class_colour(codes.pop()), 0.14) if len(codes) == 1 else BACKGROUND
