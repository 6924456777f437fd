"""Index sets of a complete binary tree of branch nodes.

Branch nodes are numbered level by level: the root is 0, the children of ``t`` are ``2t + 1`` (left) and
``2t + 2`` (right).  A tree of depth ``D`` has ``2**D - 1`` branch nodes; the lowest level is called *last*,
the others *upper*.  Leaves continue the same numbering below the last level.
"""

from __future__ import annotations


def n_nodes(depth: int) -> int:
    """Number of branch nodes of a tree of this depth."""
    return 2**depth - 1


def left(t: int) -> int:
    return 2 * t + 1


def right(t: int) -> int:
    return 2 * t + 2


def parent(t: int) -> int:
    """The node above ``t``; the root has none and gives -1."""
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
    """The leaves, numbered on after the branch nodes."""
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
    """The turns from the root to ``t`` as (node, side) pairs, side -1 for left and +1 for right."""
    turns = []
    while t > 0:
        turns.append((parent(t), -1 if t == left(parent(t)) else +1))
        t = parent(t)
    return turns[::-1]
