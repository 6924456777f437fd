"""A second checker of proofs, written from docs/proof.md: fractions and the standard library only, slow and plain.

It shares no code with the first.  Data are lists of floats.  It walks the search tree from its root, so it reads the
whole file first.
"""

import hashlib
import json
import math
import struct
import zlib
from fractions import Fraction as F
from itertools import combinations


class NotProved(Exception):
    pass


def demand(condition, words):
    if not condition:
        raise NotProved(words)


def check(path, X, y, weight):
    """The proved (objective, bound) as claimed by the header; NotProved otherwise."""
    try:
        return _check(path, X, y, weight)
    except (struct.error, zlib.error, IndexError, ValueError, RecursionError) as error:
        raise NotProved(repr(error)) from error


def _check(path, X, y, weight):
    with open(path, "rb") as stream:
        demand(stream.readline() == b"margotree proof 3\n", "first line")
        text, check_sum = stream.readline(), stream.readline()
        demand(text.endswith(b"\n") and check_sum == b"%08x\n" % zlib.crc32(text), "header's checksum")
        head = json.loads(text.decode("utf-8"), object_pairs_hook=no_entry_twice)
        check_header(head)
        raw = blocks(stream.read())
    terms = Terms(head, X, y, weight)
    objective, bound = F(head["claim"]["objective"]), F(head["claim"]["bound"])
    demand(terms.tree_value(head["tree"]) <= objective and bound <= objective, "the tree's value")
    splits, leaves, raises, count = parse(raw, len(head["C"]))
    demand(count == head["steps"], "number of steps")
    seen, stack = 0, [(0, (), {})]
    while stack:
        node, decisions, tables = stack.pop()
        demand((node in splits) != (node in leaves), f"search node {node} is not closed once")
        seen += 1
        for t, point in raises.pop(node, ()):
            demand(t < terms.T, "tree node")
            tables = {**tables, t: terms.raised(t, decisions, tables.get(t), point)}
            seen += 1
        if node in leaves:
            demand(terms.leaf_value(decisions, leaves[node], tables) >= bound, f"leaf {node}")
            continue
        kind, which, t, first, second = splits[node]
        terms.may_decide(decisions, kind, which, t)
        for child, outcome in ((first, 1), (second, 2)):
            stack.append((child, (*decisions, (kind, which, t, outcome)), tables))
    demand(seen == count, "steps that belong to no search node")
    return head["claim"]["objective"], head["claim"]["bound"]


def no_entry_twice(pairs):
    demand(len({name for name, _ in pairs}) == len(pairs), "an entry twice")
    return dict(pairs)


def is_whole(x, low, high=2**53):
    return type(x) is int and low <= x <= high


def is_number(x, low=-math.inf):
    """A float64, or a whole number that is one; above ``low``."""
    return (type(x) is float and low < x and abs(x) < math.inf) or (
        type(x) is int and low < x and abs(x) < 2**1024 and float(x) == x
    )


def is_list(xs, length, good):
    return type(xs) is list and len(xs) == length and all(map(good, xs))


def check_header(head):
    """Types and ranges as docs/proof.md has them."""
    names = {"model", "depth", "samples", "features", "C", "eps", "budget", "alpha"}
    demand(type(head) is dict and set(head) == names | {"digest", "tree", "claim", "steps", "table"}, "entries")
    demand(head["model"] in ("margot", "hfs", "sfs") and is_whole(head["depth"], 1, 10), "model, depth")
    demand(all(is_whole(head[name], 1) for name in ("samples", "features", "steps")), "sizes")
    T, n = 2 ** head["depth"] - 1, head["features"]
    demand(is_list(head["C"], T, lambda c: is_number(c, 0)) and is_number(head["eps"], 0), "C, eps")
    has_budget, has_alpha = head["model"] != "margot", head["model"] == "sfs"
    budget, alpha = head["budget"], head["alpha"]
    demand(is_list(budget, T, lambda b: is_whole(b, 0)) if has_budget else budget is None, "budget")
    demand(is_list(alpha, T, lambda a: is_number(a) and a >= 0) if has_alpha else alpha is None, "alpha")
    tree, claim, table = head["tree"], head["claim"], head["table"]
    demand(type(tree) is dict and set(tree) == {"w", "b"} and is_list(tree["b"], T, is_number), "tree")
    demand(is_list(tree["w"], T, lambda row: is_list(row, n, is_number)), "tree")
    demand(type(claim) is dict and set(claim) == {"objective", "bound"}, "claim")
    demand(all(map(is_number, claim.values())), "claim")
    demand(type(head["digest"]) is str, "digest")
    if table is None:
        return
    columns = {"features", "offset", "scale", "target", "weight", "labels", "class_weight"}
    demand(type(table) is dict and set(table) == columns, "table")
    demand(is_list(table["features"], n, lambda name: type(name) is str), "names")
    demand(is_list(table["labels"], 2, lambda name: type(name) is str), "labels")
    demand(len(set(table["features"])) == n and len(set(table["labels"])) == 2, "a name twice")
    demand(type(table["target"]) is str and type(table["weight"]) in (str, type(None)), "columns")
    demand(is_list(table["offset"], n, is_number) and is_list(table["scale"], n, lambda s: is_number(s, 0)), "scale")
    demand(is_list(table["class_weight"], 2, lambda c: is_number(c, 0)), "weights of classes")


def blocks(body):
    at, raw = 0, b""
    while True:
        packed, size, check_sum = struct.unpack_from("<III", body, at)
        at += 12
        if packed == size == check_sum == 0:
            demand(at == len(body), "more after the end")
            return raw
        part = zlib.decompress(body[at : at + packed])
        demand(len(part) == size and zlib.crc32(body[at : at + packed]) == check_sum, "block")
        at, raw = at + packed, raw + part


def parse(raw, T):
    splits, leaves, raises, before, at, count, known = {}, {}, {}, [None] * T, 0, 0, {0}
    while at < len(raw):
        kind, node = struct.unpack_from("<cI", raw, at)
        at += 5
        demand(node not in splits and node not in leaves, "a search node twice")
        demand(node in known, "a search node before its parent")
        if kind in b"SF":
            splits[node] = (kind, *struct.unpack_from("<IHII", raw, at))
            known |= set(splits[node][3:])
            at += 14
        elif kind == b"R":
            (t,) = struct.unpack_from("<H", raw, at)
            at, before[t] = parse_point(raw, at + 2, before[t])
            raises.setdefault(node, []).append((t, before[t]))
        else:
            demand(kind == b"L", "kind of step")
            for t in range(T):
                at, before[t] = parse_point(raw, at, before[t])
            leaves[node] = list(before)
        count += 1
    return splits, leaves, raises, count


def parse_point(raw, at, before):
    """Where the point ends, and what it is: None, or samples at full cost, others' values, who balances, the rest."""
    code = raw[at]
    demand(code <= 3, "code")
    if code < 2:
        return at + 1, before if code else None
    full, given, balance = struct.unpack_from("<III", raw, at + 1)
    numbers = struct.unpack_from(f"<{full + given}I{given}d", raw, at + 13)
    values = dict(zip(numbers[full : full + given], numbers[full + given :], strict=True))
    demand(len(values) == given and len(set(numbers[:full])) == full, "a sample twice")
    demand(not set(values) & set(numbers[:full]), "a sample twice")
    return at + 13 + 4 * full + 12 * given, (numbers[:full], values, balance, code == 2)


class Terms:
    def __init__(self, head, X, y, weight):
        self.model, self.depth, self.eps = head["model"], head["depth"], F(head["eps"])
        self.T, self.n = 2 ** head["depth"] - 1, head["features"]
        self.C, self.alpha = [F(c) for c in head["C"]], [F(a) for a in head["alpha"] or []]
        self.budget = head["budget"]
        demand(len(X) == head["samples"] and all(len(row) == self.n for row in X), "size of the data")
        words = f"{self.model} {self.depth} {len(X)} {self.n}\n".encode()
        flat = [v for row in X for v in row] + list(y) + list(weight) + head["C"] + [head["eps"]]
        flat += (head["budget"] or []) + (head["alpha"] or [])
        data = b"".join(struct.pack("<d", v) for v in flat)
        demand(hashlib.sha256(words + data).hexdigest() == head["digest"], "digest")
        demand(all(0 < w < math.inf for w in weight) and all(abs(label) == 1 for label in y), "weights, labels")
        demand(all(abs(v) < math.inf for row in X for v in row), "features")
        self.rows = [([F(v) for v in row], int(label), F(w)) for row, label, w in zip(X, y, weight, strict=True)]
        groups = {}
        for x, label, w in self.rows:
            groups.setdefault((tuple(x), label), []).append(w)
        self.samples = [(x, label, sum(ws)) for (x, label), ws in groups.items()]
        # The number that a multiplier at full cost stands for is a float64.
        demand(all(w <= 2**1023 for _, _, w in self.samples), "range of weights")
        self.full = [[float(c) * float(w) * (1.0 - 2.0**-50) for _, _, w in self.samples] for c in self.C]
        for t in range(self.T):
            for i, (_, _, w) in enumerate(self.samples):
                demand(1e-290 <= self.full[t][i] <= 1e290, "range of costs")
                assert F(self.full[t][i]) <= self.C[t] * w

    def tree_value(self, tree):
        total = F(0)
        w, b = [[F(v) for v in row] for row in tree["w"]], [F(v) for v in tree["b"]]
        for t in range(self.T):
            used = sum(v != 0 for v in w[t])
            demand(self.model != "hfs" or used <= self.budget[t], "budget")
            total += sum(v * v for v in w[t]) / 2
            if self.model == "sfs":
                total += self.alpha[t] * max(0, used - self.budget[t])
        for x, label, weight in self.rows:
            t = 0
            while t < self.T:
                h = sum(a * v for a, v in zip(w[t], x, strict=True)) + b[t]
                total += self.C[t] * weight * max(F(0), 1 - label * h)
                tie = F(min(1e-9 * (1.0 + abs(float(b[t]))), float(self.eps) / 4))
                right = h >= -tie
                demand(2 * t + 1 >= self.T or right or h <= tie - self.eps, "band")
                t = 2 * t + 2 if right else 2 * t + 1
        return total

    def may_decide(self, decisions, kind, which, t):
        if kind == b"S":
            demand(which < len(self.samples) and 2 * t + 1 < self.T, "decision")
            demand(self.place(decisions, which) == t, "a sample that is elsewhere")
        else:
            demand(self.model != "margot" and which < self.n and t < self.T, "decision")
            demand(not any(d[:3] == (kind, which, t) for d in decisions), "a feature that is decided")

    def place(self, decisions, i):
        found = 0
        for kind, which, t, outcome in decisions:
            if kind == b"S" and which == i:
                found = 2 * t + outcome
        return found

    def side(self, place, t):
        """-1, 0 or 1; None if ``place`` is not below ``t``."""
        side = 0
        while place > t:
            side, place = (1 if place % 2 == 0 else -1), (place - 1) // 2
        return side if place == t else None

    def sides(self, t, decisions):
        """The samples known to reach ``t``, and their sides."""
        places = [self.place(decisions, i) for i in range(len(self.samples))]
        return {i: self.side(p, t) for i, p in enumerate(places) if self.side(p, t) is not None}

    def leaf_value(self, decisions, points, tables):
        total = F(0)
        for t in range(self.T):
            must = [which for kind, which, at, outcome in decisions if (kind, at, outcome) == (b"F", t, 1)]
            never = [which for kind, which, at, outcome in decisions if (kind, at, outcome) == (b"F", t, 2)]
            bounds = [F(0)]
            if t in tables:
                table = self.raised(t, decisions, tables[t], points[t])
                least = self.least(t, table, set(must), set(never))
                bounds.append(min(least, self.alpha[t]) if self.model == "sfs" else least)
            if t not in tables or self.model == "sfs":
                worth, squares = self.node_terms(t, self.sides(t, decisions), points[t])
                bounds.append(worth - self.most(t, squares, must, never))
            total += max(bounds)
        return total

    def raised(self, t, decisions, table, point):
        """What every support costs at least: as in the table, or as the point says."""
        size = min(self.budget[t], self.n) if self.model != "margot" else -1
        demand(size >= 0 and math.comb(self.n, size) <= 65536, "tables")
        if table is None:
            table = dict.fromkeys(combinations(range(self.n), size), F(0))
        worth, squares = self.node_terms(t, self.sides(t, decisions), point)
        return {support: max(least, worth - sum(squares[j] for j in support)) for support, least in table.items()}

    def least(self, t, table, must, never):
        """The features used are within some support that has as few of those not used as there can be."""
        few = max(0, min(self.budget[t], self.n) - (self.n - len(never)))
        fits = [least for support, least in table.items()
                if must <= set(support) and len(never & set(support)) <= few]  # fmt: skip
        return min(fits, default=F(10**400))

    def node_terms(self, t, sides, point):
        v = self.multipliers(t, sides, point)
        total, u = F(0), [F(0)] * self.n
        for i, side in sides.items():
            x, label, _ = self.samples[i]
            cost, delta = F(self.full[t][i]), self.eps if side < 0 else F(0)
            if side == 0:
                demand(0 <= v[i] <= cost, "range")
                total += v[i]
            elif side == label:
                demand(v[i] >= 0, "range")
                corners = (delta, max(F(1), delta))
                total += min(cost * max(F(0), 1 - g) + v[i] * g for g in corners)
            else:
                demand(v[i] <= cost, "range")
                total += cost * (1 + delta) - v[i] * delta
            u = [a + v[i] * label * c for a, c in zip(u, x, strict=True)]
        return total, [a * a / 2 for a in u]

    def multipliers(self, t, sides, point):
        if point is None:
            return dict.fromkeys(sides, F(0))
        full, values, balance, rest = point
        demand(all(abs(value) <= 1e290 for value in values.values()), "a number that is none, or too large")
        demand(all(i in sides for i in (*full, *values, balance)), "a sample that is not known to be here")
        v = {}
        for i, side in sides.items():
            at_rest = rest and side == -self.samples[i][1]
            v[i] = F(values[i]) if i in values else F(self.full[t][i]) if i in full or at_rest else F(0)
        v[balance] = F(0)
        v[balance] = -self.samples[balance][1] * sum(self.samples[i][1] * a for i, a in v.items())
        return v

    def most(self, t, squares, must, never):
        """Over all supports: half the squares on it less its price.  Features are added greedily, which is best."""
        if self.model == "margot":
            return sum(squares)
        rest = sorted((s for j, s in enumerate(squares) if j not in must and j not in never), reverse=True)
        taken, size = sum((squares[j] for j in must), F(0)), len(must)
        if self.model == "hfs" and size > self.budget[t]:
            return F(-(10**400))
        if self.model == "sfs":
            taken -= self.alpha[t] * max(0, size - self.budget[t])
        for s in rest:
            size += 1
            if size <= self.budget[t]:
                taken += s
            elif self.model == "sfs":
                taken += max(F(0), s - self.alpha[t])
        return taken
