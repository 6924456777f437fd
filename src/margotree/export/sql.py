"""Export of a tree to one SQL expression."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from margotree.export.common import (
    LeafFormula,
    Rule,
    RuleTree,
    Term,
    excesses,
    features_in_use,
    features_of,
    grouped,
    label_type,
    leaf_formulas,
    nested,
    rule_tree_of,
    signed,
    used_features,
    without_nul,
)
from margotree.export.sql_probabilities import probability_of
from margotree.table.cell_rules import CellRule, RawColumns
from margotree.table.dates import FORMS, day_number
from margotree.table.normalised_words import fold
from margotree.table.table_description import raw_columns
from margotree.tree import HyperplaneTree, RegressionTree

if TYPE_CHECKING:
    from margotree.tree import Tree


def to_sql(tree: Tree | RegressionTree, *, table: str | None = None, proba: Any = None) -> str:
    """Return an expression for the label of a row: ``SELECT id, CASE ... END AS label FROM people``.

    For a regression tree the expression is the prediction.

    For a tree of ``margotree fit`` the columns are those of the training table, as text or as numbers: a subquery
    without a table reads cells as ``margotree predict`` does, with words, units, decimal commas and missing cells.
    Otherwise the columns are the features, of a numeric type; they must not contain NaN or infinity.

    A row gets NULL if a cell that the tree uses is missing and not imputed, is a word that is not in the training
    data, or text that is not a number or a date: such a sample has no label. Text is compared with ``LOWER`` and
    ``TRIM`` of the database. In SQLite these handle only ASCII letters and blanks, so that a word with other letters in
    another case, or with other white space around it, gives NULL.

    Parameters
    ----------
    tree : Tree
        The tree.
    table : str, optional
        A table name in front of each column. With it, a missing column is an error in SQLite, too, which otherwise
        treats an unknown quoted name as text.
    proba : label, optional
        A label of the tree: the expression is the probability of this label instead of the predicted label. With
        ``proba="margin"`` of the classifiers it uses the function ``EXP`` of the database.
    """
    writer = _Writer(tree, table)
    if isinstance(tree, RegressionTree):
        if proba is not None:
            raise ValueError("a regression tree has no probabilities; leave proba out")
        formulas, rule_tree = leaf_formulas(tree), rule_tree_of(tree)
        used = features_in_use(tree, rule_tree)
        found = writer.rule_tree(rule_tree, "  ", lambda k, indent: writer.formula(formulas[k], indent))
        return writer.on_features(writer.null_if_missing(used, found), used) if used else found + "\n"
    if proba is not None:
        used = features_of(excesses(tree))
        found = probability_of(tree, _position(tree, proba), writer.term, _number)
        return writer.on_features(writer.null_if_missing(used, found), used) if used else found + "\n"
    rule_tree = rule_tree_of(tree)
    labels = [_label(value, label_type(tree)) for value in tree.classes.tolist()]
    if isinstance(rule_tree, int):
        return labels[rule_tree] + "\n"
    used = used_features(rule_tree)
    arms = writer.arms(rule_tree, "  ", lambda k, indent: labels[k])
    return writer.on_features(writer.null_if_missing(used, arms), used)


def _position(tree: Tree, label: Any) -> int:
    found = np.flatnonzero(tree.classes == label)
    if not len(found):
        raise ValueError(f"proba must be one of the labels {tree.classes.tolist()!r}, got {label!r}")
    return int(found[0])


#: Returns the expression of a leaf for its position and the indent.
Leaf = Callable[[int, str], str]


#: The days of a year before each month, where it is no leap year.
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


class _Writer:
    """Writes features, rules and formulas of one tree."""

    def __init__(self, tree: HyperplaneTree, table: str | None) -> None:
        self.prefix = "" if table is None else _name(table) + "."
        self.raw = raw_columns(tree)
        self.cell_of_feature = self.raw.rules_by_feature()
        if self.raw.numeric_cells:
            self.columns = [self.prefix + _name(name) for name in tree.features]
        else:
            self.columns = [f"features.{name}" for name in _aliases(tree.features)]

    def null_if_missing(self, used: Sequence[int], otherwise: str) -> str:
        """Return an expression that is NULL if a feature is missing; ``otherwise`` is an expression or further arms."""
        conditions = [f"{self.columns[j]} IS NULL" for j in used]
        missing = "\n    OR ".join(grouped(conditions, lambda group: f"({' OR '.join(group)})"))
        arms = otherwise if otherwise.lstrip().startswith("WHEN") else f"  ELSE {otherwise}"
        return f"CASE\n  WHEN {missing}\n  THEN NULL\n{arms}\nEND"

    def on_features(self, labels: str, used: Sequence[int]) -> str:
        """Return an expression that uses features; if these are read from text, with the subqueries that do so."""
        if self.raw.numeric_cells:
            return labels + "\n"
        rules = list(dict.fromkeys(self.cell_of_feature[j][0] for j in used))
        cells = {rule: _Cell(k, rule, self.raw) for k, rule in enumerate(rules)}
        texts = [part for cell in cells.values() for part in cell.texts(self.prefix)]
        numbers = [part for cell in cells.values() for part in cell.numbers()]
        alias = [column.removeprefix("features.") for column in self.columns]
        features = [f"{cells[rule].feature(k)} AS {alias[j]}" for j in used for rule, k in [self.cell_of_feature[j]]]
        return (
            f"(SELECT {labels}\nFROM (SELECT\n  {_listed(features)}\nFROM (SELECT\n  {_listed(numbers)}\n"
            f"FROM (SELECT\n  {_listed(texts)}\n) AS texts) AS numbers) AS features)\n"
        )

    def arms(self, rule: Rule, indent: str, leaf: Leaf) -> str:
        total = nested([self.term(term) for term in rule.terms], f"{indent}     ")
        return (
            f"{indent}WHEN {total} >= {_number(rule.threshold)}\n"
            f"{indent}THEN {self.rule_tree(rule.met, indent, leaf)}\n"
            f"{indent}ELSE {self.rule_tree(rule.otherwise, indent, leaf)}"
        )

    def rule_tree(self, rule_tree: RuleTree, indent: str, leaf: Leaf) -> str:
        if isinstance(rule_tree, int):
            return leaf(rule_tree, indent)
        inner = indent + "  "
        return f"CASE\n{self.arms(rule_tree, inner, leaf)}\n{indent}END"

    def formula(self, formula: LeafFormula, indent: str) -> str:
        """Return the prediction of a leaf; the sum occurs once per limit, because functions such as LEAST differ."""
        if formula.number is not None:
            return _number(formula.number)
        total = nested([_number(formula.constant), *map(self.term, formula.terms)], f"{indent}     ")
        limits = [(sign, limit) for sign, limit in (("<", formula.low), (">", formula.high)) if math.isfinite(limit)]
        arms = "".join(
            f"\n{indent}  WHEN {total} {sign} {_number(limit)} THEN {_number(limit * formula.unit)}"
            for sign, limit in limits
        )
        inside = f"({total}) * {_number(formula.unit)}"
        return f"CASE{arms}\n{indent}  ELSE {inside}\n{indent}END" if arms else inside

    def term(self, term: Term) -> str:
        """Return a term of a sum, with its sign in front."""
        column = self.columns[term.feature]
        if term.origin:
            column = f"({column} {'-' if term.origin > 0 else '+'} {_number(abs(term.origin))})"
        return signed(_number(term.weight), column)


class _Cell:
    """The rule for the cells of a column of the training table, as SQL.

    In the SQL, ``c`` is the cell, ``t`` its text, ``l`` the text in lower case, ``n`` the text of the number in it.
    """

    def __init__(self, position: int, rule: CellRule, raw: RawColumns) -> None:
        self.k, self.rule, self.raw = position, rule, raw
        # Case matters only if words of the training data differ in case alone.
        self.exact = len({fold(word) for word, _ in rule.words}) < len(rule.words)

    def texts(self, prefix: str) -> list[str]:
        """Return the columns of the innermost subquery: the cell and its text."""
        name = prefix + _name(self.rule.column)
        text = f"COALESCE(TRIM(CAST({name} AS VARCHAR(255))), '')"
        exact = [f"{text} AS t{self.k}"] if self.exact else []
        return [f"{name} AS c{self.k}", f"LOWER({text}) AS l{self.k}", *exact]

    def numbers(self) -> list[str]:
        """Return the columns of the subquery around it, which adds the text of the number."""
        k = self.k
        exact = [f"t{k}"] if self.exact else []
        if self.rule.date is not None:
            return [f"l{k}", *(f"{part} AS {name}{k}" for name, part in zip("ymd", self._date_parts(), strict=True))]
        return [f"c{k}", f"l{k}", *exact, *([f"{self._bare()} AS n{k}"] if self.rule.numeric else [])]

    def feature(self, k: int) -> str:
        """Return the value of the k-th feature; NULL if the row has no label."""
        missing = "NULL" if self.rule.missing is None else _number(self.rule.missing[k])
        arms = [f"WHEN l{self.k} IN ({', '.join(map(_text, self.raw.missing))}) THEN {missing}"]
        word = f"t{self.k}" if self.exact else f"l{self.k}"
        # Many words have few values: one WHEN per value.
        for value in dict.fromkeys(values[k] for _, values in self.rule.words):
            words = [self._spelled(word) for word, values in self.rule.words if values[k] == value]
            arms.append(f"WHEN {word} IN ({', '.join(words)}) THEN {_number(value)}")
        if self.rule.date is not None:
            arms.append(f"WHEN {self._no_day()} THEN NULL ELSE {_number(0.0) if k else self._days()}")
        elif self.rule.numeric:
            arms.append(f"WHEN {_no_number(f'n{self.k}')} THEN NULL ELSE {_number(0.0) if k else self._number()}")
        elif self.rule.other is not None:
            arms.append(f"ELSE {_number(self.rule.other[k])}")
        return f"CASE {' '.join(arms)} END"

    def _date_parts(self) -> list[str]:
        """Return the year, the month and the day of a date; NULL where the text has another form."""
        assert self.rule.date is not None
        form, text = self.rule.date[0], f"l{self.k}"
        begin = {letter: (form.index(letter) + 1, form.count(letter)) for letter in "YMD"}
        parts = {letter: f"SUBSTR({text}, {first}, {length})" for letter, (first, length) in begin.items()}
        others = [f"SUBSTR({text}, {k + 1}, 1) <> {_text(c)}" for k, c in enumerate(form) if c not in "YMD"]
        n = len(form)
        odd = " OR ".join([
            f"LENGTH({text}) < {n}", f"SUBSTR({text}, {n + 1}, 1) NOT IN ('', ' ', 't')", *others,
            *(f"LTRIM({part}, '0123456789') <> ''" for part in parts.values()),
        ])  # fmt: skip
        return [f"CASE WHEN {odd} THEN NULL ELSE CAST({part} AS INTEGER) END" for part in parts.values()]

    def _leap(self) -> str:
        y = f"y{self.k}"
        return f"CASE WHEN {y} % 4 = 0 AND ({y} % 100 <> 0 OR {y} % 400 = 0) THEN 1 ELSE 0 END"

    def _no_day(self) -> str:
        """Return the condition that year, month and day are no date."""
        y, m, d = (f"{part}{self.k}" for part in "ymd")
        length = f"CASE WHEN {m} = 2 THEN 28 + {self._leap()} WHEN {m} IN (4, 6, 9, 11) THEN 30 ELSE 31 END"
        return f"{y} IS NULL OR {y} < 1 OR {m} < 1 OR {m} > 12 OR {d} < 1 OR {d} > {length}"

    def _days(self) -> str:
        """Return the days since the first date; the remainders make the divisions exact in any database."""
        assert self.rule.date is not None
        y, m, d = (f"{part}{self.k}" for part in "ymd")
        whole = [f"({y} - 1 - ({y} - 1) % {n}) / {n}" for n in (4, 100, 400)]
        months = " ".join(f"WHEN {k} THEN {days}" for k, days in enumerate(_DAYS_BEFORE, 1))
        leap = f"CASE WHEN {m} > 2 THEN {self._leap()} ELSE 0 END"
        since = int(day_number(self.rule.date[1], FORMS[0]))
        total = (
            f"365 * ({y} - 1) + {whole[0]} - {whole[1]} + {whole[2]} + CASE {m} {months} END + {leap} + {d} - {since}"
        )
        return f"{_number(1.0)} * ({total})"

    def _spelled(self, word: str) -> str:
        if self.exact:
            return _text(word)
        # The database converts letters beyond ASCII, in the same way on both sides of the comparison.
        return _text(word.lower()) if word.isascii() else f"LOWER({_text(word)})"

    def _bare(self) -> str:
        """Return the text of the number, without a unit and with a decimal point."""
        bare = f"l{self.k}"
        if self.rule.units:
            whens = " ".join(
                f"WHEN SUBSTR({bare}, LENGTH({bare}) - {len(unit) - 1}) = {_text(unit)} "
                f"THEN TRIM(SUBSTR({bare}, 1, LENGTH({bare}) - {len(unit)}))"
                for unit in self.rule.units
            )
            bare = f"CASE {whens} ELSE {bare} END"
        return f"REPLACE({bare}, ',', '.')" if self.raw.comma else bare

    def _number(self) -> str:
        """Return the number; from the cell itself if possible, because conversion to text and back may lose digits."""
        plain = f"CAST(c{self.k} AS DOUBLE PRECISION)"
        if not self.rule.units and not self.raw.comma:
            return plain
        changed = f"CAST(n{self.k} AS DOUBLE PRECISION)"
        return f"CASE WHEN n{self.k} = l{self.k} THEN {plain} ELSE {changed} END"


def _aliases(features: Sequence[str]) -> list[str]:
    """Return the names of the features if all are short and differ in more than case, else x0, x1, ..."""
    if len({name.casefold() for name in features}) == len(features) and all(len(n.encode()) < 60 for n in features):
        return [_name(name) for name in features]
    return [f"x{j}" for j in range(len(features))]


def _listed(columns: Sequence[str]) -> str:
    return ",\n  ".join(columns)


def _no_number(text: str) -> str:
    """Return the condition that a text in lower case is not a number, without regular expressions."""
    digits = f"REPLACE(REPLACE({text}, 'e-', 'e'), 'e+', 'e')"
    return (
        f"LTRIM(SUBSTR({digits}, 1, 1), '+-.0123456789') <> '' OR LTRIM(SUBSTR({digits}, 2), '.0123456789e') <> '' "
        f"OR LTRIM({digits}, '+-.e') = '' OR {digits} LIKE '%.%.%' OR {digits} LIKE '%e%.%' OR {digits} LIKE '%e%e%' "
        f"OR {digits} LIKE '%e'"
    )


def _label(value: object, kind: type) -> str:
    if kind is bool:
        return "TRUE" if value else "FALSE"
    if kind is str:
        return _text(str(value))
    return repr(value) if kind is int else _number(float(str(value)))


def _number(value: float) -> str:
    """Return a number with an exponent, which makes it a double and not a decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _name(name: str) -> str:
    return '"' + without_nul(name, "the name").replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + without_nul(text, "the label").replace("'", "''") + "'"
