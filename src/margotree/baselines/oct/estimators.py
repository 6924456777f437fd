"""OCT-1 and OCT-H as scikit-learn classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.base import BaselineClassifier
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import clean_tree
from margotree.engines import RunControl
from margotree.estimators.input_data import ClassSamples, merge_duplicates
from margotree.estimators.parameters import CONSTRAINTS, Constraint, start_constraint
from margotree.problem import Splits
from margotree.tree import Scaling


def _is_leaf_size(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    share = isinstance(value, Real) and 0.0 <= float(value) < 1.0
    return share or (isinstance(value, Integral) and int(value) >= 1)


_RULES: Mapping[str, Constraint] = {
    **CONSTRAINTS,
    "min_samples_leaf": Constraint(
        _is_leaf_size, "a whole number from 1 on (samples) or a number in [0, 1) (their share)"
    ),
}


class _OctClassifier(BaselineClassifier):
    """The common part of OCT-1 and OCT-H."""

    _multi_class = True
    min_samples_leaf: Any

    def _problem(self, samples: ClassSamples, scaling: Scaling) -> OctProblem:
        weight = samples.weight * samples.class_weight[samples.y]
        X, y, weight = merge_duplicates(samples.X, samples.y.astype(np.float64), weight, scaling)
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

    def _tree_with_routing(self, problem: OctProblem, splits: Splits, control: RunControl) -> Splits | None:
        return clean_tree(problem, splits, control)

    def _leaf_class(self, problem: OctProblem, splits: Splits) -> NDArray[np.int64]:
        return problem.evaluate(splits).label

    def _json_terms(self, problem: OctProblem, samples: ClassSamples) -> dict[str, Any]:
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
    holds at least ``min_samples_leaf`` samples.  A split that does not reduce the objective is replaced by a leaf.

    Parameters
    ----------
    depth : int, default 2
        Largest number of splits on a path from the root to a label, 1 to 10.
    alpha : float, default 0.0
        Penalty of a split, as a share of the error without any split.
    min_samples_leaf : int or float, default 0.05
        Smallest number of samples in a leaf, or their share of all samples; by weight if samples have weights.
    class_weight : dict, "balanced" or None, default None
        Factors on the weight of the samples of each class.
    engine : str, default "auto"
        ``"search"`` (the choice of ``"auto"``) enumerates trees with bounds; ``"highs"``, ``"scip"``, ``"gurobi"``,
        ``"cplex"`` and ``"copt"`` solve the MILP of Bertsimas and Dunn.
    time_limit : float or None, default 60
        Seconds for start and search together; None means no limit.
    gap : float, default 1e-4
        Relative gap between tree and bound at which the search stops.
    start : "cart", None, fitted estimator, Tree or Splits, default "cart"
        The first tree.  In a grid search, which clones its estimator, pass ``estimator.tree_``.
    n_jobs : int or None, default None
        Number of threads, if the engine uses threads; None means 1 and -1 all cores.
    random_state : int, RandomState or None, default 0
        Seed of the random numbers of the engine.
    verbose : int, default 0
        1 shows a line of progress with incumbent, bound, gap and time; 2 prints every event.

    Attributes
    ----------
    tree_, certificate_, classes_, n_features_in_, feature_names_in_, selected_features_
        As in :class:`~margotree.MargotClassifier`.  Splits are in margin units: the samples of a node that are nearest
        to its threshold have ``h = -1`` and ``h = 1``.
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

    def _scaling(self, samples: ClassSamples) -> Scaling:
        # Only the order of the values of a feature matters; therefore the scale is no parameter.
        return Scaling.minmax(samples.X)


class OCTHClassifier(_OctClassifier):
    """The optimal tree of hyperplane splits (OCT-H of Bertsimas and Dunn), any number of classes.

    It minimises ``(misclassified samples) / (misclassified without a split) + alpha * (features used, summed over the
    splits)``; every leaf holds at least ``min_samples_leaf`` samples.  Of the hyperplanes that separate the samples of
    a node in the same way it takes the one with the widest margin.

    The parameters that are not listed and the attributes are those of :class:`OCT1Classifier`; ``alpha`` is the penalty
    of a feature of a split.

    Parameters
    ----------
    mu : float, default 0.005
        Width of the empty band beside a split ``a.x >= b`` with ``|a|_1 = 1``, in scaled units.  A split by one
        feature needs no band, only two different values; therefore an optimal OCT-H is never worse than OCT-1.
    scale : "minmax" or None, default "minmax"
        Train on features scaled to [0, 1]; splits are shown in the units of ``X`` in both cases.
    engine : str, default "auto"
        The MILP solver: ``"highs"`` (the choice of ``"auto"``), ``"scip"``, ``"gurobi"``, ``"cplex"`` or ``"copt"``.
    start : "oct_1", None, fitted estimator, Tree or Splits, default "oct_1"
        The first tree; ``"oct_1"`` is CART, improved to OCT-1, as in the paper of Bertsimas and Dunn.
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
