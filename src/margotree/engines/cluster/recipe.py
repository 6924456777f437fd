"""How a search is sent to another process: the problem and the way it is searched, without clocks or locks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margotree.engines.bnb.margot import MargotBrancher, Tactics
from margotree.engines.bnb.priced import PricedBrancher
from margotree.engines.bnb.search import Brancher
from margotree.engines.bnb.sparse import SparseBrancher, SparseTactics
from margotree.engines.watch import Limits, Watch
from margotree.problem import Problem

OurBrancher = MargotBrancher | PricedBrancher | SparseBrancher


@dataclass(frozen=True, kw_only=True, eq=False)
class Recipe:
    """All that another process needs to make the same brancher: records of one mean the same to the other.

    ``limit`` is the value of the tree known when the search began; lists of supports are made with it.
    """

    way: str
    problem: Problem
    tactics: Tactics | SparseTactics
    limit: float
    gap: float

    @classmethod
    def of(cls, brancher: Brancher, gap: float) -> Recipe:
        """The recipe of a brancher; those that write a proof have none, as a proof is written in one place."""
        if isinstance(brancher, SparseBrancher):
            return cls(
                way="supports", problem=brancher.problem, tactics=brancher.tactics, limit=brancher.limit, gap=gap
            )
        own = brancher.early if isinstance(brancher, PricedBrancher) else brancher
        if not isinstance(own, MargotBrancher) or own.log is not None:
            raise TypeError(f"{type(brancher).__name__} cannot be sent to other processes")
        way = "prices" if own is not brancher else "samples"
        return cls(way=way, problem=brancher.problem, tactics=own.tactics, limit=own.limit, gap=gap)

    def brancher(self) -> OurBrancher:
        """The brancher, in whatever process."""
        for array in vars(self.problem).values():
            if isinstance(array, np.ndarray):
                array.setflags(write=False)  # which they forget on the way
        watch = Watch(Limits(gap=self.gap))
        if isinstance(self.tactics, SparseTactics):
            return SparseBrancher(self.problem, self.limit, self.tactics, watch)
        kind = PricedBrancher if self.way == "prices" else MargotBrancher
        return kind(self.problem, self.tactics, limit=self.limit, watch=watch)


def set_watch(brancher: OurBrancher, watch: Watch) -> None:
    """Have the trees of a task made exact only while its time lasts."""
    parts = (brancher.early, brancher.late) if isinstance(brancher, PricedBrancher) else (brancher,)
    for part in parts:
        part.watch = watch
