"""The representation of a tree in a notebook: its plot and the statement of its certificate, in HTML without script."""

from __future__ import annotations

import base64
import io
from html import escape
from importlib.util import find_spec

from margotree.plots.figures import figure_of
from margotree.plots.tree import plot_tree
from margotree.tree import HyperplaneTree


def tree_html(tree: HyperplaneTree) -> str:
    """Return the plot of the tree, or its rules without matplotlib, and the statement of its certificate."""
    plot = _plot(tree) if find_spec("matplotlib") is not None else f"<pre>{escape(tree.export_text())}</pre>"
    proof = "" if tree.certificate is None else f"<p>Proved: {escape(tree.certificate.statement)}.</p>"
    return f"<div>{plot}{proof}</div>"


def _plot(tree: HyperplaneTree) -> str:
    """Return the plot as an image element; the figure is closed, so that notebooks do not show it twice."""
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
