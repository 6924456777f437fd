"""A tree as one SQL expression."""

from __future__ import annotations

from collections.abc import Sequence
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
from margotree.table.cellrule import CellRule, RawColumns
from margotree.table.described import raw_columns
from margotree.table.words import fold

if TYPE_CHECKING:
    from margotree.tree import Tree


def to_sql(tree: Tree, *, table: str | None = None) -> str:
    """A ``CASE`` expression that gives the label of a row: ``SELECT id, CASE ... END AS label FROM people``.

    Where the tree was trained by ``margotree fit``, the columns are those of the training file, as text or as numbers:
    cells are read as ``margotree predict`` reads them, with their words, units,
    decimal commas and missing cells.  Otherwise the columns are the features, of a numeric type, by their names.
    ``table`` puts a table's name before each column, so that a column that is not there is an error in SQLite too
    (which otherwise takes an unknown quoted name for a text).

    A row gets NULL if a column that the tree asks for is missing and nothing stands in, holds a word that training did
    not see, or a text that is no number: as in Python, such a sample has no label.  Text is compared by the database's
    ``LOWER`` and ``TRIM``: where those know ASCII letters and blanks alone (SQLite), a word with other letters in
    another case, or with other spaces around it, gives NULL.  NaN and infinity must not be in columns of a tree that
    was trained from Python.
    """
    writer = _Writer(tree, table)
    plan = plan_of(tree)
    if isinstance(plan, int):
        return writer.labels[plan] + "\n"
    hole = "\n    OR ".join(grouped(writer.holes(used_features(plan)), lambda group: f"({' OR '.join(group)})"))
    return f"CASE\n  WHEN {hole}\n  THEN NULL\n{writer.arms(plan, '  ')}\nEND\n"


class _Writer:
    """Knows how features and labels are written for one tree."""

    def __init__(self, tree: Tree, table: str | None) -> None:
        self.labels = [_label(value, label_type(tree)) for value in tree.classes.tolist()]
        prefix = "" if table is None else _name(table) + "."
        raw = raw_columns(tree)
        self.place = raw.rule_of()
        cells = [_typed(prefix, rule) if raw.typed else _Cell(prefix, rule, raw) for rule in raw.rules]
        self.cell = {cell.rule: cell for cell in cells}
        self.columns = [self.cell[rule].feature(k) for rule, k in self.place.values()]

    def holes(self, used: Sequence[int]) -> list[str]:
        """The conditions under which a row has no label; one for each column that is asked for, if it has any."""
        rules = dict.fromkeys(self.place[j][0] for j in used)
        return [self.cell[rule].refused() for rule in rules]

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


class _Cell:
    """A column of the training file, of any type: what its rule says, as SQL."""

    def __init__(self, prefix: str, rule: CellRule, raw: RawColumns) -> None:
        self.rule, self.comma = rule, raw.comma
        self.name = prefix + _name(rule.column)
        # Words that differ in case alone are told apart only where training told them apart.
        self.exact = len({fold(word) for word, _ in rule.words}) < len(rule.words)
        self.text = f"COALESCE(TRIM(CAST({self.name} AS VARCHAR(255))), '')"
        self.lower = f"LOWER({self.text})"
        self.missing = f"{self.lower} IN ({', '.join(map(_text, raw.missing))})"

    def refused(self) -> str:
        """Where the cell gives the row no label."""
        wrong = []
        if self.rule.words:
            wrong.append(f"{self._word()} NOT IN ({', '.join(self._spelled(word) for word, _ in self.rule.words)})")
        if self.rule.numeric:
            wrong.append(f"({_no_number(self._bare())})")
        both = " AND ".join(wrong)
        return f"{both}" if self.rule.missing is None else f"(NOT {self.missing} AND {both})"

    def feature(self, k: int) -> str:
        """The value of the k-th feature, where the cell is not refused."""
        # Few values and many words: one arm for each value.
        arms = []
        if self.rule.missing is not None:
            arms.append((self.missing, self.rule.missing[k]))
        for value in dict.fromkeys(values[k] for _, values in self.rule.words):
            words = [self._spelled(word) for word, values in self.rule.words if values[k] == value]
            arms.append((f"{self._word()} IN ({', '.join(words)})", value))
        rest = _number(0.0)
        if self.rule.numeric and k == 0:
            rest = self._number()
        else:
            arms = [(condition, value) for condition, value in arms if value != 0.0]
        if not arms:
            return rest
        whens = " ".join(f"WHEN {condition} THEN {_number(value)}" for condition, value in arms)
        return f"CASE {whens} ELSE {rest} END"

    def _word(self) -> str:
        return self.text if self.exact else self.lower

    def _spelled(self, word: str) -> str:
        if self.exact:
            return _text(word)
        # Letters beyond ASCII are left to the database, which may or may not know their other case.
        return _text(word.lower()) if word.isascii() else f"LOWER({_text(word)})"

    def _bare(self) -> str:
        """The text of the number, without a unit and with a decimal point."""
        bare = self.lower
        if self.rule.units:
            whens = " ".join(
                f"WHEN SUBSTR({bare}, LENGTH({bare}) - {len(unit) - 1}) = {_text(unit)} "
                f"THEN TRIM(SUBSTR({bare}, 1, LENGTH({bare}) - {len(unit)}))"
                for unit in self.rule.units
            )
            bare = f"CASE {whens} ELSE {bare} END"
        return f"REPLACE({bare}, ',', '.')" if self.comma else bare

    def _number(self) -> str:
        """As the column has it where it can: a number that is turned into text and back may lose digits."""
        plain = f"CAST({self.name} AS DOUBLE PRECISION)"
        if not self.rule.units and not self.comma:
            return plain
        changed = f"CAST({self._bare()} AS DOUBLE PRECISION)"
        return f"CASE WHEN {_no_number(self.lower)} THEN {changed} ELSE {plain} END"


class _Typed(_Cell):
    """A column of numbers by type, NULL where missing."""

    def refused(self) -> str:
        return f"{self.name} IS NULL"

    def feature(self, k: int) -> str:
        return self.name


def _typed(prefix: str, rule: CellRule) -> _Cell:
    return _Typed(prefix, rule, RawColumns(rules=(rule,), missing=(), typed=True))


def _no_number(text: str) -> str:
    """Whether a text in lower case is no number: ``-12.5e+3`` without regular expressions, which SQL has none of."""
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
    """With an exponent, which makes it a double and not a decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _name(name: str) -> str:
    return '"' + without_nul(name, "the name").replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + without_nul(text, "the label").replace("'", "''") + "'"
