"""The paper's tuning of one model in one call."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from margotree.model_selection.models import make_model
from margotree.model_selection.rules import RULES, stratified_folds
from margotree.model_selection.search import TreeSearchCV
from margotree.paper.tuning.grids import paper_grid

#: The paper's band beside upper splits, and the models whose default is another.
PAPER_EPS = 1e-3
_BANDED = frozenset({"margot", "hfs", "sfs", "local_svm"})


def tune(
    X: Any,
    y: Any,
    model: str = "margot",
    *,
    depth: int = 2,
    grid: Any = None,
    rule: str = "accuracy",
    folds: Any = 4,
    n_jobs: int | None = 1,
    time_limit: float | None = None,
    fit_time_limit: float | None = 10.0,
    resume: str | PathLike[str] | None = None,
    name: str = "",
    verbose: int = 0,
    **params: Any,
) -> TreeSearchCV:
    """Choose the hyperparameters of a model by cross-validation, as the paper did, and train it with them.

    ``model`` is one of :func:`~margotree.model_selection.model_names`; ``rule`` is ``"accuracy"`` (the best mean
    validation accuracy) or ``"features"`` (the fewest features within 2.5 % of it).  ``time_limit`` is for the whole
    search, ``fit_time_limit`` for every fit of it.  With ``resume`` fits are kept in that file and not repeated.
    ``params``
    go to the model; ``eps`` is the paper's 1e-3 unless given.  Returns the fitted search: ``best_estimator_``,
    ``best_params_``, ``cv_results_``.
    """
    if rule not in RULES:
        raise ValueError(f"rule is one of {', '.join(RULES)}, got {rule!r}")
    if model in _BANDED:
        params.setdefault("eps", PAPER_EPS)
    estimator = make_model(model, depth=depth, time_limit=fit_time_limit, **params)
    search = TreeSearchCV(
        estimator,
        grid if grid is not None else paper_grid(model, depth, most_features=np.shape(X)[1]),
        refit=RULES[rule],
        cv=stratified_folds(folds) if isinstance(folds, int) else folds,
        n_jobs=n_jobs,
        time_limit=time_limit,
        resume=resume,
        name=name,
        verbose=verbose,
    )
    return search.fit(X, y)
