"""What a tree may say about a proof."""

from __future__ import annotations

from margotree.tree.protocol import TreeLike


def proof_text(tree: TreeLike) -> str:
    """That the tree's proof was checked, and which; empty unless one was (``margotree check --note``)."""
    note = tree.terms.get("proof")
    if not note:
        return ""
    bound = f"no tree costs less than {note['bound']:.9g}"
    return f"proof checked: this tree costs at most {note['objective']:.9g}, {bound} (sha256 {note['sha256']})"
