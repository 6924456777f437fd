"""The fits of one grid search: arguments, results, and keys in the file of results."""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from margotree.estimators.fit_warnings import without_fit_warnings
from margotree.model_selection import fit_record
from margotree.model_selection.fit_chains import Failure, run_chains
from margotree.model_selection.grid_paths import grid_paths
from margotree.model_selection.models import model_name
from margotree.model_selection.progress_line import FitCounter
from margotree.model_selection.result_rows import Rows
from margotree.solution import Certificate, Stopped
from margotree.tree import Tree

#: Parameters that are not part of the key of a fit.
_NOT_IN_KEY = {"start", "n_jobs", "verbose"}

#: The smallest time limit of a fit, in seconds, when the time of the search is nearly used up.
_MIN_SECONDS = 0.05


class SearchError(RuntimeError):
    """A fit of the search failed; the message names the fit and the reason."""


class Fits:
    """The fits of one search: a job is (position of the setting, fold)."""

    def __init__(
        self, search: Any, settings: list[dict], splits: list[tuple], X: Any, y: Any, sample_weight: Any
    ) -> None:
        self.search, self.settings, self.splits = search, settings, splits
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.estimator = clone(search.estimator)
        self.params = self.estimator.get_params(deep=False)
        self.warm = search.warm and "start" in self.params
        self.chains = [[(k, f) for k in walk] for walk in grid_paths(settings) for f in range(len(splits))]
        self.predecessor = {b: a for chain in self.chains for a, b in pairwise(chain)}
        self.checksum = _digest(X, y, sample_weight)
        self.keys = self._keys()
        self.results: dict[tuple[int, int], dict[str, Any]] = {}
        self.cut_off: set[tuple[int, int]] = set()
        self.failure: tuple[tuple[int, int], Failure] | None = None
        self.interrupted = False
        self.started = time.monotonic()

    def run(self) -> list[dict[str, Any]]:
        """Run the fits and return their results in scikit-learn's form; fits that were not run have NaN scores."""
        if self.search.resume is None:
            self._run(None)
        else:
            with Rows(self.search.resume) as rows:
                self._run(rows)
        jobs = [(k, f) for k in range(len(self.settings)) for f in range(len(self.splits))]
        missing = [job for job in jobs if job not in self.results]
        if self.interrupted and not self._any_setting_complete():
            raise KeyboardInterrupt("interrupted before any setting was fitted on all folds")
        if missing:
            why = "the interruption" if self.interrupted else "the time limit of the search"
            warnings.warn(
                f"{why} left {len(missing)} of {len(jobs)} fits undone; their settings have NaN scores", stacklevel=3
            )
        if self.cut_off:
            settings = len({k for k, _ in self.cut_off})
            warnings.warn(
                f"the time limit cut off {len(self.cut_off)} of {len(jobs)} fits before all splits of a first tree "
                f"were trained: they have no score, and {settings} of {len(self.settings)} settings are not chosen for "
                "it (see cv_results_['cut_off']); give the search more time, or fewer settings",
                stacklevel=3,
            )
        if len(missing) == len(jobs):
            raise SearchError("the time limit left no time for any fit: give the search more")
        return [self._scikit_learn_result(job) for job in jobs]

    def _run(self, rows: Rows | None) -> None:
        self.rows = rows
        if rows is not None:
            known = {row["key"]: row for row in rows.where(kind="fold")}
            self.results = {job: known[key] for job, key in self.keys.items() if key in known}
        self.n_left = len(self.keys) - len(self.results)
        self.counter = FitCounter(len(self.keys), len(self.results), verbose=self.search.verbose)
        self.n_parallel = effective_n_jobs(self.search.n_jobs or 1)
        n_jobs = self.search.n_jobs or 1
        self.interrupted = run_chains(self.chains, self._arguments, _fit_one, self._store_result, n_jobs=n_jobs)
        self.counter.end()

    def _any_setting_complete(self) -> bool:
        """Whether some setting has a score on every fold."""
        folds, scored = range(len(self.splits)), self.results.keys() - self.cut_off
        return any(all((k, f) in scored for f in folds) for k in range(len(self.settings)))

    def no_setting_complete(self) -> bool:
        """Whether fits are missing and no setting has a score on every fold."""
        left_out = self.cut_off or len(self.results) < len(self.keys)
        return bool(left_out) and not self._any_setting_complete()

    def settings_cut_off(self) -> NDArray[np.bool_]:
        """Which settings have a fit that the time limit ended before a first tree was complete."""
        cut = {k for k, _ in self.cut_off}
        return np.array([k in cut for k in range(len(self.settings))])

    def seconds_left(self) -> float | None:
        """The remaining seconds of the time limit of the search; None without a limit."""
        limit = self.search.time_limit
        return None if limit is None else limit - (time.monotonic() - self.started)

    # -- arguments ----------------------------------------------------------------------------------------------

    def _arguments(self, job: tuple[int, int]) -> tuple | None:
        """The arguments of :func:`_fit_one`; None if the job is done already or no time is left."""
        if job in self.results or self.failure is not None:
            return None
        seconds = self._seconds()
        self.n_left -= 1
        if seconds is not None and seconds <= 0:
            return None
        k, f = job
        estimator = clone(self.estimator).set_params(**clone(self.settings[k], safe=False))
        if seconds is not None:
            estimator.set_params(time_limit=seconds)
        train, test = self.splits[f]
        start = self._start(job)
        return (
            estimator,
            start,
            self._part(train),
            self._part(test),
            self.search.scorer_,
            self.search.return_train_score,
        )

    def _seconds(self) -> float | None:
        """The job's share of the remaining time; None for the estimator's own limit, 0 if no time is left."""
        remaining = self.seconds_left()
        if remaining is None:
            return None
        if remaining <= 0:
            return 0.0
        if "time_limit" not in self.params:
            return None
        own = self.params["time_limit"]
        # The last fit, on all samples, runs alone; it gets as much time as one round of parallel fits.
        last = self.n_parallel if self.search.refit else 0
        share = max(_MIN_SECONDS, remaining * self.n_parallel / max(1, self.n_left + last))
        return share if own is None else min(share, float(own))

    def _start(self, job: tuple[int, int]) -> Tree | None:
        """The tree of the neighbouring setting on the same fold, if there is one."""
        predecessor = self.predecessor.get(job, (-1, -1))
        neighbour = self.results.get(predecessor) if self.warm and predecessor not in self.cut_off else None
        tree_record = None if neighbour is None else neighbour.get("tree")
        return None if tree_record is None else Tree.from_dict(tree_record)

    def _part(self, rows: Any) -> tuple:
        """Samples, labels and weights of these rows."""
        weight = None if self.sample_weight is None else np.asarray(self.sample_weight)[rows]
        return _rows_of(self.X, rows), _rows_of(self.y, rows), weight

    # -- results ------------------------------------------------------------------------------------------------

    def _store_result(self, job: tuple[int, int], result: Any) -> None:
        """Add the result of a job to the results and to the file."""
        if not isinstance(result, Failure) and result.pop("cut", False):
            return  # interrupted by Ctrl-C
        if isinstance(result, Failure):
            if self.search.error_score == "raise":
                self.failure = self.failure or (job, result)
                raise SearchError(f"the fit of {self.settings[job[0]]} on fold {job[1]} failed: {result.reason}")
            warnings.warn(f"the fit of {self.settings[job[0]]} on fold {job[1]} failed: {result.reason}", stacklevel=2)
            result = {"scores": {"failed": result.reason}}
        if result.pop("cut_off", False):
            self.cut_off.add(job)
        row = {**self._job_columns(job), **result, **fit_record.environment_columns()}
        self.results[job] = row
        # Fits that failed or were cut off are not saved, so that a later search repeats them.
        if self.rows is not None and "failed" not in row["scores"] and job not in self.cut_off:
            self.rows.put(row)
        self.counter.add(f"{self.search.name} {_setting_text(self.settings[job[0]])}".strip())

    def _job_columns(self, job: tuple[int, int]) -> dict[str, Any]:
        """The columns of a row that identify the fit."""
        k, f = job
        return {
            "key": self.keys[job],
            "kind": "fold",
            "data": self.search.name,
            "model": model_name(self.estimator),
            "params": _json_value(self.settings[k]),
            "fold": f,
            "start": "neighbour" if self.warm and job in self.predecessor else str(self.params.get("start")),
            "seed": self.params.get("random_state"),
            "data_checksum": self.checksum,
        }

    def _scikit_learn_result(self, job: tuple[int, int]) -> dict[str, Any]:
        """The result of a fit in the form of scikit-learn's ``_fit_and_score``."""
        row = self.results.get(job, {"scores": {"failed": "no time"}})
        scores = row["scores"]
        n_test = len(self.splits[job[1]][1])
        if job in self.cut_off:
            blank = self._blank(math.nan)
            out = {"fit_error": None, "n_test_samples": n_test, "fit_time": row["seconds"], "score_time": 0.0}
            return {**out, "test_scores": blank, "train_scores": blank}
        if "failed" in scores:
            nan = float("nan") if self.search.error_score == "raise" else float(self.search.error_score)
            blank = self._blank(nan)
            out = {"fit_error": scores["failed"], "n_test_samples": n_test, "fit_time": 0.0, "score_time": 0.0}
            return {**out, "test_scores": blank, "train_scores": blank}
        return {
            "fit_error": None, "n_test_samples": n_test, "fit_time": row["seconds"], "score_time": scores["seconds"],
            "test_scores": scores["test"], "train_scores": scores["train"],
        }  # fmt: skip

    def _blank(self, value: float) -> Any:
        """The scores of a fit without result: ``value`` for every scorer."""
        some = next(row["scores"]["test"] for row in self.results.values() if "test" in row["scores"])
        return dict.fromkeys(some, value) if isinstance(some, dict) else value

    # -- keys in the file ---------------------------------------------------------------------------------------

    def _keys(self) -> dict[tuple[int, int], str]:
        """The key of every fit: a hash of model, parameters, data and fold."""
        # Without a node limit the keys are those of earlier versions, which had no such parameter.
        in_key = {n: v for n, v in self.params.items() if n not in _NOT_IN_KEY and (n, v) != ("node_limit", None)}
        fixed = {n: _json_value(v) for n, v in in_key.items()}
        keys = {}
        for f, (train, _) in enumerate(self.splits):
            fold = _digest(self.checksum, np.asarray(train, dtype=np.int64))
            for k, setting in enumerate(self.settings):
                params = {**fixed, **_json_value(setting)}
                text = json.dumps([type(self.estimator).__name__, params, fold, self.warm], sort_keys=True)
                keys[k, f] = hashlib.sha256(text.encode()).hexdigest()[:32]
        return keys


def _fit_one(
    estimator: Any, start: Tree | None, train: tuple, test: tuple, scorer: Any, train_too: bool
) -> dict[str, Any]:
    """Fit and score one setting on one fold; runs in any process, and returns columns of a row as plain values."""
    started = time.perf_counter()
    with without_fit_warnings():
        _fit(estimator, start, *train)
    fitted = time.perf_counter()
    test_scores = _floats(scorer(estimator, test[0], test[1]))
    train_scores = _floats(scorer(estimator, train[0], train[1])) if train_too else {}
    seconds = time.perf_counter() - fitted
    row = fit_record.tree_columns(estimator.tree_) if isinstance(getattr(estimator, "tree_", None), Tree) else {}
    certificate = _certificate(estimator)
    row["cut"] = certificate is not None and certificate.stopped == Stopped.INTERRUPTED
    row["cut_off"] = certificate is not None and certificate.cut_off
    row["scores"] = {"test": test_scores, "train": train_scores, "seconds": seconds}
    if isinstance(test_scores, dict) and "accuracy" in test_scores:
        row["test_acc"] = 100 * test_scores["accuracy"]
    return {**row, "seconds": fitted - started, "time_limit": estimator.get_params(deep=False).get("time_limit")}


def _certificate(estimator: Any) -> Certificate | None:
    """The certificate of a classifier, or of the classifier at the end of a pipeline; None if it has none."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return getattr(last, "certificate_", None)


def _fit(estimator: Any, start: Tree | None, X: Any, y: Any, weight: Any) -> None:
    """Fit from a start, or from the default start if the tree is not allowed or None."""
    if start is None:
        estimator.fit(X, y, **weight_argument(weight))
        return
    default_start = estimator.get_params(deep=False)["start"]
    try:
        estimator.set_params(start=start).fit(X, y, **weight_argument(weight))
    except ValueError:
        # The tree is not allowed under these parameters, for example it has more features than the budget.
        estimator.set_params(start=default_start).fit(X, y, **weight_argument(weight))


def _rows_of(data: Any, rows: Any) -> Any:
    """Rows of an array, a data frame or a series, by position."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    return data[rows] if hasattr(data, "shape") else [data[k] for k in rows]


def _digest(*parts: Any) -> str:
    """SHA-256 of arrays and strings."""
    digest = hashlib.sha256()
    for part in map(np.asarray, parts):
        digest.update(str((part.shape, part.dtype.kind)).encode())
        digest.update(part.tobytes() if part.dtype.kind in "biuf" else repr(part.tolist()).encode())
    return digest.hexdigest()


def weight_argument(weight: Any) -> dict[str, Any]:
    """The keyword argument ``sample_weight`` of ``fit``, left out if it is None."""
    return {} if weight is None else {"sample_weight": weight}


def _floats(scores: Any) -> Any:
    return {n: float(s) for n, s in scores.items()} if isinstance(scores, Mapping) else float(scores)


def _json_value(value: Any) -> Any:
    """The value as JSON reads it back; objects that JSON cannot represent as their repr."""
    return json.loads(json.dumps(value, default=lambda v: v.item() if isinstance(v, np.generic) else repr(v)))


def _setting_text(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{n}={v}" for n, v in setting.items())
