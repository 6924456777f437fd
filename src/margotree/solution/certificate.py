"""The certificate of a tree: its objective, what is proved of it, and why the search stopped."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import Any

from margotree.small_tables import html_table


class Stopped(StrEnum):
    """Why the search stopped."""

    SOLVED = "solved"
    TIME = "time limit"
    NODES = "node limit"
    MEMORY = "memory limit"
    INTERRUPTED = "interrupted"
    HEURISTIC = "heuristic finished"
    STALLED = "numerical trouble"
    PRECISION = "numerical precision reached"
    LOST = "cluster lost"


#: What may narrow the gap of a search that stopped for this reason.
_WHAT_MAY_NARROW_THE_GAP = {
    Stopped.TIME: "a longer time limit",
    Stopped.NODES: "a larger node limit",
    Stopped.MEMORY: "more memory",
    Stopped.INTERRUPTED: "a longer search",
}

#: A tree is called optimal only if the target gap of its search was this or smaller.
OPTIMAL_GAP = 1e-4

#: From this gap on the statement says that nothing useful is proved.
USELESS_GAP = 0.5

#: The warning of a fit that was cut off: its tree does not allow conclusions about its parameters.
CUT_OFF = "the time limit cut the fit off before all splits of a first tree were trained; give it more time"

_NOT_ACCURACY = "this says nothing about accuracy"


class Proved(StrEnum):
    """What is proved about a tree; :attr:`Certificate.statement` is the sentence with the number."""

    OPTIMAL = "optimal"
    WITHIN_GAP = "a limit on better trees"
    FEASIBLE = "nothing about better trees"


#: The words for the same in files of earlier versions.
_EARLIER_WORDING = {
    Proved.OPTIMAL: "optimal",
    Proved.WITHIN_GAP: "feasible, within the gap",
    Proved.FEASIBLE: "feasible, no bound",
}


#: What may change a tree after the search.
_ROUNDING, _PRUNING = "rounding", "pruning"


def relative_gap(objective: float, bound: float) -> float:
    """Return (objective - bound) / objective; infinite without a bound."""
    if (math.isinf(bound) and bound < 0) or not math.isfinite(objective):
        return math.inf
    if bound >= objective:
        return 0.0
    return (objective - bound) / abs(objective) if objective else math.inf


def gap_statement(gap: float) -> str:
    """Return the sentence for a gap: how much smaller the training objective of any other tree can at most be.

    All texts, plots and report pages use this sentence. From :data:`USELESS_GAP` on it says that nothing useful is
    proved, because a large percentage would read like a statement about the tree. The number is rounded up, so that the
    sentence never claims more than the proof.
    """
    if math.isinf(gap):
        return "nothing is proved about better trees"
    if gap >= USELESS_GAP:
        return (
            "nothing useful is proved yet about better trees "
            f"(the gap of the training objective is {gap_text(gap)}; {_NOT_ACCURACY})"
        )
    smaller = f"training objective more than {gap_text(gap)} smaller" if gap > 0 else "smaller training objective"
    return f"no tree has a {smaller} ({_NOT_ACCURACY})"


def gap_text(gap: float) -> str:
    """Format a gap with three digits, rounded up; "unknown" without a bound."""
    return "unknown" if math.isinf(gap) else "0 %" if gap <= 0 else percent_up(gap)


def percent_up(gap: float) -> str:
    """Format a share as a percentage with three digits, rounded up, at least 0.0001 %."""
    percent = max(100 * gap, 1e-4)
    if percent >= 1000:
        return f"{math.ceil(percent):,} %" if percent < 1e9 else f"{percent:.3g} %"
    unit = 10.0 ** (math.floor(math.log10(percent)) - 2)
    # A rounding error above three digits does not raise the number by a unit.
    return f"{math.ceil(percent / unit - 1e-6) * unit:.3g} %"


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Objective, bound and gap of a tree, and why the search stopped.

    Attributes
    ----------
    objective : float
        The training objective of the tree.
    bound : float
        A valid lower bound on the objective of any feasible tree; ``-inf`` if none is known.
    stopped : Stopped
        Why the search stopped.
    gap_target : float
        The gap at which the search ends.
    engine, engine_version : str
        The engine that found the tree.
    start_seconds, search_seconds : float
        The time of the start heuristic and of the search.
    nodes : int
        The number of search nodes.
    start_objective : float
        The objective of the tree of the start heuristic; ``nan`` if there was none.
    f0, f1 : float
        The objectives of the first incumbent and of the best tree after the root node; ``nan`` if the engine does not
        report them.
    restriction : str
        Empty if the bound holds for the problem as stated. Otherwise the restrictions that the engine's own model adds
        (such as big-M constants that may cut off the optimum), under which alone the bound holds.
    eps : float
        The width of the band beside upper splits that contains no training samples; ``nan`` in files of earlier
        versions, where the ``eps`` of the tree has it.
    warnings : tuple of str
        Warnings about the fit.
    before_rounding : float
        The objective of the trained tree, if it was pruned or its numbers were rounded afterwards; ``nan`` if not.
    relabelled : float
        The share of the training samples, by weight, whose label changed by pruning or rounding; after both the sum of
        the two shares, which is an upper limit.
    changed_by : str
        "rounding", "pruning", or "pruning and rounding".
    units : str
        The units of the objective, if targets were standardised; empty for classes.
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
    eps: float = math.nan
    warnings: tuple[str, ...] = ()
    before_rounding: float = math.nan
    relabelled: float = 0.0
    changed_by: str = _ROUNDING
    units: str = ""

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
        """(objective - bound) / objective; infinite without a bound."""
        return relative_gap(self.objective, self.bound)

    @property
    def proved(self) -> Proved:
        """What is proved: optimality, a limit on better trees, or nothing."""
        if math.isinf(self.bound):
            return Proved.FEASIBLE
        return Proved.OPTIMAL if self._reached and self.gap_target <= OPTIMAL_GAP else Proved.WITHIN_GAP

    @property
    def statement(self) -> str:
        """What is proved, as one sentence with the number, for all texts, plots and report pages."""
        sentence = gap_statement(self.gap)
        if self.proved is Proved.OPTIMAL:
            sentence = f"optimal, {sentence}"
        elif self._reached:
            sentence += f"; the target gap was {_percent(self.gap_target)}"
        elif USELESS_GAP <= self.gap < math.inf and self.stopped in _WHAT_MAY_NARROW_THE_GAP:
            sentence += f"; {_WHAT_MAY_NARROW_THE_GAP[self.stopped]} may prove more"
        if self.restriction and math.isfinite(self.bound):
            sentence += ", under a restriction"
        return f"{sentence}; {self.rounding_statement}" if self.rounded else sentence

    @property
    def rounded(self) -> bool:
        """Whether the tree was pruned or its numbers were rounded after the search."""
        return not math.isnan(self.before_rounding)

    @property
    def pruned(self) -> bool:
        """Whether the tree was pruned after the search."""
        return self.rounded and self.changed_by != _ROUNDING

    def after_pruning(self, objective: float, relabelled: float) -> Certificate:
        """Return the certificate of the pruned tree, for which the bound holds, too."""
        return self._after(objective, relabelled + self.relabelled, _PRUNING)

    def after_rounding(self, objective: float, relabelled: float) -> Certificate:
        """Return the certificate of the tree with rounded numbers, for which the bound holds, too."""
        if self.pruned:
            return self._after(objective, relabelled + self.relabelled, f"{_PRUNING} and {_ROUNDING}")
        return self._after(objective, relabelled, _ROUNDING)

    def _after(self, objective: float, relabelled: float, changed_by: str) -> Certificate:
        before = self.before_rounding if self.rounded else self.objective
        return self.with_(
            objective=objective, before_rounding=before, relabelled=min(relabelled, 1.0), changed_by=changed_by
        )

    @property
    def rounding_statement(self) -> str:
        """What pruning and rounding cost, as a sentence; empty if there was neither."""
        if not self.rounded:
            return ""
        change = self.objective / self.before_rounding - 1 if self.before_rounding else 0.0
        verb = "raised" if change >= 0 else "lowered"
        at_most = "at most " if self.changed_by == f"{_PRUNING} and {_ROUNDING}" else ""
        share = f"{at_most}{100 * self.relabelled:.3g} %"
        labels = f"{share} of the training labels" if self.relabelled else "no training label"
        tree = " of an optimal tree" if self._optimal_before_rounding else ""
        return f"{self.changed_by} changed {labels} and {verb} the objective{tree} by {_percent(abs(change))}"

    @property
    def _optimal_before_rounding(self) -> bool:
        gap = relative_gap(self.before_rounding, self.bound)
        return self.stopped is Stopped.SOLVED and gap <= self.gap_target <= OPTIMAL_GAP

    @property
    def _reached(self) -> bool:
        return self.stopped is Stopped.SOLVED and self.gap <= self.gap_target

    @property
    def cut_off(self) -> bool:
        """Whether the time limit ended the fit before all splits of a first tree were trained."""
        return CUT_OFF in self.warnings

    @property
    def seconds(self) -> float:
        """The time of the start heuristic and of the search together."""
        return self.start_seconds + self.search_seconds

    def with_(self, **changes: Any) -> Certificate:
        """Return a copy with changed attributes."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinities and NaN become strings."""
        left_out = {"units": "", "changed_by": _ROUNDING}
        record = {k: _plain(v) for k, v in asdict(self).items() if left_out.get(k) != v}
        return record | {"gap": _plain(self.gap), "proved": str(self.proved)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Certificate:
        """Read the result of :meth:`to_dict`; ``gap`` and ``proved`` are recomputed and must agree."""
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
            stated = record.get(name, derived[name])
            if stated != derived[name] and not (name == "proved" and stated == certificate._earlier_wording()):
                raise ValueError(f"the certificate claims {name} {record[name]!r}, its numbers say {derived[name]!r}")
        return certificate

    def _earlier_wording(self) -> str:
        """Return ``proved`` in the words of earlier files, which called any gap within its target optimal."""
        return _EARLIER_WORDING[Proved.OPTIMAL if self._reached and math.isfinite(self.bound) else self.proved]

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read the result of :meth:`to_json`."""
        return cls.from_dict(json.loads(text))

    def summary(self) -> str:
        """Return what is proved, why the search stopped, and the warnings: the certificate without its numbers."""
        lines = [f"proved: {self.statement}", f"stopped: {self.stopped} after {self.seconds:.2f} s"]
        if self.restriction:
            lines.append(f"the proof holds only under: {self.restriction}")
        return "\n".join(lines + [f"warning: {w}" for w in self.warnings])

    def __str__(self) -> str:
        lines = [
            f"objective {self.objective:.6g}, bound {self.bound:.6g}, gap {gap_text(self.gap)}",
            f"proved: {self.statement}",
            f"stopped: {self.stopped} after {self.seconds:.2f} s "
            f"(start {self.start_seconds:.2f}, search {self.search_seconds:.2f}), {self.nodes} search nodes",
            f"engine: {self.engine} {self.engine_version}",
        ]
        if not math.isnan(self.start_objective):
            lines.append(f"start heuristic: {self.start_objective:.6g}")
        if not math.isnan(self.eps):
            lines.append(f"band beside upper splits: {self.eps:g}")
        if self.units:
            lines.append(f"units: {self.units}")
        if self.rounded:
            lines.insert(1, f"objective before {self.changed_by} {self.before_rounding:.6g}")
        if self.restriction:
            lines.append(f"the proof holds only under: {self.restriction}")
        return "\n".join(lines + [f"warning: {w}" for w in self.warnings])

    def _repr_html_(self) -> str:
        """Return the certificate as an HTML table, for notebooks."""
        lines = str(self).splitlines()
        rows = [line.split(": ", 1) for line in lines[1:] if ": " in line]
        return html_table(("certificate", lines[0]), rows)


def _percent(gap: float) -> str:
    return f"{100 * gap:.3g} %"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, StrEnum):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _from_plain(value: Any, kind: str) -> Any:
    """Return the value of an entry whose type is named ``kind``; ValueError if the value has another type."""
    if kind == "float" and (type(value) in (int, float) or value in ("inf", "-inf", "nan")):
        return float(value)
    if kind.startswith("tuple") and isinstance(value, list) and all(isinstance(text, str) for text in value):
        return tuple(value)
    if (kind == "int" and type(value) is int) or (kind in ("str", "Stopped") and isinstance(value, str)):
        return value
    raise ValueError(f"an entry of a certificate cannot be {value!r:.80}")
