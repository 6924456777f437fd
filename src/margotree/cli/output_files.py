"""Writing results so that nothing is lost: not what was read, not the old file, and not the new tree."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from margotree.cli.console import say
from margotree.cli.exit_codes import DATA, OK, CommandError

if TYPE_CHECKING:
    import argparse

    from margotree.tree import Tree


def add_force(parser: argparse.ArgumentParser) -> None:
    """The option that lets a command replace files."""
    parser.add_argument("--force", action="store_true", help="replace a file that is there (never one that is read)")


def may_write(path: str, *, inputs: Iterable[str | None] = (), force: bool = False, option: str = "--out") -> None:
    """Make sure before the work begins that ``path`` can be written and that nothing is lost by it.

    A file of ``inputs`` is never overwritten.  Any other that is there is replaced with ``force``, or if the user at
    the terminal agrees.
    """
    must_be_writable(path)
    for read in inputs:
        if read and same_file(path, read):
            raise CommandError(f"{path} is a file this command reads; name another one with {option}", DATA)
    if not os.path.lexists(path) or force:
        return
    if not _agreed(path):
        raise CommandError(f"{path} is there already; say --force to replace it, or name another with {option}", DATA)


def must_be_writable(path: str) -> None:
    """Complain about an impossible place before the work begins, not after."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise CommandError(f"{path} is a folder; name a file", DATA)
    if os.path.exists(path) and not os.path.isfile(path):
        raise CommandError(f"{path} is no ordinary file and cannot be replaced by one; name another", DATA)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise CommandError(f"{path} is write-protected; name another", DATA)
    if not os.path.isdir(folder):
        raise CommandError(f"there is no folder {folder} to write {os.path.basename(path)} into", DATA)
    if not os.access(folder, os.W_OK):
        raise CommandError(f"no permission to write into {folder}", DATA)


def same_file(one: str, other: str) -> bool:
    """Whether two names mean one file, by whatever way: links, another spelling of the folder, another case."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _agreed(path: str) -> bool:
    """The answer of the user, if there is one to be asked."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"{path} is there already; replace it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Where a tree is now, and what could not be written (empty if all was)."""

    path: str
    troubles: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """How the command ends: not as if all was well where a file is missing."""
        return DATA if self.troubles else OK

    def with_trouble(self, *troubles: str) -> Kept:
        return replace(self, troubles=(*self.troubles, *troubles))

    def words(self) -> str:
        """The last lines of a command: where the tree is, and what is not where it was to be."""
        return "\n".join([f"saved as {self.path}", *(f"NOT WRITTEN: {trouble}" for trouble in self.troubles)])


def keep_tree(tree: Tree, path: str) -> Kept:
    """Save the tree; if its place is full or gone, elsewhere, and if there is nowhere, on standard output."""
    if not (trouble := attempt(lambda: tree.save(path))):
        return Kept(path=path)
    if os.path.exists(path):
        trouble += f".  {path} holds an earlier tree, NOT the one trained now: do not use it as such"
    say(trouble)
    if elsewhere := _saved_elsewhere(tree):
        say(f"the tree is kept in {elsewhere}")
        return Kept(path=elsewhere, troubles=(trouble,))
    say("nowhere to write to; here it is:")
    json.dump(tree.to_dict(), sys.stdout)
    print(flush=True)
    raise CommandError("the tree could not be written to a file and was printed instead", DATA)


def attempt(write: Callable[[], object]) -> str:
    """Write a file; returns what went wrong, empty if nothing did."""
    try:
        write()
    except OSError as error:
        return os_words(error)
    return ""


def os_words(error: OSError) -> str:
    """What the system says went wrong, and with which file."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else None
    return " ".join(filter(None, (name, error.strerror))) or str(error)


def _saved_elsewhere(tree: Tree) -> str:
    """The name of a file in the folder for temporary files, if there is one that can be written."""
    with suppress(OSError):
        elsewhere = os.path.join(tempfile.gettempdir(), f"margotree-{secrets.token_hex(4)}.json")
        tree.save(elsewhere)
        return elsewhere
    return ""
