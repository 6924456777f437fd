"""Check a proof that margotree wrote: python check.py people.proof people.csv

This file needs NumPy and nothing else of margotree.  It trusts nobody: from the data and the proof it recomputes what
the tree costs at most and what any tree costs at least, and says what is thereby proved or which step proves nothing.
docs/proof.md states the rules.  All numbers in data and proof are float64 and so exact; every sum here is followed by
a bound on its rounding error, added to the unsafe side, and where that does not suffice the step is done in fractions.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, BinaryIO, NamedTuple

import numpy as np

MAGIC, VERSION = b"margotree proof ", 1
UNIT = 2.0**-53  #: Unit roundoff: a sum of k terms is off by about k UNIT times the sum of their sizes at most.
LONGEST_HEADER, BLOCK = 1 << 26, 1 << 20  #: Bytes of a header, and of the steps of one block (and one step more).
TIE = 1e-9  #: Samples within this, times 1 + |b|, of a split's border count as on it (at most a quarter of eps).
NOT_HERE = 2


class Refused(Exception):
    """The file proves nothing; the message names the place and the reason."""


@dataclass(frozen=True)
class Proved:
    """What a proof proves: this tree costs at most ``objective``, and no tree costs less than ``bound``."""

    objective: float
    bound: float
    steps: int
    leaves: int
    exact: int  # leaves that took fractions
    digest: str  # sha256 of the proof file

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.bound) / self.objective if self.objective > 0 else 0.0

    def __str__(self) -> str:
        return (
            f"PROVED: this tree costs at most {self.objective!r}, and no tree of these terms costs less than "
            f"{self.bound!r} (gap {self.gap:.4%}).\n{self.steps} steps, {self.leaves} leaves, {self.exact} of them "
            f"by fractions; sha256 of the proof {self.digest}"
        )


def read_header(stream: BinaryIO) -> dict[str, Any]:
    """The header: a line with name and version, one of JSON, one with its checksum."""
    first = stream.readline(64)
    if not first.startswith(MAGIC) or not first.endswith(b"\n"):
        raise Refused("line 1: this is not a margotree proof")
    if first != MAGIC + b"%d\n" % VERSION:
        raise Refused(f"line 1: a proof of another version ({first[len(MAGIC) : -1]!r}); this checker knows {VERSION}")
    text, check = stream.readline(LONGEST_HEADER), stream.readline(16)
    if not text.endswith(b"\n") or check != b"%08x\n" % zlib.crc32(text):
        raise Refused("header: it is cut off, or its checksum is not that of its text")
    try:
        header = json.loads(text)
        tree, claim = header["tree"], header["claim"]
        D, m, n = header["depth"], header["samples"], header["features"]
        T = 2 ** (D if 1 <= D <= 10 else 0) - 1
        shapes = [np.shape(tree["w"]) == (T, n), np.shape(tree["b"]) == (T,), np.shape(header["C"]) == (T,)]
        named = {"margot": (False, False), "hfs": (True, False), "sfs": (True, True)}[header["model"]]
        for name, there in zip(("budget", "alpha"), named, strict=True):
            shapes.append(np.shape(header[name]) == (T,) if there else header[name] is None)
        numbers = [claim["objective"], claim["bound"], header["eps"], *header["C"], *(header["alpha"] or [])]
        fine = all(shapes) and min(T, header["steps"], m) >= 1 and n >= 1 and len(header["digest"]) == 64
        finite = all(math.isfinite(float(x)) for x in numbers) and np.all(np.isfinite(tree["w"]))
        sense = claim["bound"] <= claim["objective"] and header["eps"] > 0
        positive = sense and min(header["C"]) > 0 and min([0, *(header["alpha"] or [])]) >= 0
        whole = all(isinstance(b, int) and b >= 0 for b in header["budget"] or [])
        if not (fine and finite and positive and whole and np.all(np.isfinite(tree["b"]))):
            raise Refused("header: its terms, tree and claim do not fit together")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Refused(f"header: it lacks what a proof needs ({error!r})") from None
    return dict(header)


def read_blocks(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """The blocks of steps, one after the other; at no time more than one is held."""
    for k in range(1 << 62):
        lengths = stream.read(12)
        if len(lengths) < 12:
            raise Refused(f"block {k}: the file is cut off")
        packed, size, check = struct.unpack("<III", lengths)
        if packed == size == check == 0:
            if stream.read(1):
                raise Refused(f"block {k}: something follows the end of the proof")
            return
        if not 0 < size <= most or packed > size + size // 100 + 1000:
            raise Refused(f"block {k}: its lengths ({packed}, {size}) are not those of a block")
        data = stream.read(packed)
        unzip = zlib.decompressobj()
        try:
            raw = unzip.decompress(data, size + 1)
        except zlib.error as error:
            raise Refused(f"block {k}: it is damaged ({error})") from None
        if len(raw) != size or not unzip.eof or unzip.unused_data or zlib.crc32(data) != check:
            raise Refused(f"block {k}: it is damaged or cut off")
        yield raw


class Reader:
    """Takes the steps of a block apart."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def take(self, pattern: str) -> tuple[Any, ...]:
        return struct.unpack_from(pattern, self.raw, self._past(struct.calcsize(pattern)))

    def array(self, kind: str, count: int) -> Any:
        return np.frombuffer(self.raw, kind, count, self._past(count * int(kind[-1])))

    def _past(self, size: int) -> int:
        if self.at + size > len(self.raw):
            raise Refused("it is cut off")
        self.at += size
        return self.at - size


def digest_of(header: dict[str, Any], X: Any, y: Any, weight: Any) -> str:
    """What the header's digest must be: data and terms, bit for bit, as little-endian float64."""
    words = f"{header['model']} {header['depth']} {X.shape[0]} {X.shape[1]}\n"
    sha = hashlib.sha256(words.encode())
    for part in (X, y, weight, header["C"], [header["eps"]], header["budget"] or [], header["alpha"] or []):
        sha.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return sha.hexdigest()


class Problem:
    """The training problem of the header, with equal samples (same features and label) made one."""

    def __init__(self, header: dict[str, Any], X: Any, y: Any, weight: Any) -> None:
        self.X, self.y, self.weight = (np.asarray(a, dtype=np.float64) for a in (X, y, weight))
        self.model, self.depth, self.eps = str(header["model"]), int(header["depth"]), float(header["eps"])
        self.C, self.budget, self.alpha = header["C"], header["budget"], header["alpha"]
        self.T, self.n = len(self.C), header["features"]
        sizes = (header["samples"], header["features"])
        if self.X.shape != sizes or self.y.shape != sizes[:1] or self.weight.shape != sizes[:1]:
            raise Refused(f"data: {self.X.shape} numbers, but the proof is about {sizes} (samples, features)")
        if digest_of(header, self.X, self.y, self.weight) != header["digest"]:
            raise Refused("data: these are not the data and terms that the proof is about (another digest)")
        sound = np.all(np.isfinite(self.X)) and np.all(np.abs(self.y) == 1) and np.all(self.weight > 0)
        if not sound or not np.all(np.isfinite(self.weight)):
            raise Refused("data: features and weights must be finite, weights positive, labels -1 or 1")
        groups: dict[bytes, list[int]] = {}
        for i, row in enumerate(self.X + 0.0):
            groups.setdefault(row.tobytes() + (b"+" if self.y[i] > 0 else b"-"), []).append(i)
        first = [rows[0] for rows in groups.values()]
        total = [math.fsum(self.weight[rows]) for rows in groups.values()]
        self.m, self.label = len(first), self.y[first]
        self.points = self.X[first]
        # Multipliers add up to 0, so samples may be shifted; near 0 their products round less.
        self.shifted = self.points - self.points.mean(axis=0)
        self.sizes = np.abs(self.shifted)
        # What a violation costs, at most what it truly does: three roundings are less than 2^-50.
        self.cost = np.outer(self.C, total) * (1.0 - 2.0**-50)
        # The side taken at tree node t by a sample whose deepest known tree node is p.
        self.side_of = np.full((self.T, self.T), NOT_HERE, np.int8)
        for p in range(self.T):
            self.side_of[p, p], at = 0, p
            while at > 0:
                up = (at - 1) // 2
                self.side_of[up, p] = 1 if at == 2 * up + 2 else -1
                at = up


def tree_value(p: Problem, w: Any, b: Any, claimed: float = math.inf) -> float:
    """What the tree costs, from above; by fractions if that is not enough for what is claimed."""
    w, b = np.asarray(w, dtype=np.float64), np.asarray(b, dtype=np.float64)
    used = np.count_nonzero(w, axis=1)
    if p.model == "hfs" and np.any(used > np.array(p.budget)):
        raise Refused(f"tree: node {int(np.argmax(used > np.array(p.budget)))} uses more features than its budget")
    at, total, hinges = np.zeros(len(p.y), np.int64), 0.0, []
    for t in range(p.T):
        rows = np.flatnonzero(at == t)
        h = p.X[rows] @ w[t] + b[t]
        off = 2 * (p.n + 4) * UNIT * (np.abs(p.X[rows]) @ np.abs(w[t]) + abs(b[t]))
        if 2 * t + 1 < p.T:
            at[rows] = _children(p, t, rows, h, off, w[t], float(b[t]))
        total += 0.5 * float(w[t] @ w[t]) * (1 + 2 * (p.n + 4) * UNIT)
        total += p.C[t] * float(p.weight[rows] @ np.maximum(0.0, 1.0 - p.y[rows] * h + off))
        if p.model == "sfs":
            total += p.alpha[t] * max(0, int(used[t]) - p.budget[t])
        hinges.append(rows)
    total *= 1 + 2 * (len(p.y) + p.T + 10) * UNIT
    return total if total <= claimed else _exact_tree_value(p, w, b, hinges, used)


def _children(p: Problem, t: int, rows: Any, h: Any, off: Any, w: Any, b: float) -> Any:
    """Where samples go on to: right if h >= -tie, left if h <= tie - eps, and none may lie between."""
    tie = min(TIE * (1.0 + abs(b)), p.eps / 4)
    right, left = h - off >= -tie, h + off * 2 <= tie - p.eps
    for k in np.flatnonzero(~right & ~left):
        exact = _dot(p.X[rows[k]], w) + Fraction(b)
        right[k] = exact >= -Fraction(tie)
        if not right[k] and exact > Fraction(tie) - Fraction(p.eps):
            raise Refused(f"tree: sample {rows[k]} lies in the band beside the split of node {t}")
    return np.where(right, 2 * t + 2, 2 * t + 1)


def _dot(x: Any, w: Any) -> Fraction:
    return sum((Fraction(a) * Fraction(c) for a, c in zip(x.tolist(), w.tolist(), strict=True) if c), Fraction(0))


def _exact_tree_value(p: Problem, w: Any, b: Any, reached: list[Any], used: Any) -> float:
    total = Fraction(0)
    for t in range(p.T):
        total += _dot(w[t], w[t]) / 2
        for i in reached[t].tolist():
            lack = 1 - Fraction(p.y[i]) * (_dot(p.X[i], w[t]) + Fraction(float(b[t])))
            total += Fraction(p.C[t]) * Fraction(p.weight[i]) * max(Fraction(0), lack)
        if p.model == "sfs":
            total += Fraction(p.alpha[t]) * max(0, int(used[t]) - p.budget[t])
    return math.nextafter(float(total), math.inf)


class Point(NamedTuple):
    """Multipliers of one tree node as a leaf lists them: at full cost, given by number, and the one that balances."""

    full: Any
    given: Any
    values: Any
    balance: int


def multipliers(p: Problem, t: int, side: Any, point: Point) -> tuple[Any, Any, Any]:
    """``v_i = y_i mu_i`` of every sample but the balancing one, each within its range; who is sent along its label, who
    against it.  Samples that are not listed are at 0 or, if sent against their label, at their cost."""
    here, along, against = side != NOT_HERE, side == p.label, side == -p.label
    listed = np.concatenate([point.full, point.given, [point.balance]]).astype(np.int64)
    if listed.max(initial=0) >= p.m or not np.all(here[listed]):
        raise Refused(f"tree node {t}: a sample that is not known to reach it has a multiplier")
    if len(np.unique(listed[:-1])) < len(listed) - 1:
        raise Refused(f"tree node {t}: a sample has two multipliers")
    v = np.where(against, p.cost[t], 0.0)
    v[point.full] = p.cost[t][point.full]
    v[point.given] = point.values
    v[point.balance] = 0.0
    if not np.all(np.isfinite(point.values)) or np.any((v < 0) & ~against) or np.any((v > p.cost[t]) & ~along):
        raise Refused(f"tree node {t}: a multiplier is out of its range")
    return v, along, against


def node_bound(p: Problem, t: int, side: Any, must: list[int], never: list[int], point: Point | None) -> float:
    """What tree node ``t`` costs at least, by these multipliers and with rounding against it."""
    delta, cost = np.where(side < 0, p.eps, 0.0), p.cost[t]
    v, along, against = np.zeros(p.m), np.zeros(p.m, bool), side == -p.label
    if point is not None:
        v, along, against = multipliers(p, t, side, point)
        k = point.balance
        others = (p.label[k] * p.label * v)[v != 0].tolist()
        v[k] = -math.fsum(others)  # correctly rounded, so that its sign is right
        if (v[k] < 0 and not against[k]) or (v[k] >= cost[k] and not along[k] and math.fsum([*others, cost[k]]) < 0):
            raise Refused(f"tree node {t}: the multiplier that balances the others is out of its range")
    phi, size = v.copy(), np.abs(v)
    d, c, x = delta[along], cost[along], v[along]
    phi[along] = np.minimum(c * np.maximum(0.0, 1.0 - d) + x * d, x * np.maximum(1.0, d))
    phi[against] = cost[against] * (1.0 + delta[against]) - v[against] * delta[against]
    sent = along | against
    size[sent] = (cost[sent] + size[sent]) * (1.0 + delta[sent])
    total = float(phi.sum()) - (p.m + 10) * 2 * UNIT * float(size.sum())
    some = np.flatnonzero(v)
    mu = (p.label * v)[some]
    u = np.abs(mu @ p.shifted[some]) + (len(some) + 10) * 2 * UNIT * (np.abs(mu) @ p.sizes[some])
    squares = (0.5 * (1 + 8 * UNIT) * u * u).tolist()
    cut = penalty(p, t, squares, must, never, 0.0) * (1 + 2 * (p.n + 8) * UNIT)
    return total - cut - 8 * UNIT * (abs(total) + abs(cut)) - 1e-300 if cut > -math.inf else math.inf


def penalty(p: Problem, t: int, squares: list[Any], must: list[int], never: list[int], zero: Any) -> Any:
    """The most that ``1/2 sum of u_j^2`` over a support can be, less what the support costs."""
    if p.model == "margot":
        return sum(squares, zero)
    taken = sum((squares[j] for j in must), zero)
    decided = set(must) | set(never)
    rest = sorted((x for j, x in enumerate(squares) if j not in decided), reverse=True)
    places = p.budget[t] - len(must)
    if p.model == "hfs":
        return -math.inf if places < 0 else taken + sum(rest[:places], zero)
    alpha = type(zero)(p.alpha[t])
    taken += min(places, 0) * alpha + sum(rest[: max(places, 0)], zero)
    return taken + sum((max(zero, x - alpha) for x in rest[max(places, 0) :]), zero)


def exact_bound(p: Problem, t: int, side: Any, must: list[int], never: list[int], point: Point | None) -> Fraction:
    """The same in fractions."""
    zero, eps = Fraction(0), Fraction(p.eps)
    if point is None:
        v = dict.fromkeys(range(p.m), zero)
    else:
        numbers, along, against = multipliers(p, t, side, point)
        v = {i: Fraction(x) for i, x in enumerate(numbers.tolist())}
        k = point.balance
        v[k] = -sum((Fraction(p.label[i]) * x for i, x in v.items() if x), zero) * Fraction(p.label[k])
        if (v[k] < 0 and not against[k]) or (v[k] > Fraction(p.cost[t][k]) and not along[k]):
            raise Refused(f"tree node {t}: the multiplier that balances the others is out of its range")
    total, u = zero, [zero] * p.n
    for i, x in v.items():
        if side[i] == NOT_HERE:
            continue
        cost, delta = Fraction(p.cost[t][i]), eps if side[i] < 0 else zero
        if side[i] == 0:
            total += x
        elif side[i] == p.label[i]:
            total += min(cost * max(zero, 1 - delta) + x * delta, x * max(Fraction(1), delta))
        else:
            total += cost * (1 + delta) - x * delta
        if x:
            mu = x * Fraction(p.label[i])
            u = [a + mu * Fraction(c) for a, c in zip(u, p.points[i].tolist(), strict=True)]
    cut = penalty(p, t, [a * a / 2 for a in u], must, never, zero)
    return Fraction(10) ** 400 if cut == -math.inf else total - cut


#: An open search node: the one above it, what is decided there (0 sample, 1 feature), which, at which tree node, how.
Path = tuple[Any, int, int, int, int] | None


class Replay:
    """Goes through the steps of a proof and remembers the search nodes that are open."""

    def __init__(self, p: Problem, bound: float) -> None:
        self.p, self.bound = p, bound
        self.open: dict[int, Path] = {0: None}
        self.steps = self.leaves = self.exact = 0
        self.before: list[Point | None] = [None] * p.T
        self.known: list[tuple[Any, ...]] = [()] * p.T
        self.features = range(p.n) if p.model != "margot" else range(0)

    def block(self, raw: bytes) -> None:
        read = Reader(raw)
        while read.at < len(raw):
            try:
                (kind,) = read.take("<c")
                if kind not in (b"S", b"F", b"L"):
                    raise Refused(f"there is no step of kind {kind!r}")
                (node,) = read.take("<I")
                if node not in self.open:
                    raise Refused(f"search node {node} is not open")
                path = self.open.pop(node)
                if kind == b"L":
                    self._leaf(read, node, path)
                else:
                    self._split(read, kind == b"F", path)
            except Refused as error:
                raise Refused(f"step {self.steps}: {error}") from None
            self.steps += 1

    def _split(self, read: Reader, feature: bool, path: Path) -> None:
        """One decision with a child for each outcome: the rule by which children cover their parent."""
        which, t, first, second = read.take("<IHII")
        now = path
        while now is not None and not (now[1] == feature and now[2] == which and (not feature or now[3] == t)):
            now = now[0]
        if feature and (now is not None or which not in self.features or t >= self.p.T):
            raise Refused(f"feature {which} of tree node {t} is decided already, or there is none")
        if not feature:
            place = 0 if now is None else 2 * now[3] + now[4]
            if which >= self.p.m or place != t or 2 * t + 1 >= self.p.T:
                raise Refused(f"sample {which} is not known to stop at tree node {t} for now, an upper one")
        if first == second or first in self.open or second in self.open:
            raise Refused(f"its children {first} and {second} are open already, or the same")
        for child, outcome in ((first, 1), (second, 2)):
            self.open[child] = (path, int(feature), which, t, outcome)

    def _leaf(self, read: Reader, node: int, path: Path) -> None:
        """Multipliers for every tree node, whose bounds must add up to the claim."""
        p = self.p
        points: list[Point | None] = []
        for t in range(p.T):
            (code,) = read.take("<B")
            if code > 2:
                raise Refused(f"search node {node}: there is no way {code} to give multipliers")
            if code == 2:
                n_full, n_given, balance = read.take("<III")
                full, given = read.array("<u4", n_full), read.array("<u4", n_given)
                points.append(Point(full, given, read.array("<f8", n_given), balance))
            else:
                points.append(self.before[t] if code else None)
        self.before = points
        place, decided = np.zeros(p.m, np.int64), [([], []) for _ in range(p.T)]  # type: ignore[var-annotated]
        while path is not None:
            path, feature, which, t, outcome = path
            if feature:
                decided[t][outcome - 1].append(which)
            else:
                place[which] = max(place[which], 2 * t + outcome)
        cases = [(t, p.side_of[t][place], *decided[t], points[t]) for t in range(p.T)]
        total = math.fsum(max(0.0, self._cached(case)) for case in cases) * (1 - p.T * UNIT)
        self.leaves += 1
        if not total >= self.bound:
            exact = sum(max(Fraction(0), exact_bound(p, *case)) for case in cases)
            self.exact += 1
            if exact < Fraction(self.bound):
                raise Refused(f"search node {node} is closed, but proves {float(exact):.12g}, not {self.bound:.12g}")

    def _cached(self, case: tuple[Any, ...]) -> float:
        """Neighbours share most of their points, with the same decisions."""
        t, side, must, never, point = case
        known = self.known[t]
        if known and known[0] is point and known[1] == (must, never) and np.array_equal(known[2], side):
            return float(known[3])
        value = node_bound(self.p, *case)
        self.known[t] = (point, (must, never), side, value)
        return value


def check(path: str, data: Any, tell: Callable[[float], None] | None = None) -> Proved:
    """What the proof in this file proves about these data: a file, or arrays (X, y, weight).  Refused if nothing."""
    size = max(1, os.path.getsize(path))
    sha, told = hashlib.sha256(), time.monotonic()
    with open(path, "rb") as stream:
        header = read_header(stream)
        problem = Problem(header, *(read_data(data, header) if isinstance(data, str) else data))
        claim = {name: float(header["claim"][name]) for name in ("objective", "bound")}
        objective = tree_value(problem, header["tree"]["w"], header["tree"]["b"], claim["objective"])
        if not objective <= claim["objective"]:
            raise Refused(f"tree: it costs {objective!r}, more than the {claim['objective']!r} claimed")
        replay = Replay(problem, claim["bound"])
        step = 14 + problem.T * (13 + 12 * problem.m)
        for raw in read_blocks(stream, BLOCK + step):
            replay.block(raw)
            if tell is not None and time.monotonic() > told + 2.0:
                told = time.monotonic()
                tell(stream.tell() / size)
        if replay.open:
            raise Refused(f"end: search node {min(replay.open)} is still open ({len(replay.open)} are)")
        if replay.steps != header["steps"]:
            raise Refused(f"end: {replay.steps} steps, but the header tells of {header['steps']}")
        stream.seek(0)
        for part in iter(lambda: stream.read(1 << 20), b""):
            sha.update(part)
    return Proved(claim["objective"], claim["bound"], replay.steps, replay.leaves, replay.exact, sha.hexdigest())


def read_data(path: str, header: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Samples, labels and weights: arrays of a .npz file, or a CSV file with the columns that the header names."""
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["X"], arrays["y"], arrays["weight"]
    how = header.get("table")
    if not isinstance(how, dict):
        raise Refused("data: the proof does not say how to read a table; give a .npz file with X, y and weight")
    with open(path, newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    try:
        X = np.array([[float(row[name]) for name in how["features"]] for row in rows])
        words = [str(row[how["target"]]).strip() for row in rows]
        weight = np.array([float(row[how["weight"]]) if how["weight"] else 1.0 for row in rows])
        X = (X - np.array(how["offset"])) / np.array(how["scale"]) + 0.0
        y = np.array([-1.0 if word == how["labels"][0] else 1.0 for word in words])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Refused(f"data: {path} does not have the columns of numbers that the proof names ({error!r})") from None
    if odd := sorted(set(words) - set(how["labels"])):
        raise Refused(f"data: {path} has the class {odd[0]!r}, of which the proof knows nothing")
    weight = weight * np.where(y > 0, how["class_weight"][1], how["class_weight"][0])
    X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    columns = [y, *X.T[::-1]]
    order = np.lexsort(columns)
    new = np.append(True, np.any([c[order][1:] != c[order][:-1] for c in columns], axis=0))
    first = np.flatnonzero(new)
    return X[order[first]], y[order[first]], np.add.reduceat(weight[order], first)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check a proof that margotree wrote.")
    parser.add_argument("proof", help="the proof file")
    parser.add_argument("data", help="the table it is about (.csv), or arrays X, y, weight (.npz)")
    args = parser.parse_args(argv)
    try:
        print(check(args.proof, args.data, lambda share: print(f"{share:6.1%} checked", file=sys.stderr, flush=True)))
    except Refused as error:
        print(f"NOT PROVED: {error}")
        return 1
    except OSError as error:
        print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
