"""Sets by name, their sources and their failures, the paper's split and numbers, generated partitions."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import subprocess
import sys
import urllib.error
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margotree.paper.data import (
    DataError,
    Dataset,
    dataset_names,
    download,
    load,
    make_partitions,
    one_hot_squares,
    paper_hyperparameters,
    paper_split,
    paper_table,
    paper_tables,
)
from margotree.paper.data.catalogue import ENTRIES, Entry, find
from margotree.paper.data.read import parse, write
from margotree.problem import Problem, evaluate, topology

needs_data = pytest.mark.skipif(not os.environ.get("MARGOTREE_DATA"), reason="MARGOTREE_DATA is not set")

TRAIN_SIZES = {
    "Breast Cancer D.": 455,
    "Breast Cancer W.": 546,
    "Climate Model": 432,
    "Heart Disease C.": 237,
    "Ionosphere": 280,
    "Parkinsons": 156,
    "Sonar": 166,
    "SPECTF H.": 213,
    "Tic-Tac-Toe": 766,
    "Wholesale": 352,
    "fourclass": 689,
}


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data folder, an empty cache, and a network that refuses."""
    monkeypatch.delenv("MARGOTREE_DATA", raising=False)
    monkeypatch.setenv("MARGOTREE_CACHE", str(tmp_path / "cache"))

    def refuse(*args: object, **kwargs: object) -> None:
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)
    return tmp_path / "cache"


def made_up(entry: Entry, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    """Random cells and labels in the shape and class counts of a set."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation([label for label, count in entry.counts.items() for _ in range(count)])
    X = rng.normal(size=(entry.n_samples, entry.n_features))
    if entry.stem == "tic_tac_toe":
        bits = np.array([[0, 1], [1, 0], [1, 1]], dtype=float)
        X = bits[rng.integers(0, 3, size=(entry.n_samples, 9))].reshape(-1, 18)
    return X, labels.tolist()


def as_csv(header: list[str], X: np.ndarray, labels: list[str], target: str) -> bytes:
    lines = [",".join([*header, target])] + [
        ",".join([*map(repr, x), label]) for x, label in zip(X.tolist(), labels, strict=True)
    ]
    return "\n".join(lines).encode()


def serve(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> list[str]:
    """Answer every request with these bytes; the addresses asked for are kept."""
    asked: list[str] = []

    class Answer:
        def __enter__(self) -> Answer:
            return self

        def __exit__(self, *args: object) -> None:
            pass

        def read(self, limit: int = -1) -> bytes:
            return raw if limit < 0 else raw[:limit]

    def urlopen(request: object, timeout: float) -> Answer:
        asked.append(request.full_url)
        return Answer()

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return asked


# --- reading -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.stem)
def test_written_sets_read_back_to_the_same_numbers(entry: Entry) -> None:
    X, labels = made_up(entry)
    first = parse(entry, as_csv(list(entry.feature_names), X, labels, entry.targets[0]), "here")
    again = parse(entry, write(first, entry), "there")
    np.testing.assert_array_equal(first.X, X)
    np.testing.assert_array_equal(again.X, X)
    assert [str(label) for label in again.strata] == labels
    assert first.fingerprint == again.fingerprint
    assert not first.as_in_paper


def test_layouts_of_the_same_table_agree() -> None:
    entry = find("Breast Cancer W.")
    X, labels = made_up(entry)
    rows = [",".join([*map(repr, x), label]) for x, label in zip(X.tolist(), labels, strict=True)]
    plain = "\n".join(rows)
    with_ids = "\n".join(f"{i},{row}" for i, row in enumerate(rows))
    bom = b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode()
    holes = plain + "\n" + "\n".join(["1,1,1,?,1,1,1,1,1,2", "1,1,1,1,1,1,1,,1,4"])
    header = as_csv(["Sample_code_number", *entry.feature_names], np.c_[np.arange(len(X)), X], labels, "Class")
    prints = {parse(entry, raw, "x").fingerprint for raw in (plain.encode(), with_ids.encode(), bom, holes.encode())}
    assert prints == {parse(entry, header, "x").fingerprint}


def test_heart_keeps_five_strata_and_makes_two_classes() -> None:
    entry = find("cleveland")
    X, labels = made_up(entry)
    heart = parse(entry, as_csv(list(entry.feature_names), X, labels, "num"), "here")
    assert np.unique(heart.strata).tolist() == [0, 1, 2, 3, 4]
    assert np.unique(heart.y).tolist() == [0, 1]
    np.testing.assert_array_equal(heart.y_sign, np.where(heart.strata > 0, 1.0, -1.0))
    assert heart.class_counts() == {"healthy": 160, "diseased": 137}


def test_classes_spelled_otherwise_are_told_by_their_sizes() -> None:
    entry = find("Parkinsons")
    X, labels = made_up(entry)
    spelled = [{"0": "1", "1": "2"}[label] for label in labels]
    names = list(entry.feature_names)
    usual, other = (parse(entry, as_csv(names, X, given, "class"), "x") for given in (labels, spelled))
    np.testing.assert_array_equal(usual.y_sign, other.y_sign)
    assert other.class_counts() == {"healthy": 48, "parkinson": 147}


def test_squares_of_the_board_become_two_columns() -> None:
    entry = find("tic_tac_toe")
    X, labels = made_up(entry)
    marks = {(0, 1): "x", (1, 0): "o", (1, 1): "b"}
    rows = [[marks[int(a), int(b)] for a, b in x.reshape(9, 2)] for x in X]
    text = "\n".join(",".join([*row, label]) for row, label in zip(rows, labels, strict=True))
    board = parse(entry, text.encode(), "here")
    np.testing.assert_array_equal(board.X, X)
    wide = one_hot_squares(board)
    assert wide.X.shape == (958, 27)
    np.testing.assert_array_equal(wide.X.reshape(-1, 9, 3).sum(axis=2), 1)
    assert ["xob"[k] for k in wide.X[0].reshape(9, 3).argmax(axis=1)] == rows[0]
    with pytest.raises(ValueError, match="Tic-Tac-Toe"):
        one_hot_squares(wide)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda lines: lines[:-1], r"expected 195 of 22"),
        (lambda lines: [line.split(",", 1)[1] for line in lines], r"rows of 21 features, expected 195 of 22"),
        (lambda lines: [*lines[:-1], lines[-1][:-1] + "7"], r"its classes are \{.*7: 1.*expected \{0: 48, 1: 147\}"),
        (lambda lines: [*lines[:-1], "high" + lines[-1][lines[-1].index(",") :]], "not a number"),
        (lambda lines: [*lines[:-1], "inf" + lines[-1][lines[-1].index(",") :]], "infinite"),
        (lambda lines: [*lines, "1,2"], "differ in length"),
        (lambda lines: [], "empty"),
    ],
)
def test_a_table_that_is_not_the_set_is_refused(spoil, message: str, nowhere: Path) -> None:
    entry = find("parkinsons")
    lines = as_csv(list(entry.feature_names), *made_up(entry), "status").decode().splitlines()
    nowhere.mkdir()
    (nowhere / "parkinsons.csv").write_text("\n".join(spoil(lines)))
    with pytest.raises(DataError, match=message) as caught:
        load("parkinsons")
    assert "parkinsons.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_dataset_is_frozen() -> None:
    data = make_partitions(4).dataset
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    for array in (data.X, data.y, data.y_sign, data.strata):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(ValueError, match="feature names"):
        dataclasses.replace(data, feature_names=("x1",))
    with pytest.raises(ValueError, match="one length"):
        dataclasses.replace(data, y=data.y[1:])


# --- where a set comes from --------------------------------------------------------------------------------------


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown data set 'iris'.*Heart Disease C\..*fourclass"):
        load("iris")


def test_names_in_the_papers_spelling_and_as_stems() -> None:
    assert len(dataset_names()) == 11
    for entry in ENTRIES:
        assert find(entry.name) is entry is find(entry.stem) is find(entry.name.upper())


def test_nothing_anywhere_says_what_to_do_in_one_line(nowhere: Path) -> None:
    for name in set(dataset_names()) - {"Breast Cancer D."}:
        with pytest.raises(DataError) as caught:
            load(name)
        text = str(caught.value)
        assert "\n" not in text
        for word in ("MARGOTREE_DATA", str(nowhere), "network", "no route to host", find(name).file_name):
            assert word in text
    with pytest.raises(DataError, match="not allowed"):
        load("Sonar", allow_download=False)
    assert not nowhere.exists()


def test_data_folder_comes_before_the_cache(nowhere: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    entry = find("sonar")
    for seed, folder in enumerate((nowhere, tmp_path / "data")):
        folder.mkdir()
        (folder / "sonar.csv").write_bytes(as_csv(list(entry.feature_names), *made_up(entry, seed), "class"))
    cached = load("Sonar")
    assert cached.source == str(nowhere / "sonar.csv")
    monkeypatch.setenv("MARGOTREE_DATA", str(tmp_path / "data"))
    assert load("Sonar").source == str(tmp_path / "data" / "sonar.csv")
    assert load("Sonar").checksum != cached.checksum
    (tmp_path / "data" / "sonar.csv").unlink()
    assert load("Sonar").checksum == cached.checksum


def test_a_data_folder_that_does_not_exist_is_an_error(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARGOTREE_DATA", str(nowhere / "typo"))
    with pytest.raises(DataError, match=r"MARGOTREE_DATA .*typo.* no folder"):
        load("Sonar")


def test_cache_folder_follows_the_user(nowhere: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from margotree.paper.data.locations import cache_folder

    assert cache_folder() == nowhere
    monkeypatch.delenv("MARGOTREE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "margotree"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "margotree"


def test_breast_cancer_needs_no_network(nowhere: Path) -> None:
    data = load("Breast Cancer D.")
    assert data.class_counts() == {"benign": 357, "malignant": 212}
    assert data.as_in_paper
    assert data.feature_names[0] == "radius mean" and data.feature_names[-1] == "fractal dimension worst"
    assert load("breast_cancer_diagnostic").checksum == data.checksum


# --- downloading -------------------------------------------------------------------------------------------------


def test_uci_is_asked_by_id_and_the_answer_kept(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find("Wholesale")
    X, labels = made_up(entry)
    columns = ["Channel", *entry.feature_names]
    lines = [",".join(columns)] + [
        ",".join([label, *map(repr, x)]) for x, label in zip(X.tolist(), labels, strict=True)
    ]
    asked = serve(monkeypatch, "\n".join(lines).encode())
    data = load("Wholesale")
    assert len(asked) == 1 and "/292/" in asked[0]
    np.testing.assert_array_equal(data.X, X)
    assert "UCI 292" in data.source
    assert [file.name for file in nowhere.iterdir()] == ["wholesale.csv"]
    again = load("Wholesale")
    assert len(asked) == 1
    assert again.checksum == data.checksum
    np.testing.assert_array_equal(again.X, data.X)


def test_openml_is_asked_next_and_its_codes_decoded(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find("tic_tac_toe")
    X, labels = made_up(entry)
    categories = ["b", "o", "x"]
    codes = np.array([[{(0, 1): 2.0, (1, 0): 1.0, (1, 1): 0.0}[int(a), int(b)] for a, b in x.reshape(9, 2)] for x in X])
    names = [f"square{j}" for j in range(9)]
    asked = []

    def fetch_openml(**options: object) -> object:
        asked.append(options)
        bunch = {"categories": dict.fromkeys(names, categories)}
        target = np.array(["positive" if label == "1" else "negative" for label in labels], dtype=object)
        return SimpleNamespace(get=bunch.get, feature_names=names, data=codes, target=target)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    data = load("Tic-Tac-Toe")
    assert asked[0]["data_id"] == 50 and asked[0]["as_frame"] is False
    np.testing.assert_array_equal(data.X, X)
    assert [str(label) for label in data.strata] == labels


def test_scikit_learns_own_reader_of_openml_is_understood(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real fetch_openml on a made-up server: nominal, missing and labelled cells arrive as they should."""
    from sklearn.datasets import _openml

    if not hasattr(_openml, "urlopen"):
        pytest.skip("scikit-learn opens addresses in another way")
    entry = find("Breast Cancer W.")
    X, labels = made_up(entry)
    X[:, 0] = np.arange(len(X)) % 10 + 1
    columns = [f"V{j}" for j in range(9)]
    arff = ["@RELATION r", f"@ATTRIBUTE V0 {{{','.join(str(k) for k in range(10, 0, -1))}}}"]
    arff += [f"@ATTRIBUTE {c} REAL" for c in columns[1:]] + ["@ATTRIBUTE Class {benign,malignant}", "@DATA"]
    words = {"2": "benign", "4": "malignant"}
    for x, label in zip(X.tolist(), labels, strict=True):
        arff.append(",".join([str(int(x[0])), *map(repr, x[1:]), words[label]]))
    arff.append("3,?,1,1,1,1,1,1,1,benign")
    text = "\n".join(arff).encode()
    flags = {"is_ignore": "false", "is_row_identifier": "false", "data_type": "numeric", "is_target": "false"}
    flags["number_of_missing_values"] = "0"
    features = [{"name": c, "index": str(j), **flags} for j, c in enumerate(columns)]
    features[0] |= {"data_type": "nominal"}
    features.append({"name": "Class", "index": "9", **flags, "data_type": "nominal", "is_target": "true"})
    described = {
        "status": "active",
        "format": "ARFF",
        "url": "https://server.invalid/file",
        "name": "r",
        "version": "1",
    }
    described |= {"description": "", "md5_checksum": hashlib.md5(text).hexdigest(), "file_id": "1"}
    quality = {"name": "NumberOfInstances", "value": str(len(X) + 1)}
    answers = {
        "file": text,
        "features": json.dumps({"data_features": {"feature": features}}).encode(),
        "qualities": json.dumps({"data_qualities": {"quality": [quality]}}).encode(),
        "data": json.dumps({"data_set_description": described}).encode(),
    }

    def urlopen(request: object, *args: object, **kwargs: object) -> io.BytesIO:
        answer = io.BytesIO(answers[next(word for word in answers if word in request.full_url)])
        answer.info = lambda: {}
        return answer

    monkeypatch.setattr("sklearn.datasets.fetch_openml", _openml.fetch_openml)
    monkeypatch.setattr(_openml, "urlopen", urlopen)
    data = load("Breast Cancer W.")
    np.testing.assert_array_equal(data.X, X)
    assert [str(label) for label in data.strata] == labels


def test_missing_cells_of_openml_are_dropped(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find("Breast Cancer W.")
    X, labels = made_up(entry)
    hole = np.full((1, 9), np.nan)
    target = np.array([{"2": "benign", "4": "malignant"}[label] for label in labels] + ["benign"], dtype=object)
    bunch = SimpleNamespace(get={}.get, feature_names=list(entry.feature_names), data=np.r_[X, hole], target=target)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **options: bunch)
    np.testing.assert_array_equal(load("Breast Cancer W.").X, X)


def test_fourclass_comes_from_libsvm(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find("fourclass")
    X, labels = made_up(entry)
    X[0, 1] = 0.0
    lines = [f"{int(label):+d} 1:{x[0]!r} 2:{x[1]!r} " for x, label in zip(X.tolist(), labels, strict=True)]
    lines[0] = lines[0].replace(" 2:0.0", "")
    serve(monkeypatch, "\n".join(lines).encode())
    data = load("fourclass")
    np.testing.assert_array_equal(data.X, X)
    assert [str(label) for label in data.strata] == labels


@pytest.mark.parametrize("spoil", ["rows", "columns", "counts", "page", "binary"])
def test_a_wrong_download_is_refused_and_not_kept(spoil: str, nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find("Ionosphere")
    X, labels = made_up(entry)
    names = list(entry.feature_names)
    if spoil == "rows":
        X, labels = X[1:], labels[1:]
    elif spoil == "columns":
        X, names = X[:, 1:], names[1:]
    elif spoil == "counts":
        labels[labels.index("b")] = "g"
    raw = as_csv(names, X, labels, "Class")
    if spoil == "page":
        raw = b"<!doctype html><html>\n<body>Please, log in, first</body></html>"
    elif spoil == "binary":
        raw = bytes(range(256)) * 2000
    asked = serve(monkeypatch, raw)
    with pytest.raises(DataError, match=r"UCI 52 .*OpenML 59: no route to host") as caught:
        load("Ionosphere")
    assert "\n" not in str(caught.value)
    assert len(asked) == 1
    assert not nowhere.exists()


def test_a_broken_connection_is_a_failed_source(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import http.client

    def drop(*args: object, **kwargs: object) -> None:
        raise http.client.RemoteDisconnected("closed without response")

    monkeypatch.setattr("urllib.request.urlopen", drop)
    found, failures = download.fetch(find("Sonar"))
    assert found is None
    assert failures == ["UCI 151: closed without response", "OpenML 40: no route to host"]


def test_a_write_cut_short_leaves_no_file(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find("Sonar")
    serve(monkeypatch, as_csv(list(entry.feature_names), *made_up(entry), "class"))

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match=r"sonar\.csv.*No space left.*MARGOTREE_CACHE"):
        load("Sonar")
    assert list(nowhere.iterdir()) == []


# --- the paper's data, split and numbers -------------------------------------------------------------------------


@pytest.mark.paper
@needs_data
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.stem)
def test_sets_are_those_of_the_authors(entry: Entry) -> None:
    data = load(entry.name)
    assert data.X.shape == (entry.n_samples, entry.n_features)
    assert data.as_in_paper
    assert data.checksum == load(entry.stem).checksum and len(data.checksum) == 64
    split = paper_split(data)
    assert len(split.y_train) == TRAIN_SIZES[entry.name]
    assert len(split.y_test) == data.n_samples - TRAIN_SIZES[entry.name]


@pytest.mark.paper
@needs_data
def test_shapes_agree_with_the_paper_where_it_agrees_with_its_files() -> None:
    for row in paper_table("datasets"):
        data = load(str(row["dataset"]))
        assert data.n_samples == row["n_samples"]
        if data.name != "Tic-Tac-Toe":  # printed 27, distributed 18
            assert data.n_features == row["n_features"]
        if data.name != "Wholesale":  # printed 81/19, distributed 68/32
            assert abs(100 * np.mean(data.y_sign < 0) - row["negative_percent"]) < 1


@pytest.mark.paper
@needs_data
def test_the_board_is_coded_as_the_marks_are() -> None:
    data = load("tic_tac_toe")
    board = one_hot_squares(data).X.reshape(-1, 9, 3)
    x, o = board[:, :, 0].sum(axis=1), board[:, :, 1].sum(axis=1)
    assert set(x - o) == {0.0, 1.0}  # x begins and the marks alternate
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    wins = np.any([board[:, line, 0].all(axis=1) for line in map(list, lines)], axis=0)
    np.testing.assert_array_equal(data.y_sign, np.where(wins, 1.0, -1.0))


def any_data(n: int = 200, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    strata = rng.integers(0, 3, n)
    y = (strata > 0).astype(int)
    return Dataset(
        name="any", X=rng.normal(size=(n, 4)) * [1, 10, 0, 5], y=y, y_sign=2.0 * y - 1, strata=strata,
        feature_names=("a", "b", "c", "d"), class_names=("no", "yes"), source="here", checksum="0",
    )  # fmt: skip


def test_the_split_is_stratified_scaled_and_reproducible() -> None:
    data = any_data()
    split, again, other = paper_split(data), paper_split(data), paper_split(data, random_state=1)
    np.testing.assert_array_equal(split.train, again.train)
    assert not np.array_equal(split.train, other.train)
    assert sorted([*split.train, *split.test]) == list(range(200))
    assert len(split.train) == 160
    for k in range(3):
        assert abs(np.sum(data.strata[split.test] == k) - 0.2 * np.sum(data.strata == k)) <= 1
    varying = [0, 1, 3]
    np.testing.assert_allclose(split.X_train[:, varying].min(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(split.X_train[:, varying].max(axis=0), 1)
    np.testing.assert_allclose(split.X_train * split.span + split.low, data.X[split.train], atol=1e-12)
    np.testing.assert_allclose(split.X_test * split.span + split.low, data.X[split.test], atol=1e-12)
    np.testing.assert_array_equal(split.y_test, data.y_sign[split.test])
    with pytest.raises(ValueError, match="read-only"):
        split.X_train[0, 0] = 1


def test_tables_have_every_set_and_numbers_in_every_cell() -> None:
    assert len(paper_tables()) == 19
    ten = set(dataset_names()) - {"fourclass"}
    for name in set(paper_tables()) - {"synthetic", "hyperparameters_fixed"}:
        rows = paper_table(name)
        assert {row["dataset"] for row in rows} - {"Mean"} == ten
        for row in rows:
            assert all(isinstance(v, (float, tuple)) for k, v in row.items() if k not in {"dataset", "model"})
    assert paper_table("synthetic")[0]["local_svm_gap"] is None
    with pytest.raises(ValueError, match="unknown table 'nope'"):
        paper_table("nope")


def test_features_per_node_add_up() -> None:
    """A feature is counted once per tree, so the total lies between the largest node and the sum over nodes."""
    for name in ("features", "features_fs"):
        for row in paper_table(name):
            for column in (c for c in row if c.endswith("_F_t")):
                assert max(row[column]) <= row[column[:-2]] <= sum(row[column])


@pytest.mark.parametrize("part", ["train", "test"])
def test_differences_of_the_fixed_runs_follow_from_the_tables(part: str) -> None:
    """d = tuned - fixed, up to rounding of the printed digits: a slip in copying any of the tables would show."""
    tuned = {row["dataset"]: row for row in paper_table(f"{part}_accuracy")}
    starred = {row["dataset"]: row for row in paper_table(f"{part}_accuracy_fs")}
    off = set()
    for row in paper_table(f"fixed_{part}_accuracy")[:-1]:
        best = tuned[row["dataset"]] | starred[row["dataset"]]
        for model, column in (
            ("margot", "margot"),
            ("hfs_margot", "hfs_margot_star"),
            ("sfs_margot", "sfs_margot_star"),
        ):
            for measure in ("acc", "bacc"):
                d = best[f"{column}_{measure}"] - row[f"{model}_{measure}"]
                if abs(d - row[f"{model}_d_{measure}"]) > 0.15:
                    off.add((row["dataset"], model))
    assert off == ({("Tic-Tac-Toe", "margot")} if part == "test" else set())  # there the paper disagrees with itself


def test_hyperparameters_fit_a_problem() -> None:
    assert paper_hyperparameters("MARGOT", "Parkinsons") == {"C": [1.0, 1e4]}
    assert paper_hyperparameters("hfs", "cleveland") == {"C": [10.0, 1000.0], "budget": [1, 2]}
    assert paper_hyperparameters("SFS-MARGOT*", "Sonar") == {"C": [1.0, 1.0], "budget": [1, 1], "alpha": 4.0}
    assert paper_hyperparameters("oct_1", "Sonar") == {"alpha": 0.25}
    assert paper_hyperparameters("OCT-H*", "Sonar") == paper_hyperparameters("oct_h_star", "Sonar") == {"alpha": 2**-7}
    assert paper_hyperparameters("mm_svm_oct", "Sonar") == {"c1": 1.0, "c3": 1.0}
    assert paper_hyperparameters("hfs", "Sonar", fixed=True) == {"C": [100.0, 1000.0], "budget": [2, 2]}
    assert paper_hyperparameters("margot", "Parkinsons", depth=3)["C"] == [1.0, 1e4, 1e4]
    data = any_data()
    for name in set(dataset_names()) - {"fourclass"}:
        for model in ("margot", "hfs", "sfs"):
            for fixed in (False, True):
                given = paper_hyperparameters(model, name, fixed=fixed)
                assert Problem.make(data.X, data.y_sign, depth=2, **given).model == model


@pytest.mark.parametrize(
    ("model", "dataset", "fixed", "message"),
    [
        ("cart", "Sonar", False, "unknown model 'cart'"),
        ("margot", "iris", False, "unknown data set"),
        ("margot", "fourclass", False, "no hyperparameters for fourclass"),
        ("oct_1", "Sonar", True, "not for oct_1"),
    ],
)
def test_hyperparameters_the_paper_does_not_print(model: str, dataset: str, fixed: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paper_hyperparameters(model, dataset, fixed=fixed)


def test_importing_data_imports_neither_scikit_learn_nor_pandas() -> None:
    code = "import sys, margotree.paper.data; print([m for m in ('sklearn', 'pandas', 'scipy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- partitions --------------------------------------------------------------------------------------------------


def truth_problem(kind: int, C_last: float = 1e4, **options: object) -> tuple[Problem, object]:
    made = make_partitions(kind, **options)
    C = [1.0] * (made.depth - 1) + [C_last]
    return Problem.make(made.dataset.X, made.dataset.y_sign, depth=made.depth, C=C), made


@settings(max_examples=25)
@given(kind=st.sampled_from([4, 6]), seed=st.integers(0, 10**6), margin=st.floats(0.005, 0.04), n=st.integers(6, 80))
def test_ground_truth_is_allowed_and_right(kind: int, seed: int, margin: float, n: int) -> None:
    problem, made = truth_problem(kind, random_state=seed, margin=margin, n_samples=n)
    found = evaluate(problem, made.truth)
    assert found.feasible
    h = np.sum(problem.X * made.truth.w[found.node], axis=1) + made.truth.b[found.node]
    np.testing.assert_array_equal(np.where(h >= 0, 1.0, -1.0), problem.y)
    assert np.all(problem.y * h >= 1)
    np.testing.assert_array_equal(np.where(h >= 0, topology.right(0), topology.left(0)), 2 - made.region % 2)
    np.testing.assert_array_equal((made.region - 1) // 2, found.node)
    sizes = np.unique(made.region, return_counts=True)[1]
    assert len(sizes) == kind and np.ptp(sizes) <= 1
    assert problem.X.min() >= 0 and problem.X.max() <= 1


@pytest.mark.parametrize(("kind", "n_samples", "depth"), [(4, 108, 2), (6, 96, 3)])
def test_partitions_have_the_papers_size(kind: int, n_samples: int, depth: int) -> None:
    made = make_partitions(kind)
    assert (made.dataset.n_samples, made.depth) == (n_samples, depth)
    assert made.dataset.name == f"{kind}-partitions"
    assert make_partitions(kind).dataset.checksum == made.dataset.checksum
    assert make_partitions(kind, random_state=1).dataset.checksum != made.dataset.checksum


@pytest.mark.parametrize("kind", [4, 6])
@pytest.mark.parametrize("seed", range(5))
def test_the_optimal_tree_makes_no_mistake_but_the_greedy_one_does(kind: int, seed: int) -> None:
    """A wrong point costs C_last = 1e4 at the least, and the truth costs less than that: so the optimum has none."""
    problem, made = truth_problem(kind, random_state=seed)
    assert evaluate(problem, made.truth).objective < 1e4
    assert greedy_accuracy(problem) < 1


def greedy_accuracy(problem: Problem) -> float:
    """Accuracy of node SVMs trained one after the other from the root down."""
    from margotree.engines.node.svm import solve_node

    at, right = np.zeros(problem.n_samples, dtype=int), np.zeros(problem.n_samples, dtype=bool)
    for t in range(problem.n_nodes):
        here = np.flatnonzero(at == t)
        node = solve_node(problem.X[here], problem.y[here], np.full(len(here), problem.C[t]))
        right[here] = problem.X[here] @ node.w + node.b >= 0
        at[here] = np.where(right[here], topology.right(t), topology.left(t))
    return float(np.mean(np.where(right, 1.0, -1.0) == problem.y))


def separable(A: np.ndarray, B: np.ndarray) -> bool:
    """Whether a line parts two sets of the plane: all differences then point into one open half-plane."""
    if len(A) == 0 or len(B) == 0:
        return True
    D = (A[:, None] - B[None]).reshape(-1, 2)
    angle = np.sort(np.arctan2(D[:, 1], D[:, 0]))
    return max(np.max(np.diff(angle), initial=0.0), angle[0] + 2 * np.pi - angle[-1]) > np.pi


def separable_at_depth_2(X: np.ndarray, y: np.ndarray) -> bool:
    """Brute force over every root line: does one leave two halves that a line parts each?"""

    def parts(mask: np.ndarray) -> bool:
        return separable(X[mask & (y > 0)], X[mask & (y < 0)])

    for i in range(len(X)):
        for j in range(i):
            side = (X - X[i]) @ np.array([X[j, 1] - X[i, 1], X[i, 0] - X[j, 0]]) > 0
            for ends in ((False, False), (False, True), (True, False), (True, True)):
                side[[i, j]] = ends
                if parts(side) and parts(~side):
                    return True
    return False


def test_four_regions_need_depth_2_and_six_need_depth_3() -> None:
    for seed in range(3):
        four = make_partitions(4, random_state=seed, n_samples=40).dataset
        six = make_partitions(6, random_state=seed, n_samples=48).dataset
        assert not separable(four.X[four.y > 0], four.X[four.y < 0])
        assert separable_at_depth_2(four.X, four.y)
        assert not separable_at_depth_2(six.X, six.y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": 5}, "4 or 6"),
        ({"n_samples": 3}, "at least 4 points"),
        ({"margin": 0.0}, "margin must be positive"),
        ({"margin": 0.4, "n_samples": 4}, "make the margin narrower"),
    ],
)
def test_partitions_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_partitions(**options)
