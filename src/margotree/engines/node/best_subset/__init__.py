"""Exact best-subset SVM: one node's hyperplane under a hard or priced feature budget."""

from margotree.engines.node.best_subset.solve import SubsetSolution, best_subset

__all__ = ["SubsetSolution", "best_subset"]
