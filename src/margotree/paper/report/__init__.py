"""The report page of a file of results: our tables beside the paper's, figures, certificates, machine and versions.

    from margotree.paper.report import write_report
    write_report("results/paper.sqlite", "report.html")

The page is one file that needs no network.  It lists the tables and figures that were not run.

- ``gather``: read the contents of the page from a file of results
- ``html``, ``style``: the page as text
- ``write``: :func:`write_report`
"""

from margotree._moved import renamed
from margotree.paper.report.gather import Contents, FigureImage, Fit, gather
from margotree.paper.report.html import render
from margotree.paper.report.write import write_report

__all__ = ["Contents", "FigureImage", "Fit", "gather", "render", "write_report"]

__getattr__ = renamed(__name__, {"Picture": "FigureImage"})
