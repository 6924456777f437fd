"""How much a tree changes if its training samples change: refits on bootstrap samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SplitStability:
    """How often a split of the tree returns.

    Attributes
    ----------
    node : int
        The node of the tree.
    features : tuple of str
        The features that the split uses.
    share : float
        Share of the refits with a split on exactly these features, at any node.
    thresholds : tuple of float or None
        For a split on one feature the 10 % and the 90 % quantile of the thresholds of such splits in the refits, in the
        units of the data; None if there are none.
    """

    node: int
    features: tuple[str, ...]
    share: float
    thresholds: tuple[float, float] | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Stability:
    """The result of :func:`tree_stability`.

    Attributes
    ----------
    tree
        The tree that is trained on all samples.
    n_refits : int
        The number of refits.
    feature_share : dict of str to float
        The share of the refits that use a feature, the largest first; features that no tree uses are left out.
    splits : tuple of SplitStability
        The splits of the tree from the root down.
    agreement : array of shape (samples,)
        For every sample the share of the refits that predict its label as the tree does. For numbers: the mean absolute
        difference of the predictions, as a share of the standard deviation of the targets.
    of_numbers : bool
        Whether the target is a number.
    """

    tree: Any
    n_refits: int
    feature_share: dict[str, float]
    splits: tuple[SplitStability, ...]
    agreement: FloatArray
    of_numbers: bool

    def record(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "refits": self.n_refits,
            "feature_share": dict(self.feature_share),
            "splits": [vars(split) | {"features": list(split.features)} for split in self.splits],
            "difference" if self.of_numbers else "agreement": float(self.agreement.mean()),
        }

    def __str__(self) -> str:
        mean = float(self.agreement.mean())
        if self.of_numbers:
            about = f"predictions differ by {mean:.2f} standard deviations of the target in the mean"
        else:
            unsure = float(np.mean(self.agreement < 0.8))
            about = (
                f"predictions agree on {mean:.1%} of the samples; for {unsure:.1%} of them fewer than 8 of 10 refits "
                "agree"
            )
        lines = [f"{self.n_refits} refits on bootstrap samples: {about}", "", "share of the refits that use a feature"]
        width = max(map(len, self.feature_share), default=0)
        lines += [f"  {name:<{width}}  {share:4.0%}" for name, share in self.feature_share.items()]
        lines += ["", "share of the refits with a split on the same features"]
        for split in self.splits:
            at = ""
            if split.thresholds is not None:
                at = f", at {split.thresholds[0]:.4g} to {split.thresholds[1]:.4g} in 8 of 10 of them"
            lines.append(f"  {', '.join(split.features) or 'no feature'}: {split.share:.0%}{at}")
        return "\n".join(lines)


def tree_stability(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sample_weight: ArrayLike | None = None,
    n_refits: int = 20,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Stability:
    """Train a tree on all samples and on bootstrap samples, and compare the trees.

    Parameters
    ----------
    estimator : tree classifier or regressor
        The estimator, not necessarily fitted; one fit takes up to its ``time_limit``.
    X, y, sample_weight
        The samples, as for ``fit``.
    n_refits : int
        The number of refits.
    n_jobs : int, optional
        Processes for the refits, as in scikit-learn.
    random_state : int
        Seed of the bootstrap samples, which are drawn by class where the target is a class.

    Returns
    -------
    Stability
        Printed as text; :func:`margotree.plots.plot_stability` draws it.
    """
    return compare_refits(
        lambda: clone(estimator), X, y, sample_weight=sample_weight, n_refits=n_refits, n_jobs=n_jobs,
        random_state=random_state,
    )  # fmt: skip


def compare_refits(
    make: Callable[[], Any],
    X: Any,
    y: Any,
    *,
    sample_weight: ArrayLike | None = None,
    n_refits: int = 20,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Stability:
    """:func:`tree_stability` for estimators that ``make`` returns; ``progress`` is called after each refit."""
    if not n_refits >= 2:
        raise ValueError(f"n_refits must be at least 2, got {n_refits!r}")
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    model = make().fit(X, y, sample_weight=weight)
    tree, of_numbers = model.tree_, not is_classifier(model)
    rng = np.random.default_rng(random_state)
    draws = [_bootstrap(np.asarray(y), rng, by_class=not of_numbers) for _ in range(n_refits)]
    fits = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(_refit)(make(), X, y, weight, rows) for rows in draws)
    trees, predicted = [], []
    for k, (other, found) in enumerate(fits):
        trees.append(other)
        predicted.append(found)
        if progress is not None:
            progress(k + 1)
    own = model.predict(X)
    if of_numbers:
        spread = float(np.std(np.asarray(y, dtype=np.float64))) or 1.0
        agreement = np.mean([np.abs(found - own) / spread for found in predicted], axis=0)
    else:
        agreement = np.mean([found == own for found in predicted], axis=0)
    return Stability(
        tree=tree,
        n_refits=n_refits,
        feature_share=_feature_share(tree, trees),
        splits=tuple(_split_stability(tree, t, trees) for t in tree.outline().nodes),
        agreement=np.asarray(agreement, dtype=np.float64),
        of_numbers=of_numbers,
    )


def _refit(model: Any, X: Any, y: Any, weight: FloatArray | None, rows: NDArray[np.int64]) -> tuple[Any, NDArray[Any]]:
    """The tree of a bootstrap sample and its predictions for all samples; only the tree of all samples has warnings."""
    y = np.asarray(y)[rows]
    part = X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(part, y, sample_weight=None if weight is None else weight[rows])
    return model.tree_, model.predict(X)


def _bootstrap(y: NDArray[Any], rng: np.random.Generator, *, by_class: bool) -> NDArray[np.int64]:
    """Rows drawn with replacement, as many of each class as there are."""
    if not by_class:
        return rng.integers(len(y), size=len(y))
    code = np.unique(y, return_inverse=True)[1]
    parts = [rng.choice(np.flatnonzero(code == k), int(np.sum(code == k))) for k in range(code.max() + 1)]
    return np.concatenate(parts)


def _used(tree: Any) -> list[frozenset[str]]:
    """The features of each split and each formula that predictions depend on."""
    shape, selected = tree.outline(), tree.selected()
    rows = list(shape.nodes)
    if len(selected) > tree.n_nodes:  # a tree of numbers has formulas
        rows += [shape.label[v] + tree.n_nodes for v in shape.leaves]
    return [frozenset(tree.features[j] for j in np.flatnonzero(selected[t])) for t in rows]


def _feature_share(tree: Any, trees: list[Any]) -> dict[str, float]:
    used = [frozenset().union(*_used(other)) for other in trees]
    shares = {name: float(np.mean([name in names for names in used])) for name in tree.features}
    own = frozenset().union(*_used(tree))
    return {
        name: shares[name] for name in sorted(shares, key=lambda name: -shares[name]) if shares[name] or name in own
    }


def _split_stability(tree: Any, t: int, trees: list[Any]) -> SplitStability:
    columns = np.flatnonzero(tree.selected()[t])
    names = frozenset(tree.features[j] for j in columns)
    returns, thresholds = 0, []
    for other in trees:
        shape, selected = other.outline(), other.selected()
        same = [s for s in shape.nodes if frozenset(other.features[j] for j in np.flatnonzero(selected[s])) == names]
        returns += bool(same)
        if len(columns) == 1:
            j = int(columns[0])
            thresholds += [other.split(s).threshold / other.split(s).weights[j] for s in same]
    ends = tuple(np.quantile(thresholds, [0.1, 0.9]).tolist()) if thresholds else None
    return SplitStability(
        node=int(t),
        features=tuple(tree.features[j] for j in columns),
        share=returns / len(trees),
        thresholds=None if ends is None else (ends[0], ends[1]),
    )
