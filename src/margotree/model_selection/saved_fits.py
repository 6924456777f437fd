"""The fits of a search in a file of results: their keys, and the columns that identify them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from margotree.model_selection import fit_record
from margotree.model_selection.cross_validation import Job, Samples
from margotree.model_selection.folds import Fold
from margotree.model_selection.result_rows import Rows

#: Parameters that are not part of the key of a fit.
_NOT_IN_KEY = {"start", "n_jobs", "verbose"}


class SavedFits:
    """The fits of one search in a file of results.

    Parameters
    ----------
    rows : Rows
        The file.
    estimator : estimator
        The estimator whose parameters are searched.
    settings, folds, samples
        As in :class:`~margotree.model_selection.cross_validation.CrossValidation`.
    starts : dict from Job to str
        The initial tree of each fit.
    warm : bool
        Whether fits start from the trees of neighbouring settings.
    columns : dict
        Columns that all fits have in common, such as the names of data and model.
    """

    def __init__(
        self, rows: Rows, estimator: Any, settings: Sequence[Mapping[str, Any]], folds: Sequence[Fold],
        samples: Samples, *, starts: Mapping[Job, str], warm: bool, columns: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.rows, self.settings, self.starts = rows, settings, starts
        params = estimator.get_params(deep=False)
        checksum = _digest(samples.X, samples.y, samples.weight)
        self.columns = {"kind": "fold", "seed": params.get("random_state"), "data_checksum": checksum, **columns}
        # Without a node limit the keys are those of earlier versions, which had no such parameter.
        in_key = {n: v for n, v in params.items() if n not in _NOT_IN_KEY and (n, v) != ("node_limit", None)}
        fixed = {n: _json_value(v) for n, v in in_key.items()}
        self.keys: dict[Job, str] = {}
        for f, fold in enumerate(folds):
            digest = _digest(checksum, np.asarray(fold.train, dtype=np.int64))
            for k, setting in enumerate(settings):
                text = json.dumps(
                    [type(estimator).__name__, {**fixed, **_json_value(setting)}, digest, warm], sort_keys=True
                )
                self.keys[k, f] = hashlib.sha256(text.encode()).hexdigest()[:32]

    def known(self) -> dict[Job, dict[str, Any]]:
        """The rows of the fits that are in the file."""
        found = {row["key"]: row for row in self.rows.where(kind="fold")}
        return {job: found[key] for job, key in self.keys.items() if key in found}

    def save(self, job: Job, row: Mapping[str, Any]) -> None:
        """Write the row of a fit."""
        k, f = job
        own = {"key": self.keys[job], "params": _json_value(self.settings[k]), "fold": f, "start": self.starts[job]}
        self.rows.put({**self.columns, **own, **row, **fit_record.environment_columns()})


def _digest(*parts: Any) -> str:
    """SHA-256 of arrays and strings."""
    digest = hashlib.sha256()
    for part in map(np.asarray, parts):
        digest.update(str((part.shape, part.dtype.kind)).encode())
        digest.update(part.tobytes() if part.dtype.kind in "biuf" else repr(part.tolist()).encode())
    return digest.hexdigest()


def _json_value(value: Any) -> Any:
    """The value as JSON reads it back; objects that JSON cannot represent as their repr."""
    return json.loads(json.dumps(value, default=lambda v: v.item() if isinstance(v, np.generic) else repr(v)))
