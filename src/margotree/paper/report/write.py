"""The page as a file."""

from __future__ import annotations

from os import PathLike

from margotree.atomic_files import write_text
from margotree.paper.report.gather import gather
from margotree.paper.report.html import render


def write_report(store: str | PathLike[str], path: str | PathLike[str], *, figures: bool = True) -> None:
    """Write the page of a file of results; a page already there is replaced only once the new one is complete."""
    write_text(path, render(gather(store, figures=figures)))
