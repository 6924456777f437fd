"""Files that are complete or not there at all: a full disk or a kill leaves the old one as it was."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from os import PathLike


def write_atomically(path: str | PathLike[str], fill: Callable[[str], None]) -> None:
    """Have ``fill`` write a draft beside the target, then move it over: the old file stays until the new is whole."""
    target = os.path.realpath(path)
    stem, ending = os.path.splitext(target)
    draft = f"{stem}.{secrets.token_hex(4)}.part{ending}"
    try:
        fill(draft)
        if os.path.exists(target):
            shutil.copymode(target, draft)
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise


def write_text(path: str | PathLike[str], text: str) -> None:
    """A text file, complete or not at all."""

    def fill(draft: str) -> None:
        with open(draft, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())

    write_atomically(path, fill)
