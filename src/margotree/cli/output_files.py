"""Write result files without loss: input files are never overwritten, other files only with ``--force``."""

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

from margotree.cli.console import print_status
from margotree.cli.exit_codes import DATA, OK, CommandError

if TYPE_CHECKING:
    import argparse

    from margotree.tree import HyperplaneTree


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``."""
    parser.add_argument("--force", action="store_true", help="replace existing files (never an input file)")


def check_output(path: str, *, inputs: Iterable[str | None] = (), force: bool = False, option: str = "--out") -> None:
    """Raise an error, before the command does its work, if ``path`` cannot or must not be written.

    A file of ``inputs`` is never overwritten.  Another existing file is replaced with ``force``, or if the user agrees
    at the terminal.  ``option`` is the command-line option that sets the path, for messages.
    """
    check_writable(path)
    for read in inputs:
        if read and same_file(path, read):
            raise CommandError(
                f"{path} is an input file of this command and is not overwritten; name another file with {option}", DATA
            )
    if not os.path.lexists(path) or force:
        return
    if not _user_agrees(path):
        raise CommandError(
            f"{path} exists already; add --force to replace it, or name another file with {option}", DATA
        )


def check_writable(path: str) -> None:
    """Raise an error if ``path`` cannot be written."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise CommandError(f"{path} is a folder; name a file", DATA)
    if os.path.exists(path) and not os.path.isfile(path):
        raise CommandError(f"{path} is not a regular file and cannot be replaced; name another file", DATA)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise CommandError(f"{path} is write-protected; name another file", DATA)
    if not os.path.isdir(folder):
        raise CommandError(f"{os.path.basename(path)} cannot be written: there is no folder {folder}", DATA)
    if not os.access(folder, os.W_OK):
        raise CommandError(
            f"{os.path.basename(path)} cannot be written: no permission to write to the folder {folder}", DATA
        )


def same_file(one: str, other: str) -> bool:
    """Whether two paths name the same file, also through links or another spelling."""
    with suppress(OSError):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _user_agrees(path: str) -> bool:
    """Ask the user at the terminal whether to replace the file; False if there is no terminal."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    sys.stderr.write(f"{path} exists already; replace it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


@dataclass(frozen=True, kw_only=True)
class SavedFile:
    """The path of a saved tree, and the errors of files that could not be written."""

    path: str
    write_errors: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The exit code of the command: ``DATA`` if a file could not be written."""
        return DATA if self.write_errors else OK

    def with_errors(self, *write_errors: str) -> SavedFile:
        """The same with further errors."""
        return replace(self, write_errors=(*self.write_errors, *write_errors))

    def summary(self) -> str:
        """The last lines of the output: where the tree is saved, and which files could not be written."""
        return "\n".join([f"saved as {self.path}", *(f"NOT WRITTEN: {error}" for error in self.write_errors)])


def save_tree(tree: HyperplaneTree, path: str) -> SavedFile:
    """Save the tree to ``path``; if that fails, to the folder for temporary files, and otherwise to standard output."""
    if not (error := try_to_write(lambda: tree.save(path))):
        return SavedFile(path=path)
    if os.path.exists(path):
        error += f".  {path} holds an EARLIER tree and not the tree of this fit: do not use it"
    print_status(error)
    if elsewhere := _save_elsewhere(tree):
        print_status(f"the tree is saved as {elsewhere} instead")
        return SavedFile(path=elsewhere, write_errors=(error,))
    print_status("no other folder can be written to; the tree follows on standard output:")
    json.dump(tree.to_dict(), sys.stdout)
    print(flush=True)
    raise CommandError("the tree could not be saved to a file and is printed on standard output instead", DATA)


def try_to_write(write: Callable[[], object]) -> str:
    """Call ``write``; return the text of its OSError, empty if there is none."""
    try:
        write()
    except OSError as error:
        return os_error_text(error)
    return ""


def os_error_text(error: OSError) -> str:
    """The file of an OSError and the reason."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else None
    return " ".join(filter(None, (name, error.strerror))) or str(error)


def _save_elsewhere(tree: HyperplaneTree) -> str:
    """Save the tree to the folder for temporary files and return the path, empty if that fails."""
    with suppress(OSError):
        elsewhere = os.path.join(tempfile.gettempdir(), f"margotree-{secrets.token_hex(4)}.json")
        tree.save(elsewhere)
        return elsewhere
    return ""
