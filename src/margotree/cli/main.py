"""The parser, and what happens to errors."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from types import FrameType
from typing import Any, NoReturn

from margotree import __version__
from margotree.cli import exit_codes
from margotree.cli.exit_codes import CommandError
from margotree.cli.output_files import os_words

#: One module a command, in the order of the help.
COMMANDS = (
    "fit", "predict", "show", "plot", "page", "export", "verify", "check",
    "tune", "experiment", "table", "report", "engines", "completion",
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and a hint, without the list of all options."""

    def error(self, message: str) -> NoReturn:
        self.exit(exit_codes.USAGE, f"{self.prog}: {message} ({self.prog} --help lists the options)\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """All arguments parsed; one that the command does not know is its error, with the option that comes nearest."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            command = getattr(parsed, "parser", self)
            command.error(f"there is no option or further argument {unknown[0]}{_nearest(unknown[0], command)}")
        return parsed


def _nearest(wanted: str, parser: argparse.ArgumentParser) -> str:
    known = [flag for action in parser._actions for flag in action.option_strings]
    close = get_close_matches(wanted.split("=")[0], known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def build_parser() -> argparse.ArgumentParser:
    """All commands with all their options."""
    parser = Parser(
        prog="margotree",
        description="Margin optimal classification trees: small trees of SVM splits with a certificate.",
        epilog="Exit codes: " + "; ".join(f"{code} {words}" for code, words in exit_codes.MEANING.items()) + ".",
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
    args = argparse.Namespace(command="")
    try:
        args = build_parser().parse_args(argv)
        _terminate_like_ctrl_c()
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except SystemExit as ended:
        return int(ended.code or 0)
    except BrokenPipeError:
        # The reader of our output has seen enough; closing stdout again must not raise a second time.
        _drop_output()
        return exit_codes.OK
    except BaseException as error:
        if _is_interrupt(error):
            return _fail(args, _why_interrupted(error), exit_codes.INTERRUPTED)
        if not isinstance(error, (CommandError, ValueError, OSError, RuntimeError, MemoryError)):
            raise
        return _fail(args, *_told(error))


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether it is Ctrl-C, or what a module that was interrupted while it was imported made of it."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _why_interrupted(error: BaseException) -> str:
    said = str(error) if isinstance(error, KeyboardInterrupt) else ""
    return said or "interrupted before there was anything to keep"


def _drop_output() -> None:
    """Have what is still to be printed go nowhere."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an error.  What is not expected here stays a traceback: it is a bug of ours."""
    from margotree.engines.base import EngineError
    from margotree.solution import VerificationError
    from margotree.table import TableError
    from margotree.tree import TreeFileError

    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, EngineError):
        return str(error), exit_codes.ENGINE
    if isinstance(error, (TableError, TreeFileError)):
        return str(error), exit_codes.DATA
    if isinstance(error, VerificationError):
        return str(error), exit_codes.FAILED
    if isinstance(error, OSError):
        return os_words(error), exit_codes.DATA
    if isinstance(error, MemoryError):
        return "out of memory; fewer rows or features, or a smaller depth, may fit", exit_codes.FAILED
    if isinstance(error, ValueError) or _is_data_error(error):
        return str(error), exit_codes.DATA if _is_data_error(error) else exit_codes.USAGE
    raise error


def _is_data_error(error: Exception) -> bool:
    from margotree.paper.data.dataset import DataError

    return isinstance(error, DataError)


def _fail(args: argparse.Namespace, message: str, code: int) -> int:
    try:
        sys.stdout.flush()
        if getattr(args, "json", False):
            print(json.dumps({"error": message, "exit_code": code}), flush=True)
    except OSError as error:
        _drop_output()
        message = f"standard output cannot be written: {error.strerror or error}"
    print(f"{' '.join(filter(None, ('margotree', args.command)))}: {message}", file=sys.stderr)
    return code


def _terminate_like_ctrl_c() -> None:
    """A polite kill ends a fit as Ctrl-C does: with the best tree so far."""

    def interrupt(signum: int, frame: FrameType | None) -> Any:
        signal.raise_signal(signal.SIGINT)

    try:
        signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        # Only the main thread may install handlers; elsewhere the caller is in charge of signals.
        return
