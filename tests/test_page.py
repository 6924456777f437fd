import base64
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from browser import chromium
from grown import grown
from margotree.cli.saved_trees import ENTRY
from margotree.page import render_page, write_page
from margotree.problem import Splits, topology
from margotree.table import Category, Encoding, Number
from margotree.table.encoding_json import to_record
from margotree.tree import Scaling, Tree
from test_notebook import PROOF

HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<b>&amp;\u2028",
    "{{facts}} \\u003c",
    '"><img src=x onerror=pwned=1>',
)
HOSTILE_CLASSES = ("</title><script>window.pwned = 1</script>", "--><i>")


try:
    from selenium.webdriver import Keys
except ImportError:  # the tests that press keys are skipped then, by the fixture
    Keys = None


# -- the file -------------------------------------------------------------------------------------------------------


def facts_in(page):
    return json.loads(re.search(r'<script type="application/json" id="facts">(.*?)</script>', page, re.S)[1])


def test_the_page_stands_alone_and_holds_the_tree():
    tree, X, y = grown(2, 3)
    page = render_page(tree, X, y, title="My tree")
    facts = facts_in(page)
    w = np.zeros_like(tree.splits.w)
    for t, node in enumerate(facts["nodes"]):
        w[t, node["at"]] = node["w"]
    assert w.tolist() == tree.splits.w.tolist()
    assert facts["offset"] == tree.scaling.offset.tolist() and facts["scale"] == tree.scaling.scale.tolist()
    assert facts["counts"] == tree.counts.tolist()
    assert "<title>My tree</title>" in page
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)|@import|url\(|fetch\(|XMLHttpRequest""", page)


def test_names_cannot_leave_their_place():
    tree, X, y = grown(2, 4, names=HOSTILE, classes=HOSTILE_CLASSES)
    page = render_page(tree, X, y, title=HOSTILE[0])
    assert page.count("<script") == 2 and page.count("</script") == 2
    assert "<img" not in page and "<i>" not in page
    facts = facts_in(page)
    assert [feature["name"] for feature in facts["features"]] == list(HOSTILE)
    assert facts["classes"] == list(HOSTILE_CLASSES) and facts["title"] == HOSTILE[0]


def test_the_page_holds_no_sample():
    tree, X, y = grown(2, 3)
    text = json.dumps(facts_in(render_page(tree, X, y)))
    # the smallest, middle and largest value of a feature are there, and so the two rows that bear them in one column
    inner = [value for column in X.T for value in np.sort(column)[1:-1]]
    assert not any(repr(float(value)) in text for value in inner)


def test_histograms_count_every_sample_on_its_side():
    tree, X, y = grown(2, 3)
    histograms = facts_in(render_page(tree, X, y))["samples"]["histogram"]
    for t in range(3):
        edges, counts = np.array(histograms[str(t)]["edges"]), np.array(histograms[str(t)]["counts"])
        assert counts.sum(axis=1).tolist() == tree.counts[t].tolist()
        right = edges[:-1] >= 0
        assert counts[:, right].sum(axis=1).tolist() == tree.counts[topology.right(t)].tolist()


def test_start_values_are_medians_or_the_middle_of_the_range():
    tree, X, y = grown(1, 3)
    given = [feature["start"] for feature in facts_in(render_page(tree, X, y))["features"]]
    assert np.all(np.abs(given - np.median(X, axis=0)) <= 1e-3 * tree.scaling.scale)
    without = facts_in(render_page(tree))["features"]
    middle = tree.scaling.offset + tree.scaling.scale / 2
    assert np.all(np.abs([feature["start"] for feature in without] - middle) <= 1e-3 * tree.scaling.scale)
    bare = Tree(splits=tree.splits, scaling=Scaling.identity(3), classes=[0, 1])
    assert facts_in(render_page(bare))["features"][0] == {"name": "x0", "start": 0.0, "low": None, "high": None}


def test_samples_come_in_pairs_and_estimators_write_pages_too(tmp_path):
    from margotree import MargotClassifier

    tree, X, y = grown(1, 2)
    with pytest.raises(ValueError, match="both X and y"):
        write_page(tree, tmp_path / "tree.html", X)
    assert not list(tmp_path.iterdir())
    model = MargotClassifier()
    model.tree_, model.n_features_in_ = tree, 2
    model.to_html(tmp_path / "model.html", X, y)
    tree.to_html(tmp_path / "tree.html", X, y)
    assert (tmp_path / "model.html").read_bytes() == (tmp_path / "tree.html").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_page_needs_numpy_alone(tmp_path):
    grown(1, 2)[0].save(tmp_path / "tree.json")
    code = (
        "import sys, margotree\n"
        f"margotree.load({str(tmp_path / 'tree.json')!r}).to_html({str(tmp_path / 'tree.html')!r})\n"
        "sys.exit(bool({'matplotlib', 'sklearn', 'scipy', 'numba', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# -- in the browser -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chrome():
    yield from chromium()


@pytest.fixture
def show(chrome, tmp_path):
    """Open the page of a tree; at the end nothing may have gone wrong in it."""

    def open_page(tree, X=None, y=None, *, details=True):
        write_page(tree, tmp_path / "tree.html", X, y)
        chrome.get((tmp_path / "tree.html").as_uri())
        if details:
            chrome.execute_script("margotree.setDetails(true)")
        return chrome

    yield open_page
    assert chrome.get_log("browser") == []
    assert chrome.execute_script("return performance.getEntriesByType('resource').length") == 0


WALK = """
return arguments[0].map((values, i) => {
  const way = margotree.route(values);
  const walked = { h: way.steps.map((step) => step.h), leaf: way.leaf, decision: margotree.decision(way) };
  if (i >= arguments[1]) return walked;
  margotree.fill(values);
  return {
    ...walked,
    label: document.getElementById("label").textContent,
    nodes: [...document.querySelectorAll("#way tbody tr")].map((row) => Number(row.dataset.node)),
    lit: [...document.querySelectorAll(".card.on")].map((card) => Number(card.parentElement.dataset.node)),
    curves: document.querySelectorAll(".branch.on").length,
    shown: [...document.querySelectorAll("#way tbody tr td:nth-child(2)")].map((cell) => cell.textContent),
    distance: [...document.querySelectorAll("#way tbody tr td:nth-child(3)")].map((cell) => cell.textContent),
    decisionShown: (document.getElementById("decision") || {}).textContent,
  };
});
"""


def number(words):
    return float(words.replace("\N{MINUS SIGN}", "-"))


@pytest.mark.parametrize(
    ("depth", "n_features", "used", "classes", "pruned"),
    [
        (1, 2, None, ("no", "yes"), ()),
        (2, 10, None, (0, 1), ()),
        (4, 60, None, ("no", "yes"), ()),
        (3, 12, 1, ("a", "b", "c"), (2, 3, 6)),
        (3, 9, None, tuple("abcdefg"), ()),
        (4, 12, 3, tuple(range(11)), ()),
    ],
)
def test_the_page_walks_as_the_tree_does(show, depth, n_features, used, classes, pruned):
    tree, X, y = grown(depth, n_features, used=used, classes=classes, pruned=pruned)
    low, high = X.min(axis=0), X.max(axis=0)
    samples = np.random.default_rng(5).uniform(low - (high - low) / 2, high + (high - low) / 2, size=(100, n_features))
    # the arithmetic for all, what is written on the page for a quarter of them
    found = show(tree, X, y).execute_script(WALK, samples.tolist(), 25)
    passed, labels = tree.decision_path(samples), tree.predict(samples)
    assert [page["leaf"] for page in found] == tree.apply(samples).tolist()
    values = tree.decision_function(samples) if len(classes) == 2 else None
    for i, page in enumerate(found):
        path = tree.path(samples[i])
        np.testing.assert_allclose(page["h"], [step.h for step in path], rtol=1e-9, atol=1e-9)
        if values is not None:
            assert page["decision"] == pytest.approx(values[i], rel=1e-9, abs=1e-9)
        if i >= 25:
            continue
        nodes = [step.node for step in path if tree.splits.w[step.node].any()]
        assert page["label"] == str(labels[i])
        assert page["nodes"] == nodes
        assert set(page["lit"]) <= set(np.flatnonzero(passed[i])) and set(nodes) < set(page["lit"])
        assert page["curves"] == len(page["lit"]) - 1
        kept = [step for step in path if step.node in nodes]
        np.testing.assert_allclose([number(h) for h in page["shown"]], [step.h for step in kept], rtol=1e-3)
        length = [abs(step.h) / np.linalg.norm(tree.splits.w[step.node]) for step in kept]
        np.testing.assert_allclose([number(d) for d in page["distance"]], length, rtol=1e-2)
        if values is not None:
            assert number(page["decisionShown"]) == pytest.approx(values[i], rel=1e-3)


REASONS = """
return arguments[0].map((values) => {
  margotree.fill(values);
  return [...document.querySelectorAll("#why li")].map((item) => item.textContent);
});
"""


@pytest.mark.parametrize("kind", ["dense", "sparse", "rounded", "logic"])
def test_the_page_gives_the_reasons_that_python_gives(show, kind):
    from margotree import MargotClassifier

    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 6)).round(2) * [1, 100, 0.01, 1, 1, 1]
    if kind == "logic":
        X = (X > 0).astype(float)
    y = np.where(X[:, 0] + X[:, 3] > (1 if kind == "logic" else 0), "ill", "well")
    options = {"sparse": {"budget": 1}, "rounded": {"budget": 3, "round": "auto"}, "logic": {"round": "auto"}}
    tree = MargotClassifier(C=10, node_limit=2, **options.get(kind, {})).fit(X, y).tree_
    samples = X[:20]
    found = show(tree, X, y, details=False).execute_script(REASONS, samples.tolist())
    for x, reasons in zip(samples, found, strict=True):
        plain = [reason.replace("\N{MINUS SIGN}", "-").replace("\N{MIDDLE DOT}", "*") for reason in reasons]
        expected = [reason.replace("+ ... (", "+ \N{HORIZONTAL ELLIPSIS} (") for reason in tree.path(x).reasons]
        assert plain == expected or not expected


def test_the_page_names_cells_as_python_does(show):
    from test_column_rules import NAMES, tree_of

    tree = tree_of({"age": 0.5, "age missing": 12.0, "ward=ICU": 2.0, "grade": -1.0}, 20.0)
    blank = dict.fromkeys(NAMES, 0.0)
    cells = ({"age": 50.0, "ward=ICU": 1.0, "grade": 2.0}, {"age": 50.0, "age missing": 1.0, "ward=Surgery": 1.0})
    samples = [[{**blank, **row}[name] for name in NAMES] for row in cells]
    found = show(tree, details=False).execute_script(REASONS, samples)
    plain = [[text.replace("\N{MINUS SIGN}", "-").replace("\N{MIDDLE DOT}", "*") for text in texts] for texts in found]
    assert plain == [list(tree.path(x).reasons) for x in samples] and "(ward is ICU)" in plain[0][0]


def test_a_tree_of_three_levels_is_printed_on_one_sheet(show):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 13)).round(2)
    w = np.where(rng.random((7, 13)).argsort(axis=1) < 3, rng.integers(1, 9, (7, 13)) / 10, 0.0)
    y = rng.choice(["van", "saab", "bus", "opel"], 300)
    names = [f"measurement {j}" for j in range(13)]
    tree = Tree(
        splits=Splits(w=w, b=rng.normal(size=7).round(1)), scaling=Scaling.identity(13), classes=sorted(set(y)),
        leaf_class=[0, 1, 2, 3, 3, 2, 1, 0], feature_names=names,
    ).counted(X, np.unique(y, return_inverse=True)[1], np.ones(300))  # fmt: skip
    assert tree.numbers_to_read >= 20
    page = show(tree, X, y, details=False)
    for paper in ({"paperWidth": 8.27, "paperHeight": 11.69}, {"paperWidth": 8.5, "paperHeight": 11}):
        sheet = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", paper)["data"])
        assert len(re.findall(rb"/Type\s*/Page\b(?!s)", sheet)) == 1


def test_numbers_of_nodes_and_distances_are_shown_on_request(show):
    tree, X, y = grown(2, 6, used=2)
    tree = replace(tree, certificate=PROOF)
    page = show(tree, X, y, details=False)
    plain = page.find_element("tag name", "body").text
    changes = [item.text for item in page.find_elements("css selector", "#change li")]
    assert changes and all(item.startswith(("With ", "No ")) for item in changes)
    assert [item.text for item in page.find_elements("css selector", "#why li")] and "probability" in plain
    assert not re.search(r"\[\d\]|\bh [+\N{MINUS SIGN}]|hyperplane|margin reaches|bound|decision value", plain)
    page.find_element("id", "details").click()
    shown = page.find_element("tag name", "body").text
    assert all(word in shown for word in ("[0]", "hyperplane", "margin", "bound", "decision value"))
    page.find_element("id", "details").click()
    assert page.find_element("tag name", "body").text == plain


def test_measures_on_new_rows_are_shown(show):
    tree, X, y = grown(2, 3)
    assert not show(tree, X, y).find_element("id", "measured").is_displayed()
    measured = {"summary": "on new rows: accuracy 81.0% on <b>20</b> rows", "details": "most frequent class  0.25"}
    page = show(replace(tree, terms={"measured": measured}), X, y, details=False)
    shown = page.find_element("id", "measured").text
    assert "On new rows: accuracy 81.0% on <b>20</b> rows." in shown and "most frequent" not in shown
    page.find_element("id", "details").click()
    assert "most frequent class  0.25" in page.find_element("id", "measured").text


def test_changes_in_words_lead_to_the_answer_they_name(show):
    tree, X, y = grown(2, 4, used=2, classes=("a", "b", "c"))
    page = show(tree, X, y, details=False)
    seen = 0
    for x in X[:12]:
        page.execute_script("margotree.fill(arguments[0])", x.tolist())
        for item in page.find_elements("css selector", "#change li"):
            said = re.fullmatch(
                r"With (.*), the answer would be (.)\.", item.text.replace("No single value is enough. ", "")
            )
            if said is None:
                continue
            moved = x.copy()
            for part in said[1].replace(" (out of range)", "").split(" and "):
                name, value = re.fullmatch(r"(.*) = (\S+) instead of \S+", part).groups()
                moved[tree.features.index(name)] = number(value)
            seen += 1
            assert tree.predict([moved])[0] == said[2]
    assert seen > 5


def test_samples_on_a_hyperplane_go_right(show):
    splits = Splits(w=[[1.0, 0.0], [0.0, 1.0], [0.0, -3.0]], b=[-0.3, -0.1, 0.3])
    tree = Tree(splits=splits, scaling=Scaling.identity(2), classes=[0, 1])
    samples = np.array([[0.3, 0.1], [0.1 + 0.2, 0.1], [0.3 - 1e-12, 0.1], [0.2, 0.1], [0.2, 0.1 - 1e-3]])
    found = show(tree).execute_script(WALK, samples.tolist(), len(samples))
    assert [page["label"] for page in found] == [str(label) for label in tree.predict(samples)] == ["1"] * 4 + ["0"]
    np.testing.assert_array_equal([page["decision"] for page in found][:4], tree.decision_function(samples)[:4])


FLIPS = """
const free = (j) => !arguments[1].includes(j);
return arguments[0].map((values) => ({
  singles: margotree.singleFlips(values, free), nearest: margotree.nearestFlip(values, free),
}));
"""


@pytest.mark.parametrize(
    ("depth", "n_features", "used", "classes", "locked"),
    [
        (1, 2, None, ("no", "yes"), []),
        (2, 5, None, ("no", "yes"), [0, 3]),
        (3, 6, 2, ("a", "b", "c"), []),
        (4, 60, None, (0, 1), []),
    ],
)
def test_flips_change_the_label_and_nothing_smaller_does(show, depth, n_features, used, classes, locked):
    tree, X, y = grown(depth, n_features, used=used, classes=classes)
    samples = X[: 25 if n_features < 60 else 8]
    found = show(tree, X, y).execute_script(FLIPS, samples.tolist(), locked)
    for x, page in zip(samples, found, strict=True):
        label = tree.predict([x])[0]
        for flip in page["singles"]:
            check_single(tree, x, label, flip)
        assert not {flip["feature"] for flip in page["singles"]} & set(locked)
        check_nearest(tree, x, label, page["nearest"], locked)


TO_CHOSEN = """
return arguments[0].map((values) => margotree.facts.classes.map((_, k) => ({
  singles: margotree.singleFlips(values, () => true, k), nearest: margotree.nearestFlip(values, () => true, k),
})));
"""


def test_changes_to_a_chosen_label_reach_it_and_nothing_smaller_does(show):
    tree, X, y = grown(3, 6, used=2, classes=("a", "b", "c", "never"), pruned=())
    tree = replace(tree, leaf_class=np.array([0, 1, 2, 0, 1, 2, 2, 0]))
    found = show(tree, X, y).execute_script(TO_CHOSEN, X[:15].tolist())
    for x, by_class in zip(X[:15], found, strict=True):
        label = tree.predict([x])[0]
        for k, page in enumerate(by_class):
            leaves = np.flatnonzero(tree.leaf_class == k) + tree.n_nodes
            if tree.classes[k] == label or not len(leaves):
                assert page == {"singles": [], "nearest": None}
                continue
            assert page["nearest"]["code"] == k
            assert page["nearest"]["length"] == pytest.approx(
                min(shortest(tree, x, leaf, []) for leaf in leaves), rel=1e-4, abs=1e-6
            )
            assert tree.predict([page["nearest"]["values"]])[0] == tree.classes[k]
            for flip in page["singles"]:
                check_single_to(tree, x, k, flip)


def check_single_to(tree, x, k, flip):
    """No smaller change of that feature gives class ``k``."""
    j = flip["feature"]
    moved, closer = x.copy(), np.tile(x, (100, 1))
    moved[j] = flip["to"]
    assert flip["code"] == k and tree.predict([moved])[0] == tree.classes[k]
    closer[:, j] += np.linspace(-0.999, 0.999, 100) * abs(flip["shift"]) * tree.scaling.scale[j]
    assert tree.classes[k] not in tree.predict(closer)


def test_the_label_to_reach_is_chosen_on_the_page(show):
    tree, X, y = grown(2, 4, classes=("a", "b", "c"))
    chrome = show(tree, X, y)
    box = chrome.find_element("css selector", "#goal select")
    assert [option.text for option in box.find_elements("tag name", "option")] == ["any other", "a", "b", "c"]
    chrome.execute_script("margotree.fill(arguments[0])", X[0].tolist())
    label = chrome.find_element("id", "label").text
    other = next(name for name in "abc" if name != label)
    for name in (other, label):
        chrome.execute_script(
            "arguments[0].selectedIndex = arguments[1]; arguments[0].dispatchEvent(new Event('change'))",
            box, " abc".index(name),
        )  # fmt: skip
        words = chrome.find_element("id", "flip").text
        wanted = f"the label {name} already" if name == label else f"to the label {name} has size"
        assert wanted in words


def test_two_classes_leave_no_label_to_choose(show):
    assert not show(*grown(2, 4)).find_element("id", "goal").is_displayed()


def check_single(tree, x, label, flip):
    j, scale = flip["feature"], tree.scaling.scale[flip["feature"]]
    moved = x.copy()
    moved[j] = flip["to"]
    assert tree.predict([moved])[0] == tree.classes[flip["code"]] != label
    # what is written goes past the place where the label changes by no more than a hundredth of the way
    assert abs(flip["to"] - x[j]) <= abs(flip["shift"]) * scale * 1.011
    closer = np.tile(x, (100, 1))
    closer[:, j] += np.linspace(-0.999, 0.999, 100) * abs(flip["shift"]) * scale
    assert set(tree.predict(closer)) == {label}


def check_nearest(tree, x, label, nearest, locked):
    wanted = min((shortest(tree, x, leaf, locked) for leaf in other_leaves(tree, label)), default=np.inf)
    if nearest is None:
        assert wanted == np.inf
        return
    moved = np.array(nearest["values"])
    assert tree.predict([moved])[0] == tree.classes[nearest["code"]] != label
    assert moved[locked].tolist() == x[locked].tolist()
    assert nearest["length"] == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    change = np.linalg.norm((moved - x) / tree.scaling.scale)
    assert change <= nearest["length"] * 1.011 + 1e-9


def other_leaves(tree, label):
    return [v for v in topology.leaves(tree.depth) if tree.classes[tree.leaf_class[v - tree.n_nodes]] != label]


def shortest(tree, x, leaf, locked):
    """Distance to a leaf's polyhedron by least distance programming (Lawson and Hanson): not the page's way."""
    free = np.setdiff1d(np.arange(tree.n_features), locked)
    steps = topology.path_to(leaf)
    A = np.array([side * tree.splits.w[t][free] for t, side in steps])
    h = np.array([side * (tree.scaled([x])[0] @ tree.splits.w[t] + tree.splits.b[t]) for t, side in steps])
    if np.all(h >= 0):
        return 0.0
    E, f = np.vstack([A.T, -h]), np.append(np.zeros(len(free)), 1.0)
    u, _ = nnls(E, f)
    r = E @ u - f
    return np.linalg.norm(r[:-1] / r[-1]) if np.linalg.norm(r) > 1e-9 else np.inf


def test_locks_and_pasted_rows_and_bad_entries(show):
    tree, X, y = grown(2, 4)
    page = show(tree, X, y)
    row = page.find_element("id", "paste")
    row.send_keys("; ".join(str(v) for v in X[3]) + "\t")
    assert page.find_element("id", "label").text == tree.predict(X[3:4])[0]
    row.clear()
    row.send_keys("1, 2\t")
    assert "4 numbers are needed" in page.find_element("id", "paste-help").text
    assert row.get_attribute("aria-invalid") == "true"
    rows = "#flip > div:first-of-type tbody tr"
    first = page.find_element("css selector", rows).get_attribute("data-feature")
    page.find_element("id", f"lock{first}").click()
    assert first not in [tr.get_attribute("data-feature") for tr in page.find_elements("css selector", "#flip tr")]
    field = page.find_element("id", "x0")
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, Keys.BACKSPACE)
    assert tree.features[0] in page.find_element("id", "result").text
    assert field.get_attribute("aria-invalid") == "true"
    assert page.find_elements("css selector", ".card.on") == []
    page.find_element("id", "reset").click()
    assert len(page.find_elements("css selector", ".card.on")) == 3


def test_the_tree_is_walked_with_the_keyboard(show):
    tree, X, y = grown(3, 3)
    page = show(tree, X, y)

    def press(key):
        active = page.switch_to.active_element
        active.send_keys(key)
        chosen = page.find_elements("css selector", "[role=treeitem][aria-selected=true]")
        assert len(chosen) == 1 and chosen[0] == page.switch_to.active_element
        node = int(chosen[0].get_attribute("data-node"))
        title = page.find_element("id", "node-title").text
        assert title.startswith(f"Split at node {node}" if node < tree.n_nodes else f"Leaf {node}")
        return node

    # Tab reaches the tree in one step after the form and leaves it in one step.
    page.find_element("id", "paste").send_keys(Keys.TAB)
    if page.switch_to.active_element.get_attribute("role") != "treeitem":
        page.switch_to.active_element.send_keys(Keys.TAB)
    arrows = (Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_LEFT, Keys.END, Keys.ARROW_UP, Keys.HOME)
    assert [press(key) for key in arrows] == [2, 6, 2, 7, 8, 0]
    press(Keys.ENTER)
    page.switch_to.active_element.send_keys(Keys.TAB)
    assert page.switch_to.active_element.get_attribute("role") != "treeitem"


def test_everything_that_can_be_used_has_a_name(show):
    tree, X, y = grown(2, 12, used=4)
    nodes = show(tree, X, y).execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = {"button", "textbox", "combobox", "checkbox", "treeitem", "tree", "region", "link", "image", "heading"}
    named = [(n["role"]["value"], n.get("name", {}).get("value")) for n in nodes if not n["ignored"]]
    used = {role for role, _ in named}
    assert {"tree", "treeitem", "textbox", "checkbox", "button", "status", "image"} <= used
    assert not [role for role, name in named if role in roles and not name]


CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
};
const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const behind = (at) => {
  for (; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255];
};
const poor = [];
for (const at of document.querySelectorAll("body *")) {
  const own = [...at.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || at.closest("script, noscript, svg") || !at.checkVisibility()) continue;
  const [p, q] = [light(rgba(getComputedStyle(at).color)), light(behind(at))].sort((a, b) => b - a);
  if ((p + 0.05) / (q + 0.05) < 4.5) poor.push(`${at.tagName}.${at.className}: ${at.textContent.slice(0, 30)}`);
}
return poor;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(show, scheme):
    tree, X, y = grown(2, 5, classes=("a", "b", "c"))
    page = show(tree, X, y)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    assert page.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    assert page.execute_script(CONTRAST) == []
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


BOXES = """
return [...document.querySelectorAll(arguments[0])].filter((at) => at.checkVisibility())
  .map((at) => at.getBoundingClientRect()).map((r) => [r.left, r.top, r.right, r.bottom]);
"""


@pytest.mark.parametrize(("depth", "n_features"), [(1, 2), (4, 60)])
@pytest.mark.parametrize("width", [1400, 900, 500, 400])
def test_nothing_on_the_page_overlaps_or_sticks_out(show, depth, n_features, width):
    tree, X, y = grown(depth, n_features)
    page = show(tree, X, y)
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    for what in (".card", ".field", "section", "#way td, #way th", "#node > *"):
        assert not overlapping(page.execute_script(BOXES, what)), what
    wide = page.execute_script("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide[0] <= wide[1]
    for what in ("#stage", "#node table", "#node .scroll", "#way", "#flip .scroll"):
        assert page.execute_script(RUNS_OFF, what) == [], what
    if depth == 4 and width == 1400:
        stage = page.execute_script("const s = document.getElementById('stage'); return [s.scrollWidth, s.clientWidth]")
        assert stage[0] <= stage[1]
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


#: Boxes that must be scrolled sideways, or whose table is wider than they are.
RUNS_OFF = """
const end = (at) => at.getBoundingClientRect().right;
return [...document.querySelectorAll(arguments[0])]
  .filter((at) => at.checkVisibility() && (at.scrollWidth > at.clientWidth + 1 || end(at) > end(at.closest("section"))))
  .map((at) => at.textContent.slice(0, 40));
"""


def overlapping(boxes):
    left, top, right, bottom = np.array(boxes).T
    wide = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    tall = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    return [(i, j) for i, j in np.argwhere((wide > 0.5) & (tall > 0.5)) if i < j]


def test_hostile_names_are_text_in_the_browser(show):
    tree, X, y = grown(2, 4, names=HOSTILE, classes=HOSTILE_CLASSES)
    page = show(tree, X, y)
    assert page.execute_script("return window.pwned") is None
    assert page.find_element("id", "label").text in HOSTILE_CLASSES
    labels = page.execute_script("return [...document.querySelectorAll('.field > label')].map((at) => at.textContent)")
    assert sorted(labels) == sorted(HOSTILE)


def test_a_tree_in_the_users_own_units_speaks_of_no_others(show):
    tree, X, y = grown(1, 2)
    scaled = show(tree, X, y).find_element("tag name", "main").text
    assert "scaled units" in scaled
    plain = Tree(splits=tree.splits, scaling=Scaling.identity(2), classes=tree.classes)
    assert "scaled" not in show(plain, X, y).find_element("tag name", "main").text


def test_a_tree_that_never_splits_is_a_page_too(show):
    tree, X, y = grown(2, 3, pruned=[0, 1, 2])
    page = show(tree, X, y)
    assert page.find_element("id", "label").text == tree.predict(X[:1])[0]
    assert len(page.find_elements("css selector", "[role=treeitem]")) == 1
    assert "No change" in page.find_element("id", "flip").text


# -- words, commas, ranges ------------------------------------------------------------------------------------------


WARDS = ("general", "intensive care", "surgery")


def worded_tree():
    """As the command line leaves it: numbers, a column of two words and one of three; classes called no and yes."""
    encoding = Encoding(
        columns=(
            Number(name="age"),
            Category(name="smoker", values=("no", "yes")),
            Category(name="ward", values=WARDS),
            Number(name="crp"),
        ),
        target="died",
    )
    rng = np.random.default_rng(0)
    age, crp = rng.integers(18, 91, 400) + 0.0, rng.gamma(2, 10, 400).round(1)
    smoker, ward = rng.random(400) < 0.3, rng.integers(0, 3, 400)
    X = np.column_stack([age, smoker, ward == 0, ward == 1, ward == 2, crp])
    scaling = Scaling.minmax(X)
    w = [[2.0, 1.2, -0.6, 1.0, 0.0, 3.0], [1.0, 0.0, 0.0, 2.0, -0.5, 1.0], [1.5, 0.9, 0.0, 0.0, 0.0, 0.0]]
    b = -np.median(scaling.apply(X) @ np.transpose(w), axis=0)
    tree = Tree(
        splits=Splits(w=w, b=b), scaling=scaling, classes=["no", "yes"], feature_names=encoding.features,
        terms={ENTRY: to_record(encoding)},
    )  # fmt: skip
    code = rng.integers(0, 2, 400)
    return tree.counted(X, code, np.ones(400)), X, tree.classes[code]


def sized(page, width):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")  # it lays itself out


@pytest.fixture(params=[1400, 400])
def worded(show, request):
    """The page of a tree with words, at the width of a desk and of a hand."""
    tree, X, y = worded_tree()
    page = show(tree, X, y)
    sized(page, request.param)
    yield page, tree, X
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def enter(page, name, text):
    field = page.find_element("id", name)
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, text)


def shown(page):
    return page.find_element("id", "label").text


def test_words_are_choices(worded):
    page, tree, X = worded
    assert page.find_elements("css selector", "#x1, #x2") and not page.find_elements("css selector", "#x3, #x4")
    for box, words in {"x1": ["no", "yes"], "x2": list(WARDS)}.items():
        field = page.find_element("id", box)
        assert field.tag_name == "select"
        assert [option.text for option in field.find_elements("tag name", "option")] == words
    page.find_element("css selector", "#x2 option:nth-child(2)").click()
    page.find_element("css selector", "#x1 option:nth-child(2)").click()
    enter(page, "x0", "61,5")
    enter(page, "x5", "7.25")
    assert shown(page) == tree.predict([[61.5, 1, 0, 1, 0, 7.25]])[0]
    assert page.execute_script("return document.querySelector('#x0').getAttribute('aria-invalid')") == "false"
    # The start is a word too: the commonest.
    page.find_element("id", "reset").click()
    start = page.execute_script("return [x1.selectedOptions[0].text, x2.selectedOptions[0].text]")
    assert start == ["no", WARDS[int(X[:, 2:5].sum(axis=0).argmax())]]


@pytest.mark.parametrize(
    "row",
    [
        "61,5; YES ;intensive care;7,25",
        "61.5\tyes\tintensive care\t7.25",
        '61.5, yes, "intensive care", 7.25',
        '61,5 yes "intensive care" 7,25',
        "61.5|yes|Intensive Care|7.25|",
        "61.5,1,0,1,0,7.25",
    ],
)
def test_rows_with_words_and_commas_are_read(show, row):
    tree, X, y = worded_tree()
    found = show(tree, X, y).execute_script("return margotree.readRow(arguments[0])", row)
    assert found == {"values": [61.5, 1, 0, 1, 0, 7.25]}


def test_pasted_rows_with_words(worded):
    page, tree, _ = worded
    paste = page.find_element("id", "paste")
    paste.send_keys("88,5;yes;surgery;40\t")
    assert page.find_element("id", "paste-help").text == "Taken over."
    entries = "return [x0.value, x1.selectedOptions[0].text, x2.selectedOptions[0].text, x5.value]"
    assert page.execute_script(entries) == ["88.5", "yes", "surgery", "40"]
    assert shown(page) == tree.predict([[88.5, 1, 0, 0, 1, 40.0]])[0]
    wrong = {
        "88;often;surgery;40": "\u201coften\u201d for smoker is none of: no, yes.",
        "1.234,5;yes;surgery;40": "\u201c1.234,5\u201d for age is no number.",
        "88;yes;40": "4 values are needed: age, smoker, ward, crp",
        "88,0.5,1,0,0,40": "4 values are needed",
    }
    for row, words in wrong.items():
        paste.clear()
        paste.send_keys(row + "\t")
        assert words in page.find_element("id", "paste-help").text
        assert paste.get_attribute("aria-invalid") == "true"
    assert page.execute_script("return x0.value") == "88.5"


@pytest.mark.parametrize(
    ("text", "number"),
    [("1,5", 1.5), ("1.5", 1.5), (" -2 ", -2), ("\u22120,5", -0.5), (",5", 0.5), ("1e-3", 1e-3), ("3.", 3),
     ("1.234,5", None), ("1,234,567", None), ("", None), ("12 3", None), ("0x10", None), ("Infinity", None)],
)  # fmt: skip
def test_numbers_as_people_write_them(show, text, number):
    page = show(grown(1, 2)[0])
    found = page.execute_script("const x = margotree.parseNumber(arguments[0]); return x === x ? x : null", text)
    assert found == number


def test_values_outside_the_training_range_are_marked(worded):
    page, _, X = worded
    assert page.find_elements("id", "strange") == []
    enter(page, "x0", "140,5")
    assert "outside" in page.find_element("id", "x0").get_attribute("class")
    assert page.find_element("id", "range0").text == "outside 18 to 90"
    assert page.find_element("id", "strange").text.endswith(": age (18 to 90)")
    assert page.find_element("id", "x5").get_attribute("class") == ""
    # The ends belong to the range, also where they went through the scaling.
    for j, x in ((0, X[:, 0].max()), (5, X[:, 5].max()), (5, X[:, 5].min())):
        enter(page, f"x{j}", repr(float(x)))
        assert page.find_elements("id", "strange") == []


def test_the_share_of_the_label_stands_beside_it(worded):
    page, tree, X = worded
    for x in X[:5]:
        page.execute_script("margotree.fill(arguments[0])", x.tolist())
        leaf = int(tree.apply([x])[0])
        own, total = tree.counts[leaf][list(tree.classes).index(tree.predict([x])[0])], tree.counts[leaf].sum()
        words = page.find_element("id", "share").text
        assert f"({own:.0f} of {total:.0f})" in words
        assert float(words.split(" %")[0]) == pytest.approx(100 * own / total, abs=0.05)


def test_a_leaf_without_samples_says_so(show):
    tree, X, _ = grown(1, 2)
    page = show(Tree(splits=tree.splits, scaling=tree.scaling, classes=tree.classes))
    page.execute_script("margotree.fill(arguments[0])", X[0].tolist())
    assert "No sample" in page.find_element("id", "share").text


def test_branches_bear_no_word_that_a_class_may_bear(worded):
    page, _, _ = worded
    texts = "return [...document.querySelectorAll(arguments[0])].map((at) => at.textContent)"
    turns = page.execute_script(texts, ".turn")
    assert sorted(turns) == ["met", "met", "met", "not met", "not met", "not met"]
    rule = page.execute_script(texts, "#way tbody td:last-child")
    assert set(rule) <= {"met", "not met"} and rule
    assert sorted(page.execute_script(texts, ".card.leaf b")) == ["no", "no", "yes", "yes"]


def test_all_of_the_tree_can_be_seen_and_no_table_runs_off(worded):
    page, _, _ = worded
    width = page.execute_script("return document.documentElement.clientWidth")
    vertical = page.execute_script("return document.getElementById('stage').classList.contains('vertical')")
    assert vertical == (width <= 400)
    for left, _top, right, _bottom in page.execute_script(BOXES, ".card, table, .field, #result, .histogram, button"):
        assert left >= 0 and right <= width
    assert not overlapping(page.execute_script(BOXES, ".card, .turn"))
    for what in ("#stage", "#node .scroll", "#way", "#flip .scroll"):
        assert page.execute_script(RUNS_OFF, what) == [], what


def test_turning_the_device_turns_the_tree(show):
    tree, X, y = worded_tree()
    page = show(tree, X, y)
    for width in (400, 1400, 400):
        sized(page, width)
        vertical = page.execute_script("return document.getElementById('stage').classList.contains('vertical')")
        assert vertical == (width == 400)
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def word_combinations(tree, x):
    """The sample with every pair of words."""
    for smoker in (0.0, 1.0):
        for ward in np.eye(3):
            yield np.concatenate([[x[0], smoker], ward, [x[5]]])


def test_changes_exchange_words_and_never_split_them(show):
    tree, X, y = worded_tree()
    page = show(tree, X, y)
    samples = X[:30]
    for x, found in zip(samples, page.execute_script(FLIPS, samples.tolist(), []), strict=True):
        label = tree.predict([x])[0]
        moved = np.array(found["nearest"]["values"])
        assert moved[1] in (0, 1) and sorted(moved[2:5]) == [0, 0, 1]
        assert tree.predict([moved])[0] != label
        # By the other way: for each pair of words the distance to the polyhedra of the other leaves.
        ways = [
            np.hypot(np.linalg.norm((z - x) / tree.scaling.scale), 0.0 if tree.predict([z])[0] != label else d)
            for z in word_combinations(tree, x)
            for d in [min(shortest(tree, z, leaf, [1, 2, 3, 4]) for leaf in other_leaves(tree, label))]
        ]
        assert found["nearest"]["length"] == pytest.approx(min(ways), rel=1e-4, abs=1e-6)
        for flip in found["singles"]:
            if flip["feature"] == 2:
                z = np.concatenate([x[:2], [float(flip["to"] == word) for word in WARDS], x[5:]])
                assert tree.predict([z])[0] == tree.classes[flip["code"]] != label
            assert flip["feature"] not in (3, 4)


def test_a_choice_that_is_kept_is_not_changed(show):
    tree, X, y = worded_tree()
    page = show(tree, X, y)
    for x, found in zip(X[:10], page.execute_script(FLIPS, X[:10].tolist(), [1, 2, 3, 4]), strict=True):
        assert found["nearest"] is None or found["nearest"]["values"][1:5] == x[1:5].tolist()
        assert {flip["feature"] for flip in found["singles"]} <= {0, 5}


def test_columns_that_are_0_or_1_in_all_samples_are_choices(show):
    tree, X, y = grown(2, 3)
    flags = X.copy()
    flags[:, 1] = X[:, 1] > np.median(X[:, 1])
    page = show(tree, flags, y)
    assert [page.find_element("id", f"x{j}").tag_name for j in range(3)] == ["input", "select", "input"]
    columns = facts_in(render_page(tree))["columns"]
    assert [column["name"] for column in columns] == list(tree.features)
    assert [column["features"] for column in columns] == [[0], [1], [2]]
    assert not any("options" in column for column in columns)


def test_the_page_of_a_described_tree_opens_on_what_is_usual_and_says_what_it_is_about():
    tree, _, _ = worded_tree()
    encoding = Encoding(
        columns=(
            Number(name="age", fill=40.0, flag=True, typical=61.0),
            Category(name="ward", values=WARDS, typical="surgery"),
            Number(name="crp", typical=11.0),
        ),
        target="died", source="patients.csv",
    )  # fmt: skip
    w = [[1.0, 0.5, 0.3, 0.2, -0.4, 2.0]]
    tree = Tree(
        splits=Splits(w=w, b=[-1.0]), scaling=Scaling(offset=[18.0, 0, 0, 0, 0, 1], scale=[70.0, 1, 1, 1, 1, 205]),
        classes=["no", "yes"], feature_names=encoding.features, terms={"model": "hfs", ENTRY: to_record(encoding)},
    )  # fmt: skip
    facts = facts_in(render_page(tree))
    assert [feature["start"] for feature in facts["features"]] == [61.0, 0.0, 0.0, 0.0, 1.0, 11.0]
    assert facts["title"] == "died: no or yes (trained on patients.csv)"
    assert facts_in(render_page(tree, title="Mine"))["title"] == "Mine"


def test_a_missing_cell_is_entered_and_no_change_makes_one(show):
    encoding = Encoding(
        columns=(
            Number(name="age", fill=40.0, flag=True, typical=61.0),
            Category(name="ward", values=WARDS, fill="general", flag=True),
        ),
        target="died",
    )
    w = [[1.0, 0.9, 0.3, 0.2, -0.4, 0.8]]
    tree = Tree(
        splits=Splits(w=w, b=[-1.0]), scaling=Scaling(offset=[18.0, 0, 0, 0, 0, 0], scale=[70.0, 1, 1, 1, 1, 1]),
        classes=["no", "yes"], feature_names=encoding.features, terms={ENTRY: to_record(encoding)},
    )  # fmt: skip
    page = show(tree)
    box = page.find_element("id", "x0")
    assert box.get_attribute("value") == "61.0" or box.get_attribute("value") == "61"
    enter(page, "x0", Keys.DELETE)
    assert shown(page) == tree.predict([[40.0, 1, 1, 0, 0, 0]])[0]
    assert box.get_attribute("placeholder") == "not known"
    enter(page, "x0", "20")
    assert shown(page) == tree.predict([[20.0, 0, 1, 0, 0, 0]])[0] == "no"
    assert page.find_element("css selector", "#x2 option:nth-child(4)").text == "not known"
    page.execute_script("x2.value = 3; x2.dispatchEvent(new Event('input', { bubbles: true }))")
    assert shown(page) == tree.predict([[20.0, 0, 1, 0, 0, 1]])[0] == "yes"
    flips = "return margotree.singleFlips([20, 0, 1, 0, 0, 0], () => true).map((flip) => [flip.feature, flip.to])"
    assert all(feature == 0 or to in WARDS for feature, to in page.execute_script(flips))
    nearest = page.execute_script("return margotree.nearestFlip([40, 1, 0, 0, 1, 0], () => true)")
    assert nearest is None or nearest["values"][:2] == [40, 1]
    row = page.execute_script("return [margotree.readRow('\\tsurgery'), margotree.readRow('50;')]")
    assert row == [{"values": [40, 1, 0, 0, 1, 0]}, {"values": [50, 0, 1, 0, 0, 1]}]
    page.execute_script("margotree.fill([40, 1, 0, 0, 1, 0])")
    assert box.get_attribute("value") == ""
