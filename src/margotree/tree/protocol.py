"""The parts of a tree that the other modules of this package use.

:class:`~margotree.tree.Tree` imports these modules, so that they cannot import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem import Splits, TrainingProblem
from margotree.solution import Certificate
from margotree.tree.decision_values import Rows
from margotree.tree.rules import RoundedRule
from margotree.tree.scaling import FloatArray, Scaling


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """The rule of one node: a sample goes right if ``weights . x >= threshold``, else left."""

    node: int
    weights: FloatArray
    threshold: float


class ProbabilityRule(Protocol):
    """A rule that gives class probabilities; :mod:`margotree.tree.probabilities` has them."""

    def record(self) -> dict[str, Any]: ...


class SplitTree(Protocol):
    """What trees of classes and trees of numbers have in common; see :class:`~margotree.tree.base.HyperplaneTree`."""

    @property
    def splits(self) -> Splits: ...

    @property
    def hyperplanes(self) -> Splits: ...

    @property
    def scaling(self) -> Scaling: ...

    @property
    def counts(self) -> FloatArray: ...

    @property
    def feature_names(self) -> tuple[str, ...] | None: ...

    @property
    def eps(self) -> float: ...

    @property
    def certificate(self) -> Certificate | None: ...

    @property
    def terms(self) -> Mapping[str, Any]: ...

    @property
    def rules(self) -> Mapping[int, RoundedRule]: ...

    @property
    def leaf_outcome(self) -> NDArray[np.int64]: ...

    @property
    def n_outcomes(self) -> int: ...

    @property
    def depth(self) -> int: ...

    @property
    def levels(self) -> int: ...

    @property
    def n_nodes(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def features(self) -> tuple[str, ...]: ...

    def split(self, t: int, *, units: str = ...) -> Split: ...

    def tie(self, t: int) -> float: ...

    def empty_range(self, t: int) -> tuple[float, float]: ...

    def side(self, scaled: FloatArray | Rows, t: int) -> tuple[FloatArray, NDArray[np.bool_]]: ...

    def scaled(self, X: ArrayLike) -> FloatArray: ...

    def selected(self, threshold: float = ...) -> NDArray[np.bool_]: ...

    def given(self, X: ArrayLike) -> FloatArray: ...

    def apply(self, X: ArrayLike) -> NDArray[np.int64]: ...

    def restated(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = ...) -> TrainingProblem: ...


class TreeLike(SplitTree, Protocol):
    """A fitted tree of classes; :class:`~margotree.tree.Tree` explains its parts."""

    @property
    def classes(self) -> NDArray[Any]: ...

    @property
    def leaf_class(self) -> NDArray[np.int64]: ...

    @property
    def probabilities(self) -> ProbabilityRule: ...

    def target_classes(self, t: int) -> tuple[list[int], list[int]] | None: ...

    def labels_from(self, v: int, X: ArrayLike) -> NDArray[np.int64]: ...
