"""Proofs that anyone can check: written here, read and checked by the one file ``check.py`` (docs/proof.md)."""
