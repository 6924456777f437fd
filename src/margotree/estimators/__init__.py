"""scikit-learn classifiers; a fit states the problem, hands it to an engine and keeps the tree."""

from margotree.estimators.margot import (
    HFSMargotClassifier,
    LocalSVMTreeClassifier,
    MargotClassifier,
    SFSMargotClassifier,
)
from margotree.estimators.missing import missing_pipeline

__all__ = [
    "HFSMargotClassifier",
    "LocalSVMTreeClassifier",
    "MargotClassifier",
    "SFSMargotClassifier",
    "missing_pipeline",
]
