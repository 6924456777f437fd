"""One fit of an experiment, said completely and in plain values."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

#: The only engine experiments ask for: whoever is best at a problem by now takes it.
ENGINE = "auto"

#: The paper's band beside upper splits, and the models that have one.
PAPER_EPS = 1e-3
BANDED = frozenset({"margot", "hfs", "sfs", "local_svm", "mm_svm_oct"})


@dataclass(frozen=True, kw_only=True)
class Case:
    """Train ``model`` on the training part of ``data`` with these hyperparameters.

    ``params`` are sorted pairs, so that equal cases are equal; ``start`` False leaves the start heuristic out.
    """

    data: str
    model: str
    params: tuple[tuple[str, Any], ...]
    depth: int = 2
    time_limit: float = 600.0
    start: bool = True
    seed: int = 0

    def key(self, checksum: str) -> str:
        """The name of the fit in the file of rows; other data under the same name make another fit."""
        asked = [*self.identity(), self.time_limit, self.seed, ENGINE, checksum]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]

    def identity(self) -> tuple[Any, ...]:
        """What a table looks a fit up by: everything but its limits."""
        return self.data, self.model, self.depth, json.dumps(dict(self.params), sort_keys=True), self.start

    def asked(self, checksum: str) -> dict[str, Any]:
        """The case as columns of a row."""
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

    def within(self, seconds: float | None) -> Case:
        """The same with a limit of at most ``seconds``."""
        return self if seconds is None else replace(self, time_limit=min(self.time_limit, float(seconds)))

    def __str__(self) -> str:
        words = ", ".join(f"{name}={value}" for name, value in self.params)
        return f"{self.model} on {self.data}, depth {self.depth}, {words}" + ("" if self.start else ", no start")


def pairs(params: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Hyperparameters as a case holds them."""
    return tuple(sorted((name, _hashable(value)) for name, value in params.items()))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def row_identity(row: dict[str, Any]) -> tuple[Any, ...]:
    """:meth:`Case.identity` of a row."""
    params = json.dumps(row["params"], sort_keys=True)
    return row["data"], row["model"], row["depth"], params, row["start"] == "default"
