"""Files that are complete or not there at all: a full disk or a kill leaves the old one as it was."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from os import PathLike


def write_atomically(path: str | PathLike[str], fill: Callable[[str], None]) -> None:
    """Have ``fill`` write a draft beside the target, then move it over: the old file stays until the new is whole.

    The draft is removed if that fails, and the OSError raised names the target and not the draft.
    """
    target = os.path.realpath(path)
    stem, ending = os.path.splitext(target)
    draft = f"{stem}.{secrets.token_hex(4)}.part{ending}"
    try:
        fill(draft)
        _flush(draft)
        if os.path.exists(target):
            shutil.copymode(target, draft)
        os.replace(draft, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(error, OSError):
            raise write_error(error, os.fspath(path)) from error
        raise


def write_text(path: str | PathLike[str], text: str) -> None:
    """A text file, complete or not at all."""

    def fill(draft: str) -> None:
        with open(draft, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)

    write_atomically(path, fill)


def write_bytes(path: str | PathLike[str], content: bytes) -> None:
    """A binary file, complete or not at all."""

    def fill(draft: str) -> None:
        with open(draft, "xb") as stream:
            stream.write(content)

    write_atomically(path, fill)


def _flush(draft: str) -> None:
    """Have the system write the file out now: some find only then that there is no room for it."""
    descriptor = os.open(draft, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_error(error: OSError, path: str) -> OSError:
    """The same error in words about the file that was to be written, and is not."""
    unchanged = "; the file of that name that was there is unchanged" if os.path.exists(path) else ""
    reason = error.strerror or str(error)
    # The class follows from the number, so that a folder that is missing stays a FileNotFoundError.
    return OSError(error.errno, f"cannot be written: {reason}{unchanged}", path)
