"""The page as a file."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from os import PathLike

from margotree.report.gather import gather
from margotree.report.html import render


def write_report(store: str | PathLike[str], path: str | PathLike[str], *, figures: bool = True) -> None:
    """Write the page of a file of results; a page already there is replaced only once the new one is complete."""
    text = render(gather(store, figures=figures))
    target = os.path.realpath(path)
    draft = f"{target}.{secrets.token_hex(4)}.part"
    try:
        with open(draft, "x", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise
