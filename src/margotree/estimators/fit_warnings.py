"""What a fit says about its data and its tree beside the certificate: Python warnings, one kind each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from margotree.estimators.input_data import Samples
from margotree.solution import CUT_OFF, Proved
from margotree.tree import Tree

#: A class of fewer rows than this is too small to learn from.
HANDFUL = 10

#: A gap from which a better tree may well have been missed.
_WIDE = 0.01

#: What a C per level grows by in the advice given.
_STEP = 100.0

_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


class FewSplitsWarning(UserWarning):
    """Most splits of the tree change no training sample's label."""


class FewLeavesWarning(UserWarning):
    """There are more classes than leaves."""


class RareClassWarning(UserWarning):
    """A class has only a handful of rows."""


class CutOffWarning(UserWarning):
    """The time limit cut off a fit, or fits on folds, before all splits of a first tree were trained."""


class UnwrittenProofWarning(UserWarning):
    """The proof that was asked for could not be written to its file."""


@contextmanager
def without_fit_warnings() -> Iterator[None]:
    """No remarks by the fits inside (in this thread), such as those of a search that tries poor settings on purpose."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


def remark(words: str, kind: type[UserWarning]) -> None:
    """Warn, on behalf of a fit, whoever called it."""
    if words and not _SILENT.get():
        warnings.warn(words, kind, stacklevel=3)


def rare_classes(samples: Samples) -> str:
    """Which classes have a handful of rows; empty if none."""
    rows = np.bincount(samples.y, minlength=len(samples.classes))
    few = [f"{samples.classes[k]!s} ({n})" for k, n in enumerate(rows) if n < HANDFUL]
    if not few:
        return ""
    return (
        f"fewer than {HANDFUL} rows of class {', '.join(few)}: what is learned of it rests on those rows alone, and "
        "its accuracy cannot be measured; gather more, or read the tree with that in mind"
    )


def cut_off(tree: Tree) -> str:
    """That the fit was cut off by its time limit; empty if it was not."""
    return CUT_OFF if tree.certificate is not None and tree.certificate.cut_off else ""


def cut_off_fits(cut_off: NDArray[np.bool_], scores: NDArray[np.float64]) -> str:
    """How many settings were not scored because the time limit cut off their fits; empty if none."""
    settings, fits = int(cut_off.any(axis=1).sum()), int(cut_off.sum())
    if not fits:
        return ""
    why = "before all splits of a first tree were trained"
    if np.all(np.isnan(scores)):
        return (
            f"the time limit cut off every fit on a fold ({fits}) {why}: no setting has a score, best_score_ is NaN, "
            "and the middle one of the shallowest settings is taken without a choice; give more time, or fewer settings"
        )
    return (
        f"the time limit cut off {fits} fit{'s' * (fits > 1)} on folds {why}: {settings} of the {len(cut_off)} "
        "settings were left out of the choice for it (see cut_off_); give more time, or fewer settings"
    )


def few_leaves(samples: Samples, depth: int) -> str:
    """How deep the tree must be for every class to have a leaf; empty if it is."""
    classes, leaves = len(samples.classes), 2**depth
    if classes <= leaves:
        return ""
    return (
        f"{classes} classes, but a tree of depth {depth} has {leaves} leaves: at least {classes - leaves} of the "
        f"classes are never predicted; take depth {(classes - 1).bit_length()} or more to give each a leaf"
    )


def few_splits(tree: Tree, C: NDArray[np.float64]) -> str:
    """What to try where C left most splits without effect although some training samples are misclassified."""
    shown = len(tree.outline().nodes)
    if cut_off(tree):
        return ""  # says nothing about C
    if 2 * shown >= tree.n_nodes or not _mistakes(tree):
        return ""
    levels = [float(np.min(C[2**k - 1 : 2 ** (k + 1) - 1])) for k in range(tree.depth)]
    if shown:
        count, others = f"only {shown} of the {tree.n_nodes} splits count{'s' * (shown == 1)}", "the others"
    else:
        count, others = "no split counts", "they"
    return (
        f"{count}: at C = {_numbers(levels)} {others} change no training sample's label.  Try a larger C"
        f"{_or_growing(levels)}{_or_longer(tree)}"
    )


def _or_growing(levels: list[float]) -> str:
    if len(levels) == 1 or levels == sorted(set(levels)):
        return ""
    numbers = _numbers([levels[0] * _STEP**k for k in range(len(levels))])
    return (
        f", or one per level that grows from the root down, such as {numbers}: upper splits may then send samples to "
        "the side of the other class at little cost"
    )


def _or_longer(tree: Tree) -> str:
    """Where a better tree may have been missed it need not be C."""
    proof = tree.certificate
    if proof is None or proof.proved is Proved.OPTIMAL or not proof.gap > _WIDE:
        return ""
    return f".  It may also be the search that was too short: of this tree it says that {proof.statement}"


def _mistakes(tree: Tree) -> bool:
    leaves = tree.counts[tree.n_nodes :]
    right = leaves[np.arange(len(leaves)), tree.leaf_class].sum()
    return bool(right < leaves.sum() * (1 - 1e-12))


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{v:g}" for v in (values if len(set(values)) > 1 else values[:1]))
