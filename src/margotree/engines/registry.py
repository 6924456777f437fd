"""The engines by name, and `solve`, the function that trains a tree with any of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from margotree.engines.base import Engine, Refused
from margotree.engines.numba_backend import compile_ahead
from margotree.engines.run_control import Limits, Listener, RunControl, ctrl_c
from margotree.problem import Problem, Splits, TrainingProblem
from margotree.proof.write import ProofWriter
from margotree.solution import CUT_OFF, Solution

#: The class of each engine; imported when it is first used.
_ENGINES: dict[str, str | Callable[[], Engine]] = {
    "local_svm": "margotree.engines.local_svm:LocalSVM",
    "alternating": "margotree.engines.local_search_engine:Alternating",
    "bnb": "margotree.engines.branch_and_bound.engine:BranchAndBound",
    "scip": "margotree.engines.mip.scip:Scip",
    "highs": "margotree.engines.mip.highs:Highs",
    "gurobi": "margotree.engines.mip.gurobi:Gurobi",
    "cplex": "margotree.engines.mip.cplex:Cplex",
    "copt": "margotree.engines.mip.copt:Copt",
}
#: Installed packages can add engines under this group of entry points.
_ENTRY_POINTS = "margotree.engines"

#: The start heuristic.
_DEFAULT_START = "local_svm"

#: The exact engine on a cluster.
_CLUSTER_ENGINE = "margotree.engines.distributed.engine:ClusterBranchAndBound"

#: The candidates of ``engine="auto"``, in this order: the first one that solves the problem is chosen.
_AUTO_ENGINES = ("bnb", "scip")

#: The start heuristic's share of the time limit, and its maximum in seconds (30 of 600 in the paper).
_START_SHARE, _START_MOST = 0.25, 30.0
#: Smallest node limit of the start heuristic, where work is measured in nodes.
_START_NODES = 1000

#: Passes over the data after the search: cleaning, evaluation, comparison with the start, audit.
_AUDIT_PASSES = 4


def register_engine(name: str, make: Callable[[], Engine]) -> None:
    """Add an engine under a name that estimators and :func:`solve` accept (docs/extending.md).

    Parameters
    ----------
    name : str
        A name that no engine has yet.
    make : callable
        Returns the engine; usually its class.
    """
    if name == "auto" or (name in _ENGINES and _ENGINES[name] is not make):
        raise ValueError(f"there is an engine {name!r} already")
    _ENGINES[name] = make


@cache
def _load_entry_points() -> None:
    """Add the engines of installed packages."""
    for entry in entry_points(group=_ENTRY_POINTS):
        _ENGINES.setdefault(entry.name, entry.value)


def engine_names() -> tuple[str, ...]:
    """The names of all engines."""
    _load_entry_points()
    return tuple(_ENGINES)


def get_engine(engine: str | Engine) -> Engine:
    """The engine of this name, or the engine itself; ValueError for an unknown name."""
    if isinstance(engine, Engine):
        return engine
    if engine not in engine_names():
        raise ValueError(f"unknown engine {engine!r}; there are: auto, {', '.join(_ENGINES)}")
    make = _ENGINES[engine]
    if isinstance(make, str):
        module, cls = make.split(":")
        make = getattr(import_module(module), cls)
    found: Engine = make()
    return found


def choose_engine(problem: Problem, name: str | Engine = "auto") -> Engine:
    """The engine of this name, or the first suitable one for "auto".

    Raises :class:`Refused` if the engine does not solve the problem; the message names engines that do.
    """
    if name == "auto":
        taking = [e for e in map(get_engine, _AUTO_ENGINES) if e.refuses(problem) is None]
        if taking:
            return next((e for e in taking if e.missing() is None), taking[0])
    engine = get_engine(_AUTO_ENGINES[0] if name == "auto" else name)
    if (reason := engine.refuses(problem)) is not None:
        raise Refused(f"{reason}; engines that do: {', '.join(accepting(problem)) or 'none'}")
    # Checked before the start heuristic runs, so that the error comes at once.
    engine.must_be_installed()
    return engine


def accepting(problem: Problem) -> list[str]:
    """Names of the engines that solve this problem, installed or not; those that return a bound come first."""
    taking = [e for e in map(get_engine, engine_names()) if e.refuses(problem) is None]
    return [e.name for e in sorted(taking, key=lambda e: not e.proves)]


def solve(
    problem: Problem,
    *,
    engine: str | Engine = "auto",
    limits: Limits | None = None,
    start: Splits | str | None = _DEFAULT_START,
    listener: Listener | None = None,
    proof: ProofWriter | None = None,
    scheduler: Any = None,
) -> Solution:
    """Train a tree: the start heuristic, then the engine, under one time limit; Ctrl-C returns the incumbent.

    Parameters
    ----------
    problem : Problem
        The training problem.
    engine : str or Engine
        Name of an engine, an engine, or "auto".
    limits : Limits, optional
        When to stop.
    start : str, Splits or None
        Name of a heuristic engine, a feasible tree, or no start. The default is left out where it does not solve the
        problem.
    listener : callable, optional
        Receives progress events.
    proof : ProofWriter, optional
        Writes a proof of the bound, if the engine can (docs/proof.md).
    scheduler : str or Client, optional
        Address or client of a Dask scheduler whose workers search, or "processes" for ``limits.n_jobs`` processes on
        this machine
        (docs/cluster.md).

    Returns
    -------
    Solution
        The tree and its certificate.
    """
    chosen = (
        choose_engine(problem, engine) if scheduler is None else _cluster_engine(problem, engine, scheduler, limits)
    )
    if proof is not None and not chosen.writes_proofs:
        raise Refused(f"proofs are available for the engine 'bnb' only, not for {chosen.name!r}; omit proof")
    own = isinstance(start, str) and (start == chosen.name or chosen.makes_start(problem))
    first = None if own else _start_engine(problem, start) if isinstance(start, str) else start
    return train(problem, chosen, limits=limits, start=first, listener=listener, proof=proof)


def _start_engine(problem: Problem, name: str) -> Engine | None:
    """The start heuristic of this name; None for the default one if it does not solve the problem."""
    engine = get_engine(name)
    return None if name == _DEFAULT_START and engine.refuses(problem) is not None else engine


def _cluster_engine(problem: Problem, name: str | Engine, scheduler: Any, limits: Limits | None) -> Engine:
    """The engine that searches on a cluster; raises :class:`Refused` if it does not solve this problem."""
    if name not in ("auto", "bnb"):
        raise Refused(f"only the engine 'bnb' searches on a cluster, not {name!r}; omit engine or scheduler")
    module, cls = _CLUSTER_ENGINE.split(":")
    engine: Engine = getattr(import_module(module), cls)(scheduler, (limits or Limits()).n_jobs)
    if (reason := engine.refuses(problem)) is not None:
        raise Refused(f"{reason}, and on a cluster there is no other engine; omit scheduler")
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
    """Solve any problem with a given engine, from no start, a tree, or the tree of another engine.

    Parameters and result are as in `solve`, except that ``engine`` and ``start`` are engines instead of names.
    """
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
    """Compile for all engines together, then let each of them prepare what else it needs."""
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
    """The run control less the estimated seconds of the audit after the search, which cannot be interrupted.

    For millions of numbers the audit takes noticeable time; the evaluation of one tree measures it.
    """
    if math.isinf(control.limits.time):
        return control
    problem.evaluate(Splits(w=np.zeros((problem.n_nodes, problem.n_features)), b=np.ones(problem.n_nodes)))
    return control.part(max(0.0, control.remaining - _AUDIT_PASSES * control.elapsed))


def _with_start(solution: Solution, first: Solution) -> Solution:
    """The solution with the time, objective, warnings and bound of the start ``first`` in its certificate."""
    # Whether the fit was cut off depends on the engine alone, not on the start.
    warnings = tuple(w for w in first.certificate.warnings if w != CUT_OFF)
    certificate = solution.certificate.with_(
        start_seconds=first.certificate.search_seconds,
        start_objective=first.certificate.objective,
        warnings=warnings + solution.certificate.warnings,
    )
    if math.isinf(certificate.bound) and math.isfinite(first.certificate.bound):
        certificate = certificate.with_(bound=first.certificate.bound)
    return Solution(splits=solution.splits, certificate=certificate)
