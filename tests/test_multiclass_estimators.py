"""The classifiers on more than two classes: labels of all kinds, scores, files, and what is refused or warned of."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.model_selection import GridSearchCV

import margotree
from extras import optional
from margotree import HFSMargotClassifier, LocalSVMTreeClassifier, MargotClassifier, SFSMargotClassifier
from margotree.engines import Refused
from margotree.estimators import FewLeavesWarning, RareClassWarning
from margotree.solution import VerificationError

pd = optional("pandas")

IRIS = load_iris()
X, Y = IRIS.data, IRIS.target_names[IRIS.target]
QUICK = {"node_limit": 3, "time_limit": None}


@pytest.fixture(scope="module")
def fitted():
    return MargotClassifier(C=(0.1, 10), **QUICK).fit(pd.DataFrame(X, columns=list("abcd")), Y)


CLASSIFIERS = [
    MargotClassifier(**QUICK),
    HFSMargotClassifier(budget=2, **QUICK),
    SFSMargotClassifier(budget=1, alpha=0.5, **QUICK),
    LocalSVMTreeClassifier(),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda c: type(c).__name__)
def test_every_classifier_takes_three_classes(classifier, tmp_path):
    classifier.fit(X, Y)
    assert classifier.score(X, Y) > 0.93
    assert classifier.predict_proba(X).shape == (150, 3)
    assert classifier.verify(X, Y).feasible
    classifier.save(tmp_path / "tree.json")
    again = margotree.load(tmp_path / "tree.json")
    assert np.array_equal(again.predict(X), classifier.predict(X))
    assert again.verify(X, Y).objective == pytest.approx(classifier.certificate_.objective, rel=1e-9)
    assert again.terms["n_classes"] == 3 and again.sides.shape == (1, 3)


def test_scores_have_a_column_for_each_class_and_the_largest_is_the_label(fitted):
    scores = fitted.decision_function(pd.DataFrame(X, columns=list("abcd")))
    assert scores.shape == (150, 3)
    assert np.array_equal(fitted.classes_[scores.argmax(axis=1)], fitted.predict(pd.DataFrame(X, columns=list("abcd"))))
    ranked = np.sort(scores, axis=1)
    assert np.allclose(ranked[:, 2], -ranked[:, 1]) and np.allclose(ranked[:, 0], -1 - ranked[:, 2])


def test_a_sample_on_a_last_hyperplane_scores_as_it_is_labelled(fitted):
    tree = fitted.tree_
    last = next(t for t in (1, 2) if tree.splits.w[t].any())
    w, b = tree.scaling.to_user(tree.splits.w[last], float(tree.splits.b[last]))
    points = X - ((X @ w + b) / (w @ w))[:, None] * w
    points = points[np.isin(tree.apply(points), [2 * last + 1, 2 * last + 2])]
    assert len(points)
    assert np.array_equal(tree.classes[tree.decision_function(points).argmax(axis=1)], tree.predict(points))


@pytest.mark.parametrize(
    "labels",
    [["a", "b", "c"], [5, -2, 900], [0.5, 1.5, 2.5]],
    ids=["strings", "integers with holes", "floats"],
)
def test_labels_of_any_kind(labels):
    y = np.array(labels)[IRIS.target]
    if isinstance(labels[0], float):
        with pytest.raises(ValueError, match="Unknown label type"):
            LocalSVMTreeClassifier().fit(X, y)
        return
    model = LocalSVMTreeClassifier(C=10).fit(X, y)
    assert set(model.predict(X)) == set(labels)
    assert model.verify(X, y).feasible


def test_booleans_are_two_classes_as_ever():
    model = LocalSVMTreeClassifier().fit(X, Y == "setosa")
    assert model.tree_.sides is None and model.predict(X).dtype == bool


def test_two_classes_do_not_go_this_way():
    model = MargotClassifier(**QUICK).fit(X[:100], Y[:100])
    assert "n_classes" not in model.tree_.terms and model.decision_function(X).ndim == 1


def test_a_class_of_one_row():
    y = Y.copy()
    y[7] = "odd"
    with pytest.warns(RareClassWarning, match=r"odd \(1\)"):
        model = MargotClassifier(C=10, **QUICK).fit(X, y)
    assert model.verify(X, y).feasible
    assert model.predict_proba(X).shape == (150, 4)


def test_a_class_that_no_leaf_predicts_is_a_class_all_the_same(tmp_path):
    y = Y.copy()
    y[::50] = "scattered"  # three rows among the others: no leaf is for them
    with pytest.warns(RareClassWarning):
        model = LocalSVMTreeClassifier(C=1).fit(X, y)
    assert "scattered" not in model.predict(X) and "scattered" in model.classes_
    assert model.decision_function(X).shape == model.predict_proba(X).shape == (150, 4)
    assert model.verify(X, y).feasible and "scattered" in model.export_text()
    model.save(tmp_path / "tree.json")
    assert margotree.load(tmp_path / "tree.json").classes.tolist() == model.classes_.tolist()
    model.to_html(tmp_path / "tree.html", X, y)


def test_more_classes_than_leaves_work_and_say_what_to_do(tmp_path):
    Z, y = make_blobs(120, 3, centers=6, random_state=0)
    with pytest.warns(FewLeavesWarning, match=r"6 classes, but a tree of depth 2 has 4 leaves.* use depth 3"):
        model = MargotClassifier(depth=2, C=10, **QUICK).fit(Z, y)
    assert len(set(model.predict(Z))) <= 4
    assert model.decision_function(Z).shape == (120, 6)
    assert model.verify(Z, y).feasible
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewLeavesWarning)
        MargotClassifier(depth=3, C=10, **QUICK).fit(Z, y)


def test_weights_count_as_repetitions_do():
    rng = np.random.default_rng(0)
    times = rng.integers(1, 4, 150)
    weighted = LocalSVMTreeClassifier(C=10).fit(X, Y, sample_weight=times)
    repeated = LocalSVMTreeClassifier(C=10).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert weighted.certificate_.objective == pytest.approx(repeated.certificate_.objective, rel=1e-6)
    assert weighted.verify(X, Y, times).feasible


def test_class_weights_enter_the_value_and_are_verified():
    plain = LocalSVMTreeClassifier().fit(X, Y)
    heavy = LocalSVMTreeClassifier(class_weight={"versicolor": 5.0}).fit(X, Y)
    assert heavy.certificate_.objective > plain.certificate_.objective
    assert heavy.verify(X, Y).feasible
    balanced = LocalSVMTreeClassifier(class_weight="balanced").fit(X, Y)
    assert balanced.certificate_.objective == pytest.approx(plain.certificate_.objective, rel=1e-6)


def test_a_start_is_taken(fitted):
    frame = pd.DataFrame(X, columns=list("abcd"))
    again = MargotClassifier(C=(0.1, 10), start=fitted.tree_, engine="alternating", **QUICK).fit(frame, Y)
    assert again.certificate_.objective <= fitted.certificate_.objective * (1 + 1e-9)


def test_a_changed_claim_is_found_out(fitted):
    from dataclasses import replace

    tree = fitted.tree_
    frame = pd.DataFrame(X, columns=list("abcd"))
    swapped = replace(tree, leaf_class=tree.leaf_class[[1, 0, 2, 3]])
    with pytest.raises(VerificationError, match="claims the value"):
        swapped.verify(frame, Y)
    for sides in ([[1, 1, 1]], [[-1, 1]], None):
        with pytest.raises((VerificationError, ValueError)):
            replace(tree, terms={**tree.terms, "sides": sides}).verify(frame, Y)


def test_what_is_for_two_classes_is_refused_in_words():
    with pytest.raises(ValueError, match="max_weight is for two classes, but y has 3 classes"):
        MargotClassifier(max_weight=50).fit(X, Y)
    with pytest.raises(Refused, match=r"MIQP.*; engines that do"):
        MargotClassifier(engine="highs").fit(X, Y)


def test_the_same_fit_gives_the_same_tree():
    trees = [MargotClassifier(C=(0.1, 10), **QUICK).fit(X, Y).tree_ for _ in range(2)]
    assert np.array_equal(trees[0].splits.w, trees[1].splits.w)


def test_grid_search_and_tuning_take_several_classes():
    search = GridSearchCV(LocalSVMTreeClassifier(), {"C": [0.1, 10.0]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.9


def test_text_names_the_classes_that_a_split_parts(fitted):
    text = fitted.export_text(verbose=True)
    assert "(meant for virginica; else setosa, versicolor)" in text or "(meant for versicolor, virginica; else" in text
    assert text.count("meant for") == 1 and "meant for" not in fitted.export_text()


def test_exports_name_all_the_classes(fitted):
    for words in (fitted.to_sql(), fitted.to_python(), fitted.to_c()):
        assert all(name in words for name in ("setosa", "versicolor", "virginica"))


def test_what_is_shown_says_which_classes_a_split_parts(fitted):
    from margotree.page.page_data import facts_of
    from margotree.plots.node_cards import cards

    tree = fitted.tree_
    left, right = tree.target_classes(0)
    assert sorted(left + right) == [0, 1, 2] and 0 in left and right
    assert tree.target_classes(1) is None  # labels say it at the last level
    shape = tree.outline()
    assert cards(tree, shape, tree.counts, 4, "user")[0].target_classes == (left, right)
    facts = facts_of(tree, pd.DataFrame(X, columns=list("abcd")), Y, None)
    assert facts["outline"]["rules"]["0"]["wanted"].startswith("meant for ")
    assert len(facts["samples"]["histogram"]["0"]["counts"]) == 3


def test_a_search_over_settings_starts_fits_from_each_other():
    from margotree.model_selection import TreeSearchCV

    model = MargotClassifier(engine="alternating", **QUICK)
    search = TreeSearchCV(model, {"C": [1.0, 10.0]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.9
    assert search.best_estimator_.tree_.terms["n_classes"] == 3
