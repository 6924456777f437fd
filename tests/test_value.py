"""The value function against a twin written per sample, and the laws it must obey."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margotree.problem import Problem, Splits, evaluate, tie, topology


@st.composite
def trees_on_data(draw):
    """A problem and a tree on a coarse grid: exact arithmetic, and many samples exactly on a hyperplane."""
    depth = draw(st.integers(1, 3))
    m, n = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    nodes = topology.n_nodes(depth)

    def grid(*shape):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(-4, 4), min_size=size, max_size=size))).reshape(shape) / 2

    budget = draw(st.none() | st.lists(st.integers(1, n), min_size=nodes, max_size=nodes))
    problem = Problem.make(
        grid(m, n),
        np.where(grid(m) >= 0, 1, -1),
        depth=depth,
        C=np.abs(grid(nodes)) + 0.5,
        weight=np.abs(grid(m)),
        eps=draw(st.sampled_from([1e-3, 0.75])),
        budget=budget,
        alpha=draw(st.none() | st.just(np.abs(grid(nodes)))) if budget else None,
        max_weight=draw(st.none() | st.just(1.0)),
    )
    return problem, Splits(w=grid(nodes, n), b=grid(nodes))


def twin(problem, splits):
    """Value and feasibility by following every sample down by itself."""
    value, feasible, last = 0.0, True, []
    for t in range(problem.n_nodes):
        used = sum(w != 0 for w in splits.w[t])
        value += sum(w * w for w in splits.w[t]) / 2
        if problem.model == "sfs":
            value += problem.alpha[t] * max(0, used - problem.budget[t])
        feasible &= problem.model != "hfs" or used <= problem.budget[t]
        feasible &= problem.max_weight is None or max(map(abs, splits.w[t])) <= problem.max_weight
    for x, label, weight in zip(problem.X, problem.y, problem.weight, strict=True):

        def descend(t, x=x, label=label, weight=weight):
            h = sum(w * v for w, v in zip(splits.w[t], x, strict=True)) + splits.b[t]
            loss = problem.C[t] * weight * max(0.0, 1 - label * h)
            if t in topology.last(problem.depth):
                return loss, True, t
            below, fine, end = descend(topology.right(t) if h >= 0 else topology.left(t))
            return loss + below, fine and (h >= 0 or h <= -problem.eps), end

        loss, fine, end = descend(0)
        value, feasible = value + loss, feasible and fine
        last.append(end)
    return value, feasible, last


@given(trees_on_data())
def test_it_agrees_with_the_twin(case):
    problem, splits = case
    value, feasible, last = twin(problem, splits)
    found = evaluate(problem, splits)
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.feasible == feasible
    assert found.node.tolist() == last
    assert found.objective == pytest.approx(found.node_values.sum())


@given(trees_on_data(), st.randoms())
def test_the_order_of_the_samples_does_not_matter(case, random):
    problem, splits = case
    order = list(range(problem.n_samples))
    random.shuffle(order)
    shuffled = remade(problem, X=problem.X[order], y=problem.y[order], weight=problem.weight[order])
    before, after = evaluate(problem, splits), evaluate(shuffled, splits)
    assert after.objective == pytest.approx(before.objective, rel=1e-12)
    assert after.feasible == before.feasible
    assert after.node.tolist() == before.node[order].tolist()


@given(trees_on_data(), st.integers(0, 7))
def test_a_sample_twice_weighs_double(case, which):
    problem, splits = case
    i = which % problem.n_samples
    doubled = problem.weight.copy()
    doubled[i] *= 2
    twice = remade(
        problem,
        X=np.vstack([problem.X, problem.X[i]]),
        y=np.append(problem.y, problem.y[i]),
        weight=np.append(problem.weight, problem.weight[i]),
    )
    expected = evaluate(remade(problem, weight=doubled), splits)
    assert evaluate(twice, splits).objective == pytest.approx(expected.objective, rel=1e-12)
    assert evaluate(twice, splits).feasible == expected.feasible


@given(trees_on_data())
def test_mirroring_one_feature_mirrors_its_weights(case):
    problem, splits = case
    flip = np.ones(problem.n_features)
    flip[0] = -1
    mirrored = evaluate(remade(problem, X=problem.X * flip), Splits(w=splits.w * flip, b=splits.b))
    assert mirrored.objective == evaluate(problem, splits).objective


def remade(problem, **changes):
    terms = {k: getattr(problem, k) for k in ("X", "y", "depth", "C", "weight", "eps", "budget", "alpha", "max_weight")}
    return Problem.make(**(terms | changes))


def stump_over(xs, w0, b0, **terms):
    """Depth 2 on one feature; only the root splits."""
    problem = Problem.make(np.reshape(xs, (-1, 1)), np.ones(len(xs)), depth=2, **terms)
    return problem, Splits(w=[[w0], [0.0], [0.0]], b=[b0, 1.0, 1.0])


def test_a_sample_on_the_hyperplane_goes_right_even_after_rounding():
    problem, splits = stump_over([0.1 + 0.2, 0.3], 3.0, -0.9)
    h = problem.X @ splits.w[0] + splits.b[0]
    noisy = Splits(w=splits.w, b=splits.b - np.array([abs(h).max() + 1e-12, 0, 0]))
    found = evaluate(problem, noisy)
    assert np.all(problem.X @ noisy.w[0] + noisy.b[0] < 0)
    assert found.node.tolist() == [2, 2] and found.feasible


@pytest.mark.parametrize(("x", "depth_in_band"), [(0.0, 0.0), (-1e-4, 1e-4), (-9e-4, 1e-4), (-1e-3, 0.0), (-0.5, 0.0)])
def test_how_deep_a_sample_lies_in_the_band(x, depth_in_band):
    found = evaluate(*stump_over([x], 1.0, 0.0))
    assert found.band == pytest.approx(depth_in_band, abs=1e-12)
    assert found.feasible == (depth_in_band == 0)


def test_the_band_is_free_at_the_last_level():
    problem = Problem.make([[-5e-4]], [1], depth=1)
    assert evaluate(problem, Splits(w=[[1.0]], b=[0.0])).feasible


def test_the_band_binds_only_samples_that_reach_the_node():
    problem = Problem.make([[-1.0], [1.0]], [1, -1], depth=3)
    w, b = np.zeros((7, 1)), np.ones(7)
    w[0] = 1.0
    b[:3] = 0.0, -5e-4, 1.0  # node 1 holds only the left sample, and its band holds that sample
    assert evaluate(problem, Splits(w=w, b=b)).band == pytest.approx(5e-4)
    b[:3] = 1.0, -5e-4, 1.0  # now no sample reaches node 1
    assert evaluate(problem, Splits(w=w, b=b)).feasible


def test_the_tie_never_reaches_across_the_band():
    assert tie(1e8) > 1e-3 / 2
    assert tie(1e8, 1e-3) == 1e-3 / 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_splits_must_be_finite(bad):
    with pytest.raises(ValueError, match="finite"):
        Splits(w=[[bad]], b=[0.0])
    with pytest.raises(ValueError, match="finite"):
        Splits(w=[[0.0]], b=[bad])


def test_a_tree_of_another_shape_is_refused():
    problem = Problem.make([[0.0, 1.0]], [1], depth=2)
    with pytest.raises(ValueError, match=r"needs weights of shape \(3, 2\), got \(1, 2\)"):
        evaluate(problem, Splits(w=[[1.0, 0.0]], b=[0.0]))
