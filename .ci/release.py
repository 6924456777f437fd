"""Checks that all files that name the version name the one of the tag.

python .ci/release.py v0.1.0
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Where the last release is named, and how.
PLACES = {
    "CHANGELOG.md": r"^## (\d[^\s]*) \(\d{4}-\d\d-\d\d\)$",
    "CITATION.cff": r"^version: (.*)$",
    "docs/citing.md": r"version = \{(.*?)\}",
}


def named(root: Path = ROOT) -> dict[str, str]:
    """The version of the last release, by the file that names it."""
    found = {}
    for place, pattern in PLACES.items():
        hit = re.search(pattern, (root / place).read_text(encoding="utf-8"), flags=re.M)
        found[place] = hit[1] if hit else "no version"
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return found | {"pyproject.toml, fallback_version": settings["tool"]["setuptools_scm"]["fallback_version"]}


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = {place: version for place, version in named().items() if f"v{version}" != sys.argv[1]}
    for place, version in wrong.items():
        print(f"the tag is {sys.argv[1]}, but {place} says {version}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
