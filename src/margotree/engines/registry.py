"""The engines by name, and the one function through which everybody trains a tree."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np

from margotree.engines.base import Engine, Refused
from margotree.engines.numba_backend import compile_ahead
from margotree.engines.run_control import Limits, Listener, RunControl, ctrl_c
from margotree.problem import BINARY, Problem, Splits, TrainingProblem
from margotree.proof.write import ProofWriter
from margotree.solution import CUT_OFF, Solution

#: Where each engine lives; imported only when it is asked for.
_HOMES = {
    "local_svm": "margotree.engines.local_svm:LocalSVM",
    "alternating": "margotree.engines.local_search_engine:Alternating",
    "bnb": "margotree.engines.exact.engine:BranchAndBound",
    "scip": "margotree.engines.mip.scip:Scip",
    "highs": "margotree.engines.mip.highs:Highs",
    "gurobi": "margotree.engines.mip.gurobi:Gurobi",
    "cplex": "margotree.engines.mip.cplex:Cplex",
    "copt": "margotree.engines.mip.copt:Copt",
}

#: The engines for more than two classes, by the same names.
_MULTICLASS = {
    "local_svm": "margotree.engines.multiclass.local_svm:LocalSVM",
    "alternating": "margotree.engines.multiclass.search:Alternating",
    "bnb": "margotree.engines.multiclass.exact:BranchAndBound",
    "scip": "margotree.engines.multiclass.mip:Scip",
    "gurobi": "margotree.engines.multiclass.mip:Gurobi",
    "cplex": "margotree.engines.multiclass.mip:Cplex",
    "copt": "margotree.engines.multiclass.mip:Copt",
}

#: The exact engine where a cluster searches.
_CLUSTER = "margotree.engines.distributed.engine:ClusterBranchAndBound"

#: What ``engine="auto"`` tries, in this order: the first that takes the problem.
_AUTO = ("bnb", "scip")

#: The start heuristic's share of the time limit, and its most in seconds (the paper gives it 30 of 600).
_START_SHARE, _START_MOST = 0.25, 30.0
#: Nodes that the start heuristic has for its own searches at least, where work is measured in nodes.
_START_NODES = 1000

#: How often an answer is looked over at the end: cleaned, valued, compared with its start, audited, counted.
_LOOKS = 4


def engine_names() -> tuple[str, ...]:
    return tuple(_HOMES)


def get_engine(name: str, problem: TrainingProblem | None = None) -> Engine:
    """The engine of this name (for the classes of ``problem``); ValueError with the known names otherwise."""
    if name not in _HOMES:
        raise ValueError(f"unknown engine {name!r}; there are: auto, {', '.join(_HOMES)}")
    homes = _homes(problem)
    if name not in homes:
        raise Refused(f"{name} does not solve problems of more than two classes; engines that do: {', '.join(homes)}")
    module, cls = homes[name].split(":")
    engine: Engine = getattr(import_module(module), cls)()
    return engine


def _homes(problem: TrainingProblem | None) -> dict[str, str]:
    return _MULTICLASS if _several(problem) else _HOMES


def _several(problem: TrainingProblem | None) -> bool:
    """Whether a margin tree of several classes is to be trained."""
    return isinstance(problem, Problem) and problem.task != BINARY


def choose_engine(problem: Problem, name: str = "auto") -> Engine:
    """Resolve ``"auto"`` and check that the engine is here and takes the problem; a refusal names those that would."""
    if name == "auto":
        known = [get_engine(auto, problem) for auto in _AUTO if auto in _homes(problem)]
        taking = [e for e in known if e.refuses(problem) is None]
        return next((e for e in taking if e.missing() is None), taking[0])
    engine = get_engine(name, problem)
    if (reason := engine.refuses(problem)) is not None:
        raise Refused(f"{reason}; engines that do: {', '.join(accepting(problem))}")
    # Asked before the start heuristic runs, so that nobody waits for this answer.
    engine.must_be_installed()
    return engine


def accepting(problem: Problem) -> list[str]:
    """Names of the engines that take this problem, installed or not, provers first."""
    engines = [get_engine(name, problem) for name in _homes(problem)]
    taking = [e for e in engines if e.refuses(problem) is None]
    return [e.name for e in sorted(taking, key=lambda e: not e.proves)]


def solve(
    problem: Problem,
    *,
    engine: str = "auto",
    limits: Limits | None = None,
    start: Splits | str | None = "local_svm",
    listener: Listener | None = None,
    proof: ProofWriter | None = None,
    scheduler: str | None = None,
) -> Solution:
    """Train a tree: the start heuristic, then the engine, under one clock and with Ctrl-C returning the incumbent.

    ``start`` is the name of a heuristic engine, a feasible tree, or None.  ``proof`` writes a proof of the bound, if
    the engine can (docs/proof.md).  ``scheduler`` is the address of a Dask scheduler whose workers search, or
    "processes" for as many on this machine as ``limits`` has ``n_jobs`` (docs/cluster.md).
    """
    chosen = choose_engine(problem, engine) if scheduler is None else _spread(problem, engine, scheduler, limits)
    if proof is not None and not chosen.writes_proofs:
        classes = "two classes" if _several(problem) else "the engine 'bnb'"
        raise Refused(f"a proof can be written for {classes} only, not by {chosen.name!r} here; leave proof out")
    own = isinstance(start, str) and (start == chosen.name or chosen.makes_start(problem))
    first = None if own else get_engine(start, problem) if isinstance(start, str) else start
    return train(problem, chosen, limits=limits, start=first, listener=listener, proof=proof)


def _spread(problem: Problem, name: str, scheduler: str, limits: Limits | None) -> Engine:
    """The engine that searches on a cluster, if this problem can be searched so."""
    if name not in ("auto", "bnb"):
        raise Refused(f"only the engine 'bnb' searches on a cluster, not {name!r}; leave out engine or scheduler")
    if _several(problem):
        raise Refused("a cluster searches trees of two classes only so far; leave scheduler out")
    module, cls = _CLUSTER.split(":")
    engine: Engine = getattr(import_module(module), cls)(scheduler, (limits or Limits()).n_jobs)
    if (reason := engine.refuses(problem)) is not None:
        raise Refused(f"{reason}, and on a cluster there is no other engine; leave scheduler out")
    engine.must_be_installed()
    return engine


def train(
    problem: TrainingProblem,
    engine: Engine,
    *,
    limits: Limits | None = None,
    start: Engine | Splits | None = None,
    listener: Listener | None = None,
    proof: ProofWriter | None = None,
) -> Solution:
    """Any problem on a given engine, started from nothing, from a tree or from what another engine finds first."""
    _prepare(problem, [one for one in (engine, start) if isinstance(one, Engine)], engine if proof else None)
    control = without_audit(RunControl(limits, listener), problem)

    def search(first: Splits | None) -> Solution:
        if proof is not None:
            return engine.solve_with_proof(problem, proof, control, first)
        return engine.solve(problem, control, first)

    with ctrl_c(control):
        if not isinstance(start, Engine):
            return search(start)
        if control.over:
            return search(None)
        seconds = min(_START_MOST, _START_SHARE * control.limits.time)
        nodes = max(_START_NODES, _START_SHARE * control.limits.nodes)
        first = start.solve(problem, control.share(seconds=seconds, nodes=nodes))
        solution = search(first.splits)
    return _with_start(solution, first)


def _prepare(problem: TrainingProblem, engines: list[Engine], proving: Engine | None) -> None:
    """Compile for all engines at once, then let each of them prepare what else it needs."""
    compile_ahead(
        [
            *(() if proving is None else proving.kernels_of_proofs(problem)),
            *(part for engine in engines for part in engine.kernels(problem)),
        ]
    )
    for engine in engines:
        engine.prepare(problem)
    if proving is not None:
        proving.prepare_proof(problem)


def without_audit(control: RunControl, problem: TrainingProblem) -> RunControl:
    """The run control less the seconds that looking over the answer takes at the end, when nobody can stop it any more.

    Among millions of numbers that is no longer nothing; one look is taken now to see how long it takes.
    """
    if math.isinf(control.limits.time):
        return control
    problem.evaluate(Splits(w=np.zeros((problem.n_nodes, problem.n_features)), b=np.ones(problem.n_nodes)))
    return control.part(max(0.0, control.remaining - _LOOKS * control.elapsed))


def _with_start(solution: Solution, first: Solution) -> Solution:
    # Whether the fit was cut off is what the engine says in the end.
    warnings = tuple(w for w in first.certificate.warnings if w != CUT_OFF)
    certificate = solution.certificate.with_(
        start_seconds=first.certificate.search_seconds,
        start_objective=first.certificate.objective,
        warnings=warnings + solution.certificate.warnings,
    )
    if math.isinf(certificate.bound) and math.isfinite(first.certificate.bound):
        certificate = certificate.with_(bound=first.certificate.bound)
    return Solution(splits=solution.splits, certificate=certificate)
