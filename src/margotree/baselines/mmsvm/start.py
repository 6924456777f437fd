"""The first tree of MM-SVM-OCT: Local SVM's routing, polished, with as many splits as pay."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.mmsvm.polish import polish
from margotree.baselines.mmsvm.problem import MmSvmProblem
from margotree.engines import Answer, Engine, RunControl, get_engine
from margotree.engines.numba_backend import Part
from margotree.problem import Splits, TrainingProblem, topology
from margotree.solution import Stopped


class LocalStart(Engine[MmSvmProblem]):
    """Local SVM on the same samples with ``C = c1``, then the best of its trees cut at every level."""

    name = "local_svm"
    models = frozenset({"mm_svm_oct"})
    proves = False

    def version(self) -> str:
        return get_engine("local_svm").version()

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        assert isinstance(problem, MmSvmProblem)
        return get_engine("local_svm").kernels(problem.margin)

    def search(self, problem: MmSvmProblem, control: RunControl, start: Splits | None) -> Answer:
        tree = get_engine("local_svm").search(problem.margin, control, None).splits
        return Answer(splits=adopt(problem, tree, control), stopped=Stopped.HEURISTIC)


def adopt(problem: MmSvmProblem, splits: Splits, control: RunControl | None = None) -> Splits:
    """The best of the polished trees that route as ``splits`` does, down to some level; at worst one without splits.

    Of those, the ones that are polished before ``control`` runs out.
    """
    return min(_candidates(problem, splits, control or RunControl()), key=lambda tree: problem.evaluate(tree).objective)


def constant_offsets(problem: MmSvmProblem) -> Splits:
    """The best tree without splits."""
    sign = 1.0 if problem.margin.weight @ problem.margin.y >= 0 else -1.0
    b = np.full(problem.n_nodes, sign * max(1.0, problem.eps))
    return Splits(w=np.zeros((problem.n_nodes, problem.n_features)), b=b)


def _candidates(problem: MmSvmProblem, splits: Splits, control: RunControl) -> Iterator[Splits]:
    yield constant_offsets(problem)
    found = problem.evaluate(splits)
    if found.feasible:
        yield splits
    for depth in range(1, problem.depth + 1):
        split = splits.w.any(axis=1) & (np.arange(problem.n_nodes) < topology.n_nodes(depth))
        tree = polish(problem, _cut(problem, splits, found.node, depth), split, control=control)
        if tree is not None:
            yield tree


def _cut(problem: MmSvmProblem, splits: Splits, node: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
    """The last-level nodes of a tree that splits on its first levels only: below, everybody goes with the majority."""
    cut = node.copy()
    if depth == problem.depth:
        return cut
    for t in topology.level_nodes(depth - 1):
        for child in (topology.left(t), topology.right(t)):
            here = np.isin(node, topology.last_below(child, problem.depth))
            pull = problem.margin.weight[here] @ problem.margin.y[here]
            ends = topology.last_below(child, problem.depth)
            cut[here] = ends[-1] if pull >= 0 else ends[0]
    return cut
