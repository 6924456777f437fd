"""The fitted model: it predicts and explains itself, needs only NumPy, and knows no optimisation."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree import late
from margotree.problem import Finding, Splits, check_depth, tie, topology
from margotree.problem.blocks import blocks
from margotree.solution import Certificate
from margotree.tree import audit, file, labels, text
from margotree.tree.kind import Split
from margotree.tree.scaling import FloatArray, Scaling

#: A feature counts as selected by a node from this weight on (in scaled units), as in the paper.
SELECTED = 5e-4

#: What :meth:`Tree.decision_function` gives for a sample on the hyperplane: it goes right, so its sign is plus.
_ON_THE_PLANE = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One node on a sample's way down: ``h`` is its signed distance from the hyperplane, in margins."""

    node: int
    h: float
    right: bool


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tree:
    """A tree of hyperplane splits with a label at every leaf.

    A sample goes right at node ``t`` if ``h_t(x) = w_t.x + b_t >= 0``, where ``x`` is in scaled units and a value
    that misses 0 by no more than rounding (:func:`margotree.problem.tie`, at most 1e-9 times the size of the node's
    numbers) still counts as 0.  Nodes and leaves are numbered as in :mod:`margotree.problem.topology`.

    ``leaf_class[k]`` is the position in ``classes`` of the label of the k-th leaf from the left.  If not given it is
    MARGOT's: below each last-level node the left leaf bears the first class, the right leaf the second.  A branch
    that was pruned is a node with ``w = 0``: it sends every sample the same way.

    ``counts[v]`` holds the weight of the training samples of each class that reached node or leaf ``v``
    (:meth:`counted` fills it in).
    ``terms`` are the terms of the training problem (model, C, ...), enough to state it again on the same data.
    """

    splits: Splits
    scaling: Scaling
    classes: NDArray[Any]
    counts: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    leaf_class: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    feature_names: tuple[str, ...] | None = None
    eps: float = 1e-3
    certificate: Certificate | None = None
    terms: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = object.__setattr__
        own(self, "classes", labels.own_labels(self.classes))
        check_depth(self.depth)
        counts = self.counts if np.size(self.counts) else np.zeros((2 * self.n_nodes + 1, len(self.classes)))
        leaf_class = self.leaf_class if np.size(self.leaf_class) else np.tile([0, 1], 2 ** (self.depth - 1))
        own(self, "counts", _frozen(np.array(counts, dtype=np.float64)))
        own(self, "leaf_class", _frozen(np.array(leaf_class, dtype=np.int64)))
        if self.feature_names is not None:
            own(self, "feature_names", tuple(str(name) for name in self.feature_names))
        own(self, "terms", json.loads(json.dumps(dict(self.terms), allow_nan=False)))
        self._check()

    @property
    def depth(self) -> int:
        return (len(self.splits.b) + 1).bit_length() - 1

    @property
    def n_nodes(self) -> int:
        return len(self.splits.b)

    @property
    def n_features(self) -> int:
        return self.splits.w.shape[1]

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features; x0, x1, ... where training data had none."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.n_features))

    def counted(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike) -> Tree:
        """This tree with the counts of the given samples; ``y`` holds positions in ``classes``."""
        leaf, counts = self.apply(X), np.zeros_like(self.counts)
        np.add.at(counts, (leaf, np.asarray(y, dtype=np.int64)), np.asarray(weight, dtype=np.float64))
        for t in reversed(range(self.n_nodes)):
            counts[t] = counts[topology.left(t)] + counts[topology.right(t)]
        return replace(self, counts=counts)

    # -- predicting ---------------------------------------------------------------------------------------------

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """The leaf each sample ends in."""
        return self._route(X)[0]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each sample's leaf."""
        return self.classes[self._class_at(self.apply(X))]

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """``h`` at the last-level node each sample reaches: positive for the second class, negative for the first.

        Its size says how far the sample lies from that node's hyperplane, 1 being the margin.  A sample on the
        hyperplane goes right, so it gets the smallest positive number instead of 0: its sign is its label either
        way one reads a 0.  (Where leaves bear labels of their own the sign is the label's.)
        """
        if len(self.classes) != 2:
            raise ValueError(f"decision_function is for two classes, this tree has {len(self.classes)}")
        leaf, h = self._route(X)
        distance = np.maximum(np.abs(h), _ON_THE_PLANE)
        tied = (h < 0) & (leaf % 2 == 0)
        distance[tied] = _ON_THE_PLANE
        return np.where(self._class_at(leaf) == 1, distance, -distance)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Share of each class among the training samples of the leaf, by weight.

        A leaf that no training sample reached gives the shares of the nearest node above it that some did reach.
        Labels come from the side of the hyperplane and not from these shares, so where the majority of a leaf lies
        within the margin of the other class the larger share may belong to the label that is not predicted.
        """
        return self._shares()[self.apply(X) - self.n_nodes]

    def decision_path(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Entry (i, v) tells whether sample ``i`` passes node or leaf ``v``."""
        leaf = self.apply(X)
        passes = np.zeros((len(leaf), len(self.counts)), dtype=bool)
        for v in topology.leaves(self.depth):
            nodes = [t for t, _ in topology.path_to(v)]
            passes[np.ix_(leaf == v, [*nodes, v])] = True
        return passes

    def path(self, x: ArrayLike) -> list[Step]:
        """The way of one sample, node by node."""
        row = self.scaled(np.atleast_2d(np.asarray(x, dtype=np.float64)))
        if len(row) != 1:
            raise ValueError(f"path explains one sample at a time, got {len(row)}")
        steps, t = [], 0
        while t < self.n_nodes:
            h, right = self._side(row, t)
            steps.append(Step(node=t, h=float(h[0]), right=bool(right[0])))
            t = topology.right(t) if right[0] else topology.left(t)
        return steps

    # -- explaining ---------------------------------------------------------------------------------------------

    def split(self, t: int, *, units: str = "user") -> Split:
        """Node ``t``'s rule, in the ``"user"``'s units or ``"scaled"`` as the tree was trained."""
        if not 0 <= t < self.n_nodes:
            raise ValueError(f"the branch nodes of this tree are 0 to {self.n_nodes - 1}, got {t}")
        if units not in {"user", "scaled"}:
            raise ValueError(f"units are 'user' or 'scaled', got {units!r}")
        w, b = self.splits.w[t], float(self.splits.b[t])
        if units == "user":
            w, b = self.scaling.to_user(w, b)
        return Split(node=t, weights=w, threshold=-b)

    def scaled(self, X: ArrayLike) -> FloatArray:
        """Samples in the units of ``splits``, checked; columns of a data frame are found by name."""
        return self._checked(self._given(X))

    def selected(self, threshold: float = SELECTED) -> NDArray[np.bool_]:
        """Entry (t, j) tells whether node ``t`` uses feature ``j``: ``|w_tj| >= threshold`` in scaled units."""
        return np.abs(self.splits.w) >= threshold

    def verify(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Finding:
        """Recompute value and feasibility on the training data.

        Raises :class:`~margotree.solution.VerificationError` if what the certificate claims does not hold on them.
        The bound rests on the engine and is checked only for not contradicting the value.
        """
        return audit.verify_tree(self, X, y, sample_weight)

    def export_text(self, *, digits: int | None = None, units: str = "user", width: int = 100) -> str:
        """The rules in words; see :func:`margotree.tree.text.export_text`."""
        return text.export_text(self, digits=digits, units=units, width=width)

    def plot(self, X: ArrayLike | None = None, y: ArrayLike | None = None, ax: Any = None, **options: Any) -> Any:
        """A picture of the tree on matplotlib axes, which are returned; see :func:`margotree.pictures.plot_tree`."""
        return late.get("plot_tree")(self, X, y, ax, **options)

    def to_html(
        self,
        path: str | PathLike[str],
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
    ) -> None:
        """Write a page on which to explore the tree, one file that needs no network.

        See :func:`margotree.page.write_page`; with ``X`` and ``y`` it also shows how samples lie about each split.
        """
        late.get("write_page")(self, path, X, y, title=title)

    # -- keeping ------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values from which :meth:`from_dict` makes the same tree, to the last bit."""
        return file.to_record(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Tree:
        return cls(**file.from_record(record))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree as JSON; a file already there is replaced only once the new one is complete."""
        file.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Tree:
        """Read what :meth:`save` wrote; :class:`~margotree.tree.TreeFileError` says what is wrong with a file."""
        with file.blaming(path):
            return cls.from_dict(file.read(path))

    def __repr__(self) -> str:
        return f"<Tree of depth {self.depth} on {self.n_features} features, classes {self.classes.tolist()}>"

    # -- inside -------------------------------------------------------------------------------------------------

    def _given(self, X: ArrayLike) -> FloatArray:
        """Samples as numbers in the user's units, one row each."""
        if self.feature_names is not None and hasattr(X, "columns"):
            X = self._columns(X)
        given = np.asarray(X, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != self.n_features:
            raise ValueError(f"X must have one row a sample and {self.n_features} columns, got shape {given.shape}")
        return given

    def _checked(self, given: FloatArray) -> FloatArray:
        if not np.all(np.isfinite(given)):
            raise ValueError("X contains NaN or infinity; every feature of a sample must be known to classify it")
        return self.scaling.apply(given)

    def _side(self, scaled: FloatArray, t: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        w, b = self.splits.w[t], self.splits.b[t]
        h = scaled @ w + b
        return h, h >= -tie(w, b, self.eps)

    def _route(self, X: ArrayLike) -> tuple[NDArray[np.int64], FloatArray]:
        """The leaf of each sample, and ``h`` at the last-level node above it."""
        given = self._given(X)
        at, h = np.zeros(len(given), dtype=np.int64), np.zeros(len(given))
        for part in blocks(*given.shape):
            at[part], h[part] = self._route_part(self._checked(given[part]))
        return at, h

    def _route_part(self, scaled: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
        at, h = np.zeros(len(scaled), dtype=np.int64), np.zeros(len(scaled))
        for t in range(self.n_nodes):
            reached = np.flatnonzero(at == t)
            h[reached], right = self._side(scaled[reached], t)
            at[reached] = np.where(right, topology.right(t), topology.left(t))
        return at, h

    def _columns(self, X: Any) -> Any:
        missing = [name for name in self.features if name not in set(map(str, X.columns))]
        if missing:
            raise ValueError(f"X lacks the columns {missing} that the tree was trained on")
        return X[list(self.features)]

    def _class_at(self, leaf: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.leaf_class[leaf - self.n_nodes]

    def _shares(self) -> FloatArray:
        counts = self.counts.copy()
        for v in range(1, len(counts)):
            if not counts[v].any():
                counts[v] = counts[topology.parent(v)]
        total = counts.sum(axis=1, keepdims=True)
        even = np.full_like(counts, 1 / len(self.classes))
        return np.divide(counts, total, out=even, where=total > 0)[self.n_nodes :]

    def _check(self) -> None:
        n_leaves = 2**self.depth
        shapes = {
            "nodes": (self.n_nodes, n_leaves - 1),
            "scaling": (len(self.scaling.offset), self.n_features),
            "feature_names": (len(self.features), self.n_features),
            "counts": (self.counts.shape, (self.n_nodes + n_leaves, len(self.classes))),
            "leaf_class": (self.leaf_class.shape, (n_leaves,)),
        }
        for name, (got, wanted) in shapes.items():
            if got != wanted:
                raise ValueError(f"{name}: expected {wanted} for this tree, got {got}")
        if not (np.all(np.isfinite(self.counts)) and np.all(self.counts >= 0)):
            raise ValueError("counts must be finite and not negative")
        below = [self.counts[topology.left(t)] + self.counts[topology.right(t)] for t in range(self.n_nodes)]
        if not np.allclose(self.counts[: self.n_nodes], below, rtol=1e-9, atol=0):
            raise ValueError("counts: the samples of a node must be those of its two children")
        if np.any(self.leaf_class < 0) or np.any(self.leaf_class >= len(self.classes)):
            raise ValueError(f"leaf_class must point into the {len(self.classes)} classes, got {self.leaf_class}")
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a positive number, got {self.eps!r}")


def _frozen(a: NDArray[Any]) -> NDArray[Any]:
    a.setflags(write=False)
    return a
