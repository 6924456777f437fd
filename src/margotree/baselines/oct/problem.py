"""The data of an OCT-1 or OCT-H problem, immutable and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.baselines.oct.merged_samples import IndexArray, Points, RankedSamples
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
    has ``|w.x + b| >= 1`` and goes right where it is positive.  The norm of a split is bounded:

    - a split by one feature has ``|w_j| <= 2 / step_j`` with the smallest step between two values of the feature: any
      threshold between two values is allowed, as with the per-feature epsilon of Bertsimas and Dunn;
    - a split by several features (OCT-H only) has ``|w|_1 <= 2 / mu``: for ``|a|_1 <= 1``, right ``a.x >= b`` and left
      ``a.x <= b - mu``, as in the paper of Bertsimas and Dunn.

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
    ranked_samples: RankedSamples

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
            alpha=_checked_number("alpha", alpha, least=0.0),
            min_leaf=_checked_leaf_size(min_leaf, weight),
            mu=None if mu is None else _checked_number("mu", mu, above=0.0),
            ranked_samples=RankedSamples(X, codes, classes, weight),
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
        """Half the width of the band around a split without training samples, in the units of ``h``."""
        return 1.0

    @property
    def min_leaf_tolerant(self) -> float:
        """``min_leaf`` less the rounding of a sum of weights; engines compare sizes of leaves with it."""
        return self.min_leaf * (1.0 - 1e-9)

    @cached_property
    def baseline_error(self) -> float:
        """The misclassified weight of the best tree without splits."""
        per_class = np.bincount(self.y, weights=self.weight, minlength=self.n_classes)
        return float(per_class.sum() - per_class.max())

    @property
    def min_step(self) -> FloatArray:
        """The smallest step between two values of each feature."""
        return np.array([self.ranked_samples.step(j) for j in range(self.n_features)])

    @property
    def points(self) -> Points:
        """The distinct samples; merging many samples takes long, see :meth:`merge_samples`."""
        return self.ranked_samples.points

    def merge_samples(self, control: RunControl) -> bool:
        """Merge equal samples into points; False if a limit of ``control`` was reached first."""
        return self.ranked_samples.merge(lambda: control.over)

    @property
    def trivial_bound(self) -> float:
        """A lower bound on the objective: the error on equal samples with different labels."""
        return self.points.irreducible_error / self.baseline_error

    def split_cost(self, w: FloatArray) -> float:
        """The penalty of one split: alpha, in OCT-H times the number of its features."""
        used = int(np.count_nonzero(w))
        return self.alpha * (min(used, 1) if self.mu is None else used)

    def max_l1_norm(self, w: FloatArray) -> float:
        """The largest allowed ``|w|_1`` of a split with the features of ``w``."""
        used = np.flatnonzero(w)
        if len(used) == 1:
            return 2.0 / self.ranked_samples.step(int(used[0]))
        return 0.0 if self.mu is None else 2.0 / self.mu

    def evaluate(self, splits: Splits) -> OctEvaluation:
        """Value and feasibility of a tree, see :func:`margotree.baselines.oct.value.evaluate`."""
        return evaluate(self, splits)


def restate(terms: Mapping[str, Any], depth: int, X: FloatArray, code: IndexArray, weight: FloatArray) -> OctProblem:
    """The problem on which a saved tree was trained, from the terms in its file and the same samples."""
    class_weight = np.asarray(terms["class_weight"], dtype=np.float64)
    return OctProblem.make(
        X,
        code,
        depth=depth,
        alpha=terms["alpha"],
        min_leaf=terms["min_leaf"],
        mu=terms["mu"],
        n_classes=len(class_weight),
        weight=weight * class_weight[code],
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


def _checked_leaf_size(value: Any, weight: FloatArray) -> float:
    size = _checked_number("min_leaf", value, least=0.0)
    if size > weight.sum():
        raise ValueError(f"a leaf cannot hold min_leaf = {size:g} samples, there are {weight.sum():g} in all")
    return size


def _checked_number(name: str, value: Any, *, least: float = -np.inf, above: float = -np.inf) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number >= least and number > above):
        sign = f">= {least:g}" if np.isfinite(least) else f"> {above:g}"
        raise ValueError(f"{name} must be a finite number {sign}, got {value!r}")
    return number
