"""A search over time: the best tree so far, the bound, and the gap that closes between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from margotree.pictures.canvas import QUIET, TEXT, axes, plain_axes
from margotree.pictures.palette import class_colour
from margotree.solution import relative_gap
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_progress(
    events: Iterable[Any], ax: Axes | None = None, *, label: str | None = None, colour: str | None = None
) -> Axes:
    """Draw what a search reported: incumbent (above), bound (below) and the gap between them over seconds.

    ``events`` are the :class:`~margotree.engines.Event` objects that a listener heard, or mappings with ``elapsed``,
    ``incumbent`` and ``bound``.  The incumbent shown at a time is the best and the bound the highest known by then.
    With ``label`` (and a ``colour``) several searches can share one ``ax``.
    """
    time, incumbent, bound = _history(events)
    ax = axes(ax, 7.0, 4.0)
    blue, other = (colour or class_colour(0)), (colour or class_colour(1))
    name = f"{label}: " if label else ""
    ax.step(time, incumbent, where="post", color=blue, linewidth=2, label=f"{name}best tree so far")
    if np.isfinite(bound).any():
        ax.step(time, bound, where="post", color=other, linewidth=2, linestyle=(0, (4, 1.5)), label=f"{name}bound")
        both = np.isfinite(incumbent) & np.isfinite(bound)
        ax.fill_between(time, bound, incumbent, where=both.tolist(), step="post", color=blue, alpha=0.1, linewidth=0)
    gap = relative_gap(_last(incumbent, math.inf), _last(bound, -math.inf))
    ending = f"gap {100 * gap:.3g} %" if math.isfinite(gap) else "no bound" if not np.isfinite(bound).any() else ""
    ax.set_xlabel("seconds")
    ax.set_ylabel("objective")
    if ax.get_title(loc="right") == "" and label is None:
        ax.set_title(f"{ending} after {time[-1]:.3g} s", loc="right", size=TEXT, color=QUIET)
    plain_axes(ax)
    ax.margins(x=0.01)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=TEXT)
    return ax


def _history(events: Iterable[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sorted times with the best incumbent and the highest bound known at each; unknown ones are NaN."""
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
