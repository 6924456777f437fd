"""A table of strings with grouped columns, and its output as text, CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

#: The mark before a number whose tree was not proved optimal.
UNPROVED = "~"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: ``group`` is the common heading of adjacent columns, ``key`` the name in a CSV file."""

    key: str
    head: str
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of strings."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=tuple)
    marks: bool = True
    """Whether numbers of trees that are not proved optimal are marked."""


def to_text(grid: Grid) -> str:
    heads, groups = [c.head for c in grid.columns], [c.group for c in grid.columns]
    cells = list(zip(heads, *grid.rows, strict=True))
    widths = [max(map(len, column)) for column in cells]
    left = _text_columns(grid)
    lines = [grid.title, "", *([_spans(groups, widths)] if any(groups) else [])]
    lines += [_line(heads, widths, left), "-" * (sum(widths) + 2 * len(widths) - 2)]
    lines += [_line(row, widths, left) for row in grid.rows]
    return "\n".join([*lines, *([""] if grid.notes else []), *grid.notes]) + "\n"


def to_csv(grid: Grid) -> str:
    """Format as CSV with plain numbers; the marks of numbers not proved become the column ``certified``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(c.key for c in grid.columns), *(["certified"] if grid.marks else [])])
    for row in grid.rows:
        plain = ["" if cell == "-" else cell.removeprefix(UNPROVED) for cell in row]
        marked = any(cell.startswith(UNPROVED) for cell in row)
        writer.writerow([*plain, *(["no" if marked else "yes"] if grid.marks else [])])
    return out.getvalue()


def to_markdown(grid: Grid) -> str:
    heads = [f"{c.group} {c.head}".strip() for c in grid.columns]
    marks = ["---" if is_text else "---:" for is_text in _text_columns(grid)]
    lines = [f"| {' | '.join(row)} |" for row in ([h.replace("|", "\\|") for h in heads], marks, *grid.rows)]
    return "\n".join([f"**{grid.title}**", "", *lines, *([""] if grid.notes else []), *grid.notes]) + "\n"


def to_latex(grid: Grid) -> str:
    spans = [(group, len(list(members))) for group, members in groupby(c.group for c in grid.columns)]
    group_line = " & ".join(
        f"\\multicolumn{{{n}}}{{c}}{{{_tex(group)}}}" if group else " & ".join([""] * n) for group, n in spans
    )
    lines = [
        "\\begin{table}[ht]",
        "\\centering",
        f"\\begin{{tabular}}{{{''.join('l' if is_text else 'r' for is_text in _text_columns(grid))}}}",
        f"{group_line} \\\\ \\hline\\hline",
        " & ".join(_tex(c.head) for c in grid.columns) + " \\\\ \\hline",
        *(" & ".join(map(_tex, row)) + " \\\\" for row in grid.rows),
        "\\hline",
        "\\end{tabular}",
        f"\\caption{{{_tex(' '.join([grid.title + '.', *grid.notes]))}}}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Grid], str]] = {
    "text": to_text,
    "csv": to_csv,
    "latex": to_latex,
    "markdown": to_markdown,
}


def _text_columns(grid: Grid) -> list[bool]:
    """Which columns contain text rather than numbers."""
    return [any(row[k][:1].isalpha() for row in grid.rows) for k in range(len(grid.columns))]


def _line(cells: Sequence[str], widths: Sequence[int], left: Sequence[bool]) -> str:
    """One line; columns of text are left-aligned, columns of numbers right-aligned."""
    padded = [c.ljust(w) if is_text else c.rjust(w) for c, w, is_text in zip(cells, widths, left, strict=True)]
    return "  ".join(padded).rstrip()


def _spans(groups: Sequence[str], widths: Sequence[int]) -> str:
    """The line of group headings, each centred over its columns."""
    parts: list[str] = []
    for group, members in groupby(range(len(groups)), key=groups.__getitem__):
        of_group = list(members)
        width = sum(widths[k] for k in of_group) + 2 * (len(of_group) - 1)
        parts.append(group[:width].center(width))
    return "  ".join(parts).rstrip()


def _tex(text: str) -> str:
    for plain, escaped in (
        ("\\", r"\textbackslash{}"),
        ("%", r"\%"),
        ("_", r"\_"),
        ("&", r"\&"),
        ("|", r"$|$"),
        ("~", r"$\sim$"),
    ):
        text = text.replace(plain, escaped)
    return text
