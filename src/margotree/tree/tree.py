"""Trees of classes: prediction and explanation with NumPy alone, without any optimisation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree import lazy_registry
from margotree.problem import Splits, TrainingProblem, check_depth
from margotree.problem.blocks import row_blocks
from margotree.tree import contributions, file, labels, pruning, rounding, text, verification
from margotree.tree.base import HyperplaneTree, frozen
from margotree.tree.contributions import Attributions
from margotree.tree.decision_values import Rows
from margotree.tree.outline import labels_below
from margotree.tree.probabilities import LeafShares, Probabilities, SharesOfLeaves
from margotree.tree.scaling import FloatArray
from margotree.tree.score import class_scores, score
from margotree.tree.sentences import percentage


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Tree(HyperplaneTree):
    """A tree of hyperplane splits with a label at every leaf.

    Routing is that of :class:`~margotree.tree.base.HyperplaneTree`: a sample goes right where ``w.x + b >= 0`` in
    scaled units.

    Attributes
    ----------
    classes : array
        The class labels.
    counts : array of shape (nodes and leaves, classes)
        The weight of the training samples of each class that reach each node and leaf (:meth:`counted` computes it).
    leaf_class : array of int
        The position in ``classes`` of the label of each leaf, from left to right. By default that of MARGOT: below
        each last-level node the first class on the left, the second on the right.
    probabilities : Probabilities
        The rule of :meth:`predict_proba`; by default the class shares of leaves.
    splits, scaling, feature_names, eps, certificate, terms, rules
        As in :class:`~margotree.tree.base.HyperplaneTree`.
    """

    classes: NDArray[Any]
    leaf_class: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    probabilities: Probabilities = field(default_factory=LeafShares)

    def __post_init__(self) -> None:
        self._set("classes", labels.label_array(self.classes))
        check_depth(self.depth)
        leaf_class = self.leaf_class if np.size(self.leaf_class) else np.tile([0, 1], 2 ** (self.depth - 1))
        self._set("leaf_class", frozen(np.array(leaf_class, dtype=np.int64)))
        super().__post_init__()

    @property
    def depth(self) -> int:
        """The number of levels of splits."""
        return self.levels

    @property
    def hyperplanes(self) -> Splits:
        """The splits: a tree of classes has no other hyperplanes."""
        return self.splits

    @property
    def leaf_outcome(self) -> NDArray[np.int64]:
        """The position in ``classes`` of the label of each leaf."""
        return self.leaf_class

    @property
    def n_outcomes(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    def _n_counted(self) -> int:
        return len(self.classes)

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
        return replace(self, counts=self._summed_up(counts))

    # -- predicting ---------------------------------------------------------------------------------------------

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
        classes monotone in :meth:`decision_function`; the label has the largest product of probability and class
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

    def labels_from(self, v: int, X: ArrayLike) -> NDArray[np.int64]:
        """Return the positions of the labels that samples get if they start at node or leaf ``v``."""
        return self._class_at(self._leaf_of(self._rows(self.given(X)), v))

    # -- explaining ---------------------------------------------------------------------------------------------

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
            The share of the training samples, by weight, whose label may change for the sake of fewer features and
            splits and of shorter numbers.
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

    def pruned(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, penalty: float = 0.003
    ) -> Tree:
        """Return the tree with fewer numbers to read, where these save few training errors.

        One node after the other gets the split with the smallest sum of the training errors and ``penalty`` times the
        numbers to read: no split, a part of its features, or a single feature, each with the best threshold. This is
        the pruning by cost and complexity of CART, with the parts of a split in place of whole splits; a split of a
        single feature may also be added. The objective is computed again; the bound of the certificate stays, and the
        certificate says what pruning cost. The numbers of the result are long: :meth:`rounded` shortens them. Its
        probabilities are the class shares of leaves; an estimator with ``prune`` fits those of its parameter ``proba``.

        Parameters
        ----------
        X, y, sample_weight
            The training data.
        penalty : float
            The share of the training samples, by weight (with class weights), that a number to read has to save from a
            wrong label. Smaller penalties come first, as steps on the way.

        Returns
        -------
        Tree
        """
        found = pruning.prune_tree(self, X, y, sample_weight, penalty=penalty)
        return self.after_pruning(found, X, y, sample_weight)

    def after_pruning(
        self, found: pruning.Pruned, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Tree:
        """Return the tree with the hyperplanes of a result of pruning, and the counts of its training samples."""
        weight = np.ones(len(np.asarray(y))) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        certificate = self.certificate and self.certificate.after_pruning(found.objective, found.relabelled)
        # The trained rule of probabilities is about the distances from the trained splits.
        pruned = replace(self, splits=found.splits, rules={}, certificate=certificate, probabilities=LeafShares())
        return pruned.counted(X, labels.class_positions(self.classes, y), weight)

    def _text_parts(self, style: text.TextStyle) -> text.TextParts:
        return text.ClassParts(self)

    def restated(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TrainingProblem:
        """Return the training problem of the tree, stated again with its training data."""
        return verification.restate_classes(self, X, y, sample_weight)

    def labels_below(self, *, reached_only: bool = True) -> NDArray[np.bool_]:
        """Return an array whose entry (v, k) is True if some training sample that passes ``v`` is predicted ``k``.

        Without counts, or if not ``reached_only``, all leaves below ``v`` count.
        """
        return labels_below(self, reached_only=reached_only)

    def plot_calibration(self, X: ArrayLike, y: ArrayLike, ax: Any = None, **options: Any) -> Any:
        """Plot how reliable the probabilities are on samples; see :func:`margotree.plots.plot_calibration`."""
        return lazy_registry.get("plot_calibration")(self, X, y, ax, **options)

    # -- exporting ----------------------------------------------------------------------------------------------

    def to_sql(self, *, table: str | None = None, proba: Any = None) -> str:
        """Return an SQL expression of the label, or of a probability; see :func:`margotree.export.to_sql`."""
        return str(lazy_registry.get("to_sql")(self, table=table, proba=proba))

    # -- saving -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values from which :meth:`from_dict` makes the same tree, to the last bit."""
        return file.to_record(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Tree:
        """Make a tree from the result of :meth:`to_dict`."""
        return cls(**file.from_record(record))

    def __repr__(self) -> str:
        return f"<Tree of depth {self.depth} on {self.n_features} features, classes {self.classes.tolist()}>"

    # -- internal -----------------------------------------------------------------------------------------------

    def _result_at(self, leaf: int, row: Rows) -> dict[str, Any]:
        k = int(self.leaf_class[leaf - self.n_nodes])
        share = float(self.probabilities.of(self, row, np.array([leaf]))[0, k])
        return {
            "label": self.classes[k],
            "result": f"the prediction is {self.classes[k]} (probability {percentage(share)})",
        }

    def _class_at(self, leaf: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.leaf_class[leaf - self.n_nodes]

    def _importances(self) -> FloatArray:
        return contributions.importances(self.splits.w, contributions.gini_gains(self.counts, self.outline().nodes))

    def _attributions(self, given: FloatArray, passes: NDArray[np.bool_]) -> Attributions:
        scaled, w = self.scaled(given), self.splits.w
        shares = contributions.node_means(self.leaf_shares(), self.counts.sum(axis=1))
        values = contributions.path_contributions(w, passes, shares, scaled)
        rest = self.predict_proba(given) - shares[0] - values.sum(axis=1)
        splits = [t for t in range(self.n_nodes) if w[t].any() and passes[:, t].any()]
        if not splits:  # all samples have the same probabilities
            return Attributions(base=shares[0] + rest.mean(axis=0), values=values)
        last = np.max(np.where(passes[:, splits], splits, 0), axis=1)
        split = contributions.shares_of(contributions.weighted_distances(w[last], scaled))
        return Attributions(base=shares[0], values=values + split[:, :, None] * rest[:, None, :])

    def leaf_shares(self) -> FloatArray:
        """Return the class shares of the training samples in each leaf, one row per leaf from left to right."""
        return LeafShares().table(self)

    def _shapes(self) -> dict[str, tuple[Any, Any]]:
        return super()._shapes() | {"leaf_class": (self.leaf_class.shape, (2**self.levels,))}

    def _check(self) -> None:
        super()._check()
        if np.any(self.leaf_class < 0) or np.any(self.leaf_class >= len(self.classes)):
            raise ValueError(f"leaf_class must point into the {len(self.classes)} classes, got {self.leaf_class}")
        n_upper, sides = 2 ** (self.depth - 1) - 1, self.terms.get("sides")
        if sides is not None and (np.shape(sides) or (0,))[0] != n_upper:
            raise ValueError(f"sides: expected those of {n_upper} upper nodes, got {sides!r}")
        if sides and (np.shape(sides)[1:] != (len(self.classes),) or not np.all(np.abs(np.array(sides)) == 1)):
            raise ValueError(f"sides must be -1 or +1 for each of the {len(self.classes)} classes, got {sides!r}")
        self.probabilities.check(len(self.classes))
