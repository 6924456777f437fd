"""Plots of regression trees: they show the numbers that the tree predicts."""

import numpy as np
import pandas as pd
import pytest

from margotree import HFSMargotClassifier, MargotRegressor
from margotree.plots import (
    plot_effect,
    plot_features,
    plot_node,
    plot_plane,
    plot_predictions,
    plot_residuals,
    plot_tree,
)
from margotree.tree.formulas import printed_formula
from margotree.tree.outline import outline

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    plt.close("all")


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)) * [1.0, 10.0, 100.0]
    return X, np.where(X[:, 0] > 0.5, 3 * X[:, 1], 20 - X[:, 1]) + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def tree():
    X, y = table()
    return MargotRegressor(depth=3, budget=1, leaf_budget=1, node_limit=5).fit(X, y).tree_


def points(ax):
    """The coordinates of all markers of a plot."""
    return np.concatenate([np.asarray(found.get_offsets()) for found in ax.collections])


def test_cards_have_the_numbers_of_the_text(tree):
    ax = plot_tree(tree)
    words = {text.get_text() for text in ax.texts}
    shape = outline(tree)
    assert len(shape.leaves) > 1
    for v in shape.leaves:
        formula = printed_formula(tree, shape.label[v] + tree.n_nodes)
        numbers = [number.replace("-", "\N{MINUS SIGN}") for number in (formula.constant, *formula.weights)]
        assert any(word.startswith(f"target = {numbers[0]}") for word in words) and set(numbers[1:]) <= words
    assert "120 samples" in words


def test_other_samples_are_counted_without_targets(tree):
    assert "7 samples" in {text.get_text() for text in tree.plot(table(7, 1)[0]).texts}


@pytest.mark.parametrize("depth", [1, 2])
def test_a_constant_and_a_single_formula_are_drawn(depth):
    X, y = table(30)
    for targets in (y, np.full(30, 2.5)):
        model = MargotRegressor(depth=depth, node_limit=3).fit(X, targets)
        words = " ".join(text.get_text() for text in plot_tree(model).texts)
        assert "target = " in words and "30 samples" in words
    assert "target = 2.5" in words and "gets the same formula" in words


def test_points_are_predictions_and_residuals(tree):
    X, y = table(50, 2)
    found, order = tree.predict(X), np.lexsort
    pairs = np.column_stack([y, found])
    drawn = points(plot_predictions(tree, X, y))
    assert np.allclose(drawn[order(drawn.T)], pairs[order(pairs.T)])
    pairs = np.column_stack([found, y - found])
    drawn = points(tree.plot_residuals(X, y))
    assert np.allclose(drawn[order(drawn.T)], pairs[order(pairs.T)])
    r2 = 1 - np.sum((y - found) ** 2) / np.sum((y - y.mean()) ** 2)
    assert f"R2 {r2:.3f}" in tree.plot_predictions(X, y).get_xlabel()


def test_an_effect_is_the_mean_of_predictions(tree):
    X, _ = table(40, 3)
    mean = plot_effect(tree, X, "x1").get_lines()[-2]
    for value, expected in mean.get_xydata()[[0, 17, -1]]:
        changed = X.copy()
        changed[:, 1] = value
        assert tree.predict(changed).mean() == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_an_effect_on_classes_is_their_probability(classes):
    X, y = table(60)
    labels = np.digitize(y, [10.0, 20.0][: classes - 1])
    model = HFSMargotClassifier(node_limit=5, engine="alternating").fit(X, labels)
    ax = model.tree_.plot_effect(X, 1)
    assert ax.get_ylabel() == "probability"
    changed = X.copy()
    curve = ax.get_lines()[-2].get_xydata()
    changed[:, 1] = curve[5, 0]
    assert model.predict_proba(changed)[:, -1].mean() == pytest.approx(curve[5, 1])


def test_the_effect_of_words_is_the_mean_prediction_for_each():
    X, y = table(60)
    frame = pd.DataFrame(
        {"size": X[:, 1], "town": np.where(X[:, 0] > 0.5, "york", np.where(X[:, 2] > 50, "bath", "ely"))}
    )
    frame.loc[:5, "size"] = np.nan
    model = MargotRegressor(depth=2, node_limit=3).fit(frame, y)
    ax = plot_effect(model, frame, "town")
    drawn = dict(zip([label.get_text() for label in ax.get_yticklabels()], ax.get_lines()[0].get_xdata(), strict=True))
    assert sorted(drawn) == ["bath", "ely", "york"]
    for town, mean in drawn.items():
        assert model.predict(frame.assign(town=town)).mean() == pytest.approx(mean)
    curve = plot_effect(model, frame, "size").get_lines()[-2].get_xydata()
    assert model.predict(frame.assign(size=curve[20, 0])).mean() == pytest.approx(curve[20, 1])


def test_the_plane_has_the_samples_and_levels_of_the_prediction():
    X, y = table(60)
    model = MargotRegressor(depth=2, node_limit=5).fit(X[:, :2], y)
    ax = plot_plane(model, X[:, :2], y)
    image = ax.images[0]
    left, right, bottom, top = image.get_extent()
    corner = model.predict([[left, bottom], [right, top]])
    shown = np.asarray(image.get_array())
    assert np.allclose([shown[0, 0], shown[-1, -1]], corner)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tree, X, y: plot_predictions(tree, X, y[:-1]), "one length"),
        (lambda tree, X, y: plot_residuals(tree, X, np.full(len(y), np.nan)), "NaN"),
        (lambda tree, X, y: plot_effect(tree, X, "weight"), "no feature 'weight'"),
        (lambda tree, X, y: plot_effect(tree, X[:0], 0), "at least one sample"),
        (lambda tree, X, y: plot_plane(tree, X, y, features=[0, 0]), "two features"),
    ],
)
def test_wrong_input_is_an_error(tree, call, message):
    with pytest.raises(ValueError, match=message):
        call(tree, *table(10))


def test_trees_of_classes_have_no_residuals():
    X, y = table(30)
    model = HFSMargotClassifier(node_limit=2).fit(X, y > 15)
    with pytest.raises(TypeError, match="trees of numbers"):
        plot_predictions(model, X, y)


def test_trees_of_numbers_have_no_plot_of_one_split(tree):
    with pytest.raises(TypeError, match="for trees of classes"):
        plot_node(tree, *table(10), 0)


def test_the_grid_of_features_has_a_column_per_formula(tree):
    ax = plot_features(tree)
    shape = tree.outline(simplify=False)
    heads = [label.get_text() for label in ax.get_xticklabels()]
    assert heads == [f"[{t}]" for t in shape.nodes] + [f"=> [{v}]" for v in shape.leaves]
    rows = [label.get_text() for label in ax.get_yticklabels()]
    signs = {(round(t.get_position()[1]), round(t.get_position()[0])): t.get_text() for t in ax.texts}
    for k, v in enumerate([*shape.nodes, *shape.leaves]):
        for r, name in enumerate(rows):
            w = tree.hyperplanes.w[v, tree.features.index(name)] if tree.selected()[v, tree.features.index(name)] else 0
            assert signs.get((r, k), "") == ("+" if w > 0 else "\N{MINUS SIGN}" if w < 0 else "")
