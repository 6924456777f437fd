"""Specs, rows, the evaluator and the tables; fits on generated sets alone, tables on made rows."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import FrozenInstanceError
from importlib import import_module

import numpy as np
import pytest

from margotree.cli import main as cli
from margotree.model_selection import Rows
from margotree.paper import experiments
from margotree.paper.data import DataError, DataMissingError, paper_table
from margotree.paper.experiments import search
from margotree.paper.experiments.__main__ import main
from margotree.paper.experiments.backends import joblib_backend
from margotree.paper.experiments.case import Case, row_identity, sorted_pairs
from margotree.paper.experiments.evaluate import accuracies, evaluate
from margotree.paper.experiments.samples import TABLE_SETS, samples
from margotree.paper.experiments.specs import SPECS, SearchSpec, Spec, find, resolve_sets
from margotree.paper.experiments.tables import best_rows
from margotree.paper.experiments.train import train
from margotree.solution import VerificationError

CASE = Case(data="4-partitions", model="local_svm", params=sorted_pairs({"C": [1.0, 1e4]}))

# -- specs ------------------------------------------------------------------------------------------------------


def test_every_printed_table_has_a_spec_and_the_other_way_round():
    printed = {"synthetic", "datasets", "warm_start", "hyperparameters", "hyperparameters_fs"}
    four = ("test_accuracy", "train_accuracy", "time_gap", "features")
    printed |= {*four, *(f"{kind}_fs" for kind in four)}
    printed |= {f"fixed_{kind}" for kind in ("test_accuracy", "train_accuracy", "time_gap")}
    printed |= {"oct1_depths_test", "oct1_depths_train", "depths"}
    assert set(experiments.names()) == printed


def test_specs_are_frozen_and_their_cases_are_what_the_paper_ran():
    spec = find("fixed_test_accuracy")
    assert isinstance(spec, Spec)
    with pytest.raises(FrozenInstanceError):
        spec.name = "other"
    cases = list(spec.cases(data=("Sonar",), only=("hfs",)))
    assert [dict(case.params) for case in cases] == [
        {"C": (100.0, 1000.0), "budget": (2, 2)},
        {"C": (0.0001, 10.0), "budget": (1, 2)},
    ]
    assert {case.time_limit for case in cases} == {600.0}
    deep = [case for case in find("oct1_depths_test").cases(data=("Sonar",), only=("oct_1",))]
    assert [(case.depth, case.time_limit) for case in deep] == [(2, 600.0), (3, 1800.0), (4, 3600.0)]


def test_tables_share_their_fits():
    accuracy, features = (set(find(name).cases()) for name in ("test_accuracy", "features"))
    assert accuracy == features and len(accuracy) == 30


def test_every_measure_of_every_spec_is_a_column_the_paper_prints():
    from margotree.paper.experiments.measures import MEASURES

    for spec in SPECS:
        if isinstance(spec, SearchSpec) or spec.reference is None or spec.layout != "plain":
            continue
        printed = paper_table(spec.reference)[0]
        for method in spec.methods:
            assert {f"{method.column}_{MEASURES[m].column}" for m in spec.measures} <= set(printed), spec.name


def test_a_case_is_named_by_what_matters():
    assert CASE.key("a") == Case(**{**CASE.__dict__}).key("a")
    assert CASE.key("a") != CASE.key("b") != CASE.with_limit(1.0).key("b")
    assert CASE.identity() == CASE.with_limit(1.0).identity()
    assert row_identity(CASE.row_columns("a")) == CASE.identity()


# -- one fit ----------------------------------------------------------------------------------------------------


def test_the_evaluator_scores_and_a_row_has_everything():
    split = samples("4-partitions")
    row = evaluate(CASE, train(CASE, split.X_train, split.y_train), split)
    for name in ("objective", "gap", "train_acc", "train_bacc", "features", "tree", "certificate", "versions"):
        assert row[name] is not None, name
    assert row["data_checksum"] == split.checksum and row["seed"] == 0 and row["test_acc"] is None
    assert 50 < row["train_acc"] < 100 and len(row["features"]) == 3


def test_the_evaluator_verifies_the_certificate():
    split = samples("4-partitions")
    trained = train(CASE, split.X_train, split.y_train)
    other = samples("6-partitions")
    with pytest.raises(VerificationError):
        evaluate(CASE, trained, other)


def test_accuracies_by_hand():
    y, predicted = np.array([1, 1, 1, -1]), np.array([1, 1, -1, -1])
    assert accuracies(y, predicted) == (75.0, pytest.approx(100 * (2 / 3 + 1) / 2))
    assert accuracies(y[:0], predicted[:0]) == (None, None)


# -- a run ------------------------------------------------------------------------------------------------------


def run(file, **more):
    return experiments.run(
        ["synthetic"], out=file, data=["4-partitions", "6-partitions"], only=["local_svm"], progress=0, **more
    )


def test_a_run_resumes_only_if_asked_to(tmp_path):
    file = tmp_path / "rows.sqlite"
    assert str(run(file)) == "2 fits made, 0 were there already, 0 failed"
    with pytest.raises(experiments.RowsError, match="holds results already"):
        run(file)
    assert str(run(file, resume=True)) == "0 fits made, 2 were there already, 0 failed"
    text = experiments.table("synthetic", file)
    assert "Local SVM" in text and "86.1" in text
    assert main(["figure", "planes", "--from", str(file), "--into", str(tmp_path)]) == 0
    assert (tmp_path / "planes-4-partitions.png").stat().st_size > 10_000


def test_a_failed_fit_is_listed_and_the_others_continue(tmp_path, monkeypatch):
    def broken(case, X, y):
        if case.data == "6-partitions":
            raise RuntimeError("out of luck")
        return train(case, X, y)

    monkeypatch.setattr(import_module("margotree.paper.experiments.run"), "train", broken)
    summary = run(tmp_path / "rows.sqlite")
    assert summary.made == 1
    assert summary.failed == [
        ("local_svm on 6-partitions, depth 3, C=(10.0, 100.0, 10000.0)", "RuntimeError: out of luck")
    ]


def test_errors_of_back_ends_name_the_remedy(tmp_path):
    with pytest.raises(experiments.BackendError, match="there are: threads, processes, dask"):
        run(tmp_path / "a.sqlite", backend="carrier pigeons")
    with pytest.raises(experiments.BackendError, match="needs the scheduler's address"), joblib_backend("dask"):
        pass
    with (
        pytest.raises(experiments.BackendError, match="goes with backend 'dask' only"),
        joblib_backend("threads", "tcp://x"),
    ):
        pass


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No data, no network: what is made here and what scikit-learn ships is all there is."""
    monkeypatch.delenv("MARGOTREE_DATA", raising=False)
    monkeypatch.setenv("MARGOTREE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("margotree.paper.data.download.fetch", lambda entry: (None, ["UCI 151: no network"]))
    samples.cache_clear()
    yield
    samples.cache_clear()


@pytest.mark.usefixtures("offline")
def test_without_data_and_network_one_line_says_so(tmp_path, capsys):
    file = str(tmp_path / "rows.sqlite")
    run(file)
    for command in (
        ["run", "test_accuracy", "--data", "Sonar", "--out", file, "--resume"],
        ["run", "hyperparameters", "--data", "Sonar", "--out", file, "--resume"],
        ["table", "datasets", "--data", "Sonar", "--from", file],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1 and "is not here: put" in said[0] and "MARGOTREE_DATA" in said[0], said
    with pytest.raises(DataError):
        experiments.run(["test_accuracy"], out=tmp_path / "b.sqlite", data=["Sonar"], progress=0)
    assert main(["run", "beauty", "--out", file]) == 2
    assert "unknown experiment 'beauty'" in capsys.readouterr().err


@pytest.mark.usefixtures("offline")
def test_a_run_continues_with_the_available_sets(tmp_path, capsys):
    file = str(tmp_path / "rows.sqlite")
    summary = experiments.run(["synthetic"], out=file, only=["local_svm"], progress=0)
    assert summary.made == 2 and list(summary.absent) == ["fourclass"] and "1 sets left out" in str(summary)
    assert main(["run", "synthetic", "--only", "local_svm", "--out", file, "--resume", "--quiet"]) == 1
    assert "left out: fourclass is not here: put" in capsys.readouterr().err
    code = cli(["experiment", "synthetic", "--only", "local_svm", "--out", file, "--resume", "--json", "--quiet"])
    assert code == 1 and list(json.loads(capsys.readouterr().out)["absent"]) == ["fourclass"]
    text = experiments.table("datasets", file)
    assert "Breast Cancer D." in text and "Data missing: Breast Cancer W." in text


@pytest.mark.usefixtures("offline")
def test_an_offline_run_says_once_what_is_missing(tmp_path, capsys):
    asked = ["--set", "Sonar", "--set", "Parkinsons"]
    command = ["experiment", "test_accuracy", "--only", "margot", "--out", str(tmp_path / "a.sqlite"), "--quiet"]
    assert cli([*command, *asked]) == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert "Parkinsons, Sonar are not here: put parkinsons.csv, sonar.csv into a folder and set" in said
    command = ["experiment", "synthetic", "--only", "local_svm", "--out", str(tmp_path / "b.sqlite"), "--quiet"]
    assert cli(command) == 1
    assert capsys.readouterr().err.count("not here") == 1
    reason = DataMissingError.of_all([DataMissingError({"A": "a.csv"}, tmp_path, ["x"]),
                                      DataMissingError({"B": "b.csv"}, tmp_path, ["y"])])  # fmt: skip
    summary = experiments.RunSummary(absent={"A": reason, "C": DataError("C has an infinite number")})
    assert (
        summary.left_out() == [str(reason), "C has an infinite number"] and str(reason).count("set MARGOTREE_DATA") == 1
    )


@pytest.mark.usefixtures("offline")
def test_the_small_paper_goes_on_offline(tmp_path, monkeypatch, capsys):
    paper = import_module("margotree.paper.experiments.small_run")
    monkeypatch.setattr(paper, "names", lambda: ("datasets", "synthetic", "features_fs", "hyperparameters"))
    monkeypatch.setattr(paper, "figure_names", lambda: ("planes",))
    monkeypatch.setattr(paper, "FIT", 0.2)
    asked = []
    real = paper.run

    def counted(names, **terms):
        asked.append((names, terms["data"]))
        return experiments.RunSummary() if names == ["hyperparameters"] else real(names, **terms)

    monkeypatch.setattr(paper, "run", counted)
    assert main(["paper", "--into", str(tmp_path / "small")]) == 0
    shown = capsys.readouterr()
    assert "left out: Parkinsons" in shown.err and "tables and figures are in" in shown.out
    assert asked[1] == (["hyperparameters"], ["Breast Cancer D."])  # the first that is here
    assert (tmp_path / "small" / "tables" / "synthetic.txt").exists()
    assert (tmp_path / "small" / "figures" / "planes-4-partitions.png").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["experiment", "test_accuracy", "--set", "Nonsense"], "no data set 'Nonsense' in test_accuracy; there are"),
        (["experiment", "all", "--set", "Sonnar"], "did you mean 'Sonar'?"),
        (["experiment", "synthetic", "--set", "Sonar"], "no data set 'Sonar' in synthetic; there are: 4-partitions"),
        (["experiment", "synthetic", "--only", "forest"], "no model 'forest' in synthetic; there are: local_svm"),
        (["table", "rows.sqlite", "synthetic", "--set", "Nonsense"], "no data set 'Nonsense'"),
        (["table", "missing.sqlite"], "there is no file of results missing.sqlite"),
        (["table", "missing.sqlite", "datasets"], "there is no file of results missing.sqlite"),
        (["table", "empty.sqlite"], "empty.sqlite holds no results"),
        (["report", "empty.sqlite"], "empty.sqlite holds no results"),
        (["table", "text.sqlite"], "text.sqlite is not a file of results"),
    ],
)
def test_names_and_files_that_do_not_exist_are_errors(tmp_path, monkeypatch, capsys, command, words):
    monkeypatch.chdir(tmp_path)
    run("rows.sqlite")
    (tmp_path / "empty.sqlite").touch()
    (tmp_path / "text.sqlite").write_text("no results, but long enough to be read as a database" * 30)
    assert cli(command) in (2, 3)
    assert words in capsys.readouterr().err
    assert not (tmp_path / "results").exists() and (tmp_path / "empty.sqlite").stat().st_size == 0


def test_sets_may_be_named_as_their_files_are():
    assert resolve_sets(["sonar", "cleveland", "4-PARTITIONS"]) == ["Sonar", "Heart Disease C.", "4-partitions"]


# -- tables on made rows ----------------------------------------------------------------------------------------


def made_row(case: Case, **more) -> dict:
    row = case.row_columns(f"{case.data}{more.get('time_limit')}")
    base = {
        "proved": "optimal", "gap": 0.0, "bound": 1.0, "objective": 1.0, "start_seconds": 0.5, "search_seconds": 1.0,
        "test_acc": 97.37, "test_bacc": 96.9, "train_acc": 99.3, "train_bacc": 99.1, "n_features": 30,
        "features": [30, 30, 0], "f0": None, "f1": None, "start_objective": 71.33,
    }  # fmt: skip
    return {**row, **base, **more}


@pytest.fixture
def made(tmp_path):
    """A file in which every fit of the paper on Breast Cancer D. is made up."""
    file = tmp_path / "made.sqlite"
    with Rows(file) as rows:
        for spec in SPECS:
            if isinstance(spec, Spec):
                for case in spec.cases(data=("Breast Cancer D.",)):
                    rows.put(made_row(case))
    return file


def lines_of(file, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(experiments.table(name, file, "csv", ["Breast Cancer D."]))))


def test_ours_beside_the_paper_s(made):
    (oct_h, _, margot) = lines_of(made, "test_accuracy")
    assert (margot["acc_ours"], margot["acc_paper"], margot["acc_diff"]) == ("97.4", "97.4", "+0.0")
    assert (oct_h["acc_ours"], oct_h["acc_paper"], oct_h["acc_diff"]) == ("97.4", "94.7", "+2.7")
    assert margot["certified"] == "yes"
    features = lines_of(made, "features")
    assert (features[2]["F_t_ours"], features[2]["F_t_diff"]) == ("30 30 0", "same")
    assert features[0]["F_t_diff"] == "other"
    (time, *_) = lines_of(made, "time_gap")
    assert (time["time_ours"], time["time_paper"], time["time_diff"]) == ("1.5", "620.2", "-618.7")


def test_what_tuning_gains(made):
    with Rows(made) as rows:
        fixed = next(find("fixed_time_gap").cases(data=("Breast Cancer D.",), only=("margot",)))
        rows.put({**made_row(fixed, test_acc=94.7, search_seconds=3.0, time_limit=601.0), "key": "newer"})
    line = lines_of(made, "fixed_test_accuracy")[0]
    assert (line["acc_ours"], line["d_acc_ours"], line["d_acc_paper"]) == ("94.7", "2.7", "2.6")
    line = lines_of(made, "fixed_time_gap")[0]
    assert (line["time_ours"], line["d_time_ours"], line["d_time_paper"]) == ("3.5", "2.0", "-3.5")


def test_starts(made):
    line = lines_of(made, "warm_start")[0]
    assert line["method"] == "MARGOT"
    assert [line[f"f0_local_svm_{part}"] for part in ("ours", "paper", "diff")] == ["71.33", "71.33", "+0.00"]
    assert (line["f1_none_ours"], line["f1_none_paper"]) == ("", "73.31")


def test_a_proved_row_is_shown_before_a_longer_one():
    case = next(find("test_accuracy").cases(data=("Sonar",), only=("margot",)))
    long, proved = made_row(case, proved="feasible", time_limit=900.0), made_row(case, time_limit=60.0)
    for rows in ([long, proved], [proved, long]):
        assert best_rows(rows)[case.identity()] is proved


def test_every_table_in_every_format(made):
    for name in experiments.names():
        if name == "datasets":
            continue
        for form in experiments.FORMATS:
            assert experiments.table(name, made, form, ["Breast Cancer D."]).strip()
    with pytest.raises(ValueError, match="there are: text, csv, latex, markdown"):
        experiments.table("features", made, "stone")
    latex = experiments.table("features", made, "latex", ["Breast Cancer D."])
    assert latex.count("\\begin{tabular}") == 1 and "$|$F\\_t$|$" in latex
    widths = {len(line.split(" & ")) for line in latex.splitlines() if line.startswith("MARGOT")}
    assert widths == {8}


def test_what_is_missing_is_a_dash(made):
    text = experiments.table("test_accuracy", made, "text", ["Sonar"])
    assert text.splitlines()[-3].split() == ["MARGOT", "Sonar", "-", "73.8", "-", "-", "73.0", "-"]


# -- searches ---------------------------------------------------------------------------------------------------


def fold_row(k: int, fold: int, C: list[float], accuracy: float, features: float, limit: float = 5.0) -> dict:
    scores = {"test": {"accuracy": accuracy, "n_features": features}, "train": {}, "seconds": 0.0}
    return {
        "key": f"{k}-{fold}-{limit}", "kind": "fold", "data": "Sonar", "model": "hfs", "fold": fold,
        "time_limit": limit,
        "params": {"C": C, "budget": [1, 2]}, "scores": scores, "proved": "optimal" if fold else "feasible",
    }  # fmt: skip


def test_the_choice_is_read_back_from_the_rows(tmp_path):
    with Rows(tmp_path / "rows.sqlite") as rows:
        assert search.choose(rows, "Sonar", "hfs", "features") is None
        for fold in range(4):
            rows.put(fold_row(2, fold, [1.0, 10.0], 0.80, 5))
            rows.put(fold_row(1, fold, [1.0, 1.0], 0.80, 5))
            rows.put(fold_row(0, fold, [0.1, 1.0], 0.79, 3))
            if fold:
                rows.put(fold_row(3, fold, [10.0, 1.0], 0.99, 1))  # not on all folds
            rows.put(fold_row(0, fold, [0.1, 1.0], 0.9, 9, limit=600.0))  # fewer settings
        by_features = search.choose(rows, "Sonar", "hfs", "features")
        by_accuracy = search.choose(rows, "Sonar", "hfs", "accuracy")
    assert by_features.params["C"] == [0.1, 1.0] and by_features.settings == 3 and by_features.certified == 0.75
    assert by_accuracy.params["C"] == [1.0, 1.0]  # the first of equals in the grid, not in the file


def test_choices_are_printed_beside_the_paper_s(tmp_path):
    file = tmp_path / "rows.sqlite"
    spec = find("hyperparameters_fs")
    case = search.final_case(spec, "Sonar", "hfs", {"C": [0.1, 1.0], "budget": [1, 2]})
    with Rows(file) as rows:
        for fold in range(4):
            rows.put(fold_row(0, fold, [0.1, 1.0], 0.79, 3))
        rows.put(made_row(case, test_acc=71.43, test_bacc=70.0))
    (line,) = csv.DictReader(io.StringIO(experiments.table("hyperparameters_fs", file, "csv")))
    assert (line["chosen_ours"], line["chosen_paper"]) == ("C 0.1, 1; B 1, 2", "C 0.0001, 10; B 1, 2")
    assert (line["test_acc_ours"], line["test_acc_paper"], line["test_acc_diff"]) == ("71.4", "71.4", "+0.0")


def test_reduced_grids_are_parts_of_the_paper_s():
    for model in ("margot", "hfs", "sfs", "oct_1", "mm_svm_oct"):
        full, few = search.grid(model, 30), search.grid(model, 30, reduced=True)
        assert all(few[name] and set(few[name]) <= set(full[name]) for name in full)
        assert np.prod([len(v) for v in few.values()]) <= 12


@pytest.mark.paper
@pytest.mark.skipif(not os.environ.get("MARGOTREE_DATA"), reason="MARGOTREE_DATA is not set")
def test_margot_scores_on_the_test_part_what_the_paper_prints(tmp_path):
    """Those of the ten that are certified within seconds; the others take minutes together."""
    quick = ["Breast Cancer D.", "Breast Cancer W.", "Climate Model", "Sonar", "Tic-Tac-Toe"]
    file = tmp_path / "rows.sqlite"
    experiments.run(["test_accuracy"], out=file, data=quick, only=["margot"], time_limit=60, progress=0)
    table = csv.DictReader(io.StringIO(experiments.table("test_accuracy", file, "csv", quick)))
    ours = [line for line in table if line["method"] == "MARGOT" and line["dataset"] in TABLE_SETS]
    assert [line["certified"] for line in ours] == ["yes"] * len(quick)
    assert {(line["acc_diff"], line["bacc_diff"]) for line in ours} == {("+0.0", "+0.0")}
