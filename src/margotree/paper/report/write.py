"""Write the report page to a file."""

from __future__ import annotations

from os import PathLike

from margotree.atomic_files import write_text
from margotree.paper.report.gather import gather
from margotree.paper.report.html import render


def write_report(store: str | PathLike[str], path: str | PathLike[str], *, figures: bool = True) -> None:
    """Write the report page of a file of results.

    An existing page is replaced only when the new one is complete.

    Parameters
    ----------
    store : path
        The file of results.
    path : path
        The page to write.
    figures : bool, default True
        Whether to draw the figures (needs matplotlib).
    """
    write_text(path, render(gather(store, figures=figures)))
