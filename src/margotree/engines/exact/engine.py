"""Our exact engine: branch and bound on which way a sample goes and on which features a split uses.

No big-M, no solver, no licence.
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

#: Share of the time that better incumbents may take before the search begins.
_IMPROVE_SHARE = 0.1
#: Around the trivial tree nobody looks for better ones if the first is worth less than this share of it.
_FAR = 0.5
#: Share of the time that the search over routings gets before it asks for a better tree: small fits are over by then.
_ALONE_SHARE = 0.05
#: Where features have budgets or prices: shares of the time for a quick try and a longer one of each way to search, for
#: a start without either, and for better incumbents.
_QUICK_SHARE, _TRIAL_SHARE, _RELAXED_SHARE, _SPARSE_SHARE = 0.005, 0.025, 0.02, 0.02
#: How many times as long a search over supports may take that writes down what it does.
_PROOF_LONGER = 1.5
#: Where work is measured in search nodes: steps for better incumbents at least (they are quick), and nodes at least of
#: the search without budgets or prices.
_IMPROVE_NODES, _RELAXED_NODES = 2000, 1000
#: Beyond so many samples no search gets far: it comes after the alternating search, which has this share of the time.
_MANY, _MANY_SHARE = LARGE, 0.7
#: Beyond so many numbers it is not begun.
_HUGE = 2_000_000
#: The share of the time for the bound of trees without budgets, where supports are too many to list.
_BOUND_SHARE = 0.3
#: Prices this many times the value of a tree are far beyond those that a better one can pay.
_PENALTY_RATIO = 1e3
#: So many supports of a node are listed at most.
_MOST_SUPPORTS = 50_000


class BranchAndBound(Engine):
    """Certified trees by a search over partial routings and supports (docs/engine.md)."""

    name = "bnb"
    notes_trees = True
    models = frozenset({"margot", "hfs", "sfs"})
    writes_proofs = True

    def __init__(self, tactics: Tactics | None = None, sparse: SupportTactics | None = None) -> None:
        self.tactics = tactics or Tactics()
        self.sparse = sparse or SupportTactics()
        self._proof: Proof | None = None

    def makes_start(self, problem: Problem) -> bool:
        return problem.n_samples > _MANY and problem.max_weight is None

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        many = (compiled_parts.MANY_SAMPLES,) * (getattr(problem, "n_samples", 0) > LARGE)
        return many + compiled_parts.of_search(
            problem, with_penalties=isinstance(problem, Problem) and lists_nothing(problem)
        )

    def kernels_of_proofs(self, problem: TrainingProblem) -> tuple[Part, ...]:
        _must_be_provable(problem)
        return compiled_parts.of_proofs(**provable_searches(problem))

    def solve_with_proof(
        self, problem: Problem, writer: ProofWriter, control: RunControl | None = None, start: Splits | None = None
    ) -> Solution:
        """As :meth:`solve`, with a proof of what the certificate claims, written to a file (docs/proof.md)."""
        _must_be_provable(problem)
        self._proof = Proof(writer, standard_scale(problem)[1].unit)
        try:
            solution = self.solve(problem, control, start)
            assert self._proof.steps is not None
            try:
                writer.finish(problem, solution.splits, solution.certificate.bound, self._proof.steps)
            except OSError as error:  # the tree is complete, and not to be lost with its proof
                writer.trouble = f"{writer.path} {error.strerror or error}"
        finally:
            self._proof = None
            writer.clean()
        return solution

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
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
        """Where rounding left a gap beside prices that no better tree can pay: search once more with lower ones.

        A price is taken off whole and put back in parts, so that beside a large one little is left of a small value.
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
        """A search by threads of this process; those who have others to do it make another."""
        return new_search(problem, brancher, first, control, ceiling)

    def _run(self, problem: Problem, start: Splits | None, control: RunControl) -> tuple[Search, Splits]:
        """The finished search and the tree it started from."""
        if problem.n_samples > _MANY and self._proof is None:
            return self._run_many(problem, start, control)
        trees = [trivial_tree(problem)] if start is None else [start, trivial_tree(problem)]
        return self._strategy(problem)(problem, min(trees, key=partial(allowed_value, problem)), control)

    def _strategy(self, problem: Problem) -> Callable[[Problem, Splits, RunControl], tuple[Search, Splits]]:
        if self._proof is not None:
            return self._run_without_budgets_with_proof if problem.budget is None else self._run_with_budgets_with_proof
        if problem.budget is None:
            return self._run_without_budgets
        return self._run_without_lists if lists_nothing(problem) else self._run_with_budgets

    def _run_without_budgets_with_proof(
        self, problem: Problem, first: Splits, control: RunControl
    ) -> tuple[Search, Splits]:
        assert self._proof is not None
        return self._run_without_budgets(problem, first, control, self._proof.log())

    def _run_without_budgets(
        self, problem: Problem, first: Splits, control: RunControl, log: ProofLog | None = None
    ) -> tuple[Search, Splits]:
        """Search over routings; returns the finished search and the tree it started from."""
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
        """A bound from the root split, the best tree of the alternating search, and only then, if ever, a search."""
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
        """Where supports are too many to list, or weights are bounded, which searches over supports know nothing of: a
        hard budget is searched as a price that no better tree can pay.

        Trees come from the alternating search, and trees without budgets give a bound, too.
        """
        relaxed, _ = self._run_without_budgets(
            without_budget(problem), first, phase(control, _BOUND_SHARE, _RELAXED_NODES)
        )
        first = min(first, self._local_search(problem, first, control), key=partial(allowed_value, problem))
        limit = allowed_value(problem, first)
        searches = [
            self._new_search(problem, way, first, control) for way in self._penalty_searches(problem, limit, control)
        ]
        for search in searches:
            search.floor, search.steps = relaxed.bound, relaxed.steps
        search = furthest(searches, control, _TRIAL_SHARE)
        searches.clear()
        run_to_end(search, control)
        return search, first

    def _local_search(self, problem: Problem, first: Splits, control: RunControl) -> Splits:
        part = phase(control, _BOUND_SHARE, _IMPROVE_NODES)
        return Alternating().search(problem, part, first).splits

    def _penalty_searches(
        self, problem: Problem, limit: float, control: RunControl, proof: Proof | None = None
    ) -> tuple[PenaltyBrancher, MargotBrancher]:
        """Samples first, and features first; without lists of supports."""
        stated = problem if problem.alpha is not None else _budget_as_penalty(problem, limit)
        logs = [None if proof is None else proof.log() for _ in range(2)]
        features_first = replace(self.tactics, **FEATURES_FIRST)
        return (
            PenaltyBrancher(stated, self.tactics, limit=limit, control=control, log=logs[0]),
            MargotBrancher(stated, features_first, limit=limit, control=control, log=logs[1]),
        )

    def _first_brancher(self, problem: Problem, first: Splits, control: RunControl) -> Brancher:
        value = allowed_value(problem, first)
        if problem.budget is None:
            return MargotBrancher(problem, self.tactics, limit=value, control=control)
        return SupportBrancher(problem, value, self.sparse, control)

    def _improved(self, brancher: RoutingBrancher, first: Splits, control: RunControl) -> Splits:
        if not self.tactics.improve:
            return first
        trivial, value = trivial_tree(brancher.problem), partial(allowed_value, brancher.problem)
        near = value(first) > _FAR * value(trivial)
        return improve(brancher, [first, trivial] if near else [first], control)

    def _run_with_budgets(self, problem: Problem, first: Splits, control: RunControl) -> tuple[Search, Splits]:
        """Search over supports first and then routings; where features have prices, that or another way."""
        limit = allowed_value(problem, first)
        supports_first = SupportBrancher(problem, limit, self.sparse, control)
        branchers: list[Brancher] = [supports_first]
        if problem.alpha is not None:
            samples_first, features_first = self._penalty_searches(problem, limit, control)
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
            searches.sort(key=lambda way: way is not search)
            search = furthest(searches, control, _TRIAL_SHARE)
        searches.clear()  # what the others have open takes memory
        run_to_end(search, control)
        return search, first

    def _run_with_budgets_with_proof(
        self, problem: Problem, first: Splits, control: RunControl
    ) -> tuple[Search, Splits]:
        """The same by the two ways that write down what they do; bounds of the third and of MARGOT do not count."""
        assert self._proof is not None
        hard = _as_hard_budget(problem, first)
        if hard is None:
            first = self._first_look(problem, first, control)
            hard = _as_hard_budget(problem, first)
        if hard is not None:
            return self._run_lists_with_proof(hard, first, control, self._proof)
        branchers = self._penalty_searches(problem, allowed_value(problem, first), control, self._proof)
        searches = [self._new_search(problem, brancher, first, control) for brancher in branchers]
        search = furthest(searches, control, _QUICK_SHARE, share_bounds=False)
        if not is_over(search, control):
            searches.sort(key=lambda way: way is not search)
            search = furthest(searches, control, _TRIAL_SHARE, share_bounds=False)
        self._proof.drop_others(search)
        searches.clear()
        if not is_over(search, control):
            search.run(control)
        return search, first

    def _run_lists_with_proof(
        self, problem: Problem, first: Splits, control: RunControl, proof: Proof
    ) -> tuple[Search, Splits]:
        """Hard budgets, or prices so high that no better tree can pay one: the search over supports, which takes down
        what it finds of them."""
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
        """A good tree to begin with, by searches that leave no proof."""
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
        """Raise a bound that is still below every price: see whether any tree costs less than a single one.

        Such a tree pays for no feature, so its supports are few.
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
        """Without budgets a good tree is soon found: its routing made sparse is a start, and its bound is one."""
        problem = brancher.problem
        part = control.share(seconds=0.7 * control.remaining, nodes=max(_RELAXED_NODES, control.limits.nodes))
        relaxed, _ = self._run_without_budgets(without_budget(problem), search.incumbent, part)
        trees = sparsified(brancher, relaxed.incumbent, search.best, control)
        best = min([search.incumbent, *trees], key=lambda tree: allowed_value(problem, tree))
        return best, relaxed.bound


def _must_be_provable(problem: TrainingProblem) -> None:
    """Complain before the search, not after it, about what a proof cannot be about."""
    if isinstance(problem, Problem) and (reason := reason_unprovable(problem)):
        raise Refused(reason)


def provable_searches(problem: TrainingProblem) -> dict[str, bool]:
    """What proofs of such a problem may be of: of searches over routings, and over lists of supports."""
    assert isinstance(problem, Problem)
    listed = problem.budget is not None and not has_too_many_supports(problem)
    return {"routings": problem.model != "hfs" or not listed, "supports": listed}


def search_over_supports() -> None:
    """Whole searches of tiny problems, which compile what searches over supports call (see ``ready``)."""
    for model in ("hfs", "sfs"):
        BranchAndBound().search(tiny_problem(model), RunControl(), None)
    partial_supports.penalty_of(np.zeros(1, np.int8), 1, 0.1)  # of pools, which tiny problems do without


def _weights(problem: Problem, stands_for: NDArray[np.int64]) -> FloatArray:
    """What equal samples weigh together, correctly rounded."""
    ends = np.cumsum(np.bincount(stands_for))[:-1]
    parts = np.split(problem.weight[np.argsort(stands_for, kind="stable")], ends)
    return np.array([math.fsum(part) for part in parts])


def _budget_as_penalty(problem: Problem, limit: float) -> Problem:
    """A hard budget as a price that no tree below ``limit`` can pay: its bounds hold for the hard one."""
    return replace(problem, alpha=np.full(problem.n_nodes, (1.0 + 1e-6) * limit))


def _as_hard_budget(problem: Problem, first: Splits) -> Problem | None:
    """The problem whose supports are listed because no tree better than ``first`` can pay for one more feature; None if
    one may, or if supports are too many."""
    hard = replace(problem, alpha=None)
    unaffordable = problem.alpha is None or allowed_value(problem, first) < _least_penalty(problem)
    return hard if unaffordable and not has_too_many_supports(hard) else None


def _least_penalty(problem: Problem, free: bool = True) -> float:
    """What one feature beyond the budget costs at least, at any node whose budget keeps features out; those that come
    ``free`` may count."""
    assert problem.alpha is not None and problem.budget is not None
    penalties = problem.alpha[((problem.alpha > 0.0) | free) & (problem.budget < problem.n_features)]
    return float(np.min(penalties, initial=math.inf))


def _root_bound(problem: Problem, control: RunControl) -> float:
    """A first bound where samples are so many that the search may not get to one: the root split by itself."""
    if problem.n_samples <= LARGE or control.over:
        return 0.0
    seconds = control.remaining * (1.0 if control.by_nodes else _IMPROVE_SHARE)
    return solve_large(problem.X, problem.y, problem.C[0] * problem.weight, seconds).bound


def has_too_many_supports(problem: Problem) -> bool:
    """Whether a node has more supports than can be listed."""
    return problem.model == "hfs" and count_supports(problem) > _MOST_SUPPORTS


def lists_nothing(problem: Problem) -> bool:
    """Whether budgets are searched without lists of supports."""
    return has_too_many_supports(problem) or (problem.budget is not None and problem.max_weight is not None)


def _stop_reason(search: Search, control: RunControl) -> Stopped | None:
    """Why a search ended.  Its last trial may have ended by a limit of its own, and the whole by something else."""
    over = control.must_stop(search.steps)
    return over if over is not None and search.reason in (Stopped.TIME, Stopped.NODES) else search.reason


def _binding(problem: Problem) -> bool:
    """Whether any node's budget keeps features out or puts a price on them."""
    assert problem.budget is not None
    free = problem.alpha is not None and problem.alpha == 0
    return bool(np.any((problem.budget < problem.n_features) & ~np.asarray(free)))
