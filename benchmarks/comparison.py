"""margotree beside STree, scikit-learn and pystreed on the breast cancer data of scikit-learn.

    python benchmarks/comparison.py [--folds 5] [--seconds 2] [--only NAME ...]

Five outer folds (stratified, seed 0); on each training part every model chooses its one hyperparameter by three inner
folds, is then trained on the whole part and scored on the outer fold.  Features are scaled to [0, 1] for all models.
Packages that are not installed are left out and listed.  Prints a Markdown table with versions.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata, util
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

C = [0.1, 1.0, 10.0, 100.0]


@dataclass(frozen=True)
class Competitor:
    """A model, its grid, and a function that counts the features of its splits (summed over the splits)."""

    make: Callable[[float], Any]
    grid: dict[str, list[Any]]
    used: Callable[[Any], float]
    package: str
    kind: str


def competitors(seconds: float) -> dict[str, Competitor]:
    """All models by name; ``seconds`` is the limit of a margotree fit."""
    import margotree as m

    def ours(cls: Any, **params: Any) -> Callable[[float], Any]:
        return lambda limit: cls(depth=2, time_limit=limit, **params)

    def selected(model: Any) -> float:
        return float(model.tree_.selected().sum())

    found = {
        "MARGOT, depth 2": Competitor(ours(m.MargotClassifier), {"C": C}, selected, "margotree", "tree"),
        "HFS-MARGOT, depth 2, 2 features per split": Competitor(
            ours(m.HFSMargotClassifier, budget=2), {"C": C}, selected, "margotree", "tree"
        ),
        "Local SVM, depth 2": Competitor(ours(m.LocalSVMTreeClassifier), {"C": C}, selected, "margotree", "tree"),
        "OCT-1, depth 2": Competitor(
            ours(m.OCT1Classifier, min_samples_leaf=1), {"alpha": [0.0, 0.01, 0.1]}, selected, "margotree", "tree"
        ),
        "CART, depth 2": Competitor(
            lambda _: DecisionTreeClassifier(max_depth=2, random_state=0),
            {"min_samples_leaf": [1, 5, 20]}, lambda t: float(np.sum(t.tree_.feature >= 0)), "scikit-learn", "tree",
        ),
        "linear SVM": Competitor(lambda _: SVC(kernel="linear"), {"C": C}, lambda _: 30.0, "scikit-learn", "one split"),
        "logistic regression": Competitor(
            lambda _: LogisticRegression(max_iter=5000), {"C": C}, lambda _: 30.0, "scikit-learn", "one split"
        ),
        "boosted trees": Competitor(
            lambda _: HistGradientBoostingClassifier(random_state=0, max_iter=100),
            {"learning_rate": [0.05, 0.1]}, lambda _: float("nan"), "scikit-learn", "black box",
        ),
    }  # fmt: skip
    if util.find_spec("stree"):
        from stree import Stree

        # STree counts the leaves as a level: a depth of 3 means two splits on a path.
        found["STree, depth 2"] = Competitor(
            lambda _: Stree(max_depth=3, random_state=0),
            {"C": C},
            lambda t: 30.0 * t.nodes_leaves()[1] - 30.0,
            "stree",
            "tree",
        )
    if util.find_spec("pystreed"):
        from pystreed import STreeDClassifier

        found["STreeD, depth 2"] = Competitor(
            lambda limit: STreeDClassifier(max_depth=2, time_limit=limit, n_thresholds=20),
            {"min_leaf_node_size": [1, 5, 20]}, lambda t: float(t.get_n_leaves() - 1), "pystreed", "tree",
        )  # fmt: skip
    return found


def run(competitor: Competitor, X: np.ndarray, y: np.ndarray, folds: int, seconds: float) -> dict[str, Any]:
    """Accuracy on every outer fold, features used, and seconds of the last fit of each."""
    accuracy, used, took, gaps = [], [], [], []
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y):
        scaler = MinMaxScaler().fit(X[train])
        inner = StratifiedKFold(3, shuffle=True, random_state=0)
        search = GridSearchCV(competitor.make(seconds), competitor.grid, cv=inner, refit=False)
        search.fit(scaler.transform(X[train]), y[train])
        model = competitor.make(5 * seconds).set_params(**search.best_params_)
        began = time.perf_counter()
        model.fit(scaler.transform(X[train]), y[train])
        took.append(time.perf_counter() - began)
        accuracy.append(model.score(scaler.transform(X[test]), y[test]))
        used.append(competitor.used(model))
        gaps.append(getattr(getattr(model, "certificate_", None), "gap", np.nan))
    return {"accuracy": accuracy, "used": used, "seconds": took, "gap": gaps}


def line(name: str, competitor: Competitor, found: dict[str, Any]) -> str:
    accuracy = f"{100 * np.mean(found['accuracy']):.1f} ± {100 * np.std(found['accuracy']):.1f}"
    used = "-" if np.isnan(found["used"]).any() else f"{np.mean(found['used']):.1f}"
    gap = np.array(found["gap"])
    proved = (
        "-" if np.isnan(gap).any() else "no bound" if np.isinf(gap).any() else f"gap {100 * gap.max():.2g} % or less"
    )
    return f"| {name} | {competitor.package} | {accuracy} | {used} | {np.mean(found['seconds']):.2f} | {proved} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="limit of a fit in the inner folds; outer: 5 times")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    X, y = load_breast_cancer(return_X_y=True)
    chosen = {n: r for n, r in competitors(args.seconds).items() if not args.only or any(o in n for o in args.only)}
    print("| model | package | accuracy on new samples, % | features, summed over splits | seconds | proved |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for name, competitor in chosen.items():
        print(line(name, competitor, run(competitor, X, y, args.folds, args.seconds)), flush=True)
    packages = ("margotree", "scikit-learn", "stree", "pystreed", "numpy")
    here = [f"{p} {metadata.version(p)}" for p in packages if util.find_spec(p.replace("scikit-learn", "sklearn"))]
    print(f"\n{', '.join(here)}; Python {platform.python_version()}, {platform.machine()}")
    missing = [p for p in ("stree", "pystreed") if not util.find_spec(p)]
    if missing:
        print(f"not installed and left out: {', '.join(missing)}")


if __name__ == "__main__":
    main()
