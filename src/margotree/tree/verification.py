"""Recomputation of the objective and feasibility of a saved tree from its training data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margotree import lazy_registry
from margotree.problem import Choices, Evaluation, Finding, Multiclass, Problem, TrainingProblem
from margotree.problem.tasks import task_from_record
from margotree.small_tables import html_table, text_table
from margotree.solution import Certificate, Solution, VerificationError, verify
from margotree.tree.labels import class_positions
from margotree.tree.protocol import SplitTree, TreeLike
from margotree.tree.scaling import TargetScaling

#: The models whose problem is a :class:`~margotree.problem.Problem`.
MARGIN_MODELS = frozenset({"margot", "hfs", "sfs"})


class TreeOfNumbers(SplitTree, Protocol):
    """A tree of numbers; :class:`~margotree.tree.RegressionTree` explains its parts."""

    @property
    def target(self) -> TargetScaling: ...


class Verified:
    """The result of :meth:`~margotree.tree.Tree.verify`: recomputed values, printed beside the claimed ones.

    Attributes
    ----------
    finding : Finding
        The result of ``problem.evaluate``; its attributes are available here, too.
    certificate : Certificate
        The certificate of the tree.
    eps : float or None
        The band width of the training problem; None for problems without a band.
    """

    _COLUMN_TITLES = ("", "claimed", "recomputed")

    def __init__(self, finding: Finding, certificate: Certificate, eps: float | None = None) -> None:
        self.finding, self.certificate, self.eps = finding, certificate, eps

    @property
    def objective(self) -> float:
        return self.finding.objective

    @property
    def feasible(self) -> bool:
        return self.finding.feasible

    @property
    def violations(self) -> list[str]:
        return self.finding.violations

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "finding":
            raise AttributeError(name)
        return getattr(self.finding, name)

    def __str__(self) -> str:
        return text_table(self._COLUMN_TITLES, self._rows())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self._COLUMN_TITLES, self._rows())

    def _rows(self) -> list[tuple[str, str, str]]:
        bound = self.certificate.bound
        rows = [
            ("objective", f"{self.certificate.objective:.9g}", f"{self.objective:.9g}"),
            ("an allowed tree", "yes", "yes" if self.feasible else "no"),
            *self._band(),
            ("bound", "none" if math.isinf(bound) else f"{bound:.9g}", "not recomputed: computed by the engine"),
        ]
        values = getattr(self.finding, "node_values", ())
        return rows + [(f"value of node [{t}]", "", f"{value:.9g}") for t, value in enumerate(values)]

    def _band(self) -> list[tuple[str, str, str]]:
        """Return the row about the band; none for problems without a band."""
        if self.eps is None:
            return []
        claimed = "" if math.isnan(self.certificate.eps) else f"{self.certificate.eps:g}"
        return [("band beside upper splits", claimed, f"{self.eps:g}")]


def verify_tree(tree: SplitTree, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Verified:
    """State the training problem again and compare the tree with its certificate; see ``Tree.verify``."""
    model = tree.terms.get("model")
    if tree.certificate is None or not (model in MARGIN_MODELS or lazy_registry.is_registered(f"restate {model}")):
        raise ValueError("this tree has no certificate of a known training problem, so there is nothing to verify")
    problem = tree.restated(X, y, sample_weight)
    found = verify(problem, Solution(splits=tree.hyperplanes, certificate=tree.certificate))
    # For models that choose leaf labels, the value was computed with the best labels: the tree must have these.
    labels = found.choices.labels if isinstance(found, Evaluation) else getattr(found, "label", np.zeros(0))
    if labels.size and not np.array_equal(labels.ravel(), tree.leaf_outcome):
        raise VerificationError("a leaf predicts another class than the heaviest of the samples in it")
    if not (math.isnan(tree.certificate.eps) or tree.certificate.eps == problem.eps):
        raise VerificationError(
            f"the certificate is about a band of {tree.certificate.eps!r}, the tree has {problem.eps!r}"
        )
    return Verified(found, tree.certificate, problem.eps if isinstance(problem, Problem) else None)


def restate_classes(tree: TreeLike, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> TrainingProblem:
    """Return the training problem of a tree of classes; for several classes with the choices of the tree."""
    code, scaled = class_positions(tree.classes, y), tree.scaled(X)
    weight = np.ones(len(code)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not len(code) == len(scaled) == len(weight):
        raise ValueError(f"X, y and weights must be of one length, got {len(scaled)}, {len(code)} and {len(weight)}")
    counts = weight > 0
    model = str(tree.terms["model"])
    state = _margin if model in MARGIN_MODELS else lazy_registry.get(f"restate {model}")
    try:
        problem: TrainingProblem = state(tree.terms, tree.depth, scaled[counts], code[counts], weight[counts])
    except KeyError as error:
        raise VerificationError(f"the tree's terms have no {error}, so its training problem cannot be stated") from None
    except (TypeError, ValueError, IndexError) as error:
        raise VerificationError(f"the tree's terms and these data make no training problem: {error}") from None
    if isinstance(problem, Problem) and problem.task.n_classes > 2:
        # The certificate is about the sides and labels of the tree, not about the best ones.
        try:
            sides = np.array(tree.terms.get("sides") or [], dtype=np.int64).reshape(-1, problem.task.n_classes)
            return problem.with_choices(Choices(sides=sides, labels=tree.leaf_class.reshape(-1, 2)))
        except (TypeError, ValueError) as error:
            raise VerificationError(f"the tree's own labels make no sense: {error}") from None
    return problem


def restate_numbers(
    tree: TreeOfNumbers, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> TrainingProblem:
    """Return the training problem of a tree of numbers."""
    scaled, targets = tree.scaled(X), np.asarray(y, dtype=np.float64).ravel()
    weight = np.ones(len(targets)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if not len(targets) == len(scaled) == len(weight):
        raise ValueError(f"X, y and weights must be of one length, got {len(scaled)}, {len(targets)} and {len(weight)}")
    used, terms = weight > 0, tree.terms
    try:
        return Problem.make(
            scaled[used], tree.target.apply(targets[used]), task=task_from_record(terms["task"]), depth=tree.depth,
            C=terms["C"], eps=terms["eps"], budget=terms.get("budget"), alpha=terms.get("alpha"), weight=weight[used],
            groups=terms.get("groups"),
        )  # fmt: skip
    except KeyError as error:
        raise VerificationError(f"the tree's terms have no {error}, so its training problem cannot be stated") from None
    except (TypeError, ValueError) as error:
        raise VerificationError(f"the tree's terms and these data make no training problem: {error}") from None


def _margin(
    terms: Mapping[str, Any], depth: int, X: NDArray[np.float64], code: NDArray[np.int64], weight: NDArray[np.float64]
) -> Problem:
    K = int(terms.get("n_classes") or 2)
    class_weight = np.asarray(terms.get("class_weight") or [1.0] * K)
    named: dict[str, Any] = {k: terms.get(k) for k in ("C", "budget", "alpha", "groups")}
    if K > 2:
        weight = weight * class_weight[code]
        return Problem.make(X, code, task=Multiclass(K), depth=depth, eps=terms["eps"], weight=weight, **named)
    named["max_weight"] = terms.get("max_weight")
    signs = np.where(code == 1, 1.0, -1.0)
    return Problem.make(X, signs, depth=depth, eps=terms["eps"], weight=weight * class_weight[code], **named)
