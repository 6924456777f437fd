"""The oracle itself: what it says is right, whatever its solver says, and the judge sees what is wrong."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margotree.problem import Splits, evaluate
from margotree.solution import Certificate, Proved, Solution, Stopped
from oracle import node
from oracle.instances import GENERATORS, base, issue_example, make
from oracle.judge import examine, judge, problem_of, unearned
from oracle.routings import right_sets
from oracle.tree import best_tree, optimum, tree_facts
from oracles import best_value, separable


@given(seed=st.integers(0, 10**6), n=st.integers(1, 3))
@settings(max_examples=20)
def test_right_sets_are_those_a_linear_programme_separates(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 1 + int(rng.choice([2, 4, 1000])), (int(rng.integers(1, 7)), n))
    found = right_sets(tuple(map(tuple, X.tolist())))
    for right in itertools.product([False, True], repeat=len(X)):
        mask = sum(1 << i for i, r in enumerate(right) if r)
        expected = separable(X[~np.array(right)].astype(float), X[np.array(right)].astype(float))
        assert (mask in found) == expected, (X.tolist(), right)


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_the_other_brute_force_at_ordinary_scale(seed):
    instance = base(np.random.default_rng(seed), m=5)
    known = optimum(instance)
    assert known.width < 1e-9
    assert known.upper == pytest.approx(best_value(problem_of(instance)), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("generator", GENERATORS)
def test_intervals_are_narrow_and_the_same_in_other_units(generator):
    for number in range(1000, 1003):
        instance = make(generator, number)
        s = 2.0**17
        one, two = optimum(instance), optimum(instance.in_units(s))
        assert 0 <= one.lower <= one.upper < math.inf
        assert one.lower <= two.upper / s**2 and two.lower / s**2 <= one.upper
        assert generator == "everything" or one.width < 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_a_solver_that_talks_rubbish_makes_the_interval_wide_but_not_wrong(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    instance = base(rng, depth=2, m=5)
    true, solve = optimum(instance), node.OneNode.solve

    def rubbish(self, V, right, price):
        w, b, z, s = solve(self, V, right, price)
        noise = rng.uniform(0.5, 2.0, len(z))
        return w * rng.uniform(0.5, 2.0), b + rng.normal(), z * noise, s[::-1]

    monkeypatch.setattr(node.OneNode, "solve", rubbish)
    wide = optimum(instance)
    assert wide.lower <= true.upper and true.lower <= wide.upper
    assert wide.width >= true.width


def test_a_random_tree_is_never_cheaper_and_costs_what_evaluate_says():
    rng = np.random.default_rng(5)
    for seed in range(40):
        instance = base(np.random.default_rng(seed), depth=2, m=5)
        n = instance.X.shape[1]
        w, b = rng.normal(size=(3, n)), rng.normal(size=3)
        value, facts = evaluate(problem_of(instance), Splits(w=w, b=b)), tree_facts(instance, w.tolist(), b.tolist())
        assert facts.value == pytest.approx(value.objective, rel=1e-12)
        assert facts.over_budget == (value.over_budget > 0)
        assert (max(facts.band.values()) > 0) == (value.band > 0)
        if value.feasible:
            assert facts.value >= optimum(instance).lower


@pytest.mark.parametrize("generator", GENERATORS)
def test_the_upper_end_is_a_tree(generator):
    """Sent through its own best tree from scratch, no sample lies in a band, and the value is the one that was said."""
    for number in range(4):
        instance = make(generator, number)
        planes = best_tree(instance)
        facts = tree_facts(instance, [w for w, _ in planes], [b for _, b in planes])
        assert set(facts.band.values()) <= {0.0} and not facts.over_budget
        assert facts.value == pytest.approx(optimum(instance).upper, rel=1e-14, abs=0)


def forged(instance, *, factor=1.0, stopped=Stopped.SOLVED, w=None, gap=1e-4, bound=0.0):
    """The trivial tree, or another one, with numbers of our choice beside it."""
    nodes, n = len(instance.C), instance.X.shape[1]
    w = np.zeros((nodes, n)) if w is None else w
    splits = Splits(w=w, b=np.ones(nodes))
    certificate = Certificate(
        objective=evaluate(problem_of(instance), splits).objective * factor, bound=bound, stopped=stopped,
        gap_target=gap, engine="none", engine_version="0",
    )  # fmt: skip
    return Solution(splits=splits, certificate=certificate)


def test_the_judge_sees_every_kind_of_false_claim():
    instance = issue_example()
    best = optimum(instance)
    assert examine(instance, forged(instance)).faults == []
    assert "bound" in examine(instance, forged(instance, bound=best.upper * (1 + 1e-12))).faults
    assert "bound" not in examine(instance, forged(instance, bound=best.lower)).faults
    value = forged(instance).certificate.objective
    assert "optimal" in examine(instance, forged(instance, bound=value)).faults
    assert "optimal" not in examine(instance, forged(instance, bound=0.0, gap=1.0)).faults
    assert {"below", "value"} <= set(examine(instance, forged(instance, factor=0.5)).faults)
    assert "value" in examine(instance, forged(instance, factor=1 + 1e-9)).faults
    inside = np.zeros((3, 1))
    inside[0] = -(1 + 4e-4) / instance.X[3, 0]
    assert "band" in examine(instance, forged(instance, w=inside)).faults
    hard = replace(base(np.random.default_rng(0), n=2, depth=1), budget=[1], alpha=None)
    assert "band" in examine(hard, forged(hard, w=np.ones((1, 2)))).faults
    twin = replace(instance, twin=2.0)
    assert (
        "contradiction" in examine(twin, forged(twin), forged(twin.in_units(2.0), bound=4.1 * value, factor=2)).faults
    )


def test_the_judge_wants_the_word_optimal_earned():
    claim = {"proved": Proved.OPTIMAL, "objective": 1e-12, "gap_target": 1e-4, "stopped": Stopped.SOLVED}
    assert unearned(SimpleNamespace(bound=0.999e-12, **claim))
    assert not unearned(SimpleNamespace(bound=0.99991e-12, **claim))
    assert unearned(SimpleNamespace(bound=1e-12, **{**claim, "stopped": Stopped.NODES}))


def test_the_judge_reports_what_the_engine_raises(monkeypatch):
    def broken(instance):
        raise ZeroDivisionError("as it were")

    monkeypatch.setattr("oracle.judge.solved", broken)
    verdict = judge(issue_example())
    assert verdict.faults == ["exception"] and "as it were" in verdict.note
