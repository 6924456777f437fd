"""The command line for numeric targets: fit, show, predict, verify, check, tune, and numbers as two classes."""

import json

import numpy as np
import pytest

import margotree
from margotree.cli import exit_codes, main

ROWS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of prices with words, and a tree trained on it."""
    path = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(0)
    area, rooms, town = rng.integers(30, 200, ROWS), rng.integers(1, 7, ROWS), rng.choice(["york", "bath"], ROWS)
    price = np.where(town == "york", 40 + 2.5 * area, 90 + 1.0 * area + 20 * rooms) + rng.normal(0, 2, ROWS)
    rows = zip(area, rooms, town, price.round(1), strict=True)
    lines = "".join(f"{a},{r},{t},{p},{round(p / 80)}\n" for a, r, t, p in rows)
    (path / "homes.csv").write_text("area,rooms,town,price,grade\n" + lines)
    args = ["fit", path / "homes.csv", "--target", "price", "--drop", "grade", "--depth", "2", "--out", path / "t.json"]
    assert main([*map(str, args), "--node-limit", "5", "--quiet", "--proof", str(path / "t.proof")]) == exit_codes.OK
    return path


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


FIT = ("fit", "homes.csv", "--drop", "grade", "--force", "--model", "local", "--depth", "2", "--out", "other.json")


def test_a_target_with_many_numbers_is_predicted(run):
    code, out, err = run(*FIT, "--target", "price", "--holdout", "0.25")
    assert code == exit_codes.OK
    assert "different numbers, which are predicted; add --above" in err
    assert "price = " in out and "on the training rows: R2 0.9" in out
    assert "on new rows: R2 0." in out and "on 15 rows held out" in out
    for method in ("this tree", "mean", "CART of depth 2", "ridge regression", "RMSE"):
        assert method in out
    assert isinstance(margotree.load("other.json"), margotree.RegressionTree)


def test_the_measures_are_those_of_folds(run):
    code, out, _ = run(*FIT, "--target", "price", "--cv", "3", "--json", "--quiet")
    found = json.loads(out)
    assert code == exit_codes.OK and found["measured"]["fits"] == 3 and found["measured"]["rows"] == ROWS
    methods = found["measured"]["methods"]
    assert methods["this tree"]["r2"] == found["measured"]["r2"] > methods["mean"]["r2"]
    assert methods["mean"]["r2"] < 0.0 < methods["ridge regression"]["r2"]
    assert found["training"]["r2"] > 0.9 and found["training"]["mae"] <= found["training"]["rmse"]


def test_numbers_can_be_classes(run):
    code, out, _ = run(*FIT, "--target", "price", "--above", "250")
    assert code == exit_codes.OK and "=> above 250" in out and "=> at most 250" in out
    assert sorted(margotree.load("other.json").classes.tolist()) == ["above 250", "at most 250"]
    code, _, err = run("predict", "other.json", "homes.csv", "--out", "p.csv", "--force")
    assert code == exit_codes.OK and "accuracy" in err
    assert run("verify", "other.json", "homes.csv")[0] == exit_codes.OK
    code, _, err = run(*FIT, "--target", "price", "--above", "1e9")
    assert code == exit_codes.DATA and "--above 1e+09 divides no rows" in err
    code, _, err = run(*FIT, "--target", "price", "--above", "250", "--task", "regression")
    assert code == exit_codes.USAGE and "contradict each other" in err


def test_few_whole_numbers_are_classes_unless_asked(run):
    args = ("fit", "homes.csv", "--drop", "price", "--force", "--model", "local", "--depth", "2", "--out", "other.json")
    code, _, err = run(*args, "--target", "grade")
    assert code == exit_codes.OK and "are treated as classes; add --task regression" in err
    code, out, _ = run(*args, "--target", "grade", "--task", "regression", "--leaf-budget", "1")
    assert code == exit_codes.OK and "grade = " in out
    code, _, err = run(*args, "--target", "town", "--task", "regression")
    assert code == exit_codes.DATA and "is not a number, which --task regression needs" in err


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [("high", "--na high --missing drop"), ("inf", "--na inf --missing drop"), ('"3,5"', "--na 3,5")],
)
def test_a_word_among_numbers_is_an_error_that_names_its_line(run, folder, cell, remedy):
    lines = (folder / "homes.csv").read_text().splitlines()
    first, _, last = lines[30].rsplit(",", 2)
    (folder / "word.csv").write_text("\n".join([*lines[:30], f"{first},{cell},{last}", *lines[31:]]))
    args = ("fit", "word.csv", "--target", "price", "--drop", "grade", "--model", "local", "--out", "w.json", "--quiet")
    for option, text in (((), "but most labels are"), (("--task", "regression"), "which --task regression needs")):
        code, _, err = run(*args, *option)
        assert code == exit_codes.DATA and "word.csv, line 31" in err and text in err and remedy in err.replace('"', "")
    assert "--task classification" in run(*args)[2]


def test_targets_with_decimal_commas_are_an_error_with_the_option(run, folder):
    lines = "".join(f'{i},"{i},5"\n' for i in range(30))
    (folder / "comma.csv").write_text("area,price\n" + lines)
    code, _, err = run("fit", "comma.csv", "--target", "price", "--model", "local", "--out", "w.json")
    assert code == exit_codes.DATA and "add --decimal ," in err


@pytest.mark.parametrize(
    "targets",
    [[3.5] * 12, [0.5, 1.5] * 6, [*range(11), 1e12], [1.25, 2.5], [f'"{v}.5"' for v in range(12)]],
    ids=["constant", "two values", "an outlier", "fewer rows than leaves", "strings"],
)
def test_odd_targets_give_a_tree(run, folder, targets):
    lines = "".join(f"{i % 5},{(i * 7) % 11},{v}\n" for i, v in enumerate(targets))
    (folder / "odd.csv").write_text("a,b,price\n" + lines)
    fit = ("fit", "odd.csv", "--target", "price", "--task", "regression", "--model", "local", "--depth", "3", "--force")
    assert run(*fit, "--out", "odd.json")[0] == exit_codes.OK
    assert run("verify", "odd.json", "odd.csv")[0] == exit_codes.OK
    assert np.all(np.isfinite(margotree.load("odd.json").predict([[1.0, 2.0], [1e9, -1e9]])))


def test_show_predict_and_verify(run, folder):
    code, out, _ = run("show", "t.json")
    assert code == exit_codes.OK and "price = " in out and "trained on 60 rows to predict 'price'" in out
    code, out, _ = run("show", "t.json", "--json")
    found, tree = json.loads(out), margotree.load(folder / "t.json")
    assert found["target"] == "price" and len(found["leaves"]) == 2
    leaf = found["leaves"][0]
    assert leaf["constant"] == tree.formula(leaf["leaf"]).constant and leaf["low"] < leaf["high"]
    code, out, err = run("predict", "t.json", "homes.csv", "--explain", "--json")
    rows = json.loads(out)
    assert code == exit_codes.OK and rows["accuracy"] is None and rows["measures"]["r2"] > 0.9
    assert "the prediction is price = " in rows["predictions"][0]["explanation"]
    code, out, err = run("predict", "t.json", "homes.csv")
    assert out.splitlines()[0] == "prediction,leaf" and err.startswith(("R2 0.9", "R2 1.0"))
    code, _, err = run("predict", "t.json", "homes.csv", "--proba")
    assert code == exit_codes.USAGE and "--proba is for trees of classes" in err
    code, out, _ = run("verify", "t.json", "homes.csv")
    assert code == exit_codes.OK and "its objective is as certified" in out and "units of" in out


def test_a_proof_is_checked_with_the_tree_and_refused_for_other_prices(run, folder):
    code, out, _ = run("check", "t.proof", "homes.csv", "--tree", "t.json", "--quiet")
    assert code == exit_codes.OK and out.startswith("PROVED") and "'price'" in out
    lines = (folder / "homes.csv").read_text().splitlines()
    first = lines[1].split(",")
    lines[1] = ",".join([*first[:3], "1.5", first[4]])
    (folder / "changed.csv").write_text("\n".join(lines) + "\n")
    code, _, err = run("check", "t.proof", "changed.csv", "--tree", "t.json", "--quiet")
    assert code == exit_codes.FAILED and "not proved" in err


def test_options_that_do_not_apply(run):
    for option, message in (
        (("--model", "oct1"), "--model oct1 is for classes"),
        (("--proba", "leaf"), "--proba does not apply to a target of numbers"),
        (("--class-weight", "balanced"), "--class-weight does not apply"),
    ):
        code, _, err = run(*FIT, "--target", "price", *option)
        assert code == exit_codes.USAGE and message in err
    code, _, err = run(*FIT, "--target", "town", "--epsilon", "0.1")
    assert code == exit_codes.USAGE and "--epsilon does not apply to a target of classes" in err
    code, _, err = run("tune", "homes.csv", "--target", "price", "--grid", "C=1,10", "--out", "g.json")
    assert code == exit_codes.USAGE and "leave out --grid" in err


def test_losses_can_be_squared(run):
    squared = "--loss", "squared_epsilon_insensitive"
    code, out, _ = run(*FIT, "--target", "price", *squared)
    assert code == exit_codes.OK and "R2 0.9" in out
    assert margotree.load("other.json").terms["task"]["name"] == "squared_regression"
    assert run("verify", "other.json", "homes.csv")[0] == exit_codes.OK
    code, _, err = run("fit", "homes.csv", "--target", "price", "--auto", *squared, "--depth", "1", "--out", "a.json")
    assert code == exit_codes.OK, err
    assert margotree.load("a.json").terms["task"]["name"] == "squared_regression"
    code, _, err = run(*FIT, "--target", "town", *squared)
    assert code == exit_codes.USAGE and "--loss does not apply to a target of classes" in err


def test_plots_of_numbers(run, folder):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    data, open_before = ("--data", "homes.csv"), pyplot.get_fignums()
    for kind, more in (
        ("tree", ()), ("features", ()), ("predictions", data), ("residuals", data),
        ("effect", (*data, "--feature", "area")),
    ):  # fmt: skip
        code, out, _ = run("plot", "t.json", "--kind", kind, *more, "--out", f"{kind}.svg", "--force")
        assert code == exit_codes.OK and out == f"drawn as {kind}.svg\n"
        assert "</svg>" in (folder / f"{kind}.svg").read_text()
        assert pyplot.get_fignums() == open_before
    for kind, more, message in (
        ("node", data, "--kind node is for trees of classes, and t.json predicts numbers"),
        ("calibration", data, "use --kind predictions or --kind residuals"),
        ("residuals", (), "name a file with samples with --data"),
        ("effect", data, "name it with --feature"),
        ("effect", (*data, "--feature", "garden"), "its columns are area, rooms, town"),
        ("predictions", (*data, "--feature", "area"), "--feature does not apply to --kind predictions"),
        ("plane", data, "features"),
    ):
        code, _, err = run("plot", "t.json", "--kind", kind, *more, "--out", "no.svg")
        assert code == exit_codes.USAGE and message in err, (kind, err)
    assert not (folder / "no.svg").exists()
    assert run(*FIT, "--target", "price", "--above", "250")[0] == exit_codes.OK
    code, _, err = run("plot", "other.json", "--kind", "predictions", *data, "--out", "no.svg")
    assert code == exit_codes.USAGE and "is for trees of numbers, and other.json predicts classes" in err
    effect = ("plot", "other.json", "--kind", "effect", *data, "--feature", "area", "--out", "classes.svg", "--force")
    assert run(*effect)[0] == exit_codes.OK


def test_the_page_of_numbers(run, folder):
    code, out, _ = run("page", "t.json", "--data", "homes.csv", "--force")
    assert code == exit_codes.OK and out == "written as t.html\n"
    page = (folder / "t.html").read_text(encoding="utf-8")
    assert "<title>price (regression tree, trained on homes.csv)</title>" in page and "Prediction to reach" in page


def test_the_default_and_tune_choose_by_r2(run):
    command = ("homes.csv", "--target", "price", "--drop", "grade", "--time-limit", "4", "--jobs", "1", "--quiet")
    code, out, _ = run("fit", *command, "--budget", "2", "--out", "d.json")
    assert code == exit_codes.OK and "chosen by cross-validation: depth " in out and "leaf_budget 2" in out
    code, out, _ = run("tune", *command, "--depth", "2", "--C", "0.1,10", "--epsilon", "0", "--out", "u.json", "--json")
    found = json.loads(out)
    assert (code == exit_codes.OK and found["validation_r2"] is None) or found["validation_r2"] > 0.8
    assert margotree.load("u.json").target_name == "price"
