"""The benchmark of regression: folds of the files, rows that are kept, and the table of means."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).parents[1] / "benchmarks" / "regression.py"


def test_rows_are_kept_and_not_made_again(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(SOURCE.parent)  # for the functions of the other benchmarks
    spec = importlib.util.spec_from_file_location("regression_benchmark", SOURCE)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    rng = np.random.default_rng(0)
    (tmp_path / "tables").mkdir()
    for name, fold in (("plain", None), ("folded", np.arange(60) % 3)):
        X = rng.random((60, 2))
        columns = [X, 3.0 * X[:, :1]] if fold is None else [fold[:, None], X, 3.0 * X[:, :1]]
        header = ",".join(["fold"] * (fold is not None) + ["a", "b", "y"])
        np.savetxt(tmp_path / "tables" / f"{name}.csv", np.hstack(columns), delimiter=",", header=header, comments="")
    out = tmp_path / "rows.csv"
    quick = ["margotree", "ridge", "linear SVR", "CART 3", "CART 4"]
    command = ["regression.py", str(tmp_path / "tables"), "--out", str(out), "--limit", "1", "--folds", "1"]
    command += [word for name in quick for word in ("--only", name)]
    monkeypatch.setattr(sys, "argv", command)
    benchmark.main()
    rows = benchmark.read(out)
    assert len(rows) == 2 * len(quick)
    assert {row["rows"] for row in rows} == {"60"} and {row["columns"] for row in rows} == {"2"}
    assert all(float(row["r2"]) > 0.98 for row in rows if row["method"] in {"margotree", "ridge"})
    written = out.read_text()
    benchmark.main()
    assert out.read_text() == written
    monkeypatch.setattr(sys, "argv", ["regression.py", "--out", str(out), "--table"])
    capsys.readouterr()
    benchmark.main()
    assert "| mean of 2 |" in capsys.readouterr().out
