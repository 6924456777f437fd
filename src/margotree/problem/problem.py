"""The statement of one training problem: data, task and terms, checked and read-only."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem import topology
from margotree.problem.blocks import FloatArray as FloatArray
from margotree.problem.blocks import IndexArray
from margotree.problem.tasks import BINARY, Choices, Multiclass, Task, check_items
from margotree.problem.value import Evaluation, Splits, evaluate

#: The largest depth: more than 1023 splits make no readable tree.
MAX_DEPTH = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """The training problem of a margin optimal tree for two classes.

    Minimise over the splits ``(w_t, b_t)`` of a complete tree of the given depth, and over the choices of the task::

        sum_t  1/2 |w_t|^2 + C_t sum_{i reaches t} weight_i loss_t(y_i, h_t(x_i))
               [+ alpha_t max(0, |supp w_t| - B_t)]

    where ``h_t(x) = w_t.x + b_t``. At upper nodes a sample goes right if ``h_t(x) >= 0``, left if ``h_t(x) <= -eps``,
    and may not lie between. The task defines the losses: for two classes ``max(0, 1 - y_i h_t(x_i))``; see
    :mod:`margotree.problem.tasks` for the others. With ``budget`` alone the support of ``w_t`` is limited to ``B_t``
    features (HFS); with ``budget`` and ``alpha`` every feature above the budget adds ``alpha_t`` (SFS). Where features
    form groups, ``|supp w|`` is the number of groups with a weight.

    Use :meth:`Problem.make`, which checks its arguments and makes the arrays read-only.
    """

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray
    depth: int
    C: FloatArray
    task: Task = BINARY
    eps: float = 1e-3
    budget: IndexArray | None = None
    alpha: FloatArray | None = None
    max_weight: float | None = None
    choices: Choices | None = None
    groups: IndexArray | None = None

    @classmethod
    def make(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        depth: int,
        task: Task = BINARY,
        C: Any = 1.0,
        weight: ArrayLike | None = None,
        eps: float = 1e-3,
        budget: Any = None,
        alpha: Any = None,
        max_weight: float | None = None,
        groups: ArrayLike | None = None,
    ) -> Problem:
        """Check the arguments and return the problem.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Targets as the task defines them: -1 and +1 for two classes, class numbers for several.
        depth : int
            Number of levels of splits.
        task : Task, default=BINARY
            What the targets are; ``Multiclass(n_classes)`` for several classes.
        C : float or list
            Penalty of losses: a number, one per level, or one per node.
        weight : array of shape (n_samples,), optional
            Sample weights.
        eps : float
            Width of the band beside upper splits.
        budget, alpha : number or list, optional
            Features per split and penalty of features above that, in the same three forms as ``C``. With
            numeric targets a budget of 0 on the last level stands for constant leaves.
        max_weight : float, optional
            Largest absolute value of a weight.
        groups : array of shape (n_features,), optional
            A group number for every feature. Budgets and penalties count the groups that a split uses: for example all
            features made from one column of a table. By default every feature is a group.
        """
        X = read_only_samples(X)
        targets = task.targets(y)
        w = np.ones(len(targets)) if weight is None else np.array(weight, dtype=np.float64).ravel()
        _check_samples(X, targets, w)
        check_items(task, targets)
        depth = check_depth(depth)
        group_of = _groups(groups, X.shape[1])
        n_groups = X.shape[1] if group_of is None else int(np.max(group_of)) + 1
        problem = cls(
            X=X,
            y=_read_only(targets),
            weight=_read_only(w),
            depth=depth,
            C=_read_only(per_node("C", C, depth, low=0.0, low_open=True)),
            task=task,
            eps=positive_number("eps", eps),
            budget=_budget(budget, depth, n_groups, low=0 if task.losses_follow_side else 1),
            alpha=None if alpha is None else _read_only(per_node("alpha", alpha, depth, low=0.0)),
            max_weight=None if max_weight is None else positive_number("max_weight", max_weight),
            groups=group_of,
        )
        if alpha is not None and budget is None:
            raise ValueError("alpha is the penalty of features above the budget, but no budget is given")
        return problem

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def group_of(self) -> IndexArray:
        """The group of every feature, 0, 1, ..."""
        return np.arange(self.n_features) if self.groups is None else self.groups

    @property
    def n_groups(self) -> int:
        """Number of groups of features; that of features by default."""
        return self.n_features if self.groups is None else int(np.max(self.groups)) + 1

    @property
    def n_nodes(self) -> int:
        return topology.n_nodes(self.depth)

    @property
    def n_upper(self) -> int:
        """Number of nodes above the last level."""
        return len(topology.upper(self.depth))

    @property
    def n_last(self) -> int:
        """Number of nodes on the last level."""
        return len(topology.last(self.depth))

    @property
    def model(self) -> str:
        """``"margot"``, ``"hfs"`` (hard budgets) or ``"sfs"`` (feature penalties)."""
        if self.budget is None:
            return "margot"
        return "hfs" if self.alpha is None else "sfs"

    def with_choices(self, choices: Choices) -> Problem:
        """The same problem with sides of classes and labels of leaves fixed; ValueError if they do not fit."""
        return replace(self, choices=self.task.check_choices(choices, self.n_upper, self.n_last))

    def evaluate(self, splits: Splits) -> Evaluation:
        """Objective and feasibility of a tree by the plain function :func:`margotree.problem.evaluate`."""
        return evaluate(self, splits)

    def as_binary(self) -> Problem:
        """The same problem with the task of two classes; for class numbers 0 and 1 only."""
        if self.task.n_classes != 2:
            raise ValueError(f"this problem has {self.task.n_classes} classes")
        signs = self.y if self.task == BINARY else _read_only(np.where(self.y == 1, 1.0, -1.0))
        return replace(self, y=signs, task=BINARY, choices=None)


class MulticlassProblem:
    """Deprecated, removed in 0.3: use :meth:`Problem.make` with ``task=Multiclass(n_classes)``."""

    @staticmethod
    def make(X: ArrayLike, y: ArrayLike, *, n_classes: int | None = None, **terms: Any) -> Problem:
        """The problem with the task of several classes; by default as many as there are class numbers."""
        text = "MulticlassProblem is deprecated; use Problem.make(..., task=Multiclass(n_classes)) instead"
        warnings.warn(text, FutureWarning, stacklevel=2)
        return Problem.make(X, y, task=Multiclass(int(np.max(y)) + 1 if n_classes is None else n_classes), **terms)


def read_only_samples(X: ArrayLike) -> FloatArray:
    """The samples in a read-only array: a copy, unless X is such an array already."""
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype == np.float64:
        frozen = X.base is None and not X.flags.writeable
        if frozen and X.flags.c_contiguous:
            return X
    return _read_only(np.array(X, dtype=np.float64, order="C", ndmin=2))


def check_depth(depth: Any) -> int:
    """Return the depth as an int; ValueError if it is not a whole number in the allowed range."""
    if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"depth must be a whole number from 1 to {MAX_DEPTH}, got {depth!r}")
    return int(depth)


def per_node(
    name: str, value: Any, depth: int, *, low: float, low_open: bool = False, high: float = np.inf
) -> FloatArray:
    """Return one number per branch node from one number, one per level, or one per node.

    Parameters
    ----------
    name : str
        The name of the parameter, for error messages.
    low, high : float
        The range allowed; ``low`` itself is excluded if ``low_open``.

    For depth 1 the three forms coincide; for larger depths the lengths ``depth`` and ``2**depth - 1`` differ.
    """
    try:
        given = np.atleast_1d(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number or a list of numbers, got {value!r}") from None
    nodes = topology.n_nodes(depth)
    if given.ndim != 1 or given.size not in {1, depth, nodes}:
        raise ValueError(
            f"{name} must be one number, {depth} numbers (one per level) or {nodes} (one per node) "
            f"for depth {depth}, got {given.size}"
        )
    too_low = given <= low if low_open else given < low
    if not np.all(np.isfinite(given)) or np.any(too_low) or np.any(given > high):
        sign = ">" if low_open else ">="
        limit = "" if np.isinf(high) else f" and <= {high:g}"
        raise ValueError(f"{name} must be finite and {sign} {low:g}{limit}, got {value!r}")
    if given.size == 1:
        return np.full(nodes, given[0])
    if given.size == depth and given.size != nodes:
        return np.array([given[topology.level(t)] for t in range(nodes)])
    return given.copy()


def _groups(groups: ArrayLike | None, n_features: int) -> IndexArray | None:
    """The groups numbered 0, 1, ...; None if every feature is a group."""
    if groups is None:
        return None
    given = np.asarray(groups)
    if given.shape != (n_features,) or given.dtype.kind not in "iu":
        raise ValueError(f"groups must hold one whole number for each of the {n_features} features, got {groups!r}")
    different, group_of = np.unique(given, return_inverse=True)
    if len(different) == n_features:
        return None
    frozen = group_of.astype(np.int64)
    frozen.setflags(write=False)
    return frozen


def _budget(budget: Any, depth: int, n_groups: int, low: int) -> NDArray[np.int64] | None:
    if budget is None:
        return None
    B = per_node("budget", budget, depth, low=low)
    if np.any(B[: len(topology.upper(depth))] < 1):
        raise ValueError(f"budget must be at least 1 above the last level, got {budget!r}")
    if np.any(B != np.round(B)):
        raise ValueError(f"budget must be whole numbers of features, got {budget!r}")
    frozen = np.minimum(B, n_groups).astype(np.int64)  # more than there are means all
    frozen.setflags(write=False)
    return frozen


def _check_samples(X: FloatArray, y: NDArray[Any], weight: FloatArray) -> None:
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must hold at least one sample and one feature, got shape {X.shape}")
    if not (len(X) == len(y) == len(weight)):
        raise ValueError(f"X, y and weight must be of one length, got {len(X)}, {len(y)} and {len(weight)}")
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(weight))):
        raise ValueError("X and weight must not contain NaN or infinity")
    if np.any(weight < 0):
        raise ValueError("weight must not be negative")


def positive_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return number


def _read_only(a: NDArray[Any]) -> NDArray[Any]:
    a.setflags(write=False)
    return a
