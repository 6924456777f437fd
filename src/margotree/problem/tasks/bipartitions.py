"""Which classes an upper node can separate: bipartitions of the classes, by the means of their samples.

A bipartition gives every class a side, -1 or +1; the first class has the left one.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from margotree.problem import topology
from margotree.problem.blocks import FloatArray, IndexArray

#: Up to this number of classes all bipartitions are candidates; beyond, those that lines through the means make.
_MAX_ENUMERATED = 5
#: The number of differences of means, and of random directions, that give candidates.
_LINES = 8


class ClassMeans(NamedTuple):
    """The classes among some samples, the mean of each, and its total weight."""

    classes: IndexArray
    means: FloatArray
    mass: FloatArray


def class_means(X: FloatArray, code: IndexArray, weight: FloatArray, n_classes: int) -> ClassMeans:
    """The means of the classes that have a positive weight."""
    mass = np.bincount(code, weights=weight, minlength=n_classes).astype(np.float64)
    present = np.flatnonzero(mass > 0)
    means = [np.average(X[code == k], axis=0, weights=weight[code == k]) for k in present]
    return ClassMeans(present, np.array(means), mass[present])


def normal_form(sides: IndexArray) -> IndexArray:
    """The bipartition with the first class on the left, and at least one class on the right."""
    sides = sides if sides[0] < 0 else -sides
    if not np.any(sides > 0):
        sides = sides.copy()
        sides[-1] = 1
    return sides


def _along_line(of: ClassMeans, d: FloatArray, n_classes: int, rng: np.random.Generator) -> IndexArray:
    """The classes separated along a direction: at the largest gap between means, or into sides of similar weight."""
    q = of.means @ d
    order = np.argsort(q, kind="stable")
    if rng.random() < 0.5:
        n_left = 1 + int(np.argmax(np.diff(q[order])))
    else:
        share = np.cumsum(of.mass[order])[:-1] / np.sum(of.mass)
        n_left = 1 + int(np.argmin(np.abs(share - rng.uniform(0.35, 0.65))))
    sides = np.full(n_classes, -1, dtype=np.int64)
    sides[of.classes[order[n_left:]]] = 1
    return normal_form(sides)


def at_random(of: ClassMeans, n_classes: int, rng: np.random.Generator) -> IndexArray | None:
    """The classes separated along a random direction or along the difference of two means; None for one class."""
    if len(of.classes) < 2:
        return None
    if rng.random() < 0.5:
        i, j = rng.choice(len(of.classes), 2, replace=False)
        d = of.means[i] - of.means[j]
    else:
        d = rng.standard_normal((1, of.means.shape[1]))[0]
    return _along_line(of, d, n_classes, rng)


def recursive(of: ClassMeans, n_classes: int, depth: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Sides and labels of a tree: classes separated along random directions, those of either side again, and so on.

    Nodes with fewer than two classes separate the first class from the others, as in a tree without samples: what soft
    trees reach is better with one bipartition for all these nodes than with random ones.
    """
    upper, last = topology.upper(depth), topology.last(depth)
    sides, labels = np.ones((len(upper), n_classes), dtype=np.int64), np.zeros((len(last), 2), dtype=np.int64)
    sides[:, 0] = -1
    here = [of.classes] + [of.classes[:0]] * (last.stop - 1)
    for t in upper:
        some = np.isin(of.classes, here[t])
        if np.sum(some) > 1:
            d = rng.standard_normal((1, of.means.shape[1]))[0]
            sides[t] = _along_line(ClassMeans(of.classes[some], of.means[some], of.mass[some]), d, n_classes, rng)
        right = sides[t][here[t]] > 0
        here[topology.left(t)], here[topology.right(t)] = here[t][~right], here[t][right]
    mass = np.zeros(n_classes)
    mass[of.classes] = of.mass
    for k, t in enumerate(last):
        heaviest = here[t][np.argsort(-mass[here[t]], kind="stable")]
        others = rng.permutation(np.setdiff1d(np.arange(n_classes), heaviest))
        labels[k] = rng.permutation(np.concatenate([heaviest, others])[:2])
    return sides, labels


def candidates(of: ClassMeans, n_classes: int, n_leaves: int, rng: np.random.Generator) -> list[IndexArray]:
    """Bipartitions of the classes; if some leave a leaf for each class on both sides, only these.

    ``n_leaves`` is the number of leaves on each side.
    """
    if len(of.classes) < 2:
        return []
    if len(of.classes) <= _MAX_ENUMERATED:
        rest = of.classes[1:]
        ways = [_with_right(n_classes, some) for k in range(len(rest)) for some in itertools.combinations(rest, k + 1)]
    else:
        pairs = list(itertools.combinations(range(len(of.classes)), 2))
        lines = [of.means[i] - of.means[j] for i, j in (pairs[k] for k in rng.permutation(len(pairs))[:_LINES])]
        lines += list(rng.standard_normal((_LINES, of.means.shape[1])))
        ways = [_along_line(of, d, n_classes, rng) for d in lines]
    different = list({sides.tobytes(): sides for sides in ways}.values())
    n_right = [np.count_nonzero(sides[of.classes] > 0) for sides in different]
    fitting = [sides for sides, n in zip(different, n_right, strict=True) if max(n, len(of.classes) - n) <= n_leaves]
    return fitting or different


def _with_right(n_classes: int, right: tuple[int, ...]) -> IndexArray:
    """The bipartition with these classes on the right."""
    sides = np.full(n_classes, -1, dtype=np.int64)
    sides[list(right)] = 1
    return normal_form(sides)
