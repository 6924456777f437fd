"""Ways to spoil a proof: each takes one apart, changes one thing, and puts it together with all checksums right.

`both` asks both checkers.
"""

import copy
import hashlib
import json
import math
import struct
import zlib

import numpy as np
from tests.proofs import exact

from margotree.proof import check

#: Steps that open two search nodes.
SPLITS = [b"S", b"F", b"C"]
#: Small blocks, so that even a short proof has several.
BLOCK = 300


class Parts:
    """A proof taken apart: header, steps (lists), and the data it is checked with."""

    def __init__(self, path, data):
        with open(path, "rb") as stream:
            self.first, text, _ = stream.readline(), stream.readline(), stream.readline()
            raw = exact.blocks(stream.read())
        self.header = json.loads(text)
        self.data = [a.copy() for a in data]
        self.steps = _steps(raw, len(self.header["C"]))

    def copy(self):
        return copy.deepcopy(self)

    def write(self, path):
        path.write_bytes(self.packed())

    def packed(self):
        text = json.dumps(self.header).encode() + b"\n"
        return self.first + text + b"%08x\n" % zlib.crc32(text) + b"".join(pack(b) for b in self.blocks()) + END

    def blocks(self):
        raw, parts = b"", []
        for step in self.steps:
            raw += _bytes(step)
            if len(raw) > BLOCK:
                parts, raw = [*parts, raw], b""
        return [*parts, raw] if raw else parts

    def pick(self, rng, kind, good=lambda step: True):
        """The place of a random step of this kind, or None."""
        places = [k for k, step in enumerate(self.steps) if step[0] in kind and good(step)]
        return int(rng.choice(places)) if places else None


END = struct.pack("<III", 0, 0, 0)


def pack(raw):
    packed = zlib.compress(raw)
    return struct.pack("<III", len(packed), len(raw), zlib.crc32(packed)) + packed


def _steps(raw, T):
    """Splits as ``[kind, node, which, t, first, second]``; leaves ``[kind, node, points]``; raises one point and t."""
    steps, at = [], 0
    while at < len(raw):
        kind, node = struct.unpack_from("<cI", raw, at)
        at += 5
        if kind in b"SFC":
            steps.append([kind, node, *struct.unpack_from("<IHII", raw, at)])
            at += 14
            continue
        points, more = [], []
        if kind == b"R":
            more = list(struct.unpack_from("<H", raw, at))
            at += 2
        for _ in range(1 if kind == b"R" else T):
            code = raw[at]
            at += 1
            if code < 2:
                points.append([code])
                continue
            full, given, balance = struct.unpack_from("<III", raw, at)
            numbers = struct.unpack_from(f"<{full + given}I{given}d", raw, at + 12)
            at += 12 + 4 * full + 12 * given
            lists = numbers[:full], numbers[full : full + given], numbers[full + given :]
            points.append([code, *map(list, lists), balance])
        steps.append([kind, node, points, *more])
    return steps


def _bytes(step):
    if step[0] not in (b"L", b"R"):
        return struct.pack("<cIIHII", *step)
    text = struct.pack("<cI", step[0], step[1]) + b"".join(struct.pack("<H", t) for t in step[3:])
    for code, *more in step[2]:
        text += bytes([code])
        if more:
            full, given, values, balance = more
            text += struct.pack(f"<III{len(full) + len(given)}I{len(values)}d", len(full), len(given), balance,
                                *full, *given, *values)  # fmt: skip
    return text


# -- the file ----------------------------------------------------------------------------------------------------------
# These return bytes.


def _byte(parts, rng, low, high):
    text = bytearray(parts.packed())
    at = int(rng.integers(low(text), high(text)))
    text[at] ^= 1 << int(rng.integers(8))
    return bytes(text)


def body_at(text):
    at = 0
    for _ in range(3):
        at = text.index(b"\n", at) + 1
    return at


def cut_off(parts, rng):
    text = parts.packed()
    return text[: int(rng.integers(len(text)))]


def byte_of_the_header(parts, rng):
    return _byte(parts, rng, lambda text: 18, lambda text: body_at(text))


def byte_of_the_steps(parts, rng):
    return _byte(parts, rng, body_at, len)


def more_at_the_end(parts, rng):
    return parts.packed() + b"\0"


def no_end(parts, rng):
    return parts.packed()[: -len(END)]


def end_too_early(parts, rng):
    return _with_blocks(parts, parts.blocks()[:-1])


def block_twice(parts, rng):
    blocks = parts.blocks()
    return _with_blocks(parts, [*blocks, blocks[int(rng.integers(len(blocks)))]])


def block_left_out(parts, rng):
    blocks = parts.blocks()
    del blocks[int(rng.integers(len(blocks)))]
    return _with_blocks(parts, blocks)


def blocks_swapped(parts, rng):
    blocks = parts.blocks()
    if len(blocks) < 2:
        return None
    return _with_blocks(parts, [blocks[-1], *blocks[1:-1], blocks[0]])


def _with_blocks(parts, blocks):
    text = parts.packed()
    return text[: body_at(text)] + b"".join(pack(b) for b in blocks) + END


def another_version(parts, rng):
    return parts.packed().replace(b"proof 4", b"proof 1", 1)


def another_kind_of_file(parts, rng):
    return b"\0" * len(parts.packed())


def nothing(parts, rng):
    return b""


# -- the header and the data -------------------------------------------------------------------------------------------
# These change the parts and return False where there is nothing to change.


def bound_raised(parts, rng):
    claim = parts.header["claim"]
    claim["bound"] += 0.5 * (claim["objective"] - claim["bound"]) + 0.01 * claim["objective"]
    claim["objective"] = max(claim["objective"], claim["bound"])


def bound_above_the_tree(parts, rng):
    parts.header["claim"]["bound"] = parts.header["claim"]["objective"] * 1.5 + 1.0


def bound_no_number(parts, rng):
    parts.header["claim"]["bound"] = math.nan


def objective_lowered(parts, rng):
    claim = parts.header["claim"]
    claim["objective"] = claim["bound"] = claim["objective"] * (1 - 1e-12) - 1e-300


def weight_of_the_tree(parts, rng):
    row = parts.header["tree"]["w"][int(rng.integers(len(parts.header["C"])))]
    row[int(rng.integers(len(row)))] += 10.0


def offset_of_the_tree(parts, rng):
    b = parts.header["tree"]["b"]
    b[int(rng.integers(len(b)))] += float(rng.choice([-5.0, 5.0]))


def another_C(parts, rng):
    parts.header["C"][int(rng.integers(len(parts.header["C"])))] *= 1.5


def another_eps(parts, rng):
    parts.header["eps"] *= 0.5


def another_depth(parts, rng):
    parts.header["depth"] += 1


def another_model(parts, rng):
    swap = {"margot": "sfs", "hfs": "margot", "sfs": "margot"}
    parts.header["model"] = swap[parts.header["model"]]


def another_model_throughout(parts, rng):
    T = len(parts.header["C"])
    change = {"model": "sfs", "budget": [1] * T, "alpha": [0.5] * T}
    if parts.header["model"] != "margot":
        change = {"model": "margot", "budget": None, "alpha": None}
    parts.header |= change


def another_budget(parts, rng):
    if parts.header["budget"] is None:
        return False
    parts.header["budget"][0] += 1


def another_grouping(parts, rng):
    if parts.header["budget"] is None:
        return False
    n, now = parts.header["features"], parts.header["groups"]
    parts.header["groups"] = [0] * n if now != [0] * n else None


def another_alpha(parts, rng):
    if parts.header["alpha"] is None:
        return False
    parts.header["alpha"][0] *= 2.0


def another_digest(parts, rng):
    parts.header["digest"] = parts.header["digest"][::-1]


def steps_miscounted(parts, rng):
    parts.header["steps"] += int(rng.choice([-1, 1]))


def _resealed(parts):
    """The digest of the terms as they are now, so that nothing but the terms can be wrong."""
    header, (X, y, weight) = parts.header, parts.data
    words = f"{header['model']} {header['depth']} {X.shape[0]} {X.shape[1]} {exact.canonical(header['losses'])}"
    sha = hashlib.sha256(f"{words}{' groups' if header['groups'] is not None else ''}\n".encode())
    terms = (header["C"], [header["eps"]], header["budget"] or [], header["alpha"] or [], header["groups"] or [])
    for part in (X, y, weight, *terms):
        sha.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    header["digest"] = sha.hexdigest()


def as_version_3(parts):
    """The same proof in the format before losses, for losses of labels."""
    header, (X, y, weight) = parts.header, parts.data
    parts.first = b"margotree proof 3\n"
    del header["losses"], header["groups"]
    if header["table"] is not None:
        header["table"] = {name: x for name, x in header["table"].items() if not name.startswith("target_")}
    sha = hashlib.sha256(f"{header['model']} {header['depth']} {X.shape[0]} {X.shape[1]}\n".encode())
    terms = (header["C"], [header["eps"]], header["budget"] or [], header["alpha"] or [])
    for part in (X, y, weight, *terms):
        sha.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    header["digest"] = sha.hexdigest()


def table_of(parts):
    """How the numbers of the proof are found in a file with the columns x0, x1, ..., y."""
    n, losses = parts.header["features"], parts.header["losses"]
    classes, of_numbers = losses.get("count", 2), losses["kind"] == "intervals"
    return {
        "features": [f"x{j}" for j in range(n)], "offset": [0.0] * n, "scale": [1.0] * n, "target": "y", "weight": None,
        "labels": None if of_numbers else [f"class {k}" for k in range(classes)],
        "class_weight": None if of_numbers else [1.0] * classes,
        "target_offset": 0.0 if of_numbers else None, "target_scale": 1.0 if of_numbers else None,
    }  # fmt: skip


def other_losses(parts, rng):
    odd = [{"kind": "labels"}, {"kind": "classes", "count": 4}]
    odd += [{"kind": "intervals", "below": 1.0, "above": 1.0, "under": 0.5, "over": 0.5}]
    odd = [losses for losses in odd if losses["kind"] != parts.header["losses"]["kind"]]
    parts.header["losses"] = odd[int(rng.integers(len(odd)))]


def losses_of_another_type(parts, rng):
    interval = {"kind": "intervals", "below": 1.0, "above": 1.0, "under": 0.25, "over": 0.25}
    odd = [
        None, 1, {}, {"kind": "other"}, {"kind": ["labels"]}, {"kind": "labels", "count": 2}, {"kind": "classes"},
        {"kind": "classes", "count": 3.0}, {"kind": "classes", "count": 1}, {"kind": "classes", "count": 2**17},
        interval | {"below": 0.0}, interval | {"above": -1.0}, interval | {"under": -0.5}, interval | {"over": "1"},
        interval | {"over": math.nan}, interval | {"more": 1.0}, {"kind": "intervals"},
    ]  # fmt: skip
    parts.header["losses"] = odd[int(rng.integers(len(odd)))]


def choices_of_another_type(parts, rng):
    tree = parts.header["tree"]
    if "sides" not in tree:
        tree |= {"sides": [], "labels": []}
        return None
    name = str(rng.choice(["sides", "labels"]))
    odd = [None, [], [[]] * len(tree[name]), [[1, 1, 1]] * len(tree[name]), [[-1, 1, 0]] * len(tree[name])]
    odd += [[[-1, -1, -1]] * len(tree[name]), [[0.0, 1.0]] * len(tree[name]), [[0, 3]] * len(tree[name]), {"a": 1}]
    tree[name] = odd[int(rng.integers(len(odd)))]


def labels_of_the_tree(parts, rng):
    if "labels" not in parts.header["tree"]:
        return False
    row = parts.header["tree"]["labels"][int(rng.integers(len(parts.header["tree"]["labels"])))]
    row[:] = [row[1], 3 - sum(row)]


def other_factors(parts, rng):
    """Losses of other sizes throughout."""
    losses = parts.header["losses"]
    if losses["kind"] != "intervals":
        return False
    name = str(rng.choice(["below", "above", "under", "over"]))
    losses[name] += 0.125 if name in ("under", "over") else -0.5 * losses[name]
    _resealed(parts)


def class_without_weight(parts, rng):
    """One class would cost nothing, and nothing said of the tree would be about it."""
    weights = [[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]][int(rng.integers(3))]
    parts.header["table"] = table_of(parts) | {"class_weight": weights}


def class_weights_of_another_type(parts, rng):
    parts.header["table"] = table_of(parts) | {"class_weight": [[], [1.0], [True, 1.0], "11"][int(rng.integers(4))]}


def table_of_another_type(parts, rng):
    n = parts.header["features"]
    odd = [
        {"scale": [0.0] * n}, {"scale": [-1.0] * n}, {"scale": None}, {"offset": [1e400] * n}, {"labels": ["no", "no"]},
        {"labels": [0, 1]}, {"features": ["x"] * n} if n > 1 else {"features": [3]}, {"target": None}, {"weight": 1.0},
        {"drop": ["x0"]},
    ]  # fmt: skip
    parts.header["table"] = table_of(parts) | odd[int(rng.integers(len(odd)))]


def depth_that_is_not_whole(parts, rng):
    """Two to this power is a whole number, too."""
    parts.header["depth"] = 1.584962500721156 if rng.random() < 0.5 else float(parts.header["depth"])


def whole_number_of_another_type(parts, rng):
    name = str(rng.choice(["depth", "samples", "features", "steps"]))
    x = parts.header[name]
    odd = [float(x), str(x), True, [x], None, -x, 10**400, math.inf]
    parts.header[name] = odd[int(rng.integers(len(odd)))]


def budget_of_another_type(parts, rng):
    if parts.header["budget"] is None:
        return False
    b = parts.header["budget"]
    b[0] = [float(b[0]), True, -1, 10**400, 2**53 + 2, None, "1"][int(rng.integers(7))]


def number_of_another_type(parts, rng):
    """Of claims, terms and tree."""
    odd = [True, "1.0", None, [1.0], math.inf, -math.inf, math.nan, 10**400, 2**53 + 1][int(rng.integers(9))]
    header = parts.header
    places = [(header["claim"], "objective"), (header["claim"], "bound"), (header["C"], 0), (header, "eps")]
    places += [(header["tree"]["w"][0], 0), (header["tree"]["b"], 0)]
    places += [(header["alpha"], 0)] if header["alpha"] else []
    holder, name = places[int(rng.integers(len(places)))]
    holder[name] = odd


def entry_that_is_not_known(parts, rng):
    """What restricts the trees a proof is about must not go unnoticed."""
    parts.header[str(rng.choice(["max_weight", "monotone", "comment"]))] = 1.0


def costs_below_what_floats_round(parts, rng):
    """Rounding is not relative there, so that a violation would cost more in the proof than it does."""
    parts.header["C"] = [[5e-324, 1e-310, 1e-291][int(rng.integers(3))]] * len(parts.header["C"])
    parts.header["eps"] = 1e-3
    parts.header["claim"]["bound"] = 0.0
    _resealed(parts)


def costs_too_large(parts, rng):
    parts.header["C"] = [1e300] * len(parts.header["C"])
    parts.header["claim"] = {"objective": 1.7e308, "bound": 0.0}
    _resealed(parts)


def weights_of_the_tree_too_large(parts, rng):
    """Its value is no float."""
    parts.header["tree"]["w"][0][0] = 1e200
    parts.header["claim"]["objective"] = 1.7e308


def multiplier_huge(parts, rng):
    return _value(parts, rng, lambda v: math.copysign(1e300, v or 1.0))


def header_nested(parts, rng):
    """Deeper than a reader of JSON goes."""
    return _with_header(parts, b"[" * 200_000 + b"]" * 200_000)


def header_with_an_entry_twice(parts, rng):
    text = json.dumps(parts.header).encode()
    return _with_header(parts, text[:-1] + b', "eps": ' + json.dumps(parts.header["eps"]).encode() + b"}")


def header_in_another_encoding(parts, rng):
    return _with_header(parts, json.dumps(parts.header).encode("utf-16"))


def header_of_a_number_with_many_digits(parts, rng):
    return _with_header(parts, b"1" * 100_000)


def earlier_version(parts, rng):
    return parts.packed().replace(b"proof 4", b"proof 3", 1)


def _with_header(parts, text):
    text += b"\n"
    return parts.first + text + b"%08x\n" % zlib.crc32(text) + parts.packed()[body_at(parts.packed()) :]


def entry_left_out(parts, rng):
    del parts.header[str(rng.choice(["model", "C", "eps", "tree", "claim", "digest", "samples", "steps"]))]


def number_of_the_data(parts, rng):
    X = parts.data[0]
    at = tuple(int(rng.integers(k)) for k in X.shape)
    X[at] = math.nextafter(X[at], math.inf)


def label_of_the_data(parts, rng):
    i = int(rng.integers(len(parts.data[1])))
    parts.data[1][i] = -parts.data[1][i] or 1.0


def weight_of_the_data(parts, rng):
    parts.data[2][int(rng.integers(len(parts.data[2])))] *= 2


def row_left_out(parts, rng):
    parts.data = [a[1:] for a in parts.data]


def rows_swapped(parts, rng):
    parts.data = [a[::-1].copy() for a in parts.data]


# -- the steps ---------------------------------------------------------------------------------------------------------


def _step(parts, rng, kind, change, good=lambda step: True):
    at = parts.pick(rng, kind, good)
    if at is None:
        return False
    change(at, parts.steps[at])


def leaf_left_out(parts, rng):
    _step(parts, rng, [b"L"], lambda at, step: parts.steps.pop(at))
    parts.header["steps"] -= 1


def split_left_out(parts, rng):
    if _step(parts, rng, SPLITS, lambda at, step: parts.steps.pop(at)) is False:
        return False
    parts.header["steps"] -= 1


def leaf_twice(parts, rng):
    _step(parts, rng, [b"L"], lambda at, step: parts.steps.insert(at, copy.deepcopy(step)))
    parts.header["steps"] += 1


def leaf_of_another_node(parts, rng):
    return _step(parts, rng, [b"L"], lambda at, step: step.__setitem__(1, step[1] + 1))


def leaves_swapped(parts, rng):
    one, other = parts.pick(rng, [b"L"]), parts.pick(rng, [b"L"])
    if one == other:
        return False
    a, b = parts.steps[one], parts.steps[other]
    a[1], b[1] = b[1], a[1]


def split_closed_by_nothing(parts, rng):
    """A search node is closed without multipliers where it was split, and what is below it left out."""
    at = parts.pick(rng, SPLITS)
    if at is None:
        return False
    below, kept = set(parts.steps[at][4:6]), []
    for k, step in enumerate(parts.steps):
        if k == at:
            kept.append([b"L", step[1], [[0]] * len(parts.header["C"])])
        elif step[1] in below:
            below |= set(step[4:6]) if step[0] != b"L" else set()
        else:
            kept.append(step)
    parts.steps, parts.header["steps"] = kept, len(kept)


def children_swapped(parts, rng):
    def swap(at, step):
        step[4], step[5] = step[5], step[4]

    return _step(parts, rng, SPLITS, swap)


def children_the_same(parts, rng):
    return _step(parts, rng, SPLITS, lambda at, step: step.__setitem__(5, step[4]))


def child_unknown(parts, rng):
    return _step(parts, rng, SPLITS, lambda at, step: step.__setitem__(5, 4_000_000_000))


def child_is_its_parent(parts, rng):
    return _step(parts, rng, SPLITS, lambda at, step: step.__setitem__(4, step[1]))


def another_sample_decided(parts, rng):
    m = len(parts.data[0])
    return _step(parts, rng, [b"S"], lambda at, step: step.__setitem__(2, (step[2] + 1) % m))


def sample_that_there_is_not(parts, rng):
    return _step(parts, rng, [b"S"], lambda at, step: step.__setitem__(2, len(parts.data[0])))


def another_tree_node_decided(parts, rng):
    return _step(parts, rng, SPLITS, lambda at, step: step.__setitem__(3, step[3] + 1))


def tree_node_that_there_is_not(parts, rng):
    return _step(parts, rng, SPLITS, lambda at, step: step.__setitem__(3, 65_000))


def feature_for_sample(parts, rng):
    return _step(parts, rng, SPLITS, lambda at, step: step.__setitem__(0, b"S" if step[0] == b"F" else b"F"))


def another_class_decided(parts, rng):
    K = parts.header["losses"].get("count", 2)
    return _step(parts, rng, [b"C"], lambda at, step: step.__setitem__(2, (step[2] + 1) % K))


def class_that_there_is_not(parts, rng):
    return _step(parts, rng, [b"C"], lambda at, step: step.__setitem__(2, parts.header["losses"]["count"]))


def class_that_is_decided(parts, rng):
    """The first class has a side at every upper tree node."""
    upper = len(parts.header["C"]) // 2
    return _step(parts, rng, [b"C"], lambda at, step: step.__setitem__(2, 0), lambda step: step[3] < upper)


def class_of_other_losses(parts, rng):
    if parts.header["losses"]["kind"] == "classes":
        return False
    a, b = 1_000_000, 1_000_001
    for step in parts.steps:
        step[1] = a if step[1] == 0 else step[1]
    parts.steps = [[b"C", 0, 1, 0, a, b], *parts.steps, [b"L", b, [[0]] * len(parts.header["C"])]]
    parts.header["steps"], parts.header["claim"]["bound"] = len(parts.steps), 0.0


def kind_unknown(parts, rng):
    return _step(parts, rng, [b"S"], lambda at, step: step.__setitem__(0, b"X"))


def _point(parts, rng, change, good=lambda point: True):
    """Change a list of multipliers somewhere."""
    found = [(k, t) for k, s in enumerate(parts.steps) if s[0] in (b"L", b"R")
             for t, p in enumerate(s[2]) if p[0] >= 2 and good(p)]  # fmt: skip
    if not found:
        return False
    k, t = found[int(rng.integers(len(found)))]
    change(parts.steps[k][2][t], parts.steps[k], t)


def _value(parts, rng, change):
    def one(point, step, t):
        at = int(rng.integers(len(point[3])))
        point[3][at] = change(point[3][at])

    return _point(parts, rng, one, lambda point: point[3])


def multiplier_halved(parts, rng):
    return _value(parts, rng, lambda v: v / 2)


def multiplier_doubled(parts, rng):
    return _value(parts, rng, lambda v: v * 2)


def multiplier_negative(parts, rng):
    return _value(parts, rng, lambda v: -abs(v) - 1.0)


def multiplier_too_large(parts, rng):
    return _value(parts, rng, lambda v: v + 1e6)


def multiplier_no_number(parts, rng):
    return _value(parts, rng, lambda v: math.nan)


def multiplier_infinite(parts, rng):
    return _value(parts, rng, lambda v: math.inf)


def multipliers_forgotten(parts, rng):
    def forget(point, step, t):
        point[:] = [0]

    return _point(parts, rng, forget)


def all_multipliers_forgotten(parts, rng):
    return _step(parts, rng, [b"L"], lambda at, step: step.__setitem__(2, [[0]] * len(step[2])))


def full_ones_forgotten(parts, rng):
    return _point(parts, rng, lambda point, step, t: point[1].clear(), lambda point: point[1])


def sample_twice(parts, rng):
    return _point(parts, rng, lambda point, step, t: point[1].append(point[1][0]), lambda point: point[1])


def sample_not_here(parts, rng):
    def elsewhere(point, step, t):
        point[1].append(1_000_000)

    return _point(parts, rng, elsewhere)


def the_other_loss_of_a_sample(parts, rng):
    """At last tree nodes a sample may have two items, m numbers apart."""
    m = len(parts.data[0])

    def other(point, step, t):
        at = int(rng.integers(len(point[2])))
        point[2][at] = (point[2][at] + m) % (2 * m)

    return _point(parts, rng, other, lambda point: point[2])


def another_balance(parts, rng):
    def other(point, step, t):
        point[4] = (point[4] + 1) % len(parts.data[0])

    return _point(parts, rng, other)


def balance_that_there_is_not(parts, rng):
    return _point(parts, rng, lambda point, step, t: point.__setitem__(4, 4_000_000_000))


def tree_nodes_swapped(parts, rng):
    def swap(point, step, t):
        other = (t + 1) % len(step[2])
        step[2][t], step[2][other] = step[2][other], step[2][t]

    return _point(parts, rng, swap)


def as_before_for_another(parts, rng):
    return _point(parts, rng, lambda point, step, t: step[2].__setitem__(t, [1]))


def way_unknown(parts, rng):
    return _point(parts, rng, lambda point, step, t: step[2].__setitem__(t, [4]))


def the_rest_otherwise(parts, rng):
    """What is said of samples that are not listed is turned round."""
    return _point(parts, rng, lambda point, step, t: point.__setitem__(0, 5 - point[0]))


# -- tables of supports ------------------------------------------------------------------------------------------------


def raises_left_out(parts, rng):
    """All that is proved of the supports of one tree node."""
    t = int(rng.integers(len(parts.header["C"])))
    kept = [step for step in parts.steps if step[0] != b"R" or step[3] != t]
    if len(kept) == len(parts.steps):
        return False
    parts.steps, parts.header["steps"] = kept, len(kept)


def raise_left_out(parts, rng):
    if _step(parts, rng, [b"R"], lambda at, step: parts.steps.pop(at)) is False:
        return False
    parts.header["steps"] -= 1


def raise_of_another_node(parts, rng):
    return _step(parts, rng, [b"R"], lambda at, step: step.__setitem__(1, step[1] + 1))


def raise_of_no_node(parts, rng):
    return _step(parts, rng, [b"R"], lambda at, step: step.__setitem__(1, 4_000_000_000))


def raise_at_another_tree_node(parts, rng):
    return _step(parts, rng, [b"R"], lambda at, step: step.__setitem__(3, (step[3] + 1) % len(parts.header["C"])))


def raise_at_no_tree_node(parts, rng):
    return _step(parts, rng, [b"R"], lambda at, step: step.__setitem__(3, 65_000))


def raise_too_late(parts, rng):
    """After the search node is closed or split."""
    return _step(parts, rng, [b"R"], lambda at, step: parts.steps.append(parts.steps.pop(at)))


def raise_without_tables(parts, rng):
    if parts.header["model"] != "margot" and parts.header["losses"]["kind"] == "labels":
        return False
    parts.steps.insert(0, [b"R", 0, [[0]], 0])
    parts.header["steps"] += 1


def raises_swapped(parts, rng):
    """The points of two search nodes are exchanged."""
    one, other = parts.pick(rng, [b"R"]), parts.pick(rng, [b"R"])
    if one is None or one == other:
        return False
    a, b = parts.steps[one], parts.steps[other]
    a[2], b[2] = b[2], a[2]


def loss_by_one_digit(parts, rng):
    """The claim is raised to just above what the weakest leaf proves, so one digit decides."""
    claim = parts.header["claim"]
    claim["bound"] += (claim["objective"] - claim["bound"]) * 0.9


FILES = (
    cut_off, byte_of_the_header, byte_of_the_steps, more_at_the_end, no_end, end_too_early, block_twice,
    block_left_out, blocks_swapped, another_version, another_kind_of_file, nothing, header_nested,
    header_with_an_entry_twice, header_in_another_encoding, header_of_a_number_with_many_digits, earlier_version,
)  # fmt: skip
#: What always makes a proof wrong.
WRONG = (
    bound_raised, bound_above_the_tree, bound_no_number, objective_lowered, weight_of_the_tree, another_C,
    another_eps, another_depth, another_model, another_model_throughout, another_budget, another_grouping,
    another_alpha, another_digest, steps_miscounted, entry_left_out, number_of_the_data, label_of_the_data,
    weight_of_the_data, row_left_out, rows_swapped, leaf_left_out, split_left_out, leaf_twice, leaf_of_another_node,
    children_the_same, child_unknown, child_is_its_parent, sample_that_there_is_not, tree_node_that_there_is_not,
    kind_unknown, multiplier_no_number, multiplier_infinite, sample_twice, sample_not_here,
    balance_that_there_is_not, way_unknown, raise_of_no_node, raise_at_no_tree_node, raise_too_late,
    raise_without_tables, class_without_weight, class_weights_of_another_type, table_of_another_type,
    depth_that_is_not_whole, whole_number_of_another_type, budget_of_another_type, number_of_another_type,
    entry_that_is_not_known, costs_below_what_floats_round, costs_too_large, weights_of_the_tree_too_large,
    multiplier_huge, other_losses, losses_of_another_type, choices_of_another_type, class_that_there_is_not,
    class_that_is_decided, class_of_other_losses,
)  # fmt: skip
#: What makes it wrong unless what is left happens to prove the claim: exact arithmetic tells.
WEAKER = (
    offset_of_the_tree, leaves_swapped, split_closed_by_nothing, children_swapped, another_sample_decided,
    another_tree_node_decided, feature_for_sample, multiplier_halved, multiplier_doubled, multiplier_negative,
    multiplier_too_large, multipliers_forgotten, all_multipliers_forgotten, full_ones_forgotten, another_balance,
    tree_nodes_swapped, as_before_for_another, loss_by_one_digit, the_rest_otherwise, raises_left_out, raise_left_out,
    raise_of_another_node, raise_at_another_tree_node, raises_swapped, labels_of_the_tree, other_factors,
    another_class_decided, the_other_loss_of_a_sample,
)  # fmt: skip


def spoilt(parts, way, rng, path):
    """Spoil a copy of the proof and return the data to check it with; None if there is nothing to spoil this way."""
    mine = parts.copy()
    if way in FILES:
        text = way(mine, rng)
        if text is None:
            return None
        path.write_bytes(text)
        return mine.data
    if way(mine, rng) is False:
        return None
    mine.write(path)
    return mine.data


def both(path, data):
    """Return the claim that both checkers accept, or None; they must agree."""
    try:
        found = check.check(str(path), tuple(data))
        one = (found.objective, found.bound)
    except check.Refused as error:
        one, words = None, str(error)
    try:
        two = exact.check(str(path), *(np.asarray(part, dtype=np.float64).tolist() for part in data))
    except exact.NotProved:
        two = None
    assert one == two
    assert one or words.startswith(("line 1:", "header:", "data:", "tree:", "block ", "step ", "end:"))  # the place
    return one
