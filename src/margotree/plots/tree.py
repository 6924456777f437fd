"""The whole tree: cards with class counts and bars for weights, leaves with labels, and branches between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from margotree.plots.drawing import InchCanvas
from margotree.plots.figures import BACKGROUND, LINE_COLOUR, MUTED, TEXT_COLOUR, tree_of
from margotree.plots.layout import Box, layout_boxes
from margotree.plots.node_cards import AnyCard, Bar, Card, FormulaCard, LeafCard, cards
from margotree.plots.palette import class_colour, tint
from margotree.plots.text_fitting import one_line, text_width, wrapped_lines
from margotree.tree import HyperplaneTree, RegressionTree, Tree
from margotree.tree.outline import Outline, outline
from margotree.tree.sample_paths import SamplePaths
from margotree.tree.scaling import FloatArray
from margotree.tree.text import count_text, left_out_text, samples_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAD, _ROW, _GAP, _DROP, _EDGE = 0.1, 0.19, 0.16, 0.5, 0.2
#: The largest number of lines of a statement about words.
_MAX_RULE_LINES = 3
_TITLE, _TEXT, _SMALL = 8.5, 7.5, 7.0
_BAR = "#52616b"

#: The minimum and the maximum length of the longest bar of a card, in inches.
_MIN_BAR, _MAX_BAR = 0.24, 0.55

#: Width of a card and of a leaf, by the number of levels of the tree.
_WIDTHS = {0: (3.2, 1.7), 1: (3.4, 1.7), 2: (3.0, 1.42), 3: (2.7, 1.27)}
_NARROW = (2.5, 1.17)

#: The default for the largest number of features on a card, by the number of levels of the tree.
_MAX_FEATURES = {1: 12, 2: 8, 3: 6}
_MAX_FEATURES_DEEP = 5


def plot_tree(
    tree: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    max_features: int | None = None,
    units: str = "user",
    title: str | None = None,
    caption: bool = True,
    simplify: bool = True,
) -> Axes:
    """Plot a tree, or the tree of a fitted estimator.

    Each split is a card with the class counts of its samples, the features with the largest weights, and the condition
    for going right; for more than two classes also the classes that should and should not go right. A leaf has its
    label, or in a tree of numbers its formula. The length of a bar is the weight in scaled units, so that the bars of a
    card are comparable; a bar to the right adds to the sum, a bar to the left reduces it. The width of a branch is its
    share of the samples.

    Parameters
    ----------
    tree : Tree or fitted estimator
        The tree.
    X, y : array, optional
        Samples to count; by default the counts are those of the training samples. Trees of numbers need only ``X``.
    ax : matplotlib axes, optional
        Axes to draw in, to which the plot is scaled; by default those of a new figure of suitable size.
    max_features : int, optional
        The largest number of features on a card; the number of the others is shown.
    units : {"user", "scaled"}
        The units of the numbers.
    title : str, optional
        A title above the tree.
    caption : bool
        Whether to draw a caption, with the statement of the certificate, below the tree.
    simplify : bool
        Whether to leave out splits that change the label neither of these samples nor of any training sample.

    Returns
    -------
    matplotlib axes
    """
    tree = tree_of(tree)
    counts = _counts(tree, X, y)
    known = tree if X is None else replace(tree, counts=tree.counts + counts)
    shape = outline(known, simplify=simplify)
    levels = shape.levels(shape.root)
    max_features = _max_features(max_features, levels)
    shown = cards(tree, shape, counts, max_features, units)
    sizes = {v: _size(card, levels, shape.levels(v)) for v, card in shown.items()}
    boxes, width, height = layout_boxes(shape, sizes, gap=_GAP, drop=_DROP)
    return _draw(tree, shape, shown, boxes, (width, height), ax, title, caption)


def _counts(tree: HyperplaneTree, X: ArrayLike | None, y: ArrayLike | None) -> FloatArray:
    """The counts of the samples at nodes and leaves; those of the training samples if there are no others."""
    if X is None and y is None:
        return tree.counts
    if isinstance(tree, RegressionTree) and X is not None:
        return tree.decision_path(X).sum(axis=0, dtype=np.float64)[:, None]
    if X is None or y is None:
        raise ValueError("to count samples give both X and y, or neither for the training samples' counts")
    assert isinstance(tree, Tree)
    return SamplePaths.of(tree, X, y).counts()


def _max_features(given: int | None, levels: int) -> int:
    if given is None:
        return _MAX_FEATURES.get(levels, _MAX_FEATURES_DEEP)
    if given < 1:
        raise ValueError(f"max_features must be at least 1, got {given!r}")
    return int(given)


def _size(card: AnyCard, levels: int, below: int) -> tuple[float, float]:
    width, narrow = _WIDTHS.get(levels, _NARROW)
    # Upper levels have fewer cards, which can be wider.
    width = max(width, _WIDTHS[2][0]) if below > 1 else width
    if isinstance(card, LeafCard):
        return narrow, 2 * _PAD + 3 * _ROW
    if isinstance(card, FormulaCard):
        rows = len(card.bars) + (card.more > 0) + bool(card.limits)
        return max(narrow, 0.8 * width) if card.bars else narrow, 2 * _PAD + (2 + rows) * _ROW
    rows = len(card.bars) + (card.more > 0) + (card.target_classes is not None)
    head = 2.95 if len(card.counts) > 1 else 2.3  # counts by class have a bar below them
    return width, 2 * _PAD + (head + rows + len(_rule_lines(card, width)) - 1) * _ROW


def _rule_lines(card: Card, width: float) -> list[str]:
    """The rule of a card in lines; only a statement about words has several."""
    within = width - 2 * _PAD - 0.02
    return wrapped_lines(card.rule, _TEXT, within, bold=True, most=_MAX_RULE_LINES) if card.logic else [card.rule]


def _draw(
    tree: HyperplaneTree, shape: Outline, shown: dict[int, AnyCard], boxes: dict[int, Box], size: tuple[float, float],
    ax: Axes | None, title: str | None, caption: bool,
) -> Axes:  # fmt: skip
    width = max(size[0], 3.4) + 2 * _EDGE
    head = _legend_lines(tree, width - 2 * _EDGE)
    foot = wrapped_lines(_caption(tree, shape, shown), _SMALL, width - 2 * _EDGE) if caption else []
    above = _EDGE + 0.22 * len(head) + (0.3 if title else 0) + 0.1
    below = _EDGE + (0.16 * len(foot) + 0.12 if foot else 0)
    height = size[1] + above + below
    canvas = InchCanvas(ax, width, height)
    shift = (width - size[0]) / 2, below
    placed = {
        v: Box(x=box.x + shift[0], top=box.top + shift[1], width=box.width, height=box.height)
        for v, box in boxes.items()
    }
    top = height - _EDGE
    if title:
        canvas.text(_EDGE, top - 0.1, one_line(title), size=11, max_width=width - 2 * _EDGE, bold=True)
        top -= 0.3
    _legend(canvas, head, top)
    for k, line in enumerate(reversed(foot)):
        canvas.text(_EDGE, _EDGE + 0.04 + 0.16 * k, line, size=_SMALL, max_width=width, colour=MUTED)
    for t, children in shape.children.items():
        _branches(canvas, shown, placed, t, children)
    for v, card in shown.items():
        if isinstance(card, LeafCard):
            _leaf(canvas, card, placed[v])
        elif isinstance(card, FormulaCard):
            _formula(canvas, card, placed[v])
        else:
            _card(canvas, card, placed[v])
    return canvas.ax


def _caption(tree: HyperplaneTree, shape: Outline, shown: dict[int, AnyCard]) -> str:
    splits = [card for card in shown.values() if isinstance(card, Card)]
    formulas = [card for card in shown.values() if isinstance(card, FormulaCard)]
    parts = []
    if not splits:
        who = "every training sample" if shape.left_out else "every sample"
        parts = [f"No node splits: {who} gets the same {'formula' if formulas else 'label'}."]
    if splits or any(card.bars for card in formulas):
        of = "weight of a feature" if tree.scaling.is_identity else "weight of a feature on its training range"
        parts.append(f"Bars: {of}; a bar to the right adds to the sum, a bar to the left reduces it.")
    if any(card.counts.any() for card in splits):
        parts.append("Width of a branch: its share of the samples.")
    if note := left_out_text(shape, verbose=False):
        parts.append(f"{note[0].upper()}{note[1:]}.")
    if tree.certificate is not None:
        parts.append(f"Proved: {tree.certificate.statement}.")
    return " ".join(parts)


# -- head -----------------------------------------------------------------------------------------------------------


def _legend_lines(tree: HyperplaneTree, max_width: float) -> list[list[tuple[int, str, float]]]:
    """Return the lines of the legend: class, name and width of each entry; none for trees of numbers."""
    if not isinstance(tree, Tree):
        return []
    lines: list[list[tuple[int, str, float]]] = [[]]
    used = 0.0
    for k, label in enumerate(tree.classes):
        name = one_line(label)
        width = min(0.2 + text_width(name, _TITLE) + 0.2, max_width)
        if lines[-1] and used + width > max_width:
            lines.append([])
            used = 0.0
        lines[-1].append((k, name, width))
        used += width
    return lines


def _legend(canvas: InchCanvas, lines: list[list[tuple[int, str, float]]], top: float) -> None:
    for row, line in enumerate(lines):
        x, y = _EDGE, top - 0.1 - 0.22 * row
        for k, name, width in line:
            canvas.box(x, y - 0.055, 0.11, 0.11, fill=class_colour(k))
            canvas.text(x + 0.17, y, name, size=_TITLE, max_width=width - 0.25)
            x += width


# -- branches -------------------------------------------------------------------------------------------------------


def _branches(
    canvas: InchCanvas, shown: dict[int, AnyCard], boxes: dict[int, Box], t: int, children: tuple[int, int]
) -> None:
    parent, total = boxes[t], shown[t].counts.sum()
    for child, side, word in zip(children, (-1, 1), ("not met", "met"), strict=True):
        box = boxes[child]
        share = shown[child].counts.sum() / total if total else 0.5
        start = (parent.x + side * parent.width / 6, parent.bottom)
        canvas.curve(start, (box.x, box.top), colour=LINE_COLOUR, width=1.2 + 6 * share)
        canvas.text(
            (start[0] + box.x) / 2, (start[1] + box.top) / 2, word, size=_SMALL, max_width=0.6, colour=MUTED,
            align="center", background=BACKGROUND,
        )  # fmt: skip


# -- cards ----------------------------------------------------------------------------------------------------------


def _card(canvas: InchCanvas, card: Card, box: Box) -> None:
    canvas.box(box.left, box.bottom, box.width, box.height, fill=BACKGROUND, edge="#8a949c", corner=0.06)
    left, right = box.left + _PAD, box.left + box.width - _PAD
    y = box.top - _PAD - 0.45 * _ROW
    if len(card.counts) == 1:  # a tree of numbers
        canvas.text(right, y, samples_text(float(card.counts[0])), size=_TEXT, max_width=right - left, align="right")
        y -= 0.2 * _ROW
    else:
        _samples(canvas, card.counts, left, right, y, align="right")
        y -= 0.8 * _ROW
        _share_bar(canvas, card.counts, left, right, y)
    y = _weights(canvas, card, left, right, y - 0.95 * _ROW) - 0.15 * _ROW
    canvas.line([left, right], [y + 0.6 * _ROW] * 2, colour=LINE_COLOUR, width=0.6)
    for line in _rule_lines(card, box.width):
        canvas.text(left, y, line, size=_TEXT, max_width=right - left - 0.02, bold=True)
        y -= _ROW
    if card.target_classes is not None:
        _target_classes(canvas, card.target_classes, left, right, y)


def _weights(canvas: InchCanvas, card: Card | FormulaCard, left: float, right: float, y: float) -> float:
    """Draw the features of a card below each other from ``y`` on; return the height below them."""
    if card.bars:
        columns = _columns(card, right - left)
        for bar in card.bars:
            _weight(canvas, bar, columns, left, right, y)
            y -= _ROW
    if card.more:
        canvas.text(left, y, f"+ {card.more} more", size=_SMALL, max_width=right - left, colour=MUTED)
        y -= _ROW
    return y


def _formula(canvas: InchCanvas, card: FormulaCard, box: Box) -> None:
    colour, empty = class_colour(0), not card.counts.any()
    fill = tint(colour, 0.04 if empty else 0.1)
    canvas.box(box.left, box.bottom, box.width, box.height, fill=fill, edge=colour, corner=0.12, line=1.2)
    left, right = box.left + _PAD, box.left + box.width - _PAD
    y = box.top - _PAD - 0.5 * _ROW
    canvas.text(box.x, y, card.head, size=_TITLE, max_width=right - left, bold=True, align="center")
    y = _weights(canvas, card, left, right, y - 1.05 * _ROW)
    for note in (samples_text(float(card.counts.sum())), card.limits):
        canvas.text(box.x, y, note, size=_SMALL, max_width=right - left, colour=MUTED, align="center")
        y -= _ROW


def _target_classes(
    canvas: InchCanvas, target_classes: tuple[list[int], list[int]], left: float, right: float, y: float
) -> None:
    """Draw a square for each class of a split, first the classes that should not meet its rule."""
    words = ("should not meet it", "should")
    max_width = right - left - sum(text_width(word, _SMALL) + 0.16 for word in words)
    step = min(0.13, max_width / sum(len(side) for side in target_classes))
    x = left
    for word, classes in zip(words, target_classes, strict=True):
        canvas.text(x, y, word, size=_SMALL, max_width=right - x, colour=MUTED)
        x += text_width(word, _SMALL) + 0.09
        for k in classes:
            canvas.box(x, y - 0.045, 0.7 * step, 0.09, fill=class_colour(k), layer=4)
            x += step
        x += 0.07


def _columns(card: Card | FormulaCard, width: float) -> tuple[float, float]:
    """Return the maximum length of a bar and the width of the numbers; names get the rest, within limits."""
    numbers = max(text_width(bar.number, _SMALL) for bar in card.bars) if card.bars[0].number else 0.0
    gaps = 0.08 + (0.06 if numbers else 0.0)
    needed = max(text_width(bar.name, _TEXT) for bar in card.bars)
    names = min(needed, width - numbers - gaps - 2 * _MIN_BAR)
    return min(_MAX_BAR, (width - names - numbers - gaps) / 2), numbers


def _weight(canvas: InchCanvas, bar: Bar, columns: tuple[float, float], left: float, right: float, y: float) -> None:
    """Draw name, bar and number of a feature side by side."""
    reach, numbers = columns
    zero = right - numbers - (0.06 if numbers else 0.0) - reach
    canvas.text(left, y, bar.name, size=_TEXT, max_width=zero - reach - left - 0.07)
    canvas.box(min(zero, zero + reach * bar.length), y - 0.045, abs(reach * bar.length), 0.09, fill=_BAR)
    canvas.line([zero, zero], [y - 0.09, y + 0.09], colour="#8a949c", width=0.6)
    if bar.number:
        canvas.text(right, y, bar.number, size=_SMALL, max_width=numbers + 0.01, align="right")


def _leaf(canvas: InchCanvas, leaf: LeafCard, box: Box) -> None:
    colour, empty = class_colour(leaf.code), not leaf.counts.any()
    fill = tint(colour, 0.06 if empty else 0.16)
    canvas.box(box.left, box.bottom, box.width, box.height, fill=fill, edge=colour, corner=0.12, line=1.2)
    left, right = box.left + _PAD, box.left + box.width - _PAD
    y = box.top - _PAD - 0.5 * _ROW
    canvas.text(box.x, y, leaf.label, size=_TITLE, max_width=right - left, bold=True, align="center")
    y -= 1.05 * _ROW
    _samples(canvas, leaf.counts, left, right, y, align="center")
    y -= 0.85 * _ROW
    _share_bar(canvas, leaf.counts, left, right, y)


def _share_bar(canvas: InchCanvas, counts: FloatArray, left: float, right: float, y: float) -> None:
    """Draw a bar with one part per class, as long as its share of the samples."""
    total = counts.sum()
    if not total:
        canvas.box(left, y - 0.035, right - left, 0.07, fill=BACKGROUND, edge=LINE_COLOUR, line=0.5)
        return
    x = left
    for k, count in enumerate(counts):
        width = (right - left) * count / total
        canvas.box(x, y - 0.035, width, 0.07, fill=class_colour(k), layer=3)
        x += width


def _samples(canvas: InchCanvas, counts: FloatArray, left: float, right: float, y: float, *, align: str) -> None:
    """Draw the counts of the classes, each with its colour; of more than two, classes without samples are left out."""
    many = len(counts) > 2
    entries = [(k, count_text(c)) for k, c in enumerate(counts) if c or not many]
    if not counts.any():
        x = {"right": right, "center": (left + right) / 2}[align]
        canvas.text(x, y, "no samples", size=_SMALL, max_width=right - left, colour=MUTED, align=align)
        return
    widths = [0.13 + text_width(text, _TEXT) + 0.09 for _, text in entries]
    # If the line is too long, the smallest counts are replaced by the number of these classes.
    note = 0.0
    while sum(widths) + note > right - left + 0.09 and len(entries) > 1:
        smallest = int(np.argmin([counts[k] for k, _ in entries]))
        del entries[smallest], widths[smallest]
        note = text_width(f"+ {len(counts)}", _SMALL) + 0.09
    used = sum(widths) + note - 0.09
    x = max(left, right - used if align == "right" else (left + right - used) / 2)
    for (k, text), width in zip(entries, widths, strict=True):
        canvas.box(x, y - 0.045, 0.09, 0.09, fill=class_colour(k), layer=4)
        canvas.text(x + 0.13, y, text, size=_TEXT, max_width=right - x - 0.11, colour=TEXT_COLOUR)
        x += width
    if note:
        left_out = np.count_nonzero(counts) - len(entries)
        canvas.text(x, y, f"+ {left_out}", size=_SMALL, max_width=note, colour=MUTED)
