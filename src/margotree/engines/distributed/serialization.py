"""The problem and its search as data for another process, without clocks or locks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.engines.exact.penalty_branching import PenaltyBrancher
from margotree.engines.exact.proof_log import ProofLog
from margotree.engines.exact.proof_log_base import ProofLogBase
from margotree.engines.exact.sample_branching import MargotBrancher, Tactics
from margotree.engines.exact.search import Brancher
from margotree.engines.exact.support_branching import SupportBrancher, SupportTactics
from margotree.engines.exact.support_proof_log import SupportLog
from margotree.engines.exact.support_proof_search import SupportProofBrancher
from margotree.engines.run_control import Limits, RunControl
from margotree.problem import Problem
from margotree.problem.problem import FloatArray
from margotree.proof.write import REMOTE_BASE, Steps

OurBrancher = MargotBrancher | PenaltyBrancher | SupportBrancher


@dataclass(frozen=True, kw_only=True, eq=False)
class ProofTerms:
    """What a proof needs beyond the problem: the weights of merged samples, and the unit of its values."""

    weights: FloatArray
    unit: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchSpec:
    """The data from which another process makes the same brancher, so that its records have the same meaning.

    Parameters
    ----------
    strategy
        The kind of brancher: "samples", "prices" or "supports".
    problem, tactics
        The problem and the settings of dives.
    limit
        The value of the tree known when the search began; lists of supports depend on it.
    gap
        The target gap.
    terms
        The terms of the proof, if one is written.
    """

    strategy: str
    problem: Problem
    tactics: Tactics | SupportTactics
    limit: float
    gap: float
    terms: ProofTerms | None = None

    @classmethod
    def of(cls, brancher: Brancher, gap: float) -> SearchSpec:
        """The data of a brancher."""
        own = brancher.first_stage if isinstance(brancher, PenaltyBrancher) else brancher
        if not isinstance(own, MargotBrancher | SupportBrancher):
            raise TypeError(f"{type(brancher).__name__} cannot be sent to other processes")
        strategy = "supports" if isinstance(own, SupportBrancher) else "prices" if own is not brancher else "samples"
        terms = None if own.log is None else ProofTerms(weights=own.log.weights, unit=own.log.unit)
        return cls(strategy=strategy, problem=own.problem, tactics=own.tactics, limit=own.limit, gap=gap, terms=terms)

    def log(self) -> ProofLogBase | None:
        """A new log for the part of one task, if a proof is written."""
        if self.terms is None:
            return None
        kind = SupportLog if self.strategy == "supports" else ProofLog
        steps = Steps(self.problem.n_nodes)
        return kind(steps, self.problem, self.terms.weights, self.terms.unit, first=REMOTE_BASE)

    def brancher(self) -> OurBrancher:
        """A brancher made from the data."""
        for array in vars(self.problem).values():
            if isinstance(array, np.ndarray):
                array.setflags(write=False)  # the flag is not part of the data
        control = RunControl(Limits(gap=self.gap))
        log = self.log()
        if isinstance(self.tactics, SupportTactics):
            if isinstance(log, SupportLog):
                return SupportProofBrancher(self.problem, self.limit, self.tactics, control, log)
            return SupportBrancher(self.problem, self.limit, self.tactics, control)
        assert log is None or isinstance(log, ProofLog)
        kind = PenaltyBrancher if self.strategy == "prices" else MargotBrancher
        return kind(self.problem, self.tactics, limit=self.limit, control=control, log=log)


def set_control(brancher: OurBrancher, control: RunControl) -> None:
    """Let the trees of a task be made exact only while its time lasts."""
    for part in _parts(brancher):
        part.control = control


def set_log(brancher: OurBrancher, log: ProofLogBase | None) -> None:
    """Let a task be written to this log."""
    for part in (brancher, *_parts(brancher)):
        if log is not None:
            part.log = log


def _parts(brancher: OurBrancher) -> tuple[MargotBrancher | SupportBrancher, ...]:
    """The branchers that a brancher consists of."""
    return (brancher.first_stage, brancher.second_stage) if isinstance(brancher, PenaltyBrancher) else (brancher,)
