"""Ctrl-C in a loop of fits ends the loop: what was complete counts, the fit it cut does not."""

import json
import signal
import threading
from importlib import import_module

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV, cross_val_score

from easy import easy_rows, write_rows
from margotree import MargotClassifier
from margotree.cli import exit_codes, main
from margotree.model_selection import Rows, TreeSearchCV, stratified_folds
from margotree.paper import experiments
from margotree.paper.experiments.train import train

rng = np.random.default_rng(0)
X, y = rng.normal(size=(80, 5)), rng.integers(0, 2, 80)
GRID = {"C": [1.0, 3.0, 10.0, 30.0]}


class Disturbed(MargotClassifier):
    """Ctrl-C comes as soon as the fit of a given number reports something."""

    begun = 0
    at = 6
    lock = threading.Lock()

    def _solve(self, problem, start, limits, listener):
        with self.lock:
            Disturbed.begun += 1
            mine = Disturbed.begun

        def listen(event):
            if mine == self.at and not heard:
                heard.append(event)
                signal.raise_signal(signal.SIGINT)

        heard = []
        return super()._solve(problem, start, limits, listen)


@pytest.fixture(autouse=True)
def _fresh():
    Disturbed.begun, Disturbed.at = 0, 6
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def slow() -> Disturbed:
    """Nothing is proved in so short a time: every fit ends at its limit, or is cut."""
    return Disturbed(depth=3, time_limit=0.2)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_chooses_among_what_is_complete(tmp_path, n_jobs):
    file = tmp_path / "fits.sqlite"
    search = TreeSearchCV(slow(), GRID, cv=stratified_folds(2), n_jobs=n_jobs, resume=file, warm=False)
    with pytest.warns(UserWarning, match=r"the interruption left \d of 8 fits undone"):
        search.fit(X, y)
    done = np.isfinite(search.cv_results_["mean_test_accuracy"])
    assert search.interrupted_ and 1 <= done.sum() < 4 and done[search.best_index_]
    # The one that was cut is not there, nothing was begun after it, and the last fit was made.
    assert Disturbed.begun <= 6 + n_jobs
    assert search.best_estimator_.certificate_.stopped != "interrupted"
    with Rows(file) as rows:
        assert len(rows) <= 6 and all(row["stopped"] != "interrupted" for row in rows)
    Disturbed.at = -1
    again = TreeSearchCV(slow(), GRID, cv=stratified_folds(2), resume=file, refit=False, warm=False).fit(X, y)
    assert not again.interrupted_ and np.isfinite(again.cv_results_["mean_test_accuracy"]).all()


def test_a_search_without_anything_complete_raises(tmp_path):
    Disturbed.at = 1
    with pytest.raises(KeyboardInterrupt, match="before any setting"):
        TreeSearchCV(slow(), GRID, cv=2, resume=tmp_path / "fits.sqlite").fit(X, y)
    with Rows(tmp_path / "fits.sqlite") as rows:
        assert len(rows) == 0
    assert Disturbed.begun == 1


@pytest.mark.parametrize("loop", ["grid", "scores", "pipeline", "nested"])
def test_loops_of_scikit_learn_end_too(loop):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    Disturbed.at = 2
    ways = {
        "grid": lambda: GridSearchCV(slow(), GRID, cv=2).fit(X, y),
        "scores": lambda: cross_val_score(slow(), X, y, cv=4),
        "pipeline": lambda: cross_val_score(make_pipeline(StandardScaler(), slow()), X, y, cv=4),
        "nested": lambda: cross_val_score(TreeSearchCV(slow(), {"C": [1.0]}, cv=2), X, y, cv=4),
    }
    with pytest.raises(KeyboardInterrupt):
        ways[loop]()
    assert Disturbed.begun == 2


def test_the_last_fit_of_a_grid_search_keeps_its_tree():
    """It is no part of the loop any more: the tree found so far is an answer, and says what it is."""
    Disturbed.at = 5
    search = GridSearchCV(slow(), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert search.best_estimator_.certificate_.stopped == "interrupted"


def test_trees_within_a_pipeline_are_not_kept_cut():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    Disturbed.at = 3
    search = TreeSearchCV(make_pipeline(StandardScaler(), slow()), {"disturbed__C": [1.0, 10.0]}, cv=2, warm=False)
    with pytest.warns(UserWarning, match="2 of 4 fits undone"):
        search.fit(X, y)
    assert search.interrupted_ and search.best_params_ == {"disturbed__C": 1.0}


def test_the_second_ctrl_c_raises():
    from margotree.engines.run_control import loop_of_fits

    with loop_of_fits() as over:
        signal.raise_signal(signal.SIGINT)
        assert over.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def interrupting(at):
    cases = []

    def wrapped(case, X, y):
        cases.append(case)
        if len(cases) == at:
            signal.raise_signal(signal.SIGINT)
        return train(case, X, y)

    return wrapped, cases


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_experiment_ends_with_what_is_complete(tmp_path, monkeypatch, n_jobs):
    file = tmp_path / "rows.sqlite"
    wrapped, begun = interrupting(2)
    monkeypatch.setattr(import_module("margotree.paper.experiments.run"), "train", wrapped)
    terms = {"data": ["4-partitions", "6-partitions"], "only": ["local_svm", "margot"], "time_limit": 1.0}
    with parallel_config(backend="threading"):
        ran = experiments.run(["synthetic"], out=file, n_jobs=n_jobs, progress=0, **terms)
    assert ran.interrupted and not ran.failed and len(begun) <= 3 and ran.made < 3
    assert "interrupted: continue with --resume" in str(ran)
    with Rows(file) as rows:
        assert len(rows) == ran.made and all(row["stopped"] != "interrupted" for row in rows)
    monkeypatch.undo()
    again = experiments.run(["synthetic"], out=file, resume=True, progress=0, **terms)
    assert not again.interrupted and again.known == ran.made and again.made == 4 - ran.made


def test_the_commands_say_so(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "easy.csv", easy_rows(80))
    monkeypatch.setattr("margotree.MargotClassifier", Disturbed, raising=False)
    tune = ["tune", "easy.csv", "--target", "died", "--grid", "C=1,3,10,30", "--folds", "2", "--depth", "3", "--json"]
    code = main([*tune, "--fit-time-limit", "0.2"])
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert code == exit_codes.INTERRUPTED and found["interrupted"] and (tmp_path / "easy.tree.json").exists()
    assert "note: the interruption left" in shown.err and "UserWarning" not in shown.err
    Disturbed.begun, Disturbed.at = 0, 1
    code = main([*tune, "--fit-time-limit", "0.2", "--force"])
    assert code == exit_codes.INTERRUPTED and "before any setting" in capsys.readouterr().err
    monkeypatch.setattr(import_module("margotree.paper.experiments.run"), "train", interrupting(1)[0])
    code = main(["experiment", "synthetic", "--set", "4-partitions", "--only", "margot", "--out", "r.sqlite", "--json"])
    assert code == exit_codes.INTERRUPTED and json.loads(capsys.readouterr().out)["interrupted"]
