"""The first tree of OCT-H: the best univariate tree, which is allowed in OCT-H too."""

from __future__ import annotations

from dataclasses import replace

from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.search import KERNELS, Search
from margotree.baselines.oct.tree_cleanup import clean_tree, numbered_splits
from margotree.engines import Answer, Engine, RunControl
from margotree.engines.numba_backend import Part
from margotree.problem import Splits, TrainingProblem
from margotree.solution import Stopped


class UnivariateStart(Engine[OctProblem]):
    """CART, then OCT-1 of the same depth, leaf size and alpha, as Bertsimas and Dunn start OCT-H."""

    name = "oct_1"
    models = frozenset({"oct_h"})
    proves = False

    def version(self) -> str:
        return Search().version()

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return (KERNELS,)

    def search(self, problem: OctProblem, control: RunControl, start: Splits | None) -> Answer:
        if not problem.merge_samples(control):
            return Answer(splits=numbered_splits(problem, None), stopped=Stopped.HEURISTIC)
        found = Search().search(replace(problem, mu=None), control, start)
        tree = clean_tree(problem, found.splits)
        assert tree is not None, "every univariate tree is allowed in OCT-H"
        return Answer(splits=tree, stopped=Stopped.HEURISTIC, nodes=found.nodes)
