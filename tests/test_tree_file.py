import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from margotree import load
from margotree.problem import Splits
from margotree.solution import Certificate, Stopped
from margotree.tree import Scaling, Tree, TreeFileError, file

CERTIFICATE = Certificate(
    objective=3.0, bound=-np.inf, stopped=Stopped.TIME, gap_target=1e-4, engine="test", engine_version="1"
)


def grow(numbers, classes=("no", "yes")):
    """A tree of depth 2 whose 6 weights, 3 offsets and 2 scales are the given numbers."""
    w, b, offset = np.reshape(numbers[:6], (3, 2)), numbers[6:9], numbers[9:11]
    return Tree(
        splits=Splits(w=w, b=b),
        scaling=Scaling(offset=offset, scale=[0.1, 3.0]),
        classes=classes,
        feature_names=("größe", "Gewicht [kg]"),
        certificate=CERTIFICATE,
        terms={"model": "margot", "C": [0.1, 0.2, 0.3]},
    ).counted([[1.0, 2.0], [3.0, 4.0]], [0, 1], [0.1, 0.7])


TREE = grow(np.arange(11) / 7)

floats = st.floats(-1e100, 1e100)
some_labels = st.one_of(
    st.lists(st.text(max_size=5), min_size=2, max_size=2, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2, unique=True),
    st.just([False, True]),
    st.just([1, "one"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(floats, min_size=11, max_size=11), some_labels)
def test_the_round_trip_keeps_every_bit(tmp_path, numbers, classes):
    tree, X = grow(numbers, classes), np.random.default_rng(0).normal(size=(20, 2))
    tree.save(tmp_path / "tree.json")
    other = load(tmp_path / "tree.json")
    assert other.to_dict() == tree.to_dict()
    for ask in (Tree.decision_function, Tree.predict_proba, Tree.apply):
        assert ask(other, X).tobytes() == ask(tree, X).tobytes()
    assert other.predict(X).dtype == tree.predict(X).dtype
    assert other.predict(X).tolist() == tree.predict(X).tolist()
    assert other.certificate.to_dict() == CERTIFICATE.to_dict()
    assert other.terms == tree.terms and other.features == tree.features


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "tree.json"
    TREE.save(path)
    return path


def test_a_file_cut_short_anywhere_says_so(saved):
    whole = saved.read_text()
    for end in range(1, len(whole.rstrip()) - 1, 7):
        saved.write_text(whole[:end])
        with pytest.raises(TreeFileError, match=r"tree\.json: the file is cut short"):
            load(saved)


def test_an_empty_file_is_no_tree(saved):
    saved.write_text("")
    with pytest.raises(TreeFileError, match="not JSON"):
        load(saved)


@pytest.mark.parametrize("entry", ["w", "b", "offset", "scale", "eps", "counts", "leaf_class", "terms", "certificate"])
def test_a_tampered_file_says_so(saved, entry):
    record = json.loads(saved.read_text())
    record["tree"][entry] = {"w": [[9.0, 9.0]] * 3, "eps": 0.5, "terms": {}, "certificate": None}.get(
        entry, record["tree"][entry][::-1] if isinstance(record["tree"][entry], list) else None
    )
    saved.write_text(json.dumps(record))
    with pytest.raises(TreeFileError, match="checksum does not match"):
        load(saved)


def test_reformatting_is_no_tampering(saved):
    saved.write_text(json.dumps(json.loads(saved.read_text()), indent=7, sort_keys=True))
    assert load(saved).to_dict() == TREE.to_dict()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2, 3]", "JSON, but not a margotree tree"),
        ('{"model": "xgboost"}', "JSON, but not a margotree tree"),
        ("null", "JSON, but not a margotree tree"),
        ("a;b;c\n1;2;3\n", "not JSON"),
        ("[" * 100_000, "not a saved tree"),
        ('{"format": "margotree.tree", "version": 1, "tree": {"w": NaN}}', "NaN is not a number"),
        ('{"format": "margotree.tree", "version": 1, "tree": {}}', "incomplete"),
        ('{"format": "margotree.tree", "version": 1}', "incomplete"),
        ('{"format": "margotree.tree", "version": 2, "tree": {}}', "version 2; this margotree reads version 1"),
    ],
)
def test_a_foreign_file_says_so(tmp_path, content, message):
    path = tmp_path / "foreign"
    path.write_text(content)
    with pytest.raises(TreeFileError, match=message):
        load(path)


def test_a_pickle_is_not_opened(tmp_path):
    path = tmp_path / "tree.pkl"
    path.write_bytes(b"\x80\x04\x95\x00\xff\xfe")
    with pytest.raises(TreeFileError, match="not a text file"):
        load(path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("w", [[1.0, 2.0]], "weight rows"),
        ("w", [["1", "2"]] * 3, "expected numbers"),
        ("w", [[True, False]] * 3, "expected numbers"),
        ("w", [[1.0], [2.0, 3.0], [4.0]], "makes no sense"),
        ("scale", [0.0, 1.0], "positive"),
        ("eps", -1.0, "eps"),
        ("eps", "wide", "makes no sense"),
        ("classes", {"dtype": "object", "values": ["a", None]}, "strings, numbers or booleans"),
        ("classes", {"dtype": "<i8", "values": ["a", "b"]}, "makes no sense"),
        ("classes", {"dtype": "V8", "values": [0, 1]}, "dtype"),
        ("classes", ["a", "b"], "makes no sense"),
        ("leaf_class", [0, 1, 0, 5], "leaf_class"),
        ("counts", [[1.0, 1.0]] * 7, "counts"),
        ("feature_names", [1, 2], "must be a string"),
        ("feature_names", ["a"], "feature_names"),
        ("certificate", {"objective": 1.0}, "not a certificate"),
        ("certificate", CERTIFICATE.to_dict() | {"proved": "optimal"}, "claims proved"),
        ("terms", [1], "makes no sense"),
    ],
)
def test_a_forged_checksum_does_not_let_nonsense_in(tmp_path, entry, value, message):
    record = TREE.to_dict()
    record["tree"][entry] = value
    record["checksum"] = file.checksum_of(record["tree"])
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(record))
    with pytest.raises(TreeFileError, match=message):
        load(path)


def test_numbers_beyond_floats_are_refused(saved):
    saved.write_text(saved.read_text().replace('"eps": 0.001', '"eps": 1e999'))
    with pytest.raises(TreeFileError, match="cannot hold"):
        load(saved)


def test_a_full_disk_leaves_the_old_file_as_it_was(saved, monkeypatch):
    before = saved.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        grow(np.ones(11)).save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == ["tree.json"]


def test_saving_over_a_tree_keeps_its_permissions_and_links(saved):
    saved.chmod(0o640)
    link = saved.parent / "link.json"
    link.symlink_to(saved)
    grow(np.ones(11)).save(link)
    assert link.is_symlink() and load(saved).splits.b.tolist() == [1, 1, 1]
    assert saved.stat().st_mode & 0o777 == 0o640


def test_a_folder_that_does_not_exist_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        TREE.save(Path("nowhere") / "tree.json")
