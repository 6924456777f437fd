"""The exact engine ``bnb``: which searches run for a problem, in which order, and what they exchange (docs/engine.md).

- ``engine``: the engine; ``strategies``: the searches for each kind of problem.
- ``portfolio``: trials of several searches, and what they exchange.

The searches themselves are in :mod:`margotree.engines.exact`.
"""
