"""Writing of proofs: compressed blocks of steps during the search, and a header in front of them at the end."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from os import PathLike
from typing import Any

import numpy as np

from margotree.atomic_files import write_atomically, write_error
from margotree.problem import Problem, Splits
from margotree.problem.tasks import NO_CHOICE, Items
from margotree.proof import check

#: Compression level: higher levels take more time and hardly reduce the size.
_LEVEL = 3
#: Bytes of a block before compression: few, so that little is left to compress at the end of the search.
_BLOCK = 1 << 16
#: The largest number of blocks that wait for compression.
_WAITING = 16
#: The point of a tree node whose multipliers are all 0, and of one with the same multipliers as in the step before.
NOTHING, SAME_POINT = b"\0", b"\1"
#: A last point that is unknown; it equals no other point.
_UNKNOWN_POINT = b""
#: The first number of search nodes in the steps of another process; they get other numbers in this process.
REMOTE_BASE = 1 << 31


def local_node_number(number: int, first: int) -> int:
    """Return the number of a search node in this process, if numbers of another process are mapped to ``first``, ..."""
    return number if number < REMOTE_BASE else number - REMOTE_BASE + first


class Steps:
    """The steps of a proof as bytes in memory, in the format of docs/proof.md."""

    def __init__(self, n_nodes: int) -> None:
        self.count = 0
        self._block = bytearray()
        self._last_points = [NOTHING] * n_nodes

    @property
    def text(self) -> bytes:
        """The steps that are not in a file yet."""
        return bytes(self._block)

    def split(self, kind: bytes, node: int, which: int, t: int, first: int, second: int) -> None:
        """Append a decision about a sample (``b"S"``: left, right), a group (``b"F"``: used, not used) or a class.

        Parameters
        ----------
        kind : bytes
            ``b"S"``, ``b"F"``, or ``b"C"``: left or right at an upper tree node, a label or none at a last one.
        node : int
            The search node.
        which : int
            The sample, group (the feature, where features form no groups) or class.
        t : int
            The tree node.
        first, second : int
            The numbers of the two new search nodes.
        """
        self._add(struct.pack("<cIIHII", kind, node, which, t, first, second))

    def leaf(self, node: int, points: list[bytes]) -> None:
        """Append a closed search node with the multipliers of every tree node, as `point` returns them."""
        codes = (SAME_POINT if p == q and p != NOTHING else p for p, q in zip(points, self._last_points, strict=True))
        self._add(struct.pack("<cI", b"L", node) + b"".join(codes))
        self._last_points = list(points)

    def raise_bounds(self, node: int, t: int, point: bytes) -> None:
        """Append multipliers that raise the bounds of the supports of tree node ``t`` at this search node and below."""
        self._add(struct.pack("<cIH", b"R", node, t) + point)
        self._last_points[t] = point

    def written(self, steps: bytes, count: int, last: dict[int, bytes] | None = None) -> None:
        """Append ``count`` steps that are bytes already; ``last`` has their last points by tree node, if known."""
        self._add(steps, count)
        for t in range(len(self._last_points)) if last is None else last:
            self._last_points[t] = _UNKNOWN_POINT if last is None else last[t]

    def take_over(self, text: bytes, first: int) -> None:
        """Append the steps of another process; its search nodes get numbers from ``first`` on."""
        step, at = bytearray(), 0
        while at < len(text):
            begin, points = at, []
            offsets, at = ((1, 11, 15), at + 19) if text[at] in b"SFC" else ((1,), at + 5)
            if text[begin] == ord("L"):
                points = list(range(len(self._last_points)))
            elif text[begin] == ord("R"):
                points, at = [struct.unpack_from("<H", text, at)[0]], at + 2
            for t in points:
                end = _end_of_point(text, at)
                if text[at : at + 1] != SAME_POINT:
                    self._last_points[t] = text[at:end]
                at = end
            step[:] = text[begin:at]
            for place in offsets:
                struct.pack_into("<I", step, place, local_node_number(struct.unpack_from("<I", step, place)[0], first))
            self._add(step)

    def _add(self, steps: bytes | bytearray, count: int = 1) -> None:
        self._block += steps
        self.count += count


def _end_of_point(text: bytes, at: int) -> int:
    """Return the end of the point that begins at ``at``."""
    if text[at] < 2:
        return at + 1
    full, given = struct.unpack_from("<II", text, at + 1)
    return int(at + 13 + 4 * full + 12 * given)


class StepFile(Steps):
    """Steps in a file of their own; a thread compresses and writes blocks, so that few of them are in memory."""

    def __init__(self, path: str, n_nodes: int) -> None:
        super().__init__(n_nodes)
        self.path = path
        self._stream = open(path, "xb")  # noqa: SIM115 (closed by close)
        self._helper = ThreadPoolExecutor(1)
        self._pending: deque[Future[None]] = deque()
        self._failed: OSError | None = None  # such as a full disk: the search continues, and close raises this

    def close(self) -> None:
        """Write all steps and the end mark; raises OSError if something could not be written."""
        if self._stream.closed:
            return
        try:
            self._flush()
            self._wait(0)
            if self._failed is not None:
                raise self._failed
            self._stream.write(struct.pack("<III", 0, 0, 0))
        finally:
            self._helper.shutdown()
            self._stream.close()

    def start_writing(self) -> None:
        """Start to compress and write the steps in memory; the thread does so in parallel to other work."""
        if not self._stream.closed:
            self._flush()

    def discard(self) -> None:
        """Close the file and remove it."""
        self._helper.shutdown(cancel_futures=True)
        with suppress(OSError):
            self._stream.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def _add(self, steps: bytes | bytearray, count: int = 1) -> None:
        if len(steps) < _BLOCK:
            super()._add(steps, count)
            if len(self._block) >= _BLOCK:
                self._flush()
        else:  # a block of its own, without a copy
            self._flush()
            self._submit(bytes(steps))
            self.count += count

    def _flush(self) -> None:
        if self._block:
            self._submit(bytes(self._block))
            self._block.clear()

    def _submit(self, block: bytes) -> None:
        self._wait(_WAITING)
        self._pending.append(self._helper.submit(self._compress_and_write, block))

    def _wait(self, max_pending: int) -> None:
        """Wait until at most ``max_pending`` blocks wait to be written; raises the exceptions of written blocks."""
        while self._pending and (len(self._pending) > max_pending or self._pending[0].done()):
            self._pending.popleft().result()

    def _compress_and_write(self, raw: bytes) -> None:
        if self._failed is not None:
            return
        packed = zlib.compress(raw, _LEVEL)
        try:
            self._stream.write(struct.pack("<III", len(packed), len(raw), zlib.crc32(packed)) + packed)
        except OSError as error:
            self._failed = error


def point(full: Any, given: Any, values: Any, balance: int, rest: bool = True) -> bytes:
    """Return the multipliers of a tree node in the format of docs/proof.md.

    Parameters
    ----------
    full : array of int
        Samples whose multiplier is their cost.
    given, values : array
        Samples with another multiplier, and these multipliers.
    balance : int
        The sample whose multiplier makes the sum 0.
    rest : bool
        Whether samples that are not listed have their cost as multiplier if they are sent against their label.
    """
    lead = struct.pack("<BIII", 2 if rest else 3, len(full), len(given), balance)
    return b"".join([lead, *(np.asarray(a, kind).tobytes() for a, kind in ((full, "<u4"), (given, "<u4"))),
                     np.asarray(values, "<f8").tobytes()])  # fmt: skip


def point_arrays(point: bytes) -> tuple[Any, Any, Any, int]:
    """Return ``full``, ``given``, ``values`` and ``balance`` of a result of `point`."""
    _, full, given, balance = struct.unpack_from("<BIII", point)
    ends = 13 + 4 * full, 13 + 4 * (full + given)
    samples = np.frombuffer(point[13 : ends[1]], "<u4").astype(np.int64)
    return samples[:full], samples[full:], np.frombuffer(point[ends[1] :], "<f8"), balance


class ProofWriter:
    """Writes one proof file: steps are collected in a file beside it, and the complete proof appears at the end.

    `add_table_description` adds how the numbers are found in a table. ``failure`` is the reason why the file could not
    be written; empty if it was written.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.failure = ""
        self._drafts: list[StepFile] = []
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK) or os.path.isdir(self.path):
            raise ValueError(f"proof: {self.path!r} cannot be written; name a file in a folder that can")

    def steps(self, n_nodes: int) -> StepFile:
        """Return a new file of steps for one search."""
        self._drafts.append(StepFile(f"{self.path}.{secrets.token_hex(4)}.part", n_nodes))
        return self._drafts[-1]

    def finish(self, problem: Problem, splits: Splits, bound: float, steps: StepFile) -> float:
        """Write the proof file from the steps that prove ``bound``; return an upper bound on the tree's objective."""
        steps.start_writing()
        header = terms_of(problem)
        header["digest"] = check.digest_of(header, problem.X, problem.y, problem.weight)
        header["tree"] = _tree_of(problem, splits)
        objective = _value_from_above(problem, header["tree"])
        try:
            steps.close()
        except OSError as error:
            raise write_error(error, self.path) from error
        header |= {
            "claim": {"objective": objective, "bound": min(bound, objective)},
            "steps": steps.count,
            "table": None,
        }

        def fill(draft: str) -> None:
            with open(draft, "xb") as stream, open(steps.path, "rb") as body:
                stream.write(pack_header(header))
                shutil.copyfileobj(body, stream, 1 << 20)

        write_atomically(self.path, fill)
        return objective

    def clean(self) -> None:
        """Remove the files of steps."""
        for steps in self._drafts:
            steps.discard()
        self._drafts.clear()


def _tree_of(problem: Problem, splits: Splits) -> dict[str, Any]:
    """Return the tree as the header contains it, with its best choices."""
    tree = {"w": splits.w.tolist(), "b": splits.b.tolist()}
    if terms_of(problem)["losses"]["kind"] == "classes":
        choices = problem.evaluate(splits).choices
        tree |= {"sides": choices.sides.tolist(), "labels": choices.labels.tolist()}
    return tree


def _value_from_above(problem: Problem, tree: dict[str, Any]) -> float:
    """Return the objective of the tree, rounded up, as the checker computes it, without unused features."""
    w = np.array(tree["w"])
    used = np.any(w != 0.0, axis=0)
    used[0] |= not used.any()
    data = problem.X[:, used], problem.y, problem.weight
    header = terms_of(problem) | {"features": int(used.sum())}
    if header["groups"] is not None:
        header["groups"] = np.unique(problem.group_of[used], return_inverse=True)[1].tolist()
    stated = check.Problem(header | {"digest": check.digest_of(header, *data)}, *data)
    return check.tree_value(stated, tree | {"w": w[:, used]})


def add_table_description(path: str | PathLike[str], table: dict[str, Any]) -> None:
    """Add to a written proof how its numbers are found in a table (the entry ``table`` of the header)."""

    def fill(draft: str) -> None:
        with open(path, "rb") as old, open(draft, "xb") as new:
            new.write(pack_header(check.checked_header(check.read_header(old) | {"table": table})))
            shutil.copyfileobj(old, new, 1 << 20)

    write_atomically(path, fill)


def reason_unprovable(problem: Problem) -> str:
    """Return why the checker would refuse any proof about this problem; empty if it would not."""
    if problem.task.proof_losses() is None:
        return f"a proof cannot be written for the losses of a {problem.task.name} problem; leave proof out"
    try:
        losses = losses_of(problem)
    except check.Refused as error:
        return f"a proof cannot be written: proof_losses() of the task {problem.task!r} is not valid ({error})"
    if other := _losses_that_differ(problem, losses):
        return (
            f"a proof cannot be written: the {other} are not those of {losses}, which proof_losses() of the task "
            f"{problem.task!r} returned (docs/proof.md); leave proof out"
        )
    if problem.choices is not None:
        return "a proof cannot be written where sides of classes and labels are fixed; leave proof out"
    if problem.max_weight is not None:
        return "a proof cannot be written where weights are bounded (max_weight); leave one of the two out"
    if not np.all(problem.weight > 0.0):
        return "a proof cannot be written with samples of weight 0; leave these samples or proof out"
    with np.errstate(over="ignore"):
        # The weights of equal samples are added, so that no cost is smaller than this.
        factors = [1.0, losses.get("below", 1.0), losses.get("above", 1.0)]
        smallest = problem.C.min() * problem.weight.min() * min(factors) * (1.0 - 2.0**-49)
        largest = problem.C.max() * problem.weight.sum() * max(factors)
    if not (smallest >= check.LEAST and largest <= check.LARGEST):
        return (
            f"a proof cannot be written with costs of margin violations (C times weight) below {check.LEAST:g} or "
            f"above {check.LARGEST:g}; here they range from {smallest:g} to {largest:g}: change C or the weights, "
            "or leave proof out"
        )
    return ""


def losses_of(problem: Problem) -> dict[str, Any]:
    """Return the losses of a problem as the header contains them; ``check.Refused`` if there are no such losses."""
    losses = problem.task.proof_losses()
    return check.checked_losses({name: getattr(x, "item", lambda x=x: x)() for name, x in (losses or {}).items()})


def _losses_that_differ(problem: Problem, losses: dict[str, Any]) -> str:
    """Return what in the problem differs from the losses of a proof; empty if nothing does.

    With several classes, some choices are compared: each class as the only one on the right of an upper split, and
    pairs of neighbours as labels.
    """
    allowed = {"labels": [-1.0, 1.0], "classes": range(losses.get("count", 0))}.get(losses["kind"])
    if allowed is not None and not np.all(np.isin(problem.y, list(allowed))):
        return "targets"
    for last, side, choice, expected in _expected_items(losses, problem.y):
        found = problem.task.items(problem.y, last=last, side=None if last else side, choice=choice)
        same = np.array_equal(found.p, expected.p) and np.array_equal(found.m, expected.m)
        corners = (found.p == 0) | (found.r == expected.r), (found.m == 0) | (found.l == expected.l)
        if not (same and np.all(corners)):
            return f"losses at {'last' if last else 'upper'} splits"
    return ""


def _expected_items(losses: dict[str, Any], y: Any) -> Iterator[tuple[bool, Any, Any, Items]]:
    """Yield the items of docs/proof.md: whether the split is a last one, sides taken, the choice, and the items."""
    one, ways = np.ones(len(y)), (np.ones(len(y), np.int64), -np.ones(len(y), np.int64))

    def hinges(right: Any, left: Any) -> Items:
        return Items(p=one * right, m=one * left, r=one, l=-one)

    if losses["kind"] == "classes":
        for k in range(losses["count"]):
            other = (k + 1) % losses["count"]
            for a, b in ((k, other), (other, k)):
                yield True, ways[0], np.array([a, b]), hinges(y != a, y != b)
            if k > 0:
                sides = np.where(np.arange(losses["count"]) == k, 1, -1)
                yield from ((False, way, sides, hinges(sides[y] > 0, sides[y] < 0)) for way in ways)
        return
    labels = losses["kind"] == "labels"
    for way in ways:
        yield False, way, NO_CHOICE, hinges(y > 0, y < 0) if labels else hinges(way > 0, way < 0)
    of = losses
    last = (
        hinges(y > 0, y < 0) if labels else Items(one * of["below"], one * of["above"], y - of["under"], y + of["over"])
    )
    yield True, ways[0], NO_CHOICE, last


def terms_of(problem: Problem) -> dict[str, Any]:
    """Return the terms of a problem as the header contains them."""
    return {
        "model": problem.model,
        "depth": problem.depth,
        "samples": problem.n_samples,
        "features": problem.n_features,
        "C": problem.C.tolist(),
        "eps": problem.eps,
        "budget": None if problem.budget is None else problem.budget.tolist(),
        "alpha": None if problem.alpha is None else problem.alpha.tolist(),
        "losses": losses_of(problem),
        "groups": None if problem.budget is None or problem.groups is None else problem.groups.tolist(),
    }


def pack_header(header: dict[str, Any]) -> bytes:
    """Return the first lines of a proof: name and version, header, checksum."""
    text = json.dumps(header, allow_nan=False).encode() + b"\n"
    return check.MAGIC + b"%d\n" % check.VERSION + text + b"%08x\n" % zlib.crc32(text)
