"""Problems of several classes, and choices as plain lists."""

from __future__ import annotations

import numpy as np

from margotree.problem import Choices, Multiclass, Problem


def several_classes(X, y, *, n_classes=None, **terms):
    """A problem whose targets are class numbers; by default with as many classes as there are numbers."""
    return Problem.make(X, y, task=Multiclass(max(2, int(np.max(y)) + 1) if n_classes is None else n_classes), **terms)


def with_choices(problem, sides, labels):
    """The problem with sides of classes and labels of leaves fixed."""
    sides = np.array(sides, dtype=np.int64).reshape(-1, problem.task.n_classes)
    return problem.with_choices(Choices(sides=sides, labels=np.array(labels, dtype=np.int64)))
