"""Expressions of C that several functions of an exported file use."""

from __future__ import annotations

import textwrap

from margotree.export.common import Term, signed


def checks(used: list[int]) -> str:
    """Return the code that returns -1 if a feature in ``used`` is not finite."""
    if not used:
        return "    (void)x;\n"
    numbers = "\n        ".join(textwrap.wrap(", ".join(map(str, used)), 100))
    return (
        f"    static const int asked[{len(used)}] = {{\n        {numbers}\n    }};\n"
        f"    for (int k = 0; k < {len(used)}; k++) {{\n        if (!isfinite(x[asked[k]])) return -1;\n    }}\n"
    )


def term_text(term: Term) -> str:
    """Return a term of a sum, with its sign in front."""
    value = f"x[{term.feature}]"
    if term.origin:
        value = f"({value} {'-' if term.origin > 0 else '+'} {abs(term.origin)!r})"
    return signed(repr(term.weight), value)
