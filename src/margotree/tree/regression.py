"""Trees of numbers: splits above, and in every leaf a linear formula of the target."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree import lazy_registry
from margotree.problem import Splits, TrainingProblem, check_depth, topology
from margotree.problem.blocks import row_blocks
from margotree.tree import contributions, file, formulas, intervals, text, verification
from margotree.tree.base import SELECTED, HyperplaneTree, frozen
from margotree.tree.contributions import Attributions
from margotree.tree.decision_values import Rows
from margotree.tree.scaling import FloatArray, TargetScaling

#: Predictions of a leaf lie in the range of its training targets, widened on both sides by this share of the range.
WIDENING = 0.1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RegressionTree(HyperplaneTree):
    """A tree of hyperplane splits with a linear formula of the target in every leaf.

    The training problem has hyperplanes on ``depth`` levels. Those of the last level are the formulas, those above are
    the splits, so that a tree of depth 1 is a single formula. A prediction is the formula of the leaf, but at least the
    lower and at most the upper limit of the leaf: the range of the training targets in the leaf, widened on both sides
    by a tenth of it.

    Attributes
    ----------
    models : Splits
        The formulas of the leaves, from left to right, in scaled units of features and target.
    target : TargetScaling
        The conversion of the target from the units of the user.
    target_name : str
        The name of the target in texts.
    limits : array of shape (leaves, 2)
        The smallest and the largest prediction of each leaf, in the units of the user. A leaf without training samples
        has those of the nearest node above it that has some.
    counts : array of shape (nodes and leaves, 1)
        The weight of the training samples that reach each node and leaf (:meth:`trained_on` computes it).
    empty_ranges : array of shape (nodes, 2)
        Two values of ``h`` between which no training sample of a split lies, the largest on the left and the smallest
        on the right; infinite where no samples are known.
    residuals : tuple of arrays
        The absolute residuals of samples that did not train the tree, in ascending order for each leaf
        (:meth:`with_residuals`); empty without such samples.
    splits, scaling, feature_names, eps, certificate, terms, rules
        As in :class:`~margotree.tree.base.HyperplaneTree`.
    """

    models: Splits
    target: TargetScaling
    target_name: str = "target"
    limits: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))
    empty_ranges: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))
    residuals: tuple[FloatArray, ...] = ()

    def __post_init__(self) -> None:
        check_depth(self.depth)
        if np.size(self.limits):
            limits = np.array(self.limits, dtype=np.float64)
        else:
            limits = np.tile([-np.inf, np.inf], (2**self.levels, 1))
        self._set("limits", frozen(limits))
        known = np.size(self.empty_ranges) > 0
        ranges = np.array(self.empty_ranges if known else np.tile([-np.inf, np.inf], (self.n_nodes, 1)))
        self._set("empty_ranges", frozen(ranges.astype(np.float64).reshape(-1, 2)))
        self._set("target_name", str(self.target_name))
        self._set("residuals", tuple(frozen(np.sort(np.array(part, dtype=np.float64))) for part in self.residuals))
        super().__post_init__()

    @property
    def depth(self) -> int:
        """The number of levels of hyperplanes: those of the splits, and the formulas."""
        return self.levels + 1

    @property
    def hyperplanes(self) -> Splits:
        """The splits, followed by the formulas."""
        w, b = (np.concatenate([getattr(self.splits, name), getattr(self.models, name)]) for name in "wb")
        return Splits(w=w, b=b)

    @property
    def leaf_outcome(self) -> NDArray[np.int64]:
        """A number per leaf; leaves with the same formula and the same limits have the same number."""
        rows = np.column_stack([self.models.w, self.models.b, self.limits])
        first: dict[bytes, int] = {}
        return np.array([first.setdefault(row.tobytes(), k) for k, row in enumerate(rows)], dtype=np.int64)

    @property
    def n_outcomes(self) -> int:
        """The number of leaves."""
        return len(self.models.b)

    @property
    def _n_counted(self) -> int:
        return 1

    def trained_on(self, X: ArrayLike, y: ArrayLike, weight: ArrayLike) -> RegressionTree:
        """Return this tree with the counts and the limits of predictions of the given training samples."""
        leaf, counts = self.apply(X), np.zeros_like(self.counts)
        targets = np.asarray(y, dtype=np.float64)
        np.add.at(counts[:, 0], leaf, np.asarray(weight, dtype=np.float64))
        low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
        np.minimum.at(low, leaf, targets)
        np.maximum.at(high, leaf, targets)
        for t in reversed(range(self.n_nodes)):
            children = [topology.left(t), topology.right(t)]
            low[t], high[t] = low[children].min(), high[children].max()
        for v in range(1, len(counts)):
            if low[v] > high[v]:  # no training samples
                low[v], high[v] = low[topology.parent(v)], high[topology.parent(v)]
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            wider = np.minimum(WIDENING * high - WIDENING * low, largest)
            limits = np.column_stack([np.maximum(low - wider, -largest), np.minimum(high + wider, largest)])
        summed, ranges = self._summed_up(counts), self._ranges_without(self.given(X), leaf)
        return replace(self, counts=summed, limits=limits[self.n_nodes :], empty_ranges=ranges)

    def _ranges_without(self, given: FloatArray, leaf: NDArray[np.int64]) -> FloatArray:
        """The ``empty_ranges`` of samples whose leaves are given."""
        found = np.tile([-np.inf, np.inf], (self.n_nodes, 1))
        for part in row_blocks(len(given), self.n_features):
            h, at = self.scaled(given[part]) @ self.splits.w.T + self.splits.b, leaf[part].copy()
            for _ in range(self.levels):
                above = (at - 1) // 2
                right, values = at % 2 == 0, h[np.arange(len(at)), above]
                np.maximum.at(found[:, 0], above[~right], values[~right])
                np.minimum.at(found[:, 1], above[right], values[right])
                at = above
        found[found[:, 0] >= found[:, 1]] = -np.inf, np.inf  # equal up to rounding errors
        return found

    def empty_range(self, t: int) -> tuple[float, float]:
        low, high = self.empty_ranges[t].tolist()
        return low, high

    # -- predicting ---------------------------------------------------------------------------------------------

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the prediction for each sample: the formula of its leaf, within the limits of the leaf."""
        given = self.given(X)
        leaf = self.apply(given)
        predicted = np.empty(len(given))
        for part in row_blocks(len(given), self.n_features):
            predicted[part] = self._values(leaf[part] - self.n_nodes, self._rows(given[part]))
        return predicted

    def with_residuals(self, X: ArrayLike, y: ArrayLike) -> RegressionTree:
        """Return this tree with the residuals of samples that did not train it, for :meth:`predict_interval`."""
        given, targets = self.given(X), np.asarray(y, dtype=np.float64)
        if targets.shape != (len(given),) or not len(given):
            raise ValueError(f"X and y must have one length of at least 1, got {len(given)} and {targets.shape}")
        if not np.all(np.isfinite(targets)):
            raise ValueError("y contains NaN or infinity")
        leaf = self.apply(given) - self.n_nodes
        found = intervals.residuals_by_leaf(targets - self.predict(given), leaf, len(self.models.b))
        return replace(self, residuals=found)

    def predict_interval(self, X: ArrayLike, *, coverage: float = 0.9) -> FloatArray:
        """Return the smallest and the largest value of an interval for each sample, of shape (samples, 2).

        Of new samples like those of :meth:`with_residuals`, at least the share ``coverage`` lies in their intervals, on
        average over such samples (split conformal prediction). The width depends on the leaf: half of it is a quantile
        of the absolute residuals there, see :func:`margotree.tree.intervals.half_widths`.
        """
        if not self.residuals:
            raise ValueError(
                "intervals need samples that did not train the tree: call calibrate(X, y) of the regressor, or "
                "with_residuals(X, y) of the tree"
            )
        given = self.given(X)
        half = intervals.half_widths(self.residuals, coverage)[self.apply(given) - self.n_nodes]
        predicted = self.predict(given)
        return np.column_stack([predicted - half, predicted + half])

    def _values(self, leaf: NDArray[np.int64], rows: Rows) -> FloatArray:
        """Return the predictions for rows whose leaves, counted from the left, are given."""
        found = np.empty(len(rows))
        for k in np.unique(leaf):
            here = np.flatnonzero(leaf == k)
            h = rows[here].h(self.models.w[k], float(self.models.b[k]))
            found[here] = np.clip(self.target.restore(h), *self.limits[k])
        return found

    def formula(self, leaf: int, *, units: str = "user") -> formulas.Formula:
        """Return the formula of a leaf, numbered as by :meth:`apply`, in the units of the user or in scaled units."""
        if not self.n_nodes <= leaf < 2 * self.n_nodes + 1:
            raise ValueError(f"the leaves of this tree are {self.n_nodes} to {2 * self.n_nodes}, got {leaf}")
        if units not in {"user", "scaled"}:
            raise ValueError(f"units are 'user' or 'scaled', got {units!r}")
        k = leaf - self.n_nodes
        w, b = self.models.w[k], float(self.models.b[k])
        if units == "user":
            w, b = self.scaling.to_user(w, b)
            w, b = w * self.target.scale, self.target.center + self.target.scale * b
        low, high = self.limits[k].tolist()
        return formulas.Formula(leaf=leaf, weights=w, constant=b, low=low, high=high)

    def to_sql(self, *, table: str | None = None) -> str:
        """Return an SQL expression of the prediction; see :func:`margotree.export.to_sql`."""
        return str(lazy_registry.get("to_sql")(self, table=table))

    def plot_predictions(self, X: ArrayLike, y: ArrayLike, ax: Any = None) -> Any:
        """Plot predictions against observed targets; see :func:`margotree.plots.plot_predictions`."""
        return lazy_registry.get("plot_predictions")(self, X, y, ax)

    def plot_residuals(self, X: ArrayLike, y: ArrayLike, ax: Any = None) -> Any:
        """Plot residuals against predictions; see :func:`margotree.plots.plot_residuals`."""
        return lazy_registry.get("plot_residuals")(self, X, y, ax)

    # -- explaining ---------------------------------------------------------------------------------------------

    def selected(self, threshold: float = SELECTED) -> NDArray[np.bool_]:
        """Return an array whose entry (t, j) is True if split or formula ``t`` uses feature ``j``.

        A formula uses a feature if ``|w_tj| >= threshold``. The weights of splits may all be small, because their
        margin is wide: the threshold is relative to the largest one, if that is below 1.
        """
        w = np.abs(self.hyperplanes.w)
        largest = np.minimum(1.0, w.max(axis=1, keepdims=True, initial=np.finfo(np.float64).tiny))
        largest[self.n_nodes :] = 1.0
        return w >= threshold * largest

    @property
    def numbers_to_read(self) -> int:
        """The number of numbers in the printed rules and formulas.

        A split with one feature counts 1, its threshold; a split with k features counts k + 1, and so does the formula
        of a leaf with k features. Splits that change no training sample's prediction count 0.
        """
        shape, used = self.outline(), self.selected()
        leaves = [shape.label[v] + self.n_nodes for v in shape.leaves]
        return super().numbers_to_read + sum(1 + int(used[v].sum()) for v in leaves)

    def _text_parts(self, style: text.TextStyle) -> text.TextParts:
        return formulas.FormulaParts(self, style)

    def _result_at(self, leaf: int, row: Rows) -> dict[str, Any]:
        value = float(self._values(np.array([leaf - self.n_nodes]), row)[0])
        return {"label": value, "result": formulas.result_text(self, leaf, value)}

    def restated(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TrainingProblem:
        """Return the training problem of the tree, stated again with its training data."""
        return verification.restate_numbers(self, X, y, sample_weight)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values from which :meth:`from_dict` makes the same tree, to the last bit."""
        return file.to_record_of_numbers(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> RegressionTree:
        """Make a tree from the result of :meth:`to_dict`."""
        return cls(**file.from_record_of_numbers(record))

    def __repr__(self) -> str:
        return f"<RegressionTree of depth {self.depth} on {self.n_features} features, target {self.target_name!r}>"

    def _importances(self) -> FloatArray:
        shape, weight = self.outline(), self.counts[:, 0]
        gains = contributions.variance_gains(self._values_in_the_middle()[:, 0], weight, shape.nodes)
        # The variance of a term w x is w^2 / 12 if x is evenly distributed over its range, 1 in scaled units.
        terms = (weight[self.n_nodes :, None] * (self.target.scale * self.models.w) ** 2 / 12).sum(axis=0)
        found: FloatArray = contributions.importances(self.splits.w, gains) + terms
        return found

    def _values_in_the_middle(self) -> FloatArray:
        """Return the values of nodes and leaves: means of the formulas at the middle of the range of every feature."""
        h = self.models.w.sum(axis=1) * contributions.MIDDLE + self.models.b
        values = np.clip(self.target.restore(h), self.limits[:, 0], self.limits[:, 1])
        return contributions.node_means(values[:, None], self.counts[:, 0])

    def _attributions(self, given: FloatArray, passes: NDArray[np.bool_]) -> Attributions:
        scaled, means = self.scaled(given), self._values_in_the_middle()
        values = contributions.path_contributions(self.splits.w, passes, means, scaled)[:, :, 0]
        terms = self.target.scale * self.models.w[np.argmax(passes[:, self.n_nodes :], axis=1)]
        terms = terms * (scaled - contributions.MIDDLE)
        # The limits of a leaf shorten all terms of its formula in proportion.
        base = float(means[0, 0])
        rest = self.predict(given) - base - values.sum(axis=1) - terms.sum(axis=1)
        return Attributions(
            base=np.asarray(base), values=values + terms + contributions.shares_of(np.abs(terms)) * rest[:, None]
        )

    # -- internal -----------------------------------------------------------------------------------------------

    def _shapes(self) -> dict[str, tuple[Any, Any]]:
        n_leaves = 2**self.levels
        return super()._shapes() | {
            "models": (self.models.w.shape, (n_leaves, self.n_features)),
            "limits": (self.limits.shape, (n_leaves, 2)),
            "empty_ranges": (self.empty_ranges.shape, (self.n_nodes, 2)),
        }

    def _check(self) -> None:
        super()._check()
        if np.any(np.isnan(self.limits)) or np.any(self.limits[:, 0] > self.limits[:, 1]):
            raise ValueError("limits: the lower limit of every leaf must be a number and at most the upper one")
        if np.any(np.isnan(self.empty_ranges)) or np.any(self.empty_ranges[:, 0] >= self.empty_ranges[:, 1]):
            raise ValueError("empty_ranges: the first number of every split must be below the second one")
        if self.residuals and len(self.residuals) != len(self.models.b):
            raise ValueError(f"residuals: there are {len(self.models.b)} leaves, got {len(self.residuals)} lists")
        if any(part.ndim != 1 or not np.all(np.isfinite(part) & (part >= 0.0)) for part in self.residuals):
            raise ValueError("residuals must be finite numbers, at least 0, in a list for each leaf")
