"""The note of a tree about its checked proof."""

from __future__ import annotations

from margotree.tree.protocol import SplitTree


def proof_text(tree: SplitTree) -> str:
    """Return a sentence about the checked proof of a tree (``margotree check --note``); empty if there is none."""
    note = tree.terms.get("proof")
    if not note:
        return ""
    bound = f"no tree costs less than {note['bound']:.9g}"
    return f"proof checked: this tree costs at most {note['objective']:.9g}, {bound} (sha256 {note['sha256']})"
