"""Generated points in the unit square that a known tree classifies without error, like the paper's 2-D sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians, sin

import numpy as np
from numpy.typing import NDArray

from margotree.paper.data.dataset import Dataset, FloatArray, fingerprint, frozen
from margotree.problem import Splits, topology

#: The largest random shift and rotation (degrees) of a line, so that every seed gives another instance.
_MAX_SHIFT, _MAX_TURN = 0.02, 6.0

#: The number of random points per requested point after which the margin is considered too wide.
_TRIES = 2000


@dataclass(frozen=True)
class _Line:
    """A line through (x, y) whose normal points ``angle`` degrees from the first axis, to the right branch."""

    x: float
    y: float
    angle: float


#: Two columns, each split at another height, with the classes exchanged.  Template: node number -> its line.
_FOUR: dict[int, _Line | float] = {0: _Line(0.5, 0.5, 10.0), 1: _Line(0.25, 0.3, 80.0), 2: _Line(0.75, 0.45, -100.0)}

#: Two halves, mirrored with classes exchanged: a wide cell below, and above it one cell of each class.  The wide cells
#: are separated above the last level; their last-level node has one class, given by the sign of its offset.
_SIX: dict[int, _Line | float] = {
    0: _Line(0.5, 0.5, 5.0),
    1: _Line(0.25, 0.5, 70.0),
    2: _Line(0.75, 0.65, 110.0),
    3: -1.0,
    4: _Line(0.25, 0.75, 185.0),
    5: 1.0,
    6: _Line(0.7, 0.75, 175.0),
}

_TEMPLATES = {4: (2, _FOUR, 108), 6: (3, _SIX, 96)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Partitions:
    """A generated set and the tree from which it was generated.

    ``truth`` classifies every point correctly: each point has at least the distance ``margin`` from every line on its
    path, that is ``|h| >= 1``.  It is not necessarily the optimal tree.  ``region`` is the leaf of every point,
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
    """Generate random points in 4 regions that a tree of depth 2 separates, or in 6 regions that need depth 3.

    The points of the paper are not published; these follow its description: lines with margins, and points outside the
    margins, spread evenly over the regions.

    Parameters
    ----------
    kind : 4 or 6
        The number of regions.
    n_samples : int, optional
        The number of points; by default 108 and 96, as in the paper.
    margin : float, default 0.03
        The smallest distance of a point from the lines on its path.
    random_state : int or None, default 0
        Seed of points and lines.

    Returns
    -------
    Partitions
    """
    if kind not in _TEMPLATES:
        raise ValueError(f"kind must be 4 or 6 (regions), got {kind!r}")
    depth, template, default_samples = _TEMPLATES[kind]
    n_samples = default_samples if n_samples is None else n_samples
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


def _truth(template: dict[int, _Line | float], depth: int, margin: float, rng: np.random.Generator) -> Splits:
    """The tree of a template, with every line shifted and rotated at random."""
    w, b = np.zeros((topology.n_nodes(depth), 2)), np.zeros(topology.n_nodes(depth))
    for t, line in template.items():
        if not isinstance(line, _Line):
            b[t] = line
            continue
        point = np.array([line.x, line.y]) + rng.uniform(-_MAX_SHIFT, _MAX_SHIFT, 2)
        angle = radians(line.angle + rng.uniform(-_MAX_TURN, _MAX_TURN))
        w[t] = np.array([cos(angle), sin(angle)]) / margin
        b[t] = -w[t] @ point
    return Splits(w=w, b=b)


def _leaves(template: dict[int, _Line | float], depth: int) -> list[int]:
    """The leaves that can be reached: both sides of a line, one side of a node of one class."""
    reached: list[int] = []
    for t in topology.last(depth):
        line = template[t]
        sides = {-1.0, 1.0} if isinstance(line, _Line) else {line}
        reached += [leaf for side, leaf in ((-1.0, topology.left(t)), (1.0, topology.right(t))) if side in sides]
    return reached


def _points(
    truth: Splits, depth: int, n_samples: int, leaves: list[int], rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw random points until every region has its share; points within a margin are rejected."""
    remaining = {leaf: n_samples // len(leaves) + (k < n_samples % len(leaves)) for k, leaf in enumerate(leaves)}
    kept: list[tuple[FloatArray, int]] = []
    for _ in range(_TRIES * n_samples):
        x = rng.uniform(size=2)
        leaf = _region(truth, depth, x)
        if leaf is not None and remaining[leaf] > 0:
            remaining[leaf] -= 1
            kept.append((x, leaf))
            if len(kept) == n_samples:
                order = rng.permutation(n_samples)
                return np.array([kept[i][0] for i in order]), np.array([kept[i][1] for i in order], dtype=np.int64)
    raise ValueError("with this margin some region is too small for its points; make the margin narrower")


def _region(truth: Splits, depth: int, x: FloatArray) -> int | None:
    """The leaf of a point; None within the margin of a line on its path."""
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
