"""The house stands on its own floors: nothing imports upward, and nothing goes round in circles."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import margotree
from margotree import lazy_registry

HOME = Path(margotree.__file__).parent

#: From the ground up; what shares a line does not know each other.  ``margotree`` is the package's own face: the names
#: that a user sees.
FLOORS = (
    ("_moved",),
    ("lazy_registry", "atomic_files", "notices", "private_names", "small_tables", "table"),
    ("problem",),
    ("solution", "proof"),
    ("tree", "engines"),
    ("progress", "plots", "measures"),
    ("model_selection",),
    ("page", "export", "estimators"),
    ("baselines",),
    ("margotree",),
    ("paper",),
    ("cli",),
    ("data", "tuning", "experiments", "report", "pictures"),
    ("__main__",),
)
FLOOR = {name: k for k, names in enumerate(FLOORS) for name in names}

#: A module named in a string, as those are that are imported by name; behind a colon what is taken from it.
NAMED = re.compile(r"(margotree(?:\.\w+)+)(?::\w+)?")


def modules() -> dict[str, str]:
    """Every module of the package with its source."""
    found = {}
    for path in sorted(HOME.rglob("*.py")):
        parts = ["margotree", *path.relative_to(HOME).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


ALL = modules()


def imports(module: str, source: str, known, *, is_package: bool = False) -> set[str]:
    """The modules of ours that this one imports: at the top, in functions, or for type checkers only."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.split(".")[: len(module.split(".")) - node.level + is_package]
                base = ".".join([*up, base] if base else up)
            for alias in node.names:
                name = f"{base}.{alias.name}"
                if name != "margotree.__version__":  # a number, not a module
                    found.add(name if name in known else base)
    return {name for name in found if name.split(".")[0] == "margotree"} - {module}


def named(source: str) -> set[str]:
    """The modules of ours that stand in strings, to be imported later."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    hits = (NAMED.fullmatch(value) for value in strings if isinstance(value, str))
    return {hit[1] for hit in hits if hit}


def part(module: str) -> str:
    """The room of a module, such as ``tree``; ``margotree`` for the package itself."""
    return [*module.split("."), ""][1] or "margotree"


def upward(module: str, source: str, **kwargs) -> set[str]:
    """What this module imports from its own floor (outside its room) or from above."""
    targets = imports(module, source, ALL, **kwargs) | named(source)
    here = part(module)
    return {name for name in targets if part(name) != here and FLOOR[part(name)] >= FLOOR[here]}


def is_package(module: str) -> bool:
    return (HOME.parent / module.replace(".", "/")).is_dir()


def test_every_room_has_a_floor():
    assert {part(module) for module in ALL} == set(FLOOR)


@pytest.mark.parametrize("module", ALL)
def test_nothing_imports_upward(module):
    assert upward(module, ALL[module], is_package=is_package(module)) == set()


def circle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_nothing_goes_round_in_circles():
    graph = {module: imports(module, source, ALL, is_package=is_package(module)) for module, source in ALL.items()}
    assert circle(graph) == []


#: What is the same for all tasks: it uses their losses and choices, and does not ask which task it is.
FOR_ALL_TASKS = (
    "margotree.engines.local_search.",
    "margotree.engines.mip.",
    "margotree.engines.node.",
    "margotree.engines.polish",
)


def tasks_named(source: str) -> set[str]:
    """The names of tasks in a module, and the names by which it could ask for one."""
    names = {"BINARY", "Binary", "Multiclass", "Regression", "n_classes"}
    nodes = list(ast.walk(ast.parse(source)))
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    found |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return found & names


@pytest.mark.parametrize("module", [name for name in ALL if name.startswith(FOR_ALL_TASKS)])
def test_what_is_for_all_tasks_names_none(module):
    assert tasks_named(ALL[module]) == set()


@pytest.mark.parametrize(
    "line", ["if problem.task == BINARY:\n    pass", "isinstance(task, tasks.Regression)", "problem.task.n_classes > 2"]
)
def test_a_named_task_is_found(line):
    assert tasks_named(line)


@pytest.mark.parametrize(
    "line",
    [
        "from margotree.plots import plot_tree",
        "from margotree import pictures",
        "import margotree.plots.tree as drawing",
        "from ..pictures import plot_tree",
        "from .. import pictures",
        "def plot(tree):\n    from margotree.plots import plot_tree\n    return plot_tree(tree)",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from margotree.plots import plot_tree",
        'from importlib import import_module\nimport_module("margotree.plots").plot_tree',
        'HOMES = {"plot": "margotree.plots:plot_tree"}',
        "import margotree",
        "from margotree import MargotClassifier",
        "from margotree.engines import Watch",  # a neighbour on the same floor
    ],
)
def test_an_upward_import_is_found(line):
    assert upward("margotree.tree.fabricated", line)


@pytest.mark.parametrize(
    "line",
    [
        "from margotree.problem import Splits",
        "from margotree import lazy_registry",
        "from margotree import __version__",
        "from margotree.tree.scaling import Scaling",
        "from .scaling import Scaling",
        '"""Words about margotree.plots in a docstring."""',
        "import numpy as np",
    ],
)
def test_a_downward_import_is_fine(line):
    assert upward("margotree.tree.fabricated", line) == set()


def test_a_circle_is_found():
    sources = {
        "margotree.problem.one": "def f():\n    from margotree.problem.two import g",
        "margotree.problem.two": "from margotree.problem import one",
    }
    graph = {module: imports(module, source, sources) for module, source in sources.items()}
    assert set(circle(graph)) == set(sources)


@pytest.mark.parametrize(
    "name", ["plot_tree", "write_page", "kernels_of_baselines", "restate oct_1", "restate oct_h", "restate mm_svm_oct"]
)
def test_what_trees_offer_is_there(name):
    assert lazy_registry.is_registered(name) and callable(lazy_registry.get(name))


def test_nothing_else_is_offered():
    assert not lazy_registry.is_registered("restate forest")
