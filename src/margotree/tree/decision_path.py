"""The way of one sample through a tree, as a list of steps that prints itself as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from margotree.small_tables import html_table, text_table

_HEADS = ("node", "rule", "h, in margins", "goes")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One node on a sample's way down: ``h`` is its signed distance from the hyperplane, in margins."""

    node: int
    h: float
    right: bool


class Path(list[Step]):
    """The steps of one sample; ``rules[k]`` is the rule of the k-th in words (empty if it does not split), ``leaf`` and
    ``label`` are where it ends."""

    def __init__(self, steps: Iterable[Step], *, rules: Iterable[str], leaf: int, label: object) -> None:
        super().__init__(steps)
        self.rules, self.leaf, self.label = tuple(rules), leaf, label

    def __str__(self) -> str:
        return f"{text_table(_HEADS, self._rows())}\n{self._end()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(_HEADS, self._rows(), self._end())

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (f"[{step.node}]", rule or "does not split", f"{step.h:+.3g}", _goes(step, rule))
            for step, rule in zip(self, self.rules, strict=True)
        ]

    def _end(self) -> str:
        return f"=> {self.label}   (leaf {self.leaf})"


def _goes(step: Step, rule: str) -> str:
    why = "" if not rule else ": the rule holds" if step.right else ": the rule does not hold"
    return f"{'right' if step.right else 'left'}{why}"
