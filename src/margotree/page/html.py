"""Combines the data of a tree, the styles and the scripts in one HTML file."""

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
from margotree.tree import HyperplaneTree, RegressionTree

_SCRIPTS = ("model.js", "entry.js", "flip.js", "draw.js", "page.js")

#: What differs between trees of classes and of numbers: a script, and words of the template.
_LABELS = {
    "answers": "labels.js",
    "noun": "label",
    "goal": "Label to reach <select></select>",
    "measured": "How often it is right",
}
_NUMBERS = {
    "answers": "numbers.js",
    "noun": "prediction",
    "goal": 'Prediction to reach <input type="text" inputmode="decimal">',
    "measured": "How far off it is",
}

#: Rules with more lines than this are folded at first.
_SHORT = 40

#: Characters that could end a script element or a JavaScript line, with their JSON escapes.
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}"}


def render_page(
    tree: HyperplaneTree, X: ArrayLike | None = None, y: ArrayLike | None = None, *, title: str | None = None
) -> str:
    """Return the page as text; see :func:`write_page`."""
    facts = facts_of(tree, X, y, title)
    words = _NUMBERS if isinstance(tree, RegressionTree) else _LABELS
    style = _file("page.css") + _colours(tree.counts.shape[1])
    rules = tree.export_text()
    script = "".join(_file(name) for name in (words["answers"], *_SCRIPTS))
    parts = {
        **words,
        "title": html.escape(facts["title"]),
        "policy": f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        "style": style,
        "open": " open" if rules.count("\n") <= _SHORT else "",
        "rules": html.escape(rules),
        "facts": _json(facts),
        "script": script,
    }
    # In a single pass, so that {{...}} within a part is not replaced.
    return re.sub(r"{{(\w+)}}", lambda field: parts[field[1]], _file("page.html"))


def write_page(
    tree: HyperplaneTree,
    path: str | PathLike[str],
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    title: str | None = None,
) -> None:
    """Write a page about ``tree``: its splits, the path of a new sample, and the smallest changes of its answer.

    For a tree of numbers the answer is the prediction, with its formula and, if the tree has residuals, its interval;
    the changes are those that reach a given prediction.

    The file loads nothing, sends nothing, and works offline. An existing file is replaced after the new one is
    complete.

    Parameters
    ----------
    tree : Tree or RegressionTree
        The tree.
    path : path
        The HTML file.
    X, y : array, optional
        Samples with labels or numeric targets. The page then has a histogram of them at each split and starts from
        their medians; it contains counts and medians, but no sample.
    title : str, optional
        The title; by default the target and the model.
    """
    write_text(path, render_page(tree, X, y, title=title))


def _file(name: str) -> str:
    return files("margotree.page").joinpath("files", name).read_text(encoding="utf-8")


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, allow_nan=False, separators=(",", ":"), ensure_ascii=False).translate(_UNSAFE)


def _hash(text: str) -> str:
    """Return the hash in the content security policy that allows a browser to run this text only."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _colours(n_classes: int) -> str:
    light = "".join(f"--class-{k}:{class_colour(k)};" for k in range(n_classes))
    dark = "".join(f"--class-{k}:{tint(class_colour(k), 0.72)};" for k in range(n_classes))
    rules = "".join(f".class-{k}{{--class:var(--class-{k})}}" for k in range(n_classes))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{rules}\n"
