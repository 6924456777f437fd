"""The reproduction of the MARGOT paper: its data sets, tuning, experiments and a report page.

- :mod:`~margotree.paper.experiments`: the tables and figures; start here
  (``python -m margotree.paper.experiments list``)
- :mod:`~margotree.paper.data`: the data sets, and the numbers printed in the paper
- :mod:`~margotree.paper.tuning`: the grids and the tuning procedure
- :mod:`~margotree.paper.report`: a report page (HTML) for a file of results

Only the command line imports this package.
"""
