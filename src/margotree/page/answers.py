"""The part of a page's content that depends on the kind of answer: labels with probabilities, or numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from margotree.tree import HyperplaneTree, RegressionTree, Tree
from margotree.tree.formulas import formula_text, limits_text, printed_formula
from margotree.tree.intervals import half_widths
from margotree.tree.outline import outline
from margotree.tree.probabilities import LABEL_LEAD, SharesOfLeaves
from margotree.tree.rules import NO_BREAK_SPACE
from margotree.tree.sample_paths import SamplePaths
from margotree.tree.score import leaf_targets

#: Predictions have as many decimals as show this share of the spread of the targets.
_PRECISION = 0.01

#: The upper quartile of the standard normal distribution: the number to reach at first.
_UPPER_QUARTILE = 0.6745

#: The share of new samples in the intervals shown.
_COVERAGE = 0.9

#: A formula with more terms is shortened on the cards of the tree.
_MOST_TERMS = 3


def answers_of(
    tree: HyperplaneTree, X: ArrayLike | None, y: ArrayLike | None, paths: SamplePaths | None
) -> dict[str, Any]:
    """Return what the page needs to compute and show answers: ``classes`` and more, or ``numbers``."""
    if isinstance(tree, RegressionTree):
        return {"numbers": _numbers(tree, X, y, paths)}
    assert isinstance(tree, Tree)
    return {
        "classes": [str(label) for label in tree.classes.tolist()],
        "leafClass": tree.leaf_class.tolist(),
        "labelsBelow": [tree.labels_below(reached_only=reached).T.tolist() for reached in (True, False)],
        "probabilities": _probabilities(tree),
    }


def _probabilities(tree: Tree) -> dict[str, Any]:
    """Return the rule of the probabilities: a table with a row per leaf, or the parts of the rule by margins."""
    rule = tree.probabilities
    if isinstance(rule, SharesOfLeaves):
        return {"table": rule.table(tree).tolist()}
    return {**rule.record(), "targets": leaf_targets(tree).T.tolist(), "lead": LABEL_LEAD}


def _numbers(
    tree: RegressionTree, X: ArrayLike | None, y: ArrayLike | None, paths: SamplePaths | None
) -> dict[str, Any]:
    decimals = _decimals(tree.target.scale)
    wanted = tree.target.center + _UPPER_QUARTILE * tree.target.scale
    widths = half_widths(tree.residuals, _COVERAGE).tolist() if tree.residuals else None
    return {
        "target": tree.target_name,
        "center": tree.target.center,
        "scale": tree.target.scale,
        "decimals": decimals,
        "wanted": round(wanted, decimals),
        "formulas": [_formula(tree, leaf) for leaf in range(tree.n_nodes, 2 * tree.n_nodes + 1)],
        "coverage": _COVERAGE,
        "halfWidths": None if widths is None else [_finite(width) for width in widths],
        "errors": None if X is None or y is None or paths is None else _errors(tree, X, y, paths),
    }


def _formula(tree: RegressionTree, leaf: int) -> dict[str, Any]:
    formula, shown = tree.formula(leaf), printed_formula(tree, leaf)
    terms = shown.terms(tree.features)
    brief = " ".join(terms[: _MOST_TERMS + 1])
    if len(terms) > _MOST_TERMS + 1:
        brief = f"{' '.join(terms[:_MOST_TERMS])} + {len(terms) - _MOST_TERMS} more terms"
    return {
        "text": formula_text(tree, leaf).replace(NO_BREAK_SPACE, " "),
        "brief": brief.replace(NO_BREAK_SPACE, " "),
        "features": list(shown.features),
        "constant": formula.constant,
        "low": _finite(formula.low),
        "high": _finite(formula.high),
        "limits": limits_text(tree, leaf),
    }


def _errors(tree: RegressionTree, X: ArrayLike, y: ArrayLike, paths: SamplePaths) -> dict[str, float]:
    """Return the mean absolute error of the samples in each node or leaf that is drawn as a leaf."""
    errors = np.abs(np.asarray(y, dtype=np.float64) - tree.predict(X))
    leaves = outline(tree, simplify=True).leaves
    return {str(v): float(errors[paths.at(v)].mean()) for v in leaves if len(paths.at(v))}


def _decimals(scale: float) -> int:
    return max(0, -math.floor(math.log10(_PRECISION * scale)))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
