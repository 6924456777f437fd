"""Short proof files that would take much memory or time to check: what the checker's limits are for."""

import struct
import zlib

import numpy as np

from margotree.proof import check
from margotree.proof.write import pack_header


def header_of(model, X, y, weight, *, depth, steps, budget=None, alpha=None):
    """A header whose tree has no weights and whose claim is as weak as can be."""
    T = 2**depth - 1
    header = {
        "model": model, "depth": depth, "samples": X.shape[0], "features": X.shape[1], "C": [1.0] * T, "eps": 1e-3,
        "budget": None if budget is None else [budget] * T, "alpha": None if alpha is None else [alpha] * T,
        "losses": {"kind": "labels"}, "groups": None,
    }  # fmt: skip
    header["digest"] = check.digest_of(header, X, y, weight)
    tree = {"w": [[0] * X.shape[1]] * T, "b": [1] * T}
    return header | {"tree": tree, "claim": {"objective": 1e9, "bound": 0.0}, "steps": steps, "table": None}


def put(path, header, steps):
    """A proof file with these steps, in blocks of whole steps (all of one length)."""
    size = len(steps[0])
    each = (1 << 20) // size
    with open(path, "wb") as stream:
        stream.write(pack_header(header))
        for k in range(0, len(steps), each):
            raw = b"".join(steps[k : k + each])
            packed = zlib.compress(raw, 9)
            stream.write(struct.pack("<III", len(packed), len(raw), zlib.crc32(packed)) + packed)
        stream.write(struct.pack("<III", 0, 0, 0))


def samples(m, n):
    return np.arange(m * n, dtype=float).reshape(m, n), np.where(np.arange(m) % 2, 1.0, -1.0), np.ones(m)


def many_open_nodes(path, splits, rows=2000):
    """Splits without a leaf: every search node stays open."""
    data = samples(rows, 1)
    steps = [struct.pack("<cIIHII", b"S", k, (k + 1).bit_length() - 1, 0, 2 * k + 1, 2 * k + 2) for k in range(splits)]
    put(path, header_of("margot", *data, depth=2, steps=splits), steps)
    return data


def wide_tables(path, n=12_000, budget=None):
    """A table of supports that are long: as many as features, each of all features but one."""
    data = samples(3, n)
    budget = n - 1 if budget is None else budget
    steps = [struct.pack("<cIHB", b"R", 0, 0, 0), struct.pack("<cIB", b"L", 0, 0)]
    header = header_of("hfs", *data, depth=1, steps=2, budget=budget)
    with open(path, "wb") as stream:
        raw = b"".join(steps)
        packed = zlib.compress(raw)
        stream.write(pack_header(header))
        stream.write(struct.pack("<III", len(packed), len(raw), zlib.crc32(packed)) + packed)
        stream.write(struct.pack("<III", 0, 0, 0))
    return data


def many_raises(path, steps, rows=2000, n=20):
    """The same step again and again, which compresses to almost nothing."""
    data = samples(rows, n)
    header = header_of("hfs", *data, depth=1, steps=steps, budget=4)
    put(path, header, [struct.pack("<cIHB", b"R", 0, 0, 0)] * (steps - 1) + [struct.pack("<cIB", b"L", 0, 0)])
    return data
