"""The fits of all settings on all folds: time shares, initial trees, cut-off fits, interruption, and the race."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from margotree.engines.run_control import NestedFitInterrupted
from margotree.model_selection import fit_record
from margotree.model_selection.fit_chains import Failure, run_chains
from margotree.model_selection.folds import Fold
from margotree.model_selection.frontier import Frontier, make_frontier
from margotree.model_selection.progress_line import FitCounter
from margotree.model_selection.race import Race
from margotree.model_selection.scores import ScoreTable
from margotree.notices import without_fit_warnings
from margotree.private_names import within_scikit_learn_loop
from margotree.solution import Certificate, Stopped
from margotree.tree import HyperplaneTree, tree_from_dict

#: The smallest time limit of a fit, in seconds, when the time of the search is nearly used up.
_MIN_SECONDS = 0.05

#: A fit: the position of its setting, and the position of its fold.
Job = tuple[int, int]


class SearchError(ValueError):
    """A fit of the search failed, or no fit was possible; the message names the reason."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The samples that are divided into folds: arrays or data frames, and weights or None."""

    X: Any
    y: Any
    weight: Any = None

    def part(self, rows: Any, factor: float = 1.0) -> tuple[Any, Any, Any]:
        """Samples, labels and weights of these rows, with the weights multiplied by ``factor``."""
        weight = None if self.weight is None else factor * np.asarray(self.weight)[rows]
        if weight is None and factor != 1.0:
            weight = np.full(len(rows), factor)
        return _rows_of(self.X, rows), _rows_of(self.y, rows), weight


class CrossValidation:
    """The fits of all settings on all folds.

    Without a race every setting is fitted on every fold.  With a race one fold follows the other, and only the settings
    that can still be the best one are fitted on the next fold, until further folds would hardly change the choice;
    where fits are cut off, fewer settings get more time.

    Parameters
    ----------
    make : callable
        ``make(setting, fold)`` returns the unfitted estimator.  Its parameters ``time_limit`` and ``start`` are used
        if it has them.
    settings : sequence of dict
        The settings.
    samples : Samples
        The samples.
    folds : sequence of Fold
        Rows to train on and rows to score; with a race preliminary ones come first.
    scorer : callable
        ``scorer(estimator, X, y)`` returns a score, an array with a score per row, or a dict of scores.
    paths : sequence of list of int
        The positions of the settings in groups.  A fit starts from the tree of the setting before it in its group.
    race : Race, optional
        Decides which settings are fitted on further folds.
    time_limit : float, default inf
        Seconds for all fits.  Each has its share of the remaining time, at most the time limit of its estimator.
    n_reserved : int, default 0
        The number of fits after the cross-validation that get a share of the time, too.
    n_jobs : int or None, default None
        The number of simultaneous fits, in threads or as set by ``joblib.parallel_config``.
    warm : bool, default True
        Whether fits start from the tree of a neighbouring setting.
    weigh_scores : bool, default False
        Whether the scorer gets the weights of the samples.
    train_scores : bool, default False
        Whether the samples on which a fit was trained are scored, too.
    raise_errors : bool, default True
        Whether a fit that fails ends the search; otherwise its row has ``scores["failed"]``.
    known : dict, optional
        Rows of results of earlier fits, which are not repeated.
    on_result : callable, optional
        ``on_result(job, row)`` is called with each complete fit.
    name : str, default ""
        The name of the data in the line of progress.
    verbose : int, default 0
        1 shows a line of progress, 2 one line per fit.

    Attributes
    ----------
    rows : dict
        The results of the fits by :data:`Job`, as columns of a row of results.
    cut_off : set of Job
        The fits that the time limit cut off before all splits of a first tree were trained; they have no score.
    interrupted : bool
        Whether Ctrl-C ended the fits.
    """

    def __init__(
        self, make: Callable[[Mapping[str, Any], Fold], Any], settings: Sequence[Mapping[str, Any]], samples: Samples,
        folds: Sequence[Fold], scorer: Callable[..., Any], *, paths: Sequence[Sequence[int]], race: Race | None = None,
        time_limit: float = math.inf, n_reserved: int = 0, n_jobs: int | None = None, warm: bool = True,
        weigh_scores: bool = False, train_scores: bool = False, raise_errors: bool = True,
        known: Mapping[Job, dict[str, Any]] | None = None,
        on_result: Callable[[Job, dict[str, Any]], None] | None = None, name: str = "", verbose: int = 0,
    ) -> None:  # fmt: skip
        self.make, self.settings, self.samples, self.folds, self.scorer = make, settings, samples, folds, scorer
        self.paths, self.race, self.n_jobs, self.warm = paths, race, n_jobs or 1, warm
        self.weigh_scores, self.train_scores, self.raise_errors = weigh_scores, train_scores, raise_errors
        self.n_reserved, self.on_result, self.name, self.verbose = n_reserved, on_result, name, verbose
        self.deadline = time.monotonic() + time_limit
        self.rows: dict[Job, dict[str, Any]] = dict(known or {})
        self.cut_off: set[Job] = set()
        self.interrupted = False
        self.n_preliminary = sum(fold.preliminary for fold in folds)
        self._unfinished_fold: int | None = None

    def run(self) -> CrossValidation:
        """Run the fits until the time limit or Ctrl-C.

        Without a score KeyboardInterrupt is raised after Ctrl-C, and :class:`SearchError` if there was no time.
        """
        n_known = len(self.rows)
        self._counter = FitCounter(
            len(self.settings) * len(self.folds), n_known, verbose=self.verbose,
            seconds=self.deadline - time.monotonic(),
        )  # fmt: skip
        self._n_parallel = effective_n_jobs(self.n_jobs)
        self._stride = 1  # the number of neighbouring settings that share one fit
        everything = range(len(self.folds))
        for round_folds in [everything] if self.race is None else [[f] for f in everything]:
            self._round(round_folds)
            if self.interrupted or time.monotonic() >= self.deadline or self._is_decided(round_folds[-1]):
                break
        self._counter.end()
        if self.interrupted and within_scikit_learn_loop():
            raise NestedFitInterrupted("a search within a loop of fits was interrupted and does not count as a result")
        if self.interrupted and not self.rows.keys() - self.cut_off:
            raise KeyboardInterrupt("interrupted before any setting was scored")
        if not self.rows:
            raise SearchError("the time limit left no time for any fit; increase time_limit")
        return self

    def scores(self) -> NDArray[np.float64]:
        """The scores (settings, folds) without preliminary folds; NaN where a fit was not run, cut off or failed."""
        return self._all_scores()[:, self.n_preliminary :]

    def _all_scores(self) -> NDArray[np.float64]:
        found = np.full((len(self.settings), len(self.folds)), np.nan)
        for job, row in self._scored():
            test = row["scores"]["test"]
            found[job] = test.get("accuracy", math.nan) if isinstance(test, dict) else test
        return found

    def numbers_to_read(self) -> NDArray[np.float64]:
        """The numbers to read of the trees, a mean over folds for each setting; NaN without a tree."""
        found = np.full((len(self.settings), len(self.folds)), np.nan)
        for job, row in self._scored():
            found[job] = row["scores"].get("numbers_to_read", math.nan)
        with np.errstate(invalid="ignore"):
            return np.nansum(found, axis=1) / np.isfinite(found).sum(axis=1)

    def score_table(self) -> ScoreTable:
        """The scores on complete folds; where there are none, those on the preliminary fold, then on the first one.

        A fold of a race that the limit ended is not complete: only the first settings have scores on it.
        """
        first, end = self.n_preliminary, len(self.folds)
        complete = end if self._unfinished_fold is None else self._unfinished_fold
        tables = (self._table(*part) for part in ((first, complete), (0, min(first, complete)), (0, end)))
        return next((table for table in tables if table.n_folds.any()), self._table(0, end))

    def _table(self, first: int, end: int) -> ScoreTable:
        """The scores on the folds from ``first`` to before ``end``; folds outside have none."""
        scores = self._all_scores()
        scores[:, :first] = scores[:, end:] = np.nan
        row_scores = {job: row["row_scores"] for job, row in self._scored() if "row_scores" in row}
        return ScoreTable(scores, row_scores, [self.test_weight(f) for f in range(len(self.folds))])

    def _remaining(self, next_fold: int) -> list[int]:
        """The settings to fit on the fold at position ``next_fold`` of a race; all of them without a race."""
        if self.race is None:
            return list(range(len(self.settings)))
        table, later = self.score_table(), len(self.folds) - next_fold
        is_preliminary = not np.isfinite(table.mean[:, self.n_preliminary :]).any()
        return self.race.surviving(table, self.numbers_to_read(), later, preliminary=is_preliminary)

    def _is_decided(self, last_fold: int) -> bool:
        return self.race is not None and last_fold >= self.n_preliminary and len(self._remaining(last_fold + 1)) < 2

    def choose(self) -> int | None:
        """The position of the setting that the race chooses; None if there are no scores."""
        assert self.race is not None
        return self.race.choose(self.score_table(), self.numbers_to_read())

    def frontier(self, chosen: int | None) -> Frontier:
        """The settings with their scores, standard errors and numbers to read."""
        table, scores = self.score_table(), self.score_table().means()
        if chosen is not None:  # folds differ in difficulty: compare with the chosen setting on the same ones
            on_common_folds = [scores[chosen] + table.difference(k, chosen)[0] for k in range(len(scores))]
            scores = np.where(table.n_folds < table.n_folds[chosen], np.array(on_common_folds), scores)
        errors = [table.standard_error(k) for k in range(len(scores))]
        return make_frontier(self.settings, scores, errors, self.numbers_to_read(), table.n_folds, chosen)

    def _scored(self) -> Iterator[tuple[Job, dict[str, Any]]]:
        """The fits that have a score, with their rows."""
        return ((job, row) for job, row in self.rows.items() if job not in self.cut_off and "test" in row["scores"])

    def test_weight(self, f: int) -> NDArray[np.float64]:
        """The weights of the test rows of a fold."""
        fold = self.folds[f]
        weight = self.samples.part(fold.test)[2] if self.weigh_scores else None
        return np.ones(len(fold.test)) if weight is None else weight

    def tree(self, k: int) -> HyperplaneTree | None:
        """The tree of setting ``k`` on the last fold on which it was fitted."""
        trees = [row["tree"] for (setting, _), row in sorted(self._scored(), key=lambda one: one[0]) if setting == k]
        return tree_from_dict(trees[-1]) if trees else None

    def trees(self, k: int) -> dict[int, HyperplaneTree]:
        """The trees of setting ``k`` by fold, without preliminary folds."""
        rows = {f: row for (setting, f), row in self._scored() if setting == k and f >= self.n_preliminary}
        return {f: tree_from_dict(rows[f]["tree"]) for f in sorted(rows)}

    def any_setting_complete(self) -> bool:
        """Whether some setting has a score on every fold."""
        folds, scored = range(len(self.folds)), self.rows.keys() - self.cut_off
        return any(all((k, f) in scored for f in folds) for k in range(len(self.settings)))

    # -- one round ----------------------------------------------------------------------------------------------

    def _round(self, folds: Sequence[int]) -> None:
        """Fit all settings, or those that remain in the race, on these folds."""
        remaining, later = set(self._remaining(folds[0])), 0
        if self.race is not None:
            rounds = range(folds[0] + 1, len(self.folds))
            later = sum(min(len(remaining), self.race.most_kept(f - self.n_preliminary)) for f in rounds)
            self._stride = self._stride if len(remaining) == len(self.settings) else 1
        self._chains = [[(k, f) for k in path if k in remaining] for path in self.paths for f in folds]
        self._place = {job: (c, p) for c, chain in enumerate(self._chains) for p, job in enumerate(chain)}
        self._blocks = [range(0)] * len(self._chains)  # the settings of each chain that the current fit represents
        # A fit after the cross-validation runs alone; it gets as much time as one round of parallel fits.
        n_unfitted = sum(job not in self.rows for job in self._place)
        self._n_left = n_unfitted + later + self.n_reserved * self._n_parallel
        self._counter.total = self._counter.known + self._counter.done + n_unfitted + later
        self.interrupted = run_chains(self._chains, self._arguments, fit_and_score, self._store, n_jobs=self.n_jobs)
        complete = all(job in self.rows for job in self._place)
        self._unfinished_fold = None if complete or self.race is None else folds[0]

    def _arguments(self, job: Job) -> tuple | None:
        """The arguments of :func:`fit_and_score`; None if the job is skipped."""
        if job in self.rows:
            return None
        c, position = self._place[job]
        if position not in self._blocks[c]:
            self._blocks[c] = range(position, min(position + self._stride, len(self._chains[c])))
        block = self._blocks[c]
        if position != block[len(block) // 2]:
            return None
        seconds = self._share(len(block))
        if seconds <= 0:
            return None
        k, f = job
        estimator, fold = self.make(self.settings[k], self.folds[f]), self.folds[f]
        params = estimator.get_params(deep=False)
        if "time_limit" in params and math.isfinite(seconds):
            own = params["time_limit"]
            estimator.set_params(time_limit=seconds if own is None else min(seconds, own))
        start = self._start(job, self._chains[c][:position]) if self.warm and "start" in params else []
        train, test = self.samples.part(fold.train, fold.factor), self.samples.part(fold.test)
        return estimator, start, train, test if self.weigh_scores else (*test[:2], None), self.scorer, self.train_scores

    def _share(self, n_settings: int) -> float:
        """The seconds of a fit that represents ``n_settings`` settings; 0 if no time is left."""
        left, self._n_left = self._n_left, self._n_left - n_settings
        remaining = self.deadline - time.monotonic()
        share = min(1.0, n_settings * self._n_parallel / max(1, left))
        return 0.0 if remaining <= 0 else max(_MIN_SECONDS, remaining * share)

    def _start(self, job: Job, before: Sequence[Job]) -> list[HyperplaneTree]:
        """The trees to start from: that of the setting before it on its path; with a race the last one that there is.

        With a race these are also the tree of the setting on the preliminary fold, whose training rows are among those
        of the next fold, and that of the setting with the next smaller budget, so that a larger budget does not lead to
        a worse objective.  A tree of another fold is no start: it was trained on the test rows, and the score could be
        too high.
        """
        k, f = job
        fitted = [one for one in before if one in self.rows and one not in self.cut_off]
        if self.race is None:
            found = [one for one in before[-1:] if one in fitted]
        else:
            own = [(k, f - 1)] if f > 0 and self.folds[f - 1].preliminary and (k, f - 1) in self.rows else []
            found = [*own, *fitted[-1:], *[one for one in fitted if self.differ_in_budget(one[0], k)][-1:]]
        records = (self.rows[one].get("tree") for one in dict.fromkeys(found) if one not in self.cut_off)
        return [tree_from_dict(record) for record in records if record is not None]

    def differ_in_budget(self, a: int, b: int) -> bool:
        """Whether two settings are equal except for their budgets."""
        return _without_budget(self.settings[a]) == _without_budget(self.settings[b])

    def _store(self, job: Job, result: Any) -> None:
        """Add the result of a job to the rows."""
        if isinstance(result, Failure):
            message = f"the fit of {dict(self.settings[job[0]])} on fold {job[1]} failed: {result.reason}"
            if self.raise_errors:
                raise SearchError(message)
            warnings.warn(message, stacklevel=2)
            result = {"scores": {"failed": result.reason}}
        if result.pop("interrupted", False):
            return
        if result.pop("cut_off", False):
            self.cut_off.add(job)
            if self.race is not None:
                self._stride = max(self._stride, 2 * len(self._blocks[self._place[job][0]]))
        self.rows[job] = result
        # Fits that failed or were cut off are not saved, so that a later search repeats them.
        if self.on_result is not None and "failed" not in result["scores"] and job not in self.cut_off:
            self.on_result(job, result)
        setting = ", ".join(f"{name}={value}" for name, value in self.settings[job[0]].items())
        self._counter.add(f"{self.name} {setting}".strip())


def fit_and_score(
    estimator: Any, start: list[HyperplaneTree], train: tuple, test: tuple, scorer: Any, train_too: bool
) -> dict[str, Any]:
    """Fit and score one setting on one fold; runs in any process, and returns columns of a row as plain values."""
    started = time.perf_counter()
    with without_fit_warnings():
        fit_from(estimator, start, *train)
    fitted = time.perf_counter()
    test_scores = scorer(estimator, *test[:2], **weight_argument(test[2]))
    train_scores = _floats(scorer(estimator, *train[:2])) if train_too else {}
    seconds = time.perf_counter() - fitted
    tree, certificate = getattr(estimator, "tree_", None), _certificate(estimator)
    row = fit_record.tree_columns(tree) if isinstance(tree, HyperplaneTree) else {}
    if isinstance(test_scores, np.ndarray):
        row["row_scores"] = test_scores
        test_scores = np.average(test_scores, weights=test[2])
    test_scores = _floats(test_scores)
    row["interrupted"] = certificate is not None and certificate.stopped == Stopped.INTERRUPTED
    row["cut_off"] = certificate is not None and certificate.cut_off
    row["scores"] = {"test": test_scores, "train": train_scores, "seconds": seconds}
    if isinstance(tree, HyperplaneTree):
        row["scores"]["numbers_to_read"] = tree.numbers_to_read
    if isinstance(test_scores, dict) and "accuracy" in test_scores:
        row["test_acc"] = 100 * test_scores["accuracy"]
    return {**row, "seconds": fitted - started, "time_limit": estimator.get_params(deep=False).get("time_limit")}


def weight_argument(weight: Any) -> dict[str, Any]:
    """The keyword argument ``sample_weight``, left out if it is None."""
    return {} if weight is None else {"sample_weight": weight}


def _certificate(estimator: Any) -> Certificate | None:
    """The certificate of a model, or of the model at the end of a pipeline; None if it has none."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return getattr(last, "certificate_", None)


def fit_from(estimator: Any, trees: list[HyperplaneTree], X: Any, y: Any, weight: Any) -> None:
    """Fit from the best of the trees, or from the default start if none of them is allowed."""
    if not trees:
        estimator.fit(X, y, **weight_argument(weight))
        return
    default_start = estimator.get_params(deep=False)["start"]
    try:
        estimator.set_params(start=trees if len(trees) > 1 else trees[0]).fit(X, y, **weight_argument(weight))
    except ValueError:
        # No tree is allowed under these parameters, for example because it has more features than the budget.
        estimator.set_params(start=default_start).fit(X, y, **weight_argument(weight))


def _without_budget(setting: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in setting.items() if name not in {"budget", "leaf_budget"}}


def _rows_of(data: Any, rows: Any) -> Any:
    """Rows of an array, a data frame or a series, by position."""
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    return data[rows] if hasattr(data, "shape") else [data[k] for k in rows]


def _floats(scores: Any) -> Any:
    return {n: float(s) for n, s in scores.items()} if isinstance(scores, Mapping) else float(scores)
