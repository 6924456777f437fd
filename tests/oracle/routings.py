"""All sets of samples that a hyperplane can send right while the others go left, in exact integers.

If some hyperplane separates two non-empty sets strictly, another one does so weakly and passes through as many
affinely independent samples as their dimension: an extreme ray of the cone of weak separators.  The signs determine the
sides of the samples off that plane; for the samples on it, the same problem is solved one dimension lower.  Therefore
the planes through all such samples yield all sets and, as a small rotation of the plane shows, no others.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

Point = tuple[int, ...]


@cache
def right_sets(points: tuple[Point, ...]) -> frozenset[int]:
    """Bit masks of all sets that a hyperplane can send right while every other point goes strictly left."""
    everything = (1 << len(points)) - 1
    return frozenset(_split(points, tuple(range(len(points)))) | {0, everything})


def _split(points: tuple[Point, ...], names: tuple[int, ...]) -> set[int]:
    """Masks over ``names`` with both sides non-empty; ``points`` may span less than their space."""
    points = _full_rank(points)
    dimension = len(points[0]) if points else 0
    if dimension == 0:
        return set()
    if dimension == 1:
        return _split_line([p[0] for p in points], names)
    found: set[int] = set()
    seen: set[tuple[int, int]] = set()
    for chosen in combinations(range(len(points)), dimension):
        normal = _normal([points[i] for i in chosen])
        if not any(normal):
            continue
        base = points[chosen[0]]
        plus, flat = 0, []
        for i, p in enumerate(points):
            side = sum(a * (x - x0) for a, x, x0 in zip(normal, p, base, strict=True))
            if side > 0:
                plus |= 1 << names[i]
            elif side == 0:
                flat.append(i)
        minus = sum(1 << names[i] for i in range(len(points)) if i not in flat) & ~plus
        if (plus, minus) in seen:
            continue
        seen |= {(plus, minus), (minus, plus)}
        drop = next(j for j, a in enumerate(normal) if a)
        on_plane = tuple(tuple(x for j, x in enumerate(points[i]) if j != drop) for i in flat)
        all_flat = sum(1 << names[i] for i in flat)
        inner = _split(on_plane, tuple(names[i] for i in flat)) | {0, all_flat}
        found |= {side | part for side in (plus, minus) for part in inner}
    whole = sum(1 << i for i in names)
    return found - {0, whole}


def _split_line(xs: list[int], names: tuple[int, ...]) -> set[int]:
    """The masks of all numbers above, or below, a gap between two different numbers."""
    whole, found = sum(1 << i for i in names), set()
    for cut in sorted(set(xs))[1:]:
        upper = sum(1 << names[i] for i, x in enumerate(xs) if x >= cut)
        found |= {upper, whole & ~upper}
    return found


def _full_rank(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """The points restricted to a set of coordinates of full rank, in which they have the same separable sets."""
    if not points:
        return points
    rows = [[x - x0 for x, x0 in zip(p, points[0], strict=True)] for p in points[1:]]
    kept: list[int] = []
    for j in range(len(points[0])):
        if _rank([[row[c] for c in [*kept, j]] for row in rows]) > len(kept):
            kept.append(j)
    return tuple(tuple(p[j] for j in kept) for p in points)


def _rank(rows: list[list[int]]) -> int:
    """Rank by fraction-free elimination."""
    rows, rank = [list(r) for r in rows], 0
    for j in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][j]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            if rows[i][j]:
                a, b = rows[rank][j], rows[i][j]
                rows[i] = [a * y - b * x for x, y in zip(rows[rank], rows[i], strict=True)]
        rank += 1
    return rank


def _normal(points: list[Point]) -> tuple[int, ...]:
    """A vector orthogonal to the plane through ``d`` points of ``d`` dimensions; zero if they span less."""
    edges = [[x - x0 for x, x0 in zip(p, points[0], strict=True)] for p in points[1:]]
    d = len(points[0])
    return tuple((-1) ** j * _determinant([[e[c] for c in range(d) if c != j] for e in edges]) for j in range(d))


def _determinant(rows: list[list[int]]) -> int:
    if not rows:
        return 1
    return sum((-1) ** j * a * _determinant([r[:j] + r[j + 1 :] for r in rows[1:]]) for j, a in enumerate(rows[0]) if a)
