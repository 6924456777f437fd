"""Writing files completely or not at all: if the disk is full or the process is killed, the old file is unchanged."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from os import PathLike


def write_atomically(path: str | PathLike[str], fill: Callable[[str], None]) -> None:
    """Let ``fill`` write a draft next to the target, then rename it: the old file stays until the new one is complete.

    If this fails, the draft is removed and the OSError names the target instead of the draft.
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
    """Write a text file, completely or not at all."""

    def fill(draft: str) -> None:
        with open(draft, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)

    write_atomically(path, fill)


def write_bytes(path: str | PathLike[str], content: bytes) -> None:
    """Write a binary file, completely or not at all."""

    def fill(draft: str) -> None:
        with open(draft, "xb") as stream:
            stream.write(content)

    write_atomically(path, fill)


def _flush(draft: str) -> None:
    """Write the file to disk now: some file systems report a full disk only then."""
    descriptor = os.open(draft, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_error(error: OSError, path: str) -> OSError:
    """The same error with a message about the file that was to be written."""
    unchanged = "; the file of that name that was there is unchanged" if os.path.exists(path) else ""
    reason = error.strerror or str(error)
    # The error number determines the class: a missing folder remains a FileNotFoundError.
    return OSError(error.errno, f"cannot be written: {reason}{unchanged}", path)
