"""scikit-learn's own checks: none may fail, and none is expected to."""

import warnings

import pytest
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_classifiers_train, check_estimator

from extras import MISSING
from margotree import (
    HFSMargotClassifierCV,
    LocalSVMTreeClassifier,
    MargotClassifier,
    MargotClassifierCV,
    SFSMargotClassifier,
)

# The checks fit random labels, which takes long to prove; they look at the contract, not at the proof.  Some fit twice
# and compare, so work is limited in search nodes: seconds would give other trees on a busy machine.  The classes with
# feature selection differ in their defaults only, so that one of them is enough.
ESTIMATORS = [
    MargotClassifier(node_limit=10),
    SFSMargotClassifier(node_limit=5),
    LocalSVMTreeClassifier(),
]

#: The same with a choice, between two settings and of one split, which is quick to make.
_QUICK = {"depths": [1], "cv": 2, "engine": "alternating", "time_limit": 60}
CHOOSERS = [
    MargotClassifierCV(Cs=[1.0, 10.0], **_QUICK),
    HFSMargotClassifierCV(Cs=[1.0], budgets=[1], **_QUICK),
]

#: One split cannot get right five in six of three classes, as this check asks; it is made with two levels below.
SHALLOW = {"check_classifiers_train": "three classes need more than one split"}


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *CHOOSERS], ids=repr)
def test_scikit_learn_is_content(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(
            estimator, on_fail=None, expected_failed_checks=SHALLOW if estimator in CHOOSERS else {}
        )
    assert len(results) > 50
    fine = {"passed", "skipped", "xfail"}
    assert {r["check_name"]: r["exception"] for r in results if r["status"] not in fine} == {}
    # Array-API input is checked only where SCIPY_ARRAY_API was set before SciPy was imported.
    skipped = {"check_array_api_input"}
    if "pandas" in MISSING:
        skipped |= {"check_sample_weights_pandas_series", "check_classifier_data_not_an_array"}
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= skipped


@pytest.mark.parametrize("estimator", CHOOSERS, ids=lambda chooser: type(chooser).__name__)
def test_choosers_learn_two_classes_and_three(estimator):
    deeper = clone(estimator).set_params(depths=[2], Cs=[10.0])
    check_classifiers_train(type(estimator).__name__, deeper)
