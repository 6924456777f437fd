"""The paper's figures from a file of results: hyperplanes with margins, selected features, box plots, trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from margotree.model_selection.result_rows import Rows
from margotree.paper.data import DataError, TrainTest, make_partitions
from margotree.paper.experiments.measures import MEASURES
from margotree.paper.experiments.samples import samples
from margotree.paper.experiments.specs import FIRST_METHODS, SECOND_METHODS, Method, Spec, find
from margotree.paper.experiments.tables import RowsByCase, best_rows
from margotree.tree import Scaling, Tree

#: The sets whose trees are drawn in the paper.
_DRAWN = ("Parkinsons", "Breast Cancer D.")

_DPI = 150


def figure_names() -> tuple[str, ...]:
    """The names of the figures."""
    return tuple(_FIGURES)


def figure(name: str, store: str | PathLike[str], out: str | PathLike[str] = "results") -> list[Path]:
    """Draw a figure from the fits in the file of results, and return the paths of the images written to ``out``.

    ``planes`` needs the fits of ``synthetic``, ``features`` those of ``features`` and ``features_fs``, ``depths`` those
    of ``depths`` and ``trees`` those of ``features_fs``; missing fits are left out.
    """
    if name not in _FIGURES:
        raise ValueError(f"unknown figure {name!r}; there are: {', '.join(_FIGURES)}")
    with Rows(store, must_exist=True) as rows:
        rows_by_case = best_rows(rows.where(kind="fit"))
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [_save(image, folder / f"{stem}.png") for stem, image in _FIGURES[name](rows_by_case)]
    if not drawn:
        raise ValueError(f"{store} holds none of the fits that the figure {name!r} shows; run them first")
    return drawn


def _planes(rows_by_case: RowsByCase) -> Iterator[tuple[str, Any]]:
    """One image per 2-D set: the true tree if it is known, then one panel per method."""
    from margotree.plots import plot_plane

    spec = find("synthetic")
    assert isinstance(spec, Spec)
    for name in spec.data:
        trees = _trees(rows_by_case, spec.methods, name)
        if not trees or (split := _samples_if_available(name)) is None:
            continue
        panels = {**_truth(name), **{f"{m.title}, {_accuracy(row)}": tree for m, row, tree in trees}}
        figure, axes = _grid_of_axes(len(panels))
        for ax, (title, tree) in zip(axes, panels.items(), strict=False):
            plot_plane(tree, split.X_train, split.y_train, ax=ax, legend=False, support=None)
            ax.set_title(title, fontsize=10)
        yield f"planes-{name}", figure


def _truth(name: str) -> dict[str, Tree]:
    """A dictionary with the tree from which a set was generated; empty for sets that were not generated from a tree."""
    if not name.endswith("-partitions"):
        return {}
    made = make_partitions(int(name[0]))
    tree = Tree(
        splits=made.truth,
        scaling=Scaling.identity(2),
        classes=np.array([-1.0, 1.0]),
        feature_names=made.dataset.feature_names,
    )
    return {"ground truth": tree}


def _features(rows_by_case: RowsByCase) -> Iterator[tuple[str, Any]]:
    """One image per set: the features that the tree of each method uses, and in how many splits."""
    from margotree.plots import plot_features

    spec = find("features")
    assert isinstance(spec, Spec)
    for name in spec.data:
        trees = {
            method.title: tree for method, _, tree in _trees(rows_by_case, (*FIRST_METHODS, *SECOND_METHODS), name)
        }
        if trees:
            ax = plot_features(trees)
            ax.set_title(name, fontsize=10, loc="left", pad=24)
            yield f"features-{_stem(name)}", ax.figure


def _depths(rows_by_case: RowsByCase) -> Iterator[tuple[str, Any]]:
    """Test accuracy and gap over the sets, one box for each model and depth."""
    spec = find("depths")
    assert isinstance(spec, Spec)
    boxes = {
        m.title: [r for r in (rows_by_case.get(m.case(name).identity()) for name in spec.data) if r]
        for m in spec.methods
    }
    boxes = {title: rows for title, rows in boxes.items() if rows}
    if not boxes:
        return
    figure, axes = _grid_of_axes(2, columns=2, size=(5.2, 3.6))
    for ax, (measure, title) in zip(axes, (("test_acc", "test ACC (%)"), ("gap", "gap (%)")), strict=True):
        values = [[v for v in map(MEASURES[measure].extract, rows) if v is not None] for rows in boxes.values()]
        drawn = ax.boxplot(values, widths=0.6, medianprops={"color": "black"}, patch_artist=True)
        for box, label in zip(drawn["boxes"], boxes, strict=True):
            box.set_facecolor("#a6cbe3" if label.startswith("MARGOT") else "#e6e6e6")
        ax.set_xticks(range(1, len(boxes) + 1), [t.replace(", ", "\n") for t in boxes], fontsize=8)
        ax.set_title(title, fontsize=10)
    fewest, most = min(map(len, boxes.values())), max(map(len, boxes.values()))
    sets = f"{most}" if fewest == most else f"{fewest} to {most}"
    limits = sorted({row["time_limit"] for rows in boxes.values() for row in rows})
    words = f"{limits[0]:g}" if len(limits) == 1 else f"{limits[0]:g} to {limits[-1]:g}"
    figure.supxlabel(f"{sets} data sets per box, limit {words} s per fit", fontsize=7, color="gray")
    yield "depths", figure


def _tree_figures(rows_by_case: RowsByCase) -> Iterator[tuple[str, Any]]:
    """The trees of the feature-selecting models on two sets, in the units of the features."""
    from margotree.plots import plot_tree

    for name in _DRAWN:
        split = None
        for method, _, tree in _trees(rows_by_case, SECOND_METHODS, name):
            split = split or _samples_if_available(name)
            if split is None:
                break
            own_units = replace(
                tree, scaling=Scaling(offset=split.low, scale=split.span), classes=np.array(split.class_names)
            )
            ax = plot_tree(own_units, title=f"{method.title}, {name}")
            yield f"tree-{_stem(name)}-{method.column}", ax.figure


_FIGURES: dict[str, Callable[[RowsByCase], Iterator[tuple[str, Any]]]] = {
    "planes": _planes,
    "features": _features,
    "depths": _depths,
    "trees": _tree_figures,
}


def _samples_if_available(name: str) -> TrainTest | None:
    """The training and test part of a data set; None if its files are missing."""
    try:
        return samples(name)
    except DataError:
        return None


def _trees(rows_by_case: RowsByCase, methods: Sequence[Method], name: str) -> list[tuple[Method, dict[str, Any], Tree]]:
    """The methods that have a fit on the set ``name``, each with its row of results and its tree."""
    rows = ((method, rows_by_case.get(method.case(name).identity())) for method in methods)
    return [(method, row, Tree.from_dict(row["tree"])) for method, row in rows if row is not None]


def _accuracy(row: dict[str, Any]) -> str:
    """The training accuracy of a fit in words, and whether the tree is proved to be optimal."""
    proved = "optimal" if row["proved"] == "optimal" else "not proved"
    return f"{row['train_acc']:.1f} %" + ("" if row["model"] == "local_svm" else f" ({proved})")


def _grid_of_axes(n: int, columns: int = 3, size: tuple[float, float] = (3.4, 3.2)) -> tuple[Any, list[Any]]:
    """A new figure with ``n`` axes in rows of at most ``columns``, and the list of these axes.

    ``size`` is the width and height of one of the axes in inches.  Four axes are placed in two rows of two.
    """
    from matplotlib.figure import Figure

    columns = 2 if n == 4 else min(columns, n)
    n_rows = -(-n // columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * n_rows), layout="constrained")
    axes = [figure.add_subplot(n_rows, columns, k + 1) for k in range(n)]
    return figure, axes


def _save(image: Any, path: Path) -> Path:
    """Write a figure to ``path``, and return the path."""
    from margotree.plots.figures import save_figure

    save_figure(image, path, dpi=_DPI)
    return path


def _stem(name: str) -> str:
    """The name of a data set as a part of a file name."""
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-").replace("--", "-")
