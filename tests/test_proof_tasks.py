"""Proofs for all kinds of losses: those of a naive prover, which both checkers accept, and what they say and refuse."""

import dataclasses
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests.proofs import exact, naive, spoil
from tests.proofs.spoil import both

from margotree.estimators.input_data import merge_duplicates
from margotree.estimators.proof_checks import check_proof
from margotree.problem import BINARY, Multiclass, Problem, Regression, Splits
from margotree.problem.tasks import NO_CHOICE, Items
from margotree.proof import check, write
from margotree.tree import Scaling, Tree
from oracles import best_value


class Quantile(Regression):
    """The pinball loss, as another package may define it."""

    name = "quantile"

    def __init__(self, q):
        self.q = q

    def __repr__(self):
        return f"{type(self).__name__}({self.q})"

    def items(self, y, *, last, side=None, choice=NO_CHOICE):
        if not last:
            return Regression().items(y, last=last, side=side)
        return Items(p=np.full(len(y), self.q), m=np.full(len(y), 1.0 - self.q), r=y, l=y)

    def proof_losses(self):
        return {"kind": "intervals", "below": self.q, "above": 1.0 - self.q, "under": 0.0, "over": 0.0}


TASKS = [BINARY, Multiclass(2), Multiclass(3), Multiclass(4), Regression(0.25), Quantile(0.75)]


def arrays(problem):
    return problem.X, np.asarray(problem.y, np.float64), problem.weight


@pytest.mark.parametrize("model", ["margot", "hfs", "sfs"])
@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_the_proved_bound_is_the_optimum(tmp_path, task, model):
    for depth in (1,) if task.n_classes > 3 and model != "margot" else (1, 2):
        problem = naive.random_problem(task, model, 10 * depth, depth=depth, m=6 - depth)
        objective, bound = naive.prove(problem, tmp_path / "a.proof")
        assert both(tmp_path / "a.proof", arrays(problem)) == (objective, bound)
        assert objective * (1.0 - 1e-5) <= bound
        if depth == 1 or task.n_classes < 4:
            assert bound == pytest.approx(best_value(problem), rel=1e-5)


@pytest.mark.parametrize("model", ["hfs", "sfs"])
@pytest.mark.parametrize("task", [BINARY, Multiclass(3), Regression(0.25)], ids=repr)
def test_budgets_of_groups_are_proved(tmp_path, task, model):
    for depth in (1, 2):
        problem = naive.random_problem(task, model, 10 * depth, depth=depth, m=6 - depth, n=3, groups=[1, 0, 1])
        claim = naive.prove(problem, tmp_path / "a.proof")
        assert both(tmp_path / "a.proof", arrays(problem)) == claim
        assert claim[0] * (1.0 - 1e-5) <= claim[1] == pytest.approx(best_value(problem), rel=1e-5)
    parts = spoil.Parts(tmp_path / "a.proof", arrays(problem))
    statement = str(check.check(tmp_path / "a.proof", parts.data))
    assert "groups    2, which budgets count: 1; 0, 2" in statement
    for groups in ([0, 0, 0], [0, 1, 0], [1, 0, 2], [1, 0], [0, 2, 0], [1, 0, -1], [1.0, 0, 1], None, {}):
        other = parts.copy()
        other.header["groups"] = groups
        other.write(tmp_path / "a.proof")
        assert both(tmp_path / "a.proof", parts.data) is None
    parts.header |= {"model": "margot", "budget": None, "alpha": None}
    parts.write(tmp_path / "a.proof")
    assert both(tmp_path / "a.proof", parts.data) is None


def test_a_group_counts_as_a_whole(tmp_path):
    """A proof about groups proves nothing if every feature is a group, or if groups are larger."""
    problem = naive.random_problem(BINARY, "hfs", 3, depth=1, m=6, n=3, groups=[0, 0, 1])
    naive.prove(problem, tmp_path / "a.proof")
    parts = spoil.Parts(tmp_path / "a.proof", arrays(problem))
    assert np.count_nonzero(parts.header["tree"]["w"][0]) == 2
    for groups, proved in (([0, 0, 1], True), ([0, 1, 2], False), (None, False), ([0, 0, 0], False)):
        other = parts.copy()
        other.header["groups"] = groups
        other.header["digest"] = check.digest_of(other.header, *parts.data)
        other.write(tmp_path / "a.proof")
        assert (both(tmp_path / "a.proof", parts.data) is not None) == proved


@pytest.mark.parametrize("task", [BINARY, Multiclass(3), Regression(0.25)], ids=repr)
def test_trees_of_three_levels_are_proved(tmp_path, task):
    problem = naive.random_problem(task, "margot", 3, depth=3, m=4, n=1)
    objective, bound = naive.prove(problem, tmp_path / "a.proof")
    assert both(tmp_path / "a.proof", arrays(problem)) == (objective, bound)
    assert objective * (1.0 - 1e-5) <= bound + 1e-9
    if task.n_classes < 3:
        assert bound == pytest.approx(best_value(problem), rel=1e-5, abs=1e-9)


# -- any numbers in their ranges prove a bound -------------------------------------------------------------------------


def random_tree(problem, rng):
    """The evaluation of a feasible tree."""
    while True:
        shape = problem.n_nodes, problem.n_features
        found = problem.evaluate(Splits(w=rng.normal(size=shape), b=rng.normal(size=shape[0])))
        if found.feasible:
            return found


def random_decisions(problem, terms, found, rng):
    """Decisions that the tree obeys: places above the ends of the samples, and some classes."""
    decisions, choices = [], found.choices
    for i, (x, _, _) in enumerate(terms.samples):
        path = [int(found.node[problem.X.tolist().index([float(v) for v in x])])]
        while path[0] > 0:
            path.insert(0, (path[0] - 1) // 2)
        decisions += [
            (b"S", i, above, below - 2 * above) for above, below in pairwise(path[: 1 + rng.integers(2 * len(path))])
        ]
    if problem.task.n_classes > 2:
        for t in range(problem.n_nodes):
            labels = None if t < problem.n_upper else set(choices.labels[t - problem.n_upper].tolist())
            for k in rng.permutation(problem.task.n_classes)[: rng.integers(problem.task.n_classes + 1)].tolist():
                if terms.codes(t, decisions)[k] == "open":
                    first = choices.sides[t][k] < 0 if labels is None else k in labels
                    decisions.append((b"C", k, t, 1 if first else 2))
    return decisions


def random_point(items, rng):
    """A point as `exact` reads it, whose numbers are in their ranges, except that of the balancing item at times."""
    if not items or rng.random() < 0.1:
        return None
    numbers = rng.permutation(list(items)).tolist()
    listed, size = numbers[: rng.integers(len(numbers) + 1 if rng.random() < 0.5 else 2)], 0.1 ** rng.integers(3)
    full = tuple(k for k in listed if rng.random() < 0.2)
    values = {k: float(rng.random() * size * float(items[k][3] or 1)) for k in listed if k not in full}
    return full, values, numbers[-1], bool(rng.random() < 0.5)


def cases_of(p, decisions, points):
    """What `check` knows about every tree node."""
    place = np.zeros(p.m, np.int64)
    for kind, which, t, outcome in decisions:
        if kind == b"S":
            place[which] = 2 * t + outcome
    cases = []
    for t, point in enumerate(points):
        decided = [(which, outcome) for kind, which, at, outcome in decisions if (kind, at) == (b"C", t)]
        if point is not None:
            full, values, balance, rest = point
            point = check.Point(
                np.array(full, np.int64), np.array([*values], np.int64), np.array([*values.values()]), balance, rest
            )
        cases.append(check.Case(t, p.side_of[t][place], p.codes(t, decided) if p.classes else None, [], [], point))
    return cases


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_any_multipliers_prove_a_bound_on_any_tree_that_obeys(task):
    """Both checkers compute the same bound, and the tree has no lower cost at any tree node."""
    proved = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        groups = [0, 1, 0] if seed % 4 == 1 else None
        n = 2 if groups is None else 3
        problem = naive.random_problem(
            task, ("margot", "sfs")[seed % 2], seed, depth=1 + seed // 2 % 2, m=6, n=n, groups=groups
        )
        header = write.terms_of(problem)
        header["digest"] = check.digest_of(header, *arrays(problem))
        p, terms = check.Problem(header, *arrays(problem)), exact.Terms(header, *(a.tolist() for a in arrays(problem)))
        found = random_tree(problem, rng)
        decisions = random_decisions(problem, terms, found, rng)
        for t in rng.integers(problem.n_nodes, size=10):
            points = [None] * problem.n_nodes
            points[t] = random_point(terms.items(t, terms.sides(t, decisions), terms.codes(t, decisions)), rng)
            cases = cases_of(p, decisions, points)
            try:
                bounds = [max(0, check.node_bound(p, case, exact=True)) for case in cases]
            except check.Refused:
                with pytest.raises(exact.NotProved):
                    terms.leaf_value(decisions, points, {})
                continue
            assert sum(bounds) == terms.leaf_value(decisions, points, {})
            assert all(isinstance(bound, int | Fraction) for bound in bounds)
            assert check.node_bound(p, cases[t], exact=False) <= bounds[t]
            assert np.all(np.array(bounds, float) <= found.node_values * (1.0 + 1e-9))
            proved += bounds[t] > 0
    assert proved >= 3


# -- files of version 3, tables and statements -------------------------------------------------------------------------


def test_proofs_of_version_3_are_accepted(tmp_path):
    problem, path = naive.random_problem(BINARY, "sfs", 1), tmp_path / "a.proof"
    claim = naive.prove(problem, path)
    parts = spoil.Parts(path, arrays(problem))
    parts.header["table"] = spoil.table_of(parts)
    spoil.as_version_3(parts)
    parts.write(path)
    assert path.read_bytes().startswith(b"margotree proof 3\n") and b"losses" not in path.read_bytes()
    assert both(path, parts.data) == claim
    assert "of 2 classes" in str(check.check(path, parts.data))
    for more in ({"losses": {"kind": "labels"}}, {"losses": None}, {"groups": None}):  # entries of version 4
        other = parts.copy()
        other.header |= more
        other.write(path)
        assert both(path, parts.data) is None
    parts.header["table"]["target_scale"] = None
    parts.write(path)
    assert both(path, parts.data) is None


def rows_of(problem, target):
    """A CSV file with the columns x0, x1, ..., y and w, with one row of weight 0."""
    lines = [",".join([*(f"x{j}" for j in range(problem.n_features)), "y", "w"])]
    for x, y, weight in zip(problem.X.tolist(), problem.y.tolist(), problem.weight.tolist(), strict=True):
        lines += [",".join([*map(repr, x), target(y), repr(weight)])]
    return "\n".join([*lines, lines[-1].rpartition(",")[0] + ",0"]) + "\n"


def sorted_and_merged(problem):
    """The problem with its rows in the order of tables."""
    order = np.lexsort([problem.y, *problem.X.T[::-1]])
    X, y, weight = problem.X[order], problem.y[order], problem.weight[order]
    first = np.flatnonzero(np.append(True, np.any(X[1:] != X[:-1], axis=1) | (y[1:] != y[:-1])))
    merged = np.add.reduceat(weight, first)
    return Problem.make(
        X[first], y[first], depth=problem.depth, task=problem.task, C=problem.C, eps=problem.eps, weight=merged
    )


def test_classes_are_read_from_tables_and_named(tmp_path):
    problem = sorted_and_merged(naive.random_problem(Multiclass(3), "margot", 1))
    claim = naive.prove(problem, tmp_path / "a.proof")
    names = ["ash", "oak", "elm\n"]
    table = spoil.table_of(spoil.Parts(tmp_path / "a.proof", arrays(problem)))
    write.add_table_description(tmp_path / "a.proof", table | {"labels": names, "weight": "w"})
    (tmp_path / "a.csv").write_text(rows_of(problem, lambda k: names[k].strip()).replace("elm", '"elm"'))
    with pytest.raises(check.Refused, match="which is not in the proof"):
        check.check(tmp_path / "a.proof", tmp_path / "a.csv")
    write.add_table_description(tmp_path / "a.proof", table | {"labels": ["ash", "oak", "elm"], "weight": "w"})
    found = check.check(tmp_path / "a.proof", tmp_path / "a.csv")
    rows = np.bincount(problem.y).tolist()
    assert (found.objective, found.bound) == claim and found.statement.class_rows == tuple(rows)
    assert f"('ash': {rows[0]}; 'oak': {rows[1]}; 'elm': {rows[2]})" in str(found) and "1 (weight 0)" in str(found)
    assert "of 3 classes" in str(found) and "of classes 'ash': 1.0, 'oak': 1.0, 'elm': 1.0" in str(found)
    np.savez(tmp_path / "a.npz", X=problem.X, y=problem.y, weight=problem.weight)
    assert f"(0: {rows[0]}; 1: {rows[1]}; 2: {rows[2]})" in str(check.check(tmp_path / "a.proof", tmp_path / "a.npz"))


def test_numeric_targets_are_read_from_tables_and_have_a_range(tmp_path):
    problem = sorted_and_merged(naive.random_problem(Regression(0.25), "margot", 1))
    claim = naive.prove(problem, tmp_path / "a.proof")
    table = spoil.table_of(spoil.Parts(tmp_path / "a.proof", arrays(problem)))
    scaled = table | {"weight": "w", "target_offset": 100.0, "target_scale": 8.0}
    write.add_table_description(tmp_path / "a.proof", scaled)
    (tmp_path / "a.csv").write_text(rows_of(problem, lambda y: repr(100.0 + 8.0 * y)))
    if not np.all((100.0 + 8.0 * problem.y - 100.0) / 8.0 == problem.y):  # rounding
        write.add_table_description(tmp_path / "a.proof", table | {"weight": "w"})
        (tmp_path / "a.csv").write_text(rows_of(problem, repr))
    found = check.check(tmp_path / "a.proof", tmp_path / "a.csv")
    assert (found.objective, found.bound) == claim and found.statement.class_rows == (len(problem.y),)
    low, high = float(problem.y.min()), float(problem.y.max())
    assert found.statement.target_span == (low, high)
    assert f"'y', from {low:.6g} to {high:.6g} in the units of the tree (from" in str(found)
    assert "1.0 max(0, y - 0.25 - h) + 1.0 max(0, h - y - 0.25)" in str(found) and "column 'w'" in str(found)
    for odd in ("ten", "nan", "inf"):
        (tmp_path / "a.csv").write_text(rows_of(problem, lambda y, odd=odd: odd))
        with pytest.raises(check.Refused, match="data:"):
            check.check(tmp_path / "a.proof", tmp_path / "a.csv")


def test_the_proof_of_a_tree_of_three_classes_is_checked_with_its_data(tmp_path):
    rng, names = np.random.default_rng(0), np.array(["a", "b", "c"])
    X, y, share = np.round(rng.normal(size=(6, 2)), 1), rng.permutation(np.arange(6) % 3), np.array([1.0, 2.0, 1.0])
    scaling = Scaling.minmax(X)
    numbers, codes, weight = merge_duplicates(X, y.astype(float), share[y], scaling)
    problem = Problem.make(numbers, codes.astype(np.int64), task=Multiclass(3), depth=2, weight=weight)
    naive.prove(problem, tmp_path / "a.proof", gap=1e-2)
    header = spoil.Parts(tmp_path / "a.proof", arrays(problem)).header
    terms = {name: header[name] for name in ("model", "C", "eps", "budget", "alpha")}
    terms |= {"class_weight": share.tolist(), "sides": header["tree"]["sides"]}
    splits = Splits(w=np.array(header["tree"]["w"]), b=np.array(header["tree"]["b"]))
    labels = np.array(header["tree"]["labels"]).ravel()
    tree = Tree(splits=splits, scaling=scaling, classes=names, leaf_class=labels, terms=terms)
    found = check_proof(tree, tmp_path / "a.proof", X, names[y])
    assert found.bound == header["claim"]["bound"] and found.statement.class_rows == (2, 2, 2)
    assert "('a': 2; 'b': 2; 'c': 2)" in str(found) and "'b': 2.0" in str(found)
    with pytest.raises(check.Refused, match="another tree"):
        check_proof(dataclasses.replace(tree, leaf_class=labels[::-1]), tmp_path / "a.proof", X, names[y])


# -- the writer --------------------------------------------------------------------------------------------------------


class Forgetful(Quantile):
    """Its losses are not those that it states."""

    def items(self, y, *, last, side=None, choice=NO_CHOICE):
        return super().items(y + 0.5 * last, last=last, side=side)


class Undecided(Quantile):
    def proof_losses(self):
        return None


class Misspelt(Quantile):
    def proof_losses(self):
        return {"kind": "intervals", "below": 0.0}


class Reversed(Multiclass):
    def items(self, y, *, last, side=None, choice=NO_CHOICE):
        return super().items(y, last=last, side=side, choice=choice if last else -choice)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (Forgetful(0.5), "losses at last splits are not those"), (Undecided(0.5), "losses of a quantile problem"),
        (Misspelt(0.5), "not valid"), (Reversed(3), "losses at upper splits are not those"),
    ],
)  # fmt: skip
def test_no_proof_is_written_about_other_losses(task, reason):
    assert reason in write.reason_unprovable(naive.random_problem(task, "margot", 0))


def test_what_proofs_cannot_be_about_is_not_written():
    for task in TASKS:
        problem = naive.random_problem(task, "margot", 0)
        assert write.reason_unprovable(problem) == ""
    choices = problem.task.initial_choices(problem.n_upper, problem.n_last)
    assert "fixed" in write.reason_unprovable(dataclasses.replace(problem, choices=choices))
    steep = naive.random_problem(Quantile(1e-291), "margot", 0)
    assert "costs of margin violations" in write.reason_unprovable(steep)


def test_decisions_about_classes_of_another_process_are_renumbered():
    theirs, ours = write.Steps(1), write.Steps(1)
    theirs.split(b"C", 5, 2, 0, write.REMOTE_BASE, write.REMOTE_BASE + 1)
    ours.take_over(theirs.text, 7)
    plain = write.Steps(1)
    plain.split(b"C", 5, 2, 0, 7, 8)
    assert ours.text == plain.text and ours.count == 1
