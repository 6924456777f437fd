"""A tree as one SQL expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from margotree.export.common import (
    Plan,
    Rule,
    Term,
    grouped,
    label_type,
    nested,
    plan_of,
    signed,
    used_features,
    without_nul,
)
from margotree.table.described import described
from margotree.table.encoding import Category, Column, Number

if TYPE_CHECKING:
    from margotree.tree import Tree


def to_sql(tree: Tree, *, table: str | None = None) -> str:
    """A ``CASE`` expression that gives the label of a row: ``SELECT id, CASE ... END AS label FROM people``.

    Columns are asked for by the features' names; where the tree was trained by ``margotree fit``, a column of words
    by its own name and its words.  ``table`` puts a table's name before each column, so that a column that is not there
    is an error in SQLite too (which otherwise takes an unknown quoted name for a text).

    A row in which a column that the tree asks for is NULL, or holds a word that training did not see, gets NULL: as in
    Python, such a sample has no label.  NaN and infinity, where a database has them, must not be in the columns.
    """
    writer = _Writer(tree, table)
    plan = plan_of(tree)
    if isinstance(plan, int):
        return writer.labels[plan] + "\n"
    holes = [f"{writer.columns[j]} IS NULL" for j in used_features(plan)]
    hole = "\n    OR ".join(grouped(holes, lambda group: f"({' OR '.join(group)})"))
    return f"CASE\n  WHEN {hole}\n  THEN NULL\n{writer.arms(plan, '  ')}\nEND\n"


class _Writer:
    """Knows how features and labels are written for one tree."""

    def __init__(self, tree: Tree, table: str | None) -> None:
        self.labels = [_label(value, label_type(tree)) for value in tree.classes.tolist()]
        prefix = "" if table is None else _name(table) + "."
        self.columns = [f"{prefix}{_name(feature)}" for feature in tree.features]
        encoding = described(tree)
        if encoding is not None:
            self.columns = [text for column in encoding.columns for text in _features(column, prefix)]

    def arms(self, rule: Rule, indent: str) -> str:
        total = nested([self._term(term) for term in rule.terms], f"{indent}     ")
        return (
            f"{indent}WHEN {total} >= {_number(rule.threshold)}\n"
            f"{indent}THEN {self._plan(rule.met, indent)}\n"
            f"{indent}ELSE {self._plan(rule.otherwise, indent)}"
        )

    def _plan(self, plan: Plan, indent: str) -> str:
        if isinstance(plan, int):
            return self.labels[plan]
        inner = indent + "  "
        return f"CASE\n{self.arms(plan, inner)}\n{indent}END"

    def _term(self, term: Term) -> str:
        column = self.columns[term.feature]
        if term.origin:
            column = f"({column} {'-' if term.origin > 0 else '+'} {_number(abs(term.origin))})"
        return signed(_number(term.weight), column)


def _features(column: Column, prefix: str) -> list[str]:
    """The features that come of a column of the training file, NULL where its cell says nothing."""
    name = prefix + _name(column.name)
    if isinstance(column, Number):
        return [name if column.fill is None else f"COALESCE({name}, {_number(column.fill)})"]
    if isinstance(column, Category):
        return _words(column, name)
    return [prefix + _name(feature) for feature in column.features]


def _words(column: Category, name: str) -> list[str]:
    cell = f"NULLIF(TRIM(CAST({name} AS VARCHAR(255))), '')"
    if column.fill is not None:
        cell = f"COALESCE({cell}, {_text(column.fill)})"
    # Words that differ in case alone are told apart only where training told them apart.
    lower = len({word.casefold() for word in column.values}) == len(column.values)
    spelled = {word: f"LOWER({_text(word)})" if lower else _text(word) for word in column.values}
    return [_one_hot(f"LOWER({cell})" if lower else cell, spelled, word) for word in column.shown]


def _one_hot(cell: str, known: dict[str, str], word: str) -> str:
    arms = " ".join(f"WHEN {text} THEN {1 if other == word else 0}" for other, text in known.items())
    return f"CASE {cell} {arms} END"


def _label(value: object, kind: type) -> str:
    if kind is bool:
        return "TRUE" if value else "FALSE"
    if kind is str:
        return _text(str(value))
    return repr(value) if kind is int else _number(float(str(value)))


def _number(value: float) -> str:
    """With an exponent, which makes it a double and not a decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _name(name: str) -> str:
    return '"' + without_nul(name, "the name").replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + without_nul(text, "the label").replace("'", "''") + "'"
