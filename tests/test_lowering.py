"""Kernels are lowered to fewer instructions than Numba's, with the same results."""

import itertools
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import types
from numba.core import config
from numba.core.errors import TypingError

from margotree.engines.numba_backend import choice, inner, kernel, struct

#: Numba's function for the type of a call, before anything is compiled here.
ASK = types.Function.get_call_type
STEPS = [-3, -2, -1, 1, 2, 3]


@struct
class Trial(NamedTuple):
    """One field of every kind that kernels use."""

    cube: np.ndarray
    column: np.ndarray
    small: np.ndarray
    flags: np.ndarray
    number: int
    share: float
    flag: bool


def entry(trial, i, j):
    return trial.cube[i, j, 1] + 10 * trial.column[j] + trial.small[i] + trial.share * trial.number


def summing(entry):
    """The function that goes through a trial, with this one compiled into it."""

    def total_of(trial):
        total = 0.0
        for i in range(trial.cube.shape[0]):
            for j in range(trial.column.size):
                if trial.flags[j] or trial.flag:
                    total += entry(trial, i, j)
                    trial.cube[i, j, 0] = total
        view = trial.cube[0]
        return total + view[1, 2] + len(view)

    return total_of


counted_sum = kernel()(summing(inner()(entry)))
borrowed_sum = kernel(allocates=False)(summing(inner(allocates=False)(entry)))


def new_trial(flag, *, strided=False, seed=0):
    rng = np.random.default_rng(seed)
    column = rng.normal(size=8)[::2] if strided else rng.normal(size=4)
    small = rng.integers(-5, 5, 3).astype(np.int8)
    return Trial(rng.normal(size=(3, 4, 5)), column, small, rng.random(4) < 0.5, 7, 0.25, flag)


@pytest.mark.parametrize("compiled", [counted_sum, borrowed_sum])
@pytest.mark.parametrize(("flag", "strided"), list(itertools.product([False, True], repeat=2)))
def test_structs_read_and_write_as_named_tuples_do(compiled, flag, strided):
    trial, twin = (new_trial(flag, strided=strided) for _ in range(2))
    assert compiled(trial) == pytest.approx(summing(entry)(twin), rel=1e-14)
    np.testing.assert_allclose(trial.cube, twin.cube, rtol=1e-14)


@pytest.mark.parametrize("compiled", [counted_sum, borrowed_sum])
def test_calls_keep_no_reference_to_the_arrays_of_a_struct(compiled):
    trial = new_trial(True)
    compiled(trial)
    before = [sys.getrefcount(array) for array in trial[:4]]
    for _ in range(50):
        compiled(trial)
    assert [sys.getrefcount(array) for array in trial[:4]] == before


@pytest.mark.skipif(
    bool(config.BOUNDSCHECK) or "structs" not in choice.ways(), reason="read-only arrays have a type of their own"
)
def test_frozen_arrays_have_no_kernel_of_their_own():
    trial, frozen = new_trial(True), new_trial(True)
    frozen.column.setflags(write=False)
    assert borrowed_sum(trial) == borrowed_sum(frozen)
    kinds = [signature for signature in borrowed_sum.signatures if "array(float64, 1d, C)" in str(signature)]
    assert len(kinds) == 1


def test_a_struct_of_something_else_is_refused():
    with pytest.raises(TypingError, match="Cannot determine Numba type"):
        borrowed_sum(new_trial(True)._replace(column=object()))


@kernel()
def looped(start, stop, step, out):
    count = 0
    for k in range(start, stop, step):
        out[count] = k
        count += 1
    return count


@pytest.mark.parametrize("step", STEPS)
def test_loops_count_as_in_python(step):
    out = np.zeros(40, np.int64)
    for start, stop in itertools.product(range(-7, 8), repeat=2):
        expected = list(range(start, stop, step))
        assert looped(start, stop, step, out) == len(expected)
        assert out[: len(expected)].tolist() == expected


@kernel()
def broken_off(n):
    """Variables set in one turn of a loop are there after it, and in the next."""
    found, last = -1, 0.0
    for k in range(n):
        half = k // 2
        if half * half > n:
            found = half
            break
        last = float(half)
    else:
        found = -2
    return found, last


def test_variables_outlive_the_loop_that_set_them():
    assert [broken_off(n) for n in (0, 1, 5, 30)] == [broken_off.py_func(n) for n in (0, 1, 5, 30)]


@kernel(boundscheck=True)
def entry_of(a, i, j):
    return a[i, j] + a[0, -1]


@kernel(boundscheck=True)
def set_entry(a, i):
    a[i] = 1.0
    return a[-1]


@pytest.mark.skipif("lowering" not in choice.ways(), reason="this Numba compiles in its own way")
def test_indices_count_from_the_start_unless_written_down_and_are_checked_on_request():
    square, row = np.arange(6.0).reshape(2, 3), np.zeros(3)
    assert entry_of(square, 1, 2) == 5.0 + 2.0
    assert entry_of(square[:, ::-1], 1, 2) == 3.0 + 0.0
    assert set_entry(row, 2) == 1.0
    for i, j in ((-1, 0), (0, -1), (2, 0), (0, 3)):
        with pytest.raises(IndexError):
            entry_of(square, i, j)
    for i in (-1, 3):
        with pytest.raises(IndexError):
            set_entry(row, i)


@inner()
def next_to(x):
    return abs(x) + 1


@kernel()
def refused(x):
    return next_to(x).no_such_field


def test_numba_is_left_as_it_was():
    """Whatever becomes of compiling; what is refused is compiled at every call."""
    with pytest.raises(TypingError, match="no_such_field"):
        refused(1)
    assert next_to.signatures  # which went well
    assert types.Function.get_call_type is ASK
