"""The decision function ranks samples: by how far they are from the other label."""

import warnings

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score, train_test_split

from margotree import HFSMargotClassifier, MargotClassifier
from margotree.problem import Splits
from margotree.tree import Scaling, Tree


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] + 0.7 * X[:, 1] + rng.normal(size=n) > 0).astype(int)


def vanished():
    """A root that splits, and two children that only bear labels, with the weights a solver leaves."""
    X, y = data()
    root = MargotClassifier(depth=1, C=1).fit(X, y).tree_
    w = np.vstack([root.splits.w, np.full((2, 4), 3e-5)])
    w[1, 0] = -3e-5
    tree = Tree(splits=Splits(w=w, b=[root.splits.b[0], -1.0, 1.0]), scaling=root.scaling, classes=[0, 1])
    return root, tree.counted(X, y, np.ones(len(X))), X, y


def test_where_the_last_splits_vanished_the_root_ranks():
    root, tree, X, y = vanished()
    score = tree.decision_function(X)
    assert len(np.unique(score)) == len(np.unique(root.decision_function(X))) > 250
    np.testing.assert_allclose(score, root.decision_function(X))
    assert roc_auc_score(y, score) == roc_auc_score(y, root.decision_function(X)) > 0.8


def test_the_score_does_not_jump_and_its_sign_is_the_label():
    rng = np.random.default_rng(3)
    for _ in range(20):
        tree = Tree(splits=Splits(w=rng.normal(size=(7, 2)), b=rng.normal(size=7)), scaling=Scaling.identity(2),
                    classes=["a", "b"])  # fmt: skip
        tree = tree.counted(rng.normal(size=(200, 2)), rng.integers(0, 2, 200), np.ones(200))
        line = np.linspace(0, 1, 4001)[:, None] * rng.normal(size=(1, 2)) * 6 - 3 * rng.normal(size=(1, 2))
        score, steepest = tree.decision_function(line), np.abs(tree.splits.w @ (line[1] - line[0])).max()
        assert ((score > 0) == (tree.predict(line) == "b")).all()
        seen = tree.counts[tree.apply(line)].any(axis=1)  # where no training sample came, other rules hold
        assert np.abs(np.diff(score))[seen[1:] & seen[:-1]].max() <= steepest * (1 + 1e-9)


def test_only_crossings_that_change_the_label_count():
    # x >= 0 and y >= 0 are class 1, all else class 0; both children of the root ask for y.
    tree = Tree(
        splits=Splits(w=[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], b=[0.0, 0.0, 0.0]), scaling=Scaling.identity(2),
        classes=[0, 1], leaf_class=[0, 0, 0, 1],
    )  # fmt: skip
    X = [[0.1, 5.0], [-0.1, 5.0], [-0.1, -5.0], [3.0, -0.2], [-3.0, -0.2]]
    assert tree.decision_function(X).tolist() == pytest.approx([0.1, -0.1, -5.0, -0.2, -3.0])


def test_a_tree_of_one_label_scores_by_its_leaves_and_one_that_never_splits_is_constant():
    flat = Tree(splits=Splits(w=np.zeros((3, 1)), b=[1.0, 1.0, 1.0]), scaling=Scaling.identity(1), classes=[0, 1])
    assert flat.decision_function([[0.0], [9.0]]).tolist() == [1.0, 1.0]
    one = Tree(splits=Splits(w=[[1.0]], b=[5.0]), scaling=Scaling.identity(1), classes=[0, 1])
    one = one.counted([[0.0], [1.0]], [0, 1], [1.0, 1.0])
    assert one.decision_function([[0.0], [1.0]]).tolist() == [5.0, 6.0]


def test_depth_two_ranks_no_worse_than_depth_one_where_its_splits_vanish():
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        aucs = [cross_val_score(MargotClassifier(depth=d, C=0.1, time_limit=1), X, y, scoring="roc_auc", cv=3).mean()
                for d in (1, 2)]  # fmt: skip
    assert aucs[1] > aucs[0] - 0.02


def test_calibration_takes_it():
    X, y = data()
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    tree = HFSMargotClassifier(depth=2, C=1, budget=2, time_limit=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CalibratedClassifierCV(tree, method="sigmoid", cv=2).fit(X_train, y_train)
    shares = model.predict_proba(X_test)[:, 1]
    assert len(np.unique(shares)) > 30 and roc_auc_score(y_test, shares) > 0.8
    for one in model.calibrated_classifiers_:
        score = one.estimator.decision_function(X_test)
        order = np.argsort(score)
        assert (np.diff(one.predict_proba(X_test)[order, 1]) >= -1e-12).all()
