"""Check a proof that margotree wrote: python check.py people.proof people.csv

This file needs NumPy and no other module of margotree. From the data and the proof it recomputes an upper bound on the
objective of the tree and a lower bound on that of any tree, and prints what is proved (with terms, columns and rows),
or which step fails. docs/proof.md states the rules. All numbers in data and proof are float64 and therefore exact.
Every sum has a bound on its rounding error, which is applied to the unsafe side; where this is not enough, the step is
repeated in exact fractions. Memory and time are limited by the sizes of the files (`Meter`).

The order of the file: the result (`Statement`, `Proved`), the header, the problem with the losses of its samples
(`Items`) and the value of the tree, the bound of a tree node (`node_bound`), the steps (`Replay`), `check` itself, and
the reading of data files.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import json
import math
import operator
import os
import struct
import sys
import time
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, BinaryIO, NamedTuple

import numpy as np

MAGIC, VERSION = b"margotree proof ", 4  #: Version 3, without `losses`, is read, too.
UNIT = 2.0**-53  #: Unit roundoff: the error of a sum of k terms is at most about k UNIT times the sum of their sizes.
LEAST, LARGEST = 1e-290, 1e290  #: The range of costs C_t W_i, where rounding is relative; multipliers are no larger.
BELOW = 1.0 - 2.0**-50  #: Makes a rounded product smaller than the exact one: three roundings change it by less.
LONGEST_HEADER, BLOCK = 1 << 26, 1 << 20  #: Largest bytes of a header, and of a block (without its last step).
TIE = 1e-9  #: Samples within this, times 1 + |b|, of a split's border count as on it (at most a quarter of eps).
MOST_SUPPORTS, MOST_CLASSES = 1 << 16, 1 << 16  #: The largest numbers of supports of a table, and of classes.
NOT_HERE, HUGE = 2, 1e300  #: The side of a sample that is not known to reach a node; the bound of an infeasible case.
LEFT, OPEN, RIGHT, BOTH = -1, 0, 1, 2  #: Codes of a class at a tree node: its side or leaf, not decided, no label.
MODELS = {"margot": (False, False), "hfs": (True, False), "sfs": (True, True)}  #: Whether it has budgets, penalties.
ENTRIES = ["model", "depth", "samples", "features", "C", "eps", "budget", "alpha", "digest", "tree", "claim", "steps",
           "table", "losses", "groups"]  # fmt: skip
TABLE = ["features", "offset", "scale", "target", "weight", "labels", "class_weight", "target_offset", "target_scale"]
LOSSES = {"labels": [], "classes": ["count"], "intervals": ["below", "above", "under", "over"]}  #: Parameters by kind.
LEAST_WORK, WORK_PER_BYTE = 1e10, 1.0  #: Default limit of work: constant, and per byte of proof and number of data.
SPLIT_BYTES, OPEN_BYTES = 400, 250  #: Memory of a split with its children, and what is freed when a child is closed.


class Refused(Exception):
    """The proof is not valid; the message names the position and the reason."""


class LimitReached(Refused):
    """The check would need more memory or time than allowed; the proof is neither accepted nor refuted."""


class Meter:
    """Counts memory (bytes) and work (operations of about a nanosecond) and compares them with limits.

    By default the limits follow from the sizes of the files: docs/proof.md, "Limits".
    """

    def __init__(self, sizes: float, max_memory: float | None = None, max_work: float | None = None) -> None:
        self.held, self.done = 0.0, 0.0
        self.most_held = 256e6 + 16.0 * sizes if max_memory is None else 1e9 * max_memory
        self.given, self.most_done = max_work, math.inf if max_work is None else 1e9 * max_work

    def allow_work(self, proof_bytes: float, per_byte: float) -> None:
        """Set the default limit of work for a proof of this size."""
        if self.given is None:
            self.most_done = LEAST_WORK + proof_bytes * per_byte

    def hold(self, size: float) -> None:
        """Count ``size`` bytes of memory; negative if they are freed."""
        self.held += size
        if self.held > self.most_held:
            raise LimitReached(
                f"limit: the check needs more than {self.most_held / 1e9:.3g} GB of memory, which is much for files of "
                "this size; --max-memory GB (in Python max_memory=GB) allows more"
            )

    def work(self, amount: float) -> None:
        """Count ``amount`` operations."""
        self.done += amount
        if self.done > self.most_done:
            raise LimitReached(
                f"limit: the check takes more than {self.most_done / 1e9:.3g} billion operations, which is much for "
                "files of this size; --max-work BILLIONS (in Python max_work=BILLIONS) allows more"
            )


def shown(names: Any, most: int = 10) -> str:
    """Format names or numbers for output: special characters are escaped, long names and long lists are shortened."""
    texts = [text if len(text) <= 60 else text[:57] + "..." for text in (f"{x!r}" for x in names[:most])]
    return ", ".join(texts) + (f" and {len(names) - most} more" if len(names) > most else "")


def per_split(numbers: Any) -> str:
    """Format one number per split; a single number if all are equal."""
    return f"{numbers[0]!r} at every split" if len(set(numbers)) == 1 else f"{shown(numbers, 15)} (split by split)"


@dataclass(frozen=True)
class Statement:
    """The training problem that a proof is about: its terms, its columns and the rows in use."""

    model: str
    depth: int
    C: list[float]
    eps: float
    budget: list[int] | None
    alpha: list[float] | None
    features: int
    columns: list[str] | None  # the names of the features, if known
    span: tuple[float, float]  # the smallest and the largest feature value in the problem
    source: str  # the file of the rows, or a description of another source
    rows_read: int
    left_out: dict[str, int]  # numbers of rows that are not used, by reason
    losses: dict[str, Any]  # the entry of the header
    classes: list[str]  # the names of the classes; empty if targets are numbers
    class_rows: tuple[int, ...]  # numbers of rows in use, by class; one number if targets are numbers
    target: str | None  # the name of the column with the targets, if known
    target_span: tuple[float, float] | None  # the smallest and the largest target, if they are numbers
    target_units: tuple[float, float] | None  # offset and scale of targets, if known
    samples: int  # number of distinct samples
    class_weight: list[float] | None  # None if only the product with the sample weights is known
    weight_column: str | None
    weights: tuple[tuple[float, float], ...]  # smallest and largest weight of a row, as class_rows
    groups: list[int] | None = None  # of each feature, if budgets count groups

    @property
    def rows_used(self) -> int:
        return sum(self.class_rows)

    def __str__(self) -> str:
        names = self.columns if self.columns is not None else [f"feature {j}" for j in range(min(self.features, 12))]
        more = f" and {self.features - len(names)} more" if len(names) < self.features else ""
        unnamed = "" if self.columns is not None else " (names are not known)"
        out = ", ".join(f"{count} ({why})" for why, count in self.left_out.items() if count) or "none"
        used = f"{self.rows_used}{self._by_class(self.class_rows, '; ', ' ({})')}"
        lines = [
            f"model     {self.model}, depth {self.depth} ({len(self.C)} splits), eps {self.eps!r}",
            f"losses    {self._losses()}",
            f"C         {per_split(self.C)}",
            *([f"budget    {per_split(self.budget)}"] if self.budget is not None else []),
            *([f"alpha     {per_split(self.alpha)}"] if self.alpha is not None else []),
            *([f"groups    {self._groups(self.groups)}"] if self.groups is not None else []),
            f"features  {self.features}: {shown(names, 12) if self.columns is not None else ', '.join(names)}"
            f"{more}{unnamed}, from {self.span[0]:.6g} to {self.span[1]:.6g} in the units of the tree",
            *([f"targets   {self._targets()}"] if self.target_span is not None else []),
            f"rows      {self.rows_read} of {self.source}; used: {used}, {self.samples} of them distinct; "
            f"left out: {out}",
            f"weights   {self._weights()}",
        ]
        return "\n".join(lines)

    def _by_class(self, values: Any, comma: str, frame: str = "{}") -> str:
        """Format one value per class with its name, at most twelve; nothing if targets are numbers."""
        named = [f"{name}: {value}" for name, value in zip(self.classes, values, strict=bool(self.classes))]
        more = f" and {len(named) - 12} more" if len(named) > 12 else ""
        return frame.format(comma.join(named[:12]) + more) if named else ""

    def _groups(self, group_of: list[int]) -> str:
        """Format the features of the first twelve groups."""
        members: list[list[Any]] = [[] for _ in range(1 + max(group_of))]
        for j, g in enumerate(group_of):
            members[g].append(j if self.columns is None else self.columns[j])
        more = f" and {len(members) - 12} more" if len(members) > 12 else ""
        return f"{len(members)}, which budgets count: {'; '.join(map(shown, members[:12]))}{more}"

    def _losses(self) -> str:
        of = self.losses
        if of["kind"] == "intervals":
            return (
                f"of a prediction h for a target y: {of['below']!r} max(0, y - {of['under']!r} - h) + {of['above']!r} "
                f"max(0, h - y - {of['over']!r}), in the units of the tree"
            )
        rule = "max(0, 1 - y h)" if of["kind"] == "labels" else "a side for each class, two labels at each last split"
        return f"of {len(self.classes)} classes: {rule}"

    def _targets(self) -> str:
        low, high = self.target_span or (0.0, 0.0)
        name = "a column whose name is not known" if self.target is None else shown([self.target])
        offset, scale = self.target_units or (0.0, 1.0)
        known = f" (from {low * scale + offset:.6g} to {high * scale + offset:.6g} in the data)"
        return f"{name}, from {low:.6g} to {high:.6g} in the units of the tree{known if self.target_units else ''}"

    def _weights(self) -> str:
        if self.class_weight is None and (self.classes or self.weight_column is None):
            first = "those of samples and classes together" if self.classes else "those of samples"
        else:
            of_classes = self._by_class([repr(c) for c in self.class_weight or []], ", ", "of classes {}; ")
            first = f"{of_classes}of samples: {'1' if self.weight_column is None else f'column {self.weight_column!r}'}"
        spans = [
            "no row" if not rows else f"{low!r}" if low == high else f"{low!r} to {high!r}"
            for rows, (low, high) in zip(self.class_rows, self.weights, strict=True)
        ]
        return f"{first}; per distinct sample of the problem {self._by_class(spans, ', ') or spans[0]}"


@dataclass(frozen=True)
class Proved:
    """The result: this tree costs at most ``objective``, and no tree of these terms less than ``bound``."""

    objective: float
    bound: float
    steps: int
    leaves: int
    exact: int  # leaves that needed fractions
    digest: str  # sha256 of the proof file
    statement: Statement

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.bound) / self.objective if self.objective > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"PROVED: this tree costs at most {self.objective!r}, and no tree of these terms costs less than "
            f"{self.bound!r} (gap {self.gap:.4%}).\n{self.statement}\n"
            f"proof     {self.steps} steps, {self.leaves} leaves, {self.exact} of them by fractions; "
            f"sha256 {self.digest}"
        )


# -- the header --------------------------------------------------------------------------------------------------------


def demand(condition: Any, message: str) -> None:
    """Raise Refused with the message unless the condition holds."""
    if not condition:
        raise Refused(message)


def whole(header: dict[str, Any], name: str, low: int, high: int = 1 << 53) -> int:
    """Return an entry that must be written as a whole number (not 1.0, not true) within its range."""
    x = header[name]
    demand(type(x) is int and low <= x <= high, f"header: {name} must be a whole number from {low} to {high}")
    return int(x)


def number(x: Any, name: str, low: float = -sys.float_info.max) -> float:
    """Return a number that must be a finite float64, at least ``low``, or a whole number that is exactly one."""
    fine = type(x) in (int, float) and low <= x <= sys.float_info.max and float(x) == x
    demand(fine, f"header: {name} must be {'finite' if low < 0 else 'positive' if low > 0 else 'finite, not negative'}")
    return float(x)


def numbers(xs: Any, name: str, count: int, low: float = -sys.float_info.max) -> list[float]:
    """Return a list that must have ``count`` numbers."""
    demand(type(xs) is list and len(xs) == count, f"header: {name} must be a list of {count} numbers")
    return [number(x, name, low) for x in xs]


def text(x: Any, name: str) -> str:
    """Return a value that must be a string."""
    demand(type(x) is str, f"header: {name} must be a string")
    return str(x)


def as_list(xs: Any, name: str, count: int) -> list[Any]:
    """Return a value that must be a list of this length."""
    demand(type(xs) is list and len(xs) == count, f"header: {name} must be a list of {count}")
    return list(xs)


def entries(x: Any, name: str, keys: list[str]) -> dict[str, Any]:
    """Return an object that must have exactly these entries, because the checker ignores nothing."""
    fine = type(x) is dict and set(x) == set(keys)
    demand(fine, f"header: {name} must have the entries {', '.join(keys)} and no other")
    return dict(x)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    demand(len(dict(pairs)) == len(pairs), "header: an entry occurs twice")
    return dict(pairs)


def _reject_constant(name: str) -> None:
    raise Refused(f"header: {name} is not a number")


def read_header(stream: BinaryIO) -> dict[str, Any]:
    """Read the header: a line with name and version, a line of JSON, a line with its checksum; check its entries."""
    first = stream.readline(64)
    if not first.startswith(MAGIC) or not first.endswith(b"\n"):
        raise Refused("line 1: this is not a margotree proof")
    if first not in (MAGIC + b"%d\n" % VERSION, MAGIC + b"3\n"):
        version = first[len(MAGIC) : -1]
        raise Refused(f"line 1: a proof of another version ({version!r}); this checker reads 3 and {VERSION}")
    line, check = stream.readline(LONGEST_HEADER), stream.readline(16)
    if not line.endswith(b"\n") or check != b"%08x\n" % zlib.crc32(line):
        raise Refused("header: it is cut off, or its checksum is not that of its text")
    try:
        header = json.loads(line.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(f"header: it is not readable JSON ({type(error).__name__}: {error!s:.80})") from None
    return checked_header(_of_version_3(header) if first == MAGIC + b"3\n" else header)


def _of_version_3(header: Any) -> dict[str, Any]:
    """Return a header of version 3 with the entries of version 4; ``losses`` is None, because its digest has none."""
    h = entries(header, "it", ENTRIES[:-2])
    if h["table"] is not None:
        h["table"] = {**entries(h["table"], "table", TABLE[:-2]), "target_offset": None, "target_scale": None}
    return {**h, "losses": None, "groups": None}


def checked_header(header: Any) -> dict[str, Any]:
    """Return the header with float64 numbers; Refused if an entry has a wrong type or is out of its range.

    ``losses`` is None for proofs of version 3 only.
    """
    h = entries(header, "it", ENTRIES)
    h["losses"] = None if h["losses"] is None else checked_losses(h["losses"])
    demand(h["model"] in MODELS if type(h["model"]) is str else False, f"header: model must be one of {[*MODELS]}")
    T, n = 2 ** whole(h, "depth", 1, 10) - 1, whole(h, "features", 1)
    h["samples"], h["steps"] = whole(h, "samples", 1), whole(h, "steps", 1)
    h["C"] = numbers(h["C"], "C", T, math.ulp(0.0))
    h["eps"] = number(h["eps"], "eps", math.ulp(0.0))
    for name, there in zip(("budget", "alpha"), MODELS[h["model"]], strict=True):
        demand((h[name] is not None) == there, f"header: {name} is missing, or not part of the model {h['model']}")
    if h["budget"] is not None:
        demand(type(h["budget"]) is list and len(h["budget"]) == T, f"header: budget must be a list of {T} numbers")
        h["budget"] = [whole({"budget": b}, "budget", 0) for b in h["budget"]]
    if h["alpha"] is not None:
        h["alpha"] = numbers(h["alpha"], "alpha", T, 0.0)
    if h["groups"] is not None:
        demand(h["budget"] is not None, "header: groups are not part of a model without budgets")
        found = {whole({"groups": g}, "groups", 0, n - 1) for g in as_list(h["groups"], "groups", n)}
        demand(len(found) == 1 + max(found), "header: groups must have the numbers 0, 1, ..., each at least once")
    demand(len(text(h["digest"], "digest")) == 64, "header: digest must have 64 letters")
    h["claim"] = entries(h["claim"], "claim", ["objective", "bound"])
    h["claim"] = {name: number(x, name) for name, x in h["claim"].items()}
    demand(h["claim"]["bound"] <= h["claim"]["objective"], "header: the bound claimed is above the objective")
    losses = h["losses"] or {"kind": "labels"}
    h["tree"] = _checked_tree(h["tree"], T, n, losses.get("count", 0))
    h["table"] = None if h["table"] is None else _checked_table(h["table"], n, losses)
    return h


def checked_losses(losses: Any) -> dict[str, Any]:
    """Return the entry ``losses`` with float64 numbers."""
    kind = text(losses.get("kind") if type(losses) is dict else None, "the kind of losses")
    demand(kind in LOSSES, f"header: losses must be of one of the kinds {[*LOSSES]}")
    losses = entries(losses, "losses", ["kind", *LOSSES[kind]])
    if kind == "classes":
        whole(losses, "count", 2, MOST_CLASSES)
    if kind == "intervals":
        low = {"below": math.ulp(0.0), "above": math.ulp(0.0)}
        losses |= {name: number(losses[name], name, low.get(name, -sys.float_info.max)) for name in LOSSES[kind]}
        demand(losses["under"] + losses["over"] >= 0.0, "header: an interval of losses ends before it begins")
    return losses


def _checked_tree(tree: Any, T: int, n: int, classes: int) -> dict[str, Any]:
    tree = entries(tree, "tree", ["w", "b", "sides", "labels"] if classes else ["w", "b"])
    checked: dict[str, Any] = {"w": [numbers(row, "w", n) for row in as_list(tree["w"], "w", T)]}
    checked["b"] = numbers(tree["b"], "b", T)
    if classes:
        for row in as_list(tree["sides"], "sides", T // 2):
            fine = all(type(s) is int and abs(s) == 1 for s in as_list(row, "sides", classes))
            demand(fine and row[0] == -1 and max(row) == 1, "header: sides must be -1 and 1, both, and first -1")
        for row in as_list(tree["labels"], "labels", T - T // 2):
            fine = all(type(k) is int and 0 <= k < classes for k in as_list(row, "labels", 2))
            demand(fine and row[0] != row[1], "header: the labels of a split must be two different class numbers")
        checked |= {"sides": tree["sides"], "labels": tree["labels"]}
    return checked


def _checked_table(table: Any, n: int, losses: dict[str, Any]) -> dict[str, Any]:
    table = entries(table, "table", TABLE)
    names = [text(name, "a feature") for name in as_list(table["features"], "features", n)]
    demand(len(set(names)) == n, "header: a feature occurs twice")
    table["offset"] = numbers(table["offset"], "offset", n)
    table["scale"] = numbers(table["scale"], "scale", n, math.ulp(0.0))
    text(table["target"], "target")
    if table["weight"] is not None:
        text(table["weight"], "weight")
    of_classes, of_numbers = ["labels", "class_weight"], ["target_offset", "target_scale"]
    is_number = losses["kind"] == "intervals"
    for name in of_classes if is_number else of_numbers:
        demand(table[name] is None, f"header: {name} must be null with losses of {losses['kind']}")
    if is_number:
        table["target_offset"] = number(table["target_offset"], "target_offset")
        table["target_scale"] = number(table["target_scale"], "target_scale", math.ulp(0.0))
        return table
    count = losses.get("count", 2)
    labels = [text(word, "a label") for word in as_list(table["labels"], "labels", count)]
    demand(len(set(labels)) == count, "header: a label occurs twice")
    # Without the rows of a class of weight 0 the statement would be about the other classes.
    table["class_weight"] = numbers(table["class_weight"], "class_weight", count, math.ulp(0.0))
    return table


def read_blocks(stream: BinaryIO, most: int, meter: Meter) -> Iterator[bytes]:
    """Yield the blocks of steps; only one of them is in memory at a time."""
    for k in range(1 << 62):
        lengths = stream.read(12)
        if len(lengths) < 12:
            raise Refused(f"block {k}: the file is cut off")
        packed, size, check = struct.unpack("<III", lengths)
        if packed == size == check == 0:
            if stream.read(1):
                raise Refused(f"block {k}: there are bytes after the end of the proof")
            return
        if not 0 < size <= most or packed > size + size // 100 + 1000:
            raise Refused(f"block {k}: its lengths ({packed}, {size}) are not those of a block")
        meter.hold(2.0 * size)
        data, unzip = stream.read(packed), zlib.decompressobj()
        try:
            raw = unzip.decompress(data, size + 1)
        except zlib.error as error:
            raise Refused(f"block {k}: it is damaged ({error})") from None
        if len(raw) != size or not unzip.eof or unzip.unused_data or zlib.crc32(data) != check:
            raise Refused(f"block {k}: it is damaged or cut off")
        yield raw
        meter.hold(-2.0 * size)


class Reader:
    """Reads numbers and arrays from the bytes of a block."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, pattern: str) -> tuple[Any, ...]:
        """Return the values of a ``struct`` pattern."""
        return struct.unpack_from(pattern, self.raw, self._past(struct.calcsize(pattern)))

    def array(self, kind: str, count: int) -> Any:
        """Return an array of ``count`` numbers of a NumPy type."""
        return np.frombuffer(self.raw, kind, count, self._past(count * int(kind[-1]))).copy()  # the block is freed

    def _past(self, size: int) -> int:
        if self.at + size > len(self.raw):
            raise Refused("it is cut off")
        self.at += size
        return self.at - size


def digest_of(header: dict[str, Any], X: Any, y: Any, weight: Any) -> str:
    """Return the SHA-256 of data and terms, as little-endian float64, with which the header's digest is compared."""
    first = f"{header['model']} {header['depth']} {X.shape[0]} {X.shape[1]}"
    if header["losses"] is not None:
        first += " " + json.dumps(header["losses"], sort_keys=True, separators=(",", ":"))
    parts = [X, y, weight, header["C"], [header["eps"]], header["budget"] or [], header["alpha"] or []]
    if header["groups"] is not None:
        first, parts = f"{first} groups", [*parts, header["groups"]]
    sha = hashlib.sha256(f"{first}\n".encode())
    for part in parts:
        sha.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return sha.hexdigest()


class Data(NamedTuple):
    """The rows of a problem, with what is known about their source."""

    X: Any
    y: Any
    weight: Any
    columns: list[str] | None = None
    classes: list[str] | None = None
    class_weight: list[float] | None = None
    weight_column: str | None = None
    source: str = "the arrays given"
    rows_read: int | None = None
    left_out: dict[str, int] | None = None
    class_rows: tuple[int, ...] | None = None
    target: str | None = None
    target_units: tuple[float, float] | None = None


class Items(NamedTuple):
    """The losses ``cost max(0, corner - label h)`` at a tree node; a sample may have a second one, m numbers further.

    An item with a side and without a cost is a row that only obeys its side.
    """

    label: Any  # -1 or 1; 0 where there is no item
    side: Any  # of its sample
    cost: Any
    corner: Any
    full: Any  # whether its multiplier is its cost if it is not listed (and lists do not exclude this)


class Problem:
    """The training problem of the header, with equal samples (same features and target) merged."""

    def __init__(self, header: dict[str, Any], X: Any, y: Any, weight: Any) -> None:
        try:
            self.X, self.y, self.weight = (np.asarray(a, dtype=np.float64) for a in (X, y, weight))
        except (ValueError, TypeError, OverflowError) as error:
            raise Refused(f"data: they are not arrays of numbers ({error})") from None
        self.model, self.depth, self.eps = str(header["model"]), int(header["depth"]), float(header["eps"])
        self.C, self.budget, self.alpha = header["C"], header["budget"], header["alpha"]
        self.losses = header["losses"] or {"kind": "labels"}
        self.kind, self.classes = self.losses["kind"], self.losses.get("count", 0)
        self.T, self.n, sizes = len(self.C), header["features"], (header["samples"], header["features"])
        self.upper = self.T // 2  # the number of tree nodes with children
        if self.X.shape != sizes or self.y.shape != sizes[:1] or self.weight.shape != sizes[:1]:
            raise Refused(f"data: {self.X.shape} numbers, but the proof is about {sizes} (samples, features)")
        self.group = np.arange(self.n) if header["groups"] is None else np.array(header["groups"])  # of each feature
        self.n_groups = int(self.group.max()) + 1
        if digest_of(header, self.X, self.y, self.weight) != header["digest"]:
            raise Refused("data: these are not the data and terms that the proof is about (another digest)")
        if not all(np.all(np.isfinite(part)) for part in (self.X, self.y, self.weight)) or np.any(self.weight <= 0):
            raise Refused("data: features, targets and weights must be finite, and weights positive")
        if self.kind == "labels" and np.any(np.abs(self.y) != 1):
            raise Refused("data: labels must be -1 or 1")
        if self.kind == "classes" and not np.all(np.isin(self.y, np.arange(self.classes))):
            raise Refused(f"data: targets must be the numbers of {self.classes} classes, from 0 on")
        groups: dict[bytes, list[int]] = {}
        for i, row in enumerate(np.column_stack([self.X, self.y]) + 0.0):
            groups.setdefault(row.tobytes(), []).append(i)
        first = [rows[0] for rows in groups.values()]
        self.total = np.array([_sum(self.weight[rows].tolist()) for rows in groups.values()])
        self.m, self.target, self.points = len(first), self.y[first], self.X[first]
        self.most_items = self.m if self.kind == "labels" else 2 * self.m
        self.code: Any = self.target.astype(np.int64) if self.classes else None
        self.shift = float(np.mean(self.target)) if self.kind == "intervals" else 0.0
        self.factors = [self.losses["below"], self.losses["above"]] if self.kind == "intervals" else []
        if self.kind == "intervals" and not np.all(np.isfinite(self.corners(self.y))):
            raise Refused("data: the intervals of targets have no finite ends")
        for t in map(self.C.index, sorted(set(self.C))):
            for cost in (self.cost(t, factor) for factor in (None, *self.factors)):
                if not (cost.min() >= LEAST and cost.max() <= LARGEST):
                    raise Refused(f"data: at tree node {t} the cost C W of a sample is not from {LEAST} to {LARGEST}")
        # Multipliers add up to 0, so that samples may be shifted; near 0 the rounding errors of products are smaller.
        with np.errstate(over="ignore", invalid="ignore"):
            self.shifted = self.points - self.points.mean(axis=0)
        # side_of[t, p]: the side at tree node t of a sample whose deepest known tree node is p.
        self.side_of = np.full((self.T, self.T), NOT_HERE, np.int8)
        for p in range(self.T):
            self.side_of[p, p], at = 0, p
            while at > 0:
                up = (at - 1) // 2
                self.side_of[up, p], at = 1 if at == 2 * up + 2 else -1, up
        self._supports: dict[int, Any] = {}
        self.meter = Meter(math.inf)

    def cost(self, t: int, factor: float | None = None) -> Any:
        """Return the cost ``C_t W_i`` of a loss at tree node ``t``, or its product with a factor, rounded down.

        The relative error of up to three roundings is less than 2^-50, because no number here is subnormal.
        """
        with np.errstate(over="ignore"):
            cost = (self.C[t] * self.total) * BELOW
            return cost if factor is None else (cost * factor) * BELOW

    def corners(self, y: Any) -> tuple[Any, Any]:
        """Return between which values a prediction for targets ``y`` has no loss."""
        return y - self.losses["under"], y + self.losses["over"]

    def codes(self, t: int, decided: list[tuple[int, int]]) -> list[int]:
        """Return the code of every class at tree node ``t`` after these decisions: class and outcome, in order.

        The first outcome is "left" at an upper tree node, and "a label" at a last one, where the first label is left.
        """
        codes, last = [OPEN] * self.classes, t >= self.upper
        if self.classes == 2:
            codes = [LEFT, RIGHT]
        elif not last:
            codes[0] = LEFT
        self.meter.work(1e3 + (1e3 + 100.0 * self.classes) * (1 + len(decided)))
        for k, outcome in decided:
            codes[k] = BOTH if last and outcome == 2 else RIGHT if outcome == 2 or (last and LEFT in codes) else LEFT
            labels, others = codes.count(LEFT) + codes.count(RIGHT), codes.count(OPEN)
            if last and labels == 2:
                codes = [BOTH if code == OPEN else code for code in codes]
            elif last and labels + others == 2:
                for _ in range(others):
                    codes[codes.index(OPEN)] = RIGHT if LEFT in codes else LEFT
            elif not last and others == 1 and RIGHT not in codes:
                codes[codes.index(OPEN)] = RIGHT
        return codes

    def items(self, t: int, side: Any, codes: Any) -> Items:
        """Return the items of tree node ``t`` for samples with these sides and classes with these codes."""
        here, cost, last, one = side != NOT_HERE, self.cost(t), t >= self.upper, np.ones(self.m)
        if self.kind == "intervals" and last:
            low, high = self.corners(self.target)
            label = np.concatenate([here * one, here * -one])
            cost = np.concatenate([self.cost(t, factor) for factor in self.factors])
            return Items(label, np.tile(side, 2), cost, np.concatenate([low, -high]), np.zeros(2 * self.m, bool))
        if self.kind == "labels":
            label = here * self.target
        elif self.kind == "intervals":
            label = here * side * one
        elif not last:
            code = np.array(codes)[self.code]
            cost, label = cost * (code != OPEN), here * np.where(code == OPEN, side, code) * one
        else:
            code = np.array(codes)[self.code]
            both = here & (code == BOTH)
            label = np.concatenate([np.where(both, 1, here * code), np.where(both, -1, 0)]) * 1.0
            return Items(label, np.tile(side, 2), np.tile(cost, 2), np.ones(2 * self.m), np.tile(both, 2))
        return Items(label, side, cost, one, label * side == -1)

    def cost_of_others(self, t: int, side: Any, codes: Any, exact: bool) -> Any:
        """Return the least loss of the samples at a last tree node whose classes are open and will be no label.

        All open classes except as many as there are labels left have both losses, which are at least twice the cost.
        """
        if self.kind != "classes" or t < self.upper:
            return 0
        convert, add, unit = (_fractions, sum, 0) if exact else (np.copy, math.fsum, UNIT)
        others, labels = np.flatnonzero(np.array(codes) == OPEN), 2 - codes.count(LEFT) - codes.count(RIGHT)
        if len(others) <= labels:
            return 0
        self.meter.work(len(others) * (1e4 + 40.0 * self.m) * (100 if exact else 1))
        costs = [self.cost(t)[(side != NOT_HERE) & (self.code == k)] for k in others]
        least = sorted(2 * add(convert(some).tolist()) for some in costs)[: len(others) - labels]
        return add(least) * (1 - 4 * unit)

    def supports(self, t: int) -> Any:
        """Return all sets of ``budget`` groups, or of all, of tree node ``t``, one per column, in lexical order."""
        B = min(self.budget[t], self.n_groups) if self.model != "margot" else -1
        count = choices(self.n_groups, B) if B >= 0 else MOST_SUPPORTS + 1
        if count > MOST_SUPPORTS:
            raise Refused(f"tree node {t}: there are no tables of supports, or they would be too long")
        if B not in self._supports:
            self.meter.hold(8.0 * count * B)
            self.meter.work(50.0 * count * B)
            flat = itertools.chain.from_iterable(itertools.combinations(range(self.n_groups), B))
            self._supports[B] = np.fromiter(flat, np.int32, count * B).reshape(count, B).T.copy()
        return self._supports[B]

    def over_supports(self, t: int, values: Any) -> Any:
        """Return for each support of tree node ``t`` the sum of the values of its groups."""
        rows = self.supports(t)
        self.meter.work(3.0 * rows.size + 3e3 * len(rows))
        total = np.zeros(rows.shape[1], values.dtype)
        for row in rows:
            total += values[row]
        return total

    def over_groups(self, values: Any, exact: bool) -> Any:
        """Return for each group the sum of the values of its features, which are not negative, rounded up."""
        if self.n_groups == self.n:
            return values[np.argsort(self.group)]
        if not exact:
            return np.bincount(self.group, values, self.n_groups) * (1 + 2 * (self.n + 2) * UNIT)
        total = np.array([Fraction(0)] * self.n_groups, object)
        np.add.at(total, self.group, values)
        return total


def choices(n: int, k: int) -> int:
    """Return the number of sets of ``k`` of ``n`` groups; any number above MOST_SUPPORTS if there are more."""
    count = 1
    for r in range(min(k, n - k)):
        count = count * (n - r) // (r + 1)
        if count > MOST_SUPPORTS:
            break
    return count


def _sum(terms: list[Any]) -> Any:
    """Return the correctly rounded sum; infinite if it overflows."""
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf


def statement_of(header: dict[str, Any], p: Problem, data: Data) -> Statement:
    """Return the statement of the problem of a header with these data."""
    code = np.zeros(len(p.y), np.int64) if p.kind == "intervals" else (p.y if p.classes else p.y > 0).astype(np.int64)
    count = {"labels": 2, "classes": p.classes, "intervals": 1}[p.kind]
    weights = [p.weight[code == k] for k in range(count)]
    spans = tuple((float(some.min()), float(some.max())) if len(some) else (0.0, 0.0) for some in weights)
    rows = data.class_rows or tuple(map(len, weights))
    names = {"labels": ["-1", "1"], "classes": [str(k) for k in range(count)], "intervals": []}[p.kind]
    read = data.rows_read if data.rows_read is not None else sum(rows) + sum((data.left_out or {}).values())
    return Statement(
        model=p.model, depth=p.depth, C=header["C"], eps=p.eps, budget=header["budget"], alpha=header["alpha"],
        features=p.n, columns=data.columns, span=(float(p.X.min()), float(p.X.max())), source=data.source,
        rows_read=read, left_out=dict(data.left_out or {}), losses=p.losses, classes=data.classes or names,
        class_rows=rows, target=data.target,
        target_span=None if names else (float(p.y.min()), float(p.y.max())), target_units=data.target_units,
        samples=p.m, class_weight=data.class_weight, weight_column=data.weight_column, weights=spans,
        groups=header["groups"],
    )  # fmt: skip


def tree_value(p: Problem, tree: dict[str, Any]) -> float:
    """Return the objective of the tree of a header, computed exactly and rounded up."""
    w, b = np.asarray(tree["w"], dtype=np.float64), np.asarray(tree["b"], dtype=np.float64)
    p.meter.hold(400.0 * np.count_nonzero(w))
    splits = [_whole([*row, c]) for row, c in zip(w.tolist(), b.tolist(), strict=True)]
    total, violations = Fraction(0), dict[tuple[int, float, float, int], int]()
    for t, used in enumerate(len(np.unique(p.group[row != 0.0])) for row in w):
        if p.model == "hfs" and used > p.budget[t]:
            raise Refused(f"tree: node {t} uses more features, or groups of them, than its budget")
        total += Fraction(sum(c * c for c in splits[t][0][:-1]), 2 * splits[t][1] ** 2)
        total += Fraction(p.alpha[t]) * max(0, used - p.budget[t]) if p.model == "sfs" else 0
    step = max(1, (1 << 20) // max(p.T, p.n))
    for k in range(0, len(p.X), step):
        _add_violations(p, tree, w, b, splits, range(k, min(k + step, len(p.X))), violations)
    for (t, weight, factor, unit), sum_of in violations.items():
        total += Fraction(p.C[t]) * Fraction(weight) * Fraction(factor) * Fraction(sum_of, unit)
    p.meter.hold(-400.0 * np.count_nonzero(w))
    try:
        return math.nextafter(float(total), math.inf)
    except OverflowError:
        return math.inf


def _add_violations(p: Problem, tree: dict[str, Any], w: Any, b: Any, splits: Any, rows: range, found: Any) -> None:
    """Add the exact violations of corners by some rows to ``found``, by tree node, weight, factor and unit.

    Samples that floats show to have no loss, whatever the rounding error, are skipped.
    """
    X, y = p.X[rows.start : rows.stop], p.y[rows.start : rows.stop]
    with np.errstate(over="ignore", invalid="ignore"):
        near, off = X @ w.T + b, 2 * (p.n + 4) * UNIT * (np.abs(X) @ np.abs(w).T + np.abs(b))
        free = _free(p, tree, y, near, off) & ((near > 0.0) | (near + off < -p.eps))
    ties = [_whole([min(TIE * (1.0 + abs(c)), p.eps / 4), p.eps]) for c in b.tolist()]
    for i, row, target in zip(range(len(y)), X.tolist(), y.tolist(), strict=True):
        t, exact, weight = 0, None, float(p.weight[rows.start + i])
        while t < p.T:
            if free[i, t]:
                t = 2 * t + (2 if near[i, t] > 0.0 else 1)
                continue
            x, x_unit = exact = exact or _whole([*row, 1.0])
            h, one = sum(map(operator.mul, x, splits[t][0])), x_unit * splits[t][1]  # h(x) of the sample is h / one
            (tie, eps), unit = ties[t]
            if t < p.upper and (tie - eps) * one < h * unit < -tie * one:
                raise Refused(f"tree: sample {rows.start + i} lies in the band beside the split of node {t}")
            right = h * unit >= -tie * one
            for label, corner, factor in _losses_of(p, tree, t, target, right):
                top, bottom = corner.as_integer_ratio()
                if (less_than := top * one - label * h * bottom) > 0:
                    key = t, weight, factor, one * bottom
                    found[key] = found.get(key, 0) + less_than
            t = 2 * t + (2 if right else 1)


def _free(p: Problem, tree: dict[str, Any], y: Any, near: Any, off: Any) -> Any:
    """Return where samples have no loss whatever the rounding error ``off`` of their values ``near``."""
    if p.kind == "labels":
        return y[:, None] * near - off > 1.0
    if p.kind == "intervals":
        low, high = p.corners(y[:, None])
        last = (near - off > low) & (near + off < high)
        return np.where(np.arange(p.T) < p.upper, np.abs(near) - off > 1.0, last)
    code, sides = y.astype(np.int64), np.array(tree["sides"], np.float64).reshape(p.upper, p.classes)
    a, b = np.array(tree["labels"]).T
    labels = np.where(code[:, None] == b, 1.0, np.where(code[:, None] == a, -1.0, 0.0))
    return np.hstack([sides.T[code], labels]) * near - off > 1.0


def _losses_of(p: Problem, tree: dict[str, Any], t: int, y: float, right: bool) -> list[tuple[int, float, float]]:
    """Return the losses of a sample at a tree node that sends it right or left: label, corner and factor of each."""
    if p.kind == "labels":
        return [(int(y), 1.0, 1.0)]
    if p.kind == "intervals":
        low, high = p.corners(y)
        both = [(1, low, p.losses["below"]), (-1, -high, p.losses["above"])]
        return both if t >= p.upper else [(1 if right else -1, 1.0, 1.0)]
    if t < p.upper:
        return [(tree["sides"][t][int(y)], 1.0, 1.0)]
    a, b = tree["labels"][t - p.upper]
    return [(label, 1.0, 1.0) for label, other in ((1, a), (-1, b)) if int(y) != other]


def _whole(numbers: list[float]) -> tuple[list[int], int]:
    """Return float64 numbers as whole numbers over a common power of two."""
    tops, units = zip(*map(float.as_integer_ratio, map(float, numbers)), strict=True)
    most = max(units)
    return [x * (most // q) for x, q in zip(tops, units, strict=True)], most


class Point(NamedTuple):
    """Multipliers of one tree node: items at full cost, items with given values, and the balancing item."""

    full: Any
    given: Any
    values: Any
    balance: int
    rest: bool  # whether items that are not listed are at full cost where `Items.full` says so


def multipliers(t: int, items: Items, point: Point) -> Any:
    """Return ``v_i = label_i mu_i`` of every item; the balancing one has 0. Refused if a number is out of its range."""
    listed = np.concatenate([point.full, point.given, [point.balance]]).astype(np.int64)
    if listed.max(initial=0) >= len(items.label) or not np.all(items.label[listed]):
        raise Refused(f"tree node {t}: a sample that is not known to reach it, or has no such loss, has a multiplier")
    if len(np.unique(listed[:-1])) < len(listed) - 1:
        raise Refused(f"tree node {t}: a sample has two multipliers")
    v = np.where(items.full & point.rest, items.cost, 0.0)
    v[point.full], v[point.given] = items.cost[point.full], point.values
    v[point.balance] = 0.0
    sized, way = np.all(np.abs(point.values) <= LARGEST), items.label * items.side  # sized: and so finite
    if not sized or np.any((v < 0) & (way != -1)) or np.any((v > items.cost) & (way != 1)):
        raise Refused(f"tree node {t}: a multiplier is out of its range")
    return v


def node_terms(p: Problem, t: int, side: Any, codes: Any, point: Point | None, exact: bool) -> tuple[Any, Any]:
    """Return a lower bound on the sum of phi, and an upper bound on the sum of ``1/2 u_j^2`` of every group.

    Both are exact if ``exact``. Products may underflow: the errors are smaller than what `less` always subtracts.
    """
    convert, add, unit = (_fractions, sum, 0) if exact else (np.copy, math.fsum, UNIT)
    items = p.items(t, side, codes)
    count = len(items.label)
    p.meter.work((2e4 + 40.0 * count) * (100 if exact else 1))
    delta, cost, label = convert(np.where(items.side < 0, p.eps, 0.0)), convert(items.cost), convert(items.label)
    along, against = items.label * items.side == 1, items.label * items.side == -1
    v = convert(np.zeros(count))
    if point is not None:
        listed, k = multipliers(t, items, point), point.balance
        v = convert(listed)
        others = (label[k] * label * v)[listed != 0].tolist()
        v[k] = -add(others)  # correctly rounded, so that its sign is right
        if (v[k] < 0 and not against[k]) or (v[k] >= cost[k] and not along[k] and add([*others, cost[k]]) < 0):
            raise Refused(f"tree node {t}: the multiplier that balances the others is out of its range")
    else:
        along[:] = False  # phi is 0
    # As multipliers add up to 0, so do products with a number that all corners are shifted by.
    phi = v * (convert(items.corner) if exact else items.corner - label * p.shift)
    size = np.abs(phi)
    d, c, x = delta[along], cost[along], v[along]
    phi[along] = np.minimum(c * np.maximum(0, 1 - d) + x * d, x * np.maximum(1, d))
    phi[against] = cost[against] * (1 + delta[against]) - v[against] * delta[against]
    sent = along | against
    size[sent] = (cost[sent] + np.abs(v[sent])) * (1 + delta[sent])
    total = phi.sum() - (count + 10) * 2 * unit * size.sum()
    some = np.flatnonzero(v)
    p.meter.work(2.0 * len(some) * p.n * (2000 if exact else 1))
    mu = (label * v)[some]
    if exact:
        columns = map(_fractions, p.points[some % p.m].T)
        u = np.array([abs(sum(map(operator.mul, mu, x), Fraction(0))) for x in columns], object)
    else:
        X = p.shifted[some % p.m]
        u = np.abs(mu @ X) + (len(some) + 10) * 2 * unit * (np.abs(mu) @ np.abs(X))
        u[np.isnan(u)] = math.inf  # an overflow
    return total, p.over_groups(u * u / 2 * (1 + 8 * unit), exact)


def _fractions(numbers: Any) -> Any:
    return np.array([Fraction(x) for x in numbers.ravel().tolist()], object).reshape(numbers.shape)


def less(p: Problem, total: float, cut: Any) -> Any:
    """Return ``max(0, total - cut)`` rounded down; the relative error of ``cut``, of either sign, is at most one unit
    per feature."""
    rounding = 2 * (p.n + 8) * UNIT * np.abs(cut) + 8 * UNIT * (abs(total) + np.abs(cut))
    return np.fmin(HUGE, np.fmax(0.0, total - cut - rounding - 1e-300))


class Case(NamedTuple):
    """What is known about a tree node in a leaf."""

    t: int
    side: Any  # of every sample
    codes: Any  # of every class
    must: list[int]  # groups decided as used
    never: list[int]  # groups decided as not used
    point: Point | None
    table: Any = None


def node_bound(p: Problem, case: Case, *, exact: bool) -> Any:
    """Return a lower bound on the cost of a tree node from its multipliers and the table of its supports.

    Tables are never in fractions.
    """
    t, side, codes, must, never, point, table = case
    total, squares = node_terms(p, t, side, codes, point, exact and table is None)
    if table is None or p.model == "sfs":
        cut = penalty(p, t, squares.tolist(), must, never)
        plain = HUGE if cut == -math.inf else total - cut if exact and table is None else float(less(p, total, cut))
        if table is None:
            more = p.cost_of_others(t, side, codes, exact)
            return (max(0, plain) + more) * (1 if exact else 1 - 2 * UNIT) if more else plain
    spare = max(0, min(p.budget[t], p.n_groups) + len(never) - p.n_groups)
    of_must, of_never = (np.isin(np.arange(p.n_groups), names).astype(np.int32) for names in (must, never))
    fits = (p.over_supports(t, of_must) == len(must)) & (p.over_supports(t, of_never) <= spare)
    least = np.min(raised(p, t, table, total, squares)[fits], initial=HUGE)
    return max(plain, min(least, p.alpha[t])) if p.model == "sfs" else least  # more groups cost alpha


def raised(p: Problem, t: int, table: Any, total: float, squares: Any) -> Any:
    """Return the table of bounds of the supports of tree node ``t``, raised to what a point proves."""
    return np.maximum(table, less(p, total, p.over_supports(t, squares)))


def penalty(p: Problem, t: int, squares: list[Any], must: list[int], never: list[int]) -> Any:
    """Return the maximum over supports of the sum of ``squares`` minus the penalty of the support; rounded once."""
    add = sum if isinstance(squares[0], Fraction) else _sum
    if p.model == "margot":
        return add(squares)
    decided = {*must, *never}
    rest = sorted((x for j, x in enumerate(squares) if j not in decided), reverse=True)
    places, taken = p.budget[t] - len(must), [squares[j] for j in must]
    if p.model == "hfs":
        return -math.inf if places < 0 else add(taken + rest[:places])
    alpha = Fraction(p.alpha[t]) if isinstance(squares[0], Fraction) else p.alpha[t]
    taken += [-alpha] * max(0, -places) + rest[: max(places, 0)]
    return add(taken + [part for x in rest[max(places, 0) :] if x > alpha for part in (x, -alpha)])


class Decision(NamedTuple):
    """A decision with one of its outcomes, linked to the decisions before it: the state of a search node."""

    before: Decision | None
    kind: bytes  # the kind of step: S, F or C
    which: int
    t: int
    outcome: int  # a sample: 1 is left, 2 right; a group: 1 is used, 2 not used; a class: see `Problem.codes`


class Replay:
    """Checks the steps of a proof one by one and keeps the open search nodes, by their last decision."""

    def __init__(self, p: Problem, bound: float, steps: int) -> None:
        self.p, self.bound, self.most_steps = p, bound, steps
        self.open: dict[int, Decision | None] = {0: None}
        self.tables: dict[int, dict[int, Any]] = {}  # of open search nodes: by tree node, least costs on its supports
        self.holders: dict[int, int] = {}  # how many open search nodes hold a table
        self.steps = self.leaves = self.exact = 0
        self.before: list[Point | None] = [None] * p.T
        self.known: list[Any] = [None] * p.T
        self.bounds = [0.0] * p.T
        self.groups = range(p.n_groups) if p.model != "margot" else range(0)

    def block(self, raw: bytes) -> None:
        """Check the steps of a block."""
        read = Reader(raw)
        while read.at < len(raw):
            try:
                self._step(read)
            except LimitReached:
                raise
            except Refused as error:
                raise Refused(f"step {self.steps}: {error}") from None
            self.steps += 1

    def _step(self, read: Reader) -> None:
        self.p.meter.work(3e3)
        if self.steps >= self.most_steps:
            raise Refused(f"there are more steps than the {self.most_steps} of the header")
        (kind,) = read.take("<c")
        (node,) = read.take("<I") if kind in (b"S", b"F", b"C", b"L", b"R") else (-1,)
        if node not in self.open:
            raise Refused(f"search node {node} is not open, or there is no step of kind {kind!r}")
        if kind == b"R":
            return self._raise(read, node)
        last, tables = self.open.pop(node), self.tables.pop(node, {})
        if kind == b"L":
            self._leaf(read, node, last, tables)
            self.p.meter.hold(-OPEN_BYTES)
        else:
            for child in self._split(read, kind, last):
                if tables:
                    self.tables[child] = tables
                    self._count(tables, 1)
        self._count(tables, -1)

    def _count(self, tables: dict[int, Any], by: int) -> None:
        """Add ``by`` to the number of open search nodes that have these tables, and count their memory."""
        for table in tables.values():
            holders = self.holders.get(id(table), 0) + by
            if holders == by:
                self.p.meter.hold(table.nbytes)
            if holders:
                self.holders[id(table)] = holders
            else:
                del self.holders[id(table)]
                self.p.meter.hold(-table.nbytes)

    def _decisions(self, last: Decision | None) -> Iterator[Decision]:
        """Yield the decisions at a search node, the last one first."""
        while last is not None:
            yield last
            last = last.before

    def _split(self, read: Reader, kind: bytes, last: Decision | None) -> tuple[int, int]:
        """Check a decision and open a child for each outcome; the children together cover their parent."""
        which, t, first, second = read.take("<IHII")
        if first == second or first in self.open or second in self.open:
            raise Refused(f"its children {first} and {second} are open already, or the same")
        place, known, of_class, count = 0, False, list[tuple[int, int]](), 0
        for count, one in enumerate(self._decisions(last)):  # noqa: B007 (counted as work)
            if one.kind == kind == b"C" and one.t == t:
                of_class.append((one.which, one.outcome))
            elif one.kind == kind and one.which == which:
                if kind == b"S":
                    place = 2 * one.t + one.outcome
                    break
                known |= one.t == t
        self.p.meter.work(50.0 * count)
        if kind == b"F" and (known or which not in self.groups or t >= self.p.T):
            raise Refused(f"feature or group {which} of tree node {t} is decided already, or there is none")
        if kind == b"S" and (which >= self.p.m or place != t or t >= self.p.upper):
            raise Refused(f"sample {which} is not known to stop at tree node {t} for now, an upper one")
        if kind == b"C":
            there_is = which < self.p.classes and t < self.p.T
            if not there_is or self.p.codes(t, of_class[::-1])[which] != OPEN:
                raise Refused(f"class {which} is decided at tree node {t} already, or there is none")
        self.p.meter.hold(SPLIT_BYTES)
        self.open[first] = Decision(last, kind, which, t, 1)
        self.open[second] = Decision(last, kind, which, t, 2)
        return first, second

    def _point(self, read: Reader, t: int) -> Point | None:
        """Read the multipliers of tree node ``t``: none, those of the step before, or a list."""
        (code,) = read.take("<B")
        if code > 3:
            raise Refused(f"tree node {t}: {code} is not a valid kind of multipliers")
        if code >= 2:
            n_full, n_given, balance = read.take("<III")
            full, given = read.array("<u4", n_full), read.array("<u4", n_given)
            self.p.meter.hold(4.0 * n_full + 12.0 * n_given)
            self._forget(t)
            self.before[t] = Point(full, given, read.array("<f8", n_given), balance, code == 2)
        elif code == 0:
            self._forget(t)
        return self.before[t]

    def _forget(self, t: int) -> None:
        """Free the last point of tree node ``t``."""
        if (point := self.before[t]) is not None:
            self.p.meter.hold(-4.0 * len(point.full) - 12.0 * len(point.given))
        self.before[t] = None

    def _raise(self, read: Reader, node: int) -> None:
        """Read multipliers of one tree node and raise its table of supports, at this search node and below."""
        (t,) = read.take("<H")
        if t >= self.p.T or self.p.kind != "labels":
            raise Refused(f"there is no tree node {t}, or there are no tables with losses of this kind")
        tables = self.tables.get(node, {})
        table = tables[t] if t in tables else np.zeros(self.p.supports(t).shape[1])
        place = self._known_at(self.open[node])[0]
        terms = node_terms(self.p, t, self.p.side_of[t][place], None, self._point(read, t), exact=False)
        self.tables[node] = {**tables, t: raised(self.p, t, table, *terms)}
        self._count(self.tables[node], 1)
        self._count(tables, -1)

    def _known_at(self, last: Decision | None) -> tuple[Any, dict[int, Any], dict[int, Any]]:
        """Return the place of each sample; by tree node, the groups decided as used and as not used; by tree node,
        the decisions about classes, the last one first."""
        place, groups, classes = np.zeros(self.p.m, np.int64), dict[int, Any](), dict[int, Any]()
        samples, places = array("q"), array("q")
        for one in self._decisions(last):
            if one.kind == b"F":
                groups.setdefault(one.t, ([], []))[one.outcome - 1].append(one.which)
            elif one.kind == b"C":
                classes.setdefault(one.t, []).append((one.which, one.outcome))
            else:
                samples.append(one.which)
                places.append(2 * one.t + one.outcome)
        self.p.meter.work(5e3 + 100.0 * len(samples) + self.p.m)
        for i, where in zip(reversed(samples), reversed(places), strict=True):
            place[i] = where
        return place, groups, classes

    def _leaf(self, read: Reader, node: int, last: Decision | None, tables: dict[int, Any]) -> None:
        """Read multipliers for every tree node and check that their bounds add up to the claimed bound."""
        p, cases = self.p, []
        place, groups, classes = self._known_at(last)
        for t in range(p.T):
            p.meter.work(5e3 + 2.0 * p.m)
            used, unused = (sorted(some) for some in groups.get(t, ([], [])))
            codes = p.codes(t, classes.get(t, [])[::-1]) if p.classes else None
            cases.append(Case(t, p.side_of[t][place], codes, used, unused, self._point(read, t), tables.get(t)))
        total = math.fsum(max(0.0, self._cached(case)) for case in cases) * (1 - p.T * UNIT)
        self.leaves += 1
        if not total >= self.bound:
            exact = sum(Fraction(max(0, node_bound(p, case, exact=True))) for case in cases)
            self.exact += 1
            if exact < Fraction(self.bound):
                raise Refused(f"search node {node} is closed, but proves {_about(exact)}, not {self.bound:.12g}")

    def _cached(self, case: Case) -> float:
        """Return the bound of a tree node; the last one is kept, because the next leaf often has the same case."""
        known, t = self.known[case.t], case.t
        same = known and known.point is case.point and known.table is case.table
        if not (same and np.array_equal(known.side, case.side) and known[2:5] == case[2:5]):
            self.known[t], self.bounds[t] = case, float(node_bound(self.p, case, exact=False))
        return self.bounds[t]


def _about(value: Any) -> str:
    try:
        return f"{float(value):.12g}"
    except OverflowError:
        return "more than a float holds"


def check(
    path: str | os.PathLike[str],
    data: Any,
    tell: Callable[[float], None] | None = None,
    *,
    max_memory: float | None = None,
    max_work: float | None = None,
    tree: dict[str, Any] | None = None,
) -> Proved:
    """Check the proof in file ``path`` for ``data``: a data file (CSV or .npz), or arrays (X, y, weight).

    Returns what is proved; raises `Refused` if the proof is not valid for these data, and `LimitReached` if the check
    would exceed ``max_memory`` GB of memory or ``max_work`` billion operations. By default these limits follow from the
    sizes of proof and data (docs/proof.md). ``tell`` is called every two seconds with the share that is checked. With
    ``tree``, as a header has it, the objective is that of this tree and not that of the tree in the proof.
    """
    from_file = isinstance(data, (str, os.PathLike))
    size, told = max(1, os.path.getsize(path)), time.monotonic()
    sizes = size + (os.path.getsize(data) if from_file else sum(getattr(a, "nbytes", 0) for a in data[:3]))
    meter = Meter(sizes, max_memory, max_work)
    with open(path, "rb") as stream, np.errstate(all="ignore"):
        header = read_header(stream)
        rows = read_data(os.fspath(data), header, meter) if from_file else Data(*data)
        problem = Problem(header, rows.X, rows.y, rows.weight)
        problem.meter = meter
        meter.allow_work(size, WORK_PER_BYTE * problem.T * (1e4 + problem.classes + problem.most_items * problem.n))
        claim = header["claim"]
        objective = tree_value(problem, header["tree"])
        if not objective <= claim["objective"]:
            raise Refused(f"tree: it costs {objective!r}, more than the {claim['objective']!r} claimed")
        if tree is not None:
            tree = _checked_tree(tree, problem.T, problem.n, problem.classes)
            claim = {**claim, "objective": tree_value(problem, tree)}
            if not claim["objective"] >= claim["bound"]:
                raise Refused(f"tree: it costs {claim['objective']!r}, less than the bound claimed")
        replay = Replay(problem, claim["bound"], header["steps"])
        for raw in read_blocks(stream, BLOCK + 14 + problem.T * (13 + 12 * problem.most_items), meter):
            replay.block(raw)
            if tell is not None and time.monotonic() > told + 2.0:
                told = time.monotonic()
                tell(stream.tell() / size)
        if replay.open:
            raise Refused(f"end: search node {min(replay.open)} is still open ({len(replay.open)} are)")
        if replay.steps != header["steps"]:
            raise Refused(f"end: {replay.steps} steps, but the header says {header['steps']}")
        stream.seek(0)
        sha = hashlib.file_digest(stream, "sha256").hexdigest()
        statement = statement_of(header, problem, rows)
    return Proved(claim["objective"], claim["bound"], replay.steps, replay.leaves, replay.exact, sha, statement)


# -- data from files ---------------------------------------------------------------------------------------------------


def read_data(path: str, header: dict[str, Any], meter: Meter) -> Data:
    """Read samples, labels and weights from a .npz file, or from a CSV file with the columns that the header names."""
    if path.endswith(".npz"):
        X, y, weight = _arrays(path, header, meter)
        return Data(X, y, weight, source=os.path.basename(path))
    table = header["table"]
    if table is None:
        raise Refused("data: the proof does not say how to read a table; give a .npz file with X, y and weight")
    numeric = table["labels"] is None
    X, targets, weights = _columns(path, table, numeric)
    if not np.any(used := weights > 0):
        raise Refused(f"data: in {path} no row has a weight above 0")
    X, weight = ((X - np.array(table["offset"])) / np.array(table["scale"]) + 0.0)[used], weights[used]
    if numeric:
        rows: Any = [len(X)]
        units: Any = table["target_offset"], table["target_scale"]
        y = (np.array(targets)[used] - units[0]) / units[1] + 0.0
    else:
        code_of, units = {word: k for k, word in enumerate(table["labels"])}, None
        if unknown := sorted(set(targets) - set(code_of)):
            raise Refused(f"data: {path} has the class {shown(unknown, 1)}, which is not in the proof")
        code = np.array([code_of[word] for word in targets])[used]
        y = code * 1.0 if (header["losses"] or {}).get("count") else code * 2.0 - 1.0
        rows, weight = np.bincount(code, minlength=len(code_of)), weight * np.array(table["class_weight"])[code]
    columns = [y, *X.T[::-1]]
    order = np.lexsort(columns)
    first = np.flatnonzero(np.append(True, np.any([c[order][1:] != c[order][:-1] for c in columns], axis=0)))
    return Data(
        X[order[first]], y[order[first]], np.add.reduceat(weight[order], first), columns=table["features"],
        classes=None if numeric else [shown([label]) for label in table["labels"]], class_weight=table["class_weight"],
        weight_column=table["weight"], source=os.path.basename(path), rows_read=len(weights),
        left_out={"weight 0": int(np.sum(~used))}, class_rows=tuple(map(int, rows)), target=table["target"],
        target_units=units,
    )  # fmt: skip


def _columns(path: str, table: dict[str, Any], numeric: bool) -> tuple[Any, list[Any], Any]:
    """Return the features, the targets (text, or numbers if ``numeric``) and the weights of all rows of a CSV file."""
    values, targets, weight = array("d"), list[Any](), array("d")
    with open(path, newline="", encoding="utf-8-sig") as stream:
        lines = csv.reader(stream)
        try:
            names = next(lines, [])
            at = [_position(names, name) for name in [*table["features"], table["target"], table["weight"]]]
            for row in filter(None, lines):
                values.extend(float(row[k]) for k in at[:-2])
                targets.append(float(row[at[-2]]) if numeric else row[at[-2]].strip())
                weight.append(1.0 if at[-1] < 0 else float(row[at[-1]]))
        except (ValueError, IndexError, csv.Error) as error:
            reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else f"{error!s:.120}"
            raise Refused(f"data: {path}, line {lines.line_num + 1} or the one before: {reason}") from None
    weights = np.array(weight)
    if not len(weights):
        raise Refused(f"data: {path} has no rows below its header")
    if not np.all((weights >= 0) & np.isfinite(weights)):
        raise Refused(f"data: the weights of {path} must be finite and not negative")
    return np.array(values).reshape(len(weights), len(at) - 2), targets, weights


def _position(names: list[str], name: str | None) -> int:
    """Return the position of a column; -1 for None."""
    if name is None:
        return -1
    if names.count(name) != 1:
        raise ValueError(f"the column {shown([name])} occurs {names.count(name)} times")
    return names.index(name)


def _arrays(path: str, header: dict[str, Any], meter: Meter) -> list[Any]:
    """Return the arrays X, y and weight of a .npz file; their shapes are compared with the header before reading."""
    m, found = header["samples"], []
    with open(path, "rb") as stream:
        for name, shape in (("X", (m, header["features"])), ("y", (m,)), ("weight", (m,))):
            try:
                with warnings.catch_warnings(), zipfile.ZipFile(stream) as archive, archive.open(name + ".npy") as part:
                    warnings.simplefilter("ignore")
                    read = (np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0)
                    has, by_column, kind = read[np.lib.format.read_magic(part)[0] - 1](part)
                    if has != shape or kind.kind not in "fiub":
                        raise ValueError(f"{name} is {shown(has)} of {kind}, the proof is about {shape} numbers")
                    meter.hold(4.0 * math.prod(shape) * kind.itemsize)
                    raw = part.read(math.prod(shape) * kind.itemsize)
            except LimitReached:
                raise
            except Exception as error:  # the exceptions of damaged archives are not documented
                raise Refused(f"data: {path}: {name} cannot be read ({type(error).__name__}: {error!s:.120})") from None
            if len(raw) != math.prod(shape) * kind.itemsize:
                raise Refused(f"data: {path}: {name} is cut off")
            found.append(np.frombuffer(raw, kind).reshape(shape, order="F" if by_column else "C"))
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check a proof that margotree wrote.")
    parser.add_argument("proof", help="the proof file")
    parser.add_argument("data", help="the table (.csv), or arrays X, y, weight (.npz)")
    parser.add_argument("--max-memory", metavar="GB", type=float, help="limit of memory")
    parser.add_argument("--max-work", metavar="BILLIONS", type=float, help="limit of billions of operations")
    args = parser.parse_args(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")

    def tell(share: float) -> None:
        print(f"{share:6.1%} checked", file=sys.stderr, flush=True)

    try:
        print(check(args.proof, args.data, tell, max_memory=args.max_memory, max_work=args.max_work))
    except Refused as error:
        print(f"NOT PROVED: {error}")
        return 1
    except OSError as error:
        print(f"cannot read {error.filename or args.proof}: {error.strerror or error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
