"""The models by their short names, as the grids, the experiments and the command line call them."""

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

#: Short name -> how the paper spells it.
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
    return tuple(_CLASSES)


def make_model(model: str, **params: Any) -> Any:
    """An unfitted classifier; parameters it does not have are an error, as in its own constructor."""
    import margotree

    if model not in _CLASSES:
        raise ValueError(f"unknown model {model!r}; there are: {', '.join(_CLASSES)}")
    return getattr(margotree, _CLASSES[model])(**params)


def model_name(estimator: Any) -> str:
    """The short name of a classifier; its class's own for any other."""
    cls = type(estimator).__name__
    return next((name for name, known in _CLASSES.items() if known == cls), cls)
