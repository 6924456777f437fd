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
        first = stream.readline()
        demand(first in (b"margotree proof 3\n", b"margotree proof 4\n"), "first line")
        text, check_sum = stream.readline(), stream.readline()
        demand(text.endswith(b"\n") and check_sum == b"%08x\n" % zlib.crc32(text), "header's checksum")
        head = json.loads(text.decode("utf-8"), object_pairs_hook=no_entry_twice)
        demand(type(head) is dict, "header")
        if first == b"margotree proof 3\n":
            head = as_version_4(head)
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


def as_version_4(head):
    """A header of version 3, which has no losses and no units of targets; its digest does not cover losses."""
    demand("losses" not in head and "groups" not in head, "entries")
    if type(head.get("table")) is dict:
        demand(not set(head["table"]) & {"target_offset", "target_scale"}, "table")
        head["table"] |= {"target_offset": None, "target_scale": None}
    return {**head, "losses": None, "groups": None}


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
    demand(set(head) == names | {"digest", "tree", "claim", "steps", "table", "losses", "groups"}, "entries")
    demand(head["model"] in ("margot", "hfs", "sfs") and is_whole(head["depth"], 1, 10), "model, depth")
    demand(all(is_whole(head[name], 1) for name in ("samples", "features", "steps")), "sizes")
    T, n = 2 ** head["depth"] - 1, head["features"]
    demand(is_list(head["C"], T, lambda c: is_number(c, 0)) and is_number(head["eps"], 0), "C, eps")
    has_budget, has_alpha = head["model"] != "margot", head["model"] == "sfs"
    budget, alpha = head["budget"], head["alpha"]
    demand(is_list(budget, T, lambda b: is_whole(b, 0)) if has_budget else budget is None, "budget")
    demand(is_list(alpha, T, lambda a: is_number(a) and a >= 0) if has_alpha else alpha is None, "alpha")
    if head["groups"] is not None:
        demand(has_budget and is_list(head["groups"], n, lambda g: is_whole(g, 0)), "groups")
        demand(sorted(set(head["groups"])) == list(range(max(head["groups"]) + 1)), "numbers of groups")
    claim = head["claim"]
    demand(type(claim) is dict and set(claim) == {"objective", "bound"}, "claim")
    demand(all(map(is_number, claim.values())), "claim")
    demand(type(head["digest"]) is str, "digest")
    kind, count = check_losses(head["losses"])
    check_tree(head["tree"], T, n, count)
    if head["table"] is not None:
        check_table(head["table"], n, kind, count)


def check_losses(losses):
    """The kind, and the number of classes of the kind "classes", else 0."""
    if losses is None:
        return "labels", 0
    demand(type(losses) is dict and type(losses.get("kind")) is str, "losses")
    if losses["kind"] == "labels":
        demand(set(losses) == {"kind"}, "losses")
        return "labels", 0
    if losses["kind"] == "classes":
        demand(set(losses) == {"kind", "count"} and is_whole(losses["count"], 2, 2**16), "losses")
        return "classes", losses["count"]
    demand(losses["kind"] == "intervals" and set(losses) == {"kind", "below", "above", "under", "over"}, "losses")
    demand(is_number(losses["below"], 0) and is_number(losses["above"], 0), "factors")
    demand(is_number(losses["under"]) and is_number(losses["over"]), "interval")
    demand(F(losses["under"]) + F(losses["over"]) >= 0, "interval")
    return "intervals", 0


def check_tree(tree, T, n, count):
    names, upper = {"w", "b"} | ({"sides", "labels"} if count else set()), (T - 1) // 2
    demand(type(tree) is dict and set(tree) == names and is_list(tree["b"], T, is_number), "tree")
    demand(is_list(tree["w"], T, lambda row: is_list(row, n, is_number)), "tree")
    if count:
        demand(is_list(tree["sides"], upper, lambda r: is_list(r, count, lambda s: is_whole(s, -1, 1))), "sides")
        demand(all(row[0] == -1 and set(row) == {-1, 1} for row in tree["sides"]), "sides")
        two = lambda row: is_list(row, 2, lambda k: is_whole(k, 0, count - 1)) and row[0] != row[1]  # noqa: E731
        demand(is_list(tree["labels"], T - upper, two), "labels")


def check_table(table, n, kind, count):
    columns = {"features", "offset", "scale", "target", "weight", "labels", "class_weight"}
    demand(type(table) is dict and set(table) == columns | {"target_offset", "target_scale"}, "table")
    demand(is_list(table["features"], n, lambda name: type(name) is str), "names")
    demand(len(set(table["features"])) == n, "a name twice")
    demand(type(table["target"]) is str and type(table["weight"]) in (str, type(None)), "columns")
    demand(is_list(table["offset"], n, is_number) and is_list(table["scale"], n, lambda s: is_number(s, 0)), "scale")
    if kind == "intervals":
        demand(table["labels"] is None and table["class_weight"] is None, "classes of numbers")
        demand(is_number(table["target_offset"]) and is_number(table["target_scale"], 0), "units of targets")
        return
    count = count or 2
    demand(table["target_offset"] is None and table["target_scale"] is None, "units of classes")
    demand(is_list(table["labels"], count, lambda name: type(name) is str), "labels")
    demand(len(set(table["labels"])) == count, "a label twice")
    demand(is_list(table["class_weight"], count, lambda c: is_number(c, 0)), "weights of classes")


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
        if kind in b"SFC":
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


def canonical(losses):
    """JSON with sorted keys, without blanks, numbers as Python writes float64 (``count`` as a whole number)."""
    texts = [f'"{name}":' + (f'"{x}"' if name == "kind" else str(x) if name == "count" else repr(float(x)))
             for name, x in sorted(losses.items())]  # fmt: skip
    return "{" + ",".join(texts) + "}"


class Terms:
    def __init__(self, head, X, y, weight):
        self.model, self.depth, self.eps = head["model"], head["depth"], F(head["eps"])
        self.T, self.n = 2 ** head["depth"] - 1, head["features"]
        self.C, self.alpha = [F(c) for c in head["C"]], [F(a) for a in head["alpha"] or []]
        self.budget = head["budget"]
        group_of = head["groups"] or list(range(self.n))
        self.groups = [[j for j, g in enumerate(group_of) if g == k] for k in range(1 + max(group_of))]
        self.losses = head["losses"] or {"kind": "labels"}
        self.kind = self.losses["kind"]
        demand(len(X) == head["samples"] and all(len(row) == self.n for row in X), "size of the data")
        demand(len(y) == len(weight) == len(X), "size of the data")
        words = f"{self.model} {self.depth} {len(X)} {self.n}"
        if head["losses"] is not None:
            words += " " + canonical(self.losses)
        flat = [v for row in X for v in row] + list(y) + list(weight) + head["C"] + [head["eps"]]
        flat += (head["budget"] or []) + (head["alpha"] or []) + (head["groups"] or [])
        words += " groups" * (head["groups"] is not None)
        data = b"".join(struct.pack("<d", v) for v in flat)
        demand(hashlib.sha256(words.encode() + b"\n" + data).hexdigest() == head["digest"], "digest")
        demand(all(0 < w < math.inf for w in weight) and all(abs(target) < math.inf for target in y), "weights, y")
        demand(all(abs(v) < math.inf for row in X for v in row), "features")
        if self.kind == "labels":
            demand(all(abs(label) == 1 for label in y), "labels")
        if self.kind == "classes":
            demand(all(k in range(self.losses["count"]) for k in y), "classes")
        self.rows = [([F(v) for v in row], target, F(w)) for row, target, w in zip(X, y, weight, strict=True)]
        groups = {}
        for x, target, w in self.rows:
            groups.setdefault((tuple(x), target), []).append(w)
        self.samples = [(x, target, sum(ws)) for (x, target), ws in groups.items()]
        self.m = len(self.samples)
        # The number that a multiplier at full cost stands for is a float64.
        demand(all(w <= 2**1023 for _, _, w in self.samples), "range of weights")
        self.full = [[float(c) * float(w) * (1.0 - 2.0**-50) for _, _, w in self.samples] for c in self.C]
        if self.kind == "intervals":
            demand(all(abs(end) < math.inf for target in y for end in self.interval(target)), "intervals")
        for t in range(self.T):
            for i, (_, _, w) in enumerate(self.samples):
                demand(1e-290 <= self.full[t][i] <= 1e290, "range of costs")
                assert F(self.full[t][i]) <= self.C[t] * w
                for name in ("below", "above") if self.kind == "intervals" else ():
                    demand(1e-290 <= self.interval_cost(t, i, name) <= 1e290, "range of costs")
                    assert F(self.interval_cost(t, i, name)) <= self.C[t] * w * F(self.losses[name])

    def interval(self, target):
        """Between which two values a prediction has no loss."""
        return target - float(self.losses["under"]), target + float(self.losses["over"])

    def interval_cost(self, t, i, name):
        return self.full[t][i] * float(self.losses[name]) * (1.0 - 2.0**-50)

    def is_last(self, t):
        return 2 * t + 1 >= self.T

    def losses_in_tree(self, t, target, right, tree):
        """Of a sample in the tree of the header: label, corner and factor of each loss."""
        if self.kind == "labels":
            return [(int(target), 1, 1)]
        if self.kind == "intervals" and self.is_last(t):
            low, high = self.interval(target)
            return [(1, F(low), F(self.losses["below"])), (-1, -F(high), F(self.losses["above"]))]
        if self.kind == "intervals":
            return [(1 if right else -1, 1, 1)]
        if not self.is_last(t):
            return [(tree["sides"][t][int(target)], 1, 1)]
        of_left, of_right = tree["labels"][t - (self.T - 1) // 2]
        return [(-1, 1, 1)] * (target != of_right) + [(1, 1, 1)] * (target != of_left)

    def tree_value(self, tree):
        total = F(0)
        w, b = [[F(v) for v in row] for row in tree["w"]], [F(v) for v in tree["b"]]
        for t in range(self.T):
            used = sum(any(w[t][j] != 0 for j in group) for group in self.groups)
            demand(self.model != "hfs" or used <= self.budget[t], "budget")
            total += sum(v * v for v in w[t]) / 2
            if self.model == "sfs":
                total += self.alpha[t] * max(0, used - self.budget[t])
        for x, target, weight in self.rows:
            t = 0
            while t < self.T:
                h = sum(a * v for a, v in zip(w[t], x, strict=True)) + b[t]
                tie = F(min(1e-9 * (1.0 + abs(float(b[t]))), float(self.eps) / 4))
                right = h >= -tie
                demand(self.is_last(t) or right or h <= tie - self.eps, "band")
                for label, corner, factor in self.losses_in_tree(t, target, right, tree):
                    total += self.C[t] * weight * factor * max(F(0), corner - label * h)
                t = 2 * t + 2 if right else 2 * t + 1
        return total

    def may_decide(self, decisions, kind, which, t):
        if kind == b"S":
            demand(which < self.m and not self.is_last(t), "decision")
            demand(self.place(decisions, which) == t, "a sample that is elsewhere")
        elif kind == b"F":
            demand(self.model != "margot" and which < len(self.groups) and t < self.T, "decision")
            demand(not any(d[:3] == (kind, which, t) for d in decisions), "a feature that is decided")
        else:
            demand(self.kind == "classes" and which < self.losses["count"] and t < self.T, "decision")
            demand(self.codes(t, decisions)[which] == "open", "a class that is decided")

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
        places = [self.place(decisions, i) for i in range(self.m)]
        return {i: self.side(p, t) for i, p in enumerate(places) if self.side(p, t) is not None}

    def codes(self, t, decisions):
        """What is known of every class at ``t``: "open", "left", "right" or "both"."""
        if self.kind != "classes":
            return None
        codes = ["open"] * self.losses["count"]
        if len(codes) == 2:
            codes = ["left", "right"]
        elif not self.is_last(t):
            codes[0] = "left"
        for kind, which, at, outcome in decisions:
            if kind == b"C" and at == t:
                (self.label_decided if self.is_last(t) else self.side_decided)(codes, which, outcome == 1)
        return codes

    @staticmethod
    def side_decided(codes, which, first):
        codes[which] = "left" if first else "right"
        if "right" not in codes and codes.count("open") == 1:
            codes[codes.index("open")] = "right"

    @staticmethod
    def label_decided(codes, which, first):
        def make_label(k):
            codes[k] = "right" if "left" in codes else "left"

        if first:
            make_label(which)
        else:
            codes[which] = "both"
        labels = codes.count("left") + codes.count("right")
        others = [k for k, code in enumerate(codes) if code == "open"]
        if labels == 2:
            for k in others:
                codes[k] = "both"
        elif labels + len(others) == 2:
            for k in others:
                make_label(k)

    def items(self, t, sides, codes):
        """By number: sample, label, corner, cost and whether it is at full cost where it is not listed."""
        items = {}
        for i, side in sides.items():
            target, cost = self.samples[i][1], F(self.full[t][i])
            if self.kind == "labels":
                items[i] = (i, int(target), 1, cost, side == -target)
            elif self.kind == "intervals" and self.is_last(t):
                low, high = self.interval(target)
                items[i] = (i, 1, F(low), F(self.interval_cost(t, i, "below")), False)
                items[self.m + i] = (i, -1, -F(high), F(self.interval_cost(t, i, "above")), False)
            elif self.kind == "intervals":
                if side != 0:
                    items[i] = (i, side, 1, cost, False)
            elif codes[int(target)] == "both":
                items[i], items[self.m + i] = (i, 1, 1, cost, True), (i, -1, 1, cost, True)
            elif codes[int(target)] != "open":
                label = 1 if codes[int(target)] == "right" else -1
                items[i] = (i, label, 1, cost, side == -label)
            elif side != 0:
                items[i] = (i, side, 1, F(0), False)
        return items

    def cost_of_open_classes(self, t, sides, codes):
        """All open classes except as many as there are labels left have a sample's two losses, at least 2 together."""
        if codes is None or not self.is_last(t):
            return F(0)
        labels = codes.count("left") + codes.count("right")
        mass = {k: F(0) for k, code in enumerate(codes) if code == "open"}
        for i in sides:
            if int(self.samples[i][1]) in mass:
                mass[int(self.samples[i][1])] += 2 * F(self.full[t][i])
        largest_first = sorted(mass.values(), reverse=True)
        return sum(largest_first[2 - labels :], F(0))

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
                worth, squares = self.node_terms(t, decisions, points[t])
                bounds.append(worth - self.most(t, squares, must, never))
            total += max(bounds) + self.cost_of_open_classes(t, self.sides(t, decisions), self.codes(t, decisions))
        return total

    def raised(self, t, decisions, table, point):
        """What every support costs at least: as in the table, or as the point says."""
        demand(self.kind == "labels", "tables")
        n = len(self.groups)
        size = min(self.budget[t], n) if self.model != "margot" else -1
        demand(size >= 0 and math.comb(n, size) <= 65536, "tables")
        if table is None:
            table = dict.fromkeys(combinations(range(n), size), F(0))
        worth, squares = self.node_terms(t, decisions, point)
        return {support: max(least, worth - sum(squares[j] for j in support)) for support, least in table.items()}

    def least(self, t, table, must, never):
        """The features used are within some support that has as few of those not used as there can be."""
        n = len(self.groups)
        few = max(0, min(self.budget[t], n) - (n - len(never)))
        fits = [least for support, least in table.items()
                if must <= set(support) and len(never & set(support)) <= few]  # fmt: skip
        return min(fits, default=F(10**400))

    def node_terms(self, t, decisions, point):
        sides = self.sides(t, decisions)
        items = self.items(t, sides, self.codes(t, decisions))
        v = self.multipliers(items, point)
        total, u = F(0), [F(0)] * self.n
        for number, (i, label, corner, cost, _) in items.items():
            side, a = sides[i], v[number]
            delta = self.eps if side < 0 else F(0)
            if side == 0:
                demand(0 <= a <= cost, "range")
                total += a * corner
            elif side == label:
                demand(a >= 0, "range")
                corners = (delta, max(F(corner), delta))
                total += min(cost * max(F(0), corner - g) + a * g for g in corners)
            else:
                demand(a <= cost, "range")
                total += cost * (corner + delta) - a * delta
            u = [b + a * label * c for b, c in zip(u, self.samples[i][0], strict=True)]
        return total, [sum(u[j] * u[j] for j in group) / 2 for group in self.groups]

    def multipliers(self, items, point):
        if point is None:
            return dict.fromkeys(items, F(0))
        full, values, balance, rest = point
        demand(all(abs(value) <= 1e290 for value in values.values()), "a number that is none, or too large")
        demand(all(number in items for number in (*full, *values, balance)), "an item that is not here")
        v = {}
        for number, (_, _, _, cost, at_rest) in items.items():
            at_cost = number in full or (rest and at_rest)
            v[number] = F(values[number]) if number in values else cost if at_cost else F(0)
        v[balance] = F(0)
        v[balance] = -items[balance][1] * sum(items[number][1] * a for number, a in v.items())
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
