"""A tree in words: rules that can be checked by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margotree.tree.outline import Outline, outline
from margotree.tree.protocol import TreeLike
from margotree.tree.scaling import FloatArray

#: How far rounding the printed numbers may move ``h`` of any sample in the training range, in margins.
_BLUR = 0.01

_BAR = "|   "

#: Keeps a term on one line while wrapping; turned into a plain space at the end.
_GLUE = "\N{NO-BREAK SPACE}"


def export_text(
    tree: TreeLike, *, digits: int | None = None, units: str = "user", width: int = 100, simplify: bool = True
) -> str:
    """The rules from the root down, with the features' names and the training samples of each class.

    The samples that meet a rule go into the first block below it, the others into the block after ``else``.
    Only selected features (:data:`~margotree.tree.SELECTED`) are shown, the heaviest first; how many smaller ones
    were left out is said.  A node that never splits (``w = 0``, up to rounding) is shown as what lies behind it.
    Splits that change no training sample's label are left out, and named below the rules, unless ``simplify`` is
    False.
    Numbers get as many ``digits`` as it takes to place every sample of the training range to a hundredth of the
    margin, or the number asked for; :meth:`~margotree.tree.Tree.save` keeps all of them.
    """
    shape = outline(tree, simplify=simplify)
    lines = _lines(tree, shape, shape.root, digits, units, width)
    note = left_out_words(shape)
    if note:
        lines.append(f"({note})")
    return "\n".join(lines)


def left_out_words(shape: Outline) -> str:
    """What a simplified outline does not show; empty if it shows all."""
    if not shape.left_out:
        return ""
    which = ", ".join(f"[{t}]" for t in shape.left_out)
    one = len(shape.left_out) == 1
    return f"not shown: split{'' if one else 's'} {which}, which change{'s' if one else ''} no training sample's label"


def _lines(tree: TreeLike, shape: Outline, v: int, digits: int | None, units: str, width: int) -> list[str]:
    if v not in shape.children:
        return [f"=> {tree.classes[shape.label[v]]}   ({_samples(tree, v)})"]
    inner = width - len(_BAR)
    left, right = shape.children[v]
    met = _lines(tree, shape, right, digits, units, inner)
    rest = _lines(tree, shape, left, digits, units, inner)
    return [
        f"[{v}] {_samples(tree, v)}",
        *_rule(tree, v, digits, units, width),
        *_wanted(tree, v, width),
        *(_BAR + line for line in met),
        "else",
        *(_BAR + line for line in rest),
    ]


def _wanted(tree: TreeLike, t: int, width: int) -> list[str]:
    """Which classes an upper split of several classes is meant to part."""
    words = wanted_words(tree, t)
    return textwrap.wrap(f"({words})", width, initial_indent="   ", subsequent_indent="    ") if words else []


def wanted_words(tree: TreeLike, t: int) -> str:
    """Which classes should meet the rule of node ``t`` and which should not; empty where that says nothing."""
    wanted = tree.wanted(t)
    if wanted is None:
        return ""
    left, right = (", ".join(str(tree.classes[k]) for k in side) or "none" for side in wanted)
    return f"meant for {right}; else {left}"


def _samples(tree: TreeLike, v: int) -> str:
    counts = tree.counts[v]
    if not counts.any():
        return "no training samples"
    # Of many classes those that are not there are left out.
    shown = [(c, label) for c, label in zip(counts, tree.classes, strict=True) if c or len(counts) <= 3]
    parts = ", ".join(f"{count_text(c)} {label}" for c, label in shown)
    total = count_text(counts.sum())
    return f"{total} sample{'' if total == '1' else 's'}: {parts}"


def count_text(c: float) -> str:
    """A number of samples; weighted ones may show a fraction."""
    return f"{c:.0f}" if abs(c - round(c)) < 1e-9 * max(1.0, c) else f"{c:.2f}"


def _rule(tree: TreeLike, t: int, digits: int | None, units: str, width: int) -> list[str]:
    rule = rule_of(tree, t, digits=digits, units=units)
    lines = textwrap.wrap(
        "if " + rule.condition(tree.features), width, subsequent_indent="   ", break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    lines = [line.replace(_GLUE, " ") for line in lines]
    left_out = f"   (of negligible weight and left out: {rule.left_out} of the features)"
    return lines + ([left_out] if rule.left_out else [])


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A node's rule with its numbers as they are printed: the weighted sum of ``features`` is ``>= threshold``.

    ``features`` are positions, the heaviest (in scaled units) first, ``weights`` their signed numbers.  A rule of one
    feature has ``weights`` 1 or -1, so that its threshold is the feature's own limit.  ``left_out`` counts the features
    of negligible weight.
    """

    features: tuple[int, ...]
    weights: tuple[str, ...]
    threshold: str
    left_out: int

    @property
    def flipped(self) -> bool:
        """Whether a rule of one feature is an upper limit: ``-x >= -5`` reads ``x <= 5``."""
        return self.weights[0].startswith("-")

    @property
    def limit(self) -> str:
        """The limit of a rule of one feature."""
        return _negated(self.threshold) if self.flipped else self.threshold

    def condition(self, names: Sequence[str]) -> str:
        """The rule as text; no-break spaces keep a term together."""
        if len(self.features) == 1:
            return f"{names[self.features[0]]} {'<=' if self.flipped else '>='} {self.limit}"
        terms = [f"{w.removeprefix('-')} * {names[j]}" for j, w in zip(self.features, self.weights, strict=True)]
        minus = [w.startswith("-") for w in self.weights]
        signs = ["-" if minus[0] else "", *("- " if m else "+ " for m in minus[1:])]
        parts = [sign + term for sign, term in zip(signs, terms, strict=True)]
        return " ".join(part.replace(" ", _GLUE) for part in [*parts, f">= {self.threshold}"])


def rule_words(tree: TreeLike, t: int) -> str:
    """Node ``t``'s rule on one line, in the user's units; empty if it does not split."""
    if not tree.splits.w[t].any():
        return ""
    return rule_of(tree, t).condition(tree.features).replace(_GLUE, " ")


def rule_of(tree: TreeLike, t: int, *, digits: int | None = None, units: str = "user") -> Rule:
    """Node ``t``'s rule with as many digits as it takes (see :func:`export_text`), or as asked for."""
    shown = tree.selected()[t]
    if not shown.any():
        shown = tree.splits.w[t] != 0
    order = np.flatnonzero(shown)[np.argsort(-np.abs(tree.splits.w[t][shown]), kind="stable")]
    split = tree.split(t, units=units)
    weights, threshold = split.weights[order], split.threshold
    signs: tuple[str, ...]
    if len(order) == 1:
        # One feature against a limit: easier to read than its product with a weight.
        limit = threshold / abs(weights[0])
        printed = [_number(limit, digits or _enough(np.array([limit]), np.abs(weights)))]
        signs = ("1",) if weights[0] > 0 else ("-1",)
    else:
        largest = np.append(_largest(tree, units)[order], 1.0)
        digits = digits or _enough(np.append(weights, threshold), largest)
        printed = [_number(x, digits) for x in (*weights, threshold)]
        signs = tuple(printed[:-1])
    return Rule(
        features=tuple(int(j) for j in order),
        weights=signs,
        threshold=printed[-1],
        left_out=int(np.count_nonzero(tree.splits.w[t])) - len(order),
    )


def _negated(number: str) -> str:
    if number.startswith("-"):
        return number[1:]
    return number if float(number) == 0 else "-" + number


def _largest(tree: TreeLike, units: str) -> FloatArray:
    """The largest absolute training value of each feature, by the scaling."""
    if units == "scaled":
        return np.ones(tree.n_features)
    return np.maximum(np.abs(tree.scaling.offset), np.abs(tree.scaling.offset + tree.scaling.scale))


def _enough(numbers: FloatArray, size: FloatArray) -> int:
    """The fewest digits, from 3 on, whose rounding moves the sum of ``numbers * size`` by no more than the blur."""
    for digits in range(3, 17):
        rounded = np.array([float(_number(x, digits)) for x in numbers])
        if np.abs(rounded - numbers) @ size <= _BLUR:
            return digits
    return 17


def _number(x: float, digits: int) -> str:
    x += 0.0  # no "-0"
    if x != 0 and not 1e-5 <= abs(x) < 1e9:
        return f"{x:.{digits - 1}e}"
    return np.format_float_positional(x, precision=digits, unique=False, fractional=False, trim="-")
