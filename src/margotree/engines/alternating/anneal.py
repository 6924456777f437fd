"""Starts that move all hyperplanes at once: soft trees, whose splits send every sample both ways, made ever sharper."""

from __future__ import annotations

import math

import numpy as np

from margotree.engines.alternating.kernels.soft import Soft, minimise
from margotree.engines.alternating.terms import Terms
from margotree.problem.problem import FloatArray

#: Sharpness of a tree drawn by chance (a power of ten, drawn from here), and in the end.  A tree at hand becomes so
#: many times sharper.  From one sharpness to the next: a factor drawn from here.
_DULL, _SHARP, _SHARPER, _RATIO = (-1.0, 1.5), 100.0, 100.0, (2.0, 5.0)
#: After this share of the way splits keep to their budgets.
_NARROWED = 0.65
#: The width on which hinges are rounded.
_WIDTH = 0.2
#: Spread of the heights in a tree drawn by chance, and a middling height times the sharpness in one at hand: powers of
#: ten, drawn from here.  Last-level splits drawn by chance are shorter by a factor.
_FIRST, _AGAIN, _SHORT = (-1.5, 0.7), (-0.5, 1.0), 0.1
#: A soft tree hears so many numbers times nodes, on the first half of the way fewer, and so many samples at least.  All
#: of them if they are no more than so many times that: a few left out save little, and where there are not many samples
#: per feature the tree that fits the others can be far off for them.
_HEARD, _HEARD_FIRST, _LEAST, _NEARLY_ALL = 1_500_000, 500_000, 500, 2.0


class SoftTree:
    """A tree whose splits have a sharpness: a sample goes right in a share that is a sigmoid of sharpness times height.

    Weights are those of the samples around their mean, which is what makes gradients tell.
    """

    #: Times per sharpness that prices are asked for, and steps each time.
    rounds, steps = 1, 200

    def __init__(
        self,
        terms: Terms,
        W: FloatArray,
        B: FloatArray,
        rng: np.random.Generator,
        part: tuple[float, float] = (0.0, 1.0),
        heard: float = 1.0,
    ) -> None:
        """From the tree given, or from chance if it has no splits; ``part`` is that of all sharpness to begin with,
        ``heard`` the share that it hears of what there is time for."""
        self.terms, self.rng = _heard(terms, rng, heard * _HEARD_FIRST), rng
        self.later = _heard(terms, rng, heard * _HEARD)
        self.mean = np.mean(terms.X, axis=0)
        self.Z = self.terms.X - self.mean
        self.fresh = not np.any(W)
        if self.fresh:
            self.theta = self._by_chance()
            self.sharp = np.full(terms.n_nodes, 10.0 ** np.interp(rng.uniform(*part), (0.0, 1.0), _DULL))
        else:
            self.theta = np.column_stack([W, B + W @ self.mean])
            self.sharp = 10.0 ** rng.uniform(*_AGAIN) / np.maximum(np.median(np.abs(self.heights()), axis=0), 1e-6)
        self.sharper = _SHARP / self.sharp[0] if self.fresh else _SHARPER
        self.free = np.ones_like(self.theta)
        self.places = np.array([terms.some_places(t, rng) for t in range(terms.n_nodes)])

    def anneal(self, flag: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Train it sharper and sharper; the weights and offsets that come out."""
        stages = max(2, round(math.log(self.sharper) / math.log(self.rng.uniform(*_RATIO))))
        for k in range(stages + 1):
            if k > 0:
                self._narrow(min(1.0, k / (_NARROWED * stages)))
            if 2 * k >= stages and self.terms is not self.later:
                self.terms, self.Z = self.later, self.later.X - self.mean
            self._train(self.sharper ** (k / stages) * self.sharp, flag)
            if flag[0]:
                break
        W = self.theta[:, :-1].copy()
        return W, self.theta[:, -1] - W @ self.mean

    def prices(self, sharp: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Per node and class: the prices of lacking a margin on the right and on the left."""
        none = np.zeros(self.terms.n_nodes)
        return np.column_stack([none, self.terms.C]), np.column_stack([self.terms.C, none])

    def heights(self) -> FloatArray:
        h: FloatArray = self.Z @ self.theta[:, :-1].T + self.theta[:, -1]
        return h

    def _train(self, sharp: FloatArray, flag: FloatArray) -> None:
        terms = self.terms
        for _ in range(self.rounds):
            soft = Soft(self.Z, terms.weight, terms.code, *self.prices(sharp), sharp, _WIDTH)
            minimise(soft, self.theta.reshape(-1), self.free.reshape(-1), self.steps, flag)

    def _by_chance(self) -> FloatArray:
        """Directions by chance, of one length, with a good part of all samples on either side of each."""
        nodes, rng = self.terms.n_nodes, self.rng
        W = rng.standard_normal((nodes, self.Z.shape[1]))
        spread = np.std(self.Z @ W.T, axis=0)
        W *= (10.0 ** rng.uniform(*_FIRST) * np.where(spread > 0, 1.0 / np.maximum(spread, 1e-300), 0.0))[:, None]
        q = self.Z @ W.T
        B = np.array([-np.quantile(q[:, t], rng.uniform(0.2, 0.8)) for t in range(nodes)])
        theta = np.column_stack([W, B])
        theta[nodes // 2 :] *= _SHORT
        return theta

    def _narrow(self, share: float) -> None:
        """Let go of the lightest features beyond the places that each split has: this share of them, in logarithms."""
        for t, places in enumerate(self.places):
            now = int(np.sum(self.free[t, :-1]))
            if now > places:
                size = max(int(places), round(now ** (1.0 - share) * places**share))
                out = np.argsort(-np.abs(self.theta[t, :-1]) * self.terms.spread, kind="stable")[size:]
                self.free[t, out] = self.theta[t, out] = 0.0


def _heard(terms: Terms, rng: np.random.Generator, numbers: float) -> Terms:
    """The terms, with as many of the samples as there is time for, standing for the others as well."""
    most = max(_LEAST, int(numbers / (terms.X.shape[1] * terms.n_nodes)))
    return terms if terms.n_samples <= _NEARLY_ALL * most else terms.some(most, rng)
