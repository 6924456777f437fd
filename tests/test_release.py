"""What a release carries: one version everywhere, whom to cite, and a wheel that is checked on three systems."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

import margotree

ROOT = Path(__file__).parent.parent
DOI = "10.1016/j.cor.2023.106441"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RELEASED = re.compile(r"^## (\d[^\s]*) \(", flags=re.M)
#: Files that name the last release, beside pyproject.toml.
NAMING = ("CHANGELOG.md", "CITATION.cff", "docs/citing.md")


@pytest.fixture(scope="module")
def yaml():
    return pytest.importorskip("yaml", reason="needs PyYAML: pip install pyyaml")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def run(command, folder, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SETUPTOOLS_SCM", "GIT_"))} | settings
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


# -- the version ----------------------------------------------------------------------------------------------------


def released():
    """The newest release that the changelog knows."""
    return RELEASED.search(read("CHANGELOG.md"))[1]


def test_all_files_name_the_last_release():
    done = run([sys.executable, ".ci/release.py", f"v{released()}"], ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("forgotten", [*NAMING, "pyproject.toml"])
def test_a_forgotten_place_stops_a_release(forgotten, tmp_path):
    for name in (*NAMING, "pyproject.toml", ".ci/release.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = read(name)
        (tmp_path / name).write_text(text if name == forgotten else text.replace(released(), "7.1.0"), encoding="utf-8")
    done = run([sys.executable, ".ci/release.py", "v7.1.0"], tmp_path)
    assert done.returncode == 1 and done.stdout.startswith(f"the tag is v7.1.0, but {forgotten}")
    assert done.stdout.count("\n") == 1


def test_the_version_is_that_of_the_installed_package(monkeypatch):
    assert margotree.__version__ == metadata.version("margotree")

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert margotree.__version__ == "0+unknown"


def clone(folder, tag):
    """A small repository with the settings of this one: two commits, the first one tagged if there is a tag."""
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    git = ["git", *author, "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]
    folder.mkdir()
    assert run([*git, "init", "-q"], folder).returncode == 0
    for number in (1, 2):
        (folder / "pyproject.toml").write_text(f"{read('pyproject.toml')}\n# {number}\n", encoding="utf-8")
        run([*git, "add", "-A"], folder)
        assert run([*git, "commit", "-q", "-m", str(number)], folder).returncode == 0
        if tag and number == 1:
            assert run([*git, "tag", "-a", tag, "-m", tag], folder).returncode == 0
    return folder


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_version_of_a_build_is_the_tag(tmp_path):
    pytest.importorskip("setuptools_scm", reason="needs setuptools-scm: pip install setuptools-scm")

    def version(folder):
        done = run([sys.executable, "-m", "setuptools_scm"], folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    tagged = clone(tmp_path / "tagged", "v7.1.0")
    assert version(tagged).startswith("7.1.1.dev1+g")
    assert run(["git", "checkout", "-q", "v7.1.0"], tagged).returncode == 0
    assert version(tagged) == "7.1.0"
    assert re.match(r"\d+\.\d+\.\d+\.dev2\+g", version(clone(tmp_path / "untagged", None)))
    plain = tmp_path / "plain"
    plain.mkdir()
    shutil.copy(ROOT / "pyproject.toml", plain)
    assert version(plain) == released()
    (plain / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: margotree\nVersion: 7.2.0\n", encoding="utf-8")
    assert version(plain) == "7.2.0"  # as in an sdist


def test_certificates_and_tree_files_name_the_version(tmp_path):
    X = np.arange(40.0).reshape(-1, 1)
    tree = margotree.LocalSVMTreeClassifier(depth=1, C=10.0).fit(X, X[:, 0] > 19)
    assert tree.certificate_.engine_version == margotree.__version__
    tree.save(tmp_path / "tree.json")
    record = json.loads((tmp_path / "tree.json").read_text(encoding="utf-8"))
    assert record["written_by"] == f"margotree {margotree.__version__}"


# -- citations ------------------------------------------------------------------------------------------------------


def test_the_citation_names_the_paper(yaml):
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    (paper,) = citation["references"]
    assert paper["title"] == "Margin Optimal Classification Trees" and paper["doi"] == DOI
    assert [author["family-names"] for author in paper["authors"]] == ["D'Onofrio", "Grani", "Monaci", "Palagi"]


@pytest.mark.parametrize("page", ["README.md", "docs/citing.md"])
def test_the_paper_is_named_where_people_look(page):
    text = " ".join(read(page).replace("*", "").replace("> ", "").split())
    assert "Margin Optimal Classification Trees" in text
    assert f"https://doi.org/{DOI}" in text
    for author in ("Federico D'Onofrio", "Giorgio Grani", "Marta Monaci", "Laura Palagi"):
        assert author in text


# -- workflows ------------------------------------------------------------------------------------------------------


@pytest.fixture
def jobs(yaml):
    return lambda name: yaml.safe_load(read(f".github/workflows/{name}.yml"))["jobs"]


def test_the_oldest_python_that_is_allowed_is_tested(jobs):
    oldest = re.search(r">=(3\.\d+)", PROJECT["project"]["requires-python"])[1]
    assert oldest in jobs("test")["test"]["strategy"]["matrix"]["python"]


def test_jobs_that_build_the_package_see_its_tags(jobs):
    for name in ("test", "release"):
        for job in jobs(name).values():
            for step in job["steps"]:
                if step.get("uses", "").startswith("actions/checkout"):
                    assert step["with"]["fetch-depth"] == 0


def bounds():
    """The lower bound of every dependency, extras included."""
    project = PROJECT["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    hits = (re.match(r"([\w-]+)(?:\[.*?\])?>=([\d.]+)", line) for line in lines)
    return {hit[1].lower(): hit[2] for hit in hits if hit}


def test_the_oldest_versions_that_are_tested_are_the_lower_bounds():
    oldest = dict(line.split("==") for line in read(".ci/oldest.txt").splitlines() if "==" in line)
    known = bounds()
    for name, version in oldest.items():
        bound = known["dask" if name == "distributed" else name]
        assert (version + ".").startswith(bound + "."), (name, version, bound)
    needed = {re.match(r"[\w-]+", line)[0].lower() for line in PROJECT["project"]["dependencies"]}
    assert needed <= set(oldest)


# -- the wheel ------------------------------------------------------------------------------------------------------


def test_every_file_of_the_package_that_is_no_python_is_declared():
    """What setuptools does not pick up by itself is in package-data, so that it gets into the wheel."""
    patterns = tomllib.loads(read("pyproject.toml"))["tool"]["setuptools"]["package-data"]["margotree"]
    package = ROOT / "src" / "margotree"
    declared = {path for pattern in patterns for path in package.glob(pattern)}
    if not (ROOT / ".git").exists():
        pytest.skip("needs the clone, to know which files belong to the package")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "src/margotree"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    other = {ROOT / name for name in listed if not name.endswith(".py")}
    assert other and other <= declared


def test_every_folder_with_python_is_a_package():
    """A folder without __init__.py is left out of a wheel."""
    package = ROOT / "src" / "margotree"
    folders = {path.parent for path in package.rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_saved_tree_of_the_wheel_check_still_loads():
    tree = margotree.load(ROOT / ".ci" / "wheel" / "tree.json")
    rows = [[82, 24.5, 50.5, 11, 1, 0, 0, 1, 0], [40, 24.5, 3.5, 14.5, 0, 1, 1, 0, 0]]
    assert tree.predict(rows).tolist() == ["yes", "no"]
