"""The cells of a table: our number, the paper's, and the difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margotree.paper.experiments.measures import Measure
from margotree.paper.experiments.text_table import UNPROVED, Column


class Cell:
    """Our number, the paper's, and the difference."""

    def __init__(self, measure: Measure, ours: Any, theirs: Any, *, proved: bool = True) -> None:
        self.measure, self.ours, self.theirs, self.proved = measure, ours, theirs, proved

    @classmethod
    def from_row(cls, measure: Measure, row: dict[str, Any] | None, theirs: Any, *, mark: bool = True) -> Cell:
        if row is None:
            return cls(measure, None, theirs)
        return cls(measure, measure.extract(row), theirs, proved=not mark or row["proved"] == "optimal")

    @property
    def difference(self) -> Any:
        if isinstance(self.ours, tuple) or None in (self.ours, self.theirs):
            return None
        # The difference of the rounded numbers, so that it is 0 for equal ones.
        return round(self.ours, self.measure.digits) - round(self.theirs, self.measure.digits)

    def texts(self) -> list[str]:
        """The three strings of the cell."""
        mark = "" if self.proved or self.ours is None else UNPROVED
        difference = self.difference
        if isinstance(self.ours, tuple) and self.theirs is not None:
            difference_text = "same" if tuple(self.ours) == tuple(self.theirs) else "other"
        else:
            digits = self.measure.digits
            difference_text = "-" if difference is None else f"{round(difference, digits) + 0.0:+.{digits}f}"
        return [mark + self.measure.text(self.ours), self.measure.text(self.theirs), difference_text]


def mean(cells: Sequence[Cell]) -> Cell:
    """The means over the sets that have both numbers."""
    both = [c for c in cells if c.difference is not None]
    if not both:
        return Cell(cells[0].measure, None, None)
    ours, theirs = (sum(values) / len(both) for values in zip(*((c.ours, c.theirs) for c in both), strict=True))
    return Cell(cells[0].measure, ours, theirs, proved=all(c.proved for c in both))


def cell_columns(group: str, key: str) -> list[Column]:
    """The three columns of a cell: ours, paper, difference."""
    return [Column(key=f"{key}_{part}", head=part, group=group) for part in ("ours", "paper", "diff")]
