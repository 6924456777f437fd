"""A search over time: the objective of the best tree so far, the bound, and the gap between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from margotree.plots.figures import given_or_new_axes, legend_above, style_axes
from margotree.plots.palette import class_colour
from margotree.solution import Certificate, gap_text, relative_gap
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_progress(
    events: Iterable[Any],
    ax: Axes | None = None,
    *,
    certificate: Certificate | None = None,
    label: str | None = None,
    colour: str | None = None,
) -> Axes:
    """Plot the incumbent, the bound and the gap between them over seconds.

    Parameters
    ----------
    events : iterable
        The :class:`~margotree.engines.Event` objects that a listener received, or mappings with ``elapsed``,
        ``incumbent`` and ``bound``. At each time the best incumbent and the highest bound so far are shown.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.
    certificate : Certificate, optional
        The certificate of the search, which adds the final values; the last event may be earlier.
    label, colour : str, optional
        Name and colour of the search, to draw several searches in one ``ax``.

    Returns
    -------
    matplotlib axes
    """
    time, incumbent, bound = _history([*events, *_ending(certificate)])
    ax = given_or_new_axes(ax, 7.0, 4.0)
    blue, other = (colour or class_colour(0)), (colour or class_colour(1))
    name = f"{label}: " if label else ""
    # The dot at the end shows the final value, which may be known at the end only.
    dot: dict[str, Any] = {"where": "post", "linewidth": 2, "marker": "o", "markersize": 4, "markevery": [-1]}
    ax.step(time, incumbent, color=blue, label=f"{name}best tree so far", **dot)
    if np.isfinite(bound).any():
        ax.step(time, bound, color=other, linestyle=(0, (4, 1.5)), label=f"{name}bound", **dot)
        both = np.isfinite(incumbent) & np.isfinite(bound)
        ax.fill_between(time, bound, incumbent, where=both.tolist(), step="post", color=blue, alpha=0.1, linewidth=0)
    gap = relative_gap(_last(incumbent, math.inf), _last(bound, -math.inf))
    ending = f"gap {gap_text(gap)}" if math.isfinite(gap) else "no bound"
    ax.set_xlabel("seconds" if label else f"seconds ({ending} after {time[-1]:.3g} s)")
    ax.set_ylabel("training objective")
    style_axes(ax)
    ax.margins(x=0.02)
    legend_above(ax)
    return ax


def _ending(certificate: Certificate | None) -> list[dict[str, float]]:
    if certificate is None:
        return []
    return [{"elapsed": certificate.seconds, "incumbent": certificate.objective, "bound": certificate.bound}]


def _history(events: Iterable[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sorted times with the best incumbent and the highest bound at each; NaN if unknown."""
    rows = sorted(_row(event) for event in events)
    if not rows:
        raise ValueError("there are no events to draw; pass a listener that keeps them to margotree.engines.solve")
    time, incumbent, bound = np.array(rows).T
    best, highest = np.minimum.accumulate(incumbent), np.maximum.accumulate(bound)
    return time, np.where(np.isfinite(best), best, np.nan), np.where(np.isfinite(highest), highest, np.nan)


def _row(event: Any) -> tuple[float, float, float]:
    read = event.get if isinstance(event, Mapping) else lambda name, default: getattr(event, name, default)
    time = read("elapsed", None)
    if time is None:
        raise ValueError(f"an event needs a time 'elapsed', got {event!r}")
    incumbent, bound = read("incumbent", None), read("bound", None)
    return (
        float(time),
        math.inf if incumbent is None or math.isnan(float(incumbent)) else float(incumbent),
        -math.inf if bound is None or math.isnan(float(bound)) else float(bound),
    )


def _last(values: FloatArray, unknown: float) -> float:
    return float(values[-1]) if np.isfinite(values[-1]) else unknown
