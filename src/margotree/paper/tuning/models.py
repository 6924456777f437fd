"""The classifiers by their short names, which grids, experiments and the command line use."""

from __future__ import annotations

from typing import Any

#: Short name -> class in :mod:`margotree`.
_CLASSES = {
    "margot": "MargotClassifier",
    "hfs": "HFSMargotClassifier",
    "sfs": "SFSMargotClassifier",
    "local_svm": "LocalSVMTreeClassifier",
    "oct_1": "OCT1Classifier",
    "oct_h": "OCTHClassifier",
    "mm_svm_oct": "MMSVMOCTClassifier",
}

#: Short name -> name in the paper.
TITLES = {
    "margot": "MARGOT",
    "hfs": "HFS-MARGOT",
    "sfs": "SFS-MARGOT",
    "local_svm": "Local SVM",
    "oct_1": "OCT-1",
    "oct_h": "OCT-H",
    "mm_svm_oct": "MM-SVM-OCT",
}


def model_names() -> tuple[str, ...]:
    """The short names of the models."""
    return tuple(_CLASSES)


def make_model(model: str, **params: Any) -> Any:
    """Construct the classifier of a short name with these parameters."""
    import margotree

    if model not in _CLASSES:
        raise ValueError(f"unknown model {model!r}; there are: {', '.join(_CLASSES)}")
    return getattr(margotree, _CLASSES[model])(**params)
