"""Plain loops of kernels, held against NumPy."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import entries

NUMBERS = st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 3.0]) | st.floats(-9, 9), max_size=40)


@given(NUMBERS, st.floats(-9, 9) | st.sampled_from([-1.0, 0.5]))
def test_a_place_among_ascending_numbers(numbers, value):
    ordered = np.sort(np.array(numbers, float))
    assert entries.count_less(ordered, value) == np.searchsorted(ordered, value)


@given(NUMBERS)
def test_the_largest_comes_first_and_equal_numbers_keep_their_order(numbers):
    a = np.array(numbers, float)
    assert entries.argsort_descending(a).tolist() == np.argsort(-a, kind="stable").tolist()


@given(NUMBERS)
def test_sums_copies_and_fillings(numbers):
    a = np.array(numbers, float)
    before, copied = entries.refilled(a, 7.0)
    assert before == sum(numbers, 0.0) and copied.tolist() == numbers and a.tolist() == [7.0] * len(numbers)
