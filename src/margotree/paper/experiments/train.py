"""Training of one case, in any process; the tree is evaluated elsewhere."""

from __future__ import annotations

import time
from typing import Any

from numpy.typing import NDArray

from margotree.notices import without_fit_warnings
from margotree.paper.experiments.case import ENGINE, MODELS_WITH_EPS, PAPER_EPS, Case
from margotree.paper.tuning.models import make_model


def train(case: Case, X: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
    """Train the tree of a case on scaled samples; returns the tree as a dict, and the seconds."""
    estimator = make_model(case.model, **settings(case))
    began = time.perf_counter()
    with without_fit_warnings():
        estimator.fit(X, y)
    return {"tree": estimator.tree_.to_dict(), "seconds": time.perf_counter() - began}


def settings(case: Case) -> dict[str, Any]:
    """The arguments of the classifier of a case."""
    params: dict[str, Any] = {
        "depth": case.depth,
        "time_limit": case.time_limit,
        "random_state": case.seed,
        "n_jobs": 1,
    }
    if case.model != "local_svm":
        params["engine"] = ENGINE
    if case.model != "oct_1":  # OCT-1 has no parameter scale: it uses the order of the values only
        params["scale"] = None
    if case.model in MODELS_WITH_EPS:
        params["band"] = PAPER_EPS
    if not case.start:
        params["start"] = None
    return {**params, **{name: list(v) if isinstance(v, tuple) else v for name, v in case.params}}
