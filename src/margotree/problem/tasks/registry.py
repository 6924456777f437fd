"""Tasks by name: how saved trees state their task, and how it is made again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from margotree.problem.tasks.base import Task

_TASKS: dict[str, Callable[..., Task]] = {}
#: Installed packages can add tasks under this group of entry points.
_ENTRY_POINTS = "margotree.tasks"


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


@cache
def _load_entry_points() -> None:
    """Register the tasks of installed packages."""
    for entry in entry_points(group=_ENTRY_POINTS):
        _TASKS.setdefault(entry.name, entry.load())


def task_record(task: Task) -> dict[str, Any]:
    """The name and the parameters of a task, as JSON values; ValueError for parameters of other types."""
    for name, value in vars(task).items():
        number = isinstance(value, (int, float)) and math.isfinite(value)
        if not (number or value is None or isinstance(value, (str, bool))):
            raise ValueError(
                f"the parameter {name} of the task {task.name!r} must be a finite number, a string or None to be saved "
                f"with a tree, got {value!r}"
            )
    record = {"name": task.name, "parameters": dict(vars(task))}
    if task.name in _TASKS and not _is_made_again(task, record):
        raise ValueError(
            f"the task {task!r} cannot be made again from its name {task.name!r} and its attributes: a task needs a "
            "name of its own, and its attributes must be the parameters of its constructor"
        )
    return record


def _is_made_again(task: Task, record: Mapping[str, Any]) -> bool:
    try:
        return task_from_record(record) == task
    except TypeError:
        return False


def task_from_record(record: Mapping[str, Any]) -> Task:
    """Make a task from the result of :func:`task_record`."""
    name = record["name"]
    if name not in _TASKS:
        _load_entry_points()
    if name not in _TASKS:
        raise ValueError(
            f"the task {name!r} is not registered; import the package that defines it, which calls "
            f"margotree.problem.register_task, or install a package with an entry point of the group {_ENTRY_POINTS}"
        )
    return _TASKS[name](**record["parameters"])
