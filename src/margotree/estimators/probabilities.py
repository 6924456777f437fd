"""Fits the rule of ``predict_proba`` to a trained tree.

The scores of the training samples are cross-validated at the last level: its SVMs are trained again without each fold
of their samples, with the same features. Splits above are those of the tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from margotree.engines.node.svm import solve_node
from margotree.problem import Problem, topology
from margotree.problem.tasks import NO_CHOICE, one_sided
from margotree.tree import Tree
from margotree.tree.decision_values import Rows
from margotree.tree.probabilities import (
    STRENGTH,
    MarginProbabilities,
    Probabilities,
    SmoothedShares,
    bounded_distances,
    farthest_distance,
)
from margotree.tree.scaling import FloatArray
from margotree.tree.score import label_distances

IndexArray = NDArray[np.int64]

#: The folds of the samples of a last-level split.
N_FOLDS = 5
#: The largest work of the cross-validation: the sum over splits of (samples squared times features). Splits with more
#: samples than this allows use the scores of the fit, which differ little if there are many samples per feature.
MAX_WORK = 5e7
#: The largest number of samples to which the probabilities are fitted.
MAX_ROWS = 4000
#: The penalty of squared changes of the log odds, for more than two classes.
_RIDGE = 0.1
#: Newton steps, the shortest step of a line search, and the relative decrease at which the steps end.
_MAX_STEPS, _SHORTEST_STEP, _TOLERANCE = 50, 1e-6, 1e-10
#: The smallest and the largest slope of the log odds per margin, for two classes.
_LEAST_SLOPE, _LARGEST_SLOPE = 1e-6, 1e6


def fit_probabilities(kind: str, tree: Tree, problem: Problem, class_weight: FloatArray) -> Probabilities:
    """Return the rule of a ``kind`` other than "leaf" for a trained tree.

    Parameters
    ----------
    kind : {"smoothed", "margin"}
        The rule, as in the parameter ``proba``.
    tree : Tree
        The tree, with the counts of its training samples.
    problem : Problem
        Its training problem. Its weights contain the class weights, which are divided out: the probabilities estimate
        the shares in the training data by ``sample_weight`` alone.
    class_weight : array (classes,)
        The class weights.
    """
    code = problem.task.codes(problem.y)
    weight = problem.weight / class_weight[code]
    # Weights count as numbers of samples, but where they add up to less than the rows, only their ratios count.
    factor = max(1.0, len(weight) / float(weight.sum()))
    if kind == "smoothed":
        return SmoothedShares(STRENGTH / factor)
    rows = np.arange(len(code))
    if len(rows) > MAX_ROWS:  # every n-th row of the sorted samples
        rows = np.unique(np.linspace(0, len(rows) - 1, MAX_ROWS).astype(np.int64))
    leaf = tree_leaves(tree, problem)
    h = cross_validated_values(tree, problem, (leaf - 1) // 2)
    points = Rows.of_scaled(np.asarray(problem.X)[rows])
    at_rows = {t: values[rows] for t, values in h.items()}
    label = _labels(tree, leaf[rows], at_rows)
    n_classes, total = len(tree.classes), factor * float(weight.sum())
    farthest = farthest_distance(n_classes)
    distances = bounded_distances(label_distances(tree, points, label, at_rows), farthest)
    weight = weight[rows] * (total / float(weight[rows].sum()))
    if n_classes == 2:
        intercept, slope = np.zeros(2), -np.eye(2) * _fit_slope(distances, code[rows], weight, class_weight)
    else:
        intercept, slope = _fit_softmax(distances, code[rows], weight)
        intercept = intercept + np.log(class_weight)
    return MarginProbabilities(
        intercept=intercept, slope=slope, farthest=farthest, floor=1.0 / (total + 1.0), class_weight=class_weight
    )


def tree_leaves(tree: Tree, problem: Problem) -> IndexArray:
    """Return the leaf of each sample of the problem."""
    points = Rows.of_scaled(np.asarray(problem.X))
    leaf = np.zeros(len(points), dtype=np.int64)
    for t in range(tree.n_nodes):
        here = np.flatnonzero(leaf == t)
        right = tree.side(points[here], t)[1]
        leaf[here] = np.where(right, topology.right(t), topology.left(t))
    return leaf


def cross_validated_values(tree: Tree, problem: Problem, node: IndexArray) -> dict[int, FloatArray]:
    """Return the decision values of all samples at last-level nodes, cross-validated for the samples at the node.

    Nodes without weights, and nodes for which :data:`MAX_WORK` does not suffice, are left out.

    Parameters
    ----------
    node : array of int
        The last-level node of each sample.
    """
    X, found, work = np.asarray(problem.X), {}, 0.0
    members = {t: np.flatnonzero(node == t) for t in topology.last(tree.depth)}
    for t in sorted(members, key=lambda t: len(members[t])):
        here, used = members[t], np.flatnonzero(tree.splits.w[t])
        work += float(len(here)) ** 2 * len(used)
        if work > MAX_WORK or len(here) < 2 or not len(used):
            continue
        values = tree.side(X, t)[0].copy()
        fold = _folds(problem.task.codes(problem.y[here]))
        for k in range(fold.max() + 1):
            w, b = _last_split(tree, problem, t, here[fold != k], used)
            values[here[fold == k]] = X[np.ix_(here[fold == k], used)] @ w + b
        found[t] = values
    return found


def _folds(code: IndexArray) -> IndexArray:
    """Return the fold of each sample; the samples of a class are dealt to the folds in turn."""
    fold = np.empty(len(code), dtype=np.int64)
    fold[np.argsort(code, kind="stable")] = np.arange(len(code)) % N_FOLDS
    return fold


def _last_split(tree: Tree, problem: Problem, t: int, rows: IndexArray, used: IndexArray) -> tuple[FloatArray, float]:
    """Return the SVM of some samples of a last-level node, on the features ``used``."""
    leaf = np.array([topology.left(t), topology.right(t)]) - tree.n_nodes
    choice = NO_CHOICE if problem.task.n_classes == 2 else tree.leaf_class[leaf]
    items = problem.task.items(problem.y[rows], last=True, choice=choice)
    sides = one_sided(items, problem.C[t] * problem.weight[rows])
    points = np.ascontiguousarray(np.asarray(problem.X)[np.ix_(rows[sides.rows], used)])
    solved = solve_node(points, sides.label, sides.cost, corner=sides.corner, max_weight=problem.max_weight)
    return solved.w, solved.b


def _labels(tree: Tree, leaf: IndexArray, h: dict[int, FloatArray]) -> IndexArray:
    """Return the positions of labels of samples, with other decision values at some last-level nodes."""
    code = tree.leaf_class[leaf - tree.n_nodes]
    for t, values in h.items():
        here = np.flatnonzero((leaf - 1) // 2 == t)
        side = np.where(values[here] >= 0.0, topology.right(t), topology.left(t))
        code[here] = tree.leaf_class[side - tree.n_nodes]
    return code


def _fit_slope(distances: FloatArray, code: IndexArray, weight: FloatArray, class_weight: FloatArray) -> float:
    """Return the slope of the sigmoid for two classes by maximum likelihood.

    On the hyperplane the odds are the inverse ratio of the class weights. The targets are Platt's: 0 and 1 are replaced
    by the means of a uniform prior after the samples of the class.
    """
    d = distances[:, 0] - distances[:, 1]
    counts = np.bincount(code, weights=weight, minlength=2)
    low, high = 1.0 / (counts[0] + 2.0), (counts[1] + 1.0) / (counts[1] + 2.0)
    target = np.where(code == 1, high, low)
    shift = float(np.log(class_weight[0] / class_weight[1]))

    def excess(a: float) -> float:
        return float(weight @ ((expit(a * d + shift) - target) * d))

    if excess(_LEAST_SLOPE) >= 0.0:
        return _LEAST_SLOPE
    if excess(_LARGEST_SLOPE) <= 0.0:
        return _LARGEST_SLOPE
    return float(brentq(excess, _LEAST_SLOPE, _LARGEST_SLOPE, xtol=1e-12, rtol=1e-12))


def _fit_softmax(distances: FloatArray, code: IndexArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return intercept and slope of the softmax by penalised maximum likelihood.

    The penalty draws the probabilities to the shares of the classes, with one more sample of each.
    """
    n_classes = distances.shape[1]
    counts = np.bincount(code, weights=weight, minlength=n_classes)
    prior = np.log((counts + 1.0) / (counts.sum() + n_classes))
    truth = np.zeros((len(code), n_classes))
    truth[np.arange(len(code)), code] = weight
    design = np.column_stack([np.ones(len(code)), distances])

    def log_shares(change: FloatArray) -> FloatArray:
        log_odds = prior + design @ change
        found: FloatArray = log_odds - logsumexp(log_odds, axis=1, keepdims=True)
        return found

    def loss(change: FloatArray) -> float:
        return -float(np.vdot(truth, log_shares(change))) + 0.5 * _RIDGE * float(np.vdot(change, change))

    change = np.zeros((n_classes + 1, n_classes))
    value = loss(change)
    for _ in range(_MAX_STEPS):
        shares = np.exp(log_shares(change))
        gradient = design.T @ (weight[:, None] * shares - truth) + _RIDGE * change
        step = np.linalg.solve(_curvature(design, shares, weight), gradient.T.ravel()).reshape(gradient.T.shape).T
        decrease, length = float(np.vdot(gradient, step)), 1.0
        while (new := loss(change - length * step)) > value - 0.1 * length * decrease and length > _SHORTEST_STEP:
            length /= 2
        if new >= value:
            break
        change, value = change - length * step, new
        if decrease <= _TOLERANCE * (1.0 + value):
            break
    return prior + change[0], change[1:]


def _curvature(design: FloatArray, shares: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the second derivatives of the penalised loss; the coefficients of one class follow each other."""
    m, n_classes = design.shape[1], shares.shape[1]
    found = np.zeros((n_classes, m, n_classes, m))
    for k in range(n_classes):
        for j in range(k + 1):
            block = design.T @ (design * (weight * shares[:, k] * ((j == k) - shares[:, j]))[:, None])
            found[k, :, j], found[j, :, k] = block, block
    flat: FloatArray = found.reshape(m * n_classes, m * n_classes)
    return flat + _RIDGE * np.eye(m * n_classes)
