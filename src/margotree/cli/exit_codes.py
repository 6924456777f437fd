"""The exit codes of commands, and the error that ends a command."""

from __future__ import annotations

OK = 0
#: A claim does not hold (``verify``, ``check``), or the command failed.
FAILED = 1
#: The command or an option is not valid, or options contradict each other.
USAGE = 2
#: A file is missing, cannot be read or written, or has the wrong content.
DATA = 3
#: The requested engine is not installed, or does not support this kind of problem.
ENGINE = 4
#: Ctrl-C or a termination signal; the best tree so far is saved, if there is one.
INTERRUPTED = 130

MEANING = {
    OK: "done",
    FAILED: "a claim does not hold, or the command failed",
    USAGE: "the command or an option is not valid",
    DATA: "a file is missing, cannot be read or written, or has the wrong content",
    ENGINE: "the engine is not installed or does not support this kind of problem",
    INTERRUPTED: "interrupted; the best tree so far is saved",
}


class CommandError(Exception):
    """The error that ends a command with a message and an exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code
