"""Running experiments: what is in the file is not run again, what is new is there the moment it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from margotree.model_selection.fit_chains import Failure, run_chains
from margotree.model_selection.progress_line import FitCounter
from margotree.model_selection.result_rows import Rows, RowsError
from margotree.paper.data import DataError
from margotree.paper.experiments import search
from margotree.paper.experiments.backends import running_on
from margotree.paper.experiments.case import Case
from margotree.paper.experiments.evaluate import evaluate
from margotree.paper.experiments.samples import samples
from margotree.paper.experiments.specs import SearchSpec, Spec, all_sets, asked_models, asked_sets, find
from margotree.paper.experiments.train import train
from margotree.solution import Stopped, VerificationError

#: Where results go unless told otherwise.
RESULTS = "results/paper.sqlite"


@dataclass(kw_only=True)
class Ran:
    """What a run did: fits made, fits that were there already, and what failed (case and reason).

    ``absent`` are the sets that were left out because their data are not here, with the reason; ``interrupted`` says
    that Ctrl-C ended the run.
    """

    made: int = 0
    known: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def __str__(self) -> str:
        said = f"{self.made} fits made, {self.known} were there already, {len(self.failed)} failed"
        said += f", {len(self.absent)} sets left out" if self.absent else ""
        return said + (", interrupted: go on with --resume" if self.interrupted else "")


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
) -> Ran:
    """Run the fits of the named experiments and keep them in the file ``out``.

    ``resume`` goes on with a file that is there; without it such a file is an error, so that nothing is mixed by
    accident.  ``time_limit`` caps the seconds of a fit, ``fold_time_limit`` those of a fit on a fold (the former if not
    given), ``data`` names the sets and ``only`` the models to take, ``reduced`` shrinks the grids of the
    cross-validations.  Fits that fail are told in the answer and tried again by the next run.  Sets whose data are not
    here are left out and told too; it is an error if none is here.  Ctrl-C ends the run: what was complete is in the
    file, a fit that was cut is not.
    """
    specs = [find(name) for name in names]
    data, only = asked_sets(data, specs), asked_models(only, specs)
    ran = Ran()
    data = _here(specs, data, only, ran)
    fold = time_limit if fold_time_limit is None else fold_time_limit
    try:
        with _opened(out, resume) as rows, running_on(backend, scheduler):
            run_cases(_cases(specs, data, only, time_limit), rows, n_jobs, progress, ran)
            job = search.Search(rows=rows, n_jobs=n_jobs, progress=progress, time_limit=fold, reduced=reduced)
            for spec in (s for s in specs if isinstance(s, SearchSpec)):
                chosen = [case.within(time_limit) for case in search.run(spec, job, data, only)]
                run_cases(chosen, rows, n_jobs, progress, ran)
    except KeyboardInterrupt:
        ran.interrupted = True
    return ran


def _here(
    specs: Sequence[Spec | SearchSpec], data: Sequence[str] | None, only: Sequence[str] | None, ran: Ran
) -> list[str]:
    """The sets that are asked for and here; the others are noted in ``ran``."""
    asked = [name for name in all_sets(specs) if data is None or name in data]
    needed = {name for name in asked for spec in specs if name in spec.data and spec.runs(only)}
    first: DataError | None = None
    for name in asked:
        try:
            if name in needed:
                samples(name)
        except DataError as error:
            first = first or error
            ran.absent[name] = str(error)
    if first is not None and len(ran.absent) == len(needed):
        raise first
    return [name for name in asked if name not in ran.absent]


def _opened(out: str | PathLike[str], resume: bool) -> Rows:
    rows = Rows(out)
    if len(rows) and not resume:
        rows.close()
        raise RowsError(f"{out} holds results already: go on with them (resume) or name another file")
    return rows


def _cases(
    specs: Sequence[Spec | SearchSpec],
    data: Sequence[str] | None,
    only: Sequence[str] | None,
    time_limit: float | None,
) -> list[Case]:
    """The fits of all specs, each once; the shorter limit first where two want the same fit."""
    sets, models = None if data is None else tuple(data), None if only is None else tuple(only)
    wanted = [c.within(time_limit) for s in specs if isinstance(s, Spec) for c in s.cases(sets, models)]
    return list(dict.fromkeys(wanted))


def run_cases(cases: Sequence[Case], rows: Rows, n_jobs: int | None, progress: int, ran: Ran) -> None:
    """Make the fits that are not in the file yet, and write every one down as it comes.

    After a Ctrl-C, and with everything in the file that was complete by then, KeyboardInterrupt is raised.
    """
    splits = {name: samples(name) for name in dict.fromkeys(case.data for case in cases)}
    there = rows.keys()
    todo = [case for case in cases if case.key(splits[case.data].checksum) not in there]
    ran.known += len(cases) - len(todo)
    tally = FitCounter(len(cases), len(cases) - len(todo), verbose=progress)

    def arguments(case: Case) -> tuple[Any, ...]:
        return case, splits[case.data].X_train, splits[case.data].y_train

    def arrived(case: Case, trained: dict[str, Any] | Failure) -> None:
        try:
            if isinstance(trained, Failure):
                ran.failed.append((str(case), trained.reason))
            else:
                row = evaluate(case, trained, splits[case.data])
                if row["stopped"] == Stopped.INTERRUPTED:
                    return  # Ctrl-C cut it short: it is no result
                rows.put(row)
                ran.made += 1
        except VerificationError as error:
            ran.failed.append((str(case), f"not what it claims to be: {error}"))
        tally.add(str(case))

    interrupted = run_chains([[case] for case in todo], arguments, train, arrived, n_jobs=n_jobs)
    tally.end()
    if interrupted:
        raise KeyboardInterrupt
