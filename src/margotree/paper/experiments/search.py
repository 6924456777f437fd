"""The cross-validations of the experiments, and the choice of hyperparameters from their rows of results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margotree.model_selection import RULES, TreeSearchCV
from margotree.model_selection.result_rows import Rows
from margotree.paper.experiments.case import MODELS_WITH_EPS, PAPER_EPS, Case, sorted_pairs
from margotree.paper.experiments.samples import samples
from margotree.paper.experiments.specs import SearchSpec
from margotree.paper.tuning import make_model, paper_folds, paper_grid

_FOLDS = 4


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """The options of a search: file of results, parallel fits, verbosity, seconds per fit on a fold, reduced grid."""

    rows: Rows
    n_jobs: int | None = 1
    progress: int = 1
    time_limit: float | None = None
    reduced: bool = False


def run(
    spec: SearchSpec, options: SearchOptions, data: Sequence[str] | None = None, only: Sequence[str] | None = None
) -> Iterator[Case]:
    """Run the search for every model on every set, and yield the final case of each choice."""
    for name in spec.data:
        for model, rule in spec.models:
            if (data is None or name in data) and (only is None or model in only):
                _search(spec, options, name, model)
                chosen = choose(options.rows, name, model, rule)
                assert chosen is not None
                yield final_case(spec, name, model, chosen.params)


def _search(spec: SearchSpec, options: SearchOptions, name: str, model: str) -> None:
    """Run the fits on the folds for one model and set; the rows are saved in the file of results."""
    split = samples(name)
    limit = spec.fit_time_limit if options.time_limit is None else min(spec.fit_time_limit, options.time_limit)
    more: dict[str, Any] = {} if model == "oct_1" else {"scale": None}
    if model in MODELS_WITH_EPS:
        more["band"] = PAPER_EPS
    search = TreeSearchCV(
        make_model(model, depth=2, time_limit=float(limit), **more),
        grid(model, split.X_train.shape[1], options.reduced),
        refit=False,
        cv=paper_folds(_FOLDS),
        n_jobs=options.n_jobs,
        resume=options.rows.path,
        name=name,
        model=model,
        verbose=options.progress,
    )
    search.fit(split.X_train, split.y_train)
    if search.interrupted_:
        raise KeyboardInterrupt


def grid(model: str, n_features: int, reduced: bool = False) -> dict[str, list[Any]]:
    """The paper's grid, or a coarse selection of its values for a quick run of the whole procedure."""
    full = paper_grid(model, most_features=n_features)
    if not reduced:
        return full
    reduced_values = {"C": [c for c in full.get("C", []) if c[0] == c[1] and c[0] in {1e-2, 1.0, 1e2}]}
    return {name: reduced_values[name] if name == "C" else values[::5] for name, values in full.items()}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The setting chosen by a rule, its mean results on the folds, the number of settings, and the limit per fit."""

    params: dict[str, Any]
    accuracy: float
    n_features: float
    settings: int
    time_limit: float
    certified: float
    """Share of the fits that were proved optimal."""
    means: dict[str, float]
    """Mean validation accuracy of every setting, by :func:`setting_key`."""

    def accuracy_of(self, params: dict[str, Any]) -> float | None:
        """The mean validation accuracy of another setting; None if it is not in the grid."""
        return self.means.get(setting_key(params))


def setting_key(params: dict[str, Any]) -> str:
    """A setting as a string; budgets of 1 at all levels are equal to one budget of 1."""
    plain = {n: v for n, v in params.items() if n != "budget" or set(np.atleast_1d(v).tolist()) != {1}}
    return json.dumps({n: np.atleast_1d(v).astype(float).tolist() for n, v in plain.items()}, sort_keys=True)


def choose(rows: Rows, data: str, model: str, rule: str) -> Choice | None:
    """Apply a rule to the rows of the folds; None if no setting has a row for every fold.

    Of several searches with different limits, the one with the most settings is used, then the one with the largest
    limit.
    """
    searches: dict[float, list[dict[str, Any]]] = {}
    for row in rows.where(kind="fold", data=data, model=model):
        searches.setdefault(float(row["time_limit"] or np.inf), []).append(row)
    found = [_choice(limit, some, rule) for limit, some in searches.items()]
    return max((c for c in found if c is not None), key=lambda c: (c.settings, c.time_limit), default=None)


def _choice(limit: float, rows: list[dict[str, Any]], rule: str) -> Choice | None:
    """Apply a rule to the rows of one search."""
    settings: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        settings.setdefault(json.dumps(row["params"], sort_keys=True), {})[row["fold"]] = row
    complete = [folds for folds in settings.values() if len(folds) == _FOLDS]
    if not complete:
        return None
    means = {
        name: np.array([np.mean([r["scores"]["test"][name] for r in folds.values()]) for folds in complete])
        for name in ("accuracy", "n_features")
    }
    order = _grid_order(complete)
    best = order[RULES[rule]({f"mean_test_{name}": values[order] for name, values in means.items()})]
    proved = [r["proved"] == "optimal" for folds in complete for r in folds.values()]
    return Choice(
        params=next(iter(complete[best].values()))["params"],
        accuracy=float(means["accuracy"][best]),
        n_features=float(means["n_features"][best]),
        settings=len(complete),
        time_limit=limit,
        certified=float(np.mean(proved)),
        means={
            setting_key(next(iter(f.values()))["params"]): float(m)
            for f, m in zip(complete, means["accuracy"], strict=True)
        },
    )


def _grid_order(complete: list[dict[int, dict[str, Any]]]) -> np.ndarray:
    """The order of the settings in the grid: rules choose the first of equal ones, independent of run times."""
    params = [next(iter(folds.values()))["params"] for folds in complete]
    flat = [tuple(v for n in sorted(p) for v in np.atleast_1d(p[n]).tolist()) for p in params]
    return np.array(sorted(range(len(flat)), key=flat.__getitem__))


def final_case(spec: SearchSpec, data: str, model: str, params: dict[str, Any]) -> Case:
    """The fit on the whole training part with the chosen setting."""
    if model == "sfs":
        params = {**params, "budget": [1, 1]}  # the form of the paper's settings, so that equal ones are one fit
    return Case(data=data, model=model, params=sorted_pairs(params), time_limit=spec.time_limit)
