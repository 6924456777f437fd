"""Rows to leaves at full speed: the same leaves as by scaling first, on the planes, beside them and far away."""

import warnings

import numpy as np
import pytest

from margotree import Tree
from margotree.problem import Splits
from margotree.tree import Scaling, routing


def some_tree(seed: int, depth: int, p: int, *, units: float = 1.0, offset: float = 0.0) -> tuple[Tree, np.ndarray]:
    """A tree with whole weights, so that many samples lie exactly on its planes."""
    rng = np.random.default_rng(seed)
    n = 2**depth - 1
    X = rng.integers(-3, 4, (500, p)) * units + offset
    w, b = rng.integers(-2, 3, (n, p)).astype(float), rng.integers(-2, 3, n).astype(float)
    scaling = Scaling(offset=np.full(p, offset), scale=np.full(p, units))
    return Tree(splits=Splits(w=w, b=b), scaling=scaling, classes=np.array(["a", "b"])), X


def route_by_scaling(tree: Tree, X: np.ndarray) -> np.ndarray:
    """The leaf of each sample, one node after the other, in scaled units."""
    scaled, at = tree.scaled(X), np.zeros(len(X), dtype=np.int64)
    for t in range(tree.n_nodes):
        at = np.where(at == t, 2 * t + 1 + tree.side(scaled, t)[1], at)
    return at


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("units", "offset"), [(1.0, 0.0), (1e-9, 7.0), (0.1, 1e9), (1e8, -3e8), (1e-300, 0.0)])
@pytest.mark.parametrize("depth", [1, 3, 6])
def test_leaves_are_those_of_scaling_first(depth, units, offset, compiled, monkeypatch):
    import numba  # noqa: F401, as a fit would

    monkeypatch.setattr(routing, "MIN_ROWS_COMPILED", 0 if compiled else 10**9)
    for seed in range(5):
        tree, X = some_tree(seed, depth, 4, units=units, offset=offset)
        assert np.array_equal(tree.apply(X), route_by_scaling(tree, X))
        nudged = X + units * 1e-9 * np.random.default_rng(seed).normal(size=X.shape)  # about as far as ties reach
        assert np.array_equal(tree.apply(nudged), route_by_scaling(tree, nudged))
        assert np.array_equal(tree.predict(X), tree.classes[tree.leaf_class[route_by_scaling(tree, X) - tree.n_nodes]])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_missing_number_is_said_wherever_it_is(bad, compiled, monkeypatch):
    monkeypatch.setattr(routing, "MIN_ROWS_COMPILED", 0 if compiled else 10**9)
    tree, X = some_tree(0, 2, 3)
    X[321, 1] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        tree.predict(X)


def test_huge_numbers_and_no_rows_are_routed():
    tree, X = some_tree(0, 2, 3)
    assert np.array_equal(tree.apply(X * 1e200), route_by_scaling(tree, X * 1e200))
    assert tree.apply(X[:0]).shape == (0,) and tree.predict(X[:0]).shape == (0,)
    assert np.array_equal(tree.apply(np.asfortranarray(X)), route_by_scaling(tree, X))


@pytest.mark.parametrize("depth", [1, 3])
def test_huge_values_go_where_exact_numbers_would(depth):
    """Also where a weight is 0 beside them, and where two huge terms cancel or nearly do."""
    from fractions import Fraction

    rng = np.random.default_rng(depth)
    n = 2**depth - 1
    w = rng.choice([-3.0, -0.5, 0.0, 0.5, 3.0], size=(n, 4))
    scale = np.array([3e-5, 3e-5, 1.0, 1e-300])
    scaling = Scaling(offset=np.array([0.0, 1e-5, -1e300, 0.0]), scale=scale)
    tree = Tree(splits=Splits(w=w, b=rng.normal(size=n)), scaling=scaling, classes=[0, 1])
    values = [0.0, 1.0, -1.0, 1e-300, 1e150, 1e304, -1e304, 1e308, -1e308, 1.7e308, -1.7e308]
    X = rng.choice(values, size=(300, 4))
    X[:20, 1] = X[:20, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leaf, score = tree.apply(X), tree.decision_function(X)
        assert np.all(np.isfinite(score)) and np.all((score > 0) == (tree.predict(X) == 1))
        assert np.all(np.isfinite(tree.scaled(X))) and np.isfinite(tree.path(X[0])[0].h)
        again = [tree.apply(X[k : k + 1])[0] for k in range(len(X))]
    assert leaf.tolist() == again
    for x, at in zip(X.tolist(), leaf.tolist(), strict=True):
        v = 0
        while v < n:
            away = [Fraction(x[j]) - Fraction(scaling.offset[j]) for j in range(4)]
            terms = [Fraction(w[v, j]) * away[j] / Fraction(scale[j]) for j in range(4)]
            h = sum(terms, Fraction(tree.splits.b[v]))
            if abs(h) <= Fraction(1, 2**48) * max(map(abs, terms)):
                break  # within rounding
            v = 2 * v + (2 if h >= -Fraction(tree.tie(v)) else 1)
        else:
            assert v == at


def test_a_trained_tree_takes_huge_values():
    from margotree import MargotClassifier

    model = MargotClassifier(C=1, depth=1).fit([[0], [1e-5], [2e-5], [3e-5]], [0, 0, 1, 1])
    deep = MargotClassifier(C=1).fit([[0], [1e-5], [2e-5], [3e-5]], [0, 0, 1, 1])
    module = {}
    exec(deep.to_python(), module)
    for one in (model, deep):
        assert one.predict([[1e304], [-1e304]]).tolist() == [1, 0] == module["predict_many"]([[1e304], [-1e304]])
