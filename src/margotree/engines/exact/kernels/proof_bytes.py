"""Numbers and steps of a proof as bytes (docs/proof.md), written by compiled code.

Every ``put`` function writes to position ``at`` of a buffer and returns the position after the last byte.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner, struct

#: Bytes of a point before its lists, and the largest number of bytes for each sample in them.
POINT_HEAD, BYTES_PER_SAMPLE = 13, 12
#: Bytes of a decision; bytes of a leaf, and of a step that raises bounds, before their points.
SPLIT_BYTES, LEAF_HEAD, RAISE_HEAD = 19, 5, 7
#: The first bytes of steps: a decision about a sample, one about a feature, one about a class, a leaf, a step that
#: raises bounds.
SAMPLE_SPLIT, FEATURE_SPLIT, CHOICE_SPLIT, LEAF_STEP, RAISE_STEP = (ord(letter) for letter in "SFCLR")


@struct
class ByteBuffer(NamedTuple):
    """A buffer into which compiled code writes bytes."""

    out: NDArray[np.uint8]
    one: NDArray[np.float64]  # one float, to convert it to bytes
    one_bytes: NDArray[np.uint8]  # the same memory as eight bytes


def new_buffer(size: int) -> ByteBuffer:
    """A buffer with space for ``size`` bytes."""
    one = np.zeros(1)
    return ByteBuffer(np.zeros(size, np.uint8), one, one.view(np.uint8))


@inner(allocates=False)
def put_integer(buffer: ByteBuffer, at: int, number: int, size: int) -> int:
    """Write an integer as ``size`` bytes, the lowest first."""
    for r in range(size):
        buffer.out[at + r] = (number >> (8 * r)) & 255
    return at + size


@inner(allocates=False)
def put_float(buffer: ByteBuffer, at: int, number: float) -> int:
    """Write a float as eight bytes."""
    buffer.one[0] = number
    for r in range(8):
        buffer.out[at + r] = buffer.one_bytes[r]
    return at + 8


@inner(allocates=False)
def get_integer(buffer: ByteBuffer, at: int) -> int:
    """The integer that is stored in the four bytes from position ``at`` on, the lowest first."""
    number = np.int64(0)
    for r in range(4):
        number |= np.int64(buffer.out[at + r]) << (8 * r)
    return int(number)


@inner(allocates=False)
def put_split(buffer: ByteBuffer, at: int, kind: int, node: int, which: int, t: int, first: int, second: int) -> int:
    """Write the decision at search node ``node`` about a sample, a feature or a class, number ``which``, of tree node
    ``t``.

    ``kind`` is SAMPLE_SPLIT, FEATURE_SPLIT or CHOICE_SPLIT; ``first`` and ``second`` are the numbers of the children.
    """
    put_integer(buffer, at, kind, 1)
    put_integer(buffer, at + 1, node, 4)
    put_integer(buffer, at + 5, which, 4)
    put_integer(buffer, at + 9, t, 2)
    put_integer(buffer, at + 11, first, 4)
    return put_integer(buffer, at + 15, second, 4)


@inner(allocates=False)
def put_head(buffer: ByteBuffer, at: int, kind: int, node: int) -> int:
    """Write the beginning of a step: its kind and the number of its search node."""
    put_integer(buffer, at, kind, 1)
    return put_integer(buffer, at + 1, node, 4)
