"""Grids, rules and the search: what is chosen, that it is scikit-learn's, that it can be stopped and resumed."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from cutting import cutting
from margotree import LocalSVMTreeClassifier, MargotClassifier
from margotree.model_selection import (
    FewestFeatures,
    Rows,
    RowsError,
    SearchError,
    TreeSearchCV,
    best_accuracy,
    scoring,
    stratified_folds,
)
from margotree.model_selection.fit_chains import Failure, run_chains
from margotree.model_selection.grid_paths import grid_paths
from margotree.model_selection.progress_line import FitCounter, duration
from margotree.paper.tuning import model_names, paper_grid, tied_budgets, tune
from patience import slowness, three_tries

# -- grids ------------------------------------------------------------------------------------------------------


def test_the_paper_s_grids_have_the_paper_s_sizes():
    sizes = {model: np.prod([len(v) for v in paper_grid(model).values()]) for model in model_names()}
    assert sizes == {
        "margot": 121, "hfs": 726, "sfs": 275, "local_svm": 121, "oct_1": 12, "oct_h": 12, "mm_svm_oct": 55
    }  # fmt: skip


def test_budgets_are_tied():
    assert tied_budgets() == [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]
    assert tied_budgets(2, depth=3) == [(1, 1, 1), (1, 2, 2), (2, 2, 2)]
    assert paper_grid("hfs", most_features=2)["budget"] == [(1, 1), (1, 2), (2, 2)]


def test_every_setting_is_on_one_path_and_a_step_changes_the_root_alone():
    settings = [{"C": C, "budget": B} for C in paper_grid("hfs")["C"] for B in tied_budgets()]
    found = grid_paths(settings)
    assert sorted(k for walk in found for k in walk) == list(range(len(settings)))
    for walk in found:
        assert len({(settings[k]["C"][1], settings[k]["budget"]) for k in walk}) == 1
        assert [settings[k]["C"][0] for k in walk] == sorted(settings[k]["C"][0] for k in walk)


# -- rules ------------------------------------------------------------------------------------------------------


def results(accuracy: list[float], features: list[float]) -> dict[str, np.ndarray]:
    return {"mean_test_accuracy": np.array(accuracy), "mean_test_n_features": np.array(features)}


@pytest.mark.parametrize(
    ("accuracy", "features", "by_accuracy", "by_features"),
    [
        ([0.90, 0.95, 0.94], [1, 9, 5], 1, 2),  # 0.90 is below 0.975 * 0.95
        ([0.95, 0.94, 0.93], [9, 5, 5], 0, 1),  # fewest features, then the more accurate
        ([0.94, 0.95, 0.95], [2, 3, 3], 1, 0),  # the first of equals
        ([0.975, 1.0], [1, 2], 1, 0),  # the edge of the range belongs to it
        ([0.9749, 1.0], [1, 2], 1, 1),
        ([np.nan, 0.8, 0.7], [0, 4, 1], 1, 1),  # what was not fitted is not chosen
    ],
)
def test_the_two_rules(accuracy, features, by_accuracy, by_features):
    found = results(accuracy, features)
    assert best_accuracy(found) == by_accuracy
    assert FewestFeatures()(found) == by_features


def test_a_share_of_one_leaves_only_the_most_accurate():
    assert FewestFeatures(share=1.0)(results([0.94, 0.95, 0.95], [1, 3, 2])) == 2


def test_rules_name_missing_columns():
    with pytest.raises(ValueError, match="mean_test_n_features; search with scoring"):
        FewestFeatures()({"mean_test_accuracy": np.array([1.0])})
    with pytest.raises(ValueError, match="more time"):
        best_accuracy(results([np.nan], [np.nan]))


# -- the search -------------------------------------------------------------------------------------------------

GRID = {"C": [(0.1, 0.1), (10.0, 0.1), (0.1, 10.0), (10.0, 10.0)]}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(60, 4, n_informative=3, n_redundant=0, class_sep=1.5, random_state=1)
    return X, y


def make(**more) -> TreeSearchCV:
    return TreeSearchCV(MargotClassifier(time_limit=20), GRID, cv=stratified_folds(3), **more)


@pytest.fixture(scope="module")
def searched(data) -> TreeSearchCV:
    return make().fit(*data)


def test_it_agrees_with_grid_search(data, searched):
    plain = GridSearchCV(
        MargotClassifier(time_limit=20), GRID, cv=stratified_folds(3), scoring=scoring(), refit=FewestFeatures()
    ).fit(*data)
    assert set(plain.cv_results_) == set(searched.cv_results_) - {"cut_off"}
    assert searched.cv_results_["cut_off"].tolist() == [False] * len(GRID["C"])
    assert plain.cv_results_["params"] == searched.cv_results_["params"]
    for name in ("split0_test_accuracy", "mean_test_accuracy", "rank_test_accuracy", "mean_test_n_features"):
        np.testing.assert_allclose(plain.cv_results_[name], searched.cv_results_[name])
    again = make(refit=FewestFeatures()).fit(*data)
    assert again.best_params_ == plain.best_params_
    np.testing.assert_array_equal(again.predict(data[0]), plain.predict(data[0]))


def test_clone_and_pickle(data, searched):
    assert clone(searched).get_params()["cv"].n_splits == 3
    copy = pickle.loads(pickle.dumps(searched))
    np.testing.assert_array_equal(copy.predict(data[0]), searched.predict(data[0]))
    assert copy.best_params_ == searched.best_params_


def test_two_side_by_side_find_the_same(data, searched):
    two = make(n_jobs=2).fit(*data)
    for name in ("mean_test_accuracy", "mean_test_n_features", "rank_test_accuracy"):
        np.testing.assert_array_equal(two.cv_results_[name], searched.cv_results_[name])
    assert two.best_params_ == searched.best_params_


def test_fits_are_kept_and_not_repeated(data, searched, tmp_path, monkeypatch):
    file = tmp_path / "search.sqlite"
    make(resume=file, name="made", refit=False).fit(*data)
    with Rows(file) as rows:
        assert len(rows) == 12
        assert {row["start"] for row in rows} == {"local_svm", "neighbour"}
        assert all(row["tree"] and row["certificate"] and row["versions"] and row["data"] == "made" for row in rows)
    fitted = []
    monkeypatch.setattr(MargotClassifier, "fit", lambda *given, **more: fitted.append(given))
    again = make(resume=file, refit=False).fit(*data)
    assert not fitted
    np.testing.assert_array_equal(again.cv_results_["mean_test_accuracy"], searched.cv_results_["mean_test_accuracy"])


def test_other_data_are_other_fits(data, tmp_path):
    file, grid = tmp_path / "search.sqlite", {"C": [1.0]}
    for X in (data[0], data[0] + 1):
        TreeSearchCV(LocalSVMTreeClassifier(), grid, cv=2, resume=file, refit=False).fit(X, data[1])
    with Rows(file) as rows:
        assert len(rows) == 4


def test_no_time_left_is_not_a_score(data):
    search = make(time_limit=1e-9, refit=False)
    with pytest.raises(SearchError, match="no time for any fit"):
        search.fit(*data)


def test_every_fit_gets_its_share(data, tmp_path):
    file = tmp_path / "search.sqlite"
    make(time_limit=6.0, resume=file, refit=False).fit(*data)
    with Rows(file) as rows:
        limits = [row["time_limit"] for row in rows]
    assert 0.05 <= limits[0] <= 0.5  # a twelfth of six seconds, for the first
    assert max(limits) <= 6.0


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")  # of scikit-learn
def test_a_fit_that_was_cut_off_has_no_score_and_is_made_again(data, searched, tmp_path, monkeypatch):
    """The best setting of all is cut off on its folds: another is chosen; with more time it is fitted again."""
    best, file = searched.best_params_["C"], tmp_path / "search.sqlite"
    with monkeypatch.context() as patch:
        cutting(patch, lambda model: best == model.C)
        with pytest.warns(UserWarning, match=r"cut off 3 of 12 fits .* 1 of 4 settings .*give the search more time"):
            search = make(resume=file).fit(*data)
    cut_off = search.cv_results_["cut_off"]
    assert cut_off.tolist() == [params["C"] == best for params in search.cv_results_["params"]]
    assert np.isnan(search.cv_results_["mean_test_accuracy"]).tolist() == cut_off.tolist()
    assert search.best_params_["C"] != best
    assert search.best_score_ == np.nanmax(search.cv_results_["mean_test_accuracy"]) <= searched.best_score_
    again = make(resume=file).fit(*data)
    assert not again.cv_results_["cut_off"].any() and again.best_params_ == searched.best_params_


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")  # of scikit-learn
def test_a_search_whose_fits_were_all_cut_off_has_no_score_and_says_so(data, monkeypatch):
    cutting(monkeypatch, lambda model: True)
    with (
        pytest.warns(UserWarning, match="cut off 12 of 12 fits"),
        pytest.warns(UserWarning, match=r"best_score_ is NaN, and the setting in the middle .*more time"),
    ):
        search = make().fit(*data)
    assert np.isnan(search.best_score_) and search.cv_results_["cut_off"].all()
    assert search.best_params_ == {"C": GRID["C"][2]} and search.predict(data[0]).shape == data[1].shape


@three_tries
def test_the_last_fit_gets_what_is_left(data):
    """Whatever the fits on the folds did not need; the limit is that of the whole search."""
    limit = 30.0 * slowness()
    began = time.monotonic()
    search = make(time_limit=limit).fit(*data)
    took = time.monotonic() - began
    assert took < limit and limit - took <= search.best_estimator_.time_limit < limit
    assert make().fit(*data).best_estimator_.time_limit == 20  # no limit for the search: the fit's own


@three_tries
def test_the_last_fit_has_its_share_too(data):
    """Fits that never finish leave it as much as each of them had."""
    hard = MargotClassifier(depth=4, time_limit=50, gap=0.0)
    y = np.random.default_rng(0).integers(0, 2, 60)
    slow = slowness()
    began = time.monotonic()
    search = TreeSearchCV(hard, {"C": [10.0, 30.0]}, cv=2, time_limit=3.0 * slow).fit(data[0], y)
    assert search.best_estimator_.time_limit > 0.3 * slow and time.monotonic() - began < 6.0 * slow


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")  # of scikit-learn
def test_a_fit_that_fails_is_named(data):
    bad = TreeSearchCV(MargotClassifier(), {"C": [1.0, -1.0]}, cv=2, refit=False)
    with pytest.raises(SearchError, match=r"'C': -1\.0.*C must be finite and > 0"):
        bad.fit(*data)
    with pytest.warns(UserWarning, match="failed"):
        found = bad.set_params(error_score=np.nan).fit(*data).cv_results_
    assert np.isnan(found["mean_test_accuracy"]).tolist() == [False, True]


def test_tune_in_one_call(data):
    search = tune(*data, "local_svm", rule="features", folds=2, grid={"C": [0.1, 10.0], "budget": [1, 2]})
    assert search.best_estimator_.budget in {1, 2}
    assert len(search.best_estimator_.selected_features_) <= 3 * search.best_params_["budget"]
    with pytest.raises(ValueError, match="rule is one of accuracy, features"):
        tune(*data, rule="beauty")


# -- what carries it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sequential", "threading"])
def test_a_job_waits_for_the_one_before_it(backend):
    done, lock = [], threading.Lock()

    def work(job):
        with lock:
            assert job[1] == 0 or (job[0], job[1] - 1) in done
        return job

    def arrived(job, result):
        assert result == job
        with lock:
            done.append(job)

    chains = [[(c, k) for k in range(n)] for c, n in enumerate((5, 1, 3, 0))]
    with parallel_config(backend=backend, n_jobs=2):
        run_chains(chains, lambda job: (job,), work, arrived, n_jobs=2)
    assert sorted(done) == sorted(job for chain in chains for job in chain)


def test_a_failure_arrives_like_a_result():
    seen = {}
    run_chains([["a", "b"]], lambda job: (job,), lambda job: 1 / (job == "b"), seen.__setitem__)
    assert isinstance(seen["a"], Failure) and "ZeroDivisionError" in seen["a"].reason
    assert seen["b"] == 1.0


def test_rows_come_back_as_they_went_in(tmp_path):
    row = {"key": "a", "params": {"C": [1.0, 2.0]}, "bound": -np.inf, "tree": None, "features": [1, 0]}
    with Rows(tmp_path / "deep" / "rows.sqlite") as rows:
        rows.put(row)
        rows.put({"key": "a", "objective": 1.0})  # the first stays
        (found,) = rows
        assert {name: found[name] for name in row} == row and found["objective"] is None
        with pytest.raises(ValueError, match="no such columns"):
            rows.put({"key": "b", "beauty": 1})
        assert rows.check() == "ok"


def test_a_file_that_holds_no_rows_is_refused(tmp_path):
    (tmp_path / "text.sqlite").write_text("not a database, but long enough to be read as one" * 30)
    with pytest.raises(RowsError, match="is not a file of results"):
        Rows(tmp_path / "text.sqlite")
    with pytest.raises(RowsError, match="run the experiment first"):
        Rows(tmp_path / "none.sqlite", must_exist=True)


def test_the_line_of_progress(capsys):
    times = iter([0.0, 10.0, 10.0, 70.0, 70.0])
    tally = FitCounter(4, known=2, clock=lambda: next(times))
    tally.add("one")
    tally.add("two")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["3 of 4 fits, 10 s elapsed, about 10 s left, one", "4 of 4 fits, 1:10 min elapsed, two"]
    assert duration(3727) == "1:02:07 h"
    times = iter([0.0, 10.0, 10.0])
    limited = FitCounter(100, clock=lambda: next(times), seconds=15.0)
    limited.add()
    assert capsys.readouterr().err == "1 of 100 fits, 10 s elapsed, about 5 s left\n"


def test_jobs_lost_with_their_worker_are_run_again(monkeypatch):
    """The pool breaks twice, each time after one result; what was under way is not lost and not repeated."""
    made, broken = [], []

    class Fragile:
        def __init__(self, **settings):
            pass

        def __call__(self, tasks):
            for done, (function, args, _) in enumerate(list(tasks)):
                if done == 1 and len(broken) < 2:
                    broken.append(done)
                    raise BrokenProcessPool("a worker died")
                made.append(args[0][1])
                yield function(*args)

    monkeypatch.setattr("margotree.model_selection.fit_chains.Parallel", Fragile)
    arrived = {}
    with parallel_config(backend="loky", n_jobs=2):
        run_chains([["a", "b"], ["c"], ["d"]], lambda job: (job,), str.upper, arrived.__setitem__, n_jobs=2)
    assert arrived == {"a": "A", "b": "B", "c": "C", "d": "D"}
    assert sorted(made) == ["a", "b", "c", "d"] and len(broken) == 2


def test_a_pool_that_only_breaks_is_given_up(monkeypatch):
    def always(**settings):
        def call(tasks):
            raise BrokenProcessPool("a worker died")

        return call

    monkeypatch.setattr("margotree.model_selection.fit_chains.Parallel", always)
    with pytest.raises(BrokenProcessPool), parallel_config(backend="loky", n_jobs=2):
        run_chains([["a"]], lambda job: (job,), str.upper, {}.__setitem__, n_jobs=2)
