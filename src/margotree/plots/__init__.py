"""Pictures of trees, drawn with matplotlib (``pip install "margotree[plot]"``), which is imported on first use."""

from margotree.plots.features import plot_features
from margotree.plots.node import plot_node
from margotree.plots.plane import plot_plane
from margotree.plots.search_progress import plot_progress
from margotree.plots.tree import plot_tree

__all__ = ["plot_features", "plot_node", "plot_plane", "plot_progress", "plot_tree"]
