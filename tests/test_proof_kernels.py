"""Kernels of proofs against plain implementations: multipliers of records, hulls and hyperplanes, and steps."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import nnls

from margotree.engines.exact.kernels import (
    child_nodes,
    implied_sides,
    leaf_multipliers,
    node_multipliers,
    recorded_bounds,
)
from margotree.engines.exact.kernels import proof_steps as dives
from margotree.engines.exact.kernels.listed_supports import Samples, Table, search
from margotree.engines.exact.kernels.merged_samples import ProofSamples, distribute_multipliers
from margotree.engines.exact.kernels.node_record import COLD, FEATURE_AT_KINK, FEATURE_USED
from margotree.engines.exact.kernels.proof_bytes import (
    BYTES_PER_SAMPLE,
    LEAF_HEAD,
    POINT_HEAD,
    RAISE_HEAD,
    SPLIT_BYTES,
    new_buffer,
)
from margotree.engines.exact.kernels.routing import ABOVE, BELOW, BOTH, BY_SIDE, OPEN
from margotree.engines.exact.proof_log import ProofLog
from margotree.engines.exact.proof_log_base import ProofPart, sides
from margotree.engines.exact.search import Record
from margotree.engines.exact.support_proof_log import ProofNode, SupportLog
from margotree.engines.node.kernels.workspace import AT_COST, AT_LOWER, AT_MARGIN
from margotree.engines.numba_backend import kernel
from margotree.problem import Problem, topology
from margotree.proof.write import NOTHING, REMOTE_BASE, SAME_POINT, StepFile, Steps, point, point_arrays

# -- points of records -------------------------------------------------------------------------------------------------


def proof_items(y, cost, depth, n_features=0):
    """Items of samples with one label each."""
    m, T = len(y), len(cost)
    offset = m * (2 + depth)
    return leaf_multipliers.ProofItems(
        m, np.arange(m), np.tile(np.asarray(y, np.int64), (T, 1)), cost, sides(T), False, offset, offset
    )


def random_items(rng, m, depth, cost):
    """Items of samples of three classes with choices, or of numeric targets: two items per sample."""
    T = 2**depth - 1
    chooses = bool(rng.integers(2))
    K = 3 if chooses else 1
    code = np.full((T, K), OPEN if chooses else BY_SIDE)
    code[T // 2 :] = OPEN if chooses else BOTH
    offset = m * (3 + depth - 1) + m
    return leaf_multipliers.ProofItems(
        m, rng.integers(K, size=m), code, np.tile(cost, 2), sides(T), chooses, offset, offset + T * K * chooses
    )


def random_records(rng, items, count=6, n=0):
    """Random records in the format of `node_record.save_record`."""
    (T, M), m = items.cost.shape, items.samples
    codes = np.zeros((count, items.feature_offset + T * n), np.uint8)
    codes[:, : 2 * m : 2] = rng.integers(T, size=(count, m))
    statuses = codes[:, 2 * m : items.choice_offset]
    statuses[:] = rng.choice([AT_LOWER, AT_COST, AT_MARGIN], size=statuses.shape, p=[0.5, 0.3, 0.2])
    statuses[:, :m][rng.random((count, m)) < 0.02] = COLD
    if items.chooses:
        choices = codes[:, items.choice_offset : items.feature_offset].reshape(count, T, -1)
        choices[:, : T // 2] = rng.integers(3, size=choices[:, : T // 2].shape)
        choices[:, T // 2 :] = rng.integers(4, size=choices[:, T // 2 :].shape)
    codes[:, items.feature_offset :] = rng.integers(FEATURE_AT_KINK + 1, size=(count, T * n))
    return codes, rng.normal(size=(count, T * (2 + M + n)))


def plain_points(codes, floats, items, n):
    """For every tree node of one record: items at full cost, items with a value, multipliers, sides and labels."""
    (T, M), m, used, points = items.cost.shape, items.samples, 0, []
    depth = topology.level(T)
    place = codes[: 2 * m : 2] + 256 * codes[1 : 2 * m : 2].astype(int)
    for t in range(T):
        taken = items.side_of[t][place]
        code = items.code[t]
        if items.chooses:
            code = codes[items.choice_offset + t * 3 :][:3].astype(int) - 1
        found = []  # item, status, label, side, whether it is one of two of a third class
        for i in np.flatnonzero(taken != leaf_multipliers.NOT_HERE):
            mine, status = code[items.group[i]], codes[2 * m + topology.level(t) * m + i]
            if mine == BOTH:
                found.append((i, status, 1, 0, items.chooses))
                found.append((m + i, codes[m * (2 + depth) + i], -1, 0, items.chooses))
            elif mine in (BELOW, ABOVE):
                found.append((i, status, mine, taken[i], False))
            elif taken[i] != 0:
                found.append((i, status, taken[i], taken[i], False))
        used += 2
        full, given, v = [], [], np.zeros(M)
        side, label = np.full(M, leaf_multipliers.NOT_HERE), np.zeros(M)
        cold = any(status == COLD for _, status, *_ in found)
        for i, status, mine, taken_side, third in sorted(found):
            side[i], label[i] = taken_side, mine
            if cold:
                continue
            against = taken_side == -mine
            v[i] = items.cost[t, i] if against or status == AT_COST else 0.0
            if status not in (AT_LOWER, AT_COST):
                nu = -floats[used] if against else floats[used]
                v[i] = np.clip(nu, -np.inf if against else 0.0, np.inf if taken_side == mine else items.cost[t, i])
                given.append(i)
                used += 1
            elif status == AT_COST and not against and not third:
                full.append(i)
            elif status == AT_LOWER and third:
                given.append(i)
        is_empty = cold or (not full and not given and not any(v[i] for i, *_, third in found if third))
        used += np.count_nonzero(codes[items.feature_offset + t * n :][:n] == FEATURE_AT_KINK)
        points.append((is_empty, full, given, v, side, label))
    return points


def fits(balance, y, cost, side, v):
    """Whether the number that makes the sum 0, exactly, is in the range of the sample that balances."""
    rest = -sum(Fraction(float(y[i])) * Fraction(v[i]) for i in range(len(y)) if i != balance)
    mine = rest * Fraction(float(y[balance]))
    low = mine >= 0 or side[balance] == -y[balance]
    return low and (mine <= Fraction(cost[balance]) or side[balance] == y[balance])


@pytest.mark.parametrize("penalised", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_points_of_many_records_agree_with_plain_ones(seed, depth, penalised):
    rng = np.random.default_rng(seed)
    m, n, T = 12, 3 if penalised else 0, 2**depth - 1
    cost = rng.choice([1.0, 1.0, 0.3], (T, m)) if seed % 2 else np.ones((T, m))
    items = proof_items(rng.choice([-1, 1], m), cost, depth) if seed < 6 else random_items(rng, m, depth, cost)
    M = items.cost.shape[1]
    codes, floats = random_records(rng, items, n=n)
    buffer, ends = new_buffer(6 * T * (POINT_HEAD + BYTES_PER_SAMPLE * M)), np.zeros((6, T), np.int64)
    unbalanced = leaf_multipliers.write_points(codes, floats, items, n, 4.0, buffer, ends, np.zeros((3, M + 1)))
    text, begin = buffer.out.tobytes(), 0
    for k in range(6):
        twins = plain_points(codes[k], floats[k], items, n)
        for t, (is_empty, full, given, v, side, label) in enumerate(twins):
            point, begin = text[begin : ends[k, t]], int(ends[k, t])
            if is_empty:
                assert point == b"\0"
                continue
            assert point[0] == 2
            got = point_arrays(point)
            assert got[0].tolist() == full and got[1].tolist() == given
            assert np.array_equal(got[2], 4.0 * v[given])
            if got[3] == leaf_multipliers.NO_SAMPLE:
                unbalanced -= 1
            else:
                assert side[got[3]] != leaf_multipliers.NOT_HERE
                assert fits(got[3], label, items.cost[t], side, v)
    assert unbalanced == 0


def test_a_sample_balances_where_all_multipliers_are_at_their_limits():
    """Two samples at full cost and two at 0, of both labels: the sum is 0 to the last digit."""
    m, y = 4, np.array([1.0, -1.0, 1.0, -1.0])
    codes = np.zeros((1, 3 * m), np.uint8)
    codes[0, 2 * m :] = AT_COST, AT_COST, AT_LOWER, AT_LOWER
    buffer, ends = new_buffer(100), np.zeros((1, 1), np.int64)
    for cost in (np.full((1, m), 0.1), np.array([[0.1, 0.1 + 2**-56, 0.1, 0.1]])):
        assert not leaf_multipliers.write_points(
            codes, np.zeros((1, 2)), proof_items(y, cost, 1), 0, 1.0, buffer, ends, np.zeros((3, m + 1))
        )
        balance = point_arrays(buffer.out[: ends[0, 0]].tobytes())[3]
        assert fits(balance, y, cost[0], np.zeros(m), np.array([cost[0, 0], cost[0, 1], 0.0, 0.0]))


def test_no_sample_balances_where_the_sign_of_the_sum_is_not_safe():
    """Costs of very different sizes: their sum has more digits than two numbers, so exact arithmetic is needed."""
    y, cost = np.ones(4), np.array([[1.0, 2.0**-60, 2.0**-130, 0.5]])
    y[0], codes = -1.0, np.zeros((1, 12), np.uint8)
    codes[0, 8:] = AT_COST, AT_COST, AT_COST, AT_LOWER
    buffer, ends = new_buffer(100), np.zeros((1, 1), np.int64)
    found = leaf_multipliers.write_points(
        codes, np.zeros((1, 2)), proof_items(y, cost, 1), 0, 1.0, buffer, ends, np.zeros((3, 5))
    )
    assert found == 1
    assert point_arrays(buffer.out[: ends[0, 0]].tobytes())[3] == leaf_multipliers.NO_SAMPLE


# -- multipliers on few features ---------------------------------------------------------------------------------------


def random_samples(rng, m=20, n=3, coarse=False):
    X = np.round(rng.normal(size=(n, m)), 0 if coarse else 6)
    code, levels = np.zeros((n, m), np.int64), np.full(n, 1 << 20)
    if coarse:
        for j in range(n):
            values, code[j] = np.unique(X[j], return_inverse=True)
            levels[j] = len(values)
    return Samples(X, rng.choice([-1.0, 1.0], m), np.ones((1, m)), code, levels, 1e3, np.zeros(n, np.int8))


def worth(samples, members, eps, cols, point):
    """The value of a point by the rules of proofs, in fractions."""
    full, given, values, balance = point_arrays(point)
    assert point[0] in (2, 3) and not set(full) & set(given) and balance not in (*full, *given)
    y, total, u = samples.y, Fraction(0), [Fraction(0)] * len(cols)
    cost, side = (
        dict(zip(members.sample_ids, members.cost, strict=True)),
        dict(zip(members.sample_ids, members.side, strict=True)),
    )
    v = {i: Fraction(float(cost[i])) for i in members.sample_ids if point[0] == 2 and side[i] == -y[i]}
    v |= {i: Fraction(float(cost[i])) for i in full} | dict(zip(given, map(Fraction, values.tolist()), strict=True))
    v[balance] = -sum(Fraction(y[i]) * x for i, x in v.items() if i != balance) * Fraction(y[balance])
    for i in members.sample_ids:
        number, c, d = v.get(i, Fraction(0)), Fraction(float(cost[i])), Fraction(eps) if side[i] < 0 else Fraction(0)
        assert number >= 0 or side[i] == -y[i]
        assert number <= c or side[i] == y[i]
        if side[i] == y[i]:
            total += min(c * max(0, 1 - g) + number * g for g in (d, max(Fraction(1), d)))
        else:
            total += number if side[i] == 0 else c * (1 + d) - number * d
        for r, j in enumerate(cols):
            u[r] += Fraction(y[i]) * number * Fraction(samples.X[j, i])
    return total - sum(x * x for x in u) / 2


def hulls_apart(Z, side):
    """The distance of the hulls of the two sides, by least squares with weights of at least 0."""
    far = 1e4
    right, left = Z[side > 0], Z[side < 0]
    A = np.vstack([
        np.column_stack([right.T, -left.T]),
        far * np.concatenate([np.ones(len(right)), np.zeros(len(left))]),
        far * np.concatenate([np.zeros(len(right)), np.ones(len(left))]),
    ])  # fmt: skip
    return nnls(A, np.concatenate([np.zeros(Z.shape[1]), [far, far]]))[1]


def one_support_each(n_upper, cols, m, only=None):
    """Upper tree nodes, or ``only`` one of them, with this support; no samples are collected yet."""
    placed = implied_sides.new_placed_samples(n_upper, len(cols), m)
    placed.cols[:] = cols
    placed.size[slice(None) if only is None else only] = len(cols)
    return placed


@pytest.mark.parametrize("seed", range(60))
def test_sides_are_too_close_where_hulls_are(seed):
    rng = np.random.default_rng(seed)
    n, m, eps = int(rng.integers(1, 4)), 20, 1e-3
    samples, cols, buffer = random_samples(rng, m=m, n=n, coarse=seed % 3 == 0), np.arange(n), new_buffer(1000)
    side = rng.choice([-1.0, 1.0], m)
    if seed % 2:  # sides of a split, so that the hulls are disjoint
        side = np.where(samples.X[0] + 0.1 * rng.normal() > 0, 1.0, -1.0)
    side[rng.random(m) < 0.5] = 0.0  # undecided
    j = int(rng.integers(-1, m))
    # The sides are those of places 1, 2 and 0, except for sample j.
    place, sides_of = np.where(side < 0, 1, np.where(side > 0, 2, 0)).astype(np.uint16), np.array([0.0, -1.0, 1.0])
    if j >= 0:
        side[j] = side[j] or 1.0
        place[j] = 0
    who, cost = np.flatnonzero(side), np.ones(m)
    members = ProofSamples(who, samples.y[who], side[who], cost[who], side[who])
    terms, placed = implied_sides.ProofTerms(sides_of[None], cost[None], eps, 1.0), one_support_each(1, cols, m)
    asked = float(side[j]) if j >= 0 else 0.0
    apart = hulls_apart(samples.X[:, who].T, side[who]) if len(set(side[who])) == 2 else math.inf
    # Weights that separate them have length eps / distance.
    least = 0.5 * (eps / apart) ** 2 if apart > 1e-6 else math.inf
    for target in (1e-9, 1e-7, 1e-5, 1.0, 100.0):
        end, value = implied_sides.exclude_side(
            samples, terms, placed, place, np.int64(0), np.int64(j), asked, target, buffer
        )
        if target < 0.4 * least and math.isfinite(apart):
            assert end > 0, (target, least)
        if end > 0:
            assert target < 1.01 * least + 2.0 * len(who)  # samples on the wrong side have a loss, too
            assert worth(samples, members, eps, cols, buffer.out[:end].tobytes()) >= value >= target


@pytest.mark.parametrize("t", [0, 1])
@pytest.mark.parametrize("seed", range(30))
def test_implied_sides_agree_with_single_ones(seed, t):
    """Samples on both sides of a line at tree node ``t`` of seven, some known to the proof."""
    rng = np.random.default_rng(seed)
    n, m, T, eps, target = int(rng.integers(1, 3)), 40, 7, 1e-3, 10.0
    samples, cols, cost, side_of = random_samples(rng, m=m, n=n), np.arange(n), np.ones(m), sides(T).astype(float)
    place = np.where(samples.X[0] > 0.2, 2 * t + 2, 2 * t + 1)
    place[0], place[1] = t, 4 if t == 0 else 2  # one is undecided; one is at a deeper node, or at another one
    known = np.where(rng.random(m) < 0.3, place, t).astype(np.uint16)
    who, before = np.flatnonzero((known == t) & (rng.random(m) < 0.8)), known.copy()
    terms, placed = implied_sides.ProofTerms(side_of, np.ones((T, m)), eps, 2.0), one_support_each(3, cols, m, only=t)
    numbers, narrow = np.array([5, 100]), seed % 2 == 1
    buffer = new_buffer((1 if narrow else m) * (SPLIT_BYTES + LEAF_HEAD + T + POINT_HEAD + 24 * (n + 3)) + 200)
    text, told, enough = b"", 0, False
    while not enough:  # as many as there is space for
        end, count, enough = implied_sides.prove_sides(
            samples, terms, placed, place, known, who, target, numbers, buffer
        )
        assert bool(count) == (end > 0) and (enough or count)
        text, told = text + buffer.out[:end].tobytes(), told + count
    assert len(text) > 0  # some sides follow
    node, at, place_then = 5, 0, before.copy()
    while at < len(text):
        kind, parent, j, where, left, right = struct.unpack_from("<cIIHII", text, at)
        assert (kind, parent, where) == (b"S", node, t) and j in who and place_then[j] == t
        side = side_of[t][place[j]]
        other, node = (left, right) if side > 0 else (right, left)
        assert struct.unpack_from("<cI", text, at + 19) == (b"L", other)
        at += 24 + t
        _, full, given, _ = struct.unpack_from("<BIII", text, at)
        point = text[at : at + POINT_HEAD + 4 * full + BYTES_PER_SAMPLE * given]
        at += len(point)
        assert text[at - len(point) - t : at - len(point)] == bytes(t) and text[at : at + T - 1 - t] == bytes(T - 1 - t)
        at += T - 1 - t
        taken = side_of[t][place_then]
        taken[j] = -side
        here = np.flatnonzero(np.abs(taken) == 1)
        scaled = point[: POINT_HEAD + 4 * (full + given)] + (np.frombuffer(point[-8 * given :]) / 2.0).tobytes()
        members = ProofSamples(here, samples.y[here], taken[here], cost[here], taken[here])
        assert worth(samples, members, eps, cols, scaled) >= target
        place_then[j] = 2 * t + (2 if side > 0 else 1)
    assert np.array_equal(place_then, known) and numbers[0] == node
    assert told == np.count_nonzero(known != before) and numbers[1] == 100 + 2 * told
    twin = before.copy()
    for j in who[np.abs(side_of[t][place[who]]) == 1]:
        side = side_of[t][place[j]]
        placed = one_support_each(3, cols, m)
        if implied_sides.exclude_side(samples, terms, placed, twin, np.int64(t), np.int64(j), -side, target, buffer)[0]:
            twin[j] = 2 * t + (2 if side > 0 else 1)
    # Where space runs out, samples that do not follow are tried again, and may follow from others then.
    assert np.array_equal(twin[(twin != t) | (not narrow)], known[(twin != t) | (not narrow)])


@pytest.mark.parametrize("seed", range(60))
def test_multipliers_of_a_hyperplane_prove_nearly_its_value(seed):
    rng = np.random.default_rng(seed)
    alike = seed % 3 == 2  # features with two values: equal samples are merged
    m, eps = 150 if alike else 30, 1e-3
    samples = random_samples(rng, m=m, n=2, coarse=seed % 3 == 0)
    if alike:
        samples.code[:] = samples.X > 0.3
        samples.X[:], samples.levels[:] = samples.code, 2
        samples.cost[:] = rng.choice([0.5, 1.0, 3.0], m)
    side = np.where(rng.random(m) < 0.3, np.where(samples.X[0] > 0.0, 1.0, -1.0), 0.0)
    supports = np.array([[0, 1], [0, -1]])  # both can take these sides
    table = Table(supports, np.array([2, 1]), np.zeros(2), np.zeros((2, 3)), np.zeros(2))
    cost = samples.cost[0] * (1.0 - 2.0**-50)
    lb, text = np.zeros(2), b""
    for _ in range(2):
        more, _, exact = prove(samples, table, lb, side, side, cost, node=70_000)
        text, least = text + more, np.argmin(lb)
        assert exact[least]
        lb[least] += 1e6  # so that the other one is solved, too
    lb %= 1e6
    twin = np.zeros(2)
    for _ in range(2):
        search(samples, np.int64(0), np.arange(m), side, eps, table, np.arange(2), twin, np.inf, 1e-8, np.int64(10),
               np.zeros((2, 2)))  # fmt: skip
        twin[np.argmin(twin)] += 1e6
    assert lb == pytest.approx(twin % 1e6, rel=1e-6, abs=1e-6)
    points = points_of(text, 70_000)
    for p in np.flatnonzero(lb):
        assert proved(points, samples, side, cost, supports[p]) >= (1.0 - 1e-9) * lb[p]
    assert (
        not alike or max(len(point_arrays(point)[1]) for point in points) <= 25
    )  # one for each of 24 groups, and one for the balance


def prove(samples, table, lb, side, known, cost, *, node=0, target=np.inf):
    """`recorded_bounds.search` of all supports of the table at tree node 1 of seven, where these are the sides
    of the samples, and those in the proof; upper tree nodes have several supports.

    Returns the bytes, the number of steps, and for every support whether its bound is exact.
    """
    T, m, place_of = 7, len(side), {0.0: 1, -1.0: 3, 1.0: 4, float(leaf_multipliers.NOT_HERE): 0}
    place, told = (np.array([place_of[float(x)] for x in them]) for them in (side, known))
    terms = implied_sides.ProofTerms(sides(T).astype(float), np.tile(cost, (T, 1)), 1e-3, 1.0)
    placed, samples = implied_sides.new_placed_samples(3, 1, m), samples._replace(cost=np.tile(samples.cost, (T, 1)))
    buffer, numbers, told, over = new_buffer(6000), np.array([node, 100]), told.astype(np.uint16), False
    text, count, state = b"", 0, np.zeros(len(lb), np.int8)
    while not over:
        _, over, end, steps = recorded_bounds.search(
            samples, terms, placed, np.int64(1), np.arange(m), np.asarray(side, float), place, told, 10.0, table,
            np.arange(len(lb)), lb, state, target, 1e-8, np.zeros((2, 2)), 1e-10, numbers, buffer,
        )  # fmt: skip
        text, count = text + buffer.out[:end].tobytes(), count + steps
    return text, count, state == recorded_bounds.EXACT


def points_of(text, node):
    """The points of steps that raise bounds of tree node 1."""
    points, at = [], 0
    while at < len(text):
        assert struct.unpack_from("<cIH", text, at) == (b"R", node, 1)
        full, given = struct.unpack_from("<II", text, at + RAISE_HEAD + 1)
        begin, at = at + RAISE_HEAD, at + RAISE_HEAD + POINT_HEAD + 4 * full + BYTES_PER_SAMPLE * given
        points.append(text[begin:at])
    return points


def proved(points, samples, side, cost, support):
    """What the points prove of a support."""
    members = ProofSamples(np.arange(len(side)), samples.y, side, cost, side)
    return max(worth(samples, members, 1e-3, [j for j in support if j >= 0], point) for point in points)


@pytest.mark.parametrize("seed", range(12))
def test_points_raise_bounds_of_other_supports_where_samples_are_equal(seed):
    """Features with two values, all pairs of five and one alone: no bound is above what its points prove, or above the
    value of its support, and there are fewer points than supports."""
    rng = np.random.default_rng(seed)
    m, side, pairs = 120, np.zeros(120), [(i, j) for i in range(5) for j in range(i + 1, 5)]
    samples = random_samples(rng, m=m, n=5)
    samples.code[:] = samples.X > 0.3
    samples.X[:], samples.levels[:] = samples.code, 2
    supports = np.array([*pairs, (3, -1)])
    size = np.array([2] * len(pairs) + [1])
    table = Table(supports, size, np.zeros(11), np.zeros((11, 3)), np.zeros(11))
    values = np.empty(11)
    for p in range(11):
        one = np.zeros(1)
        search(samples, np.int64(0), np.arange(m), side, 1e-3, table, np.array([p]), one, np.inf, 1e-8, np.int64(10),
               np.zeros((2, 2)))  # fmt: skip
        values[p] = one[0]
    cost, lb = samples.cost[0] * (1.0 - 2.0**-50), np.zeros(11)
    target = 0.98 * values.min() if seed % 2 else np.inf  # all reach the target, or the least bound is exact
    text, _, exact = prove(samples, table, lb, side, side, cost, target=target)
    points = points_of(text, 0)
    assert lb.min() == pytest.approx(values.min(), rel=1e-6) if target == np.inf else lb.min() >= target
    assert np.all(lb <= values * (1.0 + 1e-9)) and (exact.any() or target < np.inf)
    for p in range(11):
        assert proved(points, samples, side, cost, supports[p]) >= (1.0 - 1e-9) * lb[p]
    assert len(points) < (8 if seed % 2 else 11)


def test_multiplier_of_a_group_goes_to_known_samples_first():
    kind, cost = np.array([0, 0, 0, 1, 1, 2, 2, 3]), np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    side = np.array([0.0, 0.0, 0.0, 1.0, 1.0, -1.0, -1.0, 0.0])  # all labels are 1: undecided, along, against
    known = np.where(np.arange(8) == 0, leaf_multipliers.NOT_HERE, side)
    kind, v, total = kind.astype(np.int32), np.full(8, np.nan), np.array([2.0, 2.5, 1.25, 0.0])
    members, first = ProofSamples(np.arange(8), np.ones(8), side, cost, known), np.array([0, 3, 5, 7])
    few = ProofSamples(first, np.ones(4), side[first], np.array([4.0, 2.0, 2.0, 1.0]), side[first])

    @kernel()
    def share(members, kind, few, total, balance, v):
        return distribute_multipliers(members, kind, few, total, balance, v)

    # A total of 2 of 4: the second sample alone; above full cost and below it: the first of its group.
    assert share(members, kind, few, total, 1, v) == 3
    assert v.tolist() == [0.0, 2.0, 0.0, 1.5, 1.0, 0.25, 1.0, 0.0]
    # The balancing sample is moved away from its limits: the second one exchanges with another.
    assert share(members, kind, few, total, 0, v) == 1
    assert v[:3].tolist() == [0.0, 1.5, 0.5]
    # No sample balances where the total of its group is 0.
    assert share(members, kind, few, total, 3, v) == -1
    # A group at full cost: each sample at its own.
    assert share(members, kind, few, np.array([4.0, 2.5, 2.0, 0.0]), 1, v) == 3
    assert v.tolist() == [1.0, 2.0, 1.0, 1.5, 1.0, 1.0, 1.0, 0.0]


def one_support(seed):
    """Ten samples without sides, and a table of their one feature."""
    samples = random_samples(np.random.default_rng(seed), m=10, n=1)
    return samples, Table(np.zeros((1, 1), np.int64), np.ones(1, np.int64), np.zeros(1), np.zeros((1, 2)), np.zeros(1))


def test_no_point_is_written_for_samples_with_unknown_sides():
    """The proof does not show that samples reach the tree node, and the root's sides do not show it either."""
    samples, table = one_support(0)
    nowhere, here, cost = np.full(10, leaf_multipliers.NOT_HERE), np.zeros(10), samples.cost[0]
    # The root has no support, so no sides follow there, and no bound is proved.
    lb = np.zeros(1)
    assert prove(samples, table, lb, here, nowhere, cost) == (b"", 0, [False])
    assert lb[0] == 0.0
    # With all places in the proof, the point is written.
    text, count, _ = prove(samples, table, lb, here, here, cost)
    assert (text[:1], count) == (b"R", 1) and lb[0] > 0.0


def test_implied_sides_are_written_before_the_point_that_uses_them():
    """Samples on the left of the root, equal except for labels; the proof has one on each side of the root."""
    samples, table = one_support(0)
    samples.X[:] = np.append(np.zeros(9), 1.0)
    samples.y[:] = np.tile([1.0, -1.0], 5)
    samples, who = samples._replace(cost=np.ones((7, 10))), np.arange(10)
    terms = implied_sides.ProofTerms(sides(7).astype(float), np.ones((7, 10)), 1e-3, 1.0)
    placed = one_support_each(3, np.arange(1), 10, only=0)
    place, known = (
        np.append(np.ones(9, np.int64), 2),
        np.append(np.ones(1), np.append(np.zeros(8), 2)).astype(np.uint16),
    )
    numbers, buffer, lb = np.array([5, 20]), new_buffer(5000), np.zeros(1)
    p, over, end, steps = recorded_bounds.search(
        samples, terms, placed, np.int64(1), who[:9], np.zeros(9), place, known, 10.0, table, who[:1], lb,
        np.zeros(1, np.int8), np.inf, 1e-8, np.zeros((2, 2)), 1e-10, numbers, buffer,
    )  # fmt: skip
    told = np.count_nonzero(known[:9] == 1) - 1
    assert p == 0 and over and lb[0] == pytest.approx(8.0) and told > 0 and steps == 2 * told + 1
    assert numbers.tolist() == [20 + 2 * told - 2, 20 + 2 * told]  # on the left of the last decision
    text = buffer.out[:end].tobytes()
    assert text[:1] == b"S" and struct.unpack_from("<cIH", text, text.rindex(b"R")) == (b"R", numbers[0], 1)


@kernel()
def unknown(members, eps, v, balance):
    found = np.zeros(v.size, np.bool_)
    for i in range(v.size):
        found[i] = node_multipliers.is_unknown(members, eps, i, v, balance)
    return found


@kernel()
def can_balance(members, balance, least, v):
    return node_multipliers._can_balance(members, balance, least, v)


@pytest.mark.parametrize(
    ("others", "side", "can"),
    [
        ((0.25, 0.75), 0.0, True),  # at its cost, exactly
        ((0.25, 0.75 + 2**-53), 0.0, False),  # slightly above: the sum is 1 in floats
        ((0.25, 0.75 + 2**-53), 1.0, True),  # which is allowed along its label
        ((0.25, 0.75 + 2**-53), -1.0, False),
        ((0.25, -0.25), 0.0, True),  # at 0, exactly
        ((0.25, -0.25 - 2**-54), 0.0, False),
        ((0.25, -0.25 - 2**-54), -1.0, True),  # which is allowed against its label
        ((1.0, 2.0**-60), 0.0, False),  # the sum rounds to 1
    ],
)
def test_the_balancing_multiplier_is_in_range_to_the_last_digit(others, side, can):
    """The first has another label than the others: its multiplier is their sum, between 0 and its cost of 1."""
    sides_known = np.array([side, 1.0, 1.0])
    members = ProofSamples(np.arange(3), np.array([1.0, -1.0, -1.0]), sides_known, np.ones(3), sides_known)
    v = np.array([0.5, *others])
    assert can_balance(members, np.int64(0), 10.0, v) == can
    assert v[0] == 0.5  # unchanged
    # With clear space on both sides no exact sum is needed; no sample (-1) cannot balance.
    assert can_balance(members, np.int64(0), 0.1, v)
    assert not can_balance(members, np.int64(-1), 0.1, v)


def test_a_side_must_be_known_where_a_multiplier_depends_on_it():
    #     balances; as known; not there, at 0; along its label: within its cost, beyond; against it: below its cost
    side, known = (
        np.array([0.0, 1.0, 0.0, 1.0, 1.0, -1.0]),
        np.array([0.0, 1.0, leaf_multipliers.NOT_HERE, 0.0, 0.0, 0.0]),
    )
    members = ProofSamples(np.arange(6), np.ones(6), side, np.ones(6), known)
    v = np.array([0.5, 7.0, 0.0, 0.5, 1.5, 0.5])
    assert unknown(members, 1e-3, v, np.int64(0)).tolist() == [False] * 4 + [True] * 2
    # With so wide a band the side matters for a sample sent along its label, too.
    assert unknown(members, 2.0, v, np.int64(0)).tolist() == [False] * 3 + [True] * 3


def test_a_bound_is_raised_to_what_its_multipliers_prove():
    """In the proof samples have half the cost that they have in the search."""
    samples, table = one_support(1)
    lb, truth, side = np.zeros(1), np.zeros(1), np.zeros(10)
    text, count, _ = prove(samples, table, lb, side, side, 0.5 * samples.cost[0])
    assert (text[:1], count) == (b"R", 1)
    prove(samples, table, truth, side, side, samples.cost[0])
    found = proved(points_of(text, 0), samples, side, 0.5 * samples.cost[0], [0])
    assert 0.0 < lb[0] <= found < 0.9 * truth[0]


def test_a_full_disk_is_reported_when_the_steps_end(tmp_path):
    """The search continues meanwhile."""
    resource = pytest.importorskip("resource", reason="needs limits on the size of files")
    steps = StepFile(str(tmp_path / "a.part"), 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        for k in range(200_000):
            steps.split(b"S", k, 0, 0, 2 * k + 1, 2 * k + 2)
        with pytest.raises(OSError, match="large"):
            steps.close()
        steps.discard()  # does not raise again
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "a.part").exists()


def test_a_point_is_the_same_as_before_only_if_that_one_is_known():
    steps, a = Steps(1), point([0], [1], [0.5], 2)
    steps.leaf(1, [a])
    begin = len(steps.text)
    steps.leaf(2, [a])
    assert steps.text[begin + LEAF_HEAD :] == SAME_POINT
    begin = len(steps.text)
    steps.written(b"", 0)  # steps whose points are not known
    steps.leaf(3, [a])
    assert steps.text[begin + LEAF_HEAD :] == a


def some_steps(steps, own):
    """Steps of all kinds; search nodes from 2 on are those whose number ``own`` gives."""
    a, b = point([1], [2, 3], [0.5, 7.0], 4), point([], [], [], 1, rest=False)
    steps.split(b"S", 1, 9, 0, own(2), own(3))
    steps.raise_bounds(own(2), 2, a)
    steps.leaf(own(2), [NOTHING, b, a])  # of tree node 2 the same as before
    steps.split(b"F", own(3), 5, 1, own(4), own(5))
    steps.leaf(own(4), [a, b, NOTHING])
    steps.leaf(own(5), [a, a, a])


def test_steps_of_another_process_are_renumbered():
    theirs, ours, plain = Steps(3), Steps(3), Steps(3)
    some_steps(theirs, lambda number: number - 2 + REMOTE_BASE)
    for steps in (ours, plain):
        steps.leaf(0, [NOTHING, point([7], [], [], 1), NOTHING])
    ours.take_over(theirs.text, 70_000)
    some_steps(plain, lambda number: number - 2 + 70_000)
    for steps in (ours, plain):  # the next step depends on the one before
        steps.leaf(6, [point([1], [2, 3], [0.5, 7.0], 4)] * 3)
    assert ours.text == plain.text and ours.count == plain.count == 8


def test_a_point_is_the_same_as_before_only_if_it_follows_it():
    steps, a, b = Steps(1), point([1], [], [], 2), point([3], [], [], 4)
    steps.leaf(1, [a])
    steps.leaf(2, [a])
    assert steps.text.endswith(SAME_POINT)
    steps.written(struct.pack("<cIH", b"R", 3, 0) + b, 1, {0: b})
    steps.leaf(3, [a])
    assert steps.text.endswith(a) and steps.count == 4
    steps.leaf(4, [a])
    assert steps.text.endswith(SAME_POINT)


@pytest.mark.parametrize("kind", [ProofLog, SupportLog])
def test_least_bound_and_numbers_of_another_process(kind):
    problem = Problem.make([[0.0], [1.0]], [-1.0, 1.0], depth=2)
    ours = kind(Steps(3), problem, problem.weight, 1.0)
    theirs = Steps(3)
    theirs.split(b"S", 0, 0, 0, REMOTE_BASE, REMOTE_BASE + 9)
    part = ProofPart(text=theirs.text, nodes=10, least_closed_bound=0.25)
    left_numbers = (
        [REMOTE_BASE + 9, 0]
        if kind is ProofLog
        else [ProofNode(REMOTE_BASE + 9, np.zeros(2)), ProofNode(0, np.zeros(2))]
    )
    ours.least_closed_bound = 0.5
    left = ours.take_over(part, [Record(bound=1.0, data=(None, number), size=1) for number in left_numbers])
    assert ours.least_closed_bound == 0.25
    assert ours.finish().text == struct.pack("<cIIHII", b"S", 0, 0, 0, 1, 10)
    assert [getattr(one.data[-1], "number", one.data[-1]) for one in left] == [10, 0]
    assert ours.proof_part().nodes == 10
    with pytest.raises(OverflowError, match="more than 2147483648 search nodes"):
        ours.take_over(ProofPart(text=b"", nodes=REMOTE_BASE, least_closed_bound=1.0), [])


def test_released_numbers_are_used_again_unless_others_follow():
    problem = Problem.make([[0.0], [1.0]], [-1.0, 1.0], depth=2)
    log = SupportLog(Steps(3), problem, problem.weight, 1.0)
    assert [log.reserve(4), log.reserve(2)] == [1, 5]
    log.release(3, 5)  # others have been reserved since
    assert log.reserve(6) == 7
    log.release(9, 13)
    assert log.reserve(1) == 9


# -- steps of dives ----------------------------------------------------------------------------------------------------


def plain_numbers(log, bounds, node, first, settled_continues):
    """A plain `proof_steps.record_dive`: the results as lists."""
    closing = {child_nodes.CLOSED_CHILD, child_nodes.CLOSED_SIBLING, child_nodes.LAST_CLOSED} | (
        set() if settled_continues else {child_nodes.LAST_SETTLED}
    )
    numbers, splits = [], []
    for row, (what, item) in enumerate(log.tolist()):
        numbers.append(node)
        if what in (child_nodes.OPEN_CHILD, child_nodes.CLOSED_CHILD):
            numbers[-1] = first
            splits.append([row, node, item, first, first + 1])
            node, first = first + 1, first + 2
    closed = [row for row, what in enumerate(log[:, 0]) if what in closing]
    return numbers, splits, closed, first, min((bounds[row] for row in closed), default=math.inf)


@pytest.mark.parametrize("seed", range(20))
def test_dives_agree_with_plain_steps(seed):
    rng = np.random.default_rng(seed)
    m, n, depth, rows, K = 9, 3, 2, 30, 3
    items = random_items(rng, m, depth, np.ones((3, m)))
    M, begin = 2 * m, items.feature_offset
    codes = rng.integers(0, 3, (rows, begin + 3 * n)).astype(np.uint8)
    codes[:, : 2 * m] = 0
    codes[:, : 2 * m : 2] = rng.integers(1, 3, (rows, m))
    first_choice = M + 3 * n
    item = rng.choice([*range(m), *range(M, first_choice + 3 * K * items.chooses)], rows)
    log = np.column_stack([rng.integers(0, 6, rows), item])
    floats, used = rng.random((rows, 5)), rng.integers(0, 6, rows)
    bounds, first, settled_continues = rng.random(rows), 300, bool(seed % 2)
    numbers, splits, closed, free, least_closed_bound = plain_numbers(log, bounds, 7, first, settled_continues)
    ours, buffer, decided = np.empty(rows, np.int64), new_buffer(19 * rows), np.zeros(2, np.int64)
    closed_nodes, by_hand = dives.new_closed_nodes(rows, codes.shape[1], 5), Steps(3)
    found = dives.record_dive(
        log,
        codes,
        floats,
        used,
        bounds,
        rows,
        7,
        first,
        settled_continues,
        items,
        n,
        first_choice,
        ours,
        closed_nodes,
        decided,
        buffer,
    )
    assert found == (free, least_closed_bound) and ours.tolist() == numbers and closed_nodes.n_nodes[0] == len(closed)
    assert closed_nodes.numbers[: len(closed)].tolist() == [numbers[row] for row in closed]
    assert np.array_equal(closed_nodes.codes[: len(closed)], codes[closed])
    for k, row in enumerate(closed):
        assert np.array_equal(closed_nodes.floats[k, : used[row]], floats[row, : used[row]])
    for row, node, item, mine, follow in splits:
        t, which, kind = 0, item, b"S"
        is_first = codes[row, 2 * item] == 1 if item < m else False
        if item >= first_choice:
            (t, which), kind = divmod(item - first_choice, K), b"C"
            code = int(codes[row, items.choice_offset + item - first_choice]) - 1
            is_first = code == ABOVE if t == 0 else code != BOTH
        elif item >= m:
            (t, which), kind = divmod(item - M, n), b"F"
            is_first = codes[row, begin + item - M] == FEATURE_USED
        by_hand.split(kind, node, which, t, *((mine, follow) if is_first else (follow, mine)))
    assert buffer.out[: decided[0]].tobytes() == by_hand.text and decided[1] == len(splits)


def test_leaves_agree_with_plain_steps():
    """With points equal to those of the previous leaf, and empty ones."""
    a, b = point([1], [2, 3], [0.5, 7.0], 4), point([1], [2, 3], [0.5, 7.5], 4)
    found = [[a, NOTHING], [a, b], [b, b], [NOTHING, NOTHING], [NOTHING, b], [a, b]]
    text, by_hand, buffer = b"".join(map(b"".join, found)), Steps(2), new_buffer(1000)
    ends = np.cumsum([[len(one) for one in leaf] for leaf in found]).reshape(len(found), 2)
    points = new_buffer(len(text))
    points.out[:] = np.frombuffer(text, np.uint8)
    numbers, leaf_ends, by_hand_ends = np.arange(70_000, 70_006), np.zeros(6, np.int64), []
    end = dives.write_leaves(points, ends, numbers, buffer, leaf_ends)
    for number, leaf in zip(numbers.tolist(), found, strict=True):
        by_hand.leaf(number, leaf)
        by_hand_ends.append(len(by_hand.text))
    assert buffer.out[:end].tobytes() == by_hand.text and leaf_ends.tolist() == by_hand_ends
