"""The proof of an engine: the file it is written to, the logs of its searches, and the bound that it proves."""

from __future__ import annotations

import math

from margotree.engines.exact.proof_log import ProofLog
from margotree.engines.exact.proof_log_base import ProofLogBase
from margotree.engines.exact.search import Search
from margotree.engines.exact.support_proof_log import SupportLog
from margotree.problem import Problem
from margotree.problem.problem import FloatArray
from margotree.proof.write import ProofWriter, StepFile

#: Share that is subtracted from a bound, so that a checker may round differently.
_PROOF_SHADE = 1e-9


class NoProof:
    """No proof: what :class:`Proof` does where none is written."""

    writes = False

    def start(self, problem: Problem, weights: FloatArray) -> None:
        """There is nothing to write."""

    def log(self) -> None:
        """No log."""

    def drop_others(self, search: Search) -> None:
        """There are no logs."""

    def support_log(self) -> SupportLog:
        """Not called: the strategies that call it write proofs."""
        raise AssertionError("no proof is written")

    def end(self, search: Search) -> float:
        """No limit on the bound."""
        return math.inf


class Proof:
    """The proof of one fit.

    Parameters
    ----------
    writer
        Writes the file.
    unit
        The factor from values of the engine's problem to those of the user's.
    """

    writes = True

    def __init__(self, writer: ProofWriter, unit: float) -> None:
        self.writer, self.unit = writer, unit
        self.steps: StepFile | None = None
        self._logs: list[ProofLogBase] = []

    def start(self, problem: Problem, weights: FloatArray) -> None:
        """Set the problem and the weights of its merged samples."""
        self.problem, self.weights = problem, weights

    def log(self) -> ProofLog:
        """A new log, for one search over routings."""
        log = ProofLog(self.writer.steps(self.problem.n_nodes), self.problem, self.weights, self.unit)
        self._logs.append(log)
        return log

    def support_log(self) -> SupportLog:
        """A new log, for one search over lists of supports."""
        log = SupportLog(self.writer.steps(self.problem.n_nodes), self.problem, self.weights, self.unit)
        self._logs.append(log)
        return log

    def drop_others(self, search: Search) -> None:
        """Drop the logs of all other searches."""
        for one in self._logs:
            if one is not search.brancher.log:
                one.drop()

    def end(self, search: Search) -> float:
        """Close all open records of this search; return the bound that its proof proves, rounded down."""
        log = search.brancher.log
        assert isinstance(log, ProofLogBase)
        self.drop_others(search)
        search.close_open()
        for one in self._logs:
            one.finish()
        assert isinstance(log.steps, StepFile)
        self.steps = log.steps
        return max(0.0, min(log.least_closed_bound, search.own_bound)) * (1.0 - _PROOF_SHADE)
