"""The engines that train trees.

- `registry`: engines by name, and `solve`, which trains a tree; start reading here
- `base`: the interface of all engines; `run_control`: limits, progress and interruption
- `branch_and_bound`: the exact engine "bnb"; `exact`: its searches; `distributed`: the same on a cluster
- `local_search_engine`, `local_search`: the local search (engine "alternating")
- `local_svm`: the greedy tree (engine "local_svm"); `band` moves its hyperplanes out of the routing band
- `mip`: MIP solvers (engines "scip", "highs", "gurobi", "cplex", "copt")
- `node`: the SVM of one tree node; `polish`: the best tree for a given routing
- `presolve`: standard scale and merged samples; `trivial_trees`: trees that need no search
- `numba_backend`, `compiled_parts`, `warm`, `compiled_routing`: compiled kernels
"""

from margotree._moved import renamed
from margotree.engines.base import Answer, Engine, EngineError, NotInstalled, Refused
from margotree.engines.registry import (
    accepting,
    choose_engine,
    engine_names,
    get_engine,
    register_engine,
    solve,
    train,
)
from margotree.engines.run_control import Event, Limits, RunControl

__all__ = [
    "Answer",
    "Engine",
    "EngineError",
    "Event",
    "Limits",
    "NotInstalled",
    "Refused",
    "RunControl",
    "accepting",
    "choose_engine",
    "engine_names",
    "get_engine",
    "register_engine",
    "solve",
    "train",
]

__getattr__ = renamed(__name__, {"Watch": "RunControl"})
