"""A second checker of proofs, and ways to spoil a proof."""
