"""Base class of the tree estimators: ``fit``, and what classifiers and regressors have in common after it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from margotree.engines import Engine, Limits, RunControl
from margotree.engines.run_control import Listener, NestedFitInterrupted, holding_ctrl_c
from margotree.estimators.input_data import FloatArray, Samples, check_targets, explain_invalid_input
from margotree.estimators.parameters import CONSTRAINTS, Constraint, check_parameters, threads
from margotree.estimators.proof_checks import check_proof
from margotree.notices import warn_from_fit
from margotree.private_names import within_scikit_learn_loop
from margotree.problem import Splits
from margotree.progress import Progress
from margotree.proof.check import Proved
from margotree.solution import Certificate, Solution, Stopped
from margotree.tree import Attributions, HyperplaneTree, Scaling
from margotree.tree.verification import Verified

#: The search has at least this share of the time limit, however long reading the data takes.
_SEARCH_SHARE = 0.8

AnySamples = TypeVar("AnySamples", bound=Samples)
AnyTree = TypeVar("AnyTree", bound=HyperplaneTree)


class TreeEstimator(BaseEstimator, ABC, Generic[AnySamples, AnyTree]):
    """Base class of all tree estimators.

    A subclass reads the targets (:meth:`_read`) and defines the training problem (:meth:`_problem`), the initial tree
    (:meth:`_initial_tree`), the call of an engine (:meth:`_solve`), the fitted tree (:meth:`_make_tree`) and the terms
    of the problem that are saved with it (:meth:`_json_terms`).
    """

    tree_: AnyTree
    certificate_: Certificate
    #: Whether the targets must be numbers.
    _numeric_targets: ClassVar[bool] = False
    #: The allowed values of the parameters.
    _constraints: ClassVar[Mapping[str, Constraint]] = CONSTRAINTS

    # -- training -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the tree.

        Ctrl-C ends the search: ``fit`` returns with the best tree so far, and ``certificate_.stopped`` is
        ``"interrupted"``.  Inside a loop of scikit-learn (``GridSearchCV``, ``cross_val_score``, ensembles) Ctrl-C ends
        the loop instead.

        Parameters
        ----------
        X : array or DataFrame (samples, features)
            The samples; all columns must be numeric.
        y : array (samples,)
            The targets: labels for classifiers, numbers for regressors.
        sample_weight : array (samples,), optional
            The weights of the samples; a sample with weight 0 is left out.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            A warning of :mod:`margotree.estimators.fit_warnings`, for example about a class with few rows; it suggests
            what to try.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        control = RunControl(self._limits())
        samples = self._checked_samples(X, y, sample_weight)
        scaling = self._scaling(samples)
        problem = self._problem(samples, scaling)
        start = self._initial_tree(problem, scaling, samples, control)
        with Progress(getattr(self, "verbose", 0)) as listener:
            seconds = max(control.remaining, _SEARCH_SHARE * control.limits.time)
            solution = self._solve(problem, start, replace(control.limits, time=seconds), listener)
        if solution.certificate.stopped == Stopped.INTERRUPTED and within_scikit_learn_loop():
            raise NestedFitInterrupted("a fit inside a loop was interrupted, and its tree does not count as a result")
        with holding_ctrl_c() as interrupted:
            tree = self._make_tree(solution, samples, scaling, problem)
            self._store(self._completed(tree, samples, problem), samples)
        if interrupted.is_set():
            raise KeyboardInterrupt("interrupted after the search; the tree is complete and stored as tree_")
        for message, category in self._fit_warnings(samples, problem):
            warn_from_fit(message, category)
        return self

    def _checked_samples(self, X: Any, y: Any, sample_weight: Any) -> AnySamples:
        """The samples of a fit, after all checks."""
        check_targets(y)
        with explain_invalid_input(X):
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=self._numeric_targets)
        return self._read(X, y, sample_weight)

    @abstractmethod
    def _read(self, X: FloatArray, y: NDArray[Any], sample_weight: Any) -> AnySamples:
        """The samples with weight above 0 and their targets."""

    def _fit_warnings(self, samples: AnySamples, problem: Any) -> list[tuple[str, type[UserWarning]]]:
        """Messages and categories of possible warnings; the message is empty if there is nothing to warn about."""
        return []

    def _scaling(self, samples: AnySamples) -> Scaling:
        minmax = getattr(self, "scale", None) == "minmax"
        return Scaling.minmax(samples.X) if minmax else Scaling.identity(samples.X.shape[1])

    @abstractmethod
    def _problem(self, samples: AnySamples, scaling: Scaling) -> Any:
        """The training problem, in scaled units."""

    @abstractmethod
    def _initial_tree(
        self, problem: Any, scaling: Scaling, samples: AnySamples, control: RunControl
    ) -> Splits | str | None:
        """The initial tree: the name of a heuristic, None, or feasible splits."""

    @abstractmethod
    def _solve(self, problem: Any, start: Splits | str | None, limits: Limits, listener: Listener | None) -> Solution:
        """The best tree that the engine finds."""

    @abstractmethod
    def _json_terms(self, problem: Any, samples: AnySamples) -> dict[str, Any]:
        """The terms of the problem as JSON values, from which ``verify`` makes the problem again."""

    @abstractmethod
    def _make_tree(self, solution: Solution, samples: AnySamples, scaling: Scaling, problem: Any) -> AnyTree:
        """The fitted tree of a solution."""

    def _completed(self, tree: AnyTree, samples: AnySamples, problem: Any) -> AnyTree:
        """The fitted tree after what follows the search, such as rounding."""
        return tree

    def _store(self, tree: AnyTree, samples: AnySamples) -> None:
        """Set the attributes of the fitted estimator."""
        assert tree.certificate is not None
        self.tree_, self.certificate_ = tree, tree.certificate

    def _feature_names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

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

    # -- prediction and explanation -----------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the target of each sample."""
        predicted: NDArray[Any] = self._routed(X, lambda tree, rows: tree.predict(rows))
        return predicted

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The number of the leaf of each sample."""
        leaf: NDArray[np.int64] = self._routed(X, lambda tree, rows: tree.apply(rows))
        return leaf

    def decision_path(self, X: Any) -> csr_matrix:
        """Sparse 0/1 matrix (samples, nodes and leaves) of the nodes and the leaf on each sample's path."""
        return csr_matrix(self._tree().decision_path(self._checked(X)))

    def get_depth(self) -> int:
        """The number of splits on the longest path, without those that change no training sample's prediction."""
        shape = self._tree().outline()
        return shape.levels(shape.root)

    def get_n_leaves(self) -> int:
        """The number of leaves, where splits that change no training sample's prediction do not count."""
        return len(self._tree().outline().leaves)

    @property
    def coef_(self) -> FloatArray:
        """The weights of the splits (nodes, features) in the units of ``X``.

        A sample goes right at node ``t`` where ``coef_[t] @ x + intercept_[t] >= 0``, up to rounding errors.
        """
        tree = self._tree()
        return np.array([tree.split(t).weights for t in range(tree.n_nodes)]).reshape(tree.n_nodes, tree.n_features)

    @property
    def intercept_(self) -> FloatArray:
        """The constants of the splits (nodes,) in the units of ``X``; see ``coef_``."""
        tree = self._tree()
        return np.array([-tree.split(t).threshold for t in range(tree.n_nodes)])

    @property
    def feature_importances_(self) -> FloatArray:
        """The importance of each feature; see :meth:`margotree.tree.HyperplaneTree.feature_importances`.

        Like those of scikit-learn's trees they are about the training samples; for other samples there is
        ``sklearn.inspection.permutation_importance``.
        """
        return self._tree().feature_importances()

    def attributions(self, X: Any) -> Attributions:
        """What each feature contributes to each prediction; see :meth:`margotree.tree.HyperplaneTree.attributions`.

        ``base + values.sum(axis=1)`` is ``predict_proba(X)`` of a classifier and ``predict(X)`` of a regressor.
        """
        return self._tree().attributions(self._checked(X))

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

        Splits that change no training sample's prediction are left out, unless ``simplify`` is False.  With ``verbose``
        numbers of nodes and counts of samples at splits are printed, too.
        """
        return self._tree().export_text(digits=digits, units=units, width=width, simplify=simplify, verbose=verbose)

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

    def _tree(self) -> AnyTree:
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

    def _routed(self, X: Any, use: Callable[[AnyTree, FloatArray], Any]) -> Any:
        """Apply ``use`` to the tree and the rows of ``X``; the error about missing values is that of scikit-learn."""
        tree, rows = self._tree(), self._checked_except_finite(X)
        try:
            return use(tree, rows)
        except ValueError:
            self._checked(X)
            raise
