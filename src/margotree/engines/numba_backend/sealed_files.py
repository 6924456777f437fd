"""Files that carry a digest of what is in them, and what machine code depends on besides its sources."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from pathlib import Path

import llvmlite
import numba

from margotree.atomic_files import write_atomically
from margotree.engines.numba_backend.choice import ways

_MAGIC = b"margotree machine code 1\n"
_DIGEST = 32
#: Bytes of the largest files, about.
_ROOM = 1 << 20
#: Numba's settings that change the machine code.
_SETTINGS = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")


def variant() -> str:
    """Versions, settings and ways of compiling that machine code depends on."""
    settings = [getattr(numba.config, name, None) for name in _SETTINGS]
    return repr((numba.__version__, llvmlite.__version__, settings, sorted(ways())))


def write_sealed(path: Path, data: bytes) -> None:
    """Write a file that :func:`read_sealed` can verify, complete or not at all."""

    def fill(draft: str) -> None:
        Path(draft).write_bytes(_MAGIC + _digest(path, data) + data)

    write_atomically(path, fill)


def read_sealed(path: Path) -> bytes | None:
    """The data of a file; None if it does not exist, cannot be read or is not as it was written."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    seal, data = whole[len(_MAGIC) : len(_MAGIC) + _DIGEST], whole[len(_MAGIC) + _DIGEST :]
    intact = whole.startswith(_MAGIC) and _digest(path, data) == seal
    return data if intact else None


def _digest(path: Path, data: bytes) -> bytes:
    """The digest covers the file's name too, so that no file passes for another one."""
    return hashlib.sha256(path.name.encode() + b"\n" + data).digest()


def can_save(folder: Path) -> bool:
    """Whether machine code, a few megabytes, can be saved in a folder."""
    trial = folder / f"{secrets.token_hex(8)}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(bytes(_ROOM))
    except OSError:
        return False
    finally:
        with suppress(OSError):
            trial.unlink()
    return True
