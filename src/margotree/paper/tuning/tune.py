"""The tuning of one model as in the paper."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from margotree.model_selection import RULES, TreeSearchCV, stratified_folds
from margotree.paper.tuning.grids import paper_grid
from margotree.paper.tuning.models import make_model

#: The ``eps`` of the paper, and the models with another default.
PAPER_EPS = 1e-3
_MODELS_WITH_EPS = frozenset({"margot", "hfs", "sfs", "local_svm"})


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
    """Choose the hyperparameters of a model by cross-validation as in the paper, and train it with them.

    Parameters
    ----------
    model : str
        One of :func:`~margotree.paper.tuning.model_names`.
    depth : int, default 2
        Depth of the tree.
    grid : dict, optional
        The grid; by default :func:`paper_grid`.
    rule : "accuracy" or "features"
        The best mean validation accuracy, or the fewest features within 2.5 % of it.
    folds : int or splitter, default 4
        The folds; a number means stratified and shuffled ones.
    n_jobs : int or None, default 1
        Number of parallel fits.
    time_limit, fit_time_limit : float or None
        Seconds for the whole search and for every fit.
    resume : path, optional
        A file in which every fit is saved; fits in the file are not repeated.
    name : str
        The name of the data in that file.
    **params
        Further parameters of the model; ``band`` is 1e-3 by default, as in the paper.

    Returns
    -------
    TreeSearchCV
        The fitted search, with ``best_estimator_``, ``best_params_`` and ``cv_results_``.
    """
    if rule not in RULES:
        raise ValueError(f"rule is one of {', '.join(RULES)}, got {rule!r}")
    if model in _MODELS_WITH_EPS:
        params.setdefault("band", PAPER_EPS)
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
        model=model,
        verbose=verbose,
    )
    return search.fit(X, y)
