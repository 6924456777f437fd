"""Pruning: fewer numbers to read without more errors than the penalty allows."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import margotree
from easy import easy_rows, write_rows
from margotree import HFSMargotClassifierCV, LocalSVMTreeClassifier, MargotClassifier, MargotClassifierCV
from margotree.cli import exit_codes, main
from margotree.cli.commands.fit import chosen_settings
from margotree.model_selection import pruning_choice
from margotree.problem import Splits
from margotree.solution import Certificate
from margotree.tree import PENALTIES, Pruning, Tree

QUICK = {"engine": "alternating", "time_limit": 20}


def noisy(n=200, classes=2, seed=0):
    """Samples whose labels depend on one of six features, for three classes on two; some labels are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [1, 10, 0.1, 3, 1, 1]
    y = (X[:, 0] > 0.2).astype(int) + (classes > 2) * (X[:, 1] > 3)
    return X, np.where(rng.random(n) < 0.08, rng.integers(0, classes, n), y)


def trained(X, y, depth=2, budget=3, **options):
    return LocalSVMTreeClassifier(depth=depth, C=10, budget=budget, **options).fit(X, y).tree_


def errors(tree, X, y, weight=None):
    wrong = tree.predict(X) != y
    return float(np.average(wrong, weights=weight))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_each_step_lowers_errors_plus_the_penalty_of_the_numbers(classes, depth):
    X, y = noisy(classes=classes, seed=depth)
    tree = trained(X, y, depth=depth)
    assert errors(tree.pruned(X, y, penalty=0.0), X, y) <= errors(tree, X, y)
    pruning, before = Pruning(tree, X, y), tree
    for penalty in PENALTIES:
        pruning.step(penalty)
        after = tree.after_pruning(pruning.result(), X, y)
        # Numbers are counted after splits are left out that no training label depends on: at most those of the steps.
        of_steps = pruning._numbers(0)[0]
        assert after.numbers_to_read <= of_steps
        assert errors(after, X, y) + penalty * of_steps <= errors(before, X, y) + penalty * _structural(before) + 1e-9
        before = after


def _structural(tree):
    """The numbers to read of all splits that can change a label, of training samples or not."""
    return sum(1 if np.count_nonzero(w) == 1 else np.count_nonzero(w) + 1 for w in tree.splits.w if np.count_nonzero(w))


def test_features_without_information_are_removed_and_new_samples_are_predicted_as_well():
    X, y = noisy()
    tree = trained(X, y)
    pruned = tree.pruned(X, y, penalty=0.01)
    assert tree.numbers_to_read >= 4 and pruned.numbers_to_read == 1
    (t,) = pruned.outline().nodes
    assert np.flatnonzero(pruned.splits.w[t]).tolist() == [0]
    new = noisy(n=2000, seed=1)
    assert errors(pruned, *new) <= errors(tree, *new) + 0.01


@pytest.mark.parametrize("weighted", [False, True])
def test_a_single_split_of_one_feature_is_the_best_one_of_all(weighted):
    X, y = noisy(n=60, seed=3)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    tree = LocalSVMTreeClassifier(depth=1, C=1, budget=1).fit(X, y, weight).tree_
    pruned = tree.pruned(X, y, weight, penalty=0.0)
    # All thresholds of all features in both directions, and no split.
    w = np.ones(len(y)) if weight is None else weight
    least = min(w[y == 0].sum(), w[y == 1].sum())
    for x in X.T:
        for cut in np.sort(x):
            wrong = w @ ((x >= cut) != y)
            least = min(least, wrong, w.sum() - wrong)
    assert errors(pruned, X, y, weight) * w.sum() == pytest.approx(least)
    # Without a split for a large penalty.
    assert tree.pruned(X, y, weight, penalty=1.0).numbers_to_read == 0


@pytest.mark.parametrize(
    "case", [{}, {"classes": 3}, {"depth": 3}, {"class_weight": {0: 1, 1: 5}}, {"scale": None}], ids=str
)
def test_pruned_and_rounded_trees_are_verified_and_saved(case):
    X, y = noisy(classes=case.get("classes", 2))
    tree = trained(X, y, **{k: v for k, v in case.items() if k != "classes"})
    pruned = tree.pruned(X, y, penalty=0.002)
    assert pruned.verify(X, y).objective == pytest.approx(pruned.certificate.objective)
    assert np.max(pruned.selected().sum(axis=1)) <= 3
    certificate = pruned.certificate
    assert certificate.bound == tree.certificate.bound and certificate.before_rounding == tree.certificate.objective
    assert certificate.pruned and "pruning changed" in certificate.statement
    assert certificate.relabelled == pytest.approx(np.mean(pruned.predict(X) != tree.predict(X)))
    rounded = pruned.rounded(X, y, digits="auto")
    assert rounded.verify(X, y).objective == pytest.approx(rounded.certificate.objective)
    assert rounded.certificate.pruned and "pruning and rounding changed" in rounded.certificate.statement
    assert np.mean(rounded.predict(X) != tree.predict(X)) <= rounded.certificate.relabelled + 1e-12
    assert Certificate.from_json(rounded.certificate.to_json()).to_dict() == rounded.certificate.to_dict()
    again = Tree.from_dict(json.loads(json.dumps(rounded.to_dict())))
    assert (again.predict(X) == rounded.predict(X)).all() and again.certificate.pruned
    names = {}
    exec(rounded.to_python(), names)
    assert [names["predict"](row) for row in X.tolist()] == rounded.predict(X).tolist()


def test_probabilities_are_those_of_the_pruned_tree():
    X, y = noisy()
    options = {"depth": 2, "C": 10.0, "budget": 3, "node_limit": 20, "engine": "alternating", "time_limit": None}
    tree = trained(X, y, proba="margin")
    pruned = tree.pruned(X, y, penalty=0.01)
    assert np.mean(pruned.predict(X) != tree.predict(X)) > 0
    for leaf in np.unique(pruned.apply(X)):
        here = pruned.apply(X) == leaf
        assert pruned.predict_proba(X)[here, 1] == pytest.approx(np.full(here.sum(), y[here].mean()))
    model = MargotClassifier(**options, proba="margin", prune=0.01).fit(X, y)
    assert (model.predict_proba(X).argmax(axis=1) == model.predict(X)).all()
    assert len(np.unique(model.predict_proba(X)[:, 1])) > len(np.unique(model.tree_.apply(X)))


def test_rounding_alone_is_not_called_pruning():
    X, y = noisy()
    certificate = trained(X, y).rounded(X, y).certificate
    assert certificate.rounded and not certificate.pruned and "pruning" not in str(certificate)
    assert "changed_by" not in certificate.to_dict()


def test_a_tree_that_cannot_be_better_stays_as_it_is():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    tree = trained(X, [0, 0, 1, 1], depth=1, budget=1)
    pruned = tree.pruned(X, [0, 0, 1, 1], penalty=0.01)
    assert np.array_equal(pruned.splits.w, tree.splits.w) and np.array_equal(pruned.splits.b, tree.splits.b)
    assert pruned.certificate.relabelled == 0 and pruned.certificate.objective == tree.certificate.objective


def test_without_time_nothing_changes():
    X, y = noisy()
    tree = trained(X, y)
    pruning = Pruning(tree, X, y, must_stop=lambda: True)
    pruning.step(0.01)
    assert np.array_equal(pruning.result().splits.w, tree.splits.w)


def test_many_samples_are_compared_in_part_and_thresholds_use_all(monkeypatch):
    X, y = noisy(n=400)
    tree = trained(X, y)
    monkeypatch.setattr("margotree.tree.pruning._MOST_COMPARED", 50)
    pruned = tree.pruned(X, y, penalty=0.01)
    assert pruned.numbers_to_read == 1 and errors(pruned, X, y) < 0.07


@pytest.mark.parametrize("penalty", [-0.1, 1.5, math.nan])
def test_a_penalty_is_a_share(penalty):
    X, y = noisy()
    with pytest.raises(ValueError, match="penalty must be a share of the training samples from 0 to 1"):
        trained(X, y).pruned(X, y, penalty=penalty)
    with pytest.raises(ValueError, match="'prune' parameter of MargotClassifier must be a number in the range"):
        MargotClassifier(prune=penalty).fit(X, y)


def test_only_margin_trees_are_pruned():
    X, y = noisy()
    tree = trained(X, y)
    other = replace(tree, terms={**tree.terms, "model": "oct1"})
    with pytest.raises(ValueError, match="only trees of margin models"):
        other.pruned(X, y)


def test_the_largest_weight_is_kept():
    X, y = noisy()
    tree = trained(X, y, max_weight=2.0)
    pruned = tree.pruned(X, y, penalty=0.005)
    assert np.abs(pruned.splits.w).max() <= 2.0 + 1e-9 and pruned.verify(X, y).feasible


def test_no_training_sample_lies_in_the_band():
    X, y = noisy(n=300, seed=5)
    tree = trained(X, y, depth=3, budget=2, band=0.05)
    pruned = tree.pruned(X, y, penalty=0.001)
    assert pruned.certificate.relabelled > 0 and pruned.verify(X, y).feasible
    broken = replace(pruned, splits=Splits(w=1e-3 * pruned.splits.w, b=1e-3 * pruned.splits.b))
    assert not broken.restated(X, y).evaluate(broken.splits).feasible  # the factor is what keeps the band empty


# -- estimators ---------------------------------------------------------------------------------------------------


def test_the_parameter_prunes_before_rounding():
    X, y = noisy()
    options = {"depth": 2, "C": 10.0, "budget": 3, "node_limit": 20, "engine": "alternating", "time_limit": None}
    plain = MargotClassifier(**options).fit(X, y)
    model = MargotClassifier(**options, prune=0.01, round="auto").fit(X, y)
    expected = plain.tree_.pruned(X, y, penalty=0.01).rounded(X, y, digits="auto")
    assert model.tree_.export_text() == expected.export_text()
    assert model.tree_.numbers_to_read < plain.tree_.numbers_to_read


def test_the_penalty_is_chosen_on_the_folds():
    X, y = noisy(n=300)
    options = {"depths": [2], "Cs": [100.0, 1000.0], "cv": 3, "round": None, **QUICK, "time_limit": 60}
    model = MargotClassifierCV(budgets=[3], **options).fit(X, y)
    plain = MargotClassifierCV(budgets=[3], prune=None, **options).fit(X, y)
    assert model.prune_ in PENALTIES and plain.prune_ is None and not len(plain.pruning_frontier_)
    assert model.tree_.numbers_to_read < plain.tree_.numbers_to_read
    new = noisy(n=2000, seed=1)
    assert model.score(*new) >= plain.score(*new) - 0.01
    points = {point.params["prune"]: point for point in model.pruning_frontier_}
    assert set(points) == {None, *PENALTIES}
    chosen, best = points[model.prune_], max(points.values(), key=lambda point: point.score)
    assert chosen.chosen and chosen.score >= best.score - 0.02 - 1e-9
    assert chosen.numbers_to_read <= best.numbers_to_read
    assert points[None].score == pytest.approx(model.best_score_)
    assert chosen_settings(model)["prune"] == model.prune_ and "prune" not in chosen_settings(plain)


def test_trees_of_folds_are_pruned_on_their_training_rows(monkeypatch):
    """The rows of a fold that score the penalties must not choose the splits."""
    X, y = noisy(n=300)
    seen = []

    class Recorded(Pruning):
        def __init__(self, tree, X, y, weight, **options):
            super().__init__(tree, X, y, weight, **options)
            seen.append(X[:, 0])

    monkeypatch.setattr(pruning_choice, "Pruning", Recorded)
    options = {"depths": [2], "Cs": [100.0, 1000.0], "cv": 3, "round": None, **QUICK, "time_limit": 60}
    MargotClassifierCV(budgets=[3], **options).fit(X, y)
    assert len(seen) >= 2 and all(len(rows) == 200 for rows in seen)
    left_out = [set(X[:, 0]) - set(rows) for rows in seen]
    assert len(set.union(*left_out)) == sum(map(len, left_out))  # every row is left out once at most


def test_no_choice_of_a_penalty_without_budgets_or_with_another_score():
    X, y = noisy()
    options = {"depths": [1], "Cs": [1.0, 10.0], "cv": 3, **QUICK}
    assert MargotClassifierCV(**options).fit(X, y).prune_ is None
    assert HFSMargotClassifierCV(scoring="balanced_accuracy", **options).fit(X, y).prune_ is None
    model = MargotClassifierCV(prune=0.01, **options).fit(X, y)
    assert model.prune_ == 0.01 and model.certificate_.pruned and model.tree_.numbers_to_read == 1
    with pytest.raises(ValueError, match="must be 'auto', a number in the range"):
        MargotClassifierCV(prune="yes").fit(X, y)


# -- command line -------------------------------------------------------------------------------------------------


def test_the_option_of_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = write_rows(tmp_path / "easy.csv", easy_rows(120))
    fit = ["fit", data, "--target", "died", "--depth", "2", "--C", "10", "--budget", "3", "--engine", "alternating",
           "--time-limit", "1"]  # fmt: skip
    sizes = {}
    for how in ("no", "0.05"):
        out = f"{how}.json"
        assert main([*fit, "--prune", how, "--out", out, "--quiet"]) == exit_codes.OK
        sizes[how] = margotree.load(out).numbers_to_read
    assert sizes["0.05"] < sizes["no"]
    capsys.readouterr()
    assert main([*fit, "--prune", "auto"]) == exit_codes.USAGE
    assert "--prune auto needs hyperparameters that are chosen" in capsys.readouterr().err
    assert main([*fit, "--prune", "2"]) == exit_codes.USAGE
    assert "expected a share from 0 to 1" in capsys.readouterr().err
