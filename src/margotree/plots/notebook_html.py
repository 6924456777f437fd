"""What a tree shows in a notebook: its picture and what is proved of it, in HTML that needs no script."""

from __future__ import annotations

import base64
import io
from html import escape
from importlib.util import find_spec

from margotree.plots.figures import figure_of
from margotree.plots.tree import plot_tree
from margotree.tree import Tree


def tree_html(tree: Tree) -> str:
    """The picture of the tree, or its rules where matplotlib is missing, and what is proved of it."""
    picture = _picture(tree) if find_spec("matplotlib") is not None else f"<pre>{escape(tree.export_text())}</pre>"
    proof = "" if tree.certificate is None else f"<p>Proved: {escape(tree.certificate.statement)}.</p>"
    return f"<div>{picture}{proof}</div>"


def _picture(tree: Tree) -> str:
    """Drawn on a figure that no notebook shows a second time."""
    from matplotlib import pyplot as plt

    with plt.ioff():
        figure = figure_of(plot_tree(tree, caption=tree.certificate is None))
        try:
            out = io.BytesIO()
            figure.savefig(out, format="png", dpi=160)
            width = round(96 * figure.get_size_inches()[0])
        finally:
            plt.close(figure)
    data = base64.b64encode(out.getvalue()).decode()
    alt = escape(tree.export_text(), quote=True)
    return f'<img src="data:image/png;base64,{data}" width="{width}" style="max-width:100%;height:auto" alt="{alt}">'
