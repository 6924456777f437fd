"""The C function that computes probabilities: ``int <name>_predict_proba(const double *x, double *p)``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from margotree.export.c_expressions import checks
from margotree.export.common import Excess, excesses, features_of, leaf_table, margin_rule, nested, term_text
from margotree.tree.probabilities import LABEL_LEAD
from margotree.tree.score import NO_OTHER_LABEL, leaf_targets

if TYPE_CHECKING:
    from margotree.tree import Tree

_FUNCTION = """int {name}_predict_proba(const double *x, double *p) {{
{checks}    /* By how much x exceeds the threshold of each split, in margins; it goes right from 0 on. */
    double excess[{n_nodes}];
    int node = 0;
{excesses}
    while (node < {n_nodes}) node = 2 * node + (excess[node] >= 0 ? 2 : 1);
{rule}
    return 0;
}}"""

_BY_LEAF = """    {{
        static const double shares[{n_leaves}][{n_labels}] = {{{shares}}};
        for (int k = 0; k < {n_labels}; k++) p[k] = shares[node - {n_nodes}][k];
    }}"""

_BY_MARGIN = """    {{
        /* The label of each leaf; for each label the leaves that count for distances; the rounding error allowed at
           each split, and whether it sends all samples to one side. */
        static const int labels[{n_leaves}] = {{{labels}}};
        static const char targets[{n_labels}][{n_leaves}] = {{{targets}}};
        static const double ties[{n_nodes}] = {{{ties}}};
        static const char constant[{n_nodes}] = {{{constant}}};
        /* The log odds: constants, changes per margin of distance from each label, and what those of the label gain. */
        static const double intercept[{n_labels}] = {{{intercept}}};
        static const double slope[{n_labels}][{n_labels}] = {{{slope}}};
        static const double step[{n_labels}] = {{{step}}};
        static const double class_weight[{n_labels}] = {{{class_weight}}};
        const int own = labels[node - {n_nodes}];
        double distance[{n_all}], bounded[{n_labels}], largest = -HUGE_VAL, total = 0;
        for (int j = 0; j < {n_labels}; j++) {{
            /* A path to a leaf costs the largest margin that has to be crossed. */
            for (int v = {n_all} - 1; v >= 0; v--) {{
                if (v >= {n_nodes}) {{
                    distance[v] = targets[j][v - {n_nodes}] ? 0 : HUGE_VAL;
                }} else {{
                    const int right = excess[v] >= 0;
                    const double over = right ? fmax(excess[v] - ties[v], 0) : ties[v] - excess[v];
                    const double cost = constant[v] ? HUGE_VAL : over;
                    distance[v] = fmin(fmax(right ? 0 : cost, distance[2 * v + 2]),
                                       fmax(right ? cost : 0, distance[2 * v + 1]));
                }}
            }}
            bounded[j] = distance[0] == HUGE_VAL ? {no_other} : fmin(distance[0], {farthest});
        }}
        bounded[own] = 0;
        for (int k = 0; k < {n_labels}; k++) {{
            p[k] = intercept[k];
            for (int j = 0; j < {n_labels}; j++) p[k] += slope[j][k] * bounded[j];
            if (k != own) largest = fmax(largest, p[k]);
        }}
        largest = p[own] = fmax(p[own] + step[own], largest + {lead});
        for (int k = 0; k < {n_labels}; k++) total += p[k] = exp(p[k] - largest);
        for (int k = 0; k < {n_labels}; k++) p[k] = ({rest} * p[k] / total + {floor}) / class_weight[k];
        total = 0;
        for (int k = 0; k < {n_labels}; k++) total += p[k];
        for (int k = 0; k < {n_labels}; k++) p[k] /= total;
    }}"""


def probabilities_of(tree: Tree, name: str) -> str:
    """Return the C function of the probabilities of a tree."""
    splits = excesses(tree)
    return _FUNCTION.format(
        name=name,
        checks=checks(features_of(splits)),
        n_nodes=tree.n_nodes,
        excesses="\n".join(f"    excess[{t}] = {_excess(split)};" for t, split in enumerate(splits)),
        rule=_rule(tree, splits),
    )


def _excess(split: Excess) -> str:
    if not split.terms:
        return repr(split.constant)
    total = nested([term_text(term) for term in split.terms], " " * 8)
    return f"({total}\n        - ({split.threshold!r})) * {split.unit!r}"


def _rule(tree: Tree, splits: list[Excess]) -> str:
    sizes = {"n_nodes": tree.n_nodes, "n_leaves": tree.n_nodes + 1, "n_labels": len(tree.classes)}
    table = leaf_table(tree)
    if table is not None:
        return _BY_LEAF.format(shares=_rows(table.tolist()), **sizes)
    rule = margin_rule(tree)
    return _BY_MARGIN.format(
        **sizes,
        n_all=2 * tree.n_nodes + 1,
        labels=_listed(tree.leaf_class.tolist()),
        targets=_rows(leaf_targets(tree).T.astype(int).tolist()),
        ties=_listed(split.tie for split in splits),
        constant=_listed(int(not split.terms) for split in splits),
        intercept=_listed(rule.intercept.tolist()),
        slope=_rows(rule.slope.tolist()),
        step=_listed(rule.step.tolist()),
        class_weight=_listed(rule.class_weight.tolist()),
        farthest=repr(rule.farthest),
        no_other=repr(NO_OTHER_LABEL if sizes["n_labels"] == 2 else rule.farthest),
        lead=repr(LABEL_LEAD),
        rest=repr(1.0 - rule.floor),
        floor=repr(rule.floor / len(rule.intercept)),
    )


def _rows(rows: Iterable[Iterable[object]]) -> str:
    return ", ".join(f"{{{_listed(row)}}}" for row in rows)


def _listed(items: Iterable[object]) -> str:
    return ", ".join(map(repr, items))
