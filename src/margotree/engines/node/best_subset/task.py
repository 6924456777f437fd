"""One best-subset problem: what is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from margotree.engines.node.best_subset.samples import I1, Grouping, Samples
from margotree.engines.node.kernels.safe_bounds import offset_reach
from margotree.engines.node.kernels.workspace import Workspace, new_workspace
from margotree.engines.node.svm import Items, all_items, value_limit

# What is decided about a feature.
NEVER, MUST, MAY = 0, 1, 2

Stop = Callable[[], bool]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What to minimise over supports.

    ``kind`` says which features must, may and never be used; ``alpha`` is infinite for a hard budget, ``limit`` for
    weights of any size; ``stop`` tells when time is up.  Samples with a side must lie there by ``inner``, left ones by
    ``eps`` more.
    """

    samples: Samples
    kind: I1
    budget: int
    alpha: float
    limit: float
    stop: Stop
    eps: float
    inner: float = 0.0
    groups: Grouping = field(init=False)
    #: Where relaxations are solved, on centred samples, and the value up to which they bound anything.
    ws: Workspace = field(init=False)
    items: Items = field(init=False)
    claims: float = field(init=False)

    def __post_init__(self) -> None:
        X, y, cost, side = self.samples
        centred = X - X.mean(axis=0) if len(y) else X
        limit = None if math.isinf(self.limit) else self.limit
        points, items = all_items(centred, y, cost, side, (self.inner, self.eps + self.inner), limit)
        claims = value_limit(y, cost, side)
        reach = offset_reach(centred, claims, self.eps + self.inner)
        object.__setattr__(self, "groups", Grouping(self.samples))
        object.__setattr__(self, "ws", new_workspace(points, items.c, items.cost[None], priced=True, reach=reach))
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "claims", claims if np.any(side) else math.inf)

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
