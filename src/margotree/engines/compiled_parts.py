"""The parts in which kernels are compiled ahead of a fit, and what each problem needs of them.

What shares many functions is one part, so that these are compiled once.  The functions behind the names are in
:mod:`margotree.engines.exact.warm_up` and beside the engines that call the kernels.
"""

from __future__ import annotations

from margotree.engines.numba_backend import Part
from margotree.problem import TrainingProblem

_READY = "margotree.engines.exact.warm_up"

NODE = Part(f"{_READY}:node_problem", 7.0)
MANY_SAMPLES = Part(f"{_READY}:many_samples", 5.0)
SUBSETS = Part(f"{_READY}:best_subsets", 9.0, includes=(NODE,))
DIVE = Part(f"{_READY}:dive", 15.0, includes=(NODE,))
DIVE_AND_SUBSETS = Part(f"{_READY}:dive_and_subsets", 18.0, includes=(DIVE, SUBSETS))
ALL_DIVES = Part(f"{_READY}:all_dives", 29.0, includes=(DIVE_AND_SUBSETS,))
SUPPORTS = Part("margotree.engines.exact.engine:search_over_supports", 13.0)
ALTERNATING = Part(f"{_READY}:alternating_search", 18.0)
PROOFS_OF_ROUTINGS = Part(f"{_READY}:proofs_of_routings", 2.0)
PROOFS_OF_SUPPORTS = Part(f"{_READY}:proofs_of_supports", 20.0)
PREDICTION = Part("margotree.engines.compiled_routing:route_tiny", 1.0)

#: What searches for trees of each model call.
_SEARCH = {
    "margot": (DIVE, ALTERNATING),
    "hfs": (DIVE_AND_SUBSETS, ALTERNATING, SUPPORTS),
    "sfs": (ALL_DIVES, ALTERNATING, SUPPORTS),
}
#: What training node by node calls.
_NODES = {"margot": (NODE,), "hfs": (SUBSETS,), "sfs": (SUBSETS,)}


def model_of(problem: TrainingProblem) -> str:
    """The model that kernels are compiled for; other problems of baselines have that of plain trees."""
    model = getattr(problem, "model", "margot")
    return model if model in _SEARCH else "margot"


def of_search(problem: TrainingProblem, with_penalties: bool = False, alternates: bool = True) -> tuple[Part, ...]:
    """What exact and alternating searches for such a problem may call; budgets may be searched ``with_penalties``."""
    parts = _SEARCH["sfs" if with_penalties else model_of(problem)]
    return tuple(part for part in parts if alternates or part is not ALTERNATING)


def of_nodes(problem: TrainingProblem) -> tuple[Part, ...]:
    """What training node by node calls."""
    return _NODES[model_of(problem)]


def of_proofs(routings: bool, supports: bool) -> tuple[Part, ...]:
    """What only proofs call: of searches over ``routings``, and over lists of ``supports``."""
    return (PROOFS_OF_SUPPORTS,) * supports + (PROOFS_OF_ROUTINGS,) * routings
