"""The fitted model: predicts, explains and keeps itself; needs nothing but NumPy."""

from margotree.tree.decision_path import Path, Step
from margotree.tree.file import TreeFileError
from margotree.tree.protocol import Split
from margotree.tree.scaling import Scaling
from margotree.tree.tree import SELECTED, Tree

load = Tree.load

__all__ = ["SELECTED", "Path", "Scaling", "Split", "Step", "Tree", "TreeFileError", "load"]
