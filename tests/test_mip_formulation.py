"""The formulation says of a tree what the value function says, and its constants cut nothing off."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margotree.engines import RunControl
from margotree.engines.mip import constants
from margotree.engines.mip.constants import Constants, derived_constants, paper_constants
from margotree.engines.mip.formulation import formulate
from margotree.engines.mip.normal_form import binding, normalise
from margotree.engines.mip.scip import ScipAdapter
from margotree.engines.polish import polish
from margotree.problem import BINARY, Choices, Items, Multiclass, Problem, Regression, Splits, Task, evaluate, topology
from margotree.problem.tasks import NO_CHOICE
from oracles import best_value

MODELS = {
    "margot": {},
    "hfs": {"budget": 2},
    "sfs": {"budget": 1, "alpha": 0.7},
    "groups": {"budget": 1, "alpha": 0.7, "groups": [0, 1, 0]},
}


def generous(problem, M=1e5):
    """Constants no tree of these tests comes near."""
    nodes, samples, n = problem.n_nodes, problem.n_samples, problem.n_features
    return Constants(
        w_low=np.full((nodes, n), -M),
        w_high=np.full((nodes, n), M),
        b_low=np.full(nodes, -M),
        b_high=np.full(nodes, M),
        xi_high=np.full((nodes, samples), M),
        M_below=np.full((nodes, samples), M),
        M_above=np.full((nodes, samples), M),
        M_right=np.full((nodes, samples), M),
        M_left=np.full((nodes, samples), M),
    )


class Pinball(Task):
    """Losses of quantiles, as another project would add them; the penalties of both sides differ at every node."""

    name = "pinball"

    def __init__(self, q):
        self.q = q

    def targets(self, y):
        return np.array(y, dtype=np.float64)

    def codes(self, y):
        return np.zeros(len(y), dtype=np.int64)

    def responses(self, y):
        return y[:, None]

    def items(self, y, *, last, side=None, choice=NO_CHOICE):
        if last:
            return Items(p=np.full(len(y), self.q), m=np.full(len(y), 1.0 - self.q), r=y, l=y)
        return Items(p=1.0 * (side > 0), m=0.5 * (side < 0), r=np.ones(len(y)), l=-np.ones(len(y)))


TASKS = {
    "binary": BINARY,
    "multiclass": Multiclass(3),
    "two of several": Multiclass(2),
    "regression": Regression(0.2),
    "pinball": Pinball(0.3),
}


def random_problem(rng, depth, model, m=12, n=3, task=BINARY, **kwargs):
    X = rng.random((m, n))
    if task.n_classes:
        y = rng.choice([-1.0, 1.0], m) if task == BINARY else rng.integers(0, task.n_classes, m)
    else:
        y = 3.0 * rng.normal(size=m) + 10.0 * rng.integers(0, 2)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], m)
    nodes = topology.n_nodes(depth)
    C = 10.0 ** rng.uniform(-2, 2, nodes)
    return Problem.make(X, y, depth=depth, C=C, weight=weight, task=task, **MODELS[model], **kwargs)


def random_tree(rng, problem):
    """Hyperplanes through the cloud of samples, until no sample lies in a band and the budgets hold."""
    while True:
        w = rng.normal(size=(problem.n_nodes, problem.n_features)) * 5
        b = -w @ np.full(problem.n_features, 0.5) + rng.normal(size=problem.n_nodes)
        if problem.model != "margot":
            for t in range(problem.n_nodes):
                keep = int(problem.budget[t]) if problem.model == "hfs" else rng.integers(0, problem.n_features + 1)
                w[t, rng.permutation(problem.n_features)[keep:]] = 0.0
        tree = Splits(w=w, b=b)
        if evaluate(problem, tree).feasible:
            return tree


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("model", MODELS)
def test_a_tree_and_its_point_are_worth_the_same(model, task):
    rng = np.random.default_rng(1)
    for depth, label_cuts in product((1, 2, 3), (False, True)):
        problem = random_problem(rng, depth, model, task=task)
        tree, choices = normalise(problem, random_tree(rng, problem))
        found = evaluate(problem.with_choices(choices), tree)
        form = formulate(problem, generous(problem), label_cuts=label_cuts)
        x = form.point(tree, choices)
        assert form.mip.violation(x) < 1e-9
        assert form.mip.value(x) == pytest.approx(found.objective, rel=1e-12)
        assert np.array_equal(form.node(x), found.node)
        assert np.array_equal(form.choices(x).sides, choices.sides)
        assert np.array_equal(form.choices(x).labels, choices.labels)
        assert np.array_equal(form.splits(x).w, tree.w)
        assert np.array_equal(form.splits(x).b, tree.b)
        if model == "margot":
            assert form.support(x) is None
        elif model == "groups":
            assert np.array_equal(form.support(x)[:, [0, 2]], np.tile(np.any(tree.w[:, [0, 2]], 1), (2, 1)).T)
        else:
            assert np.array_equal(form.support(x), tree.w != 0)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_slacks_below_the_losses_of_a_tree_break_a_row(task):
    rng = np.random.default_rng(3)
    problem = random_problem(rng, 2, "margot", task=task)
    tree, choices = normalise(problem, random_tree(rng, problem))
    form = formulate(problem, generous(problem, 1e3), label_cuts=False)
    x = form.point(tree, choices)
    names = [name for name in ("xi", "xi_above") if name in form.mip.blocks]
    assert len(names) == 1 + (task.name == "multiclass")
    for columns in (form.mip.blocks[name].ravel() for name in names):
        for column in columns[x[columns] > 0.1]:
            broken = x.copy()
            broken[column] -= 0.1
            assert form.mip.violation(broken) > 0.05


def test_fixed_choices_are_those_of_the_model():
    rng = np.random.default_rng(5)
    problem = random_problem(rng, 2, "margot", task=Multiclass(3))
    choices = Choices(sides=np.array([[-1, 1, -1]]), labels=np.array([[2, 0], [0, 1]]))
    fixed = problem.with_choices(choices)
    form = formulate(fixed, generous(fixed), label_cuts=True)
    tree, kept = normalise(fixed, random_tree(rng, fixed))
    assert np.array_equal(kept.labels, choices.labels)
    assert form.mip.violation(form.point(tree)) < 1e-9
    for other in (kept.labels[:, ::-1], np.array([[2, 1], [0, 1]])):
        assert form.mip.violation(form.point(tree, Choices(sides=kept.sides, labels=other))) > 0.5


@pytest.mark.parametrize("model", MODELS)
def test_a_point_that_breaks_a_rule_breaks_a_row(model):
    """Every family of rows is there: moving the tree or the binaries alone makes the point infeasible."""
    rng = np.random.default_rng(7)
    problem = random_problem(rng, 2, model)
    tree = random_tree(rng, problem)
    form = formulate(problem, generous(problem, 100.0), label_cuts=False)
    x, blocks = form.point(tree), form.mip.blocks
    assert form.mip.violation(x) < 1e-9
    paying = np.argmax(x[blocks["xi"]].max(axis=0))
    t = int(np.argmax(x[blocks["xi"]][:, paying]))
    for name, index, change in [("xi", (t, paying), -0.5), ("z", (0, 0), 1.0), ("z", (0, 1), 0.5)]:
        broken = x.copy()
        broken[blocks[name][index]] += change
        assert form.mip.violation(broken) > 0.1, (name, index)
    node = form.node(x)
    for i in range(problem.n_samples):  # a sample sent the way its hyperplane does not
        broken = x.copy()
        broken[blocks["z"][i]] = broken[blocks["z"][i]][::-1]
        broken[blocks["xi"]] = 99.0
        assert form.mip.violation(broken) > 1e-4, (i, node[i])
    if model != "margot":
        t, j = np.argwhere(tree.w != 0)[0]
        broken = x.copy()
        broken[blocks["s"][t, problem.group_of[j]]] = 0.0
        assert form.mip.violation(broken) > 0.0
    if model == "hfs":
        broken = x.copy()
        broken[blocks["s"]] = 1.0
        assert form.mip.violation(broken) >= 1.0
    if problem.model == "sfs":
        broken = x.copy()
        broken[blocks["s"]] = 1.0
        broken[blocks["u"]] = 0.0
        assert form.mip.violation(broken) >= 1.0


def test_label_cuts_hold_where_they_should_and_cut_what_is_fractional():
    """A half-routed sample has no loss without them and half of it with them."""
    X, y = np.array([[0.0], [1.0]]), np.array([1.0, -1.0])
    problem = Problem.make(X, y, depth=2, C=1.0)
    plain, cut = (formulate(problem, generous(problem), label_cuts=on) for on in (False, True))
    assert cut.mip.n_rows == plain.mip.n_rows + 2
    x = np.zeros(plain.mip.n_variables)
    x[plain.mip.blocks["z"]] = 0.5
    x[plain.mip.blocks["w"][0]] = -2.0
    x[plain.mip.blocks["b"][0]] = 1.0
    x[plain.mip.blocks["xi"][0]] = 0.0
    rows = plain.mip.rows @ x
    assert np.all((rows >= plain.mip.row_lower - 1e-9) & (rows <= plain.mip.row_upper + 1e-9))
    assert np.max(cut.mip.row_lower - cut.mip.rows @ x) == pytest.approx((1 + problem.eps) / 2)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(1, 3),
    model=st.sampled_from(list(MODELS)),
    task=st.sampled_from(list(TASKS)),
)
def test_the_normal_form_keeps_the_routing_and_is_never_worse(seed, depth, model, task):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, depth, model, task=TASKS[task], eps=float(rng.choice([1e-3, 0.5, 1.5])))
    tree = random_tree(rng, problem)
    normal, choices = normalise(problem, tree)
    before, after = evaluate(problem, tree), evaluate(problem.with_choices(choices), normal)
    assert after.feasible
    assert np.array_equal(before.node, after.node)
    assert np.all(after.node_values <= before.node_values + 1e-9 * (1 + before.node_values))


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    depth=st.integers(1, 3),
    model=st.sampled_from(list(MODELS)),
    max_weight=st.sampled_from([None, 3.0]),
    task=st.sampled_from(list(TASKS)),
)
def test_the_best_tree_of_a_routing_obeys_the_constants_derived_from_its_value(seed, depth, model, max_weight, task):
    """What an optimal tree is, each of these trees is for its own routing; none may be cut off by its own value."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, depth, model, max_weight=max_weight, task=TASKS[task])
    tree = random_tree(rng, random_problem(np.random.default_rng(seed), depth, model, task=TASKS[task]))
    support, found = None if problem.budget is None else tree.w != 0, evaluate(problem, tree)
    best = polish(problem, found.node, support, choices=found.choices)
    if best is None:  # max_weight can make a routing impossible
        return
    value = evaluate(problem.with_choices(found.choices), best).objective
    form = formulate(problem, derived_constants(problem, value), label_cuts=True, size=value)
    x = form.point(*normalise(problem, best))
    scale = 1.0 + np.max(np.abs(x))
    assert form.mip.violation(x) < 1e-6 * scale
    assert form.constants.lower_bound <= value * (1 + 1e-9)
    assert form.constants.restriction == ""


def test_derived_constants_shrink_with_the_bound_and_the_data():
    rng = np.random.default_rng(2)
    problem = random_problem(rng, 2, "margot")
    near, far = derived_constants(problem, 100.0), derived_constants(problem, 1000.0)
    assert np.all(near.M_below <= far.M_below) and np.all(near.M_above <= far.M_above)
    assert np.all(near.w_high <= far.w_high + 1e-9)
    assert np.all(near.M_right[0] < far.M_right[0])


def test_many_samples_get_looser_constants_that_still_hold(monkeypatch):
    rng = np.random.default_rng(4)
    problem = random_problem(rng, 2, "margot", m=40)
    exact = derived_constants(problem, 50.0)
    monkeypatch.setattr(constants, "_PAIRWISE", 10)
    boxed = derived_constants(problem, 50.0)
    for name in ("M_below", "M_above", "M_right", "M_left"):
        assert np.all(getattr(boxed, name) >= getattr(exact, name) - 1e-9)


def test_the_papers_constants_are_named():
    problem = random_problem(np.random.default_rng(0), 2, "margot")
    assert "M_xi = 50, M_H = 100" in paper_constants(problem).restriction
    assert "M_w" not in paper_constants(problem).restriction
    budgets = random_problem(np.random.default_rng(0), 2, "hfs", max_weight=20.0)
    assert "M_w = 50" in paper_constants(budgets).restriction
    assert np.all(paper_constants(budgets).w_high == 20.0)


def test_binding_constants_differ_from_the_users_max_weight():
    X, y = np.array([[0.0], [0.01], [1.0], [1.0]]), np.array([-1.0, 1.0, 1.0, 1.0])
    steep = Splits(w=[[200.0], [0.0], [0.0]], b=[-1.0, -1.0, 1.0])
    free = Problem.make(X, y, depth=2, C=1e6, budget=1)
    assert "M_w" in binding(free, paper_constants(free), steep)
    assert "M_xi" not in binding(free, paper_constants(free), steep)
    asked = Problem.make(X, y, depth=2, C=1e6, budget=1, max_weight=200.0)
    assert binding(asked, generous(asked), steep) == []
    far = Problem.make(X, y, depth=2, C=1e6)
    assert binding(far, paper_constants(far), steep) == ["M_H"]


def test_tolerance_shrinks_with_the_constants():
    problem = random_problem(np.random.default_rng(0), 2, "margot")
    fine, coarse = (formulate(problem, generous(problem, M), label_cuts=False).mip.tolerance for M in (1e4, 1.0))
    assert fine == 1e-9
    assert coarse == 1e-6
    assert formulate(problem, generous(problem, 100.0), label_cuts=False).mip.tolerance == pytest.approx(1e-7)


@pytest.mark.parametrize(
    ("task", "model"),
    [("binary", "margot"), ("binary", "hfs"), ("binary", "sfs"), ("regression", "margot"), ("pinball", "hfs")],
)
def test_the_relaxation_bounds_from_below(task, model):
    """The LP part of the model with its binaries relaxed is worth at most the optimum."""
    rng = np.random.default_rng(11)
    problem = random_problem(rng, 2, model, m=6, n=2, task=TASKS[task])
    optimum = best_value(problem)
    form = formulate(problem, derived_constants(problem, optimum), label_cuts=True, size=max(optimum, 1e-3))
    relaxed = replace(form.mip, integer=np.zeros(form.mip.n_variables, dtype=bool))
    assert ScipAdapter().run(relaxed, control=RunControl()).objective <= optimum * (1 + 1e-4) + 1e-6
