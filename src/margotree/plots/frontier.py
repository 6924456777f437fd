"""The frontier of a cross-validation: score against the size of the trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margotree.plots.figures import given_or_new_axes, legend_above, style_axes
from margotree.plots.palette import class_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OTHERS = "#B0B0B0"


def plot_frontier(frontier: Any, ax: Axes | None = None) -> Axes:
    """Plot the score of each setting of a cross-validation against its numbers to read, with standard errors.

    Parameters
    ----------
    frontier : Frontier or estimator
        The attribute ``frontier_`` of a fitted CV classifier or search, or the classifier or search itself.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib axes
    """
    points = list(getattr(frontier, "frontier_", frontier))
    if not points:
        raise ValueError("the frontier is empty: no setting has a score with a tree")
    ax = given_or_new_axes(ax, 7.0, 4.0)
    others = [point for point in points if not (point.efficient or point.chosen)]
    ax.plot(*_places(others), "o", color=_OTHERS, markersize=4, label="other settings")
    efficient = [point for point in points if point.efficient]
    ax.step(*_places(efficient), where="post", color=class_colour(0), linewidth=1.2, alpha=0.6)
    _draw_with_errors(ax, efficient, class_colour(0), "o", "no smaller tree is better")
    _draw_with_errors(ax, [point for point in points if point.chosen], class_colour(1), "D", "chosen")
    ax.set_xlabel("numbers to read")
    ax.set_ylabel("cross-validated score, with standard error")
    largest = max(point.numbers_to_read for point in points)
    if largest > 30:
        ax.set_xscale("symlog", linthresh=10)
        ticks = [0, 2, 4, 6, 8, *(m * 10**k for k in range(1, 7) for m in (1, 2, 5))]
        ax.set_xticks([tick for tick in ticks if tick <= 1.5 * largest])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
    ax.set_xlim(left=0)
    style_axes(ax)
    legend_above(ax)
    return ax


def _places(points: list[Any]) -> tuple[list[float], list[float]]:
    return [point.numbers_to_read for point in points], [point.score for point in points]


def _draw_with_errors(ax: Axes, points: list[Any], colour: str, marker: str, label: str) -> None:
    errors = np.array([point.standard_error for point in points])
    ax.errorbar(
        *_places(points), yerr=np.where(np.isfinite(errors), errors, 0.0), fmt=marker, color=colour, markersize=5,
        linewidth=1, capsize=2, label=label,
    )  # fmt: skip
