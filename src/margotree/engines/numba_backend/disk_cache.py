"""Machine code on disk: used if it is intact and belongs to the current sources, compiled again otherwise.

Numba's own cache checks only the source file of an entry point, not those of the functions compiled into it; and a
damaged file or a full disk makes every call fail.  Here each compiled signature is a file of its own, whose name
identifies sources, versions and settings.  It begins with a digest of the rest.  A file whose digest does not match is
never unpickled and its machine code never runs: it is compiled again and replaced.  The digest protects against damage,
not against an attacker who can write to the folder.
"""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache

from margotree.engines.numba_backend.sealed_files import read_sealed, variant, write_sealed
from margotree.notices import print_once


class KernelCache(FunctionCache):
    """The files of one entry point; ``fingerprint`` identifies the sources of all kernels."""

    def __init__(self, function: Any, fingerprint: str) -> None:
        super().__init__(function)
        self._stem, self._fingerprint = f"{self._impl.filename_base}-", fingerprint[:16]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for these types; None if there is none, or if its file is damaged."""
        target_context.refresh()
        if not self._enabled:
            return None
        path = self._path(sig, target_context.codegen())
        data = read_sealed(path)
        if data is None:
            return None
        try:
            return self._impl.rebuild(target_context, pickle.loads(data))
        except Exception:  # written by something else: compile again
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled function; if that fails, print a warning once and continue."""
        if not self._enabled or not self._impl.check_cachable(data):
            return
        path = self._path(sig, data.codegen)
        try:
            self._impl.locator.ensure_cache_path()
            write_sealed(path, self._cache_file._dump(self._impl.reduce(data)))
        except OSError as error:
            if read_sealed(path) is None:  # another process may have been faster
                print_once(
                    f"compiled kernels are not saved ({error.strerror or error}: {path.parent}), so every process"
                    " compiles them again; free space there, or set NUMBA_CACHE_DIR to another folder",
                    "compiled kernels are not saved",
                )
            return
        self._remove_outdated()

    def _path(self, sig: Any, codegen: Any) -> Path:
        """The file of a signature."""
        key = hashlib.sha256(repr((self._index_key(sig, codegen), variant())).encode()).hexdigest()
        return Path(self._cache_path) / f"{self._stem}{self._fingerprint}-{key[:16]}.nbc"

    def _remove_outdated(self) -> None:
        """Remove files of other sources."""
        for path in Path(self._cache_path).iterdir():
            if path.name.startswith(self._stem) and not path.name.startswith(f"{self._stem}{self._fingerprint}"):
                with suppress(OSError):
                    path.unlink()
