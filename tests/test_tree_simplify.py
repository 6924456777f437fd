"""Trees are shown without the splits that no training sample needs; what they predict stays as it is."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margotree import HFSMargotClassifier, MargotClassifier
from margotree.estimators import FewSplitsWarning, RareClassWarning
from margotree.notices import without_fit_warnings
from margotree.problem import Splits, topology
from margotree.tree import Scaling, Tree


def counted(w, b, counts, **facts):
    """A tree with these training samples in its leaves."""
    w = np.asarray(w, dtype=float)
    all_counts = [*[[0, 0]] * len(w), *counts]
    for t in reversed(range(len(w))):
        all_counts[t] = np.add(all_counts[topology.left(t)], all_counts[topology.right(t)]).tolist()
    return Tree(splits=Splits(w=w, b=b), scaling=Scaling.identity(w.shape[1]), classes=["no", "yes"],
                counts=all_counts, **facts)  # fmt: skip


EMPTY_LEAF = counted([[1.0], [2.0], [3e-5]], [-0.5, -0.2, 1.0], [[5, 1], [2, 7], [0, 0], [1, 9]])


def test_a_split_that_sends_no_sample_one_way_is_drawn_as_a_leaf():
    assert EMPTY_LEAF.export_text(verbose=True).splitlines() == [
        "[0] 25 samples: 8 no, 17 yes",
        "if x0 >= 0.5",
        "|   => yes   (10 samples: 1 no, 9 yes)",
        "else",
        "|   [1] 15 samples: 7 no, 8 yes",
        "|   if x0 >= 0.1",
        "|   |   => yes   (9 samples: 2 no, 7 yes)",
        "|   else",
        "|   |   => no   (6 samples: 5 no, 1 yes)",
        "(not shown: split [2], which changes no training sample's label)",
    ]
    full = EMPTY_LEAF.export_text(simplify=False, verbose=True)
    assert "[2] 10 samples" in full and "no training samples" in full and "not shown" not in full


def test_numbers_to_read_are_those_of_the_printed_rules():
    assert EMPTY_LEAF.numbers_to_read == 2  # two thresholds; the third split is not shown
    w = [[1.0, 1e-4, 0.0], [0.5, 2.0, 0.0], [1.0, 1.0, 1.0]]
    tree = counted(w, [0.0, 0.0, 0.0], [[5, 1], [2, 7], [4, 0], [1, 9]])
    assert tree.numbers_to_read == 1 + 3 + 4
    pruned = counted([w[0], [0.0] * 3, w[2]], [0.0, -1.0, 0.0], [[5, 1], [0, 0], [4, 0], [1, 9]])
    assert pruned.numbers_to_read == 1 + 4


def test_a_split_of_one_label_is_a_leaf_and_one_with_an_empty_side_gives_place():
    same = counted([[1.0]] * 3, [0.0, 0.0, 0.0], [[5, 1], [2, 3], [4, 0], [1, 9]], leaf_class=[0, 0, 0, 1])
    shape = same.outline()
    assert shape.children == {0: (1, 2), 2: (5, 6)} and shape.label == {1: 0, 5: 0, 6: 1} and shape.left_out == (1,)
    constant_offsets = counted([[1.0]] * 3, [0.0, 0.0, 0.0], [[0, 0], [0, 0], [4, 0], [1, 9]])
    shape = constant_offsets.outline()
    assert shape.root == 2 and shape.children == {2: (5, 6)} and shape.left_out == (0, 1)


def test_a_tree_of_one_label_is_one_leaf():
    tree = counted([[1.0]] * 3, [0.0, 0.0, 0.0], [[0, 0], [5, 6], [0, 0], [7, 8]])
    assert tree.export_text().splitlines()[0] == "=> yes   (26 samples: 12 no, 14 yes)"


def test_a_tree_that_knows_no_samples_is_shown_whole():
    bare = Tree(splits=EMPTY_LEAF.splits, scaling=EMPTY_LEAF.scaling, classes=["no", "yes"])
    assert bare.outline().children == bare.outline(simplify=False).children == {0: (1, 2), 1: (3, 4), 2: (5, 6)}


@settings(max_examples=70)
@given(seed=st.integers(0, 10**6), depth=st.integers(1, 4), n=st.integers(1, 30), labels=st.integers(2, 4))
def test_what_is_shown_has_no_empty_leaf_and_tells_every_training_label(seed, depth, n, labels):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(2**depth - 1, 2)) * rng.choice([0.0, 1e-4, 1.0], size=(2**depth - 1, 1))
    tree = Tree(
        splits=Splits(w=w, b=rng.normal(size=len(w))), scaling=Scaling.identity(2), classes=list("abcd")[:labels],
        leaf_class=rng.integers(0, labels, 2**depth),
    )  # fmt: skip
    X = rng.normal(size=(n, 2))
    tree = tree.counted(X, rng.integers(0, labels, n), np.ones(n))
    shape, passes = tree.outline(), tree.decision_path(X)
    assert all(tree.counts[v].any() for v in shape.leaves)
    shown = np.full(n, -1)
    for v in shape.leaves:
        assert (shown[passes[:, v]] == -1).all()
        shown[passes[:, v]] = shape.label[v]
    assert (tree.classes[shown] == tree.predict(X)).all()
    for t in shape.nodes:
        assert len({shape.label[v] for v in shape.below(t)}) > 1


def test_files_keep_both_and_earlier_files_load(tmp_path):
    from margotree.tree import file

    record = EMPTY_LEAF.to_dict()
    assert record["tree"]["simplified"] == {
        "root": 0, "children": {"0": [1, 2], "1": [3, 4]}, "label": {"3": 0, "4": 1, "2": 1}, "left_out": [2],
    }  # fmt: skip
    assert record["tree"]["w"] == EMPTY_LEAF.splits.w.tolist()
    del record["tree"]["simplified"]
    record["checksum"] = file.checksum_of(record["tree"])
    assert Tree.from_dict(record).export_text() == EMPTY_LEAF.export_text()


def test_plots_are_simplified_unless_a_sample_needs_the_split():
    pytest.importorskip("matplotlib").use("Agg")
    from margotree.plots import plot_tree

    def words(ax):
        return [text.get_text() for text in ax.texts]

    assert "no samples" not in words(plot_tree(EMPTY_LEAF))
    # The lines of a caption are drawn from the last to the first.
    assert "1 split, which changes no" in " ".join(reversed(words(plot_tree(EMPTY_LEAF))))
    assert "no samples" in words(plot_tree(EMPTY_LEAF, simplify=False))
    there = np.array([[-1e6], [-1e6], [0.7]])
    assert words(plot_tree(EMPTY_LEAF, there, ["no", "no", "yes"])).count("met") == 2
    turned = counted([[1.0], [2.0], [-3.0]], [-0.5, -0.2, 6.0], [[5, 1], [2, 7], [0, 0], [1, 9]])
    assert words(plot_tree(turned, np.array([[9.0], [1.0]]), ["no", "yes"])).count("met") == 3


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0.5, "ill", "well")


def test_fit_says_when_most_splits_vanish_and_what_to_try():
    X, y = data()
    with pytest.warns(FewSplitsWarning, match=r"3 splits has an effect.*larger C, or a C per level .* such as 0.1, 10"):
        MargotClassifier(depth=2, C=0.1).fit(X, y)
    with pytest.warns(FewSplitsWarning, match=r"no split has an effect: at C = 1e-06 .*Try a larger C\.  Margot"):
        MargotClassifier(depth=1, C=1e-6).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewSplitsWarning)
        MargotClassifier(depth=1).fit(X, y)
        apart = X[np.abs(X[:, 0] - 0.5) > 0.1]
        MargotClassifier(depth=2, C=1e4, time_limit=5).fit(apart, apart[:, 0] > 0.5)
        with without_fit_warnings():
            MargotClassifier(depth=2, C=1e-6).fit(X, y)


def test_no_huge_C_is_suggested():
    rng = np.random.default_rng(0)
    y = rng.choice(["ill", "well"], 20)
    X = np.zeros((20, 1))
    for C in (100.0, 1e4, 1e8, [1e16, 1.0, 1.0]):
        with pytest.warns(FewSplitsWarning) as caught:
            MargotClassifier(depth=3, C=C, engine="local_svm").fit(X, y)
        numbers = [
            float(n)
            for n in re.findall(r"such as ([^:]*)", " ".join(str(w.message) for w in caught))
            for n in n.split(", ")
        ]
        assert max(numbers, default=0) <= 1e4 and bool(numbers) == (np.min(C) < 1e4)


def test_fit_warns_of_a_class_with_a_handful_of_rows():
    X, y = data()
    y = np.where(np.arange(len(y)) < 4, "rare", "usual")
    with pytest.warns(RareClassWarning, match=r"fewer than 10 rows of class rare \(4\)"):
        HFSMargotClassifier(depth=1, time_limit=5).fit(X, y)


def test_a_search_that_tries_poor_settings_is_not_told_so_each_time():
    from margotree.paper.tuning import tune

    X, y = data(60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tune(X, y, "margot", grid={"C": [1e-6, 10.0]}, folds=2, fit_time_limit=2)
    assert sum(issubclass(w.category, FewSplitsWarning) for w in caught) <= 1
