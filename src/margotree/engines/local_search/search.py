"""The local search: descents from many starts, in threads, until starts give no improvement or the time is up.

With many samples the starts are trained by successive halving: on few samples, the best results on more and more.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from margotree.engines.local_search import start_screening
from margotree.engines.local_search.annealing import Schedule, SoftTree, n_reannealings
from margotree.engines.local_search.descent import Descent
from margotree.engines.local_search.initial_splits import fresh_strategies
from margotree.engines.local_search.restart_pool import MIN_GAIN, RestartPool, is_near
from margotree.engines.local_search.starts import (
    Origin,
    Start,
    StartStatistics,
    first_strategies,
    greedy_start,
    idle_cost,
    new_start,
    perturbed,
    reannealed_start,
    soft_start,
    unchanged_start,
)
from margotree.engines.local_search.subsampling import SubsampleLevels
from margotree.engines.local_search.subtrees import rows_at, subtree_start
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem import Problem, Splits, topology
from margotree.problem.problem import FloatArray

#: Seconds between checks of the limits.
_POLL_SECONDS = 0.02
#: One of this number of trees of a level is promoted to the next; to all samples only if it is nearly the best there.
_PROMOTE_ONE_IN, _PROMOTE_TOLERANCE = 4, 1.0005
#: With a finisher, one of this number of trees on all samples goes to it, for this share of the remaining time, but for
#: no more than this share of the elapsed time, or this number of seconds. Early in the search descents often gain much
#: more.
_FINISH_ONE_IN, _FINISH_SHARE, _FINISH_PAST, _FINISH_MIN_SECONDS = 3, 0.25, 0.5, 0.5
#: After each group of this number of visits without improvement, one of twice as many trees goes to the finisher, with
#: at most this number of doublings.
_FAILED_VISITS, _MAX_DOUBLINGS = 3, 4
#: The share of the time for visits that are cut off by their time limit, and the same once the last number of starts in
#: a row gave no improvement.
_CUT_SHARE, _CUT_SHARE_IDLE, _IDLE_STARTS = 0.1, 0.6, 20
#: If no tree has been trained on all samples after this share of the time, the best so far is (after twice the share
#: where there are few), unless there is no time left to route all samples: seconds per entry of the samples and level.
_FORCED_AFTER, _ROUTING_SECONDS = 0.35, 2e-8
#: The greedy tree uses as many samples as can be trained in this share of the time: seconds per entry of the samples
#: and level.
_GREEDY_SHARE, _GREEDY_SECONDS = 0.6, 2e-7
#: When the time is up, the best trees of this number of levels are evaluated; hyperplanes are moved out of bands only
#: up to this number of entries of the samples.
_LEVELS_VALUED, _MAX_SETTLED = 2, 5_000_000
#: With more entries of the samples than this, one descent at a time uses all samples, whatever the number of threads:
#: its copies are large.
_MAX_SHARED = 5_000_000
#: Trees whose values differ by less than this share are the same for the finisher, which trains nodes precisely.
_SAME_VALUE = 5e-4
#: A restart pool is left after this number of starts without improvement.
_POOL_PATIENCE = 16.0
#: The effort of new soft trees, and of re-annealing a good tree: a power of ten, the range of its exponent.
_SOFT_EFFORT, _REANNEAL_EFFORT = 0.8, (-0.7, 0.0)
#: A short descent that is above the best by more than this share after its first sweep hardly ever reaches it.
_ABANDON_ABOVE = 0.02


@dataclass(frozen=True, kw_only=True)
class Effort:
    """When the search ends: the fewest and the most starts, and how many in a row may give no improvement.

    ``patience`` also grows with the number of the start that led to the best tree, times ``growth``.
    """

    least: int = 30
    most: int = 3000
    patience: int = 60
    growth: float = 1.0


#: An algorithm that improves a tree within the limits of a run control.
Finisher = Callable[[Splits, RunControl], Splits]


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A start, and what to do with it.

    Attributes
    ----------
    start : Start
        The start.
    level : int
        The level of successive halving.
    seed : int
        The seed of the descent.
    parent : tree or None
        The tree that the start was derived from, if it is one of the best.
    finish : bool
        Whether the finisher improves the tree, instead of a descent.
    greedy : bool
        Whether this is the greedy tree on more samples than those of the first level.
    pool : RestartPool or None
        The pool of the start.
    number : int
        The number of the start in its pool.
    """

    start: Start
    level: int
    seed: int
    parent: TrainedTree | None = None
    finish: bool = False
    greedy: bool = False
    pool: RestartPool | None = None
    number: int = 0


class LocalSearch:
    """The search for a good tree of one problem.

    Parameters
    ----------
    problem : Problem
        The training problem.
    control : RunControl
        The limits of the search.
    effort : Effort or None
        When the search ends.
    finisher : callable or None
        Another algorithm that improves some of the trees.
    """

    #: Whether the values that the finisher reports are objectives of the problem, and are reported to the user.
    finisher_reports = True

    def __init__(
        self, problem: Problem, control: RunControl, effort: Effort | None = None, finisher: Finisher | None = None
    ) -> None:
        self.problem, self.control, self.effort = problem, control, effort or Effort()
        self.finisher = finisher
        self.seed = control.limits.seed
        self.levels = SubsampleLevels(self.new_terms(), self.seed)
        self.best_pool = RestartPool()  # the best trees of all pools
        self.pool = self.best_pool  # the current pool
        self.statistics = StartStatistics()
        self.starts = 0
        self._fresh = fresh_strategies(problem.task)
        self._last_gain = 0
        self._began = control.elapsed
        self._trees: list[list[TrainedTree]] = [[] for _ in self.levels.sizes]
        self._promoted: list[list[TrainedTree]] = [[] for _ in self.levels.sizes]
        self._finished_values: list[float] = []
        self._cut_seconds = 0.0  # seconds of the visits to the finisher that their time limit cut off
        self._n_on_all = 0  # descents that currently use all samples
        self._forced = False  # whether a tree was promoted to all samples because of the time
        self._greedy = self.levels.top == 0  # whether the greedy tree has been started
        self._given: list[Start] = []
        self._flag = np.zeros(1)
        self._lock = threading.Lock()

    @property
    def best(self) -> list[TrainedTree]:
        """The best trees of all pools, best first."""
        return self.best_pool.trees

    def run(self, given: list[Splits]) -> None:
        """Search from the given trees and from new starts; the best trees are in :attr:`best`, best first."""
        trees = [TrainedTree(W=np.array(s.w), B=np.array(s.b), value=self.value_of(s)) for s in given]
        allowed = [tree for tree in trees if math.isfinite(tree.value)]
        for tree in [*allowed, self.constant()]:
            self._keep(tree)
        self._given = [unchanged_start(tree) for tree in allowed]
        if self.control.must_stop() is None:
            self._in_threads(self._work, max(1, self.control.limits.n_jobs))

    def answer(self) -> Splits:
        """The best tree: feasible, and never worse than the feasible ones among the given trees, or a constant tree."""
        in_time = self.control.must_stop() is None
        self.levels.release()
        self.value_on_all(self.levels.top if in_time else _LEVELS_VALUED)
        if in_time:
            self.refine_best()
        # The value function checks the results of descents; the first feasible tree is returned.
        trees = (tree.splits for tree in self.best)
        return next((tree for tree in trees if math.isfinite(self.value_of(tree))), self.constant().splits)

    def refine_best(self) -> None:
        """Train the SVMs of the best tree with a small last smoothing width."""
        terms, tree = self.final_terms().fine(), unchanged_start(self.best[0])
        self._flag[0] = 0.0
        self._in_threads(lambda: self._keep(self.descent(terms, tree, self.seed)), 1)

    def value_on_all(self, n_levels: int) -> None:
        """Evaluate on all samples the best trees of lower levels whose values are below that of the best tree.

        ``n_levels`` is the number of levels considered, from the highest one down.
        """
        candidates = [min(trees, key=lambda found: found.value) for trees in self._trees[: self.levels.top] if trees]
        for tree in reversed(candidates[-n_levels:]):
            if tree.value < self.best[0].value:
                value = self.value_of(tree.splits)
                if math.isinf(value) and self.problem.X.size <= _MAX_SETTLED:
                    self._flag[0] = 1.0  # hyperplanes are moved out of bands without training
                    self._keep(self.descend(Job(start=unchanged_start(tree), level=self.levels.top, seed=self.seed)))
                elif math.isfinite(value):
                    self._keep(replace(tree, value=value))

    def _in_threads(self, work: Callable[[], None], n_jobs: int) -> None:
        """Run ``work`` in threads and poll the limits; Ctrl-C reaches Python only where no kernel runs."""
        with ThreadPoolExecutor(n_jobs) as pool:
            workers = [pool.submit(work) for _ in range(n_jobs)]
            try:
                while wait(workers, _POLL_SECONDS).not_done:
                    if self.control.must_stop() is not None:
                        self._flag[0] = 1.0
            finally:
                self._flag[0] = 1.0  # also where a second Ctrl-C ends the waiting
        for worker in workers:
            worker.result()

    def _work(self) -> None:
        """Process jobs until there are none; the work of one thread."""
        while (job := self.next_job()) is not None:
            self.record(job, self.finish(job) if job.finish else self.descend(job))

    def descend(self, job: Job) -> TrainedTree:
        """The tree to which the job's start leads, trained on the samples of the job's level."""
        return self.descend_with(self.levels.at(job.level), job)

    def descend_with(self, terms: Terms, job: Job) -> TrainedTree:
        """The same for the training problem ``terms``; if the start is that of a subtree, only the subtree is trained
        first."""
        if job.start.subtree is not None:
            return self._descend_subtree(terms, job.start, job.start.subtree, job.seed)
        return self._descend_from(terms, job.start, job.seed, self.value_to_beat(job))

    def _descend_from(self, terms: Terms, start: Start, seed: int, best: float) -> TrainedTree:
        """Train a start, after start screening if that applies."""
        if start_screening.is_screened(terms, start):
            rng = np.random.default_rng(seed)
            single_try = replace(start, n_soft=min(start.n_soft, 1))
            trees = [
                self._train(part, single_try, int(rng.integers(2**31)))
                for part in start_screening.subsamples(terms, rng)
            ]
            start = unchanged_start(min(trees, key=lambda tree: self.objective_of(terms, tree.W, tree.B)))
        return self._train(terms, start, seed, best)

    def _train(self, terms: Terms, start: Start, seed: int, best: float = math.inf) -> TrainedTree:
        """Train a start: as soft trees, if ``n_soft`` is set, then by a descent."""
        short = False
        if start.n_soft:
            short = bool(np.any(start.W)) and (seed % 2 == 0 or not terms.limited(0))
            tree = self._train_soft(terms, start, seed)
            start = replace(start, W=tree.W, B=tree.B)
        return self.descent(terms, start, seed, best, short)

    def descent(
        self, terms: Terms, start: Start, seed: int, best: float = math.inf, short: bool = False
    ) -> TrainedTree:
        """The tree to which a descent leads, after initialising some nodes; abandoned if it is far from ``best``.

        A ``short`` descent uses one SVM direction per upper node at first, and is abandoned after one sweep if it is
        not near ``best``.
        """
        descent = Descent(terms, start.W, start.B, seed, self._flag)
        descent.directions_failed[:] = short
        found = descent.run(start.strategies, best=best, abandon_above=_ABANDON_ABOVE if short else math.inf)
        self._count_if_trained(terms, descent.swept)
        return found

    def _count_if_trained(self, terms: Terms, trained: bool) -> None:
        """Count a tree (not a subtree) all of whose nodes were trained within the limits."""
        if trained and terms.n_nodes == self.levels.terms.n_nodes:
            self.control.count_trained_tree()

    def objective_of(self, terms: Terms, W: FloatArray, B: FloatArray) -> float:
        """The objective of a tree after its hyperplanes have been moved out of bands, without training."""
        return Descent(terms, W, B, 0, self._flag).cost()

    def _descend_subtree(self, terms: Terms, start: Start, part_start: Start, seed: int) -> TrainedTree:
        """Train one subtree, and then the whole tree if the subtree has improved.

        If it has not, the result has the same arrays as the start.
        """
        nodes, rows = topology.subtree(start.top, terms.depth), rows_at(terms, start.W, start.B, start.top)
        if len(rows):
            part = terms.subtree(nodes, rows)
            before = self.objective_of(part, start.W[nodes], start.B[nodes])
            found = self._descend_from(part, part_start, seed, before)
            if found.value < before * (1.0 - MIN_GAIN):
                W, B = start.W.copy(), start.B.copy()
                W[nodes], B[nodes] = found.W, found.B
                return self._train(terms, replace(start, W=W, B=B), seed)
        return TrainedTree(W=start.W, B=start.B, value=self.objective_of(terms, start.W, start.B))

    def _train_soft(self, terms: Terms, start: Start, seed: int) -> TrainedTree:
        """Re-anneal a tree, or train new soft trees and re-anneal the best of them several times.

        This takes little time compared with a descent.
        """
        rng = np.random.default_rng(seed)

        def trained(tree: Start | TrainedTree, schedule: Schedule, effort: float) -> TrainedTree:
            W, B = SoftTree(terms, tree.W, tree.B, rng, schedule, effort).anneal(self._flag)
            self._count_if_trained(terms, not self._flag[0])
            return TrainedTree(W=W, B=B, value=self.objective_of(terms, W, B))

        if np.any(start.W):
            return trained(start, Schedule.for_reannealing(rng), 10.0 ** rng.uniform(*_REANNEAL_EFFORT))
        whole, trees = terms.n_nodes == self.levels.terms.n_nodes, []
        for _ in range(start.n_soft):
            schedule = self.statistics.next_schedule(rng) if whole else Schedule.at_random(rng)
            trees.append(trained(start, schedule, _SOFT_EFFORT))
            if whole:
                self.statistics.schedules.append((trees[-1].value, schedule))
        best = min(trees, key=lambda tree: tree.value)
        for _ in range(n_reannealings(terms)):
            if not self._flag[0] and np.any(best.W):
                best = min(
                    best, trained(best, Schedule.for_reannealing(rng), _SOFT_EFFORT), key=lambda tree: tree.value
                )
        return best

    def value_to_beat(self, job: Job) -> float:
        """The best value in the pool of the job, or, on a subset of the samples, the best value at its level."""
        if job.level == self.levels.top and job.pool is not None:
            return job.pool.best_value
        return min((found.value for found in self._trees[job.level]), default=math.inf)

    def finish(self, job: Job) -> TrainedTree:
        """The tree after a visit to the finisher."""
        assert self.finisher is not None
        start = job.start
        began = self.control.elapsed
        # With a limit on nodes results are reproducible: no time limit cuts off a visit.
        most = math.inf if self.control.by_nodes else max(_FINISH_MIN_SECONDS, _FINISH_PAST * (began - self._began))
        part = self.control.part(min(_FINISH_SHARE * self.control.remaining, most))
        seed = self.seed + len(self._finished_values)  # a second visit uses another seed
        part.limits = replace(part.limits, seed=seed)
        if not self.finisher_reports:
            part.listener = None
        splits = self.finisher(Splits(w=start.W, b=start.B), part)
        if part.must_stop() is not None:
            with self._lock:
                self._cut_seconds += self.control.elapsed - began
        return TrainedTree(W=np.array(splits.w), B=np.array(splits.b), value=self.value_of(splits))

    def next_job(self) -> Job | None:
        """The next job of a thread; None when the search ends."""
        with self._lock:
            job = None if self._flag[0] else self._follow_up_job() or self.new_job()
            self._n_on_all += job is not None and job.level == self.levels.top
            return job

    def _follow_up_job(self) -> Job | None:
        """A job that continues with one of the trees found so far, if one is due."""
        return self._finish_job() or self._greedy_job() or self._promotion_job()

    def new_job(self) -> Job | None:
        """A new start; None when there have been enough."""
        if self.is_enough():
            return None
        self._change_pool()
        number = self.starts
        self.starts += 1
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        if number > 0 and self._given:  # the first start is a new one, often much better
            return Job(start=self._given.pop(0), level=0, seed=seed)
        pool, number_in_pool = self.pool, self.pool.starts
        pool.starts += 1
        start, tree = self._new_start(number_in_pool, np.random.default_rng(seed))
        return Job(start=start, level=0, seed=seed, parent=tree, pool=pool, number=number_in_pool)

    def _change_pool(self) -> None:
        """Leave a pool without improvement for long: the best pool for a new one, any other for the best pool."""
        if self.pool.idle_starts < _POOL_PATIENCE or self.levels.top > 0 or self.problem.depth == 1:
            return
        self.pool.idle_starts = 0.0
        self.pool = RestartPool() if self.pool is self.best_pool else self.best_pool

    def _new_start(self, number: int, rng: np.random.Generator) -> tuple[Start, TrainedTree | None]:
        """A start, and the tree of the pool that it was derived from, if any."""
        depth, n_features = self.problem.depth, self.problem.n_features
        origin = self.statistics.next_origin(number, depth, rng)
        if origin is not Origin.NEW:
            # A tree without splits has no variations.
            grown = [tree for tree in self.pool.trees if np.any(tree.W)]
            if grown:
                tree = grown[min(int(rng.exponential(1.0)), len(grown) - 1)]
                return self._variation(tree, origin, rng), tree
        if depth > 1 and self.statistics.next_is_soft(rng):
            return soft_start(depth, n_features), None
        return new_start(first_strategies(self.statistics.next_number(), depth, rng, self._fresh), n_features), None

    def _variation(self, tree: TrainedTree, origin: Origin, rng: np.random.Generator) -> Start:
        """A start derived from a tree."""
        if origin is Origin.SUBTREE:
            return subtree_start(tree, self.problem.depth, rng, self._fresh)
        return (
            reannealed_start(tree)
            if origin is Origin.REANNEALED
            else perturbed(tree, self.problem.depth, rng, self._fresh)
        )

    def is_enough(self) -> bool:
        """Whether the number of starts, or of those in a row without improvement, has reached its limit."""
        effort, idle = self.effort, self.starts - self._last_gain
        if self.starts >= effort.most:
            return True
        return self.starts >= effort.least and idle >= effort.patience + effort.growth * self._last_gain

    def _finish_job(self) -> Job | None:
        """A visit to the finisher, if one is due.

        The tree is alternately the best one, which the finisher may have improved before, and the best one that it has
        not received yet.
        """
        pool = self.pool
        one_in = _FINISH_ONE_IN << min(pool.failed_visits // _FAILED_VISITS, _MAX_DOUBLINGS)
        if self.finisher is None or len(pool.results) < pool.results_at_visit + one_in:
            return None
        share = _CUT_SHARE_IDLE if self.starts - self._last_gain > _IDLE_STARTS else _CUT_SHARE
        if self._cut_seconds > share * (self.control.elapsed - self._began) * max(1, self.control.limits.n_jobs):
            return None
        best_again = len(self._finished_values) // 2 % 2 == 1
        waiting = (
            []
            if best_again
            else [tree for tree in pool.results if not is_near(tree.value, self._finished_values, _SAME_VALUE)]
        )
        tree = min(waiting or pool.trees, key=lambda found: found.value)
        self._finished_values.append(tree.value)
        pool.results_at_visit = len(pool.results)
        return Job(
            start=unchanged_start(tree), level=self.levels.top, seed=self.seed, parent=tree, finish=True, pool=pool
        )

    def _greedy_job(self) -> Job | None:
        """The greedy tree of all samples, or of as many as there is time for, so that the result is not worse.

        At the first level it is one of the first starts in any case.
        """
        if self._greedy:
            return None
        self._greedy = True
        most = _GREEDY_SHARE * self.control.remaining / (_GREEDY_SECONDS * self.problem.n_features * self.problem.depth)
        level = max((k for k, size in enumerate(self.levels.sizes) if size <= most), default=0)
        if level == 0:
            return None
        return Job(
            start=greedy_start(self.problem.depth, self.problem.n_features), level=level, seed=self.seed, greedy=True
        )

    def _promotion_job(self) -> Job | None:
        """The promotion of a tree to the next level, if one is due."""
        top = self.levels.top
        if self.control.remaining < _ROUTING_SECONDS * self.problem.X.size * self.problem.depth:
            top -= 1
        if top <= 0:
            return None
        share_used = self.control.elapsed / self.control.limits.time
        is_late = not self._trees[top] and share_used > (
            _FORCED_AFTER if len(self._trees[0]) >= _PROMOTE_ONE_IN else 2 * _FORCED_AFTER
        )
        for level in reversed(range(top)):
            trees, promoted = self._trees[level], self._promoted[level]
            waiting = [tree for tree in trees if all(tree is not other for other in promoted)]
            if not waiting:
                continue
            tree = min(waiting, key=lambda found: found.value)
            least = min(found.value for found in trees)
            target = top if is_late else level + 1
            is_top = is_late or target == self.levels.top
            if target == self.levels.top and self._n_on_all > 0 and self.problem.X.size > _MAX_SHARED:
                continue
            due = len(promoted) < len(trees) // _PROMOTE_ONE_IN and (
                not is_top or tree.value <= _PROMOTE_TOLERANCE * least
            )
            if due or (is_late and not self._forced):
                self._forced |= is_late
                promoted.append(tree)
                return Job(start=unchanged_start(tree), level=target, seed=self.seed + len(trees))
        return None

    def record(self, job: Job, found: TrainedTree) -> None:
        """Record the result of a job."""
        with self._lock:
            pool, top = job.pool or self.best_pool, job.level == self.levels.top
            self._n_on_all -= top
            if job.finish:
                self._finished_values.append(found.value)
                pool.failed_visits = 0 if pool.improves(found.value) else pool.failed_visits + 1
            elif not (job.greedy and top):  # a promoted tree is still to come there
                if job.level == 0:
                    self.statistics.update(job.start, found.value, self.value_to_beat(job), job.number)
                    pool.idle_starts += idle_cost(job.start, job.number)
                self._trees[job.level].append(found)
                if top:
                    pool.results.append(found)
            if top:
                if pool is not self.best_pool:
                    pool.keep(found, job.parent)
                self._keep(found, job.parent)

    def _keep(self, found: TrainedTree, parent: TrainedTree | None = None) -> None:
        """Add a tree to the best pool and report an improvement."""
        before = self.best_pool.best_value
        if self.best_pool.improves(found.value):
            self._last_gain = self.starts
        self.best_pool.keep(found, parent)
        if found.value < before:
            self.control.report("alternating", incumbent=found.value, nodes=self.starts)

    def value_of(self, splits: Splits) -> float:
        """The objective of a tree on all samples; infinite if it is not feasible."""
        found = self.problem.evaluate(splits)
        return found.objective if found.feasible else math.inf

    def new_terms(self) -> Terms:
        """The training problem of the descents."""
        return Terms.of(self.problem)

    def final_terms(self) -> Terms:
        """The training problem of the final tree."""
        return self.levels.terms

    def constant(self) -> TrainedTree:
        """A tree without splits, feasible in every problem."""
        tree = trivial_tree(self.problem)
        return TrainedTree(W=np.array(tree.w), B=np.array(tree.b), value=self.value_of(tree))


def run_local_search(
    problem: Problem,
    given: list[Splits],
    control: RunControl,
    effort: Effort | None = None,
    finisher: Finisher | None = None,
    kind: type[LocalSearch] = LocalSearch,
) -> Splits:
    """The best tree that the local search finds.

    Parameters
    ----------
    problem : Problem
        The training problem.
    given : list of Splits
        Trees to start from.
    control : RunControl
        The limits of the search.
    effort : Effort or None
        When the search ends.
    finisher : callable or None
        Another algorithm that improves some of the trees.
    kind : type
        The class of the search.

    Returns
    -------
    Splits
        A feasible tree, never worse than the feasible ones among the given trees, or a tree without splits.
    """
    search = kind(problem, control, effort, finisher)
    search.run(given)
    return search.answer()
