"""The package opens fast and gives out its names only when asked."""

import subprocess
import sys

import pytest

import margotree


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import sys, margotree\n"
        "heavy = {'numpy', 'sklearn', 'scipy', 'numba', 'pandas', 'pyscipopt', 'highspy'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", margotree.__all__)
def test_every_public_name_exists(name):
    assert getattr(margotree, name) is not None
    assert name in dir(margotree)


def test_other_names_do_not():
    with pytest.raises(AttributeError, match="no attribute 'Forest'"):
        _ = margotree.Forest
