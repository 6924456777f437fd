"""The common base class of the baselines' classifiers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from margotree.baselines.registry import solve
from margotree.engines.run_control import Limits, Listener, RunControl
from margotree.estimators.classifiers import TreeClassifier
from margotree.estimators.initial_tree import class_splits, splits_of_start
from margotree.estimators.input_data import ClassSamples
from margotree.problem import Splits
from margotree.solution import Solution
from margotree.tree import Scaling


class BaselineClassifier(TreeClassifier):
    """Base class of OCT-1, OCT-H and MM-SVM-OCT; it has no model of its own.

    Attributes
    ----------
    start : str, None or a tree
        The initial tree of the engine: the name of a start heuristic, none, or a tree given by the user.
    """

    start: Any

    @abstractmethod
    def _tree_with_routing(self, problem: Any, splits: Splits, control: RunControl) -> Splits | None:
        """A feasible tree of ``problem`` that routes the training samples as ``splits`` does; None if none is found."""

    def _initial_tree(
        self, problem: Any, scaling: Scaling, samples: ClassSamples, control: RunControl
    ) -> Splits | str | None:
        if self.start is None or isinstance(self.start, str):
            return self.start
        tree = self._tree_with_routing(
            problem,
            splits_of_start(self.start, problem, lambda tree: class_splits(tree, scaling, samples.classes)),
            control,
        )
        if tree is None:
            raise ValueError(
                f"start routes these data in a way that {type(self).__name__} does not allow (leaves too small, splits "
                "too close to samples or by too many features); leave start at its default instead"
            )
        return tree

    def _solve(self, problem: Any, start: Splits | str | None, limits: Limits, listener: Listener | None) -> Solution:
        return solve(problem, engine=str(self._engine()), limits=limits, start=start, listener=listener)
