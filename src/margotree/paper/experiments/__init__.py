"""The paper's tables and figures: run the fits, resume them, and print our results beside the paper's.

    from margotree import experiments
    experiments.names()                                          # ("datasets", "synthetic", "test_accuracy", ...)
    ran = experiments.run(["test_accuracy"], out="results/paper.sqlite", resume=True, n_jobs=2, time_limit=60,
                          data=["Sonar"], only=["margot"])       # -> RunSummary(made, known, failed)
    print(experiments.table("test_accuracy", "results/paper.sqlite", "markdown"))    # text, csv, latex, markdown
    experiments.figure_names()                                   # ("planes", "features", "depths", "trees")
    experiments.figure("planes", "results/paper.sqlite", "results")                  # -> paths of the images

``run`` takes ``backend="threads"`` (default), ``"processes"`` or ``"dask"`` with ``scheduler="tcp://..."``.  Errors
that a user can correct are ``margotree.paper.data.DataError``, ``RowsError``, ``BackendError`` (one line each) and
``ValueError`` for unknown names.  The same from a shell: ``python -m margotree.paper.experiments --help``.

- ``specs``: the fits of every table and figure; start reading here
- ``case``, ``samples``: one fit, and the training and test samples of a set
- ``run``, ``train``, ``evaluate``, ``backends``: run the fits and save them as rows of results
- ``search``, ``chosen_settings``: the cross-validations, and the table of their choices
- ``tables``, ``table_cells``, ``measures``, ``text_table``: the tables
- ``figures``: the figures
- ``small_run``: all tables and figures on a few sets
"""

from margotree._moved import renamed
from margotree.model_selection.result_rows import Rows, RowsError
from margotree.paper.experiments.backends import BackendError, backend_names
from margotree.paper.experiments.figures import figure, figure_names
from margotree.paper.experiments.run import RESULTS, RunSummary, run
from margotree.paper.experiments.specs import names
from margotree.paper.experiments.tables import FORMATS, table

__all__ = [
    "FORMATS",
    "RESULTS",
    "BackendError",
    "Rows",
    "RowsError",
    "RunSummary",
    "backend_names",
    "figure",
    "figure_names",
    "names",
    "run",
    "table",
]

__getattr__ = renamed(__name__, {"Ran": "RunSummary"})
