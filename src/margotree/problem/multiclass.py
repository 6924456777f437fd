"""The training problem of a margin tree for any number of classes; with two classes it equals MARGOT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from margotree.problem import topology
from margotree.problem.multiclass_value import IndexArray, MulticlassEvaluation, evaluate
from margotree.problem.problem import FloatArray, Problem
from margotree.problem.value import Splits


@dataclass(frozen=True, kw_only=True, eq=False)
class MulticlassProblem:
    """A margin optimal tree for classes 0, 1, ..., K-1.

    Every upper node ``t`` has a target side ``sides[t, k]`` in {-1, +1} for every class ``k``. Every last-level node
    has two different labels, ``a_t`` for its left leaf and ``b_t`` for its right leaf. Minimise over hyperplanes,
    sides and labels::

        sum_t  1/2 |w_t|^2
               + C_t sum_{i reaches t} weight_i * loss_t(i)     [+ alpha_t max(0, |supp w_t| - B_t)]

        upper node:       loss_t(i) = max(0, 1 - sides[t, y_i] h_t(x_i))
        last-level node:  loss_t(i) = [y_i != a_t] max(0, 1 - h_t(x_i)) + [y_i != b_t] max(0, 1 + h_t(x_i))

    A sample of class ``b_t`` has no loss if it lies right by a margin, a sample of class ``a_t`` if it lies left by a
    margin; a sample of a third class has a loss on either side. Routing, bands, budgets and feature penalties are those
    of :class:`~margotree.problem.Problem`.

    The sides of a node are not all equal. Changing the sign of all of them gives the same tree with exchanged
    children, so only trees in which class 0 has the left side, ``sides[t, 0] = -1``, are counted. With two classes the
    sides and labels are then determined, and every value equals MARGOT's.

    If ``sides`` and ``labels`` are given, :meth:`evaluate` uses them; otherwise it uses the best ones for the
    hyperplanes. Build a problem with :meth:`MulticlassProblem.make`.
    """

    X: FloatArray
    y: IndexArray
    n_classes: int
    weight: FloatArray
    depth: int
    C: FloatArray
    eps: float = 1e-3
    budget: IndexArray | None = None
    alpha: FloatArray | None = None
    sides: IndexArray | None = None
    labels: IndexArray | None = None

    @classmethod
    def make(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        depth: int,
        C: Any = 1.0,
        n_classes: int | None = None,
        weight: ArrayLike | None = None,
        eps: float = 1e-3,
        budget: Any = None,
        alpha: Any = None,
    ) -> MulticlassProblem:
        """Check the data and return the problem.

        Parameters
        ----------
        y : array of int
            Class numbers 0, 1, ...
        n_classes : int, optional
            The number of classes; by default the largest class number plus 1.

        The other parameters are those of :meth:`margotree.problem.Problem.make`.
        """
        codes = np.array(y).ravel()
        if codes.dtype.kind not in "iu" or not len(codes) or codes.min() < 0:
            raise ValueError("y must hold class numbers: 0, 1, ...")
        classes = int(codes.max()) + 1 if n_classes is None else int(n_classes)
        if classes < 2 or codes.max() >= classes:
            raise ValueError(f"y must hold numbers of {max(classes, 2)} classes, 0 to {max(classes, 2) - 1}")
        # The two-class problem checks all other parameters.
        checked = Problem.make(
            X, np.ones(len(codes)), depth=depth, C=C, weight=weight, eps=eps, budget=budget, alpha=alpha
        )
        return cls(
            X=checked.X,
            y=_read_only(codes.astype(np.int64)),
            n_classes=classes,
            weight=checked.weight,
            depth=checked.depth,
            C=checked.C,
            eps=checked.eps,
            budget=checked.budget,
            alpha=checked.alpha,
        )

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_nodes(self) -> int:
        return topology.n_nodes(self.depth)

    @property
    def n_upper(self) -> int:
        return len(topology.upper(self.depth))

    @property
    def n_last(self) -> int:
        return len(topology.last(self.depth))

    @property
    def model(self) -> str:
        """``"margot"``, ``"hfs"`` or ``"sfs"``, as for two classes."""
        if self.budget is None:
            return "margot"
        return "hfs" if self.alpha is None else "sfs"

    def labelled(self, sides: ArrayLike, labels: ArrayLike) -> MulticlassProblem:
        """Return the same problem with fixed sides of the classes and fixed labels of the leaves.

        Parameters
        ----------
        sides : array of int of shape (upper nodes, classes)
            -1 (left) or +1 (right).
        labels : array of int of shape (last-level nodes, 2)
            The class numbers of the left and the right leaf.
        """
        s, pairs = np.array(sides, dtype=np.int64), np.array(labels, dtype=np.int64)
        s = s.reshape(-1, self.n_classes) if s.size else np.zeros((0, self.n_classes), dtype=np.int64)
        if s.shape != (self.n_upper, self.n_classes) or pairs.shape != (self.n_last, 2):
            raise ValueError(
                f"sides and labels of a tree of depth {self.depth} for {self.n_classes} classes have shapes "
                f"{(self.n_upper, self.n_classes)} and {(self.n_last, 2)}, got {s.shape} and {pairs.shape}"
            )
        if np.any(np.abs(s) != 1) or np.any(s[:, 0] != -1) or not np.all((s == 1).any(axis=1)):
            raise ValueError("sides are -1 and +1, both at every node, and -1 for the first class")
        if np.any(pairs < 0) or np.any(pairs >= self.n_classes) or np.any(pairs[:, 0] == pairs[:, 1]):
            raise ValueError(f"the two labels of a last-level node are different class numbers below {self.n_classes}")
        return replace(self, sides=_read_only(s), labels=_read_only(pairs))

    def evaluate(self, splits: Splits) -> MulticlassEvaluation:
        """Compute objective and feasibility of a tree (:func:`margotree.problem.multiclass_value.evaluate`)."""
        return evaluate(self, splits)

    def two_class(self) -> Problem:
        """Return the same problem as a :class:`Problem`; for two classes only."""
        if self.n_classes != 2:
            raise ValueError(f"this problem has {self.n_classes} classes")
        return Problem.make(
            self.X, np.where(self.y == 1, 1.0, -1.0), depth=self.depth, C=self.C, weight=self.weight, eps=self.eps,
            budget=self.budget, alpha=self.alpha,
        )  # fmt: skip


def _read_only(a: IndexArray) -> IndexArray:
    a.setflags(write=False)
    return a
