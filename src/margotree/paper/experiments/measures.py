"""The measures that a table shows of a fit: the value, its format, and its name in the paper's tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure: its suffix in the column names of the paper's tables, its title, and its value from a row.

    ``more_is_better`` determines the sign of a gain.
    """

    column: str
    title: str
    extract: Callable[[Row], Any]
    digits: int = 1
    more_is_better: bool = True

    def text(self, value: Any) -> str:
        if value is None:
            return "-"
        if isinstance(value, (tuple, list)):
            return " ".join(str(v) for v in value)
        return f"{value:.{self.digits}f}"


def _gap(row: Row) -> float | None:
    gap = row["gap"]
    return None if gap is None or not math.isfinite(gap) else 100 * gap


def _first(*names: str) -> Callable[[Row], float | None]:
    """A function that returns the first of these columns with a number (SQLite stores NaN as NULL)."""
    return lambda row: next((row[n] for n in names if row[n] is not None and not math.isnan(row[n])), None)


def _seconds(row: Row) -> float | None:
    """The seconds of start and search, without compilation."""
    parts = [row["start_seconds"], row["search_seconds"]]
    return None if None in parts else sum(parts)


MEASURES = {
    "test_acc": Measure(column="acc", title="ACC", extract=lambda row: row["test_acc"]),
    "test_bacc": Measure(column="bacc", title="BACC", extract=lambda row: row["test_bacc"]),
    "train_acc": Measure(column="acc", title="ACC", extract=lambda row: row["train_acc"]),
    "train_bacc": Measure(column="bacc", title="BACC", extract=lambda row: row["train_bacc"]),
    "time": Measure(column="time", title="Time", extract=_seconds, more_is_better=False),
    "gap": Measure(column="gap", title="Gap", extract=_gap, more_is_better=False),
    "F": Measure(column="F", title="|F|", extract=lambda row: row["n_features"], digits=0),
    "F_t": Measure(column="F_t", title="|F_t|", extract=lambda row: tuple(row["features"])),
    "sumF": Measure(column="sumF", title="sum |F_t|", extract=lambda row: sum(row["features"]), digits=0),
    # A given start is the first incumbent, even if the engine reports another one.
    "f0": Measure(column="f0", title="f0", extract=_first("start_objective", "f0"), digits=2),
    "f1": Measure(column="f1", title="f1", extract=_first("f1"), digits=2),
}
