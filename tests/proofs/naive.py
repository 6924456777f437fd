"""A naive prover for small problems with losses of all kinds: plain branch and bound, written from docs/proof.md.

It decides the samples, classes and features whose losses its bound lacks, until every search node is closed.  Node
problems are solved by the interior point of ``oracles``, which gives multipliers, too.
"""

from typing import NamedTuple

import numpy as np

from margotree.problem import Problem, Splits
from margotree.proof.write import NOTHING, ProofWriter, losses_of, point
from oracles import solve_qp

#: Sides are obeyed at this cost, in units of all costs: more than any tree here can afford.
_HARD = 1e5


class State(NamedTuple):
    """A search node: the place of each sample, the codes of classes by tree node, and the groups decided."""

    place: tuple[int, ...]
    codes: tuple[str, ...]
    groups: frozenset[tuple[int, int, bool]]


class Item(NamedTuple):
    number: int
    sample: int
    label: int
    corner: float
    cost: float
    rests_at_cost: bool
    side: int


def random_problem(task, model, seed, *, depth=2, m=5, n=2, groups=None):
    """A small problem whose samples have coarse features, some of them equal, and weights."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(m, n)), 1)
    X[-1] = X[0]
    numbers, codes = np.round(rng.normal(size=m), 1), rng.permutation(np.arange(m) % max(2, task.n_classes))
    y = numbers if task.n_classes == 0 else np.where(codes == 0, -1.0, 1.0) if task.name == "binary" else codes
    more = {} if model == "margot" else {"budget": 1}
    if model == "sfs":
        more["alpha"] = float(rng.choice([0.1, 1.0]))
    return Problem.make(
        X, y, task=task, depth=depth, C=float(rng.choice([0.3, 3.0])), weight=rng.choice([1.0, 2.0, 0.3], m),
        eps=float(rng.choice([1e-3, 0.5])), groups=groups, **more,
    )  # fmt: skip


def prove(problem, path, *, gap=1e-6, seed=0, tree=None):
    """Write a proof about the best tree, or about ``tree``; return its objective and the proved bound."""
    writer = ProofWriter(path)
    search = Search(problem, writer.steps(problem.n_nodes), gap, np.random.default_rng(seed))
    search.run()
    objective = writer.finish(problem, tree or search.best, search.bound, search.steps)
    writer.clean()
    return objective, min(search.bound, objective)


class Search:
    def __init__(self, problem, steps, gap, rng):
        self.problem, self.steps, self.gap, self.rng = problem, steps, gap, rng
        self.losses = losses_of(problem)
        self.kind, self.T, self.n = self.losses["kind"], problem.n_nodes, problem.n_features
        self.groups = [np.flatnonzero(problem.group_of == g).tolist() for g in range(problem.n_groups)]
        groups = {}
        for x, y, weight in zip(problem.X.tolist(), problem.y.tolist(), problem.weight.tolist(), strict=True):
            groups.setdefault((*x, y), []).append(weight)
        self.X = np.array([key[:-1] for key in groups])
        self.y = [key[-1] for key in groups]
        self.m, total = len(self.X), np.array([sum(w) for w in groups.values()])
        self.cost = [(c * total) * (1.0 - 2.0**-50) for c in problem.C.tolist()]
        self.best, self.value, self.bound, self.solved, self.numbers = None, np.inf, np.inf, {}, 0

    def run(self):
        T, n_upper, K = self.T, self.problem.n_upper, self.losses.get("count", 0)
        first = "<>" if K == 2 else "<" + "." * (K - 1)
        codes = [first if t < n_upper or K == 2 else "." * K for t in range(T)]
        self.visit(0, State((0,) * self.m, tuple(codes), frozenset()))
        self.bound *= 1.0 - 1e-9

    def is_last(self, t):
        return 2 * t + 1 >= self.T

    def visit(self, number, state):
        nodes = [self.node(t, state) for t in range(self.T)]
        bound = sum(node.bound for node in nodes)
        self.offer(Splits(w=np.array([node.w for node in nodes]), b=np.array([node.b for node in nodes])))
        if bound >= (1.0 - self.gap) * self.value - 1e-12:
            self.bound = min(self.bound, bound)
            self.steps.leaf(number, [node.point for node in nodes])
            return
        kind, which, t, children = self.decision(state, nodes)
        first, second = self.numbers + 1, self.numbers + 2
        self.numbers += 2
        self.steps.split(kind, number, which, t, first, second)
        for child, after in zip((first, second), children, strict=True):
            self.visit(child, after)

    def offer(self, splits):
        found = self.problem.evaluate(splits)
        if found.feasible and found.objective < self.value:
            self.best, self.value = splits, found.objective

    # -- a tree node ---------------------------------------------------------------------------------------------------

    def side(self, place, t):
        """-1 left, 1 right, 0 if it is its place; None if the sample is not known to be here."""
        side = 0
        while place > t:
            side, place = (1 if place % 2 == 0 else -1), (place - 1) // 2
        return side if place == t else None

    def items(self, t, state):
        items, m = [], self.m
        for i, y in enumerate(self.y):
            side, c = self.side(state.place[i], t), float(self.cost[t][i])
            if side is None:
                continue
            if self.kind == "labels":
                items.append(Item(i, i, int(y), 1.0, c, side == -y, side))
            elif self.kind == "intervals" and self.is_last(t):
                below, above = ((c * self.losses[name]) * (1.0 - 2.0**-50) for name in ("below", "above"))
                items.append(Item(i, i, 1, y - self.losses["under"], below, False, 0))
                items.append(Item(m + i, i, -1, -(y + self.losses["over"]), above, False, 0))
            elif self.kind == "intervals" or (state.codes[t][y] == "." and not self.is_last(t)):
                if side != 0:
                    items.append(Item(i, i, side, 1.0, c if self.kind == "intervals" else 0.0, False, side))
            elif state.codes[t][y] == "x":
                items += [Item(i, i, 1, 1.0, c, True, 0), Item(m + i, i, -1, 1.0, c, True, 0)]
            elif state.codes[t][y] != ".":
                label = 1 if state.codes[t][y] == ">" else -1
                items.append(Item(i, i, label, 1.0, c, side == -label, side))
        return tuple(items)

    def node(self, t, state):
        items, codes = self.items(t, state), state.codes[t]
        used = {(at, g): is_used for at, g, is_used in state.groups}
        must = frozenset(g for g in range(len(self.groups)) if used.get((t, g)))
        never = frozenset(g for g in range(len(self.groups)) if used.get((t, g)) is False)
        least = 0.0
        if self.kind == "classes" and self.is_last(t):
            mass = [sum(2.0 * self.cost[t][i] for i in range(self.m) if self.y[i] == k and state.place[i] == t)
                    for k, code in enumerate(codes) if code == "."]  # fmt: skip
            least = (1.0 - 1e-12) * sum(sorted(mass, reverse=True)[2 - codes.count("<") - codes.count(">") :])
        key = t, items, must, never, least
        if key not in self.solved:
            self.solved[key] = self.solve(*key)
        return self.solved[key]

    def solve(self, t, items, must, never, least):
        """The hyperplane, the bound and the point of a tree node."""
        budget, alpha = self.problem.budget, self.problem.alpha
        if self.problem.model == "hfs" and len(must) > budget[t]:
            return Node(np.zeros(self.n), 1.0, np.inf, NOTHING, np.zeros(self.n))
        full = self.problem.model == "hfs" and len(must) == budget[t]
        allowed = sorted(j for g in (must if full else set(range(len(self.groups))) - never) for j in self.groups[g])
        w, b, v = self.dual(t, items, allowed)
        text, v = self.point_of(items, v)
        u = sum((a * item.label * self.X[item.sample] for a, item in zip(v, items, strict=True)), np.zeros(self.n))
        squares = [u[group] @ u[group] / 2 for group in self.groups]
        rest = sorted((x for g, x in enumerate(squares) if g not in must | never), reverse=True)
        cut, extra = sum(squares[g] for g in must) + sum(rest), 0.0
        if budget is not None:
            places = max(0, budget[t] - len(must))
            cut = sum(squares[g] for g in must) + sum(rest[:places])
            if alpha is not None:
                cut -= alpha[t] * max(0, len(must) - budget[t])
                extra = sum(max(0.0, x - alpha[t]) for x in rest[places:])
        worth = sum(self.phi(item, a) for item, a in zip(items, v, strict=True))
        return Node(w, b, max(0.0, worth - cut - extra) + least, text, u)

    def phi(self, item, v):
        delta = self.problem.eps if item.side < 0 else 0.0
        if item.side == 0:
            return v * item.corner
        if item.side == item.label:
            return min(item.cost * max(0.0, 1.0 - g) + v * g for g in (delta, max(1.0, delta)))
        return item.cost * (1.0 + delta) - v * delta

    def dual(self, t, items, allowed):
        """The hyperplane with the least cost on the features allowed, and the multiplier of every item."""
        eps, hard = self.problem.eps, _HARD * (1.0 + float(np.sum(self.cost[t])))
        rows = [(k, 1, item.label, item.corner, item.cost) for k, item in enumerate(items) if item.cost]
        rows += [
            (k, item.label * item.side, item.side, eps if item.side < 0 else 0.0, hard)
            for k, item in enumerate(items) if item.side
        ]  # fmt: skip
        w, v = np.zeros(self.n), np.zeros(len(items))
        if len({row[2] for row in rows}) < 2:  # one side of no hyperplane
            b = max((row[3] for row in rows), default=1.0)
            return w, b * (rows[0][2] if rows else 1.0), v
        item, sign, label, corner, cost = (np.array(part) for part in zip(*rows, strict=True))
        X = self.X[[items[k].sample for k in item]][:, allowed]
        m, n = X.shape
        G = np.block(
            [[label[:, None] * np.column_stack([X, np.ones(m)]), np.eye(m)], [np.zeros((m, n + 1)), np.eye(m)]]
        )
        _, x, multipliers = solve_qp(
            np.repeat([1.0, 0.0], [n, 1 + m]), np.append(np.zeros(n + 1), cost), G, np.append(corner, np.zeros(m))
        )
        w[allowed] = x[:n]
        np.add.at(v, item, sign * multipliers[:m])
        return w, float(x[n]), v

    def point_of(self, items, v):
        """The multipliers as bytes, and as both checkers read them: slightly smaller, so that one of them balances."""
        if not np.any(v):
            return NOTHING, np.zeros(len(items))
        label, cost, side = (np.array([getattr(item, name) for item in items]) for name in ("label", "cost", "side"))
        against, rest = np.array([item.rests_at_cost for item in items]), bool(self.rng.random() < 0.5)
        v = np.where((side == 0) & (v < 1e-7 * cost), 0.0, v) * (1.0 - 1e-7)
        room = np.minimum(
            np.where(side == -label, np.inf, v), np.where((side == label) & (side != 0), np.inf, cost - v)
        )
        balance = int(np.argmax(np.minimum(room, 1e6)))
        at_cost = (v > (1.0 - 1e-6) * cost) & (side != label) & (np.arange(len(v)) != balance)
        moved = abs(float(np.sum(np.where(at_cost, cost - v, 0.0))))
        if moved > 0.1 * room[balance]:
            at_cost[:] = False
        v = np.where(at_cost, cost, v)
        v[balance] = 0.0
        v[balance] = -label[balance] * float(np.sum(label * v))
        number = np.array([item.number for item in items])
        listed = (at_cost & ~against) | (at_cost & (not rest))
        given = ~at_cost & (np.arange(len(v)) != balance) & ((v != 0.0) | (against & rest))
        return point(number[listed], number[given], v[given], int(number[balance]), rest), v

    # -- decisions -----------------------------------------------------------------------------------------------------

    def decision(self, state, nodes):
        """The decision about the largest loss that the bound lacks: kind, which, tree node, the two children."""
        scores = self.scores(state, nodes)
        kind, which, t = max(scores, key=scores.get)
        if kind == b"S":
            places = [list(state.place) for _ in range(2)]
            places[0][which], places[1][which] = 2 * t + 1, 2 * t + 2
            return kind, which, t, [state._replace(place=tuple(place)) for place in places]
        if kind == b"F":
            return (
                kind,
                which,
                t,
                [state._replace(groups=state.groups | {(t, which, use)}) for use in (True, False)],
            )
        children = []
        for outcome in (1, 2):
            codes = list(state.codes)
            codes[t] = (labels_after if self.is_last(t) else sides_after)(codes[t], which, outcome)
            children.append(state._replace(codes=tuple(codes)))
        return kind, which, t, children

    def scores(self, state, nodes):
        scores = {}
        for i, place in enumerate(state.place):
            t = place
            lacking, first = 0.0, True
            while t < self.T:
                h = float(nodes[t].w @ self.X[i]) + nodes[t].b
                if not first or self.kind == "intervals":
                    lacking += self.least_loss(t, i, 0, h, state)
                t, first = 2 * t + (2 if h >= 0 else 1), False
            if not self.is_last(place):
                scores[b"S", i, place] = lacking + 1e-9
        for t, codes in enumerate(state.codes):
            for k in [k for k, code in enumerate(codes) if code == "."]:
                here = [i for i in range(self.m) if self.y[i] == k and self.side(state.place[i], t) is not None]
                heights = [float(nodes[t].w @ self.X[i]) + nodes[t].b for i in here]
                lacking = sum(self.least_loss(t, i, self.side(state.place[i], t), h, state)
                              for i, h in zip(here, heights, strict=True))  # fmt: skip
                scores[b"C", k, t] = lacking + 2e-9 * len(here)
        if self.problem.budget is not None:
            decided = {(t, g) for t, g, _ in state.groups}
            for t, node in enumerate(nodes):
                used = sum(np.abs(node.w[group]).max() > 1e-6 for group in self.groups)
                for g in [g for g in range(len(self.groups)) if (t, g) not in decided]:
                    worth = node.u[self.groups[g]] @ node.u[self.groups[g]]
                    scores[b"F", g, t] = (1.0 if used > self.problem.budget[t] else 1e-9) * worth + 1e-12
        return scores

    def least_loss(self, t, i, side, h, state):
        """The loss of a sample with this value, at best."""
        y, c = self.y[i], float(self.cost[t][i])
        right, left = c * max(0.0, 1.0 - h), c * max(0.0, 1.0 + h)
        if self.kind == "labels":
            return right if y > 0 else left
        if self.kind == "intervals" and self.is_last(t):
            low, high = y - self.losses["under"], y + self.losses["over"]
            return c * (self.losses["below"] * max(0.0, low - h) + self.losses["above"] * max(0.0, h - high))
        code = "." if self.kind == "intervals" else state.codes[t][y]
        if code == ".":
            return min(right, left) if side == 0 else right if side > 0 else left
        return {">": right, "<": left, "x": right + left}[code]


class Node(NamedTuple):
    w: np.ndarray
    b: float
    bound: float
    point: bytes
    u: np.ndarray


def sides_after(codes, k, outcome):
    """The sides of classes at an upper tree node: ``<`` left, ``>`` right, ``.`` open."""
    codes = codes[:k] + "<>"[outcome - 1] + codes[k + 1 :]
    return codes.replace(".", ">") if codes.count(".") == 1 and ">" not in codes else codes


def labels_after(codes, k, outcome):
    """The labels of classes at a last tree node: ``x`` is no label."""
    codes = with_label(codes, k) if outcome == 1 else codes[:k] + "x" + codes[k + 1 :]
    labels = codes.count("<") + codes.count(">")
    if labels == 2:
        return codes.replace(".", "x")
    if labels + codes.count(".") == 2:
        while "." in codes:
            codes = with_label(codes, codes.index("."))
    return codes


def with_label(codes, k):
    return codes[:k] + (">" if "<" in codes else "<") + codes[k + 1 :]
