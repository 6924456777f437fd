"""The frontier benchmark: what counts as a number to read, rows that resume, means with standard errors."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier


@pytest.fixture(scope="module")
def frontier():
    folder = str(Path(__file__).parents[1] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("frontier")
    finally:
        sys.path.remove(folder)
        for name in ("frontier", "breadth"):
            sys.modules.pop(name, None)


def test_splits_between_leaves_of_one_label_are_not_numbers_to_read(frontier):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    tree = DecisionTreeClassifier(random_state=0).fit(X, [0, 0, 1, 1, 1, 0])
    assert frontier.cart_numbers(tree.tree_) == 2
    # The left leaf is purer than the right one, but both have the same label.
    X = np.arange(10.0)[:, None]
    weak = DecisionTreeClassifier(max_depth=1, min_samples_leaf=3).fit(X, [0, 0, 0, 0, 0, 1, 0, 0, 1, 0])
    assert weak.tree_.node_count == 3 and not weak.predict(X).any()
    assert frontier.cart_numbers(weak.tree_) == 0


def test_rows_are_kept_and_means_have_standard_errors(frontier, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    for name, n_labels in (("one", 2), ("two", 3)):
        x = rng.random((90, 2))
        labels = np.array(["no", "yes", "perhaps"])[(x.sum(axis=1) * n_labels / 2).astype(int).clip(0, n_labels - 1)]
        lines = [f"{a},{b},{label}" for (a, b), label in zip(x, labels, strict=True)]
        (tmp_path / f"{name}.csv").write_text("a,b,class\n" + "\n".join(lines) + "\n")
    out = tmp_path / "rows" / "frontier.csv"
    asked = ["frontier", "--data", str(tmp_path), "--out", str(out), "--seeds", "0", "1", "--reference", "cart d3",
             "--methods", "cart d2", "cart d3", "logistic"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", asked)
    frontier.main()
    rows = out.read_text()
    assert rows.count("\n") == 1 + 2 * 2 * 3
    shown = capsys.readouterr().out
    assert "all tables: 2 (" in shown and "tables of two classes: 1 (one), 2 seeds" in shown and " ± " in shown
    frontier.main()
    assert out.read_text() == rows
    read = frontier.read_rows(out)
    tables, seeds, found = frontier.summaries(read, "cart d3")
    assert sorted(tables) == ["one", "two"] and seeds == ["0", "1"]
    for one in found:
        values = [[float(r["accuracy"]) for r in read if (r["method"], r["seed"]) == (one.method, s)] for s in seeds]
        assert one.accuracy == pytest.approx(100 * np.mean(values))
        assert one.accuracy_error == pytest.approx(100 * np.std(np.mean(values, axis=1), ddof=1) / np.sqrt(2))
        assert one.better + one.worse <= 2 and one.numbers >= 1
    monkeypatch.setattr(sys, "argv", [*asked, "--picture", str(tmp_path / "frontier.png")])
    frontier.main()
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")


def test_our_trees_are_counted_as_they_are_printed(frontier):
    rng = np.random.default_rng(0)
    X = rng.random((80, 3))
    row = frontier.run_one(X, np.where(X[:, 0] + X[:, 1] > 1, "yes", "no"), 0, "d2 b1", 0.5, 1000)
    assert row["numbers"] <= 3 and 0.5 < row["accuracy"] <= 1 and 0 <= row["brier"] < 0.5
    assert row["correct"] == 1 and 1 <= row["digits"] <= 9
    assert row["numbers"] <= row["unrounded_numbers"] and abs(row["accuracy"] - row["unrounded"]) < 0.2


def test_splits_of_cart_are_counted_as_they_are_printed(frontier):
    X = np.arange(12.0)[:, None]
    row = frontier.run_one(np.repeat(X, 8, axis=0), np.repeat(["no"] * 5 + ["yes"] * 7, 8), 0, "plain cart d4", 1, 1000)
    assert row["splits"] == row["numbers"] == 1 and row["unrounded"] == ""
