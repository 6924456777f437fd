"""A search that leaves a proof behind: where it goes, and what it proves in the end."""

from __future__ import annotations

from margotree.engines.exact.proof_log import ProofLog
from margotree.engines.exact.proof_log_base import ProofLogBase
from margotree.engines.exact.search import Search
from margotree.engines.exact.support_proof_log import SupportLog
from margotree.problem import Problem
from margotree.problem.problem import FloatArray
from margotree.proof.write import ProofWriter, StepFile

#: Share of a bound that is left out of a claim, so that whoever checks its proof need not round as we do.
_PROOF_SHADE = 1e-9


class Proof:
    """What an engine that writes a proof needs to know: where it goes, and how values are brought to the user's."""

    def __init__(self, writer: ProofWriter, unit: float) -> None:
        self.writer, self.unit = writer, unit
        self.steps: StepFile | None = None
        self._logs: list[ProofLogBase] = []

    def start(self, problem: Problem, weights: FloatArray) -> None:
        self.problem, self.weights = problem, weights

    def log(self) -> ProofLog:
        """A new one, for one search."""
        log = ProofLog(self.writer.steps(self.problem.n_nodes), self.problem, self.weights, self.unit)
        self._logs.append(log)
        return log

    def support_log(self) -> SupportLog:
        """The same for a search over lists of supports."""
        log = SupportLog(self.writer.steps(self.problem.n_nodes), self.problem, self.weights, self.unit)
        self._logs.append(log)
        return log

    def drop_others(self, search: Search) -> None:
        """The proof is to be that of this search."""
        for one in self._logs:
            if one is not getattr(search.brancher, "log", None):
                one.drop()

    def end(self, search: Search) -> float:
        """Close what is open; returns what the proof of this search proves, a shade less for its rounding."""
        log = getattr(search.brancher, "log", None)
        assert isinstance(log, ProofLogBase)
        self.drop_others(search)
        search.close_open()
        for one in self._logs:
            one.finish()
        assert isinstance(log.steps, StepFile)
        self.steps = log.steps
        return max(0.0, min(log.weakest, search.own_bound)) * (1.0 - _PROOF_SHADE)
