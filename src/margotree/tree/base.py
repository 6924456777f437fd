"""What trees of classes and trees of numbers have in common: splits, scaling, the paths of samples, and files."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree import lazy_registry
from margotree.problem import Splits, TrainingProblem, check_depth, tie, topology
from margotree.solution import Certificate
from margotree.table.frames import non_numeric_columns, non_numeric_message
from margotree.table.table_description import encoded_rows
from margotree.tree import file, text, verification
from margotree.tree.contributions import Attributions
from margotree.tree.decision_path import Path, Step
from margotree.tree.decision_values import Rows
from margotree.tree.outline import Outline, labels_below, outline
from margotree.tree.protocol import Split
from margotree.tree.routing import Router
from margotree.tree.rules import RoundedRule
from margotree.tree.scaling import FloatArray, Scaling
from margotree.tree.sentences import step_sentence
from margotree.tree.verification import Verified

#: A node uses a feature if the absolute weight, in scaled units, is at least this, as in the paper.
SELECTED = 5e-4


def numbers_of_split(n_features: int) -> int:
    """The numbers to read of a split: its threshold alone for one feature, otherwise all weights and the threshold."""
    return 1 if n_features == 1 else n_features + 1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HyperplaneTree(ABC):
    """Base class of fitted trees: hyperplane splits that send samples to leaves.

    A sample goes right at node ``t`` if ``h_t(x) = w_t.x + b_t >= 0``, where ``x`` is in scaled units. A value below 0
    by no more than a rounding error (:func:`margotree.problem.tie`, at most 1e-9 times the size of the numbers of the
    node) counts as 0. This holds for all finite values: sums that would overflow are computed with smaller numbers
    (:mod:`margotree.tree.decision_values`). Nodes and leaves are numbered as in :mod:`margotree.problem.topology`. A
    pruned branch is a node with ``w = 0``, which sends all samples to one side.

    Attributes
    ----------
    splits : Splits
        The hyperplanes of the nodes that send samples left or right, in scaled units.
    scaling : Scaling
        The conversion from the units of the user.
    counts : array of shape (nodes and leaves, columns)
        The weight of the training samples that reach each node and leaf, with one column per class in trees of classes
        and a single one in trees of numbers.
    feature_names : tuple of str or None
        The names of the features.
    eps : float
        The width of the band at upper splits.
    certificate : Certificate or None
        The certificate of the fit.
    terms : mapping
        The terms of the training problem (model, C, ...), from which it can be stated again with the same data.
    rules : mapping of int to RoundedRule
        The rules with short numbers of a rounded tree, by node. The hyperplane of such a node is exactly its rule times
        the factor of the rule.
    """

    splits: Splits
    scaling: Scaling
    counts: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    feature_names: tuple[str, ...] | None = None
    eps: float = 1e-3
    certificate: Certificate | None = None
    terms: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[int, RoundedRule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.levels:
            check_depth(self.levels)
        counts = self.counts if np.size(self.counts) else np.zeros((2 * self.n_nodes + 1, self._n_counted))
        self._set("counts", frozen(np.array(counts, dtype=np.float64)))
        if self.feature_names is not None:
            self._set("feature_names", tuple(str(name) for name in self.feature_names))
        self._set("rules", dict(sorted(self.rules.items())))
        self._set("terms", json.loads(json.dumps(dict(self.terms), allow_nan=False)))
        self._check()

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def levels(self) -> int:
        """The number of levels of splits; 0 for a tree that is a single leaf."""
        return (len(self.splits.b) + 1).bit_length() - 1

    @property
    @abstractmethod
    def depth(self) -> int:
        """The parameter ``depth`` of the training problem: the number of levels of hyperplanes."""

    @property
    @abstractmethod
    def hyperplanes(self) -> Splits:
        """All hyperplanes of the training problem, in scaled units."""

    @property
    @abstractmethod
    def leaf_outcome(self) -> NDArray[np.int64]:
        """A number per leaf, from left to right: leaves with equal numbers predict the same for all samples."""

    @property
    @abstractmethod
    def n_outcomes(self) -> int:
        """One more than the largest number that :attr:`leaf_outcome` can hold."""

    @property
    @abstractmethod
    def _n_counted(self) -> int:
        """The number of columns of ``counts``."""

    @property
    def n_nodes(self) -> int:
        """The number of nodes that send samples left or right; leaves are numbered from here on."""
        return len(self.splits.b)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.splits.w.shape[1]

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features; x0, x1, ... if the training data had no names."""
        return self.feature_names or tuple(f"x{j}" for j in range(self.n_features))

    # -- the paths of samples -----------------------------------------------------------------------------------

    def apply(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the leaf of each sample."""
        ties = np.array([self.tie(t) for t in range(self.n_nodes)])
        return Router(self, ties, lambda given: self._leaf_of(self._rows(given))).leaves(self.given(X))

    @abstractmethod
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the prediction for each sample."""

    def decision_path(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return an array whose entry (i, v) is True if sample ``i`` passes node or leaf ``v``."""
        leaf = self.apply(X)
        passes = np.zeros((len(leaf), len(self.counts)), dtype=bool)
        for v in topology.leaves(self.levels):
            nodes = [t for t, _ in topology.path_to(v)]
            passes[np.ix_(leaf == v, [*nodes, v])] = True
        return passes

    def path(self, x: ArrayLike, *, verbose: bool = False) -> Path:
        """Return the path of one sample: a list of steps that prints as sentences.

        With ``verbose`` it prints as a table of all steps with the numbers of nodes and ``h``, the distance in margins.
        """
        given = self.given(np.atleast_2d(np.asarray(x, dtype=np.float64)))
        row = self._rows(given)
        if len(row) != 1:
            raise ValueError(f"path explains one sample at a time, got {len(row)}")
        steps, t = [], 0
        while t < self.n_nodes:
            h, right = self.side(row, t)
            steps.append(Step(node=t, h=float(h[0]), right=bool(right[0])))
            t = topology.right(t) if right[0] else topology.left(t)
        rules = [text.rule_text(self, step.node) for step in steps]
        outcomes = labels_below(self, reached_only=False)
        decisive = [step for step in steps if np.count_nonzero(outcomes[step.node]) > 1]
        reasons = [step_sentence(self, step.node, given[0], right=step.right) for step in decisive]
        return Path(
            steps, rules=rules, leaf=t, reasons=filter(None, reasons), verbose=verbose, **self._result_at(t, row)
        )

    @abstractmethod
    def _result_at(self, leaf: int, row: Rows) -> dict[str, Any]:
        """Return the arguments of :class:`~margotree.tree.Path` about the prediction for one sample in a leaf."""

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

    def empty_range(self, t: int) -> tuple[float, float]:
        """Return two values of ``h`` at node ``t`` between which no training sample of the node lies.

        Infinite values stand for an unknown range; printed numbers keep the sides of training samples in a known one.
        """
        return -np.inf, np.inf

    def scaled(self, X: ArrayLike) -> FloatArray:
        """Check samples and return them in scaled units; columns of a data frame are found by name."""
        return self._rows(self.given(X)).finite

    def side(self, scaled: FloatArray | Rows, t: int) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return ``h`` of samples in scaled units at node ``t``, and whether they go right."""
        rows = scaled if isinstance(scaled, Rows) else Rows.of_scaled(scaled)
        h = rows.h(self.splits.w[t], float(self.splits.b[t]))
        return h, h >= -self.tie(t)

    def selected(self, threshold: float = SELECTED) -> NDArray[np.bool_]:
        """Return an array whose entry (t, j) is True if node ``t`` uses feature ``j``: ``|w_tj| >= threshold``.

        In trees of numbers the rows of the splits are followed by those of the formulas of the leaves.
        """
        return np.abs(self.hyperplanes.w) >= threshold

    def feature_importances(self) -> FloatArray:
        """Return the importance of each feature; they sum to 1, or are all 0 if no split changes a prediction.

        Each split that :meth:`outline` shows counts with the amount by which it reduces the Gini impurity of the
        training samples, as in CART. The features of a split share this amount in proportion to their absolute weights
        in scaled units. In trees of numbers the amount is the reduction of the variance of the predictions, and the
        formulas of the leaves count with the variance of each of their terms.
        """
        found = self._importances()
        total = found.sum()
        return found / total if total > 0 else found

    @abstractmethod
    def _importances(self) -> FloatArray:
        """Return the amounts of :meth:`feature_importances`, in any unit."""

    def attributions(self, X: ArrayLike) -> Attributions:
        """Return what each feature contributes to the prediction for each sample; contributions add up exactly.

        A prediction starts at the class shares of all training samples. Every split on the path changes the shares to
        those of the child; the features of the split share this change in proportion to their absolute weights times
        the distance of the sample from the middle of the training range. What the margin adds to the shares of the leaf
        (:meth:`Tree.predict_proba`) belongs in the same way to the last split on the path. In trees of numbers, the
        formula of the leaf adds its weights times the distances of the sample from the middle of the range.
        """
        given = self.given(X)
        return self._attributions(given, self.decision_path(given))

    @abstractmethod
    def _attributions(self, given: FloatArray, passes: NDArray[np.bool_]) -> Attributions:
        """Return the contributions for samples in the units of the user, whose paths are given."""

    @property
    def numbers_to_read(self) -> int:
        """The number of numbers in the printed rules.

        A split with one feature counts 1, its threshold; a split with k features counts k + 1. Leaves, pruned nodes and
        splits that change no training sample's label count 0.
        """
        used, nodes = self.selected(), self.outline().nodes
        sizes = [int(used[t].sum()) or int(np.count_nonzero(self.splits.w[t])) for t in nodes]
        return sum(map(numbers_of_split, sizes))

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

    @abstractmethod
    def restated(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TrainingProblem:
        """Return the training problem of the tree, stated again with its training data."""

    def outline(self, *, simplify: bool = True) -> Outline:
        """Return the nodes and leaves that texts and plots show; see :func:`margotree.tree.outline.outline`.

        With ``simplify``, splits that do not change the label of any training sample are left out.
        """
        return outline(self, simplify=simplify)

    def export_text(
        self,
        *,
        digits: int | None = None,
        units: str = "user",
        width: int = 100,
        simplify: bool = True,
        verbose: bool = False,
    ) -> str:
        """Return the rules as text, from the root down.

        Samples that meet a rule go to the first block below it, the others to the block after ``else``. Only selected
        features (:data:`SELECTED`) are shown, the largest weight first, with the number of features left out. A node
        that never splits (``w = 0``, up to rounding) is replaced by its child.

        Parameters
        ----------
        digits : int, optional
            Digits of each number. By default as many as keep ``h`` of every sample in the training range to a
            hundredth of the margin; :meth:`save` keeps all digits.
        units : {"user", "scaled"}
            The units of the numbers.
        width : int
            The line length.
        simplify : bool
            Whether to leave out splits that do not change the prediction of any training sample; a note says so.
        verbose : bool
            Whether to print numbers of nodes, target sides of classes and counts of samples at splits, too.
        """
        style = text.TextStyle(digits=digits, units=units, verbose=verbose)
        return text.export_text(self, self._text_parts(style), style, width=width, simplify=simplify)

    @abstractmethod
    def _text_parts(self, style: text.TextStyle) -> text.TextParts:
        """Return what texts say about nodes and leaves."""

    # -- exporting ----------------------------------------------------------------------------------------------

    def to_c(self, *, name: str = "margotree") -> str:
        """Return the tree as C source; see :func:`margotree.export.to_c`."""
        return str(lazy_registry.get("to_c")(self, name=name))

    def to_python(self) -> str:
        """Return the tree as a Python module without dependencies; see :func:`margotree.export.to_python`."""
        return str(lazy_registry.get("to_python")(self))

    def to_onnx(self, *, float32: bool = False, columns: bool = False) -> Any:
        """Return the tree as an ONNX model (extra ``onnx``); see :func:`margotree.export.to_onnx`."""
        return lazy_registry.get("to_onnx")(self, float32=float32, columns=columns)

    # -- plots --------------------------------------------------------------------------------------------------

    def plot(self, X: ArrayLike | None = None, y: ArrayLike | None = None, ax: Any = None, **options: Any) -> Any:
        """Plot the tree on matplotlib axes, which are returned; see :func:`margotree.plots.plot_tree`."""
        return lazy_registry.get("plot_tree")(self, X, y, ax, **options)

    def plot_effect(self, X: ArrayLike, feature: int | str, ax: Any = None, **options: Any) -> Any:
        """Plot how the prediction depends on one feature; see :func:`margotree.plots.plot_effect`."""
        return lazy_registry.get("plot_effect")(self, X, feature, ax, **options)

    def to_html(
        self,
        path: str | PathLike[str],
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        title: str | None = None,
    ) -> None:
        """Write a report page: one HTML file that shows the tree and predicts new samples, without network.

        With ``X`` and ``y`` the page also has a histogram of the samples at each split; see
        :func:`margotree.page.write_page`.
        """
        lazy_registry.get("write_page")(self, path, X, y, title=title)

    def _repr_html_(self) -> str:
        """Return a plot of the tree and the statement of its certificate as HTML, for notebooks."""
        return str(lazy_registry.get("tree_html")(self))

    # -- saving -------------------------------------------------------------------------------------------------

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return JSON values from which :meth:`from_dict` makes the same tree, to the last bit."""

    @classmethod
    @abstractmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Make a tree from the result of :meth:`to_dict`."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree as JSON; an existing file is replaced after the new one is complete."""
        file.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a file of :meth:`save`; :class:`~margotree.tree.TreeFileError` says what is wrong with a file."""
        with file.naming_the_file(path):
            return cls.from_dict(file.read(path))

    # -- internal -----------------------------------------------------------------------------------------------

    def given(self, X: ArrayLike) -> FloatArray:
        """Return samples as an array of numbers in the units of the user, one row each."""
        encoded = encoded_rows(self, X)
        if encoded is not None:
            return encoded
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

    def _summed_up(self, counts: FloatArray) -> FloatArray:
        """Fill in the counts of the nodes from those of the leaves, in place."""
        for t in reversed(range(self.n_nodes)):
            counts[t] = counts[topology.left(t)] + counts[topology.right(t)]
        return counts

    def _shapes(self) -> dict[str, tuple[Any, Any]]:
        """Return the actual and the required sizes of the parts, by their names."""
        n_leaves = 2**self.levels
        return {
            "nodes": (self.n_nodes, n_leaves - 1),
            "scaling": (len(self.scaling.offset), self.n_features),
            "feature_names": (len(self.features), self.n_features),
            "counts": (self.counts.shape, (self.n_nodes + n_leaves, self._n_counted)),
        }

    def _check(self) -> None:
        for name, (got, expected) in self._shapes().items():
            if got != expected:
                raise ValueError(f"{name}: expected {expected} for this tree, got {got}")
        if not (np.all(np.isfinite(self.counts)) and np.all(self.counts >= 0)):
            raise ValueError("counts must be finite and not negative")
        below = [self.counts[topology.left(t)] + self.counts[topology.right(t)] for t in range(self.n_nodes)]
        if below and not np.allclose(self.counts[: self.n_nodes], below, rtol=1e-9, atol=0):
            raise ValueError("counts: the samples of a node must be those of its two children")
        for t, rule in self.rules.items():
            if not 0 <= t < self.n_nodes or max(rule.features) >= self.n_features:
                raise ValueError(f"rules: there is no node {t}, or it has no such features")
            w, b = rule.hyperplane(self.scaling)
            if not np.array_equal(w, self.splits.w[t]) or b != self.splits.b[t]:
                raise ValueError(f"rules: the rule of node {t} is not its hyperplane")
        if not (math.isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps must be a positive number, got {self.eps!r}")


def frozen(a: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    a.setflags(write=False)
    return a
