import re

import numpy as np
import pytest

from margotree.problem import Splits
from margotree.tree import Scaling, Tree


def tree_of(w, b, *, counts=None, low=None, high=None, **facts):
    w = np.asarray(w, dtype=float)
    n = w.shape[1]
    low = np.zeros(n) if low is None else np.asarray(low, dtype=float)
    high = np.ones(n) if high is None else np.asarray(high, dtype=float)
    facts = {"classes": ["healthy", "ill"]} | facts
    extra = {} if counts is None else {"counts": counts}
    return Tree(splits=Splits(w=w, b=b), scaling=Scaling(offset=low, scale=high - low), **facts, **extra)


def test_a_tree_reads_as_rules_in_the_users_units():
    tree = tree_of(
        [[2.0, -1.0], [0.0, 0.0], [0.0, -4.0]],
        [-0.5, -1.0, 2.0],
        low=[20, 100],
        high=[60, 200],
        feature_names=("age", "blood pressure"),
        counts=[[30, 12], [25, 2], [5, 10], [25, 2], [0, 0], [5, 0], [0, 10]],
    )
    assert tree.export_text(verbose=True).splitlines() == [
        "[0] 42 samples: 30 healthy, 12 ill",
        "if 0.05 * age - 0.01 * blood pressure >= 0.5",
        "|   [2] 15 samples: 5 healthy, 10 ill",
        "|   if blood pressure <= 150",
        "|   |   => ill   (10 samples: 0 healthy, 10 ill)",
        "|   else",
        "|   |   => healthy   (5 samples: 5 healthy, 0 ill)",
        "else",
        "|   => healthy   (27 samples: 25 healthy, 2 ill)",
    ]
    short = [line for line in tree.export_text(verbose=True).splitlines() if "[" not in line]
    assert tree.export_text().splitlines() == short


def test_labels_that_are_numbers_are_not_mistaken_for_counts():
    text = tree_of([[1.0]], [0.0], counts=[[8, 5], [8, 0], [0, 5]], classes=[0, 1]).export_text()
    assert "=> 1   (5 samples: class 0: 0, class 1: 5)" in text


def test_scaled_units_show_the_numbers_of_the_training():
    tree = tree_of([[2.0, -1.0]], [-0.5], low=[20, 100], high=[60, 200])
    assert "if 2 * x0 - x1 >= 0.5" in tree.export_text(units="scaled")


def test_a_node_that_never_splits_is_shown_as_what_lies_behind_it():
    never = tree_of(np.zeros((3, 1)), [1.0, 1.0, -1.0])
    assert never.export_text() == "=> healthy   (no training samples)"
    assert tree_of([[1e-13]], [1.0]).export_text() == "=> ill   (no training samples)"
    upper = tree_of([[0.0], [1.0], [5.0]], [-1.0, -0.25, 0.0])
    assert upper.export_text(verbose=True).startswith("[1] no training samples\nif x0 >= 0.25\n|   => ill")


def test_negligible_weights_are_left_out_and_counted():
    text = tree_of([[1.0, 4e-4, -2.0, 1e-9]], [0.5]).export_text()
    assert "if 2 * x2 - x0 <= 0.5" in text
    assert "left out: 2 of the features" in text
    assert "x1" not in text and "x3" not in text


def test_a_node_of_negligible_weights_alone_shows_them():
    assert "if x1 >= 0.5" in tree_of([[0.0, 1e-5]], [-5e-6]).export_text()


def test_weighted_counts_show_their_fraction():
    text = tree_of([[1.0]], [0.0], counts=[[1.25, 2.0], [1.25, 0.0], [0.0, 2.0]]).export_text(verbose=True)
    assert "3.25 samples: 1.25 healthy, 2 ill" in text


def test_long_rules_wrap_between_terms_only():
    names = tuple(f"a rather long-winded feature {j}" for j in range(12))
    text = tree_of([np.linspace(1, 2, 12)], [-3.0], feature_names=names).export_text(width=80)
    assert max(map(len, text.splitlines())) <= 80
    for name in names:
        assert name in text


@pytest.mark.parametrize("seed", range(20))
def test_printed_numbers_place_every_sample_to_a_hundredth_of_the_margin(seed):
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.integers(-6, 7, 4)
    X = rng.normal(size=(200, 4)) * size + rng.normal(size=4) * size * 100
    scaling = Scaling.minmax(X)
    tree = Tree(splits=Splits(w=rng.normal(size=(1, 4)) * 3, b=[-0.5]), scaling=scaling, classes=[0, 1])
    rule = next(line for line in tree.export_text(width=1000).splitlines() if line.startswith("if"))
    left, relation, threshold = re.fullmatch("if (.*) ([<>]=) (.*)", rule).groups()
    assert not left.startswith("-")
    printed = np.zeros(len(X)) - float(threshold)
    for sign, number, j in re.findall(r"([+-]?) ?([0-9.e+-]+) \* x(\d)", left):
        printed += (-1 if sign == "-" else 1) * float(number) * X[:, int(j)]
    printed *= -1 if relation == "<=" else 1
    exact = scaling.apply(X) @ tree.splits.w[0] + tree.splits.b[0]
    assert np.abs(printed - exact).max() <= 0.0101


def test_digits_can_be_asked_for():
    assert "if x0 >= 0.33333" in tree_of([[3.0]], [-1.0]).export_text(digits=5)


def test_three_classes_are_shown_by_name():
    tree = tree_of([[1.0], [0.0], [1.0]], [0.0, 1.0, -1.0], classes=["a", "b", "c"], leaf_class=[0, 0, 1, 2])
    assert re.findall(r"=> (\w)", tree.export_text()) == ["c", "b", "a"]
