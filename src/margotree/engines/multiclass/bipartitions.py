"""Which classes a new upper split separates: by the means of the classes, by a single feature, or by what an SVM parts.

A bipartition gives every class a side; the first class always wants to go left.
"""

from __future__ import annotations

import itertools

import numpy as np

from margotree.engines.local_search.node_samples import Rows
from margotree.engines.local_search.training_data import Terms
from margotree.problem.blocks import FloatArray, IndexArray

#: Up to so many classes at a node all bipartitions are tried one by one; beyond, those that lines through means make.
_ALL = 5
#: Random lines through the means.
_LINES = 8
#: The best feature is looked for among so many samples at most.
_SAMPLE = 4_000


def class_means(terms: Terms, rows: Rows) -> tuple[IndexArray, FloatArray, FloatArray]:
    """The classes among the samples, their means, and their weights."""
    mass = terms.mass(rows)
    present = np.flatnonzero(mass > 0)
    code, weight = terms.code[rows], terms.weight[rows]
    means = [np.average(terms.X[rows[code == k]], axis=0, weights=weight[code == k]) for k in present]
    return present, np.array(means), mass[present]


def turned(sides: IndexArray) -> IndexArray:
    """The bipartition with the first class on the left, and some class on the right."""
    sides = sides if sides[0] < 0 else -sides
    if not np.any(sides > 0):
        sides = sides.copy()
        sides[-1] = 1
    return sides


def along_line(
    present: IndexArray, means: FloatArray, mass: FloatArray, d: FloatArray, n_classes: int, rng: np.random.Generator
) -> IndexArray:
    """The classes parted along a direction: where their means lie farthest apart, or into sides of like weight."""
    q = means @ d
    order = np.argsort(q, kind="stable")
    if rng.random() < 0.5:
        cut = 1 + int(np.argmax(np.diff(q[order])))
    else:
        share = np.cumsum(mass[order])[:-1] / np.sum(mass)
        cut = 1 + int(np.argmin(np.abs(share - rng.uniform(0.35, 0.65))))
    sides = np.full(n_classes, -1, dtype=np.int64)
    sides[present[order[cut:]]] = 1
    return turned(sides)


def by_means(terms: Terms, rows: Rows, rng: np.random.Generator, *, between: bool) -> IndexArray | None:
    """Class means parted along a random direction, or along the difference of two of them."""
    present, means, mass = class_means(terms, rows)
    if len(present) < 2:
        return None
    if between:
        i, j = rng.choice(len(present), 2, replace=False)
        d = means[i] - means[j]
    else:
        d = rng.standard_normal(means.shape[1])
    return along_line(present, means, mass, d, terms.task.n_classes, rng)


def candidates(terms: Terms, t: int, rows: Rows, rng: np.random.Generator) -> list[IndexArray]:
    """Bipartitions worth an SVM each; where leaves are as many as classes, only those that leave each class one."""
    present, means, mass = class_means(terms, rows)
    K = terms.task.n_classes
    found: dict[bytes, IndexArray] = {}

    def add(right: IndexArray) -> None:
        sides = np.full(K, -1, dtype=np.int64)
        sides[right] = 1
        sides = turned(sides)
        found[sides.tobytes()] = sides

    if len(present) < 2:
        return []
    if len(present) <= _ALL:
        for size in range(1, len(present)):
            for some in itertools.combinations(present[1:], size):
                add(np.array(some))
    else:
        lines = [means[i] - means[j] for i, j in itertools.combinations(range(len(present)), 2)]
        lines = [lines[i] for i in rng.permutation(len(lines))[:_LINES]]
        lines += list(rng.standard_normal((_LINES, means.shape[1])))
        for d in lines:
            sides = along_line(present, means, mass, d, K, rng)
            found[sides.tobytes()] = sides
    return _roomy(list(found.values()), present, 2 ** (terms.depth - (t + 1).bit_length()))


def _roomy(ways: list[IndexArray], present: IndexArray, leaves: int) -> list[IndexArray]:
    """Those with room for every class below, if there are any."""
    good = [s for s in ways if max(np.count_nonzero(s[present] > 0), np.count_nonzero(s[present] < 0)) <= leaves]
    return good or ways


def gini_left(mass_left: FloatArray, mass_all: FloatArray) -> FloatArray:
    """Impurity after a split, for one or many splits: total weight less the squared classes' over the sides'."""
    left, right = mass_left, mass_all - mass_left
    size_left, size_right = np.sum(left, axis=-1), np.sum(right, axis=-1)
    pure = np.zeros_like(size_left)
    for part, size in ((left, size_left), (right, size_right)):
        pure += np.divide(np.sum(part**2, axis=-1), size, out=np.zeros_like(pure), where=size > 0)
    found: FloatArray = np.sum(mass_all) - pure
    return found


def best_feature(
    terms: Terms, rows: Rows, features: IndexArray, rng: np.random.Generator
) -> tuple[int, float, IndexArray] | None:
    """CART's split: the feature, the share of the samples that goes left, and the sides the classes take by it."""
    some = rows if len(rows) <= _SAMPLE else np.sort(rng.choice(rows, _SAMPLE, replace=False))
    one_hot = np.zeros((len(some), terms.task.n_classes))
    one_hot[np.arange(len(some)), terms.code[some]] = terms.weight[some]
    total = one_hot.sum(axis=0)
    best, found = np.inf, None
    for j in features:
        q = terms.X[some, j]
        order = np.argsort(q, kind="stable")
        steps = np.flatnonzero(np.diff(q[order]) > 0)
        if not len(steps):
            continue
        left = np.cumsum(one_hot[order], axis=0)[steps]
        impurity = gini_left(left, total)
        k = int(np.argmin(impurity))
        if impurity[k] < best:
            best, found = float(impurity[k]), (int(j), int(steps[k]) + 1, left[k])
    if found is None:
        return None
    j, at, left_mass = found
    sides = np.where(2 * left_mass > total, -1, 1)
    return j, at / len(some), sides
