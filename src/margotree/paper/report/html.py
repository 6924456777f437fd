"""The report page as HTML text without scripts and network."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from statistics import median

from margotree.paper.experiments.text_table import UNPROVED, Column, Grid
from margotree.paper.report.gather import Contents, FigureImage, Fit
from margotree.paper.report.style import CSS
from margotree.solution import Proved

_NONE = "\N{EN DASH}"
_FIGURES = {
    "planes": "2-D sets: hyperplanes and margins",
    "features": "Features selected",
    "depths": "Depths 2, 3, 4",
    "trees": "Trees",
}


def render(contents: Contents) -> str:
    """Format the contents as an HTML page."""
    from margotree import __version__

    sections = [
        ("summary", "Summary", _summary(contents)),
        ("tables", "Tables beside the paper's", "".join(_table(k, grid) for k, grid in enumerate(contents.tables))),
        ("figures", "Figures", "".join(map(_figure_html, contents.figures)) or "<p>None were drawn.</p>"),
        ("certificates", "Certificates", _certificates(contents.fits)),
        ("machine", "Machine and versions", _environment_table(contents)),
    ]
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in sections)
    body = "".join(f'<section id="{key}"><h2>{title}</h2>{text}</section>' for key, title, text in sections)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>margotree: {escape(contents.source)}</title><style>{CSS}</style></head><body>"
        f"<header><h1>Results in {escape(contents.source)}</h1>"
        f"<nav aria-label='Sections'><ul>{links}</ul></nav></header>"
        f"<main>{body}</main><footer>Written by margotree {escape(__version__)}.</footer></body></html>\n"
    )


# -- sections -----------------------------------------------------------------------------------------------------


def _summary(contents: Contents) -> str:
    fits = contents.fits
    optimal = sum(fit.certificate.proved is Proved.OPTIMAL for fit in fits)
    lines = [
        f"{contents.n_rows:,} fits are in the file: {len(fits):,} on the paper's training parts, {contents.n_folds:,} "
        f"on folds of cross-validations; the first ended {_date(contents.first)}, the last {_date(contents.last)}.",
        f"Of the {len(fits)} on training parts {optimal} are proved optimal.",
    ]
    if contents.changed_data:
        names = ", ".join(contents.changed_data)
        lines.append(f"Rows are not in the order of the paper's authors, so the splits differ: {names}.")
    if contents.missing:
        lines.append("Not run, or not complete enough to be shown: " + ", ".join(contents.missing) + ".")
    return "".join(f"<p>{escape(line)}</p>" for line in lines) + (_by_model(fits) if fits else "")


def _by_model(fits: Sequence[Fit]) -> str:
    rows = []
    for model, group in groupby(sorted(fits, key=lambda f: f.model), key=lambda f: f.model):
        some = list(group)
        gaps = [f.certificate.gap for f in some]
        optimal = sum(f.certificate.proved is Proved.OPTIMAL for f in some)
        seconds = median(f.certificate.seconds for f in some)
        rows.append(
            [model, str(len(some)), str(optimal), _percent(median(gaps)), _percent(max(gaps)), f"{seconds:.1f}"]
        )
    heads = ("model", "fits", "proved optimal", "median gap", "largest gap", "median seconds")
    return _plain_table("By model", heads, rows)


def _table(number: int, grid: Grid) -> str:
    groups = [(group, len(list(some))) for group, some in groupby(c.group for c in grid.columns)]
    over = "".join(
        f'<th colspan="{n}" scope="colgroup">{escape(g)}</th>' if g else f'<td colspan="{n}"></td>' for g, n in groups
    )
    heads = "".join(f'<th scope="col"{_class(c)}>{escape(c.head)}</th>' for c in grid.columns)
    body = "".join(f"<tr{_row_class(row)}>{_cells(grid.columns, row)}</tr>" for row in grid.rows)
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in grid.notes)
    first = f"<tr>{over}</tr>" if any(g for g, _ in groups) else ""
    return (
        f'<div class=scroll tabindex=0 role=region aria-labelledby="t{number}"><table><caption id="t{number}">'
        f"{escape(grid.title)}</caption><thead>{first}<tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
    )


def _cells(columns: Sequence[Column], row: Sequence[str]) -> str:
    cells = []
    for k, (column, cell) in enumerate(zip(columns, row, strict=True)):
        shown = _NONE if cell == "-" else escape(cell.replace("-", "\N{MINUS SIGN}") if column.head == "diff" else cell)
        tag = "th scope=row" if k < 2 and not column.group else "td"
        title = ' title="not proved optimal"' if cell.startswith(UNPROVED) else ""
        cells.append(f"<{tag}{_class(column)}{title}>{shown}</{tag.split()[0]}>")
    return "".join(cells)


def _certificates(fits: Sequence[Fit]) -> str:
    if not fits:
        return "<p>No fit on a training part is in the file.</p>"
    parts = ["<p class=note>Open a line for the complete certificate and the rules in the units of the data.</p>"]
    for model, group in groupby(fits, key=lambda fit: fit.model):
        parts.append(f"<h3>{escape(model)}</h3>" + "".join(map(certificate_entry, group)))
    return "".join(parts)


def certificate_entry(fit: Fit) -> str:
    """One line of the list of certificates, which opens to the complete certificate and the rules."""
    c = fit.certificate
    right = " / ".join(_NONE if v is None else f"{v:.1f} %" for v in (fit.train, fit.test))
    head = (
        f"<span class=what>{escape(fit.data)}</span> <span class=terms>{escape(fit.terms)}</span> "
        f"<span class='proof {'yes' if c.proved is Proved.OPTIMAL else 'no'}'>{escape(c.statement)}</span> "
        f"<span class=value>{c.objective:.6g} in {c.seconds:.1f} s</span>"
    )
    text = f"{c}\n\nright on training / new samples: {right}\nfinished: {_date(fit.finished)}\n\n{fit.rules}"
    return f"<details><summary>{head}</summary><pre>{escape(text)}</pre></details>"


def _figure_html(image: FigureImage) -> str:
    data = base64.b64encode(image.png).decode()
    title = f"{_FIGURES.get(image.figure, image.figure)}: {image.name.split('-', 1)[-1]}"
    alt = f"{title}; the numbers are in the tables"
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{escape(alt)}">'
        f"<figcaption>{escape(title)}</figcaption></figure>"
    )


def _environment_table(contents: Contents) -> str:
    rows = [[environment, f"{count:,}"] for environment, count in contents.environments]
    return _plain_table("Machines and versions of the fits", ("machine: versions", "fits"), rows)


# -- elements -----------------------------------------------------------------------------------------------------


def _plain_table(caption: str, heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th scope=col>{escape(head)}</th>" for head in heads)
    body = "".join(
        f"<tr><th scope=row>{escape(row[0])}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return (
        f"<div class=scroll tabindex=0><table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _class(column: Column) -> str:
    return {"ours": " class=ours", "diff": " class=diff"}.get(column.head, "")


def _row_class(row: Sequence[str]) -> str:
    return " class=mean" if "Mean" in row[:2] else ""


def _percent(share: float) -> str:
    return "unknown" if math.isinf(share) else f"{100 * share:.3g} %"


def _date(text: str) -> str:
    return text.replace("T", " ").replace("+00:00", " UTC") or "at an unknown time"
