"""The four exports give every sample the label that Python gives it, ties included."""

import ctypes
import json
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from grown import grown
from margotree import HFSMargotClassifier, MargotClassifier, SFSMargotClassifier, export
from margotree.cli import exit_codes, main
from margotree.cli.saved_trees import ENTRY, with_table
from margotree.export.common import rule_tree_of, used_features
from margotree.problem import Splits, topology
from margotree.table import Category, Encoding, Number, Samples, table_description
from margotree.tree import Scaling, Tree

N_ROWS = 10_000


# -- running what was exported --------------------------------------------------------------------------------------


def run_python(tree, X, tmp_path):
    module = {}
    exec(compile(tree.to_python(), "exported", "exec"), module)
    return module["predict_many"](X.tolist())


def run_c(tree, X, tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler on the PATH as cc")
    (tmp_path / "tree.c").write_text(tree.to_c())
    library = tmp_path / "tree.so"
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", library, tmp_path / "tree.c"], check=True)
    c = ctypes.CDLL(str(library))
    kind = type(tree.classes.tolist()[0])
    array = {str: ctypes.c_char_p, int: ctypes.c_longlong, bool: ctypes.c_int, float: ctypes.c_double}[kind]
    labels = list((array * len(tree.classes)).in_dll(c, "margotree_labels"))
    labels = [label.decode() if kind is str else kind(label) for label in labels]
    assert labels == tree.classes.tolist()
    names = list((ctypes.c_char_p * tree.n_features).in_dll(c, "margotree_features"))
    assert [name.decode() for name in names] == list(tree.features)
    row = ctypes.c_double * tree.n_features
    return [labels[c.margotree_predict(row(*x))] for x in X.tolist()]


def run_sqlite(tree, X, tmp_path):
    base = sqlite3.connect(":memory:")
    _fill(base, tree, X, "REAL")
    found = [label for (label,) in base.execute(f"SELECT {tree.to_sql(table='rows')} FROM rows ORDER BY number")]
    return [bool(label) for label in found] if tree.classes.dtype.kind == "b" else found


def run_duckdb(tree, X, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
    columns = ", ".join(f"column{j} AS {_quoted(name)}" for j, name in enumerate(tree.features))
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", fmt="%.17g")
    kinds = {f"column{j}": "DOUBLE" for j in range(tree.n_features)}
    with duckdb.connect() as base:
        base.execute(
            f"CREATE TABLE rows AS SELECT {columns} FROM read_csv(?, header=false, columns={kinds!r}, parallel=false)",
            [str(tmp_path / "rows.csv")],
        )
        return [label for (label,) in base.execute(f"SELECT {tree.to_sql()} FROM rows ORDER BY rowid").fetchall()]


def _fill(base, tree, X, kind):
    columns = ", ".join(f"{_quoted(name)} {kind}" for name in tree.features)
    base.execute(f"CREATE TABLE rows (number INTEGER, {columns})")
    places = ", ".join("?" * (tree.n_features + 1))
    base.executemany(f"INSERT INTO rows VALUES ({places})", [(i, *x) for i, x in enumerate(X.tolist())])


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


def run_onnx(tree, X, tmp_path):
    pytest.importorskip("onnx", reason='needs onnx: pip install "margotree[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install onnxruntime")
    session = runtime.InferenceSession(tree.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    label, probabilities = session.run(["label", "probabilities"], {"X": np.ascontiguousarray(X, dtype=np.float64)})
    np.testing.assert_allclose(probabilities, tree.predict_proba(X), rtol=0, atol=1e-12)
    return label.tolist()


RUNS = {"python": run_python, "c": run_c, "sqlite": run_sqlite, "duckdb": run_duckdb, "onnx": run_onnx}


def agree(run, tree, X, tmp_path):
    found = run(tree, X, tmp_path)
    wanted = tree.predict(X).tolist()
    assert {type(label) for label in found} == {type(label) for label in wanted}
    assert found == wanted


# -- samples --------------------------------------------------------------------------------------------------------


def random_rows(tree, n=N_ROWS, seed=1):
    """Rows over the training range and a good way beyond it."""
    rng = np.random.default_rng(seed)
    return tree.scaling.offset + tree.scaling.scale * rng.uniform(-0.5, 1.5, (n, tree.n_features))


def tied_rows(tree, n=100, seed=2):
    """Rows that are put exactly on the hyperplane of each node, or as near as floats come, and a sample at each end of
    what still counts as on it."""
    rng, rows = np.random.default_rng(seed), []
    for t in range(tree.n_nodes):
        w = tree.splits.w[t]
        if not w.any():
            continue
        scaled = rng.uniform(size=(n, tree.n_features))
        j = int(np.argmax(np.abs(w)))
        for nudge in (0.0, -0.5, -2.0):
            here = scaled.copy()
            here[:, j] -= (here @ w + tree.splits.b[t] - nudge * tree.tie(t)) / w[j]
            rows.append(tree.scaling.offset + tree.scaling.scale * here)
    return np.vstack(rows)


def same_h(tree, X):
    """Rows whose h keeps clear of the very end of the tie at every node: there the last bit of a sum decides."""
    scaled = tree.scaled(X)
    h = scaled @ tree.splits.w.T + tree.splits.b
    ties = np.array([tree.tie(t) for t in range(tree.n_nodes)])
    return np.all(np.abs(h + ties) > 0.1 * ties, axis=1)


@pytest.fixture(scope="module")
def fitted():
    """A tree of each model, trained, for two classes and for three."""
    rng = np.random.default_rng(0)
    columns = [rng.normal(50, 15, 80), rng.normal(0, 1e-3, 80), rng.integers(0, 2, 80), rng.normal(2e3, 3, 80)]
    X = np.column_stack(columns)
    y = np.where(X[:, 0] / 15 + 800 * X[:, 1] + 0.3 * (X[:, 3] - 2e3) + rng.normal(0, 0.5, 80) > 3.3, "ill", "well")
    models = {
        "margot": MargotClassifier(depth=2, C=10, time_limit=5),
        "hfs": HFSMargotClassifier(depth=2, C=10, budget=2, time_limit=5),
        "sfs": SFSMargotClassifier(depth=2, C=10, budget=1, alpha=1, time_limit=5),
    }
    several = np.where(X[:, 0] > 60, "old", y)
    return {(name, 2): model.fit(X, y) for name, model in models.items()} | {
        (name, 3): clone(model).set_params(node_limit=20).fit(X, several) for name, model in models.items()
    }


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", ["margot", "hfs", "sfs"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trained_trees_predict_the_same_everywhere(fitted, name, n_classes, run, tmp_path):
    tree = fitted[name, n_classes].tree_
    X = np.vstack([random_rows(tree), tied_rows(tree)])
    assert same_h(tree, X).all()
    assert len(set(tree.predict(X))) == n_classes
    agree(run, tree, X, tmp_path)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("depth", "n_features", "facts"),
    [
        (1, 1, {"classes": (False, True)}),
        (2, 3, {"classes": (-1, 1)}),
        (3, 6, {"used": 2, "classes": (3, 1, 4, 15, 9)}),
        (3, 4, {"classes": ("it's", 'a "word"', "caf\u00e9 ??/\\"), "names": ["a b", '"; DROP', "x*/y", "\u00e9 \\"]}),
        (3, 5, {"pruned": [1, 5], "classes": (0.5, 1.5)}),
        (4, 120, {}),
    ],
)
def test_any_classes_names_and_shapes(depth, n_features, facts, run, tmp_path):
    facts = {"names": [f"column {j}" for j in range(n_features)], **facts}
    tree, X, _ = grown(depth, n_features, **facts)
    X = np.vstack([X, random_rows(tree, 300), tied_rows(tree, 5)])
    agree(run, tree, X, tmp_path)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_values_far_from_zero_keep_their_digits(run, tmp_path):
    """Time stamps within a minute: multiplied out, rounding would be larger than the tie."""
    splits = Splits(w=[[40.0, 30.0], [-50.0, 20.0], [1.0, 60.0]], b=[-35.0, 15.0, -30.5])
    scaling = Scaling(offset=[1.7e12, -1e9], scale=[60.0, 1.0])
    tree = Tree(splits=splits, scaling=scaling, classes=[0, 1])
    grid = np.array([[1.7e12 + a, -1e9 + b / 64] for a in range(61) for b in range(65)])
    h = tree.scaled(grid) @ splits.w.T + splits.b
    assert np.any(np.abs(h) < 1e-12)
    agree(run, tree, np.vstack([grid, random_rows(tree, 100)]), tmp_path)


def test_on_the_hyperplane_is_right_in_every_export(tmp_path):
    splits = Splits(w=[[1.0, 0.0], [0.0, 1.0], [0.0, -3.0]], b=[-0.3, -0.1, 0.3])
    tree = Tree(splits=splits, scaling=Scaling.identity(2), classes=["left", "right"])
    X = np.array([[0.3, 0.1], [0.1 + 0.2, 0.1], [0.3 - 1e-12, 0.1], [0.2, 0.1], [0.2, 0.1 - 1e-3]])
    for run in RUNS.values():
        assert run(tree, X, tmp_path) == ["right"] * 4 + ["left"]


def test_a_tree_that_never_splits_is_its_label(tmp_path):
    tree, X, _ = grown(2, 3, pruned=[0, 1, 2], names=["a", "b", "c"])
    for run in RUNS.values():
        agree(run, tree, X, tmp_path)


def test_splits_without_a_choice_are_left_out():
    splits = Splits(w=[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], b=[0.0, 0.0, -1.0])
    tree = Tree(splits=splits, scaling=Scaling.identity(2), classes=[0, 1], leaf_class=[1, 1, 0, 1])
    rule_tree = rule_tree_of(tree)
    assert (rule_tree.met, rule_tree.otherwise) == (0, 1) and used_features(rule_tree) == [0]


def test_thousands_of_features_stay_within_what_parsers_nest(tmp_path):
    rng = np.random.default_rng(0)
    n = 1900
    tree = Tree(splits=Splits(w=rng.normal(size=(1, n)), b=[0.1]), scaling=Scaling.identity(n), classes=[0, 1])
    X = rng.normal(size=(20, n))
    for run in RUNS.values():
        agree(run, tree, X, tmp_path)


# -- what has no label ----------------------------------------------------------------------------------------------


def test_samples_with_holes_have_no_label(tmp_path):
    tree, X, _ = grown(2, 2, names=["a", "b"])
    base = sqlite3.connect(":memory:")
    assert base.execute(f"SELECT {tree.to_sql()} FROM (SELECT 1.0 AS a, NULL AS b)").fetchone() == (None,)
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        base.execute(f"SELECT {tree.to_sql(table='t')} FROM (SELECT 1.0 AS a) AS t")
    module = {}
    exec(tree.to_python(), module)
    for sample in ([1.0, float("nan")], [1.0], {"a": 1.0, "b": None}, {"a": 1.0}, {"a": 1.0, "b": " "}):
        with pytest.raises(ValueError, match=r"'b'|2 numbers"):
            module["predict"](sample)
    assert module["predict"]({"b": str(X[0, 1]), "a": X[0, 0]}) == tree.predict(X[:1])[0]


def test_c_refuses_what_is_not_finite(tmp_path):
    tree, _, _ = grown(2, 2)
    run_c(tree, np.zeros((1, 2)), tmp_path)
    c = ctypes.CDLL(str(tmp_path / "tree.so"))
    for bad in (float("nan"), float("inf")):
        assert c.margotree_predict((ctypes.c_double * 2)(0.0, bad)) == -1
    with pytest.raises(ValueError, match="C identifier"):
        tree.to_c(name="my tree")


def test_onnx_marks_rows_with_holes_and_takes_single_precision():
    pytest.importorskip("onnx", reason='needs onnx: pip install "margotree[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime: pip install onnxruntime")
    tree, X, _ = grown(2, 3)
    single = X.astype(np.float32)
    model = tree.to_onnx(float32=True).SerializeToString()
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    label, _ = session.run(None, {"X": single})
    assert label.tolist() == tree.predict(single.astype(np.float64)).tolist()
    single[1, 2] = np.nan
    _, shares = session.run(None, {"X": single})
    assert np.isnan(shares).all(axis=1).tolist() == [False, True] + [False] * (len(X) - 2)


def test_onnx_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("margotree.export.onnx.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"margotree\[onnx\]"):
        grown(1, 2)[0].to_onnx()


def test_labels_of_several_types_are_refused_where_one_is_needed():
    tree, X, _ = grown(1, 2)
    mixed = Tree(splits=tree.splits, scaling=tree.scaling, classes=[1, "two"])
    for write in (export.to_sql, export.to_c, export.to_onnx):
        with pytest.raises(ValueError, match="one type"):
            write(mixed)
    assert run_python(mixed, X, None) == mixed.predict(X).tolist()


def test_weights_beyond_floats_are_refused():
    tree = Tree(
        splits=Splits(w=[[1e10]], b=[0.0]), scaling=Scaling(offset=[0.0], scale=[1e-305]), classes=[0, 1],
        feature_names=("tiny",),
    )  # fmt: skip
    with pytest.raises(ValueError, match="'tiny'"):
        tree.to_sql()


# -- words ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def worded():
    """A tree trained on a table with words, as the command line leaves it."""
    encoding = Encoding(
        columns=(
            Number(name="age", fill=40.0),
            Category(name="smoker", values=("no", "yes")),
            Category(name="town", values=("A", "B", "O'C"), fill="B"),
        ),
        target="died",
    )
    w = [[1.0, 0.8, 0.5, -0.3, -0.9], [0.5, 1.0, 0.0, 0.0, 0.7], [0.0, 0.0, 0.9, -0.9, 0.2]]
    scaling = Scaling(offset=[18.0, 0, 0, 0, 0], scale=[60.0, 1, 1, 1, 1])
    splits = Splits(w=w, b=[-0.7, -0.6, 0.1])
    tree = Tree(splits=splits, scaling=scaling, classes=["no", "yes"], feature_names=encoding.features)
    samples = Samples(X=np.zeros((1, 5)), y=np.array(["yes"], dtype=object), weight=None, rows=[0])
    return with_table(tree, encoding, samples), encoding


def test_words_are_words_in_sql_and_python(worded):
    tree, _ = worded
    rows = [(age, smoker, town) for age in (20, 35, 50, 75.5) for smoker in ("no", "yes") for town in ("A", "B", "O'C")]
    X = np.array([[a, s == "yes", t == "A", t == "B", t == "O'C"] for a, s, t in rows], dtype=float)
    wanted = tree.predict(X).tolist()
    assert set(wanted) == {"no", "yes"}
    module = {}
    exec(tree.to_python(), module)
    records = [dict(zip(("age", "smoker", "town"), row, strict=True)) for row in rows]
    assert module["predict_many"](records) == wanted == module["predict_many"](X.tolist())
    assert module["predict"]({"age": "", "smoker": " YES", "town": None}) == tree.predict([[40.0, 1, 0, 1, 0]])[0]
    with pytest.raises(ValueError, match="'often' of 'smoker'"):
        module["predict"]({"age": 1, "smoker": "often", "town": "A"})
    assert sql_labels(tree, rows) == wanted
    odd = [(None, " YES", None), (30, "often", "A"), (30, None, "A")]
    assert sql_labels(tree, odd) == [tree.predict([[40.0, 1, 0, 1, 0]])[0], None, None]


def sql_labels(tree, rows):
    """By SQLite and DuckDB, which must agree."""
    found = []
    bases = [sqlite3.connect(":memory:")]
    try:
        import duckdb

        bases.append(duckdb.connect())
    except ImportError:
        pass
    for base in bases:
        base.execute("CREATE TABLE people (number INTEGER, age DOUBLE, smoker VARCHAR, town VARCHAR)")
        base.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", [(i, *row) for i, row in enumerate(rows)])
        answer = base.execute(f"SELECT {tree.to_sql(table='people')} FROM people ORDER BY number").fetchall()
        found.append([label for (label,) in answer])
    assert all(labels == found[0] for labels in found)
    return found[0]


def test_the_description_of_the_table_is_found_where_the_command_line_puts_it(worded):
    tree, encoding = worded
    assert table_description.ENTRY == ENTRY
    assert table_description.saved_encoding(tree) == encoding
    assert table_description.saved_encoding(grown(1, 2)[0]) is None


# -- the command line -----------------------------------------------------------------------------------------------


def test_export_on_the_command_line(fitted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = fitted["margot", 2]
    tree = model.tree_
    tree.save("people.tree.json")
    for to, name in {"sql": "people.tree.sql", "c": "people.tree.c", "python": "people_tree.py"}.items():
        assert main(["export", "people.tree.json", "--to", to, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"to": to, "export": name}
        assert (tmp_path / name).read_text(encoding="utf-8") == getattr(model, f"to_{to}")()
        assert main(["export", "people.tree.json", "--to", to, "--out", "-"]) == 0
        assert capsys.readouterr().out == getattr(tree, f"to_{to}")() == getattr(export, f"to_{to}")(tree)
    code = "import people_tree, sys; sys.exit(people_tree.predict([50, 0, 1, 2000]) != sys.argv[1])"
    wanted = str(tree.predict([[50, 0, 1, 2000]])[0])
    assert subprocess.run([sys.executable, "-S", "-c", code, wanted], cwd=tmp_path).returncode == 0
    assert main(["export", "people.tree.json", "--to", "c", "--name", "risk", "--out", "risk.c"]) == 0
    assert "int risk_predict(const double *x)" in (tmp_path / "risk.c").read_text()


def test_onnx_on_the_command_line(fitted, tmp_path, monkeypatch):
    pytest.importorskip("onnx", reason='needs onnx: pip install "margotree[onnx]"')
    monkeypatch.chdir(tmp_path)
    model = fitted["hfs", 2]
    model.save("t.json")
    assert main(["export", "t.json", "--to", "onnx"]) == 0
    assert (tmp_path / "t.onnx").read_bytes() == model.to_onnx().SerializeToString()
    assert main(["export", "t.json", "--to", "onnx", "--out", "-"]) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--to", "sql", "--name", "x"], "--to c"),
        (["--to", "c", "--table", "x"], "--to sql"),
        (["--to", "python", "--float32"], "--to onnx"),
        (["--to", "python", "--out", "t.json"], "is an input file of this command"),
    ],
)
def test_export_refuses_what_makes_no_sense(options, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grown(1, 2)[0].save("t.json")
    before = (tmp_path / "t.json").read_bytes()
    assert main(["export", "t.json", *options]) in (exit_codes.USAGE, exit_codes.DATA)
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
    assert (tmp_path / "t.json").read_bytes() == before


def test_exports_need_numpy_alone(tmp_path):
    grown(1, 2)[0].save(tmp_path / "tree.json")
    code = (
        "import sys, margotree\n"
        f"tree = margotree.load({str(tmp_path / 'tree.json')!r})\n"
        "tree.to_sql(); tree.to_c(); tree.to_python()\n"
        "sys.exit(bool({'onnx', 'sklearn', 'scipy', 'numba', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_node_of_a_full_tree_is_asked():
    tree, _, _ = grown(3, 4)
    nodes = []

    def visit(rule_tree):
        if not isinstance(rule_tree, int):
            nodes.append(rule_tree.node)
            visit(rule_tree.met)
            visit(rule_tree.otherwise)

    visit(rule_tree_of(tree))
    assert sorted(nodes) == list(range(topology.n_nodes(3)))
