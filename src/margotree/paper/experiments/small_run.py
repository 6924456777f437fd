"""The whole paper, made small: every table and figure, on a few sets and with seconds instead of minutes per fit."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from margotree.atomic_files import write_text
from margotree.paper.experiments.figures import figure, figure_names
from margotree.paper.experiments.run import Ran, run
from margotree.paper.experiments.samples import PLANE
from margotree.paper.experiments.specs import SearchSpec, find, names
from margotree.paper.experiments.tables import table
from margotree.paper.experiments.text_table import FORMATS

#: Sets of the small version; the cross-validations run on the first alone.
SETS = ("Parkinsons", "Breast Cancer D.", "Wholesale")

#: Seconds per fit, and seconds per fit on a fold.
FIT, FOLD = 6.0, 2.0

#: Endings of the files a table is written to.
ENDINGS = {"text": "txt", "csv": "csv", "latex": "tex", "markdown": "md"}


def small_paper(folder: str | PathLike[str] = "results/reduced", *, n_jobs: int = 2, progress: int = 1) -> Ran:
    """Run everything, resuming what is there, and leave ``tables`` and ``figures`` in the folder.

    Sets whose data are not here are left out; the two partition sets and scikit-learn's own table always are.
    """
    home = Path(folder)
    file = home / "paper.sqlite"
    fits = [name for name in names() if not isinstance(find(name), SearchSpec)]
    searches = [name for name in names() if isinstance(find(name), SearchSpec)]
    shown = (*SETS, *PLANE)
    ran = run(fits, out=file, resume=True, n_jobs=n_jobs, time_limit=FIT, data=shown, progress=progress)
    searched = [name for name in SETS if name not in ran.absent][:1]
    more = Ran()
    if searched and not ran.interrupted:
        more = run(
            searches, out=file, resume=True, n_jobs=n_jobs, time_limit=FIT, fold_time_limit=FOLD, data=searched,
            progress=progress, reduced=True,
        )  # fmt: skip
    both = Ran(
        made=ran.made + more.made, known=ran.known + more.known, failed=ran.failed + more.failed, absent=ran.absent,
        interrupted=ran.interrupted or more.interrupted,
    )  # fmt: skip
    if both.interrupted:
        return both
    write_tables(names(), file, home / "tables", data=shown)
    for name in figure_names():
        figure(name, file, home / "figures")
    return both


def write_tables(
    wanted: Sequence[str], file: str | PathLike[str], folder: Path, *, formats: Sequence[str] = tuple(FORMATS),
    data: Sequence[str] | None = None,
) -> list[Path]:  # fmt: skip
    """Each table in each format, as a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in wanted:
        for form in formats:
            path = folder / f"{name}.{ENDINGS[form]}"
            write_text(path, table(name, file, form, data))
            written.append(path)
    return written
