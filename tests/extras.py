"""Packages of the extras that tests import: without them, the tests that use them are skipped with the reason."""

from importlib import import_module, util

import pytest

#: Packages beyond the base install, and what installs them.
EXTRAS = {
    "clarabel": "margotree[test]",
    "copt": "margotree[copt]",
    "dask": "margotree[cluster]",
    "distributed": "margotree[cluster]",
    "duckdb": "margotree[test]",
    "highspy": "margotree[mip]",
    "matplotlib": "margotree[plot]",
    "onnx": "margotree[onnx]",
    "onnxruntime": "margotree[test]",
    "openpyxl": "margotree[excel]",
    "pandas": "margotree[pandas]",
    "pyarrow": "margotree[parquet]",
    "pyscipopt": "margotree[mip]",
    "selenium": "margotree[test]",
}
MISSING = {name for name in EXTRAS if util.find_spec(name) is None}


def reason(name):
    return f'needs {name}: pip install "{EXTRAS[name]}"'


class Absent:
    """Stands in for a package that is not installed: the test that uses it is skipped."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        pytest.skip(reason(self._name))


def optional(name):
    """The package, or where it is missing an object that skips the test that uses it."""
    return Absent(name) if name in MISSING else import_module(name)


def needs(name):
    """A mark that skips a test where the package is missing."""
    return pytest.mark.skipif(name in MISSING, reason=reason(name))


def missing_package(error):
    """The package of an extra whose absence raised the error, or None."""
    while error is not None:
        text = str(error)
        if isinstance(error, ImportError) and error.name and error.name.split(".")[0] in MISSING:
            return error.name.split(".")[0]
        for name in MISSING:
            # The messages of margotree name the extra, some the package too.
            if f"pip install {EXTRAS[name]}" in text or f'pip install "{EXTRAS[name]}"' in text:
                return name
        error = error.__cause__ or error.__context__
    return None
