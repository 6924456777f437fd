"""Rules in the words of their columns: true of the rows that meet them, and of no others."""

from itertools import product

import numpy as np
import pytest

from margotree.problem import Splits
from margotree.table.encoding import Category, Encoding, Number, Ordered
from margotree.table.encoding_json import to_record
from margotree.tree import Scaling, Tree
from margotree.tree.text import rule_of

COLUMNS = (
    Category(name="ward", values=("Medicine", "Surgery", "ICU"), fill="Medicine", flag=True, others=True),
    Category(name="smoker", values=("no", "yes"), fill="no", others=True),
    Ordered(name="grade", values=("low", "mid", "high"), fill="mid", flag=True),
    Category(name="town", values=("Oslo", "Rome", "Lima")),
    Number(name="alone", unit="true or false", fill=0.0),
    Number(name="age", fill=50.0, flag=True),
    Number(name="born", unit="month name", fill=6.0, flag=True),
)
ENCODING = Encoding(columns=COLUMNS, target="y")
NAMES = ENCODING.features


def tree_of(weights, threshold):
    """One split: the sum of the weights by names of features is at least the threshold."""
    w = np.array([[weights.get(name, 0.0) for name in NAMES]])
    assert set(weights) <= set(NAMES)
    return Tree(
        splits=Splits(w=w, b=[-threshold]), scaling=Scaling.identity(len(NAMES)), classes=["no", "yes"],
        feature_names=NAMES, terms={"table": to_record(ENCODING)},
    )  # fmt: skip


def condition(weights, threshold):
    tree = tree_of(weights, threshold)
    return rule_of(tree, 0).condition(tree.features).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("weights", "threshold", "text"),
    [
        ({"ward=Surgery": 1}, 0.5, "ward is Surgery"),
        ({"ward=Surgery": -1}, -0.5, "ward is not Surgery"),
        ({"ward=Medicine": 1, "ward=Surgery": 2}, 0.5, "ward in {Medicine, Surgery, missing}"),
        ({"ward=Medicine": 1, "ward=Surgery": 2, "ward missing": -3}, 0.5, "ward in {Medicine, Surgery}"),
        ({"ward=ICU": -1, "ward missing": -2}, -0.5, "ward not in {ICU, missing}"),
        ({"ward missing": 1}, 0.5, "ward is missing"),
        ({"smoker=yes": -1}, -0.5, "smoker is no"),
        ({"smoker=yes": -1, "ward=ICU": 1}, 0.5, "smoker is no AND ward is ICU"),
        ({"smoker=yes": -1, "ward=ICU": 1}, -0.5, "smoker is no OR ward is ICU"),
        ({"grade": 1}, 0.5, "grade is at least mid or missing"),
        ({"grade": -1, "grade missing": -9}, -1.5, "grade is at most mid"),
        ({"town=Oslo": 1, "town=Rome": 1}, 0.5, "town is not Lima"),
        ({"alone": 1}, 0.5, "alone is true"),
        ({"age missing": -1}, -0.5, "age is not missing"),
        ({"born missing": 1, "smoker=yes": 1}, 1.5, "born is missing AND smoker is yes"),
        ({"born": 2, "born missing": 2}, 8.0, "2 * born (missing counts as 7) >= 8"),
        (
            {"smoker=yes": 4, "alone": 3, "town=Oslo": 2},
            4.5,
            "at least 2 of: smoker is yes, alone is true, town is Oslo",
        ),
        ({"age": 5, "age missing": 4}, 60.0, "5 * age (missing counts as 50.8) >= 60"),
        (
            {"age": 30, "ward=ICU": -20, "ward=Surgery": 8},
            60.0,
            "30 * age (missing counts as 50) + (ward: Surgery +8, ICU -20) >= 60",
        ),
        ({"age": -6, "smoker=yes": 5}, -60.0, "6 * age (missing counts as 50) + (smoker: yes -5) <= 60"),
    ],
)  # fmt: skip
def test_rules_are_sentences(weights, threshold, text):
    found = condition(weights, threshold)
    assert sorted(found.split(" AND ")) == sorted(text.split(" AND ")) or sorted(found.split(" OR ")) == sorted(
        text.split(" OR ")
    )


def cells_of(column):
    """The feature values of every kind of cell of a column of words."""
    rule = column.rule
    found = [values for _, values in rule.words]
    return list(dict.fromkeys([*found, *(part for part in (rule.missing, rule.other) if part is not None)]))


def test_statements_hold_exactly_for_the_rows_on_the_right():
    """Random weights on all columns of words: every combination of cells, unseen words and missing cells."""
    rng = np.random.default_rng(0)
    parts = [cells_of(column) for column in COLUMNS[:5]]
    rows = np.array([[x for part in case for x in part] for case in product(*parts)])
    rows = np.hstack([rows, np.tile([50.0, 0.0, 3.0, 0.0], (len(rows), 1))])
    n_logic = 0
    for _ in range(200):
        used = rng.choice(5, rng.integers(1, 4), replace=False)
        group = np.array(ENCODING.groups)
        w = np.where(np.isin(group, used), rng.integers(-3, 4, len(group)), 0).astype(float)
        if not w.any():
            continue
        tree = tree_of(dict(zip(NAMES, w, strict=True)), float(rng.integers(-4, 5)) + 0.5)
        rule, right = rule_of(tree, 0), tree.predict(rows) == "yes"
        if not rule.literals:
            continue
        n_logic += 1
        for row, on_the_right in zip(rows[::7].tolist(), right[::7], strict=True):
            assert (sum(literal.holds(row) for literal in rule.literals) >= rule.least) == on_the_right
    assert n_logic > 60


def test_a_long_statement_is_drawn_in_several_lines():
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install matplotlib")
    weights = {"smoker=yes": -9, "ward=Medicine": 4, "ward=Surgery": 5, "ward missing": -20, "alone": 4}
    words, texts = condition(weights, 7.5), [text.get_text() for text in tree_of(weights, 7.5).plot().texts]
    assert "ward in {Medicine, Surgery}" in words and words not in texts
    assert any(" ".join(texts[k : k + 2]) == words for k in range(len(texts)))


def test_formulas_name_columns():
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    from margotree import MargotRegressor

    X = pd.DataFrame({"ward": ["a", "b", "c", "b"] * 8, "x": np.arange(32.0)})
    y = pd.Series((X.ward == "b") * 5.0 + X.x, name="days")
    text = MargotRegressor(depth=1, node_limit=5, C=1000).fit(X, y).export_text()
    assert "(ward: a -" in text and "b +" in text and "ward=b" not in text


def test_sentences_name_the_cells_and_what_they_add():
    tree = tree_of({"age": 0.5, "age missing": 12.0, "ward=ICU": 2.0, "grade": -1.0}, 20.0)
    x = dict.fromkeys(NAMES, 0.0)
    known = [{**x, "age": 50.0, "ward=ICU": 1.0, "grade": 2.0}[name] for name in NAMES]
    missing = [{**x, "age": 50.0, "age missing": 1.0, "ward=Surgery": 1.0}[name] for name in NAMES]
    said, other = (tree.path(row).reasons[0] for row in (known, missing))
    assert said == "0.5 * 50 (age) + 2 (ward is ICU) - 2 (grade is high) = 25 is at least 20"
    assert other == "37 (age is missing) + 0 (ward is Surgery) + 0 (grade is low) = 37 is at least 20"
