"""Writing results so that nothing is lost: not the old file, and not the new tree."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from margotree.cli.console import say
from margotree.cli.exits import DATA, CommandError

if TYPE_CHECKING:
    from margotree.tree import Tree


def must_be_writable(path: str) -> None:
    """Complain about an impossible place before the work begins, not after."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise CommandError(f"{path} is a folder; name a file", DATA)
    if not os.path.isdir(folder):
        raise CommandError(f"there is no folder {folder} to write {os.path.basename(path)} into", DATA)
    if not os.access(folder, os.W_OK):
        raise CommandError(f"no permission to write into {folder}", DATA)


def keep_tree(tree: Tree, path: str) -> str:
    """Save the tree; if its place is full or gone, elsewhere, and if there is nowhere, on standard output."""
    try:
        tree.save(path)
        return path
    except OSError as error:
        say(f"cannot write {path}: {error.strerror or error}")
    elsewhere = os.path.join(tempfile.gettempdir(), f"margotree-{secrets.token_hex(4)}.json")
    with suppress(OSError):
        tree.save(elsewhere)
        say(f"the tree is kept in {elsewhere}")
        return elsewhere
    say("nowhere to write to; here it is:")
    json.dump(tree.to_dict(), sys.stdout)
    print(flush=True)
    raise CommandError("the tree could not be written to a file and was printed instead", DATA)
