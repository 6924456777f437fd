"""The engines of the baselines by name, and :func:`solve`, which trains a baseline's tree."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from margotree.engines import Engine, Limits, Refused, engine_names, train
from margotree.engines.run_control import Listener
from margotree.problem import Splits, TrainingProblem
from margotree.solution import Solution

#: The adapters of the MIP solvers, imported when they are used first.
_ADAPTERS = {
    "highs": "margotree.engines.mip.highs:HighsAdapter",
    "scip": "margotree.engines.mip.scip:ScipAdapter",
    "gurobi": "margotree.engines.mip.gurobi:GurobiAdapter",
    "cplex": "margotree.engines.mip.cplex:CplexAdapter",
    "copt": "margotree.engines.mip.copt:CoptAdapter",
}

#: The names of the engines of each model; ``engine="auto"`` uses the first.
_ENGINES = {
    "oct_1": ("search", *_ADAPTERS),
    "oct_h": tuple(_ADAPTERS),
    "mm_svm_oct": ("scip", "gurobi", "cplex", "copt"),
}
#: The engine of each model that solves its MIP form with an adapter.
_MIP_ENGINES = {
    "oct_1": "margotree.baselines.oct.engine:OctMip",
    "oct_h": "margotree.baselines.oct.engine:OctMip",
    "mm_svm_oct": "margotree.baselines.mmsvm.engine:MmSvmMip",
}
#: The engines ("search") and start heuristics (all others) that need no MIP solver.
_OWN_ENGINES = {
    "search": "margotree.baselines.oct.search:Search",
    "cart": "margotree.baselines.oct.cart:Cart",
    "oct_1": "margotree.baselines.oct.start:UnivariateStart",
    "local_svm": "margotree.baselines.mmsvm.start:LocalSvmStart",
}


def engines_for(model: str) -> tuple[str, ...]:
    """The names of the engines that train the model; ``engine="auto"`` uses the first."""
    return _ENGINES[model]


def choose_engine(model: str, name: str = "auto") -> Engine:
    """A new engine that trains the model; ``name`` is the name of the engine or "auto".

    Raises ValueError for an unknown name, Refused for an engine that does not train the model, and NotInstalled if the
    engine needs a solver that is not installed.  The messages of the first two list the engines that train the model.
    """
    known = dict.fromkeys((*engine_names(), *_OWN_ENGINES, *_ADAPTERS))
    if name != "auto" and name not in known:
        raise ValueError(f"unknown engine {name!r}; for {model} there are: auto, {', '.join(_ENGINES[model])}")
    if name != "auto" and name not in _ENGINES[model]:
        raise Refused(f"{name} does not solve {model} problems; engines that do: {', '.join(_ENGINES[model])}")
    chosen = name if name != "auto" else _ENGINES[model][0]
    engine: Engine = (
        _import(_OWN_ENGINES[chosen])()
        if chosen in _OWN_ENGINES
        else _import(_MIP_ENGINES[model])(_import(_ADAPTERS[chosen])())
    )
    # Checked before the start heuristic runs, so that the error comes at once.
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
    """Train the tree of a baseline.

    Parameters
    ----------
    problem : OctProblem or MmSvmProblem
        The training problem.
    engine : str
        The name of an engine, or "auto".
    limits : Limits, optional
        The limits of the search.
    start : Splits or str, optional
        The initial tree: feasible splits, or the name of a start heuristic.
    listener : Listener, optional
        Receives reports of the progress.
    """
    chosen = choose_engine(problem.model, engine)
    tree_or_heuristic = _import(_OWN_ENGINES[start])() if isinstance(start, str) else start
    return train(problem, chosen, limits=limits, start=tree_or_heuristic, listener=listener)


def _import(target: str) -> Any:
    """Import the object ``name`` of ``"module:name"``."""
    module, name = target.split(":")
    return getattr(import_module(module), name)
