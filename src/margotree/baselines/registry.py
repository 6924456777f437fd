"""The engines of the rivals by name, and the one function through which their trees are trained."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from margotree.engines import Engine, Limits, Refused, engine_names, train
from margotree.engines.run_control import Listener
from margotree.problem import Splits, TrainingProblem
from margotree.solution import Solution

#: Where the adapters of the MIP solvers live; imported only when one is asked for.
_ADAPTERS = {
    "highs": "margotree.engines.mip.highs:HighsAdapter",
    "scip": "margotree.engines.mip.scip:ScipAdapter",
    "gurobi": "margotree.engines.mip.gurobi:GurobiAdapter",
    "cplex": "margotree.engines.mip.cplex:CplexAdapter",
    "copt": "margotree.engines.mip.copt:CoptAdapter",
}

#: The engines of each model, the one behind ``engine="auto"`` first, and the MIP form that the solvers get.
_ENGINES = {
    "oct_1": ("search", *_ADAPTERS),
    "oct_h": tuple(_ADAPTERS),
    "mm_svm_oct": ("scip", "gurobi", "cplex", "copt"),
}
_FORMS = {
    "oct_1": "margotree.baselines.oct.engine:OctMip",
    "oct_h": "margotree.baselines.oct.engine:OctMip",
    "mm_svm_oct": "margotree.baselines.mmsvm.engine:MmSvmMip",
}
_OWN = {
    "search": "margotree.baselines.oct.search:Search",
    "cart": "margotree.baselines.oct.cart:Cart",
    "oct_1": "margotree.baselines.oct.start:Univariate",
    "local_svm": "margotree.baselines.mmsvm.start:LocalStart",
}


def engines_for(model: str) -> tuple[str, ...]:
    """Names of the engines that train this model, the one that ``"auto"`` takes first."""
    return _ENGINES[model]


def choose_engine(model: str, name: str = "auto") -> Engine:
    """The engine of this name for a model; a refusal names those that would do."""
    known = dict.fromkeys((*engine_names(), *_OWN, *_ADAPTERS))
    if name != "auto" and name not in known:
        raise ValueError(f"unknown engine {name!r}; for {model} there are: auto, {', '.join(_ENGINES[model])}")
    if name != "auto" and name not in _ENGINES[model]:
        raise Refused(f"{name} does not solve {model} problems; engines that do: {', '.join(_ENGINES[model])}")
    chosen = name if name != "auto" else _ENGINES[model][0]
    engine: Engine = _get(_OWN[chosen])() if chosen in _OWN else _get(_FORMS[model])(_get(_ADAPTERS[chosen])())
    # Asked before the start heuristic runs, so that nobody waits for this answer.
    engine.must_be_installed()
    return engine


def solve(
    problem: TrainingProblem,
    *,
    engine: str = "auto",
    limits: Limits | None = None,
    start: Splits | str | None = None,
    listener: Listener | None = None,
) -> Solution:
    """Train a rival's tree; ``start`` is the name of a heuristic, an allowed tree, or None."""
    chosen = choose_engine(problem.model, engine)
    first = _get(_OWN[start])() if isinstance(start, str) else start
    return train(problem, chosen, limits=limits, start=first, listener=listener)


def _get(home: str) -> Any:
    module, name = home.split(":")
    return getattr(import_module(module), name)
