"""Saved trees: JSON with a format name, a version and a checksum; reading a file executes no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

import numpy as np

from margotree import __version__
from margotree.atomic_files import write_text
from margotree.problem import Splits
from margotree.solution import Certificate
from margotree.tree import labels, probabilities, schema
from margotree.tree.outline import Outline, outline
from margotree.tree.protocol import TreeLike
from margotree.tree.rules import RoundedRule
from margotree.tree.scaling import Scaling

FORMAT, VERSION = "margotree.tree", 1

_REQUIRED = frozenset({"w", "b", "offset", "scale", "eps", "classes", "leaf_class", "counts", "feature_names"})
#: "simplified" is for other readers of the file; a tree computes it from its splits.
#: Without "probabilities", as in files of earlier versions, these are the shares of leaves.
_OPTIONAL = frozenset({"certificate", "terms", "simplified", "rules", "probabilities"})


#: The arrays of numbers of a tree, and their dimensions.
_DIMENSIONS = {"w": 2, "b": 1, "offset": 1, "scale": 1, "counts": 2}

#: The exceptions that values of a wrong type or size may raise.
_CONTENT_ERRORS = (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, RecursionError)


class TreeFileError(ValueError):
    """A file contains no tree, or not the tree that was saved; the message says which."""


# -- tree <-> plain values ----------------------------------------------------------------------------------------


def to_record(tree: TreeLike) -> dict[str, Any]:
    """Return the tree as JSON values with format name, version and checksum; floats keep every bit."""
    body = {
        "w": tree.splits.w.tolist(),
        "b": tree.splits.b.tolist(),
        "offset": tree.scaling.offset.tolist(),
        "scale": tree.scaling.scale.tolist(),
        "eps": float(tree.eps),
        "classes": labels.to_plain(tree.classes),
        "leaf_class": tree.leaf_class.tolist(),
        "counts": tree.counts.tolist(),
        "feature_names": None if tree.feature_names is None else list(tree.feature_names),
        "certificate": None if tree.certificate is None else tree.certificate.to_dict(),
        "terms": dict(tree.terms),
        "simplified": outline_to_dict(outline(tree, simplify=True)),
        "probabilities": tree.probabilities.record(),
    }
    if tree.rules:
        body["rules"] = {str(t): rule.to_record() for t, rule in tree.rules.items()}
    return {
        "format": FORMAT,
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

    Raises TreeFileError with the reason if ``record`` is not a tree.
    """
    body = _checked_body(record)
    try:
        numbers = {name: schema.array(name, body[name], ndim) for name, ndim in _DIMENSIONS.items()}
        names, certificate = body["feature_names"], body.get("certificate")
        classes = labels.from_plain(schema.mapping("classes", body["classes"]))
        return {
            "splits": Splits(w=numbers["w"], b=numbers["b"]),
            "scaling": Scaling(offset=numbers["offset"], scale=numbers["scale"]),
            "eps": schema.number("eps", body["eps"]),
            "classes": classes,
            "leaf_class": schema.array("leaf_class", body["leaf_class"], 1, whole=True).astype(np.int64),
            "counts": numbers["counts"],
            "feature_names": None if names is None else schema.words("feature_names", names),
            "certificate": None
            if certificate is None
            else Certificate.from_dict(schema.mapping("certificate", certificate)),
            "terms": schema.terms(body.get("terms"), len(classes)),
            "rules": {
                int(t): RoundedRule.from_record(schema.mapping("rules", rule))
                for t, rule in schema.mapping("rules", body.get("rules", {})).items()
            },
            "probabilities": probabilities.from_record(body.get("probabilities", {"kind": "leaf"})),
        }
    except _CONTENT_ERRORS as error:
        raise TreeFileError(f"the tree in it makes no sense: {_error_text(error)}") from error


def _checked_body(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise TreeFileError(f'this is JSON, but not a margotree tree (no "format": "{FORMAT}")')
    if record.get("version") != VERSION:
        raise TreeFileError(
            f"tree file version {record.get('version')!r}; this margotree reads version {VERSION}: "
            "update margotree, or save the tree again with this one"
        )
    body = record.get("tree")
    if not isinstance(body, dict) or not set(body) >= _REQUIRED or not set(body) <= _REQUIRED | _OPTIONAL:
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
