"""Where a set is looked for: the user's folder, the cache, what scikit-learn ships, the network, in this order."""

from __future__ import annotations

import os
from pathlib import Path

from margotree.atomic_files import write_atomically
from margotree.paper.data import download
from margotree.paper.data.catalogue import Entry, find
from margotree.paper.data.dataset import DataError, Dataset
from margotree.paper.data.read import parse, write


def load(name: str, *, allow_download: bool = True) -> Dataset:
    """A set of the paper by its name there ("Heart Disease C.") or its file stem ("cleveland").

    Read from the folder in ``MARGOTREE_DATA``, else from the cache, else downloaded into the cache.  Whatever the
    source, number of rows, features and samples per class must be those known of the set.
    """
    entry = find(name)
    for folder in (data_folder(), cache_folder()):
        if folder is not None and (file := folder / entry.file_name).is_file():
            return parse(entry, _bytes(file), str(file))
    if entry.shipped:
        return _shipped(entry)
    tried = ["downloading was not allowed"]
    if allow_download:
        fetched, tried = download.fetch(entry)
        if fetched is not None:
            return _through_cache(entry, fetched)
    raise DataError(
        f"{entry.name} is not here: put {entry.file_name} into a folder and set MARGOTREE_DATA to it, "
        f"or into {cache_folder()}, or connect to the network ({'; '.join(tried)})"
    )


def data_folder() -> Path | None:
    """The folder named by ``MARGOTREE_DATA``; an error if it is set but is no folder."""
    given = os.environ.get("MARGOTREE_DATA", "").strip()
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise DataError(f"MARGOTREE_DATA is set to {given}, which is no folder: correct it or unset it")
    return folder


def cache_folder() -> Path:
    """``MARGOTREE_CACHE``, else ``margotree`` below the user's cache folder; it need not exist."""
    given = os.environ.get("MARGOTREE_CACHE", "").strip()
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "margotree"


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None


def _shipped(entry: Entry) -> Dataset:
    """The diagnostic breast cancer table, which scikit-learn carries along."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    lines = [",".join([*entry.feature_names, entry.targets[0]])]
    for x, target in zip(bunch.data.tolist(), bunch.target, strict=True):
        lines.append(",".join([*map(repr, x), "MB"[target]]))
    return parse(entry, "\n".join(lines).encode(), "scikit-learn's own copy")


def _through_cache(entry: Entry, fetched: Dataset) -> Dataset:
    """Keep what was downloaded and read it from there, so that its checksum is the same ever after."""
    raw = write(fetched, entry)
    file = cache_folder() / entry.file_name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, lambda draft: _fill(draft, raw))
    except OSError as error:
        raise DataError(f"cannot write {file} ({error.strerror}): set MARGOTREE_CACHE to a folder that can") from None
    return parse(entry, raw, f"{file} (from {fetched.source})")


def _fill(draft: str, raw: bytes) -> None:
    Path(draft).write_bytes(raw)
