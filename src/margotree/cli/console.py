"""Print results on standard output and all else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any


def print_status(text: str, *, quiet: bool = False) -> None:
    """Print a line about the progress of a command on standard error."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def print_notes(lines: Iterable[str], *, quiet: bool = False) -> None:
    """Print notes for the user on standard error."""
    for line in lines:
        print_status(f"note: {line}", quiet=quiet)


def print_result(record: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print the result of a command: ``record`` as JSON, or ``text``."""
    print_output((json.dumps(record, indent=2, allow_nan=False) if as_json else text) + "\n")


def print_output(text: str) -> None:
    """Write on standard output; an error names standard output as the file that cannot be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", "standard output") from None
