"""A file of results as one page: the paper's tables beside ours, figures, certificates, machine and versions.

    from margotree.paper.report import write_report
    write_report("results/paper.sqlite", "report.html")

The page is one file that needs no network.  What was not run is named, not left out in silence.
"""

from margotree.paper.report.gather import Contents, Fit, Picture, gather
from margotree.paper.report.html import render
from margotree.paper.report.write import write_report

__all__ = ["Contents", "Fit", "Picture", "gather", "render", "write_report"]
