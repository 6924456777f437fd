"""The parser, the call of a command, and the exit codes of errors."""

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
from margotree.cli.output_files import os_error_text

#: The commands, each a module of ``margotree.cli.commands``, in the order of the help.
COMMANDS = (
    "fit", "predict", "show", "plot", "page", "export", "verify", "check",
    "tune", "stability", "experiment", "table", "report", "engines", "completion",
)  # fmt: skip


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the list of all options."""

    def error(self, message: str) -> NoReturn:
        self.exit(exit_codes.USAGE, f"{self.prog}: {message} (for all options: {self.prog} --help)\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; an unknown argument is an error that names the most similar option."""
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            command = getattr(parsed, "parser", self)
            command.error(f"unknown argument {unknown[0]}{_nearest(unknown[0], command)}")
        return parsed


def _nearest(argument: str, parser: argparse.ArgumentParser) -> str:
    known = [flag for action in parser._actions for flag in action.option_strings]
    close = get_close_matches(argument.split("=")[0], known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands with all their options."""
    parser = Parser(
        prog="margotree",
        description="Margin optimal classification trees: small trees of SVM splits with a certificate of optimality.",
        epilog="Exit codes: " + "; ".join(f"{code} {words}" for code, words in exit_codes.MEANING.items()) + ".",
    )
    parser.add_argument("--version", action="version", version=f"margotree {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    for name in COMMANDS:
        module = import_module(f"margotree.cli.commands.{name}")
        sub = commands.add_parser(name, help=module.HELP, description=module.__doc__, allow_abbrev=False)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run, parser=sub)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = argparse.Namespace(command="")
    try:
        args = build_parser().parse_args(argv)
        _treat_sigterm_as_ctrl_c()
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except SystemExit as ended:
        return int(ended.code or 0)
    except BrokenPipeError:
        # The program that reads standard output has closed it; flushing it again must not raise a second error.
        _discard_output()
        return exit_codes.OK
    except BaseException as error:
        if _is_interrupt(error):
            return _fail(args, _interrupt_message(error), exit_codes.INTERRUPTED)
        if not isinstance(error, (CommandError, ValueError, OSError, RuntimeError, MemoryError)):
            raise
        return _fail(args, *_message_and_code(error))


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether the error or one of its causes is KeyboardInterrupt; an interrupted import raises other errors."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _interrupt_message(error: BaseException) -> str:
    message = str(error) if isinstance(error, KeyboardInterrupt) else ""
    return message or "interrupted before there was a result; nothing is saved"


def _discard_output() -> None:
    """Discard all further output."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message_and_code(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an expected error; other errors are raised again, as they are bugs."""
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
        return os_error_text(error), exit_codes.DATA
    if isinstance(error, MemoryError):
        return "out of memory; use fewer rows, fewer features or a smaller depth", exit_codes.FAILED
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
        _discard_output()
        message = f"standard output cannot be written: {error.strerror or error}"
    print(f"{' '.join(filter(None, ('margotree', args.command)))}: {message}", file=sys.stderr)
    return code


def _treat_sigterm_as_ctrl_c() -> None:
    """Treat the signal SIGTERM as Ctrl-C, so that a fit ends with the best tree so far."""

    def interrupt(signum: int, frame: FrameType | None) -> Any:
        signal.raise_signal(signal.SIGINT)

    try:
        signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        # Only the main thread may install handlers; in other threads the calling program handles signals.
        return
