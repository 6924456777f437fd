"""The path of one sample through a tree: a list of steps that is printed as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from margotree.small_tables import html_table, text_table

_COLUMN_TITLES = ("node", "rule", "h, in margins", "goes")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One node on the path of a sample.

    Attributes
    ----------
    node : int
        The number of the node.
    h : float
        The signed distance of the sample from the hyperplane, in margins.
    right : bool
        Whether the sample goes right.
    """

    node: int
    h: float
    right: bool


class Path(list[Step]):
    """The steps of one sample.

    ``rules[k]`` is the rule of the k-th step as text, empty if the node does not split. ``leaf`` and ``label`` are the
    leaf that the sample reaches and its prediction; ``result`` is a line about the prediction.
    """

    def __init__(
        self, steps: Iterable[Step], *, rules: Iterable[str], leaf: int, label: object, result: str = ""
    ) -> None:
        super().__init__(steps)
        self._result = result or f"=> {label}   (leaf {leaf})"
        self.rules, self.leaf, self.label = tuple(rules), leaf, label

    def __str__(self) -> str:
        if not self:
            return self._result
        return f"{text_table(_COLUMN_TITLES, self._rows())}\n{self._result}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(_COLUMN_TITLES, self._rows(), self._result)

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (f"[{step.node}]", rule or "does not split", f"{step.h:+.3g}", _side_text(step, rule))
            for step, rule in zip(self, self.rules, strict=True)
        ]


def _side_text(step: Step, rule: str) -> str:
    why = "" if not rule else ": the rule holds" if step.right else ": the rule does not hold"
    return f"{'right' if step.right else 'left'}{why}"
