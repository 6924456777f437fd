"""What the estimators of margin optimal trees have in common: their training problem, initial tree and engines."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from margotree.engines import Limits, solve
from margotree.engines.run_control import Listener, RunControl
from margotree.estimators.automatic_band import band_of
from margotree.estimators.base import AnySamples, AnyTree, TreeEstimator
from margotree.estimators.fit_warnings import UnwrittenProofWarning
from margotree.estimators.initial_tree import read_start
from margotree.notices import warn_from_fit
from margotree.problem import Problem, Splits
from margotree.proof.write import ProofWriter
from margotree.solution import Solution
from margotree.tree import HyperplaneTree, Scaling


class MarginTreeEstimator(TreeEstimator[AnySamples, AnyTree]):
    """Base class of the estimators of margin optimal trees."""

    def _terms(self) -> dict[str, Any]:
        """The parameters of the training problem."""
        names = ("depth", "C", "budget", "alpha", "max_weight")
        terms = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        return terms | {"eps": band_of(self), "groups": self._groups()}

    def _start(self) -> Any:
        return getattr(self, "start", None)

    def _initial_tree(
        self, problem: Problem, scaling: Scaling, samples: AnySamples, control: RunControl
    ) -> Splits | str | None:
        return read_start(self._start(), problem, lambda tree: self._hyperplanes_of(tree, scaling, samples))

    @abstractmethod
    def _hyperplanes_of(self, tree: HyperplaneTree, scaling: Scaling, samples: AnySamples) -> Splits:
        """The hyperplanes of a tree that is given as ``start``, in the units of the training problem."""

    def _solve(
        self,
        problem: Problem,
        start: Splits | str | None,
        limits: Limits,
        listener: Listener | None,
    ) -> Solution:
        path = getattr(self, "proof", None)
        proof = None if path is None else ProofWriter(path)
        solution = solve(
            problem, engine=self._engine(), limits=limits, start=start, listener=listener, proof=proof,
            scheduler=getattr(self, "scheduler", None),
        )  # fmt: skip
        if proof is not None and proof.failure:
            warn_from_fit(
                f"the proof {proof.failure}; the tree and its certificate are complete", UnwrittenProofWarning
            )
        return solution

    def _json_terms(self, problem: Problem, samples: AnySamples) -> dict[str, Any]:
        return {
            "model": problem.model,
            "C": problem.C.tolist(),
            "eps": problem.eps,
            "budget": None if problem.budget is None else problem.budget.tolist(),
            "alpha": None if problem.alpha is None else problem.alpha.tolist(),
            **({} if problem.groups is None or problem.budget is None else {"groups": problem.groups.tolist()}),
        }
