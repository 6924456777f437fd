"""Compiled functions of the exact engine. None of them holds the GIL.

The search over routings; start with ``dive``.

- ``routing``: which samples are at which tree node; memory of a worker.
- ``node_record``: a search node as bytes and floats.
- ``plunge``: the entry points of a dive for Python; ``dive``: the dive itself.
- ``probing``: node problems of a candidate's two sides; ``child_nodes``: children of a search node.
- ``sample_items``: which losses a sample has at a node, given what is decided.
- ``side_costs``, ``feature_decisions``, ``class_choices``: scores of samples, features and choices of classes as
  candidates.

The search over supports.

- ``listed_supports``, ``partial_supports``: the best support of a node, from a list or from a tree.
- ``lookahead``: which sample to branch on; ``propagation``: sides that follow from others.

Proofs (docs/proof.md).

- ``proof_bytes``: numbers, points and steps as bytes; ``proof_steps``: decisions and leaves of dives.
- ``leaf_multipliers``: multipliers of closed search nodes, from records.
- ``node_multipliers``, ``merged_samples``: multipliers of one node on few features.
- ``recorded_bounds``: the search of ``listed_supports`` with a proof.
- ``implied_sides``, ``hulls``: multipliers that prove a side.
"""
