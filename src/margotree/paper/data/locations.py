"""Load a set from the first of: the user's folder, the cache, scikit-learn, the network."""

from __future__ import annotations

import os
from pathlib import Path

from margotree.atomic_files import write_atomically
from margotree.paper.data import download
from margotree.paper.data.catalogue import Entry, find
from margotree.paper.data.dataset import DataError, DataMissingError, Dataset
from margotree.paper.data.read import parse, write


def load(name: str, *, allow_download: bool = True) -> Dataset:
    """Load a data set of the paper by its name in the paper ("Heart Disease C.") or its file stem ("cleveland").

    The set is read from the folder in ``MARGOTREE_DATA``, else from the cache, else downloaded into the cache.  The
    numbers of rows, features and samples per class are checked.

    Parameters
    ----------
    name : str
        The name of the set.
    allow_download : bool, default True
        Whether the set may be downloaded.

    Raises
    ------
    DataError
        If the set is not found, or its table is not the expected one.
    """
    entry = find(name)
    for folder in (data_folder(), cache_folder()):
        if folder is not None and (file := folder / entry.file_name).is_file():
            return parse(entry, _read_file(file), str(file))
    if entry.shipped:
        return _load_from_scikit_learn(entry)
    failures = ["downloading was not allowed"]
    if allow_download:
        fetched, failures = download.fetch(entry)
        if fetched is not None:
            return _save_to_cache(entry, fetched)
    raise DataMissingError({entry.name: entry.file_name}, cache_folder(), failures)


def data_folder() -> Path | None:
    """The folder in ``MARGOTREE_DATA``, or None; :class:`DataError` if it is set to something else."""
    setting = os.environ.get("MARGOTREE_DATA", "").strip()
    if not setting:
        return None
    folder = Path(setting).expanduser()
    if not folder.is_dir():
        raise DataError(f"MARGOTREE_DATA is set to {setting}, which is no folder: correct it or unset it")
    return folder


def cache_folder() -> Path:
    """The folder ``MARGOTREE_CACHE``, else ``margotree`` in the user's cache folder; it may not exist yet."""
    setting = os.environ.get("MARGOTREE_CACHE", "").strip()
    if setting:
        return Path(setting).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "margotree"


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None


def _load_from_scikit_learn(entry: Entry) -> Dataset:
    """The diagnostic breast cancer set, which is part of scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    lines = [",".join([*entry.feature_names, entry.targets[0]])]
    for x, target in zip(bunch.data.tolist(), bunch.target, strict=True):
        lines.append(",".join([*map(repr, x), "MB"[target]]))
    return parse(entry, "\n".join(lines).encode(), "scikit-learn's own copy")


def _save_to_cache(entry: Entry, fetched: Dataset) -> Dataset:
    """Write a downloaded set to the cache and parse the file, so that its checksum is the same in later calls."""
    raw = write(fetched, entry)
    file = cache_folder() / entry.file_name
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, lambda draft: _write_bytes(draft, raw))
    except OSError as error:
        raise DataError(f"cannot write {file} ({error.strerror}): set MARGOTREE_CACHE to a writable folder") from None
    return parse(entry, raw, f"{file} (from {fetched.source})")


def _write_bytes(draft: str, raw: bytes) -> None:
    Path(draft).write_bytes(raw)
