"""How often features return in refits, and how far predictions agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margotree.plots.figures import FONT_SIZE, given_or_new_axes, style_axes
from margotree.plots.palette import class_colour
from margotree.plots.text_fitting import one_line, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Features shown, and the width of their names in inches.
_MOST, _NAME_WIDTH = 20, 2.0


def plot_stability(stability: Any, ax: Axes | None = None) -> Axes:
    """Plot the share of refits that use each feature; the title has the agreement of the predictions.

    Features of the tree that is trained on all samples are dark, others light.

    Parameters
    ----------
    stability : Stability
        The result of :func:`margotree.model_selection.tree_stability`.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.

    Returns
    -------
    matplotlib axes
    """
    shown = list(stability.feature_share.items())[:_MOST]
    if not shown:
        raise ValueError("neither the tree nor any refit uses a feature")
    ax = given_or_new_axes(ax, 6.0, 1.2 + 0.25 * len(shown))
    tree = stability.tree
    own = {tree.features[j] for j in np.flatnonzero(tree.selected().any(axis=0))}
    colours = [class_colour(0) if name in own else "#9bbfd6" for name, _ in shown]
    places = np.arange(len(shown))[::-1]
    ax.barh(places, [100 * share for _, share in shown], color=colours, height=0.7)
    names = [shortened(one_line(name), FONT_SIZE - 1, _NAME_WIDTH) for name, _ in shown]
    ax.set_yticks(places, names, parse_math=False)
    ax.set_xlim(0, 100)
    left_out = len(stability.feature_share) - len(shown)
    more = f"; {left_out} more are used by some" if left_out else ""
    ax.set_xlabel(f"% of {stability.n_refits} refits that use the feature (dark: in the tree of all samples{more})")
    mean = float(stability.agreement.mean())
    if stability.of_numbers:
        title = f"predictions differ by {mean:.2f} standard deviations of the target"
    else:
        title = f"refits agree with the tree on {100 * mean:.1f} % of the samples"
    ax.set_title(title, loc="left", size=FONT_SIZE)
    style_axes(ax)
    return ax
