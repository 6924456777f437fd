"""Predicted numbers against observed ones, their residuals, and the partial effect of a feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.plots.figures import (
    LINE_COLOUR,
    MUTED,
    TEXT_COLOUR,
    given_or_new_axes,
    legend_above,
    style_axes,
    tree_of,
)
from margotree.plots.palette import class_colour, class_marker
from margotree.plots.plane import feature_position
from margotree.plots.samples import marker_area
from margotree.plots.text_fitting import one_line
from margotree.table.cell_rules import CellRule
from margotree.table.table_description import raw_columns
from margotree.tree import RegressionTree, Tree
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The number of leaves with a colour and a legend entry each; with more all points have one colour.
_MAX_LEAVES = 8

#: Values of the feature at which an effect is computed, samples that it is averaged over, and thin lines drawn.
_POINTS, _MAX_SAMPLES, _MAX_LINES = 60, 1000, 40


def plot_predictions(tree: Any, X: ArrayLike, y: ArrayLike, ax: Axes | None = None) -> Axes:
    """Plot the predictions of a regression tree against the observed targets.

    Points on the diagonal are predicted exactly. Each leaf has a colour, if there are at most eight. R2 and the mean
    absolute error of these samples are in the plot.

    Parameters
    ----------
    tree : RegressionTree or fitted regressor
        The tree.
    X, y : array
        Samples with targets; samples that did not train the tree, unless the training data are to be shown.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib axes
    """
    found, observed, predicted, leaf = _predicted(tree, X, y)
    ax = given_or_new_axes(ax, 5.0, 5.0)
    low, high = (float(f([f(observed), f(predicted)])) for f in (np.min, np.max))
    margin = 0.04 * (high - low) or 1.0
    ends = (low - margin, high + margin)
    ax.plot(ends, ends, color=LINE_COLOUR, linewidth=1, zorder=1)
    _points(ax, found, observed, predicted, leaf)
    errors = observed - predicted
    spread = np.sum((observed - observed.mean()) ** 2)
    r2 = f"R2 {1 - np.sum(errors**2) / spread:.3f}, " if spread > 0 else ""
    note = f"{r2}mean absolute error {np.mean(np.abs(errors)):.4g}, {len(errors)} samples"
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    ax.set_xlabel(f"observed {one_line(found.target_name)}\n{note}", parse_math=False)
    ax.set_ylabel("prediction")
    style_axes(ax)
    _legend(ax, leaf)
    return ax


def plot_residuals(tree: Any, X: ArrayLike, y: ArrayLike, ax: Axes | None = None) -> Axes:
    """Plot the residuals of a regression tree (observed minus predicted) against the predictions.

    The parameters are those of :func:`plot_predictions`. Residuals whose mean differs from 0 in some range, or whose
    spread grows, show what the tree does not explain. The dashed lines are the 10 % and 90 % quantiles.
    """
    found, observed, predicted, leaf = _predicted(tree, X, y)
    ax = given_or_new_axes(ax, 6.0, 4.0)
    residuals = observed - predicted
    ax.axhline(0.0, color=LINE_COLOUR, linewidth=1, zorder=1)
    low, high = np.quantile(residuals, [0.1, 0.9])
    for line in (low, high):
        ax.axhline(line, color=MUTED, linewidth=0.8, linestyle="--", zorder=1)
    _points(ax, found, predicted, residuals, leaf)
    note = f"8 of 10 residuals are between {low:.4g} and {high:.4g}".replace("-", "\N{MINUS SIGN}")
    ax.set_xlabel(f"predicted {one_line(found.target_name)}\n{note}", parse_math=False)
    ax.set_ylabel("observed minus predicted")
    style_axes(ax)
    _legend(ax, leaf)
    return ax


def plot_effect(tree: Any, X: ArrayLike, feature: int | str, ax: Axes | None = None, *, lines: bool = True) -> Axes:
    """Plot how the prediction depends on one feature, all others being as in the samples (partial dependence).

    The thick line is the mean over the samples, thin lines are single samples; the ticks at the bottom are deciles of
    the feature. For classes, the probability of the second class is shown, or of each class if there are more. A column
    of words has a point per word; of a column with missing cells, the rows get the value as if none were missing.

    Parameters
    ----------
    tree : tree or fitted estimator
        The tree.
    X : array
        Samples; of more than 1,000, 1,000 are used.
    feature : int or str
        Position or name of the feature, or name of a column of the training table.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.
    lines : bool
        Whether to draw single samples; only with one curve.

    Returns
    -------
    matplotlib axes
    """
    found = tree_of(tree)
    given = np.array(found.given(X))
    if not len(given):
        raise ValueError("a partial effect needs at least one sample")
    rule = _column(found, feature)
    if len(given) > _MAX_SAMPLES:
        given = given[np.random.default_rng(0).choice(len(given), _MAX_SAMPLES, replace=False)]
    ax = given_or_new_axes(ax, 6.0, 4.0)
    if rule is not None and not rule.numeric:
        _draw_words(ax, found, given, rule)
    else:
        j = feature_position(found, feature if rule is None else rule.features[0])
        others = [] if rule is None else [found.features.index(name) for name in rule.features[1:]]
        _draw_numbers(ax, found, given, j, others, lines)
    style_axes(ax)
    legend_above(ax)
    return ax


def _column(tree: Tree | RegressionTree, feature: int | str) -> CellRule | None:
    """The rule of the column of this name; None for a feature that is not a whole column."""
    return next((rule for rule in raw_columns(tree).rules if rule.column == feature), None)


def _draw_numbers(
    ax: Axes, tree: Tree | RegressionTree, given: FloatArray, j: int, others: list[int], lines: bool
) -> None:
    """Draw the mean output against feature ``j``; the ``others`` of its column say that a cell is missing."""
    at = np.linspace(given[:, j].min(), given[:, j].max(), _POINTS)
    curves = np.stack([_outputs(tree, _changed(given, [j, *others], [value, *[0.0] * len(others)])) for value in at], 1)
    names = _output_names(tree)
    if lines and len(names) == 1:
        for curve in curves[:: max(1, len(curves) // _MAX_LINES), :, 0]:
            ax.plot(at, curve, color=LINE_COLOUR, linewidth=0.6, zorder=1)
    for k, name in enumerate(names):
        ax.plot(at, curves[:, :, k].mean(axis=0), color=class_colour(k), linewidth=2.2, zorder=3, label=name)
    deciles = np.quantile(given[:, j], np.linspace(0.1, 0.9, 9))
    ax.plot(deciles, np.zeros(9), "|", color=TEXT_COLOUR, transform=ax.get_xaxis_transform(), markersize=9, zorder=4)
    ax.set_xlabel(one_line(tree.features[j]), parse_math=False)
    ax.set_ylabel(_output_label(tree), parse_math=False)


def _draw_words(ax: Axes, tree: Tree | RegressionTree, given: FloatArray, rule: CellRule) -> None:
    """Draw the mean output for each word of a column."""
    at = [tree.features.index(name) for name in rule.features]
    means = np.array([_outputs(tree, _changed(given, at, values)).mean(axis=0) for _, values in rule.words])
    for k, name in enumerate(_output_names(tree)):
        ax.plot(
            means[:, k], np.arange(len(means)), color=class_colour(k), marker=class_marker(k), markersize=7,
            linestyle="none", label=name, zorder=3,
        )  # fmt: skip
    ax.grid(axis="y", color=LINE_COLOUR, linewidth=0.6)
    ax.set_yticks(range(len(means)), [one_line(word) for word, _ in rule.words], parse_math=False)
    ax.set_ylim(len(means) - 0.5, -0.5)
    ax.set_xlabel(_output_label(tree), parse_math=False)
    ax.set_ylabel(one_line(rule.column), parse_math=False)


def _outputs(tree: Tree | RegressionTree, X: FloatArray) -> FloatArray:
    """The outputs that an effect shows, one column each."""
    if isinstance(tree, RegressionTree):
        return tree.predict(X)[:, None]
    shares = tree.predict_proba(X)
    return shares[:, 1:] if shares.shape[1] == 2 else shares


def _output_label(tree: Tree | RegressionTree) -> str:
    return f"predicted {one_line(tree.target_name)}" if isinstance(tree, RegressionTree) else "probability"


def _output_names(tree: Tree | RegressionTree) -> list[str]:
    if isinstance(tree, RegressionTree):
        return ["mean of the samples"]
    labels = [one_line(label) for label in tree.classes]
    return labels[1:] if len(labels) == 2 else labels


def _changed(X: FloatArray, features: Sequence[int], values: Sequence[float]) -> FloatArray:
    changed = X.copy()
    changed[:, features] = values
    return changed


def _predicted(
    tree: Any, X: ArrayLike, y: ArrayLike
) -> tuple[RegressionTree, FloatArray, FloatArray, NDArray[np.int64]]:
    """The tree, the observed targets, the predictions and the leaves."""
    found = tree_of(tree)
    if not isinstance(found, RegressionTree):
        raise TypeError("this plot is for trees of numbers (regressors); plot_calibration shows trees of classes")
    observed = np.asarray(y, dtype=np.float64)
    predicted = found.predict(X)
    if observed.shape != predicted.shape or not len(observed):
        raise ValueError(f"X and y must have one length of at least 1, got {len(predicted)} and {observed.shape}")
    if not np.all(np.isfinite(observed)):
        raise ValueError("y contains NaN or infinity")
    return found, observed, predicted, found.apply(X)


def _points(ax: Axes, tree: RegressionTree, x: FloatArray, y: FloatArray, leaf: NDArray[np.int64]) -> None:
    leaves = np.unique(leaf)
    area = marker_area(len(x))
    one_colour = len(leaves) == 1 or len(leaves) > _MAX_LEAVES
    for k, v in enumerate(leaves.tolist()):
        here = leaf == v
        ax.scatter(
            x[here], y[here], s=area, color=class_colour(0 if one_colour else k), edgecolor="white", linewidth=0.4,
            marker="o" if one_colour else class_marker(k), zorder=3,
            label=None if one_colour else f"leaf {v} ({int(here.sum())})",
        )  # fmt: skip


def _legend(ax: Axes, leaf: NDArray[np.int64]) -> None:
    if 1 < len(np.unique(leaf)) <= _MAX_LEAVES:
        legend_above(ax)
