"""The frozen statement of an OCT-1 or OCT-H problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.baselines.oct.merged_samples import IndexArray, Ladders, Points
from margotree.baselines.oct.value import OctEvaluation, evaluate
from margotree.engines.run_control import RunControl
from margotree.problem import Splits, check_depth, topology
from margotree.problem.problem import FloatArray, read_only_samples


@dataclass(frozen=True, kw_only=True, eq=False)
class OctProblem:
    """An optimal classification tree in the sense of Bertsimas and Dunn, any number of classes.

    Minimise over the splits of a tree of at most the given depth

        (weight of the misclassified samples) / (the same for the best tree without splits)
        + alpha * (number of splits; OCT-H: number of features used, summed over the splits)

    where every leaf that holds samples holds at least ``min_leaf`` of them (by ``weight``) and predicts its heaviest
    class.  A branch node with ``w = 0`` does not split.  Splits are in margin units: every sample that reaches a split
    has ``|w.x + b| >= 1``, right where it is positive.  What limits them is their steepness:

    - a split by one feature may be as steep as that feature's smallest step, ``|w_j| <= 2 / gap_j``: any threshold
      between two values is allowed, which is what the per-feature epsilon of the source achieves;
    - a split by several (OCT-H only) has ``|w|_1 <= 2 / mu``: for ``|a|_1 <= 1``, right ``a.x >= b`` and left
      ``a.x <= b - mu``, as in the source.

    ``mu`` is None for OCT-1.  Build one with :meth:`OctProblem.make`.
    """

    X: FloatArray
    y: IndexArray
    n_classes: int
    weight: FloatArray
    depth: int
    alpha: float
    min_leaf: float
    mu: float | None
    ladders: Ladders

    @classmethod
    def make(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        depth: int,
        alpha: float = 0.0,
        min_leaf: float = 1.0,
        mu: float | None = None,
        n_classes: int | None = None,
        weight: ArrayLike | None = None,
    ) -> OctProblem:
        """A checked problem; ``y`` holds class numbers 0, 1, ..."""
        X = read_only_samples(X)
        codes = np.array(y).ravel()
        weight = np.ones(len(codes)) if weight is None else np.array(weight, dtype=np.float64).ravel()
        _check_samples(X, codes, weight)
        codes = codes.astype(np.int64)
        classes = int(codes.max()) + 1 if n_classes is None else int(n_classes)
        if len(np.unique(codes)) < 2 or codes.max() >= classes:
            raise ValueError(f"y must hold at least two of the classes 0 to {classes - 1}")
        for array in (codes, weight):
            array.setflags(write=False)
        return cls(
            X=X,
            y=codes,
            n_classes=classes,
            weight=weight,
            depth=check_depth(depth),
            alpha=_number("alpha", alpha, least=0.0),
            min_leaf=_leaf_size(min_leaf, weight),
            mu=None if mu is None else _number("mu", mu, above=0.0),
            ladders=Ladders(X, codes, classes, weight),
        )

    @property
    def model(self) -> str:
        return "oct_1" if self.mu is None else "oct_h"

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_nodes(self) -> int:
        return topology.n_nodes(self.depth)

    @property
    def eps(self) -> float:
        """Half the band beside a split that no training sample lies in, in the units of ``h``."""
        return 1.0

    @property
    def enough(self) -> float:
        """``min_leaf``, less what rounding may take from a sum of weights; for engines to compare with."""
        return self.min_leaf * (1.0 - 1e-9)

    @cached_property
    def baseline(self) -> float:
        """Weight misclassified by the heaviest class alone."""
        per_class = np.bincount(self.y, weights=self.weight, minlength=self.n_classes)
        return float(per_class.sum() - per_class.max())

    @property
    def gap(self) -> FloatArray:
        """The smallest step between two values of each feature."""
        return np.array([self.ladders.step(j) for j in range(self.n_features)])

    @property
    def points(self) -> Points:
        """The different samples; sorting them out takes a while where they are many, see :meth:`read`."""
        return self.ladders.points

    def read(self, control: RunControl) -> bool:
        """Sort the samples into points; False if ``control`` ran out before that was done."""
        return self.ladders.read(lambda: control.over)

    @property
    def floor(self) -> float:
        """What every tree is worth at least: equal samples with different labels."""
        return self.points.irreducible / self.baseline

    def price(self, w: FloatArray) -> float:
        """What one split costs: alpha, times its features where they are counted."""
        used = int(np.count_nonzero(w))
        return self.alpha * (min(used, 1) if self.mu is None else used)

    def steepest(self, w: FloatArray) -> float:
        """The largest ``|w|_1`` allowed to a split with these features."""
        used = np.flatnonzero(w)
        if len(used) == 1:
            return 2.0 / self.ladders.step(int(used[0]))
        return 0.0 if self.mu is None else 2.0 / self.mu

    def evaluate(self, splits: Splits) -> OctEvaluation:
        """Value and feasibility of a tree by the plain function of :mod:`margotree.baselines.oct.value`."""
        return evaluate(self, splits)


def restate(terms: Mapping[str, Any], depth: int, X: FloatArray, code: IndexArray, weight: FloatArray) -> OctProblem:
    """The problem a saved tree was trained on, from its terms and the same samples."""
    price = np.asarray(terms["class_weight"], dtype=np.float64)
    return OctProblem.make(
        X,
        code,
        depth=depth,
        alpha=terms["alpha"],
        min_leaf=terms["min_leaf"],
        mu=terms["mu"],
        n_classes=len(price),
        weight=weight * price[code],
    )


def _check_samples(X: FloatArray, y: NDArray[Any], weight: FloatArray) -> None:
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must hold at least one sample and one feature, got shape {X.shape}")
    if not len(X) == len(y) == len(weight):
        raise ValueError(f"X, y and weight must be of one length, got {len(X)}, {len(y)} and {len(weight)}")
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(weight))):
        raise ValueError("X and weight must not contain NaN or infinity")
    if y.dtype.kind not in "iu" or np.any(y < 0):
        raise ValueError("y must hold class numbers: 0, 1, ...")
    if np.any(weight <= 0):
        raise ValueError("weight must be positive")


def _leaf_size(value: Any, weight: FloatArray) -> float:
    size = _number("min_leaf", value, least=0.0)
    if size > weight.sum():
        raise ValueError(f"a leaf cannot hold min_leaf = {size:g} samples, there are {weight.sum():g} in all")
    return size


def _number(name: str, value: Any, *, least: float = -np.inf, above: float = -np.inf) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number >= least and number > above):
        sign = f">= {least:g}" if np.isfinite(least) else f"> {above:g}"
        raise ValueError(f"{name} must be a finite number {sign}, got {value!r}")
    return number
