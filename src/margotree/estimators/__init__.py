"""scikit-learn classifiers and regressors.

``fit`` checks the data (``input_data``, ``parameters``), makes a training problem, calls an engine
(``margotree.engines.solve``) and stores the returned tree and its certificate.  Start reading with ``margot`` (the
classifiers with their parameters), ``regressors`` and ``base`` (``fit``, and what all estimators have in common).

- ``margin``: problem, initial tree and engines of margin optimal trees; ``classifiers``: what classes need.
- ``cv``, ``regressor_cv``: estimators that choose hyperparameters by cross-validation; ``cv_base`` makes the choice,
  and ``cv_settings`` lists the candidates.
- ``automatic_band``: the parameter ``band``; ``initial_tree``: the parameter ``start``.
- ``fit_warnings``: the warnings of a fit.
- ``missing_values``: a pipeline that fills missing values; ``proof_checks``: check a proof of a fitted tree.
"""

from margotree.estimators.cv import HFSMargotClassifierCV, MargotClassifierCV, SFSMargotClassifierCV
from margotree.estimators.fit_warnings import CutOffWarning, FewLeavesWarning, FewSplitsWarning, RareClassWarning
from margotree.estimators.margot import (
    HFSMargotClassifier,
    LocalSVMTreeClassifier,
    MargotClassifier,
    SFSMargotClassifier,
)
from margotree.estimators.missing_values import missing_pipeline
from margotree.estimators.regressor_cv import MargotRegressorCV
from margotree.estimators.regressors import (
    HFSMargotRegressor,
    LocalSVRTreeRegressor,
    MargotRegressor,
    SFSMargotRegressor,
)

__all__ = [
    "CutOffWarning",
    "FewLeavesWarning",
    "FewSplitsWarning",
    "HFSMargotClassifier",
    "HFSMargotClassifierCV",
    "HFSMargotRegressor",
    "LocalSVMTreeClassifier",
    "LocalSVRTreeRegressor",
    "MargotClassifier",
    "MargotClassifierCV",
    "MargotRegressor",
    "MargotRegressorCV",
    "RareClassWarning",
    "SFSMargotClassifier",
    "SFSMargotClassifierCV",
    "SFSMargotRegressor",
    "missing_pipeline",
]
