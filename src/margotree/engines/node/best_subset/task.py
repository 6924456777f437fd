"""The definition of one best-subset problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.best_subset.groups import FeatureGroups
from margotree.engines.node.best_subset.samples import I1, Grouping, Samples
from margotree.engines.node.kernels.safe_bounds import offset_reach
from margotree.engines.node.kernels.workspace import Workspace, new_workspace
from margotree.engines.node.svm import Items, node_items, value_limit

# Decisions about a group of features.
NEVER, MUST, MAY = 0, 1, 2

Stop = Callable[[], bool]


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What to minimise over supports.

    ``kind`` says of every group of features whether it MUST, MAY or may NEVER be used; by default every feature is a
    group.  ``alpha`` is infinite for a hard budget,
    and ``limit`` for weights without a bound.  ``stop()`` is True when the search must end.  Samples with a side must
    lie at least ``inner`` from the hyperplane on that side, left ones ``eps`` more.
    """

    samples: Samples
    kind: I1
    budget: int
    alpha: float
    limit: float
    stop: Stop
    eps: float
    inner: float = 0.0
    group: NDArray[np.int64] | None = None
    groups: FeatureGroups = field(init=False)
    equal: Grouping = field(init=False)
    #: Workspace of the relaxations, with centred samples; its items; and the value up to which their bounds are valid.
    ws: Workspace = field(init=False)
    items: Items = field(init=False)
    valid_below: float = field(init=False)

    def __post_init__(self) -> None:
        X, y, cost, corner, side = self.samples
        centred = X - X.mean(axis=0) if len(y) else X
        limit = None if math.isinf(self.limit) else self.limit
        points, items = node_items(centred, y, cost, corner, side, (self.inner, self.eps + self.inner), limit)
        valid_below = value_limit(y, cost, corner, side)
        reach = offset_reach(centred, valid_below, self.eps + self.inner, float(np.max(np.abs(corner), initial=1.0)))
        ws = new_workspace(
            points, items.c, items.cost[None], corner=items.corner[None], with_penalties=True, reach=reach
        )
        object.__setattr__(self, "groups", FeatureGroups(X.shape[1], self.group))
        object.__setattr__(self, "equal", Grouping(self.samples))
        object.__setattr__(self, "ws", ws)
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "valid_below", valid_below if np.any(side) else math.inf)

    @property
    def hard(self) -> bool:
        return math.isinf(self.alpha)

    @property
    def n_features(self) -> int:
        return self.groups.n_features

    @property
    def n_groups(self) -> int:
        return self.groups.n_groups

    def penalty(self, size: int) -> float:
        """The feature penalties of a support of ``size`` groups."""
        over = size - self.budget
        return 0.0 if over <= 0 else self.alpha * over

    def remaining(self, kind: I1) -> int:
        """How many groups can be added to those that must be used without a penalty."""
        return self.budget - int(np.count_nonzero(kind == MUST))
