"""What a release carries: who to cite, and a wheel that is checked where people will install it."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import margotree

ROOT = Path(__file__).parent.parent
DOI = "10.1016/j.cor.2023.106441"


@pytest.fixture(scope="module")
def yaml():
    return pytest.importorskip("yaml", reason="needs PyYAML: pip install pyyaml")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_names_this_version_and_the_paper(yaml):
    citation = yaml.safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == margotree.__version__ == tomllib.loads(read("pyproject.toml"))["project"]["version"]
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


def test_the_version_in_the_citing_page_is_this_one():
    assert re.findall(r"version = \{(.*?)\}", read("docs/citing.md")) == [margotree.__version__]


def test_a_release_builds_and_checks_the_wheel_on_three_systems(yaml):
    jobs = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
    assert jobs["wheel"]["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    commands = [step.get("run", "") for step in jobs["wheel"]["steps"]]
    assert any(command.startswith("python .ci/wheel.py --fit") for command in commands)
    assert jobs["draft"]["needs"] == "wheel"


def test_continuous_integration_installs_the_wheel_into_an_empty_environment():
    beside_the_documentation = r"^make wheel &\nwheel=\$!\nmake docs\nwait \"\$wheel\"$"  # the wait hands on a failure
    assert re.search(beside_the_documentation, read(".ci/run"), flags=re.M)
    assert re.search(r"^wheel: .*\n\t\$\(BIN\)/python \.ci/wheel\.py$", read("Makefile"), flags=re.M)


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
