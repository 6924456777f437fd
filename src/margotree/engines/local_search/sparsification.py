"""The search for problems with small feature penalties: descents leave them out, and good trees are sparsified
afterwards.

Descents without feature penalties take less time and reach more trees; only those that may become the best are
sparsified.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from margotree.engines.local_search.search import Job, LocalSearch
from margotree.engines.local_search.starts import unchanged_start
from margotree.engines.local_search.training_data import Terms, TrainedTree
from margotree.engines.presolve import without_budget

#: The share of variations of good trees whose descents include feature penalties.
_PENALISED_SHARE = 0.5


class SparsifyingSearch(LocalSearch):
    """The search for a problem with small feature penalties; all values but those within a descent include them."""

    finisher_reports = False

    def new_terms(self) -> Terms:
        return Terms.of(without_budget(self.problem))

    def final_terms(self) -> Terms:
        return self._penalised

    @cached_property
    def _penalised(self) -> Terms:
        """The training problem with feature penalties."""
        return Terms.of(self.problem)

    def descend(self, job: Job) -> TrainedTree:
        is_variation = job.level == self.levels.top and np.any(job.start.W)
        if is_variation and np.random.default_rng(job.seed).random() < _PENALISED_SHARE:
            return self.descend_with(self._penalised, job)
        found = super().descend(job)
        found = replace(found, value=found.value + self._penalty(found))
        # An unchanged tree has been sparsified before.
        return self._sparsified(found, job) if job.level == self.levels.top and found.W is not job.start.W else found

    def finish(self, job: Job) -> TrainedTree:
        return self._sparsified(super().finish(job), job)

    def _penalty(self, found: TrainedTree) -> float:
        """The feature penalties of a tree."""
        return sum(self._penalised.feature_penalty(t, w) for t, w in enumerate(found.W))

    def _sparsified(self, found: TrainedTree, job: Job) -> TrainedTree:
        """The tree, or the result of a descent with feature penalties, if it may become the best of its pool."""
        if found.value - self._penalty(found) >= self.value_to_beat(job):
            return found
        sparse = self.descent(self._penalised, unchanged_start(found), self.seed)
        return min(found, sparse, key=lambda one: one.value)
