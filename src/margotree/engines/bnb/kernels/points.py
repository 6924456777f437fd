"""Points of a proof as bytes (docs/proof.md, "A point is one byte"), written by compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.jit import bare

#: Bytes before the lists of a point, and bytes that each sample adds at most.
LEAD, EACH = 13, 12


class Pen(NamedTuple):
    """Where bytes are written, and a number beside its own eight bytes."""

    out: NDArray[np.uint8]
    one: NDArray[np.float64]
    one_bytes: NDArray[np.uint8]


def new_pen(room: int) -> Pen:
    one = np.zeros(1)
    return Pen(np.zeros(room, np.uint8), one, one.view(np.uint8))


@bare()
def put(pen: Pen, at: int, number: int, size: int) -> int:
    """Write a number of so many bytes; returns where it ends."""
    for r in range(size):
        pen.out[at + r] = (number >> (8 * r)) & 255
    return at + size


@bare()
def put_float(pen: Pen, at: int, number: float) -> int:
    pen.one[0] = number
    for r in range(8):
        pen.out[at + r] = pen.one_bytes[r]
    return at + 8


@bare()
def get(pen: Pen, at: int) -> int:
    """The number that these four bytes are."""
    number = np.int64(0)
    for r in range(4):
        number |= np.int64(pen.out[at + r]) << (8 * r)
    return int(number)
