"""Margin optimal classification trees: small decision trees of SVM splits with a certificate of optimality.

The names of this module are imported when they are first used.  Packages, from the interface to the algorithms:

- ``estimators``: the scikit-learn estimators; start reading here.
- ``baselines``: classifiers of other authors (OCT-1, OCT-H, MM-SVM-OCT) for comparison.
- ``model_selection``: cross-validation over grids of hyperparameters.
- ``tree``: the fitted tree, its files and its rules as text.
- ``table``: files as tables, and their encoding as features.
- ``cli``, ``page``, ``plots``, ``export``: the command line, report pages, plots, and exports.
- ``problem``: the training problem and its evaluation in plain NumPy.
- ``engines``: the algorithms that train a tree.
- ``solution`` and ``proof``: certificates, and the writing and checking of proofs.
- ``paper``: data sets, experiments and tables of the paper.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from margotree import lazy_registry

_MODULE_OF = {
    "MargotClassifier": "margotree.estimators",
    "HFSMargotClassifier": "margotree.estimators",
    "SFSMargotClassifier": "margotree.estimators",
    "MargotClassifierCV": "margotree.estimators",
    "HFSMargotClassifierCV": "margotree.estimators",
    "SFSMargotClassifierCV": "margotree.estimators",
    "LocalSVMTreeClassifier": "margotree.estimators",
    "MargotRegressor": "margotree.estimators",
    "MargotRegressorCV": "margotree.estimators",
    "HFSMargotRegressor": "margotree.estimators",
    "SFSMargotRegressor": "margotree.estimators",
    "LocalSVRTreeRegressor": "margotree.estimators",
    "OCT1Classifier": "margotree.baselines",
    "OCTHClassifier": "margotree.baselines",
    "MMSVMOCTClassifier": "margotree.baselines",
    "Certificate": "margotree.solution",
    "VerificationError": "margotree.solution",
    "Tree": "margotree.tree",
    "RegressionTree": "margotree.tree",
    "TreeFileError": "margotree.tree",
    "load": "margotree.tree",
    "missing_pipeline": "margotree.estimators",
}

# Functions that lower packages use without importing the packages that define them.
lazy_registry.provide(
    {
        "plot_tree": "margotree.plots",
        "plot_calibration": "margotree.plots",
        "plot_effect": "margotree.plots",
        "plot_predictions": "margotree.plots",
        "plot_residuals": "margotree.plots",
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

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    # The estimators import scikit-learn and Numba, which takes seconds; ``import margotree`` alone does not.
    if name == "__version__":
        return _version()
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def _version() -> str:
    """The installed version, which setuptools-scm reads from the Git tag (docs/releasing.md)."""
    from importlib import metadata

    try:
        return metadata.version("margotree")
    except metadata.PackageNotFoundError:  # the sources are on the path and not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return sorted(__all__)
