"""Links in the documents lead somewhere, lines are short, and the first pages keep their promises."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
#: Made while the documentation is built.
BUILT = ("gallery/", "_generated/")
PAGES = sorted(
    [*ROOT.glob("*.md"), *(p for p in DOCS.rglob("*.md") if not {"gallery", "_generated", "_build"} & set(p.parts))]
)
#: Addresses of the project that stand for files of this tree, as PyPI needs them in the README.
ADDRESSES = (
    "https://github.com/margotree/margotree/blob/main/",
    "https://raw.githubusercontent.com/margotree/margotree/main/",
)


def links(page):
    """Targets of links and images outside of code; the project's own addresses as paths from the root."""
    text = re.sub(r"```(?!\{image).*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    shown = re.findall(r"```\{image\} (\S+)", text)
    text = re.sub(r"`[^`]*`", "", text)
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]]+\]:\s*(\S+)$", text, flags=re.M) + shown
    for address in ADDRESSES:
        found = [f"/{link.removeprefix(address)}" if link.startswith(address) else link for link in found]
    return found


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
        target = ROOT / path[1:] if path.startswith("/") else (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def contents(page):
    """The pages that the tables of contents of a page list."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.S)
    return {
        (page.parent / f"{name}.md").resolve() for block in blocks for name in re.findall(r"^[\w/-]+$", block, re.M)
    }


def test_every_page_is_in_a_table_of_contents():
    listed = contents(DOCS / "index.md") | contents(DOCS / "experiments" / "index.md")
    assert [page for page in PAGES if DOCS in page.parents and page not in listed] == [DOCS / "index.md"]


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((ROOT / ".github").glob("*.md"))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_lines_are_short(page):
    """At most 120 characters; code, tables and addresses count, too."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [f"{number}: {line}" for number, line in enumerate(lines, start=1) if len(line) > 120] == []


def first_screen():
    return "\n".join((ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:25])


def test_the_first_screen_of_the_readme_installs_and_compares():
    """The line to install, three lines of code beside scikit-learn's tree, a plot, and what a certificate is for."""
    screen = first_screen()
    assert screen.index("pip install margotree") < screen.index("```python")
    code = re.search(r"```python\n(.*?)```", screen, flags=re.S)
    assert code is not None and "DecisionTreeClassifier(" in code[1] and "MargotClassifier(" in code[1]
    assert "frontier image" in screen and "certificate" in screen.split("```")[-1]


def test_the_readme_can_be_shown_elsewhere():
    """On PyPI relative links and images lead nowhere; every reference is defined."""
    page = ROOT / "README.md"
    assert [link for link in links(page) if not link.startswith(("/", "https://"))] == []
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    defined = set(re.findall(r"^\[([^\]]+)\]:", text, flags=re.M))
    used = {re.sub(r"\s+", " ", name) for name in re.findall(r"\]\[([^\]]+)\]", text)}
    assert used == defined


def test_the_figures_of_the_readme_are_means_of_the_rows():
    """Mean accuracies and numbers of splits, recomputed from benchmarks/breadth_rows.csv."""
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    rows = pd.read_csv(ROOT / "benchmarks" / "breadth_rows.csv")
    names = {
        "random forest": "random forest",
        "boosted trees": "boosted trees",
        "**MARGOT, depth 3**": "margot d3",
        "logistic regression": "logistic",
        "CART, depth 4": "cart d4",
        "CART, depth 3": "cart d3",
        "HFS-MARGOT, depth 2, two features per split": "hfs d2",
        "CART, depth 2": "cart d2",
    }
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("**", "")
    for shown, method in names.items():
        of = rows[rows.method == method]
        assert of.data.nunique() == len(of) == 20
        cells = re.search(rf"^\| {re.escape(shown.strip('*'))} \| (.*) \|$", text, flags=re.M)
        mean, two, splits = (cell.strip() for cell in cells[1].split("|"))
        assert float(mean) == pytest.approx(100 * of.accuracy.mean(), abs=0.051), shown
        assert float(two) == pytest.approx(100 * of[of.classes == 2].accuracy.mean(), abs=0.051), shown
        assert not splits or float(splits) == pytest.approx(of.splits.mean(), abs=0.051), shown


def test_the_figures_of_the_frontier_are_means_of_the_rows():
    """Mean accuracies and numbers to read, in the README and in docs/breadth.md."""
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    rows = pd.read_csv(ROOT / "benchmarks" / "frontier_rows.csv")
    names = {
        "depth 3, three features per split": "d3 b3", "depth 3, one feature per split": "d3 b1",
        "cart, depth 4": "cart d4", "plain cart, depth 4": "plain cart d4",
    }  # fmt: skip
    page, readme = ((ROOT / path).read_text(encoding="utf-8") for path in ("docs/breadth.md", "README.md"))
    for shown, method in names.items():
        of = rows[rows.method == method]
        assert of.groupby("seed").data.nunique().unique().tolist() == [20] and len(of) == 20 * of.seed.nunique()
        cells = re.search(rf"^\| {shown} \| (.*) \|$", page, flags=re.M)[1].split("|")
        accuracy, numbers, splits, two = map(str.strip, cells)
        assert float(accuracy.split()[0]) == pytest.approx(100 * of.accuracy.mean(), abs=0.051), shown
        assert float(numbers) == pytest.approx(of.numbers.mean(), abs=0.051), shown
        assert not splits or float(splits) == pytest.approx(of.splits.mean(), abs=0.051), shown
        small = of[of.classes == 2]
        expected = [100 * small.accuracy.mean(), small.numbers.mean()]
        assert [float(x) for x in two.split(" at ")] == pytest.approx(expected, abs=0.051), shown
        if method != "plain cart d4":
            assert re.search(rf"{accuracy.split()[0]} %\s+at\s+{numbers}", readme), shown


def test_the_figures_of_regression_are_means_of_the_rows():
    """R2 and numbers to read, in docs/regression.md and in the README."""
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    rows = pd.read_csv(ROOT / "benchmarks" / "regression_rows.csv")
    methods = ["margotree", "margotree, two features", "ridge", "CART 4", "CART 5", "boosted"]
    table = rows.pivot(index="data", columns="method", values="r2")[methods]
    numbers = rows.pivot(index="data", columns="method", values="numbers")[methods]
    assert table.shape == (29, len(methods)) and not table.isna().any(axis=None)
    page = (ROOT / "docs" / "regression.md").read_text(encoding="utf-8").split("## Accuracy")[1]
    shown = []
    for part in page.split("\n\n"):
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
        if not cells:
            continue
        *data, means, sizes = cells[2:]
        for name, *values in data:
            assert [float(v) for v in values[: len(methods)]] == pytest.approx(table.loc[name].tolist(), abs=0.0051)
        names = [name for name, *_ in data]
        values = [float(v) for v in means[1 : 1 + len(methods)]]
        assert values == pytest.approx(table.loc[names].mean().tolist(), abs=0.00051)
        values = [float(v.replace(",", "")) for v in sizes[1 : 1 + len(methods)]]
        assert values == pytest.approx(numbers.loc[names].mean().tolist(), abs=0.51)
        shown += names
    assert sorted(shown) == sorted(table.index)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    said = re.search(
        r"\*\*Numbers.*? have ([\d.]+) with (\d+) .*? has ([\d.]+) with (\d+), of depth 5 ([\d.]+) with (\d+)\."
        r".*? has ([\d.]+), boosted trees have ([\d.]+)\.",
        readme,
    )
    two, two_size, four, four_size, five, five_size, full, boosted = map(float, said.groups())
    found = [full, two, four, five, boosted]
    without_ridge = [name for name in methods if name != "ridge"]
    assert found == pytest.approx(table[without_ridge].mean().tolist(), abs=0.00051)
    sizes = numbers[["margotree, two features", "CART 4", "CART 5"]].mean().tolist()
    assert [two_size, four_size, five_size] == pytest.approx(sizes, abs=0.51)


def test_the_first_page_has_three_doors():
    """Each with one image, one snippet and pages in reading order."""
    doors = re.split(r"^## ", (DOCS / "index.md").read_text(encoding="utf-8").split("```{toctree}")[0], flags=re.M)[1:]
    assert len(doors) == 3
    for door in doors:
        assert len(re.findall(r"```\{image\}", door)) == 1
        assert len(re.findall(r"^```(?:sh|python)$", door, flags=re.M)) == 1
        assert len(re.findall(r"^\d\. \[", door, flags=re.M)) >= 5


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


def test_the_engine_and_the_task_in_the_documents_work(tmp_path, monkeypatch):
    """The quantile task of another package: local search, exact search, certificate, proof and brute force."""
    import numpy as np

    from margotree.engines import registry
    from oracle.numbers import optimum
    from proofs import exact

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_ENGINES", dict(registry._ENGINES))
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.S)).replace("Limits(time=2)", "Limits(nodes=50)")
    X = np.random.default_rng(0).random((30, 2))
    from margotree.problem import Problem

    world = {"X": X, "y": np.where(X[:, 0] > X[:, 1], 1.0, -1.0)}
    exec(code, world)
    assert world["solution"].certificate.stopped == "node limit" and world["solution"].certificate.engine == "dice"
    best, problem = world["best"], world["quantiles"]
    assert best.certificate.gap <= 1e-4
    assert problem.evaluate(best.splits).objective == pytest.approx(best.certificate.objective)
    assert world["good"].certificate.objective <= 1.2 * best.certificate.objective
    exact.check("rents.proof", problem.X.tolist(), problem.y.tolist(), problem.weight.tolist())
    task = re.search(r"class Quantile.*?```", text, flags=re.S)
    assert task is not None and task[0].count("\n") <= 80
    rule = world["model"]
    assert world["again"].verify(X, world["rents"]).objective == pytest.approx(rule.certificate_.objective)
    assert 0.75 <= np.mean(world["rents"] <= rule.predict(X) + 1e-9) <= 1.0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        small = Problem.make(
            rng.normal(size=(6, 2)), rng.normal(size=6), task=world["Quantile"](0.8), depth=2, C=[0.1, 5.0]
        )
        found = world["solve"](small, start=None).certificate
        assert found.objective == pytest.approx(optimum(small), rel=2e-4)


@pytest.mark.parametrize("source", ["README.md", "docs/start.md", "examples/gallery/plot_1_first_tree.py"])
def test_the_first_trees_have_no_empty_leaves(source):
    """Fitted as shown, but for the time: no leaf without samples in the rules, and splits enough for no warning."""
    import warnings

    from sklearn.datasets import load_breast_cancer

    from margotree import MargotClassifier
    from margotree.estimators import FewSplitsWarning

    text = (ROOT / source).read_text(encoding="utf-8")
    asked = re.search(r"MargotClassifier\((.*?)\)\.fit", text)
    assert asked is not None
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    settings = eval(f"dict({asked.group(1)})") | {"node_limit": 5, "time_limit": 60, "verbose": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FewSplitsWarning)
        tree = MargotClassifier(**settings).fit(X, y).tree_
    assert all(tree.counts[v].any() for v in tree.outline().leaves) and "no training samples" not in tree.export_text()
