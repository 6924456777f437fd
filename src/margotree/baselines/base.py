"""The common base class of the baselines' classifiers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from margotree.baselines.registry import solve
from margotree.engines.run_control import Limits, Listener, RunControl
from margotree.estimators.base import TreeClassifier
from margotree.estimators.initial_tree import splits_of_start
from margotree.estimators.input_data import Samples
from margotree.problem import Splits
from margotree.solution import Solution
from margotree.tree import Scaling


class BaselineClassifier(TreeClassifier):
    """Base class of OCT-1, OCT-H and MM-SVM-OCT; not to be used itself."""

    start: Any

    @abstractmethod
    def _adopt(self, problem: Any, splits: Splits, control: RunControl) -> Splits | None:
        """An allowed tree of this problem with the routing of ``splits``; None if there is none."""

    def _initial_tree(
        self, problem: Any, scaling: Scaling, samples: Samples, control: RunControl
    ) -> Splits | str | None:
        if self.start is None or isinstance(self.start, str):
            return self.start
        adopted = self._adopt(problem, splits_of_start(self.start, problem, scaling, samples.classes), control)
        if adopted is None:
            raise ValueError(
                f"start routes these data in a way that {type(self).__name__} does not allow (leaves too small, splits "
                "too close to samples or by too many features); leave start at its default instead"
            )
        return adopted

    def _solve(self, problem: Any, start: Splits | str | None, limits: Limits, listener: Listener | None) -> Solution:
        return solve(problem, engine=self._engine(), limits=limits, start=start, listener=listener)
