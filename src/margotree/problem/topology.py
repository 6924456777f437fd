"""The numbering of the nodes of a complete binary tree.

Branch nodes are numbered level by level: the root is 0, the children of ``t`` are ``2t + 1`` (left) and
``2t + 2`` (right). A tree of depth ``D`` has ``2**D - 1`` branch nodes. The lowest level of branch nodes is called
*last*, the others *upper*. Leaves continue the numbering below the last level.
"""

from __future__ import annotations


def n_nodes(depth: int) -> int:
    """Number of branch nodes of a tree of this depth."""
    return 2**depth - 1


def left(t: int) -> int:
    """The left child of ``t``."""
    return 2 * t + 1


def right(t: int) -> int:
    """The right child of ``t``."""
    return 2 * t + 2


def parent(t: int) -> int:
    """The parent of ``t``; -1 for the root."""
    return (t - 1) // 2 if t > 0 else -1


def level(t: int) -> int:
    """Distance from the root."""
    return (t + 1).bit_length() - 1


def level_nodes(k: int) -> range:
    """The nodes at distance ``k`` from the root, left to right."""
    return range(2**k - 1, 2 ** (k + 1) - 1)


def last(depth: int) -> range:
    """Branch nodes of the lowest level."""
    return level_nodes(depth - 1)


def upper(depth: int) -> range:
    """Branch nodes above the lowest level."""
    return range(2 ** (depth - 1) - 1)


def leaves(depth: int) -> range:
    """The leaves, whose numbers follow those of the branch nodes."""
    return level_nodes(depth)


def subtree(t: int, depth: int) -> list[int]:
    """Branch nodes of the subtree rooted at ``t``, ``t`` first, level by level."""
    nodes, row = [], [t]
    while row and row[0] < n_nodes(depth):
        nodes += row
        row = [child for s in row for child in (left(s), right(s))]
    return nodes


def last_below(t: int, depth: int) -> range:
    """Last-level nodes in the subtree of ``t`` (``t`` itself if it is one)."""
    down = depth - 1 - level(t)
    first = (t + 1) * 2**down - 1
    return range(first, first + 2**down)


def last_left(t: int, depth: int) -> range:
    """Last-level nodes below the left branch of an upper node."""
    return last_below(left(t), depth)


def last_right(t: int, depth: int) -> range:
    """Last-level nodes below the right branch of an upper node."""
    return last_below(right(t), depth)


def path_to(t: int) -> list[tuple[int, int]]:
    """The path from the root to ``t`` as (node, side) pairs, side -1 for left and +1 for right."""
    steps = []
    while t > 0:
        steps.append((parent(t), -1 if t == left(parent(t)) else +1))
        t = parent(t)
    return steps[::-1]
