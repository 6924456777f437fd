"""Compile the baselines' kernels ahead of the first fit: ``python -m margotree.baselines.warm``."""

from __future__ import annotations

from margotree.baselines.oct.search import KERNELS
from margotree.engines.numba_backend import Part, compile_ahead


def kernels_of_baselines() -> tuple[Part, ...]:
    """The kernels of the baselines, which :mod:`margotree.engines.warm` compiles with those of the engines."""
    return (KERNELS,)


def warm_up() -> None:
    """Compile the kernels of the baselines, or load them from the cache."""
    compile_ahead(kernels_of_baselines())


if __name__ == "__main__":
    warm_up()
