"""Files that begin with a digest of their data, and what machine code depends on besides its sources."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

import llvmlite
import numba

from margotree.atomic_files import write_atomically
from margotree.engines.numba_backend.choice import ways

_HEADER = b"margotree machine code 1\n"
_DIGEST = 32
#: Approximate size of the largest files in bytes.
_LARGEST_FILE = 1 << 20
#: Numba's settings that change the machine code.
_SETTINGS = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")


def variant() -> str:
    """Versions, settings and ways of compiling that machine code depends on."""
    settings = [getattr(numba.config, name, None) for name in _SETTINGS]
    return repr((numba.__version__, llvmlite.__version__, settings, sorted(ways())))


def write_sealed(path: Path, data: bytes) -> None:
    """Write a file that :func:`read_sealed` can verify, either completely or not at all."""

    def fill(draft: str) -> None:
        Path(draft).write_bytes(_HEADER + _digest(path, data) + data)

    write_atomically(path, fill)


def read_sealed(path: Path) -> bytes | None:
    """The data of a file; None if it does not exist, cannot be read or has changed since it was written."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    digest, data = whole[len(_HEADER) : len(_HEADER) + _DIGEST], whole[len(_HEADER) + _DIGEST :]
    intact = whole.startswith(_HEADER) and _digest(path, data) == digest
    return data if intact else None


def _digest(path: Path, data: bytes) -> bytes:
    """A digest of the data and of the file's name, so that a renamed file is not valid."""
    return hashlib.sha256(path.name.encode() + b"\n" + data).digest()


def can_save(folder: Path) -> bool:
    """Whether machine code, a few megabytes, can be saved in a folder."""
    trial = folder / f"{secrets.token_hex(8)}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(bytes(_LARGEST_FILE))
    except OSError:
        return False
    finally:
        with suppress(OSError):
            trial.unlink()
    return True
