"""The frontier of a cross-validation: what a smaller tree costs in score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True)
class FrontierPoint:
    """A setting with its cross-validated score and the size of its trees.

    Attributes
    ----------
    params : dict
        The hyperparameters.
    score, standard_error : float
        The mean score and its standard error.  The score of a setting that has no score on some folds is that of the
        chosen setting plus the mean difference on the common folds.
    numbers_to_read : float
        The mean of :attr:`margotree.Tree.numbers_to_read` of its trees on the folds.
    folds : int
        The number of folds on which it has a score.
    efficient : bool
        Whether no other setting has at least this score with at most as many numbers to read.
    chosen : bool
        Whether it is the chosen setting.
    """

    params: Mapping[str, Any]
    score: float
    standard_error: float
    numbers_to_read: float
    folds: int
    efficient: bool
    chosen: bool


class Frontier(Sequence[FrontierPoint]):
    """The settings of a cross-validation that have a score, by numbers to read; prints as a table.

    The table contains the efficient settings and the chosen one.
    """

    def __init__(self, points: Sequence[FrontierPoint]) -> None:
        self.points = sorted(points, key=lambda point: (point.numbers_to_read, -point.score))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def __iter__(self) -> Iterator[FrontierPoint]:
        return iter(self.points)

    def shown(self) -> list[FrontierPoint]:
        """The efficient settings and the chosen one, fewest numbers first."""
        return [point for point in self.points if point.efficient or point.chosen]

    def __str__(self) -> str:
        lines = ["  numbers   score  error  setting"]
        for point in self.shown():
            setting = ", ".join(f"{name} {value}" for name, value in point.params.items())
            error = f"{point.standard_error:6.4f}" if math.isfinite(point.standard_error) else "      "
            mark = "*" if point.chosen else " "
            lines.append(f"{mark} {point.numbers_to_read:7.1f}  {point.score:6.4f} {error}  {setting}")
        return "\n".join(lines)

    __repr__ = __str__


def make_frontier(
    settings: Sequence[Mapping[str, Any]],
    scores: ArrayLike,
    errors: ArrayLike,
    numbers: ArrayLike,
    folds: ArrayLike,
    chosen: int | None,
) -> Frontier:
    """Make a frontier from columns with one entry per setting; settings with a NaN are left out."""
    scores, errors, numbers, folds = np.asarray(scores), np.asarray(errors), np.asarray(numbers), np.asarray(folds)
    known = [k for k in range(len(settings)) if not math.isnan(scores[k]) and not math.isnan(numbers[k])]
    best, efficient = -math.inf, set()
    for k in sorted(known, key=lambda k: (numbers[k], -scores[k], k)):
        if scores[k] > best:
            best = scores[k]
            efficient.add(k)
    return Frontier(
        [
            FrontierPoint(
                params=settings[k], score=float(scores[k]), standard_error=float(errors[k]),
                numbers_to_read=float(numbers[k]), folds=int(folds[k]), efficient=k in efficient, chosen=k == chosen,
            )
            for k in known
        ]
    )  # fmt: skip
