"""The exact engine ``bnb``: branch and bound on the sides of samples and on the features of splits (docs/engine.md).

Start with :mod:`~margotree.engines.exact.engine`, which chooses the searches for a problem, and
:mod:`~margotree.engines.exact.search`, which runs one of them. *Branchers* define the search nodes of a search.

- ``engine``: the engine, and the order of its phases.
- ``search``: best-first search over records of search nodes, with threads.
- ``portfolio``: trials of several searches, and what they exchange.
- ``sample_branching``, ``penalty_branching``: branchers that decide the sides of samples; feature penalties.
- ``support_branching``, ``support_pools``, ``support_lists``: the brancher for feature budgets, its candidates.
- ``neighbourhood_search``: better incumbents.
- ``proof_search``, ``proof_log_base``, ``proof_log``, ``support_proof_log``, ``support_proof_search``: proofs.
- ``warm_up``: calls that compile kernels.
- ``kernels``: compiled functions.
"""
