"""A tree with two features in the plane: regions, hyperplanes and margins, each within the region of its node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.plots.figures import FONT_SIZE, MUTED, TEXT_COLOUR, given_or_new_axes, legend_above, style_axes, tree_of
from margotree.plots.geometry import box_polygon, clip, segment
from margotree.plots.palette import class_colour, tint
from margotree.plots.samples import draw_samples, draw_support_vectors, marker_area
from margotree.plots.text_fitting import one_line
from margotree.problem import topology
from margotree.tree import HyperplaneTree, RegressionTree, Tree
from margotree.tree.outline import outline
from margotree.tree.sample_paths import SamplePaths
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE, _PADDING, _GRID = 6.0, 0.06, 250


def plot_plane(
    tree: Any,
    X: ArrayLike,
    y: ArrayLike,
    ax: Axes | None = None,
    *,
    features: Sequence[int | str] | None = None,
    margins: bool = True,
    support: str | None = "last",
    legend: bool = True,
) -> Axes:
    """Plot a tree that uses at most two features in the plane of these features, in the units of the user.

    The colour of a region is the predicted class; in a tree of numbers lines of equal predictions and colours show the
    predictions. Solid lines are hyperplanes, drawn within the region of their node,
    thicker towards the root; dashed lines are their margins (``h = -1`` and ``h = 1``). Rings (thin ones if there are
    many) mark support vectors.

    Parameters
    ----------
    tree : Tree or fitted estimator
        The tree.
    X, y : array
        Samples with labels or numeric targets.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.
    features : pair of int or str, optional
        Positions or names of the two features; they must include all features with a weight.
    margins : bool
        Whether to draw the margins.
    support : {"last", "all", None}
        Which support vectors to mark: those of the last split on the path of a sample, of any split, or none; for trees
        of classes.
    legend : bool
        Whether to draw a legend.

    Returns
    -------
    matplotlib axes
    """
    tree = tree_of(tree)
    if support not in {"last", "all", None}:
        raise ValueError(f"support is 'last', 'all' or None, got {support!r}")
    first, second = pair = _pair(tree, features)
    points = np.array(tree.given(X))[:, pair]
    low, high = _window(points)
    if isinstance(tree, RegressionTree):
        numbers = np.asarray(y, dtype=np.float64)
        if len(numbers) != len(points):
            raise ValueError(f"X and y must be of one length, got {len(points)} and {len(numbers)}")
        ax = given_or_new_axes(ax, _SIZE * 1.1, _SIZE)
        _regions(ax, tree, pair, box_polygon(low, high), margins)
        _levels(ax, tree, pair, (low, high), points, numbers)
        legend = False
    else:
        paths = SamplePaths.of(tree, X, y)
        ax = given_or_new_axes(ax, _SIZE * 1.1, _SIZE)
        _regions(ax, tree, pair, box_polygon(low, high), margins)
        draw_samples(ax, points, paths.code, tree.classes)
        if support is not None:
            draw_support_vectors(ax, points[_support(paths, support)], len(points))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_xlabel(one_line(tree.features[first]), parse_math=False)
    ax.set_ylabel(one_line(tree.features[second]), parse_math=False)
    style_axes(ax)
    if legend:
        legend_above(ax)
    return ax


def _levels(
    ax: Axes, tree: RegressionTree, pair: list[int], window: tuple[FloatArray, FloatArray], points: FloatArray,
    y: FloatArray,
) -> None:  # fmt: skip
    """Draw lines of equal predictions, each labelled with its number, and the samples in the same colours."""
    first, second = np.meshgrid(*np.linspace(*window, _GRID).T)
    rows = np.tile(tree.scaling.offset, (first.size, 1)).astype(np.float64)
    rows[:, pair] = np.column_stack([first.ravel(), second.ravel()])
    predicted = tree.predict(rows).reshape(first.shape)
    lowest, highest = min(float(y.min()), float(predicted.min())), max(float(y.max()), float(predicted.max()))
    look: dict[str, Any] = {"cmap": "viridis", "vmin": lowest, "vmax": highest}
    extent = (window[0][0], window[1][0], window[0][1], window[1][1])
    ax.imshow(predicted, origin="lower", extent=extent, aspect="auto", alpha=0.35, zorder=0, **look)
    if np.ptp(predicted) > 0:
        lines = ax.contour(first, second, predicted, levels=8, colors=MUTED, linewidths=0.6, zorder=1)
        ax.clabel(lines, fontsize=FONT_SIZE - 2, fmt="%.4g")
    ax.scatter(
        points[:, 0], points[:, 1], c=y, s=marker_area(len(points)), edgecolor=TEXT_COLOUR, linewidth=0.4, zorder=3,
        **look,
    )  # fmt: skip


def _pair(tree: HyperplaneTree, features: Sequence[int | str] | None) -> list[int]:
    used = np.flatnonzero(tree.hyperplanes.w.any(axis=0)).tolist()
    if features is None:
        spare = [j for j in range(tree.n_features) if j not in used]
        chosen = sorted(used + spare[: max(0, 2 - len(used))])
    else:
        chosen = [feature_position(tree, f) for f in features]
    if len(chosen) != 2 or len(set(chosen)) != 2 or not set(used) <= set(chosen):
        raise ValueError(
            f"a plane shows two features, but this tree uses {len(used)} of {tree.n_features}"
            + ("" if features is None else f", and not only {list(features)}")
            + "; plot_node shows one split of a tree on any number of them"
        )
    return chosen


def feature_position(tree: HyperplaneTree, feature: int | str) -> int:
    """Return the position of a feature, given by position or name."""
    if isinstance(feature, str):
        if feature not in tree.features:
            raise ValueError(f"the tree has no feature {feature!r}")
        return tree.features.index(feature)
    if not 0 <= feature < tree.n_features:
        raise ValueError(f"features are numbered 0 to {tree.n_features - 1}, got {feature!r}")
    return int(feature)


def _window(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = points.min(axis=0), points.max(axis=0)
    padding = _PADDING * np.where(high > low, high - low, 1.0)
    return low - padding, high + padding


def _regions(ax: Axes, tree: HyperplaneTree, pair: list[int], window: FloatArray, margins: bool) -> None:
    """Draw hyperplanes and margins of each node within its polygon, and fill the polygons of leaves."""
    shape = outline(tree)
    waiting: list[tuple[int, FloatArray]] = [(shape.root, window)]
    while waiting:
        v, polygon = waiting.pop()
        if len(polygon) < 3:
            continue
        if v not in shape.children:
            if not isinstance(tree, Tree):
                continue
            colour = tint(class_colour(int(tree.leaf_class[v - tree.n_nodes])), 0.17)
            ax.fill(*polygon.T, facecolor=colour, edgecolor=colour, linewidth=0.5, zorder=0)
            continue
        split = tree.split(v)
        w, b = split.weights[pair], -split.threshold
        _lines(ax, w, b, polygon, topology.level(v), margins)
        left, right = shape.children[v]
        waiting += [(left, clip(polygon, -w, -b)), (right, clip(polygon, w, b))]


def _lines(ax: Axes, w: FloatArray, b: float, polygon: FloatArray, level: int, margins: bool) -> None:
    for h, style in ((0.0, "-"), (-1.0, "--"), (1.0, "--")):
        ends = segment(polygon, w, b - h) if margins or h == 0 else None
        if ends is not None:
            width = max(2.6 - 0.7 * level, 0.9) if h == 0 else 0.9
            alpha = 1.0 if h == 0 else 0.7
            ax.plot(*ends.T, color=TEXT_COLOUR, linestyle=style, linewidth=width, zorder=2, alpha=alpha)


def _support(paths: SamplePaths, which: str) -> NDArray[np.int64]:
    shape = outline(paths.tree)
    found: set[int] = set()
    for t in shape.nodes:
        rows = paths.at(t)[paths.support(t)]
        if which == "last":
            # The last split is the one above the leaf of the sample, also if branches were pruned.
            leaves = [v for v in shape.children[t] if v not in shape.children]
            rows = rows[paths.passes[rows][:, leaves].any(axis=1)]
        found |= set(rows.tolist())
    return np.array(sorted(found), dtype=np.int64)
