"""Every export of trees of data frames predicts 10,000 random rows as ``predict`` does.

The rows have missing cells, words that training did not have, other cases, and numbers and dates far away.
"""

import ctypes
import datetime
import math
import shutil
import sqlite3
import subprocess

import numpy as np
import pytest

from browser import chromium
from margotree import LocalSVMTreeClassifier, LocalSVRTreeRegressor, MargotRegressor
from margotree.page import render_page
from margotree.table import ColumnOptions, Table, learn_encoding
from margotree.table.dates import FORMS, date_form, date_text, day_number

pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")

N = 10_000
WARDS = ("general", "intensive care", "surgery", "Zürich", 'O\'Hara \\ "9"?')
WORDS = {"ward": WARDS, "smoker": ("no", "yes"), "grade": ("low", "mid", "high")}


def rows(n, seed, *, odd):
    """Patients; with ``odd`` their cells are of every kind that ``predict`` accepts."""
    rng = np.random.default_rng(seed)
    extreme = np.array([0.0, -0.0, 1e-300, 1e9, -1e9, 1e6, 0.1, 54.0])

    def numbers(values):
        values = np.where(odd & (rng.random(n) < 0.1), rng.choice(extreme, n), values)
        return pd.Series(np.where(rng.random(n) < 0.1, np.nan, values))

    def words(known, unseen):
        found = rng.choice(known, n).astype(object)
        if odd:
            found[rng.random(n) < 0.1] = unseen
        return pd.Series(np.where(rng.random(n) < 0.1, None, found), dtype=object)

    first = datetime.date(2020, 1, 1).toordinal()
    days = first + np.where(
        odd & (rng.random(n) < 0.5), rng.integers(1 - first, 2_900_000, n), rng.integers(0, 1500, n)
    )
    dates = [datetime.date.fromordinal(int(day)).isoformat() for day in days]
    return pd.DataFrame({
        "age": numbers(rng.integers(20, 90, n).astype(float)),
        "crp": numbers(rng.gamma(2, 10, n).round(2)),
        "ward": words(WARDS, "never seen"),
        "smoker": words(("no", "yes"), "perhaps"),
        "grade": words(("low", "mid", "high"), "none") if odd else pd.Categorical(
            words(("low", "mid", "high"), ""), categories=["low", "mid", "high"], ordered=True),
        "alone": pd.Series(np.where(rng.random(n) < 0.1, None, rng.random(n) < 0.5), dtype=object),
        "admitted": pd.Series(np.where(rng.random(n) < 0.1, None, dates), dtype=object),
    })  # fmt: skip


@pytest.fixture(scope="module")
def trees():
    """A tree of two classes, one of three, and a regression tree, each with all kinds of columns in its rules."""
    X = rows(300, 0, odd=False)
    age, crp = X.age.fillna(50), X.crp.fillna(10)
    score = (
        age / 20 + 0.05 * crp + 2.0 * X.ward.isin(["surgery", "Zürich"]) - 1.5 * (X.smoker == "yes")
        + X.grade.cat.codes + 1.0 * (X.alone == True) + 1.5 * (X.admitted.fillna("2021") > "2022-06-01")  # noqa: E712
    )  # fmt: skip
    two = LocalSVMTreeClassifier(C=3, dates="days-since").fit(X, np.where(score > score.median(), "ill", "well"))
    three = LocalSVMTreeClassifier(C=3, dates="days-since").fit(X, np.digitize(score, score.quantile([0.3, 0.7])))
    numbers = LocalSVRTreeRegressor(dates="days-since").fit(X, score)
    few = MargotRegressor(budget=2, leaf_budget=2, node_limit=4, engine="alternating", dates="days-since").fit(X, score)
    return {"two classes": two, "three classes": three, "numbers": numbers, "budgets": few}


@pytest.fixture(scope="module")
def odd():
    return rows(N, 1, odd=True)


@pytest.fixture(scope="module")
def cells(odd):
    """The rows with None where a cell is missing."""
    plain = odd.astype(object).where(odd.notna(), None)
    return [dict(zip(plain.columns, row, strict=True)) for row in plain.itertuples(index=False)]


def agree(model, X, found):
    wanted = model.predict(X)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-6)  # cells of 1e9 lose nine digits
    else:
        assert np.array_equal(np.asarray(found, dtype=wanted.dtype), wanted)


def test_the_rows_say_something(trees, odd):
    for name, model in trees.items():
        found = model.predict(odd)
        assert len(np.unique(found)) > (1 if "classes" in name else 100)
        assert np.array_equal(found, model.tree_.predict(odd))
        if name != "budgets":
            assert set(model.selected_features_) == set(range(7))
    assert len(np.unique(trees["three classes"].predict(odd))) == 3


def test_python(trees, odd, cells):
    for model in trees.values():
        module = {}
        exec(model.tree_.to_python(), module)
        agree(model, odd, module["predict_many"](cells))


def _asked(base, model, cells, typed):
    names = list(cells[0])
    kinds = {"age": "DOUBLE PRECISION", "crp": "DOUBLE PRECISION"} | (
        {"alone": "BOOLEAN", "admitted": "DATE"} if typed else {}
    )
    columns = ", ".join(f"{name} {kinds.get(name, 'VARCHAR')}" for name in names)
    base.execute("DROP TABLE IF EXISTS people")
    base.execute(f"CREATE TABLE people (number INTEGER, {columns})")
    as_text = (lambda x: x) if typed else (lambda x: str(x) if isinstance(x, bool) else x)
    data = [(k, *(as_text(row[name]) for name in names)) for k, row in enumerate(cells)]
    if typed:
        frame = pd.DataFrame(data, columns=["number", *names]).astype({"alone": "boolean", "age": float, "crp": float})
        base.register("given", frame)
        base.execute(f"INSERT INTO people SELECT number, {', '.join(names)} FROM given")
        base.unregister("given")
    else:
        base.executemany(f"INSERT INTO people VALUES ({', '.join('?' * (len(names) + 1))})", data)
    sql = model.tree_.to_sql(table="people")
    return [found for (found,) in base.execute(f"SELECT {sql} FROM people ORDER BY number").fetchall()]


def test_sqlite(trees, odd, cells):
    for model in (trees["three classes"], trees["budgets"]):  # a query takes seconds
        with sqlite3.connect(":memory:") as base:
            agree(model, odd, _asked(base, model, cells, typed=False))


def test_duckdb_with_types(trees, odd, cells):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
    for model in trees.values():
        with duckdb.connect() as base:
            agree(model, odd, _asked(base, model, cells, typed=True))


def _text(cell):
    return b"" if cell is None else str(cell).encode()


def test_c(trees, odd, cells, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler on the PATH as gcc or cc")
    predicted_by_c(trees.values(), odd, cells, compiler, tmp_path)


def predicted_by_c(models, X, cells, compiler, folder):
    models = list(models)
    for k, model in enumerate(models):
        (folder / f"t{k}.c").write_text(model.tree_.to_c(name=f"t{k}"), encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0", "-shared", "-fPIC"]
    sources = [str(folder / f"t{k}.c") for k in range(len(models))]
    subprocess.run([compiler, *flags, "-o", str(folder / "trees.so"), *sources, "-lm"], check=True)
    library = ctypes.CDLL(str(folder / "trees.so"))
    for k, model in enumerate(models):
        read, predict, classes = library[f"t{k}_read"], library[f"t{k}_predict"], getattr(model, "classes_", None)
        predict.restype = ctypes.c_double if classes is None else ctypes.c_int
        x, found = (ctypes.c_double * model.tree_.n_features)(), []
        for row in cells:
            assert read((ctypes.c_char_p * len(row))(*map(_text, row.values())), x) == 0
            found.append(predict(x))
        agree(model, X, found if classes is None else classes[found])


def test_onnx(trees, odd):
    pytest.importorskip("onnx", reason='needs onnx: pip install "margotree[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install onnxruntime")
    for model in trees.values():
        session = runtime.InferenceSession(
            model.tree_.to_onnx(columns=True).SerializeToString(), providers=["CPUExecutionProvider"]
        )
        inputs = {}
        for column in model.encoding_.columns:
            cells = odd[column.name]
            if column.name in WORDS:
                inputs[column.name] = cells.map(str, na_action="ignore").fillna("").to_numpy(dtype=object)
            elif column.name == "admitted":
                days = [np.nan if cell is None else day_number(cell, FORMS[0]) for cell in cells]
                inputs[column.name] = np.array(days) - day_number(column.since, FORMS[0])
            else:
                inputs[column.name] = cells.astype(float).to_numpy()
        assert [given.name for given in session.get_inputs()] == list(inputs)
        agree(model, odd, session.run(None, inputs)[0])
        features = runtime.InferenceSession(
            model.tree_.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
        )
        agree(model, odd, features.run(None, {"X": model.tree_.given(odd)})[0])


READ = """
return arguments[0].map((cells) => {
  const { values } = margotree.readCells(cells);
  const way = margotree.route(values);
  return margotree.facts.classes ? margotree.facts.classes[way.code] : way.value;
});
"""


def test_the_page_in_a_browser(trees, odd, cells, tmp_path):
    texts = [[_text(cell).decode() for cell in row.values()] for row in cells]
    for chrome in chromium():
        for model in trees.values():
            (tmp_path / "tree.html").write_text(render_page(model.tree_), encoding="utf-8")
            chrome.get((tmp_path / "tree.html").as_uri())
            agree(model, odd, chrome.execute_script(READ, texts))
            assert chrome.get_log("browser") == []


# -- dates -----------------------------------------------------------------------------------------------------------


def test_forms_of_dates():
    day = datetime.date(2024, 2, 29)
    for form in FORMS:
        text = form.replace("YYYY", "2024").replace("MM", "02").replace("DD", "29")
        assert day_number(text, form) == day.toordinal() == day_number(f"{text} 12:30", form)
        assert date_form([text, "", text], "when") == form
        assert date_form([text + " 12:30"], "when") == form and date_form([text + "1"], "when") != form
        for wrong in (
            text.replace("29", "30"),
            text[:-1],
            f"{text}x",
            text.replace("02", "13"),
            text.replace("2", "x"),
        ):
            assert math.isnan(day_number(wrong, form))
    assert date_text(59.0, "2024-01-01") == "2024-02-29"
    assert date_form(["2024-01-31", "31.01.2024"], "when") is None is date_form(["12345678"], "n")
    with pytest.raises(ValueError, match=r"may be DD/MM/YYYY or MM/DD/YYYY; write them as YYYY-MM-DD"):
        date_form(["01/02/2024"], "when")


def test_dates_of_a_file():
    texts = ["31.01.2024", "", "01.02.2024", "03.02.2024"]
    table = Table(source="a.csv", names=("when", "y"), columns=(texts, list("abab")), lines=[2, 3, 4, 5])
    options = ColumnOptions(target="y", missing="indicator", date="days-since")
    encoding = learn_encoding(table, options)[0]
    assert encoding.features == ("when (days since 2024-01-31)", "when missing")
    assert encoding.training(table).X.tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [3.0, 0.0]]
    other = Table(source="b.csv", names=("when",), columns=(["30.02.2024"],), lines=[2])
    with pytest.raises(ValueError, match=r"b.csv, line 2: '30.02.2024' in column 'when' is not a date of the form DD"):
        encoding.apply(other)


def test_every_day_around_leap_years_is_counted_as_in_predict(tmp_path):
    """The target is the number of the day, so that a day more or less changes the prediction by about one."""
    years = (1896, 1900, 1996, 2000, 2023, 2024, 2099, 2100, 2104)
    days = [datetime.date(year, month, 27) + datetime.timedelta(k) for year in years for month in (1, 2, 12)
            for k in range(5)]  # fmt: skip
    X = pd.DataFrame({"when": pd.Series([day.isoformat() for day in days], dtype=object)})
    y = np.array([day.toordinal() for day in days], dtype=float)
    model = LocalSVRTreeRegressor(C=1e4, dates="days-since").fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=0.4)
    cells = X.to_dict("records")
    module = {}
    exec(model.tree_.to_python(), module)
    agree(model, X, module["predict_many"](cells))
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE people (number INTEGER, 'when' VARCHAR)")
        base.executemany("INSERT INTO people VALUES (?, ?)", [(k, day) for k, day in enumerate(X.when)])
        sql = model.tree_.to_sql(table="people")
        agree(model, X, [found for (found,) in base.execute(f"SELECT {sql} FROM people ORDER BY number").fetchall()])
    if compiler := shutil.which("gcc") or shutil.which("cc"):
        predicted_by_c([model], X, cells, compiler, tmp_path)
    for chrome in chromium():
        (tmp_path / "tree.html").write_text(render_page(model.tree_), encoding="utf-8")
        chrome.get((tmp_path / "tree.html").as_uri())
        agree(model, X, chrome.execute_script(READ, [[day] for day in X.when]))
