"""The exact engine: branch and bound on the sides of samples, on choices of classes and on the features of splits
(docs/engine.md).

It uses no big-M constraints and no other solver.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from margotree.engines import compiled_parts
from margotree.engines.base import Answer, Engine, Refused
from margotree.engines.branch_and_bound.portfolio import new_search
from margotree.engines.branch_and_bound.squared_losses import search_squared_losses
from margotree.engines.branch_and_bound.strategies import MANY, Setup, lists_nothing, provable_searches, run_strategy
from margotree.engines.exact.kernels import partial_supports
from margotree.engines.exact.proof_search import NoProof, Proof
from margotree.engines.exact.sample_branching import Tactics
from margotree.engines.exact.sample_items import sample_items
from margotree.engines.exact.search import Brancher, Search
from margotree.engines.exact.support_branching import SupportTactics
from margotree.engines.node.svm import LARGE
from margotree.engines.numba_backend import Part
from margotree.engines.polish import polish, without_noise
from margotree.engines.presolve import merge_duplicates, merging_error, standard_scale, without_budget
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import allowed_value
from margotree.problem import Problem, Splits, TrainingProblem, evaluate
from margotree.problem.problem import FloatArray
from margotree.problem.tiny_problems import tiny_problem
from margotree.proof.write import ProofWriter, reason_unprovable
from margotree.solution import Solution, Stopped, relative_gap

#: Feature penalties above this multiple of the best objective are lowered.
_PENALTY_RATIO = 1e3


class BranchAndBound(Engine):
    """Certified trees by a search over partial routings, choices and supports (docs/engine.md).

    Parameters
    ----------
    tactics
        Settings of dives over routings.
    sparse
        Settings of dives over supports.
    """

    name = "bnb"
    notes_trees = True
    models = frozenset({"margot", "hfs", "sfs"})
    counts_groups = True
    squares_losses = True
    writes_proofs = True

    def __init__(self, tactics: Tactics | None = None, sparse: SupportTactics | None = None) -> None:
        self.tactics = tactics or Tactics()
        self.sparse = sparse or SupportTactics()

    def makes_start(self, problem: Problem) -> bool:
        """Whether the engine computes a start by itself: with many samples it begins with the local search."""
        return problem.n_samples > MANY and problem.max_weight is None

    def refuses(self, problem: Problem) -> str | None:
        """None if the engine solves this problem, else the reason."""
        if (reason := super().refuses(problem)) is not None:
            return reason
        if problem.task.squares_losses:
            return None
        try:
            sample_items(few_samples(problem))
        except ValueError as error:
            return str(error)
        return None

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts of kernels that :meth:`solve` calls for this problem."""
        many = (compiled_parts.MANY_SAMPLES,) * (getattr(problem, "n_samples", 0) > LARGE)
        return many + compiled_parts.of_search(
            problem, with_penalties=isinstance(problem, Problem) and lists_nothing(problem)
        )

    def kernels_of_proofs(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts of kernels that only :meth:`solve_with_proof` calls."""
        _must_be_provable(problem)
        assert isinstance(problem, Problem)
        return compiled_parts.of_proofs(**provable_searches(problem))

    def solve_with_proof(
        self, problem: Problem, writer: ProofWriter, control: RunControl | None = None, start: Splits | None = None
    ) -> Solution:
        """:meth:`solve`, with a proof of the certificate's bound in a file (docs/proof.md).

        Parameters
        ----------
        problem, control, start
            As for :meth:`solve`.
        writer
            Writes the file.

        Returns
        -------
        Solution
            The tree and its certificate; ``writer`` reports a file that could not be written.
        """
        _must_be_provable(problem)
        proof = Proof(writer, standard_scale(problem)[1].unit)
        try:
            solution = self.audited(problem, control, start, partial(self.search_with, proof=proof))
            assert proof.steps is not None
            try:
                writer.finish(problem, solution.splits, solution.certificate.bound, proof.steps)
            except OSError as error:  # the tree is complete, and is returned without its proof
                writer.failure = f"{writer.path} {error.strerror or error}"
        finally:
            writer.clean()
        return solution

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        """The best tree and its bound, for a problem that is scaled."""
        return self.search_with(problem, control, start, proof=NoProof())

    def search_with(
        self, problem: Problem, control: RunControl, start: Splits | None, *, proof: Proof | NoProof
    ) -> Answer:
        """:meth:`search` with a proof."""
        merged, stands_for = merge_duplicates(problem)
        if merged.budget is not None and not _binding(merged):
            merged = without_budget(merged)
        if merged.task.squares_losses:
            answer = search_squared_losses(merged, control, start, self.tactics, self.new_search)
            bound = answer.bound * (1.0 - merging_error(stands_for))
            return replace(answer, splits=without_noise(merged, answer.splits), bound=bound)
        proof.start(merged, _weights(problem, stands_for))
        setup = Setup(
            problem=merged, start=start, control=control, tactics=self.tactics, sparse=self.sparse, proof=proof,
            new_search=self.new_search,
        )  # fmt: skip
        search, first = run_strategy(setup)
        if not proof.writes:
            self._repeat_with_smaller_penalties(setup, search)
        bound = max(0.0, search.bound) * (1.0 - merging_error(stands_for))
        bound = min(bound, proof.end(search))
        solved = relative_gap(search.best, bound) <= control.limits.gap
        if not solved and search.reason is None:
            search.offer(_polished(merged, search.incumbent, control))
        return Answer(
            splits=without_noise(merged, search.incumbent),
            stopped=_stop_reason(search, control) or (Stopped.SOLVED if solved else Stopped.PRECISION),
            bound=bound,
            nodes=search.steps,
            f0=allowed_value(merged, first),
            f1=search.f1,
        )

    def _repeat_with_smaller_penalties(self, setup: Setup, search: Search) -> None:
        """Search again with smaller feature penalties, if rounding left a gap and no better tree can have such a
        penalty.

        A penalty is subtracted as a whole and added in parts, so next to a large one the digits of a small value are
        lost.
        """
        problem, gap = setup.problem, relative_gap(search.best, search.bound)
        if problem.alpha is None or search.reason is not None or gap <= setup.control.limits.gap:
            return
        most = (1.0 + 1e-6) * search.best
        if float(np.max(problem.alpha)) > _PENALTY_RATIO * most > 0.0:
            affordable = replace(problem, alpha=np.minimum(problem.alpha, most))
            again, _ = run_strategy(replace(setup, problem=affordable, start=search.incumbent))
            search.offer(again.incumbent)
            search.floor = max(search.floor, again.bound)
            search.steps, search.reason = search.steps + again.steps, again.reason

    def new_search(
        self, problem: Problem, brancher: Brancher, first: Splits, control: RunControl, ceiling: float = math.inf
    ) -> Search:
        """A search with threads of this process; engines that search in other processes override it."""
        return new_search(problem, brancher, first, control, ceiling)


def few_samples(problem: Problem) -> Problem:
    """The problem with its first samples only: enough to see which kinds of losses its task has."""
    few = slice(0, 100)
    return replace(problem, X=problem.X[few], y=problem.y[few], weight=problem.weight[few])


def _must_be_provable(problem: TrainingProblem) -> None:
    """Raise :class:`Refused` before the search if no proof can be written for this problem."""
    if isinstance(problem, Problem) and (reason := reason_unprovable(problem)):
        raise Refused(reason)


def search_over_supports() -> None:
    """Solve tiny problems to compile what searches over supports call (:mod:`~margotree.engines.exact.warm_up`)."""
    for model in ("hfs", "sfs"):
        BranchAndBound().search(tiny_problem(model), RunControl(), None)
    partial_supports.penalty_of(np.zeros(1, np.int8), 1, 0.1)  # called by pools, which tiny problems do not need


def _weights(problem: Problem, stands_for: NDArray[np.int64]) -> FloatArray:
    """The sums of the weights of merged samples, correctly rounded."""
    if stands_for[-1] == len(stands_for) - 1:  # no sample is merged
        return problem.weight
    ends = np.cumsum(np.bincount(stands_for))[:-1]
    parts = np.split(problem.weight[np.argsort(stands_for, kind="stable")], ends)
    return np.array([math.fsum(part) for part in parts])


def _polished(problem: Problem, tree: Splits, control: RunControl) -> Splits:
    """The tree solved again with its routing and features, or the same tree: for the last digits of its objective."""
    found = evaluate(problem, tree)
    support = None if problem.budget is None else tree.w != 0
    return polish(problem, found.node, support, control, choices=found.choices) or tree


def _stop_reason(search: Search, control: RunControl) -> Stopped | None:
    """Why a search ended: its last trial may have ended by its own limit, and the whole fit by another."""
    over = control.must_stop(search.steps)
    return over if over is not None and search.reason in (Stopped.TIME, Stopped.NODES) else search.reason


def _binding(problem: Problem) -> bool:
    """Whether the budget of any node excludes or penalises features, or groups of features."""
    assert problem.budget is not None
    free = problem.alpha is not None and problem.alpha == 0
    return bool(np.any((problem.budget < problem.n_groups) & ~np.asarray(free)))
