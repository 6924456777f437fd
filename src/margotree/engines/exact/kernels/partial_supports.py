"""The best support of one tree node where there are too many to list: a branch and bound over partly decided supports.

An entry decides for every feature whether it must, may or must not be used. Its bound is the perspective relaxation:
every feature that may be used has its penalty and can be used in part. The entry with the least bound is solved for the
current samples; if its relaxation uses a feature in part, or cannot be solved to the accuracy of values, it is split
there. Bounds stay valid when samples are added.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.listed_supports import Samples, costs_nothing, gather, least
from margotree.engines.node.kernels.newton import svm_on_features
from margotree.engines.node.kernels.safe_bounds import ROUNDOFF
from margotree.engines.node.kernels.smoothed_loss import NodeSamples
from margotree.engines.node.kernels.vectors import copy, total
from margotree.engines.numba_backend import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I1 = NDArray[np.int8]

NEVER, MUST, MAY = 0, 1, 2
# States of an entry: not solved for the current samples, exact, used in part (to be split), not solved accurately.
STALE, EXACT, IN_PART, UNSURE = 0, 1, 2, 3
#: Where all shares of features are closer to 0 or 1 than this, the support that they round to is tried.
NEAR = 0.02
#: The relaxation counts as exact if that support costs at most this many times the accuracy of values more.
SLACK = 5.0
#: The number of penalties tried, each smaller than the last: while the budget has places left, a smaller penalty may
#: give a better bound.
DISCOUNTS = 3


@kernel()
def search(
    samples: Samples,
    t: int,
    index: I8,
    side: F8,
    eps: float,
    decisions: I1,
    lb: F8,
    thetas: F8,
    count: int,
    budget: int,
    alpha: float,
    target: float,
    tol: float,
    most: int,
    work: F8,
) -> tuple[int, int, bool]:
    """Raise the least bound among the first ``count`` entries until it is exact or at least ``target``.

    Parameters
    ----------
    decisions, lb, thetas
        The entries, their bounds and hyperplanes, with space for ``most`` more entries.
    budget, alpha
        The features without a penalty, and the penalty of each further one.
    work
        ``work[1, 1]`` is a flag that stops the search.

    Returns
    -------
    count, position, exact
        The number of entries, the position of the least bound, and whether it is exact.
    """
    if costs_nothing(samples, index, side):
        return count, settle_one_class(samples, index, decisions, lb, thetas, count, budget, alpha), True
    small = gather(samples, t, index, side)
    state = np.zeros(lb.size, np.int8)
    done = 0
    while True:
        p = least(lb[:count])
        if lb[p] >= target:
            return count, p, False
        if state[p] == EXACT or state[p] == UNSURE or done >= most or work[1, 1] != 0.0:
            return count, p, state[p] == EXACT
        if state[p] == IN_PART:
            split(decisions, lb, thetas, p, count, to_split(small, decisions[p], thetas[p], alpha), budget, alpha)
            state[p] = STALE
            state[count] = STALE
            count += 1
            continue
        done += 1
        bound, state[p] = bound_entry(small, decisions[p], thetas[p], eps, budget, alpha, target, tol, work[1, 1:2])
        lb[p] = max(lb[p], bound)


@inner(allocates=False)
def settle_one_class(
    samples: Samples, index: I8, decisions: I1, lb: F8, thetas: F8, count: int, budget: int, alpha: float
) -> int:
    """Set bounds and the best entry's hyperplane where the samples have one label; return its position."""
    for p in range(count):
        lb[p] = max(lb[p], penalty_of(decisions[p], budget, alpha))
    p = least(lb[:count])
    for j in range(decisions.shape[1]):
        thetas[p, j] = 0.0
    thetas[p, decisions.shape[1]] = samples.y[index[0]] if index.size > 0 else 1.0
    return p


@kernel(allocates=False)
def penalty_of(decision: I1, budget: int, alpha: float) -> float:
    """The penalty of the features that must be used."""
    must = 0
    for j in range(decision.size):
        must += decision[j] == MUST
    return alpha * max(0, must - budget)


@inner(allocates=False)
def split(decisions: I1, lb: F8, thetas: F8, p: int, q: int, j: int, budget: int, alpha: float) -> None:
    """Decide that entry ``p`` must use feature ``j``, and that the new entry ``q`` must not."""
    for k in range(decisions.shape[1]):
        decisions[q, k] = decisions[p, k]
    for k in range(thetas.shape[1]):
        thetas[q, k] = thetas[p, k]
    decisions[p, j] = MUST
    decisions[q, j] = NEVER
    thetas[q, j] = 0.0
    lb[q] = lb[p]
    lb[p] = max(lb[p], penalty_of(decisions[p], budget, alpha))


@inner(allocates=False)
def count_decisions(decision: I1) -> tuple[int, int]:
    """The number of features that must be used, and of those that may be used."""
    must = may = 0
    for j in range(decision.size):
        must += decision[j] == MUST
        may += decision[j] == MAY
    return must, may


@inner()
def bound_entry(
    small: NodeSamples,
    decision: I1,
    theta: F8,
    eps: float,
    budget: int,
    alpha: float,
    target: float,
    tol: float,
    flag: F8,
) -> tuple[float, int]:
    """A lower bound over all supports of an entry, and the state of the entry after it."""
    n = decision.size
    must, may = count_decisions(decision)
    d = must + may
    cols = np.empty(d, np.int64)
    lam = np.zeros(d)
    guess = np.zeros(d + 1)
    d = 0
    warm = False
    for j in range(n):
        if decision[j] != NEVER:
            cols[d] = j
            guess[d] = theta[j]
            warm = warm or theta[j] != 0.0
            d += 1
    guess[d] = theta[n]
    # Features within the budget have no penalty: it is subtracted again.
    left = max(0, budget - must)
    within_budget = may <= left
    fixed = penalty_of(decision, budget, alpha)
    best = 0.0
    solved = False
    cut = 1.0
    now = np.empty(d + 1)
    for turn in range(DISCOUNTS if left > 0 and not within_budget else 1):
        back = 0.0 if within_budget else left * cut * alpha
        for r in range(d):
            lam[r] = cut * alpha if decision[cols[r]] == MAY and not within_budget else 0.0
        copy(guess, now)
        value, sure, _ = svm_on_features(small, cols, lam, now, eps, target - fixed + back, tol, warm, flag)
        value += fixed - back - 8.0 * ROUNDOFF * (fixed + back)
        if turn > 0 and value <= best:
            break
        best = value
        for r in range(d):
            theta[cols[r]] = now[r]
        theta[n] = now[d]
        solved = sure
        if best >= target:
            break
        cut *= 0.125
    # Where rounding keeps a relaxation from being solved, its parts, with fewer penalties, may still be solved.
    state = IN_PART if solved or not within_budget else UNSURE
    if solved and best < target and (within_budget or nearly_whole(decision, theta, left, alpha)):
        most = best + SLACK * tol * (1e-6 * total(small.cost) + abs(best))
        if try_rounded(small, decision, theta, eps, budget, alpha, most, tol, within_budget, flag):
            state = EXACT
    return best, state


@inner()
def try_rounded(
    small: NodeSamples,
    decision: I1,
    theta: F8,
    eps: float,
    budget: int,
    alpha: float,
    most: float,
    tol: float,
    within_budget: bool,
    flag: F8,
) -> bool:
    """Whether the support that the relaxation rounds to costs at most ``most``; if it does, ``theta`` becomes its
    hyperplane."""
    n = decision.size
    r = np.sqrt(2.0 * alpha)
    cols = np.empty(n, np.int64)
    now = np.zeros(n + 1)
    d = 0
    for j in range(n):
        if decision[j] == MUST or (decision[j] == MAY and (within_budget or abs(theta[j]) > 0.5 * r)):
            cols[d] = j
            now[d] = theta[j]
            d += 1
    now[d] = theta[n]
    cols = cols[:d].copy()
    cost = alpha * max(0, d - budget)
    value, sure, _ = svm_on_features(small, cols, np.zeros(d), now[: d + 1], eps, most - cost + 1e-300, tol, True, flag)
    if not sure or value + cost > most:
        return False
    for j in range(n):
        theta[j] = 0.0
    for q in range(d):
        theta[cols[q]] = now[q]
    theta[n] = now[d]
    return True


@inner(allocates=False)
def nearly_whole(decision: I1, theta: F8, left: int, alpha: float) -> bool:
    """Whether every share is close to 0 or 1, and at least ``left`` features are used."""
    r = np.sqrt(2.0 * alpha)
    whole = 0
    for j in range(decision.size):
        if decision[j] == MAY:
            share = abs(theta[j]) / r
            if min(share, 1.0 - share) > NEAR:
                return False
            whole += share > 0.5
    return whole >= left


@inner(allocates=False)
def to_split(small: NodeSamples, decision: I1, theta: F8, alpha: float) -> int:
    """The feature whose share is closest to 1/2, or by `most_telling` if all shares are whole."""
    r = np.sqrt(2.0 * alpha)
    best = -1
    most = 0.0
    for j in range(decision.size):
        if decision[j] == MAY:
            share = abs(theta[j]) / r
            if min(share, 1.0 - share) > most:
                most = min(share, 1.0 - share)
                best = j
    return best if best >= 0 else most_telling(small, decision)


@inner(allocates=False)
def most_telling(small: NodeSamples, decision: I1) -> int:
    """The feature that may be used whose class sums, weighted by cost, differ most."""
    best = -1
    most = -1.0
    for j in range(decision.size):
        if decision[j] != MAY:
            continue
        up = down = 0.0
        for i in range(small.y.size):
            if small.y[i] > 0:
                up += small.cost[i] * small.X[j, i]
            else:
                down += small.cost[i] * small.X[j, i]
        if abs(up - down) > most:
            most = abs(up - down)
            best = j
    return best
