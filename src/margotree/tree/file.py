"""Saved trees: JSON with a format name, a version and a checksum; reading a file executes no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Set
from contextlib import contextmanager
from os import PathLike
from typing import Any, Protocol

import numpy as np

from margotree import __version__
from margotree.atomic_files import write_text
from margotree.problem import Splits
from margotree.solution import Certificate
from margotree.tree import labels, probabilities, schema
from margotree.tree.outline import Outline, outline
from margotree.tree.protocol import SplitTree, TreeLike
from margotree.tree.rules import RoundedRule
from margotree.tree.scaling import FloatArray, Scaling, TargetScaling

#: The formats of files with a tree of classes, and with a tree of numbers.
FORMAT, FORMAT_OF_NUMBERS = "margotree.tree", "margotree regression tree"
#: The version of both.
VERSION = 1

_REQUIRED = frozenset({"w", "b", "offset", "scale", "eps", "counts", "feature_names"})
_OF_CLASSES = frozenset({"classes", "leaf_class"})
_OF_NUMBERS = frozenset({"leaf_w", "leaf_b", "limits", "target"})
#: "simplified" is for other readers of the file; a tree computes it from its splits.
#: Without "probabilities", as in files of earlier versions, these are the shares of leaves.
_OPTIONAL = frozenset({"certificate", "terms", "simplified", "rules"})


#: The arrays of numbers of a tree, and their dimensions.
_DIMENSIONS = {"w": 2, "b": 1, "offset": 1, "scale": 1, "counts": 2}

#: The exceptions that values of a wrong type or size may raise.
_CONTENT_ERRORS = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)


class TreeFileError(ValueError):
    """A file contains no tree, or not the tree that was saved; the message says which."""


class NumbersToSave(SplitTree, Protocol):
    """A tree of numbers; :class:`~margotree.tree.RegressionTree` explains its parts."""

    @property
    def models(self) -> Splits: ...

    @property
    def limits(self) -> FloatArray: ...

    @property
    def target(self) -> TargetScaling: ...

    @property
    def target_name(self) -> str: ...

    @property
    def empty_ranges(self) -> FloatArray: ...

    @property
    def residuals(self) -> tuple[FloatArray, ...]: ...


# -- tree <-> plain values ----------------------------------------------------------------------------------------


def to_record(tree: TreeLike) -> dict[str, Any]:
    """Return a tree of classes as JSON values with format name, version and checksum; floats keep every bit."""
    own = {
        "classes": labels.to_plain(tree.classes),
        "leaf_class": tree.leaf_class.tolist(),
        "probabilities": tree.probabilities.record(),
    }
    return _signed(_shared(tree) | own, FORMAT)


def to_record_of_numbers(tree: NumbersToSave) -> dict[str, Any]:
    """Return a tree of numbers as JSON values with format name, version and checksum; floats keep every bit."""
    own: dict[str, Any] = {
        "leaf_w": tree.models.w.tolist(),
        "leaf_b": tree.models.b.tolist(),
        "limits": _with_none(tree.limits),
        "target": {"name": tree.target_name, "center": tree.target.center, "scale": tree.target.scale},
    }
    if np.any(np.isfinite(tree.empty_ranges)):
        own["empty_ranges"] = _with_none(tree.empty_ranges)
    if tree.residuals:
        own["residuals"] = [part.tolist() for part in tree.residuals]
    return _signed(_shared(tree) | own, FORMAT_OF_NUMBERS)


def _with_none(ranges: FloatArray) -> list[list[float | None]]:
    """Pairs of numbers, with None for infinite ones."""
    return [[None if np.isinf(number) else number for number in pair] for pair in ranges.tolist()]


def _with_infinity(pairs: list[Any]) -> list[list[Any]]:
    """Pairs of numbers from the result of :func:`_with_none`."""
    return [[-np.inf if low is None else low, np.inf if high is None else high] for low, high in pairs]


def _shared(tree: SplitTree) -> dict[str, Any]:
    body = {
        "w": tree.splits.w.tolist(),
        "b": tree.splits.b.tolist(),
        "offset": tree.scaling.offset.tolist(),
        "scale": tree.scaling.scale.tolist(),
        "eps": float(tree.eps),
        "counts": tree.counts.tolist(),
        "feature_names": None if tree.feature_names is None else list(tree.feature_names),
        "certificate": None if tree.certificate is None else tree.certificate.to_dict(),
        "terms": dict(tree.terms),
        "simplified": outline_to_dict(outline(tree, simplify=True)),
    }
    if tree.rules:
        body["rules"] = {str(t): rule.to_record() for t, rule in tree.rules.items()}
    return body


def _signed(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {
        "format": name,
        "version": VERSION,
        "written_by": f"margotree {__version__}",
        "checksum": checksum_of(body),
        "tree": body,
    }


def outline_to_dict(shape: Outline) -> dict[str, Any]:
    """Return an outline as JSON values: the root, the (left, right) of each split, the class of each leaf."""
    return {
        "root": shape.root,
        "children": {str(t): list(shape.children[t]) for t in shape.nodes},
        "label": {str(v): shape.label[v] for v in shape.leaves},
        "left_out": list(shape.left_out),
    }


def from_record(record: Any) -> dict[str, Any]:
    """Return the arguments of :class:`~margotree.tree.Tree` from the result of :func:`to_record`.

    Raises TreeFileError with the reason if ``record`` is not a tree of classes.
    """
    body = _checked_body(record, FORMAT, _REQUIRED | _OF_CLASSES, _OPTIONAL | {"probabilities"})
    with _naming_the_entry():
        classes = labels.from_plain(schema.mapping("classes", body["classes"]))
        return _shared_from(body, len(classes)) | {
            "classes": classes,
            "leaf_class": schema.array("leaf_class", body["leaf_class"], 1, whole=True).astype(np.int64),
            "probabilities": probabilities.from_record(body.get("probabilities", {"kind": "leaf"})),
        }


def from_record_of_numbers(record: Any) -> dict[str, Any]:
    """Return the arguments of :class:`~margotree.tree.RegressionTree` from :func:`to_record_of_numbers`.

    Raises TreeFileError with the reason if ``record`` is not a tree of numbers.
    """
    body = _checked_body(record, FORMAT_OF_NUMBERS, _REQUIRED | _OF_NUMBERS, _OPTIONAL | {"residuals", "empty_ranges"})
    with _naming_the_entry():
        target = schema.mapping("target", body["target"])
        limits, ranges = (_with_infinity(body.get(name, [])) for name in ("limits", "empty_ranges"))
        n_features = schema.array("leaf_w", body["leaf_w"], 2).shape[1]
        return _shared_from(body, 0, n_features) | {
            "models": Splits(w=schema.array("leaf_w", body["leaf_w"], 2), b=schema.array("leaf_b", body["leaf_b"], 1)),
            "limits": schema.array("limits", limits, 2),
            "empty_ranges": schema.array("empty_ranges", ranges, 2) if ranges else np.zeros((0, 2)),
            "residuals": tuple(schema.array("residuals", part, 1) for part in body.get("residuals", [])),
            "target": TargetScaling(
                center=schema.number("target: center", target["center"]),
                scale=schema.number("target: scale", target["scale"]),
            ),
            "target_name": schema.words("target: name", [target["name"]])[0],
        }


def is_of_numbers(record: Any) -> bool:
    """Whether a record is, by its format, a tree of numbers."""
    return isinstance(record, dict) and record.get("format") == FORMAT_OF_NUMBERS


def _shared_from(body: dict[str, Any], n_classes: int, n_features: int = 0) -> dict[str, Any]:
    """Return the arguments that trees of all kinds have in common; ``n_features`` is for trees without splits."""
    given = body if body["w"] != [] else {**body, "w": np.zeros((0, n_features)), "b": np.zeros(0)}
    numbers = {name: schema.array(name, given[name], ndim) for name, ndim in _DIMENSIONS.items()}
    names, certificate = body["feature_names"], body.get("certificate")
    return {
        "splits": Splits(w=numbers["w"], b=numbers["b"]),
        "scaling": Scaling(offset=numbers["offset"], scale=numbers["scale"]),
        "eps": schema.number("eps", body["eps"]),
        "counts": numbers["counts"],
        "feature_names": None if names is None else schema.words("feature_names", names),
        "certificate": None
        if certificate is None
        else Certificate.from_dict(schema.mapping("certificate", certificate)),
        "terms": schema.terms(body.get("terms"), n_classes),
        "rules": {
            int(t): RoundedRule.from_record(schema.mapping("rules", rule))
            for t, rule in schema.mapping("rules", body.get("rules", {})).items()
        },
    }


@contextmanager
def _naming_the_entry() -> Iterator[None]:
    try:
        yield
    except _CONTENT_ERRORS as error:
        raise TreeFileError(f"the tree in it makes no sense: {_error_text(error)}") from error


def _checked_body(record: Any, name: str, required: Set[str], optional: Set[str]) -> dict[str, Any]:
    found = record.get("format") if isinstance(record, dict) else None
    if found != name:
        if found in {FORMAT, FORMAT_OF_NUMBERS}:
            raise TreeFileError(
                f"this is a tree of {'classes' if found == FORMAT else 'numbers'}; margotree.load reads it"
            )
        raise TreeFileError(f'this is JSON, but not a margotree tree (no "format": "{FORMAT}")')
    if record.get("version") != VERSION:
        raise TreeFileError(
            f"tree file version {record.get('version')!r}; this margotree reads version {VERSION}: "
            "update margotree, or save the tree again with this one"
        )
    body = record.get("tree")
    if not isinstance(body, dict) or not set(body) >= required or not set(body) <= required | optional:
        raise TreeFileError("the tree in it is incomplete or has entries that do not belong there")
    if record.get("checksum") != checksum_of(body):
        raise TreeFileError("the checksum does not match: the tree was changed after it was saved")
    return body


def checksum_of(body: dict[str, Any]) -> str:
    """Return the checksum of the entry ``tree`` of a tree file."""
    try:
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise TreeFileError(f"a tree file cannot hold this: {error}") from None
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _error_text(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


# -- plain values <-> disk ----------------------------------------------------------------------------------------


def write(path: str | PathLike[str], record: dict[str, Any]) -> None:
    """Write a file beside the target and move it there, so that a full disk or a kill leaves the old file unchanged."""
    write_text(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def read(path: str | PathLike[str]) -> Any:
    """Return the JSON values in a file; TreeFileError if the file is not JSON."""
    try:
        with open(path, encoding="utf-8-sig") as stream:
            content = stream.read()
    except UnicodeDecodeError:
        raise TreeFileError("this is not a text file, so not a saved tree") from None
    try:
        return json.loads(content, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        if _cut_short(content.strip(), error.pos):
            raise TreeFileError("the file is cut short: it ends in the middle of the tree") from None
        raise TreeFileError(f"this is not JSON, so not a saved tree: {error}") from None
    except (ValueError, RecursionError) as error:
        raise TreeFileError(f"this is not a saved tree: {error}") from None


@contextmanager
def naming_the_file(path: str | PathLike[str]) -> Iterator[None]:
    """Context in which an error about the content of a file is raised as TreeFileError with the path in front."""
    try:
        yield
    except TreeFileError as error:
        raise TreeFileError(f"{os.fspath(path)}: {error}") from error.__cause__
    except _CONTENT_ERRORS as error:
        raise TreeFileError(f"{os.fspath(path)}: the tree in it makes no sense: {_error_text(error)}") from error


def _cut_short(content: str, error_position: int) -> bool:
    return content.startswith("{") and (not content.endswith("}") or error_position >= len(content))


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number that a tree can contain")
