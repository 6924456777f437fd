"""A small version of the paper: all tables and figures on a few sets, with seconds instead of minutes per fit."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from margotree.atomic_files import write_text
from margotree.paper.experiments.figures import figure, figure_names
from margotree.paper.experiments.run import RunSummary, run
from margotree.paper.experiments.samples import PLANE_SETS
from margotree.paper.experiments.specs import SearchSpec, find, names
from margotree.paper.experiments.tables import table
from margotree.paper.experiments.text_table import FORMATS

#: The sets of the small version; the cross-validations use only the first.
SETS = ("Parkinsons", "Breast Cancer D.", "Wholesale")

#: Seconds per fit, and seconds per fit on a fold.
FIT, FOLD = 6.0, 2.0

#: The file name extension of each format of a table.
ENDINGS = {"text": "txt", "csv": "csv", "latex": "tex", "markdown": "md"}


def small_paper(folder: str | PathLike[str] = "results/reduced", *, n_jobs: int = 2, progress: int = 1) -> RunSummary:
    """Run or resume all experiments, and write the folders ``tables`` and ``figures``.

    Sets whose data are missing are left out; the two generated sets and the set in scikit-learn are always available.
    """
    root = Path(folder)
    file = root / "paper.sqlite"
    fits = [name for name in names() if not isinstance(find(name), SearchSpec)]
    searches = [name for name in names() if isinstance(find(name), SearchSpec)]
    shown = (*SETS, *PLANE_SETS)
    summary = run(fits, out=file, resume=True, n_jobs=n_jobs, time_limit=FIT, data=shown, progress=progress)
    searched = [name for name in SETS if name not in summary.absent][:1]
    more = RunSummary()
    if searched and not summary.interrupted:
        more = run(
            searches, out=file, resume=True, n_jobs=n_jobs, time_limit=FIT, fold_time_limit=FOLD, data=searched,
            progress=progress, reduced=True,
        )  # fmt: skip
    both = RunSummary(
        made=summary.made + more.made, known=summary.known + more.known, failed=summary.failed + more.failed,
        absent=summary.absent, interrupted=summary.interrupted or more.interrupted,
    )  # fmt: skip
    if both.interrupted:
        return both
    write_tables(names(), file, root / "tables", data=shown)
    for name in figure_names():
        figure(name, file, root / "figures")
    return both


def write_tables(
    table_names: Sequence[str], file: str | PathLike[str], folder: Path, *, formats: Sequence[str] = tuple(FORMATS),
    data: Sequence[str] | None = None,
) -> list[Path]:  # fmt: skip
    """Write each table in each format to a file, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in table_names:
        for form in formats:
            path = folder / f"{name}.{ENDINGS[form]}"
            write_text(path, table(name, file, form, data))
            written.append(path)
    return written
