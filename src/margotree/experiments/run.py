"""Running experiments: what is in the file is not run again, what is new is there the moment it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from margotree.experiments import search
from margotree.experiments.backends import running_on
from margotree.experiments.case import Case
from margotree.experiments.evaluate import evaluate
from margotree.experiments.samples import samples
from margotree.experiments.specs import SearchSpec, Spec, find
from margotree.experiments.train import train
from margotree.solution import VerificationError
from margotree.tuning.chains import Failure, run_chains
from margotree.tuning.rows import Rows, RowsError
from margotree.tuning.tally import Tally

#: Where results go unless told otherwise.
RESULTS = "results/paper.sqlite"


@dataclass(kw_only=True)
class Ran:
    """What a run did: fits made, fits that were there already, and what failed (case and reason)."""

    made: int = 0
    known: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.made} fits made, {self.known} were there already, {len(self.failed)} failed"


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
    cross-validations.  Fits that fail are told in the answer and tried again
    by the next run.
    """
    specs = [find(name) for name in names]
    ran = Ran()
    with _opened(out, resume) as rows, running_on(backend, scheduler):
        run_cases(_cases(specs, data, only, time_limit), rows, n_jobs, progress, ran)
        for spec in specs:
            if isinstance(spec, SearchSpec):
                fold = time_limit if fold_time_limit is None else fold_time_limit
                job = search.Search(rows=rows, n_jobs=n_jobs, progress=progress, time_limit=fold, reduced=reduced)
                chosen = [case.within(time_limit) for case in search.run(spec, job, data, only)]
                run_cases(chosen, rows, n_jobs, progress, ran)
    return ran


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
    """Make the fits that are not in the file yet, and write every one down as it comes."""
    splits = {name: samples(name) for name in dict.fromkeys(case.data for case in cases)}
    there = rows.keys()
    todo = [case for case in cases if case.key(splits[case.data].checksum) not in there]
    ran.known += len(cases) - len(todo)
    tally = Tally(len(cases), len(cases) - len(todo), verbose=progress)

    def arguments(case: Case) -> tuple[Any, ...]:
        return case, splits[case.data].X_train, splits[case.data].y_train

    def arrived(case: Case, trained: dict[str, Any] | Failure) -> None:
        try:
            if isinstance(trained, Failure):
                ran.failed.append((str(case), trained.reason))
            else:
                rows.put(evaluate(case, trained, splits[case.data]))
                ran.made += 1
        except VerificationError as error:
            ran.failed.append((str(case), f"not what it claims to be: {error}"))
        tally.add(str(case))

    run_chains([[case] for case in todo], arguments, train, arrived, n_jobs=n_jobs)
