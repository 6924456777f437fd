"""Perspective relaxation of the best-subset SVM, solved exactly by an active-set method on its dual.

With a price ``lam`` on every feature that may be used, the relaxation over how much of each is used has the dual

    max  p.a - sum_{j must} v(g_j) - sum_{j may} max(0, v(g_j) - lam),   g = A'a,  0 <= a <= cost,  y.a = 0

where ``v(g) = g^2 / 2``, or its Huber continuation ``M|g| - M^2/2`` beyond ``M`` when weights are limited to
``|w_j| <= M``.  Every feasible ``a`` gives a lower bound, whatever was left undone.  The dual is concave and piecewise
quadratic, so the method walks from piece to piece: a row's multiplier is at 0, at its cost, or free; a feature lies
inside its kink (weight 0), on it (it is used in part: this is where the search branches), beyond it (``w_j = g_j``),
or at the limit ``M``.  With all features "must" this is an ordinary SVM.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from margotree.engines.subset.basis import (
    N_COLUMNS,
    N_FREE,
    Basis,
    add_column,
    add_row,
    clear,
    multipliers,
    remove_column,
    remove_row,
)
from margotree.engines.subset.compiled import inner
from margotree.engines.subset.pieces import dual_value, feature_limit, kink_at, next_piece, place_features
from margotree.engines.subset.point import (
    FREE,
    I1,
    INSIDE,
    KINK,
    LIMIT,
    LINEAR,
    LOW,
    PIVOTS,
    QUAD,
    REACH,
    UP,
    VALUE,
    B,
    Point,
    refresh,
)
from margotree.engines.subset.rows import Rows
from margotree.problem.problem import FloatArray

# Outcomes of a run.
OPTIMAL, CUT, STALLED, INFEASIBLE = 0, 1, 2, 3

#: Damps steps that are not unique because free rows are linearly dependent.
_RIDGE = 1e-10
#: Changes below this share of the step's largest entry are taken for rounding noise.
_NOISE = 1e-12


@njit(cache=True, nogil=True)
def run(
    rows: Rows,
    point: Point,
    basis: Basis,
    kind: I1,
    lam: float,
    limit: float,
    cutoff: float,
    tol: float,
    max_pivots: int,
) -> int:
    """Climb from ``point`` until margins are right within ``tol``, the value reaches ``cutoff``, or pivots run out."""
    point.num[REACH] = _reach(rows)
    refresh(rows, point)
    place_features(point, kind, lam, limit)
    outcome = STALLED
    if _open_basis(rows, point, basis):
        outcome = _climb(rows, point, basis, kind, lam, limit, cutoff, tol, max_pivots)
    _fill_weights(rows, point, basis, limit)
    refresh(rows, point)
    point.num[VALUE] = dual_value(point, kind, lam, limit)
    return outcome


@inner
def _reach(rows: Rows) -> float:
    """No problem whose hard rows agree has a value beyond this."""
    total = 0.0
    for i in range(rows.cost.size):
        if rows.cost[i] < np.inf:
            total += rows.cost[i]
    return 1e13 + 1e6 * total


@inner
def _climb(
    rows: Rows,
    point: Point,
    basis: Basis,
    kind: I1,
    lam: float,
    limit: float,
    cutoff: float,
    finest: float,
    max_pivots: int,
) -> int:
    r = kink_at(lam, limit)
    for _ in range(max_pivots):
        point.num[PIVOTS] += 1
        tol = _tolerance(point, finest)
        any_free = basis.n[N_FREE] > 0
        if any_free:
            went = _step(rows, point, basis, kind, r, limit, tol)
            if went < 0:
                return INFEASIBLE
            value = dual_value(point, kind, lam, limit)
            if value >= point.num[REACH]:
                return INFEASIBLE
            if value >= cutoff:
                return CUT
            if went == 0:
                continue
        _fill_weights(rows, point, basis, limit)
        if basis.n[N_FREE] + 2 > basis.free.size:
            return STALLED
        if not any_free:
            moved = _free_worst_pair(rows, point, basis, tol)
        else:
            moved = _release_kink(rows, point, basis, r, limit, tol * (1.0 + r)) or _free_worst_row(
                rows, point, basis, tol
            )
        if not moved:
            return OPTIMAL
    return STALLED


@inner
def _tolerance(point: Point, finest: float) -> float:
    """The tolerance asked for, but nothing finer than what rounding of large multipliers leaves."""
    total = 0.0
    for i in range(point.a.size):
        total += point.a[i]
    return min(finest + 4e-16 * total, 1e-7)


@inner
def _step(rows: Rows, point: Point, basis: Basis, kind: I1, r: float, limit: float, tol: float) -> int:
    """Go to the best point of the working set, or to where something blocks: 1 done, 0 blocked, -1 unbounded."""
    lacks = basis.work[1]
    d = basis.work[2]
    flat = basis.work[3]
    _lacks(rows, point, basis, limit, lacks)
    damped = _direction(rows, point, basis, lacks, tol, d, flat)
    if damped and _rises_for_ever(rows, point, basis, kind, r, limit):
        return -1
    dg = _change(rows, point, basis, d)
    t = max(1.0, _best_step(point, basis, lacks, d, dg)) if damped else 1.0
    t, blocking_row = _row_limit(rows, point, basis, d, t)
    t, blocking_feature = feature_limit(point, kind, dg, r, limit, t)
    if t == np.inf:
        t = 1.0
    _take_step(rows, point, basis, d, dg, t)
    if blocking_feature >= 0:
        j = blocking_feature
        outwards = point.g[j] * dg[j] > 0.0
        _move_feature(rows, point, basis, j, next_piece(point, j, kind, r, limit, outwards))
        return 0
    if blocking_row >= 0:
        i = basis.free[blocking_row]
        up = d[blocking_row] > 0.0
        point.row[i] = UP if up else LOW
        point.a[i] = rows.cost[i] if up else 0.0
        remove_row(basis, blocking_row)
        return 0
    return 0 if damped else 1


@inner
def _rises_for_ever(rows: Rows, point: Point, basis: Basis, kind: I1, r: float, limit: float) -> bool:
    """Whether nothing stops the dual along the flat part of the step: then the hard rows contradict each other."""
    lacks = basis.work[1]
    flat = basis.work[3]
    dg = _change(rows, point, basis, flat)
    t = _best_step(point, basis, lacks, flat, dg)
    t, _ = _row_limit(rows, point, basis, flat, t)
    t, _ = feature_limit(point, kind, dg, r, limit, t)
    return bool(t == np.inf)


@inner
def _change(rows: Rows, point: Point, basis: Basis, d: FloatArray) -> FloatArray:
    """Change of ``g`` along ``d``; what is only rounding noise must not block and is taken for 0."""
    dg = np.zeros(point.g.size)
    largest = 0.0
    for s in range(basis.n[N_FREE]):
        largest = max(largest, abs(d[s]))
        for j in range(dg.size):
            dg[j] += rows.A[basis.free[s], j] * d[s]
    for j in range(dg.size):
        if point.feature[j] == KINK or abs(dg[j]) <= _NOISE * largest:
            dg[j] = 0.0
    return dg


@inner
def _lacks(rows: Rows, point: Point, basis: Basis, limit: float, out: FloatArray) -> None:
    """What every free row lacks to its margin before ``b`` and the kink features count."""
    f = basis.n[N_FREE]
    for s in range(f):
        out[s] = rows.p[basis.free[s]]
    for j in range(point.g.size):
        at = point.feature[j]
        if at in (QUAD, LIMIT):
            w = point.g[j] if at == QUAD else point.sign[j] * limit
            for s in range(f):
                out[s] -= w * rows.A[basis.free[s], j]


@inner
def _direction(
    rows: Rows, point: Point, basis: Basis, lacks: FloatArray, tol: float, d: FloatArray, flat: FloatArray
) -> bool:
    """Step ``d`` of the free multipliers to the best point that keeps the working set.

    The ridge damps it where that point is not unique, or does not exist because the dual rises without end.  If so, the
    answer is True and ``flat`` is what of the step lies in flat directions, scaled.
    """
    f = basis.n[N_FREE]
    c = basis.n[N_COLUMNS]
    k = f - c
    d[:f] = 0.0
    flat[:f] = 0.0
    if k <= 0:
        return False
    Z = np.empty((f, k))
    u = np.zeros(k)
    for q in range(f):
        for r in range(k):
            Z[q, r] = basis.Qt[c + r, q]
            u[r] += Z[q, r] * lacks[q]
    M = _curvature(rows, point, basis, Z)
    _factor(M)
    _solve(M, u)
    _combine(Z, u, d)
    size = _largest(u)
    if _RIDGE * size <= tol:
        return False
    # A second solve leaves nothing but the flat directions.
    for r in range(k):
        u[r] *= _RIDGE / size
    _solve(M, u)
    _combine(Z, u, flat)
    return True


@inner
def _combine(Z: FloatArray, u: FloatArray, out: FloatArray) -> None:
    for q in range(Z.shape[0]):
        for r in range(Z.shape[1]):
            out[q] += u[r] * Z[q, r]


@inner
def _curvature(rows: Rows, point: Point, basis: Basis, Z: FloatArray) -> FloatArray:
    """Second derivative of the dual over the steps ``d = Z u``, with the ridge; its lower triangle."""
    f, k = Z.shape
    M = np.zeros((k, k))
    v = np.empty(k)
    for r in range(k):
        M[r, r] = _RIDGE
    for j in range(point.g.size):
        if point.feature[j] != QUAD:
            continue
        v[:] = 0.0
        for q in range(f):
            share = rows.A[basis.free[q], j]
            for r in range(k):
                v[r] += share * Z[q, r]
        for r in range(k):
            for q in range(r + 1):
                M[r, q] += v[r] * v[q]
    return M


@inner
def _factor(M: FloatArray) -> None:
    """Cholesky factor in place of the lower triangle."""
    for r in range(M.shape[0]):
        for q in range(r + 1):
            s = M[r, q]
            for h in range(q):
                s -= M[r, h] * M[q, h]
            M[r, q] = s / M[q, q] if q < r else np.sqrt(max(s, 0.5 * _RIDGE))


@inner
def _solve(L: FloatArray, x: FloatArray) -> None:
    """``x <- (L L')^-1 x``."""
    k = x.size
    for r in range(k):
        for q in range(r):
            x[r] -= L[r, q] * x[q]
        x[r] /= L[r, r]
    for r in range(k - 1, -1, -1):
        x[r] /= L[r, r]
        for q in range(r):
            x[q] -= L[r, q] * x[r]


@inner
def _largest(x: FloatArray) -> float:
    size = 0.0
    for r in range(x.size):
        size = max(size, abs(x[r]))
    return size


@inner
def _best_step(point: Point, basis: Basis, lacks: FloatArray, d: FloatArray, dg: FloatArray) -> float:
    """How far to go along ``d`` until the dual stops rising."""
    slope = 0.0
    for s in range(basis.n[N_FREE]):
        slope += lacks[s] * d[s]
    if slope <= 0.0:
        return 0.0
    curvature = 0.0
    for j in range(dg.size):
        if point.feature[j] == QUAD:
            curvature += dg[j] * dg[j]
    return slope / curvature if 0.5 * slope * slope < point.num[REACH] * curvature else np.inf


@inner
def _row_limit(rows: Rows, point: Point, basis: Basis, d: FloatArray, t: float) -> tuple[float, int]:
    """The free row that reaches an end of its range first within a step ``t``; its place is -1 if none does."""
    who = -1
    largest = 0.0
    for s in range(basis.n[N_FREE]):
        largest = max(largest, abs(d[s]))
    for s in range(basis.n[N_FREE]):
        i = basis.free[s]
        if abs(d[s]) <= _NOISE * largest:
            continue
        if d[s] < 0.0:
            reach = -point.a[i] / d[s]
        elif rows.cost[i] < np.inf:
            reach = (rows.cost[i] - point.a[i]) / d[s]
        else:
            continue
        if reach < t:
            t = max(reach, 0.0)
            who = s
    return t, who


@inner
def _take_step(rows: Rows, point: Point, basis: Basis, d: FloatArray, dg: FloatArray, t: float) -> None:
    for j in range(dg.size):
        point.g[j] += t * dg[j]
    for s in range(basis.n[N_FREE]):
        i = basis.free[s]
        point.a[i] += t * d[s]
        point.num[LINEAR] += t * d[s] * rows.p[i]


@inner
def _move_feature(rows: Rows, point: Point, basis: Basis, j: int, to: int) -> None:
    """Put a feature on another piece and keep the working set in step."""
    if point.feature[j] == KINK:
        remove_column(basis, j)
    if to == KINK and not add_column(rows, basis, j):
        return
    point.feature[j] = to
    point.sign[j] = 1.0 if point.g[j] > 0 else -1.0


@inner
def _fill_weights(rows: Rows, point: Point, basis: Basis, limit: float) -> None:
    """Weights and ``b`` that belong to the present working set."""
    if basis.n[N_FREE] > 0:
        lacks = basis.work[1]
        found = basis.work[3]
        _lacks(rows, point, basis, limit, lacks)
        multipliers(basis, lacks, found)
        point.num[B] = found[0]
        for k in range(1, basis.n[N_COLUMNS]):
            point.w[basis.column[k]] = found[k]
    for j in range(point.w.size):
        at = point.feature[j]
        if at == QUAD:
            point.w[j] = point.g[j]
        elif at == LIMIT:
            point.w[j] = point.sign[j] * limit
        elif at != KINK:
            point.w[j] = 0.0


@inner
def _release_kink(rows: Rows, point: Point, basis: Basis, r: float, limit: float, tol: float) -> bool:
    """Let the kink feature go whose weight lies furthest outside the range of a kink; False if all fit."""
    most = tol
    who = -1
    up = False
    top = min(r, limit)
    for j in range(point.w.size):
        if point.feature[j] != KINK:
            continue
        size = point.sign[j] * point.w[j]
        if -size > most:
            most, who, up = -size, j, False
        if size - top > most:
            most, who, up = size - top, j, True
    if who < 0:
        return False
    to = INSIDE
    if up:
        to = QUAD if r <= limit else LIMIT
    _move_feature(rows, point, basis, int(who), to)
    return True


@inner
def _margins(rows: Rows, w: FloatArray) -> FloatArray:
    """``A w``, feature by feature: most weights are 0."""
    total = np.zeros(rows.y.size)
    for j in range(w.size):
        if w[j] != 0.0:
            column = rows.At[j]
            for i in range(total.size):
                total[i] += w[j] * column[i]
    return total


@inner
def _free_worst_row(rows: Rows, point: Point, basis: Basis, tol: float) -> bool:
    """Free the row that violates its place most; False if all rows fit."""
    most = tol
    who = -1
    b = point.num[B]
    Aw = _margins(rows, point.w)
    for i in range(rows.y.size):
        at = point.row[i]
        if at == FREE:
            continue
        lack = rows.p[i] - rows.y[i] * b - Aw[i]
        if at == UP:
            lack = -lack
        if lack > most:
            most = lack
            who = i
    if who < 0:
        return False
    point.row[who] = FREE
    add_row(rows, basis, int(who))
    return True


@inner
def _free_worst_pair(rows: Rows, point: Point, basis: Basis, tol: float) -> bool:
    """With no free row, ``b`` is open: free the two rows that want the most different ``b``; False if one fits all."""
    top = -np.inf
    low = np.inf
    at_top = -1
    at_low = -1
    Aw = _margins(rows, point.w)
    for i in range(rows.y.size):
        want = rows.y[i] * (rows.p[i] - Aw[i])
        positive = rows.y[i] > 0
        if point.row[i] != (UP if positive else LOW) and want > top:
            top = want
            at_top = i
        if point.row[i] != (LOW if positive else UP) and want < low:
            low = want
            at_low = i
    if at_top >= 0 and at_low >= 0 and top - low > tol:
        point.row[at_top] = FREE
        point.row[at_low] = FREE
        add_row(rows, basis, int(at_top))
        add_row(rows, basis, int(at_low))
        return True
    if at_top >= 0 and at_low >= 0:
        point.num[B] = 0.5 * (top + low)
    elif at_top >= 0:
        point.num[B] = top
    elif at_low >= 0:
        point.num[B] = low
    return False


@inner
def _open_basis(rows: Rows, point: Point, basis: Basis) -> bool:
    """Factor the working set from scratch; False if there is no room for it."""
    clear(basis)
    for i in range(rows.y.size):
        if point.row[i] == FREE:
            if basis.n[N_FREE] == basis.free.size:
                return False
            add_row(rows, basis, i)
    for j in range(point.g.size):
        if point.feature[j] == KINK and not add_column(rows, basis, j):
            point.feature[j] = INSIDE
    return True
