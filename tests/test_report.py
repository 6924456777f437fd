"""The report page: everything the file holds, nothing that it does not, and no network."""

import re
from html.parser import HTMLParser

import pytest

from margotree.cli import exit_codes, main
from margotree.paper import experiments
from margotree.paper.report import gather, render

SET = "Breast Cancer D."


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One fit of the paper's; its data come with scikit-learn."""
    path = tmp_path_factory.mktemp("report") / "few.sqlite"
    experiments.run(["test_accuracy"], out=path, data=[SET], only=["margot"], time_limit=2, progress=0)
    return path


class Page(HTMLParser):
    """Collects tags, checks that they close, and keeps what they point at."""

    VOID = frozenset({"meta", "img", "br", "link", "input"})

    def __init__(self, text):
        super().__init__()
        self.open, self.targets, self.ids = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        found = dict(attrs)
        self.targets += [found[k] for k in ("href", "src") if k in found]
        self.ids |= {found["id"]} if "id" in found else set()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_page_shows_tables_certificates_and_machine(store):
    contents = gather(store, figures=False)
    assert len(contents.fits) == 1 and contents.fits[0].data == SET and contents.n_folds == 0
    assert any(grid.title.startswith("Test ACC") for grid in contents.tables)
    assert "table warm_start" not in contents.missing and "table synthetic" in contents.missing
    text = render(contents)
    certificate = contents.fits[0].certificate
    assert f"objective {certificate.objective:.6g}" in text and "Machine and versions" in text
    assert "97.4" in text and "margotree 0." in text


def test_a_page_is_whole_and_points_nowhere_outside(store):
    page = Page(render(gather(store, figures=False)))
    assert page.open == []
    assert all(t.startswith(("#", "data:")) for t in page.targets)
    assert {t[1:] for t in page.targets if t.startswith("#")} <= page.ids


def test_text_from_the_file_is_not_taken_for_markup(store):
    import dataclasses

    contents = gather(store, figures=False)
    evil = dataclasses.replace(contents.fits[0], data="<script>alert(1)</script>", rules="a < b & c")
    text = render(dataclasses.replace(contents, fits=[evil], source="<b>.sqlite"))
    assert "<script>" not in text and "<b>.sqlite" not in text and "a &lt; b &amp; c" in text


def test_the_command_writes_the_page_with_figures(store, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    assert main(["report", str(store), "--out", str(tmp_path / "r.html")]) == exit_codes.OK
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert re.search(r'<img src="data:image/png;base64,\w', text) and Page(text).open == []
    monkeypatch.chdir(tmp_path)  # without --out the page is beside the results
    assert main(["report", str(store), "--no-figures"]) == exit_codes.OK
    assert store.with_suffix(".html").is_file() and capsys.readouterr().out.split()[-1] == str(
        store.with_suffix(".html")
    )
    store.with_suffix(".html").unlink()
    assert main(["report", str(tmp_path / "nothing.sqlite")]) == exit_codes.DATA
    assert "run the experiment first" in capsys.readouterr().err
    assert main(["table", str(store), "test_accuracy", "--set", SET, "--format", "csv"]) == exit_codes.OK
    assert capsys.readouterr().out.startswith("method,dataset,acc_ours")
