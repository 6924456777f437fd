"""Where a tree hands itself to packages above it.

``tree`` imports nothing that builds on it.  What users expect as a method of a tree but lives above (exports) is named
here and found when it is called: the one place where a tree reaches upward, and only by name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margotree.tree.tree import Tree

#: Method of a tree -> the package whose function of the same name does the work.
HOMES = {name: "margotree.export" for name in ("to_onnx", "to_sql", "to_c", "to_python")}


def hand_over(method: str, tree: Tree, /, **options: Any) -> Any:
    """What the function ``method`` of its home package makes of ``tree``."""
    return getattr(import_module(HOMES[method]), method)(tree, **options)
