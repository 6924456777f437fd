"""Functions that call kernels on tiny problems, to compile them (see :mod:`margotree.engines.compiled_parts`)."""

from __future__ import annotations

import numpy as np

from margotree.engines.exact.kernels import implied_sides, leaf_multipliers, proof_bytes, proof_steps, recorded_bounds
from margotree.engines.exact.kernels.node_record import save
from margotree.engines.exact.kernels.plunge import route
from margotree.engines.exact.sample_branching import MargotBrancher
from margotree.engines.exact.support_branching import SupportBrancher
from margotree.engines.exact.support_pools import ListChooser
from margotree.engines.local_search.search import Effort, run_local_search
from margotree.engines.node.best_subset import best_subset
from margotree.engines.node.svm import solve_large, solve_node
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import trivial_tree
from margotree.problem.tiny_problems import tiny_problem


def node_problem() -> None:
    """The node problem."""
    tiny = tiny_problem("margot")
    solve_node(tiny.X, tiny.y, tiny.weight)


def many_samples() -> None:
    """The node problem with many samples."""
    tiny = tiny_problem("margot")
    solve_large(tiny.X, tiny.y, tiny.weight)


def best_subsets() -> None:
    """Node problems with hard budgets and with feature penalties."""
    node_problem()
    tiny = tiny_problem("sfs")
    for alpha in (None, 0.1):
        best_subset(tiny.X, tiny.y, tiny.weight, budget=1, alpha=alpha)


def dive() -> None:
    """Dives without feature penalties, together with the node problem, whose functions they contain: one process
    compiles both."""
    node_problem()
    _dive(MargotBrancher(tiny_problem("margot")))


def dive_and_subsets() -> None:
    """`dive` and `best_subsets`."""
    dive()
    best_subsets()


def all_dives() -> None:
    """`dive_and_subsets` and dives with feature penalties, in one process for the same reason."""
    dive_and_subsets()
    _dive(MargotBrancher(tiny_problem("sfs")))


def _dive(brancher: MargotBrancher) -> None:
    """A dive that ends at once, because every bound is above its cutoff."""
    worker = brancher.worker()
    worker.dive(brancher.root(), np.array([0.0, 0.0]))
    route(worker.ws, worker.routing, np.zeros(brancher.problem.n_samples, np.int64))
    if brancher.penalties is not None:
        n_codes, n_floats = brancher.sizes()
        save(worker.ws, worker.routing, np.zeros((1, n_codes), np.uint8), np.zeros((1, n_floats)))


def alternating_search() -> None:
    """The local search."""
    tiny = tiny_problem("margot")
    run_local_search(tiny, [trivial_tree(tiny)], RunControl(), Effort(least=8, most=8))


def proofs_of_routings() -> None:
    """Proofs of searches over routings."""
    none, ends, buffer = np.zeros((0, 0), np.uint8), np.zeros((0, 1), np.int64), proof_bytes.new_buffer(1)
    log, few, floats = np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.zeros((0, 0))
    items = leaf_multipliers.ProofItems(
        0, few, np.zeros((1, 1), np.int64), np.zeros((1, 0)), np.zeros((1, 1), np.int8), False, 0, 0
    )
    leaf_multipliers.write_points(none, floats, items, 0, 1.0, buffer, ends, np.zeros((3, 1)))
    proof_steps.record_dive(
        log, none, floats, few, np.zeros(0), 0, 0, 1, False, items, 1, 0, few, proof_steps.new_closed_nodes(0, 0, 0),
        np.zeros(2, np.int64), buffer,
    )  # fmt: skip
    proof_steps.write_leaves(buffer, ends, ends[:, 0].copy(), buffer, ends[:, 0].copy())


def proofs_of_supports() -> None:
    """Proofs of searches over lists of supports."""
    brancher = SupportBrancher(tiny_problem("hfs"))
    chooser, buffer, zero = brancher.choosers(np.zeros((2, 2)))[0], proof_bytes.new_buffer(1 << 10), np.int64(0)
    assert isinstance(chooser, ListChooser)
    m, T = brancher.problem.n_samples, brancher.problem.n_nodes
    index, goal, known, bound = np.arange(2), np.zeros(m, np.int64), np.zeros(m, np.uint16), np.zeros(1)
    terms = implied_sides.ProofTerms(np.zeros((T, T)), brancher.samples.cost, 1e-3, 1.0)
    placed = implied_sides.new_placed_samples(brancher.last, 1, m)
    of = brancher.samples, terms, placed
    recorded_bounds.search(
        *of, zero, index, np.zeros(2), goal, known, 1.0, chooser.table, index[:1], bound, np.zeros(1, np.int8), 0.0,
        0.0, chooser.work, 0.0, index.copy(), buffer,
    )  # fmt: skip
    implied_sides.exclude_side(*of, known, zero, zero, 1.0, 1.0, buffer)
    implied_sides.prove_sides(*of, goal, known, index, 1.0, index.copy(), buffer)
