"""What results show in a shell and in a notebook."""

import copy
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

from grown import grown
from margotree import MargotClassifier
from margotree.solution import Certificate, Stopped

PROOF = Certificate(
    objective=10.0, bound=9.0, stopped=Stopped.TIME, gap_target=1e-4, engine="bnb", engine_version="1", nodes=7,
    start_objective=12.0, warnings=("slow & <odd>",),
)  # fmt: skip


def test_a_tree_shows_its_plot_and_what_is_proved():
    plt = pytest.importorskip("matplotlib.pyplot")
    tree = replace(grown(2, 3)[0], certificate=PROOF)
    before = plt.get_fignums()
    shown = tree._repr_html_()
    assert re.match(r'<div><img src="data:image/png;base64,iVBOR', shown) and plt.get_fignums() == before
    assert "Proved: no tree has a training objective more than 10 % smaller" in shown
    assert "if " in shown  # the rules as its description


def test_without_matplotlib_a_tree_shows_its_rules(monkeypatch):
    monkeypatch.setattr("margotree.plots.notebook_html.find_spec", lambda name: None)
    tree = replace(grown(2, 3)[0], classes=np.array(["<b>", "c"]))
    shown = tree._repr_html_()
    assert "<pre>" in shown and "&lt;b&gt;" in shown and "<b>" not in shown


def test_a_certificate_is_a_table_in_a_notebook():
    shown = PROOF._repr_html_()
    assert shown.count("<tr>") == 1 + 5 and "slow &amp; &lt;odd&gt;" in shown
    assert "no tree has a training objective more than 10 % smaller" in shown
    assert "objective 10, bound 9, gap 10 %" in shown


def test_a_path_prints_as_a_table_on_request_and_is_a_list_all_the_same():
    tree, X, _ = grown(2, 3, pruned=[1])
    path = tree.path(X[0], verbose=True)
    lines = str(path).splitlines()
    assert len(lines) == len(path) + 2 == 4 and lines[0].split()[:2] == ["node", "rule"] and repr(path) == str(path)
    assert lines[1].startswith("[0]") and f"{path[0].h:+.3g}" in lines[1] and re.search("[<>]=", lines[1])
    assert lines[-1].startswith(f"=> {tree.predict(X[:1])[0]} (probability ")
    assert lines[-1].endswith(f"   (leaf {tree.apply(X[:1])[0]})")
    assert path._repr_html_().count("<tr>") == 3
    assert isinstance(path, list) and path == list(path)
    assert any("does not split" in str(tree.path(x, verbose=True)) for x in X)
    for other in (copy.deepcopy(path), pickle.loads(pickle.dumps(path))):
        assert str(other) == str(path)


def test_what_verify_found_prints_beside_what_was_claimed():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    model = MargotClassifier(depth=2, time_limit=5).fit(X, X[:, 0] > 0.5)
    found = model.verify(X, X[:, 0] > 0.5)
    lines = str(found).splitlines()
    assert lines[0].split() == ["claimed", "recomputed"] and len(lines) == 5 + 3
    assert lines[1].split() == ["objective", *[f"{model.certificate_.objective:.9g}"] * 2]
    assert "computed by the engine" in lines[4] and found._repr_html_().count("<tr>") == 8
    assert found.feasible and found.violations == [] and found.objective == pytest.approx(model.certificate_.objective)
    assert len(found.node) == 40 and str(copy.copy(found)) == str(found)
    with pytest.raises(AttributeError):
        _ = found.nothing
