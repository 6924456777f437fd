"""Trees with short numbers: what is printed, drawn and exported is what the model predicts."""

import json
import re
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import margotree
from margotree import LocalSVMTreeClassifier, MargotClassifier, MargotClassifierCV
from margotree.problem import Splits
from margotree.solution import Certificate
from margotree.tree import Scaling, Tree, TreeFileError, file
from reading import label, meets


def trained(classes=2, budget=2, depth=2, whole=False, n=160, seed=0, **options):
    """A tree trained on samples with a few digits, and its samples."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 5)) * [1, 30, 0.1, 5, 2] + [0, 120, 1, 0, 1e3], 0 if whole else 2)
    steps = X[:, 0] + (X[:, 1] - 120) / 30 + rng.normal(size=n) * 0.3
    y = np.digitize(steps, [0.0, 1.2][: classes - 1])
    y = np.where(X[:, 3] > 6, classes - 1 - y, y)
    model = LocalSVMTreeClassifier(depth=depth, C=10, budget=budget, **options).fit(X, y)
    return model, X, np.array(["no", "yes", "perhaps"])[y] if options.get("words") else y


def read(tree, X, text=None):
    """The labels by the printed rules alone."""
    names = tree.features
    # The shortest decimal number that is the float: what a file contains.
    rows = [{name: repr(float(x)) for name, x in zip(names, row, strict=True)} for row in X]
    text = tree.export_text() if text is None else text
    return np.array([label(row, text, names) for row in rows])


CASES = [
    dict(),
    dict(classes=3, depth=2),
    dict(budget=None),
    dict(budget=1, depth=3),
    dict(whole=True, budget=3),
    dict(classes=3, depth=3, budget=3, whole=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("style", ["decimal", "points"])
def test_text_plot_page_and_exports_give_the_labels_of_the_model(case, style, tmp_path):
    model, X, y = trained(**case)
    tree = model.tree_.rounded(X, y, style=style)
    assert tree.rules and (tree.predict(X) == model.predict(X)).all()
    assert tree.certificate.relabelled == 0 and tree.verify(X, y).feasible
    assert (read(tree, X) == tree.predict(X).astype(str)).all()
    again = Tree.from_dict(json.loads(json.dumps(tree.to_dict())))
    assert again.export_text() == tree.export_text() and again.rules == tree.rules
    names = {}
    exec(tree.to_python(), names)
    assert [names["predict"](row) for row in X.tolist()] == tree.predict(X).tolist()
    with sqlite3.connect(":memory:") as database:
        database.execute(f"CREATE TABLE t ({', '.join(f'x{j} REAL' for j in range(5))})")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", X.tolist())
        assert [row[0] for row in database.execute(f"SELECT {tree.to_sql()} FROM t")] == tree.predict(X).tolist()


def test_plots_and_pages_have_the_numbers_of_the_text(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    model, X, y = trained(budget=3)
    tree = model.tree_.rounded(X, y)
    drawn = [text.get_text().replace("\N{MINUS SIGN}", "-") for text in tree.plot().texts]
    plt.close("all")
    tree.to_html(tmp_path / "page.html")
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', (tmp_path / "page.html").read_text("utf-8"))[1])
    rows = [{f"x{j}": repr(float(x)) for j, x in enumerate(row)} for row in X[:40]]
    for t, rule in tree.rules.items():
        shown = facts["outline"]["rules"][str(t)]
        assert shown["weights"] == list(rule.weights) and shown["threshold"] == rule.threshold
        relation = "\N{LESS-THAN OR EQUAL TO}" if rule.at_most else "\N{GREATER-THAN OR EQUAL TO}"
        assert any(text.endswith(f"{relation} {rule.threshold}") for text in drawn)
        assert len(rule.weights) == 1 or set(rule.weights) <= set(drawn)
        right = tree.side(tree.scaled(X[:40]), t)[1]
        assert [meets(row, shown["words"], tree.features) for row in rows] == right.tolist()


def test_numbers_are_short_and_the_leading_weight_is_positive():
    model, X, y = trained(budget=2)
    for rule in model.tree_.rounded(X, y).rules.values():
        assert rule.weights[0] == "1" and all(len(w.strip("-0.").replace(".", "")) <= 3 for w in rule.weights)
    for rule in model.tree_.rounded(X, y, style="points").rules.values():
        assert all(re.fullmatch(r"-?[1-9]\d*", w) for w in rule.weights) and not rule.weights[0].startswith("-")
    one_digit = model.tree_.rounded(X, y, digits=1)
    assert all(re.fullmatch(r"-?0*\.?0*[1-9]?0*", w) for r in one_digit.rules.values() for w in r.weights)
    changed = float(np.mean(one_digit.predict(X) != model.predict(X)))
    assert one_digit.certificate.relabelled == pytest.approx(changed) and one_digit.verify(X, y).feasible
    assert (read(one_digit, X) == one_digit.predict(X).astype(str)).all()


def test_labels_may_change_within_the_loss_allowed():
    model, X, y = trained(budget=3, depth=3)
    exact, short = (model.tree_.rounded(X, y, max_loss=loss) for loss in (0.0, 0.05))
    changed = float(np.mean(short.predict(X) != model.predict(X)))
    assert changed <= 0.05 and short.certificate.relabelled == pytest.approx(changed)
    assert len(short.export_text()) <= len(exact.export_text())


def test_weights_count_as_repeated_samples():
    model, X, y = trained()
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    model.fit(X, y, sample_weight=weight)
    one = model.tree_.rounded(X, y, weight)
    other = model.tree_.rounded(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert one.export_text() == other.export_text()
    assert one.certificate.objective == pytest.approx(other.certificate.objective)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_value_on_the_threshold_meets_the_rule(sign):
    X = np.arange(10.0)[:, None] * sign
    y = (X[:, 0] >= X[5, 0]).astype(int) if sign > 0 else (X[:, 0] <= X[5, 0]).astype(int)
    splits = Splits(w=[[2.0 * sign]], b=[-2 * 5.0])
    terms = {"model": "margot", "C": 1.0, "eps": 1e-3}
    tree = Tree(splits=splits, scaling=Scaling.identity(1), classes=[0, 1], terms=terms)
    rounded = tree.rounded(X, y)
    assert rounded.export_text().splitlines()[0] == ("if x0 >= 5" if sign > 0 else "if x0 <= -5")
    assert rounded.predict(X).tolist() == y.tolist() == read(rounded, X).astype(int).tolist()


def test_features_and_splits_that_no_label_depends_on_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] > 0).astype(int)
    X = X[np.abs(X[:, 0]) > 0.3]
    y = (X[:, 0] > 0).astype(int)
    splits = Splits(w=[[4.0, 0.02, 0.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]], b=[0.0, -50.0, 50.0])
    terms = {"model": "margot", "C": 1.0, "eps": 1e-3}
    tree = Tree(splits=splits, scaling=Scaling.identity(3), classes=[0, 1], terms=terms)
    rounded = tree.rounded(X, y)
    assert list(rounded.rules) == [0] and rounded.rules[0].features == (0,)
    assert not rounded.splits.w[1:].any() and "not shown" not in rounded.export_text()
    assert (rounded.predict(X) == tree.predict(X)).all()


def test_a_negligible_weight_that_parts_equal_sums_is_kept():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(120, 3)).astype(float)
    splits = Splits(w=[[2.0, 1.0, 1e-4]], b=[-5.0 - 1.5e-4])
    terms = {"model": "margot", "C": 1.0, "eps": 1e-3}
    tree = Tree(splits=splits, scaling=Scaling.identity(3), classes=[0, 1], terms=terms)
    y = tree.predict(X)
    on_the_line = 2 * X[:, 0] + X[:, 1] == 5
    assert 0 < y[on_the_line].mean() < 1 and not tree.selected()[0, 2]
    rounded = tree.rounded(X, y)
    assert (rounded.predict(X) == y).all() and rounded.certificate is None
    assert (read(rounded, X).astype(int) == y).all()


def test_two_digits_decide_about_nearly_equal_sums():
    """Sums of 6.5 would be equal with the nearest weights, and a third of the samples would change labels."""
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.integers(0, 4, 150), rng.integers(1, 5, 150), rng.choice([3.0, 6.0, 7.0], 150)])
    splits = Splits(w=[[1.0, 0.9986, 0.4999]], b=[-6.4962])
    terms = {"model": "margot", "C": 1.0, "eps": 1e-3}
    tree = Tree(splits=splits, scaling=Scaling.identity(3), classes=[0, 1], terms=terms)
    y = tree.predict(X)
    equal = X[:, 0] + X[:, 1] + X[:, 2] / 2 == 6.5
    assert 0 < y[equal].mean() < 1
    rounded = tree.rounded(X, y, digits=2)
    assert (rounded.predict(X) == y).all() and (read(rounded, X).astype(int) == y).all()
    assert all(len(weight.replace(".", "").strip("-0")) <= 2 for weight in rounded.rules[0].weights)


def test_a_split_is_left_out_where_few_labels_change():
    X = np.append(np.linspace(-1, 1, 200), 5.0)[:, None]
    splits = Splits(w=[[40.0], [0.0], [-40.0]], b=[0.2, -1.0, 160.0])
    terms = {"model": "margot", "C": 1.0, "eps": 1e-3}
    tree = Tree(splits=splits, scaling=Scaling.identity(1), classes=[0, 1], terms=terms)
    y = tree.predict(X)
    exact, short = (tree.rounded(X, y, max_loss=loss) for loss in (0.0, 0.02))
    assert list(exact.rules) == [0, 2] and (exact.predict(X) == y).all()
    assert list(short.rules) == [0] and np.sum(short.predict(X) != y) == 1


def test_a_feature_is_left_out_where_few_labels_change():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    splits = Splits(w=[[4.0, 0.04]], b=[0.0])
    terms = {"model": "margot", "C": 1.0, "eps": 1e-3}
    tree = Tree(splits=splits, scaling=Scaling.identity(2), classes=[0, 1], terms=terms)
    X = np.append(X, [[0.001, -3.0]] * 2, axis=0)
    y = tree.predict(X)
    exact, short = (tree.rounded(X, y, max_loss=loss) for loss in (0.0, 0.01))
    assert exact.numbers_to_read == 3 and (exact.predict(X) == y).all()
    assert short.numbers_to_read == 1 and 0 < (short.predict(X) != y).mean() <= 0.01


def test_the_certificate_states_what_rounding_cost():
    _, X, y = trained(n=60)
    exact = MargotClassifier(depth=1, budget=2, C=5).fit(X, y)
    rounded = MargotClassifier(depth=1, budget=2, C=5, round="auto").fit(X, y)
    before, after = exact.certificate_, rounded.certificate_
    assert after.before_rounding == pytest.approx(before.objective) and after.bound == pytest.approx(before.bound)
    assert after.objective >= after.bound and after.gap >= before.gap
    assert "rounding changed no training label and raised the objective of an optimal tree by" in after.statement
    assert "objective before rounding" in str(after) and "rounding" not in str(before)
    assert rounded.verify(X, y).objective == pytest.approx(after.objective)
    assert Certificate.from_dict(after.to_dict()) == after
    twice = rounded.tree_.rounded(X, y)
    assert twice.export_text() == rounded.export_text() and twice.certificate.before_rounding == after.before_rounding


def test_cross_validated_trees_are_rounded_unless_told_otherwise():
    _, X, y = trained(n=80)
    grid = dict(depths=1, Cs=[1.0], budgets=[2], time_limit=20)
    assert MargotClassifierCV(**grid).fit(X, y).tree_.rules
    assert not MargotClassifierCV(**grid, round=None).fit(X, y).tree_.rules
    with pytest.raises(ValueError, match="'round' parameter"):
        MargotClassifier(round="always").fit(X, y)


def test_a_proof_is_about_the_bound_of_the_rounded_tree(tmp_path):
    _, X, y = trained(n=40)
    model = MargotClassifier(depth=1, C=5, proof=tmp_path / "proof", round="auto").fit(X, y)
    proved = model.check_proof(tmp_path / "proof", X, y)
    assert proved.objective == pytest.approx(model.certificate_.objective)
    assert proved.bound == pytest.approx(model.certificate_.bound) and proved.objective >= proved.bound


def test_damaged_rules_are_refused(tmp_path):
    model, X, y = trained()
    tree = model.tree_.rounded(X, y)
    node = str(next(iter(tree.rules)))
    for change in (
        {"threshold": "1/3"},
        {"threshold": "3.25"},
        {"weights": ["2", "x"]},
        {"factor": -1.0},
        {"features": [99, 1]},
    ):
        record = tree.to_dict()
        record["tree"]["rules"][node] |= change
        record["checksum"] = file.checksum_of(record["tree"])
        (tmp_path / "tree.json").write_text(json.dumps(record))
        with pytest.raises(TreeFileError):
            margotree.load(tmp_path / "tree.json")


def test_wrong_arguments_are_named():
    model, X, y = trained()
    for options, message in (({"style": "roman"}, "style"), ({"digits": 0}, "digits"), ({"max_loss": 2}, "max_loss")):
        with pytest.raises(ValueError, match=message):
            model.tree_.rounded(X, y, **options)
    with pytest.raises(ValueError, match="margin models"):
        replace(model.tree_, terms={"model": "oct_1"}).rounded(X, y)


def test_rules_of_yes_and_no_read_as_logic():
    """One split by hand for AND, OR and "at least 2 of"."""
    cases = np.array(list(np.ndindex(2, 2, 2)), dtype=float)
    X = np.tile(cases, (4, 1))
    names = ("pain", "fever", "cough")
    for least, words in ((1, "pain is 1 OR fever is 0 OR cough is 1"), (3, "pain is 1 AND fever is 0 AND cough is 1"),
                         (2, "at least 2 of: pain is 1, fever is 0, cough is 1")):  # fmt: skip
        y = (X[:, 0] + (1 - X[:, 1]) + X[:, 2] >= least).astype(int)
        splits = Splits(w=[[2.0, -2.0, 2.0]], b=[3.0 - 2 * least])
        terms = {"model": "margot", "C": 1.0, "eps": 1e-3}
        tree = Tree(splits=splits, scaling=Scaling.identity(3), classes=[0, 1], terms=terms, feature_names=names)
        rounded = tree.rounded(X, y)
        condition = rounded.export_text().splitlines()[0].removeprefix("if ")
        assert set(re.split(" AND | OR |, |: ", condition)) == set(re.split(" AND | OR |, |: ", words))
        samples = [dict(zip(names, (str(int(v)) for v in row), strict=True)) for row in cases]
        assert [meets(one, condition, names) for one in samples] == rounded.predict(cases).astype(bool).tolist()
        assert (rounded.predict(X) == y).all()


def test_words_of_a_table_appear_in_the_rules(tmp_path):
    from margotree.cli.main import main

    rng = np.random.default_rng(0)
    smoker, ward = rng.choice(["no", "yes"], 80), rng.choice(["Medicine", "Surgery", "ICU"], 80)
    ill = (smoker == "no") & (ward == "Medicine")
    rows = [f"{s},{w},{'yes' if i else 'no'}" for s, w, i in zip(smoker, ward, ill, strict=True)]
    (tmp_path / "people.csv").write_text("smoker,ward,ill\n" + "\n".join(rows))
    options = ["--depth", "1", "--C", "100", "--quiet", "--model", "hfs", "--budget", "2"]
    saved = str(tmp_path / "tree.json")
    assert main(["fit", str(tmp_path / "people.csv"), "--target", "ill", *options, "--out", saved]) == 0
    first = margotree.load(saved).export_text().splitlines()[0]
    assert set(first.removeprefix("if ").split(" AND ")) == {"smoker is no", "ward is Medicine"} or " OR " in first
