"""Laws: the same problem stated otherwise has the same optimum, so no two certificates may contradict each other."""

from dataclasses import replace

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from margotree.engines import Limits, solve
from margotree.solution import Proved
from oracle.instances import Instance, base
from oracle.judge import problem_of

#: Rounding ties may move an optimum by this much, relative; far below the gaps asked for.
TIES = 1e-7

SEEDS = st.integers(0, 10**6)
#: An instance is its seed; a smaller seed is no simpler problem, so nothing is shrunk.
law = settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def dyadic(seed: int, **kwargs: int) -> Instance:
    """An ordinary instance whose features are whole 1024ths, so that moving and scaling them loses no bit."""
    rng = np.random.default_rng(seed)
    one = base(rng, m=int(rng.integers(4, 9)), **kwargs)
    return replace(one, X=np.round(one.X * 1024) / 1024, limits={"gap": float(rng.choice([1e-2, 1e-4, 1e-6]))})


def certificate(instance: Instance):
    return solve(problem_of(instance), engine="bnb", limits=Limits(**instance.limits)).certificate


def assert_same(one: Instance, other: Instance, *, unit: float = 1.0, slack: float = 0.0) -> None:
    """Both proved alike, neither bound above the other's tree, both objectives within the gap; ``unit`` is what an
    objective of 1 is worth in the other statement, ``slack`` what the two optima may differ by."""
    a, b = certificate(one), certificate(other)
    a_value, a_bound, b_value, b_bound = a.objective, a.bound, b.objective / unit, b.bound / unit
    slack += TIES * max(a_value, b_value)
    assert a.proved == b.proved
    assert a_bound <= b_value + slack
    assert b_bound <= a_value + slack
    if a.proved is Proved.OPTIMAL:
        assert abs(a_value - b_value) <= a.gap_target * max(a_value, b_value) + slack


@given(seed=SEEDS)
@law
def test_order_of_rows(seed):
    one = dyadic(seed)
    rows = np.random.default_rng(seed).permutation(len(one.y))
    assert_same(one, replace(one, X=one.X[rows], y=one.y[rows], weight=one.weight[rows]))


@given(seed=SEEDS)
@law
def test_order_of_columns(seed):
    one = dyadic(seed, n=3)
    assert_same(one, replace(one, X=one.X[:, np.random.default_rng(seed).permutation(3)]))


@given(seed=SEEDS)
@law
def test_flipped_columns(seed):
    one = dyadic(seed)
    assert_same(one, replace(one, X=one.X * np.random.default_rng(seed).choice([-1.0, 1.0], one.X.shape[1])))


@given(seed=SEEDS, depth=st.integers(1, 3))
@law
def test_flipped_labels(seed, depth):
    """Exact at depth 1.  Above, ``h -> -eps - h`` swaps the sides of a band and moves every margin there by eps."""
    one = dyadic(seed, depth=depth)
    flipped = replace(one, y=-one.y, C=mirrored(one.C), budget=mirrored(one.budget), alpha=mirrored(one.alpha))
    upper = 2 ** (depth - 1) - 1
    assert_same(one, flipped, slack=one.eps * sum(one.C[:upper]) * float(np.sum(one.weight)))


def mirrored(terms):
    """Per-node terms with left and right swapped at every node."""
    if terms is None:
        return None
    levels = [terms[2**d - 1 : 2 ** (d + 1) - 1] for d in range((len(terms) + 1).bit_length() - 1)]
    return [v for level in levels for v in level[::-1]]


@given(seed=SEEDS, power=st.integers(-40, 40))
@law
def test_scaled_features_by_powers_of_two(seed, power):
    one = dyadic(seed)
    s = 2.0**power
    assert_same(one, one.in_units(s), unit=s * s)


@given(seed=SEEDS, power=st.integers(-12, 12))
@law
def test_scaled_features_by_powers_of_ten(seed, power):
    one = dyadic(seed)
    s = 10.0**power
    assert_same(one, one.in_units(s), unit=s * s)


@given(seed=SEEDS, far=st.sampled_from([1, 1000, 10**6]))
@law
def test_moved_features(seed, far):
    one = dyadic(seed)
    assert_same(one, replace(one, X=one.X + far * np.random.default_rng(seed).choice([-1.0, 1.0], one.X.shape[1])))


@given(seed=SEEDS)
@law
def test_a_sample_split_into_two_of_half_the_weight(seed):
    one = dyadic(seed)
    twice = np.random.default_rng(seed).integers(len(one.y))
    weight = one.weight.copy()
    weight[twice] /= 2
    split = replace(
        one, X=np.vstack([one.X, one.X[twice]]), y=np.append(one.y, one.y[twice]),
        weight=np.append(weight, weight[twice]),
    )  # fmt: skip
    assert_same(one, split)


@given(seed=SEEDS)
@law
def test_weights_and_C_trade(seed):
    one = dyadic(seed)
    assert_same(one, replace(one, weight=one.weight * 8, C=[c / 8 for c in one.C]))


@given(seed=SEEDS)
@law
def test_two_threads(seed):
    one = dyadic(seed)
    assert_same(one, replace(one, limits={**one.limits, "n_jobs": 2}))
