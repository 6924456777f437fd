"""Rounding of a trained tree: as few features and digits as keep the labels of the training samples.

Nodes are rounded from the root down. At each node, with the samples that reach it through the rounded rules above:

1. A split that is not needed for any label becomes a node without weights.
2. Features are left out, the least important first, as long as some threshold keeps the labels.
3. Weights get the leading weight 1 and few digits (or become small integers), and the threshold is chosen again: the
   numbers with the fewest digits that keep the labels and nearly keep the objective of the node. Where the nearest
   weights of two digits do not keep the labels, others near them are tried.
4. The hyperplane is the rule times a factor, for which the objective of the node is smallest.

Where a share of the labels may change, the splits divide it. The objective of the result is computed by
:func:`margotree.problem.evaluate`. The bound of the certificate is about all trees, so that it holds for the rounded
tree, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree.problem import Problem, Splits, topology
from margotree.problem.routing import goes_right
from margotree.solution import VerificationError
from margotree.tree.labels import class_positions
from margotree.tree.node_objective import NodeObjective
from margotree.tree.outline import never_splits, outline
from margotree.tree.protocol import TreeLike
from margotree.tree.rules import RoundedRule, decimal_text
from margotree.tree.scaling import FloatArray
from margotree.tree.verification import MARGIN_MODELS

IndexArray = NDArray[np.int64]

#: Styles of rounded rules.
STYLES = ("decimal", "points")

#: The largest number of digits that is tried.
_MOST_DIGITS = 9

#: With ``digits="auto"``: numbers of digits that are tried, and the share of the training labels that may change.
_AUTOMATIC_DIGITS, _AUTOMATIC_LOSS = (2, 3), 0.01

#: Weights of this number of digits are varied, up to this number of them beside the leading one.
_FEW_DIGITS, _MOST_VARIED = 2, 2

#: Scales of point scores: the largest weight of a split is tried with each of these.
_POINTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 200, 500, 1000, 2000, 5000, 10000)

#: The distance of a threshold from the nearest sample below it, as a share of the gap between two samples.
_SHARE_OF_GAP = 0.05

#: The smallest distance of a sum from the threshold, relative to the size of the terms, at which rounding errors of the
#: sum cannot change the side.
_CLEAR = 1e-10

#: Shorter numbers may make the objective of a node larger by this share.
_OBJECTIVE_LOSS = 0.1


def round_tree(
    tree: TreeLike,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    digits: int | str | None = None,
    max_loss: float = 0.0,
    style: str = "decimal",
) -> Rounded:
    """Round the hyperplanes of a tree; see :meth:`margotree.tree.Tree.rounded`."""
    if isinstance(digits, str):
        if digits != "auto":
            raise ValueError(f"digits must be a whole number, 'auto' or None, got {digits!r}")
        return _round_automatically(tree, X, y, sample_weight, style)
    if style not in STYLES:
        raise ValueError(f"style must be one of {', '.join(map(repr, STYLES))}, got {style!r}")
    if digits is not None and not (isinstance(digits, (int, np.integer)) and 1 <= digits <= _MOST_DIGITS):
        raise ValueError(f"digits must be a whole number from 1 to {_MOST_DIGITS}, or None, got {digits!r}")
    if not 0 <= max_loss <= 1:
        raise ValueError(f"max_loss must be a share of the training samples from 0 to 1, got {max_loss!r}")
    if tree.terms.get("model") not in MARGIN_MODELS:
        raise ValueError(f"only trees of margin models (margot, hfs, sfs) are rounded, got {tree.terms.get('model')!r}")
    problem = tree.restated(X, y, sample_weight)
    assert isinstance(problem, Problem)
    rounding = _Rounding(tree, X, y, sample_weight, problem, digits or _MOST_DIGITS, max_loss, style)
    splits = rounding.splits()
    found = problem.evaluate(splits)
    if not found.feasible:
        raise VerificationError("the rounded tree is not feasible: " + "; ".join(found.violations))
    return Rounded(splits=splits, rules=rounding.rules, objective=found.objective, relabelled=rounding.relabelled())


def _round_automatically(
    tree: TreeLike, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, style: str
) -> Rounded:
    """Round with the smallest number of digits with which few labels change."""
    for digits in _AUTOMATIC_DIGITS:
        loss = _AUTOMATIC_LOSS / 2
        rounded = round_tree(tree, X, y, sample_weight, digits=digits, max_loss=loss, style=style)
        if rounded.relabelled <= _AUTOMATIC_LOSS:
            return rounded
    return round_tree(tree, X, y, sample_weight, style=style)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounded:
    """The result of :func:`round_tree`.

    Attributes
    ----------
    splits : Splits
        The hyperplanes, in scaled units.
    rules : dict
        The rule of each node that splits.
    objective : float
        The objective of the rounded tree.
    relabelled : float
        The share of the training samples, by weight, whose label is another than that of the trained tree.
    """

    splits: Splits
    rules: dict[int, RoundedRule]
    objective: float
    relabelled: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    """A rule, the sums and sides of the samples, and the numbers of label changes (by weight) and digits."""

    rule: RoundedRule
    sums: FloatArray
    right: NDArray[np.bool_]
    changed: float
    digits: int

    def is_short(self) -> bool:
        """Whether all weights have at most two digits."""
        return all(_digits_in(weight) <= _FEW_DIGITS for weight in self.rule.weights)


class _Rounding:
    """The samples, the rules so far, and the changes of labels that are still allowed."""

    def __init__(
        self,
        tree: TreeLike,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        problem: Problem,
        digits: int,
        max_loss: float,
        style: str,
    ) -> None:
        code = class_positions(tree.classes, y)
        weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.tree, self.nodes, self.digits, self.style = tree, NodeObjective(problem), digits, style
        self.X, self.code, self.weight = tree.given(X)[weight > 0], code[weight > 0], weight[weight > 0]
        self.at = np.zeros(len(self.X), dtype=np.int64)
        self.label = tree.leaf_class[tree.apply(self.X) - tree.n_nodes]
        self.allowed = max_loss * float(self.weight.sum())
        self.w, self.b = tree.splits.w.copy(), tree.splits.b.copy()
        self.rules: dict[int, RoundedRule] = {}
        #: The number of splits that are still to be rounded, among which the allowed changes are divided.
        self.remaining = max(1, len(outline(tree, simplify=True).nodes))

    def splits(self) -> Splits:
        """Round all nodes, from the root down."""
        for t in range(self.tree.n_nodes):
            rows = np.flatnonzero(self.at == t)
            self.at[rows] = np.where(self._round_node(t, rows), topology.right(t), topology.left(t))
        return Splits(w=self.w, b=self.b)

    def relabelled(self) -> float:
        """The share of the samples, by weight, whose label changed."""
        changed = self.tree.leaf_class[self.at - self.tree.n_nodes] != self.label
        return float(self.weight[changed].sum() / self.weight.sum())

    def _round_node(self, t: int, rows: IndexArray) -> NDArray[np.bool_]:
        """Round a node and return which of its samples go right."""
        costs = [self._costs(child, rows) for child in (topology.left(t), topology.right(t))]
        best = self._best_side(t, rows, costs)
        if best is not None:
            self._remove_split(t, rows, best)
            self._use(float(costs[best].sum()))
            return np.full(len(rows), best == 1)
        found = self._best_candidate(t, rows, _Cuts(*costs))
        if found is None:
            return self.tree.side(self.tree.scaled(self.X[rows]), t)[1]
        self.rules[t] = found.rule
        self.w[t], self.b[t] = found.rule.hyperplane(self.tree.scaling)
        self._use(found.changed)
        self.remaining = max(1, self.remaining - 1)
        return found.right

    def _use(self, changed: float) -> None:
        """Subtract changes of labels from those that are still allowed."""
        self.allowed = max(0.0, self.allowed - changed)

    def _costs(self, v: int, rows: IndexArray) -> FloatArray:
        """The weight of each sample whose label changes if it goes to ``v``, with the trained splits below ``v``."""
        return self.weight[rows] * (self.tree.labels_from(v, self.X[rows]) != self.label[rows])

    # -- splits that are not needed -----------------------------------------------------------------------------

    def _best_side(self, t: int, rows: IndexArray, costs: list[FloatArray]) -> int | None:
        """The side, 0 or 1, to which all samples can go with few changes of labels; None if the split is needed."""
        totals = [float(cost.sum()) for cost in costs]
        if never_splits(self.tree, t) or not len(rows):
            return int(self.tree.splits.b[t] >= 0)
        if min(totals) > 0:
            return int(np.argmin(totals)) if min(totals) <= self.allowed / self.remaining else None
        right = self.tree.side(self.tree.scaled(self.X[rows]), t)[1]
        more = int(2 * float(self.weight[rows[right]].sum()) >= float(self.weight[rows].sum()))
        return more if totals[more] == 0 else 1 - more

    def _remove_split(self, t: int, rows: IndexArray, side: int) -> None:
        """Set the weights of a node to 0, and its offset to the best one that sends all samples to ``side``."""
        self.w[t], self.b[t] = 0.0, self.nodes.best_offset(t, rows, side)

    # -- rules --------------------------------------------------------------------------------------------------

    def _best_candidate(self, t: int, rows: IndexArray, cuts: _Cuts) -> _Candidate | None:
        """The rule with the fewest digits that changes no more labels than allowed, otherwise the fewest labels."""
        split = self.tree.split(t)
        # Where sums are equal, a negligible weight can decide about labels.
        used = np.flatnonzero(split.weights)
        order = used[np.argsort(-np.abs(self.tree.splits.w[t][used]), kind="stable")]
        values, weights = self.X[np.ix_(rows, order)], split.weights[order]
        limit = cuts.at_best(values @ weights, _clear(values, weights)) + self.allowed / self.remaining
        kept = self._needed_features(t, rows, order, cuts, limit)
        # Features that are left out count with their mean.
        means = self.X[rows].mean(axis=0)
        used = order[kept]
        threshold = split.threshold - float(means @ split.weights - means[used] @ split.weights[used])
        columns = values[:, kept], weights[kept]

        def candidates(rounded: Iterable[tuple[tuple[str, ...], int]]) -> list[_Candidate]:
            return [
                one for texts, digits in rounded for one in _candidates(used, *columns, threshold, texts, digits, cuts)
            ]

        found = candidates(self._weights(columns[1]))
        if not any(one.changed <= limit and one.is_short() for one in found):
            found += candidates(self._neighbours(columns[1]))
        return self._shortest(t, rows, found, limit)

    def _needed_features(self, t: int, rows: IndexArray, order: IndexArray, cuts: _Cuts, limit: float) -> IndexArray:
        """Positions in ``order`` of the features without which too many labels or the objective would change.

        Features are tried once each, the least important first; ``limit`` is the largest weight of label changes.
        """
        split, kept = self.tree.split(t), np.ones(len(order), dtype=bool)
        values, weights, threshold = self.X[np.ix_(rows, order)], split.weights[order], split.threshold
        clear, means = _clear(values, weights), values.mean(axis=0)
        best = self._value(t, rows, order, values @ weights, threshold, cuts, clear)
        for k in reversed(range(1, len(order))):
            kept[k] = False
            # The difference to the sum before would have rounding errors that part equal sums.
            sums = values[:, kept] @ weights[kept]
            if cuts.at_best(sums, clear) <= limit:
                moved = threshold - float(means[k] * weights[k])
                if self._value(t, rows, order[kept], sums, moved, cuts, clear) <= (1 + _OBJECTIVE_LOSS) * best:
                    threshold = moved
                    continue
            kept[k] = True
        return np.flatnonzero(kept)

    def _value(
        self, t: int, rows: IndexArray, features: IndexArray, sums: FloatArray, threshold: float, cuts: _Cuts,
        clear: float,
    ) -> float:  # fmt: skip
        """The objective of a node for sums of the trained weights of some features, with the best threshold."""
        ordered = cuts.sorted_by(sums, exact=True, clear=clear)
        if ordered is None:
            return np.inf
        w = np.zeros(self.tree.n_features)
        w[features] = self.tree.splits.w[t][features]
        limit = ordered.target(threshold)
        found = self.nodes.best_factor(
            t, rows, w, self.tree.splits.b[t], sums - limit, sums >= limit, self._trained_norm(t)
        )
        return np.inf if found is None else found[1]

    def _shortest(self, t: int, rows: IndexArray, found: list[_Candidate], limit: float) -> _Candidate | None:
        """The candidate with the fewest digits within the limit of label changes and close to the best objective."""
        finest = max(found, key=lambda one: (one.changed <= limit, one.digits), default=None)
        best = None if finest is None else self._with_factor(t, rows, finest)
        acceptable = np.inf if best is None else (1 + _OBJECTIVE_LOSS) * best[1]
        second: tuple[_Candidate, float] | None = best
        for one in sorted(found, key=lambda one: _rank(one, limit)):
            tried = self._with_factor(t, rows, one)
            if tried is None:
                continue
            if tried[1] <= acceptable or one.changed > limit:
                return tried[0]
            if second is None or tried[1] < second[1]:
                second = tried
        return None if second is None else second[0]

    def _with_factor(self, t: int, rows: IndexArray, one: _Candidate) -> tuple[_Candidate, float] | None:
        """The candidate with its best factor, and the objective of the node; None if no factor is feasible."""
        away = one.sums - float(one.rule.threshold)
        found = self.nodes.best_factor(
            t, rows, *one.rule.hyperplane(self.tree.scaling), -away if one.rule.at_most else away, one.right,
            self._trained_norm(t),
        )  # fmt: skip
        if found is None:
            return None
        rule = replace(one.rule, factor=found[0])
        return (replace(one, rule=rule), found[1]) if np.array_equal(self._sides(rule, rows), one.right) else None

    def _trained_norm(self, t: int) -> float:
        return float(np.linalg.norm(self.tree.splits.w[t]))

    def _sides(self, rule: RoundedRule, rows: IndexArray) -> NDArray[np.bool_]:
        """Whether samples go right by the hyperplane of a rule."""
        w, b = rule.hyperplane(self.tree.scaling)
        right: NDArray[np.bool_] = goes_right(self.tree.scaled(self.X[rows]) @ w + b, b, self.tree.eps)
        return right

    def _weights(self, weights: FloatArray) -> Iterator[tuple[tuple[str, ...], int]]:
        """Rounded weights with the number of their digits, the first one positive, short ones first."""
        signed = weights / weights[0]
        if len(weights) == 1:
            yield ("1",), 0
        elif self.style == "points":
            for scale in _POINTS:
                points = np.rint(signed * (scale / np.abs(signed).max()))
                points = points / max(1, int(np.gcd.reduce(points.astype(np.int64))))
                if points.all() and len(str(int(np.abs(points).max()))) <= self.digits:
                    yield tuple(f"{x:.0f}" for x in points), sum(len(f"{abs(x):.0f}") for x in points)
        else:
            for digits in range(1, self.digits + 1):
                texts = ("1", *(decimal_text(x, digits) for x in signed[1:]))
                yield texts, sum(map(_digits_in, texts[1:]))

    def _neighbours(self, weights: FloatArray) -> Iterator[tuple[tuple[str, ...], int]]:
        """Weights of two digits near the trained ones, but not always the nearest, with the number of their digits.

        Where sums are nearly equal for many samples, small differences of weights decide about their labels; larger
        differences of the same signs decide in the same way.
        """
        if self.style != "decimal" or self.digits < _FEW_DIGITS or not 2 <= len(weights) <= _MOST_VARIED + 1:
            return
        choices = []
        for x in weights[1:] / weights[0]:
            unit = Decimal(1).scaleb(Decimal(repr(float(x))).adjusted() + 1 - _FEW_DIGITS)
            low = (Decimal(repr(float(x))) / unit).to_integral_value(ROUND_FLOOR)
            choices.append([_plain((low + k) * unit) for k in (0, 1, -1, 2) if low + k != 0])
        for texts in product(*choices):
            if all(_digits_in(text) <= _FEW_DIGITS for text in texts):
                yield ("1", *texts), sum(map(_digits_in, texts))


def _candidates(
    features: IndexArray,
    values: FloatArray,
    weights: FloatArray,
    threshold: float,
    texts: tuple[str, ...],
    digits: int,
    cuts: _Cuts,
) -> Iterator[_Candidate]:
    """Rules with the weights ``texts`` of ``digits`` digits, and thresholds from short to long numbers.

    ``values`` and ``weights`` are those of the trained split, ``threshold`` is its threshold.
    """
    numbers = np.array([float(text) for text in texts])
    sums = _sums(values, numbers)
    if not np.all(np.isfinite(sums)):
        return
    # A rule with a negative leading weight is an upper limit. The samples are sorted so that the right ones are last.
    at_most, sign = bool(weights[0] < 0), -1.0 if weights[0] < 0 else 1.0
    k = int(np.argmax(np.abs(numbers)))
    scale = abs(numbers[k] / weights[k])
    # The mean of the samples keeps its distance from the threshold.
    middle = threshold * scale + float(values.mean(axis=0) @ (sign * numbers - weights * scale))
    # Without rounding errors in the sums a threshold may be equal to a sum.
    exact = len(numbers) == 1 or bool(np.all(values == np.rint(values)) and np.all(numbers == np.rint(numbers)))
    ordered = cuts.sorted_by(sign * sums, exact=exact, clear=_clear(values, numbers))
    if ordered is None:
        return
    zero_one = bool(np.all((values == 0) | (values == 1)))
    for text, changed in ordered.thresholds(middle):
        rule = RoundedRule(
            features=tuple(features.tolist()), weights=texts, threshold=_negated(text) if at_most else text,
            at_most=at_most, factor=1.0, zero_one=zero_one,
        )  # fmt: skip
        yield _Candidate(
            rule=rule, sums=sums, right=_meets(rule, sums), changed=changed, digits=digits + _digits_in(text)
        )


class _Cuts:
    """The label changes of samples that go left and right."""

    def __init__(self, left: FloatArray, right: FloatArray) -> None:
        self.left, self.right = left, right

    def at_best(self, sums: FloatArray, clear: float) -> float:
        """The smallest weight of label changes of any threshold between two sums; infinite if all sums are equal."""
        found = self.sorted_by(sums, exact=True, clear=clear)
        return np.inf if found is None else float(found.changed[found.between].min())

    def sorted_by(self, sums: FloatArray, *, exact: bool, clear: float) -> _SortedCuts | None:
        """Sort the samples by ``sums``; None if all are equal.

        A threshold lies at least ``clear`` away from all sums, or is equal to one if they are ``exact``.
        """
        order = np.argsort(sums, kind="stable")
        ordered = sums[order]
        changed = np.concatenate([[0.0], np.cumsum(self.left[order])])
        changed += np.concatenate([np.cumsum(self.right[order][::-1])[::-1], [0.0]])
        between = 1 + np.flatnonzero(ordered[1:] - ordered[:-1] > 4 * clear)
        if not len(between):
            return None
        return _SortedCuts(ordered=ordered, changed=changed, between=between, clear=clear, exact=exact)


@dataclass(frozen=True, kw_only=True, eq=False)
class _SortedCuts:
    """Samples in the order of their sums; ``changed[k]`` is the cost if the first ``k`` go left, the others right."""

    ordered: FloatArray
    changed: FloatArray
    between: IndexArray
    clear: float
    exact: bool

    def thresholds(self, middle: float) -> Iterator[tuple[str, float]]:
        """Thresholds from short to long numbers with their cost: those with a smaller cost than all shorter ones."""
        least = float(self.changed[self.between].min())
        target = self.target(middle)
        spread = max(float(self.ordered[-1] - self.ordered[0]), abs(target), 1e-300)
        best = np.inf
        exponent = Decimal(repr(spread)).adjusted() + 1
        for e in range(exponent, exponent - 2 * _MOST_DIGITS, -1):
            for text in _multiples(target, e):
                if _digits_in(text) <= _MOST_DIGITS and (cost := self._cost(float(text))) < best:
                    best = cost
                    yield text, cost
            if best <= least:
                return

    def target(self, middle: float) -> float:
        """The threshold nearest to ``middle`` with the smallest cost, in the middle of a gap if it has to move."""
        least = float(self.changed[self.between].min())
        good = self.between[self.changed[self.between] <= least]
        low, high = self.ordered[good - 1], self.ordered[good]
        inside = np.flatnonzero((low < middle) & (middle <= high))
        if len(inside):
            k = inside[0]
            slack = _SHARE_OF_GAP * (high[k] - low[k])
            return float(np.clip(middle, low[k] + 2 * slack, high[k] - slack))
        k = int(np.argmin(np.minimum(np.abs(low - middle), np.abs(high - middle))))
        return float(low[k] + (high[k] - low[k]) / 2)

    def _cost(self, threshold: float) -> float:
        """The cost of a threshold; infinite if a rounding error could change the side of a sample."""
        k = int(np.searchsorted(self.ordered, threshold))
        if k in (0, len(self.ordered)):
            return np.inf
        below, above = threshold - self.ordered[k - 1], self.ordered[k] - threshold
        far_enough = max(_SHARE_OF_GAP * (below + above), self.clear)
        if below < far_enough or not (above >= self.clear or (self.exact and above == 0)):
            return np.inf
        return float(self.changed[k])


def _rank(candidate: _Candidate, limit: float) -> tuple[float, int, float]:
    """Candidates within the limit of label changes by digits, then the others by label changes."""
    over = candidate.changed if candidate.changed > limit * (1 + 1e-12) else 0.0
    return over, candidate.digits, candidate.changed


def _clear(values: FloatArray, weights: FloatArray) -> float:
    """The distance between two sums at which rounding errors cannot be its reason."""
    return _CLEAR * float(np.abs(weights) @ np.abs(values).max(axis=0))


def _sums(values: FloatArray, numbers: FloatArray) -> FloatArray:
    """The sums of a rule, added from left to right as they are read."""
    total = np.zeros(len(values))
    for j, number in enumerate(numbers):
        total += number * values[:, j]
    return total


def _meets(rule: RoundedRule, sums: FloatArray) -> NDArray[np.bool_]:
    limit = float(rule.threshold)
    return sums <= limit if rule.at_most else sums >= limit


def _multiples(x: float, exponent: int) -> list[str]:
    """The multiples of ``10**exponent`` next to ``x`` as decimal numbers, the nearest one first."""
    unit = Decimal(1).scaleb(exponent)
    nearest = (Decimal(repr(x)) / unit).to_integral_value()
    found = sorted((nearest + k for k in (-1, 0, 1)), key=lambda n: abs(float(n * unit) - x))
    return [_plain(n * unit) for n in found]


def _plain(x: Decimal) -> str:
    """A decimal number without zeros at the end, with an exponent if it is very large or small."""
    if x == 0:
        return "0"
    digits = len(x.normalize().as_tuple().digits)
    return decimal_text(float(x), digits)


def _negated(text: str) -> str:
    return text[1:] if text.startswith("-") else text if float(text) == 0 else f"-{text}"


def _digits_in(text: str) -> int:
    """The number of significant digits of a decimal number."""
    digits = text.lower().split("e")[0].replace("-", "").replace(".", "").lstrip("0")
    return len(digits.rstrip("0") if "." not in text else digits)
