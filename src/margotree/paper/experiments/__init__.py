"""The paper's tables and figures: run, stopped, resumed, and printed beside what the paper prints.

    from margotree import experiments
    experiments.names()                                          # ("datasets", "synthetic", "test_accuracy", ...)
    ran = experiments.run(["test_accuracy"], out="results/paper.sqlite", resume=True, n_jobs=2, time_limit=60,
                          data=["Sonar"], only=["margot"])       # -> Ran(made, known, failed)
    print(experiments.table("test_accuracy", "results/paper.sqlite", "markdown"))    # text, csv, latex, markdown
    experiments.figure_names()                                   # ("planes", "features", "depths", "trees")
    experiments.figure("planes", "results/paper.sqlite", "results")                  # -> paths of the pictures

``run`` takes ``backend="threads"`` (default), ``"processes"`` or ``"dask"`` with ``scheduler="tcp://..."``.  Errors
that a user can correct are ``margotree.paper.data.DataError``, ``RowsError``, ``BackendError`` (one line each) and
``ValueError`` for unknown names.  The same from a shell: ``python -m margotree.paper.experiments --help``.
"""

from margotree.model_selection.result_rows import Rows, RowsError
from margotree.paper.experiments.backends import BackendError, backend_names
from margotree.paper.experiments.figures import figure, figure_names
from margotree.paper.experiments.run import RESULTS, Ran, run
from margotree.paper.experiments.specs import names
from margotree.paper.experiments.tables import FORMATS, table

__all__ = [
    "FORMATS",
    "RESULTS",
    "BackendError",
    "Ran",
    "Rows",
    "RowsError",
    "backend_names",
    "figure",
    "figure_names",
    "names",
    "run",
    "table",
]
