"""Small, numerically difficult problems; each is determined by the name of its generator and a number."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """A problem as plain numbers, the limits for the engine, and a unit in which the problem is stated again.

    ``y`` holds -1 and +1 for two classes, and class numbers 0, 1, ... for ``n_classes`` of them.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    depth: int
    C: list[float]
    eps: float = 1e-3
    budget: list[int] | None = None
    alpha: list[float] | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    #: a power of two: ``X / twin`` with ``C twin^2`` is the same problem with ``twin^2`` times the objective
    twin: float | None = None
    n_classes: int = 2
    max_weight: float | None = None

    @property
    def model(self) -> str:
        return "margot" if self.budget is None else "hfs" if self.alpha is None else "sfs"

    def in_units(self, s: float) -> Instance:
        """The same problem for features divided by ``s``, a power of two, so that the division is exact."""
        alpha = None if self.alpha is None else [a * s * s for a in self.alpha]
        limit = None if self.max_weight is None else self.max_weight * s
        C = [c * s * s for c in self.C]
        return replace(self, X=self.X / s, C=C, alpha=alpha, max_weight=limit, twin=None)


def base(rng: np.random.Generator, *, m: int | None = None, n: int | None = None, depth: int | None = None) -> Instance:
    """Features in [0, 1], any model, C over six decades, a gap of 1e-4: an ordinary problem."""
    depth = int(rng.choice([1, 2, 2, 2, 3])) if depth is None else depth
    n = int(rng.choice([1, 2, 2, 3])) if n is None else n
    most = {1: 10, 2: 8, 3: 5}[depth] - (1 if n == 3 and depth > 1 else 0)
    m = int(rng.integers(3, most + 1)) if m is None else m
    y = rng.choice([-1.0, 1.0], m)
    y[:2] = 1.0, -1.0  # at least one sample of each class
    nodes = 2**depth - 1
    by_level = 10.0 ** rng.uniform(-2, 4, depth)
    C = [float(by_level[(t + 1).bit_length() - 1]) for t in range(nodes)]
    model = rng.choice(["margot", "margot", "hfs", "sfs"]) if n > 1 else "margot"
    budget = [int(v) for v in rng.integers(1, n, nodes)] if model != "margot" else None
    alpha = (10.0 ** rng.uniform(-3, 2, nodes)).tolist() if model == "sfs" else None
    return Instance(
        X=rng.random((m, n)), y=y, weight=np.ones(m), depth=depth, C=C, budget=budget, alpha=alpha,
        limits={"gap": 1e-4},
    )  # fmt: skip


def plain(rng: np.random.Generator) -> Instance:
    return base(rng)


def units(rng: np.random.Generator) -> Instance:
    """Features in units from 1e-12 to 1e12, C as it is."""
    one = base(rng)
    s = 10.0 ** rng.uniform(-12, 12)
    return replace(one, X=one.X * s, twin=2.0 ** round(np.log2(s)))


def units_with_C(rng: np.random.Generator) -> Instance:
    """Units from 1e-12 to 1e12 with C in the same units, so that the tree does not change."""
    one = base(rng)
    return replace(one.in_units(2.0 ** rng.integers(-40, 41)), twin=None)


def offsets(rng: np.random.Generator) -> Instance:
    """Features of spread 1 (or 1000) around 1e6."""
    one = base(rng)
    spread = rng.choice([1.0, 1.0, 1e3])
    return replace(one, X=one.X * spread + rng.choice([-1e6, 1e6, 1e5], one.X.shape[1]))


def any_C(rng: np.random.Generator) -> Instance:
    """C from 1e-12 to 1e10, per level."""
    one = base(rng)
    by_level = 10.0 ** rng.uniform(-12, 10, one.depth)
    return replace(one, C=[float(by_level[(t + 1).bit_length() - 1]) for t in range(len(one.C))])


def near_duplicates(rng: np.random.Generator) -> Instance:
    """Points that nearly coincide, with both labels, and C up to 1e8."""
    one = base(rng)
    m, n = one.X.shape
    X = one.X[rng.integers(0, max(1, m // 2), m)] + 10.0 ** rng.uniform(-12, -3) * rng.standard_normal((m, n))
    return replace(one, X=X, C=(np.array(one.C) * 10.0 ** rng.uniform(0, 4)).tolist())


def collinear(rng: np.random.Generator) -> Instance:
    """Points on a line or on a grid, some of them equal."""
    one = base(rng)
    m, n = one.X.shape
    grid = rng.integers(0, 4, (m, n)).astype(float)
    line = np.outer(rng.integers(0, 6, m), rng.integers(-2, 3, n)).astype(float)
    return replace(one, X=(grid if rng.random() < 0.5 else line) * rng.choice([1.0, 0.1, 1 / 3]))


def weights(rng: np.random.Generator) -> Instance:
    """Weights of zero and from 1e-6 to 1e6."""
    one = base(rng)
    m = len(one.y)
    weight = np.where(rng.random(m) < 0.3, 0.0, 10.0 ** (rng.uniform(-6, 6, m) * rng.choice([0.2, 1.0])))
    return replace(one, weight=weight)


def bands(rng: np.random.Generator) -> Instance:
    """eps from 1e-6 to 0.1."""
    return replace(base(rng, depth=int(rng.choice([2, 2, 3]))), eps=float(10.0 ** rng.uniform(-6, -1)))


def gaps(rng: np.random.Generator) -> Instance:
    """Gap targets from 0 to 0.1, half of them below 1e-6."""
    gap = 0.0 if rng.random() < 0.25 else 10.0 ** (rng.uniform(-16, -6) if rng.random() < 0.4 else rng.uniform(-6, -1))
    return replace(base(rng), limits={"gap": float(gap)})


def columns(rng: np.random.Generator) -> Instance:
    """Columns of very different scale, 1e-6 to 1e6."""
    one = base(rng, n=int(rng.choice([2, 3])))
    return replace(one, X=one.X * 10.0 ** rng.uniform(-6, 6, one.X.shape[1]))


def limits(rng: np.random.Generator) -> Instance:
    """Stopped after a few nodes or a few milliseconds."""
    cut = {"nodes": int(rng.integers(0, 6))} if rng.random() < 0.7 else {"time": float(10.0 ** rng.uniform(-4, -1.5))}
    return replace(base(rng, depth=int(rng.choice([2, 2, 3]))), limits={"gap": 1e-6, **cut})


def threads(rng: np.random.Generator) -> Instance:
    """Two threads, on an instance of another generator."""
    kind = GENERATORS[str(rng.choice(["plain", "units", "any_C", "near_duplicates", "gaps"]))]
    one = kind(rng)
    return replace(one, limits={**one.limits, "n_jobs": 2}, twin=None)


def everything(rng: np.random.Generator) -> Instance:
    """All difficulties at once."""
    one = base(rng)
    m, n = one.X.shape
    X = one.X
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(1, m // 2), m)] + 10.0 ** rng.uniform(-9, -3) * rng.standard_normal((m, n))
    if rng.random() < 0.3:
        X = X + 10.0 ** rng.uniform(0, 6)
    X = X * 10.0 ** rng.uniform(-12, 12) * (10.0 ** rng.uniform(-3, 3, n) if rng.random() < 0.5 else 1.0)
    by_level = 10.0 ** rng.uniform(-12, 10, one.depth)
    weight = np.where(rng.random(m) < 0.2, 0.0, 10.0 ** rng.uniform(-2, 2, m)) if rng.random() < 0.5 else one.weight
    cut = {"nodes": int(rng.integers(0, 20))} if rng.random() < 0.2 else {}
    return replace(
        one, X=X, weight=weight, C=[float(by_level[(t + 1).bit_length() - 1]) for t in range(len(one.C))],
        eps=float(10.0 ** rng.uniform(-6, -1)), limits={"gap": float(10.0 ** rng.uniform(-8, -1)), **cut},
    )  # fmt: skip


def issue_unscaled(rng: np.random.Generator) -> Instance:
    """Ten points (eight in the plane) with coordinates up to s = 1e-6 to 1e9, C of 1, 10 or 100, depth 2."""
    n = int(rng.choice([1, 1, 2]))
    one = base(rng, depth=2, n=n, m=10 if n == 1 else 8)
    s = 10.0 ** rng.uniform(-6, 9)
    return replace(
        one, X=one.X * s, C=[float(rng.choice([1.0, 10.0, 100.0]))] * 3, budget=None, alpha=None,
        twin=2.0 ** round(np.log2(s)),
    )  # fmt: skip


def issue_tiny(rng: np.random.Generator) -> Instance:
    """Objectives of 1e-6 to 1e-14: a tiny C, features in [0, 1], bands so narrow that splits are worthwhile."""
    one = base(rng)
    by_level = 10.0 ** (rng.uniform(-14, -7, 1) if rng.random() < 0.5 else rng.uniform(-13, -6, one.depth))
    C = [float(by_level[min((t + 1).bit_length(), len(by_level)) - 1]) for t in range(len(one.C))]
    return replace(one, C=C, eps=float(10.0 ** rng.uniform(-6, -3)), alpha=_tiny(one.alpha))


def issue_gap(rng: np.random.Generator) -> Instance:
    """A gap of 1e-6, 1e-7, 1e-8 or 0, which double precision cannot always certify."""
    one = near_duplicates(rng) if rng.random() < 0.5 else base(rng)
    return replace(one, limits={"gap": float(rng.choice([1e-6, 1e-7, 1e-8, 0.0]))})


def wide_bands(rng: np.random.Generator) -> Instance:
    """eps from 1/2 to 20, including 1: samples of class -1 on the left lie beyond their margin."""
    one = base(rng, depth=int(rng.choice([2, 2, 3])))
    eps = 1.0 if rng.random() < 0.1 else float(10.0 ** rng.uniform(-0.3, 1.3))
    C = (10.0 ** rng.uniform(-2, 4, len(one.C))).tolist() if rng.random() < 0.5 else one.C
    return replace(one, eps=eps, C=C)


def huge_numbers(rng: np.random.Generator) -> Instance:
    """Features up to 1e6 to 1e9 as they are, or around offsets that large, at any depth: in standard units a C of
    1e12 to 1e20, or samples that double precision holds to seven to thirteen digits."""
    one = base(rng)
    s = 10.0 ** rng.uniform(6, 9)
    C = (np.array(one.C) ** 0.5).tolist()
    if rng.random() < 0.5:
        return replace(one, X=one.X * s, C=C, twin=2.0 ** round(np.log2(s)))
    spread = float(rng.choice([1.0, 10.0, 1e3]))
    return replace(one, X=one.X * spread + s * rng.choice([-1.0, 1.0], one.X.shape[1]), C=C)


def sixteen_orders(rng: np.random.Generator) -> Instance:
    """C and alpha per node, from 1e-8 to 1e8."""
    one = base(rng, depth=int(rng.choice([1, 2, 2, 3])))
    C = (10.0 ** rng.uniform(-8, 8, len(one.C))).tolist()
    alpha = None if one.alpha is None else (10.0 ** rng.uniform(-8, 8, len(one.C))).tolist()
    return replace(one, C=C, alpha=alpha)


def tiny_limits(rng: np.random.Generator) -> Instance:
    """Weights bounded by 1e-6 to 10, so tightly that most samples have a margin violation, and bands of any width."""
    one = base(rng, depth=int(rng.choice([1, 2, 2])))
    eps = float(10.0 ** rng.uniform(-6, -0.3))
    limit = float(eps * 10.0 ** rng.uniform(-1, 3) if rng.random() < 0.5 else 10.0 ** rng.uniform(-6, 1))
    return replace(one, eps=eps, max_weight=limit)


def _tiny(alpha: list[float] | None) -> list[float] | None:
    return None if alpha is None else [a * 1e-12 for a in alpha]


GENERATORS: dict[str, Callable[[np.random.Generator], Instance]] = {
    f.__name__: f
    for f in (
        plain, units, units_with_C, offsets, any_C, near_duplicates, collinear, weights, bands, gaps, columns, limits,
        threads, everything, issue_unscaled, issue_tiny, issue_gap, wide_bands, huge_numbers, sixteen_orders,
        tiny_limits,
    )
}  # fmt: skip


# -- more than two classes ------------------------------------------------------------------------------------------


def several(rng: np.random.Generator, *, depth: int | None = None, K: int | None = None) -> Instance:
    """Three or four classes, features in [0, 1], C over four decades, any model."""
    depth = int(rng.choice([1, 2, 2, 2, 3])) if depth is None else depth
    K = int(rng.choice([3, 4])) if K is None else K
    n = int(rng.choice([1, 2, 2, 3]))
    most = {1: 9, 2: 7, 3: 5}[depth] - (1 if n == 3 and depth > 1 else 0)
    m = int(rng.integers(min(K, most), most + 1))
    one = base(rng, depth=depth, n=n, m=max(m, 2))
    by_level = 10.0 ** rng.uniform(-1.5, 2.5, depth)
    return replace(
        one, y=rng.permutation(np.resize(np.arange(K), len(one.y))), n_classes=K,
        C=[float(by_level[(t + 1).bit_length() - 1]) for t in range(len(one.C))],
    )  # fmt: skip


def several_weights(rng: np.random.Generator) -> Instance:
    """Weights of zero and from 0.01 to 100, so that the weight of a class may be 0."""
    one = several(rng)
    m = len(one.y)
    return replace(one, weight=np.where(rng.random(m) < 0.2, 0.0, 10.0 ** rng.uniform(-2, 2, m)))


def several_on_a_grid(rng: np.random.Generator) -> Instance:
    """Equal points, some of different classes."""
    one = several(rng)
    return replace(one, X=rng.integers(0, 3, one.X.shape) / 2.0)


def several_absent(rng: np.random.Generator) -> Instance:
    """Random classes: one may have a single row, or no row."""
    one = several(rng)
    y = rng.integers(0, one.n_classes, len(one.y))
    y[:2] = rng.choice(one.n_classes, 2, replace=False)
    return replace(one, y=y)


def several_bands(rng: np.random.Generator) -> Instance:
    """eps from 1e-5 to 0.3 and C that differs from node to node."""
    one = several(rng, depth=int(rng.choice([2, 2, 3])))
    C = (10.0 ** rng.uniform(-1.5, 2.5, len(one.C))).tolist()
    return replace(one, eps=float(10.0 ** rng.uniform(-5, -0.5)), C=C)


def several_units(rng: np.random.Generator) -> Instance:
    """Features in units from 1e-4 to 1e4, C as it is."""
    one = several(rng)
    s = 10.0 ** rng.uniform(-4, 4)
    return replace(one, X=one.X * s, twin=2.0 ** round(np.log2(s)))


def several_limits(rng: np.random.Generator) -> Instance:
    """Stopped after a few nodes, at a gap of 1e-6."""
    one = several(rng, depth=int(rng.choice([2, 2, 3])))
    return replace(one, limits={"gap": 1e-6, "nodes": int(rng.integers(0, 6))})


def several_wide_bands(rng: np.random.Generator) -> Instance:
    """eps from 1/2 to 20."""
    one = several(rng, depth=2)
    return replace(one, eps=float(10.0 ** rng.uniform(-0.3, 1.3)))


def several_huge_numbers(rng: np.random.Generator) -> Instance:
    """Features up to 1e6 to 1e9 as they are."""
    one = several(rng, depth=int(rng.choice([1, 1, 2])))
    s = 10.0 ** rng.uniform(6, 9)
    return replace(one, X=one.X * s, twin=2.0 ** round(np.log2(s)))


#: Generators of more than two classes, separate so that the instances of :data:`GENERATORS` do not change.
SEVERAL: dict[str, Callable[[np.random.Generator], Instance]] = {
    f.__name__: f
    for f in (
        several, several_weights, several_on_a_grid, several_absent, several_bands, several_units, several_limits,
        several_wide_bands, several_huge_numbers,
    )
}  # fmt: skip


def make(generator: str, number: int) -> Instance:
    """Instance ``number`` of a generator (deterministic)."""
    return (GENERATORS | SEVERAL)[generator](np.random.default_rng([zlib.crc32(generator.encode()), number]))


def issue_example() -> Instance:
    """An instance for which 163.40 was once certified as optimal, while a tree of 130.12 exists."""
    x = [26229.59, 7678.12, 38226.73, 69959.71, 8587.46, 77748.95, 54333.87, 71181.61, 57105.38, 32336.03]
    y = [0, 1, 1, 0, 0, 0, 1, 1, 0, 1]
    return Instance(
        X=np.array(x)[:, None], y=2.0 * np.array(y) - 1, weight=np.ones(10), depth=2, C=[10.0] * 3,
        limits={"gap": 1e-4},
    )  # fmt: skip
