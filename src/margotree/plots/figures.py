"""Figures and axes of matplotlib, colours and font sizes; matplotlib is imported when a plot is drawn."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from margotree.atomic_files import write_atomically
from margotree.plots.text_fitting import one_line, shortened, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colours of text, of explanations, of lines and of the background.
TEXT_COLOUR, MUTED, LINE_COLOUR, BACKGROUND = "#1f2933", "#5b6770", "#c3cad0", "#ffffff"

#: Font size of plots with axes, in points.
FONT_SIZE = 9.0


#: Width of the marker beside a legend entry, in inches.
_MARKER_WIDTH = 0.5


class MatplotlibMissing(ImportError):
    """matplotlib is not installed."""


def need_matplotlib() -> None:
    """Raise :class:`MatplotlibMissing` with the command that installs matplotlib."""
    if find_spec("matplotlib") is None:
        raise MatplotlibMissing('plots need matplotlib: pip install "margotree[plot]"')


def given_or_new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return ``ax``, or the axes of a new figure of this size (in inches)."""
    need_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def figure_of(ax: Axes) -> Figure:
    """Return the figure of ``ax``, also if the axes are in a subfigure."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write a figure to a file, completely or not at all, and close it; the format is that of the file's name."""
    import matplotlib.pyplot as plt

    kind = os.path.splitext(path)[1].lstrip(".") or "png"
    try:
        write_atomically(path, lambda draft: figure.savefig(draft, dpi=dpi, bbox_inches="tight", format=kind))
    finally:
        plt.close(figure)  # pyplot holds references to its figures


def tree_of(model: Any) -> Any:
    """Return the tree itself, or the tree of a fitted estimator."""
    tree = getattr(model, "tree_", model)
    if not hasattr(tree, "splits"):
        raise TypeError(f"a tree or a fitted tree estimator is needed, got {type(model).__name__}; call fit first")
    return tree


def legend_above(ax: Axes) -> None:
    """Draw a legend above the axes, with as many columns as fit."""
    handles, names = ax.get_legend_handles_labels()
    width = ax.get_position().width * figure_of(ax).get_size_inches()[0]
    # Many names get at least two columns, so that the legend is not larger than the plot.
    max_width = width / (2 if len(names) > 4 else 1) - _MARKER_WIDTH
    names = [shortened(one_line(name), FONT_SIZE, max_width) for name in names]
    widest = max(text_width(name, FONT_SIZE) for name in names) + _MARKER_WIDTH
    columns = max(1, min(len(names), int(width / widest)))
    legend = ax.legend(
        handles, names, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=FONT_SIZE,
        handletextpad=0.3, borderaxespad=0.2, columnspacing=1.2,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def legend_name(label: object) -> str:
    """Return the name of a class for a legend; matplotlib leaves out names that begin with an underscore."""
    return f" {label}" if str(label).startswith("_") else str(label)


def style_axes(ax: Axes) -> None:
    """Set two thin lines as frame, and small text."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(LINE_COLOUR)
    ax.tick_params(colors=MUTED, labelsize=FONT_SIZE - 1, length=3)
    ax.xaxis.label.set(color=TEXT_COLOUR, size=FONT_SIZE)
    ax.yaxis.label.set(color=TEXT_COLOUR, size=FONT_SIZE)
