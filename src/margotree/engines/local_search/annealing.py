"""Soft trees: upper splits send every sample both ways, and all hyperplanes are trained together by gradient steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.soft_tree import BLOCK, Soft, learn
from margotree.engines.local_search.training_data import Terms
from margotree.problem import Choices, topology
from margotree.problem.problem import FloatArray

#: Inverse temperatures. Of a new tree: at first (a power of ten, the range of its exponent), and in the end. Of a tree
#: that is re-annealed, in units of one by its median absolute value: the same, and the smallest factor between the two.
_NEW_BETA, _END_BETA, _REANNEAL_BETA, _REANNEAL_END_BETA, _MIN_FACTOR = (-1.0, 1.2), 30.0, (-0.3, 1.9), 100.0, 3.0
#: Step lengths. Of a new tree: at first (a power of ten, the range of its exponent), and in the end as a share of that.
#: Of a tree that is re-annealed: at first, times the inverse temperature to the power of minus the last number.
_NEW_STEP, _END_STEP, _REANNEAL_STEP, _STEP_EXPONENT = (-2.0, -1.0), 0.1, (-2.1, -1.4), 0.6
#: The smallest initial inverse temperature of trees that are re-annealed, as a share of the range.
_MIN_REANNEAL = 0.45
#: How often the splits of a tree that is re-annealed keep their supports.
_SAME_SUPPORT = 0.5
#: From this share of the training on, splits keep to their budgets, and drop features that gain less than their
#: penalties.
_SUPPORT_FIXED_AT = 0.65
#: With feature penalties: a weight is small if it is below this share of the split's largest one at first (a power of
#: ten, the range of its exponent), and below this factor of that in the end; the largest one counts as at least this
#: share of median absolute values.
_SMALL_WEIGHT, _SMALL_WEIGHT_END, _MIN_SCALE = (-1.0, -0.3), 0.1, 0.1
#: The smoothing width of the hinge losses.
_HINGE_WIDTH = 0.2
#: The smoothing width of squared losses, in units of the targets: errors beyond it have linear losses.
_NO_END = 1e4
#: The standard deviation of the values of a new tree (a power of ten, the range of its exponent), and a factor for its
#: last level.
_NEW_SPREAD, _LAST_LEVEL_FACTOR = (-1.0, 0.5), 0.1
#: New soft trees are re-annealed up to this number of times: once for this number of entries of the samples, once more
#: each time that they double; with budgets or feature penalties, that number divided by the last one.
_MAX_REANNEALINGS, _SIZE_ONCE, _LIMITED_DIVISOR = 6, 1_000, 3
#: The number of stages, each with one inverse temperature and one step length; the same where choices are made at each
#: of them.
_N_STAGES, _N_STAGES_WITH_CHOICES = 12, 30
#: The largest number of samples used in all, of uses of each sample, and of multiplications per level.
_MAX_VISITS, _MAX_EPOCHS, _MAX_WORK = 200_000, 300, 60_000_000


@dataclass(frozen=True)
class Schedule:
    """The annealing schedule of a soft tree: its initial inverse temperature and step length, from 0 to 1 in their
    ranges."""

    beta: float
    step_length: float

    @classmethod
    def at_random(cls, rng: np.random.Generator) -> Schedule:
        """A random schedule."""
        return cls(float(rng.random()), float(rng.random()))

    @classmethod
    def for_reannealing(cls, rng: np.random.Generator) -> Schedule:
        """A random schedule for re-annealing a tree."""
        return cls(float(rng.uniform(_MIN_REANNEAL, 1.0)), float(rng.random()))

    def similar(self, rng: np.random.Generator) -> Schedule:
        """A similar schedule."""
        beta, step_length = np.clip((self.beta, self.step_length) + 0.1 * rng.standard_normal(2), 0.0, 1.0)
        return Schedule(float(beta), float(step_length))


def n_reannealings(terms: Terms) -> int:
    """How often a new soft tree is re-annealed before its descent: the more, the longer a descent takes."""
    times = round(math.log2(max(2.0, terms.X.size / _SIZE_ONCE)))
    return min(_MAX_REANNEALINGS, times // _LIMITED_DIVISOR if terms.limited(0) else times)


class SoftTree:
    """A tree that sends a sample right with the share ``1 / (1 + exp(-beta h))``, with one ``beta`` per node.

    The parameters ``theta`` refer to standardised samples, so that gradients have comparable sizes and samples of any
    size fit into single precision. The tree ``W``, ``B`` is re-annealed; with weights of 0, hyperplanes are drawn at
    random. ``schedule`` is the annealing schedule, and ``effort`` a factor of the number of steps.
    """

    def __init__(
        self,
        terms: Terms,
        W: FloatArray,
        B: FloatArray,
        rng: np.random.Generator,
        schedule: Schedule,
        effort: float = 1.0,
    ) -> None:
        """Prepare the training; ``fresh`` is set if hyperplanes were drawn at random."""
        self.terms, self.rng, self.effort = terms, rng, effort
        self.n_stages = _N_STAGES_WITH_CHOICES if terms.task.has_choices else _N_STAGES
        self.Z, self.inverse_spread = terms.standardised, terms.inverse_spread
        self.fresh = not np.any(W)
        if self.fresh:
            self.theta = self._at_random()
            self.scale = np.ones(terms.n_nodes)
            self.beta = np.full(terms.n_nodes, 10.0 ** np.interp(schedule.beta, (0.0, 1.0), _NEW_BETA))
            self.beta_factor = _END_BETA / self.beta[0]
            self.step_length = 10.0 ** np.interp(schedule.step_length, (0.0, 1.0), _NEW_STEP)
        else:
            inverse = np.where(self.inverse_spread > 0.0, 1.0 / np.maximum(self.inverse_spread, 1e-300), 0.0)
            self.theta = np.column_stack([W * inverse, B + W @ terms.mean])
            median_height = np.maximum(np.median(np.abs(self.heights()), axis=0), 1e-6)
            beta = np.interp(schedule.beta, (0.0, 1.0), _REANNEAL_BETA)
            self.beta, self.scale = 10.0**beta / median_height, np.minimum(1.0, median_height)
            self.beta_factor = max(_REANNEAL_END_BETA / 10.0**beta, _MIN_FACTOR)
            self.step_length = 10.0 ** (
                np.interp(schedule.step_length, (0.0, 1.0), _REANNEAL_STEP) - _STEP_EXPONENT * beta
            )
        if terms.unit != 1.0:
            self.scale[terms.n_upper :] = terms.unit
        self.free = np.ones_like(self.theta)
        if not self.fresh and rng.random() < _SAME_SUPPORT:
            self.free[:, :-1] = W != 0
        self.penalised_nodes = [t for t in range(terms.n_nodes) if terms.limited(t) and 0.0 < terms.alpha[t] < np.inf]
        self.small_share = 10.0 ** rng.uniform(*_SMALL_WEIGHT)

    def anneal(self, flag: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Train the tree at rising inverse temperatures; returns its weights and offsets."""
        terms, theta = self.terms, self.theta
        visits = self.effort * min(
            _MAX_VISITS, _MAX_EPOCHS * terms.n_samples, _MAX_WORK / ((terms.depth + 1) * terms.X.shape[1])
        )
        steps = max(1, round(visits / (min(BLOCK, terms.n_samples) * self.n_stages)))
        state, done = np.zeros((2, theta.size), np.float32), 0
        for k in range(self.n_stages):
            done = self._stage(k / (self.n_stages - 1), steps, state, done, flag)
            if flag[0]:
                break
        if not np.all(np.isfinite(theta)):  # overflow by features or penalties
            theta[:] = 0.0
        W = theta[:, :-1] * self.inverse_spread
        return W, theta[:, -1] - W @ terms.mean

    def _stage(self, share: float, steps: int, state: NDArray[np.float32], done: int, flag: FloatArray) -> int:
        """Train at the inverse temperature and step length that belong to this ``share`` of the training.

        ``state`` and ``done`` are the state of Adam and the number of steps so far; returns the number of steps after
        the stage.
        """
        terms = self.terms
        self._drop_features(min(1.0, share / _SUPPORT_FIXED_AT))
        decay = self.decay(share)
        beta = self.beta_factor**share * self.beta
        plus, minus = terms.hinge_penalties(self.choices(beta, first=share == 0.0))
        scale = max(float(np.max(terms.C)), float(np.max(decay)))  # ratios fit into single precision
        last_width = _HINGE_WIDTH * terms.unit
        if terms.task.squares_losses:  # a loss whose smoothing has almost no end is a parabola
            last_width = _NO_END * terms.unit
            for penalties in (plus, minus):
                penalties[terms.n_upper :] *= 2.0 * last_width
        losses = plus / scale, minus / scale, beta, _HINGE_WIDTH, *terms.corners, last_width
        soft = Soft(self.Z, terms.weight, terms.code, *losses, terms.task.losses_follow_side)
        step_length = (
            (self.step_length * _END_STEP**share * self.free * self.scale[:, None]).reshape(-1).astype(np.float32)
        )
        order = self.rng.permutation(terms.n_samples)
        scaled_decay = (decay.reshape(-1) / scale).astype(np.float32)
        return learn(soft, order, self.theta.reshape(-1), scaled_decay, step_length, steps, state, done, flag)

    def decay(self, share: float) -> FloatArray:
        """Twice the coefficients of the squared parameters: the margin term, and feature penalties beyond the budget.

        A weight of the current size has about the penalty of its feature, a small one less. Since the coefficients are
        computed again at every stage, their sum approaches the number of features, and weights that gain less than
        their penalty vanish.
        """
        groups = self.terms.groups
        decay = np.tile(np.append(self.inverse_spread**2, 0.0), (self.terms.n_nodes, 1))
        for t in self.penalised_nodes:
            size = groups.norms(self.theta[t, :-1])
            small = max(float(np.max(size)), _MIN_SCALE * self.scale[t]) * self.small_share * _SMALL_WEIGHT_END**share
            beyond = np.argsort(-size, kind="stable")[self.terms.budget[t] :]
            added = np.zeros(groups.n_groups)
            added[beyond] = 2.0 * self.terms.alpha[t] / (size[beyond] ** 2 + small**2)
            decay[t, :-1] += added[groups.of_feature]
            if share > _SUPPORT_FIXED_AT:
                dropped = groups.columns(beyond[size[beyond] < small])
                self.free[t, dropped] = self.theta[t, dropped] = 0.0
        return decay

    def choices(self, beta: FloatArray, *, first: bool = False) -> Choices:
        """The choices with which a stage is trained: the best for the tree; at the ``first`` stage of new trees random.

        At each node a sample counts with the share that reaches the node at the inverse temperatures ``beta``.
        """
        terms, task = self.terms, self.terms.task
        if not task.has_choices:
            return terms.initial_choices()
        if first and self.fresh:
            return task.random_choices(terms.X, terms.y, terms.weight, terms.depth, self.rng)
        choices, h = terms.initial_choices(), self.heights()
        weight = np.tile(terms.weight, (terms.n_nodes, 1))
        for t in range(terms.n_nodes):
            is_last = t >= terms.n_upper
            choices.at(t)[:] = task.best_choice(terms.y, weight[t], h[:, t], float(self.theta[t, -1]), last=is_last)
            if not is_last:
                right = 1.0 / (1.0 + np.exp(-np.clip(beta[t] * h[:, t], -50.0, 50.0)))
                weight[topology.left(t)], weight[topology.right(t)] = weight[t] * (1.0 - right), weight[t] * right
        return choices

    def heights(self) -> FloatArray:
        """The values ``h`` of all samples at all nodes."""
        return self._project(self.theta[:, :-1]) + self.theta[:, -1]

    def _project(self, W: FloatArray) -> FloatArray:
        """The products of the samples with some directions."""
        found: FloatArray = (self.Z @ W.T.astype(np.float32)).astype(np.float64)
        return found

    def _at_random(self) -> FloatArray:
        """Random directions of one length, with a good part of all samples on either side of each."""
        nodes, rng = self.terms.n_nodes, self.rng
        W = rng.standard_normal((nodes, self.Z.shape[1])) * (self.inverse_spread > 0.0)
        spread = np.std(self._project(W), axis=0)
        W *= (10.0 ** rng.uniform(*_NEW_SPREAD) * np.where(spread > 0, 1.0 / np.maximum(spread, 1e-300), 0.0))[:, None]
        q = self._project(W)
        B = np.array([-np.quantile(q[:, t], rng.uniform(0.2, 0.8)) for t in range(nodes)])
        theta = np.column_stack([W, B])
        theta[nodes // 2 :] *= _LAST_LEVEL_FACTOR * self.terms.unit
        theta[nodes // 2 :, -1] += self.terms.centre
        return theta

    def _drop_features(self, share: float) -> None:
        """Drop the smallest weights beyond hard budgets; the number of features falls geometrically with ``share``."""
        terms, groups = self.terms, self.terms.groups
        scale = terms.spread * self.inverse_spread  # below 1 where the inverse spread is bounded
        for t in range(terms.n_nodes):
            current, budget = groups.count(self.free[t, :-1]), int(terms.budget[t])
            if current > budget and not terms.penalised(t):
                allowed = max(budget, round(current ** (1.0 - share) * budget**share))
                dropped = groups.columns(np.argsort(-groups.norms(self.theta[t, :-1] * scale), kind="stable")[allowed:])
                self.free[t, dropped] = self.theta[t, dropped] = 0.0
