"""Checks spelling, and that texts and names keep to the vocabulary of docs/glossary.md.

    python .ci/words.py                  # all of the tree
    python .ci/words.py --count          # hits per package and word
    python .ci/words.py README.md src/margotree/tree

codespell finds typos with its own dictionary, and single words of the project's old vocabulary with
``.codespell/dictionary.txt``. ``.codespell/phrases.txt`` has what takes more than one word to judge.
``.codespell/exceptions.txt`` lists hits that are right, each with a reason.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / ".codespell"
#: What is checked when nothing else is named. Messages are strings in ``src``.
PLACES = (
    "src",
    "docs",
    "examples",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
)
TEXTS = {".py", ".md", ".rst", ".html", ".js", ".css", ".svg"}
#: Made by the build of the documentation.
BUILT = {"_build", "_generated", "gallery"}
#: Parts of names are words, too: ``price_of`` and ``PriceList`` contain "price".
PARTS = "[A-Z]?[a-z]+|[A-Z]{2,}"
#: Where a name is taken apart: ``taken_down``, ``takenDown``.
NAMES = re.compile(r"_+|(?<=[a-z])(?=[A-Z])")
#: A word alone in quotes names data: a column, a class, a file.
QUOTED = re.compile(r"""(["'`])\w+\1""")


class Hit(NamedTuple):
    file: str
    line: int
    found: str
    write: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.found} ==> {self.write}"


def files(places: list[str]) -> list[Path]:
    """All texts in the places named."""
    found: list[Path] = []
    for place in map(Path, places):
        within = sorted(place.rglob("*")) if place.is_dir() else [place]
        found += [p for p in within if p.suffix in TEXTS and not (place.is_dir() and BUILT & set(p.parts))]
    return found


def spelling(texts: list[Path], *options: str) -> Iterator[Hit]:
    """What codespell finds."""
    command = [sys.executable, "-m", "codespell_lib", "--ignore-words", str(RULES / "words.txt"), *options]
    for start in range(0, len(texts), 200):  # within the limits of a command line
        done = subprocess.run(
            [*command, *map(str, texts[start : start + 200])], capture_output=True, text=True, encoding="utf-8"
        )
        if done.returncode not in {0, 65}:
            sys.exit(f"codespell failed: {done.stderr or done.stdout}\nIt comes with: pip install codespell")
        for row in done.stdout.splitlines():
            if hit := re.match(r"(.*):(\d+): (.*?) ==> (.*)", row):
                yield Hit(name(Path(hit[1])), int(hit[2]), hit[3], hit[4])


def phrases(texts: list[Path]) -> Iterator[Hit]:
    """What the regular expressions of phrases.txt find."""
    rules = [row.rsplit(" -> ", 1) for row in rows("phrases.txt")]
    compiled = [(re.compile(pattern, flags=re.I), write) for pattern, write in rules]
    for path in texts:
        text, starts, lines = plain(path.read_text(encoding="utf-8"))
        for pattern, write in compiled:
            for hit in pattern.finditer(text):
                yield Hit(name(path), lines[bisect_right(starts, hit.start()) - 1], hit[0], write)


def plain(text: str) -> tuple[str, list[int], list[int]]:
    """The words of a text in one line, where each starts, and the line of the file it is from.

    Phrases go on over the end of a line, behind the mark of a comment or a quotation; names are taken apart.
    """
    words, starts, lines, length = [], [], [], 0
    for number, row in enumerate(QUOTED.sub("", text).splitlines(), start=1):
        for word in NAMES.sub(" ", row).split():
            if word not in {"#", "//", ">", "*", "-", "|"}:
                words.append(word)
                starts.append(length)
                lines.append(number)
                length += len(word) + 1
    return " ".join(words), starts, lines


def rows(file: str) -> list[str]:
    """The lines of a file of rules, without comments."""
    lines = (RULES / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def name(path: Path) -> str:
    """The path as it is shown: from the root of the repository, if it is in there."""
    full = path.resolve()
    return full.relative_to(ROOT).as_posix() if full.is_relative_to(ROOT) else str(path)


def allowed(hit: Hit) -> bool:
    """Whether the hit is among the exceptions."""
    for row in rows("exceptions.txt"):
        place, word = row.split(" | ")[0].split(" ", 1)
        if fnmatch(hit.file, place) and fnmatch(hit.found.lower(), word.strip().lower()):
            return True
    return False


def check(places: list[str]) -> list[Hit]:
    """All hits in the places, in order, without the exceptions."""
    texts = files(places)
    found = {*spelling(texts), *phrases(texts)}
    found |= set(spelling(texts, "--dictionary", str(RULES / "dictionary.txt"), "--regex", PARTS))
    return sorted(hit for hit in found if not allowed(hit))


def package(file: str) -> str:
    """The package or folder that a file belongs to."""
    parts = file.split("/")
    return "/".join(parts[: min(4, len(parts) - 1)]) or file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", help="files and folders; all of the tree without any")
    parser.add_argument("--count", action="store_true", help="hits per package and per word")
    args = parser.parse_args()
    hits = check(args.places or [str(ROOT / place) for place in PLACES])
    if args.count:
        for title, key in (("package", lambda h: package(h.file)), ("word", lambda h: h.found.lower())):
            print(f"-- hits per {title}")
            for what, number in Counter(map(key, hits)).most_common():
                print(f"{number:5} {what}")
    else:
        print(*hits, sep="\n") if hits else None
    if hits:
        sys.exit(f"{len(hits)} words that are not ours; docs/glossary.md says what to write")


if __name__ == "__main__":
    main()
