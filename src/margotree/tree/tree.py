"""The fitted tree: prediction and explanation with NumPy alone, without any optimisation."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree import lazy_registry
from margotree.problem import Splits, check_depth, tie, topology
from margotree.problem.blocks import row_blocks
from margotree.solution import Certificate
from margotree.table.frames import non_numeric_columns, non_numeric_message
from margotree.tree import file, labels, rounding, text, verification
from margotree.tree.decision_path import Path, Step
from margotree.tree.decision_values import Rows
from margotree.tree.outline import Outline, labels_below, outline
from margotree.tree.probabilities import LeafShares, Probabilities, SharesOfLeaves
from margotree.tree.protocol import Split
from margotree.tree.routing import Router
from margotree.tree.rules import RoundedRule
from margotree.tree.scaling import FloatArray, Scaling
from margotree.tree.score import class_scores, score
from margotree.tree.verification import Verified

#: A node uses a feature if the absolute weight, in scaled units, is at least this, as in the paper.
SELECTED = 5e-4


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tree:
    """A tree of hyperplane splits with a label at every leaf.

    A sample goes right at node ``t`` if ``h_t(x) = w_t.x + b_t >= 0``, where ``x`` is in scaled units. A value below 0
    by no more than a rounding error (:func:`margotree.problem.tie`, at most 1e-9 times the size of the numbers of the
    node) counts as 0. This holds for all finite values: sums that would overflow are computed with smaller numbers
    (:mod:`margotree.tree.decision_values`). Nodes and leaves are numbered as in :mod:`margotree.problem.topology`. A
    pruned branch is a node with ``w = 0``, which sends all samples to one side.

    Attributes
    ----------
    splits : Splits
        The hyperplanes, in scaled units.
    scaling : Scaling
        The conversion from the units of the user.
    classes : array
        The class labels.
    counts : array of shape (nodes and leaves, classes)
        The weight of the training samples of each class that reach each node and leaf (:meth:`counted` computes it).
    leaf_class : array of int
        The position in ``classes`` of the label of each leaf, from left to right. By default that of MARGOT: below
        each last-level node the first class on the left, the second on the right.
    feature_names : tuple of str or None
        The names of the features.
    eps : float
        The width of the band at upper splits.
    certificate : Certificate or None
        The certificate of the fit.
    terms : mapping
        The terms of the training problem (model, C, ...), from which it can be stated again with the same data.
    rules : mapping of int to RoundedRule
        The rules with short numbers of a rounded tree (:meth:`rounded`), by node. The hyperplane of such a node is
        exactly its rule times the factor of the rule.
    probabilities : Probabilities
        The rule of :meth:`predict_proba`; by default the class shares of leaves.
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
    rules: Mapping[int, RoundedRule] = field(default_factory=dict)
    probabilities: Probabilities = field(default_factory=LeafShares)

    def __post_init__(self) -> None:
        own = object.__setattr__
        own(self, "classes", labels.label_array(self.classes))
        check_depth(self.depth)
        counts = self.counts if np.size(self.counts) else np.zeros((2 * self.n_nodes + 1, len(self.classes)))
        leaf_class = self.leaf_class if np.size(self.leaf_class) else np.tile([0, 1], 2 ** (self.depth - 1))
        own(self, "counts", _frozen(np.array(counts, dtype=np.float64)))
        own(self, "leaf_class", _frozen(np.array(leaf_class, dtype=np.int64)))
        if self.feature_names is not None:
            own(self, "feature_names", tuple(str(name) for name in self.feature_names))
        own(self, "rules", dict(sorted(self.rules.items())))
        own(self, "terms", json.loads(json.dumps(dict(self.terms), allow_nan=False)))
        self._check()

    @property
    def depth(self) -> int:
        """The number of levels of branch nodes."""
        return (len(self.splits.b) + 1).bit_length() - 1

    @property
    def n_nodes(self) -> int:
        """The number of branch nodes."""
        return len(self.splits.b)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.splits.w.shape[1]

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features; x0, x1, ... if the training data had no names."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.n_features))

    @property
    def sides(self) -> NDArray[np.int64] | None:
        """The target side of each class at each upper node (-1 left, +1 right); None for two classes."""
        found = self.terms.get("sides")
        return None if found is None else np.array(found, dtype=np.int64).reshape(-1, len(self.classes))

    def target_classes(self, t: int) -> tuple[list[int], list[int]] | None:
        """Return the classes with target side left and right at an upper node, among the classes of its samples.

        None at last-level nodes, for two classes, for models without target sides, and if fewer than two classes have
        training samples at the node.
        """
        sides = self.sides
        if sides is None or t >= len(sides):
            return None
        here = np.flatnonzero(self.counts[t]) if self.counts[t].any() else np.arange(len(self.classes))
        left, right = ([int(k) for k in here if sides[t, k] == side] for side in (-1, 1))
        return (left, right) if len(here) > 1 else None

    def wanted(self, t: int) -> tuple[list[int], list[int]] | None:
        """Deprecated name of :meth:`target_classes`, removed in 0.3."""
        warnings.warn("Tree.wanted is deprecated; use Tree.target_classes instead", FutureWarning, stacklevel=2)
        return self.target_classes(t)

    def counted(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike) -> Tree:
        """Return this tree with the counts of the given samples; ``y`` contains positions in ``classes``."""
        leaf, counts = self.apply(X), np.zeros_like(self.counts)
        np.add.at(counts, (leaf, np.asarray(y, dtype=np.int64)), np.asarray(weight, dtype=np.float64))
        for t in reversed(range(self.n_nodes)):
            counts[t] = counts[topology.left(t)] + counts[topology.right(t)]
        return replace(self, counts=counts)

    # -- predicting ---------------------------------------------------------------------------------------------

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the leaf of each sample."""
        ties = np.array([self.tie(t) for t in range(self.n_nodes)])
        return Router(self, ties, lambda given: self._leaf_of(self._rows(given))).leaves(self.given(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of the leaf of each sample."""
        leaf = self.apply(X)
        leaf -= self.n_nodes
        return np.take(self.classes[self.leaf_class], leaf)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the distance of each sample from the other label, in margins, positive for the second class.

        The absolute value is the smallest ``|h|`` among the splits on the path of the sample whose other side leads to
        the other label. If several splits have to be crossed, the largest ``|h|`` of these counts, so that the score is
        continuous and 0 where the label changes. Leaves that no training sample reaches do not count as another label
        (see :meth:`outline`). The score ranks samples for ROC curves and calibration; at depth 1 it is the ``h`` of the
        SVM.

        A sample on a hyperplane goes right. Its score is the smallest positive number instead of 0, with the sign of
        its label.

        For more than two classes the result has one column per class: ``h`` of the last split for the class of its
        right leaf, ``-h`` for that of its left leaf, and ``-1 - |h|`` for all others. The largest is the label's.
        """
        rows = self._rows(self.given(X))
        if len(self.classes) != 2:
            if self.sides is None:
                raise ValueError(f"decision_function is for two classes, this tree has {len(self.classes)}")
            return class_scores(self, rows, self._leaf_of(rows))
        return score(self, rows, self._class_at(self._leaf_of(rows)))

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of each class, by the tree's rule :attr:`probabilities`.

        ``"leaf"``: the share of each class among the training samples of the leaf, by weight; a leaf without training
        samples has the shares of the nearest node above it with training samples. ``"smoothed"``: the same with shares
        shrunk towards those of the parent node. ``"margin"``: a softmax of the distances from the labels, for two
        classes a sigmoid of :meth:`decision_function`; the label has the largest product of probability and class
        weight. With the other two rules the most frequent class of a leaf may be another than its label. ``"smoothed"``
        and ``"margin"`` are never 0.
        """
        given = self.given(X)
        if isinstance(self.probabilities, SharesOfLeaves):
            return self.probabilities.table(self)[self.apply(given) - self.n_nodes]
        found = np.empty((len(given), len(self.classes)))
        for part in row_blocks(len(given), self.n_nodes + self.n_features):
            rows = self._rows(given[part])
            found[part] = self.probabilities.of(self, rows, self._leaf_of(rows))
        return found

    def decision_path(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return an array whose entry (i, v) is True if sample ``i`` passes node or leaf ``v``."""
        leaf = self.apply(X)
        passes = np.zeros((len(leaf), len(self.counts)), dtype=bool)
        for v in topology.leaves(self.depth):
            nodes = [t for t, _ in topology.path_to(v)]
            passes[np.ix_(leaf == v, [*nodes, v])] = True
        return passes

    def labels_from(self, v: int, X: ArrayLike) -> NDArray[np.int64]:
        """Return the positions of the labels that samples get if they start at node or leaf ``v``."""
        return self._class_at(self._leaf_of(self._rows(self.given(X)), v))

    def path(self, x: ArrayLike) -> Path:
        """Return the path of one sample, node by node: a list of steps that is printed as a table."""
        row = self._rows(self.given(np.atleast_2d(np.asarray(x, dtype=np.float64))))
        if len(row) != 1:
            raise ValueError(f"path explains one sample at a time, got {len(row)}")
        steps, t = [], 0
        while t < self.n_nodes:
            h, right = self.side(row, t)
            steps.append(Step(node=t, h=float(h[0]), right=bool(right[0])))
            t = topology.right(t) if right[0] else topology.left(t)
        rules = [text.rule_text(self, step.node) for step in steps]
        return Path(steps, rules=rules, leaf=t, label=self.classes[self.leaf_class[t - self.n_nodes]])

    # -- explaining ---------------------------------------------------------------------------------------------

    def split(self, t: int, *, units: str = "user") -> Split:
        """Return the rule of node ``t`` in the units of the user (``units="user"``) or in ``"scaled"`` units."""
        if not 0 <= t < self.n_nodes:
            raise ValueError(f"the branch nodes of this tree are 0 to {self.n_nodes - 1}, got {t}")
        if units not in {"user", "scaled"}:
            raise ValueError(f"units are 'user' or 'scaled', got {units!r}")
        w, b = self.splits.w[t], float(self.splits.b[t])
        if units == "user":
            w, b = self.scaling.to_user(w, b)
        return Split(node=t, weights=w, threshold=-b)

    def tie(self, t: int) -> float:
        """Return the rounding error allowed on ``h`` at node ``t``: a sample goes right if ``h >= -tie``."""
        return tie(float(self.splits.b[t]), self.eps)

    def scaled(self, X: ArrayLike) -> FloatArray:
        """Check samples and return them in scaled units; columns of a data frame are found by name."""
        return self._rows(self.given(X)).finite

    def side(self, scaled: FloatArray | Rows, t: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return ``h`` of samples in scaled units at node ``t``, and whether they go right."""
        rows = scaled if isinstance(scaled, Rows) else Rows.of_scaled(scaled)
        h = rows.h(self.splits.w[t], float(self.splits.b[t]))
        return h, h >= -self.tie(t)

    def selected(self, threshold: float = SELECTED) -> NDArray[np.bool_]:
        """Return an array whose entry (t, j) is True if node ``t`` uses feature ``j``: ``|w_tj| >= threshold``."""
        return np.abs(self.splits.w) >= threshold

    @property
    def numbers_to_read(self) -> int:
        """The number of numbers in the printed rules.

        A split with one feature counts 1, its threshold; a split with k features counts k + 1. Leaves, pruned nodes and
        splits that change no training sample's label count 0.
        """
        used, nodes = self.selected(), self.outline().nodes
        sizes = [int(used[t].sum()) or int(np.count_nonzero(self.splits.w[t])) for t in nodes]
        return sum(1 if k == 1 else k + 1 for k in sizes)

    def rounded(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        digits: int | str | None = None,
        max_loss: float = 0.0,
        style: str = "decimal",
    ) -> Tree:
        """Return the tree with few and short numbers, which are exactly those that are printed and drawn.

        Features and splits that no training label depends on are left out. The leading weight of each split becomes 1
        (or all weights small integers), and weights and thresholds get as few digits as keep the label of every
        training sample. The objective is computed again; the bound of the certificate stays, and the certificate says
        what rounding cost.

        Parameters
        ----------
        X, y, sample_weight
            The training data.
        digits : int or "auto", optional
            The largest number of significant digits of a weight. By default as many as necessary. With fewer, labels
            of training samples may change; the certificate has their share. Thresholds get as many as necessary.
            "auto": two digits, or three, if at most 1 % of the labels change with them, otherwise as many as necessary.
        max_loss : float
            The share of the training samples, by weight, whose label may change for the sake of shorter numbers.
        style : {"decimal", "points"}
            The weights of a split: 1 and decimal numbers, or whole numbers, as in a score card.

        Returns
        -------
        Tree
        """
        found = rounding.round_tree(self, X, y, sample_weight, digits=digits, max_loss=max_loss, style=style)
        weight = np.ones(len(np.asarray(y))) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        certificate = self.certificate and self.certificate.after_rounding(found.objective, found.relabelled)
        rounded = replace(self, splits=found.splits, rules=found.rules, certificate=certificate)
        return rounded.counted(X, labels.class_positions(self.classes, y), weight)

    def verify(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Verified:
        """Recompute objective and feasibility from the training data and compare them with the certificate.

        The bound is only compared with the objective; it is not recomputed (see :mod:`margotree.proof`).

        Returns
        -------
        Verified
            The recomputed values, printed as a table.

        Raises
        ------
        VerificationError
            If a claim of the certificate does not hold.
        """
        return verification.verify_tree(self, X, y, sample_weight)

    def outline(self, *, simplify: bool = True) -> Outline:
        """Return the nodes and leaves that texts and plots show; see :func:`margotree.tree.outline.outline`.

        With ``simplify``, splits that do not change the label of any training sample are left out.
        """
        return outline(self, simplify=simplify)

    def labels_below(self, *, reached_only: bool = True) -> NDArray[np.bool_]:
        """Return an array whose entry (v, k) is True if some training sample that passes ``v`` is predicted ``k``.

        Without counts, or if not ``reached_only``, all leaves below ``v`` count.
        """
        return labels_below(self, reached_only=reached_only)

    def export_text(
        self,
        *,
        digits: int | None = None,
        units: str = "user",
        width: int = 100,
        simplify: bool = True,
        verbose: bool = False,
    ) -> str:
        """Return the rules as text.

        Parameters
        ----------
        digits : int, optional
            Digits of each number. By default as many as keep ``h`` of every sample in the training range to a
            hundredth of the margin.
        units : {"user", "scaled"}
            The units of the numbers.
        width : int
            The line length.
        simplify : bool
            Whether to leave out splits that do not change the label of any training sample.
        verbose : bool
            Whether to print numbers of nodes, target sides of classes and counts of samples at splits, too.
        """
        return text.export_text(self, digits=digits, units=units, width=width, simplify=simplify, verbose=verbose)

    def plot(self, X: ArrayLike | None = None, y: ArrayLike | None = None, ax: Any = None, **options: Any) -> Any:
        """Plot the tree on matplotlib axes, which are returned; see :func:`margotree.plots.plot_tree`."""
        return lazy_registry.get("plot_tree")(self, X, y, ax, **options)

    def plot_calibration(self, X: ArrayLike, y: ArrayLike, ax: Any = None, **options: Any) -> Any:
        """Plot how reliable the probabilities are on samples; see :func:`margotree.plots.plot_calibration`."""
        return lazy_registry.get("plot_calibration")(self, X, y, ax, **options)

    def to_html(
        self,
        path: str | PathLike[str],
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
    ) -> None:
        """Write a report page: one HTML file that shows the tree and classifies new samples, without network.

        With ``X`` and ``y`` the page also has a histogram of the samples at each split; see
        :func:`margotree.page.write_page`.
        """
        lazy_registry.get("write_page")(self, path, X, y, title=title)

    # -- exporting ----------------------------------------------------------------------------------------------

    def to_sql(self, *, table: str | None = None, proba: Any = None) -> str:
        """Return an SQL expression of the label, or of a probability; see :func:`margotree.export.to_sql`."""
        return str(lazy_registry.get("to_sql")(self, table=table, proba=proba))

    def to_c(self, *, name: str = "margotree") -> str:
        """Return the tree as C source; see :func:`margotree.export.to_c`."""
        return str(lazy_registry.get("to_c")(self, name=name))

    def to_python(self) -> str:
        """Return the tree as a Python module without dependencies; see :func:`margotree.export.to_python`."""
        return str(lazy_registry.get("to_python")(self))

    def to_onnx(self, *, float32: bool = False) -> Any:
        """Return the tree as an ONNX model (extra ``onnx``); see :func:`margotree.export.to_onnx`."""
        return lazy_registry.get("to_onnx")(self, float32=float32)

    # -- saving -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values from which :meth:`from_dict` makes the same tree, to the last bit."""
        return file.to_record(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Tree:
        """Make a tree from the result of :meth:`to_dict`."""
        return cls(**file.from_record(record))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree as JSON; an existing file is replaced after the new one is complete."""
        file.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Tree:
        """Read a file of :meth:`save`; :class:`~margotree.tree.TreeFileError` says what is wrong with a file."""
        with file.naming_the_file(path):
            return cls.from_dict(file.read(path))

    def __repr__(self) -> str:
        return f"<Tree of depth {self.depth} on {self.n_features} features, classes {self.classes.tolist()}>"

    def _repr_html_(self) -> str:
        """Return a plot of the tree and the statement of its certificate as HTML, for notebooks."""
        return str(lazy_registry.get("tree_html")(self))

    # -- internal -----------------------------------------------------------------------------------------------

    def given(self, X: ArrayLike) -> FloatArray:
        """Return samples as an array of numbers in the units of the user, one row each."""
        if self.feature_names is not None and hasattr(X, "columns"):
            X = self._columns(X)
        try:
            given = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            if odd := non_numeric_columns(X):
                raise ValueError(non_numeric_message(odd)) from error
            raise
        if given.ndim != 2 or given.shape[1] != self.n_features:
            raise ValueError(f"X must have one row per sample and {self.n_features} columns, got shape {given.shape}")
        return given

    def _rows(self, given: FloatArray) -> Rows:
        if not np.all(np.isfinite(given)):
            raise ValueError("X contains NaN or infinity; every feature of a sample must be known to classify it")
        return Rows.of(self.scaling, given)

    def _leaf_of(self, rows: Rows, start: int = 0) -> NDArray[np.int64]:
        at = np.full(len(rows), start, dtype=np.int64)
        for t in range(start, self.n_nodes):
            reached = np.flatnonzero(at == t)
            if not len(reached):
                continue
            right = self.side(rows[reached], t)[1]
            at[reached] = np.where(right, topology.right(t), topology.left(t))
        return at

    def _columns(self, X: Any) -> Any:
        missing = [name for name in self.features if name not in set(map(str, X.columns))]
        if missing:
            raise ValueError(f"X has no columns {missing}, on which the tree was trained")
        return X[list(self.features)]

    def _class_at(self, leaf: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.leaf_class[leaf - self.n_nodes]

    def leaf_shares(self) -> FloatArray:
        """Return the class shares of the training samples in each leaf, one row per leaf from left to right."""
        return LeafShares().table(self)

    def _check(self) -> None:
        n_leaves = 2**self.depth
        shapes = {
            "nodes": (self.n_nodes, n_leaves - 1),
            "scaling": (len(self.scaling.offset), self.n_features),
            "feature_names": (len(self.features), self.n_features),
            "counts": (self.counts.shape, (self.n_nodes + n_leaves, len(self.classes))),
            "leaf_class": (self.leaf_class.shape, (n_leaves,)),
        }
        for name, (got, expected) in shapes.items():
            if got != expected:
                raise ValueError(f"{name}: expected {expected} for this tree, got {got}")
        if not (np.all(np.isfinite(self.counts)) and np.all(self.counts >= 0)):
            raise ValueError("counts must be finite and not negative")
        below = [self.counts[topology.left(t)] + self.counts[topology.right(t)] for t in range(self.n_nodes)]
        if not np.allclose(self.counts[: self.n_nodes], below, rtol=1e-9, atol=0):
            raise ValueError("counts: the samples of a node must be those of its two children")
        if np.any(self.leaf_class < 0) or np.any(self.leaf_class >= len(self.classes)):
            raise ValueError(f"leaf_class must point into the {len(self.classes)} classes, got {self.leaf_class}")
        for t, rule in self.rules.items():
            if not 0 <= t < self.n_nodes or max(rule.features) >= self.n_features:
                raise ValueError(f"rules: there is no node {t}, or it has no such features")
            w, b = rule.hyperplane(self.scaling)
            if not np.array_equal(w, self.splits.w[t]) or b != self.splits.b[t]:
                raise ValueError(f"rules: the rule of node {t} is not its hyperplane")
        sides = self.terms.get("sides")
        if sides is not None and (np.shape(sides) or (0,))[0] != n_leaves // 2 - 1:
            raise ValueError(f"sides: expected those of {n_leaves // 2 - 1} upper nodes, got {sides!r}")
        if sides and (np.shape(sides)[1:] != (len(self.classes),) or not np.all(np.abs(np.array(sides)) == 1)):
            raise ValueError(f"sides must be -1 or +1 for each of the {len(self.classes)} classes, got {sides!r}")
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a positive number, got {self.eps!r}")
        self.probabilities.check(len(self.classes))


def _frozen(a: NDArray[Any]) -> NDArray[Any]:
    a.setflags(write=False)
    return a
