"""Proofs of bounds: files from which a checker recomputes the bound of a certificate (docs/proof.md).

- ``check``: the checker, one file that needs only NumPy. Start here.
- ``write``: writes the steps of a search and the header of a proof
"""
