"""Tiny problems whose budgets count groups of features, for comparison with brute force."""

from __future__ import annotations

import numpy as np

from margotree.problem import BINARY, Multiclass, Problem, Regression

#: The models, by budget and penalty of the levels.
_MODELS = ({"budget": 1}, {"budget": [2, 1]}, {"budget": 1, "alpha": [2.0, 0.7]})


def instance(seed: int, *, numeric: bool = False) -> Problem:
    """A problem that can be enumerated: words as 0/1 features, and numbers, in two or three groups.

    Two thirds of the problems have two classes, the others three or, with ``numeric``, numeric targets.
    """
    rng = np.random.default_rng(seed)
    n, n_groups = int(rng.integers(4, 7)), int(rng.integers(2, 4))
    groups = rng.permutation(np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, 2)]))
    X = np.where(rng.random((1, len(groups))) < 0.5, rng.random((n, len(groups))) < 0.5, rng.random((n, len(groups))))
    several = seed % 3 == 2
    y = rng.integers(0, 3, n) if several else np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:3] = [0, 1, 2] if several else [1, -1, 1]
    terms, depth = _MODELS[seed // 3 % 3], 1 if several else 2
    terms = {name: value if np.ndim(value) == 0 else value[:depth] for name, value in terms.items()}
    C = 10.0 ** rng.uniform(-0.5, 1.5, depth)
    task = Multiclass(3) if several else BINARY
    if several and numeric:
        task, y = Regression(0.1), y + rng.normal(size=n).round(1)
    return Problem.make(X.round(2), y, task=task, depth=depth, C=C, groups=groups, eps=0.01, **terms)


def faults(problem: Problem, best: float, objective: float, bound: float) -> list[str]:
    """What is wrong about an objective and a bound that an exact search with a gap of 1e-4 claims."""
    found = []
    if objective < best * (1.0 - 1e-6) - 1e-9:
        found.append(f"objective {objective:.9g} below the optimum {best:.9g}")
    if bound > best * (1.0 + 1e-6) + 1e-9:
        found.append(f"bound {bound:.9g} above the optimum {best:.9g}")
    if objective > best * (1.0 + 2e-4) + 1e-7:
        found.append(f"objective {objective:.9g} above the optimum {best:.9g}")
    if problem.task == BINARY and bound < best * (1.0 - 2e-4) - 1e-7:
        found.append(f"bound {bound:.9g} far below the optimum {best:.9g}")
    return found
