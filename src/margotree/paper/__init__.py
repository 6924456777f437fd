"""What only the reproduction of the paper needs: its data sets, tuning rules, experiments and the report page.

Start with :mod:`margotree.paper.experiments` (``python -m margotree.paper.experiments list``).  ``data/`` finds the
data sets and holds the figures that the paper prints, ``tuning/`` its grids, and ``report/`` turns a file of results
into one page.  Nothing outside this package and the command line imports it.
"""
