"""Branch and bound on sides of samples, choices of classes and features (docs/engine.md).

:mod:`margotree.engines.branch_and_bound` chooses the searches for a problem;
:mod:`~margotree.engines.exact.search` runs one of them. *Branchers* define the search nodes of a search.

- ``sample_items``: the losses of a task's samples as the compiled search takes them.
- ``search``: best-first search over records of search nodes, with threads.
- ``sample_branching``, ``penalty_branching``: branchers that decide the sides of samples; feature penalties.
- ``support_branching``, ``support_pools``, ``support_lists``: the brancher for feature budgets, its candidates.
- ``neighbourhood_search``: better incumbents.
- ``proof_search``, ``proof_log_base``, ``proof_log``, ``support_proof_log``, ``support_proof_search``: proofs.
- ``warm_up``: calls that compile kernels.
- ``kernels``: compiled functions.
"""
