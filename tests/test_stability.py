"""Refits on bootstrap samples: features, splits and predictions that return."""

import json

import numpy as np
import pytest

from margotree import HFSMargotClassifier, LocalSVMTreeClassifier, MargotRegressor
from margotree.cli import main
from margotree.model_selection import tree_stability


def table(n=120, noise=0.0, seed=0):
    """The label depends on the first of three features."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.where((X[:, 0] > 0.5) ^ (rng.random(n) < noise), "high", "low")


def stump(**options):
    return HFSMargotClassifier(depth=1, C=100.0, node_limit=5, time_limit=None, **options)


def test_a_clear_split_returns_in_every_refit():
    X, y = table()
    found = tree_stability(stump(), X, y, n_refits=5)
    assert found.feature_share == {"x0": 1.0} and found.n_refits == 5
    (split,) = found.splits
    assert split.features == ("x0",) and split.share == 1.0
    low, high = split.thresholds
    assert 0.45 < low <= high < 0.55
    assert found.agreement.shape == (120,) and found.agreement.mean() > 0.97
    assert "x0: 100%" in str(found) and "5 refits" in str(found)
    assert json.loads(json.dumps(found.record()))["splits"][0]["share"] == 1.0


def test_a_target_without_structure_is_not_stable():
    X, y = table(60, noise=0.5)
    found = tree_stability(stump(), X, y, n_refits=8)
    assert len(found.feature_share) > 1 and found.agreement.mean() < 0.9


def test_refits_are_reproducible_and_weighted():
    X, y = table(60, noise=0.2)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    one, two = (tree_stability(stump(), X, y, sample_weight=weight, n_refits=3) for _ in range(2))
    assert np.array_equal(one.agreement, two.agreement) and one.feature_share == two.feature_share


def test_numbers_have_a_mean_difference():
    X, _ = table(80)
    y = np.where(X[:, 0] > 0.5, 10 * X[:, 1], -X[:, 1])
    model = MargotRegressor(depth=2, budget=1, leaf_budget=1, node_limit=5, time_limit=None)
    found = tree_stability(model, X, y, n_refits=4)
    assert found.of_numbers and found.agreement.mean() < 0.3
    assert set(found.feature_share) >= {"x0", "x1"} and "standard deviations" in str(found)


def test_wrong_calls_have_a_clear_error():
    with pytest.raises(ValueError, match="at least 2"):
        tree_stability(stump(), *table(20), n_refits=1)


def test_the_plot_shows_the_shares():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    from margotree.plots import plot_stability

    ax = plot_stability(tree_stability(stump(), *table(60, noise=0.3), n_refits=4))
    assert max(bar.get_width() for bar in ax.patches) <= 100.0 and "refits agree" in ax.get_title(loc="left")
    plt.close("all")


def test_warnings_are_those_of_the_tree_of_all_samples(tmp_path, capsys, recwarn):
    X, y = table(60)
    model = LocalSVMTreeClassifier(depth=2, C=0.01)  # too small for three splits
    tree_stability(model, X, y, n_refits=3)
    assert len([one for one in recwarn if issubclass(one.category, UserWarning)]) == 1
    rows = [",".join(map(repr, row)) + f",{label}" for row, label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "people.csv").write_text("age,crp,dose,outcome\n" + "\n".join(rows) + "\n")
    command = ["stability", str(tmp_path / "people.csv"), "--target", "outcome", "--model", "local", "--depth", "2"]
    assert main([*command, "--C", "0.01", "--refits", "3"]) == 0
    err = capsys.readouterr().err
    assert err.count("an effect") == 1 and "Warning" not in err


def test_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = table(60)
    rows = [",".join(map(repr, row)) + f",{label}" for row, label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "people.csv").write_text("age,crp,dose,outcome\n" + "\n".join(rows) + "\n")
    command = ["stability", "people.csv", "--target", "outcome", "--model", "hfs", "--depth", "1", "--C", "100"]
    assert main([*command, "--node-limit", "5", "--refits", "3"]) == 0
    out = capsys.readouterr().out
    assert "3 refits" in out and "age" in out
    assert main([*command, "--node-limit", "5", "--refits", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["feature_share"] == {"age": 1.0}
    assert main([*command, "--refits", "1"]) != 0
    assert "at least 2" in capsys.readouterr().err
