"""Every export of a regression tree predicts what the tree predicts, also far outside the training data."""

import ctypes
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

from margotree import MargotRegressor
from margotree.problem import Splits
from margotree.tree import RegressionTree, Scaling, TargetScaling

NAMES = ("age", "C-reactive protein", 'the "third"')


def random_tree(seed, depth=3, n=3):
    """A tree of random weights with limits, features of several scales and origins."""
    rng = np.random.default_rng(seed)
    n_upper = 2 ** (depth - 1) - 1
    w = rng.normal(size=(2 * n_upper + 1, n)) * (rng.random((2 * n_upper + 1, n)) < 0.7)
    b = rng.normal(size=2 * n_upper + 1) * 0.3
    X = rng.random((60, n)) * [1.0, 100.0, 1e-3] + [0.0, 1e6, -3.0]
    scaling = Scaling(offset=X.min(axis=0), scale=np.ptp(X, axis=0))
    tree = RegressionTree(
        splits=Splits(w=w[:n_upper], b=b[:n_upper]),
        models=Splits(w=w[n_upper:], b=b[n_upper:]),
        scaling=scaling,
        target=TargetScaling(center=float(rng.normal()) * 50, scale=10.0 ** rng.integers(-2, 4)),
        target_name="strength",
        feature_names=NAMES,
    )
    return tree.trained_on(X, tree.predict(X), np.ones(60)), X


def rows_of(tree, X, seed=0):
    """Training rows, rows outside the training range, and extreme ones."""
    rng = np.random.default_rng(seed)
    wide = X.mean(axis=0) + 5 * np.ptp(X, axis=0) * rng.normal(size=(200, X.shape[1]))
    extreme = rng.choice([0.0, 1e150, -1e150, 1e308, -1e308], (40, X.shape[1]))
    return np.concatenate([X, wide, extreme])


CASES = [pytest.param(seed, depth, id=f"{seed}-{depth}") for seed in range(4) for depth in (1, 2, 3)]


def same(found, tree, rows):
    expected = tree.predict(rows)
    spread = np.ptp(tree.limits[np.isfinite(tree.limits)])
    return np.allclose(np.asarray(found, dtype=float), expected, rtol=1e-9, atol=1e-9 * spread)


@pytest.mark.parametrize(("seed", "depth"), CASES)
def test_python(seed, depth):
    tree, X = random_tree(seed, depth)
    rows, module = rows_of(tree, X), {}
    exec(tree.to_python(), module)
    assert same(module["predict_many"](rows.tolist()), tree, rows)
    named = dict(zip(NAMES, map(str, rows[0]), strict=True))
    assert module["predict"](named) == pytest.approx(tree.predict(rows[:1])[0])
    assert module["TARGET"] == "strength" and "predict_proba" not in module
    with pytest.raises(ValueError, match="not finite"):
        module["predict"]([1.0, np.nan, 2.0])


@pytest.mark.parametrize(("seed", "depth"), CASES)
def test_sql(seed, depth):
    tree, X = random_tree(seed, depth)
    rows = rows_of(tree, X)
    with sqlite3.connect(":memory:") as base:
        columns = ", ".join('"' + name.replace('"', '""') + '" REAL' for name in NAMES)
        base.execute(f"CREATE TABLE people ({columns})")
        base.executemany("INSERT INTO people VALUES (?, ?, ?)", [*rows.tolist(), (None, None, None)])
        found = [row[0] for row in base.execute(f"SELECT {tree.to_sql(table='people')} FROM people ORDER BY rowid")]
    assert same(found[:-1], tree, rows)
    assert found[-1] is None or not tree.hyperplanes.w.any()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(("seed", "depth"), CASES[:6])
def test_c(seed, depth, tmp_path):
    tree, X = random_tree(seed, depth)
    rows = rows_of(tree, X)
    (tmp_path / "tree.c").write_text(tree.to_c(name="mine"))
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-shared", "-fPIC", "tree.c", "-o"]
    subprocess.run([*command, "tree.so", "-lm"], check=True, cwd=tmp_path)
    predict = ctypes.CDLL(str(tmp_path / "tree.so")).mine_predict
    predict.restype = ctypes.c_double
    numbers = ctypes.c_double * 3
    assert same([predict(numbers(*row)) for row in rows], tree, rows)
    assert np.isnan(predict(numbers(np.nan, np.nan, np.inf))) or not tree.hyperplanes.w.any()


@pytest.mark.parametrize(("seed", "depth"), CASES)
def test_onnx(seed, depth):
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    pytest.importorskip("onnx", reason="needs margotree[onnx]")
    tree, X = random_tree(seed, depth)
    rows = np.concatenate([rows_of(tree, X), [[0.0, np.nan, 0.0]]])
    session = runtime.InferenceSession(tree.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(["prediction"], {"X": rows})
    ordinary = np.abs(rows).max(axis=1) < 1e200  # sums of a matrix product of larger numbers overflow
    assert same(found[ordinary], tree, rows[ordinary]) and np.isnan(found[-1])


def test_a_fitted_tree_with_equal_and_constant_leaves():
    rng = np.random.default_rng(0)
    X = rng.random((40, 3))
    for y, terms in ((X[:, 0] > 0.5, {"leaf_budget": 0}), (np.full(40, 7.25), {})):
        tree = MargotRegressor(depth=2, node_limit=5, **terms).fit(X, y).tree_
        module = {}
        exec(tree.to_python(), module)
        assert np.allclose(module["predict_many"](X.tolist()), tree.predict(X))
        with sqlite3.connect(":memory:") as base:
            columns = "SELECT ? AS x0, ? AS x1, ? AS x2"
            query = f"SELECT {tree.to_sql()} FROM ({columns})"
            assert base.execute(query, X[0].tolist()).fetchone()[0] == pytest.approx(tree.predict(X[:1])[0])
        assert "double margotree_predict" in tree.to_c()


def test_a_tree_of_numbers_has_no_probabilities():
    tree, _ = random_tree(0)
    from margotree.export import to_sql

    with pytest.raises(ValueError, match="no probabilities"):
        to_sql(tree, proba="yes")
