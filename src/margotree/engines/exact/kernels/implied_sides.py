"""Implied sides: multipliers which prove that a sample cannot go to one side of a tree node (docs/proof.md).

A sample must go to one side of a tree node if no split with a value below the cutoff sends it to the other side
together with the samples that are already placed there. The place of a sample is the tree node that it has reached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.hulls import first_pair, nearest_points
from margotree.engines.exact.kernels.listed_supports import Samples
from margotree.engines.exact.kernels.node_multipliers import UNITS, phi_of, put_point_head
from margotree.engines.exact.kernels.proof_bytes import (
    LEAF_HEAD,
    LEAF_STEP,
    POINT_HEAD,
    SAMPLE_SPLIT,
    SPLIT_BYTES,
    ByteBuffer,
    put_float,
    put_head,
    put_integer,
    put_split,
)
from margotree.engines.numba_backend import inner, kernel, struct

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Places = NDArray[np.uint16]

#: Multipliers of sides that are too close prove this factor times the target.
_AMPLE = 1.0 + 1e-6


@struct
class ProofTerms(NamedTuple):
    """What the values of a proof depend on."""

    sides: F8  # the side taken at a tree node (row) by a sample whose place is the column
    cost: F8  # (tree nodes, samples)
    eps: float
    unit: float  # factor from multipliers to those of the user's problem


@struct
class PlacedSamples(NamedTuple):
    """For each upper tree node with one support: the samples with a side there in the proof, and their features."""

    cols: I8
    size: I8  # features of the support; -1: there are several supports
    n_placed: I8  # number of samples; -1: not collected yet
    sample_ids: I8
    side: F8
    Z: F8  # (upper tree nodes, features, samples)
    h: F8  # scratch
    base: F8  # (upper tree nodes, 2): their value with multipliers of 0, and the sizes of its terms, for rounding


def new_placed_samples(n_upper: int, widest: int, n_samples: int) -> PlacedSamples:
    """Allocate the memory, with space for one sample more than ``n_samples``."""
    none, m = np.full(n_upper, -1), n_samples + 1
    return PlacedSamples(
        np.zeros((n_upper, widest), np.int64), none.copy(), none, np.zeros((n_upper, m), np.int64),
        np.zeros((n_upper, m)), np.zeros((n_upper, widest, m)), np.zeros(m), np.zeros((n_upper, 2)),
    )  # fmt: skip


@kernel()
def prove_sides(
    samples: Samples, terms: ProofTerms, placed: PlacedSamples, place: I8, known: Places, index: I8, target: float,
    numbers: I8, buffer: ByteBuffer,
) -> tuple[int, int, bool]:  # fmt: skip
    """Write decisions which move the samples ``index`` to their ``place``.

    A decision is written only if the other side can be excluded, and with it a leaf that closes the other side.

    Parameters
    ----------
    place, known
        The places of all samples in the search, and their places in the proof; ``known`` is updated.
    index
        The samples.
    target
        The value above which a side is closed.
    numbers
        The number of the search node, which changes with each decision, and the first free number; updated.
    buffer
        Receives the bytes.

    Returns
    -------
    end, decisions, has_room
        Where the bytes end, the number of decisions, and whether there was space for all.
    """
    return write_implied_sides(samples, terms, placed, place, known, index, target, numbers, buffer, 0)


@inner()
def write_implied_sides(
    samples: Samples, terms: ProofTerms, placed: PlacedSamples, place: I8, known: Places, index: I8, target: float,
    numbers: I8, buffer: ByteBuffer, at: int,
) -> tuple[int, int, bool]:  # fmt: skip
    """`prove_sides`, with bytes from ``at`` on."""
    T, written = terms.sides.shape[0], 0
    for t in range(placed.size.size):
        d = placed.size[t]
        for q in range(index.size if d >= 0 else 0):
            j, side = index[q], terms.sides[t, place[index[q]]]
            if known[j] != t or abs(side) != 1.0:
                continue
            if at + SPLIT_BYTES + LEAF_HEAD + T + POINT_HEAD + 24 * (d + 3) > buffer.out.size:
                return at, written, False
            if placed.n_placed[t] < 0:
                _collect_placed(samples, terms, placed, known, t)
            begin = at + SPLIT_BYTES + LEAF_HEAD + t
            end, _ = _separation_point(samples, terms, placed, t, j, -side, target, buffer, begin)
            if end > 0:
                at, written = _write_decision(buffer, at, end, t, T, j, side, numbers), written + 1
                known[j] = 2 * t + (2 if side > 0.0 else 1)
                _add_placed(samples, terms, placed, t, j, side)
    return at, written, True


@inner()
def _write_decision(buffer: ByteBuffer, at: int, end: int, t: int, T: int, j: int, side: float, numbers: I8) -> int:
    """Write the decision about sample ``j``, and the leaf around its point, which ends at ``end`` and is already
    written."""
    left, right = numbers[1], numbers[1] + 1
    at = put_split(buffer, at, SAMPLE_SPLIT, numbers[0], j, t, left, right)
    numbers[0], other = (right, left) if side > 0.0 else (left, right)
    numbers[1] += 2
    at = put_head(buffer, at, LEAF_STEP, other)
    for r in range(t):
        put_integer(buffer, at + r, 0, 1)
    for r in range(T - 1 - t):
        put_integer(buffer, end + r, 0, 1)
    return end + T - 1 - t


@kernel()
def exclude_side(
    samples: Samples,
    terms: ProofTerms,
    placed: PlacedSamples,
    known: Places,
    t: int,
    j: int,
    side: float,
    target: float,
    buffer: ByteBuffer,
) -> tuple[int, float]:
    """Write the multipliers which prove that sample ``j`` cannot go to ``side`` (-1 or 1) of tree node ``t``.

    They prove that every split which sends it there, and separates the placed samples, has a value above ``target``.
    With ``j`` -1 they prove it of the placed samples alone. Returns where the bytes end (0 if there are no such
    multipliers), and the value that they prove.
    """
    if placed.n_placed[t] < 0:
        _collect_placed(samples, terms, placed, known, t)
    return _separation_point(samples, terms, placed, t, j, side, target, buffer, 0)


@inner()
def _collect_placed(samples: Samples, terms: ProofTerms, placed: PlacedSamples, known: Places, t: int) -> None:
    """Collect the samples that take a side at tree node ``t`` in the proof."""
    placed.n_placed[t] = 0
    placed.base[t, 0] = placed.base[t, 1] = 0.0
    for i in range(known.size):
        side = terms.sides[t, known[i]]
        if abs(side) == 1.0:
            _add_placed(samples, terms, placed, t, i, side)


@inner()
def _add_placed(samples: Samples, terms: ProofTerms, placed: PlacedSamples, t: int, i: int, side: float) -> None:
    """Add sample ``i`` with this side."""
    k, d = placed.n_placed[t], terms.eps if side < 0.0 else 0.0
    placed.n_placed[t] = k + 1
    _store_placed(samples, placed, t, k, i, side)
    placed.base[t, 0] += phi_of(samples.y[i], side, terms.cost[t, i], d, 0.0)
    placed.base[t, 1] += terms.cost[t, i] * (1.0 + d)


@inner()
def _store_placed(samples: Samples, placed: PlacedSamples, t: int, k: int, i: int, side: float) -> None:
    """Store sample ``i`` with its side and features at position ``k``."""
    placed.sample_ids[t, k], placed.side[t, k] = i, side
    for r in range(placed.size[t]):
        placed.Z[t, r, k] = samples.X[placed.cols[t, r], i]


@inner()
def _separation_point(
    samples: Samples,
    terms: ProofTerms,
    placed: PlacedSamples,
    t: int,
    j: int,
    other_side: float,
    target: float,
    buffer: ByteBuffer,
    at: int,
) -> tuple[int, float]:
    """Write the multipliers which show that no split below ``target`` separates the placed samples, with sample ``j``
    on ``other_side`` (-1: without it).

    Returns where they end, 0 if none are found, and the value.
    """
    k, d, new = placed.n_placed[t], placed.size[t], -1
    if j >= 0:
        _store_placed(samples, placed, t, k, j, other_side)
        new, k = k, k + 1
    side, Z = placed.side[t, :k], placed.Z[t, :d]
    target *= _AMPLE
    right, left = first_pair(Z, side, new, placed.h)
    if right < 0 or left < 0:
        return 0, -np.inf
    pairs, lam = np.empty((d + 3, 2), np.int64), np.empty(d + 3)
    count, distance = nearest_points(Z, side, right, left, 0.5 * terms.eps * terms.eps / target, pairs, lam, placed.h)
    most = 2.0 * target / terms.eps
    scale = min(most, terms.eps / distance) if distance > 0.0 else most
    positions, v = np.empty(2 * d + 6, np.int64), np.empty(2 * d + 6)
    count = _weights_of_samples(pairs, lam, count, positions, v)
    balance = _balanced_multipliers(samples.y, placed.sample_ids[t], positions[:count], scale, v)
    value = _value(samples, terms, placed, t, j, other_side, positions[:count], v, k)
    if value < target:
        return 0, value
    return _put_point(terms, placed.sample_ids[t], positions[:count], v, balance, buffer, at), value


@inner()
def _weights_of_samples(pairs: I8, lam: F8, count: int, positions: I8, v: F8) -> int:
    """The samples in the first ``count`` pairs, each once, with the sums of their weights: positive on the right,
    negative on the left. Returns their number."""
    found = 0
    for p in range(count):
        for way in range(2):
            q = 0
            while q < found and positions[q] != pairs[p, way]:
                q += 1
            if q == found:
                positions[q], v[q] = pairs[p, way], 0.0
                found += 1
            v[q] += lam[p] if way == 0 else -lam[p]
    return found


@inner()
def _balanced_multipliers(y: F8, index: I8, positions: I8, scale: float, v: F8) -> int:
    """Compute multipliers from weights; the largest one takes the sum of the others. Returns its position."""
    balance, rest = 0, 0.0
    for q in range(positions.size):
        v[q] *= y[index[positions[q]]] * scale
        rest += y[index[positions[q]]] * v[q]
        if abs(v[q]) > abs(v[balance]):
            balance = q
    v[balance] -= y[index[positions[balance]]] * rest
    return balance


@inner()
def _value(
    samples: Samples,
    terms: ProofTerms,
    placed: PlacedSamples,
    t: int,
    j: int,
    other_side: float,
    positions: I8,
    v: F8,
    n_samples: int,
) -> float:
    """A lower bound on the value that a checker computes (see `node_multipliers.value_of`); all other samples have the
    multiplier 0."""
    units, phi, size = UNITS * (n_samples + 64), placed.base[t, 0], placed.base[t, 1]
    if j >= 0:
        d = terms.eps if other_side < 0.0 else 0.0
        phi += phi_of(samples.y[j], other_side, terms.cost[t, j], d, 0.0)
        size += terms.cost[t, j] * (1.0 + d)
    for q in range(positions.size):
        i, side = placed.sample_ids[t, positions[q]], placed.side[t, positions[q]]
        y, cost, d = samples.y[i], terms.cost[t, i], terms.eps if side < 0.0 else 0.0
        phi += phi_of(y, side, cost, d, v[q]) - phi_of(y, side, cost, d, 0.0)
        size += (cost + abs(v[q])) * (1.0 + d)
    norm2 = 0.0
    for r in range(placed.size[t]):
        u = span = 0.0
        for q in range(positions.size):
            part = v[q] * placed.Z[t, r, positions[q]]
            u += samples.y[placed.sample_ids[t, positions[q]]] * part
            span += abs(part)
        norm2 += (abs(u) + units * span) ** 2
    return phi - units * size - 0.5 * norm2 * (1.0 + units)


@inner()
def _put_point(terms: ProofTerms, index: I8, positions: I8, v: F8, balance: int, buffer: ByteBuffer, at: int) -> int:
    """Write these multipliers, all with values, and all other samples at 0; return the position after them."""
    given = positions.size - 1
    where = at + POINT_HEAD
    end = where + 4 * given
    for q in range(positions.size):
        if q != balance:
            where = put_integer(buffer, where, index[positions[q]], 4)
            end = put_float(buffer, end, v[q] * terms.unit)
    put_point_head(buffer, at, 3, 0, given, index[positions[balance]])
    return end
