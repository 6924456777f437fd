"""One best-subset problem and how its parts are solved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from margotree.engines.subset.active_set import STALLED, run
from margotree.engines.subset.basis import Basis, new_basis
from margotree.engines.subset.point import FREE, I1, MUST, PIVOTS, Point
from margotree.engines.subset.rows import Grouping, Rows

#: Pivots between two looks at the clock (fewer where they are long: so many entries of the rows in all), and at most
#: for one problem (times its size).
_CHUNK, _CHUNK_ENTRIES, _MOST = 2000, 2e8, 50

#: Tolerance on margins that is fine enough for bounds.
COARSE = 1e-10

Stop = Callable[[], bool]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What to minimise over supports.

    ``kind`` says which features must, may and never be used; ``alpha`` is infinite for a hard budget, ``limit`` for
    weights of any size; ``stop`` tells when time is up.
    """

    rows: Rows
    kind: I1
    budget: int
    alpha: float
    limit: float
    stop: Stop
    groups: Grouping = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", Grouping(self.rows))

    @property
    def hard(self) -> bool:
        return math.isinf(self.alpha)

    @property
    def n_features(self) -> int:
        return len(self.kind)

    def price(self, size: int) -> float:
        """What a support of this size costs on top of its SVM."""
        over = size - self.budget
        return 0.0 if over <= 0 else self.alpha * over

    def left(self, kind: I1) -> int:
        """How many features may join those that must be used before they cost anything."""
        return self.budget - int(np.count_nonzero(kind == MUST))


def climb(task: Task, rows: Rows, point: Point, kind: I1, lam: float, cutoff: float, tol: float = COARSE) -> int:
    """Run the active-set method, looking at the clock now and then."""
    basis = _room_for(point, len(kind))
    most = point.num[PIVOTS] + _MOST * (len(rows.y) + len(kind)) + 1000
    chunk = int(min(_CHUNK, 1 + _CHUNK_ENTRIES / max(1, rows.A.size)))
    while True:
        outcome: int = run(rows, point, basis, kind, lam, task.limit, cutoff, tol, chunk)
        if outcome != STALLED or point.num[PIVOTS] >= most or task.stop():
            return outcome


def _room_for(point: Point, n_features: int) -> Basis:
    return new_basis(n_features + int(np.count_nonzero(point.row == FREE)) + 8, n_features)
