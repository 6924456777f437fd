"""Samples as points, with a colour and a marker for each class, and rings around support vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margotree.plots.figures import BACKGROUND, TEXT_COLOUR, legend_name
from margotree.plots.palette import class_colour, class_marker
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Up to this number of support vectors, rings are wide; more get thin rings close to the point.
MAX_WIDE_RINGS = 40

#: Area of a marker in square points up to ``_SPARSE`` samples, and its minimum for more samples.
_AREA, _SPARSE, _SMALLEST = 24.0, 400, 7.0


def draw_samples(ax: Axes, points: FloatArray, code: NDArray[np.int64], classes: NDArray[Any]) -> None:
    """Draw the samples, each class with its colour and marker; markers of many samples are smaller."""
    area = marker_area(len(points))
    for k, label in enumerate(classes):
        here = code == k
        ax.scatter(
            points[here, 0], points[here, 1], s=area, marker=class_marker(k), color=class_colour(k),
            edgecolor=BACKGROUND, linewidth=0.5, zorder=3, label=legend_name(label),
        )  # fmt: skip


def draw_support_vectors(ax: Axes, points: FloatArray, n_samples: int) -> None:
    """Draw rings around support vectors, with an entry in the legend that has their number."""
    area, name = marker_area(n_samples), f"support vectors ({len(points)})"
    if len(points) <= MAX_WIDE_RINGS:
        look: dict[str, Any] = {"s": 80, "facecolor": "none", "edgecolor": TEXT_COLOUR, "linewidth": 0.9}
    else:
        look = {"s": 2.0 * area, "facecolor": "none", "edgecolor": TEXT_COLOUR, "linewidth": 0.35}
    ax.scatter(points[:, 0], points[:, 1], marker="o", zorder=4, label=name, **look)


def marker_area(n_samples: int) -> float:
    """Return the area of the marker of a sample, by the number of samples."""
    return max(_SMALLEST, _AREA * min(1.0, _SPARSE / max(1, n_samples)) ** 0.5)
