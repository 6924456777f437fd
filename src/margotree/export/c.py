"""Export of a tree to C source: one file without dependencies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from margotree.export.c_cells import Reader, c_text
from margotree.export.c_expressions import checks
from margotree.export.c_probabilities import probabilities_of
from margotree.export.common import RuleTree, label_type, nested, rule_tree_of, term_text, used_features
from margotree.table.table_description import raw_columns

if TYPE_CHECKING:
    from margotree.tree import Tree

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: The C type of labels of each Python type.
_C_TYPES = {bool: "int", int: "long long", float: "double", str: "char *const"}


def to_c(tree: Tree, *, name: str = "margotree") -> str:
    """Return C99 source with ``int <name>_predict(const double *x)``.

    The function returns the position of the label in ``<name>_labels``. ``x`` has the features in the order of
    ``<name>_features``, in the units of the training data; a column of words is a set of 0/1 features. If a value that
    the tree uses is NaN or infinite, the function returns -1, because such a sample has no label.
    ``int <name>_predict_proba(const double *x, double *p)`` also writes the probabilities of the labels to ``p``.

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
    rule_tree, kind = rule_tree_of(tree), label_type(tree)
    labels = [_label(value, kind) for value in tree.classes.tolist()]
    features = [c_text(feature) for feature in tree.features]
    body = checks(used_features(rule_tree)) + _lines(rule_tree, "    ")
    raw = raw_columns(tree)
    reader = None if raw.numeric_cells else Reader(raw, name)
    return f"""/* A classification tree, written by margotree.  C99, no dependencies; compiled by C++ as well.

   int {name}_predict(const double *x)
       x: {len(features)} numbers in the order of {name}_features, in the units of the training data
       returns the position of the label in {name}_labels, or -1 if a number that the tree uses is not finite
   int {name}_predict_proba(const double *x, double *p)
       writes the probabilities of the {len(labels)} labels to p; returns 0, or -1 as above
{reader.words if reader else ""}   Compile without -ffast-math: it removes the check for numbers that are not finite. */
#include <math.h>
{reader.includes if reader else ""}
#ifdef __cplusplus
extern "C" {{
#endif

extern const int {name}_n_features, {name}_n_labels;
extern const char *const {name}_features[{len(features)}];
extern const {_C_TYPES[kind]} {name}_labels[{len(labels)}];
int {name}_predict(const double *x);
int {name}_predict_proba(const double *x, double *p);
{reader.declared if reader else ""}
const int {name}_n_features = {len(features)}, {name}_n_labels = {len(labels)};

const char *const {name}_features[{len(features)}] = {{
    {_listed(features)}
}};

const {_C_TYPES[kind]} {name}_labels[{len(labels)}] = {{
    {_listed(labels)}
}};

int {name}_predict(const double *x) {{
{body}
}}

{probabilities_of(tree, name)}
{reader.defined if reader else ""}
#ifdef __cplusplus
}}
#endif
"""


def _listed(items: list[str]) -> str:
    return ",\n    ".join(items)


def _lines(rule_tree: RuleTree, indent: str) -> str:
    if isinstance(rule_tree, int):
        return f"{indent}return {rule_tree};"
    total = nested([term_text(term) for term in rule_tree.terms], f"{indent}    ")
    return (
        f"{indent}if ({total} >= {rule_tree.threshold!r}) {{\n"
        f"{_lines(rule_tree.met, indent + '    ')}\n"
        f"{indent}}}\n"
        f"{_lines(rule_tree.otherwise, indent)}"
    )


def _label(value: Any, kind: type) -> str:
    if kind is str:
        return c_text(value)
    if kind is int and not -(2**63) < value < 2**63:
        raise ValueError(f"the label {value} does not fit into a long long; train on shorter labels")
    return str(int(value)) + ("LL" if kind is int else "") if kind in {bool, int} else repr(value)
