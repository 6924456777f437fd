"""A canvas with coordinates in inches, on which boxes and text keep their proportions in axes of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from margotree.plots.figures import TEXT_COLOUR, figure_of, need_matplotlib
from margotree.plots.text_fitting import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class InchCanvas:
    """A drawing of ``width`` by ``height`` inches, which is scaled, text included, to the size of ``ax``.

    Coordinates and sizes of boxes are in inches of the drawing, line widths and text sizes in points; ``layer`` is
    matplotlib's ``zorder``.  Without ``ax``, the drawing is made in a new figure of its size.
    """

    def __init__(self, ax: Axes | None, width: float, height: float) -> None:
        need_matplotlib()
        self.ax = _axes_of_new_figure(width, height) if ax is None else ax
        self.scale = _scale(self.ax, width, height)
        self.ax.set(xlim=(0, width), ylim=(0, height), aspect="equal")
        self.ax.set_axis_off()

    def text(
        self, x: float, y: float, words: str, *, size: float, max_width: float, colour: str = TEXT_COLOUR,
        bold: bool = False, align: str = "left", background: str | None = None,
    ) -> None:  # fmt: skip
        """Draw one line of text, vertically centred at ``y``, and shortened if it is wider than ``max_width`` inches.

        ``align`` ("left", "center" or "right") says which point of the text is at ``x``.
        """
        box = {"facecolor": background, "edgecolor": "none", "pad": 1.5 * self.scale}
        self.ax.text(
            x, y, shortened(words, size, max_width, bold), size=size * self.scale, color=colour,
            weight="bold" if bold else "normal", ha=align, va="center_baseline", parse_math=False, zorder=5,
            bbox=None if background is None else box,
        )  # fmt: skip

    def box(
        self, x: float, y: float, width: float, height: float, *, fill: str, edge: str = "none", line: float = 0.8,
        corner: float = 0.0, layer: float = 2,
    ) -> None:  # fmt: skip
        """Draw a rectangle whose lower left corner is (x, y).

        ``fill`` and ``edge`` are colours, ``line`` is the width of the edge, ``corner`` the radius of the corners.
        """
        from matplotlib.patches import FancyBboxPatch, Rectangle

        look: dict[str, Any] = {"facecolor": fill, "edgecolor": edge, "linewidth": line * self.scale, "zorder": layer}
        if corner:
            style = f"round,pad=0,rounding_size={corner}"
            self.ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, **look))
        else:
            self.ax.add_patch(Rectangle((x, y), width, height, **look))

    def line(self, xs: Sequence[float], ys: Sequence[float], *, colour: str, width: float, layer: float = 3) -> None:
        """Draw straight lines through the points (x, y) of ``xs`` and ``ys``."""
        self.ax.plot(xs, ys, color=colour, linewidth=width * self.scale, zorder=layer, solid_capstyle="butt")

    def curve(self, start: tuple[float, float], end: tuple[float, float], *, colour: str, width: float) -> None:
        """Draw an S-shaped curve (a cubic Bezier curve) that is vertical at both ends."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        middle = (start[1] + end[1]) / 2
        points = [start, (start[0], middle), (end[0], middle), end]
        path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        self.ax.add_patch(
            PathPatch(path, facecolor="none", edgecolor=colour, linewidth=width * self.scale, zorder=1, capstyle="butt")
        )


def _axes_of_new_figure(width: float, height: float) -> Axes:
    """Axes that fill a new figure of this size in inches."""
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height)).add_axes((0.0, 0.0, 1.0, 1.0))


def _scale(ax: Axes, width: float, height: float) -> float:
    """Return the size in the figure, in inches, of one inch of the drawing."""
    figure = figure_of(ax)
    inches = figure.get_size_inches()
    position = ax.get_position()
    return float(min(position.width * inches[0] / width, position.height * inches[1] / height))
