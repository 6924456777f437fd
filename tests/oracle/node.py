"""The problem of one node: an interval that contains its optimum, proved by a hyperplane and by multipliers.

    min  1/2 |w|^2 + sum_i c_i max(0, 1 - y_i (w.x_i + b))   s.t.  s_k (w.x_k + b) >= r_k,  |w_j| <= limit

Clarabel computes both for a scaled problem; an active set step improves their accuracy.  The hyperplane and the
multipliers are then made feasible, and their values are computed in exact integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from extras import optional
from oracle import dyadic

clarabel = optional("clarabel")

#: The precision of hyperplanes and multipliers, in bits, to which they are rounded before the exact evaluation.
BITS = 90
#: The relative width of an interval at which the attempts end.
NARROW = 1e-12
#: The attempts, in this order: the size by which the objective is scaled, and whether ``h`` is scaled by the band.
_ATTEMPTS = (
    ("guess", False), ("upper", False), ("lower", False), ("band", True), ("upper", True), ("lower", True),
    ("cost", False), ("mean", False), ("upper", False),
)  # fmt: skip
#: Factors for multipliers that may prove the rows infeasible, and relative stretches of weights clipped to a limit.
_RAYS = (1e3, 1e6, 1e9, 1e12)
_STRETCHES = tuple(Fraction(1, 1 << k) for k in (80, 70, 60, 50, 45, 40, 36, 33))


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The problem of a node in exact numbers, integers over a power of two: points over ``2**k``, costs over ``2**kc``,
    the smallest allowed ``side * h`` of every sample over ``2**kr``.  ``side`` is +1 or -1, or empty without routing
    rows; ``limit`` bounds every weight, None without a bound."""

    points: tuple[tuple[int, ...], ...]
    k: int
    label: tuple[int, ...]
    cost: tuple[int, ...]
    kc: int
    side: tuple[int, ...] = ()
    least: tuple[int, ...] = ()
    kr: int = 0
    limit: Fraction | None = None


@dataclass(frozen=True)
class Guess:
    """An approximate solution of the solver, in the centred units of the node."""

    w: list[float]
    b: float
    lam: list[float]
    mu: list[float]


#: A hyperplane ``(w, b)`` in the user's units, exactly.
Plane = tuple[list[Fraction], Fraction]


def bounds(rows: Rows, cutoff: float = math.inf) -> tuple[float, float, Plane | None]:
    """``(lower, upper, plane)`` around the optimum: the upper end is the cost of the plane, ``inf`` if none was found.

    The computation ends as soon as the lower end reaches ``cutoff``.
    """
    if (constant := _one_class(rows)) is not None:
        return 0.0, 0.0, ([Fraction(0)] * len(rows.points[0]), Fraction(constant))
    node = OneNode(rows)
    lower, upper, plane = 0.0, math.inf, None
    for attempt in range(len(_ATTEMPTS)):
        for guess in node.guesses(*node.scale(attempt, lower, upper)):
            lower = max(lower, dyadic.below(node.dual(guess)))
            if lower >= cutoff:
                return lower, upper, plane
            found = node.primal(guess)
            if found is not None and dyadic.above(found[0]) < upper:
                upper, plane = dyadic.above(found[0]), found[1]
            if upper - lower <= NARROW * upper < math.inf:
                return lower, upper, plane
    return lower, upper, plane


def _one_class(rows: Rows) -> int | None:
    """The constant ``h`` without cost, if there is one: one class with positive costs, and rows that ``h`` obeys."""
    for y in (1, -1):
        if all(c == 0 or label == y for c, label in zip(rows.cost, rows.label, strict=True)) and all(
            s * y << rows.kr >= r for s, r in zip(rows.side, rows.least, strict=True)
        ):
            return y
    return None


class OneNode:
    """The problem, centred and scaled for the solver, and exact for the evaluation of claims."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        m, n = len(rows.points), len(rows.points[0])
        self.middle = [sorted(p[j] for p in rows.points)[m // 2] for j in range(n)]
        self.points = [[x - c for x, c in zip(p, self.middle, strict=True)] for p in rows.points]
        largest = max((abs(x) for p in self.points for x in p), default=0)
        #: the points of the solver are those of the user times 2**(k - shift), at most 1 in size
        self.shift = max(1, largest).bit_length()
        self.X = np.array([[dyadic.ratio(x, self.shift) for x in p] for p in self.points]).reshape(m, n)
        #: w of the solver is w of the user times 2**(shift - k); objective and costs scale with its square
        self.unit = self.shift - rows.k
        self.cost = np.array([dyadic.ratio(c, rows.kc - 2 * self.unit) for c in rows.cost])
        self.y = np.array(rows.label, dtype=float)
        self.side = np.array(rows.side, dtype=float)
        self.least = np.array([dyadic.ratio(r, rows.kr) for r in rows.least])
        self.soft = np.flatnonzero(self.cost)
        #: the limit on weights in the solver's units
        self.limit = None if rows.limit is None else rows.limit * Fraction(2) ** self.unit

    def scale(self, attempt: int, lower: float, upper: float) -> tuple[float, float]:
        """The scales of the objective and of ``h`` at this attempt, from the current bounds.

        Margins are of size 1, bands of size eps: with a tiny C, only the bands matter at an upper node.
        """
        kind, of_band = _ATTEMPTS[attempt]
        band = float(np.max(self.least, initial=0.0)) or 1.0
        largest = float(np.max(self.cost, initial=0.0)) or 1.0
        known = [math.ldexp(v, 2 * self.unit) for v in (upper, lower) if 0 < v < math.inf] or [largest]
        if kind == "guess":
            routed = largest <= band * band
            return (band * band, band) if routed else (min(largest, 4.0), 1.0)
        size = {"upper": known[0], "lower": known[-1], "band": band * band, "cost": largest,
                "mean": math.sqrt(largest * known[-1])}[kind]  # fmt: skip
        return size, band if of_band else 1.0

    def guesses(self, size: float, unit: float) -> list[Guess]:
        """Hyperplanes and multipliers, solved with ``w`` in units of ``sqrt(size)`` and ``h`` in units of ``unit``."""
        root, ms = math.sqrt(size), len(self.soft)
        margin = np.hstack([root / unit * self.X[self.soft], np.ones((ms, 1))]) * self.y[self.soft, None]
        routing = np.hstack([root / unit * self.X[: len(self.side)], np.ones((len(self.side), 1))]) * self.side[:, None]
        V, right = np.vstack([margin, routing]), np.concatenate([np.full(ms, 1 / unit), self.least / unit])
        if self.limit is not None:
            n, limit = self.X.shape[1], float(self.limit) / root
            box = np.hstack([np.vstack([np.eye(n), -np.eye(n)]), np.zeros((2 * n, 1))])
            V = np.vstack([V, box / max(limit, 1e-300)])
            right = np.concatenate([right, -np.ones(2 * n)])
        cost = np.minimum(self.cost[self.soft] * (unit / size), 1e9)
        solution = self.solve(V, right, cost)
        if solution is None:
            return []
        w, b, z, s = solution
        sharpened = self._sharpened(V, right, cost, z, s)
        found = [] if sharpened is None else [sharpened]
        found.append((w, b, np.concatenate([z[:ms], z[2 * ms :]])))
        if self.limit is not None:  # infeasible rows have multipliers along which the dual value grows
            found += [(w, b, found[-1][2] * factor) for factor in _RAYS]
        with np.errstate(over="ignore"):
            found = [(root * w, unit * b, size / unit * v) for w, b, v in found]
        return [self._guess(w, b, v) for w, b, v in found if np.all(np.isfinite(np.concatenate([w, [b], v])))]

    # ---- the solver

    def solve(
        self, V: np.ndarray, right: np.ndarray, cost: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray, np.ndarray] | None:
        """Clarabel's ``w`` and ``b``, multipliers and slacks of the rows: margins, losses >= 0, routing."""
        n, ms = self.X.shape[1], len(self.soft)
        mh = len(V) - ms
        right = np.concatenate([right[:ms], np.zeros(ms), right[ms:]])
        q = np.concatenate([np.zeros(n + 1), cost])
        P, A = _matrices(V, n, ms, mh)
        try:
            solver = clarabel.DefaultSolver(P, q, A, -right, [clarabel.NonnegativeConeT(len(right))], _settings())
            found = solver.solve()
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            return None  # Clarabel failed numerically; another scale may work
        x, z, s = np.array(found.x), np.array(found.z), np.array(found.s)
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(z)) and len(z) == len(right)):
            return None
        return x[:n], float(x[n]), z, s

    def _guess(self, w: np.ndarray, b: float, multipliers: np.ndarray) -> Guess:
        lam, ms = np.zeros(len(self.y)), len(self.soft)
        lam[self.soft] = multipliers[:ms]
        mu = multipliers[ms : ms + len(self.side)]
        return Guess(w=w.tolist(), b=float(b), lam=lam.tolist(), mu=mu.tolist())

    def _sharpened(
        self, V: np.ndarray, right: np.ndarray, cost: np.ndarray, z: np.ndarray, s: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Solve the equations of the active rows directly, which is accurate if the active set is correct."""
        ms, n = len(self.soft), self.X.shape[1]
        active = z > s
        at_cost = active[:ms] & ~active[ms : 2 * ms]
        tight = np.concatenate([active[:ms] & active[ms : 2 * ms], active[2 * ms :]])
        T = V[tight]
        K = np.zeros((n + 1 + len(T), n + 1 + len(T)))
        K[:n, :n] = np.eye(n)
        K[: n + 1, n + 1 :], K[n + 1 :, : n + 1] = -T.T, T
        rhs = np.concatenate([V[:ms][at_cost].T @ cost[at_cost], right[tight]])
        try:
            inverse = np.linalg.pinv(K, rcond=1e-15)
        except np.linalg.LinAlgError:
            return None
        out = np.array(inverse @ rhs, dtype=np.longdouble)
        for _ in range(2):
            out = out + inverse @ (rhs - K.astype(np.longdouble) @ out).astype(float)
        out = out.astype(float)
        if not np.all(np.isfinite(out)):
            return None
        multiplier = np.zeros(len(V))
        multiplier[tight] = out[n + 1 :]
        multiplier[:ms][at_cost] = cost[at_cost]
        return out[:n], float(out[n]), multiplier

    # ---- exact evaluation

    def dual(self, guess: Guess) -> Fraction:
        """The exact dual value of the multipliers, after they are moved into their boxes and balanced."""
        rows, k = self.rows, BITS - dyadic.magnitude([*guess.lam, *guess.mu])
        top = [_shifted(c, 2 * self.unit + k - rows.kc) for c in rows.cost]
        lam = [min(max(0, dyadic.rounded(v, k)), t) for v, t in zip(guess.lam, top, strict=True)]
        # multipliers that are at their cost up to rounding are set to it exactly
        lam = [t if t - v <= t >> 44 else v for v, t in zip(lam, top, strict=True)]
        mu = [max(0, dyadic.rounded(v, k)) for v in guess.mu]
        signs = [*rows.label, *rows.side]
        values, tops = [*lam, *mu], [*top, *([None] * len(mu))]
        if not _balance(values, tops, signs):
            return Fraction(0)
        lam, mu = values[: len(lam)], values[len(lam) :]
        both = [*self.points, *self.points]
        w = [
            sum(s * v * p[j] for s, v, p in zip(signs, values, both, strict=False) if v)
            for j in range(len(self.points[0]))
        ]
        # in the solver's units: multipliers are integers over 2**k, points over 2**shift
        linear = (sum(lam) << rows.kr) + sum(r * v for r, v in zip(rows.least, mu, strict=True))
        if self.limit is not None:
            subtracted = sum((_least_below(dyadic.real(v, k + self.shift), self.limit) for v in w), Fraction(0))
            return (dyadic.real(linear, k + rows.kr) - subtracted) / Fraction(2) ** (2 * self.unit)
        value = _sum((linear, k + rows.kr), (-sum(v * v for v in w), 2 * (k + self.shift) + 1))
        return dyadic.real(value[0], value[1] + 2 * self.unit)

    def primal(self, guess: Guess) -> tuple[Fraction, Plane] | None:
        """The exact value of the hyperplane, stretched to obey its rows and with its best offset, and the hyperplane;
        None if no stretch of its direction obeys the rows."""
        rows, kw = self.rows, BITS - dyadic.magnitude(guess.w)
        w = [dyadic.rounded(v, kw) for v in guess.w]
        if self.limit is not None:
            found = self._within_limit(w, kw)
            if found is None:
                return None
            w, kw = found
        h = [sum(a * x for a, x in zip(w, p, strict=True)) for p in self.points]
        right = [i for i, s in enumerate(rows.side) if s > 0]
        left = [i for i, s in enumerate(rows.side) if s < 0]
        if right and left:
            width = min(h[i] for i in right) - max(h[i] for i in left)
            need = max(rows.least[i] for i in right) + max(rows.least[i] for i in left)
            width, need, _ = _aligned((width, kw + self.shift), (need, rows.kr))
            if need > max(width, 0):
                if width <= 0:
                    return None
                stretch = -((-need << BITS) // width)
                w, h, kw = [stretch * v for v in w], [stretch * v for v in h], kw + BITS
        k = max(kw + self.shift, rows.kr, 0)
        h = [v << k - kw - self.shift for v in h]
        least = [r << k - rows.kr for r in rows.least]
        low = max((least[i] - h[i] for i in right), default=None)
        high = min((-least[i] - h[i] for i in left), default=None)
        loss, b = self._least_loss(h, k, low, high, dyadic.rounded(guess.b, k))
        value = _sum((sum(v * v for v in w), 2 * kw + 1 + 2 * self.unit), (loss, k + rows.kc))
        plane = [dyadic.real(v, kw + self.unit) for v in w]
        shift = sum((a * dyadic.real(c, rows.k) for a, c in zip(plane, self.middle, strict=True)), Fraction(0))
        return dyadic.real(*value), (plane, dyadic.real(b, k) - shift)

    def _within_limit(self, w: list[int], kw: int) -> tuple[list[int], int] | None:
        """The weights clipped to the limit and stretched until they obey the rows; None if that is not possible."""
        rows, limit = self.rows, self.limit
        assert limit is not None
        more = max(0, BITS - dyadic.magnitude([float(limit)]) - kw)
        w, kw = [v << more for v in w], kw + more
        top = math.floor(limit * Fraction(2) ** kw)
        right = [i for i, s in enumerate(rows.side) if s > 0]
        left = [i for i, s in enumerate(rows.side) if s < 0]
        for k in range(len(_STRETCHES)):
            w = [min(max(v, -top), top) for v in w]
            if not (right and left):
                return w, kw
            h = [sum(a * x for a, x in zip(w, p, strict=True)) for p in self.points]
            width = dyadic.real(min(h[i] for i in right) - max(h[i] for i in left), kw + self.shift)
            need = dyadic.real(max(rows.least[i] for i in right) + max(rows.least[i] for i in left), rows.kr)
            if need <= max(width, 0):
                return w, kw
            if width <= 0:
                return None
            factor = need / width * (1 + _STRETCHES[k])
            w = [math.floor(v * factor) if v >= 0 else math.ceil(v * factor) for v in w]
        return None

    def _least_loss(self, h: list[int], k: int, low: int | None, high: int | None, b: int) -> tuple[int, int]:
        """The hinge losses (over ``2**(k + kc)``) at the best offset, and the offset: a kink or an end of its range."""
        relevant = [(self.rows.cost[i], self.rows.label[i], h[i]) for i in range(len(h)) if self.rows.cost[i]]
        offsets = {b, *((y << k) - v for _, y, v in relevant)}
        if low is not None:
            offsets = {max(v, low) for v in offsets}
        if high is not None:
            offsets = {min(v, high) for v in offsets}
        one = 1 << k
        return min((sum(c * max(0, one - y * (v + b)) for c, y, v in relevant), b) for b in offsets)


def _least_below(u: Fraction, limit: Fraction) -> Fraction:
    """The maximum of ``u w - w^2 / 2`` over weights within the limit."""
    return u * u / 2 if abs(u) <= limit else limit * (abs(u) - limit / 2)


def _balance(values: list[int], tops: list[int | None], signs: list[int]) -> bool:
    """Make ``sum sign * value`` 0 within the boxes, changing the values farthest from their ends first."""
    rest = sum(s * v for s, v in zip(signs, values, strict=True))

    def width(i: int) -> int:
        top = tops[i]
        return values[i] if top is None else min(values[i], top - values[i])

    if rest == 0:
        return True
    for i in sorted(range(len(values)), key=width, reverse=True):
        wanted = values[i] - signs[i] * rest
        top = tops[i]
        moved = max(0, wanted) if top is None else min(max(0, wanted), top)
        rest += signs[i] * (moved - values[i])
        values[i] = moved
        if rest == 0:
            return True
    return False


def _shifted(value: int, k: int) -> int:
    """``value * 2**k``, rounded down."""
    return value << k if k >= 0 else value >> -k


def _aligned(one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int, int]:
    """Two dyadic numbers with a common denominator."""
    k = max(one[1], two[1])
    return one[0] << k - one[1], two[0] << k - two[1], k


def _sum(one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int]:
    first, second, k = _aligned(one, two)
    return first + second, k


class Columns:
    """A sparse matrix by columns with the attributes of SciPy's that Clarabel reads; SciPy's checks are slow."""

    has_sorted_indices = has_canonical_format = True

    def __init__(self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr, self.shape, self.nnz = data, indices, indptr, shape, len(data)


def _matrices(V: np.ndarray, n: int, ms: int, mh: int) -> tuple[Columns, Columns]:
    """Objective and rows in the variables ``(w, b, xi)``: margins, ``xi >= 0``, routing; ``V`` is dense in (w, b)."""
    P, indices, ends = _pattern(n, ms, mh)
    data = np.full(len(indices), -1.0)
    data[: V.size] = -V.T.ravel()
    return P, Columns(data, indices, ends, (2 * ms + mh, n + 1 + ms))


@cache
def _pattern(n: int, ms: int, mh: int) -> tuple[Columns, np.ndarray, np.ndarray]:
    rows_of_V = np.concatenate([np.arange(ms), 2 * ms + np.arange(mh)])
    pairs = np.stack([np.arange(ms), ms + np.arange(ms)], axis=1).ravel()
    indices = np.concatenate([np.tile(rows_of_V, n + 1), pairs])
    ends = np.concatenate([(ms + mh) * np.arange(n + 2), (ms + mh) * (n + 1) + 2 * np.arange(1, ms + 1)])
    size = n + 1 + ms
    return Columns(np.ones(n), np.arange(n), np.minimum(np.arange(size + 1), n), (size, size)), indices, ends


@cache
def _settings():
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    settings.max_iter = 100
    settings.max_threads = 1
    return settings
