"""What a search over lists of supports writes down for its proof.

A support that is solved leaves multipliers, which prove something about every support of that tree node: a step that
raises a table of bounds (docs/proof.md).  Sides that follow from others, and sides that no split can take, become
decisions with a leaf whose multipliers show that taking the other side would cost too much.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.listed_supports import Samples, Table
from margotree.engines.bnb.log import sides
from margotree.problem import Problem
from margotree.problem.problem import FloatArray
from margotree.proof.write import NOTHING, Steps, point

Index = NDArray[np.int64]

#: Widths of rounded losses at which Newton's method ends (`engines.kernels.newton`): when nothing is known, when warm.
_WIDTHS = np.sort(np.concatenate([10.0 ** -np.arange(12.0), 0.03 * 10.0 ** -np.arange(10.0)]))
#: Seconds to write a leaf that names nothing.
_SECONDS = 1e-5
#: Widths that are looked at closely.
_TRIES = 6
#: Multipliers that add up to more than this share of all costs are those of another width.
_BALANCED = 1e-6
#: Less than the truth in the last digits: what a checker makes of a sample's cost is a hair less, too.
_SHADE = 1.0 - 2.0**-50
#: Multipliers of this share of their cost are at full cost.
_FULL = 1.0 - 1e-14
#: What a checker may take off for its rounding, at most: this many units per sample and size of a multiplier.
_UNITS = 8.0 * 2.0**-53
#: Multipliers of sides too close to each other prove this much more than is asked for; steps to find them.
_AMPLE, _STEPS = 1.0 + 1e-6, 60


@dataclass(eq=False)
class Note:
    """What a proof knows of a search node: its number, and the place of every sample that it was told of."""

    number: int
    place: NDArray[np.uint16]

    def child(self, number: int) -> Note:
        return Note(number=number, place=self.place.copy())


class Multipliers(NamedTuple):
    """``y_i mu_i`` of the members of a tree node, the position of the one that balances the others, and the value."""

    v: FloatArray
    balance: int
    value: float


class SupportLog:
    """The proof of one search over supports, as it grows; ``unit`` brings values of its problem to the user's."""

    def __init__(self, steps: Steps, problem: Problem, weights: FloatArray, unit: float) -> None:
        """``problem`` has equal samples merged, and ``weights`` are their sums, correctly rounded."""
        self.steps, self.unit = steps, unit
        self.weakest = math.inf  # the least own bound of a search node that was closed
        self.y, self.T = np.array(problem.y), problem.n_nodes
        self.cost = np.outer(problem.C, weights) * _SHADE
        self.side_of = sides(self.T).astype(float)
        self._nodes = 1
        self._turn = threading.RLock()

    def split(self, kind: bytes, node: int, which: int, t: int) -> tuple[int, int]:
        """A decision about a sample (left, right) or a feature (used, not used): numbers of the two search nodes."""
        with self._turn:
            first, self._nodes = self._nodes, self._nodes + 2
            self.steps.split(kind, node, which, t, first, first + 1)
        return first, first + 1

    def raise_bounds(self, node: int, t: int, members: Index, side: FloatArray, found: Multipliers) -> None:
        """Multipliers of tree node ``t`` that hold at this search node and below it."""
        with self._turn:
            self.steps.raise_bounds(node, t, self._point(t, members, side, found))

    def shut(self, node: int, bound: float) -> None:
        """A search node closed by what is known of its supports."""
        with self._turn:
            self.weakest = min(self.weakest, bound)
            self.steps.leaf(node, [NOTHING] * self.T)

    def shut_by(self, node: int, t: int, members: Index, side: FloatArray, found: Multipliers) -> None:
        """A search node closed by these multipliers of one tree node."""
        with self._turn:
            points = [NOTHING] * self.T
            points[t] = self._point(t, members, side, found)
            self.steps.leaf(node, points)

    def one_by_one(self, node: int, t: int, supports: list[set[int]]) -> list[int]:
        """Decide features of tree node ``t`` until these supports are apart; returns the search node of each.

        What is beside them is closed by what is known of it.
        """
        numbers = [node] * len(supports)
        waiting = [(node, list(range(len(supports))))]
        while waiting:
            node, group = waiting.pop()
            if not group:
                self.shut(node, math.inf)
            elif len(group) == 1:
                numbers[group[0]] = node
            else:
                count = np.bincount([j for k in group for j in sorted(supports[k])])
                j = int(np.argmax(np.where(count < len(group), count, 0)))
                used, unused = self.split(b"F", node, j, t)
                waiting.append((used, [k for k in group if j in supports[k]]))
                waiting.append((unused, [k for k in group if j not in supports[k]]))
        return numbers

    def close(self, data: tuple[Any, ...], bound: float) -> None:
        """A record that was left waiting until its bound sufficed, or until the end."""
        self.shut(data[-1].number, bound)

    def seconds_to_close(self, open_nodes: int) -> float:
        return _SECONDS * open_nodes

    def drop(self) -> None:
        """Nobody wants this proof any more: there is nothing that would go on by itself."""

    def finish(self) -> Steps:
        return self.steps

    def _point(self, t: int, members: Index, side: FloatArray, found: Multipliers) -> bytes:
        cost, v = self.cost[t][members], found.v
        full = v == cost
        given = (v != 0.0) & ~full
        given[found.balance] = full[found.balance] = False
        lists = members[full], members[given], v[given] * self.unit
        return point(*lists, int(members[found.balance]), rest=False)


def multipliers_of(
    samples: Samples,
    members: Index,
    side: FloatArray,
    eps: float,
    table: Table,
    s: int,
    cost: FloatArray,
    wanted: float,
    guess: int,
) -> tuple[Multipliers | None, int]:
    """The dual point that belongs to the hyperplane found last on support ``s``, None if none is found; and its width.

    ``cost`` is what violations cost in the proof.  Newton's method ends at some width of the rounded losses, at which
    their slopes are the multipliers; here widths are tried, the ``guess`` first, until one is worth what is ``wanted``.
    """
    cols = table.cols[s, : table.size[s]]
    theta = table.theta[s, : len(cols) + 1]
    X, y = samples.X[np.ix_(cols, members)].T, samples.y[members]
    h = X @ theta[:-1] + theta[-1]
    lack, held = 1.0 - y * h, np.where(side != 0.0, np.maximum(0.0, np.where(side < 0, eps, 0.0) - side * h), 0.0)
    hard, shared = _hardness(samples, members, side, cols, cost)
    pull = y * side * held * hard / shared
    best, at = None, guess
    for k in _promising(X, y, cost, lack, pull, guess):
        v = cost * np.clip(lack / _WIDTHS[k], 0.0, 1.0) + pull / _WIDTHS[k]
        found = _balanced(X, y, cost, side, eps, v, np.abs(lack - 0.5 * _WIDTHS[k]))
        if found is not None and (best is None or found.value > best.value):
            best, at = found, k
        if best is not None and best.value >= wanted:
            break
    return best, at


def _promising(
    X: FloatArray, y: FloatArray, cost: FloatArray, lack: FloatArray, pull: FloatArray, guess: int
) -> Iterator[int]:
    """Widths: first the guess, then others, best first, if their multipliers add up to little."""
    yield guess
    widths = _WIDTHS[:, None]
    v = cost * np.clip(lack / widths, 0.0, 1.0) + pull / widths
    value = v.sum(axis=1) - 0.5 * np.square((y * v) @ X).sum(axis=1)
    off = np.abs(v @ y) > _BALANCED * (cost.sum() + np.abs(v).sum(axis=1))
    yield from np.argsort(np.where(off, np.inf, -value))[:_TRIES].tolist()


def _hardness(
    samples: Samples, members: Index, side: FloatArray, cols: Index, cost: FloatArray
) -> tuple[float, FloatArray | float]:
    """How hard sides are held, and how many members share in it: those made one by `listed_supports.merged` do."""
    cells = 6
    for j in cols.tolist():
        cells = min(cells * int(samples.levels[j]), 1 << 40)
    if 2 * cells > len(members):
        return max(float(np.max(cost, initial=0.0)), 1e-12), 1.0
    code = (samples.y[members] > 0) * 3 + side.astype(np.int64) + 1
    for j in cols.tolist():
        code = code * int(samples.levels[j]) + samples.code[j, members]
    _, group, count = np.unique(code, return_inverse=True, return_counts=True)
    return float(np.max(np.bincount(group, weights=cost))), count[group].astype(float)


def _balanced(
    X: FloatArray, y: FloatArray, cost: FloatArray, side: FloatArray, eps: float, v: FloatArray, far: FloatArray
) -> Multipliers | None:
    """These multipliers, each in its range, with one that takes what they do not add up to; prefers who is not far."""
    along, against = side == y, side == -y
    v = np.clip(v, np.where(against, -np.inf, 0.0), np.where(along, np.inf, cost))
    v = np.where(~along & (v >= cost * _FULL), cost, v)
    shift = -math.fsum((y * v).tolist()) * y
    room = np.where(shift > 0.0, np.where(along, np.inf, cost) - v, v - np.where(against, -np.inf, 0.0))
    fits = room > np.abs(shift) + 1e-13 * np.abs(v).sum()
    if not np.any(fits):
        return None
    k = int(np.argmin(np.where(fits, far, np.inf)))
    v[k] += shift[k]
    return Multipliers(v, k, _value(X, y, cost, side, eps, v))


def _value(X: FloatArray, y: FloatArray, cost: FloatArray, side: FloatArray, eps: float, v: FloatArray) -> float:
    """What a checker makes of multipliers on these features at least."""
    d, along, against = np.where(side < 0, eps, 0.0), side == y, side == -y
    phi = np.where(along, np.minimum(cost * np.maximum(0.0, 1.0 - d) + v * d, v * np.maximum(1.0, d)), v)
    phi = np.where(against, cost * (1.0 + d) - v * d, phi)
    size = np.where(along | against, (cost + np.abs(v)) * (1.0 + d), np.abs(v))
    units = _UNITS * (len(y) + 64)
    u = np.abs((y * v) @ X) + units * (np.abs(v) @ np.abs(X))
    return float(phi.sum() - units * size.sum() - 0.5 * (u @ u) * (1.0 + units))


def too_close(
    Z: FloatArray, y: FloatArray, cost: FloatArray, side: FloatArray, eps: float, target: float, new: int
) -> Multipliers | None:
    """Multipliers that show that no split on features ``Z`` (one per column) worth less than ``target`` takes these
    sides; None if none are found.  It will be due to sample ``new``, unless that is -1."""
    right, left = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
    if not len(right) or not len(left):
        return None
    target *= _AMPLE
    first = _pair(Z, right, left, new) if new >= 0 else (int(right[0]), int(left[0]))
    weight = _nearest(Z, right, left, first, 0.5 * eps * eps / target)
    distance = float(np.sum(np.square(weight @ Z)))
    most = 2.0 * target / eps
    A = min(most, eps / distance) if distance > 0.0 else most
    v = y * weight * A
    k = int(np.argmax(np.abs(v)))
    v[k] -= y[k] * math.fsum((y * v).tolist())
    value = _value(Z, y, cost, side, eps, v)
    return Multipliers(v, k, value) if value >= target else None


def _pair(Z: FloatArray, right: Index, left: Index, new: int) -> tuple[int, int]:
    """This sample and the nearest one on the other side; the one on the right first."""
    others = left if new in right else right
    near = int(others[np.argmin(np.square(Z[others] - Z[new]).sum(axis=1))])
    return (new, near) if others is left else (near, new)


def _nearest(Z: FloatArray, right: Index, left: Index, first: tuple[int, int], enough: float) -> FloatArray:
    """Weights, adding up to 1 on the right and to -1 on the left, of points of the two sides' hulls whose distance is
    least, or its square below half of ``enough`` (Wolfe's method, from the ``first`` pair)."""
    pairs, lam = [first], np.ones(1)
    for _ in range(_STEPS):
        D = np.array([Z[r] - Z[q] for r, q in pairs])
        x = lam @ D
        if x @ x <= 0.5 * enough:
            break
        new = (int(right[np.argmin(Z[right] @ x)]), int(left[np.argmax(Z[left] @ x)]))
        if new in pairs or x @ x - x @ (Z[new[0]] - Z[new[1]]) <= 1e-14 * (x @ x):
            break
        pairs, lam = [*pairs, new], np.append(lam, 0.0)
        while True:
            D = np.array([Z[r] - Z[q] for r, q in pairs])
            to = _flat(D)
            short = to <= 1e-13
            if not np.any(short):
                lam = to
                break
            share = np.min(lam[short] / np.maximum(lam[short] - to[short], 1e-300))
            lam = np.maximum((1.0 - share) * lam + share * to, 0.0)
            keep = lam > 1e-14
            keep[short & (lam <= np.min(lam[short]))] = False
            pairs, lam = [pair for pair, kept in zip(pairs, keep, strict=True) if kept], lam[keep] / lam[keep].sum()
    weight = np.zeros(len(Z))
    for (r, q), share in zip(pairs, lam.tolist(), strict=True):
        weight[r] += share
        weight[q] -= share
    return weight


def _flat(D: FloatArray) -> FloatArray:
    """Weights adding up to 1 of the point nearest to the origin in the flat through the rows of ``D``."""
    if len(D) == 1:
        return np.ones(1)
    if len(D) == 2:
        step = D[1] - D[0]
        share = -float(D[0] @ step) / max(float(step @ step), 1e-300)
        return np.array([1.0 - share, share])
    rest, *_ = np.linalg.lstsq((D[1:] - D[0]).T, -D[0], rcond=None)
    return np.append(1.0 - rest.sum(), rest)
