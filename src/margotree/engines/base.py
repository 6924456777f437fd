"""What every engine is: it says what it can take, searches, and has its answer audited before it leaves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from margotree.engines.numba_backend import Part, compile_ahead
from margotree.engines.presolve import standard_scale
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, TrainingProblem
from margotree.proof.write import ProofWriter
from margotree.solution import CUT_OFF, Certificate, Solution, Stopped, check_certificate

#: A search that ends with no more nodes than this has come to no tree of its own.
_BEGUN = 100


class EngineError(RuntimeError):
    """An engine cannot do what it was asked to; the message says what would help."""


class NotInstalled(EngineError):
    """The engine's solver is missing on this machine."""


class Refused(EngineError):
    """The engine does not solve this kind of problem."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What a search hands back before it is audited; see :class:`~margotree.solution.Certificate` for the words."""

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
    """One way to train a tree, for one kind of problem.

    Subclasses give :attr:`name`, :attr:`models` and :meth:`search`; those that wrap a solver also override
    :meth:`version` and :meth:`missing`.  Users call :meth:`solve`.
    """

    name: str
    #: The models this engine takes, such as "margot", "hfs", "sfs".
    models: frozenset[str] = frozenset()
    #: Whether it can return a lower bound.
    proves: bool = True
    #: Whether it notes in the run control that all nodes of a tree were trained.
    notes_trees: bool = False
    #: Whether it can write a proof of its bound that others can check (docs/proof.md).
    writes_proofs: bool = False

    def missing(self) -> str | None:
        """None if the engine can run here, else what to install.  Must not import the solver."""
        return None

    def must_be_installed(self) -> None:
        if (need := self.missing()) is not None:
            raise NotInstalled(f"engine {self.name!r} is not installed: {need}")

    def version(self) -> str:
        """Version of the solver behind it; that of this package for engines of our own."""
        from margotree import __version__

        return __version__

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts of the kernels that this kind of problem calls."""
        return ()

    def kernels_of_proofs(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts that only proofs call; raises :class:`Refused` if none can be written for this problem."""
        return ()

    def prepare(self, problem: TrainingProblem) -> None:
        """Do what must not count against the time limit, such as compiling for this kind of problem."""
        compile_ahead(self.kernels(problem))

    def prepare_proof(self, problem: TrainingProblem) -> None:
        """The same for what only proofs need."""
        compile_ahead(self.kernels_of_proofs(problem))

    def makes_start(self, problem: P) -> bool:
        """Whether it makes the greedy start itself, so that nobody needs to make one first."""
        return False

    def refuses(self, problem: P) -> str | None:
        """None if the engine takes this problem, else the reason."""
        if problem.model not in self.models:
            return f"{self.name} does not solve {problem.model} problems"
        return None

    @abstractmethod
    def search(self, problem: P, control: RunControl, start: Splits | None) -> Answer:
        """Do the work within ``control``'s limits, from a feasible start if one is given."""

    def solve(self, problem: P, control: RunControl | None = None, start: Splits | None = None) -> Solution:
        """Search in standard units, audit the answer with the plain value function, and write its certificate."""
        self.must_be_installed()
        if (reason := self.refuses(problem)) is not None:
            raise Refused(reason)
        control = control or RunControl()
        began = control.elapsed
        scaled, way = standard_scale(problem)
        answer = self.search(scaled, control.in_units(way.unit), None if start is None else way.into(start))
        answer = replace(
            answer,
            splits=way.back(answer.splits),
            bound=answer.bound * way.unit,
            f0=answer.f0 * way.unit,
            f1=answer.f1 * way.unit,
        )
        found = problem.evaluate(answer.splits)
        first = math.nan if start is None else problem.evaluate(start).objective
        certificate = self._certificate(problem, control, found.objective, first, answer, control.elapsed - began)
        check_certificate(found, certificate)
        return Solution(splits=answer.splits, certificate=certificate)

    def solve_with_proof(
        self, problem: P, writer: ProofWriter, control: RunControl | None = None, start: Splits | None = None
    ) -> Solution:
        """As :meth:`solve`, and a proof of what the certificate claims is written to a file."""
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
        """Whether the time was up before all nodes of some tree were trained, and before a search had begun."""
        begun = self.proves and answer.nodes > _BEGUN
        return self.notes_trees and answer.stopped is Stopped.TIME and not (control.has_tree or begun)
