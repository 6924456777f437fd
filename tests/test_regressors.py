"""The regressors: scikit-learn's conventions, numeric targets of all kinds, trees of numbers as text and as files."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import SkipTestWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import check_estimator

import margotree
from margotree import (
    HFSMargotRegressor,
    LocalSVMTreeClassifier,
    LocalSVRTreeRegressor,
    MargotRegressor,
    RegressionTree,
    SFSMargotRegressor,
    Tree,
    TreeFileError,
    VerificationError,
)
from margotree.problem import Splits
from margotree.tree import Scaling, TargetScaling
from margotree.tree.text import rule_of

QUICK = {"engine": "alternating", "node_limit": 3}


def two_planes(n=80, seed=0):
    """Targets on two planes, in units and names of a user."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"cement": rng.uniform(100, 500, n), "water": rng.uniform(120, 240, n), "age": rng.uniform(1, 90, n)}
    )
    y = np.where(X.age > 30, 20 + 0.1 * X.cement, 50 - 0.2 * X.water + 0.05 * X.cement) + 0.1 * rng.normal(size=n)
    return X, pd.Series(y, name="strength")


@pytest.mark.parametrize(
    "estimator",
    [MargotRegressor(depth=2, engine="alternating", node_limit=1), LocalSVRTreeRegressor(depth=2)],
    ids=repr,
)
def test_scikit_learn_accepts_the_regressors(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(estimator, on_fail=None)
    assert len(results) > 40
    fine = {"passed", "skipped", "xfail"}
    assert {r["check_name"]: r["exception"] for r in results if r["status"] not in fine} == {}


def test_a_tree_finds_two_planes_and_one_formula_does_not():
    X, y = two_planes()
    model = MargotRegressor(depth=2, **QUICK).fit(X, y)
    assert model.score(X, y) > 0.99 > 0.9 > LinearRegression().fit(X, y).score(X, y)
    assert "age" in model.tree_.features
    assert np.array_equal(model.predict(X), model.tree_.predict(X))
    assert isinstance(model.tree_, RegressionTree)
    assert model.tree_.depth == 2 and model.tree_.levels == 1
    assert set(model.apply(X)) == {1, 2}
    assert model.decision_path(X).toarray().sum(axis=1).tolist() == [2] * len(X)


def test_depth_1_is_a_linear_support_vector_regression():
    X, y = two_planes(40)
    model = MargotRegressor(depth=1, C=2.0, epsilon=0.1, gap=1e-9).fit(X, y)
    tree = model.tree_
    scaled, target = tree.scaling.apply(X.to_numpy()), tree.target.apply(y.to_numpy())
    # The intercept of SVR has no penalty, in contrast to LinearSVR.
    other = SVR(kernel="linear", C=2.0, epsilon=0.1, tol=1e-9).fit(scaled, target)
    w, b = other.coef_[0], float(other.intercept_[0])
    loss = np.maximum(0.0, np.abs(target - scaled @ w - b) - 0.1)
    assert model.certificate_.objective == pytest.approx(0.5 * w @ w + 2.0 * loss.sum(), rel=1e-6)
    assert model.certificate_.gap < 1e-6


def test_weights_are_repetitions_and_rows_of_weight_0_are_left_out():
    X, y = two_planes(30)
    times = np.arange(30) % 3
    weighted = LocalSVRTreeRegressor(depth=2).fit(X, y, sample_weight=times)
    repeated = LocalSVRTreeRegressor(depth=2).fit(X.loc[X.index.repeat(times)], y.loc[y.index.repeat(times)])
    assert np.array_equal(weighted.predict(X), repeated.predict(X))
    assert weighted.tree_.counts.tolist() == repeated.tree_.counts.tolist()


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e9])
def test_units_of_the_target_have_no_effect(factor):
    X, y = two_planes(60)
    plain = LocalSVRTreeRegressor(depth=2).fit(X, y)
    scaled = LocalSVRTreeRegressor(depth=2).fit(X, factor * y)
    assert scaled.predict(X) == pytest.approx(factor * plain.predict(X), rel=1e-6)
    assert scaled.certificate_.objective == pytest.approx(plain.certificate_.objective, rel=1e-6)


def test_predictions_stay_near_the_training_targets():
    X, y = two_planes()
    model = MargotRegressor(depth=2, **QUICK).fit(X, y)
    far = pd.concat([X * 1e3, X * -1e300])
    predicted, leaf = model.predict(far), model.apply(far)
    trained, at = y.to_numpy(), model.apply(X)
    for v in np.unique(leaf):
        low, high = trained[at == v].min(), trained[at == v].max()
        wider = 0.1 * (high - low)
        here = predicted[leaf == v]
        assert np.all((here >= low - wider - 1e-9) & (here <= high + wider + 1e-9))
    assert np.all(np.isfinite(predicted))


def test_budgets_of_splits_and_leaves():
    X, y = two_planes()
    tree = MargotRegressor(depth=3, budget=[1, 2], leaf_budget=[0, 1, 2, 3], **QUICK).fit(X, y).tree_
    used = tree.hyperplanes.w != 0
    assert np.all(used.sum(axis=1) <= [1, 2, 2, 0, 1, 2, 3])
    constant = MargotRegressor(depth=2, leaf_budget=0, **QUICK).fit(X, y)
    assert len(np.unique(constant.predict(X))) == 2
    assert not constant.tree_.models.w.any()
    hard = HFSMargotRegressor(depth=2, **QUICK).fit(X, y).tree_
    assert np.all((hard.hyperplanes.w != 0).sum(axis=1) <= 1)
    soft = SFSMargotRegressor(depth=2, alpha=1e6, **QUICK).fit(X, y).tree_
    assert np.all((soft.hyperplanes.w != 0).sum(axis=1) <= 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"leaf_budget": [1, 2, 3]}, "2 of them"),
        ({"leaf_budget": 0.5}, "whole number"),
        ({"budget": [1, 1]}, "budget must be one number"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": "0"}, "epsilon must be"),
        ({"C": "large"}, "'auto'"),
        ({"loss": "squared_error"}, "loss"),
        ({"depth": 0}, "depth must be"),
    ],
)
def test_bad_parameters_have_clear_messages(parameters, message):
    X, y = two_planes(20)
    with pytest.raises(ValueError, match=message):
        LocalSVRTreeRegressor(**{"depth": 2, **parameters}).fit(X, y)


TARGETS = {
    "constant": np.full(12, 3.5),
    "two values": np.arange(12) % 2,
    "outliers": np.r_[np.arange(10.0), 1e12, -1e12],
    "integers": np.arange(12) % 5,
    "strings": np.array([str(v) for v in np.arange(12.0)]),
    "tiny": 1e-300 * np.arange(12),
    "mostly equal": np.r_[np.zeros(11), 1.0],
}


@pytest.mark.parametrize("name", TARGETS)
def test_odd_targets_give_a_tree(name):
    X, y = np.arange(24.0).reshape(12, 2) ** 1.5, TARGETS[name]
    model = MargotRegressor(depth=2, **QUICK).fit(X, y)
    numbers = y.astype(float)
    assert np.all(np.isfinite(model.predict(X)))
    assert model.verify(X, numbers).feasible
    assert model.export_text()
    if name == "constant":
        assert model.predict(X).tolist() == numbers.tolist()


def test_few_rows_and_equal_rows_give_a_tree():
    few = MargotRegressor(depth=3, **QUICK).fit([[0.0], [1.0]], [1.0, 2.0])
    assert np.all(np.isfinite(few.predict([[-5.0], [0.5], [7.0]])))
    equal = MargotRegressor(depth=2, **QUICK).fit(np.ones((5, 2)), [1.0, 2.0, 3.0, 4.0, 50.0])
    assert equal.predict([[1.0, 1.0]]) == pytest.approx([3.0])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, np.nan, 2.0], "missing values at row 1"),
        ([1.0, np.inf, 2.0], "infinity"),
        (["1", "two", "3"], "'two' at row 1"),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), "dates"),
        ([-1e308, 0.0, 1e308], "further apart"),
        ([1.0, 2.0], "inconsistent numbers of samples"),
    ],
)
def test_bad_targets_have_clear_messages(y, message):
    with pytest.raises(ValueError, match=message):
        LocalSVRTreeRegressor().fit([[0.0], [1.0], [2.0]], y)


def test_texts_are_formulas_in_the_units_of_the_user():
    X, y = two_planes()
    tree = MargotRegressor(depth=2, budget=1, **QUICK).fit(X, y).tree_
    text = tree.export_text(width=200)
    formulas = [line.split("=> ")[1].split("   (")[0] for line in text.splitlines() if "=>" in line]
    assert len(formulas) == 2
    assert all(formula.startswith("strength = ") for formula in formulas)
    # The printed numbers predict what the tree predicts, to a hundredth of the spread.
    row = X.iloc[[7]]
    leaf = int(tree.apply(row)[0])
    printed = {leaf: text for leaf, text in zip((2, 1), formulas, strict=True)}[leaf] if tree.splits.w.any() else ""
    value = eval(printed.split(" = ")[1], {name: float(row[name].iloc[0]) for name in X})
    assert value == pytest.approx(tree.predict(row)[0], abs=0.01 * tree.target.scale)
    path = str(tree.path(row.iloc[0]))
    assert f"strength = {tree.predict(row)[0]:.6g}" in path and "limited to" in path
    assert "units of" in str(tree.certificate)
    assert "/" in tree.export_text(units="scaled")


@pytest.mark.parametrize("w", [[0.3, -2e-4, 0.05], [-0.3, 1e-4, 1e-6], [1e-7, 0.0, -3e-7], [0.0, -0.4, 0.0]], ids=repr)
def test_printed_splits_route_the_training_samples_as_the_tree_does(w, tmp_path):
    """Also where samples lie close to the split, and features of small weight are left out of its text."""
    X, y = two_planes(300)
    scaling = Scaling(offset=X.min().to_numpy(), scale=np.ptp(X.to_numpy(), axis=0))
    h = scaling.apply(X.to_numpy()) @ w
    for rank in (20, 150, 298):
        below, above = np.sort(h)[rank : rank + 2]
        threshold = above - 0.01 * (above - below)
        tree = RegressionTree(
            splits=Splits(w=np.array([w]), b=np.array([-threshold])), models=Splits(w=np.zeros((2, 3)), b=np.zeros(2)),
            scaling=scaling, target=TargetScaling(center=0.0, scale=1.0), feature_names=tuple(X),
        ).trained_on(X, y, np.ones(len(y)))  # fmt: skip
        right = tree.apply(X) == 2
        assert 0 < right.sum() < len(y)
        tree.save(tmp_path / "tree.json")
        for found in (tree, margotree.load(tmp_path / "tree.json")):
            rule = rule_of(found, 0)
            sums = sum(float(w) * X.iloc[:, j] for w, j in zip(rule.weights, rule.features, strict=True))
            met = sums <= float(rule.threshold) if rule.at_most else sums >= float(rule.threshold)
            assert np.array_equal(met, right)


def test_the_printed_tree_predicts_the_training_samples_as_the_tree_does():
    X, y = two_planes()
    model = MargotRegressor(depth=3, C=[1e-4, 1e-3, 1.0], **QUICK).fit(X, y)
    conditions, found = {}, pd.Series(np.nan, index=X.index)
    for line in model.export_text(width=10_000).splitlines():
        level, words = line.count("|   "), line.lstrip("| ")
        if words.startswith("if "):
            conditions[level] = X.eval(words.removeprefix("if "))
        elif words == "else":
            conditions[level] = ~conditions[level]
        else:
            rows = np.logical_and.reduce([np.full(len(X), True), *(conditions[k] for k in range(level))])
            formula, low, high = re.fullmatch(r"=> strength = (.*)   \(.*; limited to (\S+) to (\S+)\)", words).groups()
            found[rows] = np.clip(X.eval(formula), float(low), float(high))[rows]
    assert np.max(np.abs(found - model.predict(X))) <= 0.02 * model.tree_.target.scale


def test_leaves_of_one_formula_are_one_leaf_in_texts():
    same = Splits(w=np.array([[1.0], [1.0]]), b=np.zeros(2))
    parts = {"splits": Splits(w=np.array([[1.0]]), b=np.array([-0.5])), "scaling": Scaling.identity(1), "models": same}
    tree = RegressionTree(**parts, target=TargetScaling(center=0.0, scale=1.0))
    assert tree.export_text().count("=>") == 2  # without counts nothing is left out
    counted = RegressionTree(**parts, target=tree.target, counts=[[2.0], [1.0], [1.0]])
    assert counted.export_text().startswith("=> target = 0 + 1 * x0") or "=> target = 0 + x0" in counted.export_text()
    assert "change" in counted.export_text()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_saved_trees_predict_to_the_bit(tmp_path, depth):
    X, y = two_planes()
    model = LocalSVRTreeRegressor(depth=depth).fit(X, y)
    model.save(tmp_path / "tree.json")
    loaded = margotree.load(tmp_path / "tree.json")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.to_dict() == model.tree_.to_dict()
    assert loaded.export_text() == model.export_text()
    assert loaded.verify(X, y).objective == model.certificate_.objective
    with pytest.raises(TreeFileError, match=r"numbers; margotree\.load reads it"):
        Tree.load(tmp_path / "tree.json")


def test_spoiled_files_are_refused(tmp_path):
    X, y = two_planes(30)
    record = LocalSVRTreeRegressor(depth=2).fit(X, y).tree_.to_dict()
    for change in (
        {"limits": [[0, 1]]},
        {"empty_ranges": [[1, 0]]},
        {"empty_ranges": [[0, 1], [0, 1]]},
        {"leaf_b": ["1", "2"]},
        {"target": {"name": "y", "center": 0, "scale": 0}},
    ):
        body = {**record["tree"], **change}
        from margotree.tree.file import checksum_of

        (tmp_path / "bad.json").write_text(json.dumps({**record, "tree": body, "checksum": checksum_of(body)}))
        with pytest.raises(TreeFileError, match=r"bad\.json"):
            margotree.load(tmp_path / "bad.json")


def test_verify_finds_other_targets():
    X, y = two_planes(30)
    model = LocalSVRTreeRegressor(depth=2).fit(X, y)
    assert model.verify(X, y).objective == pytest.approx(model.certificate_.objective, rel=1e-9)
    with pytest.raises(VerificationError):
        model.verify(X, y + 1.0)


def test_a_fitted_tree_is_a_start_in_other_units():
    X, y = two_planes(60)
    first = MargotRegressor(depth=2, **QUICK).fit(X, y)
    again = MargotRegressor(depth=2, start=first.tree_, engine="alternating", node_limit=1).fit(X, y)
    assert again.certificate_.objective <= first.certificate_.objective * (1 + 1e-9)
    some = MargotRegressor(depth=2, start=first, **QUICK).fit(X * 7.0, 3.0 * y + 1.0)
    assert some.score(X * 7.0, 3.0 * y + 1.0) > 0.99
    classes = LocalSVMTreeClassifier().fit(X, y > 40)
    with pytest.raises(ValueError, match="tree of classes"):
        MargotRegressor(depth=2, start=classes, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="tree of numbers"):
        margotree.MargotClassifier(depth=2, start=first.tree_).fit(X, y > 40)


def test_loops_of_scikit_learn():
    X, y = two_planes(40)
    search = GridSearchCV(
        LocalSVRTreeRegressor(), {"depth": [1, 2], "C": ["auto", [0.1, 1.0]]}, cv=2, error_score="raise"
    )
    search.set_params(param_grid={"depth": [1, 2], "epsilon": [0.0, 0.1]}).fit(X, y)
    assert search.best_params_["depth"] == 2
    assert cross_val_score(LocalSVRTreeRegressor(depth=2), X, y, cv=2).shape == (2,)
    logs = TransformedTargetRegressor(LocalSVRTreeRegressor(depth=2), func=np.log, inverse_func=np.exp).fit(X, y)
    assert np.all(logs.predict(X) > 0)
    assert clone(MargotRegressor(C=[1, 2])).get_params()["C"] == [1, 2]
