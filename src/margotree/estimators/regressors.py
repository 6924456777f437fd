"""The regressors with their parameters: MARGOT, HFS and SFS regression trees, and the greedy tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from margotree.estimators.automatic_band import resolve_band
from margotree.estimators.fit_warnings import CutOffWarning, cut_off_warning
from margotree.estimators.initial_tree import number_splits
from margotree.estimators.input_data import FloatArray, Samples, merge_duplicates, numeric_targets, used_rows
from margotree.estimators.margin import MarginTreeEstimator
from margotree.estimators.parameters import CONSTRAINTS, Constraint, with_defaults
from margotree.problem import Problem, Regression, Splits, SquaredRegression, Task, check_depth, per_node, topology
from margotree.problem.tasks import task_record
from margotree.solution import Solution
from margotree.tree import HyperplaneTree, RegressionTree, Scaling, TargetScaling

#: The penalties of losses at splits and at leaves for ``C="auto"``.
SPLIT_C, LEAF_C = 0.01, 10.0

#: The loss that the engines minimise.
LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@dataclass(frozen=True, kw_only=True, eq=False)
class NumberSamples(Samples):
    """Samples with numeric targets, in the units of the user."""

    target: TargetScaling
    target_name: str = "target"


class MarginTreeRegressor(RegressorMixin, MarginTreeEstimator[NumberSamples, RegressionTree]):
    """Base class of the margin tree regressors."""

    _numeric_targets = True
    alpha: Any
    leaf_budget: Any
    epsilon: Any
    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **CONSTRAINTS,
        "loss": Constraint(
            lambda v: (isinstance(v, str) and v in LOSSES) or (isinstance(v, Task) and v.n_classes == 0),
            "'epsilon_insensitive', 'squared_epsilon_insensitive' or a task with numeric targets",
        ),
    }

    def _checked_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray, NumberSamples]:
        rows, targets, samples = super()._checked_data(X, numeric_targets(y), sample_weight)
        return rows, targets, replace(samples, target_name=_name_of(y))

    def _read(self, X: FloatArray, y: NDArray[Any], sample_weight: Any) -> NumberSamples:
        X, y, weight = used_rows(X, np.asarray(y, dtype=np.float64), sample_weight)
        return NumberSamples(X=X, y=y, weight=weight, target=TargetScaling.robust(y, weight))

    def _problem(self, samples: NumberSamples, scaling: Scaling) -> Problem:
        X, y, weight = merge_duplicates(samples.X, samples.target.apply(samples.y), samples.weight, scaling)
        terms = self._terms()
        depth = terms["depth"] = check_depth(terms["depth"])
        terms["C"] = _penalties(terms["C"], depth)
        terms["eps"] = resolve_band(terms["eps"], len(y))
        n_columns = X.shape[1] if terms["groups"] is None else len(set(terms["groups"]))
        terms["budget"] = _budgets(terms["budget"], self.leaf_budget, depth, n_columns, soft=self.alpha is not None)
        return Problem.make(X, y, weight=weight, task=self._task(), **terms)

    def _hyperplanes_of(self, tree: HyperplaneTree, scaling: Scaling, samples: NumberSamples) -> Splits:
        return number_splits(tree, scaling, samples.target)

    def _json_terms(self, problem: Problem, samples: NumberSamples) -> dict[str, Any]:
        return super()._json_terms(problem, samples) | {"task": task_record(problem.task)}

    def _task(self) -> Task:
        if isinstance(self.loss, Task):
            return self.loss
        kind = SquaredRegression if self.loss == "squared_epsilon_insensitive" else Regression
        return kind(_epsilon(self.epsilon))

    def _make_tree(
        self, solution: Solution, samples: NumberSamples, scaling: Scaling, problem: Problem
    ) -> RegressionTree:
        w, b, n_upper = solution.splits.w, solution.splits.b, problem.n_upper
        tree = RegressionTree(
            splits=Splits(w=w[:n_upper], b=b[:n_upper]),
            models=Splits(w=w[n_upper:], b=b[n_upper:]),
            scaling=scaling,
            target=samples.target,
            target_name=samples.target_name,
            feature_names=self._feature_names(),
            eps=problem.eps,
            certificate=solution.certificate.with_(units=units_text(samples.target)),
            terms=self._json_terms(problem, samples),
        )
        return tree.trained_on(samples.X, samples.y, samples.weight)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Set the residuals for :meth:`predict_interval` from samples that were not used in ``fit``.

        About 20 samples per leaf are enough for intervals of 90 %; leaves with fewer share those of their neighbours.
        """
        tree = self._tree()
        self.tree_ = tree.with_residuals(self._checked(X), numeric_targets(y))
        return self

    def predict_interval(self, X: Any, *, coverage: float = 0.9) -> FloatArray:
        """An interval for each sample, which contains the target with probability ``coverage``: (samples, 2).

        :meth:`calibrate` has to be called first; see :meth:`margotree.tree.RegressionTree.predict_interval`.
        """
        return self._tree().predict_interval(self._checked(X), coverage=coverage)

    def _fit_warnings(self, samples: NumberSamples, problem: Any) -> list[tuple[str, type[UserWarning]]]:
        return [(cut_off_warning(self.tree_), CutOffWarning)]


class MargotRegressor(MarginTreeRegressor):
    """A small tree of hyperplane splits with a linear formula in every leaf, all trained together.

    The tree has hyperplanes on ``depth`` levels.  Those of the last level are the formulas of the leaves, those above
    are splits; ``depth=1`` is a linear support vector regression.  The fit minimises the sum over nodes of
    ``1/2 |w|^2 + C * (losses of the samples that reach the node)``.  The loss at a leaf is
    ``max(0, |y - prediction| - epsilon)``.  At a split it is ``max(0, 1 - h)`` for a sample that goes right and
    ``max(0, 1 + h)`` for one that goes left.  Targets are standardised inside by their median and their interquartile
    range, divided by 1.349, so that ``C`` and ``epsilon`` do not depend on the units of the target.  The objective of
    the certificate is in these units.

    Predictions are limited to the range of the training targets in the leaf, widened on both sides by a tenth of it.

    Parameters
    ----------
    depth : int, default 3
        Number of levels of hyperplanes, 1 to 10: ``depth - 1`` levels of splits, and the formulas.
    C : number or list, default "auto"
        Penalty of losses: one number, one per level (root first), or one per node.  "auto": 0.01 at splits and 10 at
        leaves.
    budget : int, list or None, default None
        Largest number of features of a split: one number, one per level of splits, or one per split.  None: all.
    alpha : number, list or None, default None
        With ``alpha`` a hyperplane may use features beyond its budget, and each of them adds ``alpha`` to the
        objective: one number, one per level (root first), or one per node.  Budgets are then 1 if none is given.
    leaf_budget : int, list or None, default None
        Largest number of features of a formula: one number, or one per leaf.  0: constant leaves.  None: all.
    epsilon : float, default 0.0
        Errors up to this size have no loss, in units of the spread of the targets (see above).
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"} or Task, default "epsilon_insensitive"
        The loss at leaves.  The squared loss is ``max(0, |y - prediction| - epsilon) ** 2``; its bounds are weaker, and
        proofs cannot be written (docs/regression.md).  A task of your own has other losses, such as that of quantiles
        (docs/extending.md).
    band : float or "auto", default "auto"
        Width of the band at each split, in which no training sample may lie, as for classifiers.
    scale, engine, time_limit, node_limit, gap, start, n_jobs, random_state, verbose
        As in :class:`~margotree.MargotClassifier`.
    proof, scheduler, categorical_features, dates, handle_unknown
        As in :class:`~margotree.MargotClassifier`.

    Attributes
    ----------
    tree_ : RegressionTree
        The fitted tree, which predicts without scikit-learn and can be saved and printed.
    certificate_ : Certificate
        Objective, bound, gap, the proved statement, and why the search stopped.
    n_features_in_, feature_names_in_, encoding_
        As in :class:`~margotree.MargotClassifier`.
    selected_features_ : array of int
        The columns that at least one split or formula uses (``|w| >= 5e-4`` in scaled units).
    """

    def __init__(
        self,
        depth: int = 3,
        C: Any = "auto",
        budget: Any = None,
        alpha: Any = None,
        *,
        leaf_budget: Any = None,
        epsilon: float = 0.0,
        loss: Any = "epsilon_insensitive",
        band: float | str = "auto",
        scale: str | None = "minmax",
        engine: str = "auto",
        time_limit: float | None = 60,
        node_limit: int | None = None,
        gap: float = 1e-4,
        start: Any = "local_svm",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        proof: Any = None,
        scheduler: Any = None,
        categorical_features: Any = "from_dtype",
        dates: str = "error",
        handle_unknown: str = "ignore",
    ) -> None:
        self.depth = depth
        self.C = C
        self.budget = budget
        self.alpha = alpha
        self.leaf_budget = leaf_budget
        self.epsilon = epsilon
        self.loss = loss
        self.band = band
        self.scale = scale
        self.engine = engine
        self.time_limit = time_limit
        self.node_limit = node_limit
        self.gap = gap
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.proof = proof
        self.scheduler = scheduler
        self.categorical_features = categorical_features
        self.dates = dates
        self.handle_unknown = handle_unknown


class HFSMargotRegressor(MargotRegressor):
    """Hard feature selection: :class:`MargotRegressor` with ``budget=1`` and ``leaf_budget=1`` by default."""

    __init__ = with_defaults(MargotRegressor.__init__, budget=1, leaf_budget=1)


class SFSMargotRegressor(MargotRegressor):
    """Soft feature selection: :class:`MargotRegressor` with ``budget``, ``leaf_budget`` and ``alpha`` 1 by default."""

    __init__ = with_defaults(MargotRegressor.__init__, budget=1, leaf_budget=1, alpha=1.0)


class LocalSVRTreeRegressor(MarginTreeRegressor):
    """The greedy tree of support vector regressions, a fast heuristic from the root down.

    Every split separates the samples above a linear regression from those below it, or is the best split of one
    feature; then the formula of every leaf is trained.  The hyperplanes are not trained together, and no bound is
    proved for the tree.  The parameters and the attributes are those of :class:`MargotRegressor`.
    """

    def __init__(
        self,
        depth: int = 3,
        C: Any = "auto",
        budget: Any = None,
        alpha: Any = None,
        *,
        leaf_budget: Any = None,
        epsilon: float = 0.0,
        loss: Any = "epsilon_insensitive",
        band: float | str = "auto",
        scale: str | None = "minmax",
        time_limit: float | None = 60,
        node_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        categorical_features: Any = "from_dtype",
        dates: str = "error",
        handle_unknown: str = "ignore",
    ) -> None:
        self.depth = depth
        self.C = C
        self.budget = budget
        self.alpha = alpha
        self.leaf_budget = leaf_budget
        self.epsilon = epsilon
        self.loss = loss
        self.band = band
        self.scale = scale
        self.time_limit = time_limit
        self.node_limit = node_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.categorical_features = categorical_features
        self.dates = dates
        self.handle_unknown = handle_unknown

    def _engine(self) -> str:
        return "local_svm"


def units_text(target: TargetScaling) -> str:
    """The units of the objective, for the certificate."""
    return f"objective and epsilon are for targets measured from {target.center:.6g} in units of {target.scale:.6g}"


def _name_of(y: Any) -> str:
    """The name of the target: that of a pandas Series or of the only column of a frame; else "target"."""
    columns = getattr(y, "columns", None)
    name = columns[0] if columns is not None and len(columns) == 1 else getattr(y, "name", None)
    return name if isinstance(name, str) and name else "target"


def _epsilon(epsilon: Any) -> float:
    if not isinstance(epsilon, Real) or isinstance(epsilon, bool) or not 0.0 <= float(epsilon) < np.inf:
        raise ValueError(f"epsilon must be a finite number and not negative, got {epsilon!r}")
    return float(epsilon)


def _penalties(C: Any, depth: int) -> Any:
    """The penalties of losses; one per level for "auto"."""
    if not isinstance(C, str):
        return C
    if C != "auto":
        raise ValueError(f"C must be a number, a list of numbers or 'auto', got {C!r}")
    return [SPLIT_C] * (depth - 1) + [LEAF_C]


def _budgets(budget: Any, leaf_budget: Any, depth: int, n_features: int, *, soft: bool) -> list[float] | None:
    """The budget of every node from that of the splits and that of the formulas; None without budgets.

    ``soft``: features beyond the budget have a penalty.
    """
    if budget is None and leaf_budget is None:
        if not soft:
            return None
        budget = leaf_budget = 1
    n_upper, n_last = len(topology.upper(depth)), len(topology.last(depth))
    upper = [float(n_features)] * n_upper
    if budget is not None and n_upper:
        upper = per_node("budget", budget, depth - 1, low=1).tolist()
    last = np.atleast_1d(np.array(n_features if leaf_budget is None else leaf_budget, dtype=np.float64))
    if last.shape not in {(1,), (n_last,)} or not np.all((last >= 0) & (last == np.round(last))):
        raise ValueError(
            f"leaf_budget must be a whole number from 0, or {n_last} of them (one per leaf) for depth {depth}, got "
            f"{leaf_budget!r}"
        )
    return [*upper, *np.broadcast_to(last, n_last).tolist()]
