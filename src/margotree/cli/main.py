"""The parser, and what happens to errors."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import Any

from margotree import __version__
from margotree.cli import exits
from margotree.cli.exits import CommandError

#: One module a command, in the order of the help.
COMMANDS = (
    "fit", "predict", "show", "plot", "page", "export", "verify", "check",
    "tune", "experiment", "table", "report", "engines", "completion",
)  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """All commands with all their options."""
    parser = argparse.ArgumentParser(
        prog="margotree",
        description="Margin optimal classification trees: small trees of SVM splits with a certificate.",
        epilog="Exit codes: " + "; ".join(f"{code} {words}" for code, words in exits.MEANING.items()) + ".",
    )
    parser.add_argument("--version", action="version", version=f"margotree {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name in COMMANDS:
        module = import_module(f"margotree.cli.commands.{name}")
        sub = commands.add_parser(name, help=module.HELP, description=module.__doc__, allow_abbrev=False)
        module.add(sub)
        sub.set_defaults(run=module.run, parser=sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the number returned is the exit code."""
    try:
        args = build_parser().parse_args(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    _terminate_like_ctrl_c()
    try:
        return int(args.run(args))
    except KeyboardInterrupt as interrupt:
        return _fail(args, str(interrupt) or "interrupted before there was anything to keep", exits.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has seen enough; closing stdout again must not raise a second time.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except (CommandError, ValueError, OSError, RuntimeError, MemoryError) as error:
        return _fail(args, *_told(error))


def _told(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an error.  What is not expected here stays a traceback: it is a bug of ours."""
    from margotree.engines.base import EngineError
    from margotree.solution import VerificationError
    from margotree.table import TableError
    from margotree.tree import TreeFileError

    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, EngineError):
        return str(error), exits.ENGINE
    if isinstance(error, (TableError, TreeFileError)):
        return str(error), exits.DATA
    if isinstance(error, VerificationError):
        return str(error), exits.FAILED
    if isinstance(error, OSError):
        return " ".join(filter(None, (error.filename, error.strerror))) or str(error), exits.DATA
    if isinstance(error, MemoryError):
        return "out of memory; fewer rows or features, or a smaller depth, may fit", exits.FAILED
    if isinstance(error, ValueError) or _is_data_error(error):
        return str(error), exits.DATA if _is_data_error(error) else exits.USAGE
    raise error


def _is_data_error(error: Exception) -> bool:
    from margotree.paper.data.dataset import DataError

    return isinstance(error, DataError)


def _fail(args: argparse.Namespace, message: str, code: int) -> int:
    print(f"margotree {args.command}: {message}", file=sys.stderr)
    if getattr(args, "json", False):
        print(json.dumps({"error": message, "exit_code": code}))
    return code


def _terminate_like_ctrl_c() -> None:
    """A polite kill ends a fit as Ctrl-C does: with the best tree so far."""

    def interrupt(signum: int, frame: FrameType | None) -> Any:
        signal.raise_signal(signal.SIGINT)

    try:
        signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        # Only the main thread may; elsewhere somebody else is in charge of signals.
        return
