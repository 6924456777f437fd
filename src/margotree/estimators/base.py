"""Base class of the tree estimators: ``fit``, and what classifiers and regressors have in common after it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from margotree.engines import Engine, Limits, RunControl
from margotree.engines.run_control import Listener, NestedFitInterrupted, holding_ctrl_c
from margotree.estimators.encoded_input import column_names, new_input, training_input
from margotree.estimators.input_data import FloatArray, Samples, check_targets
from margotree.estimators.parameters import CONSTRAINTS, Constraint, check_parameters, threads
from margotree.estimators.proof_checks import check_proof
from margotree.notices import warn_from_fit
from margotree.private_names import within_scikit_learn_loop
from margotree.problem import Splits
from margotree.progress import Progress
from margotree.proof.check import Proved
from margotree.solution import Certificate, Solution, Stopped
from margotree.table.encoding import Encoding
from margotree.table.encoding_json import to_record
from margotree.table.table_description import ENTRY
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
    #: How the columns become features; None if all columns hold numbers.
    encoding_: Encoding | None = None
    n_features_in_: int
    #: Whether the targets must be numbers.
    _numeric_targets: ClassVar[bool] = False
    #: The groups of features of samples that are encoded already.
    _given_groups: tuple[int, ...] | None = None
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
        X : array or DataFrame (samples, columns)
            The samples: numbers, truth values, words (strings, categories, ordered categories) and missing cells. In an
            array, words are allowed in the columns that ``categorical_features`` names.
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
            tree = self._described(self._make_tree(solution, samples, scaling, problem))
            self._store(self._completed(tree, samples, problem), samples)
        if interrupted.is_set():
            raise KeyboardInterrupt("interrupted after the search; the tree is complete and stored as tree_")
        for message, category in self._fit_warnings(samples, problem):
            warn_from_fit(message, category)
        return self

    def _checked_samples(self, X: Any, y: Any, sample_weight: Any) -> AnySamples:
        """The samples of a fit, after all checks."""
        return self._checked_data(X, y, sample_weight)[2]

    def _checked_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, NDArray[Any], AnySamples]:
        """The samples and targets as arrays, and the samples with weight above 0, after all checks."""
        check_targets(y)
        X, y, self.encoding_ = training_input(self, X, y, sample_weight, numeric_targets=self._numeric_targets)
        return X, y, self._read(X, y, sample_weight)

    def count_columns(self, groups: Sequence[int]) -> Self:
        """Let budgets and feature penalties count columns when ``fit`` gets features that were encoded before.

        Parameters
        ----------
        groups : sequence of int
            The column of each feature.
        """
        self._given_groups = tuple(groups)
        return self

    def _n_columns(self, samples: AnySamples) -> int:
        """The number of columns, which budgets count."""
        return int(samples.X.shape[1]) if self.encoding_ is None else len(self.encoding_.columns)

    def _groups(self) -> tuple[int, ...] | None:
        """The column of each feature, which budgets count; None if every feature is a column."""
        return self._given_groups if self.encoding_ is None else self.encoding_.groups

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

    def _described(self, tree: AnyTree) -> AnyTree:
        """The tree with the encoding of its columns, if there is one."""
        if self.encoding_ is None:
            return tree
        described = replace(self.encoding_, **self._label_fields(tree))
        return replace(tree, terms={**tree.terms, ENTRY: to_record(described)})

    def _label_fields(self, tree: AnyTree) -> dict[str, Any]:
        """The fields of the encoding about targets."""
        return {}

    def _completed(self, tree: AnyTree, samples: AnySamples, problem: Any) -> AnyTree:
        """The fitted tree after what follows the search, such as rounding."""
        return tree

    def _store(self, tree: AnyTree, samples: AnySamples) -> None:
        """Set the attributes of the fitted estimator."""
        assert tree.certificate is not None
        self.tree_, self.certificate_ = tree, tree.certificate

    def _feature_names(self) -> tuple[str, ...] | None:
        if self.encoding_ is not None:
            return self.encoding_.features
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
        """The weights of the splits (nodes, features of ``tree_``) in the units of ``X``.

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
        """The importance of each column; see :meth:`margotree.tree.HyperplaneTree.feature_importances`.

        Like those of scikit-learn's trees they are about the training samples; for other samples there is
        ``sklearn.inspection.permutation_importance``.
        """
        of_features = self._tree().feature_importances()
        if self.encoding_ is None:
            return of_features
        sums = np.zeros(self.n_features_in_)
        np.add.at(sums, self._column_of_feature(), of_features)
        return sums

    def attributions(self, X: Any) -> Attributions:
        """What each feature contributes to each prediction; see :meth:`margotree.tree.HyperplaneTree.attributions`.

        ``base + values.sum(axis=1)`` is ``predict_proba(X)`` of a classifier and ``predict(X)`` of a regressor.
        """
        return self._tree().attributions(self._checked(X))

    @property
    def selected_features_(self) -> NDArray[np.int64]:
        """Indices of the columns that at least one split uses (``|w| >= 5e-4`` in scaled units).

        ``tree_.selected()`` has the features of each split.
        """
        features = np.flatnonzero(self._tree().selected().any(axis=0))
        return features if self.encoding_ is None else np.unique(self._column_of_feature()[features])

    def _column_of_feature(self) -> NDArray[np.int64]:
        """The position in ``X`` of the column of each feature, where there is an encoding."""
        assert self.encoding_ is not None
        place = {name: k for k, name in enumerate(column_names(self))}
        columns = self.encoding_.columns
        return np.array([place[columns[group].name] for group in self.encoding_.groups], dtype=np.int64)

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

    def plot(self, X: Any = None, y: Any = None, ax: Any = None, **options: Any) -> Any:
        """Draw the tree on matplotlib axes and return them; see :func:`margotree.plots.plot_tree`."""
        return self._tree().plot(None if X is None else self._checked(X), y, ax, **options)

    def to_html(self, path: str | PathLike[str], X: Any = None, y: Any = None, *, title: str | None = None) -> None:
        """Write an interactive report page, a single HTML file; see :func:`margotree.page.write_page`."""
        self._tree().to_html(path, None if X is None else self._checked(X), y, title=title)

    def save(self, path: str | PathLike[str]) -> None:
        """Save the tree as JSON; :func:`margotree.load` reads it as a :class:`~margotree.tree.Tree`."""
        self._tree().save(path)

    def _tree(self) -> AnyTree:
        check_is_fitted(self)
        return self.tree_

    def _checked(self, X: Any) -> FloatArray:
        return new_input(self, X, self.encoding_)

    def _checked_except_finite(self, X: Any) -> FloatArray:
        """``X`` after all checks except that all values are finite, which the routing of many rows includes."""
        return new_input(self, X, self.encoding_, finite=False)

    def _routed(self, X: Any, use: Callable[[AnyTree, FloatArray], Any]) -> Any:
        """Apply ``use`` to the tree and the rows of ``X``; the error about missing values is that of scikit-learn."""
        tree, rows = self._tree(), self._checked_except_finite(X)
        try:
            return use(tree, rows)
        except ValueError:
            self._checked(X)
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
