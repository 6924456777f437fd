"""Measures equal those of scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_iris, make_classification
from sklearn.model_selection import TunedThresholdClassifierCV

from margotree import LocalSVMTreeClassifier
from margotree.measures import imbalance_note, measure_classification, measure_regression, summary_table


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_measure_is_that_of_scikit_learn(n_classes):
    X, y = make_classification(200, 6, flip_y=0.3, random_state=0) if n_classes == 2 else load_iris(return_X_y=True)
    names = np.array(["b", "a", "c"])[:n_classes]
    y = names[y]
    model = LocalSVMTreeClassifier(depth=2).fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    predicted, shares = model.predict(X), model.predict_proba(X)
    found = measure_classification(y, predicted, shares, model.classes_)
    assert np.array_equal(found.confusion, metrics.confusion_matrix(y, predicted))
    assert found.accuracy == metrics.accuracy_score(y, predicted)
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(y, predicted))
    assert found.sensitivity == pytest.approx(metrics.recall_score(y, predicted, average=None))
    for k, label in enumerate(model.classes_):
        others = metrics.recall_score(y != label, predicted != label)
        assert found.specificity[k] == pytest.approx(others)
    if n_classes == 2:
        assert found.auc == metrics.roc_auc_score(y, shares[:, 1])
        assert found.brier == metrics.brier_score_loss(y, shares[:, 1], pos_label="b")
    else:
        assert found.auc == metrics.roc_auc_score(y, shares, multi_class="ovr")
        assert found.brier == pytest.approx(np.mean(((shares - (y[:, None] == model.classes_)) ** 2).sum(axis=1)))
    assert found.log_loss == pytest.approx(metrics.log_loss(y, shares, labels=model.classes_))
    assert str(found.confusion[0, 1]) in found.class_table() and "this tree" in summary_table({"this tree": found})
    assert found.record()["by_class"][0]["class"] == "a"


def test_the_measures_of_numbers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=(2, 50))
    found = measure_regression(y, predicted)
    assert found.r2 == pytest.approx(metrics.r2_score(y, predicted))
    assert found.mae == pytest.approx(metrics.mean_absolute_error(y, predicted))
    assert found.rmse == pytest.approx(metrics.root_mean_squared_error(y, predicted))
    assert np.isnan(measure_regression([1.0, 1.0], [1.0, 2.0]).r2) and "R2 -" in measure_regression([1.0], [2.0]).text()


def test_classes_that_do_not_occur_have_no_sensitivity():
    found = measure_classification([0, 0, 1], [0, 1, 1], [[0.8, 0.1, 0.1]] * 3, [0, 1, 2])
    record = found.record()
    assert record["auc"] is None and record["by_class"][2] == {"class": 2, "sensitivity": None, "specificity": 1.0}
    assert found.balanced_accuracy == 0.75 and "-" in found.class_table()


def test_a_note_points_to_class_weights_where_a_rare_class_is_neglected():
    y = np.repeat([0, 1], [97, 3])
    shares = np.tile([0.97, 0.03], (100, 1))
    note = imbalance_note(measure_classification(y, np.zeros(100, dtype=int), shares, [0, 1]))
    assert "1 is rare (3.0% of the rows)" in note and 'class_weight="balanced"' in note
    assert imbalance_note(measure_classification(y, y, shares, [0, 1])) == ""
    even = np.repeat([0, 1], 50)
    assert imbalance_note(measure_classification(even, 0 * even, shares, [0, 1])) == ""


def test_thresholds_of_scikit_learn():
    X, y = make_classification(400, 5, weights=[0.8], flip_y=0.1, random_state=0)
    model = TunedThresholdClassifierCV(LocalSVMTreeClassifier(depth=1, C=10), scoring="balanced_accuracy", cv=3).fit(
        X, y
    )
    plain = LocalSVMTreeClassifier(depth=1, C=10).fit(X, y)
    tuned, untuned = (metrics.balanced_accuracy_score(y, one.predict(X)) for one in (model, plain))
    assert tuned > untuned
