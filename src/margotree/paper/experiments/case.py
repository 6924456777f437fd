"""The complete description of one fit of an experiment, in plain values."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

#: The engine of all experiments: the default of each model.
ENGINE = "auto"

#: The ``eps`` of the paper, and the models with this parameter.
PAPER_EPS = 1e-3
MODELS_WITH_EPS = frozenset({"margot", "hfs", "sfs", "local_svm", "mm_svm_oct"})


@dataclass(frozen=True, kw_only=True)
class Case:
    """Train ``model`` on the training part of ``data`` with these hyperparameters.

    ``params`` are sorted pairs, so that equal cases compare equal; ``start`` False omits the start heuristic.
    """

    data: str
    model: str
    params: tuple[tuple[str, Any], ...]
    depth: int = 2
    time_limit: float = 600.0
    start: bool = True
    seed: int = 0

    def key(self, checksum: str) -> str:
        """The key of the fit in the file of results; it includes the checksum of the data."""
        parts = [*self.identity(), self.time_limit, self.seed, ENGINE, checksum]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def identity(self) -> tuple[Any, ...]:
        """The key by which a table finds a fit: all fields except limits and seed."""
        return self.data, self.model, self.depth, json.dumps(dict(self.params), sort_keys=True), self.start

    def row_columns(self, checksum: str) -> dict[str, Any]:
        """The case as columns of a row of results."""
        return {
            "key": self.key(checksum),
            "kind": "fit",
            "data": self.data,
            "model": self.model,
            "depth": self.depth,
            "params": dict(self.params),
            "start": "default" if self.start else "none",
            "seed": self.seed,
            "time_limit": self.time_limit,
        }

    def with_limit(self, seconds: float | None) -> Case:
        """The same case with a time limit of at most ``seconds``."""
        return self if seconds is None else replace(self, time_limit=min(self.time_limit, float(seconds)))

    def __str__(self) -> str:
        words = ", ".join(f"{name}={value}" for name, value in self.params)
        return f"{self.model} on {self.data}, depth {self.depth}, {words}" + ("" if self.start else ", no start")


def sorted_pairs(params: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Hyperparameters in the form of :attr:`Case.params`."""
    return tuple(sorted((name, _hashable(value)) for name, value in params.items()))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def row_identity(row: dict[str, Any]) -> tuple[Any, ...]:
    """The :meth:`Case.identity` of a row of results."""
    params = json.dumps(row["params"], sort_keys=True)
    return row["data"], row["model"], row["depth"], params, row["start"] == "default"
