"""The paper's figures from a file of rows."""

from __future__ import annotations

from os import PathLike
from pathlib import Path


def figure_names() -> tuple[str, ...]:
    return ("planes", "features", "depths", "trees")


def figure(name: str, store: str | PathLike[str], out: str | PathLike[str] = "results") -> list[Path]:
    raise NotImplementedError
