"""The warnings of a fit about its data and its tree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.estimators.input_data import ClassSamples
from margotree.solution import CUT_OFF, Proved
from margotree.tree import HyperplaneTree, Tree

#: A class with fewer rows is rare.
RARE_CLASS_ROWS = 10

#: With a larger gap a longer search may find a better tree.
_LARGE_GAP = 0.01

#: The factor of C from level to level in the suggestion of a C per level.
_LEVEL_FACTOR = 100.0

#: The largest C that is suggested; the automatic grid of the CV classifiers ends at a tenth of it.
_LARGEST_C = 1e4


class FewSplitsWarning(UserWarning):
    """Most splits of the tree change no training sample's label."""


class FewLeavesWarning(UserWarning):
    """There are more classes than leaves."""


class RareClassWarning(UserWarning):
    """A class has fewer than 10 rows."""


class CutOffWarning(UserWarning):
    """The time limit cut off a fit, or fits on folds, before all splits of a first tree were trained."""


class UnwrittenProofWarning(UserWarning):
    """The requested proof could not be written to its file."""


def rare_class_warning(samples: ClassSamples) -> str:
    """The warning about classes with few rows; empty if there are none."""
    rows = np.bincount(samples.y, minlength=len(samples.classes))
    few = [f"{samples.classes[k]!s} ({n})" for k, n in enumerate(rows) if n < RARE_CLASS_ROWS]
    if not few:
        return ""
    return (
        f"fewer than {RARE_CLASS_ROWS} rows of class {', '.join(few)}: the tree is not reliable for such a class, and "
        "its accuracy cannot be measured; collect more rows, or interpret the tree with care"
    )


def cut_off_warning(tree: HyperplaneTree) -> str:
    """The warning that the time limit cut off the fit; empty if it did not."""
    return CUT_OFF if tree.certificate is not None and tree.certificate.cut_off else ""


def cut_off_fits_warning(cut_off: NDArray[np.bool_], scores: NDArray[np.float64]) -> str:
    """The warning about settings without a score because the time limit cut off their fits; empty if there are none."""
    settings, fits = int(cut_off.any(axis=1).sum()), int(cut_off.sum())
    if not fits:
        return ""
    when = "before all splits of a first tree were trained"
    if np.all(np.isnan(scores)):
        return (
            f"the time limit cut off every fit on a fold ({fits}) {when}: no setting has a score, best_score_ is NaN, "
            "and the setting in the middle of the shallowest ones is used; increase time_limit, or try fewer settings"
        )
    return (
        f"the time limit cut off {fits} fit{'s' * (fits > 1)} on folds {when}: {settings} of the {len(cut_off)} "
        "settings were therefore not considered (see cut_off_); increase time_limit, or try fewer settings"
    )


def few_leaves_warning(samples: ClassSamples, depth: int) -> str:
    """The warning that there are more classes than leaves; empty if there are not."""
    classes, leaves = len(samples.classes), 2**depth
    if classes <= leaves:
        return ""
    return (
        f"{classes} classes, but a tree of depth {depth} has {leaves} leaves: at least {classes - leaves} of the "
        f"classes are never predicted; use depth {(classes - 1).bit_length()} or more, so that each class has a leaf"
    )


def few_splits_warning(tree: Tree, C: NDArray[np.float64]) -> str:
    """The warning that most splits have no effect although training samples are misclassified; otherwise empty."""
    shown = len(tree.outline().nodes)
    if cut_off_warning(tree):
        return ""  # the time limit, and not C, may be the reason
    if 2 * shown >= tree.n_nodes or not _misclassifies(tree):
        return ""
    levels = [float(np.min(C[2**k - 1 : 2 ** (k + 1) - 1])) for k in range(tree.depth)]
    if shown:
        verb, others = "has" if shown == 1 else "have", "the others"
        effect = f"only {shown} of the {tree.n_nodes} splits {verb} an effect"
    else:
        effect, others = "no split has an effect", "the splits"
    return (
        f"{effect}: at C = {_numbers(levels)} {others} change no training sample's label"
        f"{_larger_C_hint(levels)}{_longer_search_hint(tree)}"
    )


def _larger_C_hint(levels: list[float]) -> str:
    """The hint to try a larger C; for a large C that fewer splits may suffice."""
    if min(levels) >= _LARGEST_C:
        return ".  C is large already: fewer splits suffice, try a smaller depth"
    chosen = ".  MargotClassifierCV (margotree fit --auto) chooses depth and C by cross-validation"
    return f".  Try a larger C{_growing_C_hint(levels)}{chosen}"


def _growing_C_hint(levels: list[float]) -> str:
    if len(levels) == 1 or levels == sorted(set(levels)):
        return ""
    n = len(levels)
    last = min(levels[0] * _LEVEL_FACTOR ** (n - 1), _LARGEST_C)
    numbers = _numbers([last / _LEVEL_FACTOR ** (n - 1 - k) for k in range(n)])
    return (
        f", or a C per level that increases from the root down, such as {numbers}: margin violations at upper splits "
        "then have a small penalty"
    )


def _longer_search_hint(tree: Tree) -> str:
    """The hint that the search may have been too short; empty if the gap is small."""
    certificate = tree.certificate
    if certificate is None or certificate.proved is Proved.OPTIMAL or not certificate.gap > _LARGE_GAP:
        return ""
    return f".  The search may also have been too short; its certificate states: {certificate.statement}"


def _misclassifies(tree: Tree) -> bool:
    leaves = tree.counts[tree.n_nodes :]
    right = leaves[np.arange(len(leaves)), tree.leaf_class].sum()
    return bool(right < leaves.sum() * (1 - 1e-12))


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{v:g}" for v in (values if len(set(values)) > 1 else values[:1]))
