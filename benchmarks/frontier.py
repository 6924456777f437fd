"""Accuracy against the numbers that a reader must read: ``python benchmarks/frontier.py --help``.

Every CSV file of a folder (label last, text columns are one-hot encoded) is split once per seed, three quarters for
training, and every method chooses its hyperparameters on the training part.  A row is one table, seed and method:
accuracy, balanced accuracy and Brier score on the test part, numbers to read, seconds, the chosen values.  Rows are
appended to a file; an interrupted run continues with the next row.  ``--table`` prints means with standard errors and,
for each method, on how many tables the reference (``--reference``) is more and less accurate, and what rounding cost;
``--picture FILE`` draws the means.  Every method runs on one thread; ``--clock cpu`` measures limits and seconds in
processor time.

Our trees ("d3 b2": depth 3, two features per split) are pruned with a penalty that is chosen on the folds (those with
all features per split are not), and rounded; their numbers to read are those of
``Tree.numbers_to_read``: 1 for a split of one feature, k + 1 for one of k features.  The others are counted likewise:

- CART: 1 per split, without splits between leaves of one label (scikit-learn prints these, too: column ``splits``,
  "as printed" in the tables);
- FIGS: 1 per split and 1 per leaf, because the values of leaves are added;
- RuleFit: 1 per condition and 1 per coefficient; logistic regression: 1 per coefficient, constants included;
- EBM: the values of all bins; boosted trees: thresholds and values of all nodes.

FIGS and RuleFit are in the package ``imodels``, EBM is in ``interpret-core``; FIGS, RuleFit and EBM with pairs run on
tables of two classes only.  Methods whose package is missing are left out, and a note says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

from breadth import CLOCK, FOLDS, append, count_processor_time, grid, read_rows, read_table
from margotree import HFSMargotClassifierCV, MargotClassifierCV
from margotree.measures import measure_classification
from margotree.tree import Tree

COLUMNS = (
    "data", "seed", "method", "rows", "columns", "classes", "accuracy", "balanced", "brier", "numbers", "splits",
    "unrounded", "unrounded_numbers", "digits", "correct", "seconds", "chosen", "limit",
)  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Method:
    """Makes an unfitted classifier that chooses its hyperparameters, and counts the numbers to read of a fitted one."""

    make: Callable[[float, int], Any]
    numbers: Callable[[Any], float]
    splits: Callable[[Any], float] = lambda model: math.nan
    package: str = ""
    two_classes: bool = False


def best(model: Any) -> Any:
    """The fitted model of a search, and the last step of a pipeline."""
    model = getattr(model, "best_estimator_", model)
    return model[-1] if hasattr(model, "steps") else model


def ours(depth: int, budget: int | None) -> Method:
    """A tree of this depth and budget; C is chosen."""

    def make(limit: float, seed: int) -> Any:
        settings = {"depths": [depth], "cv": 4, "engine": "alternating", "time_limit": limit, "random_state": seed}
        return MargotClassifierCV(budgets=None if budget is None else [budget], **settings)

    return Method(make=make, numbers=lambda model: model.tree_.numbers_to_read)


def plain_cart(depth: int) -> Method:
    """CART with the defaults of scikit-learn."""

    def make(limit: float, seed: int) -> Any:
        return DecisionTreeClassifier(max_depth=depth, random_state=seed)

    return Method(make=make, numbers=lambda model: cart_numbers(model.tree_), splits=cart_splits)


def cart_splits(model: Any) -> int:
    """The number of splits as scikit-learn prints them."""
    return int(best(model).get_n_leaves()) - 1


def cart(depth: int) -> Method:
    """CART with the smallest leaves and the penalty of splits chosen by cross-validation."""

    def make(limit: float, seed: int) -> Any:
        model = DecisionTreeClassifier(max_depth=depth, random_state=seed)
        return grid(model, min_samples_leaf=[1, 5, 20], ccp_alpha=[0.0, 0.001, 0.01])

    return Method(make=make, numbers=lambda model: cart_numbers(best(model).tree_), splits=cart_splits)


def cart_numbers(tree: Any) -> int:
    """The number of splits of a tree of scikit-learn, without those between leaves of one label."""

    def below(v: int) -> tuple[int, int | None]:
        """The number of splits at and below a node, and its label if it is the same everywhere below."""
        if tree.children_left[v] < 0:
            return 0, int(np.argmax(tree.value[v]))
        parts = [below(child) for child in (tree.children_left[v], tree.children_right[v])]
        if parts[0][1] is not None and parts[0][1] == parts[1][1]:
            return 0, parts[0][1]
        return 1 + parts[0][0] + parts[1][0], None

    return below(0)[0]


def figs(rules: int) -> Method:
    def make(limit: float, seed: int) -> Any:
        from imodels import FIGSClassifier

        return FIGSClassifier(max_rules=rules, random_state=seed)

    return Method(make=make, numbers=figs_numbers, package="imodels", two_classes=True)


def figs_numbers(model: Any) -> float:
    """Splits and leaves of all trees of a sum of trees."""
    waiting, n = list(model.trees_), 0
    while waiting:
        node = waiting.pop()
        n += 1
        waiting += [child for child in (node.left, node.right) if child is not None]
    return n


def rulefit(rules: int) -> Method:
    def make(limit: float, seed: int) -> Any:
        from imodels import RuleFitClassifier

        return RuleFitClassifier(max_rules=rules, random_state=seed)

    return Method(make=make, numbers=rulefit_numbers, package="imodels", two_classes=True)


def rulefit_numbers(model: Any) -> float:
    """Conditions and coefficients of the rules and linear terms that are used, and the constant."""
    table = model._get_rules()
    table = table[table.coef != 0]
    conditions = [1 + rule.count(" and ") for rule in table.rule[table.type == "rule"]]
    return 1 + len(table) + sum(conditions)


def ebm(interactions: int) -> Method:
    def make(limit: float, seed: int) -> Any:
        from interpret.glassbox import ExplainableBoostingClassifier

        return ExplainableBoostingClassifier(interactions=interactions, random_state=seed, n_jobs=1)

    # With pairs and three classes a fit on 133 rows took more than four minutes.
    return Method(make=make, numbers=ebm_numbers, package="interpret", two_classes=interactions > 0)


def ebm_numbers(model: Any) -> float:
    return float(sum(np.size(scores) for scores in model.term_scores_) + np.size(model.intercept_))


def logistic() -> Method:
    def make(limit: float, seed: int) -> Any:
        return make_pipeline(MinMaxScaler(), LogisticRegressionCV(Cs=8, cv=FOLDS, max_iter=2000))

    return Method(make=make, numbers=lambda model: float(best(model).coef_.size + best(model).intercept_.size))


def boosted() -> Method:
    def make(limit: float, seed: int) -> Any:
        return grid(HistGradientBoostingClassifier(random_state=seed), learning_rate=[0.03, 0.1])

    def numbers(model: Any) -> float:
        return float(sum(len(tree.nodes) for stage in best(model)._predictors for tree in stage))

    return Method(make=make, numbers=numbers)


def default() -> Method:
    """The default of ``margotree fit``: depth, C and a budget of 1 to 3 are chosen in ten seconds."""

    def make(limit: float, seed: int) -> Any:
        return HFSMargotClassifierCV(time_limit=10.0, random_state=seed)

    return Method(make=make, numbers=lambda model: model.tree_.numbers_to_read)


METHODS: dict[str, Method] = {
    "margotree fit": default(),
    **{
        f"d{depth} b{'all' if budget is None else budget}": ours(depth, budget)
        for depth in (2, 3, 4) for budget in (1, 2, 3, None)
    },
    **{f"cart d{depth}": cart(depth) for depth in (2, 3, 4, 5, 6)},
    "plain cart d4": plain_cart(4),
    **{f"figs {rules}": figs(rules) for rules in (4, 8, 12)},
    **{f"rulefit {rules}": rulefit(rules) for rules in (10, 30)},
    "ebm": ebm(0),
    "ebm pairs": ebm(10),
    "logistic": logistic(),
    "boosted trees": boosted(),
}  # fmt: skip


# -- running ------------------------------------------------------------------------------------------------------


def run_one(X: np.ndarray, y: np.ndarray, seed: int, name: str, limit: float, most_rows: int) -> Row:
    X, X_test, y, y_test = train_test_split(X, y, random_state=seed, stratify=y, train_size=0.75)
    if len(y) > most_rows:
        X, _, y, _ = train_test_split(X, y, random_state=seed, stratify=y, train_size=most_rows)
    method = METHODS[name]
    classes = LabelEncoder().fit(y)
    began = CLOCK["now"]()
    with warnings.catch_warnings(), trees_before_rounding() as trained:
        warnings.simplefilter("ignore")
        model = method.make(limit, seed).fit(X, classes.transform(y))
        seconds = CLOCK["now"]() - began
        found, shares = np.asarray(model.predict(X_test)).astype(int), model.predict_proba(X_test)
        measured = measure_classification(classes.transform(y_test), found, shares, range(len(classes.classes_)))
        n = float(method.numbers(model))
    rounding = dict.fromkeys(("unrounded", "unrounded_numbers", "digits", "correct"), "")
    if trained:
        rounding = measured_rounding(trained[-1], model.tree_, X, X_test, classes, y, y_test)
    return {
        "rows": len(y), "columns": X.shape[1], "classes": len(classes.classes_), "accuracy": measured.accuracy,
        "balanced": measured.balanced_accuracy, "brier": measured.brier, "numbers": n,
        "splits": method.splits(model), **rounding, "seconds": seconds, "chosen": chosen(model), "limit": limit,
    }  # fmt: skip


@contextmanager
def trees_before_rounding() -> Iterator[list[Tree]]:
    """The trees that are rounded inside the context, as they were trained."""
    trained: list[Tree] = []
    original = Tree.rounded

    def rounded(tree: Tree, *args: Any, **options: Any) -> Tree:
        trained.append(tree)
        return original(tree, *args, **options)

    Tree.rounded = rounded  # type: ignore[method-assign]
    try:
        yield trained
    finally:
        Tree.rounded = original  # type: ignore[method-assign]


def measured_rounding(
    trained: Tree, tree: Tree, X: np.ndarray, X_test: np.ndarray, classes: LabelEncoder, y: np.ndarray,
    y_test: np.ndarray,
) -> Row:  # fmt: skip
    """What rounding cost, the digits of the longest weight, and whether certificate and export are right (1 or 0).

    They are right if the recomputed objective is that of the certificate, and if the exported function predicts as the
    tree does.
    """
    weights = [weight for rule in tree.rules.values() for weight in rule.weights]
    found = tree.verify(X, classes.transform(y))
    same = math.isclose(found.objective, tree.certificate.objective, rel_tol=1e-6) if tree.certificate else False
    names: dict[str, Any] = {}
    exec(tree.to_python(), names)
    some = X_test[:300]
    exported = [names["predict"](row) for row in some.tolist()]
    return {
        "unrounded": float(np.mean(trained.predict(X_test) == classes.transform(y_test))),
        "unrounded_numbers": trained.numbers_to_read,
        "digits": max((len(Decimal(weight).normalize().as_tuple().digits) for weight in weights), default=0),
        "correct": float(found.feasible and same and exported == tree.predict(some).tolist()),
    }


def chosen(model: Any) -> str:
    if hasattr(model, "depth_"):
        return f"depth={model.depth_} C={model.C_} budget={model.budget_} prune={model.prune_}"
    return " ".join(f"{name}={value}" for name, value in getattr(model, "best_params_", {}).items())


def installed(name: str) -> bool:
    package = METHODS[name].package
    return not package or importlib.util.find_spec(package) is not None


def run_all(args: argparse.Namespace) -> None:
    done = {(row["data"], row["seed"], row["method"]) for row in read_rows(args.out)}
    paths = sorted(args.data.glob("*.csv"), key=lambda path: path.stat().st_size)  # small ones first
    if not paths:
        raise SystemExit(f"no CSV files in {args.data}; name a folder with --data")
    if missing := [name for name in args.methods if not installed(name)]:
        print(f"left out, because their packages are not installed: {', '.join(missing)}", flush=True)
    for seed in args.seeds:
        for path in paths:
            if args.only and path.stem not in args.only:
                continue
            X, y = read_table(path)
            for name in args.methods:
                if (path.stem, str(seed), name) in done or name in missing:
                    continue
                if METHODS[name].two_classes and len(set(y)) > 2:
                    continue
                try:
                    row = run_one(X, y, seed, name, args.limit, args.most_rows)
                except Exception as error:  # a method of others that does not take a table must not end the run
                    print(f"{path.stem}, {seed}, {name}: {type(error).__name__}: {error}", file=sys.stderr)
                    continue
                append(args.out, {"data": path.stem, "seed": seed, "method": name, **row}, COLUMNS)


# -- results ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Means over tables and seeds of one method, with standard errors over the seeds (NaN for one seed)."""

    method: str
    accuracy: float
    accuracy_error: float
    brier: float
    numbers: float
    numbers_error: float
    printed: float
    seconds: float
    better: int
    worse: int


def summaries(rows: list[Row], reference: str) -> tuple[list[str], list[str], list[Summary]]:
    """Tables and seeds that every method has, and a summary of each method.

    ``better`` and ``worse`` count the tables on which the reference is more and less accurate in the mean over seeds.
    """
    methods = [name for name in METHODS if any(row["method"] == name for row in rows)]
    by = {(row["data"], row["seed"], row["method"]): row for row in rows}
    cases = list(dict.fromkeys((row["data"], row["seed"]) for row in rows))
    complete = {case for case in cases if all((*case, name) in by for name in methods)}
    seeds = list(dict.fromkeys(seed for _, seed in cases))
    tables = [d for d in dict.fromkeys(d for d, _ in cases) if all((d, seed) in complete for seed in seeds)]
    if not tables:  # some seed is not complete on any table: the tables of the complete ones
        seeds = [seed for seed in seeds if any(seed == other for _, other in complete)]
        tables = [d for d in dict.fromkeys(d for d, _ in complete) if all((d, seed) in complete for seed in seeds)]

    def values(name: str, column: str) -> np.ndarray:
        return np.array([[float(by[d, seed, name][column]) for d in tables] for seed in seeds])

    def error(of: np.ndarray) -> float:
        return float(of.mean(axis=1).std(ddof=1) / math.sqrt(len(seeds))) if len(seeds) > 1 else math.nan

    found = []
    for name in methods if tables else []:
        accuracy, numbers = values(name, "accuracy"), values(name, "numbers")
        against = values(reference if reference in methods else name, "accuracy").mean(axis=0) - accuracy.mean(axis=0)
        found.append(
            Summary(
                method=name,
                accuracy=100 * accuracy.mean(),
                accuracy_error=100 * error(accuracy),
                brier=values(name, "brier").mean(),
                numbers=numbers.mean(),
                numbers_error=error(numbers),
                printed=values(name, "splits").mean(),
                seconds=values(name, "seconds").mean(),
                better=int(np.sum(against > 1e-9)),
                worse=int(np.sum(against < -1e-9)),
            )
        )
    return tables, seeds, found


def show(rows: list[Row], reference: str) -> None:
    for kind, of in (("all tables", lambda k: k >= 2), ("tables of two classes", lambda k: k == 2)):
        some = [row for row in rows if of(int(row["classes"]))]
        if kind == "all tables":  # without the methods for two classes, if there are other tables
            several = any(int(row["classes"]) > 2 for row in rows)
            some = [row for row in some if not (several and METHODS[row["method"]].two_classes)]
        tables, seeds, found = summaries(some, reference)
        if not found:
            print(f"\n{kind}: no table on which every method ran")
            continue
        print(f"\n{kind}: {len(tables)} ({', '.join(tables)}), {len(seeds)} seeds\n")
        print(f"| method | accuracy, % | numbers to read | as printed | Brier | seconds | {reference} better, worse |")
        print("| --- |" + " ---: |" * 6)
        for one in sorted(found, key=lambda one: -one.accuracy):
            print(
                f"| {one.method} | {_with_error(one.accuracy, one.accuracy_error)} | "
                f"{_with_error(one.numbers, one.numbers_error)} | {_or_nothing(one.printed)} | {one.brier:.3f} | "
                f"{one.seconds:.1f} | {one.better}, {one.worse} |"
            )

    show_rounding(rows)


def show_rounding(rows: list[Row]) -> None:
    """Print what rounding cost, by method: means over all rows."""
    rounded = [row for row in rows if row.get("unrounded")]
    if not rounded:
        return
    print("\nrounding:\n")
    print(
        "| method | trees | accuracy before, % | accuracy | numbers before | numbers | at most two digits | correct |"
    )
    print("| --- |" + " ---: |" * 7)
    for name in [name for name in METHODS if any(row["method"] == name for row in rounded)]:
        some = [row for row in rounded if row["method"] == name]

        def mean(column: str, some: list[Row] = some) -> float:
            return float(np.mean([float(row[column]) for row in some]))

        short, correct = (sum(holds(row) for row in some) for holds in (_is_short, _is_correct))
        print(
            f"| {name} | {len(some)} | {100 * mean('unrounded'):.2f} | {100 * mean('accuracy'):.2f} | "
            f"{mean('unrounded_numbers'):.1f} | {mean('numbers'):.1f} | {short} | {correct} |"
        )


def _is_short(row: Row) -> bool:
    return float(row["digits"]) <= 2


def _is_correct(row: Row) -> bool:
    return float(row["correct"]) == 1


def _or_nothing(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f}"


def _with_error(mean: float, error: float) -> str:
    return f"{mean:.1f}" if math.isnan(error) else f"{mean:.1f} ± {error:.1f}"


def draw(rows: list[Row], path: Path, reference: str) -> None:
    """Draw the mean accuracy against the numbers to read; our trees of one depth are joined by a line."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    several = any(int(row["classes"]) > 2 for row in rows)
    tables, _, found = summaries(
        [row for row in rows if not (several and METHODS[row["method"]].two_classes)], reference
    )
    figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
    for prefix, label, colour, style in (
        ("d2", "margin optimal trees, depth 2", "#e39b7b", "o-"),
        ("d3", "margin optimal trees, depth 3", "#b5451b", "o-"),
        ("d4", "margin optimal trees, depth 4", "#6d2409", "o-"), ("cart", "CART, depth 2 to 6", "#44546a", "s--"),
        ("figs", "FIGS", "#2e7d55", "^:"), ("rulefit", "RuleFit", "#7b5ea7", "v:"),
    ):  # fmt: skip
        some = sorted((one for one in found if one.method.split()[0] == prefix), key=lambda one: one.numbers)
        if prefix == "cart" and some:
            label = f"CART with chosen leaves, depth {', '.join(one.method[-1] for one in some)}"
        if some:
            x, y = [max(0.5, one.numbers) for one in some], [one.accuracy for one in some]
            fmt = style if len(some) > 2 else style[0]
            errors = np.nan_to_num([one.accuracy_error for one in some])
            ax.errorbar(x, y, errors, fmt=fmt, color=colour, label=label, ms=5, lw=1.2)
        for one in some:
            words = one.method.split()[1].replace("b", "") if prefix.startswith("d") else ""
            ax.annotate(words, (max(0.5, one.numbers), one.accuracy), (3, 4), textcoords="offset points", fontsize=8)
    for one in found:
        if one.method in {"ebm", "ebm pairs", "logistic", "boosted trees", "margotree fit", "plain cart d4"}:
            ax.plot(one.numbers, one.accuracy, "D", color="black", ms=4)
            ax.annotate(one.method, (one.numbers, one.accuracy), (0, -11), textcoords="offset points", fontsize=8,
                        ha="center")  # fmt: skip
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
    ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.margins(x=0.08)
    ax.set_xlabel("numbers to read, mean (beside points: the budget, features per split)")
    ax.set_ylabel(f"test accuracy, mean of {len(tables)} tables (%)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MARGOTREE_DATA", ".")) / "breadth")
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="only these tables")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--limit", type=float, default=30.0, help="seconds per choice and fit of our trees (30)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="the clock of limits and seconds")
    parser.add_argument("--most-rows", type=int, default=1_000_000, help="the largest number of training rows")
    parser.add_argument("--reference", default="d3 b3", choices=list(METHODS), metavar="METHOD",
                        help='the method with which the others are compared ("d3 b3")')  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("results/frontier.csv"))
    parser.add_argument("--table", action="store_true", help="print the results in the file and run nothing")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the results in the file")
    args = parser.parse_args()
    if args.clock == "cpu":
        count_processor_time()
    if not (args.table or args.picture):
        run_all(args)
    seeds = {str(seed) for seed in args.seeds}
    rows = [row for row in read_rows(args.out) if row["method"] in args.methods and row["seed"] in seeds]
    if args.picture:
        draw(rows, args.picture, args.reference)
    show(rows, args.reference)


if __name__ == "__main__":
    main()
