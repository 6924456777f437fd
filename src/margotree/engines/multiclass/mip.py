"""MIP solvers for several classes: the form of :mod:`margotree.engines.multiclass.formulation` on the same adapters."""

from __future__ import annotations

from margotree.engines.base import Answer, Engine
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.copt import CoptAdapter
from margotree.engines.mip.cplex import CplexAdapter
from margotree.engines.mip.gurobi import GurobiAdapter
from margotree.engines.mip.model import MipResult
from margotree.engines.mip.result import answer, better_tree, points, run
from margotree.engines.mip.scip import ScipAdapter
from margotree.engines.multiclass.formulation import ClassFormulation, class_constants, formulate_classes
from margotree.engines.multiclass.nodes import NodeSolver, polish
from margotree.engines.multiclass.search import constant_tree, kernels_for
from margotree.engines.numba_backend import Part
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, TrainingProblem


class ClassMipEngine(Engine[Problem]):
    """One solver for small problems of several classes: what the own engine is checked against."""

    models = frozenset({"margot", "hfs", "sfs"})
    adapter: Adapter

    def missing(self) -> str | None:
        return self.adapter.missing()

    def version(self) -> str:
        return self.adapter.version()

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return kernels_for(problem)

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        tree = constant_tree(problem) if start is None else start
        exceeded_limit = self.adapter.exceeded_limit(_entries(problem), control)
        if exceeded_limit is not None:
            return Answer(splits=tree, stopped=exceeded_limit[0], bound=0.0, warnings=exceeded_limit[1:])
        found = problem.evaluate(tree)
        first = better_tree(
            problem, tree, polish(_solver(problem, control), found.node, found.choices.sides, found.choices.labels)
        )
        value = problem.evaluate(first).objective
        form = formulate_classes(problem, class_constants(problem, value), size=value)
        result = run(self.adapter, form.mip, control, None if start is None else form.point(first))
        return _answer(form, result, first, control)


class Scip(ClassMipEngine):
    """Several classes on SCIP."""

    name = "scip"
    adapter = ScipAdapter()


class Gurobi(ClassMipEngine):
    """Several classes on Gurobi."""

    name = "gurobi"
    adapter = GurobiAdapter()


class Cplex(ClassMipEngine):
    """Several classes on CPLEX."""

    name = "cplex"
    adapter = CplexAdapter()


class Copt(ClassMipEngine):
    """Several classes on COPT."""

    name = "copt"
    adapter = CoptAdapter()


def _entries(problem: Problem) -> float:
    """About how many entries the rows of the model have."""
    return float(problem.X.size) * 2 * (problem.n_nodes + problem.n_upper)


def _solver(problem: Problem, control: RunControl) -> NodeSolver:
    return NodeSolver(problem=problem, control=control)


def _answer(form: ClassFormulation, result: MipResult, first: Splits, control: RunControl) -> Answer:
    """The better of the polished answer and the tree to fall back on, with what is known about it."""
    grace = control.grace()
    solver = _solver(form.problem, grace)
    trees = (polish(solver, form.node(x), form.sides(x), form.labels(x)) for x in points(result) if not grace.over)
    tree = next((tree for tree in trees if tree is not None), None)
    found = [] if tree is None else [tree]
    gap, size = control.limits.gap, form.mip.size
    return answer(form.problem, result, first, found, grace, gap=gap, lower_bound=0.0, size=size)
