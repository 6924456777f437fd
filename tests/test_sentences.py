"""The path of a sample as sentences: they are true of the sample, and they lead to its prediction."""

import re

import numpy as np
import pytest

from grown import grown
from margotree import MargotClassifier
from margotree.problem import Splits
from margotree.tree import Scaling, Tree

RELATIONS = {
    "above": np.greater,
    "below": np.less,
    "at most": np.less_equal,
    "at least": np.greater_equal,
}


def holds(reason):
    """Whether the last comparison of a sentence is true of its numbers, and its sum is that of its terms."""
    found = re.fullmatch(r"(?:and )?(.*) = (\S+) is (above|below|at most|at least) (\S+?)(?: \(.*\))?,?", reason)
    assert found is not None, reason
    if " = " in found[1] and "features)" not in found[1]:
        terms = found[1].split(" = ")[1]
        assert eval(terms) == pytest.approx(float(found[2]), rel=1e-3, abs=1e-3), reason
    return RELATIONS[found[3]](float(found[2]), float(found[4]))


def one_split(w, b=0.0, names=None, n=1):
    return Tree(
        splits=Splits(w=[w], b=[b]), scaling=Scaling.identity(len(w)), classes=["well", "ill"], feature_names=names
    )


def test_one_feature_is_compared_with_its_limit():
    tree = one_split([1.0, 0.0], -2.9, ("lactate", "crp"))
    assert tree.path([3.5, 1]).reasons == ("lactate = 3.5 is at least 2.9",)
    assert tree.path([2.5, 1]).reasons == ("lactate = 2.5 is below 2.9",)
    turned = one_split([-1.0, 0.0], 2.9, ("lactate", "crp"))
    assert turned.path([3.5, 1]).reasons == ("lactate = 3.5 is above 2.9",)
    assert str(turned.path([2.5, 1])).startswith(
        "lactate = 2.5 is at most 2.9,\nso the prediction is ill (probability "
    )


def test_the_sum_of_several_features_can_be_recomputed():
    tree = one_split([1.0, -2.0], -0.5, ("a", "b"))
    reason = tree.path([3.0, -1.0]).reasons[0]
    assert reason == "2 * b - a = 2 * (-1) - 3 = -5 is at most -0.5" and holds(reason)


def test_a_value_close_to_its_limit_has_enough_digits():
    tree = one_split([1.0], -0.1 - 1e-9)
    for x in (0.1, 0.1 + 2e-9, 0.1 + 1e-9):
        assert holds(tree.path([x]).reasons[0])


@pytest.mark.parametrize("digits", [None, 2])
def test_sentences_are_true_of_every_sample(digits):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 6)).round(2) * [1, 100, 0.01, 1, 1, 1]
    y = np.where(X[:, 0] + X[:, 1] / 100 * X[:, 3] > 0, "ill", "well")
    tree = MargotClassifier(C=10, node_limit=3).fit(X, y).tree_
    tree = tree if digits is None else tree.rounded(X, y, digits=digits)
    for x in np.concatenate([X[:30], rng.normal(size=(10, 6))]):
        path = tree.path(x)
        assert all(holds(reason) for reason in path.reasons)
        assert f"the prediction is {tree.predict([x])[0]} (probability " in path.sentence
        assert path.sentence == str(path).replace("\n", " ") and "[0]" not in str(path) and " h" not in str(path)


def test_splits_on_which_the_prediction_cannot_depend_are_left_out():
    tree, X, _ = grown(2, 3, pruned=[1])
    same = Tree(splits=tree.splits, scaling=tree.scaling, classes=tree.classes, leaf_class=[0, 0, 0, 1])
    for x in X:
        path, left = same.path(x), not same.path(x)[0].right
        assert len(path.reasons) == (1 if left else 2)
    constant = Tree(splits=tree.splits, scaling=tree.scaling, classes=tree.classes, leaf_class=[1, 1, 1, 1])
    assert str(constant.path(X[0])).startswith("the prediction is ") and constant.path(X[0]).reasons == ()


def test_logic_is_said_in_words():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(200, 3)).astype(float)
    both = (X[:, 0] == 1) & (X[:, 1] == 0)
    tree = MargotClassifier(depth=1, C=100, budget=2, round="auto").fit(X, np.where(both, "ill", "well")).tree_
    assert tree.path([1, 0, 0]).reasons == ("x0 is 1 and x1 is 0",) or "not true" in tree.path([1, 0, 0]).reasons[0]
    texts = [tree.path(x).reasons[0] for x in ([1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1])]
    assert len(set(texts)) == 4 and not any("*" in text for text in texts)
    assert "*" in tree.path([0.5, 1, 0]).reasons[0] or "=" in tree.path([0.5, 1, 0]).reasons[0]


def test_probabilities_are_never_rounded_to_certainty():
    from margotree.tree.sentences import percentage

    assert [percentage(p) for p in (0.0, 1e-5, 0.0512, 0.5, 0.934, 0.99995, 1.0)] == [
        "0 %", "less than 0.1 %", "5.1 %", "50 %", "93.4 %", "more than 99.9 %", "100 %",
    ]  # fmt: skip
