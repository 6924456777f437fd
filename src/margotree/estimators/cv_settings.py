"""The settings that a cross-validated classifier tries, as walks on which every one is a small step from the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from numbers import Integral, Real
from typing import Any

from margotree.problem import topology
from margotree.problem.problem import MAX_DEPTH, check_depth

#: Depths, prices of the last level, budgets and prices of features that are tried unless the user names others.
DEPTHS = (1, 2, 3)
LAST_LEVEL = (0.1, 1.0, 10.0, 100.0, 1000.0)
BUDGETS = (1, 2, 3)
PRICES = (1.0, 10.0)

#: What upper levels cost beside the last one where they are cheap.
CHEAP = 1e-3

#: For more than two classes: prices of the last level, and what C grows by from level to level where it does.
LAST_LEVEL_SEVERAL = (1.0, 10.0, 100.0, 1000.0)
GROWTH = 10.0


#: How much upper splits may do that the classes alone do not ask for.
_FREEDOM = {"growing": 1, "cheap root": 1, "cheap upper levels": 2}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One candidate: what a plain classifier is given.  ``schedule`` tells how C runs over the levels."""

    depth: int
    C: Any
    budget: Any = None
    alpha: Any = None
    schedule: str = "given"

    @property
    def params(self) -> dict[str, Any]:
        named = {"depth": self.depth, "C": self.C, "budget": self.budget, "alpha": self.alpha}
        return {name: value for name, value in named.items() if value is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {_words(value)}" for name, value in self.params.items())

    @property
    def simplicity(self) -> tuple[float, ...]:
        """Of settings that score alike the one for which this is least is taken: shallow, few features, upper levels
        that part the classes themselves, wide margins."""
        budget = self.budget if isinstance(self.budget, (tuple, list)) else [self.budget or 0]
        return self.depth, float(max(budget)), _FREEDOM.get(self.schedule, 0), *_size(self.C)[-1:]


def schedules(depth: int, n_classes: int = 2) -> dict[str, tuple[float, ...]]:
    """How C runs from the root to the last level, as shares of the last level's.

    Equal on all levels; cheap at the root; cheap on all levels but the last.  Where upper levels are cheap, their
    splits need not part the classes themselves but may prepare for those below.  With more than two classes upper
    splits do part them: C is equal, or grows tenfold from level to level.
    """
    if depth == 1:
        return {"equal": (1.0,)}
    if n_classes > 2:
        return {"equal": (1.0,) * depth, "growing": tuple(GROWTH ** (k + 1 - depth) for k in range(depth))}
    ways = {"equal": (1.0,) * depth, "cheap root": (CHEAP, *(1.0,) * (depth - 1))}
    if depth > 2:
        ways["cheap upper levels"] = (*(CHEAP,) * (depth - 1), 1.0)
    return ways


def settings(
    depths: Any, Cs: Any, budgets: Any = None, alphas: Any = None, *, n_features: int, n_classes: int = 2
) -> list[Setting]:
    """All candidates, shallow trees first; None for ``budgets`` or ``alphas`` where the model has none."""
    features = _budgets(budgets, n_features)
    prices = [None] if alphas is None else list(PRICES) if _is_auto(alphas) else _listed("alphas", alphas)
    found = [
        Setting(depth=depth, C=C, budget=budget, alpha=alpha, schedule=schedule)
        for depth in _depths(depths, n_classes)
        for schedule, C in _prices(Cs, depth, n_classes)
        for alpha in prices
        for budget in features
        if _fits(budget, depth) and _fits(alpha, depth)
    ]
    if not found:
        raise ValueError(
            f"no setting fits: lists in Cs, budgets or alphas hold one number per level or per node, but depths are "
            f"{_depths(depths, n_classes)}"
        )
    return sorted(found, key=lambda s: (s.depth, s.schedule))


def walks(candidates: Sequence[Setting]) -> list[list[Setting]]:
    """The candidates in rows of one depth, schedule and price; along each, a tree of one is allowed in the next."""

    def row(s: Setting) -> tuple[Any, ...]:
        return s.depth, s.schedule, str(s.alpha)

    ordered = sorted(candidates, key=lambda s: (*row(s), _size(s.budget), _size(s.C)))
    return [list(group) for _, group in groupby(ordered, key=row)]


def _depths(depths: Any, n_classes: int) -> list[int]:
    if _is_auto(depths):
        # With several classes: just deep enough for each to have a leaf, and one level more.
        least = (n_classes - 1).bit_length()
        return list(DEPTHS) if n_classes == 2 else [d for d in (least, least + 1) if d <= MAX_DEPTH] or [MAX_DEPTH]
    named = [depths] if isinstance(depths, Integral) else _listed("depths", depths)
    return sorted({check_depth(depth) for depth in named})


def _prices(Cs: Any, depth: int, n_classes: int) -> list[tuple[str, Any]]:
    if _is_auto(Cs):
        last = LAST_LEVEL if n_classes == 2 else LAST_LEVEL_SEVERAL
        return [(name, _tied(c, shape)) for name, shape in schedules(depth, n_classes).items() for c in last]
    return [("given", C) for C in _listed("Cs", Cs) if _fits(C, depth)]


def _tied(c: float, shape: tuple[float, ...]) -> Any:
    return c if len(set(shape)) == 1 else tuple(c * share for share in shape)


def _budgets(budgets: Any, n_features: int) -> list[Any]:
    if budgets is None:
        return [None]
    if _is_auto(budgets):
        return [b for b in BUDGETS if b <= n_features]
    return _listed("budgets", budgets)


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be 'auto' or a list of values to try, got {values!r}")
    listed = [tuple(v) if hasattr(v, "__iter__") and not isinstance(v, str) else v for v in values]
    if not listed:
        raise ValueError(f"{name} must name at least one value to try")
    return listed


def _fits(value: Any, depth: int) -> bool:
    return not isinstance(value, tuple) or len(value) in {1, depth, topology.n_nodes(depth)}


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _size(value: Any) -> tuple[float, ...]:
    """For sorting; what is no number is left to the plain classifier to complain about."""
    numbers = value if isinstance(value, tuple) else (value,)
    return tuple(float(v) if isinstance(v, Real) else 0.0 for v in numbers)


def _words(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_words, value)) + ")"
    return f"{value:g}" if isinstance(value, Real) else str(value)
