"""Base classes of the tree classifiers.

:class:`TreeClassifier` has ``fit``, ``predict`` and all other methods; :class:`MarginTreeClassifier` adds what the
margin models share: their training problems, initial trees and engines.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from margotree.engines import Engine, Limits, RunControl, solve
from margotree.engines.run_control import Listener, NestedFitInterrupted, holding_ctrl_c
from margotree.estimators.automatic_band import resolve_eps
from margotree.estimators.fit_warnings import (
    CutOffWarning,
    FewLeavesWarning,
    FewSplitsWarning,
    RareClassWarning,
    UnwrittenProofWarning,
    cut_off_warning,
    few_leaves_warning,
    few_splits_warning,
    rare_class_warning,
)
from margotree.estimators.initial_tree import read_start
from margotree.estimators.input_data import (
    FloatArray,
    Samples,
    check_labels,
    explain_invalid_input,
    merge_duplicates,
    read_samples,
)
from margotree.estimators.parameters import CONSTRAINTS, Constraint, check_parameters, rounding_options, threads
from margotree.estimators.probabilities import fit_probabilities
from margotree.estimators.proof_checks import check_proof
from margotree.notices import warn_from_fit
from margotree.private_names import within_scikit_learn_loop
from margotree.problem import Multiclass, Problem, Splits, TrainingProblem
from margotree.progress import Progress
from margotree.proof.check import Proved
from margotree.proof.write import ProofWriter
from margotree.solution import Certificate, Solution, Stopped
from margotree.tree import Scaling, Tree
from margotree.tree.verification import Verified

#: The search has at least this share of the time limit, however long reading the data takes.
_SEARCH_SHARE = 0.8


class TreeClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base class of all tree classifiers.

    A subclass defines the training problem (:meth:`_problem`), the initial tree (:meth:`_initial_tree`), the call of an
    engine (:meth:`_solve`) and the terms of the problem that are saved with the tree (:meth:`_json_terms`).
    """

    tree_: Tree
    certificate_: Certificate
    classes_: NDArray[Any]
    #: Whether more than two classes are allowed.
    _multi_class = False
    #: The allowed values of the parameters.
    _constraints: ClassVar[Mapping[str, Constraint]] = CONSTRAINTS

    # -- training -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TreeClassifier:
        """Train the tree.

        Ctrl-C ends the search: ``fit`` returns with the best tree so far, and ``certificate_.stopped`` is
        ``"interrupted"``.  Inside a loop of scikit-learn (``GridSearchCV``, ``cross_val_score``, ensembles) Ctrl-C ends
        the loop instead.

        Parameters
        ----------
        X : array or DataFrame (samples, features)
            The samples; all columns must be numeric.
        y : array (samples,)
            The labels, of two or more classes (two for MM-SVM-OCT).
        sample_weight : array (samples,), optional
            The weights of the samples; a sample with weight 0 is left out.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            A warning of :mod:`margotree.estimators.fit_warnings` if a class has few rows, if there are more classes
            than leaves, or if most splits change no training sample's label; it suggests what to try.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._constraints)
        control = RunControl(self._limits())
        check_labels(y)
        with explain_invalid_input(X):
            X, y = validate_data(self, X, y, dtype=np.float64)
        samples = read_samples(
            owner, X, y, sample_weight, getattr(self, "class_weight", None), multi_class=self._multi_class
        )
        scaling = self._scaling(samples)
        problem = self._problem(samples, scaling)
        start = self._initial_tree(problem, scaling, samples, control)
        with Progress(getattr(self, "verbose", 0)) as listener:
            seconds = max(control.remaining, _SEARCH_SHARE * control.limits.time)
            solution = self._solve(problem, start, replace(control.limits, time=seconds), listener)
        if solution.certificate.stopped == Stopped.INTERRUPTED and within_scikit_learn_loop():
            raise NestedFitInterrupted("a fit inside a loop was interrupted, and its tree does not count as a result")
        with holding_ctrl_c() as interrupted:
            tree = self._rounded(self._make_tree(solution, samples, scaling, problem), samples)
            self.tree_ = self._with_probabilities(tree, samples, problem)
            assert self.tree_.certificate is not None
            self.certificate_ = self.tree_.certificate
            self.classes_ = samples.classes
        if interrupted.is_set():
            raise KeyboardInterrupt("interrupted after the search; the tree is complete and stored as tree_")
        for message, category in self._fit_warnings(samples, problem):
            warn_from_fit(message, category)
        return self

    def _fit_warnings(self, samples: Samples, problem: Any) -> list[tuple[str, type[UserWarning]]]:
        """Messages and categories of possible warnings; the message is empty if there is nothing to warn about."""
        return [(rare_class_warning(samples), RareClassWarning)]

    def _scaling(self, samples: Samples) -> Scaling:
        minmax = getattr(self, "scale", None) == "minmax"
        return Scaling.minmax(samples.X) if minmax else Scaling.identity(samples.X.shape[1])

    @abstractmethod
    def _problem(self, samples: Samples, scaling: Scaling) -> Any:
        """The training problem, in scaled units."""

    @abstractmethod
    def _initial_tree(
        self, problem: Any, scaling: Scaling, samples: Samples, control: RunControl
    ) -> Splits | str | None:
        """The initial tree: the name of a heuristic, None, or feasible splits."""

    @abstractmethod
    def _solve(self, problem: Any, start: Splits | str | None, limits: Limits, listener: Listener | None) -> Solution:
        """The best tree that the engine finds."""

    @abstractmethod
    def _json_terms(self, problem: Any, samples: Samples) -> dict[str, Any]:
        """The terms of the problem as JSON values, from which ``verify`` makes the problem again."""

    def _leaf_class(self, problem: Any, splits: Splits) -> NDArray[np.int64]:
        """The class of every leaf; empty if the side of the last split determines it."""
        return np.zeros(0, dtype=np.int64)

    def _with_probabilities(self, tree: Tree, samples: Samples, problem: TrainingProblem) -> Tree:
        """The tree with the rule of probabilities that the parameter ``proba`` names, if there is one."""
        return tree

    def _rounded(self, tree: Tree, samples: Samples) -> Tree:
        """The tree with short numbers, if the parameter ``round`` says so."""
        options = rounding_options(getattr(self, "round", None))
        return (
            tree if options is None else tree.rounded(samples.X, samples.classes[samples.y], samples.weight, **options)
        )

    def _engine(self) -> str | Engine:
        engine: str | Engine = getattr(self, "engine", "auto")
        return engine

    def _limits(self) -> Limits:
        settings = self.get_params(deep=False)
        limit, nodes = settings["time_limit"], settings.get("node_limit")
        return Limits(
            time=math.inf if limit is None else float(limit),
            nodes=math.inf if nodes is None else int(nodes),
            gap=float(settings.get("gap", Limits.gap)),
            n_jobs=threads(settings["n_jobs"]),
            seed=int(check_random_state(settings["random_state"]).randint(2**31 - 1)),
        )

    def _make_tree(self, solution: Solution, samples: Samples, scaling: Scaling, problem: TrainingProblem) -> Tree:
        names = getattr(self, "feature_names_in_", None)
        tree = Tree(
            splits=solution.splits,
            scaling=scaling,
            classes=samples.classes,
            leaf_class=self._leaf_class(problem, solution.splits),
            feature_names=None if names is None else tuple(names),
            eps=problem.eps,
            certificate=solution.certificate,
            terms=self._json_terms(problem, samples),
        )
        return tree.counted(samples.X, samples.y, samples.weight)

    # -- prediction and export ----------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of each sample."""
        predicted: NDArray[Any] = self._routed(X, Tree.predict)
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict class probabilities, by the rule of the parameter ``proba``; see :meth:`Tree.predict_proba`.

        They estimate the shares of the classes in the training data by ``sample_weight``, without ``class_weight``.
        With ``proba="margin"``, ``predict`` returns the class with the largest product of probability and class weight,
        which is the most probable class if the class weights are equal.  Trees without this parameter (the baselines)
        have the class shares of the leaf.
        """
        shares: FloatArray = self._routed(X, Tree.predict_proba)
        return shares

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The number of the leaf of each sample."""
        leaf: NDArray[np.int64] = self._routed(X, Tree.apply)
        return leaf

    def decision_path(self, X: Any) -> csr_matrix:
        """Sparse 0/1 matrix (samples, nodes and leaves) of the nodes and the leaf on each sample's path."""
        return csr_matrix(self._tree().decision_path(self._checked(X)))

    @property
    def selected_features_(self) -> NDArray[np.int64]:
        """Indices of the features that at least one split uses (``|w| >= 5e-4`` in scaled units).

        ``tree_.selected()`` has the features of each split.
        """
        return np.flatnonzero(self._tree().selected().any(axis=0))

    def export_text(
        self,
        *,
        digits: int | None = None,
        units: str = "user",
        width: int = 100,
        simplify: bool = True,
        verbose: bool = False,
    ) -> str:
        """The rules of the tree as text, by default in the names and units of the features.

        Splits that change no training sample's label are left out, unless ``simplify`` is False.  With ``verbose``
        numbers of nodes and counts of samples at splits are printed, too.
        """
        return self._tree().export_text(digits=digits, units=units, width=width, simplify=simplify, verbose=verbose)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None, **options: Any) -> Any:
        """Draw the tree on matplotlib axes and return them; see :func:`margotree.plots.plot_tree`."""
        return self._tree().plot(None if X is None else self._checked(X), y, ax, **options)

    def plot_calibration(self, X: Any, y: Any, ax: Any = None, **options: Any) -> Any:
        """Draw how reliable the probabilities are on samples; see :func:`margotree.plots.plot_calibration`."""
        return self._tree().plot_calibration(self._checked(X), y, ax, **options)

    def to_html(self, path: str | PathLike[str], X: Any = None, y: Any = None, *, title: str | None = None) -> None:
        """Write an interactive report page, a single HTML file; see :meth:`Tree.to_html`."""
        self._tree().to_html(path, None if X is None else self._checked(X), y, title=title)

    def to_sql(self, *, table: str | None = None, proba: Any = None) -> str:
        """The tree as an SQL expression of the label, or of a probability; see :func:`margotree.export.to_sql`."""
        return self._tree().to_sql(table=table, proba=proba)

    def to_c(self, *, name: str = "margotree") -> str:
        """The tree as C source; see :func:`margotree.export.to_c`."""
        return self._tree().to_c(name=name)

    def to_python(self) -> str:
        """The tree as a Python module without dependencies; see :func:`margotree.export.to_python`."""
        return self._tree().to_python()

    def to_onnx(self, *, float32: bool = False) -> Any:
        """The tree as an ONNX model (extra ``onnx``); see :func:`margotree.export.to_onnx`."""
        return self._tree().to_onnx(float32=float32)

    def verify(self, X: Any, y: Any, sample_weight: Any = None) -> Verified:
        """Recompute objective and feasibility of the tree on its training data; the result prints as a table.

        Raises :class:`~margotree.solution.VerificationError` if the certificate does not hold on them.
        """
        return self._tree().verify(self._checked(X), y, sample_weight)

    def check_proof(
        self,
        path: str | PathLike[str],
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        max_memory: float | None = None,
        max_work: float | None = None,
    ) -> Proved:
        """Check a proof of this tree against its training data.

        Parameters
        ----------
        path : str or path
            The file that a fit with ``proof=path`` wrote.
        X, y, sample_weight
            The training data.
        max_memory : float, optional
            The largest memory of the check in GB; by default derived from the sizes of proof and data.
        max_work : float, optional
            The largest number of operations in billions (each takes about a second); by default as above.

        Returns
        -------
        Proved
            The proved objective of the tree, the proved bound, and the ``statement``: model, terms, columns, rows used
            and left out, weights.  Prints as a table.

        Raises
        ------
        margotree.proof.check.Refused
            If the proof is not valid, with the position and the reason; its subclass ``LimitReached`` if the check
            would exceed the limit of memory or work.
        """
        return check_proof(
            self._tree(), path, self._checked(X), np.asarray(y), sample_weight,
            max_memory=max_memory, max_work=max_work,
        )  # fmt: skip

    def save(self, path: str | PathLike[str]) -> None:
        """Save the tree as JSON; :func:`margotree.load` reads it as a :class:`~margotree.tree.Tree`."""
        self._tree().save(path)

    def _tree(self) -> Tree:
        check_is_fitted(self)
        return self.tree_

    def _checked(self, X: Any) -> FloatArray:
        with explain_invalid_input(X):
            checked: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return checked

    def _checked_except_finite(self, X: Any) -> FloatArray:
        """``X`` after all checks except that all values are finite, which the routing of many rows includes."""
        with explain_invalid_input(X):
            rows: FloatArray = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        return rows

    def _routed(self, X: Any, use: Callable[[Tree, FloatArray], Any]) -> Any:
        """Apply ``use`` to the tree and the rows of ``X``; the error about missing values is that of scikit-learn."""
        tree, rows = self._tree(), self._checked_except_finite(X)
        try:
            return use(tree, rows)
        except ValueError:
            self._checked(X)
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._multi_class
        return tags


class MarginTreeClassifier(TreeClassifier):
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

    def _problem(self, samples: Samples, scaling: Scaling) -> Problem:
        terms, multiclass = self._terms(), len(samples.classes) > 2
        data = coded_samples(samples, scaling) if multiclass else signed_samples(samples, scaling)
        terms["eps"] = resolve_eps(terms["eps"], len(data["y"]))
        if not multiclass:
            return Problem.make(**data, **terms)
        if terms.pop("max_weight", None) is not None:
            raise ValueError(
                f"max_weight is for two classes, but y has {len(samples.classes)} classes; leave max_weight at None"
            )
        return Problem.make(**data, task=Multiclass(len(samples.classes)), **terms)

    def _leaf_class(self, problem: Problem, splits: Splits) -> NDArray[np.int64]:
        return problem.evaluate(splits).choices.labels.ravel()

    def _fit_warnings(self, samples: Samples, problem: Problem) -> list[tuple[str, type[UserWarning]]]:
        return [
            *super()._fit_warnings(samples, problem),
            (few_leaves_warning(samples, problem.depth), FewLeavesWarning),
            (few_splits_warning(self.tree_, problem.C), FewSplitsWarning),
            (cut_off_warning(self.tree_), CutOffWarning),
        ]

    def _terms(self) -> dict[str, Any]:
        """The parameters of the training problem."""
        names = ("depth", "C", "eps", "budget", "alpha", "max_weight")
        return {name: value for name, value in self.get_params(deep=False).items() if name in names}

    def _start(self) -> Any:
        return getattr(self, "start", None)

    def _initial_tree(
        self, problem: Problem, scaling: Scaling, samples: Samples, control: RunControl
    ) -> Splits | str | None:
        return read_start(self._start(), problem, scaling, samples.classes)

    def _solve(
        self,
        problem: Problem,
        start: Splits | str | None,
        limits: Limits,
        listener: Listener | None,
    ) -> Solution:
        path = getattr(self, "proof", None)
        proof = None if path is None else ProofWriter(path)
        solution = solve(
            problem, engine=self._engine(), limits=limits, start=start, listener=listener, proof=proof,
            scheduler=getattr(self, "scheduler", None),
        )  # fmt: skip
        if proof is not None and proof.failure:
            warn_from_fit(
                f"the proof {proof.failure}; the tree and its certificate are complete", UnwrittenProofWarning
            )
        return solution

    def _json_terms(self, problem: Problem, samples: Samples) -> dict[str, Any]:
        return {
            "model": problem.model,
            "C": problem.C.tolist(),
            "eps": problem.eps,
            "budget": None if problem.budget is None else problem.budget.tolist(),
            "alpha": None if problem.alpha is None else problem.alpha.tolist(),
            "max_weight": getattr(problem, "max_weight", None),
            "class_weight": samples.class_weight.tolist(),
        }

    def _make_tree(self, solution: Solution, samples: Samples, scaling: Scaling, problem: TrainingProblem) -> Tree:
        tree = super()._make_tree(solution, samples, scaling, problem)
        if not isinstance(problem, Problem):
            return tree
        choices = problem.evaluate(solution.splits).choices
        if choices.labels.size:
            sides = {"n_classes": problem.task.n_classes, "sides": choices.sides.tolist()}
            tree = replace(tree, terms={**tree.terms, **sides})
        return tree

    def _with_probabilities(self, tree: Tree, samples: Samples, problem: TrainingProblem) -> Tree:
        kind = getattr(self, "proba", "leaf")
        if kind == "leaf" or not isinstance(problem, Problem):
            return tree
        return replace(tree, probabilities=fit_probabilities(kind, tree, problem, samples.class_weight))


def coded_samples(samples: Samples, scaling: Scaling) -> dict[str, Any]:
    """The samples of a multiclass problem: scaled, labelled 0, 1, ..., duplicates merged."""
    weight = samples.weight * samples.class_weight[samples.y]
    X, y, weight = merge_duplicates(samples.X, samples.y.astype(np.float64), weight, scaling)
    return {"X": X, "y": y.astype(np.int64), "weight": weight}


def signed_samples(samples: Samples, scaling: Scaling) -> dict[str, Any]:
    """The samples of a two-class problem: scaled, labelled -1 and +1, duplicates merged."""
    signs = np.where(samples.y == 1, 1.0, -1.0)
    weight = samples.weight * samples.class_weight[samples.y]
    X, y, weight = merge_duplicates(samples.X, signs, weight, scaling)
    return {"X": X, "y": y, "weight": weight}
