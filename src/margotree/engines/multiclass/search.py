"""Many descents for several classes: starts, the race on parts of the samples, and the engine around them."""

from __future__ import annotations

from typing import Any

import numpy as np

from margotree.engines import compiled_parts
from margotree.engines.base import Answer, Engine
from margotree.engines.local_search.search import Effort, LocalSearch
from margotree.engines.local_search.starts import Start, new_start
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.multiclass.anneal import ClassSoftTree
from margotree.engines.multiclass.descend import ClassDescent, Strategies
from margotree.engines.multiclass.draw import FRESH, Strategy
from margotree.engines.numba_backend import Part
from margotree.engines.polish import without_noise
from margotree.engines.presolve import MODERATE, merge_duplicates
from margotree.engines.run_control import RunControl
from margotree.engines.tiny_problems import tiny_multiclass
from margotree.engines.trivial_trees import constant_offsets
from margotree.problem import Problem, Splits, TrainingProblem, topology
from margotree.solution import Stopped

#: Descents for several classes cost more each: fewer of them may bring nothing.
_EFFORT = Effort(least=20, most=1000, patience=30)


def _first_strategies(number: int, depth: int, rng: np.random.Generator) -> Strategies:
    """First CART and the greedy tree; then one way for all nodes, or another for each."""
    nodes = topology.n_nodes(depth)
    if number < 4:
        return np.full(nodes, (Strategy.GREEDY, Strategy.CART, Strategy.BETWEEN, Strategy.MEANS)[number])
    if rng.random() < 0.5:
        return np.full(nodes, rng.choice([Strategy.BETWEEN, Strategy.MEANS, Strategy.FEATURE]))
    return rng.choice(FRESH, nodes)


def _perturbed(tree: TrainedTree, depth: int, rng: np.random.Generator) -> Start:
    """One subtree redrawn or its top alone, or all upper nodes shaken."""
    strategies = np.full(len(tree.B), Strategy.KEEP)
    upper = topology.upper(depth)
    t = int(rng.integers(len(upper)))
    move = rng.random()
    if move < 0.4:
        below = topology.subtree(t, depth)
        strategies[below] = rng.choice(FRESH, len(below))
    elif move < 0.8:
        strategies[t] = rng.choice([*FRESH, Strategy.PERTURBED, Strategy.PERTURBED])
        strategies[[s for s in topology.subtree(t, depth) if s not in upper]] = Strategy.BETWEEN
    else:
        strategies[: len(upper)] = Strategy.PERTURBED
    return Start(W=tree.W.copy(), B=tree.B.copy(), strategies=strategies)


class ClassSearch(LocalSearch):
    """The descents of one problem of several classes."""

    descent_type = ClassDescent
    soft_tree = ClassSoftTree
    first_strategies = staticmethod(_first_strategies)
    perturbed = staticmethod(_perturbed)

    def __init__(self, problem: Problem, control: RunControl, effort: Effort | None = None) -> None:
        self.classes = problem
        stand_in: Any = problem  # it has all that the search asks of a problem of two classes
        super().__init__(stand_in, control, effort or _EFFORT)

    def new_terms(self) -> Terms:
        return Terms.of(self.classes)

    def constant(self) -> TrainedTree:
        tree = constant_tree(self.classes)
        return TrainedTree(W=tree.w, B=tree.b, value=self.value_of(tree))

    def is_enough(self) -> bool:
        return self.starts >= self.control.limits.nodes or super().is_enough()

    def new_greedy_start(self) -> Start:
        return new_start(_first_strategies(0, self.classes.depth, np.random.default_rng(0)), self.classes.n_features)


def constant_tree(problem: Problem) -> Splits:
    """All samples go one way and get the label of the heaviest class: allowed in every problem."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    trees = [Splits(w=w, b=constant_offsets(problem.depth, problem.eps, right)) for right in (True, False)]
    return min(trees, key=lambda tree: problem.evaluate(tree).objective)


def run_local_search(
    problem: Problem, given: list[Splits], control: RunControl, effort: Effort | None = None
) -> Splits:
    """The best tree that alternation finds; allowed, and never worse than those given that are, or the constant."""
    search = ClassSearch(problem, control, effort)
    search.run(given)
    return search.answer()


class Alternating(Engine[Problem]):
    """Good trees for any number of classes, and nothing proved about them.

    Descents from many starts; it ends when starts stop paying off or time is up.
    """

    name = "alternating"
    models = frozenset({"margot", "hfs", "sfs"})
    proves = False
    notes_trees = True

    def __init__(self, effort: Effort | None = None) -> None:
        self.effort = effort

    def makes_start(self, problem: Problem) -> bool:
        return True

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return kernels_for(problem)

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        problem, _ = merge_duplicates(problem, MODERATE)
        best = run_local_search(problem, [] if start is None else [start], control, self.effort)
        stopped = control.must_stop() or Stopped.HEURISTIC
        return Answer(splits=without_noise(problem, best), stopped=stopped)


def kernels_for(problem: TrainingProblem) -> tuple[Part, ...]:
    """The parts of the kernels that any engine calls for such a problem."""
    model = compiled_parts.model_of(problem)
    return (*compiled_parts.of_nodes(problem), compiled_parts.ALTERNATING, Part(f"{__name__}:train_tiny:{model}"))


def train_tiny(model: str) -> None:
    """Train a tiny tree, so that everything is compiled or loaded from the cache."""
    Alternating(Effort(least=8, most=8)).search(tiny_multiclass(model), RunControl(), None)
