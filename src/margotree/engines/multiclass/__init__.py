"""Engines for margin trees of more than two classes (docs/multiclass.md)."""
