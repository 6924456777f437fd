"""Puts a tree's facts, the styles and the scripts into one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from margotree.atomic_files import write_text
from margotree.page.page_data import facts_of
from margotree.plots.palette import class_colour, tint
from margotree.tree import Tree

_SCRIPTS = ("model.js", "entry.js", "flip.js", "draw.js", "page.js")

#: Lines of rules that need not be folded away.
_SHORT = 40

#: What could end a script element or a JavaScript line early, and how JSON spells it otherwise.
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}"}


def render_page(tree: Tree, X: ArrayLike | None = None, y: ArrayLike | None = None, *, title: str | None = None) -> str:
    """The page as text; see :func:`write_page`."""
    facts = facts_of(tree, X, y, title)
    style = _file("page.css") + _colours(len(tree.classes))
    rules = tree.export_text()
    script = "".join(_file(name) for name in _SCRIPTS)
    parts = {
        "title": html.escape(facts["title"]),
        "policy": f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        "style": style,
        "open": " open" if rules.count("\n") <= _SHORT else "",
        "rules": html.escape(rules),
        "facts": _json(facts),
        "script": script,
    }
    # One pass: nothing within a part is taken for the place of another.
    return re.sub(r"{{(\w+)}}", lambda place: parts[place[1]], _file("page.html"))


def write_page(
    tree: Tree,
    path: str | PathLike[str],
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    title: str | None = None,
) -> None:
    """Write a page on which to explore ``tree``: its splits, the way of a new sample, and what would change its label.

    The file stands alone: it loads nothing, sends nothing, and works offline.  With ``X`` and ``y`` it also shows how
    the samples lie about each hyperplane and starts from their medians; it then holds counts and medians, but no
    sample.  A file already there is replaced only once the new one is complete.
    """
    write_text(path, render_page(tree, X, y, title=title))


def _file(name: str) -> str:
    return files("margotree.page").joinpath("files", name).read_text(encoding="utf-8")


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, allow_nan=False, separators=(",", ":"), ensure_ascii=False).translate(_UNSAFE)


def _hash(text: str) -> str:
    """What lets a browser run this text and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _colours(n_classes: int) -> str:
    light = "".join(f"--class-{k}:{class_colour(k)};" for k in range(n_classes))
    dark = "".join(f"--class-{k}:{tint(class_colour(k), 0.72)};" for k in range(n_classes))
    rules = "".join(f".class-{k}{{--class:var(--class-{k})}}" for k in range(n_classes))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{rules}\n"
