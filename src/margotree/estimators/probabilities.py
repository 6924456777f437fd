"""Fits the rule of ``predict_proba`` to a trained tree and cross-validated margins of its training samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, logsumexp

from margotree.estimators.cross_validated_margins import N_FOLDS, cross_validated_margins
from margotree.problem import Problem
from margotree.tree import Tree
from margotree.tree.probabilities import (
    STRENGTH,
    MarginProbabilities,
    Probabilities,
    SmoothedShares,
    bounded_distances,
    farthest_distance,
)
from margotree.tree.scaling import FloatArray

IndexArray = NDArray[np.int64]

#: The largest number of samples to which the probabilities are fitted.
MAX_ROWS = 4000
#: The penalty of squared changes of the log odds, for more than two classes.
_RIDGE = 0.1
#: Newton steps, the shortest step of a line search, and the relative decrease at which the steps end.
_MAX_STEPS, _SHORTEST_STEP, _TOLERANCE = 50, 1e-6, 1e-10
#: The smallest and the largest slope of the log odds per margin, and their largest step, for two classes.
_LEAST_SLOPE, _LARGEST_SLOPE, _LARGEST_STEP = 1e-6, 1e6, 40.0
#: Every number after the first has to reduce the log-loss of all samples by this amount.
_LEAST_GAIN = 1.0


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
    found = cross_validated_margins(tree, problem, factor * weight)
    rows = np.arange(len(found.folds.row))
    if len(rows) > MAX_ROWS:  # every n-th row of the sorted samples
        rows = np.unique(np.linspace(0, len(rows) - 1, MAX_ROWS).astype(np.int64))
    distances, label = found.distances(tree, np.asarray(problem.X), rows)
    n_classes, total = len(tree.classes), factor * float(weight.sum())
    farthest = farthest_distance(n_classes)
    distances, code = bounded_distances(distances, farthest), code[found.folds.row[rows]]
    count = found.folds.count[rows]
    count = count * (total / float(count.sum()))
    if n_classes == 2:
        samples = _Samples(
            d=np.where(label == 1, distances[:, 0], -distances[:, 1]),
            side=np.where(label == 1, 1.0, -1.0),
            code=code,
            count=count,
            shift=float(np.log(class_weight[0] / class_weight[1])),
        )
        slope, step = _best_form(samples, found.folds.fold[rows]) if found.like_new else _one_slope(samples)
        intercept, slope = np.zeros(2), -np.diag(slope)
    else:
        intercept, slope = _fit_softmax(distances, code, count)
        intercept, step = intercept + np.log(class_weight), np.zeros(n_classes)
    return MarginProbabilities(
        intercept=intercept,
        slope=slope,
        step=step,
        farthest=farthest,
        floor=1.0 / (total + 1.0),
        class_weight=class_weight,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Samples:
    """What the log odds of two classes are fitted to.

    Parameters
    ----------
    d : array
        Decision values.
    side : array
        The labels: -1, or +1 for the second class.
    code : array of int
        The classes.
    count : array
        The number of samples that each row stands for.
    shift : float
        The log odds on the hyperplane: the inverse ratio of the class weights.
    """

    d: FloatArray
    side: FloatArray
    code: IndexArray
    count: FloatArray
    shift: float

    def __getitem__(self, which: NDArray[np.bool_]) -> _Samples:
        return replace(self, d=self.d[which], side=self.side[which], code=self.code[which], count=self.count[which])

    def targets(self) -> FloatArray:
        """Return Platt's targets: 0 and 1 are replaced by the means of a uniform prior after the class's samples."""
        counts = np.bincount(self.code, weights=self.count, minlength=2)
        return np.where(self.code == 1, (counts[1] + 1.0) / (counts[1] + 2.0), 1.0 / (counts[0] + 2.0))

    def log_loss(self, slope: FloatArray, step: FloatArray) -> float:
        """Return the log-loss of all samples for slopes and steps of the first and the second class."""
        at = (self.side > 0).astype(np.int64)
        # Row 0 of the slopes has the changes per distance from label 0, which samples of label 1 have.
        log_odds = self.d * slope[1 - at] + self.side * step[at] + self.shift
        return -float(self.count @ log_expit(np.where(self.code == 1, log_odds, -log_odds)))


#: Slopes per distance from the labels, and steps of the labels.
_Form = tuple[FloatArray, FloatArray]


def _best_form(samples: _Samples, fold: IndexArray) -> _Form:
    """Return slopes and steps of the form of the log odds with the smallest cross-validated log-loss.

    Steps together with a slope are compared with the steps alone, if these are better than slopes. Otherwise they would
    often be too confident, as the features of the splits were chosen with all samples.
    """
    if len(set(samples.side)) < 2:
        return _one_slope(samples)
    splits = [(samples[fold != k], samples[fold == k]) for k in range(N_FOLDS)]

    def loss(form: Callable[[_Samples], _Form]) -> float:
        return sum(left_out.log_loss(*form(rest)) for rest, left_out in splits if len(rest.code) and len(left_out.code))

    best, least = _one_slope, loss(_one_slope)
    for form in (_two_slopes, _two_steps):
        if (found := loss(form) + _LEAST_GAIN) < least:
            best, least = form, found
    if best is _two_steps and loss(_steps_and_slope) + 2 * _LEAST_GAIN < least:
        best = _steps_and_slope
    return best(samples)


def _one_slope(samples: _Samples) -> _Form:
    """Log odds in proportion to the decision value."""
    slope = _factor(samples.d, samples, samples.targets(), _LEAST_SLOPE, _LARGEST_SLOPE)
    return np.full(2, slope), np.zeros(2)


def _two_slopes(samples: _Samples) -> _Form:
    """Log odds in proportion to the decision value, with a factor for each label."""
    target, slope = samples.targets(), np.empty(2)
    for k, side in enumerate((1.0, -1.0)):
        here = samples.side == side
        slope[k] = _factor(samples.d[here], samples[here], target[here], _LEAST_SLOPE, _LARGEST_SLOPE)
    return slope, np.zeros(2)


def _two_steps(samples: _Samples) -> _Form:
    """Constant log odds for each label; the smallest slope keeps the order of the samples."""
    target, step = samples.targets(), np.empty(2)
    for k, side in enumerate((-1.0, 1.0)):
        here = samples.side == side
        step[k] = _factor(samples.side[here], samples[here], target[here], 0.0, _LARGEST_STEP)
    return np.full(2, _LEAST_SLOPE), step


def _steps_and_slope(samples: _Samples) -> _Form:
    """A step for each label and a common slope."""
    target, at = samples.targets(), (samples.side > 0).astype(np.int64)
    design = np.column_stack([-(1.0 - at), at, samples.d])

    def loss(factors: FloatArray) -> tuple[float, FloatArray]:
        log_odds = design @ factors + samples.shift
        likelihood = target * log_expit(log_odds) + (1.0 - target) * log_expit(-log_odds)
        return -float(samples.count @ likelihood), (samples.count * (expit(log_odds) - target)) @ design

    bounds = [(0.0, _LARGEST_STEP), (0.0, _LARGEST_STEP), (_LEAST_SLOPE, _LARGEST_SLOPE)]
    found = minimize(loss, [1.0, 1.0, 0.1], jac=True, method="L-BFGS-B", bounds=bounds).x
    return np.full(2, found[2]), found[:2]


def _factor(x: FloatArray, samples: _Samples, target: FloatArray, least: float, largest: float) -> float:
    """Return the factor of ``x`` in the log odds by maximum likelihood."""

    def excess(a: float) -> float:
        return float(samples.count @ ((expit(a * x + samples.shift) - target) * x))

    if excess(least) >= 0.0:
        return least
    if excess(largest) <= 0.0:
        return largest
    return float(brentq(excess, least, largest, xtol=1e-12, rtol=1e-12))


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
