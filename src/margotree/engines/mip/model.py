"""A solver-independent mixed-integer model: arrays, sparse rows and named blocks of variables.

The description does not refer to trees, so the models of baselines use the same adapters.  Build a model with
:class:`Draft`, which returns index arrays and takes whole families of rows at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from margotree.solution import Stopped

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]

#: Smaller objectives are scaled up to this size, and the smallest size that is used for scaling.
SCALED_SIZE, SMALLEST_SIZE = 1e3, 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class MipModel:
    """Minimise ``linear.x + 1/2 sum_j quadratic_j x_j^2`` over

        lower <= x <= upper,  x_j integer where ``integer``,  row_lower <= rows x <= row_upper,
        1/2 sum_j ball_squares_kj x_j^2 + (ball_linear x)_k <= ball_upper_k.

    The last family (empty for MARGOT) holds convex quadratic rows such as ``1/2 |w|^2 <= delta``; ``quadratic`` and
    ``ball_squares`` are not negative.  ``blocks`` gives the indices of each named block in its own shape.

    ``tolerance`` is the largest distance of an integer variable from an integer, and of a point from a row; ``size`` is
    the approximate objective (see :meth:`scale`).
    """

    blocks: Mapping[str, IndexArray]
    lower: FloatArray
    upper: FloatArray
    integer: NDArray[np.bool_]
    linear: FloatArray
    quadratic: FloatArray
    rows: sparse.csr_matrix
    row_lower: FloatArray
    row_upper: FloatArray
    ball_squares: sparse.csr_matrix
    ball_linear: sparse.csr_matrix
    ball_upper: FloatArray
    tolerance: float = 1e-6
    size: float = 1.0

    @property
    def n_variables(self) -> int:
        return len(self.lower)

    @property
    def n_rows(self) -> int:
        """Number of rows, including quadratic ones."""
        return len(self.row_lower) + len(self.ball_upper)

    @property
    def kind(self) -> str:
        """``"MILP"``, ``"MIQP"`` (quadratic objective) or ``"MIQCP"`` (quadratic rows)."""
        if len(self.ball_upper):
            return "MIQCP"
        return "MIQP" if np.any(self.quadratic) else "MILP"

    @property
    def scale(self) -> float:
        """The factor of the objective that makes the solvers' absolute tolerances small relative to it."""
        return max(1.0, SCALED_SIZE / max(self.size, SMALLEST_SIZE))

    def scaled(self) -> MipModel:
        """The model with its objective multiplied by :attr:`scale`."""
        return replace(self, linear=self.scale * self.linear, quadratic=self.scale * self.quadratic)

    def part(self, x: FloatArray, block: str) -> FloatArray:
        """The values of a block, in its shape."""
        return x[self.blocks[block]]

    def one_sided(self) -> tuple[sparse.csr_matrix, NDArray[np.str_], FloatArray]:
        """The linear rows with one side each: matrix, senses ("<", ">", "=") and right-hand sides."""
        equal = self.row_lower == self.row_upper
        below = ~equal & np.isfinite(self.row_upper)
        above = ~equal & np.isfinite(self.row_lower)
        matrix = sparse.vstack([self.rows[equal], self.rows[below], self.rows[above]], format="csr")
        senses = np.repeat(["=", "<", ">"], [equal.sum(), below.sum(), above.sum()])
        return matrix, senses, np.concatenate([self.row_lower[equal], self.row_upper[below], self.row_lower[above]])

    def value(self, x: FloatArray) -> float:
        """The objective at a point."""
        return float(self.linear @ x + 0.5 * (self.quadratic @ x**2))

    def violation(self, x: FloatArray) -> float:
        """The largest violation of a bound, a row or integrality; 0 for a feasible point."""
        activity = self.rows @ x
        balls = 0.5 * (self.ball_squares @ x**2) + self.ball_linear @ x
        parts = [
            self.lower - x,
            x - self.upper,
            self.row_lower - activity,
            activity - self.row_upper,
            balls - self.ball_upper,
            np.abs(x - np.round(x))[self.integer],
        ]
        return max(0.0, *(float(np.max(p, initial=0.0)) for p in parts))


@dataclass(frozen=True, kw_only=True, eq=False)
class MipResult:
    """A solver's result.

    ``x`` is its best point and ``objective`` the solver's own value of it (None and ``inf`` if it found none),
    ``bound`` its lower bound (``-inf`` if none).  ``others`` holds further points, better ones first; ``f0`` and ``f1``
    are the values of the first incumbent and of the best one after the root node.
    """

    x: FloatArray | None
    objective: float = math.inf
    bound: float = -math.inf
    stopped: Stopped = Stopped.SOLVED
    nodes: int = 0
    f0: float = math.nan
    f1: float = math.nan
    others: tuple[FloatArray, ...] = ()


#: One summand of a family of rows: columns and coefficients; either may be shared by all rows.
Term = tuple[ArrayLike, ArrayLike]


@dataclass
class Draft:
    """A model under construction: add blocks, then rows; :meth:`finish` returns the model."""

    blocks: dict[str, IndexArray] = field(default_factory=dict)
    _size: int = 0
    _columns: dict[str, list[FloatArray]] = field(default_factory=dict)
    _families: list[sparse.csr_matrix] = field(default_factory=list)
    _sides: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    _balls: list[tuple[IndexArray, FloatArray, IndexArray, FloatArray, float]] = field(default_factory=list)

    def block(
        self,
        name: str,
        shape: int | tuple[int, ...],
        *,
        lower: ArrayLike = -math.inf,
        upper: ArrayLike = math.inf,
        integer: bool = False,
        linear: ArrayLike = 0.0,
        quadratic: ArrayLike = 0.0,
    ) -> IndexArray:
        """Add a block of variables; returns their indices in the block's shape."""
        if name in self.blocks:
            raise ValueError(f"there is a block {name!r} already")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        index = self._size + np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
        self._size += index.size
        self.blocks[name] = index
        attributes = {"lower": lower, "upper": upper, "integer": integer, "linear": linear, "quadratic": quadratic}
        for key, given in attributes.items():
            column = np.broadcast_to(np.asarray(given, dtype=np.float64), shape).ravel()
            self._columns.setdefault(key, []).append(column)
        return index

    def rows(self, terms: Sequence[Term], *, lower: ArrayLike = -math.inf, upper: ArrayLike = math.inf) -> None:
        """Add a family of rows ``lower <= sum of terms <= upper``.

        A term is (columns, coefficients), both broadcast to (rows, entries); the number of rows is the longest first
        axis.  For example ``[(w, X), (b, 1.0)]`` with ``w`` of shape (n,) and ``X`` of (m, n).
        """
        shaped = [_two_dimensional(columns, coefficients) for columns, coefficients in terms]
        sides = [np.atleast_1d(np.asarray(side, dtype=np.float64)) for side in (lower, upper)]
        m = max([len(columns) for columns, _ in shaped] + [len(side) for side in sides])
        columns = np.hstack([np.broadcast_to(c, (m, c.shape[1])) for c, _ in shaped])
        values = np.hstack([np.broadcast_to(v, (m, v.shape[1])) for _, v in shaped])
        starts = np.arange(m + 1) * columns.shape[1]
        self._families.append(sparse.csr_matrix((values.ravel(), columns.ravel(), starts), shape=(m, self._size)))
        self._sides.append((np.broadcast_to(sides[0], m), np.broadcast_to(sides[1], m)))

    def ball(self, squares: ArrayLike, linear: Sequence[tuple[int, float]], upper: float, scale: float = 1.0) -> None:
        """Add a row ``scale/2 * sum of squares + linear <= upper``; ``squares`` are column indices."""
        columns = np.asarray(squares, dtype=np.int64).ravel()
        parts = np.array([c for c, _ in linear], dtype=np.int64), np.array([v for _, v in linear], dtype=np.float64)
        self._balls.append((columns, np.full(columns.size, float(scale)), *parts, float(upper)))

    def finish(self, *, tolerance: float = 1e-6, size: float = 1.0) -> MipModel:
        """The model, with the hints described at :class:`MipModel`."""
        column = {key: np.concatenate(parts) for key, parts in self._columns.items()}
        if np.any(column["quadratic"] < 0):
            raise ValueError("the quadratic objective must be convex: no negative entry")
        families = [_widen(f, self._size) for f in self._families]
        rows = sparse.vstack(families, format="csr") if families else sparse.csr_matrix((0, self._size))
        rows.eliminate_zeros()
        return MipModel(
            blocks=dict(self.blocks),
            lower=column["lower"],
            upper=column["upper"],
            integer=column["integer"].astype(bool),
            linear=column["linear"],
            quadratic=column["quadratic"],
            rows=rows,
            row_lower=np.concatenate([side[0] for side in self._sides] or [np.empty(0)]),
            row_upper=np.concatenate([side[1] for side in self._sides] or [np.empty(0)]),
            ball_squares=_stack([(c, v) for c, v, _, _, _ in self._balls], self._size),
            ball_linear=_stack([(c, v) for _, _, c, v, _ in self._balls], self._size),
            ball_upper=np.array([upper for *_, upper in self._balls], dtype=np.float64),
            tolerance=tolerance,
            size=size,
        )


def _two_dimensional(columns: ArrayLike, coefficients: ArrayLike) -> tuple[IndexArray, FloatArray]:
    """Columns and coefficients of one term as (rows, entries); a vector is shared by all rows."""
    c = np.atleast_2d(np.asarray(columns, dtype=np.int64))
    v = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    shape = np.broadcast_shapes(c.shape, v.shape)
    return np.broadcast_to(c, shape), np.broadcast_to(v, shape)


def _widen(matrix: sparse.csr_matrix, columns: int) -> sparse.csr_matrix:
    """Rows with the (empty) columns of blocks that were added after them."""
    return sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], columns))


def _stack(rows: list[tuple[IndexArray, FloatArray]], columns: int) -> sparse.csr_matrix:
    """Sparse rows, given by columns and values."""
    starts = np.concatenate([[0], np.cumsum([len(c) for c, _ in rows], dtype=np.int64)])
    index = np.concatenate([c for c, _ in rows] or [np.empty(0, dtype=np.int64)])
    values = np.concatenate([v for _, v in rows] or [np.empty(0)])
    return sparse.csr_matrix((values, index, starts), shape=(len(rows), columns))
