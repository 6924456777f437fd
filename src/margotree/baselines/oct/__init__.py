"""OCT-1 and OCT-H, the optimal trees of Bertsimas and Dunn.

- :mod:`~margotree.baselines.oct.problem`, :mod:`~margotree.baselines.oct.value`: the problem and its value function;
  start reading here
- :mod:`~margotree.baselines.oct.merged_samples`: equal samples merged into points, values replaced by ranks
- :mod:`~margotree.baselines.oct.cart`, :mod:`~margotree.baselines.oct.start`: the first trees
- :mod:`~margotree.baselines.oct.search`, ``enumerate``, ``kernels``: the exact engine for OCT-1
- :mod:`~margotree.baselines.oct.improve`, ``side_costs``, ``retrain``, ``perturbation``: the local search for OCT-H
- :mod:`~margotree.baselines.oct.tree_cleanup`, ``separation``, ``lp``: margins around given splits, pruning
- :mod:`~margotree.baselines.oct.milp`, ``split_rows``, ``lower_bound``, ``engine``: the mixed-integer models
- :mod:`~margotree.baselines.oct.estimators`: the scikit-learn classifiers
"""
