"""Small tables as text and as HTML without scripts, for the representations of results in a shell and a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table as text, with left-aligned columns; trailing blanks are removed."""
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def html_lines(lines: Sequence[str]) -> str:
    """Format lines as a paragraph of HTML."""
    return f"<p>{'<br>'.join(map(escape, lines))}</p>"


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """Format a table as HTML, with a note below it."""
    head = "".join(f'<th style="text-align:left">{escape(h)}</th>' for h in heads)
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    after = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{after}"
