"""What is known about an answer: its value, what was proved of it, and why the work stopped."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any


class Stopped(StrEnum):
    """Why the work ended."""

    SOLVED = "solved"
    TIME = "time limit"
    NODES = "node limit"
    MEMORY = "memory limit"
    INTERRUPTED = "interrupted"
    HEURISTIC = "heuristic finished"
    STALLED = "numerical trouble"
    PRECISION = "numerical precision reached"


class Proved(StrEnum):
    """What is certain about the answer."""

    OPTIMAL = "optimal"
    WITHIN_GAP = "feasible, within the gap"
    FEASIBLE = "feasible, no bound"


def relative_gap(objective: float, bound: float) -> float:
    """How far the objective may be from the optimum, as a share of the objective; infinite if nothing is known."""
    if (math.isinf(bound) and bound < 0) or not math.isfinite(objective):
        return math.inf
    return 0.0 if bound >= objective else (objective - bound) / abs(objective)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The proof sheet of a tree.

    ``bound`` is a valid lower bound on the best possible objective (``-inf`` if none is known), ``gap`` the share
    of ``objective`` that could still be saved, ``gap_target`` the gap at which the search may call it optimal.
    ``start_objective`` is the value of the start heuristic's tree, ``f0`` that of the first incumbent of the search
    and ``f1`` the best after its root node, where the engine tells (``nan`` elsewhere).
    ``restriction`` is empty when the proof speaks about the problem of record; otherwise it names what the engine's
    own model adds to it (such as big-M constants that may cut off the optimum), and the bound is only good for that.
    """

    objective: float
    bound: float
    stopped: Stopped
    gap_target: float
    engine: str
    engine_version: str
    start_seconds: float = 0.0
    search_seconds: float = 0.0
    nodes: int = 0
    start_objective: float = math.nan
    f0: float = math.nan
    f1: float = math.nan
    restriction: str = ""
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stopped", Stopped(self.stopped))
        object.__setattr__(self, "warnings", tuple(self.warnings))
        if not math.isfinite(self.objective):
            raise ValueError(f"a certificate needs a finite objective, got {self.objective}")
        if math.isnan(self.bound) or (not self.restriction and self.bound > self.objective):
            if math.isnan(self.bound) or self.bound > self.objective + 1e-7 * abs(self.objective):
                raise ValueError(f"bound {self.bound!r} contradicts the objective {self.objective!r}")
            object.__setattr__(self, "bound", self.objective)

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.bound)

    @property
    def proved(self) -> Proved:
        if math.isinf(self.bound):
            return Proved.FEASIBLE
        if self.stopped is Stopped.SOLVED and self.gap <= self.gap_target:
            return Proved.OPTIMAL
        return Proved.WITHIN_GAP

    @property
    def seconds(self) -> float:
        return self.start_seconds + self.search_seconds

    def with_(self, **changes: Any) -> Certificate:
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; infinities and NaN become strings."""
        record = {k: _plain(v) for k, v in asdict(self).items()}
        return record | {"gap": _plain(self.gap), "proved": str(self.proved)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Certificate:
        """Read what :meth:`to_dict` wrote; derived entries are recomputed and must agree."""
        names = {f.name: f for f in fields(cls)}
        unknown = set(record) - set(names) - {"gap", "proved"}
        if unknown:
            raise ValueError(f"unknown entries in a certificate: {sorted(unknown)}")
        kwargs = {k: _from_plain(v, str(names[k].type)) for k, v in record.items() if k in names}
        try:
            certificate = cls(**kwargs)
        except TypeError as error:
            raise ValueError(f"not a certificate: {error}") from None
        derived = certificate.to_dict()
        for name in ("proved", "gap"):
            if record.get(name, derived[name]) != derived[name]:
                raise ValueError(f"the certificate claims {name} {record[name]!r}, its numbers say {derived[name]!r}")
        return certificate

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        return cls.from_dict(json.loads(text))

    def __str__(self) -> str:
        lines = [
            f"objective {self.objective:.6g}, bound {self.bound:.6g}, gap {_percent(self.gap)}",
            f"proved: {self.proved}" + (f" (gap target {_percent(self.gap_target)})" if self.nodes else ""),
            f"stopped: {self.stopped} after {self.seconds:.2f} s "
            f"(start {self.start_seconds:.2f}, search {self.search_seconds:.2f}), {self.nodes} search nodes",
            f"engine: {self.engine} {self.engine_version}",
        ]
        if not math.isnan(self.start_objective):
            lines.append(f"start heuristic: {self.start_objective:.6g}")
        if self.restriction:
            lines.append(f"the proof holds only under: {self.restriction}")
        return "\n".join(lines + [f"warning: {w}" for w in self.warnings])


def _percent(gap: float) -> str:
    return "unknown" if math.isinf(gap) else f"{100 * gap:.3g} %"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, StrEnum):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _from_plain(value: Any, kind: str) -> Any:
    if kind == "float":
        return float(value)
    if kind == "int":
        return int(value)
    return tuple(value) if isinstance(value, list) else value
