"""OCT-1 and OCT-H as scikit-learn classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.base import RivalClassifier
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import settle
from margotree.engines import RunControl
from margotree.estimators.input_data import Samples, distinct
from margotree.estimators.parameters import CONSTRAINTS, Constraint, start_constraint
from margotree.problem import Splits
from margotree.tree import Scaling


def _a_leaf_size(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    share = isinstance(value, Real) and 0.0 <= float(value) < 1.0
    return share or (isinstance(value, Integral) and int(value) >= 1)


_RULES: Mapping[str, Constraint] = {
    **CONSTRAINTS,
    "min_samples_leaf": Constraint(
        _a_leaf_size, "a whole number from 1 on (samples) or a number in [0, 1) (their share)"
    ),
}


class _OctClassifier(RivalClassifier):
    _multi_class = True
    min_samples_leaf: Any

    def _problem(self, samples: Samples, scaling: Scaling) -> OctProblem:
        weight = samples.weight * samples.class_weight[samples.y]
        X, y, weight = distinct(samples.X, samples.y.astype(np.float64), weight, scaling)
        size = self.min_samples_leaf
        settings = self.get_params(deep=False)
        return OctProblem.make(
            X,
            y.astype(np.int64),
            depth=settings["depth"],
            alpha=settings["alpha"],
            min_leaf=float(size) if isinstance(size, Integral) else float(size) * float(weight.sum()),
            mu=settings.get("mu"),
            n_classes=len(samples.classes),
            weight=weight,
        )

    def _adopt(self, problem: OctProblem, splits: Splits, control: RunControl) -> Splits | None:
        return settle(problem, splits, control)

    def _leaf_class(self, problem: OctProblem, splits: Splits) -> NDArray[np.int64]:
        return problem.evaluate(splits).label

    def _json_terms(self, problem: OctProblem, samples: Samples) -> dict[str, Any]:
        return {
            "model": problem.model,
            "alpha": problem.alpha,
            "min_leaf": problem.min_leaf,
            "mu": problem.mu,
            "class_weight": samples.class_weight.tolist(),
        }


class OCT1Classifier(_OctClassifier):
    """The optimal tree of splits by one feature each (OCT-1 of Bertsimas and Dunn), any number of classes.

    It minimises ``(misclassified samples) / (misclassified without a split) + alpha * (number of splits)``; every leaf
    holds at least ``min_samples_leaf`` samples.  A branch that does not pay is pruned: the tree shows a leaf there.

    Parameters
    ----------
    depth : int, default 2
        Most splits on the way from the root to a label, 1 to 10.
    alpha : float, default 0.0
        Price of a split, as a share of the error without any split.
    min_samples_leaf : int or float, default 0.05
        Fewest samples of a leaf: a number of them, or a share of all; both by weight where samples have one.
    class_weight : dict, "balanced" or None, default None
        Factors on the weight of the samples of each class.
    engine : str, default "auto"
        ``"search"`` enumerates with bounds (and is what ``"auto"`` means), ``"highs"``, ``"scip"``, ``"gurobi"``,
        ``"cplex"`` and ``"copt"`` solve the source's MILP.
    time_limit : float or None, default 60
        Seconds for start and search together; None for as long as it takes.
    gap : float, default 1e-4
        Stop once the tree is proved to be within this share of the optimum.
    start : "cart", None, fitted estimator, Tree or Splits, default "cart"
        The first tree.  To pass one through ``clone`` (grid search), pass ``estimator.tree_``.
    n_jobs : int or None, default None
        Threads, where the engine can use them; None means 1 and -1 all cores.
    random_state : int, RandomState or None, default 0
        Seed of whatever an engine draws at random.
    verbose : int, default 0
        1 shows a live line with incumbent, bound, gap and time; 2 every event.

    Attributes
    ----------
    tree_, certificate_, classes_, n_features_in_, feature_names_in_, selected_features_
        As for :class:`~margotree.MargotClassifier`.  Splits are in margin units: the samples of a node nearest to its
        threshold have ``h = -1`` and ``h = 1``.
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {**_RULES, "start": start_constraint("cart")}

    def __init__(
        self,
        depth: int = 2,
        alpha: float = 0.0,
        *,
        min_samples_leaf: Any = 0.05,
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 60,
        gap: float = 1e-4,
        start: Any = "cart",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.alpha = alpha
        self.min_samples_leaf = min_samples_leaf
        self.class_weight = class_weight
        self.engine = engine
        self.time_limit = time_limit
        self.gap = gap
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _scaling(self, samples: Samples) -> Scaling:
        # Only the order of a feature's values matters, so the scale is not the user's to choose.
        return Scaling.minmax(samples.X)


class OCTHClassifier(_OctClassifier):
    """The optimal tree of hyperplane splits (OCT-H of Bertsimas and Dunn), any number of classes.

    It minimises ``(misclassified samples) / (misclassified without a split) + alpha * (features used, summed over the
    splits)``; every leaf holds at least ``min_samples_leaf`` samples.  Of the hyperplanes that part the samples in the
    same way it takes the one farthest from them.

    The parameters that are not listed and the attributes are those of :class:`OCT1Classifier`; ``alpha`` is per
    feature.

    Parameters
    ----------
    mu : float, default 0.005
        Width of the empty band beside a split ``a.x >= b`` with ``|a|_1 = 1``, in scaled units.  A split by one
        feature only needs the distance between two neighbouring values, so OCT-H is never worse than OCT-1.
    scale : "minmax" or None, default "minmax"
        Train on features brought to [0, 1]; splits are shown in the units of ``X`` all the same.
    engine : str, default "auto"
        The MILP solver: ``"highs"`` (what ``"auto"`` means), ``"scip"``, ``"gurobi"``, ``"cplex"`` or ``"copt"``.
    start : "oct_1", None, fitted estimator, Tree or Splits, default "oct_1"
        The first tree: CART, then OCT-1, as in the source.
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {**_RULES, "start": start_constraint("oct_1")}

    def __init__(
        self,
        depth: int = 2,
        alpha: float = 0.0,
        *,
        min_samples_leaf: Any = 0.05,
        mu: float = 0.005,
        scale: str | None = "minmax",
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 60,
        gap: float = 1e-4,
        start: Any = "oct_1",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.alpha = alpha
        self.min_samples_leaf = min_samples_leaf
        self.mu = mu
        self.scale = scale
        self.class_weight = class_weight
        self.engine = engine
        self.time_limit = time_limit
        self.gap = gap
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
