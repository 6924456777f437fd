"""List the engines: which are installed, which models each trains, and how to install the others."""

from __future__ import annotations

import argparse
from typing import Any

from margotree.cli import console, exit_codes

HELP = "list the engines, their models, and how to install missing ones"

#: The baselines, which have a registry of engines of their own; with their short names.
_BASELINES = {"oct_1": "oct1", "oct_h": "octh", "mm_svm_oct": "mmsvm"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(args: argparse.Namespace) -> int:
    records = _engines()
    console.print_result({"engines": records, "auto": _auto()}, _text(records), as_json=args.json)
    return exit_codes.OK


def _engines() -> list[dict[str, Any]]:
    from margotree.baselines.registry import engines_for
    from margotree.engines import engine_names, get_engine

    records = []
    for name in engine_names():
        engine = get_engine(name)
        missing = engine.missing()
        baseline_models = [short for model, short in _BASELINES.items() if name in engines_for(model)]
        records.append(
            {
                "name": name,
                "installed": missing is None,
                "version": engine.version() if missing is None else None,
                "models": [m for m in ("margot", "hfs", "sfs") if m in engine.models] + baseline_models,
                "proves": engine.proves,
                "get_it": missing,
            }
        )
    return [*records, _search()]


def _search() -> dict[str, Any]:
    """The exact search for OCT-1, which is not an engine of the margin trees."""
    from margotree import __version__

    return {
        "name": "search",
        "installed": True,
        "version": __version__,
        "models": ["oct1"],
        "proves": True,
        "get_it": None,
    }


def _auto() -> dict[str, str]:
    from margotree.baselines.registry import engines_for
    from margotree.engines import choose_engine
    from margotree.problem.tiny_problems import tiny_problem

    auto = {model: choose_engine(tiny_problem(model)).name for model in ("margot", "hfs", "sfs")}
    return auto | {"local": "local_svm"} | {short: engines_for(model)[0] for model, short in _BASELINES.items()}


def _text(records: list[dict[str, Any]]) -> str:
    lines = [f"{'engine':<10} {'installed':<10} {'proves':<7} trains"]
    for r in records:
        installed = r["version"] if r["installed"] else "no"
        lines.append(
            f"{r['name']:<10} {installed:<10} {'yes' if r['proves'] else 'no':<7} {', '.join(r['models']) or '-'}"
        )
        if r["get_it"]:
            lines.append(f"{'':<10} to install it: {r['get_it']}")
    auto = ", ".join(f"{model}: {name}" for model, name in _auto().items())
    return "\n".join([*lines, "", f"--engine auto uses  {auto}"])
