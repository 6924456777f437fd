"""Expressions of C that several functions of an exported file use."""

from __future__ import annotations

import textwrap


def checks(used: list[int], failure: str = "-1") -> str:
    """Return the code that returns ``failure`` if a feature in ``used`` is not finite."""
    if not used:
        return "    (void)x;\n"
    numbers = "\n        ".join(textwrap.wrap(", ".join(map(str, used)), 100))
    return (
        f"    static const int asked[{len(used)}] = {{\n        {numbers}\n    }};\n"
        f"    for (int k = 0; k < {len(used)}; k++) {{\n        if (!isfinite(x[asked[k]])) return {failure};\n    }}\n"
    )
