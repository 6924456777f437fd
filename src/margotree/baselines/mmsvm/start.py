"""The first tree of MM-SVM-OCT: the routing of Local SVM, polished, to the depth with the smallest objective."""

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


class LocalSvmStart(Engine[MmSvmProblem]):
    """Local SVM on the same samples with ``C = c1``, then the best polished tree of its routing to some depth."""

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
        return Answer(splits=best_polished_tree(problem, tree, control), stopped=Stopped.HEURISTIC)


def best_polished_tree(problem: MmSvmProblem, splits: Splits, control: RunControl | None = None) -> Splits:
    """The best of the tree without splits, ``splits`` if allowed, and the polished trees with its routing to any depth.

    At a limit of ``control``, the best of those that were polished before.
    """
    return min(_candidates(problem, splits, control or RunControl()), key=lambda tree: problem.evaluate(tree).objective)


def constant_tree(problem: MmSvmProblem) -> Splits:
    """The best tree without splits."""
    sign = 1.0 if problem.margin.weight @ problem.margin.y >= 0 else -1.0
    b = np.full(problem.n_nodes, sign * max(1.0, problem.eps))
    return Splits(w=np.zeros((problem.n_nodes, problem.n_features)), b=b)


def _candidates(problem: MmSvmProblem, splits: Splits, control: RunControl) -> Iterator[Splits]:
    """The trees among which :func:`best_polished_tree` chooses."""
    yield constant_tree(problem)
    found = problem.evaluate(splits)
    if found.feasible:
        yield splits
    for depth in range(1, problem.depth + 1):
        split = splits.w.any(axis=1) & (np.arange(problem.n_nodes) < topology.n_nodes(depth))
        tree = polish(problem, _routing_to_depth(problem, splits, found.node, depth), split, control=control)
        if tree is not None:
            yield tree


def _routing_to_depth(problem: MmSvmProblem, splits: Splits, node: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
    """The last-level node of every sample if only the first ``depth`` levels split.

    Below them, the samples of a node all go to the last-level node on the side of their majority class.
    """
    last_node = node.copy()
    if depth == problem.depth:
        return last_node
    for t in topology.level_nodes(depth - 1):
        for child in (topology.left(t), topology.right(t)):
            rows = np.isin(node, topology.last_below(child, problem.depth))
            label_sum = problem.margin.weight[rows] @ problem.margin.y[rows]
            ends = topology.last_below(child, problem.depth)
            last_node[rows] = ends[-1] if label_sum >= 0 else ends[0]
    return last_node
