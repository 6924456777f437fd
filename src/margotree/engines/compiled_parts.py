"""The parts in which kernels are compiled ahead of a fit, and the parts that each kind of problem needs.

Kernels that share many functions are one part, so that these are compiled once.  The functions named here are in
:mod:`margotree.engines.exact.warm_up` and in the engines that call the kernels.
"""

from __future__ import annotations

from margotree.engines.numba_backend import Part
from margotree.problem import Problem, TrainingProblem

_WARM_UP = "margotree.engines.exact.warm_up"

NODE = Part(f"{_WARM_UP}:node_problem", 7.0)
MANY_SAMPLES = Part(f"{_WARM_UP}:many_samples", 5.0)
SUBSETS = Part(f"{_WARM_UP}:best_subsets", 9.0, includes=(NODE,))
DIVE = Part(f"{_WARM_UP}:dive", 15.0, includes=(NODE,))
DIVE_AND_SUBSETS = Part(f"{_WARM_UP}:dive_and_subsets", 18.0, includes=(DIVE, SUBSETS))
ALL_DIVES = Part(f"{_WARM_UP}:all_dives", 29.0, includes=(DIVE_AND_SUBSETS,))
SUPPORTS = Part("margotree.engines.branch_and_bound.engine:search_over_supports", 13.0)
ALTERNATING = Part(f"{_WARM_UP}:alternating_search", 18.0)
PROOFS_OF_ROUTINGS = Part(f"{_WARM_UP}:proofs_of_routings", 2.0)
PROOFS_OF_SUPPORTS = Part(f"{_WARM_UP}:proofs_of_supports", 20.0)
PREDICTION = Part("margotree.engines.compiled_routing:route_tiny", 1.0)

#: The parts of a search per model.
_SEARCH = {
    "margot": (DIVE, ALTERNATING),
    "hfs": (DIVE_AND_SUBSETS, ALTERNATING, SUPPORTS),
    "sfs": (ALL_DIVES, ALTERNATING, SUPPORTS),
}
#: The parts of training node by node per model.
_NODES = {"margot": (NODE,), "hfs": (SUBSETS,), "sfs": (SUBSETS,)}


def model_of(problem: TrainingProblem) -> str:
    """The model for which kernels are compiled; "margot" for the problems of baselines."""
    model = getattr(problem, "model", "margot")
    return model if model in _SEARCH else "margot"


def of_search(problem: TrainingProblem, with_penalties: bool = False, alternates: bool = True) -> tuple[Part, ...]:
    """The parts of exact and alternating searches for such a problem.

    ``with_penalties`` adds those of searches that penalise features instead of a hard budget; without ``alternates``
    those of the local search are left out.
    """
    parts = _SEARCH["sfs" if with_penalties else model_of(problem)]
    return tuple(part for part in parts if alternates or part is not ALTERNATING)


def of_nodes(problem: TrainingProblem) -> tuple[Part, ...]:
    """The parts of training node by node."""
    return _NODES[model_of(problem)]


def of_choices(problem: TrainingProblem) -> tuple[Part, ...]:
    """The parts that compare splits of upper nodes where these are not single SVMs."""
    if not isinstance(problem, Problem):
        return ()
    return (ALTERNATING,) * (problem.task.has_choices or problem.task.losses_follow_side)


def of_proofs(routings: bool, supports: bool) -> tuple[Part, ...]:
    """The parts that only proofs need: of searches over ``routings``, and over lists of ``supports``."""
    return (PROOFS_OF_SUPPORTS,) * supports + (PROOFS_OF_ROUTINGS,) * routings
