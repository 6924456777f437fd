"""Class labels: as arrays, as JSON values, and as positions among the classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Kinds of NumPy arrays whose items JSON represents exactly (numbers of up to 8 bytes): bool, int, uint, float, str.
_KINDS = "biufU"


def label_array(classes: Iterable[Any]) -> NDArray[Any]:
    """Return the labels as a read-only array; ValueError if there are fewer than two, equal ones, or other types."""
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
    """Return the labels as JSON values with the dtype of the array."""
    return {"dtype": "object" if labels.dtype.kind == "O" else labels.dtype.str, "values": labels.tolist()}


def from_plain(record: dict[str, Any]) -> NDArray[Any]:
    """Return the array from the result of :func:`to_plain`; ValueError if the values do not fit the dtype."""
    values, name = list(record["values"]), str(record["dtype"])
    dtype = np.dtype(object) if name == "object" else np.dtype(name)
    if dtype.kind not in _KINDS + "O":
        raise ValueError(f"class labels cannot be of dtype {name!r}")
    labels = np.array(values, dtype=dtype)
    if labels.tolist() != values:
        raise ValueError(f"class labels {values!r} do not fit dtype {name!r}")
    return labels


def class_positions(classes: NDArray[Any], y: ArrayLike) -> NDArray[np.int64]:
    """Return the position in ``classes`` of each label of ``y``; ValueError names labels that are not in it."""
    position = {label: k for k, label in enumerate(classes.tolist())}
    given = np.asarray(y).ravel().tolist()
    unknown = set(given) - set(position)
    if unknown:
        raise ValueError(
            f"the classes of the tree are {classes.tolist()}, but y also contains {sorted(map(str, unknown))}"
        )
    return np.array([position[label] for label in given], dtype=np.int64)


def _common(values: list[Any]) -> np.dtype[Any]:
    """Return the dtype that NumPy chooses, or object if it would convert labels to another type."""
    dtype = np.array(values).dtype
    return dtype if len({type(v) for v in values}) == 1 else np.dtype(object)
