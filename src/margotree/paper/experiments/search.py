"""Cross-validations from scratch, and what they chose, read back from the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margotree.model_selection import RULES, TreeSearchCV, make_model
from margotree.model_selection.result_rows import Rows
from margotree.paper.experiments.case import BANDED, PAPER_EPS, Case, pairs
from margotree.paper.experiments.samples import samples
from margotree.paper.experiments.specs import SearchSpec
from margotree.paper.tuning import paper_folds, paper_grid

_FOLDS = 4


@dataclass(frozen=True, kw_only=True)
class Search:
    """How to search: where rows go, how many fits side by side, seconds per fit on a fold, on a reduced grid or not."""

    rows: Rows
    n_jobs: int | None = 1
    progress: int = 1
    time_limit: float | None = None
    reduced: bool = False


def run(
    spec: SearchSpec, how: Search, data: Sequence[str] | None = None, only: Sequence[str] | None = None
) -> Iterator[Case]:
    """Search every model on every set, and give the case of each choice."""
    for name in spec.data:
        for model, rule in spec.models:
            if (data is None or name in data) and (only is None or model in only):
                _search(spec, how, name, model)
                chosen = choose(how.rows, name, model, rule)
                assert chosen is not None
                yield final_case(spec, name, model, chosen.params)


def _search(spec: SearchSpec, how: Search, name: str, model: str) -> None:
    split = samples(name)
    limit = spec.fit_time_limit if how.time_limit is None else min(spec.fit_time_limit, how.time_limit)
    more: dict[str, Any] = {} if model == "oct_1" else {"scale": None}
    if model in BANDED:
        more["eps"] = PAPER_EPS
    search = TreeSearchCV(
        make_model(model, depth=2, time_limit=float(limit), **more),
        grid(model, split.X_train.shape[1], how.reduced),
        refit=False,
        cv=paper_folds(_FOLDS),
        n_jobs=how.n_jobs,
        resume=how.rows.path,
        name=name,
        verbose=how.progress,
    )
    search.fit(split.X_train, split.y_train)
    if search.interrupted_:
        raise KeyboardInterrupt


def grid(model: str, n_features: int, reduced: bool = False) -> dict[str, list[Any]]:
    """The paper's grid, or every third value of it: enough to see the machinery at work."""
    full = paper_grid(model, most_features=n_features)
    if not reduced:
        return full
    few = {"C": [c for c in full.get("C", []) if c[0] == c[1] and c[0] in {1e-2, 1.0, 1e2}]}
    return {name: few[name] if name == "C" else values[::5] for name, values in full.items()}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a rule chose, among how many settings, under which limit a fit; and how good it was on the folds."""

    params: dict[str, Any]
    accuracy: float
    n_features: float
    settings: int
    time_limit: float
    certified: float
    """Share of the fits that were proved optimal."""
    means: dict[str, float]
    """Mean validation accuracy of every setting, by :func:`spelled`."""

    def accuracy_of(self, params: dict[str, Any]) -> float | None:
        """What another setting had on the same folds; None if it was not tried."""
        return self.means.get(spelled(params))


def spelled(params: dict[str, Any]) -> str:
    """A setting as a word; budgets of 1 everywhere are the same as one budget of 1."""
    plain = {n: v for n, v in params.items() if n != "budget" or set(np.atleast_1d(v).tolist()) != {1}}
    return json.dumps({n: np.atleast_1d(v).astype(float).tolist() for n, v in plain.items()}, sort_keys=True)


def choose(rows: Rows, data: str, model: str, rule: str) -> Choice | None:
    """Apply a rule to the folds in the file; None if no setting is there on all of them.

    If searches under several limits are there, the one with the most settings counts, then the one with most time.
    """
    searches: dict[float, list[dict[str, Any]]] = {}
    for row in rows.where(kind="fold", data=data, model=model):
        searches.setdefault(float(row["time_limit"] or np.inf), []).append(row)
    found = [_choice(limit, some, rule) for limit, some in searches.items()]
    return max((c for c in found if c is not None), key=lambda c: (c.settings, c.time_limit), default=None)


def _choice(limit: float, rows: list[dict[str, Any]], rule: str) -> Choice | None:
    settings: dict[str, dict[int, dict[str, Any]]] = {}
    for row in rows:
        settings.setdefault(json.dumps(row["params"], sort_keys=True), {})[row["fold"]] = row
    whole = [folds for folds in settings.values() if len(folds) == _FOLDS]
    if not whole:
        return None
    means = {
        name: np.array([np.mean([r["scores"]["test"][name] for r in folds.values()]) for folds in whole])
        for name in ("accuracy", "n_features")
    }
    order = _grid_order(whole)
    best = order[RULES[rule]({f"mean_test_{name}": values[order] for name, values in means.items()})]
    proved = [r["proved"] == "optimal" for folds in whole for r in folds.values()]
    return Choice(
        params=next(iter(whole[best].values()))["params"],
        accuracy=float(means["accuracy"][best]),
        n_features=float(means["n_features"][best]),
        settings=len(whole),
        time_limit=limit,
        certified=float(np.mean(proved)),
        means={
            spelled(next(iter(f.values()))["params"]): float(m) for f, m in zip(whole, means["accuracy"], strict=True)
        },
    )


def _grid_order(whole: list[dict[int, dict[str, Any]]]) -> np.ndarray:
    """Rules take the first of equals, and the first is that of the grid, not that of the clock."""
    params = [next(iter(folds.values()))["params"] for folds in whole]
    flat = [tuple(v for n in sorted(p) for v in np.atleast_1d(p[n]).tolist()) for p in params]
    return np.array(sorted(range(len(flat)), key=flat.__getitem__))


def final_case(spec: SearchSpec, data: str, model: str, params: dict[str, Any]) -> Case:
    """The fit on the whole training part with what was chosen."""
    if model == "sfs":
        params = {**params, "budget": [1, 1]}  # as the paper's own settings spell it, so that equal ones are one fit
    return Case(data=data, model=model, params=pairs(params), time_limit=spec.time_limit)
