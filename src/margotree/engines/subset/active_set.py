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

from margotree.engines.kernels.jit import inner, kernel
from margotree.engines.subset.basis import (
    N_COLUMNS,
    N_FREE,
    Basis,
    add_column,
    add_row,
    clear,
    remove_column,
    remove_row,
    solve_triangle,
)
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


@kernel
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
    _fill_weights(point, basis, limit)
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
        _fill_weights(point, basis, limit)
        if basis.n[N_FREE] + 2 > basis.free.size:
            return STALLED
        if not any_free:
            moved = _free_worst_pair(rows, point, basis, tol)
        else:
            moved = _release_kink(point, basis, r, limit, tol * (1.0 + r)) or _free_worst_row(rows, point, basis, tol)
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
    first = basis.n[N_COLUMNS]
    k = basis.n[N_FREE] - first
    if k <= 0:
        return 1
    rise = _turned_lacks(point, basis, limit)[first:]
    U = _curvature(point, basis)
    _factor(U)
    u = rise.copy()
    _solve(U, u)
    damped = _RIDGE * _largest(u) > tol
    if damped and _rises_for_ever(rows, point, basis, kind, r, limit, rise, U, u):
        return -1
    d = _multiplier_change(basis, u)
    dg = _feature_change(point, basis, u, d)
    t = max(1.0, _best_step(point, rise, u, dg)) if damped else 1.0
    t, blocking_row = _row_limit(rows, point, basis, d, t)
    t, blocking_feature = feature_limit(point, kind, dg, r, limit, t)
    if t == np.inf:
        t = 1.0
    _take_step(rows, point, basis, d, dg, t)
    if blocking_feature >= 0:
        j = blocking_feature
        outwards = point.g[j] * dg[j] > 0.0
        _move_feature(point, basis, j, next_piece(point, j, kind, r, limit, outwards))
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
def _turned_lacks(point: Point, basis: Basis, limit: float) -> FloatArray:
    """What the free rows lack to their margins before ``b`` and the kink features count, turned by Q."""
    f = basis.n[N_FREE]
    T = basis.T
    out = T[:f, T.shape[1] - 2].copy()
    for j in range(point.g.size):
        at = point.feature[j]
        if at in (QUAD, LIMIT):
            w = point.g[j] if at == QUAD else point.sign[j] * limit
            for k in range(f):
                out[k] -= w * T[k, j]
    return out


@inner
def _curvature(point: Point, basis: Basis) -> FloatArray:
    """Second derivative of the dual over the steps ``d = Z u``, with the ridge; its upper triangle."""
    first = basis.n[N_COLUMNS]
    k = basis.n[N_FREE] - first
    M = np.zeros((k, k))
    v = np.empty(k)
    for r in range(k):
        M[r, r] = _RIDGE
    for j in range(point.g.size):
        if point.feature[j] != QUAD:
            continue
        for r in range(k):
            v[r] = basis.T[first + r, j]
        for r in range(k):
            row = M[r]
            for q in range(r, k):
                row[q] += v[r] * v[q]
    return M


@inner
def _factor(M: FloatArray) -> None:
    """Replace the upper triangle by U with ``U'U = M``; row by row, so that inner loops run along memory."""
    k = M.shape[0]
    for c in range(k):
        top = M[c]
        pivot = np.sqrt(max(top[c], 0.5 * _RIDGE))
        for q in range(c, k):
            top[q] /= pivot
        top[c] = pivot
        for r in range(c + 1, k):
            row = M[r]
            for q in range(r, k):
                row[q] -= top[r] * top[q]


@inner
def _solve(U: FloatArray, x: FloatArray) -> None:
    """``x <- (U'U)^-1 x``."""
    k = x.size
    for r in range(k):
        x[r] /= U[r, r]
        for q in range(r + 1, k):
            x[q] -= U[r, q] * x[r]
    for r in range(k - 1, -1, -1):
        for q in range(r + 1, k):
            x[r] -= U[r, q] * x[q]
        x[r] /= U[r, r]


@inner
def _largest(x: FloatArray) -> float:
    size = 0.0
    for r in range(x.size):
        size = max(size, abs(x[r]))
    return size


@inner
def _multiplier_change(basis: Basis, u: FloatArray) -> FloatArray:
    """``d = Z u``."""
    f = basis.n[N_FREE]
    first = basis.n[N_COLUMNS]
    d = np.zeros(f)
    for r in range(u.size):
        for q in range(f):
            d[q] += u[r] * basis.Qt[first + r, q]
    return d


@inner
def _feature_change(point: Point, basis: Basis, u: FloatArray, d: FloatArray) -> FloatArray:
    """Change of ``g`` along ``d``; what is only rounding noise must not block and is taken for 0."""
    first = basis.n[N_COLUMNS]
    dg = np.zeros(point.g.size)
    for r in range(u.size):
        for j in range(dg.size):
            dg[j] += u[r] * basis.T[first + r, j]
    noise = _NOISE * _largest(d)
    for j in range(dg.size):
        if point.feature[j] == KINK or abs(dg[j]) <= noise:
            dg[j] = 0.0
    return dg


@inner
def _best_step(point: Point, rise: FloatArray, u: FloatArray, dg: FloatArray) -> float:
    """How far to go along ``u`` until the dual stops rising."""
    slope = 0.0
    for r in range(u.size):
        slope += rise[r] * u[r]
    if slope <= 0.0:
        return 0.0
    curvature = 0.0
    for j in range(dg.size):
        if point.feature[j] == QUAD:
            curvature += dg[j] * dg[j]
    return slope / curvature if 0.5 * slope * slope < point.num[REACH] * curvature else np.inf


@inner
def _rises_for_ever(
    rows: Rows,
    point: Point,
    basis: Basis,
    kind: I1,
    r: float,
    limit: float,
    rise: FloatArray,
    U: FloatArray,
    u: FloatArray,
) -> bool:
    """Whether nothing stops the dual along the flat part of a step: then the hard rows contradict each other."""
    # A second solve leaves nothing but the flat directions.
    flat = u * (_RIDGE / _largest(u))
    _solve(U, flat)
    d = _multiplier_change(basis, flat)
    dg = _feature_change(point, basis, flat, d)
    t = _best_step(point, rise, flat, dg)
    t, _ = _row_limit(rows, point, basis, d, t)
    t, _ = feature_limit(point, kind, dg, r, limit, t)
    return bool(t == np.inf)


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
def _move_feature(point: Point, basis: Basis, j: int, to: int) -> None:
    """Put a feature on another piece and keep the working set in step."""
    if point.feature[j] == KINK:
        remove_column(basis, j)
    if to == KINK and not add_column(basis, j):
        return
    point.feature[j] = to
    point.sign[j] = 1.0 if point.g[j] > 0 else -1.0


@inner
def _fill_weights(point: Point, basis: Basis, limit: float) -> None:
    """Weights and ``b`` that belong to the present working set."""
    if basis.n[N_FREE] > 0:
        found = _turned_lacks(point, basis, limit)
        solve_triangle(basis, found)
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
def _release_kink(point: Point, basis: Basis, r: float, limit: float, tol: float) -> bool:
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
    _move_feature(point, basis, int(who), to)
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
        if point.feature[j] == KINK and not add_column(basis, j):
            point.feature[j] = INSIDE
    return True
