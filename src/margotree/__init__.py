"""Margin optimal classification trees: readable trees of SVM splits with a certificate of optimality."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from margotree import lazy_registry

_HOMES = {
    "MargotClassifier": "margotree.estimators",
    "HFSMargotClassifier": "margotree.estimators",
    "SFSMargotClassifier": "margotree.estimators",
    "MargotClassifierCV": "margotree.estimators",
    "HFSMargotClassifierCV": "margotree.estimators",
    "SFSMargotClassifierCV": "margotree.estimators",
    "LocalSVMTreeClassifier": "margotree.estimators",
    "OCT1Classifier": "margotree.baselines",
    "OCTHClassifier": "margotree.baselines",
    "MMSVMOCTClassifier": "margotree.baselines",
    "Certificate": "margotree.solution",
    "VerificationError": "margotree.solution",
    "Tree": "margotree.tree",
    "TreeFileError": "margotree.tree",
    "load": "margotree.tree",
    "missing_pipeline": "margotree.estimators",
}

#: What trees offer and the layers above them do.
lazy_registry.provide(
    {
        "plot_tree": "margotree.plots",
        "tree_html": "margotree.plots.notebook_html",
        "write_page": "margotree.page",
        "leaves_by_row": "margotree.engines.compiled_routing",
        "to_onnx": "margotree.export",
        "to_sql": "margotree.export",
        "to_c": "margotree.export",
        "to_python": "margotree.export",
        "kernels_of_baselines": "margotree.baselines.warm",
        "restate oct_1": "margotree.baselines.oct.problem",
        "restate oct_h": "margotree.baselines.oct.problem",
        "restate mm_svm_oct": "margotree.baselines.mmsvm.problem",
    }
)

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    # Estimators pull in scikit-learn and numba; a plain import stays fast without them.
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def _version() -> str:
    """The installed version, which setuptools-scm takes from the tag (docs/releasing.md)."""
    from importlib import metadata

    try:
        return metadata.version("margotree")
    except metadata.PackageNotFoundError:  # sources on the path that were never installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted(__all__)
