"""The classifiers: three exact models and the heuristic they start from."""

from __future__ import annotations

from typing import Any

from margotree.estimators.base import MarginTreeClassifier


class MargotClassifier(MarginTreeClassifier):
    """A small tree of SVM splits, all trained together, with a certificate of how good it is (MARGOT).

    It minimises ``sum over nodes of 1/2 |w|^2 + C * (hinge losses of the samples that reach the node)``; a sample
    goes right where ``w.x + b >= 0``, and the side of the last split it passes is its class.  With more than two
    classes every last split has two labels of its own and every upper split parts two groups of classes, all chosen
    together with the splits (docs/multiclass.md).

    Parameters
    ----------
    depth : int, default 2
        Splits on the way from the root to a label, 1 (a linear SVM) to 10.
    C : number or list, default 1.0
        Price of a margin violation: one number, one per level (root first), or one per node.
    eps : float or "auto", default "auto"
        Width of the band beside each upper split that no training sample may lie in.  "auto" takes ``1 / n**2`` for
        ``n`` different samples, at most 1e-3 (the paper's width) and at least 1e-7; the certificate names the number.
    scale : "minmax" or None, default "minmax"
        Train on features brought to [0, 1]; splits are shown in the units of ``X`` all the same.
    max_weight : float or None, default None
        Largest ``|w|`` allowed in scaled units (two classes only); the paper's feature-selecting models use 50.
    class_weight : dict, "balanced" or None, default None
        Factors on ``C`` for the samples of each class.
    engine : str, default "auto"
        Who solves it; ``margotree.engines.engine_names()`` lists them.
    time_limit : float or None, default 60
        Seconds for the whole fit, from reading the data to the audit (compiling, once per installation, is not
        counted, nor what reading takes beyond a fifth of the limit); None for as long as it takes.
    node_limit : int or None, default None
        Search nodes after which to stop.  With it every phase of a fit is measured in nodes instead of seconds: on one
        thread the same data then give the same tree, to the last bit, unless ``time_limit`` ends the fit first.
    gap : float, default 1e-4
        Stop once the tree is proved to be within this share of the optimum.
    start : "local_svm", None, fitted estimator, Tree or Splits, default "local_svm"
        The first tree.  To pass one through ``clone`` (grid search), pass ``estimator.tree_``.
    n_jobs : int or None, default None
        Threads, where the engine can use them; None means 1 and -1 all cores.
    random_state : int, RandomState or None, default 0
        Seed of whatever an engine draws at random; with an int and a ``node_limit`` a fit repeats.
    verbose : int, default 0
        1 shows a live line with incumbent, bound, gap and time; 2 every event.
    proof : str, path or None, default None
        A file to write a proof to that anybody can check without margotree (docs/proof.md); two classes and the
        engine "bnb" only.
    scheduler : str or None, default None
        Who searches: None for threads of this process, the address of a Dask scheduler ("tcp://10.0.0.1:8786") for
        the workers of its cluster, "processes" for ``n_jobs`` processes of this machine (docs/cluster.md); two classes
        and the engine "bnb" only.

    Attributes
    ----------
    tree_ : Tree
        The model by itself: predicts and explains without scikit-learn, saves and loads.
    certificate_ : Certificate
        Objective, bound, gap, what is proved and why the search stopped.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    selected_features_ : array of int
        The features some split uses (``|w| >= 5e-4`` in scaled units, as the paper counts).
    """

    def __init__(
        self,
        depth: int = 2,
        C: Any = 1.0,
        *,
        eps: float | str = "auto",
        scale: str | None = "minmax",
        max_weight: float | None = None,
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 60,
        node_limit: int | None = None,
        gap: float = 1e-4,
        start: Any = "local_svm",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        proof: Any = None,
        scheduler: str | None = None,
    ) -> None:
        self.depth = depth
        self.C = C
        self.eps = eps
        self.scale = scale
        self.max_weight = max_weight
        self.class_weight = class_weight
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


class HFSMargotClassifier(MargotClassifier):
    """MARGOT in which every split may use only a few features (hard feature selection).

    ``budget`` is the largest number of features of a split: one number, one per level (root first), or one per node.
    All other parameters and attributes are those of :class:`MargotClassifier`.
    """

    def __init__(
        self,
        depth: int = 2,
        C: Any = 1.0,
        budget: Any = 1,
        *,
        eps: float | str = "auto",
        scale: str | None = "minmax",
        max_weight: float | None = None,
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 60,
        node_limit: int | None = None,
        gap: float = 1e-4,
        start: Any = "local_svm",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        proof: Any = None,
        scheduler: str | None = None,
    ) -> None:
        super().__init__(
            depth, C, eps=eps, scale=scale, max_weight=max_weight, class_weight=class_weight, engine=engine,
            time_limit=time_limit, node_limit=node_limit, gap=gap, start=start, n_jobs=n_jobs,
            random_state=random_state, verbose=verbose, proof=proof, scheduler=scheduler,
        )  # fmt: skip
        self.budget = budget


class SFSMargotClassifier(HFSMargotClassifier):
    """MARGOT in which features beyond a budget cost extra (soft feature selection).

    Each split may use ``budget`` features for free and pays ``alpha`` for each one more; both are one number, one a
    level (root first), or one per node.  All other parameters and attributes are those of :class:`MargotClassifier`.
    """

    def __init__(
        self,
        depth: int = 2,
        C: Any = 1.0,
        budget: Any = 1,
        alpha: Any = 1.0,
        *,
        eps: float | str = "auto",
        scale: str | None = "minmax",
        max_weight: float | None = None,
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 60,
        node_limit: int | None = None,
        gap: float = 1e-4,
        start: Any = "local_svm",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        proof: Any = None,
        scheduler: str | None = None,
    ) -> None:
        super().__init__(
            depth, C, budget, eps=eps, scale=scale, max_weight=max_weight, class_weight=class_weight, engine=engine,
            time_limit=time_limit, node_limit=node_limit, gap=gap, start=start, n_jobs=n_jobs,
            random_state=random_state, verbose=verbose, proof=proof, scheduler=scheduler,
        )  # fmt: skip
        self.alpha = alpha


class LocalSVMTreeClassifier(MarginTreeClassifier):
    """The fast heuristic: an SVM at the root, then one for the samples on each of its sides, and so on down.

    Each split is the best for the samples it gets, but the splits are not chosen together and nothing is proved of
    the whole.  With ``budget`` each split uses at most that many features, with ``budget`` and ``alpha`` features
    beyond it cost extra; then every split is a small search of its own within ``time_limit`` or ``node_limit``.
    The other parameters and the attributes are those of :class:`MargotClassifier`.
    """

    def __init__(
        self,
        depth: int = 2,
        C: Any = 1.0,
        budget: Any = None,
        alpha: Any = None,
        *,
        eps: float | str = "auto",
        scale: str | None = "minmax",
        max_weight: float | None = None,
        class_weight: Any = None,
        time_limit: float | None = 60,
        node_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.C = C
        self.budget = budget
        self.alpha = alpha
        self.eps = eps
        self.scale = scale
        self.max_weight = max_weight
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.node_limit = node_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _engine(self) -> str:
        return "local_svm"
