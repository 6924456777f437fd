"""The entry points of a dive for Python: load the record of a search node and dive from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.dive import make_dive
from margotree.engines.exact.kernels.node_record import load_record
from margotree.engines.exact.kernels.probing import (
    choose_both,
    choose_samples,
    set_up_any,
    set_up_sample,
    update_all_margins,
)
from margotree.engines.exact.kernels.routing import PLACE, Routing, headed
from margotree.engines.node.kernels import active_set, penalised_active_set
from margotree.engines.node.kernels.workspace import F8, I8, Workspace
from margotree.engines.numba_backend import kernel

_dive = make_dive(active_set.run, set_up_sample, choose_samples)
_dive_penalised = make_dive(penalised_active_set.run, set_up_any, choose_both)


@kernel(allocates=False)
def plunge(
    ws: Workspace,
    rt: Routing,
    codes: NDArray[np.uint8],
    floats: F8,
    floor: float,
    shared: F8,
    max_steps: int,
    options: I8,
    cand: I8,
    out_codes: NDArray[np.uint8],
    out_floats: F8,
    out_used: I8,
    out_bound: F8,
    counters: I8,
    log: I8,
) -> tuple[int, float]:
    """`dive` from a record, without feature penalties in the node problems."""
    load_record(ws, rt, codes, floats)
    return _dive(
        ws, rt, floor, shared, max_steps, options, cand, out_codes, out_floats, out_used, out_bound, counters,
        log,
    )  # fmt: skip


@kernel(allocates=False)
def plunge_penalised(
    ws: Workspace,
    rt: Routing,
    codes: NDArray[np.uint8],
    floats: F8,
    floor: float,
    shared: F8,
    max_steps: int,
    options: I8,
    cand: I8,
    out_codes: NDArray[np.uint8],
    out_floats: F8,
    out_used: I8,
    out_bound: F8,
    counters: I8,
    log: I8,
) -> tuple[int, float]:
    """`dive` from a record, with feature penalties in the node problems."""
    load_record(ws, rt, codes, floats)
    return _dive_penalised(
        ws, rt, floor, shared, max_steps, options, cand, out_codes, out_floats, out_used, out_bound, counters,
        log,
    )  # fmt: skip


@kernel(allocates=False)
def route(ws: Workspace, rt: Routing, out: I8) -> None:
    """Write to ``out`` the last-level node that each sample reaches on the way that the current hyperplanes give."""
    update_all_margins(ws, rt)
    for i in range(rt.samples):
        t = rt.at[PLACE, i]
        while 2 * t + 1 < rt.T:
            t = headed(ws, rt, t, i)
        out[i] = t


def kernel_for(ws: Workspace) -> Any:
    """The entry point for this memory; only this one is compiled."""
    return plunge_penalised if ws.with_penalties else plunge
