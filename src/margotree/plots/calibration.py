"""Reliability of probabilities: how often a class occurs where its predicted probability is about p."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.plots.figures import (
    LINE_COLOUR,
    given_or_new_axes,
    legend_above,
    legend_name,
    style_axes,
    tree_of,
)
from margotree.plots.palette import class_colour, class_marker
from margotree.tree.labels import class_positions
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More classes than this are drawn as one curve of the predicted labels.
MAX_CLASSES = 8

#: The quantile of the normal distribution of 90 % intervals.
_Z = 1.645


def plot_calibration(
    tree: Any, X: ArrayLike, y: ArrayLike, ax: Axes | None = None, *, n_bins: int = 10, probabilities: Any = None
) -> Axes:
    """Plot how often a class occurs against its predicted probability.

    Samples are divided by their probability into bins of about equal numbers of samples; samples with equal
    probabilities are in one bin. A point is the mean probability of a bin and the share of the class in it, with its
    90 % interval (Wilson). Points on the diagonal are reliable probabilities. Bars at the bottom are a histogram of the
    probabilities.

    Parameters
    ----------
    tree : Tree or fitted classifier
        The tree, whose ``predict_proba`` is examined.
    X, y : array
        Samples with labels; samples that did not train the tree, unless the training data are to be shown.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.
    n_bins : int
        The largest number of bins.
    probabilities : array (samples, classes), optional
        Probabilities to show instead of those of the tree.

    Returns
    -------
    matplotlib axes

    Notes
    -----
    For two classes the curve is that of the second class, for up to 8 classes there is a curve per class, and for more
    one curve of the predicted labels.
    """
    found = tree_of(tree)
    shares = np.asarray(found.predict_proba(X) if probabilities is None else probabilities, dtype=np.float64)
    code = class_positions(found.classes, y)
    if shares.shape != (len(code), len(found.classes)):
        raise ValueError(f"expected probabilities of shape {(len(code), len(found.classes))}, got {shares.shape}")
    if not len(code) or n_bins < 1:
        raise ValueError("a calibration plot needs at least one sample and one bin")
    ax = given_or_new_axes(ax, 5.0, 5.0)
    ax.plot([0, 1], [0, 1], color=LINE_COLOUR, linewidth=1, zorder=1)
    for name, k, p, occurs in _curves(found.classes, shares, code):
        _draw_curve(ax, name, k, p, occurs, n_bins)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel(f"predicted probability ({len(code)} samples)")
    ax.set_ylabel("share of samples")
    style_axes(ax)
    legend_above(ax)
    return ax


Curve = tuple[str, int, FloatArray, NDArray[np.bool_]]


def _curves(classes: NDArray[Any], shares: FloatArray, code: NDArray[np.int64]) -> list[Curve]:
    """Return the curves: name, number of the colour, probabilities, and whether the event occurs."""
    if len(classes) > MAX_CLASSES:
        predicted = shares.argmax(axis=1)
        return [("most probable class", 0, shares.max(axis=1), predicted == code)]
    shown = [1] if len(classes) == 2 else range(len(classes))
    return [(legend_name(classes[k]), k, shares[:, k], code == k) for k in shown]


def _draw_curve(ax: Axes, name: str, k: int, p: FloatArray, occurs: NDArray[np.bool_], n_bins: int) -> None:
    bin_of = _bins(p, n_bins)
    n = np.bincount(bin_of).astype(np.float64)
    mean, share = np.bincount(bin_of, weights=p) / n, np.bincount(bin_of, weights=occurs) / n
    low, high = wilson_interval(share, n)
    colour = class_colour(k)
    error = np.maximum(0.0, [share - low, high - share])
    ax.errorbar(
        mean, share, yerr=error, color=colour, marker=class_marker(k), markersize=5, linewidth=1.5, elinewidth=0.8,
        capsize=0, label=name, zorder=3,
    )  # fmt: skip
    height, edges = np.histogram(p, np.linspace(0, 1, 41))
    ax.bar(edges[:-1], 0.12 * height / height.max(), width=0.025, align="edge", color=colour, alpha=0.25, linewidth=0)


def _bins(p: FloatArray, n_bins: int) -> NDArray[np.int64]:
    """Return the bin of each probability, numbered without gaps; equal probabilities have the same bin."""
    if len(np.unique(p)) <= n_bins:
        return np.unique(p, return_inverse=True)[1].reshape(-1)
    edges = np.unique(np.quantile(p, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf"))
    return np.unique(np.searchsorted(edges, p, side="left"), return_inverse=True)[1].reshape(-1)


def wilson_interval(share: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the 90 % intervals of shares that were estimated from ``n`` samples each."""
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return centre - half, centre + half
