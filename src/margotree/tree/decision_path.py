"""The path of one sample through a tree: a list of steps that is printed as sentences, or as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from margotree.small_tables import html_lines, html_table, text_table

#: The beginning of the sentence about the prediction.
_RESULT = "the prediction is "
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
    leaf that the sample reaches and its prediction. ``reasons`` has a sentence for each split that decides, and
    ``result`` is the sentence about the prediction.

    It prints as :attr:`sentence`, with a line for each reason, or with ``verbose`` as a table of all steps.
    """

    def __init__(
        self,
        steps: Iterable[Step],
        *,
        rules: Iterable[str],
        leaf: int,
        label: object,
        reasons: Iterable[str] = (),
        result: str = "",
        verbose: bool = False,
    ) -> None:
        super().__init__(steps)
        self.rules, self.leaf, self.label = tuple(rules), leaf, label
        self.reasons, self.result, self.verbose = tuple(reasons), result or f"{_RESULT}{label}", verbose

    @property
    def sentence(self) -> str:
        """The reasons and the prediction in one sentence; splits on which the prediction cannot depend are left out."""
        return " ".join(self._lines())

    def __str__(self) -> str:
        if self.verbose:
            return f"{text_table(_COLUMN_TITLES, self._rows())}\n{self._result_line()}"
        return "\n".join(self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.verbose:
            return html_table(_COLUMN_TITLES, self._rows(), self._result_line())
        return html_lines(self._lines())

    def _lines(self) -> list[str]:
        if not self.reasons:
            return [self.result]
        reasons = [f"{'and ' * (k > 0)}{reason}," for k, reason in enumerate(self.reasons)]
        return [*reasons, f"so {self.result}"]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (f"[{step.node}]", rule or "does not split", f"{step.h:+.3g}", _side_text(step, rule))
            for step, rule in zip(self, self.rules, strict=True)
        ]

    def _result_line(self) -> str:
        return f"=> {self.result.removeprefix(_RESULT)}   (leaf {self.leaf})"


def _side_text(step: Step, rule: str) -> str:
    why = "" if not rule else ": the rule holds" if step.right else ": the rule does not hold"
    return f"{'right' if step.right else 'left'}{why}"
