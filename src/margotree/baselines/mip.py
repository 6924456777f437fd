"""The common part of the engines that train a baseline's tree with a MIP solver.

The engine formulates the model, runs the solver's adapter, converts its points to allowed trees, and returns the best
tree with a valid bound.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Protocol

from margotree.engines import Answer, Engine, RunControl
from margotree.engines.base import P
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.model import FloatArray, MipModel
from margotree.engines.mip.result import answer, points, run
from margotree.problem import Splits
from margotree.solution import Stopped, relative_gap


class MipForm(Protocol):
    """A problem in MIP form, with the conversion between trees and points of the model."""

    @property
    def mip(self) -> MipModel: ...

    def point(self, splits: Splits) -> FloatArray:
        """The point of the model for an allowed tree."""
        ...

    def trees(self, x: FloatArray, control: RunControl) -> Iterator[Splits]:
        """The allowed trees for a point of the solver; none if the point is feasible only within tolerances, or at a
        limit of ``control``."""
        ...


class BaselineMip(Engine[P]):
    """An engine that trains the trees of one baseline with one solver.

    A subclass defines the first tree, a bound that needs no solver, and the model.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.name = adapter.name

    def missing(self) -> str | None:
        return self.adapter.missing()

    def version(self) -> str:
        return self.adapter.version()

    @abstractmethod
    def initial_tree(self, problem: P, start: Splits | None, control: RunControl) -> Splits:
        """An allowed tree: from the start if possible, otherwise without splits."""

    def improve(self, problem: P, tree: Splits, control: RunControl) -> Splits:
        """A better first incumbent for the solver, if a heuristic finds one; the default returns ``tree``."""
        return tree

    @abstractmethod
    def lower_bound(self, problem: P, control: RunControl) -> float:
        """A lower bound that needs no solver."""

    @abstractmethod
    def n_entries(self, problem: P) -> float:
        """An estimate of the number of matrix entries of the model."""

    @abstractmethod
    def mip_form(self, problem: P, value: float) -> MipForm:
        """The model, given the objective of a known tree."""

    def search(self, problem: P, control: RunControl, start: Splits | None) -> Answer:
        tree, lower_bound = self.initial_tree(problem, start, control), self.lower_bound(problem, control)
        if control.must_stop() is None:
            tree = self.improve(problem, tree, control)
        value = problem.evaluate(tree).objective
        bound = min(lower_bound, value)
        if (reason := control.must_stop()) is not None:
            return Answer(splits=tree, stopped=reason, bound=bound)
        if relative_gap(value, lower_bound) <= control.limits.gap:
            return Answer(splits=tree, stopped=Stopped.SOLVED, bound=bound, f0=value)
        if (abandoned := self.adapter.exceeded_limit(self.n_entries(problem), control)) is not None:
            return Answer(splits=tree, stopped=abandoned[0], bound=bound, warnings=abandoned[1:])
        model = self.mip_form(problem, value)
        result = run(self.adapter, model.mip, control, model.point(tree))
        grace, gap = control.grace(), control.limits.gap
        trees = [allowed for x in points(result) for allowed in model.trees(x, grace)]
        return answer(problem, result, tree, trees, grace, gap=gap, lower_bound=bound, size=model.mip.size)
