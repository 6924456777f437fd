import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from grown import grown
from margotree import MargotRegressor, plots
from margotree.model_selection.frontier import make_frontier
from margotree.plots import figures, plot_features, plot_frontier, plot_node, plot_plane, plot_progress, plot_tree
from margotree.plots.geometry import box_polygon, clip, segment
from margotree.plots.node import spread
from margotree.plots.palette import class_colour, tint
from margotree.plots.text_fitting import shortened, text_width
from margotree.problem import Splits, topology
from margotree.solution import Certificate, Stopped
from margotree.tree import Tree
from margotree.tree.outline import outline
from margotree.tree.sample_paths import SamplePaths
from margotree.tree.text import rule_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

HOSTILE = ("$a_1$ and $ </script>", "a" * 90, "line\nbreak\tand tab", "%s {x} \\alpha")


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    plt.close("all")


def words(ax):
    """The visible texts of a plot, with their boxes in pixels."""
    figure = ax.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    beyond = {id(label) for part in figure.axes for label in _beyond(part.xaxis) + _beyond(part.yaxis)}
    seen = [t for t in figure.findobj(matplotlib.text.Text) if t.get_visible() and t.get_text().strip()]
    return [(t.get_text(), t.get_window_extent(renderer)) for t in seen if id(t) not in beyond]


def _beyond(axis):
    """Labels of ticks outside the limits: they exist but are not drawn."""
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
    return [label for tick in ticks for label in (tick.label1, tick.label2)]


def overlaps(boxes, slack=0.5):
    """Pairs of boxes that share more than a hair."""
    x0, y0, x1, y1 = np.array([box.extents for _, box in boxes]).T
    wide = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
    tall = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
    return [(boxes[i][0], boxes[j][0]) for i, j in np.argwhere((wide > slack) & (tall > slack)) if i < j]


def cut(ax, boxes):
    width, height = ax.figure.canvas.get_width_height()
    return [text for text, box in boxes if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1]


def bars_of(ax):
    """The weight bars of a tree's cards, in pixels."""
    renderer = ax.figure.canvas.get_renderer()
    dark = matplotlib.colors.to_rgba("#52616b")
    patches = [p for p in ax.patches if p.get_facecolor() == dark]
    return [(f"bar {k}", p.get_window_extent(renderer)) for k, p in enumerate(patches)]


# -- the whole tree -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(("n_features", "used"), [(2, None), (10, 3), (60, None)])
def test_nothing_overlaps_and_nothing_is_cut(depth, n_features, used):
    tree, _, _ = grown(depth, n_features, used=used)
    ax = plot_tree(tree)
    boxes = words(ax)
    assert not cut(ax, boxes)
    assert not overlaps(boxes)
    bars = bars_of(ax)
    assert len(bars) >= len(outline(tree).nodes)
    assert not [pair for pair in overlaps(boxes + bars) if pair[0] not in dict(bars) or pair[1] not in dict(bars)]


@pytest.mark.parametrize("dpi", [50, 300])
def test_it_fits_at_any_resolution_and_into_axes_of_any_size(dpi):
    tree, X, y = grown(3, 12, used=3)
    figure, places = plt.subplots(1, 2, figsize=(12, 4), dpi=dpi)
    for ax in places:
        plot_tree(tree, X, y, ax)
    boxes = words(places[0])
    assert not cut(places[0], boxes)
    assert not overlaps(boxes)
    assert figure.get_size_inches().tolist() == [12, 4]


def test_hostile_names_many_classes_and_pruned_branches():
    labels = [f"class with a long label {k}" for k in range(11)]
    tree, X, y = grown(3, 4, classes=labels, names=HOSTILE, pruned=[1, 6])
    boxes = words(plot_tree(tree, X, y, title="A title $ that is much longer than the plot is wide " * 4))
    assert not overlaps(boxes)
    assert not cut(plt.gca(), boxes)
    assert any("$a_1$" in text for text, _ in boxes)


def test_a_card_shows_counts_weights_and_the_rest():
    tree, X, y = grown(1, 60)
    shown = [text for text, _ in words(plot_tree(tree, X, y, max_features=4))]
    assert "+ 56 more" in shown
    assert {f"{int(c)}" for c in tree.counts[0]} <= set(shown)
    assert len(bars_of(plt.gca())) == 4
    assert any(re.match("sum [\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO}] ", text) for text in shown)


def test_classes_that_do_not_fit_are_counted():
    tree, X, y = grown(1, 3, classes=tuple("abcdefghijk"), n_samples=3000)
    shown = [text for text, _ in words(plot_tree(tree, X, y))]
    counts = [text for text in shown if text.isdigit()]
    left_out = [int(text.split()[1]) for text in shown if re.fullmatch(r"\+ \d+", text)]
    # Every class is counted at each of the three cards, by its number or among those left out.
    assert len(left_out) == 3 and len(counts) + sum(left_out) == np.count_nonzero(tree.counts)


def test_bars_point_to_the_side_they_favour():
    tree, _, _ = grown(1, 6)
    ax = plot_tree(tree)
    ax.figure.canvas.draw()
    axis = {round(float(line.get_xdata()[0]), 6) for line in ax.lines if len(set(line.get_xdata())) == 1}
    assert len(axis) == 1
    zero = axis.pop()
    dark = matplotlib.colors.to_rgba("#52616b")
    bars = sorted((p for p in ax.patches if p.get_facecolor() == dark), key=lambda p: -p.get_y())
    lengths = [p.get_width() if p.get_x() >= zero - 1e-6 else -p.get_width() for p in bars]
    weights = tree.splits.w[0][np.argsort(-np.abs(tree.splits.w[0]), kind="stable")]
    np.testing.assert_allclose(np.array(lengths) / abs(lengths[0]), weights / abs(weights[0]), rtol=1e-6)


def test_a_split_by_one_feature_shows_its_limit():
    tree, _, _ = grown(1, 3, used=1)
    j = int(np.argmax(np.abs(tree.splits.w[0])))
    name = " ".join(tree.features[j].split())
    assert any(text.startswith(name) and text[len(name) :].strip()[:1] in "≤≥" for text, _ in words(plot_tree(tree)))


def test_counts_are_those_of_the_samples_given():
    tree, X, y = grown(2, 3)
    shown = [text for text, _ in words(plot_tree(tree, X[:17], y[:17]))]
    assert all(str((y[:17] == label).sum()) in shown for label in tree.classes)
    with pytest.raises(ValueError, match="both X and y"):
        plot_tree(tree, X)


def test_a_tree_that_never_splits_is_one_leaf_and_an_empty_one_has_no_samples():
    tree, _, _ = grown(2, 3, pruned=[0, 1, 2])
    assert "No node splits: every sample gets the same label." in [text for text, _ in words(plot_tree(tree))]
    bare = replace(grown(2, 3)[0], counts=np.zeros((0, 0)))
    assert [text for text, _ in words(plot_tree(bare))].count("no samples") == 7


def test_the_caption_tells_what_is_proved():
    tree, _, _ = grown(1, 2)
    proof = Certificate(
        objective=2.0, bound=1.5, stopped=Stopped.TIME, gap_target=1e-4, engine="bnb", engine_version="1"
    )
    # The lines of a caption are drawn from the last to the first.
    caption = " ".join(reversed([text for text, _ in words(plot_tree(replace(tree, certificate=proof)))]))
    assert f"Proved: {proof.statement}." in caption and "more than 25 % smaller" in caption


def test_estimators_and_trees_draw_themselves():
    from margotree import MargotClassifier

    tree, X, y = grown(2, 3)
    model = MargotClassifier()
    with pytest.raises(TypeError, match="fit first"):
        plot_tree(model)
    model.tree_, model.n_features_in_ = tree, 3
    for ax in (tree.plot(), tree.plot(X, y), model.plot(), model.plot(X, y, max_features=1), plot_tree(model)):
        assert "met" in [text for text, _ in words(ax)]


# -- the plane ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_regions_of_the_plane_are_what_the_tree_predicts(depth):
    tree, X, y = grown(depth, 2, classes=("a", "b", "c"))
    ax = plot_plane(tree, X, y)
    boxes = words(ax)
    assert not overlaps(boxes)
    assert not cut(ax, boxes)
    rng = np.random.default_rng(1)
    (low_x, high_x), (low_y, high_y) = ax.get_xlim(), ax.get_ylim()
    points = rng.uniform([low_x, low_y], [high_x, high_y], size=(300, 2))
    regions = [(p.get_path(), p.get_facecolor()) for p in ax.patches]
    colours = {label: matplotlib.colors.to_rgba(tint(class_colour(k), 0.17)) for k, label in enumerate(tree.classes)}
    for point, label in zip(points, tree.predict(points), strict=True):
        inside = [colour for path, colour in regions if path.contains_point(point)]
        assert inside == [pytest.approx(colours[label], abs=1e-3)]


def test_hyperplanes_of_the_plane_stay_in_the_regions_of_their_nodes():
    tree, X, y = grown(3, 2)
    ax = plot_plane(tree, X, y)
    solid = [line for line in ax.lines if line.get_linestyle() == "-"]
    assert len(solid) == len(outline(tree).nodes)
    for line in solid:
        middle = np.array([[np.mean(line.get_xdata()), np.mean(line.get_ydata())]])
        nodes = [t for t in range(tree.n_nodes) if tree.decision_path(middle)[0, t]]
        h = [tree.scaled(middle)[0] @ tree.splits.w[t] + tree.splits.b[t] for t in nodes]
        assert min(np.abs(h)) < 1e-6


def test_margins_of_the_plane_are_where_h_is_one():
    tree, X, y = grown(1, 2)
    dashed = [line for line in plot_plane(tree, X, y).lines if line.get_linestyle() == "--"]
    assert len(dashed) == 2
    h = [tree.scaled(line.get_xydata()) @ tree.splits.w[0] + tree.splits.b[0] for line in dashed]
    np.testing.assert_allclose(np.sort(np.concatenate(h)), [-1, -1, 1, 1], atol=1e-9)
    assert not [line for line in plot_plane(tree, X, y, margins=False).lines if line.get_linestyle() == "--"]


def test_rings_mark_support_vectors():
    tree, X, y = grown(2, 2)
    paths = SamplePaths.of(tree, X, y)
    sign = np.where(y == tree.classes[1], 1.0, -1.0)
    ringed = plot_plane(tree, X, y).collections[-1].get_offsets()
    last = [tree.path(x)[-1].h for x in X]
    assert len(ringed) == np.sum(sign * last <= 1 + 1e-6)
    all_splits = plot_plane(tree, X, y, support="all").collections[-1].get_offsets()
    assert len(all_splits) == len(set(np.concatenate([paths.at(t)[paths.support(t)] for t in range(3)])))
    assert len(plot_plane(tree, X, y, support=None).collections) == 2


def test_support_vectors_of_models_whose_margin_depends_on_no_class_lie_within_it():
    tree, X, y = grown(2, 3, terms={"model": "oct_h"})
    paths = SamplePaths.of(tree, X, y)
    for t in range(3):
        assert paths.support(t).tolist() == (np.abs(paths.h(t)) <= 1 + 1e-6).tolist()
        assert 0 < paths.support(t).sum() < len(paths.at(t))


def test_a_plane_needs_two_features():
    tree, X, y = grown(2, 5)
    with pytest.raises(ValueError, match=r"this tree uses 5 of 5.*plot_node"):
        plot_plane(tree, X, y)
    w = np.zeros((1, 5))
    w[0, [1, 4]] = [3.0, -2.0]
    flat = Tree(splits=Splits(w=w, b=[0.1]), scaling=tree.scaling, classes=tree.classes, feature_names=tuple("abcde"))
    assert plot_plane(flat, X, y).get_xlabel() == "b"
    assert plot_plane(flat, X, y, features=("e", 1)).get_xlabel() == "e"
    with pytest.raises(ValueError, match="not only"):
        plot_plane(flat, X, y, features=(0, 1))
    with pytest.raises(ValueError, match="no feature 'z'"):
        plot_plane(flat, X, y, features=("z", 1))


def test_clipping_parts_a_polygon_without_loss():
    rng = np.random.default_rng(0)
    box = box_polygon(np.zeros(2), np.ones(2))
    for _ in range(50):
        w, b = rng.normal(size=2), rng.normal() / 3
        left, right = clip(box, -w, -b), clip(box, w, b)
        assert _area(left) + _area(right) == pytest.approx(1.0)
        ends = segment(box, w, b)
        if ends is not None:
            np.testing.assert_allclose(ends @ w + b, 0, atol=1e-12)


def _area(polygon):
    if len(polygon) < 3:
        return 0.0
    x, y = polygon.T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


# -- one split ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("n_features", [1, 2, 60])
def test_a_split_shows_its_samples_at_their_distance(depth, n_features):
    tree, X, y = grown(depth, n_features)
    node = topology.n_nodes(depth - 1) if depth > 1 else 0
    ax = plot_node(tree, X, y, node)
    paths = SamplePaths.of(tree, X, y)
    drawn = np.sort(np.concatenate([c.get_offsets()[:, 0] for c in ax.collections[:-1]]))
    np.testing.assert_allclose(drawn, np.sort(paths.h(node)))
    assert len(ax.collections[-1].get_offsets()) == paths.support(node).sum()
    boxes = words(ax)
    assert not overlaps(boxes)
    assert not cut(ax, boxes)


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c", "d")])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_axes_of_a_split_name_only_features_that_it_uses(depth, classes):
    names = [f"feature number {j:02d}" for j in range(20)]
    tree, X, y = grown(depth, 20, used=2, classes=classes, names=names)
    for node in outline(tree).nodes:
        ax = plot_node(tree, X, y, node)
        used = {names[j] for j in np.flatnonzero(tree.splits.w[node])}
        assert set(re.findall(r"feature number \d\d", ax.get_ylabel() + ax.get_xlabel())) <= used
        # Two features leave one direction along the hyperplane, which shows all of the spread.
        assert "(100 % of the spread)" in ax.get_ylabel()
        plt.close("all")


def test_many_support_vectors_do_not_cover_the_samples():
    few, many = (plot_plane(*grown(2, 2, n_samples=n)) for n in (30, 900))
    for ax, thin in ((few, False), (many, True)):
        rings, samples = ax.collections[-1], ax.collections[0]
        n = len(rings.get_offsets())
        assert f"support vectors ({n})" in [text.get_text() for text in ax.get_legend().get_texts()]
        assert (n > 40) == thin and (rings.get_linewidth()[0] < 0.5) == thin
        assert (rings.get_sizes()[0] < 3 * samples.get_sizes()[0]) == thin


@pytest.mark.parametrize("n_features", [2, 12])
@pytest.mark.parametrize("units", ["user", "scaled"])
def test_numbers_of_a_plot_are_those_of_the_text(n_features, units):
    tree, _, _ = grown(2, n_features)
    shown = [text.replace("\N{MINUS SIGN}", "-") for text, _ in words(plot_tree(tree, max_features=99, units=units))]
    for t in outline(tree).nodes:
        rule = rule_of(tree, t, units=units)
        relation = "\N{LESS-THAN OR EQUAL TO}" if rule.at_most else "\N{GREATER-THAN OR EQUAL TO}"
        assert set(rule.weights) <= set(shown) and f"sum {relation} {rule.threshold}" in shown
        text = " ".join(tree.export_text(units=units, width=10**6, simplify=False).replace("- ", "-").split())
        assert all(weight.removeprefix("-") in text for weight in rule.weights) and rule.threshold in text


def test_the_direction_along_a_hyperplane_spreads_most():
    rng = np.random.default_rng(3)
    X, w = rng.normal(size=(80, 6)) * [1, 4, 2, 1, 3, 1], rng.normal(size=6)
    best = spread(X, w)
    assert abs(best.direction @ w) < 1e-9 and np.linalg.norm(best.direction) == pytest.approx(1)
    for _ in range(200):
        other = rng.normal(size=6)
        other -= (other @ w) / (w @ w) * w
        assert np.var(X @ other / np.linalg.norm(other)) <= np.var(best.position) + 1e-9


def test_legends_of_many_long_labels_fit():
    labels = [f"{k} class with a label that is long, $ and all" for k in range(5)] + ["_hidden", "x" * 200]
    tree, X, y = grown(3, 2, classes=labels)
    for ax in (plot_node(tree, X, y, 0), plot_plane(tree, X, y)):
        boxes = words(ax)
        assert not overlaps(boxes)
        assert not cut(ax, boxes)
        assert len(ax.get_legend().get_texts()) == len(labels) + 1


def test_a_node_that_does_not_split_has_no_plot():
    tree, X, y = grown(2, 2, pruned=[1])
    for node, message in ((1, "does not split.* nodes that split: 0, 2"), (9, "0 to 2")):
        with pytest.raises(ValueError, match=message):
            plot_node(tree, X, y, node)


# -- features and progress ------------------------------------------------------------------------------------------


def numbers(ax):
    grid = {}
    for text in ax.texts:
        column, row = text.get_position()
        grid[round(row), round(column)] = text.get_text()
    return grid


@pytest.mark.parametrize(("depth", "n_features", "used"), [(1, 2, None), (2, 10, 3), (4, 60, None)])
def test_the_grid_of_one_tree_shows_the_sign_of_every_selected_weight(depth, n_features, used):
    tree, _, _ = grown(depth, n_features, used=used, names=[f"feature number {j:02d}" for j in range(n_features)])
    ax = plot_features(tree)
    rows = [tree.features.index(label.get_text()) for label in ax.get_yticklabels()]
    nodes = outline(tree).nodes
    assert sorted(rows) == np.flatnonzero(tree.selected().any(axis=0)).tolist()
    shown = {(rows[r], nodes[c]): sign for (r, c), sign in numbers(ax).items()}
    wanted = {
        (j, t): "+" if tree.splits.w[t, j] > 0 else "\N{MINUS SIGN}"
        for t in nodes
        for j in np.flatnonzero(tree.selected()[t])
    }
    assert shown == wanted
    boxes = words(ax)
    assert not overlaps(boxes)
    assert not cut(ax, boxes)


def test_the_grid_of_trees_and_of_methods_counts():
    names = [f"f{j}" for j in range(8)]
    trees = {f"method {k} with a name": grown(2, 8, used=2, seed=k, names=names)[0] for k in range(6)}
    ax = plot_features(trees)
    rows = [label.get_text() for label in ax.get_yticklabels()]
    wanted = {
        (rows.index(f"f{j}"), c): str(n)
        for c, tree in enumerate(trees.values())
        for j, n in enumerate(tree.selected().sum(axis=0))
        if n
    }
    assert numbers(ax) == wanted
    assert not overlaps(words(ax))
    ax = plot_features({"all": list(trees.values()), "none": []})
    rows = [label.get_text() for label in ax.get_yticklabels()]
    used = np.sum([tree.selected().any(axis=0) for tree in trees.values()], axis=0)
    assert numbers(ax) == {(rows.index(f"f{j}"), 0): str(n) for j, n in enumerate(used) if n}


def test_grids_need_trees_that_are_alike():
    with pytest.raises(ValueError, match="same features"):
        plot_features({"a": grown(1, 2)[0], "b": grown(1, 3)[0]})
    with pytest.raises(ValueError, match="no trees"):
        plot_features({})


def test_progress_shows_the_best_known_at_each_time():
    from margotree.engines import Event

    events = [
        Event(phase="start", elapsed=0.5, incumbent=12.0),
        {"elapsed": 1.0, "incumbent": 14.0, "bound": 5.0},
        Event(phase="search", elapsed=2.0, incumbent=10.0, bound=4.0),
        {"elapsed": 3.0, "incumbent": 10.0, "bound": 9.0},
    ]
    ax = plot_progress(events)
    incumbent, bound = ax.lines
    assert incumbent.get_ydata().tolist() == [12, 12, 10, 10]
    np.testing.assert_equal(bound.get_ydata(), [np.nan, 5, 5, 9])
    assert ax.get_xlabel() == "seconds (gap 10 % after 3 s)"
    assert not overlaps(words(ax))
    assert plot_progress(events[:1]).get_xlabel() == "seconds (no bound after 0.5 s)"
    proof = Certificate(
        objective=10.0, bound=9.9, stopped=Stopped.SOLVED, gap_target=0.01, engine="bnb", engine_version="1",
        search_seconds=4.0,
    )  # fmt: skip
    assert plot_progress(events, certificate=proof).get_xlabel() == "seconds (gap 1 % after 4 s)"
    with pytest.raises(ValueError, match="no events"):
        plot_progress([])


def test_the_frontier_of_a_cross_validation():
    settings = [{"C": c} for c in range(1, 6)]
    score, numbers = [0.8, 0.9, 0.85, 0.95, 0.94], [1, 3, 7, 60, 62]
    frontier = make_frontier(settings, score, [0.01, 0.02, 0.01, np.inf, 0.01], numbers, [5] * 5, chosen=1)
    ax = plot_frontier(SimpleNamespace(frontier_=frontier))
    others, steps = ax.lines[:2]
    assert others.get_xdata().tolist() == [7, 62] and steps.get_ydata().tolist() == [0.8, 0.9, 0.95]
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {
        "other settings", "no smaller tree is better", "chosen"
    }  # fmt: skip
    assert not overlaps(words(ax)) and ax.get_xlim()[0] == 0
    with pytest.raises(ValueError, match="the frontier is empty"):
        plot_frontier([])


def test_two_searches_share_one_plot():
    first = [{"elapsed": 1, "incumbent": 3, "bound": 1}, {"elapsed": 2, "incumbent": 2, "bound": 2}]
    ax = plot_progress(first, label="a")
    plot_progress([{"elapsed": 1, "incumbent": 4, "bound": 1}], ax, label="b", colour="#009E73")
    assert len(ax.lines) == 4 and ax.get_xlabel() == "seconds"


# -- text and imports -----------------------------------------------------------------------------------------------


def test_text_is_shortened_only_where_it_must_be():
    assert shortened("age", 8, 1.0) == "age"
    short = shortened("a very long name of a feature that ends in this", 8, 1.0)
    assert text_width(short, 8) <= 1.0 and short.startswith("a very") and "\N{HORIZONTAL ELLIPSIS}" in short
    assert shortened("wide", 8, 0.01) == "\N{HORIZONTAL ELLIPSIS}"


def test_colours_of_classes_differ():
    assert len({class_colour(k) for k in range(16)}) == 16


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(figures, "find_spec", lambda name: None)
    tree, X, y = grown(2, 2)
    number = MargotRegressor(depth=1, node_limit=1).fit(X, X[:, 0])
    calls = [
        lambda: plot_tree(tree),
        lambda: plot_plane(tree, X, y),
        lambda: plot_node(tree, X, y, 0),
        lambda: plot_features(tree),
        lambda: plot_progress([{"elapsed": 1.0}]),
        lambda: plot_frontier(make_frontier([{"C": 1}], [0.9], [0.01], [3], [5], chosen=0)),
        lambda: plots.plot_calibration(tree, X, y),
        lambda: plots.plot_effect(tree, X, 0),
        lambda: plots.plot_predictions(number, X, X[:, 0]),
        lambda: plots.plot_residuals(number, X, X[:, 0]),
        lambda: plots.plot_stability(SimpleNamespace(feature_share={"a": 0.5}, tree=tree)),
    ]
    assert len(calls) == len(plots.__all__)
    for call in calls:
        with pytest.raises(ImportError, match=r'pip install "margotree\[plot\]"'):
            call()


def test_matplotlib_is_imported_on_first_use():
    code = "import sys, margotree.plots, margotree.page; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_branches_bear_no_word_that_a_class_may_bear():
    tree, _, _ = grown(1, 2, classes=("no", "yes"))
    words = [text.get_text() for text in tree.plot().texts]
    assert {"met", "not met"} <= set(words)
    # once in the legend and once at the leaf
    assert words.count("yes") == words.count("no") == 2
