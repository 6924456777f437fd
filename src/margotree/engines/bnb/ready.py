"""What has to be compiled before the clock of a fit starts, in parts that can be compiled at the same time."""

from __future__ import annotations

import numpy as np

from margotree.engines.alternating.search import Effort, alternate
from margotree.engines.bnb.kernels import followed, leaves, points, steps, taken_down
from margotree.engines.bnb.kernels.plunge import route
from margotree.engines.bnb.kernels.record import save
from margotree.engines.bnb.margot import MargotBrancher
from margotree.engines.bnb.pools import ListChooser
from margotree.engines.bnb.sparse import SparseBrancher
from margotree.engines.kernels.parallel import compile_parts
from margotree.engines.node import LARGE, solve_large, solve_node
from margotree.engines.tiny import tiny_problem
from margotree.engines.trees import trivial_tree
from margotree.engines.watch import Watch
from margotree.problem import TrainingProblem

#: Whole searches are called by the engine, which calls this file: here they have a name only.
_SUPPORTS = "margotree.engines.bnb.engine:search_over_supports"
_PLAIN = ("alternating_search", "dive")
_PARTS = {"margot": _PLAIN, "hfs": (_SUPPORTS, *_PLAIN), "sfs": (_SUPPORTS, "alternating_search", "both_dives")}


def get_ready(problem: TrainingProblem, with_prices: bool = False, alternates: bool = True) -> None:
    """Compile or load everything that a search for such a problem may call; budgets may be searched ``with_prices``.

    Whoever only searches below given nodes needs nothing of the alternating search.
    """
    parts = _PARTS["sfs" if with_prices else getattr(problem, "model", "margot")]
    parts = parts if alternates else tuple(part for part in parts if part != "alternating_search")
    many = ("many_samples",) if getattr(problem, "n_samples", 0) > LARGE else ()
    compile_parts([part if ":" in part else f"{__name__}:{part}" for part in (*many, *parts)])


def get_ready_to_prove(routings: bool, supports: bool) -> None:
    """The same for what only proofs need: of searches over ``routings``, and over lists of ``supports``."""
    parts = ["proofs_of_routings"] * routings + ["proofs_of_supports"] * supports
    compile_parts([f"{__name__}:{part}" for part in parts])


def node_problem() -> None:
    tiny = tiny_problem("margot")
    solve_node(tiny.X, tiny.y, tiny.weight)


def many_samples() -> None:
    tiny = tiny_problem("margot")
    solve_large(tiny.X, tiny.y, tiny.weight)


def dive() -> None:
    """With the node problem, whose functions it is made of: one process compiles them once."""
    node_problem()
    _dive(MargotBrancher(tiny_problem("margot")))


def both_dives() -> None:
    """With prices as well, for the same reason."""
    dive()
    _dive(MargotBrancher(tiny_problem("sfs")))


def _dive(brancher: MargotBrancher) -> None:
    """A dive that ends at once, as every bound is above its cut-off."""
    worker = brancher.worker()
    worker.dive(brancher.root(), np.array([0.0, 0.0]))
    route(worker.ws, worker.routing, np.zeros(brancher.problem.n_samples, np.int64))
    if brancher.price is not None:
        n_codes, n_floats = brancher.sizes()
        save(worker.ws, worker.routing, np.zeros((1, n_codes), np.uint8), np.zeros((1, n_floats)))


def alternating_search() -> None:
    tiny = tiny_problem("margot")
    alternate(tiny, [trivial_tree(tiny)], Watch(), Effort(least=8, most=8))


def proofs_of_routings() -> None:
    none, y, ends = np.zeros((0, 0), np.uint8), np.zeros(0), np.zeros((0, 1), np.int64)
    side_of, pen = np.zeros((1, 1), np.int8), points.new_pen(1)
    leaves.write_points(none, np.zeros((0, 0)), y, y[None], side_of, 0, 1.0, pen, ends, np.zeros((2, 1)))
    log, few, floats = np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.zeros((0, 0))
    steps.take_down(
        log, none, floats, few, y, 0, 0, 1, False, 0, 1, 0, few, steps.new_shut(0, 0, 0), np.zeros(2, np.int64), pen
    )
    steps.write_leaves(pen, ends, ends[:, 0].copy(), pen, ends[:, 0].copy())


def proofs_of_supports() -> None:
    brancher = SparseBrancher(tiny_problem("hfs"))
    chooser, pen, zero = brancher.choosers(np.zeros((2, 2)))[0], points.new_pen(1 << 10), np.int64(0)
    assert isinstance(chooser, ListChooser)
    m, T = brancher.problem.n_samples, brancher.problem.n_nodes
    who, goal, known, bound = np.arange(2), np.zeros(m, np.int64), np.zeros(m, np.uint16), np.zeros(1)
    terms = followed.Terms(np.zeros((T, T)), brancher.samples.cost, 1e-3, 1.0)
    placed = followed.new_placed(brancher.last, 1, m)
    of = brancher.samples, terms, placed
    taken_down.search(
        *of, zero, who, np.zeros(2), goal, known, 1.0, chooser.table, who[:1], bound, np.zeros(1, np.int8), 0.0, 0.0,
        chooser.work, 0.0, who.copy(), pen,
    )  # fmt: skip
    followed.too_close(*of, known, zero, zero, 1.0, 1.0, pen)
    followed.follow(*of, goal, known, who, 1.0, who.copy(), pen)
