"""Points in the unit square whose classes a known tree tells apart, in the manner of the paper's 2-D sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians, sin

import numpy as np
from numpy.typing import NDArray

from margotree.paper.data.dataset import Dataset, FloatArray, fingerprint, frozen
from margotree.problem import Splits, topology

#: How far a cut is moved and turned at random, so that every seed gives an instance of its own.
_SHIFT, _TURN = 0.02, 6.0

#: Points drawn for every point asked for before the margin is called too wide.
_TRIES = 2000


@dataclass(frozen=True)
class _Cut:
    """A line through (x, y) whose normal points ``angle`` degrees from the first axis, to the right branch."""

    x: float
    y: float
    angle: float


#: Two columns, each cut at another height, with the classes crossed.
_FOUR: dict[int, _Cut | float] = {0: _Cut(0.5, 0.5, 10.0), 1: _Cut(0.25, 0.3, 80.0), 2: _Cut(0.75, 0.45, -100.0)}

#: Two halves, mirrored with classes exchanged: a wide cell below, and above it one of either class.  The wide cells
#: are cut off above the last level, where a node of one class is left.
_SIX: dict[int, _Cut | float] = {
    0: _Cut(0.5, 0.5, 5.0),
    1: _Cut(0.25, 0.5, 70.0),
    2: _Cut(0.75, 0.65, 110.0),
    3: -1.0,
    4: _Cut(0.25, 0.75, 185.0),
    5: 1.0,
    6: _Cut(0.7, 0.75, 175.0),
}

_KINDS = {4: (2, _FOUR, 108), 6: (3, _SIX, 96)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Partitions:
    """A generated set and the tree behind it.

    ``truth`` classifies every point rightly: each point lies at least ``margin`` away from every line that it meets on
    its way down, which is ``|h| >= 1``.  It need not be the optimal tree.  ``region`` is the leaf of every point,
    numbered as in :mod:`margotree.problem.topology`.
    """

    dataset: Dataset
    truth: Splits
    depth: int
    region: NDArray[np.int64]
    margin: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", frozen(self.region))


def make_partitions(
    kind: int = 4, *, n_samples: int | None = None, margin: float = 0.03, random_state: int | None = 0
) -> Partitions:
    """Random points in 4 regions that a tree of depth 2 tells apart, or in 6 regions that need depth 3.

    The paper's own points are not published; these follow its description: lines with margins, and as many points
    outside the margins as it has (108 and 96, spread evenly over the regions) unless ``n_samples`` says otherwise.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be 4 or 6 (regions), got {kind!r}")
    depth, template, usual = _KINDS[kind]
    n_samples = usual if n_samples is None else n_samples
    if n_samples < kind:
        raise ValueError(f"{kind} regions need at least {kind} points, got n_samples={n_samples!r}")
    if not margin > 0:
        raise ValueError(f"margin must be positive, got {margin!r}")
    rng = np.random.default_rng(random_state)
    truth = _truth(template, depth, margin, rng)
    X, region = _points(truth, depth, n_samples, _leaves(template, depth), rng)
    y = np.where(region % 2 == 0, 1, -1)  # right leaves have even numbers, and right is +1
    return Partitions(
        dataset=_dataset(f"{kind}-partitions", X, y, f"generated, seed {random_state}"),
        truth=truth,
        depth=depth,
        region=region,
        margin=margin,
    )


def _truth(template: dict[int, _Cut | float], depth: int, margin: float, rng: np.random.Generator) -> Splits:
    w, b = np.zeros((topology.n_nodes(depth), 2)), np.zeros(topology.n_nodes(depth))
    for t, cut in template.items():
        if not isinstance(cut, _Cut):
            b[t] = cut
            continue
        point = np.array([cut.x, cut.y]) + rng.uniform(-_SHIFT, _SHIFT, 2)
        angle = radians(cut.angle + rng.uniform(-_TURN, _TURN))
        w[t] = np.array([cos(angle), sin(angle)]) / margin
        b[t] = -w[t] @ point
    return Splits(w=w, b=b)


def _leaves(template: dict[int, _Cut | float], depth: int) -> list[int]:
    """Leaves that can be reached: both sides of a cut, one side of a node of one class."""
    reached: list[int] = []
    for t in topology.last(depth):
        cut = template[t]
        sides = {-1.0, 1.0} if isinstance(cut, _Cut) else {cut}
        reached += [leaf for side, leaf in ((-1.0, topology.left(t)), (1.0, topology.right(t))) if side in sides]
    return reached


def _points(
    truth: Splits, depth: int, n_samples: int, leaves: list[int], rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw until every region has its share; what falls into a margin is drawn again."""
    room = {leaf: n_samples // len(leaves) + (k < n_samples % len(leaves)) for k, leaf in enumerate(leaves)}
    kept: list[tuple[FloatArray, int]] = []
    for _ in range(_TRIES * n_samples):
        x = rng.uniform(size=2)
        leaf = _region(truth, depth, x)
        if leaf is not None and room[leaf] > 0:
            room[leaf] -= 1
            kept.append((x, leaf))
            if len(kept) == n_samples:
                order = rng.permutation(n_samples)
                return np.array([kept[i][0] for i in order]), np.array([kept[i][1] for i in order], dtype=np.int64)
    raise ValueError("the margin leaves some region without room for its points; make it narrower")


def _region(truth: Splits, depth: int, x: FloatArray) -> int | None:
    """The leaf a point falls into, None within the margin of a line on the way."""
    t = 0
    for _ in range(depth):
        h = float(truth.w[t] @ x + truth.b[t])
        if abs(h) < 1:
            return None
        t = topology.right(t) if h > 0 else topology.left(t)
    return t


def _dataset(name: str, X: FloatArray, y: NDArray[np.int64], source: str) -> Dataset:
    return Dataset(
        name=name,
        X=X,
        y=y,
        y_sign=y.astype(np.float64),
        strata=y,
        feature_names=("x1", "x2"),
        class_names=("-1", "+1"),
        source=source,
        checksum=fingerprint(X, y),
    )
