"""The command line: what it prints, what it writes, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import margotree
from margotree.cli import exit_codes, main

ROWS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with words, numbers and a target, and a tree trained on it."""
    path = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    age, bmi = rng.integers(20, 80, ROWS), rng.uniform(18, 40, ROWS).round(1)
    sex = rng.choice(["m", "f"], ROWS)
    ill = age + 2 * bmi + 10 * (sex == "m") + rng.normal(0, 6, ROWS) > 115
    lines = [f"{a};{b};{s};{'ill' if i else 'well'}" for a, b, s, i in zip(age, bmi, sex, ill, strict=True)]
    text = "Age in years;BMI;Sex;State\n" + "\n".join(lines).replace(".", ",") + "\n"
    (path / "people.csv").write_text(text, encoding="utf-8-sig")
    args = [
        "fit",
        path / "people.csv",
        "--target",
        "state",
        "--out",
        path / "tree.json",
        "--model",
        "margot",
        "--time-limit",
        "5",
        "--quiet",
    ]
    assert main(list(map(str, args))) == exit_codes.OK
    return path


#: A fit that may replace what an earlier one left.
FIT = ("fit", "people.csv", "--force")


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """Run a command in the folder; exit code, standard output and standard error."""
    monkeypatch.chdir(folder)

    def run(*args):
        capsys.readouterr()
        code = main(list(map(str, args)))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_fit_prints_rules_certificate_and_where_the_tree_is(run):
    code, out, err = run("fit", "people.csv", "--target", "State", "--model", "local", "--out", "other.json")
    assert code == exit_codes.OK and err.startswith("reading people.csv\n")
    for words in ("Age in years", "proved: nothing is proved about better trees", "saved as other.json"):
        assert words in out
    assert margotree.load("other.json").feature_names == ("Age in years", "BMI", "Sex=m")


def test_a_gap_of_zero_is_honoured(run):
    code, out, _ = run("fit", "people.csv", "--target", "State", "--gap", "0", "--json", "--quiet", "--out", "g.json")
    assert code == exit_codes.OK and json.loads(out)["certificate"]["gap_target"] == 0.0


def test_a_wide_gap_is_not_called_optimal(run):
    code, out, _ = run("fit", "people.csv", "--target", "State", "--gap", "0.4", "--quiet", "--out", "wide.json")
    assert code == exit_codes.OK and "optimal" not in out
    assert "proved: no tree has a training objective more than " in out
    code, out, _ = run("show", "wide.json", "--json")
    assert json.loads(out)["statement"].startswith("no tree has a training objective more than ")


def test_fit_measures_on_new_rows_if_asked(run):
    asked = (*FIT, "--target", "State", "--time-limit", "4", "--out", "m.json", "--model", "local")
    code, out, _ = run(*asked, "--quiet")
    assert code == exit_codes.OK and "on new rows: not measured" in out
    assert "on the training rows: accuracy " in out and "(always predicting well: " in out
    code, out, err = run(*asked, "--holdout", "0.25")
    assert (
        code == exit_codes.OK
        and " on 15 rows held out, of a tree trained in the same way on the other rows (always predicting " in out
    )
    assert "measuring the accuracy on new rows: fit 1 of 1" in err
    assert all(word in out for word in ("balanced accuracy", "log-loss", "logistic regression", "sensitivity"))
    code, out, _ = run(*asked, "--cv", "3", "--json", "--quiet")
    found = json.loads(out)
    assert found["measured"]["rows"] == ROWS and found["measured"]["fits"] == 3
    methods = found["measured"]["methods"]
    assert list(methods) == ["this tree", "most frequent class", "CART of depth 2", "logistic regression"]
    assert methods["this tree"]["accuracy"] == found["measured"]["accuracy"]
    assert np.sum(methods["logistic regression"]["confusion"]) == ROWS
    assert found["measured"]["lowest"] <= found["measured"]["accuracy"] <= found["measured"]["highest"] <= 1
    assert found["training"]["majority"] == pytest.approx(found["measured"]["majority"], abs=0.05)
    assert margotree.load("m.json").counts[0].sum() == ROWS  # trained on all of them
    shown = run("show", "m.json")[1]
    assert "on new rows: accuracy " in shown and "in 3-fold cross-validation" in shown and "log-loss" not in shown
    assert "log-loss" in run("show", "m.json", "--verbose")[1] and run("verify", "m.json", "people.csv")[0] == 0
    assert run("page", "m.json", "--out", "m.html", "--force")[0] == exit_codes.OK
    assert "in 3-fold cross-validation" in Path("m.html").read_text(encoding="utf-8")


def test_cross_validation_on_the_command_line_is_that_of_scikit_learn(run, folder):
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    from margotree.cli.saved_trees import encoding_of
    from margotree.table import read_table

    asked = (*FIT, "--target", "State", "--model", "local", "--json", "--quiet", "--out", "m.json")
    out = run(*asked, "--cv", "4")[1]
    samples = encoding_of(margotree.load("m.json"), "m.json").training(read_table("people.csv"))
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    labels = cross_val_predict(margotree.LocalSVMTreeClassifier(), samples.X, samples.y, cv=folds)
    assert json.loads(out)["measured"]["accuracy"] == pytest.approx((labels == samples.y).mean())


def test_measuring_needs_rows_of_every_class(run, folder):
    (folder / "rare.csv").write_text("x,y\n" + "".join(f"{i},{'a' if i else 'b'}\n" for i in range(20)))
    code, _, err = run("fit", "rare.csv", "--target", "y", "--holdout", "0.2")
    assert (
        code == exit_codes.DATA
        and "--holdout 0.2 needs at least 2 rows of every class, but there are fewer of b (1)" in err
    )
    code, _, err = run("fit", "rare.csv", "--target", "y", "--model", "local")
    assert code == exit_codes.OK and "note: fewer than 10 rows of class b (1)" in err
    for bad in (("--holdout", "1.5"), ("--cv", "1"), ("--cv", "3", "--holdout", "0.2")):
        assert run("fit", "rare.csv", "--target", "y", *bad)[0] == exit_codes.USAGE


def test_fit_notes_that_splits_vanished_and_what_to_try(run):
    code, out, err = run(*FIT, "--target", "State", "--C", "1e-4", "--json", "--out", "m.json")
    assert code == exit_codes.OK and "at C = 0.0001 the" in err and "Try a larger C" in err
    assert any("Try a larger C" in note for note in json.loads(out)["notes"])


def test_a_node_limit_repeats_on_the_command_line(run):
    asked = ("fit", "people.csv", "--target", "State", "--C", "100", "--node-limit", "30", "--time-limit", "none")
    for name in ("n1.json", "n2.json"):
        assert run(*asked, "--quiet", "--out", name)[0] == exit_codes.OK
    one, two = margotree.load("n1.json"), margotree.load("n2.json")
    assert one.splits.w.tobytes() == two.splits.w.tobytes() and one.certificate.nodes == two.certificate.nodes
    code, _, err = run("fit", "people.csv", "--target", "State", "--model", "oct1", "--node-limit", "3")
    assert code == exit_codes.USAGE and "--node-limit does not apply to --model oct1" in err


def test_fit_equals_the_estimator_and_predict_equals_both(run, folder):
    import csv

    with (folder / "people.csv").open(encoding="utf-8-sig") as file:
        rows = list(csv.reader(file, delimiter=";"))[1:]
    X = np.array([[float(a), float(b.replace(",", ".")), float(s == "m")] for a, b, s, _ in rows])
    y = np.array([label for *_, label in rows])
    own = margotree.MargotClassifier(time_limit=5, round="auto").fit(X, y)
    tree = margotree.load(folder / "tree.json")
    assert tree.certificate.objective == pytest.approx(own.certificate_.objective, rel=1e-6)

    code, out, err = run("predict", "tree.json", "people.csv", "--proba")
    shown = list(csv.DictReader(out.splitlines()))
    assert code == exit_codes.OK and [row["prediction"] for row in shown] == tree.predict(X).tolist()
    assert [float(row["decision"]) for row in shown] == tree.decision_function(X).tolist()
    assert [int(row["leaf"]) for row in shown] == tree.apply(X).tolist()
    assert [float(row["probability of ill"]) for row in shown] == tree.predict_proba(X)[:, 0].tolist()
    assert f"accuracy {(tree.predict(X) == y).mean():.1%}" in err and "predicted well" in err


def test_predict_reads_columns_in_any_order_and_keeps_rows_in_place(run, folder):
    (folder / "new.csv").write_text("Sex,remark,BMI,Age in years\nm,x,30.5,70\nf,y,,50\nf,z,20,30\n")
    code, _, err = run("predict", "tree.json", "new.csv")
    assert code == exit_codes.DATA and "--missing skip" in err
    code, _, _ = run("predict", "tree.json", "new.csv", "--missing", "skip", "--out", "new.out.csv")
    lines = (folder / "new.out.csv").read_text().splitlines()
    assert code == exit_codes.OK and len(lines) == 4 and lines[2] == ",,"
    assert lines[1].startswith("ill,") and lines[3].startswith("well,")


def test_json_of_every_command_is_json(run):
    code, out, _ = run("fit", "people.csv", "--target", "State", "--model", "local", "--json", "--out", "x.json")
    fitted = json.loads(out)
    assert code == exit_codes.OK and fitted["training"]["rows"] == ROWS and fitted["certificate"]["bound"] == "-inf"
    shown = json.loads(run("show", "x.json", "--json")[1])
    assert shown["certificate"] == fitted["certificate"] and len(shown["splits"]) == 3
    assert json.loads(run("verify", "x.json", "people.csv", "--json")[1])["same_rows_as_in_training"] is True
    predicted = json.loads(run("predict", "x.json", "people.csv", "--json")[1])
    assert len(predicted["predictions"]) == ROWS and predicted["accuracy"] == fitted["training"]["accuracy"]
    engines = json.loads(run("engines", "--json")[1])
    assert {e["name"] for e in engines["engines"]} >= {"bnb", "scip", "gurobi"} and engines["auto"]["margot"] == "bnb"
    code, out, err = run("show", "nowhere.json", "--json")
    assert json.loads(out)["exit_code"] == code == exit_codes.DATA and "nowhere.json" in err


def test_show_tells_parts(run):
    _, everything, _ = run("show", "tree.json", "--verbose")
    _, rules, _ = run("show", "tree.json", "--part", "rules")
    _, certificate, _ = run("show", "tree.json", "--part", "certificate")
    assert rules.strip() in everything and certificate.strip() in everything
    assert "engine: bnb" in certificate and "trained on 60 rows to predict 'State'" in everything


def test_verify_accepts_the_training_file_alone(run, folder):
    assert run("verify", "tree.json", "people.csv")[0] == exit_codes.OK
    content = (folder / "people.csv").read_text(encoding="utf-8-sig").splitlines()
    flipped = content[1][: content[1].rindex(";")] + (";well" if content[1].endswith("ill") else ";ill")
    (folder / "forged.csv").write_text("\n".join([content[0], flipped, *content[2:]]))
    code, _, err = run("verify", "tree.json", "forged.csv")
    assert code == exit_codes.FAILED and "does not have the 60 training rows" in err


@pytest.mark.parametrize("honest_checksum", [False, True])
def test_verify_catches_a_changed_tree(run, folder, honest_checksum):
    from margotree.tree.file import checksum_of

    record = json.loads((folder / "tree.json").read_text())
    record["tree"]["certificate"]["objective"] *= 0.99
    record["tree"]["certificate"]["bound"] *= 0.9
    record["tree"]["certificate"] = margotree.Certificate(
        **{
            k: v
            for k, v in record["tree"]["certificate"].items()
            if k in ("objective", "bound", "stopped", "gap_target")
        },
        engine="bnb",
        engine_version="0",
    ).to_dict()
    if honest_checksum:
        record["checksum"] = checksum_of(record["tree"])
    (folder / "changed.json").write_text(json.dumps(record))
    code, _, err = run("verify", "changed.json", "people.csv")
    if honest_checksum:
        assert code == exit_codes.FAILED and "the certificate claims the value" in err
    else:
        assert code == exit_codes.DATA and "checksum does not match" in err


def test_verify_replays_dropped_rows_and_weights(run, folder):
    text = (folder / "people.csv").read_text(encoding="utf-8-sig").splitlines()
    rows = [f"{line};{k % 3 + 1}" for k, line in enumerate(text[1:])] + ["50;;m;ill;1", ";;;;", "50;20;f;;1"]
    (folder / "holes.csv").write_text("\n".join([text[0] + ";n", *rows]))
    fit = ("fit", "holes.csv", "--target", "State", "--weight", "n", "--model", "local", "--out", "holes.json")
    assert run(*fit)[0] == exit_codes.DATA
    code, _, err = run(*fit, "--missing", "drop", "--class-weight", "balanced")
    assert (
        code == exit_codes.OK
        and "2 of 62 rows left out: 1 without a label in column 'State', 1 with missing cells" in err
    )
    code, out, _ = run("verify", "holes.json", "holes.csv")
    assert code == exit_codes.OK and "verified on 60 rows" in out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["fit", "people.csv"], exit_codes.USAGE, "--target"),
        (["dance"], exit_codes.USAGE, "invalid choice"),
        (["fit", "people.csv", "--target", "Statte"], exit_codes.DATA, "did you mean 'State'"),
        (["fit", "nothing.csv", "--target", "y"], exit_codes.DATA, "there is no file nothing.csv"),
        (
            ["fit", "people.csv", "--target", "State", "--model", "margot", "--budget", "2"],
            exit_codes.USAGE,
            "models with this option: hfs, sfs, local",
        ),
        (["fit", "people.csv", "--target", "State", "--depth", "0"], exit_codes.USAGE, "depth"),
        (["fit", "people.csv", "--target", "State", "--C", "x"], exit_codes.USAGE, "expected a number"),
        (["fit", "people.csv", "--target", "State", "--engine", "abacus"], exit_codes.USAGE, "unknown engine 'abacus'"),
        (["fit", "people.csv", "--target", "State", "--engine", "highs"], exit_codes.ENGINE, "engines that do: bnb"),
        (["fit", "people.csv", "--target", "State", "--out", "no/where.json"], exit_codes.DATA, "there is no folder"),
        (
            ["fit", "people.csv", "--target", "State", "--class-weight", "cold=2"],
            exit_codes.USAGE,
            "with the labels ill, well",
        ),
        (["show", "people.csv"], exit_codes.DATA, "not JSON"),
        (["predict", "tree.json", "tree.json"], exit_codes.DATA, "cells for 1 column names"),
    ],
)
def test_what_goes_wrong_is_said_and_has_its_exit_code(run, args, code, words):
    found, _, err = run(*args)
    assert found == code and words in err and "Traceback" not in err


def test_three_classes_are_told_apart_or_one_from_the_rest(run, folder):
    rows = [f"{i},{i % 7},{('red', 'green', 'blue')[i // 10]}" for i in range(30)]
    (folder / "three.csv").write_text("a,b,colour\n" + "\n".join(rows))
    fit = ("fit", "three.csv", "--target", "colour", "--out", "three.json", "--time-limit", "5", "--force")
    assert run(*fit, "--model", "margot")[0] == exit_codes.OK
    assert set(margotree.load("three.json").classes) == {"red", "green", "blue"}
    assert run("verify", "three.json", "three.csv")[0] == exit_codes.OK
    assert "meant for" in run("show", "three.json", "--verbose")[1]
    code, _, err = run(*fit, "--model", "mmsvm")
    assert code == exit_codes.DATA and "3 classes" in err and "--positive" in err
    assert run(*fit, "--depth", "2", "--positive", "green")[0] == exit_codes.OK
    assert set(margotree.load("three.json").classes) == {"green", "not green"}
    assert run("verify", "three.json", "three.csv")[0] == exit_codes.OK
    assert run(*fit, "--model", "oct1")[0] == exit_codes.OK
    code, out, _ = run("predict", "three.json", "three.csv")
    assert code == exit_codes.OK and out.splitlines()[0] == "prediction,leaf"


def test_a_threshold_moves_labels_and_explanations_say_so(run):
    import csv

    asked = ("predict", "tree.json", "people.csv", "--proba", "--explain", "--quiet")
    plain = list(csv.DictReader(run(*asked)[1].splitlines()))
    assert all(f"so the prediction is {row['prediction']} (probability " in row["explanation"] for row in plain)
    for threshold in (0.1, 0.9):
        code, out, _ = run(*asked, "--threshold", f"ill={threshold}")
        rows = list(csv.DictReader(out.splitlines()))
        expected = ["ill" if float(row["probability of ill"]) >= threshold else "well" for row in rows]
        assert code == exit_codes.OK and [row["prediction"] for row in rows] == expected
        assert expected != [row["prediction"] for row in plain]
        assert all(row["explanation"].endswith(f" %, so the label is {row['prediction']}") for row in rows)
    found = json.loads(run(*asked, "--threshold", "ill=0", "--json")[1])
    assert found["measures"]["by_class"][0]["sensitivity"] == 1.0
    for bad in ("ill", "ill=2", "sick=0.5", "0.5"):
        code, _, err = run(*asked, "--threshold", bad)
        assert code == exit_codes.USAGE and "one of the labels ill and well" in err


def test_trees_saved_from_python_are_used_too(run, folder):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 0, 1, 0], "y": [0, 0, 1, 1]})
    frame.to_csv(folder / "small.csv", index=False)
    margotree.LocalSVMTreeClassifier().fit(frame[["a", "b"]], frame["y"]).save(folder / "small.json")
    assert run("predict", "small.json", "small.csv")[1].splitlines()[1].startswith("0,")
    assert "--target" in run("verify", "small.json", "small.csv")[2]
    assert run("verify", "small.json", "small.csv", "--target", "y")[0] == exit_codes.OK
    margotree.LocalSVMTreeClassifier().fit(frame[["a", "b"]].to_numpy(), frame["y"]).save(folder / "small.json")
    assert "without column names" in run("predict", "small.json", "small.csv")[2]


def test_a_full_disk_keeps_the_old_file_and_the_new_tree(folder, run, monkeypatch, tmp_path):
    from margotree.tree import file

    before = (folder / "tree.json").read_bytes()
    write = file.write

    def full(path, record):
        if os.path.dirname(os.path.realpath(path)) == str(folder):
            raise OSError(28, "No space left on device")
        write(path, record)

    monkeypatch.setattr(file, "write", full)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    code, _, err = run("fit", "people.csv", "--target", "State", "--model", "local", "--out", "tree.json", "--force")
    assert code == exit_codes.DATA and "No space left" in err and (folder / "tree.json").read_bytes() == before
    assert margotree.load(next(tmp_path.iterdir())).depth == 2


def test_an_unfinished_file_never_takes_the_place_of_a_whole_one(tmp_path):
    from margotree.atomic_files import write_atomically

    target = tmp_path / "picture.svg"
    target.write_text("old")

    def die_halfway(draft):
        with open(draft, "w") as stream:
            stream.write("ne")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(str(target), die_halfway)
    assert target.read_text() == "old" and os.listdir(tmp_path) == ["picture.svg"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_fit_keeps_its_tree(tmp_path, how):
    rng = np.random.default_rng(1)
    rows = "\n".join(",".join(f"{v:.3f}" for v in x) + f",{rng.integers(2)}" for x in rng.normal(size=(300, 8)))
    (tmp_path / "noise.csv").write_text(",".join("abcdefgh") + ",y\n" + rows)
    command = [
        sys.executable,
        "-m",
        "margotree.cli",
        "fit",
        "noise.csv",
        "--target",
        "y",
        "--depth",
        "2",
        "--time-limit",
        "60",
        "--json",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    # The search has its handler in place once it reports.
    for line in process.stderr:
        if line.startswith(("local_svm", "search")):
            break
    time.sleep(0.5)
    process.send_signal(how)
    out, err = process.communicate(timeout=300)
    assert process.returncode == exit_codes.INTERRUPTED, err
    assert json.loads(out)["certificate"]["stopped"] == "interrupted"
    assert margotree.load(tmp_path / "noise.tree.json").certificate.stopped == "interrupted"


def test_help_needs_nothing_heavy():
    code = (
        "import sys; from margotree.cli import main; main(['fit', '--help']); "
        "sys.exit(any(m in sys.modules for m in ('numpy', 'sklearn', 'numba', 'scipy', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_command_and_option(run, shell):
    from margotree.cli.main import COMMANDS

    code, out, _ = run("completion", shell)
    assert code == exit_codes.OK and all(name in out for name in COMMANDS)
    assert "time-limit" in out and "margot hfs sfs" in out


def test_the_bash_completion_completes(run, tmp_path):
    bash = "/bin/bash"
    if not os.path.exists(bash):
        pytest.skip("no bash here")
    (tmp_path / "c.bash").write_text(run("completion", "bash")[1])
    script = (
        f"source {tmp_path / 'c.bash'}; "
        "COMP_WORDS=(margotree fit --model h); COMP_CWORD=3; _margotree; echo ${COMPREPLY[@]};"
        "COMP_WORDS=(margotree pre); COMP_CWORD=1; _margotree; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run([bash, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["hfs", "predict"] and done.stderr == ""


def test_pictures_and_pages_are_written_whole(run, folder):
    pytest.importorskip("matplotlib")
    fit = ("fit", "people.csv", "--target", "State", "--out", "p.json", "--log", "p.jsonl", "--depth", "2")
    assert run(*fit)[0] == exit_codes.OK
    for kind, more in (("tree", ()), ("features", ()), ("node", ("--data", "people.csv", "--node", 0))):
        code, out, _ = run("plot", "p.json", "--kind", kind, *more, "--out", f"{kind}.svg")
        assert (
            code == exit_codes.OK
            and out == f"drawn as {kind}.svg\n"
            and "</svg>" in (folder / f"{kind}.svg").read_text()
        )
    assert run("plot", "p.jsonl", "--kind", "progress")[0] == exit_codes.OK
    assert (folder / "p.progress.png").read_bytes().startswith(b"\x89PNG")
    assert run("page", "p.json", "--data", "people.csv")[0] == exit_codes.OK
    assert "</html>" in (folder / "p.html").read_text(encoding="utf-8")
    for kind, option in (
        ("plane", ("--node", 7)), ("tree", ("--node", 0)), ("features", ("--data", "people.csv")),
        ("progress", ("--node", 0)), ("node", ("--all-splits",)),
    ):  # fmt: skip
        code, _, err = run("plot", "p.json", "--kind", kind, *option, "--out", "no.png")
        assert code == exit_codes.USAGE and f"{option[0]} does not apply to --kind {kind}, only to --kind " in err, err
    code, _, err = run("plot", "p.json", "--kind", "node", "--data", "people.csv", "--node", 7, "--out", "no.png")
    assert code == exit_codes.USAGE and "there is no node 7: the nodes of this tree are 0 to 2" in err
    assert not (folder / "no.png").exists()
    code, _, err = run("plot", "p.json", "--kind", "node")
    assert code == exit_codes.USAGE and "--data" in err
    code, _, err = run("plot", "p.json", "--kind", "progress", "--out", "q.png")
    assert code == exit_codes.DATA and "--log" in err


def test_fit_without_options_trains_a_readable_tree(run, monkeypatch):
    from margotree.cli import model_options

    monkeypatch.setattr(model_options, "CHOICE_SECONDS", 3.0)
    code, out, err = run(*FIT, "--target", "State", "--out", "plain.json")
    assert code == exit_codes.OK and "choosing the hyperparameters of hfs" in err and "cut off" not in err
    assert not any(word in err + out for word in ("incumbent", "local_svm", "[0]"))
    assert "chosen by cross-validation: depth " in out and "budget " in out and "--time-limit 1m tries more" in out
    tree = margotree.load("plain.json")
    assert tree.depth <= 3 and tree.selected().sum(axis=1).max() <= 3
    fixed = {"--depth": 2, "--C": 1, "--node-limit": 5, "--model": "margot"}
    for option, value in fixed.items():
        args = (*FIT, "--target", "State", option, value, "--time-limit", 5, "--out", "plain.json", "--json")
        code, out, err = run(*args)
        assert code == exit_codes.OK and json.loads(out)["chosen"] is None, err
        assert "training margot, depth 2" in err and margotree.load("plain.json").terms["model"] == "margot"
    code, out, err = run(*FIT, "--target", "State", "--budget", 1, "--time-limit", 3, "--out", "plain.json", "--json")
    assert code == exit_codes.OK and json.loads(out)["chosen"]["budget"] == 1
    assert margotree.load("plain.json").selected().sum(axis=1).max() <= 1


def test_fit_auto_says_what_it_chose(run):
    fit = ("fit", "people.csv", "--target", "State", "--auto", "--C", "1", "--time-limit", 10, "--quiet", "--force")
    code, out, _ = run(*fit, "--json", "--engine", "alternating", "--out", "auto.json")
    assert code == exit_codes.OK
    record = json.loads(out)
    assert record["chosen"]["C"] in (1, [1.0]) and record["chosen"]["depth"] in {1, 2, 3}
    assert margotree.load("auto.json").depth == record["chosen"]["depth"]
    code, _, err = run(*fit, "--model", "local")
    assert code == exit_codes.USAGE and "--model margot or hfs or sfs" in err
    code, _, err = run(*fit, "--node-limit", 5)
    assert code == exit_codes.USAGE and "--node-limit cannot be used" in err


def test_tune_without_a_grid_races_depths_and_schedules(run):
    tune = ("tune", "people.csv", "--target", "State", "--folds", 2, "--time-limit", 8, "--engine", "alternating")
    code, out, err = run(*tune, "--depth", 2, "--json", "--out", "raced.json")
    assert code == exit_codes.OK and " fits, " in err
    record = json.loads(out)
    assert record["best_params"] in [line["params"] for line in record["settings"]]
    assert {line["params"]["depth"] for line in record["settings"]} == {2}
    assert any(isinstance(line["params"]["C"], list) for line in record["settings"])
    code, out, _ = run(*tune, "--depth", 1, "--C", "1", "--quiet", "--out", "text.json")
    assert code == exit_codes.OK and "chosen: depth 1, C" in out and "proved: " in out


def test_three_classes_are_chosen_for(run):
    rng = np.random.default_rng(0)
    code = np.arange(45) % 3
    X = np.array([[0, 0], [1, 0], [0, 1]])[code] + rng.normal(0, 0.1, (45, 2))
    rows = [f"{a:.4f},{b:.4f},{'abc'[k]}" for (a, b), k in zip(X, code, strict=True)]
    Path("three.csv").write_text("\n".join(["x,y,kind", *rows]) + "\n")
    for command in (("fit", "--auto"), ("tune", "--folds", 2)):
        code, out, _ = run(
            command[0], "three.csv", "--target", "kind", *command[1:], "--depth", 2, "--C", "1", "--engine",
            "alternating", "--time-limit", 20, "--quiet", "--json", "--force", "--out", "three.json",
        )  # fmt: skip
        assert code == 0, out
        assert margotree.load("three.json").terms["n_classes"] == 3


def test_tune_saves_the_tree_it_chose(run):
    tune = ("tune", "people.csv", "--target", "State", "--model", "local", "--folds", 2, "--quiet", "--json")
    code, out, _ = run(*tune, "--grid", "C=0.1,1,1:10", "--resume", "fits.sqlite", "--out", "t.json")
    found = json.loads(out)
    assert code == exit_codes.OK and len(found["settings"]) == 3
    assert found["validation_accuracy"] == max(line["accuracy"] for line in found["settings"])
    assert run("verify", "t.json", "people.csv")[0] == exit_codes.OK
    code, _, err = run(*tune, "--grid", "budgie=1")
    assert code == exit_codes.USAGE and "a parameter of the model" in err


def test_experiments_are_listed_and_missing_results_are_said(run):
    listed = json.loads(run("experiment", "--json")[1])
    assert "test_accuracy" in listed["tables"] and "planes" in listed["figures"]
    code, _, err = run("table", "nothing.sqlite", "test_accuracy")
    assert code == exit_codes.DATA and "run the experiment first" in err
    assert run("experiment", "poetry")[0] == exit_codes.USAGE


def test_limits_of_an_experiment_reach_it(run, monkeypatch):
    from margotree.paper import experiments

    asked = {}
    monkeypatch.setattr(experiments, "run", lambda names, **terms: asked.update(terms) or experiments.RunSummary())
    limits = ("--time-limit", "2m", "--fold-time-limit", "0.5")
    assert run("experiment", "hyperparameters_fs", *limits, "--only", "sfs")[0] == exit_codes.OK
    assert (asked["time_limit"], asked["fold_time_limit"], asked["only"]) == (120.0, 0.5, ["sfs"])
