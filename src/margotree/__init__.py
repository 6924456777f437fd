"""Margin optimal classification trees: readable trees of SVM splits with a certificate of optimality."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from margotree import late

__version__ = "0.1.0"

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
late.provide(
    {
        "plot_tree": "margotree.pictures",
        "tree_html": "margotree.pictures.notebook",
        "write_page": "margotree.page",
        "leaves_by_row": "margotree.engines.route",
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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
