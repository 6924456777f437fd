"""Every export predicts on the raw file what ``margotree predict`` predicts on it, row by row.

Trees of random weights on tables of every kind of column, with every way of missing cells.  A row that predict refuses
gets no label from any export.
"""

import ctypes
import datetime
import itertools
import json
import re
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

import margotree
from browser import chromium
from margotree.cli import main
from margotree.cli.saved_trees import with_table
from margotree.export.common import rule_tree_of, used_features
from margotree.page import render_page
from margotree.problem import Splits
from margotree.table import ColumnOptions, Encoding, Number, TableError, learn_encoding, read_table
from margotree.table.amounts import TRUTH
from margotree.table.dates import days_since
from margotree.table.encoding import Ordered
from margotree.tree import Scaling, Tree

MODELS = {"margot": None, "hfs": 2, "sfs": 3}
MISSING = ("drop", "median", "indicator")
N_TRAINING = 40


def _amounts(rng, n, unit):
    return [f"{value:.1f}{unit}" for value in rng.uniform(0, 100, n)]


#: Columns of a kind: cells of a training file.
KINDS = {
    "numbers": lambda rng, n: {
        "age": [f"{value:.0f}" for value in rng.uniform(18, 90, n)],
        "crp": [f"{value:.2f}" for value in rng.gamma(2, 10, n)],
    },
    "two words": lambda rng, n: {
        "smoker": rng.choice(["no", "yes"], n).tolist(),
        "over 60": rng.choice(["0", "1"], n).tolist(),
        "sex": rng.choice(["Female", "male"], n).tolist(),
    },
    "many words": lambda rng, n: {
        "ward": rng.choice(["general", "intensive care", "surgery", 'O\'Hara \\ "9"?'], n).tolist(),
        "town": rng.choice(["Köln", "Zürich", "Åbo", "oslo"], n).tolist(),
    },
    "units": lambda rng, n: {
        "share": _amounts(rng, n, "%"),
        "stay": [f"{k} {'month' if k == 1 else 'months'}" for k in rng.integers(1, 9, n)],
        "born": rng.choice(["Jan", "Feb", "March", "July", "Dec."], n).tolist(),
    },
    "commas": lambda rng, n: {
        "height": [f"{value:.2f}".replace(".", ",") for value in rng.uniform(1, 2, n)],
        "fat": [cell.replace(".", ",") for cell in _amounts(rng, n, " %")],
    },
}


def _dates(rng, n, form):
    days = [datetime.date(2023, 1, 1) + datetime.timedelta(int(k)) for k in rng.integers(0, 800, n)]
    return [day.strftime(form) for day in days]


KINDS["dates"] = lambda rng, n: {
    "admitted": _dates(rng, n, "%Y-%m-%d"),
    "born": _dates(rng, n, "%d.%m.%Y"),
    "age": [f"{value:.0f}" for value in rng.uniform(18, 90, n)],
}
_MIXED = ("two words", "numbers", "units", "many words")
KINDS["mixed"] = lambda rng, n: {name: cells for kind in _MIXED for name, cells in KINDS[kind](rng, n).items()}

#: Cells of a data frame: words of every kind, of which others are allowed, ordered words, truth values and numbers.
FRAME = "frame"
KINDS[FRAME] = lambda rng, n: {
    "ward": rng.choice(["general", "intensive care", "surgery", "Zürich"], n).tolist(),
    "smoker": rng.choice(["no", "yes"], n).tolist(),
    "grade": rng.choice(["low", "mid", "high"], n).tolist(),
    "alone": rng.choice(["True", "False"], n).tolist(),
    "age": [f"{value:.1f}" for value in rng.uniform(18, 90, n)],
}


def _as_of_a_frame(encoding):
    """The encoding of a data frame with the same columns."""
    others = {column.name: replace(column, others=True) for column in encoding.columns if column.name != "age"}
    others["age"] = encoding.columns[-1]
    others["grade"] = Ordered(name="grade", values=("low", "mid", "high"), fill="mid", flag=True, typical="mid")
    others["alone"] = Number(name="alone", unit=TRUTH, fill=0.0, flag=True, typical=0.0)
    return replace(encoding, columns=tuple(others[column.name] for column in encoding.columns))


#: Cells that new files may hold, in columns of any kind.
ODD = ("", "?", " NA ", "never seen", "-0", "-0.0", "1e300", "-1e300", "1e308", "-1e308", "inf", "1-2", "2020-03-04",
       "2020-03-04 10:00", "2020-02-30", "0000-03-04", "31.12.2020", "2020-03-04x", "0x10", "5 apples", "12%", "7",
       ".5e1", "1,5", "1,234,5", "+3.25", "e5", "1e", "1.2.3")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Case:
    """A tree, its training table and new rows: cells as a file has them."""

    name: str
    tree: Tree
    encoding: Encoding
    rows: list[dict[str, str]]
    decimal: str

    def table(self, rows):
        names = tuple(column.name for column in self.encoding.columns)
        cells = tuple(_plain([row[name] for row in rows]) for name in names)
        lines = list(range(2, len(rows) + 2))
        return margotree.table.Table(source="new.csv", names=names, columns=cells, lines=lines, decimal=self.decimal)

    def label(self, row):
        """What predict says of a row; None if it refuses."""
        try:
            return self.tree.predict(self.encoding.apply(self.table([row]))[0]).tolist()[0]
        except TableError:
            return None

    @cached_property
    def labels(self):
        return [self.label(row) for row in self.rows]

    @cached_property
    def labels_of_asked(self):
        """The same where only the columns that the tree uses are looked at."""
        first, asked, used = 0, set(), set(used_features(rule_tree_of(self.tree)))
        for column in self.encoding.columns:
            last = first + len(column.features)
            asked |= {column.name} if used & set(range(first, last)) else set()
            first = last
        usual = {column.name: str(column.typical) for column in self.encoding.columns}
        return [self.label({name: cell if name in asked else usual[name] for name, cell in row.items()})
                for row in self.rows]  # fmt: skip


def _plain(cells):
    from margotree.table.cells import stripped_cells

    return stripped_cells(cells)


def _table(folder, kind, missing, seed):
    """A training file of columns of a kind with holes, and what is learned of it."""
    rng = np.random.default_rng(seed)
    columns = KINDS[kind](rng, N_TRAINING)
    for cells in columns.values():
        for k in rng.choice(N_TRAINING, 3, replace=False):
            cells[k] = str(rng.choice(["", "NA", "?"]))
    mark = ";" if kind == "commas" else "\t"
    path = folder / f"{kind} {missing} {seed}.csv"
    lines = [mark.join([*columns, "y"])]
    lines += [mark.join([*row, "ab"[k % 2]]) for k, row in enumerate(zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(str(path), decimal=None if kind == "commas" else ".")
    encoding = learn_encoding(
        table,
        ColumnOptions(target="y", missing=missing, categorical=["over 60"] * ("over 60" in columns), date="days-since"),
    )[0]
    return table, _as_of_a_frame(encoding) if kind == FRAME else encoding


def _tree(encoding, table, model, n_classes, rng):
    """Random splits through the middle of the training samples; hfs and sfs use few features."""
    samples = encoding.training(table)
    scaling, p = Scaling.minmax(samples.X), samples.X.shape[1]
    w = rng.normal(size=(7, p)).round(3)
    if MODELS[model]:
        for row in w:
            row[rng.permutation(p)[rng.integers(1, MODELS[model] + 1) :]] = 0.0
    b = -np.median(scaling.apply(samples.X) @ w.T, axis=0) + 0.003
    classes = ["no", "yes"] if n_classes == 2 else ["a", "B'", "ç", "d d"]
    leaf_class = np.arange(8) % n_classes
    tree = Tree(splits=Splits(w=w, b=b), scaling=scaling, classes=classes, leaf_class=leaf_class, eps=1e-3,
                feature_names=encoding.features, terms={"model": model})  # fmt: skip
    tree = tree.counted(samples.X, rng.integers(0, n_classes, len(samples.X)), np.ones(len(samples.X)))
    return with_table(tree, encoding, samples)


def _rows(table, encoding, rng):
    """Rows of the training file mixed anew, in other cases, and with odd cells."""
    names = [column.name for column in encoding.columns]
    cells = {name: [cell for cell in table.column(name) if cell] for name in names}
    drawn = [{name: str(rng.choice(cells[name])) for name in names} for _ in range(48)]
    drawn += [{name: f" {cell.upper() if cell.isascii() else cell} " for name, cell in row.items()}
              for row in drawn[:8]]  # fmt: skip
    drawn += [row | {str(rng.choice(names)): odd} for row, odd in zip(drawn, ODD + ODD, strict=False)]
    return drawn + [{name: odd for name in names} for odd in ("", "1e300", "-1e308", "0", "7")]


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("matrix"), []
    grid = itertools.product(KINDS, MISSING, MODELS, (2, 4))
    for seed, (kind, missing, model, n_classes) in enumerate(grid):
        if kind == FRAME and missing != "indicator":
            continue
        rng = np.random.default_rng(seed)
        table, encoding = _table(folder, kind, missing, seed)
        tree = _tree(encoding, table, model, n_classes, rng)
        # As prediction has it: from the file.
        tree.save(folder / "tree.json")
        name = f"{kind}, {missing}, {model}, {n_classes} classes"
        found.append(Case(name=name, tree=Tree.load(folder / "tree.json"), encoding=encoding,
                          rows=_rows(table, encoding, rng), decimal=table.decimal))  # fmt: skip
    return found


def agree(case, found, wanted=None):
    wanted = case.labels if wanted is None else wanted
    wrong = [
        f"{case.name}: {row} is {have!r}, not {want!r}"
        for row, have, want in zip(case.rows, found, wanted, strict=True)
        if have != want
    ]
    assert not wrong, "\n".join(wrong[:5])


def test_the_matrix_says_something(cases):
    assert len(cases) == 7 * 3 * 3 * 2 + 3 * 2
    for case in cases:
        given = [label for label in case.labels if label is not None]
        assert len(given) > 40 and None in case.labels, case.name
    varied = sum(len(set(case.labels)) > 2 for case in cases)
    assert varied > 0.9 * len(cases)
    indicated = [case for case in cases if "indicator" in case.name]
    assert all(any(name.endswith(" missing") for name in case.tree.features) for case in indicated)


def test_predict_on_the_command_line(cases, tmp_path, capsys):
    for case in cases[::5]:
        good = [row for row, label in zip(case.rows, case.labels, strict=True) if label is not None]
        names, mark = list(good[0]), "\t" if case.decimal == "." else ";"
        lines = [mark.join(row[name] for name in names) for row in good]
        # A line of nothing but missing cells is no line at all.
        kept = [k for k, line in enumerate(lines) if line.strip(mark)]
        text = "\n".join([mark.join(names), *(lines[k] for k in kept)]) + "\n"
        (tmp_path / "new.csv").write_text(text, encoding="utf-8")
        case.tree.save(tmp_path / "tree.json")
        options = ["--decimal", "."] if case.decimal == "." else []
        args = ["predict", str(tmp_path / "tree.json"), str(tmp_path / "new.csv"), "--json", "--quiet", *options]
        assert main(args) == 0, case.name
        found = [row["prediction"] for row in json.loads(capsys.readouterr().out)["predictions"]]
        wanted = [label for label in case.labels if label is not None]
        assert found == [wanted[k] for k in kept], case.name


def test_python(cases):
    for case in cases:
        module = {}
        exec(compile(case.tree.to_python(), "exported", "exec"), module)

        def label(row, module=module):
            try:
                return module["predict"](row)
            except ValueError:
                return None

        agree(case, [label(row) for row in case.rows])


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


def _filled(base, case, kind, values):
    """A database table of the rows."""
    names = list(case.rows[0])
    base.execute("DROP TABLE IF EXISTS people")
    base.execute(f"CREATE TABLE people (row_number INTEGER, {', '.join(f'{_quoted(name)} {kind}' for name in names)})")
    rows = [(k, *(values(row[name]) for name in names)) for k, row in enumerate(case.rows)]
    base.executemany(f"INSERT INTO people VALUES ({', '.join('?' * (len(names) + 1))})", rows)


def _asked(base, case):
    found = base.execute(f"SELECT {case.tree.to_sql(table='people')} FROM people ORDER BY row_number").fetchall()
    return [label for (label,) in found]


def _number(cell):
    """As a database holds it that was told which cells are numbers and which are missing."""
    if cell.strip().casefold() in ("", "?", "na"):
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


@pytest.mark.parametrize("values", [str, _number], ids=["text", "typed"])
def test_sqlite(cases, values):
    for case in cases:
        if values is _number and any(word in case.name for word in ("two", "mixed")):
            continue  # there words are digits
        with sqlite3.connect(":memory:") as base:
            _filled(base, case, "" if values is _number else "TEXT", values)
            agree(case, _asked(base, case), case.labels_of_asked)


def test_duckdb(cases):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
    with duckdb.connect() as base:
        for case in cases:
            _filled(base, case, "VARCHAR", str)
            agree(case, _asked(base, case), case.labels_of_asked)


def test_duckdb_reads_the_file_itself(cases, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
    with duckdb.connect() as base:
        for case in cases:
            if "numbers" not in case.name:
                continue
            plain = [k for k, row in enumerate(case.rows)
                     if all(re.fullmatch(r"\s*(\d+(\.\d+)?|NA|\??)\s*", cell) for cell in row.values())]  # fmt: skip
            chosen = replace(case, rows=[case.rows[k] for k in plain])
            names = list(case.rows[0])
            lines = [",".join(names), *(",".join(row[name].strip().upper() for name in names) for row in chosen.rows)]
            (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
            base.execute("CREATE OR REPLACE TABLE people AS SELECT *, row_number() OVER () AS row_number FROM "
                         "read_csv(?, parallel=false, null_padding=true, nullstr=['', 'NA', '?'], delim=',')",
                         [str(tmp_path / "new.csv")])  # fmt: skip
            agree(chosen, _asked(base, chosen), chosen.labels_of_asked)
            kinds = {row[1] for row in base.execute("DESCRIBE people").fetchall()}
            assert "DOUBLE" in kinds


@pytest.fixture(scope="module")
def compiled(cases, tmp_path_factory):
    """All trees in one library, each under names of its own."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler on the PATH as gcc or cc")
    folder = tmp_path_factory.mktemp("c")
    for k, case in enumerate(cases):
        (folder / f"t{k}.c").write_text(case.tree.to_c(name=f"t{k}"), encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0", "-shared", "-fPIC"]
    sources = [str(folder / f"t{k}.c") for k in range(len(cases))]
    subprocess.run([compiler, *flags, "-o", str(folder / "trees.so"), *sources, "-lm"], check=True)
    return ctypes.CDLL(str(folder / "trees.so"))


def test_c(cases, compiled):
    for k, case in enumerate(cases):
        names = [column.name for column in case.encoding.columns]
        columns = (ctypes.c_char_p * len(names)).in_dll(compiled, f"t{k}_columns")
        assert [name.decode() for name in columns] == names
        labels = list((ctypes.c_char_p * len(case.tree.classes)).in_dll(compiled, f"t{k}_labels"))
        x, found = (ctypes.c_double * case.tree.n_features)(), []
        for row in case.rows:
            cells = (ctypes.c_char_p * len(names))(*(row[name].encode() for name in names))
            wrong = compiled[f"t{k}_read"](cells, x)
            found.append(None if wrong else labels[compiled[f"t{k}_predict"](x)].decode())
        agree(case, found)


def _read_as_described(properties, row):
    """The features of a row by a model's own description; None if it has none for some cell."""
    found, comma = [], json.loads(properties["comma"])
    for column in json.loads(properties["columns"]):
        cell = row[column["column"]].strip()
        words = {word.casefold(): values for word, values in column["words"].items()}
        if cell.casefold() in json.loads(properties["missing"]):
            values = column["missing"]
        elif cell.casefold() in words:
            values = words[cell.casefold()]
        elif column["date"] is not None:
            days, bad = days_since([cell], *column["date"])
            if len(bad):
                return None
            values = [float(days[0])] + [0.0] * (len(column["features"]) - 1)
        elif column["numeric"]:
            unit = next((unit for unit in column["units"] if cell.casefold().endswith(unit)), "")
            cell = cell[: len(cell) - len(unit)].strip().replace(",", "." if comma and "." not in cell else ",")
            try:
                values = [float(cell)] + [0.0] * (len(column["features"]) - 1)
            except ValueError:
                return None
        else:
            values = column["other"]
        if values is None or not np.all(np.isfinite(values)):
            return None
        found += values
    return found


def test_onnx(cases):
    pytest.importorskip("onnx", reason='needs onnx: pip install "margotree[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install onnxruntime")
    for case in cases:
        model = case.tree.to_onnx()
        properties = {entry.key: entry.value for entry in model.metadata_props}
        coded = [_read_as_described(properties, row) for row in case.rows]
        X = np.array([values for values in coded if values is not None])
        session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        label, probabilities = session.run(["label", "probabilities"], {"X": X})
        np.testing.assert_allclose(probabilities, case.tree.predict_proba(X), rtol=0, atol=1e-12)
        labels = iter(label.tolist())
        agree(case, [None if values is None else next(labels) for values in coded])


@pytest.fixture(scope="module")
def chrome():
    yield from chromium()


READ = """
return arguments[0].map((cells) => {
  const { values } = margotree.readCells(cells);
  return values ? margotree.facts.classes[margotree.route(values).code] : null;
});
"""


def test_the_page_in_a_browser(cases, chrome, tmp_path):
    for case in cases:
        (tmp_path / "tree.html").write_text(render_page(case.tree), encoding="utf-8")
        chrome.get((tmp_path / "tree.html").as_uri())
        # The page takes a decimal comma in any entry, as its users type.
        typed = [k for k, row in enumerate(case.rows) if case.decimal != "." or "1,5" not in row.values()]
        names = [column.name for column in case.encoding.columns]
        chosen = replace(case, rows=[case.rows[k] for k in typed])
        agree(chosen, chrome.execute_script(READ, [[row[name] for name in names] for row in chosen.rows]))
        assert chrome.get_log("browser") == []


# -- by the command line, from the training file on -----------------------------------------------------------------


@pytest.mark.parametrize("missing", ["drop", "median", "indicator"])
@pytest.mark.parametrize("model", [["local"], ["hfs", "--budget", "1", "--depth", "1", "--time-limit", "5"]])
def test_a_trained_tree_reads_the_right_columns(model, missing, tmp_path, monkeypatch, capsys):
    """A column with holes before the one that decides; and a unit, words and holes in words."""
    monkeypatch.chdir(tmp_path)
    rng, rows = np.random.default_rng(0), []
    for k in range(60):
        b = round(float(rng.uniform(0, 9)), 2)
        a = "" if k % 7 == 0 else round(float(rng.uniform(0, 9)), 2)
        word = "" if k % 11 == 0 else rng.choice(["red", "green", "blue"])
        rows.append({"a": a, "word": word, "share": f"{rng.integers(0, 100)}%", "b": b, "c": k % 5, "y": int(b > 4)})
    names = list(rows[0])
    with open("t.csv", "w", encoding="utf-8") as stream:
        stream.write("\n".join([",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]))
    options = ["--missing", missing, "--out", "t.json", "--quiet"]
    assert main(["fit", "t.csv", "--target", "y", "--model", *model, *options]) == 0
    capsys.readouterr()
    assert main(["predict", "t.json", "t.csv", "--missing", "skip", "--json", "--quiet"]) == 0
    wanted = [row["prediction"] for row in json.loads(capsys.readouterr().out)["predictions"]]
    assert {0, 1} <= set(wanted) and (None in wanted) == (missing == "drop")
    tree = Tree.load("t.json")
    with sqlite3.connect(":memory:") as base:
        base.execute(f"CREATE TABLE people ({', '.join(names)})")
        base.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(names))})", [list(r.values()) for r in rows])
        found = [label for (label,) in base.execute(f"SELECT {tree.to_sql(table='people')} FROM people")]
    # SQL looks only at the columns that the tree asks for, so that it has labels for more rows.
    assert [label for label, want in zip(found, wanted, strict=True) if want is not None] == [
        want for want in wanted if want is not None
    ]
    module = {}
    exec(tree.to_python(), module)
    complete = [k for k, want in enumerate(wanted) if want is not None]
    assert module["predict_many"]([rows[k] for k in complete]) == [wanted[k] for k in complete]
    assert main(["page", "t.json", "--data", "t.csv", "--quiet"]) == 0
    assert "y: 0 or 1 (" in capsys.readouterr().out or "y: 0 or 1 (" in (tmp_path / "t.html").read_text()


@pytest.mark.parametrize("missing", MISSING)
def test_dates_are_refused_before_there_is_a_tree_to_export(missing, tmp_path, capsys):
    lines = ["day,b,y"] + [f"2024-{1 + k % 12:02}-{1 + k % 28:02},{k},{k % 2}" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    out = str(tmp_path / "t.json")
    assert main(["fit", str(tmp_path / "t.csv"), "--target", "y", "--missing", missing, "--out", out]) != 0
    assert "dates" in capsys.readouterr().err
    assert not (tmp_path / "t.json").exists()
