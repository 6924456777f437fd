"""The table of the hyperparameters chosen by our cross-validations beside the paper's, with test accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margotree.model_selection.result_rows import Rows
from margotree.paper.data import paper_hyperparameters, paper_table
from margotree.paper.experiments import search
from margotree.paper.experiments.case import row_identity
from margotree.paper.experiments.specs import SearchSpec
from margotree.paper.experiments.text_table import Column, Grid
from margotree.paper.tuning.models import TITLES

#: The paper's table with the test accuracy of each tuned model, and the name of its columns.
_PRINTED = {
    ("margot", "accuracy"): ("test_accuracy", "margot"),
    ("oct_h", "accuracy"): ("test_accuracy", "oct_h"),
    ("mm_svm_oct", "accuracy"): ("test_accuracy", "mm_svm_oct"),
    ("oct_1", "accuracy"): ("test_accuracy_fs", "oct_1"),
    ("oct_h", "features"): ("test_accuracy_fs", "oct_h_star"),
    ("hfs", "features"): ("test_accuracy_fs", "hfs_margot_star"),
    ("sfs", "features"): ("test_accuracy_fs", "sfs_margot_star"),
}

_COLUMNS = (
    ("method", "method", ""), ("dataset", "data set", ""),
    ("chosen_ours", "ours", "chosen"), ("chosen_paper", "paper", "chosen"),
    ("validation_ours", "ours", "validation"), ("validation_paper", "paper's", "validation"),
    ("features", "|F|", ""),
    ("test_acc_ours", "ours", "test ACC"), ("test_acc_paper", "paper", "test ACC"),
    ("test_acc_diff", "diff", "test ACC"),
    ("test_bacc_ours", "ours", "test BACC"), ("test_bacc_paper", "paper", "test BACC"),
    ("test_bacc_diff", "diff", "test BACC"),
    ("settings", "settings", ""), ("fit_limit", "s a fit", ""), ("certified_percent", "certified %", ""),
)  # fmt: skip


def grid_of(spec: SearchSpec, rows: Rows, data: Sequence[str] | None = None) -> Grid:
    """One line per model and data set whose search is in the file."""
    fits = {row_identity(row): row for row in rows.where(kind="fit")}
    lines = []
    for model, rule in spec.models:
        for name in spec.data:
            if data is not None and name not in data:
                continue
            chosen = search.choose(rows, name, model, rule)
            if chosen is not None:
                fit = fits.get(search.final_case(spec, name, model, chosen.params).identity())
                lines.append(_line(model, rule, name, chosen, fit))
    columns = [Column(key=key, head=head, group=group) for key, head, group in _COLUMNS]
    notes = (
        "Folds: 4, stratified, shuffled with seed 0; the paper does not print its own. Validation ACC (%): that of our",
        "choice and that of the paper's on our folds. certified %: fits on the folds that were proved optimal.",
    )
    return Grid(title=spec.title, columns=columns, rows=lines, notes=notes, marks=False)


def _line(model: str, rule: str, name: str, chosen: search.Choice, fit: dict[str, Any] | None) -> list[str]:
    """The row of the table for a model and a set; ``fit`` is the final fit, if it is in the file."""
    table, column = _PRINTED[model, rule]
    printed = next(row for row in paper_table(table) if row["dataset"] == name)
    source = {"hfs_margot_star": "hfs", "sfs_margot_star": "sfs"}.get(column, column)
    star = "*" if rule == "features" else ""
    theirs = paper_hyperparameters(source, name)
    their_accuracy = chosen.accuracy_of(theirs)
    line = [TITLES[model] + star, name, format_params(chosen.params), format_params(theirs)]
    theirs_text = "-" if their_accuracy is None else f"{100 * their_accuracy:.1f}"
    line += [f"{100 * chosen.accuracy:.1f}", theirs_text, f"{chosen.n_features:.1f}"]
    for measure in ("acc", "bacc"):
        line += _three_cells(None if fit is None else fit[f"test_{measure}"], printed[f"{column}_{measure}"])
    return [*line, str(chosen.settings), f"{chosen.time_limit:g}", f"{100 * chosen.certified:.0f}"]


def _three_cells(ours: float | None, theirs: Any) -> list[str]:
    """Our number, the paper's, and the difference."""
    if ours is None:
        return ["-", f"{theirs:.1f}", "-"]
    return [f"{ours:.1f}", f"{theirs:.1f}", f"{ours - theirs:+.1f}"]


def format_params(params: dict[str, Any]) -> str:
    """Format hyperparameters briefly: C 0.1, 100; B 1, 2."""
    short = {"budget": "B"}
    if set(params) >= {"budget", "alpha"}:
        params = {n: v for n, v in params.items() if n != "budget"}  # 1 everywhere
    return "; ".join(f"{short.get(name, name)} {_numbers(value)}" for name, value in sorted(params.items()))


def _numbers(value: Any) -> str:
    return ", ".join(f"{v:g}" for v in value) if isinstance(value, (list, tuple)) else f"{value:g}"
