"""Run the fits of experiments: fits in the file of results are not repeated, new ones are saved one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from margotree.model_selection.fit_chains import Failure, run_chains
from margotree.model_selection.progress_line import FitCounter
from margotree.model_selection.result_rows import Rows, RowsError
from margotree.paper.data import DataError, DataMissingError
from margotree.paper.experiments import search
from margotree.paper.experiments.backends import joblib_backend
from margotree.paper.experiments.case import Case
from margotree.paper.experiments.evaluate import evaluate
from margotree.paper.experiments.samples import samples
from margotree.paper.experiments.specs import SearchSpec, Spec, all_sets, find, resolve_models, resolve_sets
from margotree.paper.experiments.train import train
from margotree.solution import Stopped, VerificationError

#: The default file of results.
RESULTS = "results/paper.sqlite"


@dataclass(kw_only=True)
class RunSummary:
    """The result of a run.

    ``made`` is the number of new fits, ``known`` that of fits that were in the file already; ``failed`` lists the case
    and the reason of failed fits; ``absent`` maps the sets that were left out because their data are missing to the
    reason; ``interrupted`` says whether Ctrl-C ended the run.
    """

    made: int = 0
    known: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    absent: dict[str, DataError] = field(default_factory=dict)
    interrupted: bool = False

    def __str__(self) -> str:
        text = f"{self.made} fits made, {self.known} were there already, {len(self.failed)} failed"
        text += f", {len(self.absent)} sets left out" if self.absent else ""
        return text + (", interrupted: continue with --resume" if self.interrupted else "")

    def left_out(self) -> list[str]:
        """Return why sets were left out; all sets whose tables are missing have one line."""
        return [str(error) for error in _joined(self.absent.values())]


def run(
    names: Iterable[str],
    *,
    out: str | PathLike[str] = RESULTS,
    resume: bool = False,
    backend: str = "threads",
    scheduler: str | None = None,
    n_jobs: int | None = 1,
    time_limit: float | None = None,
    data: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    progress: int = 1,
    fold_time_limit: float | None = None,
    reduced: bool = False,
) -> RunSummary:
    """Run the fits of the named experiments and save them in a file of results.

    Fits that fail are listed in the summary and repeated by the next run.  Sets whose data are missing are left out and
    listed as well; it is an error if the data of all sets are missing.  Ctrl-C ends the run: complete fits are in the
    file, interrupted ones are not.

    Parameters
    ----------
    names : iterable of str
        Experiments, see :func:`names`.
    out : path
        The file of results.
    resume : bool
        Continue an existing file; without it, a file with results is an error.
    backend, scheduler : str
        Where fits run, see :func:`backend_names`; the address of a Dask scheduler.
    n_jobs : int or None
        Number of parallel fits.
    time_limit, fold_time_limit : float, optional
        Largest seconds per fit, and per fit on a fold (default: ``time_limit``).
    data, only : sequence of str, optional
        The sets and the models to run.
    progress : int
        0 shows nothing, 1 a line of progress, 2 a line per fit.
    reduced : bool
        Use coarse grids in the cross-validations.

    Returns
    -------
    RunSummary
    """
    specs = [find(name) for name in names]
    data, only = resolve_sets(data, specs), resolve_models(only, specs)
    summary = RunSummary()
    data = _available_sets(specs, data, only, summary)
    fold = time_limit if fold_time_limit is None else fold_time_limit
    try:
        with _open_rows(out, resume) as rows, joblib_backend(backend, scheduler):
            run_cases(_cases(specs, data, only, time_limit), rows, n_jobs, progress, summary)
            job = search.SearchOptions(rows=rows, n_jobs=n_jobs, progress=progress, time_limit=fold, reduced=reduced)
            for spec in (s for s in specs if isinstance(s, SearchSpec)):
                chosen = [case.with_limit(time_limit) for case in search.run(spec, job, data, only)]
                run_cases(chosen, rows, n_jobs, progress, summary)
    except KeyboardInterrupt:
        summary.interrupted = True
    return summary


def _available_sets(
    specs: Sequence[Spec | SearchSpec], data: Sequence[str] | None, only: Sequence[str] | None, summary: RunSummary
) -> list[str]:
    """The requested sets whose data are available; the others are added to ``summary.absent``."""
    requested = [name for name in all_sets(specs) if data is None or name in data]
    needed = {name for name in requested for spec in specs if name in spec.data and spec.has_fits(only)}
    for name in requested:
        try:
            if name in needed:
                samples(name)
        except DataError as error:
            summary.absent[name] = error
    if needed and len(summary.absent) == len(needed):
        raise _joined(summary.absent.values())[0]
    return [name for name in requested if name not in summary.absent]


def _joined(errors: Iterable[DataError]) -> list[DataError]:
    """Return the errors, with one about all missing tables."""
    found = list(errors)
    missing = [error for error in found if isinstance(error, DataMissingError)]
    others = [error for error in found if not isinstance(error, DataMissingError)]
    return [*([DataMissingError.of_all(missing)] if missing else []), *others]


def _open_rows(out: str | PathLike[str], resume: bool) -> Rows:
    """Open the file of results; with ``resume`` False, a file with results is an error."""
    rows = Rows(out)
    if len(rows) and not resume:
        rows.close()
        raise RowsError(f"{out} holds results already: continue with them (resume) or name another file")
    return rows


def _cases(
    specs: Sequence[Spec | SearchSpec],
    data: Sequence[str] | None,
    only: Sequence[str] | None,
    time_limit: float | None,
) -> list[Case]:
    """The fits of all specs without duplicates."""
    sets, models = None if data is None else tuple(data), None if only is None else tuple(only)
    cases = [c.with_limit(time_limit) for s in specs if isinstance(s, Spec) for c in s.cases(sets, models)]
    return list(dict.fromkeys(cases))


def run_cases(cases: Sequence[Case], rows: Rows, n_jobs: int | None, progress: int, summary: RunSummary) -> None:
    """Run the fits that are not in the file yet, and save each as soon as it is done.

    After Ctrl-C, KeyboardInterrupt is raised when the complete fits are in the file.
    """
    splits = {name: samples(name) for name in dict.fromkeys(case.data for case in cases)}
    keys_in_file = rows.keys()
    missing = [case for case in cases if case.key(splits[case.data].checksum) not in keys_in_file]
    summary.known += len(cases) - len(missing)
    counter = FitCounter(len(cases), len(cases) - len(missing), verbose=progress)

    def arguments(case: Case) -> tuple[Any, ...]:
        return case, splits[case.data].X_train, splits[case.data].y_train

    def on_result(case: Case, trained: dict[str, Any] | Failure) -> None:
        try:
            if isinstance(trained, Failure):
                summary.failed.append((str(case), trained.reason))
            else:
                row = evaluate(case, trained, splits[case.data])
                if row["stopped"] == Stopped.INTERRUPTED:
                    return  # interrupted by Ctrl-C
                rows.put(row)
                summary.made += 1
        except VerificationError as error:
            summary.failed.append((str(case), f"the tree failed its verification: {error}"))
        counter.add(str(case))

    interrupted = run_chains([[case] for case in missing], arguments, train, on_result, n_jobs=n_jobs)
    counter.end()
    if interrupted:
        raise KeyboardInterrupt
