"""Positions of the cards of a tree: no two overlap, and a parent is above the middle of its children."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from margotree.tree.outline import Outline


@dataclass(frozen=True, kw_only=True)
class Box:
    """Position and size of a card: the middle ``x`` and the ``top``, width and height, in inches; y grows upwards."""

    x: float
    top: float
    width: float
    height: float

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def bottom(self) -> float:
        return self.top - self.height


def layout_boxes(
    shape: Outline, sizes: Mapping[int, tuple[float, float]], *, gap: float, drop: float
) -> tuple[dict[int, Box], float, float]:
    """Compute the positions of all cards.

    Parameters
    ----------
    shape : Outline
        The nodes and leaves.
    sizes : mapping
        The (width, height) of each card.
    gap, drop : float
        The space beside a card, and between two levels.

    Returns
    -------
    boxes : dict
        The box of every node and leaf.
    width, height : float
        The size of the whole.
    """
    span = {v: _span(shape, v, sizes, gap) for v in sizes}
    level = _levels(shape)
    heights = [max(sizes[v][1] for v in sizes if level[v] == k) for k in range(max(level.values()) + 1)]
    total = sum(heights) + drop * (len(heights) - 1)
    tops = [total - sum(heights[:k]) - drop * k for k in range(len(heights))]
    boxes: dict[int, Box] = {}
    waiting = [(shape.root, 0.0)]
    while waiting:
        v, start = waiting.pop()
        boxes[v] = Box(x=start + span[v] / 2, top=tops[level[v]], width=sizes[v][0], height=sizes[v][1])
        if v in shape.children:
            left, right = shape.children[v]
            spare = (span[v] - span[left] - span[right]) / 2
            waiting += [(left, start + spare), (right, start + spare + span[left])]
    return boxes, span[shape.root], total


def _span(shape: Outline, v: int, sizes: Mapping[int, tuple[float, float]], gap: float) -> float:
    """Return the width of the subtree of ``v``."""
    own = sizes[v][0] + gap
    below = sum(_span(shape, child, sizes, gap) for child in shape.children.get(v, ()))
    return max(own, below)


def _levels(shape: Outline) -> dict[int, int]:
    level = {shape.root: 0}
    for t in shape.nodes:
        for child in shape.children[t]:
            level[child] = level[t] + 1
    return level
