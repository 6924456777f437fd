"""The exact best-subset SVM: the hyperplane of one node of any task under a hard or a penalised feature budget.

- `solve`: `best_subset` and its result; start reading here
- `task`: one problem; `samples`: its samples, equal ones merged; `groups`: features that are used together
- `search`: branch and bound over the features; `branching`: the choice of the feature to branch on
- `relaxation`, `bounds`: lower bounds on many supports at once
- `supports`: the exact values of supports, and the incumbent
"""

from margotree.engines.node.best_subset.solve import SubsetSolution, best_subset

__all__ = ["SubsetSolution", "best_subset"]
