"""Class labels that survive JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Kinds of NumPy arrays whose items JSON holds exactly (up to 8 bytes a number): bool, int, unsigned, float, str.
_KINDS = "biufU"


def own_labels(classes: Iterable[Any]) -> NDArray[Any]:
    """A read-only array of at least two different labels, each a str, int, float or bool."""
    values = [v.item() if isinstance(v, np.generic) else v for v in classes]
    odd = [v for v in values if not isinstance(v, (str, int, float)) or v != v]
    if odd:
        raise ValueError(f"class labels must be strings, numbers or booleans, got {odd[0]!r}")
    if len(values) < 2 or len(set(values)) != len(values):
        raise ValueError(f"a tree needs at least two different class labels, got {values!r}")
    dtype = classes.dtype if isinstance(classes, np.ndarray) else _common(values)
    labels = np.array(values, dtype=dtype if dtype.kind in _KINDS else object)
    labels.setflags(write=False)
    return labels


def to_plain(labels: NDArray[Any]) -> dict[str, Any]:
    """JSON values, and the dtype that gives the same array back."""
    return {"dtype": "object" if labels.dtype.kind == "O" else labels.dtype.str, "values": labels.tolist()}


def from_plain(record: dict[str, Any]) -> NDArray[Any]:
    """Read what :func:`to_plain` wrote; ValueError if the values do not fit the dtype."""
    values, name = list(record["values"]), str(record["dtype"])
    dtype = np.dtype(object) if name == "object" else np.dtype(name)
    if dtype.kind not in _KINDS + "O":
        raise ValueError(f"class labels cannot be of dtype {name!r}")
    labels = np.array(values, dtype=dtype)
    if labels.tolist() != values:
        raise ValueError(f"class labels {values!r} do not fit dtype {name!r}")
    return labels


def positions(classes: NDArray[Any], y: ArrayLike) -> NDArray[np.int64]:
    """Where each label of ``y`` stands in ``classes``; ValueError names the labels that do not."""
    position = {label: k for k, label in enumerate(classes.tolist())}
    given = np.asarray(y).ravel().tolist()
    strange = set(given) - set(position)
    if strange:
        raise ValueError(f"the tree tells {classes.tolist()} apart, but y also holds {sorted(map(str, strange))}")
    return np.array([position[label] for label in given], dtype=np.int64)


def _common(values: list[Any]) -> np.dtype[Any]:
    """The dtype NumPy picks, unless it would turn labels of one type into another."""
    dtype = np.array(values).dtype
    return dtype if len({type(v) for v in values}) == 1 else np.dtype(object)
