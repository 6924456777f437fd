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

from margotree import lazy_registry
from margotree.problem import Splits, check_depth, tie, topology
from margotree.solution import Certificate
from margotree.table.frames import advice, non_numeric_columns
from margotree.tree import file, labels, text, verification
from margotree.tree.decision_path import Path, Step
from margotree.tree.decision_values import Rows
from margotree.tree.outline import Outline, labels_below, outline
from margotree.tree.protocol import Split
from margotree.tree.routing import Router
from margotree.tree.scaling import FloatArray, Scaling
from margotree.tree.score import class_scores, score
from margotree.tree.verification import Verified

#: A feature counts as selected by a node from this weight on (in scaled units), as in the paper.
SELECTED = 5e-4


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tree:
    """A tree of hyperplane splits with a label at every leaf.

    A sample goes right at node ``t`` if ``h_t(x) = w_t.x + b_t >= 0``, where ``x`` is in scaled units and a value
    that misses 0 by no more than rounding (:func:`margotree.problem.tie`, at most 1e-9 times the size of the node's
    numbers) still counts as 0.  That holds for all finite values: a sum that would overflow is taken on smaller numbers
    (:mod:`margotree.tree.decision_values`).  Nodes and leaves are numbered as in :mod:`margotree.problem.topology`.

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

    @property
    def sides(self) -> NDArray[np.int64] | None:
        """Which side each class wants at each upper node (-1 left, +1 right), for margin trees of several classes."""
        found = self.terms.get("sides")
        return None if found is None else np.array(found, dtype=np.int64).reshape(-1, len(self.classes))

    def wanted(self, t: int) -> tuple[list[int], list[int]] | None:
        """The classes that want to go left and right at an upper node, among those that training samples bring there.

        None where the tree knows none, or fewer than two: at last-level nodes, for two classes and for other models.
        """
        sides = self.sides
        if sides is None or t >= len(sides):
            return None
        here = np.flatnonzero(self.counts[t]) if self.counts[t].any() else np.arange(len(self.classes))
        left, right = ([int(k) for k in here if sides[t, k] == side] for side in (-1, 1))
        return (left, right) if len(here) > 1 else None

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
        ties = np.array([self.tie(t) for t in range(self.n_nodes)])
        return Router(self, ties, lambda given: self._leaf_of(self._rows(given))).leaves(self._given(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each sample's leaf."""
        leaf = self.apply(X)
        leaf -= self.n_nodes
        return np.take(self.classes[self.leaf_class], leaf)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """How far each sample is from the other label, in margins: positive for the second class, else negative.

        The size is the smallest ``|h|`` among the splits on the sample's way whose other side leads it to the other
        label.  Where crossing one split is not enough, the largest ``|h|`` of those to be crossed counts, so that the
        score changes without jumps and 0 is where the label changes.  Splits that no training sample needed are not
        counted as a way (see :meth:`outline`).  It ranks samples for ROC curves and for calibration; at depth 1 it is
        the SVM's own ``h``.

        A sample on a hyperplane goes right, so it gets the smallest positive number instead of 0: its sign is its
        label either way one reads a 0.  (Where leaves bear labels of their own the sign is the label's.)

        A margin tree of more than two classes gives a column for each: ``h`` of the last split for the class on its
        right, ``-h`` for that on its left, and ``-1 - |h|`` for every other.  The largest is the label's.
        """
        rows = self._rows(self._given(X))
        if len(self.classes) != 2:
            if self.sides is None:
                raise ValueError(f"decision_function is for two classes, this tree has {len(self.classes)}")
            return class_scores(self, rows, self._leaf_of(rows))
        return score(self, rows, self._class_at(self._leaf_of(rows)))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Share of each class among the training samples of the leaf, by weight.

        A leaf that no training sample reached gives the shares of the nearest node above it that some did reach.
        Labels come from the side of the hyperplane and not from these shares, so where the majority of a leaf lies
        within the margin of the other class the larger share may belong to the label that is not predicted.
        """
        return self.leaf_shares()[self.apply(X) - self.n_nodes]

    def decision_path(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Entry (i, v) tells whether sample ``i`` passes node or leaf ``v``."""
        leaf = self.apply(X)
        passes = np.zeros((len(leaf), len(self.counts)), dtype=bool)
        for v in topology.leaves(self.depth):
            nodes = [t for t, _ in topology.path_to(v)]
            passes[np.ix_(leaf == v, [*nodes, v])] = True
        return passes

    def path(self, x: ArrayLike) -> Path:
        """The way of one sample, node by node: a list of steps that prints as a table."""
        row = self._rows(self._given(np.atleast_2d(np.asarray(x, dtype=np.float64))))
        if len(row) != 1:
            raise ValueError(f"path explains one sample at a time, got {len(row)}")
        steps, t = [], 0
        while t < self.n_nodes:
            h, right = self.side(row, t)
            steps.append(Step(node=t, h=float(h[0]), right=bool(right[0])))
            t = topology.right(t) if right[0] else topology.left(t)
        rules = [text.rule_words(self, step.node) for step in steps]
        return Path(steps, rules=rules, leaf=t, label=self.classes[self.leaf_class[t - self.n_nodes]])

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

    def tie(self, t: int) -> float:
        """How far below 0 ``h`` of node ``t`` may lie and still count as 0: a sample goes right if ``h >= -tie``.

        Whoever routes samples as this tree does asks here.
        """
        return tie(float(self.splits.b[t]), self.eps)

    def scaled(self, X: ArrayLike) -> FloatArray:
        """Samples in the units of ``splits``, checked; columns of a data frame are found by name."""
        return self._rows(self._given(X)).finite

    def side(self, scaled: FloatArray | Rows, t: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """``h`` of samples in scaled units at node ``t``, and whether they go right there."""
        rows = scaled if isinstance(scaled, Rows) else Rows.of_scaled(scaled)
        h = rows.h(self.splits.w[t], float(self.splits.b[t]))
        return h, h >= -self.tie(t)

    def selected(self, threshold: float = SELECTED) -> NDArray[np.bool_]:
        """Entry (t, j) tells whether node ``t`` uses feature ``j``: ``|w_tj| >= threshold`` in scaled units."""
        return np.abs(self.splits.w) >= threshold

    def verify(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Verified:
        """Recompute value and feasibility on the training data; what comes back prints as a table.

        Raises :class:`~margotree.solution.VerificationError` if what the certificate claims does not hold on them.
        The bound rests on the engine and is checked only for not contradicting the value.
        """
        return verification.verify_tree(self, X, y, sample_weight)

    def outline(self, *, simplify: bool = True) -> Outline:
        """Which nodes and leaves there are to show; see :func:`margotree.tree.outline.outline`.

        Simplified, splits that change no training sample's label are left out.
        """
        return outline(self, simplify=simplify)

    def labels_below(self, *, reached_only: bool = True) -> NDArray[np.bool_]:
        """Entry (v, k) tells whether some training sample that passes ``v`` is predicted class ``k``."""
        return labels_below(self, reached_only=reached_only)

    def export_text(
        self, *, digits: int | None = None, units: str = "user", width: int = 100, simplify: bool = True
    ) -> str:
        """The rules in words; see :func:`margotree.tree.text.export_text`.

        Splits that change no training sample's label are left out unless ``simplify`` is False.
        """
        return text.export_text(self, digits=digits, units=units, width=width, simplify=simplify)

    def plot(self, X: ArrayLike | None = None, y: ArrayLike | None = None, ax: Any = None, **options: Any) -> Any:
        """A picture of the tree on matplotlib axes, which are returned; see :func:`margotree.plots.plot_tree`."""
        return lazy_registry.get("plot_tree")(self, X, y, ax, **options)

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
        lazy_registry.get("write_page")(self, path, X, y, title=title)

    # -- leaving Python -----------------------------------------------------------------------------------------

    def to_sql(self, *, table: str | None = None) -> str:
        """The tree as one SQL expression; see :func:`margotree.export.to_sql`."""
        return str(lazy_registry.get("to_sql")(self, table=table))

    def to_c(self, *, name: str = "margotree") -> str:
        """The tree as C source; see :func:`margotree.export.to_c`."""
        return str(lazy_registry.get("to_c")(self, name=name))

    def to_python(self) -> str:
        """The tree as a Python module without dependencies; see :func:`margotree.export.to_python`."""
        return str(lazy_registry.get("to_python")(self))

    def to_onnx(self, *, float32: bool = False) -> Any:
        """The tree as an ONNX model (extra ``onnx``); see :func:`margotree.export.to_onnx`."""
        return lazy_registry.get("to_onnx")(self, float32=float32)

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

    def _repr_html_(self) -> str:
        """In a notebook a tree shows its picture and what is proved of it."""
        return str(lazy_registry.get("tree_html")(self))

    # -- inside -------------------------------------------------------------------------------------------------

    def _given(self, X: ArrayLike) -> FloatArray:
        """Samples as numbers in the user's units, one row each."""
        if self.feature_names is not None and hasattr(X, "columns"):
            X = self._columns(X)
        try:
            given = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            if odd := non_numeric_columns(X):
                raise ValueError(advice(odd)) from error
            raise
        if given.ndim != 2 or given.shape[1] != self.n_features:
            raise ValueError(f"X must have one row a sample and {self.n_features} columns, got shape {given.shape}")
        return given

    def _rows(self, given: FloatArray) -> Rows:
        if not np.all(np.isfinite(given)):
            raise ValueError("X contains NaN or infinity; every feature of a sample must be known to classify it")
        return Rows.of(self.scaling, given)

    def _leaf_of(self, rows: Rows) -> NDArray[np.int64]:
        at = np.zeros(len(rows), dtype=np.int64)
        for t in range(self.n_nodes):
            reached = np.flatnonzero(at == t)
            right = self.side(rows[reached], t)[1]
            at[reached] = np.where(right, topology.right(t), topology.left(t))
        return at

    def _columns(self, X: Any) -> Any:
        missing = [name for name in self.features if name not in set(map(str, X.columns))]
        if missing:
            raise ValueError(f"X lacks the columns {missing} that the tree was trained on")
        return X[list(self.features)]

    def _class_at(self, leaf: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.leaf_class[leaf - self.n_nodes]

    def leaf_shares(self) -> FloatArray:
        """Row k: the class shares that :meth:`predict_proba` gives to samples of the k-th leaf from the left."""
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
        sides = self.terms.get("sides")
        if sides is not None and (np.shape(sides) or (0,))[0] != n_leaves // 2 - 1:
            raise ValueError(f"sides: expected those of {n_leaves // 2 - 1} upper nodes, got {sides!r}")
        if sides and (np.shape(sides)[1:] != (len(self.classes),) or not np.all(np.abs(np.array(sides)) == 1)):
            raise ValueError(f"sides must be -1 or +1 for each of the {len(self.classes)} classes, got {sides!r}")
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a positive number, got {self.eps!r}")


def _frozen(a: NDArray[Any]) -> NDArray[Any]:
    a.setflags(write=False)
    return a
