"""Linear programs within the time limit of a fit."""

from __future__ import annotations

import math
from typing import Any

from margotree.engines import RunControl
from margotree.problem.problem import FloatArray

#: Entries of a matrix that are built, checked and passed to the solver per second.  The solver needs about the same
#: time again before it first checks the clock.
_ENTRIES_PER_SECOND = 4e6


def lp_too_large(entries: int, control: RunControl) -> bool:
    """Whether a program with this number of matrix entries cannot be started in the time left."""
    return 2.0 * entries / _ENTRIES_PER_SECOND > control.remaining


def solve_lp(cost: FloatArray, rows: Any, upper: FloatArray, bounds: list[tuple[Any, Any]], control: RunControl) -> Any:
    """Minimise ``cost.x`` subject to ``rows x <= upper``; returns SciPy's result, with ``x`` None if none was found."""
    from scipy.optimize import linprog

    seconds = control.remaining - getattr(rows, "nnz", rows.size) / _ENTRIES_PER_SECOND
    options = {} if math.isinf(seconds) else {"time_limit": max(1e-3, seconds)}
    return linprog(cost, A_ub=rows, b_ub=upper, bounds=bounds, options=options)
