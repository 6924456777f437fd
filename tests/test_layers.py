"""Imports go from higher to lower layers, between packages and between the folders of engines, without cycles."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import margotree
from margotree import lazy_registry

HOME = Path(margotree.__file__).parent

#: The layers, lowest first; packages on one line do not import each other. ``margotree`` holds the public names.
LAYERS = (
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
LAYER = {name: k for k, names in enumerate(LAYERS) for name in names}

#: A module named in a string, to be imported by name; after a colon the name that is imported from it.
NAMED = re.compile(r"(margotree(?:\.\w+)+)(?::\w+)?")


def modules() -> dict[str, str]:
    """The source of every module of the package, by name."""
    found = {}
    for path in sorted(HOME.rglob("*.py")):
        parts = ["margotree", *path.relative_to(HOME).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


ALL = modules()


def imports(module: str, source: str, known, *, is_package: bool = False) -> set[str]:
    """The modules of the package that this one imports: at the top, in functions, or for type checkers only."""
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


#: The groups of entry points of tasks and engines, which are not modules.
ENTRY_POINTS = {"margotree.tasks", "margotree.engines"}


def named(source: str) -> set[str]:
    """The modules of the package that are named in strings, to be imported later."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    hits = (NAMED.fullmatch(value) for value in strings if isinstance(value, str))
    return {hit[1] for hit in hits if hit} - ENTRY_POINTS


def part(module: str) -> str:
    """The part of the package that a module belongs to, such as ``tree``; ``margotree`` for the package itself."""
    return [*module.split("."), ""][1] or "margotree"


def upward(module: str, source: str, **kwargs) -> set[str]:
    """What this module imports from its own layer (outside its part) or from a higher one."""
    targets = imports(module, source, ALL, **kwargs) | named(source)
    here = part(module)
    return {name for name in targets if part(name) != here and LAYER[part(name)] >= LAYER[here]}


def is_package(module: str) -> bool:
    return (HOME.parent / module.replace(".", "/")).is_dir()


def test_every_part_has_a_layer():
    assert {part(module) for module in ALL} == set(LAYER)


@pytest.mark.parametrize("module", ALL)
def test_nothing_imports_upward(module):
    assert upward(module, ALL[module], is_package=is_package(module)) == set()


def cycle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_imports_have_no_cycle():
    graph = {module: imports(module, source, ALL, is_package=is_package(module)) for module, source in ALL.items()}
    assert cycle(graph) == []


#: The folders of ``engines``, lowest first, as in LAYERS; modules count as folders.
ENGINE_LAYERS = (
    ("numba_backend", "run_control"),
    ("compiled_parts", "compiled_routing", "trivial_trees"),
    ("node",),
    ("polish", "presolve", "band"),
    ("base",),
    ("local_search",),
    ("local_svm", "exact"),
    ("local_search_engine", "mip"),
    ("branch_and_bound",),
    ("distributed",),
    ("registry",),
    ("warm",),
)


def upward_in_engines(module: str, source: str, **kwargs) -> set[str]:
    """What a module of ``engines`` imports from another folder of its own layer or of a higher one."""
    layer = {name: k for k, names in enumerate(ENGINE_LAYERS) for name in names}
    here = module.split(".")[2]
    targets = {name for name in imports(module, source, ALL, **kwargs) if name.startswith("margotree.engines.")}
    return {name for name in targets if name.split(".")[2] != here and layer[name.split(".")[2]] >= layer[here]}


ENGINE_MODULES = [name for name in ALL if name.startswith("margotree.engines.")]


@pytest.mark.parametrize("module", ENGINE_MODULES)
def test_no_upward_imports_within_engines(module):
    assert upward_in_engines(module, ALL[module], is_package=is_package(module)) == set()


@pytest.mark.parametrize(
    "line",
    [
        "from margotree.engines.branch_and_bound.engine import BranchAndBound",
        "def f():\n    from margotree.engines import local_svm",
        "import margotree.engines.distributed.search",
    ],
)
def test_an_upward_import_within_engines_is_found(line):
    assert upward_in_engines("margotree.engines.exact.fabricated", line)


#: What is the same for all tasks: it uses their losses and choices, and does not ask which task it is.
FOR_ALL_TASKS = ("margotree.engines", "margotree.proof")


def tasks_named(source: str) -> set[str]:
    """The names of tasks in a module, and the names by which it could ask for one."""
    names = {"BINARY", "Binary", "Multiclass", "Regression", "SquaredRegression", "n_classes", "as_binary"}
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


def private_imports(module: str, source: str) -> set[str]:
    """The private names that a module imports from other modules, and private attributes of imported modules."""
    nodes = list(ast.walk(ast.parse(source)))
    found, modules = set(), set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("margotree"):
            found |= {alias.name for alias in node.names if is_private(alias.name)}
            modules |= {alias.asname or alias.name for alias in node.names if f"{node.module}.{alias.name}" in ALL}
    attributes = (node for node in nodes if isinstance(node, ast.Attribute) and is_private(node.attr))
    found |= {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in modules}
    return found - {"_moved"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@pytest.mark.parametrize("module", ALL)
def test_no_private_names_of_other_modules(module):
    assert private_imports(module, ALL[module]) == set()


@pytest.mark.parametrize(
    "line",
    [
        "from margotree.tree.rules import _hidden",
        "from margotree.tree import rules\nrules._hidden()",
        "from margotree.tree import rules as r\nr._hidden",
    ],
)
def test_a_private_name_is_found(line):
    assert private_imports("margotree.export.fabricated", line)


@pytest.mark.parametrize("module", ALL)
def test_subclasses_keep_signatures(module):
    assert "type: ignore[override]" not in ALL[module]


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
        "from margotree.engines import Watch",  # the same layer
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


def test_a_cycle_is_found():
    sources = {
        "margotree.problem.one": "def f():\n    from margotree.problem.two import g",
        "margotree.problem.two": "from margotree.problem import one",
    }
    graph = {module: imports(module, source, sources) for module, source in sources.items()}
    assert set(cycle(graph)) == set(sources)


@pytest.mark.parametrize(
    "name", ["plot_tree", "write_page", "kernels_of_baselines", "restate oct_1", "restate oct_h", "restate mm_svm_oct"]
)
def test_what_trees_offer_is_there(name):
    assert lazy_registry.is_registered(name) and callable(lazy_registry.get(name))


def test_nothing_else_is_offered():
    assert not lazy_registry.is_registered("restate forest")
