"""Other packages' private names do what :mod:`margotree.private_names` takes from them."""

import argparse
from typing import ClassVar

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import RFECV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.semi_supervised import SelfTrainingClassifier

from margotree.private_names import arguments, best_index, cv_results, subcommands, within_scikit_learn_loop

X = np.arange(40.0).reshape(20, 2)
Y = np.arange(20) % 2


class Recorder(DummyClassifier):
    """Remembers where it was fitted."""

    seen: ClassVar[list[bool]] = []

    def fit(self, X, y, sample_weight=None):
        Recorder.seen.append(within_scikit_learn_loop())
        self.coef_ = np.ones((1, X.shape[1]))
        return super().fit(X, y)


@pytest.mark.parametrize(
    "loop",
    [
        lambda: cross_val_score(Recorder(), X, Y, cv=2),
        lambda: BaggingClassifier(Recorder(), n_estimators=2).fit(X, Y),
        lambda: OneVsRestClassifier(Recorder()).fit(X, Y),
        lambda: MultiOutputClassifier(Recorder()).fit(X, np.column_stack([Y, Y])),
        lambda: CalibratedClassifierCV(Recorder(), cv=2).fit(X, Y),
        lambda: RFECV(Recorder(), cv=2).fit(X, Y),
        lambda: SelfTrainingClassifier(Recorder()).fit(X, np.where(np.arange(20) < 4, -1, Y)),
    ],
)
def test_loops_of_fits_are_recognised(loop):
    Recorder.seen = []
    loop()
    assert Recorder.seen[0]


def test_a_fit_by_itself_is_in_no_loop():
    Recorder.seen = []
    Recorder().fit(X, Y)
    assert Recorder.seen == [False]


def test_results_and_choice_are_those_of_a_grid_search():
    search = GridSearchCV(DummyClassifier(), {"strategy": ["prior", "uniform"]}, cv=2, scoring="accuracy").fit(X, Y)
    scores = [
        {"test_scores": value, "fit_time": 0.0, "score_time": 0.0, "n_test_samples": 10, "fit_error": None}
        for value in (0.25, 0.75, 0.5, 1.0)
    ]
    found = cv_results(search, [{"strategy": "prior"}, {"strategy": "uniform"}], 2, scores)
    assert found["mean_test_score"].tolist() == [0.5, 0.75]
    assert found["params"] == search.cv_results_["params"]
    assert best_index(True, "score", found) == 1
    assert best_index(lambda results: 0, "score", found) == 0


def test_parsers_tell_their_subcommands_and_arguments():
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers().add_parser("fit", help="train a tree")
    sub.add_argument("data")
    sub.add_argument("--depth", choices=[1, 2])
    ((name, text, found),) = subcommands(parser)
    assert (name, text, found) == ("fit", "train a tree", sub)
    assert [a.dest for a in arguments(found)] == ["help", "data", "depth"]
