import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras import optional
from margotree.problem import Problem, Splits, evaluate, tie, topology
from margotree.tree import SELECTED, Scaling, Tree

pd = optional("pandas")


def grow(*, depth=2, n=3, seed=0, X=None, y=None, **facts):
    """A random tree with counts from random samples."""
    rng = np.random.default_rng(seed)
    nodes = topology.n_nodes(depth)
    X = rng.normal(size=(60, n)) * 10.0 ** np.arange(n) if X is None else np.asarray(X, dtype=float)
    y = rng.integers(0, 2, len(X)) if y is None else y
    w = rng.normal(size=(nodes, X.shape[1])) * 3
    defaults = {
        "splits": Splits(w=w, b=-w.sum(axis=1) / 2),
        "scaling": Scaling.minmax(X),
        "classes": np.array(["no", "yes"]),
    }
    return Tree(**(defaults | facts)).counted(X, y, np.ones(len(X))), X


@st.composite
def grids(draw):
    depth, m, n = draw(st.integers(1, 4)), draw(st.integers(1, 10)), draw(st.integers(1, 3))
    nodes = topology.n_nodes(depth)

    def grid(*shape):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.integers(-6, 6), min_size=size, max_size=size))).reshape(shape) / 3

    return depth, grid(m, n), grid(nodes, n), grid(nodes)


@given(grids(), st.booleans())
def test_it_routes_training_samples_as_the_value_function_does(case, scaled):
    depth, X, w, b = case
    scaling = Scaling.minmax(X) if scaled else Scaling.identity(X.shape[1])
    splits = Splits(w=w, b=b)
    tree = Tree(splits=splits, scaling=scaling, classes=[0, 1])
    node = evaluate(Problem.make(scaling.apply(X), np.ones(len(X)), depth=depth), splits).node
    assert ((tree.apply(X) - 1) // 2).tolist() == node.tolist()


def way_to_the_other_label(tree, x, leaf):
    """Leaf by leaf: the largest |h| of the splits that must be crossed to get there."""
    h = tree.scaled([x])[0] @ tree.splits.w.T + tree.splits.b
    efforts = []
    for other in topology.leaves(tree.depth):
        if tree.leaf_class[other - tree.n_nodes] != tree.leaf_class[leaf - tree.n_nodes]:
            crossed = []
            for t, goes_right in path_of(other):
                if goes_right != bool(tree.side(tree.scaled([x]), t)[1][0]):
                    crossed.append(abs(h[t]) if tree.splits.w[t].any() else np.inf)
            efforts.append(max(crossed))
    return min(efforts) if np.isfinite(min(efforts)) else 1.0


def path_of(leaf):
    """The splits above a leaf and whether its side is the right one."""
    while leaf:
        up = (leaf - 1) // 2
        yield up, leaf == topology.right(up)
        leaf = up


@given(grids())
def test_all_ways_of_asking_agree(case):
    depth, X, w, b = case
    tree = Tree(splits=Splits(w=w, b=b), scaling=Scaling.identity(X.shape[1]), classes=["a", "b"])
    leaf, label, h = tree.apply(X), tree.predict(X), tree.decision_function(X)
    passed = tree.decision_path(X)
    assert set(leaf) <= set(topology.leaves(depth))
    assert (label == "b").tolist() == (h > 0).tolist() == (h >= 0).tolist() == (leaf % 2 == 0).tolist()
    for i, x in enumerate(X):
        steps = tree.path(x)
        assert [*(s.node for s in steps), leaf[i]] == np.flatnonzero(passed[i]).tolist()
        assert abs(h[i]) == pytest.approx(way_to_the_other_label(tree, x, leaf[i]), abs=1e-8)
        for here, there in zip(steps, [*(s.node for s in steps[1:]), leaf[i]], strict=True):
            assert there == (topology.right if here.right else topology.left)(here.node)


def test_a_tie_goes_right_at_every_level_and_rounding_does_not_decide():
    splits = Splits(w=[[1.0], [1.0], [1.0]], b=[0.0, 0.0, 0.0])
    tree = Tree(splits=splits, scaling=Scaling.identity(1), classes=[-1, 1])
    noise = tie(0.0) / 2
    X = [[0.0], [-noise], [noise], [-3 * noise]]
    assert tree.apply(X).tolist() == [6, 6, 6, 3]
    assert tree.predict(X).tolist() == [1, 1, 1, -1]
    h = tree.decision_function(X)
    assert np.all(h[:3] > 0) and np.all(h[:3] < 1e-8) and h[3] < 0


def test_scaling_is_undone_in_the_users_units():
    tree, X = grow(n=4)
    for t in range(tree.n_nodes):
        user, scaled = tree.split(t), tree.split(t, units="scaled")
        h = tree.scaling.apply(X) @ scaled.weights - scaled.threshold
        np.testing.assert_allclose(X @ user.weights - user.threshold, h, rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="branch nodes of this tree are 0 to 2"):
        tree.split(3)
    with pytest.raises(ValueError, match="units are"):
        tree.split(0, units="feet")


def test_counts_are_of_the_samples_that_passed():
    tree, X = grow(depth=3)
    y = np.random.default_rng(1).integers(0, 2, len(X))
    weight = np.linspace(0.5, 2, len(X))
    tree = tree.counted(X, y, weight)
    passed = tree.decision_path(X)
    for v in range(len(tree.counts)):
        for k in (0, 1):
            assert tree.counts[v, k] == pytest.approx(weight[passed[:, v] & (y == k)].sum())


def test_probabilities_are_leaf_shares_and_an_empty_leaf_asks_the_node_above():
    X = np.array([[0.0], [0.2], [0.8], [1.0]])
    splits = Splits(w=[[4.0], [4.0], [1.0]], b=[-2.0, 4.0, 5.0])  # all of node 1 and of node 2 go right
    tree = Tree(splits=splits, scaling=Scaling.identity(1), classes=[0, 1])
    tree = tree.counted(X, [0, 1, 1, 1], [3.0, 1.0, 1.0, 1.0])
    assert tree.predict_proba(X).tolist() == [[0.75, 0.25], [0.75, 0.25], [0, 1], [0, 1]]
    assert tree.apply([[-9.0]]).tolist() == [3] and not tree.counts[3].any()
    assert tree.predict_proba([[-9.0]]).tolist() == [[0.75, 0.25]]
    bare = Tree(splits=splits, scaling=Scaling.identity(1), classes=[0, 1])
    assert bare.predict_proba(X)[0].tolist() == [0.5, 0.5]


def test_leaves_may_bear_labels_of_their_own():
    splits = Splits(w=[[1.0], [0.0], [1.0]], b=[0.0, 1.0, -1.0])  # node 1 is pruned: it sends all right
    facts = {"splits": splits, "scaling": Scaling.identity(1)}
    X = [[-1.0], [0.5], [2.0]]
    three = Tree(classes=["low", "mid", "high"], leaf_class=[0, 0, 1, 2], **facts)
    assert three.predict(X).tolist() == ["low", "mid", "high"]
    assert three.counted(X, [0, 1, 2], np.ones(3)).predict_proba(X).tolist() == np.eye(3).tolist()
    with pytest.raises(ValueError, match="two classes, this tree has 3"):
        three.decision_function(X)
    two = Tree(classes=["out", "in"], leaf_class=[0, 0, 1, 0], **facts)
    assert two.predict(X).tolist() == ["out", "in", "out"]
    assert (two.decision_function(X) > 0).tolist() == [False, True, False]


def test_selected_features_count_from_the_papers_threshold():
    w = [[SELECTED, SELECTED * 0.999, -SELECTED]]
    tree = Tree(splits=Splits(w=w, b=[0.0]), scaling=Scaling.identity(3), classes=[0, 1])
    assert tree.selected().tolist() == [[True, False, True]]


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["a", "bb"]),
        np.array(["a", "bb"], dtype=object),
        np.array([0, 1], dtype=np.int8),
        np.array([False, True]),
        np.array([-0.1, 0.1], dtype=np.float32),
        np.array([np.int64(3), np.int64(5)], dtype=object),
        [-1, 1],
        ("no", "yes"),
    ],
)
def test_labels_keep_their_type(labels):
    tree, X = grow(classes=labels)
    expected = np.asarray(labels)
    assert tree.predict(X).dtype == expected.dtype
    assert set(tree.predict(X)) <= set(expected.tolist())


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"], "at least two different"),
        (["a", "a"], "at least two different"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), "strings, numbers or booleans"),
        ([b"a", b"b"], "strings, numbers or booleans"),
        ([0.0, np.nan], "strings, numbers or booleans"),
    ],
)
def test_labels_json_cannot_hold_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        grow(classes=labels)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"splits": Splits(w=np.zeros((2, 3)), b=np.zeros(2))}, "nodes: expected"),
        ({"scaling": Scaling.identity(2)}, "scaling: expected 3 for this tree, got 2"),
        ({"feature_names": ("a", "b")}, "feature_names: expected 3"),
        ({"leaf_class": [0, 1, 0]}, "leaf_class: expected"),
        ({"leaf_class": [0, 1, 0, 2]}, "leaf_class must point into the 2 classes"),
        ({"counts": np.ones((7, 2))}, "counts: the samples of a node"),
        ({"counts": -np.ones((7, 2))}, "not negative"),
        ({"counts": np.ones((3, 2))}, "counts: expected"),
        ({"eps": 0.0}, "eps must be a positive number"),
    ],
)
def test_parts_that_do_not_fit_are_named(facts, message):
    with pytest.raises(ValueError, match=message):
        grow(**facts)


def test_a_tree_is_frozen():
    tree, _ = grow()
    with pytest.raises(AttributeError):
        tree.eps = 1.0
    for array in (tree.splits.w, tree.splits.b, tree.counts, tree.leaf_class, tree.classes, tree.scaling.scale):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


def test_copies_and_pickles_predict_the_same():
    tree, X = grow()
    for other in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
        assert other.decision_function(X).tobytes() == tree.decision_function(X).tobytes()


def test_columns_are_found_by_name():
    tree, X = grow(feature_names=("a", "b", "c"))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["id"] = "z"
    assert tree.predict(frame[["id", "c", "a", "b"]]).tolist() == tree.predict(X).tolist()
    with pytest.raises(ValueError, match=r"no columns \['b'\]"):
        tree.predict(frame.drop(columns="b"))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, 2.0]], "3 columns, got shape"),
        ([1.0, 2.0, 3.0], "3 columns, got shape"),
        ([[1.0, np.nan, 3.0]], "NaN or infinity"),
    ],
)
def test_samples_it_cannot_classify_are_refused(X, message):
    tree, _ = grow()
    with pytest.raises(ValueError, match=message):
        tree.predict(X)


def test_no_samples_give_no_labels():
    tree, _ = grow()
    assert tree.predict(np.zeros((0, 3))).shape == (0,)
    assert tree.predict_proba(np.zeros((0, 3))).shape == (0, 2)


def test_it_needs_nothing_but_numpy():
    code = (
        "import sys, margotree.tree\n"
        "bad = {'sklearn', 'scipy', 'numba', 'pandas', 'pyscipopt', 'highspy'} & set(sys.modules)\n"
        "sys.exit(', '.join(bad) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# -- scaling ------------------------------------------------------------------------------------------------------


def test_minmax_fills_the_unit_interval_exactly():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [1e-20, 1, 1e6, 1e200]
    scaled = Scaling.minmax(X).apply(X)
    assert scaled.min(axis=0).tolist() == [0] * 4
    assert scaled.max(axis=0).tolist() == [1] * 4


def test_constant_columns_become_zero():
    X = np.column_stack([np.full(3, 7.0), [0.1 + 0.2, 0.3, 0.3], np.zeros(3)])
    assert np.abs(Scaling.minmax(X).apply(X)).max() < 1e-15


def test_a_span_beyond_floats_is_named():
    with pytest.raises(ValueError, match="feature 1 lie further apart"):
        Scaling.minmax(np.array([[0.0, -1e308], [1.0, 1e308]]))


def test_user_units_and_back():
    scaling = Scaling(offset=np.array([5.0, -2.0]), scale=np.array([10.0, 0.5]))
    w, b = scaling.from_user(*scaling.to_user(np.array([3.0, -1.0]), 0.7))
    np.testing.assert_allclose(w, [3.0, -1.0])
    assert b == pytest.approx(0.7)


def test_a_scale_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        Scaling(offset=np.zeros(1), scale=np.zeros(1))
    with pytest.raises(ValueError, match="one offset and one scale"):
        Scaling(offset=np.zeros(1), scale=np.ones(2))
