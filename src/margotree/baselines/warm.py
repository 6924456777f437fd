"""Compile the baselines' kernels ahead of the first fit: ``python -m margotree.baselines.warm``."""

from __future__ import annotations

from margotree.baselines.oct.search import KERNELS
from margotree.engines.numba_backend import Part, compile_ahead


def kernels_of_baselines() -> tuple[Part, ...]:
    """What :mod:`margotree.engines.warm` compiles besides the engines' own kernels."""
    return (KERNELS,)


def warm_up() -> None:
    """Compile or load the baselines' kernels."""
    compile_ahead(kernels_of_baselines())


if __name__ == "__main__":
    warm_up()
