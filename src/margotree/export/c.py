"""Export of a tree to C source: one file without dependencies."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from margotree.export.c_cells import Reader, c_text
from margotree.export.c_expressions import checks
from margotree.export.c_probabilities import probabilities_of
from margotree.export.common import (
    LeafFormula,
    RuleTree,
    features_in_use,
    label_type,
    leaf_formulas,
    nested,
    rule_tree_of,
    shown_leaves,
    term_text,
    used_features,
)
from margotree.table.table_description import raw_columns
from margotree.tree import RegressionTree

if TYPE_CHECKING:
    from margotree.tree import Tree

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: The C type of labels of each Python type.
_C_TYPES = {bool: "int", int: "long long", float: "double", str: "char *const"}


def to_c(tree: Tree | RegressionTree, *, name: str = "margotree") -> str:
    """Return C99 source with ``int <name>_predict(const double *x)``.

    The function returns the position of the label in ``<name>_labels``. ``x`` has the features in the order of
    ``<name>_features``, in the units of the training data; a column of words is a set of 0/1 features. If a value that
    the tree uses is NaN or infinite, the function returns -1, because such a sample has no label.
    ``int <name>_predict_proba(const double *x, double *p)`` also writes the probabilities of the labels to ``p``.
    For a regression tree the only function is ``double <name>_predict(const double *x)``, which returns the prediction,
    or NaN.

    For a tree of ``margotree fit`` the file also has ``int <name>_read(const char *const *cells, double *x)``, which
    converts the cells of a row of the table to ``x``: see :mod:`margotree.export.c_cells`.

    Parameters
    ----------
    tree : Tree
        The tree.
    name : str
        The prefix of all names in the file, so that several trees can be part of one program.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"name must be a C identifier such as 'margotree', got {name!r}")
    parts = _NumberParts(tree, name) if isinstance(tree, RegressionTree) else _ClassParts(tree, name)
    features = [c_text(feature) for feature in tree.features]
    raw = raw_columns(tree)
    reader = None if raw.numeric_cells else Reader(raw, name)
    return f"""/* {parts.title}, written by margotree.  C99, no dependencies; compiled by C++ as well.

{parts.words.format(name=name, n_features=len(features))}
{reader.words if reader else ""}   Compile without -ffast-math: it removes the check for numbers that are not finite. */
#include <math.h>
{reader.includes if reader else ""}
#ifdef __cplusplus
extern "C" {{
#endif

extern const int {name}_n_features{parts.more_sizes};
extern const char *const {name}_features[{len(features)}];
{parts.declared}
{reader.declared if reader else ""}
const int {name}_n_features = {len(features)}{parts.more_sizes_defined};

const char *const {name}_features[{len(features)}] = {{
    {_listed(features)}
}};

{parts.defined}
{reader.defined if reader else ""}
#ifdef __cplusplus
}}
#endif
"""


class _ClassParts:
    """What a file has for a tree of classes."""

    title = "A classification tree"
    words = """   int {name}_predict(const double *x)
       x: {n_features} numbers in the order of {name}_features, in the units of the training data
       returns the position of the label in {name}_labels, or -1 if a number that the tree uses is not finite
   int {name}_predict_proba(const double *x, double *p)
       writes the probabilities of the labels to p; returns 0, or -1 as above"""

    def __init__(self, tree: Tree, name: str) -> None:
        rule_tree, kind = rule_tree_of(tree), label_type(tree)
        labels = [_label(value, kind) for value in tree.classes.tolist()]
        body = checks(used_features(rule_tree)) + _lines(rule_tree, "    ", lambda k, indent: f"{indent}return {k};")
        self.more_sizes, self.more_sizes_defined = f", {name}_n_labels", f", {name}_n_labels = {len(labels)}"
        self.declared = (
            f"extern const {_C_TYPES[kind]} {name}_labels[{len(labels)}];\n"
            f"int {name}_predict(const double *x);\nint {name}_predict_proba(const double *x, double *p);"
        )
        self.defined = f"""const {_C_TYPES[kind]} {name}_labels[{len(labels)}] = {{
    {_listed(labels)}
}};

int {name}_predict(const double *x) {{
{body}
}}

{probabilities_of(tree, name)}"""


_LIMITED = """
static double {name}_limited(double total, double low, double high, double unit) {{
    return (total < low ? low : total > high ? high : total) * unit;
}}
"""


class _NumberParts:
    """What a file has for a tree of numbers."""

    title = "A regression tree"
    words = """   double {name}_predict(const double *x)
       x: {n_features} numbers in the order of {name}_features, in the units of the training data
       returns the prediction, or NaN if a number that the tree uses is not finite"""
    more_sizes = more_sizes_defined = ""

    def __init__(self, tree: RegressionTree, name: str) -> None:
        rule_tree, formulas = rule_tree_of(tree), leaf_formulas(tree)
        self.declared = f"extern const char *const {name}_target;\ndouble {name}_predict(const double *x);"
        rules = _lines(rule_tree, "    ", lambda k, indent: _formula(formulas[k], name, indent))
        has_terms = any(formulas[k].terms for k in shown_leaves(rule_tree))
        self.defined = f"""const char *const {name}_target = {c_text(tree.target_name)};
{_LIMITED.format(name=name) if has_terms else ""}
double {name}_predict(const double *x) {{
{checks(features_in_use(tree, rule_tree), "NAN")}
{rules}
}}
"""


def _listed(items: list[str]) -> str:
    return ",\n    ".join(items)


def _lines(rule_tree: RuleTree, indent: str, leaf: Callable[[int, str], str]) -> str:
    """Return the rules; ``leaf`` returns the code of a leaf for its position and the indent."""
    if isinstance(rule_tree, int):
        return leaf(rule_tree, indent)
    total = nested([term_text(term) for term in rule_tree.terms], f"{indent}    ")
    return (
        f"{indent}if ({total} >= {rule_tree.threshold!r}) {{\n"
        f"{_lines(rule_tree.met, indent + '    ', leaf)}\n"
        f"{indent}}}\n"
        f"{_lines(rule_tree.otherwise, indent, leaf)}"
    )


def _formula(formula: LeafFormula, name: str, indent: str) -> str:
    if formula.number is not None:
        return f"{indent}return {_double(formula.number)};"
    inner = indent + "    "
    total = nested([repr(formula.constant), *(term_text(term) for term in formula.terms)], inner)
    limits = ", ".join(map(_double, (formula.low, formula.high, formula.unit)))
    return f"{indent}return {name}_limited(\n{inner}{total},\n{inner}{limits}\n{indent});"


def _double(value: float) -> str:
    return repr(value) if math.isfinite(value) else "INFINITY" if value > 0 else "-INFINITY"


def _label(value: Any, kind: type) -> str:
    if kind is str:
        return c_text(value)
    if kind is int and not -(2**63) < value < 2**63:
        raise ValueError(f"the label {value} does not fit into a long long; train on shorter labels")
    return str(int(value)) + ("LL" if kind is int else "") if kind in {bool, int} else repr(value)
