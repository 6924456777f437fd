"""Class probabilities: the shares of leaves, shares that are shrunk along the path, and a softmax of distances.

A tree has one of three rules, which its file contains:

- :class:`LeafShares`: the class shares of the training samples in the leaf; trees of earlier versions have this rule;
- :class:`SmoothedShares`: each node's shares, shrunk towards those of its parent;
- :class:`MarginProbabilities`: a softmax of the distances from the labels
  (:func:`margotree.tree.score.label_distances`), for two classes monotone in ``decision_function``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.tree import schema
from margotree.tree.decision_values import LARGEST, Rows
from margotree.tree.protocol import TreeLike
from margotree.tree.scaling import FloatArray
from margotree.tree.score import NO_OTHER_LABEL, label_distances

#: By how much the log odds of the label exceed those of all other classes at least, before class weights are removed.
LABEL_LEAD = 1e-9

#: The number of samples with the parent's shares that are added to every node, if all weights are 1.
STRENGTH = 10.0


class Probabilities(ABC):
    """A rule that gives class probabilities."""

    #: The name of the rule, as in the parameter ``proba`` of the classifiers.
    kind: ClassVar[str]

    @abstractmethod
    def of(self, tree: TreeLike, rows: Rows, leaf: NDArray[np.int64]) -> FloatArray:
        """Return the probabilities of samples whose leaves are known, one column per class."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Return JSON values from which :func:`from_record` makes the same rule."""

    def check(self, n_classes: int) -> None:  # noqa: B027
        """Raise ValueError if the numbers of the rule are not allowed, or not for this number of classes."""


class SharesOfLeaves(Probabilities):
    """A rule that gives all samples of a leaf the same probabilities."""

    @abstractmethod
    def table(self, tree: TreeLike) -> FloatArray:
        """Return the probabilities of each leaf, one row per leaf from left to right."""

    def of(self, tree: TreeLike, rows: Rows, leaf: NDArray[np.int64]) -> FloatArray:
        return self.table(tree)[leaf - tree.n_nodes]


@dataclass(frozen=True)
class LeafShares(SharesOfLeaves):
    """The share of each class among the training samples of the leaf, by weight.

    A leaf without training samples has the shares of the nearest node above it with training samples.
    """

    kind: ClassVar[str] = "leaf"

    def table(self, tree: TreeLike) -> FloatArray:
        counts = tree.counts.copy()
        for v in range(1, len(counts)):
            if not counts[v].any():
                counts[v] = counts[topology.parent(v)]
        total = counts.sum(axis=1, keepdims=True)
        even = np.full_like(counts, 1 / len(tree.classes))
        return np.divide(counts, total, out=even, where=total > 0)[tree.n_nodes :]

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True)
class SmoothedShares(SharesOfLeaves):
    """Shares that are shrunk along the path: each node has ``strength`` more samples with the shares of its parent.

    The root has one more sample of each class.
    """

    strength: float = STRENGTH
    kind: ClassVar[str] = "smoothed"

    def table(self, tree: TreeLike) -> FloatArray:
        counts, total = tree.counts, tree.counts.sum(axis=1)
        shares = np.empty_like(counts)
        shares[0] = (counts[0] + self.strength / STRENGTH) / (total[0] + len(tree.classes) * self.strength / STRENGTH)
        for v in range(1, len(counts)):
            shares[v] = (counts[v] + self.strength * shares[topology.parent(v)]) / (total[v] + self.strength)
        return shares[tree.n_nodes :]

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind, "strength": self.strength}

    def check(self, n_classes: int) -> None:
        if not self.strength > 0:
            raise ValueError(f"probabilities: strength must be positive, got {self.strength!r}")


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginProbabilities(Probabilities):
    """A softmax of the distances from the labels.

    The log odds are ``intercept + distances @ slope``, where distances are at most ``farthest``. Those of the sample's
    label are raised by its ``step``, and further where they are not the largest, so that the label is the most probable
    class. The result is mixed with the uniform distribution, which has the share ``floor``. Up to here, classes count
    with their ``class_weight``; the probabilities are divided by it at the end, so that they estimate the shares in the
    data. With equal class weights the predicted label has the largest probability; with others it has the largest
    product of probability and class weight.

    Attributes
    ----------
    intercept : array (classes,)
    slope : array (classes, classes)
        Row ``j`` has the changes of the log odds per margin of distance from label ``j``.
    step : array (classes,)
        What the log odds of each label gain, at least 0; 0 in files that do not have it.
    farthest : float
        The largest distance that counts, and the distance from a label that no leaf has.
    floor : float
        The share of the uniform distribution, more than 0 and at most 1.
    class_weight : array (classes,)
        The class weights of the training problem.
    """

    intercept: FloatArray
    slope: FloatArray
    step: FloatArray
    farthest: float
    floor: float
    class_weight: FloatArray
    kind: ClassVar[str] = "margin"

    def of(self, tree: TreeLike, rows: Rows, leaf: NDArray[np.int64]) -> FloatArray:
        code = tree.leaf_class[leaf - tree.n_nodes]
        return self.from_distances(bounded_distances(label_distances(tree, rows, code), self.farthest), code)

    def from_distances(self, distances: FloatArray, code: NDArray[np.int64]) -> FloatArray:
        """Return the probabilities of samples with these distances, at most ``farthest``, and these labels."""
        with np.errstate(over="ignore"):
            log_odds = self.intercept + distances @ self.slope
        at = np.arange(len(code))
        own = log_odds[at, code] + self.step[code]
        log_odds[at, code] = -np.inf
        log_odds[at, code] = np.maximum(own, log_odds.max(axis=1) + LABEL_LEAD)
        shares = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares = ((1.0 - self.floor) * shares + self.floor / len(self.intercept)) / self.class_weight
        return shares / shares.sum(axis=1, keepdims=True)

    def record(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "intercept": self.intercept.tolist(),
            "slope": self.slope.tolist(),
            "step": self.step.tolist(),
            "farthest": self.farthest,
            "floor": self.floor,
            "class_weight": self.class_weight.tolist(),
        }

    def check(self, n_classes: int) -> None:
        shapes = (self.intercept.shape, self.slope.shape, self.step.shape, self.class_weight.shape)
        if shapes != ((n_classes,), (n_classes, n_classes), (n_classes,), (n_classes,)):
            raise ValueError(f"probabilities: the numbers must be those of {n_classes} classes, got {shapes}")
        if not (self.farthest > 0 and 0 < self.floor <= 1 and np.all(self.class_weight > 0)):
            raise ValueError("probabilities: farthest, floor and class_weight must be positive, and floor at most 1")
        if np.any(self.step < 0):
            raise ValueError("probabilities: step must not be negative")


def farthest_distance(n_classes: int) -> float:
    """Return the largest distance that counts.

    For two classes it is not limited, so that probabilities are monotone in ``decision_function``; for more classes the
    limit avoids extrapolation.
    """
    return LARGEST if n_classes == 2 else 10.0


def bounded_distances(distances: FloatArray, farthest: float) -> FloatArray:
    """Return distances of at most ``farthest``; for two classes those of ``decision_function``."""
    if distances.shape[1] == 2:
        distances = np.where(np.isinf(distances), NO_OTHER_LABEL, distances)
    return np.minimum(distances, farthest)


def from_record(value: Any) -> Probabilities:
    """Make a rule from its entry in a tree file; ValueError says what is wrong with it."""
    record = schema.mapping("probabilities", value)
    kind = record.pop("kind", None)
    if kind == "leaf" and not record:
        return LeafShares()
    if kind == "smoothed" and set(record) == {"strength"}:
        return SmoothedShares(schema.number("probabilities: strength", record["strength"]))
    if kind == "margin" and "step" not in record and isinstance(record.get("intercept"), list):
        record["step"] = [0.0] * len(record["intercept"])
    if kind == "margin" and set(record) == set(_DIMENSIONS):
        return MarginProbabilities(**{name: _entry(name, ndim, record[name]) for name, ndim in _DIMENSIONS.items()})
    raise ValueError(f"probabilities: unknown kind or entries: {kind!r} with {sorted(record)}")


#: The numbers of :class:`MarginProbabilities`, and their dimensions.
_DIMENSIONS: Mapping[str, int] = {
    "intercept": 1, "slope": 2, "step": 1, "farthest": 0, "floor": 0, "class_weight": 1
}  # fmt: skip


def _entry(name: str, ndim: int, value: Any) -> Any:
    name = f"probabilities: {name}"
    if not ndim:
        return schema.number(name, value)
    found = schema.array(name, value, ndim)
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must be finite")
    return found
