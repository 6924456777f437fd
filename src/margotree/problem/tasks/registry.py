"""Tasks by name: how saved trees state their task, and how it is made again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from margotree.problem.tasks.base import Task

_TASKS: dict[str, Callable[..., Task]] = {}


def register_task(name: str, make: Callable[..., Task]) -> None:
    """Register a task, so that trees trained with it can be loaded and verified.

    Parameters
    ----------
    name : str
        The ``name`` of the task.
    make : callable
        Makes the task from its parameters, the attributes of an instance: usually its class.
    """
    if not (isinstance(name, str) and name) or not callable(make):
        raise ValueError(f"a task is registered with a name and a class, got {name!r} and {make!r}")
    _TASKS[name] = make


def task_record(task: Task) -> dict[str, Any]:
    """The name and the parameters of a task, as JSON values; ValueError for parameters of other types."""
    for name, value in vars(task).items():
        number = isinstance(value, (int, float)) and math.isfinite(value)
        if not (number or value is None or isinstance(value, (str, bool))):
            raise ValueError(
                f"the parameter {name} of the task {task.name!r} must be a finite number, a string or None to be saved "
                f"with a tree, got {value!r}"
            )
    return {"name": task.name, "parameters": dict(vars(task))}


def task_from_record(record: Mapping[str, Any]) -> Task:
    """Make a task from the result of :func:`task_record`."""
    name = record["name"]
    if name not in _TASKS:
        raise ValueError(
            f"the task {name!r} is not registered; import the package that defines it, which calls "
            "margotree.problem.register_task"
        )
    return _TASKS[name](**record["parameters"])
