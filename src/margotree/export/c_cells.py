"""The C function that converts the cells of a row: ``int <name>_read(const char *const *cells, double *x)``.

``cells`` has the text of one cell per entry of ``<name>_columns`` (NULL is a missing cell); ``x`` receives the
``<name>_n_features`` numbers that ``<name>_predict`` uses. The function returns 0, or the number of the column (from 1)
whose cell gives the row no label: a missing cell that is not imputed, a word that is not in the training data, or text
that is not a number or a date. Letters beyond ASCII are compared byte by byte, so that such a word in another case is
unknown.
"""

from __future__ import annotations

from margotree.export.common import without_nul
from margotree.table.cell_rules import CellRule, RawColumns
from margotree.table.dates import FORMS, day_number
from margotree.table.normalised_words import fold

_WORDS = """   int {name}_read(const char *const *cells, double *x)
       cells: the texts of a row of the file, in the order of {name}_columns
       writes the numbers for {name}_predict to x; returns 0, or the number (from 1) of the column whose cell gives the
       row no label: missing and not imputed, an unknown word, or not a number or a date
"""

_INCLUDES = """#include <locale.h>
#include <stdlib.h>
#include <string.h>
"""

_DECLARED = """
extern const int {name}_n_columns;
extern const char *const {name}_columns[{n}];
int {name}_read(const char *const *cells, double *x);
"""

_TRIMMED = """
static int {name}_blank(char c) {{ return c == ' ' || (c >= '\\t' && c <= '\\r'); }}

static char {name}_small(char c) {{ return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); }}

/* Compares words without case and spacing; exactly, if words of the training data differ in these alone. */
static int {name}_same(const char *cell, size_t n, const char *word, int exact) {{
    size_t k = 0;
    if (exact) return strlen(word) == n && memcmp(cell, word, n) == 0;
    while (k < n && *word) {{
        if ({name}_blank(cell[k])) {{
            if (*word++ != ' ') return 0;
            while (k < n && {name}_blank(cell[k])) k++;
        }} else if ({name}_small(cell[k++]) != *word++) {{
            return 0;
        }}
    }}
    return k == n && !*word;
}}

static int {name}_missing(const char *cell, size_t n) {{
    static const char *const words[] = {{{missing}}};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {{
        if ({name}_same(cell, n, words[k], 0)) return 1;
    }}
    return 0;
}}
"""

_NUMBER = """
static size_t {name}_digits(const char *cell, size_t n, size_t k) {{
    while (k < n && cell[k] >= '0' && cell[k] <= '9') k++;
    return k;
}}

static int {name}_number(const char *cell, size_t n, double *value) {{
    char text[512], *end;
    const char *point = localeconv()->decimal_point;
    size_t k = n && (*cell == '+' || *cell == '-'), whole = {name}_digits(cell, n, k), part = whole;
    if (n >= sizeof text - 8 || strlen(point) > 7) return 0;
    if (part < n && (cell[part] == '.'{comma})) part = {name}_digits(cell, n, part + 1);
    if (part - k < (size_t)(part == whole ? 1 : 2)) return 0;
    k = part;
    if (k < n && (cell[k] == 'e' || cell[k] == 'E')) {{
        size_t start = k + 1 + (k + 1 < n && (cell[k + 1] == '+' || cell[k + 1] == '-'));
        k = {name}_digits(cell, n, start);
        if (k == start) return 0;
    }}
    if (k != n) return 0;
    /* strtod reads the decimal point of the program's locale. */
    memcpy(text, cell, whole);
    text[whole] = 0;
    if (part > whole) {{
        strcat(text, point);
        strncat(text, cell + whole + 1, n - whole - 1);
    }} else {{
        strncat(text, cell + whole, n - whole);
    }}
    *value = strtod(text, &end);
    return *end == 0 && isfinite(*value);
}}
"""

_DATE = """
/* The days from the day with the number ``since`` to a date of the form, such as YYYY-MM-DD. */
static int {name}_days(const char *cell, size_t n, const char *form, double since, double *value) {{
    static const int before[] = {{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}};
    static const int length[] = {{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}};
    size_t k, end = strlen(form);
    long year = 0, month = 0, day = 0;
    int leap;
    if (n < end || (n > end && cell[end] != ' ' && cell[end] != 'T' && cell[end] != 't')) return 0;
    for (k = 0; k < end; k++) {{
        long *part = form[k] == 'Y' ? &year : form[k] == 'M' ? &month : form[k] == 'D' ? &day : NULL;
        if (part ? cell[k] < '0' || cell[k] > '9' : cell[k] != form[k]) return 0;
        if (part) *part = 10 * *part + (cell[k] - '0');
    }}
    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (year < 1 || month < 1 || month > 12 || day < 1) return 0;
    if (day > length[month - 1] + (month == 2 && leap)) return 0;
    day += before[month - 1] + (month > 2 && leap);
    year -= 1;
    *value = (double)(365 * year + year / 4 - year / 100 + year / 400 + day) - since;
    return 1;
}}
"""

_UNIT = """
/* The length of the cell without a unit at its end. */
static size_t {name}_without(const char *cell, size_t n, const char *unit) {{
    size_t length = strlen(unit), rest = n > length ? n - length : 0;
    if (!rest || !{name}_same(cell + rest, length, unit, 0)) return n;
    while (rest && {name}_blank(cell[rest - 1])) rest--;
    return rest && cell[rest - 1] >= '0' && cell[rest - 1] <= '9' ? rest : n;
}}
"""

_READ = """
const int {name}_n_columns = {n};

const char *const {name}_columns[{n}] = {{
    {columns}
}};

int {name}_read(const char *const *cells, double *x) {{
    const char *cell;
    size_t n;
{body}
    return 0;
}}
"""

_COLUMN = """    cell = cells[{k}] ? cells[{k}] : "";
    while ({name}_blank(*cell)) cell++;
    n = strlen(cell);
    while (n && {name}_blank(cell[n - 1])) n--;
{arms}"""


class Reader:
    """The parts of the C file that convert the cells of a row to features."""

    def __init__(self, raw: RawColumns, name: str) -> None:
        self.name = name
        self.words, self.includes = _WORDS.format(name=name), _INCLUDES
        self.declared = _DECLARED.format(name=name, n=len(raw.rules))
        missing = ", ".join(c_text(word) for word in raw.missing)
        self.defined = _TRIMMED.format(name=name, missing=missing)
        if any(rule.date for rule in raw.rules):
            self.defined += _DATE.format(name=name)
        if any(rule.numeric and not rule.date for rule in raw.rules):
            self.defined += _NUMBER.format(name=name, comma=" || cell[part] == ','" if raw.comma else "")
        if any(rule.units for rule in raw.rules):
            self.defined += _UNIT.format(name=name)
        columns = ",\n    ".join(c_text(rule.column) for rule in raw.rules)
        body, first = [], 0
        for k, rule in enumerate(raw.rules):
            arms = self._arms(rule, k, first)
            body.append(_COLUMN.format(name=name, k=k, arms=arms))
            first += len(rule.features)
        self.defined += _READ.format(name=name, n=len(raw.rules), columns=columns, body="\n".join(body))

    def _arms(self, rule: CellRule, k: int, first: int) -> str:
        refused = f"return {k + 1};"
        exact = len({fold(word) for word, _ in rule.words}) < len(rule.words)
        missing = refused if rule.missing is None else _assigned(rule.missing, first)
        arms = [f"    if ({self.name}_missing(cell, n)) {{ {missing} }}\n"]
        for word, values in rule.words:
            same = f"{self.name}_same(cell, n, {c_text(word if exact else _lower(word))}, {int(exact)})"
            arms.append(f"    else if ({same}) {{ {_assigned(values, first)} }}\n")
        if not rule.numeric:
            other = refused if rule.other is None else f"{{ {_assigned(rule.other, first)} }}"
            return "".join([*arms, f"    else {other}\n"])
        arms.append("    else {\n")
        if rule.units:
            arms.append("        const size_t whole = n;\n")
        for unit in rule.units:
            arms.append(f"        if (n == whole) n = {self.name}_without(cell, n, {c_text(_lower(unit))});\n")
        if rule.date is None:
            read = f"{self.name}_number(cell, n, &x[{first}])"
        else:
            form, since = rule.date
            read = f"{self.name}_days(cell, n, {c_text(form)}, {day_number(since, FORMS[0])!r}, &x[{first}])"
        arms.append(f"        if (!{read}) {refused}\n")
        rest = _assigned((0.0,) * (len(rule.features) - 1), first + 1)
        return "".join([*arms, *([f"        {rest}\n"] if rest else []), "    }\n"])


def _assigned(values: tuple[float, ...], first: int) -> str:
    return " ".join(f"x[{first + k}] = {value!r};" for k, value in enumerate(values))


def _lower(word: str) -> str:
    """Return the word with ASCII letters in lower case and single blanks, as the C code compares it."""
    return " ".join("".join(c.lower() if c.isascii() else c for c in word).split())


def c_text(text: str) -> str:
    """Return a C string literal of ASCII characters, which does not depend on the source encoding."""
    return '"' + "".join(_byte(b) for b in without_nul(text, "the name").encode()) + '"'


def _byte(b: int) -> str:
    # An octal escape has at most three digits; an escaped question mark does not start a trigraph.
    return chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
