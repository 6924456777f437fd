"""The settings that a CV estimator tries, in paths of neighbouring settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Integral, Real
from typing import Any

from margotree.problem import topology
from margotree.problem.problem import MAX_DEPTH, check_depth

#: The default depths, values of C of the last level, budgets and alphas.
DEPTHS = (1, 2, 3)
LAST_LEVEL_C = (0.1, 1.0, 10.0, 100.0, 1000.0)
BUDGETS = (1, 2, 3)
ALPHAS = (1.0, 10.0)

#: C of levels with a decreased C, as a share of C of the last level.
DECREASED_C = 1e-3

#: For more than two classes: the values of C of the last level, and the factor of a growing C from level to level.
LAST_LEVEL_C_MULTICLASS = (1.0, 10.0, 100.0, 1000.0)
GROWTH = 10.0


#: With fewer seconds per setting than this, the automatic values of C are few: one with equal C on all levels, and one
#: with another schedule.
MIN_SECONDS_PER_SETTING = 0.65
#: The processor seconds that a setting without budgets needs on small tables: at least, and per entry and class.
_SECONDS_SMALL, _SECONDS_PER_ENTRY = 0.18, 2.4e-5
FEW_EQUAL_C, FEW_LAST_LEVEL_C = 10.0, 100.0

#: The complexity of the schedules: 0 for equal C; more if margin violations at upper splits have a small penalty.
_SCHEDULE_COMPLEXITY = {"growing": 1, "decreased at root": 1, "decreased above last level": 2}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting of the hyperparameters.  ``schedule`` is the name of the schedule of C over the levels."""

    depth: int
    C: Any
    budget: Any = None
    alpha: Any = None
    leaf_budget: Any = None
    epsilon: float | None = None
    loss: Any = None
    schedule: str = "given"

    @property
    def params(self) -> dict[str, Any]:
        """The parameters for the estimator."""
        named = {
            "depth": self.depth, "C": self.C, "budget": self.budget, "alpha": self.alpha,
            "leaf_budget": self.leaf_budget, "epsilon": self.epsilon, "loss": self.loss,
        }  # fmt: skip
        return {name: value for name, value in named.items() if value is not None}

    @property
    def simplicity(self) -> tuple[float, ...]:
        """A sort key; of settings with equal scores the smallest is chosen.

        In this order: depth, number of features, squared loss first (its formulas vary less from sample to sample),
        complexity of the schedule, C of the last level.
        """
        budget = self.budget if isinstance(self.budget, (tuple, list)) else [self.budget or 0]
        complexity = _SCHEDULE_COMPLEXITY.get(self.schedule, 0)
        return self.depth, float(max(budget)), self.loss == LINEAR_LOSS, complexity, *_sort_key(self.C)[-1:]


def schedules(depth: int, n_classes: int = 2) -> dict[str, tuple[float, ...]]:
    """The schedules of C from the root to the last level, as shares of C of the last level.

    Two classes: C is equal on all levels, decreased at the root, or decreased on all levels above the last.  With a
    decreased C an upper split need not separate the classes and may prepare for the splits below.  More than two
    classes: C is equal, or grows tenfold from level to level, because upper splits separate groups of classes.
    """
    if depth == 1:
        return {"equal": (1.0,)}
    if n_classes > 2:
        return {"equal": (1.0,) * depth, "growing": tuple(GROWTH ** (k + 1 - depth) for k in range(depth))}
    found = {"equal": (1.0,) * depth, "decreased at root": (DECREASED_C, *(1.0,) * (depth - 1))}
    if depth > 2:
        found["decreased above last level"] = (*(DECREASED_C,) * (depth - 1), 1.0)
    return found


def settings(
    depths: Any,
    Cs: Any,
    budgets: Any = None,
    alphas: Any = None,
    *,
    n_features: int,
    n_classes: int = 2,
    n_samples: float = math.inf,
    seconds: float = math.inf,
    n_threads: int = 1,
) -> list[Setting]:
    """All settings, small depths first; ``budgets`` or ``alphas`` is None if the model has none.

    The automatic values of C are few if all settings would have little of the ``seconds`` each, for the number of
    samples.
    """
    given = depths, Cs, budgets, alphas
    found = _settings(*given, few=False, n_features=n_features, n_classes=n_classes)
    needed = MIN_SECONDS_PER_SETTING
    if budgets is None:
        on_one_thread = _SECONDS_SMALL + _SECONDS_PER_ENTRY * n_samples * n_features * n_classes
        needed = min(needed, on_one_thread / n_threads)
    if not _is_auto(Cs) or seconds >= needed * len(found):
        return found
    return _settings(*given, few=True, n_features=n_features, n_classes=n_classes)


def _settings(
    depths: Any, Cs: Any, budgets: Any, alphas: Any, *, few: bool, n_features: int, n_classes: int
) -> list[Setting]:
    features = _budgets(budgets, n_features)
    alpha_values = [None] if alphas is None else list(ALPHAS) if _is_auto(alphas) else _value_list("alphas", alphas)
    found = [
        Setting(depth=depth, C=C, budget=budget, alpha=alpha, schedule=schedule)
        for depth in _depths(depths, n_classes)
        for schedule, C in (_few_C_values(depth, n_classes) if few else _C_values(Cs, depth, n_classes))
        for alpha in alpha_values
        for budget in features
        if _fits(budget, depth) and _fits(alpha, depth)
    ]
    if not found:
        raise ValueError(
            f"no setting matches a depth: lists in Cs, budgets or alphas must have one number per level or per node, "
            f"but the depths are {_depths(depths, n_classes)}"
        )
    return sorted(found, key=lambda s: (s.depth, s.schedule))


#: For numbers: the depths, the values of C at leaves and at splits, and the widths of the tube.
DEPTHS_OF_NUMBERS = (1, 2, 3, 4)
LEAF_C, SPLIT_C = (3.0, 30.0, 300.0), (0.01, 1.0)
EPSILONS = (0.0, 0.1)
#: The losses; the squared one has no tube unless widths are given.
LINEAR_LOSS, SQUARED_LOSS = "epsilon_insensitive", "squared_epsilon_insensitive"


def settings_of_numbers(
    depths: Any, Cs: Any, budgets: Any, alphas: Any, epsilons: Any, losses: Any = (LINEAR_LOSS,), *,
    n_features: int, seconds: float = math.inf,
) -> list[Setting]:  # fmt: skip
    """All settings of a regressor, small depths first.

    A budget is a number, or a pair of those of splits and of formulas.  The automatic values of C and epsilon are few
    if all settings would have little of the ``seconds`` each.
    """
    given = depths, Cs, budgets, alphas, epsilons, losses
    found = _settings_of_numbers(*given, few=False, n_features=n_features)
    if seconds >= MIN_SECONDS_PER_SETTING * len(found):
        return found
    return _settings_of_numbers(*given, few=True, n_features=n_features)


def _settings_of_numbers(
    depths: Any, Cs: Any, budgets: Any, alphas: Any, epsilons: Any, losses: Any, *, few: bool, n_features: int
) -> list[Setting]:
    alpha_values = [None] if alphas is None else list(ALPHAS) if _is_auto(alphas) else _value_list("alphas", alphas)
    pairs = [b if isinstance(b, tuple) else (b, b) for b in _budgets(budgets, n_features)]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"budgets must be numbers, or pairs of those of splits and of formulas, got {budgets!r}")
    found = [
        Setting(depth=d, C=C, budget=split, leaf_budget=leaf, alpha=alpha, epsilon=width, loss=loss, schedule=schedule)
        for d in (DEPTHS_OF_NUMBERS if _is_auto(depths) else _depths(depths, 2))
        for schedule, C in _C_of_numbers(Cs, d, few)
        for alpha in alpha_values
        for split, leaf in pairs
        for loss, width in _losses(losses, epsilons, few)
    ]
    if not found:
        raise ValueError("no setting matches a depth: lists in Cs must have one number per level or per node")
    return sorted(found, key=lambda s: (s.depth, s.schedule))


def _losses(losses: Any, epsilons: Any, few: bool) -> list[tuple[Any, float]]:
    """The losses with the widths of their tubes."""
    chosen = [LINEAR_LOSS, SQUARED_LOSS] if _is_auto(losses) else _value_list("losses", losses)
    if not _is_auto(epsilons):
        return [(loss, width) for loss in chosen for width in _value_list("epsilons", epsilons)]
    widths = {LINEAR_LOSS: EPSILONS[:1] if few else EPSILONS}
    return [(loss, width) for loss in chosen for width in widths.get(loss, (0.0,))]


def _C_of_numbers(Cs: Any, depth: int, few: bool) -> list[tuple[str, Any]]:
    """Values of C with the name of their schedule: splits with a small C, or with a larger one."""
    if not _is_auto(Cs):
        return [("given", C) for C in _value_list("Cs", Cs) if _fits(C, depth)]
    splits = [None] if depth == 1 else SPLIT_C[:1] if few else SPLIT_C
    leaves = LEAF_C[1:2] if few else LEAF_C
    return [
        (f"splits {c}", leaf) if c is None else (f"splits {c:g}", (*(c,) * (depth - 1), leaf))
        for c in splits
        for leaf in leaves
    ]


def neighbour_paths(candidates: Sequence[Setting]) -> list[list[int]]:
    """The positions of the settings in paths of equal depth, schedule and alpha, along budget and C.

    A tree of one setting is feasible for the next one of its path.
    """

    def path(k: int) -> tuple[Any, ...]:
        one = candidates[k]
        return one.depth, one.schedule, str(one.alpha), one.epsilon or 0.0, str(one.loss)

    def place(k: int) -> tuple[Any, ...]:
        return *path(k), _sort_key(candidates[k].budget), _sort_key(candidates[k].C)

    return [list(group) for _, group in groupby(sorted(range(len(candidates)), key=place), key=path)]


def _depths(depths: Any, n_classes: int) -> list[int]:
    if _is_auto(depths):
        # More than two classes: the smallest depth with a leaf for each class, and one more.
        smallest = (n_classes - 1).bit_length()
        return (
            list(DEPTHS) if n_classes == 2 else [d for d in (smallest, smallest + 1) if d <= MAX_DEPTH] or [MAX_DEPTH]
        )
    named = [depths] if isinstance(depths, Integral) else _value_list("depths", depths)
    return sorted({check_depth(depth) for depth in named})


def _C_values(Cs: Any, depth: int, n_classes: int) -> list[tuple[str, Any]]:
    if _is_auto(Cs):
        last = LAST_LEVEL_C if n_classes == 2 else LAST_LEVEL_C_MULTICLASS
        return [(name, _scaled(c, shape)) for name, shape in schedules(depth, n_classes).items() for c in last]
    return [("given", C) for C in _value_list("Cs", Cs) if _fits(C, depth)]


def _few_C_values(depth: int, n_classes: int) -> list[tuple[str, Any]]:
    """Equal C on all levels, and a smaller C above the last level, or at the root."""
    shapes = schedules(depth, n_classes)
    names = [name for name in ("growing", "decreased at root") if name in shapes]
    return [("equal", FEW_EQUAL_C), *((name, _scaled(FEW_LAST_LEVEL_C, shapes[name])) for name in names)]


def _scaled(c: float, shape: tuple[float, ...]) -> Any:
    return c if len(set(shape)) == 1 else tuple(c * share for share in shape)


def _budgets(budgets: Any, n_features: int) -> list[Any]:
    if budgets is None:
        return [None]
    if _is_auto(budgets):
        return [b for b in BUDGETS if b <= n_features]
    return _value_list("budgets", budgets)


def _value_list(name: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be 'auto' or a list of values to try, got {values!r}")
    listed = [tuple(v) if hasattr(v, "__iter__") and not isinstance(v, str) else v for v in values]
    if not listed:
        raise ValueError(f"{name} must have at least one value to try")
    return listed


def _fits(value: Any, depth: int) -> bool:
    return not isinstance(value, tuple) or len(value) in {1, depth, topology.n_nodes(depth)}


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _sort_key(value: Any) -> tuple[float, ...]:
    """A sort key for a number or a tuple; other values count as 0, and the classifier raises the error."""
    numbers = value if isinstance(value, tuple) else (value,)
    return tuple(float(v) if isinstance(v, Real) else 0.0 for v in numbers)
