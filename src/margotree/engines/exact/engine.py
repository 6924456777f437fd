"""The exact engine: branch and bound on the sides of samples and on the features of splits (docs/engine.md).

It uses no big-M constraints and no other solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from margotree.engines import compiled_parts
from margotree.engines.base import Answer, Engine, Refused
from margotree.engines.exact.kernels import partial_supports
from margotree.engines.exact.neighbourhood_search import RoutingBrancher, improve
from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.portfolio import (
    furthest,
    is_over,
    new_search,
    offer_better,
    pass_on,
    phase,
    run_to_end,
    trial,
)
from margotree.engines.exact.proof_log import ProofLog
from margotree.engines.exact.proof_search import Proof
from margotree.engines.exact.sample_branching import FEATURES_FIRST, MargotBrancher, Tactics
from margotree.engines.exact.search import Brancher, Search
from margotree.engines.exact.support_branching import SupportBrancher, SupportTactics, sparsified
from margotree.engines.exact.support_lists import count_supports
from margotree.engines.exact.support_proof_search import SupportProofBrancher
from margotree.engines.local_search_engine import Alternating, better_tree
from margotree.engines.node.svm import LARGE, solve_large
from margotree.engines.numba_backend import Part
from margotree.engines.polish import without_noise
from margotree.engines.presolve import merge_duplicates, merging_error, standard_scale, without_budget
from margotree.engines.run_control import RunControl
from margotree.engines.tiny_problems import tiny_problem
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, Splits, TrainingProblem
from margotree.problem.problem import FloatArray
from margotree.proof.write import ProofWriter, reason_unprovable
from margotree.solution import Solution, Stopped, relative_gap

#: Share of the time for neighbourhood search before the search begins.
_IMPROVE_SHARE = 0.1
#: Neighbourhood search starts from the trivial tree, too, if the first tree's objective is above this share of its
#: objective.
_FAR = 0.5
#: Share of the time for the search over routings before the local search: small fits end within it.
_ALONE_SHARE = 0.05
#: With budgets: shares of the time for a short and a longer trial of each strategy, for a start without budgets, and
#: for neighbourhood search.
_QUICK_SHARE, _TRIAL_SHARE, _RELAXED_SHARE, _SPARSE_SHARE = 0.005, 0.025, 0.02, 0.02
#: Factor on the trial of a search over supports that writes a proof.
_PROOF_LONGER = 1.5
#: Where work is measured in search nodes: the least number of nodes for neighbourhood search (its nodes are fast), and
#: for the search without budgets.
_IMPROVE_NODES, _RELAXED_NODES = 2000, 1000
#: With more samples, the local search comes before the search, and has this share of the time.
_MANY, _MANY_SHARE = LARGE, 0.7
#: With more numbers in the table, there is no search.
_HUGE = 2_000_000
#: Where supports are too many to list: the share of the time for the bound of trees without budgets, and for the local
#: search.
_BOUND_SHARE = 0.3
#: Feature penalties above this multiple of the best objective are lowered.
_PENALTY_RATIO = 1e3
#: The largest number of supports of a node that are listed.
_MOST_SUPPORTS = 50_000


class BranchAndBound(Engine):
    """Certified trees by a search over partial routings and supports (docs/engine.md).

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
    writes_proofs = True

    def __init__(self, tactics: Tactics | None = None, sparse: SupportTactics | None = None) -> None:
        self.tactics = tactics or Tactics()
        self.sparse = sparse or SupportTactics()
        self._proof: Proof | None = None

    def makes_start(self, problem: Problem) -> bool:
        """Whether the engine computes a start by itself: with many samples it begins with the local search."""
        return problem.n_samples > _MANY and problem.max_weight is None

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts of kernels that :meth:`solve` calls for this problem."""
        many = (compiled_parts.MANY_SAMPLES,) * (getattr(problem, "n_samples", 0) > LARGE)
        return many + compiled_parts.of_search(
            problem, with_penalties=isinstance(problem, Problem) and lists_nothing(problem)
        )

    def kernels_of_proofs(self, problem: TrainingProblem) -> tuple[Part, ...]:
        """The parts of kernels that only :meth:`solve_with_proof` calls."""
        _must_be_provable(problem)
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
        self._proof = Proof(writer, standard_scale(problem)[1].unit)
        try:
            solution = self.solve(problem, control, start)
            assert self._proof.steps is not None
            try:
                writer.finish(problem, solution.splits, solution.certificate.bound, self._proof.steps)
            except OSError as error:  # the tree is complete, and is returned without its proof
                writer.failure = f"{writer.path} {error.strerror or error}"
        finally:
            self._proof = None
            writer.clean()
        return solution

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        """The best tree and its bound, for a problem that is scaled."""
        merged, stands_for = merge_duplicates(problem)
        if merged.budget is not None and not _binding(merged):
            merged = without_budget(merged)
        if self._proof is not None:
            self._proof.start(merged, _weights(problem, stands_for))
        search, first = self._run(merged, start, control)
        if self._proof is None:
            self._repeat_with_smaller_penalties(merged, search, control)
        bound = max(0.0, search.bound) * (1.0 - merging_error(stands_for))
        if self._proof is not None:
            bound = min(bound, self._proof.end(search))
        solved = relative_gap(search.best, bound) <= control.limits.gap
        return Answer(
            splits=without_noise(merged, search.incumbent),
            stopped=_stop_reason(search, control) or (Stopped.SOLVED if solved else Stopped.PRECISION),
            bound=bound,
            nodes=search.steps,
            f0=allowed_value(merged, first),
            f1=search.f1,
        )

    def _repeat_with_smaller_penalties(self, problem: Problem, search: Search, control: RunControl) -> None:
        """Search again with smaller feature penalties, if rounding left a gap and no better tree can have such a
        penalty.

        A penalty is subtracted as a whole and added in parts, so next to a large one the digits of a small value are
        lost.
        """
        gap = relative_gap(search.best, search.bound)
        if problem.alpha is None or search.reason is not None or gap <= control.limits.gap:
            return
        most = (1.0 + 1e-6) * search.best
        if float(np.max(problem.alpha)) > _PENALTY_RATIO * most > 0.0:
            affordable = replace(problem, alpha=np.minimum(problem.alpha, most))
            again, _ = self._run(affordable, search.incumbent, control)
            search.offer(again.incumbent)
            search.floor = max(search.floor, again.bound)
            search.steps, search.reason = search.steps + again.steps, again.reason

    def _new_search(
        self, problem: Problem, brancher: Brancher, first: Splits, control: RunControl, ceiling: float = math.inf
    ) -> Search:
        """A search with threads of this process; engines that search in other processes override it."""
        return new_search(problem, brancher, first, control, ceiling)

    def _run(self, problem: Problem, start: Splits | None, control: RunControl) -> tuple[Search, Splits]:
        """The finished search, and the tree that it started from."""
        if problem.n_samples > _MANY and self._proof is None:
            return self._run_many(problem, start, control)
        trees = [trivial_tree(problem)] if start is None else [start, trivial_tree(problem)]
        return self._strategy(problem)(problem, min(trees, key=partial(allowed_value, problem)), control)

    def _strategy(self, problem: Problem) -> Callable[[Problem, Splits, RunControl], tuple[Search, Splits]]:
        """The method that runs the searches for this problem."""
        if self._proof is not None:
            return self._run_without_budgets_with_proof if problem.budget is None else self._run_with_budgets_with_proof
        if problem.budget is None:
            return self._run_without_budgets
        return self._run_without_lists if lists_nothing(problem) else self._run_with_budgets

    def _run_without_budgets_with_proof(
        self, problem: Problem, first: Splits, control: RunControl
    ) -> tuple[Search, Splits]:
        """`_run_without_budgets` with a proof."""
        assert self._proof is not None
        return self._run_without_budgets(problem, first, control, self._proof.log())

    def _run_without_budgets(
        self, problem: Problem, first: Splits, control: RunControl, log: ProofLog | None = None
    ) -> tuple[Search, Splits]:
        """Search over routings; return the finished search, and the tree that it started from."""
        limit = allowed_value(problem, first)
        brancher = MargotBrancher(problem, self.tactics, limit=limit, control=control)
        least = _root_bound(problem, control) if log is None else 0.0
        first = self._improved(brancher, first, phase(control, _IMPROVE_SHARE, _IMPROVE_NODES))
        if log is not None:
            brancher = MargotBrancher(problem, self.tactics, limit=limit, control=control, log=log)
        search = self._new_search(problem, brancher, first, control)
        search.floor = least
        search.run(trial(control, _ALONE_SHARE))
        if not is_over(search, control):
            offer_better(search, control)
            run_to_end(search, control)
        return search, first

    def _run_many(self, problem: Problem, start: Splits | None, control: RunControl) -> tuple[Search, Splits]:
        """With many samples: a bound from the root split, a tree from the local search, and then a search in the
        remaining time."""
        first = trivial_tree(problem) if start is None else start
        search = self._new_search(problem, self._first_brancher(problem, first, control), first, control)
        search.floor = _root_bound(problem, control)
        if relative_gap(search.best, search.bound) <= control.limits.gap:
            return search, first
        last = problem.X.size > _HUGE or lists_nothing(problem)
        part = control if last else control.share(seconds=_MANY_SHARE * control.remaining, nodes=math.inf)
        search.reason = control.must_stop()
        if search.reason is None:
            found = Alternating().search(problem, part, start)
            search.offer(found.splits)
            search.reason = control.must_stop() or (found.stopped if last else None)
        if search.reason is None:
            search.run(control)
        return search, first

    def _run_without_lists(self, problem: Problem, first: Splits, control: RunControl) -> tuple[Search, Splits]:
        """Search where supports are too many to list, or where weights are bounded, which searches over supports do not
        support: a hard budget becomes a feature penalty that no better tree can have.

        The first tree is from the local search; trees without budgets give a first bound.
        """
        relaxed, _ = self._run_without_budgets(
            without_budget(problem), first, phase(control, _BOUND_SHARE, _RELAXED_NODES).for_relaxation()
        )
        first = min(first, self._local_search(problem, first, control), key=partial(allowed_value, problem))
        limit = allowed_value(problem, first)
        searches = [
            self._new_search(problem, brancher, first, control)
            for brancher in self._penalty_branchers(problem, limit, control)
        ]
        for search in searches:
            search.floor, search.steps = relaxed.bound, relaxed.steps
        search = furthest(searches, control, _TRIAL_SHARE)
        searches.clear()
        run_to_end(search, control)
        return search, first

    def _local_search(self, problem: Problem, first: Splits, control: RunControl) -> Splits:
        """The tree of the local search that starts from ``first``."""
        part = phase(control, _BOUND_SHARE, _IMPROVE_NODES)
        return Alternating().search(problem, part, first).splits

    def _penalty_branchers(
        self, problem: Problem, limit: float, control: RunControl, proof: Proof | None = None
    ) -> tuple[PenaltyBrancher, MargotBrancher]:
        """Branchers that do not list supports: one decides samples first, one features first."""
        penalised = problem if problem.alpha is not None else _budget_as_penalty(problem, limit)
        logs = [None if proof is None else proof.log() for _ in range(2)]
        features_first = replace(self.tactics, **FEATURES_FIRST)
        return (
            PenaltyBrancher(penalised, self.tactics, limit=limit, control=control, log=logs[0]),
            MargotBrancher(penalised, features_first, limit=limit, control=control, log=logs[1]),
        )

    def _first_brancher(self, problem: Problem, first: Splits, control: RunControl) -> Brancher:
        """The brancher for a problem with many samples."""
        value = allowed_value(problem, first)
        if problem.budget is None:
            return MargotBrancher(problem, self.tactics, limit=value, control=control)
        return SupportBrancher(problem, value, self.sparse, control)

    def _improved(self, brancher: RoutingBrancher, first: Splits, control: RunControl) -> Splits:
        """The best tree of a neighbourhood search from ``first`` and, if that is not much better, the trivial tree."""
        if not self.tactics.improve:
            return first
        trivial, value = trivial_tree(brancher.problem), partial(allowed_value, brancher.problem)
        near = value(first) > _FAR * value(trivial)
        return improve(brancher, [first, trivial] if near else [first], control)

    def _run_with_budgets(self, problem: Problem, first: Splits, control: RunControl) -> tuple[Search, Splits]:
        """Search over supports first and then routings; with feature penalties, by the strategy that proves the best
        bound in trials."""
        limit = allowed_value(problem, first)
        supports_first = SupportBrancher(problem, limit, self.sparse, control)
        branchers: list[Brancher] = [supports_first]
        if problem.alpha is not None:
            samples_first, features_first = self._penalty_branchers(problem, limit, control)
            branchers += [samples_first, features_first]
        searches = [self._new_search(problem, brancher, first, control) for brancher in branchers]
        search = furthest(searches, control, _QUICK_SHARE if len(searches) > 1 else _TRIAL_SHARE)
        if not is_over(search, control):
            first, floor = self._sparsified(supports_first, search, trial(control, _RELAXED_SHARE))
            search.floor = max(search.floor, floor)
            if problem.alpha is not None:
                self._search_below_least_penalty(search, trial(control, _RELAXED_SHARE, search.steps))
                first = self._improved(samples_first, first, trial(control, _SPARSE_SHARE, least=_IMPROVE_NODES))
            search.offer(first)
            offer_better(search, control)
            searches.sort(key=lambda other: other is not search)
            search = furthest(searches, control, _TRIAL_SHARE)
        searches.clear()  # free the open nodes of the others
        run_to_end(search, control)
        return search, first

    def _run_with_budgets_with_proof(
        self, problem: Problem, first: Splits, control: RunControl
    ) -> tuple[Search, Splits]:
        """`_run_with_budgets`, with the two strategies that write proofs; bounds of the third one and of MARGOT are not
        used."""
        assert self._proof is not None
        hard = _as_hard_budget(problem, first)
        if hard is None:
            first = self._first_look(problem, first, control)
            hard = _as_hard_budget(problem, first)
        if hard is not None:
            return self._run_lists_with_proof(hard, first, control, self._proof)
        branchers = self._penalty_branchers(problem, allowed_value(problem, first), control, self._proof)
        searches = [self._new_search(problem, brancher, first, control) for brancher in branchers]
        search = furthest(searches, control, _QUICK_SHARE, share_bounds=False)
        if not is_over(search, control):
            searches.sort(key=lambda other: other is not search)
            search = furthest(searches, control, _TRIAL_SHARE, share_bounds=False)
        self._proof.drop_others(search)
        searches.clear()
        if not is_over(search, control):
            search.run(control)
        return search, first

    def _run_lists_with_proof(
        self, problem: Problem, first: Splits, control: RunControl, proof: Proof
    ) -> tuple[Search, Splits]:
        """Search over supports with a proof: hard budgets, or feature penalties that no better tree can have."""
        limit = allowed_value(problem, first)
        log = proof.support_log()
        log.begin_tables()
        brancher = SupportProofBrancher(problem, limit, self.sparse, control, log)
        search = self._new_search(problem, brancher, first, control)
        search.run(trial(control, _PROOF_LONGER * _TRIAL_SHARE))
        if not is_over(search, control):
            first_look = SupportBrancher(problem, limit, self.sparse, control)
            first, _ = self._sparsified(first_look, search, trial(control, _RELAXED_SHARE))
            search.offer(first)
            offer_better(search, control)
            run_to_end(search, control)
        return search, first

    def _first_look(self, problem: Problem, first: Splits, control: RunControl) -> Splits:
        """A good first tree, from searches without a proof."""
        if has_too_many_supports(problem):
            return better_tree(problem, first, control, 1.0)
        supports_first = SupportBrancher(problem, allowed_value(problem, first), self.sparse, control)
        first_look = self._new_search(problem, supports_first, first, control)
        first_look.run(trial(control, _QUICK_SHARE))
        if is_over(first_look, control):
            return first_look.incumbent
        first, _ = self._sparsified(supports_first, first_look, trial(control, _RELAXED_SHARE))
        return better_tree(problem, first, control, relative_gap(allowed_value(problem, first), first_look.bound))

    def _search_below_least_penalty(self, search: Search, control: RunControl) -> None:
        """Raise a bound that is below every feature penalty, by a search for trees that cost less than the smallest
        penalty.

        Such a tree has no feature beyond the budgets, so it has few possible supports.
        """
        problem = search.brancher.problem
        least = (1.0 - 1e-9) * _least_penalty(problem, free=False)
        if search.bound < min(least, search.best):
            brancher = SupportBrancher(problem, least, self.sparse, control)
            below = self._new_search(problem, brancher, search.incumbent, control, least)
            pass_on(search, below)
            below.run()
            pass_on(below, search)

    def _sparsified(self, brancher: SupportBrancher, search: Search, control: RunControl) -> tuple[Splits, float]:
        """A start and a bound from a search without budgets: its best routing with the best supports, and its bound."""
        problem = brancher.problem
        part = control.share(seconds=0.7 * control.remaining, nodes=max(_RELAXED_NODES, control.limits.nodes))
        relaxed, _ = self._run_without_budgets(without_budget(problem), search.incumbent, part.for_relaxation())
        trees = sparsified(brancher, relaxed.incumbent, search.best, control)
        best = min([search.incumbent, *trees], key=lambda tree: allowed_value(problem, tree))
        return best, relaxed.bound


def _must_be_provable(problem: TrainingProblem) -> None:
    """Raise :class:`Refused` before the search if no proof can be written for this problem."""
    if isinstance(problem, Problem) and (reason := reason_unprovable(problem)):
        raise Refused(reason)


def provable_searches(problem: TrainingProblem) -> dict[str, bool]:
    """Which kinds of searches a proof for this problem may consist of: over routings, over lists of supports."""
    assert isinstance(problem, Problem)
    listed = problem.budget is not None and not has_too_many_supports(problem)
    return {"routings": problem.model != "hfs" or not listed, "supports": listed}


def search_over_supports() -> None:
    """Solve tiny problems to compile what searches over supports call (:mod:`~margotree.engines.exact.warm_up`)."""
    for model in ("hfs", "sfs"):
        BranchAndBound().search(tiny_problem(model), RunControl(), None)
    partial_supports.penalty_of(np.zeros(1, np.int8), 1, 0.1)  # called by pools, which tiny problems do not need


def _weights(problem: Problem, stands_for: NDArray[np.int64]) -> FloatArray:
    """The sums of the weights of merged samples, correctly rounded."""
    ends = np.cumsum(np.bincount(stands_for))[:-1]
    parts = np.split(problem.weight[np.argsort(stands_for, kind="stable")], ends)
    return np.array([math.fsum(part) for part in parts])


def _budget_as_penalty(problem: Problem, limit: float) -> Problem:
    """The problem with its hard budget as a feature penalty above ``limit``: its bounds hold for the hard budget."""
    return replace(problem, alpha=np.full(problem.n_nodes, (1.0 + 1e-6) * limit))


def _as_hard_budget(problem: Problem, first: Splits) -> Problem | None:
    """The problem with hard budgets, if no tree better than ``first`` can have a feature penalty; None if one can, or
    if supports are too many to list."""
    hard = replace(problem, alpha=None)
    unaffordable = problem.alpha is None or allowed_value(problem, first) < _least_penalty(problem)
    return hard if unaffordable and not has_too_many_supports(hard) else None


def _least_penalty(problem: Problem, free: bool = True) -> float:
    """The smallest feature penalty at a node whose budget excludes features; penalties of 0 are left out unless
    ``free``."""
    assert problem.alpha is not None and problem.budget is not None
    penalties = problem.alpha[((problem.alpha > 0.0) | free) & (problem.budget < problem.n_features)]
    return float(np.min(penalties, initial=math.inf))


def _root_bound(problem: Problem, control: RunControl) -> float:
    """A first bound from the root split alone, for problems with many samples; 0 for others."""
    if problem.n_samples <= LARGE or control.over:
        return 0.0
    seconds = control.remaining * (1.0 if control.by_nodes else _IMPROVE_SHARE)
    return solve_large(problem.X, problem.y, problem.C[0] * problem.weight, seconds).bound


def has_too_many_supports(problem: Problem) -> bool:
    """Whether a node has too many supports to list."""
    return problem.model == "hfs" and count_supports(problem) > _MOST_SUPPORTS


def lists_nothing(problem: Problem) -> bool:
    """Whether budgets are searched without lists of supports."""
    return has_too_many_supports(problem) or (problem.budget is not None and problem.max_weight is not None)


def _stop_reason(search: Search, control: RunControl) -> Stopped | None:
    """Why a search ended: its last trial may have ended by its own limit, and the whole fit by another."""
    over = control.must_stop(search.steps)
    return over if over is not None and search.reason in (Stopped.TIME, Stopped.NODES) else search.reason


def _binding(problem: Problem) -> bool:
    """Whether the budget of any node excludes or penalises features."""
    assert problem.budget is not None
    free = problem.alpha is not None and problem.alpha == 0
    return bool(np.any((problem.budget < problem.n_features) & ~np.asarray(free)))
