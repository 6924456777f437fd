"""The baselines of the MARGOT paper as classifiers with the same interface: OCT-1, OCT-H and MM-SVM-OCT.

- :mod:`~margotree.baselines.oct`: OCT-1 and OCT-H
- :mod:`~margotree.baselines.mmsvm`: MM-SVM-OCT
- :mod:`~margotree.baselines.base`: the common base class of the classifiers
- :mod:`~margotree.baselines.registry`: the engines by name, and :func:`~margotree.baselines.registry.solve`
- :mod:`~margotree.baselines.mip`: the common part of the engines that use a MIP solver
- :mod:`~margotree.baselines.warm`: compile the kernels ahead of the first fit

Start with ``oct/problem.py`` or ``mmsvm/problem.py``, which define the models.
"""

from margotree.baselines.mmsvm.estimators import MMSVMOCTClassifier
from margotree.baselines.oct.estimators import OCT1Classifier, OCTHClassifier

__all__ = ["MMSVMOCTClassifier", "OCT1Classifier", "OCTHClassifier"]
