"""Local SVM, the greedy heuristic of the paper: every node is an SVM of its samples, trained from the root down."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines import compiled_parts
from margotree.engines.band import leave_band, right_of
from margotree.engines.base import Answer, Engine
from margotree.engines.local_search.initial_splits import Strategy, draw, greedy_choice
from margotree.engines.local_search.node_samples import Node
from margotree.engines.local_search.support_search import best_svm
from margotree.engines.local_search.training_data import Terms
from margotree.engines.node.best_subset import best_subset
from margotree.engines.node.svm import LARGE, solve_large, solve_node
from margotree.engines.numba_backend import Part
from margotree.engines.polish import without_noise
from margotree.engines.run_control import RunControl, flag_after
from margotree.problem import Problem, Splits, TrainingProblem, topology
from margotree.problem.blocks import FloatArray, decision_values
from margotree.problem.tasks import NO_CHOICE, OneSided, one_sided
from margotree.problem.tiny_problems import tiny_problem
from margotree.problem.value import size_of_support
from margotree.solution import Stopped, relative_gap

#: The least seconds per node, if they remain: enough for any node of a few hundred samples.
_MIN_SECONDS = 0.2
#: The least number of search nodes for the search for the features of a node, where work is limited by nodes.
_MIN_NODES = 50
#: The gap below which a node without a budget counts as solved.
_SOLVED_GAP = 1e-6
#: A node without a budget whose gap is above this when its time is up counts as not trained.
_UNTRAINED_GAP = 0.1
#: The reason of the gap of a node with many samples.
_MANY_SAMPLES = "has many samples, and its features were chosen by weight"


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeFit:
    """The hyperplane of one node, its gap to the optimum of the node problem, and the reason of a gap."""

    w: FloatArray
    b: float
    gap: float = 0.0
    reason: str = "was cut short by its share of the time limit"


class LocalSVM(Engine):
    """Greedy top-down training, without a proof; the tree is feasible.

    With several classes, an upper node separates those classes whose SVM leaves the smallest impurity, and a last-level
    node has the best labels among its largest classes. Without budgets a node is an SVM, with budgets a best-subset
    SVM. Each is solved exactly within its share of the time limit; with many samples the features with the largest
    weights are chosen instead. Warnings of the certificate name the nodes that were not solved to optimality. Samples
    in the band of an upper node are moved out of it at the smallest cost found; if there are none, the tree is that of
    the paper's algorithm.
    """

    name = "local_svm"
    models = frozenset({"margot", "hfs", "sfs"})
    proves = False
    notes_trees = True
    counts_groups = True
    squares_losses = True

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        many = (compiled_parts.MANY_SAMPLES,) * (getattr(problem, "n_samples", 0) > LARGE)
        return (
            *many,
            *compiled_parts.of_nodes(problem),
            *compiled_parts.of_choices(problem),
            Part(f"{__name__}:train_tiny:{compiled_parts.model_of(problem)}"),
        )

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        """Train the nodes level by level; a start is ignored."""
        w = np.zeros((problem.n_nodes, problem.n_features))
        b = np.ones(problem.n_nodes)
        node = np.zeros(problem.n_samples, dtype=np.int64)
        warnings, has_untrained, rng = [], False, np.random.default_rng(control.limits.seed)
        for t in range(problem.n_nodes):
            rows = np.flatnonzero(node == t)
            share = _share(problem, t, node)
            seconds, nodes = max(_MIN_SECONDS, share * control.remaining), max(_MIN_NODES, share * control.limits.nodes)
            fit = fit_node(problem, t, rows, control.share(seconds=seconds, nodes=nodes), rng)
            w[t], b[t] = fit.w, fit.b
            if fit.gap > 0:
                warnings.append(_warning(t, fit.gap, fit.reason))
                has_untrained |= _is_untrained(problem, fit)
            if t in topology.upper(problem.depth):
                goes_right = right_of(problem, w[t], b[t], rows)
                node[rows] = np.where(goes_right, topology.right(t), topology.left(t))
            control.report("local_svm", nodes=t + 1, open_nodes=problem.n_nodes - t - 1)
        if not (has_untrained or control.interrupted):
            control.count_trained_tree()
        in_time = Stopped.TIME if has_untrained and control.over else Stopped.HEURISTIC
        stopped = Stopped.INTERRUPTED if control.interrupted else in_time
        splits = without_noise(problem, Splits(w=w, b=b))
        return Answer(splits=splits, stopped=stopped, nodes=problem.n_nodes, warnings=tuple(warnings))


def train_tiny(model: str) -> None:
    """Train a tiny tree, so that all kernels are compiled or loaded from the cache."""
    LocalSVM().search(tiny_problem(model), RunControl(), None)


def fit_node(
    problem: Problem, t: int, rows: NDArray[np.int64], control: RunControl, rng: np.random.Generator | None = None
) -> NodeFit:
    """Train node ``t`` on the samples ``rows``; at upper nodes none of them is left in the band.

    Without time left the node has no split.
    """
    counted, last = rows[problem.weight[rows] > 0], t >= problem.n_upper
    flag = np.zeros(1)
    if problem.task.losses_follow_side and not last:
        terms, constant = Terms.of(problem), (np.zeros(problem.n_features), 1.0)
        with flag_after(flag, control.remaining):
            node = Node.of(terms, t, rows)
            generator = rng or np.random.default_rng(0)
            w, b = draw(terms, t, rows, node, constant, Strategy.SVM, generator, flag)
        return NodeFit(w=w, b=b)
    if not problem.task.has_choices:
        fit = _fit_choice(problem, t, counted, NO_CHOICE, control)
        return fit if last else _without_band(problem, t, rows, NO_CHOICE, fit, control)
    if last:
        return _best_choice(problem, t, counted, control)
    with flag_after(flag, control.remaining):
        choice = greedy_choice(Terms.of(problem), t, counted, rng or np.random.default_rng(0), flag)
    if choice is None:
        fit = NodeFit(w=np.zeros(problem.n_features), b=1.0)
        choice = problem.task.initial_choices(problem.n_upper, problem.n_last).at(t)
    else:
        fit = _fit_choice(problem, t, counted, choice, control)
    return _without_band(problem, t, rows, choice, fit, control)


def _best_choice(problem: Problem, t: int, rows: NDArray[np.int64], control: RunControl) -> NodeFit:
    """The last-level node ``t`` with the choice of the smallest objective."""
    mass = problem.task.mass(problem.y[rows], problem.weight[rows])
    initial = problem.task.initial_choices(problem.n_upper, problem.n_last).at(t)
    best, fit = math.inf, NodeFit(w=np.zeros(problem.n_features), b=1.0)
    for choice, least in problem.task.promising_last_choices(mass, initial):
        if problem.C[t] * least >= best or (control.over and best < math.inf):
            break
        found = _fit_choice(problem, t, rows, choice, control)
        value = _node_value(problem, t, rows, choice, found)
        if value < best:
            best, fit = value, found
    return fit


def _node_value(problem: Problem, t: int, rows: NDArray[np.int64], choice: NDArray[np.int64], fit: NodeFit) -> float:
    """The objective of node ``t`` alone."""
    items = problem.task.items(problem.y[rows], last=t >= problem.n_upper, choice=choice)
    loss = float(problem.weight[rows] @ items.loss(decision_values(problem.X, rows, fit.w, fit.b)))
    value = 0.5 * float(fit.w @ fit.w) + float(problem.C[t]) * loss
    if problem.budget is not None and problem.alpha is not None:
        value += float(problem.alpha[t]) * max(0, size_of_support(fit.w, problem.groups) - int(problem.budget[t]))
    return value


def _without_band(
    problem: Problem, t: int, rows: NDArray[np.int64], choice: NDArray[np.int64], fit: NodeFit, control: RunControl
) -> NodeFit:
    """The upper node ``t`` with its hyperplane moved so that no sample is left in its band."""
    items = problem.task.items(problem.y[rows], last=False, choice=choice)
    w, b = leave_band(problem, t, rows, fit.w, fit.b, control, np.where(items.p > 0, 1.0, -1.0))
    return replace(fit, w=w, b=b)


def _fit_choice(
    problem: Problem, t: int, rows: NDArray[np.int64], choice: NDArray[np.int64], control: RunControl
) -> NodeFit:
    """Train node ``t`` with a choice; the band is ignored."""
    items = _items(problem, t, rows, choice)
    labels = np.unique(items.label)
    if len(labels) < 2:
        return NodeFit(w=np.zeros(problem.n_features), b=float(labels[0]) if len(labels) else 1.0)
    if control.over:
        return NodeFit(w=np.zeros(problem.n_features), b=_majority(items), gap=math.inf)
    if problem.task.squares_losses or (problem.task.losses_follow_side and problem.budget is not None):
        return _fit_by_newton(problem, t, rows, control)
    if problem.budget is None:
        return _fit_plain(problem, items, control)
    if len(items.rows) > LARGE and problem.max_weight is None and problem.groups is None:
        return _fit_many_samples(problem, t, items, control)
    return _fit_best_subset(problem, t, items, control)


def _items(problem: Problem, t: int, rows: NDArray[np.int64], choice: NDArray[np.int64]) -> OneSided:
    """The losses of the samples ``rows`` at node ``t``, in the order of the samples; ``rows`` are those of ``X``."""
    items = problem.task.items(problem.y[rows], last=t >= problem.n_upper, choice=choice)
    found = one_sided(items, problem.C[t] * problem.weight[rows])
    order = np.argsort(found.rows, kind="stable")
    return OneSided(rows[found.rows[order]], found.label[order], found.corner[order], found.cost[order])


def _fit_plain(problem: Problem, items: OneSided, control: RunControl) -> NodeFit:
    """The SVM of a node on all features."""
    X, limit = _samples(problem, items), problem.max_weight
    found = solve_node(X, items.label, items.cost, corner=items.corner, max_weight=limit, time_limit=control.remaining)
    gap = relative_gap(found.value, found.bound)
    return NodeFit(w=found.w, b=found.b, gap=gap if gap > _SOLVED_GAP else 0.0)


def _fit_by_newton(problem: Problem, t: int, rows: NDArray[np.int64], control: RunControl) -> NodeFit:
    """A last-level node whose target is a number; with a budget good features are found by exchanges."""
    terms, flag = Terms.of(problem).fine(), np.zeros(1)
    with flag_after(flag, control.remaining):
        (w, b), _ = best_svm(terms, t, Node.of(terms, t, rows), (np.zeros(problem.n_features), 0.0), flag)
    return NodeFit(w=w, b=b)


def _fit_best_subset(problem: Problem, t: int, items: OneSided, control: RunControl) -> NodeFit:
    """The best-subset SVM of node ``t``: the best SVM within the budget of the node, or with feature penalties.

    It is trained by branch and bound, within the limits of ``control``.
    """
    assert problem.budget is not None
    found = best_subset(
        problem.X[items.rows],
        items.label,
        items.cost,
        corner=items.corner,
        budget=int(problem.budget[t]),
        alpha=None if problem.alpha is None else float(problem.alpha[t]),
        max_weight=problem.max_weight,
        groups=problem.groups,
        stop=lambda: control.must_stop() is not None,
        node_limit=control.limits.nodes,
    )
    return NodeFit(w=found.w, b=found.b, gap=0.0 if found.exact else found.gap)


def _fit_many_samples(problem: Problem, t: int, items: OneSided, control: RunControl) -> NodeFit:
    """The SVM of node ``t`` with many samples, on the features with the largest weights of the SVM on all features.

    With a hard budget, the number of features is the budget.  With feature penalties, features are added as long as
    the objective decreases.
    """
    assert problem.budget is not None
    X, y, cost, corner = _samples(problem, items), items.label, items.cost, items.corner
    alpha = 0.0 if problem.alpha is None else float(problem.alpha[t])
    plain = solve_large(X, y, cost, control.remaining, corner=corner)
    ranked = np.argsort(-np.abs(plain.w) * np.std(X, axis=0), kind="stable")
    min_size = min(int(problem.budget[t]), problem.n_features)
    max_size = min_size if problem.alpha is None else problem.n_features
    best, fit = math.inf, NodeFit(w=np.zeros(problem.n_features), b=_majority(items), gap=math.inf)
    for size in range(min_size, max_size + 1):
        support = np.sort(ranked[:size])
        found = solve_large(X[:, support], y, cost, control.remaining, corner=corner)
        value = found.value + alpha * (size - min_size)
        if value >= best:
            break
        w = np.zeros(problem.n_features)
        w[support] = found.w
        best, fit = value, NodeFit(w=w, b=found.b, gap=relative_gap(value, plain.bound), reason=_MANY_SAMPLES)
        if control.must_stop() is not None:
            break
    return fit


def _samples(problem: Problem, items: OneSided) -> FloatArray:
    """The samples of a node; no copy if these are all samples."""
    rows = items.rows
    is_all = len(rows) == problem.n_samples and np.array_equal(rows, np.arange(len(rows)))
    return problem.X if is_all else problem.X[rows]


def _majority(items: OneSided) -> float:
    """The label with the larger cost."""
    return 1.0 if items.cost @ items.label >= 0 else -1.0


def _share(problem: Problem, t: int, node: NDArray[np.int64]) -> float:
    """The share of the remaining time that node ``t`` may use, by its number of samples.

    ``node`` is the node that each sample has reached.  Each level uses every sample once.
    """
    here, this_level = int(np.count_nonzero(node == t)), int(np.count_nonzero(node >= t))
    levels_below = problem.depth - 1 - topology.level(t)
    return max(here, 1e-9) / max(1, this_level + levels_below * problem.n_samples)


def _is_untrained(problem: Problem, fit: NodeFit) -> bool:
    """Whether a node that was not solved to optimality counts as not trained.

    Without a budget, its gap is large; with a budget, no hyperplane was found.
    """
    return fit.gap > _UNTRAINED_GAP if problem.budget is None else not np.any(fit.w)


def _warning(t: int, gap: float, reason: str) -> str:
    """The warning about a node that was not solved to optimality."""
    left = "before it had a bound" if math.isinf(gap) else f"with a gap of {100 * gap:.3g} % left"
    return f"local_svm: the problem of node {t} {reason}, {left}"
