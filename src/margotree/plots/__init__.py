"""Plots of trees with matplotlib (``pip install "margotree[plot]"``), which is imported when a plot is drawn.

- ``tree``: :func:`plot_tree`, the whole tree as cards. Start here.
- ``plane``: :func:`plot_plane`, a tree with two features
- ``node``: :func:`plot_node`, the samples at one split
- ``features``: :func:`plot_features`, the features that splits, trees or methods use
- ``calibration``: :func:`plot_calibration`, how reliable the probabilities are
- ``predictions``: :func:`plot_predictions`, :func:`plot_residuals` of numbers, and :func:`plot_effect` of a feature
- ``search_progress``: :func:`plot_progress`, objective and bound over time
- ``frontier``: :func:`plot_frontier`, score against the size of the trees, for the settings of a cross-validation
- ``stability``: :func:`plot_stability`, the features that return in refits
- ``notebook_html``: the representation of a tree in notebooks
- ``node_cards``, ``layout``, ``drawing``: content, positions and drawing of the cards of ``plot_tree``
- ``figures``, ``palette``, ``samples``, ``geometry``, ``text_fitting``: parts used by several plots
"""

from margotree.plots.calibration import plot_calibration
from margotree.plots.features import plot_features
from margotree.plots.frontier import plot_frontier
from margotree.plots.node import plot_node
from margotree.plots.plane import plot_plane
from margotree.plots.predictions import plot_effect, plot_predictions, plot_residuals
from margotree.plots.search_progress import plot_progress
from margotree.plots.stability import plot_stability
from margotree.plots.tree import plot_tree

__all__ = [
    "plot_calibration",
    "plot_effect",
    "plot_features",
    "plot_frontier",
    "plot_node",
    "plot_plane",
    "plot_predictions",
    "plot_progress",
    "plot_residuals",
    "plot_stability",
    "plot_tree",
]
