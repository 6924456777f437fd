"""scikit-learn classifiers; a fit states the problem, hands it to an engine and keeps the tree."""

from margotree.estimators.cv import HFSMargotClassifierCV, MargotClassifierCV, SFSMargotClassifierCV
from margotree.estimators.fit_warnings import CutOffWarning, FewLeavesWarning, FewSplitsWarning, RareClassWarning
from margotree.estimators.margot import (
    HFSMargotClassifier,
    LocalSVMTreeClassifier,
    MargotClassifier,
    SFSMargotClassifier,
)
from margotree.estimators.missing_values import missing_pipeline

__all__ = [
    "CutOffWarning",
    "FewLeavesWarning",
    "FewSplitsWarning",
    "HFSMargotClassifier",
    "HFSMargotClassifierCV",
    "LocalSVMTreeClassifier",
    "MargotClassifier",
    "MargotClassifierCV",
    "RareClassWarning",
    "SFSMargotClassifier",
    "SFSMargotClassifierCV",
    "missing_pipeline",
]
