"""Links in the documents lead somewhere, and the first page keeps its promises."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
#: Made while the documentation is built.
BUILT = ("gallery/", "_generated/")


def links(page):
    """Targets of links and pictures outside of code."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r"`[^`]*`", "", text)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page):
    """Headings as the sites that show Markdown turn them into anchors."""
    heads = re.findall(r"^#+\s+(.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        if path.startswith(BUILT):
            source = ROOT / "examples" / "gallery" / (Path(path).stem + ".py")
            assert Path(path).stem in {"index", "commands"} or source.exists(), link
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_can_be_found_from_the_first():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([\w-]+)$", index, flags=re.M))
    assert {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"} <= listed


def test_the_first_screen_of_the_readme_shows_a_picture_and_three_lines_of_code():
    screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:25])
    assert re.search(r"!\[.+\]\(docs/images/tree\.png\)", screen)
    code = re.search(r"```python\n(.*?)```", screen, flags=re.S)
    assert code is not None and len(code.group(1).strip().splitlines()) == 3


def test_the_commands_in_the_documents_are_understood():
    """Every margotree command line that a page shows parses."""
    import shlex

    from margotree.cli.main import build_parser

    parser, seen = build_parser(), 0
    for page in PAGES:
        for line in re.findall(r"^\s*(margotree [a-z].*)$", page.read_text(encoding="utf-8"), flags=re.M):
            words = shlex.split(line.split("  #")[0].split(" >")[0])[1:]
            if words and not words[0].endswith(".json"):
                parser.parse_args(words)
                seen += 1
    assert seen > 5


def test_the_engine_in_the_documents_works():
    import numpy as np

    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S)).replace("Limits(time=2)", "Limits(nodes=50)")
    X = np.random.default_rng(0).random((30, 2))
    world = {"X": X, "y": np.where(X[:, 0] > X[:, 1], 1.0, -1.0)}
    exec(code, world)
    assert world["solution"].certificate.stopped == "node limit" and world["solution"].certificate.engine == "dice"


@pytest.mark.parametrize("source", ["README.md", "docs/start.md", "examples/gallery/plot_1_first_tree.py"])
def test_the_first_trees_have_no_empty_leaves(source):
    """Fitted as shown, but for the time: no leaf without samples in the rules, and splits enough for no warning."""
    import warnings

    from sklearn.datasets import load_breast_cancer

    from margotree import HFSMargotClassifier
    from margotree.estimators import FewSplitsWarning

    text = (ROOT / source).read_text(encoding="utf-8")
    asked = re.search(r"HFSMargotClassifier\((.*?)\)\.fit", text)
    assert asked is not None
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    settings = eval(f"dict({asked.group(1)})") | {"node_limit": 5, "time_limit": 60, "verbose": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewSplitsWarning)
        tree = HFSMargotClassifier(**settings).fit(X, y).tree_
    assert all(tree.counts[v].any() for v in tree.outline().leaves) and "no training samples" not in tree.export_text()
