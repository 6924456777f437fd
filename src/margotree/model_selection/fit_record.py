"""The columns of a row of results that describe a fitted tree, and the machine on which it was fitted."""

from __future__ import annotations

import datetime
import os
import platform
from functools import cache
from importlib import metadata
from typing import Any

from margotree.tree import HyperplaneTree

_FROM_CERTIFICATE = (
    "engine", "engine_version", "objective", "bound", "gap", "nodes", "start_objective", "f0", "f1",
    "start_seconds", "search_seconds",
)  # fmt: skip


def tree_columns(tree: HyperplaneTree) -> dict[str, Any]:
    """Certificate, features and the tree itself as columns of a row."""
    used = tree.selected()
    row: dict[str, Any] = {
        "depth": tree.depth,
        "n_features": int(used.any(axis=0).sum()),
        "features": used.sum(axis=1).tolist(),
        "tree": tree.to_dict(),
    }
    if (certificate := tree.certificate) is not None:
        row |= {name: getattr(certificate, name) for name in _FROM_CERTIFICATE}
        row |= {"proved": str(certificate.proved), "stopped": str(certificate.stopped)}
        row["certificate"] = certificate.to_dict()
    return row


def environment_columns() -> dict[str, Any]:
    """Versions, machine and current time as columns of a row."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"versions": versions(), "machine": machine(), "finished": now}


@cache
def versions() -> dict[str, str]:
    """The versions of Python, margotree and the installed numerical packages."""
    from margotree import __version__

    found = {"margotree": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "numba", "pyscipopt", "highspy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def machine() -> dict[str, Any]:
    """Operating system, processor and number of cores."""
    return {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()}
