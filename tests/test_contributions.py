"""What trees have in scikit-learn: importances, weights of splits, sizes, attributions, and its tools of inspection."""

import numpy as np
import pytest
from sklearn.inspection import DecisionBoundaryDisplay, partial_dependence, permutation_importance
from sklearn.tree import DecisionTreeClassifier

from grown import grown
from margotree import MargotClassifier, MargotRegressor
from margotree.problem import Splits
from margotree.tree import Scaling, Tree


def data(n=90, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1]
    return X, np.digitize(X[:, 0] + X[:, 1] / 10, [0.0, 1.0][: classes - 1])


@pytest.fixture(scope="module")
def fitted():
    X, y = data()
    return X, y, MargotClassifier(C=[1, 100], budget=2, node_limit=5).fit(X, y)


def test_importances_of_splits_of_one_feature_are_those_of_cart():
    X, y = data()
    cart = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    nodes = [0, cart.tree_.children_left[0], cart.tree_.children_right[0]]
    assert min(nodes) >= 0 and all(cart.tree_.feature[t] >= 0 for t in nodes)
    w, b = np.zeros((3, 4)), np.zeros(3)
    for k, t in enumerate(nodes):  # ours: right where h >= 0; CART: left where x <= threshold
        w[k, cart.tree_.feature[t]], b[k] = 1.0, -np.nextafter(cart.tree_.threshold[t], np.inf)
    leaf_class = [np.argmax(cart.tree_.value[c]) for t in nodes[1:] for c in
                  (cart.tree_.children_left[t], cart.tree_.children_right[t])]  # fmt: skip
    tree = Tree(splits=Splits(w=w, b=b), scaling=Scaling.identity(4), classes=[0, 1], leaf_class=leaf_class)
    tree = tree.counted(X, y, np.ones(len(y)))
    assert len(tree.outline().nodes) == 3
    np.testing.assert_allclose(tree.feature_importances(), cart.feature_importances_)


def test_importances_sum_to_one_and_are_zero_without_splits(fitted):
    _, _, model = fitted
    found = model.feature_importances_
    assert found.sum() == pytest.approx(1) and np.all(found >= 0)
    assert set(np.flatnonzero(found)) <= set(np.flatnonzero(model.tree_.splits.w.any(axis=0)))
    assert np.argmax(found) in (0, 1)
    X = np.random.default_rng(0).random((40, 2))
    nothing = MargotClassifier(depth=1, C=1e-9).fit(X, np.arange(40) % 3 == 0)
    assert nothing.get_depth() == 0 and nothing.get_n_leaves() == 1 and not nothing.feature_importances_.any()


def test_weights_of_splits_route_the_samples(fitted):
    X, _, model = fitted
    assert model.coef_.shape == (3, 4) and model.intercept_.shape == (3,)
    right = X @ model.coef_.T + model.intercept_ >= 0
    leaf = np.where(right[:, 0], 5 + right[:, 2], 3 + right[:, 1])
    np.testing.assert_array_equal(leaf, model.apply(X))
    passes = model.decision_path(X)
    assert passes.format == "csr" and passes.shape == (len(X), 7) and np.all(passes.sum(axis=1) == 3)
    assert np.all(passes[np.arange(len(X)), model.apply(X)] == 1)


def test_sizes_are_those_of_the_printed_rules(fitted):
    model = fitted[2]
    text = model.export_text()
    assert model.get_n_leaves() == text.count("=>")
    assert model.get_depth() == max(line.count("|   ") for line in text.splitlines() if "=>" in line)


@pytest.mark.parametrize("proba", ["leaf", "smoothed", "margin"])
@pytest.mark.parametrize("classes", [2, 3])
def test_attributions_add_up_to_probabilities(proba, classes):
    X, y = data(60, classes)
    model = MargotClassifier(C=[1, 100], proba=proba, node_limit=3).fit(X, y)
    new = np.concatenate([X, 3 * X[:5], np.zeros((1, 4))])
    found = model.attributions(new)
    assert found.values.shape == (66, 4, classes)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict_proba(new), atol=1e-12)
    np.testing.assert_allclose(found.values.sum(axis=(1, 2)), 0, atol=1e-12)
    if proba == "leaf":
        np.testing.assert_allclose(found.base, np.bincount(y) / len(y))


def test_features_that_no_split_on_the_path_uses_contribute_nothing(fitted):
    X, _, model = fitted
    found, passes, used = model.attributions(X), model.decision_path(X).toarray()[:, :3], model.coef_ != 0
    for i in range(len(X)):
        assert not found.values[i, ~used[passes[i].astype(bool)].any(axis=0)].any()


def test_attributions_of_trees_with_pruned_nodes_add_up():
    for pruned in ([0], [1], [0, 1, 2]):
        tree, X, _ = grown(2, 3, pruned=pruned)
        found = tree.attributions(X)
        np.testing.assert_allclose(found.base + found.values.sum(axis=1), tree.predict_proba(X), atol=1e-12)


def test_attributions_and_importances_of_numbers():
    X, _ = data()
    y = np.where(X[:, 0] > 0, 3 * X[:, 3], X[:, 1])
    model = MargotRegressor(depth=2, C=10, node_limit=3).fit(X, y)
    new = np.concatenate([X, 100 * X[:5]])
    found = model.attributions(new)
    assert found.values.shape == (95, 4)
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict(new))
    assert model.feature_importances_.sum() == pytest.approx(1) and model.feature_importances_[2] < 0.2
    assert model.coef_.shape == (1, 4) and model.get_depth() <= 1


def test_the_inspection_of_scikit_learn_works(fitted):
    pytest.importorskip("matplotlib")
    X, y, model = fitted
    averages = partial_dependence(model, X, [0], grid_resolution=5)["average"]
    assert averages.shape == (1, 5) and np.ptp(averages) > 0
    found = permutation_importance(model, X, y, n_repeats=2, random_state=0).importances_mean
    assert np.argmax(found) in (0, 1)
    plane = MargotClassifier(C=10, node_limit=3).fit(X[:, :2], y)
    for method in ("predict", "predict_proba", "decision_function"):
        shown = DecisionBoundaryDisplay.from_estimator(plane, X[:, :2], response_method=method, grid_resolution=8)
        assert np.ptp(shown.response) > 0


def test_thresholds_of_scikit_learn_work():
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    X, y = data(120)
    names = np.where(y == 1, "ill", "well")
    model = MargotClassifier(depth=1, C=10, node_limit=3)
    fixed = FixedThresholdClassifier(model, threshold=0.2, pos_label="ill").fit(X, names)
    shares = fixed.estimator_.predict_proba(X)[:, 0]
    np.testing.assert_array_equal(fixed.predict(X), np.where(shares >= 0.2, "ill", "well"))
    tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=2, thresholds=20).fit(X, names)
    assert 0 < tuned.best_threshold_ < 1 and tuned.best_score_ > 0.7
    np.testing.assert_array_equal(
        tuned.predict(X) == "well", tuned.estimator_.predict_proba(X)[:, 1] >= tuned.best_threshold_
    )
