"""Starts that move all hyperplanes at once: soft trees, whose splits send every sample both ways, made ever sharper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.soft_tree import BLOCK, Soft, learn
from margotree.engines.local_search.training_data import Terms
from margotree.problem.problem import FloatArray

#: The sharpness of a tree drawn by chance (a power of ten, drawn from here), and in the end; the same of a tree at
#: hand, times a middling height, which becomes so many times sharper at least.
_DULL, _SHARP, _AGAIN, _SHARP_AGAIN, _SHARPER = (-1.0, 1.2), 30.0, (-0.3, 1.9), 100.0, 3.0
#: The length of a step at first (a power of ten, drawn from here), and in the end, as a share of that; the same of a
#: tree at hand, which goes down with its sharpness to the power of so much.
_RATE, _SLOWER, _RATE_AGAIN, _LESS = (-2.0, -1.0), 0.1, (-2.1, -1.4), 0.6
#: Trees that are made soft again and again are this sharp at least, as a share of the range.
_FINELY = 0.45
#: How often splits of a tree at hand keep to the features that they have.
_SAME = 0.5
#: After this share of the way splits keep to their budgets, and to features that are worth their prices.
_NARROWED = 0.65
#: Where features have prices, a weight is small if it is this share of the split's largest at first (a power of ten,
#: drawn from here), or so much less in the end; the largest counts as this share of middling heights at least.
_SMALL, _SMALLER, _AT_LEAST = (-1.0, -0.3), 0.1, 0.1
#: The width on which hinges are rounded.
_WIDTH = 0.2
#: Spread of the heights in a tree drawn by chance: a power of ten, drawn from here.  Its last-level splits are shorter
#: by a factor.
_FIRST, _SHORT = (-1.0, 0.5), 0.1
#: Soft trees from nothing are made soft again at most so many times, one more each time that there are twice as many
#: numbers; where splits have budgets or prices only a part of that.
_TIMES_MOST, _NUMBERS_ONCE, _LIMITED = 6, 1_000, 3
#: Samples heard in all, each at most so many times, and so many numbers per level at most.
_VISITS, _TIMES, _NUMBERS = 200_000, 300, 60_000_000


@dataclass(frozen=True)
class Manner:
    """How a soft tree is trained: how sharp it is at first (0 to 1) and how long its steps are (0 to 1)."""

    sharp: float
    rate: float

    @classmethod
    def by_chance(cls, rng: np.random.Generator) -> Manner:
        return cls(float(rng.random()), float(rng.random()))

    @classmethod
    def finely(cls, rng: np.random.Generator) -> Manner:
        """For a tree that is soft no longer and is to become a little better."""
        return cls(float(rng.uniform(_FINELY, 1.0)), float(rng.random()))

    def like(self, rng: np.random.Generator) -> Manner:
        """A similar one."""
        sharp, rate = np.clip((self.sharp, self.rate) + 0.1 * rng.standard_normal(2), 0.0, 1.0)
        return Manner(float(sharp), float(rate))


def again_times(terms: Terms) -> int:
    """How often a soft tree is made soft again before it goes on: the more, the longer a descent takes."""
    times = round(math.log2(max(2.0, terms.X.size / _NUMBERS_ONCE)))
    return min(_TIMES_MOST, times // _LIMITED if terms.limited(0) else times)


class SoftTree:
    """A tree whose splits have a sharpness: a sample goes right in a share that is a sigmoid of sharpness times height.

    Weights are those of the samples around their mean, in units of their spread: that makes gradients tell, and
    samples of any size fit into single precision.
    """

    #: Stages, each of one sharpness and of one length of steps.
    stages = 12

    def __init__(
        self, terms: Terms, W: FloatArray, B: FloatArray, rng: np.random.Generator, manner: Manner, effort: float = 1.0
    ) -> None:
        """From the tree given, or from chance if it has no splits; ``effort`` is how long it is trained."""
        self.terms, self.rng, self.effort = terms, rng, effort
        self.Z, self.unit = terms.standard, terms.unit
        self.fresh = not np.any(W)
        if self.fresh:
            self.theta = self._by_chance()
            self.scale = np.ones(terms.n_nodes)
            self.sharp = np.full(terms.n_nodes, 10.0 ** np.interp(manner.sharp, (0.0, 1.0), _DULL))
            self.sharper = _SHARP / self.sharp[0]
            self.rate = 10.0 ** np.interp(manner.rate, (0.0, 1.0), _RATE)
        else:
            inverse = np.where(self.unit > 0.0, 1.0 / np.maximum(self.unit, 1e-300), 0.0)
            self.theta = np.column_stack([W * inverse, B + W @ terms.mean])
            middling = np.maximum(np.median(np.abs(self.heights()), axis=0), 1e-6)
            sharp = np.interp(manner.sharp, (0.0, 1.0), _AGAIN)
            self.sharp, self.scale = 10.0**sharp / middling, np.minimum(1.0, middling)
            self.sharper = max(_SHARP_AGAIN / 10.0**sharp, _SHARPER)
            self.rate = 10.0 ** (np.interp(manner.rate, (0.0, 1.0), _RATE_AGAIN) - _LESS * sharp)
        self.free = np.ones_like(self.theta)
        if not self.fresh and rng.random() < _SAME:
            self.free[:, :-1] = W != 0
        self.priced = [t for t in range(terms.n_nodes) if terms.limited(t) and 0.0 < terms.alpha[t] < np.inf]
        self.small = 10.0 ** rng.uniform(*_SMALL)

    def anneal(self, flag: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Train it sharper and sharper; the weights and offsets that come out."""
        terms, theta = self.terms, self.theta
        visits = self.effort * min(_VISITS, _TIMES * terms.n_samples, _NUMBERS / ((terms.depth + 1) * terms.X.shape[1]))
        steps = max(1, round(visits / (min(BLOCK, terms.n_samples) * self.stages)))
        state, done = np.zeros((2, theta.size), np.float32), 0
        for k in range(self.stages):
            done = self._stage(k / (self.stages - 1), steps, state, done, flag)
            if flag[0]:
                break
        if not np.all(np.isfinite(theta)):  # features or prices beyond all numbers
            theta[:] = 0.0
        W = theta[:, :-1] * self.unit
        return W, theta[:, -1] - W @ terms.mean

    def _stage(self, share: float, steps: int, state: NDArray[np.float32], done: int, flag: FloatArray) -> int:
        """So many steps with the sharpness that is due after this share of the way; how many there have been in all."""
        terms = self.terms
        self._narrow(min(1.0, share / _NARROWED))
        pull = self.pull(share)
        sharp = self.sharper**share * self.sharp
        plus, minus = self.prices(sharp)
        dear = max(float(np.max(terms.C)), float(np.max(pull)))  # shares of which fit into single precision
        soft = Soft(self.Z, terms.weight, terms.code, plus / dear, minus / dear, sharp, _WIDTH)
        far = (self.rate * _SLOWER**share * self.free * self.scale[:, None]).reshape(-1).astype(np.float32)
        order = self.rng.permutation(terms.n_samples)
        light = (pull.reshape(-1) / dear).astype(np.float32)
        return learn(soft, order, self.theta.reshape(-1), light, far, steps, state, done, flag)

    def pull(self, share: float) -> FloatArray:
        """Twice what squares of the numbers count for: their own price, and that of features beyond the budget.

        A weight of the size that it has now pays about the price of its feature, and less if it is small.  Counted
        anew at every stage this goes towards the number of weights, and what is not worth its price dwindles away.
        """
        pull = np.tile(np.append(self.unit**2, 0.0), (self.terms.n_nodes, 1))
        for t in self.priced:
            size = np.abs(self.theta[t, :-1])
            small = max(float(np.max(size)), _AT_LEAST * self.scale[t]) * self.small * _SMALLER**share
            paying = np.argsort(-size, kind="stable")[self.terms.budget[t] :]
            pull[t, paying] += 2.0 * self.terms.alpha[t] / (size[paying] ** 2 + small**2)
            if share > _NARROWED:
                out = paying[size[paying] < small]
                self.free[t, out] = self.theta[t, out] = 0.0
        return pull

    def prices(self, sharp: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per node and class: the prices of lacking a margin on the right and on the left."""
        none = np.zeros(self.terms.n_nodes)
        return np.column_stack([none, self.terms.C]), np.column_stack([self.terms.C, none])

    def heights(self) -> FloatArray:
        return self._along(self.theta[:, :-1]) + self.theta[:, -1]

    def _along(self, W: FloatArray) -> FloatArray:
        """The samples' products with some directions."""
        found: FloatArray = (self.Z @ W.T.astype(np.float32)).astype(np.float64)
        return found

    def _by_chance(self) -> FloatArray:
        """Directions by chance, of one length, with a good part of all samples on either side of each."""
        nodes, rng = self.terms.n_nodes, self.rng
        W = rng.standard_normal((nodes, self.Z.shape[1])) * (self.unit > 0.0)
        spread = np.std(self._along(W), axis=0)
        W *= (10.0 ** rng.uniform(*_FIRST) * np.where(spread > 0, 1.0 / np.maximum(spread, 1e-300), 0.0))[:, None]
        q = self._along(W)
        B = np.array([-np.quantile(q[:, t], rng.uniform(0.2, 0.8)) for t in range(nodes)])
        theta = np.column_stack([W, B])
        theta[nodes // 2 :] *= _SHORT
        return theta

    def _narrow(self, share: float) -> None:
        """Let go of the lightest features beyond hard budgets: this share of them, in logarithms."""
        terms = self.terms
        heft = terms.spread * self.unit  # below 1 where the unit is not the spread's
        for t in range(terms.n_nodes):
            now, places = int(np.sum(self.free[t, :-1])), int(terms.budget[t])
            if now > places and not terms.soft(t):
                size = max(places, round(now ** (1.0 - share) * places**share))
                out = np.argsort(-np.abs(self.theta[t, :-1]) * heft, kind="stable")[size:]
                self.free[t, out] = self.theta[t, out] = 0.0
