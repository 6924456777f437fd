import json
import re
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import nnls

from browser import chromium
from grown import grown
from margotree.page import render_page, write_page
from margotree.problem import Splits, topology
from margotree.tree import Scaling, Tree

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

    def open_page(tree, X=None, y=None):
        write_page(tree, tmp_path / "tree.html", X, y)
        chrome.get((tmp_path / "tree.html").as_uri())
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
    turns = topology.path_to(leaf)
    A = np.array([side * tree.splits.w[t][free] for t, side in turns])
    h = np.array([side * (tree.scaled([x])[0] @ tree.splits.w[t] + tree.splits.b[t]) for t, side in turns])
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

    # Tab reaches the tree in one step after the link and leaves it in one step.
    page.find_element("css selector", ".skip").send_keys(Keys.TAB)
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
    roles = {"button", "textbox", "spinbutton", "checkbox", "treeitem", "tree", "region", "link", "image", "heading"}
    named = [(n["role"]["value"], n.get("name", {}).get("value")) for n in nodes if not n["ignored"]]
    used = {role for role, _ in named}
    assert {"tree", "treeitem", "spinbutton", "checkbox", "button", "status", "image"} <= used
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
    wish = {"name": "prefers-color-scheme", "value": scheme}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wish]})
    assert page.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    assert page.execute_script(CONTRAST) == []
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


BOXES = """
return [...document.querySelectorAll(arguments[0])].filter((at) => at.checkVisibility())
  .map((at) => at.getBoundingClientRect()).map((r) => [r.left, r.top, r.right, r.bottom]);
"""


@pytest.mark.parametrize(("depth", "n_features"), [(1, 2), (4, 60)])
@pytest.mark.parametrize("width", [1400, 500])
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
    if depth == 4 and width == 1400:
        stage = page.execute_script("const s = document.getElementById('stage'); return [s.scrollWidth, s.clientWidth]")
        assert stage[0] <= stage[1]
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


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
