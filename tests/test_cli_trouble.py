"""What goes wrong outside: full disks, files that were tampered with, Ctrl-C, and options that are not understood."""

import copy
import errno
import itertools
import json
import os
import subprocess
import sys

import pytest

import margotree
from easy import easy_rows, write_rows
from extras import needs
from margotree import atomic_files
from margotree.cli import exit_codes, main
from margotree.tree import Tree, TreeFileError, file


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A folder with a table that has holes, and trees of it: two classes, and three."""
    folder = tmp_path_factory.mktemp("trouble")
    rows = easy_rows(60)
    for k, row in enumerate(rows):
        row["crp"] = "" if k % 5 == 0 else row["crp"]
        row["smoker"] = "" if k % 7 == 0 else row["smoker"]
        row["stage"] = "abc"[k % 3]
    rows[3]["died"] = ""
    data = write_rows(folder / "easy.csv", rows)
    for target, missing, other in (("died", "median", "stage"), ("stage", "median", "died")):
        fit = ["fit", data, "--target", target, "--model", "local", "--missing", missing, "--drop", other]
        assert main([*fit, "--out", str(folder / f"{target}.json"), "--quiet"]) == exit_codes.OK
    return folder


@pytest.fixture
def run(trees, tmp_path, capsys, monkeypatch):
    """Run a command in an empty folder with the table and the trees."""
    for name in ("easy.csv", "died.json", "stage.json"):
        (tmp_path / name).write_bytes((trees / name).read_bytes())
    monkeypatch.chdir(tmp_path)

    def run(*args):
        capsys.readouterr()
        code = main(list(map(str, args)))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


FIT = ("fit", "easy.csv", "--target", "died", "--drop", "stage", "--missing", "median", "--model", "local")


# -- files that cannot be written ---------------------------------------------------------------------------------


def _full(monkeypatch, folder):
    """No room in this folder: the system says so when a file is written out."""
    plain = os.fsync

    def full(descriptor):
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(folder)):
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(descriptor)

    monkeypatch.setattr(atomic_files.os, "fsync", full)


@pytest.mark.parametrize(
    ("command", "out"),
    [
        (("predict", "died.json", "easy.csv", "--missing", "skip", "--out"), "out.csv"),
        pytest.param(("plot", "died.json", "--out"), "out.svg", marks=needs("matplotlib")),
        (("page", "died.json", "--out"), "out.html"),
        (("export", "died.json", "--to", "c", "--out"), "out.c"),
    ],
)
@pytest.mark.parametrize("earlier", [True, False])
def test_a_full_disk_is_an_error_and_leaves_nothing_behind(run, tmp_path, monkeypatch, command, out, earlier):
    if earlier:
        (tmp_path / out).write_text("an earlier answer")
    before = sorted(os.listdir())
    _full(monkeypatch, tmp_path)
    force = ["--force"] if earlier else []
    code, said, err = run(*command, out, *force)
    assert code == exit_codes.DATA and f"{out} cannot be written: No space left on device" in err
    assert "written as" not in said
    assert sorted(os.listdir()) == before
    if earlier:
        assert "is unchanged" in err and (tmp_path / out).read_text() == "an earlier answer"


@pytest.mark.parametrize("command", [FIT, ("tune", *FIT[1:], "--grid", "C=1", "--folds", "2")], ids=["fit", "tune"])
def test_a_tree_that_cannot_be_written_is_kept_elsewhere_and_the_command_fails(
    run, tmp_path, tmp_path_factory, monkeypatch, command
):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(elsewhere))
    before = (tmp_path / "died.json").read_bytes()
    _full(monkeypatch, tmp_path)
    code, out, err = run(*command, "--out", "died.json", "--force")
    kept = next(elsewhere.iterdir())
    assert code == exit_codes.DATA and "died.json holds an EARLIER tree and not the tree of this fit" in err
    assert f"saved as {kept}" in out and "NOT WRITTEN: died.json" in out and f"saved as {kept} instead" in err
    assert (tmp_path / "died.json").read_bytes() == before and margotree.load(kept).depth == 2
    assert "proof" not in err
    code, out, err = run(*command, "--out", "died.json", "--force", "--json")
    record = json.loads(out)
    assert code == exit_codes.DATA and record["tree"] != "died.json" and "No space left" in record["not_written"][0]


def test_a_tree_is_printed_where_there_is_no_place_at_all(run, tmp_path, monkeypatch):
    def nowhere():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    _full(monkeypatch, tmp_path)
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    code, out, err = run(*FIT, "--out", "new.json", "--quiet")
    assert (
        code == exit_codes.DATA and "printed on standard output instead" in err and not (tmp_path / "new.json").exists()
    )
    assert Tree.from_dict(json.loads(out)).depth == 2


def test_a_log_or_a_proof_that_cannot_be_written_does_not_cost_the_tree(run, tmp_path, tmp_path_factory, monkeypatch):
    full = tmp_path_factory.mktemp("full")
    _full(monkeypatch, full)
    code, out, _ = run(*FIT, "--out", "new.json", "--log", full / "log.jsonl")
    assert code == exit_codes.DATA and "saved as new.json" in out and "NOT WRITTEN" in out and "log.jsonl cannot" in out
    assert margotree.load("new.json").depth == 2 and os.listdir(full) == []
    fit = [*FIT[:-2], "--depth", "1", "--time-limit", "10", "--out", "proved.json", "--proof", full / "proof"]
    code, out, _ = run(*fit)
    assert code == exit_codes.DATA and "proof cannot be written: No space left" in out and "NOT WRITTEN" in out
    assert "its proof as" not in out and margotree.load("proved.json").depth == 1 and os.listdir(full) == []


def test_a_file_without_permission_is_not_replaced(run, tmp_path, monkeypatch):
    plain = os.access
    (tmp_path / "out.csv").write_text("mine")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("out.csv") and plain(path, mode))
    code, _, err = run("predict", "died.json", "easy.csv", "--out", "out.csv", "--force")
    assert (
        code == exit_codes.DATA and "out.csv is write-protected" in err and (tmp_path / "out.csv").read_text() == "mine"
    )
    code, _, err = run("predict", "died.json", "easy.csv", "--out", "no/out.csv")
    assert code == exit_codes.DATA and "there is no folder" in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_standard_output_on_a_full_disk_is_an_error_without_a_traceback(run, more):
    command = [sys.executable, "-m", "margotree", "show", "died.json", *more]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == exit_codes.DATA and done.stderr.count("\n") == 1, done.stderr
    assert "standard output cannot be written: No space left on device" in done.stderr


# -- tree files with a right checksum and wrong entries -------------------------------------------------------------

_GONE = object()
OTHERS = (_GONE, None, "x", 7, -1.5, True, [], {}, [["x"]], 10**400)


def _places(value, path=()):
    """Every entry of the record; of lists the first item and, where items have entries, the last one stand for all.

    What is below "simplified" is for people: it is worked out anew and never read.
    """
    if path:
        yield path
    if path == ("simplified",):
        return
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        nested = any(isinstance(item, (dict, list)) for item in value[:1])
        for k in sorted({0, len(value) - 1} if nested else {0}) if value else ():
            yield from _places(value[k], (*path, k))


def _changed(record, path, value):
    record = copy.deepcopy(record)
    *way, last = path
    at = record["tree"]
    for key in way:
        at = at[key]
    if value is _GONE:
        del at[last]
    else:
        at[last] = value
    record["checksum"] = file.checksum_of(record["tree"])
    return record


def _refused(path):
    """Whether the file is no tree, and that is said with its name."""
    try:
        margotree.load(path)
    except TreeFileError as error:
        return path in str(error)
    return False


COMMANDS = (
    ("show", "bad.json"), ("show", "bad.json", "--json"), ("predict", "bad.json", "easy.csv"),
    ("predict", "bad.json", "easy.csv", "--proba", "--json"), ("verify", "bad.json", "easy.csv"),
    *(("export", "bad.json", "--to", to, "--out", "-") for to in ("sql", "c", "python")),
)  # fmt: skip


@pytest.mark.parametrize("name", ["died", "stage"])
def test_no_entry_of_a_tree_file_can_cause_a_traceback(run, name, tmp_path, monkeypatch):
    record = json.loads((tmp_path / f"{name}.json").read_text())
    record["tree"]["terms"]["proof"] = {"sha256": "0", "objective": 1.0, "bound": 0.5}
    accepted = refused = 0
    for path, value in itertools.product(_places(record["tree"]), OTHERS):
        bad = _changed(record, path, value)
        (tmp_path / "bad.json").write_text(json.dumps(bad))
        if _refused("bad.json"):
            refused += 1
            continue
        accepted += 1
        if accepted % 7:  # some are shown, exported and so on
            continue
        for command in COMMANDS:
            code, _, err = run(*command)  # what is not expected is raised and fails the test
            assert code in (exit_codes.OK, exit_codes.FAILED, exit_codes.USAGE, exit_codes.DATA), (
                path,
                value,
                command,
                err,
            )
    assert refused > 2 * accepted > 0
    code, _, err = run("show", "bad.json")
    assert code in (exit_codes.OK, exit_codes.DATA) and "Traceback" not in err


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("terms", "table", "target"), _GONE, "'target' is missing"),
        (("terms", "table", "columns", 0, "name"), 7, "'name' cannot be 7"),
        (("terms", "table", "reading"), {"delimiter": 5}, "'delimiter' cannot be 5"),
        (("terms", "table", "rows"), "many", "'rows' cannot be 'many'"),
        (("terms", "table", "missing_report", "rows"), -1, "in 'rows' cannot be -1"),
        (("terms", "C"), "x", "terms: C must be a list of numbers"),
        (("terms", "class_weight"), [1.0], "class_weight needs a number for each of the 2 classes"),
        (("certificate", "nodes"), 1.5, "cannot be 1.5"),
        (("certificate", "warnings"), "x", "cannot be 'x'"),
        (("eps",), "0.1", "eps must be a number"),
        (("leaf_class", 0), 0.5, "leaf_class: expected whole numbers"),
        (("terms", "proof"), {"sha256": "0"}, "proof: objective must be a number"),
    ],
)
def test_a_wrong_entry_is_named(run, tmp_path, path, value, words):
    record = json.loads((tmp_path / "died.json").read_text())
    (tmp_path / "bad.json").write_text(json.dumps(_changed(record, path, value)))
    for command in (("show", "bad.json"), ("verify", "bad.json", "easy.csv"), ("predict", "bad.json", "easy.csv")):
        code, _, err = run(*command)
        assert code == exit_codes.DATA and "bad.json: the tree in it makes no sense" in err and words in err, err


# -- Ctrl-C ---------------------------------------------------------------------------------------------------------

INTERRUPTED_IMPORT = """
import sys
class Ctrl_C:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Ctrl_C())
from margotree.cli import main
sys.exit(main(["show", "died.json"]))
"""


@pytest.mark.parametrize(
    "module", ["margotree.cli.exit_codes", "margotree.cli.commands.tune", "numpy", "margotree.tree"]
)
def test_ctrl_c_during_imports_is_quiet(run, module):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT, module], capture_output=True, text=True)
    assert done.returncode == exit_codes.INTERRUPTED and "Traceback" not in done.stderr and done.stderr.count("\n") <= 1


def test_an_import_error_that_ctrl_c_caused_is_ctrl_c(run, monkeypatch):
    def interrupted(args):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as cause:
            raise ImportError("partially initialised") from cause

    monkeypatch.setattr("margotree.cli.commands.show.run", interrupted)
    code, _, err = run("show", "died.json")
    assert code == exit_codes.INTERRUPTED and "Traceback" not in err


def test_ctrl_c_before_the_search_says_why_there_is_no_tree(run, monkeypatch):
    from margotree.engines.local_svm import LocalSVM

    def interrupted(self, problem):
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalSVM, "prepare", interrupted)
    code, _, err = run(*FIT, "--out", "new.json")
    assert (
        code == exit_codes.INTERRUPTED and "interrupted before the search began" in err and "nothing to keep" not in err
    )
    assert not os.path.exists("new.json")


def test_ctrl_c_after_the_search_does_not_cost_the_tree(run, monkeypatch):
    """While the tree is put together, and while it is written."""
    import signal

    counted, fingerprint = Tree.counted, margotree.tree.file.to_record

    def late(*args, **kwargs):
        monkeypatch.setattr(Tree, "counted", counted)
        signal.raise_signal(signal.SIGINT)
        return counted(*args, **kwargs)

    monkeypatch.setattr(Tree, "counted", late)
    code, out, err = run(*FIT, "--out", "new.json", "--holdout", "0.2")
    assert code == exit_codes.INTERRUPTED and "saved as new.json" in out, err
    assert margotree.load("new.json").depth == 2

    def also_late(tree):
        monkeypatch.setattr(file, "to_record", fingerprint)
        signal.raise_signal(signal.SIGINT)
        return fingerprint(tree)

    monkeypatch.setattr(file, "to_record", also_late)
    code, out, err = run(*FIT, "--out", "new.json", "--force")
    assert code == exit_codes.INTERRUPTED and "saved as new.json" in out, err


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["fit", "easy.csv", "--tagret", "died"], "did you mean --target?"),
        (["fit", "easy.csv", "--C", "x"], "expected a number"),
        (["fit"], "required: data"),
        (["dance"], "invalid choice: 'dance'"),
        ([], "required: command"),
        (["show", "died.json", "more"], "more"),
    ],
)
def test_an_option_error_is_one_line_with_a_hint(run, args, words):
    code, out, err = run(*args)
    assert code == exit_codes.USAGE and words in err and "for all options: margotree" in err
    assert err.count("\n") == 1 and "usage:" not in err and out == ""


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_a_missing_target_lists_the_columns(run, command):
    code, _, err = run(command, "easy.csv")
    assert code == exit_codes.USAGE and "add --target COL" in err
    assert "'age', 'bmi', 'crp', 'hb', 'smoker', 'died', 'stage'" in err


# -- rows -------------------------------------------------------------------------------------------------------------


def test_what_was_filled_in_and_what_was_left_out_is_told_and_kept(run):
    code, _, err = run(*FIT, "--out", "new.json")
    left = "1 of 60 rows left out: 1 without a label in column 'died'"
    filled = r"21 missing cells filled: 'crp' 12 with "
    assert code == exit_codes.OK and f"note: {left}\n" in err and f"note: {filled}" in err
    assert "(the median), 'smoker' 9 with 'no' (the most frequent word)\n" in err
    shown = run("show", "new.json")[1]
    assert left in shown and filled in shown and "'smoker' 9 with 'no'" in shown
    assert any(left in note for note in json.loads(run(*FIT, "--out", "new.json", "--force", "--json")[1])["notes"])
    drop = [*FIT[:-4], "--missing", "drop", *FIT[-2:], "--out", "drop.json"]
    code, _, err = run(*drop)
    left = "left out: 1 without a label in column 'died', 19 with missing cells (by column: 'crp' 12, 'smoker' 9)"
    assert code == exit_codes.OK and left in err and "cells filled" not in err
    assert left in run("show", "drop.json")[1]
    assert "left out" not in run("show", "stage.json")[1] and "show where" not in run("show", "stage.json")[1]
    indicator = [*FIT[:-4], "--missing", "indicator", *FIT[-2:], "--out", "flags.json"]
    assert "'... missing' show where" in run(*indicator)[2]
