"""Builds the sdist and from it the wheel, installs the wheel into an empty environment and uses it there.

    python .ci/wheel.py                   # build and check
    python .ci/wheel.py --out dist        # and keep what was built
    python .ci/wheel.py --fit             # train a small tree as well, which compiles the kernels: minutes

Runs on Linux, macOS and Windows. Training is left to the tests. This script finds the faults of packaging: missing
files, undeclared dependencies, missing commands, a version lost between clone, sdist and wheel, trees of earlier
versions that do not load.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAVED = Path(__file__).resolve().parent / "wheel"

#: Runs in the empty environment: the labels of a tree that was saved by an earlier version, and a page.
USE = """
import os, sys
import margotree
assert os.path.realpath(margotree.__file__).startswith(os.path.realpath(sys.prefix)), margotree.__file__
tree = margotree.load(sys.argv[1])
print(",".join(tree.predict([[82, 24.5, 50.5, 11, 1, 0, 0, 1, 0], [40, 24.5, 3.5, 14.5, 0, 1, 1, 0, 0]])))
tree.to_html("page.html")
exec(tree.to_python(), {})
from margotree import HFSMargotClassifier, MargotClassifier, OCT1Classifier
from margotree.paper.data import paper_table
"""

FIT = """
from margotree import MargotClassifier
X = [[0.0], [1.0], [2.0], [3.0]]
model = MargotClassifier(depth=1, C=10.0).fit(X, ["low", "low", "high", "high"])
assert model.predict(X).tolist() == ["low", "low", "high", "high"]
assert model.certificate_.gap <= 1e-4
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder to keep the wheel in")
    parser.add_argument("--fit", action="store_true", help="train a small tree as well")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sdist = build_sdist(place)
        wheel = build_wheel(sdist, place)
        check_content(wheel)
        check_use(install(wheel, place / "empty"), place, version(wheel), fit=args.fit)
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            shutil.copy(sdist, args.out)
            shutil.copy(wheel, args.out)
    print(f"{wheel.name}: built, installed into an empty environment and used there")


def build_sdist(place: Path) -> Path:
    """The sdist of a copy of what git knows: files of an earlier build are not in it, and none is left in the clone."""
    source, tool = place / "source", place / "build-tool"
    listed = run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    # The version is read from the tags of the clone, through a link as git itself makes for worktrees.
    folder = run(["git", "-C", str(ROOT), "rev-parse", "--absolute-git-dir"]).strip()
    (source / ".git").write_text(f"gitdir: {folder}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--target", str(tool), "build"])
    build = "import sys; sys.path.insert(0, sys.argv.pop(1)); from build.__main__ import main; main(sys.argv[1:])"
    run([sys.executable, "-c", build, str(tool), "--sdist", "--outdir", str(place), str(source)])
    (sdist,) = place.glob("margotree-*.tar.gz")
    return sdist


def build_wheel(sdist: Path, place: Path) -> Path:
    """The wheel of the sdist, of the same version, although there is no clone any more."""
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(sdist)])
    (wheel,) = place.glob("margotree-*.whl")
    assert version(wheel) == sdist.name.removeprefix("margotree-").removesuffix(".tar.gz"), (sdist.name, wheel.name)
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "tests/test_release.py"} <= names
    return wheel


def version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def check_content(wheel: Path) -> None:
    """Every file of the package is in it, and nothing else but what describes it."""
    package = ROOT / "src" / "margotree"
    known = run(["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "src/margotree"])
    wanted = {"margotree/" + (ROOT / name).relative_to(package).as_posix() for name in known.splitlines()}
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert found == wanted, f"missing {sorted(wanted - found)}, too much {sorted(found - wanted)}"
    assert wheel.name.endswith("-py3-none-any.whl"), wheel.name


def install(wheel: Path, where: Path) -> Path:
    """The folder of programs of a new environment that holds the wheel and what it asks for."""
    run([sys.executable, "-m", "venv", "--without-pip", str(where)])
    programs = where / ("Scripts" if os.name == "nt" else "bin")
    # From outside, and compiled only where it is imported: most of the time goes into writing files.
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(programs / "python")]
    run([*pip, "install", "--quiet", "--no-compile", str(wheel)])
    run([*pip, "check"])
    return programs


def check_use(programs: Path, place: Path, expected: str, *, fit: bool) -> None:
    python, command = str(programs / "python"), str(programs / "margotree")
    assert run([command, "--version"], place).strip() == f"margotree {expected}"
    assert "fit" in run([command, "--help"], place)
    tree = str(SAVED / "tree.json")
    assert run([python, "-I", "-c", USE, tree], place).strip() == "yes,no"
    assert (place / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    run([command, "show", tree], place)
    run([command, "predict", tree, str(SAVED / "rows.csv"), "--out", "labels.csv"], place)
    with open(place / "labels.csv", encoding="utf-8", newline="") as stream:
        labels = [row["prediction"] for row in csv.DictReader(stream)]
    assert labels == ["yes", "no"], labels
    if fit:
        run([python, "-I", "-c", FIT], place)


def run(command: list[str], where: Path = ROOT) -> str:
    """What the command prints; where it fails, what it says is shown."""
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(command, cwd=where, env=clean, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
