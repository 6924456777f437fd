"""How a command ends, as a number for scripts."""

from __future__ import annotations

OK = 0
#: The answer is no (a claim did not hold), or the work itself failed.
FAILED = 1
#: The command was not understood, or its options contradict each other.
USAGE = 2
#: A file is missing, cannot be read or written, or does not hold what is needed.
DATA = 3
#: The engine asked for is not installed, or does not solve this kind of problem.
ENGINE = 4
#: Ctrl-C or a termination signal; a tree found until then was written.
INTERRUPTED = 130

MEANING = {
    OK: "done",
    FAILED: "the answer is no (a claim did not hold), or the work failed",
    USAGE: "the command was not understood",
    DATA: "a file is missing, cannot be read or written, or does not hold what is needed",
    ENGINE: "the engine is not installed or does not solve this kind of problem",
    INTERRUPTED: "interrupted; a tree found until then was written",
}


class CommandError(Exception):
    """Ends a command with a message and an exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code
