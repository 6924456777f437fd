"""Edge directions: against a naive version, and against the best hyperplane."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entries import edge_direction
from margotree.engines.local_search.kernels.reduced_problem import search_lines
from margotree.engines.local_search.node_samples import Node
from margotree.engines.node.best_subset.groups import FeatureGroups

MEAN_RANK = 5.0


def subtree_node(seed: int, n: int, p: int) -> Node:
    """No sample has a cost at the node itself; its subtree costs are smaller on one side, or equal."""
    rng = np.random.default_rng(seed)
    left_cost, right_cost = rng.integers(0, 3, (2, n)).astype(float)
    costs = {"plus": np.zeros(n), "minus": np.zeros(n), "left_cost": left_cost, "right_cost": right_cost}
    return Node(Z=rng.random((n, p)), eps=1e-6, groups=FeatureGroups(p), **costs)


def misplaced(node: Node, h: np.ndarray) -> np.ndarray:
    return np.where(h >= 0, node.right_cost > node.left_cost, node.left_cost > node.right_cost)


def naive(node: Node, h: np.ndarray, usable: np.ndarray, uniforms: np.ndarray) -> np.ndarray | None:
    """The direction that keeps the values of the nearest samples on their target sides."""
    order = np.argsort(np.abs(h))
    candidates = [i for i in order if misplaced(node, h)[i]]
    if not candidates:
        return None
    i = candidates[min(int(-MEAN_RANK * np.log(uniforms[0])), len(candidates) - 1)]
    rows = np.column_stack([node.Z * usable, np.ones(len(h))])
    most, held = int(uniforms[1] * (np.sum(usable) + 1)), []
    for j in order:
        if len(held) < most and not misplaced(node, h)[j] and np.linalg.matrix_rank(rows[[*held, j]], 1e-6) > len(held):
            held.append(j)
    d = rows[i]
    if held:
        d = d - rows[held].T @ np.linalg.lstsq(rows[held].T, d, rcond=None)[0]
    return d if np.linalg.norm(d) > 1e-5 * np.linalg.norm(rows[i]) else None


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), p=st.integers(1, 5), same=st.booleans())
def test_an_edge_direction_keeps_the_values_of_the_nearest_samples(seed, p, same):
    node, rng = subtree_node(seed, 15, p), np.random.default_rng(seed)
    if same:  # rows that depend on each other
        node.Z[5:10] = node.Z[:5]
    usable = (rng.random(p) < 0.7).astype(float)
    h = node.Z @ rng.standard_normal(p) - rng.random()
    uniforms = np.array([rng.random(), rng.random(), 0.9, rng.random()])
    d = np.empty(p + 1)
    found = edge_direction(node.reduced, h, np.argsort(np.abs(h)), usable, uniforms, d)
    expected = naive(node, h, usable, uniforms)
    assert found == (expected is not None)
    if expected is not None:
        np.testing.assert_allclose(d, expected, atol=1e-6)
        assert not np.any(d[:-1][usable == 0.0])


def test_other_samples_than_the_nearest_are_kept_at_random():
    node = subtree_node(1, 40, 4)
    node.left_cost[:20], node.right_cost[:20] = 1.0, 0.0
    node.left_cost[20:], node.right_cost[20:] = 0.0, 1.0
    h = node.Z @ [1.0, -1.0, 0.5, 0.2] - 0.3
    order, kept = np.argsort(np.abs(h)), set()
    for uniforms in np.random.default_rng(0).random((200, 4)):
        uniforms[1:3] = 0.7, 0.1
        d = np.empty(5)
        assert edge_direction(node.reduced, h, order, np.ones(4), uniforms, d)
        stays = np.flatnonzero(np.abs(node.Z @ d[:-1] + d[-1]) < 1e-9)
        assert len(stays) == 3 and not np.any(misplaced(node, h)[stays])  # of five places
        kept.update(stays)
    assert 6 <= len(kept) <= 25


def test_the_number_of_kept_samples_is_bounded():
    node = subtree_node(3, 300, 90)
    h, d = node.Z @ np.linspace(-1.0, 1.0, 90), np.empty(91)
    assert edge_direction(node.reduced, h, np.argsort(np.abs(h)), np.ones(90), np.array([0.5, 0.99, 0.9, 0.0]), d)
    assert np.count_nonzero(np.abs(node.Z @ d[:-1] + d[-1]) < 1e-9) == 64


def test_without_misplaced_samples_there_is_no_direction():
    node = subtree_node(2, 10, 2)
    h = np.where(node.left_cost > node.right_cost, 1.0, -1.0)
    assert not edge_direction(node.reduced, h, np.arange(10), np.ones(2), np.full(4, 0.5), np.empty(3))


def least(node: Node) -> float:
    """The smallest subtree costs of a hyperplane of two features: near one of those through two samples."""
    best = min(np.sum(node.left_cost), np.sum(node.right_cost))
    for i, j in combinations(range(len(node.Z)), 2):
        (x, y), (u, v) = node.Z[i], node.Z[j]
        w = np.array([v - y, x - u])
        h = node.Z @ w - w @ node.Z[i]
        h[[i, j]] = 0.0
        for sides in product((-1.0, 1.0), repeat=2):  # of the two themselves
            for sign in (1.0, -1.0):
                right = sign * h > 0
                right[[i, j]] = np.array(sides) > 0
                best = min(best, np.sum(np.where(right, node.right_cost, node.left_cost)))
    return float(best)


@pytest.mark.parametrize("n_edges", [0, 300])
def test_edge_directions_lead_to_the_best_division_of_samples(n_edges):
    """Searches along features and offsets mostly end in a local minimum; with edge directions they mostly do not."""
    reached = 0
    for seed in range(30):
        node, rng = subtree_node(seed, 14, 2), np.random.default_rng(seed)
        w, b = 1e-2 * rng.standard_normal(2), 0.0
        b = -float(np.median(node.Z @ w))
        h = node.Z @ w + b
        at = np.array([b, 0.5 * w @ w + np.sum(np.where(h >= 0, node.right_cost, node.left_cost))])
        for _ in range(3):
            search_lines(
                node.reduced, w, h, at, np.empty((0, 3)), np.arange(2), rng.random((n_edges, 4)), node.eps, 2, np.inf,
                np.zeros(1),
            )  # fmt: skip
        assert at[1] >= least(node)
        reached += at[1] < least(node) + 0.5
    assert reached >= 20 if n_edges else reached <= 12
