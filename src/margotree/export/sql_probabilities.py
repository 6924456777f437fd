"""The SQL expression of a probability, as a query that computes one step after the other.

Each step adds columns to those of the steps before it: the excess ``e`` and the cost ``c`` of each node, the distances
``d`` from the labels, level by level from the leaves up, the log odds ``o``, and the shares ``s``. Only ``CASE``
compares numbers, because the names of the functions for minimum and maximum differ between databases. A step is one
row; ``DISTINCT`` keeps databases from replacing the names of columns by their expressions, which would grow
exponentially.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from margotree.export.common import Excess, Term, excesses, leaf_table, margin_rule, nested
from margotree.problem import topology
from margotree.tree.probabilities import LABEL_LEAD
from margotree.tree.score import NO_OTHER_LABEL, leaf_targets

if TYPE_CHECKING:
    from margotree.tree import Tree

#: A step: the names of its columns with their expressions.
Step = dict[str, str]


def probability_of(tree: Tree, label: int, term: Callable[[Term], str], number: Callable[[float], str]) -> str:
    """Return the expression of the probability of the label at position ``label``.

    Parameters
    ----------
    term : callable
        Writes a term of a sum with its sign.
    number : callable
        Writes a number.
    """
    return _Steps(tree, term, number).probability(label)


class _Steps:
    def __init__(self, tree: Tree, term: Callable[[Term], str], number: Callable[[float], str]) -> None:
        self.tree, self.term, self.number = tree, term, number
        self.splits = excesses(tree)
        self.labels = range(len(tree.classes))

    def probability(self, label: int) -> str:
        """Return the expression of the probability of a label."""
        steps: list[Step] = [{f"e{t}": self._excess(split) for t, split in enumerate(self.splits) if split.terms}]
        table = leaf_table(self.tree)
        if table is not None:
            result = self._by_leaf([self.number(share) for share in table[:, label].tolist()])
        else:
            steps += [*self._distances(), *self._log_odds(), *self._shares()]
            result = f"s{label} / ({' + '.join(f's{k}' for k in self.labels)})"
        parts = ["step0 AS (SELECT 1 AS one)"]
        for step in filter(None, steps):
            k = len(parts)
            columns = "".join(f",\n  {expression} AS {name}" for name, expression in step.items())
            parts.append(f"step{k} AS (SELECT DISTINCT step{k - 1}.*{columns}\nFROM step{k - 1})")
        listed = ",\n".join(parts)
        return f"(WITH {listed}\nSELECT {result}\nFROM step{len(parts) - 1})"

    def _excess(self, split: Excess) -> str:
        total = nested([self.term(term) for term in split.terms], "    ")
        return f"({total} - ({self.number(split.threshold)})) * {self.number(split.unit)}"

    def _by_leaf(self, values: list[str]) -> str:
        """Return the expression of a value that depends on the leaf."""

        def below(v: int) -> str:
            if v >= self.tree.n_nodes:
                return values[v - self.tree.n_nodes]
            if not self.splits[v].terms:
                return below(self._only_child(v))
            return f"CASE WHEN e{v} >= 0 THEN {below(topology.right(v))} ELSE {below(topology.left(v))} END"

        return below(0)

    def _only_child(self, t: int) -> int:
        return topology.right(t) if self.splits[t].constant >= 0 else topology.left(t)

    def _distances(self) -> list[Step]:
        """Return the steps up to the distances ``d0``, ``d1``, ... from the labels, and the label ``code``."""
        costs = {
            f"c{t}": f"CASE WHEN e{t} < 0 THEN {self.number(split.tie)} - e{t} WHEN e{t} > {self.number(split.tie)} "
            f"THEN e{t} - {self.number(split.tie)} ELSE {self.number(0.0)} END"
            for t, split in enumerate(self.splits)
            if split.terms
        }
        code = {"code": self._by_leaf([str(k) for k in self.tree.leaf_class.tolist()])}
        steps, rule, known = [{**costs, **code}], margin_rule(self.tree), self._leaf_distances()
        for level in reversed(range(self.tree.depth)):
            step: Step = {}
            for t in topology.level_nodes(level):
                for k in self.labels:
                    known[t, k] = self._at_node(t, k, known, step)
            steps.append(step)
        farthest = NO_OTHER_LABEL if len(self.labels) == 2 else rule.farthest
        bounded = {}
        for k in self.labels:
            found = known[0, k] or self.number(farthest)
            most = self.number(rule.farthest)
            bounded[f"d{k}"] = (
                f"CASE WHEN code = {k} THEN {self.number(0.0)} WHEN {found} > {most} THEN {most} ELSE {found} END"
            )
        return [*steps, bounded]

    def _leaf_distances(self) -> dict[tuple[int, int], str | None]:
        """Return the distance of each leaf from each label: 0, or None where it does not count."""
        targets, zero = leaf_targets(self.tree), self.number(0.0)
        return {
            (self.tree.n_nodes + v, k): zero if targets[v, k] else None
            for v in range(len(targets))
            for k in self.labels
        }

    def _at_node(self, t: int, k: int, known: dict[tuple[int, int], str | None], step: Step) -> str | None:
        """Return the distance from label ``k`` at node ``t``, which may be a new column of the step."""
        if not self.splits[t].terms:
            return known[self._only_child(t), k]
        left, right = known[topology.left(t), k], known[topology.right(t), k]
        if left is None and right is None:
            return None
        step[f"d{k}_{t}"] = f"CASE WHEN e{t} >= 0 THEN {self._way(t, right, left)} ELSE {self._way(t, left, right)} END"
        return f"d{k}_{t}"

    def _way(self, t: int, here: str | None, across: str | None) -> str:
        """Return the smaller of the distances on this side, and across the hyperplane of node ``t``."""
        cost = f"c{t}"
        if across is None:
            assert here is not None
            return here
        crossed = f"WHEN {across} >= {cost} THEN {across} ELSE {cost} END"
        if here is None:
            return f"CASE {crossed}"
        return f"CASE WHEN {here} <= {cost} OR {here} <= {across} THEN {here} {crossed}"

    def _log_odds(self) -> list[Step]:
        """Return the steps up to the log odds ``o0``, ``o1``, ..., and ``top``, the raised ones of the label."""
        rule = margin_rule(self.tree)
        odds = {}
        for k in self.labels:
            changes = [f"{self.number(a)} * d{j}" for j, a in enumerate(rule.slope[:, k].tolist()) if a]
            odds[f"o{k}"] = " + ".join([self.number(float(rule.intercept[k])), *changes])
        steps = [f" + {self.number(step)}" if step else "" for step in rule.step.tolist()]
        own = " ".join(f"WHEN {k} THEN o{k}{steps[k]}" for k in self.labels)
        others = []
        for k in self.labels:
            larger = [f"(code = {j} OR o{k} >= o{j})" for j in self.labels if j != k]
            others.append(f"WHEN code <> {k} AND {' AND '.join(larger)} THEN o{k}")
        lead = self.number(LABEL_LEAD)
        raised = f"CASE WHEN own < others + {lead} THEN others + {lead} ELSE own END"
        return [odds, {"own": f"CASE code {own} END", "others": f"CASE {' '.join(others)} END"}, {"top": raised}]

    def _shares(self) -> list[Step]:
        """Return the steps up to the shares ``s0``, ``s1``, ..., which do not add up to 1."""
        rule = margin_rule(self.tree)
        parts = {f"p{k}": f"CASE WHEN code = {k} THEN {self.number(1.0)} ELSE EXP(o{k} - top) END" for k in self.labels}
        floor, rest = self.number(rule.floor / len(self.labels)), self.number(1.0 - rule.floor)
        shares = {
            f"s{k}": f"({rest} * p{k} / ({' + '.join(parts)}) + {floor}) / {self.number(float(rule.class_weight[k]))}"
            for k in self.labels
        }
        return [parts, shares]
