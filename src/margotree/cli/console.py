"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any


def say(text: str, *, quiet: bool = False) -> None:
    """A line about the work, not part of the result."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def notes(lines: Iterable[str], *, quiet: bool = False) -> None:
    for line in lines:
        say(f"note: {line}", quiet=quiet)


def result(record: dict[str, Any], text: str, *, as_json: bool) -> None:
    """The result, for a program or for a reader."""
    out((json.dumps(record, indent=2, allow_nan=False) if as_json else text) + "\n")


def out(text: str) -> None:
    """Write on standard output; an error says that it is standard output that cannot be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", "standard output") from None
