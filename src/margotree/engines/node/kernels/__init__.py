"""Compiled functions of the node problem.

- `workspace`: the arrays that hold node problems, the kinds and the status of their items
- `active_set`: dual active-set method; `ratio_test`, `cholesky` and `margins` are its parts
- `penalised_active_set`: the same method with feature penalties; `directions` and `feature_penalties` are its parts
- `safe_bounds`: dual values with the possible rounding error subtracted
- `newton`, `smoothed_loss`: Newton's method on a smoothed hinge loss, for few features and many samples
- `entry_points`: functions that solve a whole node problem, called from Python
- `vectors`: small vector operations

Kernels release the GIL and are cached on disk. Start reading with `workspace` and `active_set`.
"""
