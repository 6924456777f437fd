"""The vocabulary check finds the words of the glossary's left column, and leaves ordinary English alone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytest.importorskip("codespell_lib", reason="needs codespell: pip install codespell")

PLANTED = {
    "price": "A feature has a price of 8.",
    "prices": "The relaxation knows prices on features.",
    "priced": "class PricedNode: ...",
    "cheaper": "Samples go to the cheaper side.",
    "dearer": "A sample on the dearer side.",
    "wishes": "The wishes of a class cannot be met.",
    "wants to go": "A sample that wants to go right.",
    "wanted side": "wanted_side = np.zeros(3)",
    "hears": "An SVM that hears every sample twice.",
    "heard": "def heard(samples): ...",
    "lacks": "A sample that lacks a margin.",
    "pays": "What the sample pays below.",
    "somebody": "somebody changes sides",
    "nobody": "nobody is left to be placed",
    "whoever": "Whoever comes this way.",
    "bring nothing": "starts that bring nothing",
    "in vain": "Twenty tries in vain.",
    "by chance": "Directions are drawn by\n    # chance, and kept.",
    "so many": "#: So many rows are read.",
    "so manieth": "every so-manieth sample",
    "at hand": "The tree at hand is kept.",
    "remarks": "from margotree.estimators import remarks",
    "soft again": "Good trees are made soft again.",
    "sharpness": "sharpness = 30.0",
    "manner": "def draw(manner): ...",
    "islands": "Islands keep their trees.",
    "rung": "the best of their rung",
    "scouts": "from margotree.engines import scouts",
    "middling": "a middling height",
    "hopeless": "_HOPELESS = 0.9",
    "in brief": "descents in brief",
    "taken down": "taken_down = []",
    "logbook": "class Logbook: ...",
    "watch": "def run(problem, watch: Watch) -> None: ...",
    "get ready": "getting ready",
    "import late": "from margotree import late",
    "pictures": "import margotree.pictures",
    "tell apart": "Features that tell the classes apart.",
    "gives the target away": "A column that gives the target away.",
    "Nor is": "Nor is the bound valid.",
    "rival": "the rival models",
    "recieve": "Workers recieve the state.",
}

FINE = """
House prices: the price of a house depends on its size. Columns: "price", `price`, 'island' and the island column.
The median price in the table is right. Two features per split; 30 samples per second; a rate per node.
You can watch the bound rise. Watch the gap while it runs. Users may wish to stop the search, if you wish.
The bound is cheap to compute, and a lack of data is common. In this manner of speaking the manners of both agree.
There are so many samples that a proof is out of reach. Proofs are computationally cheap.
The house is ready. The hardware is heavy. The shear of a beam. A brief description. Members of a class. Payments.
The penalty of a feature; the hinge loss; the margin violation; limits and progress; restart pools; levels.
"""


def words(*places):
    command = [sys.executable, str(ROOT / ".ci" / "words.py"), *map(str, places)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


def test_planted_words_are_found(tmp_path):
    for number, text in enumerate(PLANTED.values()):
        (tmp_path / f"planted_{number}.py").write_text(f"{text}\n", encoding="utf-8")
    done = words(tmp_path)
    assert done.returncode == 1
    hits = re.findall(r"planted_(\d+)\.py:(\d+): (.*?) ==> ", done.stdout)
    found = {int(number) for number, _, _ in hits}
    assert [word for number, word in enumerate(PLANTED) if number not in found] == []
    chance = next((n, line, text) for n, line, text in hits if text.lower() == "by chance")
    assert PLANTED["by chance"] == list(PLANTED.values())[int(chance[0])] and chance[1] == "1"


def test_ordinary_english_is_not(tmp_path):
    (tmp_path / "fine.md").write_text(FINE, encoding="utf-8")
    done = words(tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_an_exception_names_its_reason():
    for row in (ROOT / ".codespell" / "exceptions.txt").read_text(encoding="utf-8").splitlines():
        if row and not row.startswith("#"):
            assert re.fullmatch(r"\S+ .+ \| .{10,}", row), row


def test_the_glossary_lists_what_the_check_finds():
    """The single words of the dictionary stand, at least by their stem, in the left column of the glossary."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").lower()
    text = text[text.index("do not write | write") :]
    dictionary = (ROOT / ".codespell" / "dictionary.txt").read_text(encoding="utf-8").split("\n")
    stems = {line.split("->")[0][:4] for line in dictionary if line}
    assert [stem for stem in stems if stem not in text] == []
