"""Many descents: raced on parts of the samples, spread over threads, until starts stop paying off or time is up."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np

from margotree.engines.local_search import start_screening
from margotree.engines.local_search.annealing import Manner, SoftTree, again_times
from margotree.engines.local_search.descent import Alternation, Descent, Draws
from margotree.engines.local_search.restart_pool import PAYS, Island, near
from margotree.engines.local_search.starts import (
    Record,
    Start,
    Way,
    disturbed,
    first_kinds,
    fresh,
    greedy,
    idleness,
    kept,
    soft,
    soft_again,
)
from margotree.engines.local_search.subsampling import Ladder
from margotree.engines.local_search.subtrees import rows_at, subtree_start
from margotree.engines.local_search.training_data import Found, Terms
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import constant_offsets
from margotree.problem import Problem, Splits, topology
from margotree.problem.problem import FloatArray

#: Seconds between looks at the clock.
_TICK = 0.02
#: One of so many trees of a rung goes on to the next; on to all samples only one that is nearly the best there.
_ONE_IN, _NEARLY = 4, 1.0005
#: Where a finisher is at hand, one of so many trees on all samples goes to it: for this share of the time left, but for
#: no more than this share of the time past, or so many seconds.  Early on a descent often brings far more.
_FINISH_ONE_IN, _FINISH_SHARE, _FINISH_PAST, _FINISH_LEAST = 3, 0.25, 0.5, 0.5
#: After so many visits in a row that brought nothing it is one of twice as many, up to so many times twice.
_IN_VAIN, _SELDOM = 3, 4
#: The share of all time for visits that the clock ends, and the same once so many starts in a row have brought nothing.
_FINISHING, _FINISHING_IDLE, _IDLE = 0.1, 0.6, 20
#: If no tree has been trained on all samples after this share of the time, the best so far is (after twice the share
#: where there are few).  Not once there is no time to send them all down: seconds per number and level.
_LATEST, _SENDING = 0.35, 2e-8
#: The greedy tree is made of as many samples as this share of the time is enough for: seconds per number and level.
_GREEDY_SHARE, _GREEDY = 0.6, 2e-7
#: When time is up, the best trees of so many rungs are looked at; bands are emptied among so many numbers at most.
_CARRIED, _SETTLED = 2, 5_000_000
#: With more numbers than this, one descent at a time works on all samples, whatever the threads: its copies are large.
_ALONE = 5_000_000
#: To the finisher, which trains nodes to many digits, trees that differ by less than this share are the same.
_ALIKE = 5e-4
#: An island is left once so many starts have brought nothing.
_IDLE_ISLAND = 16.0
#: How long soft trees are trained, and a good tree that is made soft again: a power of ten, drawn from here.
_EFFORT, _LITTLE = 0.8, (-0.7, 0.0)
#: Further above the best than by this share after its first sweep, a descent in brief hardly ever reaches it.
_HOPELESS = 0.02


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to go on: starts at least and at most, and how many in a row may bring nothing.

    The last also grows with the number of the start that brought the best tree.
    """

    least: int = 30
    most: int = 3000
    patience: int = 60


#: Something that improves a tree in its own way within a run control.
Finisher = Callable[[Splits, RunControl], Splits]


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A start and what to do with it; the tree that it comes ``of``, if that is one of the best; for which island it is
    made, and the number of the start there."""

    start: Start
    level: int
    seed: int
    of: Found | None = None
    finish: bool = False
    greedy: bool = False
    island: Island | None = None
    number: int = 0


class LocalSearch:
    """The descents of one problem."""

    #: What a start goes through.
    alternation: type[Alternation] = Descent
    soft_tree: type[SoftTree] = SoftTree
    #: How starts from nothing and from a good tree are drawn.
    first_kinds: Callable[..., Draws] = staticmethod(first_kinds)
    disturbed: Callable[..., Start] = staticmethod(disturbed)
    #: Whether values that the finisher reports are those of the problem.
    finisher_reports = True

    def __init__(
        self, problem: Problem, control: RunControl, effort: Effort | None = None, finisher: Finisher | None = None
    ) -> None:
        self.problem, self.control, self.effort = problem, control, effort or Effort()
        self.finisher = finisher
        self.seed = control.limits.seed
        self.ladder = Ladder(self._terms(), self.seed)
        self.joint = Island()  # the best trees of all
        self.island = self.joint  # where work goes on
        self.record = Record()
        self.starts = 0
        self._last_gain = 0
        self._began = control.elapsed
        self._rungs: list[list[Found]] = [[] for _ in self.ladder.sizes]
        self._sent_on: list[list[Found]] = [[] for _ in self.ladder.sizes]
        self._finished: list[float] = []
        self._finishing = 0.0  # seconds of the visits to the finisher that the clock has ended
        self._on_all = 0  # descents that work on all samples at the moment
        self._hurried = False  # whether a tree has gone to all samples out of turn
        self._greedy = self.ladder.top == 0  # whether the greedy tree of more samples than the first rung's is made
        self._given: list[Start] = []
        self._flag = np.zeros(1)
        self._lock = threading.Lock()

    @property
    def best(self) -> list[Found]:
        """The best trees of all, best first."""
        return self.joint.trees

    def run(self, given: list[Splits]) -> None:
        """Search from the given trees and from anywhere; the best trees are in :attr:`best`, best first."""
        trees = [Found(W=np.array(s.w), B=np.array(s.b), value=self._value(s)) for s in given]
        allowed = [tree for tree in trees if math.isfinite(tree.value)]
        for tree in [*allowed, self._constant()]:
            self._keep(tree)
        self._given = [kept(tree) for tree in allowed]
        if self.control.must_stop() is None:
            self._in_threads(self._work, max(1, self.control.limits.n_jobs))

    def answer(self) -> Splits:
        """What the run has come to: feasible, and never worse than the given trees that are, or a constant one."""
        in_time = self.control.must_stop() is None
        self.carry_up(self.ladder.top if in_time else _CARRIED)
        if in_time:
            self.sharpen()
        # What a descent says about its tree is checked by the plain value function; the first that passes is taken.
        trees = (tree.splits for tree in self.best)
        return next((tree for tree in trees if math.isfinite(self._value(tree))), self._constant().splits)

    def sharpen(self) -> None:
        """Train the best tree's SVMs to many digits."""
        terms, tree = self._last_terms().fine(), kept(self.best[0])
        self._flag[0] = 0.0
        self._in_threads(lambda: self._keep(self.descent(terms, tree, self.seed)), 1)

    def carry_up(self, most: int) -> None:
        """Value on all samples what was trained on some of them and promises more than the best tree: the best of as
        many rungs."""
        waiting = [min(rung, key=lambda found: found.value) for rung in self._rungs[: self.ladder.top] if rung]
        for tree in reversed(waiting[-most:]):
            if tree.value < self.best[0].value:
                value = self._value(tree.splits)
                if math.isinf(value) and self.problem.X.size <= _SETTLED:
                    self._flag[0] = 1.0  # samples are moved out of bands, and nothing is trained
                    self._keep(self._descend(Job(start=kept(tree), level=self.ladder.top, seed=self.seed)))
                elif math.isfinite(value):
                    self._keep(replace(tree, value=value))

    def _in_threads(self, work: Callable[[], None], n_jobs: int) -> None:
        """Run the work while looking at the clock; a Ctrl-C reaches Python only where no kernel runs."""
        with ThreadPoolExecutor(n_jobs) as pool:
            workers = [pool.submit(work) for _ in range(n_jobs)]
            try:
                while wait(workers, _TICK).not_done:
                    if self.control.must_stop() is not None:
                        self._flag[0] = 1.0
            finally:
                self._flag[0] = 1.0  # also where a second Ctrl-C ends the waiting
        for worker in workers:
            worker.result()

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            self._take(job, self._finish(job) if job.finish else self._descend(job))

    def _descend(self, job: Job) -> Found:
        return self._descend_with(self.ladder.rung(job.level), job)

    def _descend_with(self, terms: Terms, job: Job) -> Found:
        if job.start.below is not None:
            return self._descend_below(terms, job.start, job.start.below, job.seed)
        return self._descend_from(terms, job.start, job.seed, self._best_of(job))

    def _descend_from(self, terms: Terms, start: Start, seed: int, best: float) -> Found:
        if start_screening.is_tried(terms, start):
            rng = np.random.default_rng(seed)
            one = replace(start, soft=min(start.soft, 1))
            tries = [self._train(part, one, int(rng.integers(2**31))) for part in start_screening.parts(terms, rng)]
            start = kept(min(tries, key=lambda tree: self.settled(terms, tree.W, tree.B)))
        return self._train(terms, start, seed, best)

    def _train(self, terms: Terms, start: Start, seed: int, best: float = math.inf) -> Found:
        brief = False
        if start.soft:
            brief = bool(np.any(start.W)) and (seed % 2 == 0 or not terms.limited(0))
            tree = self._softly(terms, start, seed)
            start = replace(start, W=tree.W, B=tree.B)
        return self.descent(terms, start, seed, best, brief)

    def descent(self, terms: Terms, start: Start, seed: int, best: float = math.inf, brief: bool = False) -> Found:
        """The tree that alternation reaches from here, after drawing some nodes anew; given up if far from ``best``.

        In ``brief`` upper nodes hear few SVM directions, and a first sweep has to come near ``best``.
        """
        descent = self.alternation(terms, start.W, start.B, seed, self._flag)
        descent.spent[:] = brief
        found = descent.run(start.kinds, best=best, hopeless=_HOPELESS if brief else math.inf)
        self._note_trained(terms, descent.swept)
        return found

    def _note_trained(self, terms: Terms, trained: bool) -> None:
        """Count a tree (not a subtree) all of whose nodes were trained before the clock of the run control ran out."""
        if trained and terms.n_nodes == self.ladder.terms.n_nodes:
            self.control.count_trained_tree()

    def settled(self, terms: Terms, W: FloatArray, B: FloatArray) -> float:
        """What the tree costs once its bands are empty, with nothing trained."""
        return self.alternation(terms, W, B, 0, self._flag).cost()

    def _descend_below(self, terms: Terms, start: Start, below: Start, seed: int) -> Found:
        """A descent of one subtree by itself, and of the whole tree if that subtree has become better.

        If it has not, the tree is that of the start, in the same arrays.
        """
        nodes, rows = topology.subtree(start.top, terms.depth), rows_at(terms, start.W, start.B, start.top)
        if len(rows):
            part = terms.below(nodes, rows)
            before = self.settled(part, start.W[nodes], start.B[nodes])
            found = self._descend_from(part, below, seed, before)
            if found.value < before * (1.0 - PAYS):
                W, B = start.W.copy(), start.B.copy()
                W[nodes], B[nodes] = found.W, found.B
                return self._train(terms, replace(start, W=W, B=B), seed)
        return Found(W=start.W, B=start.B, value=self.settled(terms, start.W, start.B))

    def _softly(self, terms: Terms, start: Start, seed: int) -> Found:
        """A tree at hand made soft again for a while; from nothing the best of some soft trees, which is then made soft
        again and again: next to a descent that takes little."""
        rng = np.random.default_rng(seed)

        def trained(tree: Start | Found, manner: Manner, effort: float) -> Found:
            W, B = self.soft_tree(terms, tree.W, tree.B, rng, manner, effort).anneal(self._flag)
            self._note_trained(terms, not self._flag[0])
            return Found(W=W, B=B, value=self.settled(terms, W, B))

        if np.any(start.W):
            return trained(start, Manner.finely(rng), 10.0 ** rng.uniform(*_LITTLE))
        whole, trees = terms.n_nodes == self.ladder.terms.n_nodes, []
        for _ in range(start.soft):
            manner = self.record.next_manner(rng) if whole else Manner.by_chance(rng)
            trees.append(trained(start, manner, _EFFORT))
            if whole:
                self.record.manners.append((trees[-1].value, manner))
        best = min(trees, key=lambda tree: tree.value)
        for _ in range(again_times(terms)):
            if not self._flag[0] and np.any(best.W):
                best = min(best, trained(best, Manner.finely(rng), _EFFORT), key=lambda tree: tree.value)
        return best

    def _best_of(self, job: Job) -> float:
        """What a start has to better: the best of its island, or, on a part of the samples, of that part."""
        if job.level == self.ladder.top and job.island is not None:
            return job.island.least
        return min((found.value for found in self._rungs[job.level]), default=math.inf)

    def _finish(self, job: Job) -> Found:
        assert self.finisher is not None
        start = job.start
        began = self.control.elapsed
        # Where work is to repeat, no clock ends a visit before all of the work is to end.
        most = math.inf if self.control.by_nodes else max(_FINISH_LEAST, _FINISH_PAST * (began - self._began))
        part = self.control.part(min(_FINISH_SHARE * self.control.remaining, most))
        part.limits = replace(part.limits, seed=self.seed + len(self._finished))  # a second visit tries other things
        if not self.finisher_reports:
            part.listener = None
        splits = self.finisher(Splits(w=start.W, b=start.B), part)
        if part.must_stop() is not None:
            with self._lock:
                self._finishing += self.control.elapsed - began
        return Found(W=np.array(splits.w), B=np.array(splits.b), value=self._value(splits))

    def _next_job(self) -> Job | None:
        """What a thread is to do next; None when it is time to end."""
        with self._lock:
            job = None if self._flag[0] else self._promising_job() or self._new_job()
            self._on_all += job is not None and job.level == self.ladder.top
            return job

    def _promising_job(self) -> Job | None:
        """What there is to do with the trees at hand."""
        return self._to_finish() or self._greedily() or self._promotion()

    def _new_job(self) -> Job | None:
        """A new start; None when there have been enough."""
        if self._is_enough():
            return None
        self._change_island()
        number = self.starts
        self.starts += 1
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        if number > 0 and self._given:  # the first start is from nothing, and often far better
            return Job(start=self._given.pop(0), level=0, seed=seed)
        island, made = self.island, self.island.made
        island.made += 1
        start, tree = self._new_start(made, np.random.default_rng(seed))
        return Job(start=start, level=0, seed=seed, of=tree, island=island, number=made)

    def _change_island(self) -> None:
        """Leave an island that has brought nothing for long: for a new one, and from there for the best of all."""
        if self.island.idle < _IDLE_ISLAND or self.ladder.top > 0 or self.problem.depth == 1:
            return
        self.island.idle = 0.0
        self.island = Island() if self.island is self.joint else self.joint

    def _greedy_start(self) -> Start:
        return greedy(self.problem.depth, self.problem.n_features)

    def _new_start(self, number: int, rng: np.random.Generator) -> tuple[Start, Found | None]:
        """A start, and which of the best trees it is near, if any."""
        depth, n_features = self.problem.depth, self.problem.n_features
        way = self.record.next_way(number, depth, rng)
        if way is not Way.FROM_NOTHING:
            # One without splits is nothing to start from.
            grown = [tree for tree in self.island.trees if np.any(tree.W)]
            if grown:
                tree = grown[min(int(rng.exponential(1.0)), len(grown) - 1)]
                return self._start_near(tree, way, rng), tree
        if depth > 1 and self.record.asks_soft(rng):
            return soft(depth, n_features), None
        return fresh(self.first_kinds(self.record.next_other(), depth, rng), n_features), None

    def _start_near(self, tree: Found, way: Way, rng: np.random.Generator) -> Start:
        if way is Way.SUBTREE:
            return subtree_start(tree, self.problem.depth, self.disturbed, rng)
        return soft_again(tree) if way is Way.SOFT_AGAIN else self.disturbed(tree, self.problem.depth, rng)

    def _is_enough(self) -> bool:
        effort, idle = self.effort, self.starts - self._last_gain
        if self.starts >= effort.most:
            return True
        return self.starts >= effort.least and idle >= effort.patience + self._last_gain

    def _to_finish(self) -> Job | None:
        """When it is time for a tree to go to the finisher: in turn the best, which it may have been at, and the best
        that has not been there."""
        island = self.island
        one_in = _FINISH_ONE_IN << min(island.in_vain // _IN_VAIN, _SELDOM)
        if self.finisher is None or len(island.seen) < island.finished_at + one_in:
            return None
        share = _FINISHING_IDLE if self.starts - self._last_gain > _IDLE else _FINISHING
        if self._finishing > share * (self.control.elapsed - self._began) * max(1, self.control.limits.n_jobs):
            return None
        again = len(self._finished) // 2 % 2 == 1
        waiting = [] if again else [tree for tree in island.seen if not near(tree.value, self._finished, _ALIKE)]
        tree = min(waiting or island.trees, key=lambda found: found.value)
        self._finished.append(tree.value)
        island.finished_at = len(island.seen)
        return Job(start=kept(tree), level=self.ladder.top, seed=self.seed, of=tree, finish=True, island=island)

    def _greedily(self) -> Job | None:
        """The greedy tree of all samples, or of as many as there is time for: no answer should be worse than that.

        On the first rung it is one of the first starts anyway.
        """
        if self._greedy:
            return None
        self._greedy = True
        most = _GREEDY_SHARE * self.control.remaining / (_GREEDY * self.problem.n_features * self.problem.depth)
        level = max((k for k, size in enumerate(self.ladder.sizes) if size <= most), default=0)
        if level == 0:
            return None
        return Job(start=self._greedy_start(), level=level, seed=self.seed, greedy=True)

    def _promotion(self) -> Job | None:
        top = self.ladder.top
        if self.control.remaining < _SENDING * self.problem.X.size * self.problem.depth:
            top -= 1
        if top <= 0:
            return None
        past = self.control.elapsed / self.control.limits.time
        late = not self._rungs[top] and past > (_LATEST if len(self._rungs[0]) >= _ONE_IN else 2 * _LATEST)
        for level in reversed(range(top)):
            here, gone = self._rungs[level], self._sent_on[level]
            waiting = [tree for tree in here if all(tree is not other for other in gone)]
            if not waiting:
                continue
            tree = min(waiting, key=lambda found: found.value)
            least = min(found.value for found in here)
            to = top if late else level + 1
            to_top = late or to == self.ladder.top
            if to == self.ladder.top and self._on_all > 0 and self.problem.X.size > _ALONE:
                continue
            due = len(gone) < len(here) // _ONE_IN and (not to_top or tree.value <= _NEARLY * least)
            if due or (late and not self._hurried):
                self._hurried |= late
                gone.append(tree)
                return Job(start=kept(tree), level=to, seed=self.seed + len(here))
        return None

    def _take(self, job: Job, found: Found) -> None:
        with self._lock:
            island, top = job.island or self.joint, job.level == self.ladder.top
            self._on_all -= top
            if job.finish:
                self._finished.append(found.value)
                island.in_vain = 0 if island.pays(found.value) else island.in_vain + 1
            elif not (job.greedy and top):  # there a tree that has won the race is to come yet
                if job.level == 0:
                    self.record.note(job.start, found.value, self._best_of(job), job.number)
                    island.idle += idleness(job.start, job.number)
                self._rungs[job.level].append(found)
                if top:
                    island.seen.append(found)
            if top:
                if island is not self.joint:
                    island.keep(found, job.of)
                self._keep(found, job.of)

    def _keep(self, found: Found, of: Found | None = None) -> None:
        """Take in a tree among the best of all."""
        before = self.joint.least
        if self.joint.pays(found.value):
            self._last_gain = self.starts
        self.joint.keep(found, of)
        if found.value < before:
            self.control.report("alternating", incumbent=found.value, nodes=self.starts)

    def _value(self, splits: Splits) -> float:
        found = self.problem.evaluate(splits)
        return found.objective if found.feasible else math.inf

    def _terms(self) -> Terms:
        return Terms.of(self.problem)

    def _last_terms(self) -> Terms:
        """What the best tree is trained with in the end."""
        return self.ladder.terms

    def _constant(self) -> Found:
        """A tree that is allowed in every problem."""
        return majority(self.ladder.terms)


def run_local_search(
    problem: Problem,
    given: list[Splits],
    control: RunControl,
    effort: Effort | None = None,
    finisher: Finisher | None = None,
    kind: type[LocalSearch] = LocalSearch,
) -> Splits:
    """The best tree that alternation finds; feasible, and never worse than those given that are, or the majority."""
    search = kind(problem, control, effort, finisher)
    search.run(given)
    return search.answer()


def majority(terms: Terms) -> Found:
    """All samples go to the side of the heavier class and get its label: allowed in every problem."""
    plus, minus = (float(np.sum(terms.weight[terms.y == sign])) for sign in (1.0, -1.0))
    B = constant_offsets(terms.depth, terms.eps, plus >= minus)
    way = [topology.last(k + 1)[-1 if plus >= minus else 0] for k in range(terms.depth)]
    value = min(plus, minus) * float(np.sum(terms.C[way] * (1.0 + np.abs(B[way]))))
    return Found(W=np.zeros((terms.n_nodes, terms.X.shape[1])), B=B, value=value)
