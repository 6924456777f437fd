"""The rivals that the MARGOT paper compares with, under the same face: OCT-1, OCT-H and MM-SVM-OCT."""

from margotree.baselines.mmsvm.estimators import MMSVMOCTClassifier
from margotree.baselines.oct.estimators import OCT1Classifier, OCTHClassifier

__all__ = ["MMSVMOCTClassifier", "OCT1Classifier", "OCTHClassifier"]
