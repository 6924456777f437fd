"""The interface of all engines: the problems that an engine solves, its search, and the audit of its result."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from margotree.engines.numba_backend import Part, compile_ahead
from margotree.engines.presolve import standard_scale
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, TrainingProblem
from margotree.proof.write import ProofWriter
from margotree.solution import CUT_OFF, Certificate, Solution, Stopped, check_certificate

#: A search with no more nodes than this counts as not begun.
_FEW_NODES = 100


class EngineError(RuntimeError):
    """An engine cannot do what was requested; the message names a remedy."""


class NotInstalled(EngineError):
    """The engine's solver is not installed."""


class Refused(EngineError):
    """The engine does not solve this kind of problem."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """The result of a search before its audit; :class:`~margotree.solution.Certificate` describes the fields."""

    splits: Splits
    stopped: Stopped
    bound: float = -math.inf
    nodes: int = 0
    f0: float = math.nan
    f1: float = math.nan
    restriction: str = ""
    warnings: tuple[str, ...] = ()


P = TypeVar("P", bound=TrainingProblem)


class Engine(ABC, Generic[P]):
    """An algorithm that trains trees, for one kind of problem.

    Subclasses define :attr:`name`, :attr:`models` and :meth:`search`; those that wrap a solver also override
    :meth:`version` and :meth:`missing`.  Users call :meth:`solve`.
    """

    name: str
    #: The models that this engine solves, such as "margot", "hfs", "sfs".
    models: frozenset[str] = frozenset()
    #: Whether it returns a lower bound.
    proves: bool = True
    #: Whether it reports to the run control that all nodes of a tree were trained.
    notes_trees: bool = False
    #: Whether it solves problems whose budgets and penalties count groups of features.
    counts_groups: bool = False
    #: Whether it solves problems with squared losses.
    squares_losses: bool = False
    #: Whether it can write a proof of its bound (docs/proof.md).
    writes_proofs: bool = False

    def missing(self) -> str | None:
        """The command that installs what the engine needs; None if nothing is missing.  Must not import the solver."""
        return None

    def must_be_installed(self) -> None:
        """Raise :class:`NotInstalled` if the engine cannot run here."""
        if (need := self.missing()) is not None:
            raise NotInstalled(f"engine {self.name!r} is not installed: {need}")

    def version(self) -> str:
        """Version of the solver; that of this package for its own engines."""
        from margotree import __version__

        return __version__

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts of the kernels that this kind of problem needs."""
        return ()

    def kernels_of_proofs(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts that only proofs need; raises :class:`Refused` if no proof can be written for this problem."""
        return ()

    def prepare(self, problem: TrainingProblem) -> None:
        """Do what must not count against the time limit, such as compilation, for this kind of problem."""
        compile_ahead(self.kernels(problem))

    def prepare_proof(self, problem: TrainingProblem) -> None:
        """Do the same for proofs."""
        compile_ahead(self.kernels_of_proofs(problem))

    def makes_start(self, problem: P) -> bool:
        """Whether the engine computes the greedy start itself."""
        return False

    def refuses(self, problem: P) -> str | None:
        """None if the engine solves this problem, else the reason."""
        if problem.model not in self.models:
            return f"{self.name} does not solve {problem.model} problems"
        if isinstance(problem, Problem) and problem.task.squares_losses:
            if not self.squares_losses:
                return f"{self.name} does not solve problems with squared losses"
            if problem.max_weight is not None:
                return f"{self.name} does not solve problems with squared losses and bounded weights"
        if isinstance(problem, Problem) and problem.budget is not None and problem.groups is not None:
            return None if self.counts_groups else f"{self.name} does not count groups of features for budgets"
        return None

    @abstractmethod
    def search(self, problem: P, control: RunControl, start: Splits | None) -> Answer:
        """Search for a tree within the limits of ``control``.

        Parameters
        ----------
        problem : Problem
            The problem in standard units (`presolve`).
        control : RunControl
            Limits, progress and interruption.
        start : Splits, optional
            A feasible tree.

        Returns
        -------
        Answer
            Tree, bound, and why the search stopped.
        """

    def solve(self, problem: P, control: RunControl | None = None, start: Splits | None = None) -> Solution:
        """Search in standard units, audit the result with the problem's own objective, and write its certificate.

        Parameters
        ----------
        problem : Problem
            A problem of a kind that the engine solves.
        control : RunControl, optional
            Limits, progress and interruption; no limits without it.
        start : Splits, optional
            A feasible tree.

        Returns
        -------
        Solution
            The tree and its certificate.

        Raises
        ------
        NotInstalled, Refused
            If the engine cannot run here, or does not solve this problem.
        """
        return self.audited(problem, control, start, self.search)

    def audited(
        self,
        problem: P,
        control: RunControl | None,
        start: Splits | None,
        search: Callable[[P, RunControl, Splits | None], Answer],
    ) -> Solution:
        """:meth:`solve` with another search in place of :meth:`search`."""
        self.must_be_installed()
        if (reason := self.refuses(problem)) is not None:
            raise Refused(reason)
        control = control or RunControl()
        began = control.elapsed
        scaled, scaling = standard_scale(problem)
        answer = search(scaled, control.in_units(scaling.unit), None if start is None else scaling.into(start))
        answer = replace(
            answer,
            splits=scaling.back(answer.splits),
            bound=answer.bound * scaling.unit,
            f0=answer.f0 * scaling.unit,
            f1=answer.f1 * scaling.unit,
        )
        found = problem.evaluate(answer.splits)
        first = math.nan if start is None else problem.evaluate(start).objective
        certificate = self._certificate(problem, control, found.objective, first, answer, control.elapsed - began)
        check_certificate(found, certificate)
        return Solution(splits=answer.splits, certificate=certificate)

    def solve_with_proof(
        self, problem: P, writer: ProofWriter, control: RunControl | None = None, start: Splits | None = None
    ) -> Solution:
        """As :meth:`solve`, and write a proof of the certificate's claims with ``writer``."""
        raise Refused(f"engine {self.name!r} writes no proof for {problem.model} problems of this kind")

    def _certificate(
        self, problem: P, control: RunControl, objective: float, first: float, answer: Answer, seconds: float
    ) -> Certificate:
        return Certificate(
            objective=objective,
            bound=answer.bound,
            stopped=answer.stopped,
            gap_target=control.limits.gap,
            engine=self.name,
            engine_version=self.version(),
            search_seconds=seconds,
            nodes=answer.nodes,
            start_objective=first,
            f0=answer.f0,
            f1=answer.f1,
            restriction=answer.restriction,
            eps=problem.eps if isinstance(problem, Problem) else math.nan,
            warnings=(*answer.warnings, *([CUT_OFF] if self._was_cut_off(answer, control) else [])),
        )

    def _was_cut_off(self, answer: Answer, control: RunControl) -> bool:
        """Whether the time was over before all nodes of some tree were trained and before the search had begun."""
        begun = self.proves and answer.nodes > _FEW_NODES
        return self.notes_trees and answer.stopped is Stopped.TIME and not (control.has_tree or begun)
