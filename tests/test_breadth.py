"""The breadth benchmark: rows that resume, ranks and their critical difference."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[1] / "benchmarks" / "breadth.py"


@pytest.fixture(scope="module")
def breadth():
    spec = importlib.util.spec_from_file_location("breadth", SOURCE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["breadth"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_critical_difference_is_the_textbooks(breadth):
    assert breadth.critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), rel=1e-3)
    assert breadth.critical_difference(10, 20) == pytest.approx(3.164 * np.sqrt(10 * 11 / (6 * 20)), rel=1e-3)


def test_ranks_share_ties(breadth):
    assert breadth.ranks(np.array([[0.9, 0.8, 0.8], [0.7, 0.9, 0.8]])).tolist() == [2.0, 1.75, 2.25]


def test_rows_are_kept_and_not_made_again(breadth, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    tables = tmp_path / "tables"
    tables.mkdir()
    for name in ("one", "two"):
        x, word = rng.random(80), rng.choice(["a", "b"], 80)
        label = np.where(x + 0.3 * (word == "a") > 0.6, "yes", "no")
        lines = [f"{v},{w},{c}" for v, w, c in zip(x, word, label, strict=True)]
        (tables / f"{name}.csv").write_text("x,word,class\n" + "\n".join(lines) + "\n")
    out, pictures = tmp_path / "rows.csv", tmp_path / "pictures"
    asked = ["breadth", "--data", str(tables), "--out", str(out), "--methods", "cart d2", "cart d3", "logistic"]
    monkeypatch.setattr(sys, "argv", asked)
    breadth.main()
    rows = out.read_text()
    assert rows.count("\n") == 1 + 2 * 3 and "Friedman" in capsys.readouterr().out
    first = breadth.read_rows(out)[0]
    assert int(first["columns"]) == 3 and 0.5 < float(first["accuracy"]) <= 1 and float(first["splits"]) >= 1
    breadth.main()
    assert out.read_text() == rows
    monkeypatch.setattr(sys, "argv", [*asked, "--pictures", str(pictures)])
    breadth.main()
    assert {path.name for path in pictures.iterdir()} == {"breadth_ranks.png", "breadth_splits.png"}


def test_a_method_for_two_classes_waits_where_there_are_more(breadth):
    assert breadth.possible("cart d2", 5) and breadth.possible("margot d2", 2)
    assert breadth.possible("margot d2", 5) == (not breadth.METHODS["margot d2"].two_classes)
