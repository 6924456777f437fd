"""The classifiers with their parameters: MARGOT, HFS, SFS and the greedy Local SVM tree."""

from __future__ import annotations

from typing import Any

from margotree.estimators.automatic_band import DEPRECATED
from margotree.estimators.classifiers import MarginTreeClassifier
from margotree.estimators.parameters import with_defaults


class MargotClassifier(MarginTreeClassifier):
    """A small tree of soft-margin SVM splits, all trained together (MARGOT), with a certificate of optimality.

    It minimises ``sum over nodes of 1/2 |w|^2 + C * (hinge losses of the samples that reach the node)``; a sample
    goes right where ``w.x + b >= 0``, and its side of the last split is its class.  With more than two classes every
    split of the last level has two labels, and every upper split separates two groups of classes; both are chosen
    together with the splits (docs/multiclass.md).

    Parameters
    ----------
    depth : int, default 2
        Number of splits from the root to a leaf, 1 (a linear SVM) to 10.
    C : number or list, default 1.0
        Penalty of margin violations: one number, one per level (root first), or one per node.
    budget : int, list or None, default None
        Largest number of features of a split: one number, one per level (root first), or one per node.  None: all
        features (MARGOT).  A number: hard feature selection (HFS-MARGOT in the paper).
    alpha : number, list or None, default None
        With ``alpha`` a split may use features beyond its budget, and each of them adds ``alpha`` to the objective:
        soft feature selection (SFS-MARGOT).  One number, one per level (root first), or one per node.
    band : float or "auto", default "auto"
        Width of the band at each upper split, in which no training sample may lie.  "auto" is ``1 / n**2`` for ``n``
        different samples, at most 1e-3 (the width in the paper) and at least 1e-7; the certificate states the number.
    scale : "minmax" or None, default "minmax"
        "minmax" scales features to [0, 1] for training; splits are nevertheless shown in the units of ``X``.
    max_weight : float or None, default None
        Largest allowed ``|w|`` in scaled units (two classes only); the paper uses 50 for HFS and SFS.
    class_weight : dict, "balanced" or None, default None
        Factors on ``C`` for the samples of each class.
    proba : {"margin", "smoothed", "leaf"}, default "margin"
        The rule of ``predict_proba``.  "margin": monotone in ``decision_function`` for two classes, a softmax of the
        distances from the labels for more, fitted to cross-validated scores.  "smoothed": the class shares of the leaf,
        shrunk towards those of the nodes above it.  "leaf": the class shares of the leaf, which may be 0.
    engine : str or Engine, default "auto"
        The engine that trains the tree; ``margotree.engines.engine_names()`` lists them (docs/extending.md).
    time_limit : float or None, default 60
        Seconds for the whole fit, from reading the data to the audit; None for no limit.  Compiling (once per
        installation) does not count, and neither does the part of reading that exceeds a fifth of the limit.
    node_limit : int or None, default None
        Number of search nodes after which the search stops.  With a node limit all phases of a fit are limited by nodes
        instead of seconds: on one thread the fitted tree is then exactly reproducible, unless ``time_limit`` ends the
        fit first.
    gap : float, default 1e-4
        The search stops when the gap is at most this number.
    start : "local_svm", None, fitted estimator, Tree or Splits, default "local_svm"
        The initial tree, or a list of trees, of which the best feasible one is used.  In a grid search, which uses
        ``clone``, pass ``estimator.tree_`` and not the estimator.
    n_jobs : int or None, default None
        Number of threads, if the engine supports several; None means 1, and -1 all cores.
    random_state : int, RandomState or None, default 0
        Random seed; with an int and a ``node_limit`` a fit is reproducible.
    verbose : int, default 0
        1: a live line with incumbent, bound, gap and time; 2: a line for every event.
    proof : str, path or None, default None
        File to which a proof is written, which can be checked without margotree (docs/proof.md); only for the
        engine "bnb".
    scheduler : str, Client or None, default None
        Where the search runs: None for threads of this process, the address of a Dask scheduler
        ("tcp://10.0.0.1:8786") or a client of it for the workers of its cluster, "processes" for ``n_jobs`` processes
        on this machine (docs/cluster.md); only for the engine "bnb".  ``clone`` and ``GridSearchCV`` copy parameters,
        which a client cannot be: give them the address.
    round : None, "auto", "points" or int, default None
        Short numbers, see :meth:`margotree.tree.Tree.rounded`.  "auto": weights of two digits if at most 1 % of the
        labels of training samples change, otherwise more; features and splits that hardly any of these labels depends
        on are left out.  "points": the same with whole numbers as weights.  A number: at most this many digits of a
        weight.  None: the trained tree as it is.  The certificate states what rounding cost.
    prune : float or None, default None
        Remove features and splits, or replace a split by one of a single feature, where a number to read saves less
        than this share of the training samples from a wrong label; see :meth:`margotree.tree.Tree.pruned`.  0.003 is a
        start.  None: no pruning.  The certificate states what pruning cost.
    eps : float or "auto"
        Deprecated name of ``band``, removed in 0.3.
    categorical_features : "from_dtype" or list, default "from_dtype"
        The columns that hold words: "from_dtype" those of strings and categories, a list those with these names or
        positions, too.  Budgets and feature penalties count columns, not the features made from them.
    dates : "error" or "days-since", default "error"
        Columns of dates in a data frame (also as strings such as 2024-01-31): an error, or numbers of days since the
        first date of the training samples.
    handle_unknown : "ignore" or "error", default "ignore"
        Words of new samples that training did not have: none of the known words (ordered ones count as missing), or an
        error.

    Attributes
    ----------
    tree_ : Tree
        The fitted tree, which predicts without scikit-learn and can be saved and printed.
    certificate_ : Certificate
        Objective, bound, gap, the proved statement, and why the search stopped.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn; the features are the columns of ``X``.
    encoding_ : Encoding or None
        How columns with words and missing cells become features; None if all columns hold numbers.
    selected_features_ : array of int
        The columns that at least one split uses (``|w| >= 5e-4`` in scaled units, as in the paper).
    """

    def __init__(
        self,
        depth: int = 2,
        C: Any = 1.0,
        budget: Any = None,
        alpha: Any = None,
        *,
        band: float | str = "auto",
        scale: str | None = "minmax",
        max_weight: float | None = None,
        class_weight: Any = None,
        proba: str = "margin",
        engine: str = "auto",
        time_limit: float | None = 60,
        node_limit: int | None = None,
        gap: float = 1e-4,
        start: Any = "local_svm",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        proof: Any = None,
        scheduler: Any = None,
        round: Any = None,
        prune: float | None = None,
        eps: Any = DEPRECATED,
        categorical_features: Any = "from_dtype",
        dates: str = "error",
        handle_unknown: str = "ignore",
    ) -> None:
        self.depth = depth
        self.C = C
        self.budget = budget
        self.alpha = alpha
        self.band = band
        self.scale = scale
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.proba = proba
        self.engine = engine
        self.time_limit = time_limit
        self.node_limit = node_limit
        self.gap = gap
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.proof = proof
        self.scheduler = scheduler
        self.round = round
        self.prune = prune
        self.eps = eps
        self.categorical_features = categorical_features
        self.dates = dates
        self.handle_unknown = handle_unknown


class HFSMargotClassifier(MargotClassifier):
    """MARGOT with hard feature selection (HFS): :class:`MargotClassifier` with ``budget=1`` by default."""

    __init__ = with_defaults(MargotClassifier.__init__, budget=1)


class SFSMargotClassifier(MargotClassifier):
    """MARGOT with soft feature selection (SFS): :class:`MargotClassifier` with ``budget=1``, ``alpha=1`` by default."""

    __init__ = with_defaults(MargotClassifier.__init__, budget=1, alpha=1.0)


class LocalSVMTreeClassifier(MarginTreeClassifier):
    """The greedy Local SVM tree, a fast heuristic: one SVM after the other, from the root down.

    Each split is optimal for the samples that reach it, but the splits are not trained together, and no bound is proved
    for the tree.  With ``budget`` each split uses at most that many features; with ``budget`` and ``alpha`` features
    beyond the budget have a penalty.  Then every split is a search of its own within ``time_limit`` or ``node_limit``.
    The other parameters and the attributes are those of :class:`MargotClassifier`.
    """

    def __init__(
        self,
        depth: int = 2,
        C: Any = 1.0,
        budget: Any = None,
        alpha: Any = None,
        *,
        band: float | str = "auto",
        scale: str | None = "minmax",
        max_weight: float | None = None,
        class_weight: Any = None,
        proba: str = "margin",
        time_limit: float | None = 60,
        node_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        round: Any = None,
        eps: Any = DEPRECATED,
        categorical_features: Any = "from_dtype",
        dates: str = "error",
        handle_unknown: str = "ignore",
    ) -> None:
        self.depth = depth
        self.C = C
        self.budget = budget
        self.alpha = alpha
        self.band = band
        self.scale = scale
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.proba = proba
        self.time_limit = time_limit
        self.node_limit = node_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.round = round
        self.eps = eps
        self.categorical_features = categorical_features
        self.dates = dates
        self.handle_unknown = handle_unknown

    def _engine(self) -> str:
        return "local_svm"
