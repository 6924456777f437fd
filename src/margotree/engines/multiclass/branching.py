"""Which decision to take next: a class's side first, then the sample whose place matters most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.engines.multiclass.box import Box, Boxes
from margotree.engines.multiclass.nodes import IndexArray
from margotree.problem import topology
from margotree.problem.problem import FloatArray
from margotree.problem.routing import goes_right, in_band

#: A tree that costs no more than this share above a bound is what the bound says.
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Class ``who`` at upper node ``t`` wants left or right; with ``t`` = -1 sample ``who`` goes left or right."""

    t: int
    who: int


def choose(boxes: Boxes, box: Box, most: int) -> list[Cut]:
    """The most promising decisions, best first; none if all that is open costs nothing beyond the bound."""
    sides = _sides(boxes, box)
    return [sides] if sides is not None else _samples(boxes, box, most)


def _sides(boxes: Boxes, box: Box) -> Cut | None:
    """The heaviest class that some sample brings to a node at which its side is open."""
    p = boxes.problem
    best, found = 0.0, None
    for t, k in zip(*np.nonzero(box.sides == 0), strict=True):
        rows = boxes.rows(box, int(t))
        mass = float(p.C[t] * np.sum(p.weight[rows[p.y[rows] == k]]))
        if mass > best:
            best, found = mass, Cut(t=int(t), who=int(k))
    return found


def _samples(boxes: Boxes, box: Box, most: int) -> list[Cut]:
    """Samples that pay below something that the bound does not count, or lie in a band, by what deciding them costs."""
    p = boxes.problem
    open_ = np.flatnonzero(box.at < p.n_upper)
    if not len(open_):
        return []
    now = np.zeros(len(open_))
    ways = np.zeros((2, len(open_)))
    for t in np.unique(box.at[open_]):
        here = np.flatnonzero(box.at[open_] == t)
        rows = open_[here]
        h = p.X[rows] @ box.W[t] + box.B[t]
        right, caught = goes_right(h, float(box.B[t]), p.eps), in_band(h, float(box.B[t]), p.eps)
        left_pays = _below(boxes, box, rows, topology.left(int(t)))
        right_pays = _below(boxes, box, rows, topology.right(int(t)))
        now[here] = np.where(right, right_pays, left_pays) + np.where(caught, p.eps, 0.0)
        move = p.C[t] * p.weight[rows] * np.abs(h)
        ways[0, here] = left_pays + np.where(right, move, 0.0)
        ways[1, here] = right_pays + np.where(right, 0.0, move)
    matters = np.flatnonzero(now > 1e-12 * (1.0 + box.bound))
    if not len(matters) and p.evaluate(box.splits).objective > box.bound * (1.0 + _ROUNDING):
        # Samples of a class that each have their own side for nothing, but not all the same.
        matters = np.arange(len(open_))
    low, high = np.min(ways[:, matters], axis=0), np.max(ways[:, matters], axis=0)
    order = matters[np.argsort(-(low + 0.05 * high), kind="stable")][:most]
    return [Cut(t=-1, who=int(open_[i])) for i in order]


def _below(boxes: Boxes, box: Box, rows: IndexArray, top: int) -> FloatArray:
    """What samples would pay from ``top`` on with the hyperplanes of the box."""
    p = boxes.problem
    at, pays = np.full(len(rows), top), np.zeros(len(rows))
    for t in topology.subtree(top, p.depth):
        here = np.flatnonzero(at == t)
        if not len(here):
            continue
        h = p.X[rows[here]] @ box.W[t] + box.B[t]
        y = p.y[rows[here]]
        right, left = np.maximum(0.0, 1.0 - h), np.maximum(0.0, 1.0 + h)
        if t < p.n_upper:
            wants = box.sides[t][y]
            lacks = np.where(wants > 0, right, np.where(wants < 0, left, np.minimum(right, left)))
            at[here] = np.where(goes_right(h, float(box.B[t]), p.eps), topology.right(t), topology.left(t))
        else:
            a, b = boxes.labels(box)[t - p.n_upper]
            lacks = (y != a) * right + (y != b) * left
        pays[here] += p.C[t] * p.weight[rows[here]] * lacks
    return pays
