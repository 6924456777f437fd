"""Compile the kernels ahead of the first fit: ``python -m margotree.engines.warm``.

Fits do this by themselves before their clock starts; an installation script can have it done beforehand.
"""

from __future__ import annotations

from margotree.engines.registry import choose_engine
from margotree.engines.tiny import tiny_multiclass, tiny_problem


def warm_up() -> None:
    """Prepare the start heuristic, the alternating search and the default engine for each model."""
    for model in ("sfs", "hfs", "margot"):  # what needs most comes first, so that all cores have something to do
        for problem in (tiny_problem(model), tiny_multiclass(model)):
            for name in ("auto", "local_svm", "alternating"):
                choose_engine(problem, name).prepare(problem)


if __name__ == "__main__":
    warm_up()
