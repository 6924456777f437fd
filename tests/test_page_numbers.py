"""The report page of regression trees: predictions, formulas, intervals, and the changes that reach a number."""

import re

import numpy as np
import pytest
from scipy.optimize import linprog

from browser import chromium
from grown import grown
from margotree import RegressionTree
from margotree.cli.saved_trees import ENTRY
from margotree.page import render_page, write_page
from margotree.problem import Splits, topology
from margotree.table import Category, Encoding, Number
from margotree.table.encoding_json import to_record
from margotree.tree import Scaling, TargetScaling
from test_page import facts_in


def numbers(depth, n_features, *, used=None, seed=0, **facts):
    """A tree of numbers on random splits, its samples and their targets."""
    tree, X, _ = grown(depth, n_features, seed=seed)
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(2**depth, n_features))
    if used is not None:
        w[np.argsort(rng.random(w.shape), axis=1) >= used] = 0.0
    found = RegressionTree(
        splits=tree.splits, scaling=tree.scaling, feature_names=tree.feature_names, target_name="strength",
        models=Splits(w=w, b=rng.normal(size=2**depth)), target=TargetScaling(center=40.0, scale=15.0), **facts,
    )  # fmt: skip
    y = found.predict(X) + rng.normal(size=len(X))
    return found.trained_on(X, y, np.ones(len(X))), X, y


def wide(X, rows=40):
    """Samples inside and outside the training range."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.random.default_rng(5).uniform(low - (high - low) / 2, high + (high - low) / 2, size=(rows, X.shape[1]))


@pytest.fixture(scope="module")
def chrome():
    yield from chromium()


@pytest.fixture
def show(chrome, tmp_path):
    """Open the page of a tree; the browser may report nothing."""

    def open_page(tree, X=None, y=None, *, details=False):
        write_page(tree, tmp_path / "tree.html", X, y)
        chrome.get((tmp_path / "tree.html").as_uri())
        chrome.execute_script("margotree.setDetails(arguments[0])", details)
        return chrome

    yield open_page
    assert chrome.get_log("browser") == []


def number(words):
    return float(words.replace("\N{MINUS SIGN}", "-"))


ANSWERS = """
return arguments[0].map((values) => {
  margotree.fill(values);
  const text = (id) => (document.getElementById(id) || {}).textContent;
  return {
    value: margotree.route(values).value, leaf: margotree.route(values).leaf, label: text("label"),
    formula: text("formula"), interval: text("interval"), strange: text("strange"), share: text("share"),
  };
});
"""


@pytest.mark.parametrize(("depth", "n_features"), [(1, 2), (2, 4), (3, 12)])
def test_the_page_predicts_as_the_tree_does(show, depth, n_features):
    tree, X, y = numbers(depth, n_features)
    tree = tree.with_residuals(X, y)
    samples = wide(X)
    predicted, intervals = tree.predict(samples), tree.predict_interval(samples)
    found = show(tree, X, y).execute_script(ANSWERS, samples.tolist())
    assert [page["leaf"] for page in found] == tree.apply(samples).tolist()
    np.testing.assert_allclose([page["value"] for page in found], predicted, rtol=1e-9)
    limited = 0
    for x, page, value, interval in zip(samples, found, predicted, intervals, strict=True):
        assert page["label"] == f"{value:z.1f}".replace("-", "\N{MINUS SIGN}")
        low, high = re.fullmatch(r"90 % interval: (\S+) to (\S+)", page["interval"]).groups()
        assert number(low) <= interval[0] < number(low) + 0.11 and number(high) - 0.11 < interval[1] <= number(high)
        outside = np.any((x < X.min(axis=0)) | (x > X.max(axis=0)))
        assert (
            bool(page["strange"]) == outside and ("take the prediction with care" in (page["strange"] or "")) == outside
        )
        # The formula as it is written gives the number that is written.
        plain = page["formula"].replace("\N{MINUS SIGN}", "-").replace("\N{MIDDLE DOT}", "*")
        terms, shown = re.match(r"strength = (.*?) = (-?[\d.]+\d)", plain).groups()
        formula = tree.formula(page["leaf"])
        raw = formula.constant + formula.weights @ x
        assert float(shown) == pytest.approx(raw, abs=0.051)
        assert evaluated(terms) == pytest.approx(raw, abs=0.11)
        is_limited = not formula.low <= raw <= formula.high
        limited += is_limited
        assert (f"so the prediction is {page['label']}".replace("\N{MINUS SIGN}", "-") in plain) == is_limited
        assert "limited to" in plain
    assert 0 < limited < len(samples)


def evaluated(terms):
    """The value of a sum such as ``12.1 + 0.11 * 300 (cement) - 0.2 * (-3) (temperature)``."""
    total = 0.0
    for sign, factor, value in re.findall(r"(?:^|([+-]) )(-?[\d.e+-]+)(?: \* \(?(-?[\d.e+-]+)\)?)?", terms):
        total += (-1 if sign == "-" else 1) * float(factor) * float(value or 1)
    return total


CHANGES = """
return arguments[0].map((values, i) => ({
  singles: margotree.singleFlips(values, (j) => !arguments[2].includes(j), arguments[1][i]),
  nearest: margotree.nearestFlip(values, (j) => !arguments[2].includes(j), arguments[1][i]),
}));
"""


@pytest.mark.parametrize(("depth", "used", "locked"), [(1, None, []), (2, 1, []), (3, 2, [0])])
def test_changes_reach_the_number_and_nothing_smaller_does(show, depth, used, locked):
    tree, X, y = numbers(depth, 4, used=used)
    samples = X[:16]
    now = tree.predict(samples)
    wanted = now + np.where(np.arange(16) % 2, 1.0, -1.0) * np.linspace(0.5, 25, 16)
    found = show(tree, X, y).execute_script(CHANGES, samples.tolist(), wanted.tolist(), locked)
    reached = 0
    for x, before, goal, page in zip(samples, now, wanted, found, strict=True):
        sign = np.sign(goal - before)
        for change in page["singles"]:
            j, moved, closer = change["feature"], x.copy(), np.tile(x, (200, 1))
            moved[j] = change["to"]
            assert j not in locked
            assert tree.predict([moved])[0] == pytest.approx(change["value"]) and sign * (change["value"] - goal) >= 0
            closer[:, j] += np.linspace(-0.999, 0.999, 200) * abs(change["shift"]) * tree.scaling.scale[j]
            assert np.all(sign * (tree.predict(closer) - goal) < 0)
        shortest = min(largest_change(tree, x, leaf, goal, sign, locked) for leaf in topology.leaves(tree.levels))
        if page["nearest"] is None:
            assert shortest == np.inf and not page["singles"]
            continue
        reached += 1
        moved, length = np.array(page["nearest"]["values"]), page["nearest"]["length"]
        assert sign * (tree.predict([moved])[0] - goal) >= 0 and moved[locked].tolist() == x[locked].tolist()
        assert np.linalg.norm((moved - x) / tree.scaling.scale) <= 1.011 * length + 1e-9
        # A linear program bounds the Euclidean length of the best change from both sides.
        assert shortest <= length * (1 + 1e-6) + 1e-6 and length <= shortest * np.sqrt(4) * (1 + 1e-4) + 1e-5
        assert all(abs(change["shift"]) >= length * (1 - 1e-4) - 1e-6 for change in page["singles"])
    assert reached > 4


def largest_change(tree, x, leaf, goal, sign, locked):
    """The smallest possible largest change of a feature that leads to a leaf with a prediction as wanted."""
    low, high = tree.limits[leaf - tree.n_nodes]
    if sign * ((high if sign > 0 else low) - goal) < 0:
        return np.inf
    steps = [(tree.splits.w[t], tree.splits.b[t], side) for t, side in topology.path_to(leaf)]
    if sign * ((low if sign > 0 else high) - goal) < 0:
        k = leaf - tree.n_nodes
        level = (goal - tree.target.center) / tree.target.scale
        steps.append((tree.models.w[k], tree.models.b[k] - level, sign))
    scaled, n = tree.scaled([x])[0], tree.n_features
    A = [np.append(-side * w, 0.0) for w, _, side in steps]
    b = [side * (w @ scaled + c) for w, c, side in steps]
    for j in range(n):
        for s in (1.0, -1.0):
            A.append(np.append(s * np.eye(n)[j], 0.0 if j in locked else -1.0))
            b.append(0.0)
    done = linprog(np.append(np.zeros(n), 1.0), A, b, bounds=[(None, None)] * n + [(0, None)])
    return done.fun if done.status == 0 else np.inf


def test_the_number_to_reach_is_entered_on_the_page(show):
    tree, X, y = numbers(2, 4)
    page = show(tree, X, y, details=True)
    x = next(x for x in X if 20 < tree.predict([x])[0] < 60)
    page.execute_script("margotree.fill(arguments[0])", x.tolist())
    label = page.find_element("id", "label").text
    box = page.find_element("css selector", "#goal input")

    def entered(words):
        box.clear()
        box.send_keys(words)
        return page.find_element("id", "flip").text, page.find_element("id", "change").text

    assert f"is {label} already" in entered(label)[1]
    assert "Enter the prediction to reach" in entered("many")[1] and box.get_attribute("aria-invalid") == "true"
    assert "gives a prediction of at least 1000" in entered("1000")[1]
    high, low = f"{number(label) + 2:.1f}", f"{number(label) - 2:.1f}"
    table, words = entered(high.replace(".", ","))
    assert f"to a prediction of at least {high}" in table and "the prediction would be" in words
    for item in words.splitlines():
        moved = x.copy()
        said, then = re.fullmatch(r".*?[Ww]ith (.*), the prediction would be (\S+)\.", item).groups()
        for part in said.replace(" (out of range)", "").split(" and "):
            name, value = re.fullmatch(r"(.*) = (\S+) instead of \S+", part).groups()
            moved[tree.features.index(name)] = number(value)
        assert tree.predict([moved])[0] == pytest.approx(number(then), abs=0.051) and number(then) >= float(high)
    assert f"to a prediction of at most {low}" in entered(low)[0]


def test_the_tree_and_its_leaves_on_the_page(show):
    tree, X, y = numbers(2, 4, used=2)
    page = show(tree, X, y, details=True)
    page.execute_script("margotree.fill(arguments[0])", X[0].tolist())
    leaves = page.find_elements("css selector", ".card.leaf")
    assert len(leaves) == 4 and all(leaf.text.startswith("strength =") for leaf in leaves)
    on = page.find_element("css selector", ".card.leaf.on")
    on.click()
    detail = page.find_element("id", "node").text
    assert "Predictions are limited to" in detail and "mean absolute error" in detail and "samples" in detail
    leaf = int(tree.apply(X[:1])[0])
    adds = page.execute_script(
        "return [...document.querySelectorAll('#node td[data-head=adds]')].map((cell) => cell.textContent)"
    )
    formula = tree.formula(leaf)
    assert sum(map(number, adds)) == pytest.approx(formula.constant + formula.weights @ X[0], rel=2e-3, abs=0.05)
    error = np.abs(y - tree.predict(X))[tree.apply(X) == leaf].mean()
    words = page.find_element("id", "share").text
    assert words == f"{np.sum(tree.apply(X) == leaf)} samples have this path; their mean absolute error is {error:.3g}"
    plain = show(tree).find_element("tag name", "body").text
    assert "training samples have this path" in plain and "interval" not in plain and "probability" not in plain


def test_tiny_weights_keep_the_sign_of_their_exponent(show):
    tree = RegressionTree(
        splits=Splits(w=np.array([[1.0, -2.0]]), b=np.array([0.5])), feature_names=("cells", "people"),
        scaling=Scaling(offset=np.zeros(2), scale=np.array([1e9, 1e8])), target=TargetScaling(center=0.0, scale=1.0),
        models=Splits(w=np.array([[1.0, 0.0], [0.0, 2.0]]), b=np.zeros(2)), target_name="dose",
    )  # fmt: skip
    shown = show(tree).find_element("tag name", "body").text.replace("\N{MINUS SIGN}", "-")
    assert shown.count("2.00e-08 · people - 1.00e-09 · cells") == 2 and "e08" not in shown and "e09" not in shown


@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_runs_off_the_page(show, width):
    tree, X, y = numbers(3, 12)
    page = show(tree.with_residuals(X, y), X, y, details=True)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    boxes = page.execute_script(
        "return [...document.querySelectorAll('.card, .field, #result, #why, #goal, #change, table')].map((at) => "
        "{ const box = at.getBoundingClientRect(); return [box.left, box.right]; })"
    )
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert boxes and all(0 <= left and right <= width for left, right in boxes)


def test_words_and_missing_cells_are_in_the_formula(show):
    encoding = Encoding(
        columns=(Number(name="age", fill=40.0, flag=True, typical=61.0), Category(name="site", values=("dry", "wet"))),
        target="strength", numeric=True, source="homes.csv",
    )  # fmt: skip
    tree = RegressionTree(
        splits=Splits(w=np.zeros((0, 3)), b=[]), models=Splits(w=[[2.0, 0.5, 1.0]], b=[-1.0]), target_name="strength",
        target=TargetScaling(center=100.0, scale=10.0), feature_names=encoding.features,
        scaling=Scaling(offset=[18.0, 0, 0], scale=[70.0, 1, 1]), terms={ENTRY: to_record(encoding)},
    )  # fmt: skip
    assert facts_in(render_page(tree))["title"] == "strength (regression tree, trained on homes.csv)"
    page = show(tree)
    for values in ([60.0, 0, 1], [40.0, 1, 0]):
        (found,) = page.execute_script(ANSWERS, [values])
        assert found["value"] == pytest.approx(tree.predict([values])[0])
        assert ("(age)" in found["formula"]) == (not values[1])
        assert ("(age is not known)" in found["formula"]) == bool(values[1])
        assert f"(site is {'wet' if values[2] else 'dry'})" in found["formula"]
    assert page.find_elements("css selector", "#interval") == []
    (change,) = page.execute_script("return margotree.singleFlips([60, 0, 0], (j) => j === 2, 105)")
    assert change["to"] == "wet" and change["value"] == pytest.approx(tree.predict([[60, 0, 1]])[0])
