"""Linear programs that end when their time is up."""

from __future__ import annotations

import math
from typing import Any

from margotree.engines import RunControl
from margotree.problem.problem import FloatArray

#: Entries of a matrix that are written down, checked and handed to the solver per second; it takes about as long again
#: before the solver has its first look at the clock.
_ENTRIES_PER_SECOND = 4e6


def no_time_for(entries: int, control: RunControl) -> bool:
    """Whether a program with so many entries would not get anywhere in the time left."""
    return 2.0 * entries / _ENTRIES_PER_SECOND > control.remaining


def solve_lp(cost: FloatArray, rows: Any, upper: FloatArray, bounds: list[tuple[Any, Any]], control: RunControl) -> Any:
    """Minimise ``cost.x`` subject to ``rows x <= upper``; SciPy's answer, whose ``x`` is None where none was found."""
    from scipy.optimize import linprog

    seconds = control.remaining - getattr(rows, "nnz", rows.size) / _ENTRIES_PER_SECOND
    options = {} if math.isinf(seconds) else {"time_limit": max(1e-3, seconds)}
    return linprog(cost, A_ub=rows, b_ub=upper, bounds=bounds, options=options)
