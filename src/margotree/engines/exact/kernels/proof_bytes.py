"""Points and steps of a proof as bytes (docs/proof.md), written by compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner, struct

#: Bytes before the lists of a point, and bytes that each sample adds at most.
POINT_HEAD, BYTES_PER_SAMPLE = 13, 12
#: Bytes of a decision, and of a leaf and of a step that raises bounds before their points.
SPLIT_BYTES, LEAF_HEAD, RAISE_HEAD = 19, 5, 7
#: The first bytes of steps: decisions about a sample and a feature, a leaf, and what raises bounds.
SAMPLE_SPLIT, FEATURE_SPLIT, LEAF_STEP, RAISE_STEP = (ord(letter) for letter in "SFLR")


@struct
class ByteBuffer(NamedTuple):
    """Where bytes are written, and a number beside its own eight bytes."""

    out: NDArray[np.uint8]
    one: NDArray[np.float64]
    one_bytes: NDArray[np.uint8]


def new_buffer(room: int) -> ByteBuffer:
    one = np.zeros(1)
    return ByteBuffer(np.zeros(room, np.uint8), one, one.view(np.uint8))


@inner(allocates=False)
def put(buffer: ByteBuffer, at: int, number: int, size: int) -> int:
    """Write a number of so many bytes; returns where it ends."""
    for r in range(size):
        buffer.out[at + r] = (number >> (8 * r)) & 255
    return at + size


@inner(allocates=False)
def put_float(buffer: ByteBuffer, at: int, number: float) -> int:
    buffer.one[0] = number
    for r in range(8):
        buffer.out[at + r] = buffer.one_bytes[r]
    return at + 8


@inner(allocates=False)
def get(buffer: ByteBuffer, at: int) -> int:
    """The number that these four bytes are."""
    number = np.int64(0)
    for r in range(4):
        number |= np.int64(buffer.out[at + r]) << (8 * r)
    return int(number)


@inner(allocates=False)
def put_split(buffer: ByteBuffer, at: int, kind: int, node: int, which: int, t: int, first: int, second: int) -> int:
    """Write a decision at search node ``node`` about a sample or feature of tree node ``t``; returns where it ends."""
    put(buffer, at, kind, 1)
    put(buffer, at + 1, node, 4)
    put(buffer, at + 5, which, 4)
    put(buffer, at + 9, t, 2)
    put(buffer, at + 11, first, 4)
    return put(buffer, at + 15, second, 4)


@inner(allocates=False)
def put_head(buffer: ByteBuffer, at: int, kind: int, node: int) -> int:
    """Write how a step of search node ``node`` begins; returns where that ends."""
    put(buffer, at, kind, 1)
    return put(buffer, at + 1, node, 4)
