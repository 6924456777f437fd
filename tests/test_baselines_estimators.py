"""OCT-1, OCT-H and MM-SVM-OCT as classifiers: what they promise beside what every tree classifier here does."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import warnings
import weakref
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import margotree
from extras import optional
from margotree import LocalSVMTreeClassifier, MMSVMOCTClassifier, OCT1Classifier, OCTHClassifier
from margotree.engines import EngineError
from margotree.paper.data import load, make_partitions, paper_hyperparameters, paper_split, paper_table
from margotree.problem import Splits
from margotree.solution import Proved, VerificationError
from margotree.tree import Tree
from patience import slowness, three_tries

pd = optional("pandas")

#: Settings under which a fit on the few points below is proved in no time, so that it repeats to the last bit.
ALL = [
    OCT1Classifier(min_samples_leaf=1, time_limit=None),
    OCTHClassifier(depth=1, min_samples_leaf=1, time_limit=None),
    MMSVMOCTClassifier(c1=10.0, time_limit=None),
]
OCT = ALL[:2]


def four_corners(m=12, seed=0):
    """Two classes in opposite corners of a square; a third column is noise.  Units differ widely."""
    rng = np.random.default_rng(seed)
    side = rng.integers(0, 2, (m, 2))
    X = np.column_stack([side + rng.uniform(-0.2, 0.2, (m, 2)), rng.normal(size=m)]) * [50, 1, 0.01] + [100, 0, 3]
    return X, np.where(side[:, 0] == side[:, 1], "same", "other")


X, y = four_corners()


@pytest.fixture(params=ALL, ids=lambda e: type(e).__name__)
def estimator(request):
    return clone(request.param)


def failures(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(estimator, on_fail=None)
    assert len(results) > 50
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
    return {r["check_name"]: r["exception"] for r in results if r["status"] not in {"passed", "skipped"}}


class OCTHStart(OCTHClassifier):
    """Ends with its start: fits that repeat exactly on any machine, however busy, and take no time."""

    def _limits(self):
        return replace(super()._limits(), nodes=0)


class MMSVMOCTRoot(MMSVMOCTClassifier):
    """Ends after the solver's first node, for the same reason."""

    def _limits(self):
        return replace(super()._limits(), nodes=1)


@pytest.mark.parametrize("estimator", [OCT1Classifier(), OCTHStart(), MMSVMOCTRoot(depth=1, time_limit=None)], ids=repr)
def test_scikit_learn_is_content(estimator):
    """Its checks train on three classes wherever an estimator does not say that it takes two only."""
    assert failures(estimator) == {}
    assert get_tags(estimator).classifier_tags.multi_class == (not isinstance(estimator, MMSVMOCTClassifier))


# -- what is claimed ----------------------------------------------------------------------------------------------


def test_the_certificate_stands_up_to_its_data(estimator):
    estimator.fit(X, y)
    found = estimator.verify(X, y)
    assert estimator.certificate_.proved is Proved.OPTIMAL
    assert found.objective == pytest.approx(estimator.certificate_.objective)
    estimator.set_params(depth=5)  # the claim is about the terms of the fit
    estimator.verify(X, y)
    with pytest.raises(VerificationError):
        estimator.verify(X, np.where(y == "same", "other", "same"))
    with pytest.raises(VerificationError):
        estimator.verify(X[::-1], y)


def test_a_saved_tree_answers_and_can_be_held_against_its_data(estimator, tmp_path):
    weight = np.random.default_rng(5).integers(0, 3, len(X))
    estimator.set_params(class_weight="balanced").fit(X, y, sample_weight=weight).save(tmp_path / "tree.json")
    tree = margotree.load(tmp_path / "tree.json")
    assert tree.verify(X, y, weight).objective == pytest.approx(estimator.certificate_.objective)
    with pytest.raises(VerificationError):
        tree.verify(X[::-1], y, weight)
    new = X + np.random.default_rng(1).normal(size=X.shape)
    for method in ("predict", "predict_proba", "apply"):
        assert np.array_equal(getattr(tree, method)(new), getattr(estimator, method)(new))
    assert tree.export_text() == estimator.export_text()


def test_labels_are_those_of_the_leaves(estimator):
    estimator.fit(X, y)
    leaf, shares = estimator.apply(X), estimator.predict_proba(X)
    for v in np.unique(leaf):
        assert np.allclose(shares[leaf == v, 1], np.mean(y[leaf == v] == "same"))
        if isinstance(estimator, (OCT1Classifier, OCTHClassifier)):
            assert set(estimator.predict(X)[leaf == v]) == {estimator.classes_[shares[leaf == v][0].argmax()]}


def test_only_margins_make_a_decision_function():
    assert not hasattr(OCT1Classifier(), "decision_function") and not hasattr(OCTHClassifier(), "decision_function")
    fitted = clone(ALL[2]).fit(X, y)
    assert np.array_equal(fitted.decision_function(X) > 0, fitted.predict(X) == "same")


@pytest.mark.parametrize("estimator", OCT, ids=lambda e: type(e).__name__)
@three_tries
def test_more_than_two_classes(estimator):
    data = load_iris(as_frame=True)
    rows = np.arange(0, 150, 6)
    names = np.array(data.target_names)[data.target]
    fitted = clone(estimator).set_params(depth=2, time_limit=5 * slowness()).fit(data.data.iloc[rows], names[rows])
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert fitted.score(data.data, names) > 0.9
    assert fitted.predict_proba(data.data).shape == (150, 3)
    fitted.verify(data.data.iloc[rows], names[rows])
    assert "=> setosa" in fitted.export_text() and "=> virginica" in fitted.export_text()


def test_a_pruned_branch_is_shown_as_a_leaf():
    frame = pd.DataFrame({"dose": [1.0, 2.0, 3.0, 4.0], "age": [30.0, 50.0, 40.0, 35.0]})
    fitted = OCT1Classifier(depth=3, min_samples_leaf=1).fit(frame, ["a", "a", "b", "b"])
    assert fitted.export_text().splitlines() == [
        "if dose >= 2.5",
        "|   => b   (2 samples: 0 a, 2 b)",
        "else",
        "|   => a   (2 samples: 2 a, 0 b)",
    ]
    pruned = OCT1Classifier(alpha=5.0).fit(frame, ["a", "a", "b", "b"])
    assert pruned.export_text() == "=> a   (4 samples: 2 a, 2 b)"
    assert fitted.selected_features_.tolist() == [0]


def test_printed_thresholds_tell_the_training_values_apart():
    values = 1.0 + np.arange(8) * 1e-6
    fitted = OCT1Classifier(depth=1, min_samples_leaf=1).fit(values[:, None], [0, 0, 0, 0, 0, 1, 1, 1])
    threshold = float(fitted.export_text().splitlines()[0].split(">= ")[1])
    assert values[4] < threshold < values[5]


# -- what does not matter -----------------------------------------------------------------------------------------


def test_order_and_repetition_do_not_matter(estimator):
    order = np.random.default_rng(3).permutation(len(X))
    weight = np.random.default_rng(4).integers(1, 4, len(X))
    weighted = clone(estimator).fit(X[order], y[order], sample_weight=weight[order])
    repeated = clone(estimator).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.tree_.splits.w.tobytes() == repeated.tree_.splits.w.tobytes()
    assert weighted.tree_.counts.tolist() == repeated.tree_.counts.tolist()


def test_units_do_not_matter(estimator):
    other_units = X * [8.0, 0.25, 1024.0]  # powers of two: the scaled numbers are the same to the last bit
    one, two = clone(estimator).fit(X, y), clone(estimator).fit(other_units, y)
    assert one.tree_.splits.w.tobytes() == two.tree_.splits.w.tobytes()


def test_class_weights_are_weights_of_the_samples(estimator):
    weight = {"other": 3.0, "same": 0.5}
    by_class = clone(estimator).set_params(class_weight=weight).fit(X, y)
    by_sample = clone(estimator).fit(X, y, sample_weight=[weight[label] for label in y])
    assert by_class.tree_.splits.w.tobytes() == by_sample.tree_.splits.w.tobytes()
    by_class.verify(X, y)


def test_leaf_size_as_a_share_survives_rounding():
    """0.05 * 140 is a little more than 7 in floating point; a leaf of 7 samples is large enough all the same."""
    values = np.arange(140.0)
    fitted = OCT1Classifier(depth=1, min_samples_leaf=0.05).fit(values[:, None], values < 7)
    assert fitted.score(values[:, None], values < 7) == 1.0
    larger = OCT1Classifier(depth=1, min_samples_leaf=8).fit(values[:, None], values < 7)
    assert larger.score(values[:, None], values < 7) < 1.0


def test_fit_keeps_no_data_and_changes_no_parameter(estimator):
    mine, labels, before = X.copy(), y.copy(), estimator.get_params()
    held = [weakref.ref(mine), weakref.ref(labels)]
    estimator.fit(mine, labels)
    del mine, labels
    gc.collect()
    assert [ref() for ref in held] == [None, None]
    assert estimator.get_params() == before
    assert np.array_equal(pickle.loads(pickle.dumps(estimator)).predict(X), estimator.predict(X))


def test_it_lives_among_its_own_kind():
    search = GridSearchCV(OCT1Classifier(), {"alpha": [0.0, 5.0]}, cv=3).fit(*load_iris(return_X_y=True))
    assert search.best_params_["alpha"] == 0.0 and search.best_score_ > 0.9
    piped = make_pipeline(StandardScaler(), OCT1Classifier(min_samples_leaf=1)).fit(X, y)
    assert piped.score(X, y) == 1.0


# -- starts -------------------------------------------------------------------------------------------------------


def test_a_start_from_elsewhere(estimator):
    first = clone(estimator).fit(X, y)
    for start in (None, first, first.tree_, first.tree_.splits):
        again = clone(estimator).set_params(start=start).fit(X, y)
        assert again.certificate_.objective == pytest.approx(first.certificate_.objective, rel=1e-4)


def test_a_tree_of_another_model_can_be_a_start():
    svm = LocalSVMTreeClassifier(depth=1, C=100.0).fit(X, y)
    fitted = OCTHClassifier(depth=1, min_samples_leaf=1, start=svm).fit(X, y)
    assert fitted.certificate_.start_objective >= fitted.certificate_.objective
    with pytest.raises(ValueError, match="start has 1 nodes on 3 features"):
        OCT1Classifier(depth=2, start=svm).fit(X, y)


def test_a_start_that_is_not_allowed_is_refused():
    corners, labels = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 0, 0, 1]
    start = Splits(w=[[1.0, 1.0]], b=[-1.5])
    assert OCTHClassifier(depth=1, start=start).fit(corners, labels).score(corners, labels) == 1.0
    with pytest.raises(ValueError, match="start routes these data in a way that OCT1Classifier does not allow"):
        OCT1Classifier(depth=1, start=start).fit(corners, labels)
    with pytest.raises(ValueError, match="start routes these data in a way that OCTHClassifier does not allow"):
        OCTHClassifier(depth=1, min_samples_leaf=2, start=start).fit(corners, labels)


@three_tries
def test_oct_h_starts_from_oct_1_and_is_never_worse():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        points, labels = rng.random((40, 3)), rng.integers(0, 3, 40)
        one = OCT1Classifier().fit(points, labels)
        several = OCTHClassifier(time_limit=2 * slowness()).fit(points, labels)
        assert several.certificate_.start_objective == pytest.approx(one.certificate_.objective)
        assert several.certificate_.objective <= one.certificate_.objective + 1e-9
        assert several.score(points, labels) >= one.score(points, labels)


# -- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (OCT1Classifier(alpha=-1), "alpha must be a finite number >= 0, got -1"),
        (OCTHClassifier(mu=0), "mu must be a finite number > 0, got 0"),
        (OCT1Classifier(depth=0), "depth must be a whole number from 1 to 10, got 0"),
        (OCTHClassifier(depth=99), "depth must be a whole number from 1 to 10, got 99"),
        (MMSVMOCTClassifier(depth=2.5), "depth must be a whole number from 1 to 10, got 2.5"),
        (OCTHClassifier(alpha=np.nan), "alpha must be a finite number >= 0, got nan"),
        (OCTHClassifier(mu=np.inf), "mu must be a finite number > 0, got inf"),
        (MMSVMOCTClassifier(c1=1e400), "c1 must be a positive finite number, got inf"),
        (MMSVMOCTClassifier(band=-1), "band must be a positive finite number, got -1"),
        (OCT1Classifier(gap=-0.1), "'gap' parameter"),
        (OCT1Classifier(n_jobs=0), "'n_jobs' parameter"),
        (OCT1Classifier(min_samples_leaf=1.5), "'min_samples_leaf' parameter of OCT1Classifier must be a whole number"),
        (OCT1Classifier(min_samples_leaf=True), "'min_samples_leaf' parameter"),
        (OCT1Classifier(min_samples_leaf=1000), "a leaf cannot hold min_leaf = 1000 samples, there are 12 in all"),
        (OCT1Classifier(start="local_svm"), "'start' parameter of OCT1Classifier must be 'cart', None"),
        (OCTHClassifier(start="cart"), "'start' parameter of OCTHClassifier must be 'oct_1', None"),
        (OCT1Classifier(engine="cplexx"), "unknown engine 'cplexx'; for oct_1 there are: auto, search, highs"),
        (OCTHClassifier(scale="standard"), "'scale' parameter"),
        (MMSVMOCTClassifier(c1=0), "c1 must be a positive finite number, got 0"),
        (MMSVMOCTClassifier(c2=-1), "c2 must be a positive finite number, got -1"),
        (MMSVMOCTClassifier(c3="many"), "c3 must be a positive finite number, got 'many'"),
        (MMSVMOCTClassifier(start="cart"), "'start' parameter of MMSVMOCTClassifier must be 'local_svm', None"),
        (MMSVMOCTClassifier(time_limit=0), "'time_limit' parameter"),
    ],
)
def test_bad_parameters_are_found_at_fit(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


def test_an_engine_that_cannot_take_the_problem_names_those_that_can():
    with pytest.raises(EngineError, match="highs does not solve mm_svm_oct problems; engines that do: scip"):
        MMSVMOCTClassifier(engine="highs").fit(X, y)
    with pytest.raises(EngineError, match="search does not solve oct_h problems; engines that do: highs"):
        OCTHClassifier(engine="search").fit(X, y)


def test_bad_samples(estimator):
    with pytest.raises(ValueError, match="one class only"):
        estimator.fit(X, np.full(len(X), 1))
    assert "x0 missing" in estimator.fit(np.where(X > 100, np.nan, X), y).tree_.features[1]
    with pytest.raises(ValueError, match="infinity"):
        estimator.fit(np.where(X > 100, np.inf, X), y)
    with pytest.raises(ValueError, match="Unknown label type"):
        estimator.fit(X, np.linspace(0, 1, len(X)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator.fit(X, y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator.fit(X, y, sample_weight=np.ones(11))
    with pytest.raises(ValueError, match="sample_weight"):
        estimator.fit(X, y, sample_weight=-np.ones(12))
    with pytest.raises(ValueError, match="0 sample"):
        estimator.fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="X has 2 features, but"):
        estimator.fit(X, y).predict(X[:, :2])
    if isinstance(estimator, MMSVMOCTClassifier):
        with pytest.raises(ValueError, match="Only binary classification is supported"):
            estimator.fit(X, np.arange(len(X)) % 3)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (X[:, :1], y),
        (np.column_stack([X[:, 0], np.full(12, 3.0)]), y),
        (np.full((12, 2), 3.0), y),
        (np.vstack([X, X]), np.append(y, y[::-1])),
        (X[[0, int(np.argmax(y != y[0]))]], y[[0, int(np.argmax(y != y[0]))]]),
        (X * 1e-300, y),
        (X * 1e300, y),
    ],
    ids=["one feature", "a constant column", "all points equal", "opposite labels", "two samples", "tiny", "huge"],
)
def test_odd_but_sensible_data_work(estimator, X, y):
    fitted = estimator.set_params(time_limit=5).fit(X, y)
    fitted.verify(X, y)
    assert set(fitted.predict(X)) <= set(y)
    assert np.allclose(fitted.predict_proba(X).sum(axis=1), 1)
    assert fitted.export_text()


# -- long fits ----------------------------------------------------------------------------------------------------

LONG_FIT = """
import numpy as np, sys
from margotree import OCT1Classifier, OCTHClassifier, MMSVMOCTClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 8)), rng.integers(0, 2, 200)
fitted = {classifier}(depth=4, time_limit=300, verbose=2).fit(X, y)
fitted.verify(X, y)
print(fitted.certificate_.stopped, fitted.certificate_.proved, fitted.predict(X).shape, sep="|")
"""


@pytest.mark.parametrize("classifier", ["OCT1Classifier", "OCTHClassifier", "MMSVMOCTClassifier"])
def test_ctrl_c_returns_the_best_tree_so_far(classifier):
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_FIT.format(classifier=classifier)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        while "incumbent" not in (said := process.stderr.readline()):
            assert said
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, err
    stopped, proved, shape = out.strip().split("|")
    assert stopped == "interrupted" and shape == "(200,)" and proved != "optimal"


# -- the planes ---------------------------------------------------------------------------------------------------


def turned(n_samples):
    """The 4-partitions, turned so that no split by one feature does."""
    data = make_partitions(4, n_samples=n_samples).dataset
    c, s = np.cos(0.6), np.sin(0.6)
    return data.X @ np.array([[c, s], [-s, c]]), data.y


def test_four_partitions_are_classified():
    data = make_partitions(4).dataset
    for fitted in (OCTHClassifier(time_limit=600), MMSVMOCTClassifier(c1=100.0, time_limit=600)):
        fitted.fit(data.X, data.y)
        assert fitted.certificate_.proved is Proved.OPTIMAL
        assert fitted.score(data.X, data.y) == 1.0


def test_turned_partitions_need_hyperplanes():
    points, labels = turned(36)
    assert OCT1Classifier().fit(points, labels).score(points, labels) < 1.0
    for fitted in (OCTHClassifier(time_limit=600), MMSVMOCTClassifier(c1=100.0, time_limit=600)):
        assert fitted.fit(points, labels).score(points, labels) == 1.0


def test_wine_with_three_classes_is_proved():
    data = load_wine()
    fitted = OCT1Classifier(depth=2).fit(data.data, data.target)
    assert fitted.certificate_.proved is Proved.OPTIMAL
    assert fitted.score(data.data, data.target) > 0.95
    assert isinstance(fitted.tree_, Tree)


# -- the paper ----------------------------------------------------------------------------------------------------

#: Where the paper's run was cut short, its tree is worse than the proved optimum; elsewhere the errors agree.
CUT_SHORT = {"Breast Cancer D.", "Parkinsons", "SPECTF H."}


@pytest.mark.paper
@pytest.mark.skipif(not os.environ.get("MARGOTREE_DATA"), reason="MARGOTREE_DATA is not set")
@pytest.mark.parametrize("row", paper_table("train_accuracy_fs"), ids=lambda row: row["dataset"])
def test_oct_1_on_the_papers_split(row):
    split = paper_split(load(row["dataset"]))
    fitted = OCT1Classifier(depth=2, **paper_hyperparameters("oct_1", row["dataset"]))
    fitted.fit(split.X_train, split.y_train)
    assert fitted.certificate_.proved is Proved.OPTIMAL
    accuracy = 100 * fitted.score(split.X_train, split.y_train)
    if row["dataset"] in CUT_SHORT:
        assert accuracy > row["oct_1_acc"] + 0.5
    else:
        assert accuracy == pytest.approx(row["oct_1_acc"], abs=0.051)
