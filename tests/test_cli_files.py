"""What a command must not do to files, and what it must know of them again."""

import argparse
import csv
import io
import json

import pytest

import margotree
from easy import easy_rows, write_rows
from extras import needs
from margotree.cli import exit_codes, main, output_files
from margotree.private_names import arguments


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    """A new user's folder with easy.csv and a tree of it."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "easy.csv", easy_rows())

    def run(*args):
        capsys.readouterr()
        code = main(list(map(str, args)))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    assert (
        run("fit", "easy.csv", "--target", "died", "--model", "local", "--out", "t.json", "--quiet")[0] == exit_codes.OK
    )
    return run


# -- nothing is overwritten -------------------------------------------------------------------------------------

FIT = ("fit", "easy.csv", "--target", "died", "--model", "local", "--round", "no")


@pytest.mark.parametrize(
    ("command", "read"),
    [
        (("predict", "t.json", "easy.csv", "--out", "easy.csv"), "easy.csv"),
        (("predict", "t.json", "easy.csv", "--out", "t.json"), "t.json"),
        (("predict", "t.json", "easy.csv", "--out", "link.csv"), "easy.csv"),
        ((*FIT, "--out", "easy.csv"), "easy.csv"),
        ((*FIT, "--log", "./easy.csv"), "easy.csv"),
        ((*FIT, "--log", "x.json", "--out", "x.json"), "easy.csv"),
        (("tune", *FIT[1:], "--out", "easy.csv"), "easy.csv"),
        (("tune", *FIT[1:], "--resume", "easy.csv"), "easy.csv"),
        (("plot", "t.json", "--out", "t.json"), "t.json"),
        (("page", "t.json", "--data", "easy.csv", "--out", "easy.csv"), "easy.csv"),
        (("export", "t.json", "--to", "sql", "--out", "t.json"), "t.json"),
        (("check", "p.jsonl", "easy.csv", "--tree", "t.json", "--numbers", "easy.csv"), "easy.csv"),
        (("report", "t.json", "--out", "t.json"), "t.json"),
        (("table", "t.json", "--out", "t.json"), "t.json"),
    ],
)
def test_no_command_overwrites_what_it_reads(run, tmp_path, command, read):
    (tmp_path / "link.csv").symlink_to("easy.csv")
    before = (tmp_path / read).read_bytes()
    for force in ((), ("--force",)):
        code, _, err = run(*command, *force)
        assert code in (exit_codes.DATA, exit_codes.USAGE) and ("name another" in err), err
        assert (tmp_path / read).read_bytes() == before
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("command", "out"),
    [
        ((*FIT, "--C", "100"), "easy.tree.json"),
        ((*FIT, "--log", "there.log"), "there.log"),
        (("predict", "t.json", "easy.csv", "--out", "there.csv"), "there.csv"),
        pytest.param(("plot", "t.json", "--out", "there.svg"), "there.svg", marks=needs("matplotlib")),
        (("page", "t.json"), "t.html"),
        (("tune", *FIT[1:], "--folds", "2", "--grid", "C=1", "--out", "there.json"), "there.json"),
        (("export", "t.json", "--to", "sql"), "t.sql"),
        (("export", "t.json", "--to", "c", "--out", "there.c"), "there.c"),
        (("export", "t.json", "--to", "python"), "t.py"),
    ],
)
def test_what_is_there_is_replaced_only_when_asked(run, tmp_path, command, out):
    (tmp_path / out).write_text("an earlier answer")
    code, _, err = run(*command)
    assert code == exit_codes.DATA and f"{out} exists already; add --force" in err
    assert (tmp_path / out).read_text() == "an earlier answer"
    assert run(*command, "--force")[0] == exit_codes.OK
    assert (tmp_path / out).read_text() != "an earlier answer"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ((*FIT, "--model", "margot", "--proof", "there"), "--proof"),
        (("export", "t.json", "--to", "onnx", "--out", "there"), "--out"),
        (("report", "results.sqlite", "--out", "there"), "--out"),
        (("table", "results.sqlite", "--out", "there"), "--out"),
        (("check", "p.jsonl", "easy.csv", "--tree", "t.json", "--numbers", "there"), "--numbers"),
    ],
)
def test_what_is_there_is_kept_before_the_work_begins(run, tmp_path, command, option):
    (tmp_path / "there").write_text("an earlier answer")
    code, _, err = run(*command)
    assert code == exit_codes.DATA
    assert f"there exists already; add --force to replace it, or name another file with {option}" in err
    assert (tmp_path / "there").read_text() == "an earlier answer"


def test_every_option_that_names_a_file_to_write_comes_with_force():
    """But the results of experiments, which are gone on with (--resume) and never replaced."""
    writes = ("--out", "--log", "--proof", "--numbers")
    found = {}
    for command in commands():
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        options = {flag for action in arguments(parser) for flag in action.option_strings}
        if options & set(writes):
            found[command.__name__.rsplit(".", 1)[1]] = "--force" in options
    assert {name for name, forced in found.items() if not forced} == {"experiment"}
    assert {"fit", "tune", "predict", "plot", "page", "export", "report", "table", "check"} <= set(found)


def commands():
    from importlib import import_module
    from pkgutil import iter_modules

    import margotree.cli.commands as package

    found = [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]
    return [module for module in found if hasattr(module, "add_arguments")]


def test_at_a_terminal_the_user_is_asked(run, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    before = (tmp_path / "t.json").read_bytes()
    for answer, code in (("n\n", exit_codes.DATA), ("\n", exit_codes.DATA), ("y\n", exit_codes.OK)):
        shown = Terminal()
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        monkeypatch.setattr("sys.stderr", shown)
        assert main([*FIT, "--C", "100", "--out", "t.json", "--quiet"]) == code
        assert "t.json exists already; replace it? [y/N]" in shown.getvalue()
        assert ((tmp_path / "t.json").read_bytes() == before) == (code == exit_codes.DATA)


def test_files_of_other_kinds_get_trees_of_their_own(run, tmp_path):
    write_rows(tmp_path / "easy.tsv", easy_rows(), "\t")
    for data, tree in (("easy.csv", "easy.tree.json"), ("easy.tsv", "easy.tsv.tree.json")):
        code, out, _ = run("fit", data, "--target", "died", "--model", "local", "--round", "no")
        assert code == exit_codes.OK and f"saved as {tree}" in out and (tmp_path / tree).exists()


def test_devices_are_no_place_for_a_file(run):
    code, _, err = run("predict", "t.json", "easy.csv", "--out", "/dev/null", "--force")
    assert code == exit_codes.DATA and "not a regular file" in err
    assert not output_files.same_file("nowhere", "elsewhere")


# -- rows are known again ---------------------------------------------------------------------------------------


def test_verify_knows_its_rows_in_any_order(run, tmp_path):
    rows = easy_rows()
    write_rows(tmp_path / "sorted.csv", sorted(rows, key=lambda row: (row["age"], row["crp"])))
    code, out, _ = run("verify", "t.json", "sorted.csv")
    assert code == exit_codes.OK and "verified on 500 rows of sorted.csv, the training rows in another order" in out
    assert json.loads(run("verify", "t.json", "sorted.csv", "--json")[1])["same_rows_as_in_training"] is True
    assert "easy.csv, the training rows:" in run("verify", "t.json", "easy.csv")[1]
    # One row twice and another not at all is another set of rows.
    write_rows(tmp_path / "other.csv", [rows[1], *rows[1:]])
    out, err = run("verify", "t.json", "other.csv")[1:]
    assert "not the training rows" in out or "does not have the 500 training rows" in err


def test_predictions_keep_an_identifier_or_all_columns(run, tmp_path):
    rows = [{"pid": f"P{k}", **row, "prediction": k} for k, row in enumerate(easy_rows(5))]
    write_rows(tmp_path / "new.csv", rows)
    plain = list(csv.DictReader(io.StringIO(run("predict", "t.json", "new.csv")[1])))
    assert "pid" not in plain[0]
    code, out, _ = run("predict", "t.json", "new.csv", "--keep", "PID", "--keep", "age")
    kept = list(csv.DictReader(io.StringIO(out)))
    assert code == exit_codes.OK and list(kept[0])[:3] == ["pid", "age", "prediction"]
    assert [row["pid"] for row in kept] == [f"P{k}" for k in range(5)]
    assert [row["prediction"] for row in kept] == [row["prediction"] for row in plain]
    everything = list(csv.DictReader(io.StringIO(run("predict", "t.json", "new.csv", "--keep")[1])))
    assert list(everything[0])[:8] == [*rows[0]] and everything[3]["prediction"] == "3"
    assert [row["prediction (margotree)"] for row in everything] == [row["prediction"] for row in plain]
    records = json.loads(run("predict", "t.json", "new.csv", "--keep", "pid", "--json")[1])["predictions"]
    assert records[4]["pid"] == "P4"
    code, _, err = run("predict", "t.json", "new.csv", "--keep", "pit")
    assert code == exit_codes.DATA and "did you mean 'pid'" in err


# -- words ------------------------------------------------------------------------------------------------------


def test_a_word_in_another_case_is_the_same_word(run, tmp_path):
    rows = easy_rows()
    write_rows(tmp_path / "shouted.csv", [{**row, "smoker": f" {row['smoker'].upper()}"} for row in rows])
    for option in ((), ("--unknown", "ignore")):
        code, out, err = run("predict", "t.json", "shouted.csv", *option)
        assert code == exit_codes.OK and out == run("predict", "t.json", "easy.csv")[1] and "note" not in err
    assert run("verify", "t.json", "shouted.csv")[0] == exit_codes.OK


def test_words_nobody_knows_are_counted(run, tmp_path):
    rows = easy_rows(40)
    for k, word in enumerate(["sometimes"] * 3 + ["ex"]):
        rows[k]["smoker"] = word
    write_rows(tmp_path / "new.csv", rows)
    code, _, err = run("predict", "t.json", "new.csv")
    assert code == exit_codes.DATA and "'sometimes' in column 'smoker'" in err
    code, out, err = run("predict", "t.json", "new.csv", "--unknown", "ignore", "--json")
    note = (
        "4 rows have words in column 'smoker' that are not in the training file, treated as 'no', the first of two "
        "words: 'sometimes' (3), 'ex' (1)"
    )
    assert code == exit_codes.OK and f"note: {note}" in err and json.loads(out)["notes"] == [note]


# -- missing cells ----------------------------------------------------------------------------------------------


def test_the_command_line_and_python_fill_in_alike(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = easy_rows(120)
    for k in range(0, 120, 3):
        rows[k]["crp"] = ""
    for row in rows:
        row["smoker"] = int(row["smoker"] == "yes")
    path = write_rows(tmp_path / "holes.csv", rows)
    assert "--missing indicator" in run("fit", path, "--target", "died")[2]
    fit = ("fit", path, "--target", "died", "--C", "10", "--model", "local", "--round", "no")
    fit = (*fit, "--out", "holes.json", "--force")
    frame = pandas.read_csv(path)
    assert run(*fit, "--missing", "indicator")[0] == exit_codes.OK
    tree = margotree.load("holes.json")
    model = margotree.LocalSVMTreeClassifier(C=10).fit(frame.drop(columns="died"), frame["died"])
    assert tree.feature_names == model.tree_.feature_names and "crp missing" in tree.feature_names
    assert tree.certificate.objective == pytest.approx(model.certificate_.objective, rel=1e-9)
    code, out, err = run("predict", "holes.json", path)
    assert code == exit_codes.OK and "40 of 120 rows have no value in column 'crp'" in err
    found = [row["prediction"] for row in csv.DictReader(io.StringIO(out))]
    assert found == model.predict(frame.drop(columns="died")).tolist()
    assert run("verify", "holes.json", path)[0] == exit_codes.OK
