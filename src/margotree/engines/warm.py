"""Compile all kernels ahead of the first fit: ``python -m margotree.engines.warm``.

Every fit compiles the kernels that it needs before its clock starts; an installation script can do this in advance with
this module.  It compiles all kernels of fits and predictions, including those of proofs, of a cluster's workers and of
the baselines.
"""

from __future__ import annotations

from collections.abc import Iterator

from margotree import lazy_registry
from margotree.engines import compiled_parts
from margotree.engines.numba_backend import Part, compile_ahead
from margotree.engines.registry import accepting, get_engine
from margotree.problem.tiny_problems import tiny_multiclass, tiny_problem


def warm_up() -> None:
    """Compile or load every kernel."""
    compile_ahead(all_parts())


def all_parts() -> Iterator[Part]:
    """The parts that each engine needs for each model, for few and many samples, with proofs and for predictions."""
    yield from (
        compiled_parts.MANY_SAMPLES,
        compiled_parts.PREDICTION,
        *compiled_parts.of_proofs(routings=True, supports=True),
    )
    for model in ("margot", "hfs", "sfs"):
        for problem in (tiny_problem(model), tiny_multiclass(model)):
            for name in accepting(problem):
                yield from get_engine(name).kernels(problem)
    if lazy_registry.is_registered("kernels_of_baselines"):
        yield from lazy_registry.get("kernels_of_baselines")()


if __name__ == "__main__":
    warm_up()
