"""The greedy tree for several classes: every node is trained by itself on what reaches it, from the root down.

Which classes does an upper node part?  The least SVM value is no guide, as it belongs to the split that parts least.
So the node compares bipartitions by the Gini impurity that their SVMs leave, and takes the purest: all bipartitions for
up to five classes, beyond that those that lines through the class means make; if leaves are as many as classes, only
those with room for every class below.  A last-level node takes the pair of labels with the least node value.
"""

from __future__ import annotations

import itertools

import numpy as np

from margotree.engines.base import Answer, Engine
from margotree.engines.local_search.node_samples import Node, Plane, Rows
from margotree.engines.local_search.support_search import best_svm
from margotree.engines.local_search.training_data import Terms
from margotree.engines.multiclass.draw import greedy
from margotree.engines.multiclass.search import kernels_for
from margotree.engines.numba_backend import Part
from margotree.engines.polish import without_noise
from margotree.engines.run_control import RunControl
from margotree.problem import Problem, Splits, TrainingProblem, topology
from margotree.problem.problem import FloatArray
from margotree.solution import Stopped


class LocalSVM(Engine[Problem]):
    """Greedy top-down training; its tree is allowed, and nothing is proved about it."""

    name = "local_svm"
    models = frozenset({"margot", "hfs", "sfs"})
    proves = False
    notes_trees = True

    def kernels(self, problem: TrainingProblem) -> tuple[Part, ...]:
        return kernels_for(problem)

    def search(self, problem: Problem, control: RunControl, start: Splits | None) -> Answer:
        """Train the nodes level by level; a start is of no use to a greedy method and is ignored."""
        terms = Terms.of(problem).fine()
        rng, flag = np.random.default_rng(control.limits.seed), np.zeros(1)
        W, B = np.zeros((problem.n_nodes, problem.n_features)), np.ones(problem.n_nodes)
        none = np.zeros(0)
        band = Node(
            Z=np.zeros((0, problem.n_features)), plus=none, minus=none, left_cost=none, right_cost=none, eps=problem.eps
        )
        rows: list[Rows] = [np.arange(problem.n_samples)] + [np.arange(0)] * (problem.n_nodes - 1)
        for t in range(problem.n_nodes):
            flag[0] = control.must_stop() is not None
            if t >= problem.n_upper:
                W[t], B[t] = best_last(terms, t, rows[t], flag)
                continue
            plane = greedy(terms, t, rows[t], rng, flag)
            W[t], B[t] = plane if plane is not None else (W[t], 1.0)
            right = band.right_of(problem.X[rows[t]] @ W[t] + B[t], (W[t], float(B[t])))
            assert right is not None  # a drawn hyperplane has nobody in its band
            rows[topology.left(t)], rows[topology.right(t)] = rows[t][~right], rows[t][right]
            control.report("local_svm", nodes=t + 1, open_nodes=problem.n_nodes - t - 1)
        stopped = control.must_stop() or Stopped.HEURISTIC
        if stopped is Stopped.HEURISTIC:
            control.count_trained_tree()
        return Answer(splits=without_noise(problem, Splits(w=W, b=B)), stopped=stopped, nodes=problem.n_nodes)


def best_last(terms: Terms, t: int, rows: Rows, flag: FloatArray) -> Plane:
    """The hyperplane of the best pair of labels; none where a constant label is as cheap."""
    mass = terms.mass(rows)
    C, total = float(terms.C[t]), float(np.sum(mass))
    best = 2.0 * C * (total - float(np.max(mass)))
    plane: Plane = (np.zeros(terms.X.shape[1]), 1.0)
    pairs = itertools.combinations(np.flatnonzero(mass > 0), 2)
    for a, b in sorted(pairs, key=lambda pair: -(mass[pair[0]] + mass[pair[1]])):
        if 2.0 * C * (total - float(mass[a] + mass[b])) >= best:
            break  # third classes alone cost more, here and in all pairs that follow
        node = Node.of(terms, t, rows, np.array([a, b]))
        found, value = best_svm(terms, t, node, (np.zeros(terms.X.shape[1]), 0.0), flag)
        if value < best:
            best, plane = value, found
    return plane
