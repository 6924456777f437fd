"""A file is read as the training file was, by every command; an option given to a command overrides that."""

import csv
import io
import json

import numpy as np
import pytest

import margotree
from easy import easy_rows
from extras import optional
from margotree.cli import exit_codes, main

openpyxl = optional("openpyxl")

NAMES = ("age", "crp", "ward", "died")


def _rows(n=60):
    """Rows whose "crp" is unknown here and there, written as "<5"."""
    rows = [(str(row["age"]), str(row["crp"]), "äü"[k % 2], row["died"]) for k, row in enumerate(easy_rows(n))]
    return [(a, "<5" if k % 6 == 0 else c, w, d) for k, (a, c, w, d) in enumerate(rows)]


def _text(rows, delimiter=",", header=NAMES):
    return "\n".join(delimiter.join(row) for row in ([header] if header else []) + rows) + "\n"


def _known(rows):
    return [(a, c if c != "<5" else "9.5", w, d) for a, c, w, d in rows]


def _excel(path, rows):
    book = openpyxl.Workbook()
    book.active.append(["nothing"])
    sheet = book.create_sheet("patients")
    for row in [NAMES, *rows]:
        sheet.append([float(cell) if cell.replace(".", "").isdigit() else cell for cell in row])
    book.save(path)


def _commas(rows):
    return [(a.replace(".", ","), c.replace(".", ","), w, d) for a, c, w, d in rows]


#: The options of the fit, the file's name, and what it holds.
CASES = {
    "na": (["--na", "<5"], "t.csv", lambda path: path.write_text(_text(_rows()))),
    "two na": (
        ["--na", "<5", "--na", "ü"],
        "t.csv",
        lambda path: path.write_text(_text(_rows())),
    ),
    "delimiter": (["--delimiter", "^"], "t.csv", lambda path: path.write_text(_text(_known(_rows()), "^"))),
    "decimal": (["--decimal", ","], "t.csv", lambda path: path.write_text(_text(_quoted(_commas(_known(_rows())))))),
    "encoding": (["--encoding", "cp437"], "t.csv", lambda path: path.write_text(_text(_known(_rows())), "cp437")),
    "no header": (["--no-header"], "t.csv", lambda path: path.write_text(_text(_known(_rows()), header=None))),
    "sheet": (["--sheet", "patients"], "t.xlsx", lambda path: _excel(path, _known(_rows()))),
    "sheet and na": (["--sheet", "patients", "--na", "<5"], "t.xlsx", lambda path: _excel(path, _rows())),
}


def _quoted(rows):
    return [(a, f'"{c}"', w, d) for a, c, w, d in rows]


def _run(capsys, *args):
    capsys.readouterr()
    code = main(list(map(str, args)))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.fixture(params=CASES)
def fitted(request, tmp_path, capsys, monkeypatch):
    """A tree of a file that is read right with the options of the fit alone; the options and the file's name."""
    monkeypatch.chdir(tmp_path)
    told, name, write = CASES[request.param]
    write(tmp_path / name)
    target = "4" if "--no-header" in told else "died"
    code, _, err = _run(
        capsys, "fit", name, "--target", target, "--model", "local", "--missing", "median", "--out", "t.json", *told
    )
    assert code == exit_codes.OK, err
    return told, name


def test_every_command_reads_as_the_fit_did(fitted, capsys, tmp_path):
    told, name = fitted
    code, out, err = _run(capsys, "predict", "t.json", name)
    assert code == exit_codes.OK, err
    explicit = _run(capsys, "predict", "t.json", name, *told)
    assert (code, out) == explicit[:2] and len(list(csv.DictReader(io.StringIO(out)))) == 60
    code, out, err = _run(capsys, "verify", "t.json", name, "--json")
    assert code == exit_codes.OK and json.loads(out)["same_rows_as_in_training"] is True, err
    for command in (("plot", "t.json", "--data", name, "--out", "t.svg"), ("page", "t.json", "--data", name)):
        assert _run(capsys, *command)[0] == exit_codes.OK
    shown = _run(capsys, "show", "t.json", "--part", "terms")[1]
    assert "file read with --" in shown and all(word in shown for word in told)
    assert _run(capsys, "export", "t.json", "--to", "python")[0] == exit_codes.OK


def test_check_reads_as_the_fit_did(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(_text(_rows()))
    fit = ("fit", "t.csv", "--target", "died", "--na", "<5", "--missing", "median", "--drop", "ward", "--depth", "1")
    code, _, err = _run(capsys, *fit, "--out", "t.json", "--proof", "t.proof", "--time-limit", "20")
    assert code == exit_codes.OK, err
    code, _, err = _run(capsys, "check", "t.proof", "t.csv", "--tree", "t.json", "--numbers", "n.npz")
    assert code == exit_codes.OK, err
    assert np.load(tmp_path / "n.npz")["X"].shape[1] == 2
    # Without the tree the options would go unheard.
    code, _, err = _run(capsys, "check", "t.proof", "t.csv", "--na", "<5")
    assert code == exit_codes.USAGE and "--tree FILE" in err
    before = (tmp_path / "n.npz").read_bytes()
    code, _, err = _run(capsys, "check", "t.proof", "t.csv", "--tree", "t.json", "--numbers", "n.npz")
    assert code == exit_codes.DATA and "exists already" in err and (tmp_path / "n.npz").read_bytes() == before


#: An option of its own for a file that is not written as the training file was.
OTHERS = {
    "na": (["--na", "n.k."], lambda path: path.write_text(_text(_rows()).replace("<5", "n.k."))),
    "delimiter": (["--delimiter", ","], lambda path: path.write_text(_text(_known(_rows())))),
    "decimal": (["--decimal", "."], lambda path: path.write_text(_text(_known(_rows()), ";"))),
    "encoding": (["--encoding", "utf-8"], lambda path: path.write_bytes(_text(_known(_rows())).encode("utf-8-sig"))),
    "no header": (
        ["--header"],
        lambda path: path.write_text(_text(_known(_rows()), header=[f"column {k}" for k in range(1, 5)])),
    ),
}


@pytest.mark.parametrize("fitted", OTHERS, indirect=True)
def test_an_option_of_its_own_overrides_that_of_the_fit(fitted, request, capsys, tmp_path):
    told, _ = fitted
    given, write = OTHERS[request.node.callspec.params["fitted"]]
    write(tmp_path / "new.csv")
    without = _run(capsys, "predict", "t.json", "new.csv")
    code, out, err = _run(capsys, "predict", "t.json", "new.csv", *given)
    assert code == exit_codes.OK and len(out.splitlines()) == 61, err
    if told[0] in ("--delimiter", "--na"):
        assert without[0] == exit_codes.DATA
    if told[0] == "--delimiter":
        assert "new.csv is read with the options of the training file: --delimiter ^" in without[2]


def test_a_sheet_of_the_training_file_is_no_demand_on_a_csv_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _excel(tmp_path / "t.xlsx", _known(_rows()))
    (tmp_path / "new.csv").write_text(_text(_known(_rows())))
    fit = ("fit", "t.xlsx", "--sheet", "patients", "--target", "died", "--model", "local", "--out", "t.json")
    assert _run(capsys, *fit)[0] == exit_codes.OK
    assert _run(capsys, "predict", "t.json", "new.csv")[0] == exit_codes.OK
    # Without --sheet the first one is read; what goes wrong with it names the others.
    code, _, err = _run(capsys, "fit", "t.xlsx", "--target", "died", "--force")
    assert code == exit_codes.DATA and "others: 'patients'" in err


def test_trees_of_earlier_versions_say_nothing_of_reading(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(_text(_known(_rows())))
    assert _run(capsys, "fit", "t.csv", "--target", "died", "--model", "local", "--out", "t.json")[0] == exit_codes.OK
    tree = margotree.load("t.json")
    table = {k: v for k, v in tree.terms["table"].items() if k not in ("reading", "missing_report")}
    object.__setattr__(tree, "terms", {**tree.terms, "table": table})
    tree.save("t.json")
    assert _run(capsys, "predict", "t.json", "t.csv")[0] == exit_codes.OK
    assert "trained on 60 rows to predict 'died'" in _run(capsys, "show", "t.json")[1]
