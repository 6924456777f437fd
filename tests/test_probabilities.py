"""Probabilities: never 0, in agreement with labels and decision values, the same in files and exports."""

import ctypes
import json
import shutil
import sqlite3
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from browser import chromium
from margotree import LocalSVMTreeClassifier, Tree
from margotree.cli import main
from margotree.estimators import cross_validated_margins as cv
from margotree.problem import Splits, topology
from margotree.tree import Scaling
from margotree.tree.probabilities import LeafShares, MarginProbabilities, SmoothedShares
from margotree.tree.score import label_distances


def two_classes(n=400, seed=0, **kwargs):
    settings = {"n_informative": 4, "flip_y": 0.1, "weights": [0.7], "random_state": seed} | kwargs
    return make_classification(n, 6, **settings)


def logistic(n, shift=0.0):
    """Samples whose true probabilities are a sigmoid of a linear function."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, (rng.random(n) < 1 / (1 + np.exp(-shift - 2 * X[:, 0] - X[:, 1]))).astype(int)


def grown(n_classes=2, depth=2, **kwargs):
    X, y = two_classes() if n_classes == 2 else load_iris(return_X_y=True)
    return LocalSVMTreeClassifier(depth=depth, C=10, **kwargs).fit(X, y), X, y


def new_rows(tree, n, seed=0):
    rng = np.random.default_rng(seed)
    return tree.scaling.offset + tree.scaling.scale * rng.uniform(-0.5, 1.5, (n, tree.n_features))


CASES = [
    (2, {}), (2, {"class_weight": "balanced"}), (2, {"depth": 1}), (2, {"depth": 3}), (3, {}),
    (3, {"class_weight": {0: 1, 1: 5, 2: 0.5}, "depth": 3}),
]  # fmt: skip


@pytest.mark.parametrize(("n_classes", "settings"), CASES, ids=str)
def test_the_label_has_the_largest_product_of_probability_and_class_weight(n_classes, settings):
    model, X, _ = grown(n_classes, **settings)
    rows = np.vstack([X, new_rows(model.tree_, 2000), 1e300 * X[:5]])
    shares = model.predict_proba(rows)
    assert np.allclose(shares.sum(axis=1), 1) and shares.min() > 1e-6
    weighted = shares * model.tree_.probabilities.class_weight
    assert np.array_equal(model.classes_[weighted.argmax(axis=1)], model.predict(rows))


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced"}, {"depth": 3}], ids=str)
def test_for_two_classes_probabilities_and_decision_values_rank_alike(settings):
    model, X, _ = grown(**settings)
    rows = np.vstack([X, new_rows(model.tree_, 500)])
    order = np.argsort(model.decision_function(rows))
    assert np.all(np.diff(model.predict_proba(rows)[order, 1]) >= 0)
    assert len(np.unique(model.predict_proba(rows)[:, 1])) > 800


def test_class_weights_move_labels_and_not_probabilities():
    X, y = logistic(4000, shift=-3.0)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = LocalSVMTreeClassifier(class_weight="balanced").fit(X, y)
    shares = model.predict_proba(X_test)[:, 1]
    assert (model.predict(X_test) == 1).mean() > 0.2
    assert abs(shares.mean() - y_test.mean()) < 0.03  # more than 0.2 if they were those of balanced classes


def test_weights_of_samples_count_as_repetition():
    X, y = two_classes(150)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LocalSVMTreeClassifier().fit(X, y, times)
    repeated = LocalSVMTreeClassifier().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
    # Where weights are small only their ratios count: they are no sign of few samples.
    small = LocalSVMTreeClassifier(C=len(y)).fit(X, y, np.full(len(y), 1 / len(y)))
    np.testing.assert_allclose(small.predict_proba(X), LocalSVMTreeClassifier().fit(X, y).predict_proba(X), atol=1e-4)


def fitted_problem(model, X, y, weight=None):
    """The tree and the training problem of a fit."""
    seen = {}
    make_tree = type(model)._make_tree

    def noting(self, solution, samples, scaling, problem):
        seen["problem"] = problem
        return make_tree(self, solution, samples, scaling, problem)

    model._make_tree = noting.__get__(model)
    return model.fit(X, y, weight).tree_, seen["problem"]


def test_margins_are_those_of_splits_trained_without_the_sample():
    X, y = two_classes(60, flip_y=0.3)
    model = LocalSVMTreeClassifier(depth=1, C=100)
    tree, problem = fitted_problem(model, X, y)
    found = cv.cross_validated_margins(tree, problem, problem.weight)
    code, values = (problem.y > 0).astype(int), np.empty(60)
    values[found.folds.row] = found.values[0]
    fold = np.empty(len(code), dtype=int)
    fold[np.argsort(code, kind="stable")] = np.arange(len(code)) % 5
    for k in range(5):
        kept, left_out, scaled = fold != k, fold == k, np.asarray(problem.X)
        other = LocalSVMTreeClassifier(depth=1, C=100, scale=None).fit(scaled[kept], code[kept])
        np.testing.assert_allclose(values[left_out], other.decision_function(scaled[left_out]), rtol=1e-5)
        points = tree.scaling.offset + tree.scaling.scale * scaled[left_out]
        assert not np.allclose(values[left_out], model.decision_function(points), rtol=1e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_upper_splits_are_trained_again_with_the_sides_of_the_other_samples(n_classes):
    X, y = two_classes(200) if n_classes == 2 else load_wine(return_X_y=True)
    tree, problem = fitted_problem(LocalSVMTreeClassifier(depth=2, C=10), X, y)
    found = cv.cross_validated_margins(tree, problem, problem.weight)
    assert 0 in found.values and found.like_new
    at = tree.side(np.asarray(problem.X), 0)
    own = at[0][found.folds.row]
    assert not np.allclose(found.values[0], own, rtol=1e-2)
    # Nearly all samples keep their side; those left out may change it, the others may not.
    assert 0.8 < np.mean((found.values[0] >= 0) == at[1][found.folds.row]) <= 1.0
    distances, label = found.distances(tree, np.asarray(problem.X), np.arange(len(own)))
    assert np.all(distances[np.arange(len(label)), label] == 0) and np.all(distances >= 0)


def test_duplicates_are_left_out_in_parts():
    count = np.array([1.0, 7.0, 1.0, 2.0])
    folds = cv.Folds.of(np.array([0, 0, 1, 1]), np.zeros(4, dtype=int), count)
    np.testing.assert_allclose(np.bincount(folds.row, folds.count), count)
    assert np.array_equal(np.bincount(folds.row), [1, 5, 1, 5])
    assert np.allclose(folds.left_out.sum(axis=1), 1)


def test_splits_beyond_the_allowed_work_keep_the_margins_of_the_fit(monkeypatch):
    tree, problem = fitted_problem(LocalSVMTreeClassifier(depth=2, C=10), *two_classes(200))
    monkeypatch.setattr(cv, "MAX_WORK", 200.0**2 * 6)
    monkeypatch.setattr(cv, "_MANY", 50)
    found = cv.cross_validated_margins(tree, problem, problem.weight)
    assert 0 not in found.values and found.values and not found.like_new
    monkeypatch.setattr(cv, "_MANY", 20)
    assert cv.cross_validated_margins(tree, problem, problem.weight).like_new


def test_where_margins_say_nothing_the_probabilities_are_the_shares_of_the_labels():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 1)).astype(float)
    y = (rng.random(2000) < np.where(X[:, 0] > 0, 0.7, 0.1)).astype(int)
    model = LocalSVMTreeClassifier(depth=1).fit(X, y)
    shares = [y[X[:, 0] == value].mean() for value in (0, 1)]
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]])[:, 1], shares, atol=0.002)
    weighted = LocalSVMTreeClassifier(depth=1, class_weight={0: 1, 1: 1.3}).fit(X, y)
    np.testing.assert_allclose(weighted.predict_proba([[0.0], [1.0]])[:, 1], shares, atol=0.002)


def test_steps_and_a_slope():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (3000, 1))
    log_odds = np.where(X[:, 0] > 0, 1.0, -1.0) * 2 + 0.5 * X[:, 0]
    y = (rng.random(3000) < 1 / (1 + np.exp(-log_odds))).astype(int)
    model = LocalSVMTreeClassifier(depth=1, C=10).fit(X, y)
    rule = model.tree_.probabilities
    assert np.all(rule.step > 1) and rule.slope[0, 0] < -0.01
    np.testing.assert_allclose(model.predict_proba([[-2.5], [0.5], [2.5]])[:, 1], [0.037, 0.905, 0.963], atol=0.03)


def test_the_two_labels_may_have_different_slopes():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (3000, 1))
    y = (rng.random(3000) < 1 / (1 + np.exp(-X[:, 0] * np.where(X[:, 0] > 0, 3.0, 0.4)))).astype(int)
    model = LocalSVMTreeClassifier(depth=1).fit(X, y)
    rule = model.tree_.probabilities
    assert rule.slope[0, 0] < 2 * rule.slope[1, 1] and not rule.step.any()
    truth = 1 / (1 + np.exp([2 * 0.4, -2 * 3.0]))
    np.testing.assert_allclose(model.predict_proba([[-2.0], [2.0]])[:, 1], truth, atol=0.05)


def test_new_samples_have_better_probabilities_than_the_shares_of_leaves():
    for load, n_classes in ((lambda: logistic(600), 2), (lambda: load_wine(return_X_y=True), 3)):
        X, y = load()
        X, X_test, y, y_test = train_test_split(X, y, random_state=1, stratify=y, train_size=0.3)
        loss = {}
        for rule in ("leaf", "smoothed", "margin"):
            model = LocalSVMTreeClassifier(C=10, depth=2, proba=rule).fit(X, y)
            loss[rule] = log_loss(y_test, model.predict_proba(X_test))
            assert model.tree_.probabilities.kind == rule
        assert loss["margin"] < loss["smoothed"] < loss["leaf"]
        assert n_classes == len(model.classes_)


def test_smoothed_shares_by_hand():
    splits = Splits(w=[[4.0]], b=[-2.0])
    tree = Tree(splits=splits, scaling=Scaling.identity(1), classes=[0, 1], probabilities=SmoothedShares(10.0))
    tree = tree.counted([[0.0], [0.1], [0.9]], [0, 0, 1], [1.0, 2.0, 4.0])
    root = np.array([4.0, 5.0]) / 9
    expected = [(np.array([3.0, 0.0]) + 10 * root) / 13, (np.array([0.0, 4.0]) + 10 * root) / 14]
    np.testing.assert_allclose(tree.predict_proba([[0.0], [1.0]]), expected)


def test_margin_probabilities_by_hand():
    splits = Splits(w=[[2.0]], b=[0.0])
    rule = MarginProbabilities(
        intercept=np.zeros(2), slope=-0.5 * np.eye(2), step=np.array([0.2, 0.3]), farthest=1e300, floor=0.02,
        class_weight=np.array([1.0, 3.0]),
    )  # fmt: skip
    tree = Tree(splits=splits, scaling=Scaling.identity(1), classes=["a", "b"], probabilities=rule)
    for x in (-3.0, -0.2, 0.4, 2.0):
        weighted = 0.98 / (1 + np.exp(-0.5 * 2.0 * x - (0.3 if x > 0 else -0.2))) + 0.01
        odds = weighted / (1 - weighted) / 3
        assert tree.predict_proba([[x]])[0, 1] == pytest.approx(odds / (1 + odds), rel=1e-12)


def test_distances_are_the_smallest_costs_of_paths():
    rng = np.random.default_rng(0)
    for depth in (1, 2, 3):
        n = topology.n_nodes(depth)
        tree = Tree(
            splits=Splits(w=rng.normal(size=(n, 2)), b=rng.normal(size=n)), scaling=Scaling.identity(2),
            classes=[0, 1, 2, 3], leaf_class=rng.integers(0, 3, n + 1),
        )  # fmt: skip
        X = rng.normal(size=(50, 2))
        code = tree.leaf_class[tree.apply(X) - n]
        found = label_distances(tree, tree._rows(X), code)
        h = X @ tree.splits.w.T + tree.splits.b
        for k in range(4):
            costs = [
                np.max(
                    [np.where((h[:, t] >= 0) == (side > 0), 0, np.abs(h[:, t])) for t, side in topology.path_to(v)],
                    axis=0,
                )
                for v in topology.leaves(depth)
                if tree.leaf_class[v - n] == k
            ]
            np.testing.assert_allclose(found[:, k], np.min(costs, axis=0) if costs else np.inf)


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["margin", "smoothed", "leaf"])
def test_files_keep_the_rule(rule, tmp_path):
    model, X, _ = grown(3, proba=rule)
    model.save(tmp_path / "tree.json")
    tree = Tree.load(tmp_path / "tree.json")
    assert tree.probabilities.kind == rule
    assert np.array_equal(tree.predict_proba(X), model.predict_proba(X))


def test_files_of_earlier_versions_have_the_shares_of_leaves():
    from margotree.tree import file

    model, X, _ = grown()
    record = model.tree_.to_dict()
    del record["tree"]["probabilities"]
    record["checksum"] = file.checksum_of(record["tree"])
    old = Tree.from_dict(record)
    assert np.array_equal(old.predict_proba(X), model.tree_.leaf_shares()[model.apply(X) - old.n_nodes])
    assert isinstance(old.probabilities, LeafShares)


def test_files_without_steps_have_none():
    from margotree.tree import file

    model, X, _ = grown()
    record = model.tree_.to_dict()
    assert record["tree"]["probabilities"].pop("step") == [0, 0]
    record["checksum"] = file.checksum_of(record["tree"])
    assert np.array_equal(Tree.from_dict(record).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "entry",
    [
        {"kind": "other"}, {"kind": "leaf", "more": 1}, {"kind": "smoothed", "strength": -1}, {"kind": "margin"}, [1],
        {"kind": "margin", "intercept": [0, 0, 0], "slope": [[0] * 3] * 3, "farthest": 1, "floor": 0.1,
         "class_weight": [1, 1, 1]},
        {"kind": "margin", "intercept": [0, 0], "slope": [[0, 0]] * 2, "farthest": 1, "floor": 0,
         "class_weight": [1, 1]},
        {"kind": "margin", "intercept": [0, 0], "slope": [[0, 0]] * 2, "step": [0, -1], "farthest": 1, "floor": 0.1,
         "class_weight": [1, 1]},
        {"kind": "margin", "intercept": [0, 0], "slope": [[0, 0]] * 2, "step": [0], "farthest": 1, "floor": 0.1,
         "class_weight": [1, 1]},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_entries_of_files_are_named(entry):
    from margotree.tree import file

    record = grown()[0].tree_.to_dict()
    record["tree"]["probabilities"] = entry
    record["checksum"] = file.checksum_of(record["tree"])
    with pytest.raises(ValueError, match="probabilities"):
        Tree.from_dict(record)


# -- exports ----------------------------------------------------------------------------------------------------------


def from_python(tree, X, tmp_path):
    module = {}
    exec(compile(tree.to_python(), "exported", "exec"), module)
    return [module["predict_proba"](row) for row in X.tolist()]


def from_c(tree, X, tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler on the PATH as cc")
    library = Path(tempfile.mkdtemp(dir=tmp_path)) / "tree.so"  # a library is loaded once per path
    (tmp_path / "tree.c").write_text(tree.to_c())
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", library, tmp_path / "tree.c", "-lm"], check=True)
    c, found = ctypes.CDLL(str(library)), np.empty((len(X), len(tree.classes)))
    row, shares = ctypes.c_double * tree.n_features, (ctypes.c_double * len(tree.classes))()
    for i, x in enumerate(X.tolist()):
        assert c.margotree_predict_proba(row(*x), shares) == 0
        found[i] = shares
    missing = c.margotree_predict_proba(row(*[np.nan] * tree.n_features), shares)
    assert missing == (-1 if tree.splits.w.any() else 0)  # cells that are not used are not checked
    return found


def from_sql(tree, X, tmp_path):
    base = sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE rows (number INTEGER, {', '.join(f'{name} REAL' for name in tree.features)})")
    marks = ", ".join("?" * (tree.n_features + 1))
    base.executemany(f"INSERT INTO rows VALUES ({marks})", [(i, *x) for i, x in enumerate(X.tolist())])
    base.execute("INSERT INTO rows (number) VALUES (?)", [len(X)])
    columns = ", ".join(tree.to_sql(table="rows", proba=label) for label in tree.classes)
    *found, missing = base.execute(f"SELECT {columns} FROM rows ORDER BY number")
    assert missing == (None,) * len(tree.classes)
    return found


def from_duckdb(tree, X, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
    numbered = np.column_stack([np.arange(len(X)), X])
    header = ",".join(["number", *tree.features])
    np.savetxt(tmp_path / "rows.csv", numbered, delimiter=",", fmt="%.17g", header=header, comments="")
    columns = ", ".join(tree.to_sql(proba=label) for label in tree.classes)
    with duckdb.connect() as base:
        read = f"read_csv('{tmp_path / 'rows.csv'}', header=true, parallel=false, all_varchar=false)"
        return base.execute(f"SELECT {columns} FROM {read} ORDER BY number").fetchall()


def from_onnx(tree, X, tmp_path):
    pytest.importorskip("onnx", reason='needs onnx: pip install "margotree[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install onnxruntime")
    session = runtime.InferenceSession(tree.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"X": np.ascontiguousarray(X)})[0]


@pytest.fixture(scope="module")
def chrome():
    yield from chromium()


PAGE = "return arguments[0].map((values) => margotree.probabilities(margotree.route(values)))"


@pytest.fixture
def exported(way, request, tmp_path):
    """A function that computes probabilities with an export."""
    if way != "page":
        return lambda tree, X: EXPORTS[way](tree, X, tmp_path)
    browser = request.getfixturevalue("chrome")

    def from_page(tree, X):
        tree.to_html(tmp_path / "tree.html")
        browser.get((tmp_path / "tree.html").as_uri())
        return browser.execute_script(PAGE, X.tolist())

    return from_page


EXPORTS = {"python": from_python, "c": from_c, "sqlite": from_sql, "duckdb": from_duckdb, "onnx": from_onnx}


@pytest.mark.parametrize("way", [*EXPORTS, "page"])
@pytest.mark.parametrize(
    ("n_classes", "settings"), [(2, {"class_weight": "balanced"}), (3, {}), (2, {"proba": "smoothed"})], ids=str
)
def test_exports_compute_the_same_probabilities(exported, n_classes, settings):
    model, X, _ = grown(n_classes, **settings)
    rows = np.vstack([X, new_rows(model.tree_, 10_000 - len(X))])
    np.testing.assert_allclose(exported(model.tree_, rows), model.predict_proba(rows), rtol=0, atol=1e-11)


@pytest.mark.parametrize("way", [*EXPORTS, "page"])
def test_exports_of_trees_with_pruned_nodes_and_labels_without_leaves(exported, way):
    rule = MarginProbabilities(
        intercept=np.array([0.1, -0.2, 0.4]), slope=np.array([[-1.0, 0.2, 0.1], [0.3, -0.7, 0.0], [0.1, 0.1, -0.4]]),
        step=np.array([0.0, 0.7, 0.2]), farthest=3.0, floor=0.01, class_weight=np.array([1.0, 2.0, 0.5]),
    )  # fmt: skip
    tree = Tree(
        splits=Splits(w=[[1.0, 0.5], [0.0, 0.0], [1.0, -1.0]], b=[0.0, 1.0, 0.2]), scaling=Scaling.identity(2),
        classes=["a", "b", "c"], leaf_class=[2, 0, 0, 1], probabilities=rule,
    )  # fmt: skip
    samples = [[-1.0, 0.0], [1.0, 0.0]], [0, 1], [1.0, 1.0]
    constant = replace(tree, splits=Splits(w=np.zeros((3, 2)), b=[1.0, 1.0, -1.0])).counted(*samples)
    tree = tree.counted(*samples)
    X = np.vstack([np.random.default_rng(0).normal(size=(300, 2)), [[0.0, 0.0]]])
    np.testing.assert_allclose(exported(tree, X), tree.predict_proba(X), rtol=0, atol=1e-12)
    if way not in {"duckdb", "sqlite"}:  # there no column is used, so that no cell can be missing
        np.testing.assert_allclose(exported(constant, X), constant.predict_proba(X), rtol=0, atol=1e-12)


def test_sql_of_a_tree_that_never_splits():
    tree = Tree(splits=Splits(w=[[0.0]], b=[1.0]), scaling=Scaling.identity(1), classes=[0, 1],
                probabilities=SmoothedShares()).counted([[0.0]], [1], [3.0])  # fmt: skip
    ((found,),) = sqlite3.connect(":memory:").execute(f"SELECT {tree.to_sql(proba=1)}")
    assert found == tree.predict_proba([[5.0]])[0, 1]
    with pytest.raises(ValueError, match="one of the labels"):
        tree.to_sql(proba=2)


# -- estimators and the command line ----------------------------------------------------------------------------------


def test_calibration_of_scikit_learn_improves_little():
    X, y = two_classes(800, flip_y=0.2)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    own = brier_score_loss(y_test, LocalSVMTreeClassifier().fit(X, y).predict_proba(X_test)[:, 1])
    other = CalibratedClassifierCV(LocalSVMTreeClassifier(), cv=3).fit(X, y).predict_proba(X_test)[:, 1]
    assert own < 1.05 * brier_score_loss(y_test, other)


def test_other_rules_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="'proba' parameter"):
        LocalSVMTreeClassifier(proba="platt").fit(X, y)


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = two_classes(120)
    lines = [",".join([*map(str, row), "ill" if label else "well"]) for row, label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,e,f,y", *lines]) + "\n")
    assert main(["fit", "t.csv", "--target", "y", "--model", "local", "--proba", "smoothed", "--quiet"]) == 0
    assert json.loads((tmp_path / "t.tree.json").read_text())["tree"]["probabilities"]["kind"] == "smoothed"
    assert main(["fit", "t.csv", "--target", "y", "--model", "local", "--force", "--quiet"]) == 0
    assert main(["export", "t.tree.json", "--to", "sql", "--proba", "ill", "--out", "t.sql"]) == 0
    assert "EXP(" in (tmp_path / "t.sql").read_text()
    assert main(["export", "t.tree.json", "--to", "sql", "--proba", "sick", "--force"]) == 2
    assert "one of the labels ill, well" in capsys.readouterr().err


# -- plot -------------------------------------------------------------------------------------------------------------


def test_the_reliability_plot_shows_shares_of_bins():
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    model, X, y = grown(proba="leaf")
    ax = model.plot_calibration(X, y)
    (points,) = [line for line in ax.get_lines() if len(line.get_xdata()) > 1 and line.get_marker() != "None"]
    # On its training data a tree with the shares of leaves is exactly reliable.
    np.testing.assert_allclose(points.get_xdata(), points.get_ydata())
    assert sorted(points.get_xdata()) == pytest.approx(sorted(set(model.predict_proba(X)[:, 1])))
    three, X, y = grown(3)
    assert len(three.tree_.plot_calibration(X, y, n_bins=4).get_legend_handles_labels()[1]) == 3
    with pytest.raises(ValueError, match="at least one sample"):
        three.tree_.plot_calibration(X[:0], y[:0])
