"""A MIP solver as an engine for a rival's model: formulate, run the adapter, clean up, report an honest bound."""

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


class Form(Protocol):
    """A problem in MIP form, with the ways there and back."""

    @property
    def mip(self) -> MipModel: ...

    def point(self, splits: Splits) -> FloatArray:
        """The point of the model that an allowed tree stands for."""
        ...

    def trees(self, x: FloatArray, control: RunControl) -> Iterator[Splits]:
        """The allowed trees behind a point that the solver found; none if its tolerances made it up or time is up."""
        ...


class RivalMip(Engine[P]):
    """One solver for one rival; subclasses say how to begin, what is known without a solver, and the form."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.name = adapter.name

    def missing(self) -> str | None:
        return self.adapter.missing()

    def version(self) -> str:
        return self.adapter.version()

    @abstractmethod
    def first(self, problem: P, start: Splits | None, control: RunControl) -> Splits:
        """An allowed tree to fall back on: the start, or the simplest one."""

    def improve(self, problem: P, tree: Splits, control: RunControl) -> Splits:
        """A better tree to hand to the solver, if there is a quick way to one."""
        return tree

    @abstractmethod
    def floor(self, problem: P, control: RunControl) -> float:
        """A lower bound that needs no solver."""

    @abstractmethod
    def entries(self, problem: P) -> float:
        """About how many entries the rows of the model have."""

    @abstractmethod
    def form(self, problem: P, value: float) -> Form:
        """The model, given the value of a known tree."""

    def search(self, problem: P, control: RunControl, start: Splits | None) -> Answer:
        first, floor = self.first(problem, start, control), self.floor(problem, control)
        if control.must_stop() is None:
            first = self.improve(problem, first, control)
        value = problem.evaluate(first).objective
        if (reason := control.must_stop()) is not None:
            return Answer(splits=first, stopped=reason, bound=min(floor, value))
        if relative_gap(value, floor) <= control.limits.gap:
            return Answer(splits=first, stopped=Stopped.SOLVED, bound=min(floor, value), f0=value)
        if (hopeless := self.adapter.hopeless(self.entries(problem), control)) is not None:
            return Answer(splits=first, stopped=hopeless[0], bound=min(floor, value), warnings=hopeless[1:])
        form = self.form(problem, value)
        result = run(self.adapter, form.mip, control, form.point(first))
        grace = control.grace()
        trees = [tree for x in points(result) for tree in form.trees(x, grace)]
        gap, least = control.limits.gap, min(floor, value)
        return answer(problem, result, first, trees, grace, gap=gap, lower_bound=least, size=form.mip.size)
