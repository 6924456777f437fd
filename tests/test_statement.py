"""What is proved of a tree is said in one sentence, the same wherever it is shown."""

import html
import json
import math
import re
from dataclasses import replace

import pytest

from grown import grown
from margotree.cli import main
from margotree.engines.run_control import Event
from margotree.page.html import render_page
from margotree.paper.report.gather import Fit
from margotree.paper.report.html import certificate_entry as report_entry
from margotree.progress import format_event
from margotree.solution import Certificate, Stopped, gap_statement

#: Gap, how the search ended, and what the sentence must say and must not.
GAPS = {
    "0.005 %": (5e-5, Stopped.SOLVED, "training objective more than 0.005 % smaller", "nothing useful"),
    "3 %": (0.03, Stopped.TIME, "training objective more than 3 % smaller", "optimal"),
    "60 %": (0.6, Stopped.TIME, "nothing useful is proved yet", "no tree has"),
    "99.6 %": (0.996, Stopped.NODES, "nothing useful is proved yet", "no tree has"),
    "no bound": (math.inf, Stopped.HEURISTIC, "nothing is proved about better trees", "%"),
}


@pytest.fixture(params=GAPS.values(), ids=GAPS.keys())
def proved(request):
    """A tree with a certificate of that gap, what its sentence must say and what not."""
    gap, stopped, says, says_not = request.param
    certificate = Certificate(
        objective=100.0, bound=100.0 * (1 - gap), stopped=stopped, gap_target=1e-4, engine="bnb", engine_version="1"
    )
    return replace(grown(2, 3, names=("a", "b", "c"))[0], certificate=certificate), says, says_not


def test_the_sentence_speaks_of_the_objective_and_never_of_accuracy_alone(proved):
    tree, says, says_not = proved
    said = tree.certificate.statement
    assert says in said and says_not not in said and "better (" not in said and not re.search(r"% better", said)
    assert math.isinf(tree.certificate.gap) or "this says nothing about accuracy" in said


def test_texts_and_tables_say_it(proved):
    tree, *_ = proved
    said = tree.certificate.statement
    assert f"proved: {said}\n" in str(tree.certificate)
    assert html.escape(said) in tree.certificate._repr_html_()
    assert f"Proved: {html.escape(said)}." in tree._repr_html_()
    fit = Fit(data="d", model="m", terms="", certificate=tree.certificate, train=1.0, test=None, rules="", finished="")
    assert html.escape(said) in report_entry(fit)
    event = Event(phase="search", elapsed=1.0, incumbent=tree.certificate.objective, bound=tree.certificate.bound)
    assert gap_statement(tree.certificate.gap) in said and gap_statement(tree.certificate.gap) in format_event(event)


def test_the_page_says_it(proved):
    tree, *_ = proved
    facts = re.search(r'<script[^>]*id="facts"[^>]*>(.*?)</script>', render_page(tree), re.DOTALL)
    shown = json.loads(facts[1])["certificate"]
    assert shown["proved"] == tree.certificate.statement and tree.certificate.statement in shown["words"]


def test_the_plot_says_it(proved):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    tree, *_ = proved
    # The lines of the caption are drawn from the last to the first.
    caption = " ".join(reversed([text.get_text() for text in tree.plot().texts]))
    plt.close("all")
    assert f"Proved: {tree.certificate.statement}." in caption


def test_the_command_line_says_it(proved, tmp_path, capsys):
    tree, *_ = proved
    said = tree.certificate.statement
    tree.save(tmp_path / "t.json")
    assert main(["show", str(tmp_path / "t.json")]) == 0
    assert f"proved: {said}\n" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "t.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statement"] == said
