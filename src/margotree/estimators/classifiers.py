"""Base classes of the tree classifiers.

:class:`TreeClassifier` adds to the base class of estimators what classes need: labels,
probabilities and exports. :class:`MarginTreeClassifier` adds the training problems of two and of several classes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from margotree.estimators.automatic_band import resolve_band
from margotree.estimators.base import TreeEstimator
from margotree.estimators.fit_warnings import (
    CutOffWarning,
    FewLeavesWarning,
    FewSplitsWarning,
    RareClassWarning,
    cut_off_warning,
    few_leaves_warning,
    few_splits_warning,
    rare_class_warning,
)
from margotree.estimators.initial_tree import class_splits
from margotree.estimators.input_data import ClassSamples, FloatArray, merge_duplicates, read_classes
from margotree.estimators.margin import MarginTreeEstimator
from margotree.estimators.parameters import rounding_options
from margotree.estimators.probabilities import fit_probabilities
from margotree.problem import Multiclass, Problem, Splits, TrainingProblem
from margotree.solution import Solution
from margotree.tree import HyperplaneTree, Scaling, Tree


class TreeClassifier(ClassifierMixin, TreeEstimator[ClassSamples, Tree]):
    """Base class of all tree classifiers."""

    classes_: NDArray[Any]
    #: Whether more than two classes are allowed.
    _multi_class = False

    def _read(self, X: FloatArray, y: NDArray[Any], sample_weight: Any) -> ClassSamples:
        owner, class_weight = type(self).__name__, getattr(self, "class_weight", None)
        return read_classes(owner, X, y, sample_weight, class_weight, multi_class=self._multi_class)

    def _fit_warnings(self, samples: ClassSamples, problem: Any) -> list[tuple[str, type[UserWarning]]]:
        return [(rare_class_warning(samples), RareClassWarning)]

    def _leaf_class(self, problem: Any, splits: Splits) -> NDArray[np.int64]:
        """The class of every leaf; empty if the side of the last split determines it."""
        return np.zeros(0, dtype=np.int64)

    def _make_tree(self, solution: Solution, samples: ClassSamples, scaling: Scaling, problem: TrainingProblem) -> Tree:
        tree = Tree(
            splits=solution.splits,
            scaling=scaling,
            classes=samples.classes,
            leaf_class=self._leaf_class(problem, solution.splits),
            feature_names=self._feature_names(),
            eps=problem.eps,
            certificate=solution.certificate,
            terms=self._json_terms(problem, samples),
        )
        return tree.counted(samples.X, samples.y, samples.weight)

    def _label_fields(self, tree: Tree) -> dict[str, Any]:
        whole = tree.classes.dtype.kind in "iu"
        return {"whole": whole, "spelling": () if whole else tuple(map(str, tree.classes.tolist()))}

    def _completed(self, tree: Tree, samples: ClassSamples, problem: Any) -> Tree:
        return self._with_probabilities(self._rounded(self._pruned(tree, samples), samples), samples, problem)

    def _with_probabilities(self, tree: Tree, samples: ClassSamples, problem: TrainingProblem) -> Tree:
        """The tree with the rule of probabilities that the parameter ``proba`` names, if there is one."""
        return tree

    def _pruned(self, tree: Tree, samples: ClassSamples) -> Tree:
        """The tree with fewer numbers to read, if the parameter ``prune`` is a penalty."""
        penalty = getattr(self, "prune", None)
        if penalty is None:
            return tree
        return tree.pruned(samples.X, samples.classes[samples.y], samples.weight, penalty=float(penalty))

    def _rounded(self, tree: Tree, samples: ClassSamples) -> Tree:
        """The tree with short numbers, if the parameter ``round`` says so."""
        options = rounding_options(getattr(self, "round", None))
        return (
            tree if options is None else tree.rounded(samples.X, samples.classes[samples.y], samples.weight, **options)
        )

    def _store(self, tree: Tree, samples: ClassSamples) -> None:
        super()._store(tree, samples)
        self.classes_ = samples.classes

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities, by the rule of the parameter ``proba``; see :meth:`Tree.predict_proba`.

        They estimate the shares of the classes in the training data by ``sample_weight``, without ``class_weight``.
        With ``proba="margin"``, ``predict`` returns the class with the largest product of probability and class weight,
        which is the most probable class if the class weights are equal.  Trees without this parameter (the baselines)
        have the class shares of the leaf.
        """
        shares: FloatArray = self._routed(X, lambda tree, rows: tree.predict_proba(rows))
        return shares

    def plot_calibration(self, X: Any, y: Any, ax: Any = None, **options: Any) -> Any:
        """Draw how reliable the probabilities are on samples; see :func:`margotree.plots.plot_calibration`."""
        return self._tree().plot_calibration(self._checked(X), y, ax, **options)

    def to_sql(self, *, table: str | None = None, proba: Any = None) -> str:
        """The tree as an SQL expression of the label, or of a probability; see :func:`margotree.export.to_sql`."""
        return self._tree().to_sql(table=table, proba=proba)

    def to_c(self, *, name: str = "margotree") -> str:
        """The tree as C source; see :func:`margotree.export.to_c`."""
        return self._tree().to_c(name=name)

    def to_python(self) -> str:
        """The tree as a Python module without dependencies; see :func:`margotree.export.to_python`."""
        return self._tree().to_python()

    def to_onnx(self, *, float32: bool = False, columns: bool = False) -> Any:
        """The tree as an ONNX model (extra ``onnx``); see :func:`margotree.export.to_onnx`."""
        return self._tree().to_onnx(float32=float32, columns=columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._multi_class
        return tags


class MarginTreeClassifier(TreeClassifier, MarginTreeEstimator[ClassSamples, Tree]):
    """Base class of the margin tree classifiers."""

    _multi_class = True

    def decision_function(self, X: Any) -> FloatArray:
        """Decision values: the distance of each sample from the other label in margins; positive for ``classes_[1]``.

        The absolute value is the smallest ``|h|`` of the splits on the sample's path whose other side leads to the
        other label; see :meth:`margotree.tree.Tree.decision_function`.  The values rank samples, as ROC curves and
        ``CalibratedClassifierCV`` require.  For more than two classes there is one column per class, and the predicted
        class has the largest value.
        """
        return self._tree().decision_function(self._checked(X))

    def _problem(self, samples: ClassSamples, scaling: Scaling) -> Problem:
        terms, multiclass = self._terms(), len(samples.classes) > 2
        data = coded_samples(samples, scaling) if multiclass else signed_samples(samples, scaling)
        terms["eps"] = resolve_band(terms["eps"], len(data["y"]))
        if not multiclass:
            return Problem.make(**data, **terms)
        if terms.pop("max_weight", None) is not None:
            raise ValueError(
                f"max_weight is for two classes, but y has {len(samples.classes)} classes; leave max_weight at None"
            )
        return Problem.make(**data, task=Multiclass(len(samples.classes)), **terms)

    def _hyperplanes_of(self, tree: HyperplaneTree, scaling: Scaling, samples: ClassSamples) -> Splits:
        return class_splits(tree, scaling, samples.classes)

    def _leaf_class(self, problem: Problem, splits: Splits) -> NDArray[np.int64]:
        return problem.evaluate(splits).choices.labels.ravel()

    def _fit_warnings(self, samples: ClassSamples, problem: Problem) -> list[tuple[str, type[UserWarning]]]:
        return [
            *super()._fit_warnings(samples, problem),
            (few_leaves_warning(samples, problem.depth), FewLeavesWarning),
            (few_splits_warning(self.tree_, problem.C), FewSplitsWarning),
            (cut_off_warning(self.tree_), CutOffWarning),
        ]

    def _json_terms(self, problem: Problem, samples: ClassSamples) -> dict[str, Any]:
        of_classes = {"max_weight": problem.max_weight, "class_weight": samples.class_weight.tolist()}
        return super()._json_terms(problem, samples) | of_classes

    def _make_tree(self, solution: Solution, samples: ClassSamples, scaling: Scaling, problem: TrainingProblem) -> Tree:
        tree = super()._make_tree(solution, samples, scaling, problem)
        if not isinstance(problem, Problem):
            return tree
        choices = problem.evaluate(solution.splits).choices
        if choices.labels.size:
            sides = {"n_classes": problem.task.n_classes, "sides": choices.sides.tolist()}
            tree = replace(tree, terms={**tree.terms, **sides})
        return tree

    def _with_probabilities(self, tree: Tree, samples: ClassSamples, problem: TrainingProblem) -> Tree:
        kind = getattr(self, "proba", "leaf")
        if kind == "leaf" or not isinstance(problem, Problem):
            return tree
        return replace(tree, probabilities=fit_probabilities(kind, tree, problem, samples.class_weight))


def coded_samples(samples: ClassSamples, scaling: Scaling) -> dict[str, Any]:
    """The samples of a multiclass problem: scaled, labelled 0, 1, ..., duplicates merged."""
    weight = samples.weight * samples.class_weight[samples.y]
    X, y, weight = merge_duplicates(samples.X, samples.y.astype(np.float64), weight, scaling)
    return {"X": X, "y": y.astype(np.int64), "weight": weight}


def signed_samples(samples: ClassSamples, scaling: Scaling) -> dict[str, Any]:
    """The samples of a two-class problem: scaled, labelled -1 and +1, duplicates merged."""
    signs = np.where(samples.y == 1, 1.0, -1.0)
    weight = samples.weight * samples.class_weight[samples.y]
    X, y, weight = merge_duplicates(samples.X, signs, weight, scaling)
    return {"X": X, "y": y, "weight": weight}
