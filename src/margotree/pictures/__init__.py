"""Pictures of trees, drawn with matplotlib (``pip install "margotree[plot]"``), which is imported on first use."""

from margotree.pictures.features import plot_features
from margotree.pictures.node import plot_node
from margotree.pictures.plane import plot_plane
from margotree.pictures.progress import plot_progress
from margotree.pictures.tree import plot_tree

__all__ = ["plot_features", "plot_node", "plot_plane", "plot_progress", "plot_tree"]
