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
import itertools
import json
import math
import operator
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

MAGIC, VERSION = b"margotree proof ", 3
UNIT = 2.0**-53  #: Unit roundoff: a sum of k terms is off by about k UNIT times the sum of their sizes at most.
LONGEST_HEADER, BLOCK = 1 << 26, 1 << 20  #: Bytes of a header, and of the steps of one block (and one step more).
TIE = 1e-9  #: Samples within this, times 1 + |b|, of a split's border count as on it (at most a quarter of eps).
MOST_SUPPORTS = 1 << 16  #: Tables of supports are no longer than this.
NOT_HERE, HUGE = 2, 1e300  #: No side, as a sample is elsewhere; the bound of what no tree obeys.


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
        D, m, n, tree, claim = (header[name] for name in ("depth", "samples", "features", "tree", "claim"))
        T = 2 ** (D if 1 <= D <= 10 else 0) - 1
        shapes = [np.shape(tree["w"]) == (T, n), np.shape(tree["b"]) == (T,), np.shape(header["C"]) == (T,)]
        named = {"margot": (False, False), "hfs": (True, False), "sfs": (True, True)}[header["model"]]
        for name, there in zip(("budget", "alpha"), named, strict=True):
            shapes.append(np.shape(header[name]) == (T,) if there else header[name] is None)
        numbers = [claim["objective"], claim["bound"], header["eps"], *header["C"], *(header["alpha"] or [])]
        fine = all(shapes) and min(T, header["steps"], m, n) >= 1 and len(header["digest"]) == 64
        finite = all(math.isfinite(float(x)) for x in numbers) and np.all(np.isfinite(np.c_[tree["w"], tree["b"]]))
        positive = min(header["eps"], *header["C"]) > 0 and min([0, *(header["alpha"] or [])]) >= 0
        whole = all(isinstance(b, int) and b >= 0 for b in header["budget"] or [])
        if not (fine and finite and positive and whole and claim["bound"] <= claim["objective"]):
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
        data, unzip = stream.read(packed), zlib.decompressobj()
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
    sha = hashlib.sha256(f"{header['model']} {header['depth']} {X.shape[0]} {X.shape[1]}\n".encode())
    for part in (X, y, weight, header["C"], [header["eps"]], header["budget"] or [], header["alpha"] or []):
        sha.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return sha.hexdigest()


class Problem:
    """The training problem of the header, with equal samples (same features and label) made one."""

    def __init__(self, header: dict[str, Any], X: Any, y: Any, weight: Any) -> None:
        self.X, self.y, self.weight = (np.asarray(a, dtype=np.float64) for a in (X, y, weight))
        self.model, self.depth, self.eps = str(header["model"]), int(header["depth"]), float(header["eps"])
        self.C, self.budget, self.alpha = header["C"], header["budget"], header["alpha"]
        self.T, self.n, sizes = len(self.C), header["features"], (header["samples"], header["features"])
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
        self.m, self.label, self.points = len(first), self.y[first], self.X[first]
        # Multipliers add up to 0, so samples may be shifted; near 0 their products round less.
        self.shifted = self.points - self.points.mean(axis=0)
        # What a violation costs, at most what it truly does: three roundings are less than 2^-50.
        self.cost = np.outer(self.C, total) * (1.0 - 2.0**-50)
        # The side taken at tree node t by a sample whose deepest known tree node is p.
        self.side_of = np.full((self.T, self.T), NOT_HERE, np.int8)
        for p in range(self.T):
            self.side_of[p, p], at = 0, p
            while at > 0:
                up = (at - 1) // 2
                self.side_of[up, p], at = 1 if at == 2 * up + 2 else -1, up
        self._supports: dict[int, Any] = {}

    def supports(self, t: int) -> Any:
        """All sets of as many features as the budget of tree node ``t`` allows, one per column, in lexical order."""
        B = min(self.budget[t], self.n) if self.model != "margot" else -1
        if B < 0 or math.comb(self.n, B) > MOST_SUPPORTS:
            raise Refused(f"tree node {t}: there are no tables of supports, or they would be too long")
        if B not in self._supports:
            rows = list(itertools.combinations(range(self.n), B))
            self._supports[B] = np.array(rows, np.int64).reshape(len(rows), B).T.copy()
        return self._supports[B]


def tree_value(p: Problem, w: Any, b: Any) -> float:
    """What the tree costs: exactly, and then rounded up.  Floats suffice to tell that a sample pays nothing."""
    w, b = np.asarray(w, dtype=np.float64), np.asarray(b, dtype=np.float64).tolist()
    with np.errstate(over="ignore", invalid="ignore"):
        near, off = p.X @ w.T + b, 2 * (p.n + 4) * UNIT * (np.abs(p.X) @ np.abs(w).T + np.abs(b))
        free = (p.y[:, None] * near - off > 1.0) & ((near > 0.0) | (near + off < -p.eps))
    splits = [_whole([*row, c]) for row, c in zip(w.tolist(), b, strict=True)]
    total, lacks = Fraction(0), dict[tuple[int, float, int], int]()
    ties = [_whole([min(TIE * (1.0 + abs(c)), p.eps / 4), p.eps]) for c in b]
    for t, used in enumerate(np.count_nonzero(w, axis=1).tolist()):
        if p.model == "hfs" and used > p.budget[t]:
            raise Refused(f"tree: node {t} uses more features than its budget")
        total += Fraction(sum(c * c for c in splits[t][0][:-1]), 2 * splits[t][1] ** 2)
        total += Fraction(p.alpha[t]) * max(0, used - p.budget[t]) if p.model == "sfs" else 0
    for i, (row, y, weight) in enumerate(zip(p.X.tolist(), p.y.tolist(), p.weight.tolist(), strict=True)):
        t, whole = 0, None
        while t < p.T:
            if free[i, t]:
                t = 2 * t + (2 if near[i, t] > 0.0 else 1)
                continue
            x, x_unit = whole = whole or _whole([*row, 1.0])
            h, one = sum(map(operator.mul, x, splits[t][0])), x_unit * splits[t][1]  # the sample's height is h / one
            if int(y) * h < one:
                lacks[t, weight, one] = lacks.get((t, weight, one), 0) + one - int(y) * h
            (tie, eps), unit = ties[t]
            if 2 * t + 1 < p.T and (tie - eps) * one < h * unit < -tie * one:
                raise Refused(f"tree: sample {i} lies in the band beside the split of node {t}")
            t = 2 * t + (2 if h * unit >= -tie * one else 1)
    total += sum(Fraction(p.C[t]) * Fraction(weight) * Fraction(h, one) for (t, weight, one), h in lacks.items())
    return math.nextafter(float(total), math.inf)


def _whole(numbers: list[float]) -> tuple[list[int], int]:
    """Float64 numbers as whole ones over one power of two."""
    tops, units = zip(*map(float.as_integer_ratio, map(float, numbers)), strict=True)
    most = max(units)
    return [x * (most // q) for x, q in zip(tops, units, strict=True)], most


class Point(NamedTuple):
    """Multipliers of one tree node as a step lists them: at full cost, given by number, and the one that balances."""

    full: Any
    given: Any
    values: Any
    balance: int
    rest: bool  # whether samples that are not listed are at full cost if sent against their label


def multipliers(p: Problem, t: int, side: Any, point: Point) -> tuple[Any, Any, Any]:
    """``v_i = y_i mu_i`` of every sample but the balancing one, each within its range; who is sent along its label, who
    against it.  Samples that are not listed are at 0; those sent against their label at their cost, if it says so."""
    here, along, against = side != NOT_HERE, side == p.label, side == -p.label
    listed = np.concatenate([point.full, point.given, [point.balance]]).astype(np.int64)
    if listed.max(initial=0) >= p.m or not np.all(here[listed]):
        raise Refused(f"tree node {t}: a sample that is not known to reach it has a multiplier")
    if len(np.unique(listed[:-1])) < len(listed) - 1:
        raise Refused(f"tree node {t}: a sample has two multipliers")
    v = np.where(against & point.rest, p.cost[t], 0.0)
    v[point.full], v[point.given] = p.cost[t][point.full], point.values
    v[point.balance] = 0.0
    if not np.all(np.isfinite(point.values)) or np.any((v < 0) & ~against) or np.any((v > p.cost[t]) & ~along):
        raise Refused(f"tree node {t}: a multiplier is out of its range")
    return v, along, against


def node_terms(p: Problem, t: int, side: Any, point: Point | None, exact: bool) -> tuple[Any, Any]:
    """The sum of phi from below and ``1/2 u_j^2`` of every feature from above; exactly, or with rounding against us."""
    lift, add, unit = (_fractions, sum, 0) if exact else (np.copy, math.fsum, UNIT)
    delta, cost, label = lift(np.where(side < 0, p.eps, 0.0)), lift(p.cost[t]), lift(p.label)
    v, along, against = lift(np.zeros(p.m)), np.zeros(p.m, bool), side == -p.label
    if point is not None:
        numbers, along, against = multipliers(p, t, side, point)
        v, k = lift(numbers), point.balance
        others = (label[k] * label * v)[numbers != 0].tolist()
        v[k] = -add(others)  # correctly rounded, so that its sign is right
        if (v[k] < 0 and not against[k]) or (v[k] >= cost[k] and not along[k] and add([*others, cost[k]]) < 0):
            raise Refused(f"tree node {t}: the multiplier that balances the others is out of its range")
    phi, size = v.copy(), np.abs(v)
    d, c, x = delta[along], cost[along], v[along]
    phi[along] = np.minimum(c * np.maximum(0, 1 - d) + x * d, x * np.maximum(1, d))
    phi[against] = cost[against] * (1 + delta[against]) - v[against] * delta[against]
    sent = along | against
    size[sent] = (cost[sent] + size[sent]) * (1 + delta[sent])
    total = phi.sum() - (p.m + 10) * 2 * unit * size.sum()
    some = np.flatnonzero(v)
    mu = (label * v)[some]
    X = lift((p.points if exact else p.shifted)[some])
    u = np.abs(mu @ X) + (len(some) + 10) * 2 * unit * (np.abs(mu) @ np.abs(X))
    return total, u * u / 2 * (1 + 8 * unit)


def _fractions(numbers: Any) -> Any:
    return np.array([Fraction(x) for x in numbers.ravel().tolist()], object).reshape(numbers.shape)


def less(p: Problem, total: float, cut: Any) -> Any:
    """``total - cut``, with rounding against it."""
    cut = cut * (1 + 2 * (p.n + 8) * UNIT)
    return total - cut - 8 * UNIT * (abs(total) + abs(cut)) - 1e-300


def node_bound(
    p: Problem, t: int, side: Any, must: list[int], never: list[int], point: Point | None, table: Any, *, exact: bool
) -> Any:
    """What tree node ``t`` costs at least, by these multipliers and the table of its supports (never in fractions)."""
    total, squares = node_terms(p, t, side, point, exact and table is None)
    if table is None or p.model == "sfs":
        cut = penalty(p, t, squares.tolist(), must, never)
        plain = HUGE if cut == -math.inf else total - cut if exact and table is None else less(p, total, cut)
        if table is None:
            return plain
    rows, spare = p.supports(t), max(0, min(p.budget[t], p.n) + len(never) - p.n)
    fits = (np.isin(rows, must).sum(axis=0) == len(must)) & (np.isin(rows, never).sum(axis=0) <= spare)
    least = np.min(raised(p, t, table, total, squares)[fits], initial=HUGE)
    return max(plain, min(least, p.alpha[t])) if p.model == "sfs" else least  # more features cost alpha


def raised(p: Problem, t: int, table: Any, total: float, squares: Any) -> Any:
    """The table of the least costs of tree node ``t`` on each support, with what a point proves of all of them."""
    return np.maximum(table, less(p, total, squares[p.supports(t)].sum(axis=0)))


def penalty(p: Problem, t: int, squares: list[Any], must: list[int], never: list[int]) -> Any:
    """The most that ``1/2 sum of u_j^2`` over a support can be, less what the support costs."""
    if p.model == "margot":
        return sum(squares)
    taken = sum(squares[j] for j in must)
    rest = sorted((x for j, x in enumerate(squares) if j not in must and j not in never), reverse=True)
    places = p.budget[t] - len(must)
    if p.model == "hfs":
        return -math.inf if places < 0 else taken + sum(rest[:places])
    alpha = Fraction(p.alpha[t]) if isinstance(squares[0], Fraction) else p.alpha[t]
    taken += min(places, 0) * alpha + sum(rest[: max(places, 0)])
    return taken + sum(max(0, x - alpha) for x in rest[max(places, 0) :])


class Open(NamedTuple):
    """A search node: the place of each sample, what is decided about features, and tables of supports."""

    place: Any
    features: tuple[tuple[int, int, bool], ...]  # tree node, feature, whether it is used
    tables: tuple[Any, ...]  # per tree node: least costs on its supports; None: nothing is known


class Replay:
    """Goes through the steps of a proof and remembers the search nodes that are open."""

    def __init__(self, p: Problem, bound: float) -> None:
        self.p, self.bound = p, bound
        self.open = {0: Open(np.zeros(p.m, np.min_scalar_type(p.T)), (), (None,) * p.T)}
        self.steps = self.leaves = self.exact = 0
        self.before: list[Point | None] = [None] * p.T
        self.known: list[tuple[Any, ...]] = [()] * p.T
        self.features = range(p.n) if p.model != "margot" else range(0)

    def block(self, raw: bytes) -> None:
        read = Reader(raw)
        while read.at < len(raw):
            try:
                (kind,) = read.take("<c")
                (node,) = read.take("<I") if kind in (b"S", b"F", b"L", b"R") else (-1,)
                if node not in self.open:
                    raise Refused(f"search node {node} is not open, or there is no step of kind {kind!r}")
                now = self.open.pop(node)
                if kind == b"L":
                    self._leaf(read, node, now)
                elif kind == b"R":
                    self.open[node] = self._raise(read, now)
                else:
                    self._split(read, kind == b"F", now)
            except Refused as error:
                raise Refused(f"step {self.steps}: {error}") from None
            self.steps += 1

    def _split(self, read: Reader, feature: bool, now: Open) -> None:
        """One decision with a child for each outcome: the rule by which children cover their parent."""
        which, t, first, second = read.take("<IHII")
        if first == second or first in self.open or second in self.open:
            raise Refused(f"its children {first} and {second} are open already, or the same")
        known = any((at, j) == (t, which) for at, j, _ in now.features)
        if feature and (known or which not in self.features or t >= self.p.T):
            raise Refused(f"feature {which} of tree node {t} is decided already, or there is none")
        if not feature and (which >= self.p.m or now.place[which] != t or 2 * t + 1 >= self.p.T):
            raise Refused(f"sample {which} is not known to stop at tree node {t} for now, an upper one")
        for child, k in ((first, 1), (second, 2)):
            if feature:
                self.open[child] = now._replace(features=(*now.features, (t, which, k == 1)))
            else:
                self.open[child] = now._replace(place=now.place.copy())
                self.open[child].place[which] = 2 * t + k

    def _point(self, read: Reader, t: int) -> Point | None:
        """Multipliers of tree node ``t``: none, those of the step before, or a list."""
        (code,) = read.take("<B")
        if code > 3:
            raise Refused(f"tree node {t}: there is no way {code} to give multipliers")
        if code >= 2:
            n_full, n_given, balance = read.take("<III")
            full, given = read.array("<u4", n_full), read.array("<u4", n_given)
            self.before[t] = Point(full, given, read.array("<f8", n_given), balance, code == 2)
        elif code == 0:
            self.before[t] = None
        return self.before[t]

    def _raise(self, read: Reader, now: Open) -> Open:
        """Multipliers of one tree node, which prove something about each of its supports, here and further down."""
        (t,) = read.take("<H")
        if t >= self.p.T:
            raise Refused(f"there is no tree node {t}")
        table = np.zeros(self.p.supports(t).shape[1]) if now.tables[t] is None else now.tables[t]
        terms = node_terms(self.p, t, self.p.side_of[t][now.place], self._point(read, t), exact=False)
        table = raised(self.p, t, table, *terms)
        return now._replace(tables=(*now.tables[:t], table, *now.tables[t + 1 :]))

    def _leaf(self, read: Reader, node: int, now: Open) -> None:
        """Multipliers for every tree node, whose bounds must add up to the claim."""
        p, cases = self.p, []
        for t, table in enumerate(now.tables):
            used, unused = ([j for at, j, how in now.features if at == t and how == way] for way in (True, False))
            cases.append((t, p.side_of[t][now.place], used, unused, self._point(read, t), table))
        total = math.fsum(max(0.0, self._cached(case)) for case in cases) * (1 - p.T * UNIT)
        self.leaves += 1
        if not total >= self.bound:
            exact = sum(Fraction(max(0, node_bound(p, *case, exact=True))) for case in cases)
            self.exact += 1
            if exact < Fraction(self.bound):
                raise Refused(f"search node {node} is closed, but proves {float(exact):.12g}, not {self.bound:.12g}")

    def _cached(self, case: tuple[Any, ...]) -> float:
        """Neighbours share most of their points, with the same decisions."""
        t, side, must, never, point, table = case
        known = self.known[t]
        same = known and known[0] is point and known[1] is table and known[2] == (must, never)
        if not (same and np.array_equal(known[3], side)):
            self.known[t] = (point, table, (must, never), side, float(node_bound(self.p, *case, exact=False)))
        return float(self.known[t][4])


def check(path: str, data: Any, tell: Callable[[float], None] | None = None) -> Proved:
    """What the proof in this file proves about these data: a file, or arrays (X, y, weight).  Refused if nothing."""
    size, told = max(1, os.path.getsize(path)), time.monotonic()
    with open(path, "rb") as stream:
        header = read_header(stream)
        problem = Problem(header, *(read_data(data, header) if isinstance(data, str) else data))
        claim = {name: float(header["claim"][name]) for name in ("objective", "bound")}
        objective = tree_value(problem, header["tree"]["w"], header["tree"]["b"])
        if not objective <= claim["objective"]:
            raise Refused(f"tree: it costs {objective!r}, more than the {claim['objective']!r} claimed")
        replay = Replay(problem, claim["bound"])
        for raw in read_blocks(stream, BLOCK + 14 + problem.T * (13 + 12 * problem.m)):
            replay.block(raw)
            if tell is not None and time.monotonic() > told + 2.0:
                told = time.monotonic()
                tell(stream.tell() / size)
        if replay.open:
            raise Refused(f"end: search node {min(replay.open)} is still open ({len(replay.open)} are)")
        if replay.steps != header["steps"]:
            raise Refused(f"end: {replay.steps} steps, but the header tells of {header['steps']}")
        stream.seek(0)
        sha = hashlib.file_digest(stream, "sha256")
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
    first = np.flatnonzero(np.append(True, np.any([c[order][1:] != c[order][:-1] for c in columns], axis=0)))
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
