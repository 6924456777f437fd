"""A MIP solver as an engine for OCT-1 and OCT-H: formulate, run the adapter, clean up, report an honest bound."""

from __future__ import annotations

from collections.abc import Iterator

from margotree.baselines.oct.milp import OctModel, formulate
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.shape import lay_out, realise, settle
from margotree.engines import Answer, Engine, Watch
from margotree.engines.mip.adapter import Adapter
from margotree.engines.mip.engine import SAFETY, honest_bound
from margotree.engines.mip.model import MipResult
from margotree.problem import Splits
from margotree.problem.problem import FloatArray


class OctMip(Engine[OctProblem]):
    """The MILP on one solver."""

    models = frozenset({"oct_1", "oct_h"})

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.name = adapter.name

    def missing(self) -> str | None:
        return self.adapter.missing()

    def version(self) -> str:
        return self.adapter.version()

    def search(self, problem: OctProblem, watch: Watch, start: Splits | None) -> Answer:
        first = _first(problem, start)
        value = problem.evaluate(first).objective
        floor = problem.points.irreducible / problem.baseline
        if (reason := watch.must_stop()) is not None:
            return Answer(splits=first, stopped=reason, bound=floor)
        model = formulate(problem, size=value)
        limits = watch.limits
        result = self.adapter.run(
            model.mip,
            watch=watch,
            gap=max(0.0, limits.gap - 2 * SAFETY),
            threads=limits.n_jobs,
            start=model.point(first),
            seed=limits.seed,
        )
        return _answer(model, result, first, floor, limits.gap)


def _first(problem: OctProblem, start: Splits | None) -> Splits:
    """A tree to fall back on: the start, cleaned up, or a single leaf."""
    given = None if start is None else settle(problem, start)
    return lay_out(problem, None) if given is None else given


def _answer(model: OctModel, result: MipResult, first: Splits, floor: float, gap: float) -> Answer:
    problem = model.problem
    trees = [] if result.x is None else list(_trees(model, [result.x, *result.others]))
    best = min([first, *trees], key=lambda tree: problem.evaluate(tree).objective)
    objective = problem.evaluate(best).objective
    stopped, bound, warnings = honest_bound(result, objective, floor=floor, size=model.mip.size, gap=gap)
    if result.x is not None and not trees:
        warnings.append("no tree routes the samples as the solver's answer does (its tolerances do); kept the start")
    return Answer(
        splits=best,
        stopped=stopped,
        bound=bound,
        nodes=result.nodes,
        f0=result.f0,
        f1=result.f1,
        warnings=tuple(warnings),
    )


def _trees(model: OctModel, points: list[FloatArray]) -> Iterator[Splits]:
    """The allowed trees behind a solver's points: samples where it says or, if that cannot be, where its splits do."""
    for x in points:
        tree = realise(model.problem, model.leaf(x), model.support(x))
        rough = model.splits(x) if tree is None else None
        if rough is not None:
            tree = settle(model.problem, rough)
        if tree is not None:
            yield tree
