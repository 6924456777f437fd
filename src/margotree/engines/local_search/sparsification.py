"""The search for problems with small feature penalties: descents without the penalties, then sparsification.

A descent without feature penalties takes less time and reaches more trees. If its tree can become the best one, a
second descent, with feature penalties, starts from it (sparsification).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from margotree.engines.local_search.search import Job, LocalSearch
from margotree.engines.local_search.starts import unchanged_start
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.presolve import without_budget

#: The share of starts derived from good trees whose descents include the feature penalties.
_PENALISED_SHARE = 0.5


class SparsifyingSearch(LocalSearch):
    """The search for a problem with small feature penalties.

    The values of all trees include the feature penalties, except within a descent.
    """

    finisher_reports = False  # the values that the finisher reports do not include feature penalties

    def new_terms(self) -> Terms:
        """The training problem of descents, without feature penalties."""
        return Terms.of(without_budget(self.problem))

    def final_terms(self) -> Terms:
        """The training problem of the final tree, with feature penalties."""
        return self._penalised

    @cached_property
    def _penalised(self) -> Terms:
        """The training problem with feature penalties."""
        return Terms.of(self.problem)

    def descend(self, job: Job) -> TrainedTree:
        """The result of the job's descent, sparsified if the descent used all samples."""
        is_variation = job.level == self.levels.top and np.any(job.start.W)
        if is_variation and np.random.default_rng(job.seed).random() < _PENALISED_SHARE:
            return self.descend_with(self._penalised, job)
        found = super().descend(job)
        found = replace(found, value=found.value + self._penalty(found))
        # An unchanged tree has been sparsified before.
        return self._sparsified(found, job) if job.level == self.levels.top and found.W is not job.start.W else found

    def finish(self, job: Job) -> TrainedTree:
        """The sparsified result of the finisher."""
        return self._sparsified(super().finish(job), job)

    def _penalty(self, found: TrainedTree) -> float:
        """The sum of the feature penalties of all nodes of a tree."""
        return sum(self._penalised.feature_penalty(t, w) for t, w in enumerate(found.W))

    def _sparsified(self, found: TrainedTree, job: Job) -> TrainedTree:
        """The better one of the tree and the result of a descent from it with feature penalties.

        The tree is returned unchanged if it is too bad to become the best tree of the job's pool, even without its
        feature penalties.
        """
        if found.value - self._penalty(found) >= self.value_to_beat(job):
            return found
        sparse = self.descent(self._penalised, unchanged_start(found), self.seed)
        return min(found, sparse, key=lambda one: one.value)
