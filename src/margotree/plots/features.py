"""The features in use, as a grid: of the splits of one tree, of several trees, or of several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from margotree.plots.figures import FONT_SIZE, LINE_COLOUR, MUTED, TEXT_COLOUR, figure_of, given_or_new_axes, tree_of
from margotree.plots.text_fitting import one_line, shortened, text_width, wrapped_lines
from margotree.tree import SELECTED, HyperplaneTree, RegressionTree
from margotree.tree.outline import outline
from margotree.tree.scaling import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELL, _NAMES = 0.22, 2.6
_SIGNED_CAPTION = "+ adds to the sum of the rule, \N{MINUS SIGN} reduces it; darker: larger weight"
_FORMULAS_CAPTION = (
    "[node]: split, => [leaf]: formula; + adds to the sum, \N{MINUS SIGN} reduces it; "
    "darker: larger weight in the column"
)

#: Colours depend on this power of the weights, so that small weights are visible.
_COLOUR_EXPONENT = 0.5


def plot_features(
    trees: Any,
    ax: Axes | None = None,
    *,
    threshold: float = SELECTED,
    max_features: int = 60,
) -> Axes:
    """Plot the features in use as rows of a grid, those with the most uses first.

    Features that no split and no formula uses are left out; their number is shown.

    Parameters
    ----------
    trees : Tree, fitted estimator, or mapping
        One tree: a column per split, with colours by the signed weight in scaled units; in a tree of numbers also a
        column per formula. A mapping from names to trees: a column per tree, with the number of its splits (and
        formulas) that use the feature. A mapping from names to lists of trees (such as the folds of a method): a column
        per list, with the number of trees that use the feature.
    ax : matplotlib axes, optional
        Axes to draw in; by default those of a new figure.
    threshold : float
        A split uses a feature if ``|w| >= threshold`` in scaled units.
    max_features : int
        The largest number of rows.

    Returns
    -------
    matplotlib axes
    """
    grid = _grid(trees, threshold)
    order = np.argsort(-np.abs(grid.use).sum(axis=0), kind="stable")
    used = [int(j) for j in order if grid.use[:, j].any()]
    shown = used[:max_features]
    names = [shortened(one_line(grid.features[j]), FONT_SIZE - 1, _NAMES) for j in shown]
    heads = [shortened(one_line(head), FONT_SIZE - 1, 1.6) for head in grid.heads]
    ax = given_or_new_axes(ax, *_figure_size(names, heads))
    _cells(ax, grid, shown)
    _labels(ax, names, heads)
    max_width = 0.95 * figure_of(ax).get_size_inches()[0]
    parts = _caption(grid, len(shown), len(used))
    lines = [line for part in parts for line in wrapped_lines(part, FONT_SIZE - 1, max_width)]
    ax.set_xlabel("\n".join(lines), size=FONT_SIZE - 1, color=MUTED, labelpad=8, loc="right")
    return ax


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """The values of a grid: ``use[c, j]`` for column ``c`` and feature ``j``; ``most`` is the darkest value."""

    heads: list[str]
    features: tuple[str, ...]
    use: FloatArray
    most: float
    caption: str
    signed: bool = False


def _grid(trees: Any, threshold: float) -> Grid:
    if not isinstance(trees, Mapping):
        return _splits_grid(tree_of(trees), threshold)
    if not trees:
        raise ValueError("there are no trees to draw")
    if all(isinstance(value, Sequence) for value in trees.values()):
        return _methods_grid({name: [tree_of(tree) for tree in group] for name, group in trees.items()}, threshold)
    return _trees_grid({name: tree_of(tree) for name, tree in trees.items()}, threshold)


def _splits_grid(tree: HyperplaneTree, threshold: float) -> Grid:
    shape = outline(tree)
    use = np.where(tree.selected(threshold), tree.hyperplanes.w, 0.0)
    heads, caption = [f"[{t}]" for t in shape.nodes], _SIGNED_CAPTION
    if isinstance(tree, RegressionTree):
        leaves = [shape.label[v] + tree.n_nodes for v in shape.leaves]
        use = use[[*shape.nodes, *leaves]]
        # Weights of splits are in margins, those of formulas in units of the target.
        use = use / np.maximum(np.abs(use).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        heads, caption = [*heads, *(f"=> [{v}]" for v in shape.leaves)], _FORMULAS_CAPTION
    else:
        use = use[shape.nodes]
    return Grid(
        heads=heads, features=tree.features, use=use.reshape(-1, tree.n_features),
        most=float(np.abs(use).max(initial=0.0)), caption=caption, signed=True,
    )  # fmt: skip


def _trees_grid(trees: dict[str, HyperplaneTree], threshold: float) -> Grid:
    use = np.array([tree.selected(threshold).sum(axis=0, dtype=float) for tree in _alike(list(trees.values()))])
    return Grid(
        heads=list(trees), features=next(iter(trees.values())).features, use=use, most=float(use.max(initial=0.0)),
        caption=_uses_caption(trees),
    )  # fmt: skip


def _uses_caption(trees: dict[str, HyperplaneTree]) -> str:
    formulas = any(isinstance(tree, RegressionTree) for tree in trees.values())
    return f"number: splits {'and formulas ' if formulas else ''}of the tree that use the feature"


def _methods_grid(methods: dict[str, list[HyperplaneTree]], threshold: float) -> Grid:
    all_trees = _alike([tree for group in methods.values() for tree in group])
    use = np.array([
        np.sum([tree.selected(threshold).any(axis=0) for tree in group], axis=0, dtype=float)
        if group else np.zeros(all_trees[0].n_features)
        for group in methods.values()
    ])  # fmt: skip
    return Grid(
        heads=list(methods), features=all_trees[0].features, use=use, most=float(max(map(len, methods.values()))),
        caption="number: trees that use the feature",
    )  # fmt: skip


def _alike(trees: list[HyperplaneTree]) -> list[HyperplaneTree]:
    if len({tree.features for tree in trees}) != 1:
        raise ValueError("trees in one grid must be trained on the same features, in the same order")
    return trees


def _figure_size(names: list[str], heads: list[str]) -> tuple[float, float]:
    left = max((text_width(name, FONT_SIZE - 1) for name in names), default=0.5)
    top = max((text_width(head, FONT_SIZE - 1) for head in heads), default=0.0) if _is_rotated(heads) else 0.2
    return max(3.0, left + 0.5 + _column(heads) * len(heads)), top + 0.9 + _CELL * max(1, len(names))


def _column(heads: list[str]) -> float:
    widest = max((text_width(head, FONT_SIZE - 1) for head in heads), default=0)
    return 0.4 if _is_rotated(heads) else max(0.5, widest + 0.15)


def _is_rotated(heads: list[str]) -> bool:
    """Whether the names of the columns are rotated: many columns with long names."""
    return len(heads) > 4 and max(map(len, heads)) > 6


def _cells(ax: Axes, grid: Grid, shown: list[int]) -> None:
    from matplotlib import colormaps

    values = grid.use[:, shown].T
    scale = grid.most or 1.0
    shade = np.sign(values) * (np.abs(values) / scale) ** (_COLOUR_EXPONENT if grid.signed else 1.0)
    ax.imshow(
        np.where(values == 0, np.nan, shade), aspect="auto", vmin=-1 if grid.signed else -0.35, vmax=1,
        cmap=colormaps["PuOr_r" if grid.signed else "Blues"],
    )  # fmt: skip
    _numbers(ax, values, np.abs(shade), grid.signed)
    ax.set_xticks(np.arange(-0.5, values.shape[1]), minor=True)
    ax.set_yticks(np.arange(-0.5, values.shape[0]), minor=True)
    ax.grid(which="minor", color=LINE_COLOUR, linewidth=0.5)
    ax.tick_params(which="both", length=0)


def _numbers(ax: Axes, values: FloatArray, shade: FloatArray, signed: bool) -> None:
    for (row, column), value in np.ndenumerate(values):
        if value:
            symbol = ("+" if value > 0 else "\N{MINUS SIGN}") if signed else f"{value:.0f}"
            colour = "white" if shade[row, column] > 0.6 else TEXT_COLOUR
            ax.text(column, row, symbol, ha="center", va="center", size=FONT_SIZE - 2, color=colour)


def _labels(ax: Axes, names: list[str], heads: list[str]) -> None:
    ax.xaxis.tick_top()
    rotated = _is_rotated(heads)
    ax.set_xticks(
        range(len(heads)), heads, size=FONT_SIZE - 1, color=TEXT_COLOUR, rotation=90 if rotated else 0, parse_math=False
    )
    ax.set_yticks(range(len(names)), names, size=FONT_SIZE - 1, color=TEXT_COLOUR, parse_math=False)
    for side in ax.spines.values():
        side.set_color(LINE_COLOUR)


def _caption(grid: Grid, shown: int, used: int) -> list[str]:
    unused = len(grid.features) - used
    parts = [grid.caption]
    if used > shown:
        parts.append(f"{used - shown} more are used")
    if unused:
        parts.append(f"{unused} of {len(grid.features)} features not used")
    return parts
