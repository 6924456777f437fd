"""MM-SVM-OCT as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

from margotree.baselines.base import BaselineClassifier
from margotree.baselines.mmsvm.problem import MmSvmProblem
from margotree.baselines.mmsvm.start import best_polished_tree
from margotree.engines import RunControl
from margotree.estimators.automatic_band import DEPRECATED, band_of
from margotree.estimators.classifiers import FloatArray, signed_samples
from margotree.estimators.input_data import ClassSamples
from margotree.problem import Splits
from margotree.problem.problem import positive_number
from margotree.tree import Scaling


class MMSVMOCTClassifier(BaselineClassifier):
    """A tree of SVM splits that maximises the narrowest of its margins (MM-SVM-OCT of Blanco, Japon and Puerto).

    It minimises ``max over nodes of 1/2 |w|^2 + c1 * (hinge losses of the samples at every node they reach) + c3 *
    (number of splits)``; a sample goes right if ``w.x + b >= 0``, and its side at the last node is its class.

    The parameters that are not listed and the attributes are those of :class:`~margotree.MargotClassifier`.

    Parameters
    ----------
    depth : int, default 2
        Number of nodes on a path from the root to a label, 1 to 10.
    c1 : float, default 1.0
        Penalty of margin violations.
    c3 : float, default 0.01
        Penalty of a split.
    c2 : float or None, default None
        Penalty of relabelling a sample at a node; None allows no relabelling, as in the MARGOT paper.
    band : float, default 1e-3
        Width of the band at each upper split in which no training sample may lie.
    scale : "minmax" or None, default "minmax"
        Train on features scaled to [0, 1]; splits are shown in the units of ``X`` in both cases.
    engine : str, default "auto"
        A solver that supports second-order cones: ``"scip"`` (the choice of ``"auto"``), ``"gurobi"``, ``"cplex"`` or
        ``"copt"``.
    start : "local_svm", None, fitted estimator, Tree or Splits, default "local_svm"
        The first tree.
    eps : float
        Deprecated name of ``band``, removed in 0.3.
    """

    def __init__(
        self,
        depth: int = 2,
        c1: float = 1.0,
        c3: float = 0.01,
        *,
        c2: float | None = None,
        band: float = 1e-3,
        scale: str | None = "minmax",
        class_weight: Any = None,
        engine: str = "auto",
        time_limit: float | None = 60,
        gap: float = 1e-4,
        start: Any = "local_svm",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        eps: Any = DEPRECATED,
    ) -> None:
        self.depth = depth
        self.c1 = c1
        self.c3 = c3
        self.c2 = c2
        self.band = band
        self.eps = eps
        self.scale = scale
        self.class_weight = class_weight
        self.engine = engine
        self.time_limit = time_limit
        self.gap = gap
        self.start = start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def decision_function(self, X: Any) -> FloatArray:
        """Compute ``h(x)`` at the last node that each sample reaches; 1 is the margin, see :class:`Tree`.

        A positive value means ``classes_[1]``.  A sample on the hyperplane, up to rounding, counts as positive.
        """
        return self._tree().decision_function(self._checked(X))

    def _problem(self, samples: ClassSamples, scaling: Scaling) -> MmSvmProblem:
        terms: dict[str, Any] = {name: getattr(self, name) for name in ("depth", "c1", "c2", "c3")}
        terms["eps"] = positive_number("band", band_of(self))
        return MmSvmProblem.make(**signed_samples(samples, scaling), **terms)

    def _tree_with_routing(self, problem: MmSvmProblem, splits: Splits, control: RunControl) -> Splits | None:
        return best_polished_tree(problem, splits, control)

    def _json_terms(self, problem: MmSvmProblem, samples: ClassSamples) -> dict[str, Any]:
        return {
            "model": problem.model,
            "c1": problem.c1,
            "c2": problem.c2,
            "c3": problem.c3,
            "eps": problem.eps,
            "class_weight": samples.class_weight.tolist(),
        }
