"""Parse the CSV table of a data set in any of its known layouts, and check it."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Sequence

import numpy as np

from margotree.paper.data.catalogue import Entry
from margotree.paper.data.dataset import DataError, Dataset, fingerprint

Row = Sequence[str]

#: The spellings of a missing value; rows with missing values are dropped, as in the paper.
_MISSING = frozenset({"", "?", "nan", "na", "none"})

#: The columns "not x" and "not o" of a square with x, with o, and of a blank one.
_SQUARE = {"x": ("0", "1"), "o": ("1", "0"), "b": ("1", "1")}


def parse(entry: Entry, raw: bytes, source: str) -> Dataset:
    """Read a set from the bytes of a CSV file.

    The label is in the last column or, with a header, in the column with one of the entry's target names.  An
    additional first column is an id.  Raises :class:`DataError` if the table is not that of the entry.
    """
    text = io.StringIO(raw.decode("utf-8-sig", errors="replace"), newline="")
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(text) if row]
    except csv.Error as error:
        raise DataError(f"{source} is not a CSV table: {error}") from None
    if not rows:
        raise DataError(f"{source} is empty; expected the table of {entry.name}")
    features, labels = _features_and_labels(entry, rows, source)
    return build(entry, features, labels, source=source, checksum=hashlib.sha256(raw).hexdigest())


def build(entry: Entry, features: Sequence[Row], labels: Row, *, source: str, checksum: str) -> Dataset:
    """Construct a set from strings: drop rows with missing values, check shape and class counts."""
    kept = [i for i, row in enumerate(features) if not any(c.lower() in _MISSING for c in (*row, labels[i]))]
    encoded = [_encoded(entry, features[i]) for i in kept]
    widths = {len(row) for row in encoded}
    if len(encoded) != entry.n_samples or widths != {entry.n_features}:
        width_text = "/".join(map(str, sorted(widths))) or "no"
        raise DataError(
            f"{source} is not {entry.name}: {len(encoded)} complete rows of {width_text} features, "
            f"expected {entry.n_samples} of {entry.n_features}"
        )
    known = _known_labels(entry, [labels[i] for i in kept], source)
    positive = np.array([label in entry.positive for label in known])
    X, strata = _numbers(encoded, source), _label_array(known)
    return Dataset(
        name=entry.name,
        X=X,
        y=np.where(positive, _class_label(entry, True, strata), _class_label(entry, False, strata)),
        y_sign=np.where(positive, 1.0, -1.0),
        strata=strata,
        feature_names=entry.feature_names,
        class_names=entry.class_names,
        source=source,
        checksum=checksum,
        as_in_paper=fingerprint(X, strata) == entry.fingerprint,
    )


def write(dataset: Dataset, entry: Entry) -> bytes:
    """The set as CSV with a header and the label last; :func:`parse` reads the same numbers from it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*dataset.feature_names, entry.targets[0]])
    for x, label in zip(dataset.X.tolist(), dataset.strata.tolist(), strict=True):
        writer.writerow([*map(repr, x), label])
    return out.getvalue().encode()


def _features_and_labels(entry: Entry, rows: list[list[str]], source: str) -> tuple[list[list[str]], list[str]]:
    if len({len(row) for row in rows}) != 1:
        raise DataError(f"{source} is not {entry.name}: its rows differ in length")
    header = [cell.lower() for cell in rows[0]]
    targets = [header.index(t) for t in entry.targets if t in header]
    if not targets:
        first = max(0, len(header) - 1 - entry.n_features) if entry.ids else 0
        return [row[first:-1] for row in rows], [row[-1] for row in rows]
    keep = [j for j, name in enumerate(header) if j != targets[0] and name not in entry.ids]
    return [[row[j] for j in keep] for row in rows[1:]], [row[targets[0]] for row in rows[1:]]


def _encoded(entry: Entry, row: Row) -> Row:
    """A row with the nominal squares of Tic-Tac-Toe as binary columns; rows of other sets are numeric already."""
    if entry.stem == "tic_tac_toe" and all(cell in _SQUARE for cell in row):
        return [bit for cell in row for bit in _SQUARE[cell]]
    return row


def _known_labels(entry: Entry, labels: Row, source: str) -> list[str]:
    """The labels in the spelling of the entry.

    Sources use different labels (2 and 4, benign and malignant, 1 and 2).  Except for heart disease, no set has two
    classes of equal size, so the counts identify the classes.
    """
    plain = [label[:-2] if label.endswith(".0") else label for label in labels]
    found = Counter(plain)
    if found == entry.counts:
        return plain
    sizes = list(entry.counts.values())
    if sorted(found.values()) != sorted(sizes) or len(set(sizes)) != len(sizes):
        found_text = ", ".join(f"{k}: {v}" for k, v in sorted(found.items()))
        expected_text = ", ".join(f"{k}: {v}" for k, v in entry.counts.items())
        raise DataError(f"{source} is not {entry.name}: its classes are {{{found_text}}}, expected {{{expected_text}}}")
    by_size = {size: label for label, size in entry.counts.items()}
    return [by_size[found[label]] for label in plain]


def _numbers(rows: Sequence[Row], source: str) -> np.ndarray:
    try:
        X = np.array(rows, dtype=np.float64)
    except ValueError as error:
        raise DataError(f"{source} holds a cell that is not a number: {error}") from None
    if not np.all(np.isfinite(X)):
        raise DataError(f"{source} holds an infinite number")
    return X


def _label_array(labels: list[str]) -> np.ndarray:
    """Integers if all labels are integers, strings otherwise."""
    try:
        return np.array([int(label) for label in labels])
    except ValueError:
        return np.array(labels)


def _class_label(entry: Entry, positive: bool, strata: np.ndarray) -> str | int:
    """The label of a class in ``y``: the first of its labels (for heart disease 1 instead of 1 to 4)."""
    label = next(k for k in entry.counts if (k in entry.positive) == positive)
    return int(label) if strata.dtype.kind == "i" else label
