"""Where prices of features are small beside the rest of the objective: descents that do not look at prices.

They are quicker, and know more ways to a better tree; only trees that may be the best are then made sparse.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from margotree.engines.local_search.search import Job, LocalSearch
from margotree.engines.local_search.starts import kept
from margotree.engines.local_search.training_data import Found, Terms
from margotree.engines.presolve import without_budget

#: The share of disturbed trees whose descents look at prices.
_LOOKING = 0.5


class SparsifyingSearch(LocalSearch):
    """The descents of such a problem; all values but those within a descent include prices."""

    finisher_reports = False

    def _terms(self) -> Terms:
        return Terms.of(without_budget(self.problem))

    def _last_terms(self) -> Terms:
        return self._priced

    @cached_property
    def _priced(self) -> Terms:
        return Terms.of(self.problem)

    def _descend(self, job: Job) -> Found:
        disturbed = job.level == self.ladder.top and np.any(job.start.W)
        if disturbed and np.random.default_rng(job.seed).random() < _LOOKING:
            return self._descend_with(self._priced, job)
        found = super()._descend(job)
        found = replace(found, value=found.value + self._price(found))
        # A tree that is what it was has been made sparse before.
        return self._made_sparse(found, job) if job.level == self.ladder.top and found.W is not job.start.W else found

    def _finish(self, job: Job) -> Found:
        return self._made_sparse(super()._finish(job), job)

    def _price(self, found: Found) -> float:
        return sum(self._priced.price(t, w) for t, w in enumerate(found.W))

    def _made_sparse(self, found: Found, job: Job) -> Found:
        """The tree, or what it becomes once prices count, if it may become the best of its island."""
        if found.value - self._price(found) >= self._best_of(job):
            return found
        sparse = self.descent(self._priced, kept(found), self.seed)
        return min(found, sparse, key=lambda one: one.value)
