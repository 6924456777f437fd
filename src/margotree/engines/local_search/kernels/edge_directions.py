"""Edge directions: one sample can change sides, while the samples nearest to the hyperplane keep their values.

Where a split itself costs little and the subtree costs dominate, the objective is nearly piecewise constant.
Hyperplanes that divide the samples in the same way form a cell in the space of ``(w, b)``, bounded by the hyperplanes
of the samples; directions along which samples keep their values are the edges of that cell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import dot
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: The largest number of samples that keep their values.
MAX_KEPT = 64
#: The mean rank, by distance from the hyperplane, of the chosen misplaced sample.
_MEAN_RANK = 5.0
#: A sample depends linearly on others if its squared component outside of their span is below this share.
_DEPENDENT = 1e-10
#: A linear congruential generator of pseudorandom numbers.
_MULTIPLIER, _INCREMENT, _MODULUS = 1103515245, 12345, 2147483648


@inner()
def _is_misplaced(h: float, left_cost: float, right_cost: float) -> bool:
    """Whether a sample is on the side with the larger subtree cost."""
    return right_cost > left_cost if h >= 0.0 else left_cost > right_cost


@inner()
def _row(Z: F8, i: int, usable: F8, v: F8) -> float:
    """Write a sample as a vector of the space of ``(w, b)``, without unusable features; return its squared length."""
    p = usable.size
    for a in range(p):
        v[a] = Z[i, a] * usable[a]
    v[p] = 1.0
    return dot(v, v)


@inner()
def _orthogonalise(v: F8, basis: F8, count: int) -> None:
    """Subtract the components along the first ``count`` vectors of an orthonormal basis."""
    for k in range(count):
        b = basis[k]
        length = dot(v, b)
        for a in range(v.size):
            v[a] -= length * b[a]


@inner()
def _misplaced_sample(h: F8, left_cost: F8, right_cost: F8, order: I8, rank: int) -> int:
    """The misplaced sample with this ``rank`` by distance from the hyperplane, or the last one; -1 if there is none."""
    found = -1
    for k in range(order.size):
        i = order[k]
        if _is_misplaced(h[i], left_cost[i], right_cost[i]):
            found = i
            if rank == 0:
                break
            rank -= 1
    return found


@inner()
def edge_direction(
    Z: F8, h: F8, left_cost: F8, right_cost: F8, order: I8, usable: F8, uniforms: F8, basis: F8, d: F8
) -> bool:
    """Write an edge direction to ``d``; return whether there is one.

    Parameters
    ----------
    Z : array of shape (m, p)
        The samples.
    h : array of length m
        Their values at the hyperplane.
    left_cost, right_cost : arrays of length m
        Subtree costs.
    order : array of length m
        Sorts the samples by their distance from the hyperplane.
    usable : array of length p
        1 for the features that may be used, 0 for the others.
    uniforms : array of length 4
        Random numbers in [0, 1): they choose the misplaced sample, how many samples keep their values, whether
        these are the nearest or half of them is skipped at random, and the seed of that choice.
    basis : array
        Work array with one row per sample that may keep its value.
    """
    i = _misplaced_sample(h, left_cost, right_cost, order, int(-_MEAN_RANK * np.log(max(uniforms[0], 1e-12))))
    if i < 0:
        return False
    size, max_dim = _row(Z, i, usable, d), 1
    for a in range(usable.size):
        max_dim += usable[a] > 0.0
    max_kept, count = min(int(uniforms[1] * max_dim), basis.shape[0]), 0
    skips_half, state = uniforms[2] < 0.5, int(uniforms[3] * _MODULUS)
    for k in range(order.size):
        if count == max_kept:
            break
        j = order[k]
        if j == i or _is_misplaced(h[j], left_cost[j], right_cost[j]):
            continue
        state = (state * _MULTIPLIER + _INCREMENT) % _MODULUS
        if skips_half and 2 * state < _MODULUS:
            continue
        v = basis[count]
        length = _row(Z, j, usable, v)
        _orthogonalise(v, basis, count)
        rest = dot(v, v)
        if rest > _DEPENDENT * length:
            scale = 1.0 / np.sqrt(rest)
            for a in range(v.size):
                v[a] *= scale
            count += 1
    _orthogonalise(d, basis, count)
    return dot(d, d) > _DEPENDENT * size
