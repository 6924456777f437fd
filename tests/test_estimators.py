"""What the four classifiers promise beyond scikit-learn's own checks."""

import gc
import pickle
import weakref
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margotree
from extras import optional
from margotree import HFSMargotClassifier, LocalSVMTreeClassifier, MargotClassifier, SFSMargotClassifier
from margotree.estimators.parameters import threads
from margotree.problem import Splits
from margotree.solution import VerificationError
from margotree.tree import Tree

pd = optional("pandas")

ALL = [
    MargotClassifier(C=10.0),
    HFSMargotClassifier(C=10.0, budget=1),
    SFSMargotClassifier(C=10.0, budget=1, alpha=2.0),
    LocalSVMTreeClassifier(C=10.0),
]


def four_corners(m=14, seed=0):
    """Two classes in opposite corners of a square: no single line tells them apart; a third column is noise."""
    rng = np.random.default_rng(seed)
    side = rng.integers(0, 2, (m, 2))
    X = np.column_stack([side + rng.uniform(-0.2, 0.2, (m, 2)), rng.normal(size=m)]) * [50, 1, 0.01] + [100, 0, 3]
    return X, np.where(side[:, 0] == side[:, 1], "same", "other")


@pytest.fixture(params=ALL, ids=lambda e: type(e).__name__)
def estimator(request):
    return clone(request.param)


X, y = four_corners()


def test_the_certificate_stands_up_to_its_data(estimator):
    estimator.fit(X, y)
    found = estimator.verify(X, y)
    assert found.objective == pytest.approx(estimator.certificate_.objective)
    assert estimator.tree_.certificate is estimator.certificate_
    estimator.set_params(C=1e-3, depth=5)  # the claim is about the terms of the fit
    estimator.verify(X, y)
    with pytest.raises(VerificationError):
        estimator.verify(X[: len(X) // 2], y[: len(X) // 2])


def test_a_saved_tree_can_be_held_against_its_data(estimator, tmp_path):
    weight = np.random.default_rng(5).integers(0, 3, len(X))
    estimator.set_params(class_weight="balanced").fit(X, y, sample_weight=weight).save(tmp_path / "tree.json")
    tree = margotree.load(tmp_path / "tree.json")
    assert tree.verify(X, y, weight).objective == pytest.approx(estimator.certificate_.objective)
    with pytest.raises(VerificationError):
        tree.verify(X, y)
    with pytest.raises(ValueError, match="y also contains"):
        tree.verify(X, np.full(len(X), "neither"))
    with pytest.raises(ValueError, match="of one length"):
        tree.verify(X, y[:-1])
    with pytest.raises(ValueError, match="nothing to verify"):
        replace(tree, certificate=None).verify(X, y)


def test_training_together_solves_what_one_line_cannot():
    assert MargotClassifier(C=100.0).fit(X, y).score(X, y) == 1.0
    assert MargotClassifier(depth=1, C=100.0).fit(X, y).score(X, y) < 0.9


def test_the_tree_by_itself_gives_the_same_answers(estimator, tmp_path):
    estimator.fit(X, y)
    estimator.save(tmp_path / "tree.json")
    tree = margotree.load(tmp_path / "tree.json")
    new = X + np.random.default_rng(1).normal(size=X.shape)
    for method in ("predict", "decision_function", "predict_proba", "apply"):
        assert np.array_equal(getattr(tree, method)(new), getattr(estimator, method)(new))
    assert np.array_equal(estimator.decision_path(new).toarray(), tree.decision_path(new))


def test_decisions_labels_and_shares_agree(estimator):
    estimator.fit(X, y)
    assert estimator.classes_.tolist() == ["other", "same"]
    assert np.array_equal(estimator.predict(X) == "same", estimator.decision_function(X) > 0)
    assert estimator.tree_.counts[0].tolist() == [(y == "other").sum(), (y == "same").sum()]
    leaf, shares = estimator.apply(X), clone(estimator).set_params(proba="leaf").fit(X, y).predict_proba(X)
    for v in np.unique(leaf):
        assert np.allclose(shares[leaf == v, 1], np.mean(y[leaf == v] == "same"))


@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (2.5, 3.5), (False, True), ("a", "b"), (10, 3)], ids=lambda pair: str(pair)
)
def test_any_two_labels(labels):
    target = np.where(y == "same", *labels)
    fitted = LocalSVMTreeClassifier().fit(X, target)
    assert fitted.classes_.tolist() == sorted(labels)
    assert fitted.predict(X).dtype == target.dtype
    as_list = LocalSVMTreeClassifier().fit(X.tolist(), target.tolist())
    assert as_list.predict(X).tolist() == fitted.predict(X).tolist()


def test_a_frame_brings_its_names(estimator):
    frame = pd.DataFrame(X, columns=["age", "dose", "noise"])
    estimator.fit(frame, pd.Series(y, dtype="category"))
    assert estimator.feature_names_in_.tolist() == ["age", "dose", "noise"]
    assert estimator.tree_.features == ("age", "dose", "noise")
    assert "age" in estimator.export_text() or "dose" in estimator.export_text()
    assert np.array_equal(estimator.predict(frame), estimator.tree_.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[["dose", "age", "noise"]])


def test_fit_keeps_no_data(estimator):
    mine, labels = X.copy(), y.copy()
    held = [weakref.ref(mine), weakref.ref(labels)]
    estimator.fit(mine, labels)
    del mine, labels
    gc.collect()
    assert [ref() for ref in held] == [None, None]
    assert len(pickle.dumps(LocalSVMTreeClassifier().fit(*four_corners(3000)))) < 6000


def test_fit_changes_neither_parameters_nor_data(estimator):
    before, mine = estimator.get_params(), X.copy()
    mine.setflags(write=False)
    estimator.fit(mine, y)
    assert estimator.get_params() == before


def test_order_and_repetition_do_not_matter(estimator):
    order = np.random.default_rng(3).permutation(len(X))
    weight = np.random.default_rng(4).integers(1, 4, len(X))
    weighted = clone(estimator).fit(X[order], y[order], sample_weight=weight[order])
    repeated = clone(estimator).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.tree_.splits.w.tobytes() == repeated.tree_.splits.w.tobytes()
    assert weighted.tree_.counts.tolist() == repeated.tree_.counts.tolist()


def test_a_sample_of_weight_zero_is_absent_even_from_the_scaling(estimator):
    wild = np.vstack([X, [1e6, -1e6, 1e6]])
    with_it = clone(estimator).fit(wild, np.append(y, "third"), sample_weight=np.append(np.ones(len(X)), 0))
    without = clone(estimator).fit(X, y)
    assert with_it.tree_.to_dict()["tree"]["w"] == without.tree_.to_dict()["tree"]["w"]
    assert with_it.classes_.tolist() == ["other", "same"]


def test_scaling_makes_units_irrelevant(estimator):
    other_units = X * [8.0, 0.25, 1024.0]  # powers of two: the scaled numbers are the same to the last bit
    one, two = clone(estimator).fit(X, y), clone(estimator).fit(other_units, y)
    assert one.tree_.splits.w.tobytes() == two.tree_.splits.w.tobytes()
    assert two.tree_.split(0).weights == pytest.approx(one.tree_.split(0).weights / [8.0, 0.25, 1024.0])


def test_without_scaling_the_splits_are_in_the_users_units():
    fitted = LocalSVMTreeClassifier(scale=None).fit(X, y)
    assert np.array_equal(fitted.tree_.split(0).weights, fitted.tree_.splits.w[0])


@pytest.mark.parametrize("C", [10.0, [10.0, 10.0], (10, 10, 10), np.array([10.0])])
def test_c_by_number_level_or_node(C):
    expected = LocalSVMTreeClassifier(C=10.0).fit(X, y).tree_.splits.w
    assert np.array_equal(LocalSVMTreeClassifier(C=C).fit(X, y).tree_.splits.w, expected)


@pytest.mark.parametrize(
    ("model", "terms"), [(HFSMargotClassifier, {"budget": 2}), (SFSMargotClassifier, {"budget": 1, "alpha": 2.0})]
)
def test_one_class_trains_all_models(model, terms):
    X, y = four_corners()
    one, named = MargotClassifier(C=10.0, **terms).fit(X, y), model(C=10.0, **terms).fit(X, y)
    assert one.tree_.terms == named.tree_.terms and np.array_equal(one.tree_.splits.w, named.tree_.splits.w)
    assert clone(named).get_params() == named.get_params() and type(clone(named)) is model
    assert named.get_params()["budget"] == terms["budget"] and repr(model()) == f"{model.__name__}()"


def test_defaults_of_the_models_with_feature_selection():
    assert (HFSMargotClassifier().budget, HFSMargotClassifier().alpha) == (1, None)
    assert (SFSMargotClassifier().budget, SFSMargotClassifier().alpha) == (1, 1.0)
    assert HFSMargotClassifier(3, 2.0, 4).get_params()["depth"] == 3
    with pytest.raises(TypeError, match=r"HFSMargotClassifier\(\) .*'bugdet'"):
        HFSMargotClassifier(bugdet=2)
    with pytest.raises(ValueError, match="no budget is given"):
        MargotClassifier(alpha=1.0).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="give budgets"):
        margotree.MargotClassifierCV(alphas=[1.0]).fit([[0.0], [1.0]] * 10, [0, 1] * 10)


def test_the_models_keep_their_budgets():
    hard = HFSMargotClassifier(C=10.0, budget=[1, 2]).fit(X, y)
    used = np.count_nonzero(hard.tree_.splits.w, axis=1)
    assert used[0] <= 1 and np.all(used[1:] <= 2)
    dear = SFSMargotClassifier(C=10.0, budget=1, alpha=1e6).fit(X, y)
    assert np.all(np.count_nonzero(dear.tree_.splits.w, axis=1) <= 1)
    free = SFSMargotClassifier(C=10.0, budget=1, alpha=0.0).fit(X, y)
    assert free.certificate_.objective == pytest.approx(MargotClassifier(C=10.0).fit(X, y).certificate_.objective, 1e-3)


def test_selected_features_are_those_some_split_uses(estimator):
    estimator.fit(X, y)
    used = np.abs(estimator.tree_.splits.w).max(axis=0) >= 5e-4
    assert estimator.selected_features_.tolist() == np.flatnonzero(used).tolist()


def test_class_weights_are_weights_of_the_samples(estimator):
    weight = {"other": 3.0, "same": 0.5}
    by_class = clone(estimator).set_params(class_weight=weight).fit(X, y)
    by_sample = clone(estimator).fit(X, y, sample_weight=[weight[label] for label in y])
    assert by_class.tree_.splits.w.tobytes() == by_sample.tree_.splits.w.tobytes()
    assert by_class.tree_.counts[0].sum() == len(y)
    assert by_class.tree_.terms["class_weight"] == [3.0, 0.5]
    by_class.verify(X, y)


def test_balanced_gives_both_classes_the_same_weight():
    few = np.append(np.flatnonzero(y == "same")[:3], np.flatnonzero(y == "other"))
    fitted = LocalSVMTreeClassifier(class_weight="balanced").fit(X[few], y[few])
    weights, counts = np.array(fitted.tree_.terms["class_weight"]), fitted.tree_.counts[0]
    assert (weights * counts).tolist() == pytest.approx([len(few) / 2] * 2)


def test_pipelines_grids_and_cross_validation_work():
    X, y = four_corners(60)
    search = GridSearchCV(LocalSVMTreeClassifier(), {"C": [0.1, 100.0], "depth": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"C": 100.0, "depth": 2}
    pipeline = make_pipeline(StandardScaler(), LocalSVMTreeClassifier(C=100.0))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8


def test_a_pickled_classifier_predicts_the_same(estimator):
    estimator.fit(X, y)
    again = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(again.decision_function(X), estimator.decision_function(X))
    assert again.certificate_.to_dict() == estimator.certificate_.to_dict()


# -- where a fit starts -------------------------------------------------------------------------------------------


def test_a_fit_may_start_from_a_tree_in_any_of_its_forms():
    first = LocalSVMTreeClassifier(C=10.0).fit(X, y)
    for start in (first, first.tree_, first.tree_.splits, pickle.loads(pickle.dumps(first.tree_))):
        fitted = MargotClassifier(C=10.0, start=start).fit(X, y)
        assert fitted.certificate_.start_objective == pytest.approx(first.certificate_.objective)
        assert fitted.certificate_.objective <= first.certificate_.objective * (1 + 1e-9)


def test_the_best_feasible_tree_of_a_list_is_the_start():
    bad, good = (LocalSVMTreeClassifier(C=C, budget=1).fit(X, y).tree_ for C in (1e-6, 10.0))
    dense = LocalSVMTreeClassifier(C=10.0).fit(X, y).tree_
    single = MargotClassifier(C=10.0, budget=1, start=good).fit(X, y).certificate_.start_objective
    for trees in ([bad, good, dense], [dense, good.splits], [good, bad]):
        fitted = MargotClassifier(C=10.0, budget=1, start=trees).fit(X, y)
        assert fitted.certificate_.start_objective == pytest.approx(single)
    with pytest.raises(ValueError, match="no tree in the list start is feasible"):
        MargotClassifier(C=10.0, budget=1, start=[dense, dense]).fit(X, y)
    for wrong in ([], [good, "local_svm"]):
        with pytest.raises(ValueError, match="or a list of these"):
            MargotClassifier(start=wrong).fit(X, y)


def test_a_start_is_brought_into_the_new_units():
    plain = LocalSVMTreeClassifier(scale=None).fit(X, y)
    scaled = MargotClassifier(start=plain).fit(X, y)
    w, b = zip(*(scaled.tree_.scaling.from_user(w, b) for w, b in zip(*unpack(plain.tree_), strict=True)), strict=True)
    again = MargotClassifier(start=Splits(w=np.array(w), b=np.array(b))).fit(X, y)
    assert again.certificate_.start_objective == pytest.approx(scaled.certificate_.start_objective)


def unpack(tree: Tree):
    return tree.splits.w, tree.splits.b


def test_a_start_is_optional():
    assert np.isnan(MargotClassifier(start=None).fit(X, y).certificate_.start_objective)
    assert np.isfinite(MargotClassifier().fit(X, y).certificate_.start_objective)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (LocalSVMTreeClassifier(depth=1).fit(X, y), "start has 1 nodes on 3 features, but a tree of depth 2"),
        (LocalSVMTreeClassifier().fit(X[:, :2], y), "start has 3 nodes on 2 features"),
        (LocalSVMTreeClassifier(), "without a fitted tree of hyperplanes"),
        (LocalSVMTreeClassifier().fit(X, y == "same"), "is a tree for the classes"),
        ("magic", "'start' parameter of MargotClassifier must be 'local_svm'"),
    ],
)
def test_a_start_that_does_not_fit_is_named(start, message):
    with pytest.raises(ValueError, match=message):
        MargotClassifier(start=start).fit(X, y)


def test_a_start_that_is_not_allowed_on_the_data_is_named():
    middle = np.sort(X[:, 0])[len(X) // 2]
    low, high = X[:, 0].min(), X[:, 0].max()
    in_the_band = Splits(w=np.eye(3), b=[-(middle - low) / (high - low) - 5e-4, 1.0, 1.0])
    with pytest.raises(ValueError, match="not a feasible tree on these data"):
        MargotClassifier(start=in_the_band).fit(X, y)


def test_labels_in_an_object_column():
    for labels in ([False, True], [3, 7], ["a", "b"]):
        target = np.array([labels[int(v)] for v in y == "same"], dtype=object)
        fitted = LocalSVMTreeClassifier(C=1000.0).fit(X, target)
        assert fitted.classes_.tolist() == labels
        assert set(fitted.predict(X)) == set(labels)


# -- quiet or not -------------------------------------------------------------------------------------------------


def test_a_fit_is_quiet(estimator, capfd):
    estimator.fit(X, y)
    assert capfd.readouterr() == ("", "")


def test_verbose_shows_progress_on_the_error_stream(capfd):
    MargotClassifier(verbose=1).fit(X, y)
    out, err = capfd.readouterr()
    assert out == "" and "incumbent" in err and "bound" in err and "no tree has a training objective" in err


def test_how_many_threads():
    assert threads(None) == 1
    assert threads(3) == 3
    assert threads(-1) >= 1
    assert threads(-1000) == 1
