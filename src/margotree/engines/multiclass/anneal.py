"""Soft trees for several classes: hyperplanes by gradients, sides and labels in between."""

from __future__ import annotations

import numpy as np

from margotree.engines.local_search.annealing import SoftTree
from margotree.engines.multiclass.bipartitions import along_line, class_means
from margotree.problem import Choices, topology
from margotree.problem.blocks import FloatArray, IndexArray
from margotree.problem.tasks.multiclass import best_labels, best_sides, class_losses


class ClassSoftTree(SoftTree):
    """A soft tree that chooses the sides and labels that are best for it, now and then."""

    stages = 30  # at each of which sides and labels are chosen

    def hinge_penalties(self, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
        choices = self._by_means() if self.fresh else self._best(beta)
        self.fresh = False
        return self.terms.hinge_penalties(choices)

    def _by_means(self) -> Choices:
        """Classes parted along random directions, those on either side parted again, and so on."""
        terms, rng = self.terms, self.rng
        choices = terms.initial_choices()
        present, means, mass = class_means(terms, np.arange(terms.n_samples))
        here: list[IndexArray] = [present] + [present[:0]] * (terms.n_nodes - 1)
        for t in topology.upper(terms.depth):
            some = np.isin(present, here[t])
            if np.sum(some) > 1:
                d = rng.standard_normal((1, means.shape[1]))[0]
                choices.sides[t] = along_line(present[some], means[some], mass[some], d, terms.task.n_classes, rng)
            right = choices.sides[t][here[t]] > 0
            here[topology.left(t)], here[topology.right(t)] = here[t][~right], here[t][right]
        total = terms.mass(np.arange(terms.n_samples))
        for k, t in enumerate(range(terms.n_upper, terms.n_nodes)):
            heavy = here[t][np.argsort(-total[here[t]], kind="stable")]
            others = rng.permutation(np.setdiff1d(present, heavy))
            choices.labels[k] = rng.permutation(np.concatenate([heavy, others])[:2])
        return choices

    def _best(self, beta: FloatArray) -> Choices:
        """The sides and labels that cost least, every sample counting for the share of it that comes by."""
        terms, choices = self.terms, self.terms.initial_choices()
        h = self.heights()
        reach = np.ones((terms.n_nodes, terms.n_samples))
        for t in range(terms.n_nodes):
            weight = terms.weight * reach[t]
            right, left = class_losses(terms.code, weight, terms.task.n_classes, h[:, t])
            mass = np.bincount(terms.code, weights=weight, minlength=terms.task.n_classes).astype(np.float64)
            if t < terms.n_upper:
                choices.sides[t] = best_sides(right, left)
                share = 1.0 / (1.0 + np.exp(-np.clip(beta[t] * h[:, t], -50.0, 50.0)))
                reach[topology.left(t)], reach[topology.right(t)] = reach[t] * (1.0 - share), reach[t] * share
            else:
                choices.labels[t - terms.n_upper] = best_labels(right, left, mass, bool(self.theta[t, -1] >= 0))
        return choices
