"""What the estimators share: reading data, stating the problem, handing out the tree."""

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

from margotree.engines import Limits, RunControl, solve
from margotree.engines.run_control import Listener, holding_ctrl_c
from margotree.estimators.automatic_band import resolve_eps
from margotree.estimators.fit_loops import NestedFitInterrupted
from margotree.estimators.fit_warnings import (
    CutOffWarning,
    FewLeavesWarning,
    FewSplitsWarning,
    RareClassWarning,
    UnwrittenProofWarning,
    cut_off,
    few_leaves,
    few_splits,
    rare_classes,
    remark,
)
from margotree.estimators.initial_tree import read_start
from margotree.estimators.input_data import FloatArray, Samples, check_labels, distinct, explained, read_samples
from margotree.estimators.parameters import CONSTRAINTS, Constraint, check_parameters, threads
from margotree.estimators.proof_checks import check_proof
from margotree.private_names import within_scikit_learn_loop
from margotree.problem import Multiclass, Problem, Splits, TrainingProblem
from margotree.progress import Progress
from margotree.proof.check import Proved
from margotree.proof.write import ProofWriter
from margotree.solution import Certificate, Solution, Stopped
from margotree.tree import Scaling, Tree
from margotree.tree.verification import Verified

#: However long reading the data takes, the search has this share of the time limit.
_SEARCH_SHARE = 0.8


class TreeClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Common ground of all the tree classifiers; use one of its subclasses.

    A subclass says how to state its problem (:meth:`_problem`), how to read a start (:meth:`_first`), who solves it
    (:meth:`_solve`) and what a saved tree needs to state the problem again (:meth:`_json_terms`).
    """

    tree_: Tree
    certificate_: Certificate
    classes_: NDArray[Any]
    #: Whether more than two classes are welcome.
    _multi_class = False
    #: What the parameters may be.
    _constraints: ClassVar[Mapping[str, Constraint]] = CONSTRAINTS

    # -- training -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TreeClassifier:
        """Train the tree.

        ``X`` is an array or DataFrame of numbers, ``y`` holds labels of two classes or more (MM-SVM-OCT takes two),
        ``sample_weight`` says how much each sample counts (0 is as good as absent).  Ctrl-C ends the search: the fit
        then returns with the best tree so far, and ``certificate_.stopped`` says ``"interrupted"``.  Inside a loop of
        scikit-learn (``GridSearchCV``, ``cross_val_score``, ensembles) it ends the loop instead.

        Warns (:mod:`margotree.estimators.fit_warnings`) if a class has a handful of rows, if there are more classes
        than leaves, or if most splits change no training sample's label, and then says what to try.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._constraints)
        control = RunControl(self._limits())
        check_labels(y)
        with explained(X):
            X, y = validate_data(self, X, y, dtype=np.float64)
        samples = read_samples(
            owner, X, y, sample_weight, getattr(self, "class_weight", None), multi_class=self._multi_class
        )
        scaling = self._scaling(samples)
        problem = self._problem(samples, scaling)
        start = self._first(problem, scaling, samples, control)
        with Progress(getattr(self, "verbose", 0)) as listener:
            seconds = max(control.remaining, _SEARCH_SHARE * control.limits.time)
            solution = self._solve(problem, start, replace(control.limits, time=seconds), listener)
        if solution.certificate.stopped == Stopped.INTERRUPTED and within_scikit_learn_loop():
            raise NestedFitInterrupted("a fit of a loop was cut short: it is no result")
        with holding_ctrl_c() as interrupted:
            self.tree_ = self._grow(solution, samples, scaling, problem)
            self.certificate_ = solution.certificate
            self.classes_ = samples.classes
        if interrupted.is_set():
            raise KeyboardInterrupt("interrupted after the search; the tree is complete, and kept as tree_")
        for words, kind in self._remarks(samples, problem):
            remark(words, kind)
        return self

    def _remarks(self, samples: Samples, problem: Any) -> list[tuple[str, type[UserWarning]]]:
        """What the user should know about the data or the tree; empty words where there is nothing to say."""
        return [(rare_classes(samples), RareClassWarning)]

    def _scaling(self, samples: Samples) -> Scaling:
        minmax = getattr(self, "scale", None) == "minmax"
        return Scaling.minmax(samples.X) if minmax else Scaling.identity(samples.X.shape[1])

    @abstractmethod
    def _problem(self, samples: Samples, scaling: Scaling) -> Any:
        """The training problem, in scaled units."""

    @abstractmethod
    def _first(self, problem: Any, scaling: Scaling, samples: Samples, control: RunControl) -> Splits | str | None:
        """The first tree: the name of a heuristic, nothing, or splits that are allowed in ``problem``."""

    @abstractmethod
    def _solve(self, problem: Any, start: Splits | str | None, limits: Limits, listener: Listener | None) -> Solution:
        """The best tree an engine finds."""

    @abstractmethod
    def _json_terms(self, problem: Any, samples: Samples) -> dict[str, Any]:
        """The terms of the problem as JSON values, for whoever wants to state it again."""

    def _leaf_class(self, problem: Any, splits: Splits) -> NDArray[np.int64]:
        """The class of every leaf; empty where it follows from the side alone."""
        return np.zeros(0, dtype=np.int64)

    def _engine(self) -> str:
        return str(getattr(self, "engine", "auto"))

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

    def _grow(self, solution: Solution, samples: Samples, scaling: Scaling, problem: TrainingProblem) -> Tree:
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

    # -- using --------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each sample."""
        predicted: NDArray[Any] = self._routed(X, Tree.predict)
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:
        """Class shares among the training samples of each sample's leaf, by weight (``class_weight`` left aside).

        A leaf without training samples gives the shares of the nearest node above that has some.
        """
        shares: FloatArray = self._routed(X, Tree.predict_proba)
        return shares

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The number of the leaf each sample ends in."""
        leaf: NDArray[np.int64] = self._routed(X, Tree.apply)
        return leaf

    def decision_path(self, X: Any) -> csr_matrix:
        """Sparse indicator of the nodes and leaves each sample passes, one row a sample."""
        return csr_matrix(self._tree().decision_path(self._checked(X)))

    @property
    def selected_features_(self) -> NDArray[np.int64]:
        """Indices of the features some split uses: ``|w| >= 5e-4`` in scaled units; ``tree_.selected()`` tells
        which split uses which."""
        return np.flatnonzero(self._tree().selected().any(axis=0))

    def export_text(
        self, *, digits: int | None = None, units: str = "user", width: int = 100, simplify: bool = True
    ) -> str:
        """The rules in words, in the features' own names and units.

        Splits that change no training sample's label are left out unless ``simplify`` is False.
        """
        return self._tree().export_text(digits=digits, units=units, width=width, simplify=simplify)

    def plot(self, X: Any = None, y: Any = None, ax: Any = None, **options: Any) -> Any:
        """A picture of the tree on matplotlib axes, which are returned; see :func:`margotree.plots.plot_tree`."""
        return self._tree().plot(None if X is None else self._checked(X), y, ax, **options)

    def to_html(self, path: str | PathLike[str], X: Any = None, y: Any = None, *, title: str | None = None) -> None:
        """Write a page on which to explore the tree, one file that needs no network; see :meth:`Tree.to_html`."""
        self._tree().to_html(path, None if X is None else self._checked(X), y, title=title)

    def to_sql(self, *, table: str | None = None) -> str:
        """The tree as one SQL expression; see :func:`margotree.export.to_sql`."""
        return self._tree().to_sql(table=table)

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
        """Recompute value and feasibility of the tree on its training data; what comes back prints as a table.

        Raises :class:`~margotree.solution.VerificationError` if what the certificate claims does not hold on them.
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
            Memory that the check may take, in GB; by default it follows from the sizes of proof and data.
        max_work : float, optional
            Billions of operations that it may take (about as many seconds); by default as above.

        Returns
        -------
        Proved
            The cost of the tree and the bound that are proved, and the ``statement`` of what they are about: model,
            terms, columns, rows used and left out, weights.  Prints as a table.

        Raises
        ------
        margotree.proof.check.Refused
            With the place and the reason, if the file proves nothing; its subclass ``LimitReached`` if the check would
            take more memory or work than it may.
        """
        return check_proof(
            self._tree(), path, self._checked(X), np.asarray(y), sample_weight,
            max_memory=max_memory, max_work=max_work,
        )  # fmt: skip

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tree as JSON; :func:`margotree.load` reads it back as a :class:`~margotree.tree.Tree`."""
        self._tree().save(path)

    def _tree(self) -> Tree:
        check_is_fitted(self)
        return self.tree_

    def _checked(self, X: Any) -> FloatArray:
        with explained(X):
            checked: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return checked

    def _looked_at(self, X: Any) -> FloatArray:
        """Checked in all but its numbers, which a tree that routes many rows looks at anyway."""
        with explained(X):
            rows: FloatArray = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        return rows

    def _routed(self, X: Any, use: Callable[[Tree, FloatArray], Any]) -> Any:
        """What ``use`` makes of tree and rows; a missing number is told in scikit-learn's words."""
        tree, rows = self._tree(), self._looked_at(X)
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
    """Common ground of the margin tree classifiers; use one of its subclasses."""

    _multi_class = True

    def decision_function(self, X: Any) -> FloatArray:
        """How far each sample is from the other label, 1 being a margin; positive means ``classes_[1]``.

        The smallest ``|h|`` among the splits on its way whose other side leads to the other label; see
        :meth:`margotree.tree.Tree.decision_function`.  It ranks: fit for ROC curves and ``CalibratedClassifierCV``.
        For more than two classes there is a column for each, and the largest is the label's.
        """
        return self._tree().decision_function(self._checked(X))

    def _problem(self, samples: Samples, scaling: Scaling) -> Problem:
        terms, several = self._terms(), len(samples.classes) > 2
        stated = coded_samples(samples, scaling) if several else signed_samples(samples, scaling)
        terms["eps"] = resolve_eps(terms["eps"], len(stated["y"]))
        if not several:
            return Problem.make(**stated, **terms)
        if terms.pop("max_weight", None) is not None:
            raise ValueError(
                f"max_weight is for two classes, and these samples are of {len(samples.classes)}; leave it at None"
            )
        return Problem.make(**stated, task=Multiclass(len(samples.classes)), **terms)

    def _leaf_class(self, problem: Problem, splits: Splits) -> NDArray[np.int64]:
        labels = problem.evaluate(splits).choices.labels
        return labels.ravel()

    def _remarks(self, samples: Samples, problem: Problem) -> list[tuple[str, type[UserWarning]]]:
        return [
            *super()._remarks(samples, problem),
            (few_leaves(samples, problem.depth), FewLeavesWarning),
            (few_splits(self.tree_, problem.C), FewSplitsWarning),
            (cut_off(self.tree_), CutOffWarning),
        ]

    def _terms(self) -> dict[str, Any]:
        """The parameters that state the problem."""
        names = ("depth", "C", "eps", "budget", "alpha", "max_weight")
        return {name: value for name, value in self.get_params(deep=False).items() if name in names}

    def _start(self) -> Any:
        return getattr(self, "start", None)

    def _first(self, problem: Problem, scaling: Scaling, samples: Samples, control: RunControl) -> Splits | str | None:
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
        if proof is not None and proof.trouble:
            remark(f"the proof {proof.trouble}; the tree and its certificate are complete", UnwrittenProofWarning)
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

    def _grow(self, solution: Solution, samples: Samples, scaling: Scaling, problem: TrainingProblem) -> Tree:
        tree = super()._grow(solution, samples, scaling, problem)
        if not isinstance(problem, Problem):
            return tree
        sides = problem.evaluate(solution.splits).choices.sides
        if not sides.size:
            return tree
        return replace(tree, terms={**tree.terms, "n_classes": problem.task.n_classes, "sides": sides.tolist()})


def coded_samples(samples: Samples, scaling: Scaling) -> dict[str, Any]:
    """The same for any number of classes, labelled 0, 1, ..."""
    weight = samples.weight * samples.class_weight[samples.y]
    X, y, weight = distinct(samples.X, samples.y.astype(np.float64), weight, scaling)
    return {"X": X, "y": y.astype(np.int64), "weight": weight}


def signed_samples(samples: Samples, scaling: Scaling) -> dict[str, Any]:
    """The samples of two classes as a margin problem takes them: scaled, labelled -1 and +1, equal ones merged."""
    signs = np.where(samples.y == 1, 1.0, -1.0)
    weight = samples.weight * samples.class_weight[samples.y]
    X, y, weight = distinct(samples.X, signs, weight, scaling)
    return {"X": X, "y": y, "weight": weight}
