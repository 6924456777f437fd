"""Sides that follow from others: multipliers which show that sides are too close to be told apart (docs/proof.md).

A sample goes to one side of a tree node if no split worth considering sends it to the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.hulls import first_pair, nearest
from margotree.engines.exact.kernels.listed_supports import Samples
from margotree.engines.exact.kernels.node_multipliers import UNITS, phi_of, put_lead
from margotree.engines.exact.kernels.proof_bytes import (
    CLOSED,
    LEAD,
    LEAF,
    SAMPLE,
    SPLIT,
    Pen,
    put,
    put_float,
    put_head,
    put_split,
)
from margotree.engines.numba_backend import inner, kernel, struct

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Place = NDArray[np.uint16]

#: Multipliers of sides too close to each other prove this much more than is asked for.
_AMPLE = 1.0 + 1e-6


@struct
class Terms(NamedTuple):
    """What a proof goes by."""

    sides: F8  # the side taken at a tree node (row) by a sample whose place is the column
    cost: F8  # (tree nodes, samples)
    eps: float
    unit: float  # brings multipliers to the user's problem


@struct
class Placed(NamedTuple):
    """Per upper tree node: samples that the proof knows to take a side there, on the features of its one support."""

    cols: I8
    size: I8  # features of the support; -1: there are several supports
    held: I8  # how many samples; -1: they are not laid out yet
    who: I8
    side: F8
    Z: F8  # (upper tree nodes, features, samples)
    h: F8  # scratch
    base: F8  # (upper tree nodes, 2): what they are worth without multipliers, and sizes, for the rounding


def new_placed(n_upper: int, widest: int, n_samples: int) -> Placed:
    """With room for one more than everybody."""
    none, m = np.full(n_upper, -1), n_samples + 1
    return Placed(
        np.zeros((n_upper, widest), np.int64), none.copy(), none, np.zeros((n_upper, m), np.int64),
        np.zeros((n_upper, m)), np.zeros((n_upper, widest, m)), np.zeros(m), np.zeros((n_upper, 2)),
    )  # fmt: skip


@kernel()
def follow(
    samples: Samples, terms: Terms, placed: Placed, place: I8, known: Place, who: I8, target: float, numbers: I8,
    pen: Pen,
) -> tuple[int, int, bool]:  # fmt: skip
    """Have the proof know that samples ``who`` are where their ``place`` says, if that can be shown: each takes
    decisions, and leaves for the other sides.

    Kept up to date are ``known``, the places that the proof knows, and ``numbers``, the search node's and the first
    that is free.  Returns where the bytes end, how many decisions there are, and whether there was room for all.
    """
    return tell(samples, terms, placed, place, known, who, target, numbers, pen, 0)


@inner()
def tell(
    samples: Samples, terms: Terms, placed: Placed, place: I8, known: Place, who: I8, target: float, numbers: I8,
    pen: Pen, at: int,
) -> tuple[int, int, bool]:  # fmt: skip
    """`follow`, with bytes from ``at`` on."""
    T, told = terms.sides.shape[0], 0
    for t in range(placed.size.size):
        d = placed.size[t]
        for q in range(who.size if d >= 0 else 0):
            j, side = who[q], terms.sides[t, place[who[q]]]
            if known[j] != t or abs(side) != 1.0:
                continue
            if at + SPLIT + LEAF + T + LEAD + 24 * (d + 3) > pen.out.size:
                return at, told, False
            if placed.held[t] < 0:
                _lay_out(samples, terms, placed, known, t)
            begin = at + SPLIT + LEAF + t
            end, _ = _apart(samples, terms, placed, t, j, -side, target, pen, begin)
            if end > 0:
                at, told = _steps(pen, at, end, t, T, j, side, numbers), told + 1
                known[j] = 2 * t + (2 if side > 0.0 else 1)
                _join(samples, terms, placed, t, j, side)
    return at, told, True


@inner()
def _steps(pen: Pen, at: int, end: int, t: int, T: int, j: int, side: float, numbers: I8) -> int:
    """Write the decision about sample ``j`` and the leaf around the point that is written already."""
    left, right = numbers[1], numbers[1] + 1
    at = put_split(pen, at, SAMPLE, numbers[0], j, t, left, right)
    numbers[0], other = (right, left) if side > 0.0 else (left, right)
    numbers[1] += 2
    at = put_head(pen, at, CLOSED, other)
    for r in range(t):
        put(pen, at + r, 0, 1)
    for r in range(T - 1 - t):
        put(pen, end + r, 0, 1)
    return end + T - 1 - t


@kernel()
def too_close(
    samples: Samples, terms: Terms, placed: Placed, known: Place, t: int, j: int, side: float, target: float, pen: Pen
) -> tuple[int, float]:
    """Write the multipliers which show that no split of tree node ``t`` worth less than ``target`` sends sample ``j``
    to this side, others being where the proof knows them to be.

    With ``j`` -1 they show it of the others alone.  Returns where they end, 0 if none are found, and the value.
    """
    if placed.held[t] < 0:
        _lay_out(samples, terms, placed, known, t)
    return _apart(samples, terms, placed, t, j, side, target, pen, 0)


@inner()
def _lay_out(samples: Samples, terms: Terms, placed: Placed, known: Place, t: int) -> None:
    """Those who take a side at tree node ``t``."""
    placed.held[t] = 0
    placed.base[t, 0] = placed.base[t, 1] = 0.0
    for i in range(known.size):
        side = terms.sides[t, known[i]]
        if abs(side) == 1.0:
            _join(samples, terms, placed, t, i, side)


@inner()
def _join(samples: Samples, terms: Terms, placed: Placed, t: int, i: int, side: float) -> None:
    """Sample ``i`` takes this side, too."""
    k, d = placed.held[t], terms.eps if side < 0.0 else 0.0
    placed.held[t] = k + 1
    _put_down(samples, placed, t, k, i, side)
    placed.base[t, 0] += phi_of(samples.y[i], side, terms.cost[t, i], d, 0.0)
    placed.base[t, 1] += terms.cost[t, i] * (1.0 + d)


@inner()
def _put_down(samples: Samples, placed: Placed, t: int, k: int, i: int, side: float) -> None:
    placed.who[t, k], placed.side[t, k] = i, side
    for r in range(placed.size[t]):
        placed.Z[t, r, k] = samples.X[placed.cols[t, r], i]


@inner()
def _apart(
    samples: Samples, terms: Terms, placed: Placed, t: int, j: int, asked: float, target: float, pen: Pen, at: int
) -> tuple[int, float]:
    """Write the multipliers which show that no split worth less than ``target`` tells the placed ones apart, sample
    ``j`` being on the side ``asked``; -1: without it.  Returns where they end, 0 if none are found, and the value."""
    k, d, new = placed.held[t], placed.size[t], -1
    if j >= 0:
        _put_down(samples, placed, t, k, j, asked)
        new, k = k, k + 1
    side, Z = placed.side[t, :k], placed.Z[t, :d]
    target *= _AMPLE
    right, left = first_pair(Z, side, new, placed.h)
    if right < 0 or left < 0:
        return 0, -np.inf
    pairs, lam = np.empty((d + 3, 2), np.int64), np.empty(d + 3)
    count, distance = nearest(Z, side, right, left, 0.5 * terms.eps * terms.eps / target, pairs, lam, placed.h)
    most = 2.0 * target / terms.eps
    scale = min(most, terms.eps / distance) if distance > 0.0 else most
    some, v = np.empty(2 * d + 6, np.int64), np.empty(2 * d + 6)
    count = _those_of(pairs, lam, count, some, v)
    balance = _made_to_balance(samples.y, placed.who[t], some[:count], scale, v)
    value = _value(samples, terms, placed, t, j, asked, some[:count], v, k)
    if value < target:
        return 0, value
    return _put_point(terms, placed.who[t], some[:count], v, balance, pen, at), value


@inner()
def _those_of(pairs: I8, lam: F8, count: int, some: I8, v: F8) -> int:
    """The members of so many pairs, each once, and their weights: above 0 on the right, below on the left."""
    found = 0
    for p in range(count):
        for way in range(2):
            q = 0
            while q < found and some[q] != pairs[p, way]:
                q += 1
            if q == found:
                some[q], v[q] = pairs[p, way], 0.0
                found += 1
            v[q] += lam[p] if way == 0 else -lam[p]
    return found


@inner()
def _made_to_balance(y: F8, who: I8, some: I8, scale: float, v: F8) -> int:
    """Multipliers from weights, the largest of which takes what the others do not add up to; returns its position."""
    balance, rest = 0, 0.0
    for q in range(some.size):
        v[q] *= y[who[some[q]]] * scale
        rest += y[who[some[q]]] * v[q]
        if abs(v[q]) > abs(v[balance]):
            balance = q
    v[balance] -= y[who[some[balance]]] * rest
    return balance


@inner()
def _value(
    samples: Samples, terms: Terms, placed: Placed, t: int, j: int, asked: float, some: I8, v: F8, many: int
) -> float:
    """What a checker makes of them, at least (`multipliers.value_of`); nobody else has a multiplier."""
    units, phi, size = UNITS * (many + 64), placed.base[t, 0], placed.base[t, 1]
    if j >= 0:
        d = terms.eps if asked < 0.0 else 0.0
        phi += phi_of(samples.y[j], asked, terms.cost[t, j], d, 0.0)
        size += terms.cost[t, j] * (1.0 + d)
    for q in range(some.size):
        i, side = placed.who[t, some[q]], placed.side[t, some[q]]
        y, cost, d = samples.y[i], terms.cost[t, i], terms.eps if side < 0.0 else 0.0
        phi += phi_of(y, side, cost, d, v[q]) - phi_of(y, side, cost, d, 0.0)
        size += (cost + abs(v[q])) * (1.0 + d)
    pen = 0.0
    for r in range(placed.size[t]):
        u = span = 0.0
        for q in range(some.size):
            part = v[q] * placed.Z[t, r, some[q]]
            u += samples.y[placed.who[t, some[q]]] * part
            span += abs(part)
        pen += (abs(u) + units * span) ** 2
    return phi - units * size - 0.5 * pen * (1.0 + units)


@inner()
def _put_point(terms: Terms, who: I8, some: I8, v: F8, balance: int, pen: Pen, at: int) -> int:
    """Write these multipliers down, all by number, with everybody else at 0; returns where they end."""
    given = some.size - 1
    where = at + LEAD
    end = where + 4 * given
    for q in range(some.size):
        if q != balance:
            where = put(pen, where, who[some[q]], 4)
            end = put_float(pen, end, v[q] * terms.unit)
    put_lead(pen, at, 3, 0, given, who[some[balance]])
    return end
