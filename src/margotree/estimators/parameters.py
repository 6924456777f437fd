"""The allowed values of the estimators' parameters; the parameters of the problem are checked by the problem."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from margotree.engines.base import Engine
from margotree.problem import Splits
from margotree.tree import HyperplaneTree


@dataclass(frozen=True)
class Constraint:
    """The condition on a parameter's value, and its description for error messages."""

    holds: Callable[[Any], bool]
    words: str


def _number(value: Any, low: float, high: float = math.inf) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and low <= float(value) <= high


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def start_constraint(heuristic: str) -> Constraint:
    """The constraint on ``start`` for a classifier whose default initial tree is made by ``heuristic``."""

    def holds(value: Any) -> bool:
        if isinstance(value, str):
            return value == heuristic
        if isinstance(value, (list, tuple)):
            return len(value) > 0 and all(map(is_tree, value))
        return value is None or is_tree(value)

    def is_tree(value: Any) -> bool:
        return isinstance(value, (HyperplaneTree, Splits)) or hasattr(value, "fit")

    return Constraint(holds, f"{heuristic!r}, None, a fitted estimator, a Tree, Splits, or a list of these")


def _a_seed(value: Any) -> bool:
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return not isinstance(value, np.random.Generator)
    return value is None or (_whole(value) and 0 <= value < 2**32)


#: The rules of class probabilities.
PROBA = ("margin", "smoothed", "leaf")

CONSTRAINTS: Mapping[str, Constraint] = {
    "scale": Constraint(lambda v: v is None or (isinstance(v, str) and v == "minmax"), "'minmax' or None"),
    "engine": Constraint(lambda v: isinstance(v, (str, Engine)), "the name of an engine, such as 'auto', or an engine"),
    "time_limit": Constraint(
        lambda v: v is None or (_number(v, 0.0) and v > 0), "a positive number of seconds, or None for no limit"
    ),
    "node_limit": Constraint(
        lambda v: v is None or (_whole(v) and v > 0), "a positive whole number of search nodes, or None for no limit"
    ),
    "gap": Constraint(lambda v: _number(v, 0.0, 1.0), "a number in the range [0, 1]"),
    "start": start_constraint("local_svm"),
    "n_jobs": Constraint(
        lambda v: v is None or (_whole(v) and v != 0), "a whole number other than 0 (-1: all cores), or None"
    ),
    "random_state": Constraint(_a_seed, "an int in the range [0, 4294967295], a numpy RandomState or None"),
    "class_weight": Constraint(
        lambda v: v is None or isinstance(v, Mapping) or (isinstance(v, str) and v == "balanced"),
        "'balanced', a dict from labels to weights, or None",
    ),
    "proof": Constraint(
        lambda v: v is None or isinstance(v, (str, os.PathLike)), "the name of a file to write, or None"
    ),
    "scheduler": Constraint(
        lambda v: v is None or hasattr(v, "scheduler") or (isinstance(v, str) and (v == "processes" or "://" in v)),
        "the address of a Dask scheduler such as 'tcp://10.0.0.1:8786', a Dask client, 'processes', or None",
    ),
    "round": Constraint(
        lambda v: v is None or (isinstance(v, str) and v in {"auto", "points"}) or (_whole(v) and 1 <= v <= 9),
        "'auto', 'points', a number of digits from 1 to 9, or None",
    ),
    "prune": Constraint(lambda v: v is None or _number(v, 0.0, 1.0), "a number in the range [0, 1], or None"),
    "proba": Constraint(lambda v: isinstance(v, str) and v in PROBA, "'margin', 'smoothed' or 'leaf'"),
    "verbose": Constraint(lambda v: _number(v, 0.0) or isinstance(v, bool), "0, 1 or 2"),
}


#: The same for the estimators that choose their hyperparameters by cross-validation.
CV_CONSTRAINTS: Mapping[str, Constraint] = {
    **CONSTRAINTS,
    "prune": Constraint(
        lambda v: v is None or (isinstance(v, str) and v == "auto") or _number(v, 0.0, 1.0),
        "'auto', a number in the range [0, 1], or None",
    ),
}


def check_parameters(owner: str, parameters: Mapping[str, Any], rules: Mapping[str, Constraint] = CONSTRAINTS) -> None:
    """Raise ValueError, in the format of scikit-learn, for the first parameter with a value that is not allowed."""
    for name, value in parameters.items():
        rule = rules.get(name)
        if rule is not None and not rule.holds(value):
            raise ValueError(f"The {name!r} parameter of {owner} must be {rule.words}. Got {value!r} instead.")


def rounding_options(value: Any) -> dict[str, Any] | None:
    """The arguments of :meth:`Tree.rounded` for a value of the parameter ``round``; None for no rounding."""
    if value is None:
        return None
    if isinstance(value, str):
        return {"style": "points" if value == "points" else "decimal", "digits": "auto"}
    return {"digits": int(value)}


def with_defaults(init: Callable[..., None], **defaults: Any) -> Callable[..., None]:
    """A constructor with other default values, for subclasses that differ from their base in nothing else.

    Its signature has the new defaults, so that ``get_params`` and ``clone`` of scikit-learn work.
    """
    signature = inspect.signature(init)
    parameters = [p.replace(default=defaults.get(name, p.default)) for name, p in signature.parameters.items()]

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = own.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        given.apply_defaults()
        init(*given.args, **given.kwargs)

    own = signature.replace(parameters=parameters)
    __init__.__signature__ = own  # type: ignore[attr-defined]
    return __init__


def threads(n_jobs: int | None) -> int:
    """The number of threads for ``n_jobs``; negative numbers count from the number of cores (-1: all)."""
    if n_jobs is None:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))
