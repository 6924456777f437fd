"""Proofs: written by the exact engine, accepted by two independent checkers, and refused after changes."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.proofs import exact, large, naive, spoil
from tests.proofs.spoil import both, spoilt

import margotree
from margotree.engines import Limits, solve
from margotree.engines.base import Refused as EngineRefused
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.exact import proof_log as logging
from margotree.engines.exact import support_proof_log, support_proof_search
from margotree.engines.run_control import RunControl
from margotree.problem import Multiclass, Problem, Regression
from margotree.proof import check, write
from margotree.proof.write import ProofWriter

CHECKER = Path(check.__file__)


def random_problem(model, seed, m=9, depth=2):
    rng = np.random.default_rng(seed)
    n = 2 if model == "margot" else 3
    X = np.round(rng.normal(size=(m, n)), 1)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    more = {} if model == "margot" else {"budget": 1}
    if model == "sfs":
        more["alpha"] = 0.3
    C, weight = float(rng.choice([0.5, 5.0])), rng.choice([1.0, 2.0, 0.3], m)
    return Problem.make(X * 10.0 ** rng.integers(-2, 3), y, depth=depth, C=C, weight=weight, **more)


def proved(problem, path, **limits):
    limits = Limits(**{"gap": 1e-4, "nodes": 2000, **limits})
    return BranchAndBound().solve_with_proof(problem, ProofWriter(path), RunControl(limits))


def arrays(problem):
    return problem.X, problem.y, problem.weight


@pytest.fixture(scope="module")
def proofs(tmp_path_factory):
    """The parts of a proof of each model."""
    folder = tmp_path_factory.mktemp("proofs")
    found = []
    problems = {name: random_problem(name, seed) for name, seed in (("margot", 3), ("sfs", 1), ("hfs", 2))}
    problems["large"] = replace(problems["hfs"], alpha=np.full(3, 1e9))  # penalties that no good tree can afford
    for name, problem in problems.items():
        path = folder / f"{name}.proof"
        proved(problem, path)
        parts = spoil.Parts(path, arrays(problem))
        assert len(parts.steps) > 5
        found.append(parts)
    for name, task in (("classes", Multiclass(3)), ("intervals", Regression(0.25))):
        problem, path = naive.random_problem(task, "sfs" if name == "intervals" else "margot", 2), folder / name
        naive.prove(problem, path)
        found.append(spoil.Parts(path, arrays(problem)))
        assert 5 < len(found[-1].steps) < 100
    return found


@pytest.mark.parametrize("model", ["margot", "hfs", "sfs"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_proved_is_what_is_certified(tmp_path, model, seed):
    problem, path = random_problem(model, seed, depth=1 + seed % 2), tmp_path / "a.proof"
    certificate = proved(problem, path).certificate
    objective, bound = both(path, arrays(problem))
    assert bound == min(certificate.bound, objective)
    assert objective == pytest.approx(certificate.objective, rel=1e-9)
    assert certificate.gap <= 1e-4


def test_one_thread_or_two_prove_the_same(tmp_path):
    problem = random_problem("margot", 3, m=14)
    for threads in (1, 2):
        path = tmp_path / f"{threads}.proof"
        assert proved(problem, path, n_jobs=threads).certificate.gap <= 1e-4
        assert both(path, arrays(problem)) is not None


@pytest.mark.parametrize("model", ["margot", "sfs"])
@pytest.mark.parametrize("rows", [1, 7])
def test_a_dive_may_be_longer_than_a_batch(tmp_path, monkeypatch, model, rows):
    """Where memory for records is short, or leaves are many, batches are sent early."""
    monkeypatch.setattr(logging, "_TOGETHER", rows)
    monkeypatch.setattr(logging, "_RECORDS", rows)
    problem, path = random_problem(model, 3, m=14), tmp_path / "a.proof"
    solution = proved(problem, path)
    assert both(path, arrays(problem)) is not None
    monkeypatch.undo()
    assert proved(problem, path).certificate.bound == solution.certificate.bound


def test_what_is_written_together_fits_a_block():
    assert support_proof_search._ROOM <= check.BLOCK >= 2 * logging._PIECE
    assert write._BLOCK <= check.BLOCK


def test_a_search_cut_short_proves_the_bound_it_reached(tmp_path):
    problem, path = random_problem("margot", 5, m=16), tmp_path / "a.proof"
    certificate = proved(problem, path, nodes=3).certificate
    assert certificate.stopped == "node limit" and 0 < certificate.bound
    assert both(path, arrays(problem))[1] == certificate.bound


@pytest.mark.parametrize(("budget", "depth"), [(1, 2), (2, 2), (3, 2), (1, 3), (2, 3)])
def test_hard_budgets_are_proved_support_by_support(tmp_path, budget, depth):
    """Tables are raised, and samples whose side follows from others are split off by few multipliers."""
    rng = np.random.default_rng(budget)
    m = 16 if depth == 2 else 9
    X = np.round(rng.normal(size=(m, 4)), 1)
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=m) > 0, 1.0, -1.0)
    problem, path = Problem.make(X, y, depth=depth, C=10.0, budget=budget), tmp_path / "a.proof"
    certificate = proved(problem, path).certificate
    assert both(path, arrays(problem)) == (pytest.approx(certificate.objective), certificate.bound)
    assert certificate.gap <= 1e-4
    steps = spoil.Parts(path, arrays(problem)).steps
    kinds = {step[0] for step in steps}
    assert {b"L", b"R", b"S"} <= kinds and (b"F" in kinds) == (budget < 4)


@pytest.mark.parametrize("seed", range(3))
def test_samples_alike_on_few_features_are_proved_together(tmp_path, seed):
    rng, path = np.random.default_rng(seed), tmp_path / "a.proof"
    X = rng.integers(2, size=(44, 8)).astype(float)
    y = np.where((X[:, 0] != X[:, 1]) != (rng.random(44) < 0.1), 1.0, -1.0)
    problem = Problem.make(X, y, depth=2, C=1.0, budget=1, weight=rng.choice([1.0, 0.7, 3.0], 44))
    certificate = proved(problem, path, nodes=10).certificate
    objective, bound = both(path, arrays(problem))
    assert bound == min(certificate.bound, objective) > 0.0


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_penalties_beyond_every_good_tree_are_proved_support_by_support(tmp_path, depth):
    rng = np.random.default_rng(depth)
    X = np.round(rng.normal(size=(12, 4)), 1)
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    problem, path = Problem.make(X, y, depth=depth, C=10.0, budget=1, alpha=1e4), tmp_path / "a.proof"
    certificate = proved(problem, path).certificate
    assert certificate.gap <= 1e-4
    claim = both(path, arrays(problem))
    assert claim == (pytest.approx(certificate.objective), certificate.bound)
    parts = spoil.Parts(path, arrays(problem))
    assert b"R" in {step[0] for step in parts.steps}
    # The same steps prove no more than the penalty, where that is low.
    parts.header["alpha"] = [0.9 * claim[1] / problem.n_nodes] * problem.n_nodes
    parts.header["digest"] = check.digest_of(parts.header, *arrays(problem))
    parts.header["claim"]["bound"] = claim[1]
    parts.write(path)
    assert both(path, arrays(problem)) is None
    parts.header["claim"]["bound"] = 0.0
    parts.write(path)
    assert both(path, arrays(problem)) == (claim[0], 0.0)


@pytest.mark.parametrize("seed", [37, 262, 511, 876])
def test_what_balances_keeps_to_its_range_to_the_last_digit(tmp_path, seed):
    """What ``benchmarks/proofs.py --random`` has found: the multiplier that balances is at the edge of its range."""
    spec = importlib.util.spec_from_file_location("proofs", Path(__file__).parents[1] / "benchmarks" / "proofs.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    problem = benchmark.random_problem(seed)
    certificate = proved(problem, tmp_path / "a.proof", nodes=300).certificate
    objective, bound = both(tmp_path / "a.proof", arrays(problem))
    assert bound == min(certificate.bound, objective)


def test_penalties_beyond_every_better_tree_are_a_hard_budget_from_the_start(tmp_path):
    problem = random_problem("sfs", 5, m=20)
    costly = replace(problem, alpha=np.full_like(problem.alpha, 1e6))
    certificate = proved(costly, tmp_path / "a.proof", nodes=1e6).certificate
    assert certificate.gap <= 1e-4 and both(tmp_path / "a.proof", arrays(costly))[1] == certificate.bound


def test_time_is_left_to_close_what_is_open(tmp_path, monkeypatch):
    """A search that would need all its time to write down what is open stops, and proves what it has."""
    monkeypatch.setattr(logging.ProofLog, "seconds_to_close", lambda self, open_nodes: 100.0 if open_nodes > 3 else 0.0)
    problem, path = random_problem("margot", 5, m=80, depth=3), tmp_path / "a.proof"
    certificate = proved(problem, path, nodes=1e9, time=60.0).certificate
    assert certificate.stopped == "time limit" and certificate.seconds < 50.0
    assert check.check(str(path), arrays(problem)).bound == certificate.bound > 0


def test_time_is_left_to_close_what_is_open_under_hard_budgets(tmp_path, monkeypatch):
    monkeypatch.setattr(support_proof_log, "_SECONDS", 20.0)
    problem, path = random_problem("hfs", 5, m=150, depth=3), tmp_path / "a.proof"
    certificate = proved(problem, path, nodes=1e9, time=60.0).certificate
    assert certificate.stopped == "time limit" and certificate.seconds < 50.0
    assert check.check(str(path), arrays(problem)).bound == certificate.bound > 0


def test_a_slow_writer_is_given_its_time(tmp_path):
    problem = random_problem("margot", 0)
    log = logging.ProofLog(ProofWriter(tmp_path / "a.proof").steps(3), problem, problem.weight, 1.0)
    guess = log.seconds_to_close(1000)
    log._n_closed, log._n_written, log._seconds = 500, 400, 4.0
    assert 0 < guess < log.seconds_to_close(1000) == pytest.approx(0.01 * 1100)
    log.finish()


def test_the_parts_put_together_are_a_proof(proofs, tmp_path):
    for parts in proofs:
        parts.write(tmp_path / "a.proof")
        assert both(tmp_path / "a.proof", parts.data) is not None


@pytest.mark.parametrize("way", [*spoil.FILES, *spoil.WRONG, *spoil.WEAKER], ids=lambda way: way.__name__)
def test_a_spoilt_proof_is_refused(proofs, tmp_path, way):
    rng, path, refused = np.random.default_rng(0), tmp_path / "spoilt.proof", []
    for parts in proofs[:1] if way in spoil.FILES else proofs:
        refused.append(0)
        for _ in range(8):
            data = spoilt(parts, way, rng, path)
            if data is None:
                continue
            found = both(path, data)
            assert found is None or way in spoil.WEAKER
            refused[-1] += found is None
            if refused[-1] == 2:
                break
    assert sum(refused) >= 2


# -- a wrong engine ----------------------------------------------------------------------------------------------------


def broken_weakest(monkeypatch):
    """Bounds of closed search nodes are ten per cent too large."""
    close = logging.ProofLog.record_dive

    def wishful(self, *args):
        numbers = close(self, *args)
        self.least_closed_bound *= 1.1
        return numbers

    monkeypatch.setattr(logging.ProofLog, "record_dive", wishful)
    monkeypatch.setattr("margotree.engines.exact.search.Search._own_bound", lambda self: 1.05 * self.best)
    monkeypatch.setattr("margotree.engines.exact.search.Search._bound", lambda self: 0.9999 * self.best)
    monkeypatch.setattr("margotree.engines.exact.search.Search._cutoff", lambda self: 0.7 * self.best)


def broken_cost(monkeypatch):
    """Costs of violations are one and a half times too large."""
    new_memory = logging_margot().new_memory

    def costly(X, samples, *args, **more):
        return new_memory(X, samples._replace(cost=1.5 * samples.cost), *args, **more)

    monkeypatch.setattr("margotree.engines.exact.sample_branching.new_memory", costly)


def broken_branching(monkeypatch):
    """Every other child is lost on its way to the queue."""
    push = __import__("margotree.engines.exact.search", fromlist=["Search"]).Search.push

    def lossy(self, records):
        push(self, records if len(records) < 2 else records[1:])

    monkeypatch.setattr("margotree.engines.exact.search.Search.push", lossy)


def logging_margot():
    from margotree.engines.exact import sample_branching

    return sample_branching


@pytest.mark.parametrize("broken", [broken_weakest, broken_cost, broken_branching])
def test_a_wrong_engine_is_caught(monkeypatch, tmp_path, broken):
    problem, path = random_problem("margot", 5, m=16), tmp_path / "a.proof"
    assert proved(problem, path).certificate.gap <= 1e-4 and both(path, arrays(problem)) is not None
    broken(monkeypatch)
    proved(problem, path)
    assert both(path, arrays(problem)) is None


# -- bad input ---------------------------------------------------------------------------------------------------------


def table(folder):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(30, 2)), 2)
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    rows = [f"{a},{b},{c}" for (a, b), c in zip(X.tolist(), y, strict=True)]
    (folder / "people.csv").write_text("\n".join(["age,pay,buys", *rows]) + "\n")
    return X, y


def alone(folder, *args):
    """The checker by itself: a copy of one file, in a Python that does not find margotree."""
    (folder / "check.py").write_bytes(CHECKER.read_bytes())
    command = [sys.executable, "check.py", *args]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_from_the_command_line(tmp_path, monkeypatch, capsys):
    from margotree.cli.main import main

    monkeypatch.chdir(tmp_path)
    table(tmp_path)
    fit = ["fit", "people.csv", "--target", "buys", "--C", "10", "--proof", "people.proof", "--quiet"]
    assert main(fit) == 0
    done = alone(tmp_path, "people.proof", "people.csv")
    assert done.returncode == 0 and done.stdout.startswith("PROVED"), done
    assert main(["check", "people.proof", "people.csv", "--quiet"]) == 0
    assert main(["show", "people.tree.json"]) == 0
    assert "proof checked" not in capsys.readouterr().out
    assert main(["check", "people.proof", "people.csv", "--tree", "people.tree.json", "--note", "--quiet"]) == 0
    assert main(["show", "people.tree.json"]) == 0
    assert "proof checked" in capsys.readouterr().out
    # Another tree, other data, no file at all.
    assert main([*fit, "--depth", "1", "--out", "other.json", "--proof", "other.proof"]) == 0
    assert main(["check", "other.proof", "people.csv", "--tree", "people.tree.json"]) == 1
    assert "about" in capsys.readouterr().err
    text = Path("people.csv").read_text()
    Path("forged.csv").write_text(text.replace("yes", "no", 1))
    assert main(["check", "people.proof", "forged.csv"]) == 1
    assert "not the data" in capsys.readouterr().err
    assert alone(tmp_path, "people.proof", "forged.csv").returncode == 1
    assert main(["check", "nowhere.proof", "people.csv"]) == 3
    assert alone(tmp_path, "nowhere.proof", "people.csv").returncode == 3
    assert main(["fit", "people.csv", "--target", "buys", "--model", "oct1", "--out", "x.json", "--proof", "x"]) == 2


def test_estimators_write_and_check(tmp_path):
    X, y = table(tmp_path)
    path = tmp_path / "a.proof"
    tree = margotree.MargotClassifier(C=10.0, proof=path).fit(X, y)
    assert tree.check_proof(path, X, y).bound == min(tree.certificate_.bound, tree.check_proof(path, X, y).objective)
    with pytest.raises(check.Refused, match="data"):
        tree.check_proof(path, X[1:], y[1:])
    with pytest.raises(ValueError, match="proof"):
        margotree.MargotClassifier(proof=3).fit(X, y)
    with pytest.raises(ValueError, match="cannot be written"):
        margotree.MargotClassifier(proof=tmp_path / "no" / "folder.proof").fit(X, y)


@pytest.mark.parametrize(("model", "counts"), [("margot", "1 1 0 0 0"), ("hfs", "0 0 1 1 1"), ("sfs", "1 1 1 1 1")])
def test_what_proofs_need_is_compiled_before_the_clock_starts(tmp_path, model, counts):
    """In a process of its own; and the fit needs nothing else."""
    code = f"""
from margotree.engines.branch_and_bound.engine import BranchAndBound
from margotree.engines.exact.kernels import implied_sides, leaf_multipliers, proof_steps, recorded_bounds
from margotree.problem.tiny_problems import tiny_problem
from margotree.proof.write import ProofWriter
problem = tiny_problem("{model}")
kernels = (
    leaf_multipliers.write_points, proof_steps.write_leaves, recorded_bounds.search, implied_sides.exclude_side,
    implied_sides.prove_sides,
)
BranchAndBound().prepare_proof(problem)
print(*(len(kernel.signatures) for kernel in kernels))
BranchAndBound().solve_with_proof(problem, ProofWriter("a.proof"))
print(*(len(kernel.signatures) for kernel in kernels))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == [counts, counts]


def test_fits_without_proof_support_raise_an_error(tmp_path):
    with pytest.raises(EngineRefused, match="bnb"):
        solve(random_problem("margot", 0), engine="local_svm", proof=ProofWriter(tmp_path / "a.proof"))
    assert list(tmp_path.iterdir()) == []


def values_of(problem, w, b, eps):
    """Return the objectives of a tree by both checkers; None if it is not feasible."""
    header = {**write.terms_of(problem), "eps": eps}
    header["digest"] = check.digest_of(header, *arrays(problem))
    one = other = None
    with suppress(check.Refused):
        one = check.tree_value(check.Problem(header, *arrays(problem)), {"w": w, "b": b})
    with suppress(exact.NotProved):
        terms = exact.Terms(header, *(a.tolist() for a in arrays(problem)))
        other = np.nextafter(float(terms.tree_value({"w": w.tolist(), "b": b.tolist()})), np.inf)
    return one, other


@pytest.mark.parametrize("eps", [1e-3, 2.0])
def test_the_value_of_a_tree_is_exact_however_near_its_samples_are_to_a_border(eps):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        problem = random_problem("margot", seed, m=6)
        w = rng.choice([0.1, -0.3, 0.7], (problem.n_nodes, problem.n_features))
        there = rng.choice([1.0, -1.0, 0.0, -eps], problem.n_nodes)
        b = there - np.sum(w * problem.X[rng.integers(problem.n_samples, size=problem.n_nodes)], axis=1)
        one, other = values_of(problem, w, b, eps)
        assert one == other


def test_the_value_of_a_tree_is_exact_where_rounding_changes_margins():
    """Products of 10^15 that cancel: rounding moves samples by a tenth of a margin, to either side of it."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        first = 1e15 + rng.integers(0, 99, 20)
        X = np.column_stack([first, first + rng.integers(-40, 41, 20) / 8])
        heights = 0.7 * (X[:, 0] - X[:, 1])
        problem = Problem.make(X, np.where(heights > 0, 1.0, -1.0), depth=1, C=1.0)
        one, other = values_of(problem, np.array([[0.7, -0.7]]), np.zeros(1), 1e-3)
        assert one == other


def test_the_checker_stands_by_itself():
    source = CHECKER.read_text()
    assert "import margotree" not in source and "from margotree" not in source
    assert len(source.splitlines()) < 1300


def test_zeros_without_end_take_no_memory(proofs, tmp_path):
    """A file of 10 GB (that takes no room on disk), blocks that claim to be huge, and blocks that unpack to much."""
    import resource

    path, parts = tmp_path / "zeros.proof", proofs[0]
    with path.open("wb") as stream:
        stream.truncate(10**10)
    data = tuple(parts.data)
    with pytest.raises(check.Refused, match="not a margotree proof"):
        check.check(str(path), data)
    with path.open("wb") as stream:
        stream.write(parts.first)
        stream.truncate(10**10)
    with pytest.raises(check.Refused, match="header"):
        check.check(str(path), data)
    head = parts.packed()[: spoil.body_at(parts.packed())]
    bomb = zlib.compress(bytes(1 << 26), 9)
    for block in (struct.pack("<III", 1 << 31, 1 << 31, 0), struct.pack("<III", len(bomb), 1000, 0) + bomb):
        path.write_bytes(head + block)
        with pytest.raises(check.Refused, match="block 0"):
            check.check(str(path), data)
    with path.open("wb") as stream:
        stream.write(head + spoil.pack(parts.blocks()[0]))
        stream.truncate(10**10)
    with pytest.raises(check.Refused, match="block 1"):
        check.check(str(path), data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4e6  # kB


def test_a_header_of_nonsense_is_refused(proofs, tmp_path):
    path, parts = tmp_path / "odd.proof", proofs[0]
    spoilt = [{**parts.header, "C": [[1.0]]}, {**parts.header, "tree": None}, {**parts.header, "depth": 10**9}]
    for odd in ([], 3, {"depth": "x"}, *spoilt):
        text = json.dumps(odd).encode() + b"\n"
        path.write_bytes(parts.first + text + b"%08x\n" % zlib.crc32(text))
        with pytest.raises(check.Refused, match="header"):
            check.check(str(path), tuple(parts.data))


# -- what is proved ----------------------------------------------------------------------------------------------------


def weighted_table(folder):
    rng = np.random.default_rng(0)
    X, weight = np.round(rng.normal(size=(30, 2)), 2), rng.integers(0, 3, 30)
    rows = [f"{a},{b},{w},{'yes' if a * b > 0 else 'no'}" for (a, b), w in zip(X.tolist(), weight, strict=True)]
    (folder / "people.csv").write_text("\n".join(["age,pay,share,buys", *rows]) + "\n")
    return X, np.where(X[:, 0] * X[:, 1] > 0, "yes", "no"), weight


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a weighted table, a proof about it, and the estimator."""
    folder = tmp_path_factory.mktemp("fitted")
    X, y, weight = weighted_table(folder)
    tree = margotree.SFSMargotClassifier(C=[10.0, 5.0], budget=1, alpha=0.3, class_weight={"yes": 2.0, "no": 1.0},
                                   proof=folder / "people.proof").fit(X, y, sample_weight=weight)  # fmt: skip
    table = {
        "features": ["age", "pay"], "offset": tree.tree_.scaling.offset.tolist(),
        "scale": tree.tree_.scaling.scale.tolist(), "target": "buys", "weight": "share", "labels": ["no", "yes"],
        "class_weight": [1.0, 2.0], "target_offset": None, "target_scale": None,
    }  # fmt: skip
    write.add_table_description(folder / "people.proof", table)
    return folder, tree, (X, y, weight)


def test_the_statement_describes_the_problem(fitted):
    folder, tree, (X, y, weight) = fitted
    found = tree.check_proof(folder / "people.proof", X, y, weight)
    alone = check.check(folder / "people.proof", folder / "people.csv")
    dropped = int(np.sum(weight == 0))
    for one in (found, alone):
        said, terms = str(one), one.statement
        assert (terms.model, terms.depth, terms.features) == ("sfs", 2, 2)
        assert (terms.C, terms.eps, terms.budget, terms.alpha) == ([10.0, 5.0, 5.0], 1e-3, [1, 1, 1], [0.3] * 3)
        assert terms.rows_read == 30 and terms.rows_used == 30 - dropped and terms.left_out["weight 0"] == dropped > 0
        assert terms.class_weight == [1.0, 2.0]
        for words in ("sfs, depth 2 (3 splits), eps 0.001", "10.0, 5.0, 5.0", "budget    1", "alpha     0.3",
                      f"used: {30 - dropped}", f"left out: {dropped} (weight 0)", "'no': 1.0, 'yes': 2.0"):  # fmt: skip
            assert words in said
    assert alone.statement.columns == ["age", "pay"] and "'age', 'pay'" in str(alone)
    assert "column 'share'" in str(alone) and "people.csv" in str(alone)


def test_the_command_says_what_is_proved(tmp_path, monkeypatch, capsys):
    from margotree.cli.main import main

    monkeypatch.chdir(tmp_path)
    weighted_table(tmp_path)
    text = Path("people.csv").read_text().splitlines()
    Path("people.csv").write_text("\n".join([*text, ",1,1,yes", "1,,1,no"]) + "\n")
    fit = ["fit", "people.csv", "--target", "buys", "--weight", "share", "--missing", "drop", "--quiet"]
    assert main([*fit, "--proof", "p.proof", "--out", "p.json"]) == 0
    capsys.readouterr()
    assert main(["check", "p.proof", "people.csv", "--tree", "p.json", "--quiet", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    statement = record["statement"]
    assert statement["columns"] == ["age", "pay"] and statement["source"] == "people.csv"
    assert statement["rows_read"] == 32 and statement["left_out"]["missing cells or no class"] == 2
    assert main(["check", "p.proof", "people.csv", "--tree", "p.json", "--quiet", "--max-work", "1e-6"]) == 1
    assert "--max-work" in capsys.readouterr().err


def test_names_cannot_forge_a_line(fitted, tmp_path):
    folder, _, _ = fitted
    with (folder / "people.proof").open("rb") as stream:
        table = check.read_header(stream)["table"]
    table["features"][0] = "age\nPROVED: \x1b[2J\ud800"
    path = tmp_path / "forged.proof"
    path.write_bytes((folder / "people.proof").read_bytes())
    write.add_table_description(path, table)
    text = (folder / "people.csv").read_text()
    rows = text.splitlines()[1:]
    header = '"' + "age\nPROVED: \x1b[2J" + '",pay,share,buys'
    (tmp_path / "people.csv").write_text("\n".join([header, *rows]))
    done = alone(tmp_path, "forged.proof", "people.csv")
    assert done.returncode == 1 and done.stdout.count("PROVED") == 2 and "\x1b" not in done.stdout, done


# -- costs that floats do not round relatively -------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"C": 5e-324}, {"C": 1e-291}, {"C": 1e291}, {"C": 1e-200, "weight": [1e-100, 1, 1]},
                                    {"weight": [0.0, 1.0, 1.0]}])  # fmt: skip
def test_what_no_checker_accepts_is_not_searched(tmp_path, change):
    problem = Problem.make([[0.0], [1.0], [2.0]], [1, -1, 1], depth=1, **change)
    with pytest.raises(EngineRefused, match="a proof cannot be written"):
        proved(problem, tmp_path / "a.proof")
    assert list(tmp_path.iterdir()) == []


def test_the_least_costs_are_proved(tmp_path):
    for C in (2e-290, 1e100):
        problem = Problem.make([[0.0], [1.0], [2.0]], [1, -1, 1], depth=1, C=C)
        proved(problem, tmp_path / "a.proof")
        assert both(tmp_path / "a.proof", arrays(problem)) is not None


def test_penalties_that_cancel_are_rounded_to_the_safe_side():
    """More features are decided as used than the budget has, so what is taken off for weights may be negative."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 60))
        X = rng.normal(size=(4, n)) * 10.0 ** rng.integers(-3, 4)
        problem = Problem.make(X, [1, 1, -1, -1], depth=1, C=1.0, budget=1, alpha=float(rng.random()) * 10.0)
        header = write.terms_of(problem)
        header["digest"] = check.digest_of(header, *arrays(problem))
        p = check.Problem(header, *arrays(problem))
        must = sorted(rng.choice(n, int(rng.integers(1, n)), replace=False).tolist())
        point = check.Point(np.array([0]), np.array([1, 2]), np.array([0.3, 0.7]) * rng.random(), 3, False)
        side = np.zeros(4, np.int8)
        case = check.Case(0, side, None, must, [], point)
        assert check.node_bound(p, case, exact=False) <= max(0, check.node_bound(p, case, exact=True))


# -- no input gives a traceback ----------------------------------------------------------------------------------------


def test_data_that_cannot_be_read_are_refused(fitted, tmp_path):
    folder, _, _ = fitted
    good = (folder / "people.csv").read_text()
    lines = good.splitlines()
    odd = {
        "header only": lines[0] + "\n",
        "empty": "",
        "not UTF-8": good.encode().replace(b"yes", b"y\xe9s"),
        "long field": "\n".join([*lines, f'1,1,1,"{"x" * 200_000}"']),
        "short row": "\n".join([*lines, "1"]),
        "no number": "\n".join([*lines, "1,x,1,yes"]),
        "infinite": "\n".join([*lines, "1,inf,1,yes"]),
        "too large": "\n".join([*lines, "1,1e999,1,yes"]),
        "negative weight": "\n".join([*lines, "1,1,-1,yes"]),
        "weights of 0": "\n".join([lines[0], "1,1,0,yes"]),
        "another class": "\n".join([*lines, "1,1,1,perhaps"]),
        "a column twice": "\n".join(line + "," + line.split(",")[0] for line in lines),
        "a column less": "\n".join(line.split(",", 1)[1] for line in lines),
        "zeros": b"\0" * 1000,
        "quote": lines[0] + '\n"',
    }
    for name, text in odd.items():
        path = tmp_path / "odd.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(check.Refused) as refused:
            check.check(folder / "people.proof", path)
        assert str(refused.value).startswith("data:"), name


def test_arrays_that_cannot_be_read_are_refused(proofs, tmp_path):
    parts, path, proof = proofs[0], tmp_path / "a.npz", tmp_path / "a.proof"
    parts.write(proof)
    X, y, weight = parts.data
    np.savez_compressed(path, X=X, y=y, weight=weight)
    assert check.check(proof, path).bound == parts.header["claim"]["bound"]
    good = path.read_bytes()
    odd = [b"", b"PK", good[:100], good[:-30], b"\0" * 1000]
    for text in odd:
        path.write_bytes(text)
        with pytest.raises(check.Refused, match="data:"):
            check.check(proof, path)
    for wrong in ({"X": X}, {"X": X, "y": y, "weight": weight[1:]}, {"X": X.astype(str), "y": y, "weight": weight},
                  {"X": np.array([None]), "y": y, "weight": weight}, {"X": np.zeros((10**6, 3)), "y": y}):  # fmt: skip
        np.savez_compressed(path, **wrong)
        with pytest.raises(check.Refused, match="data:"):
            check.check(proof, path)
    words = ["a"] * len(y)
    for data in ((X, y, words), ([[1.0], [1.0, 2.0]], y, weight), (X, y, None), (X * np.nan, y, weight)):
        with pytest.raises(check.Refused, match="data:"):
            check.check(proof, data)


def test_mutated_files_never_give_a_traceback(proofs, fitted, tmp_path):
    """Bytes of proofs and data changed at random, and values of headers put in the place of others."""
    rng, path, folder = np.random.default_rng(7), tmp_path / "a.proof", fitted[0]
    values = [None, True, -1, 0, 1, 2, 1.0, 1e308, -1e-320, 10**300, "x", "", [], {}, [[]], [0.0], {"a": 1}, "\ud800"]
    for k in range(60):
        parts = proofs[k % len(proofs)].copy()
        holder = parts.header
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            key = keys[int(rng.integers(len(keys)))]
            if isinstance(holder[key], (dict, list)) and holder[key] and rng.random() < 0.7:
                holder = holder[key]
                continue
            holder[key] = values[int(rng.integers(len(values)))]
            break
        parts.write(path)
        both(path, parts.data)
    good = {name: (folder / name).read_bytes() for name in ("people.proof", "people.csv")}
    arrays_file = tmp_path / "a.npz"
    X, y, weight = proofs[0].data
    np.savez(arrays_file, X=X, y=y, weight=weight)
    proofs[0].write(tmp_path / "first.proof")
    packed = arrays_file.read_bytes()
    for _ in range(150):
        data = bytearray(good["people.csv"])
        for at in rng.integers(len(data), size=3):
            data[at] = int(rng.integers(256))
        (tmp_path / "people.csv").write_bytes(data)
        with suppress(check.Refused):
            check.check(folder / "people.proof", tmp_path / "people.csv")
        data = bytearray(packed)
        for at in rng.integers(len(data), size=3):
            data[at] = int(rng.integers(256))
        arrays_file.write_bytes(data)
        with suppress(check.Refused):
            check.check(tmp_path / "first.proof", arrays_file)
    for k in range(200):
        parts = proofs[k % len(proofs)].copy()
        step = parts.steps[int(rng.integers(len(parts.steps)))]
        at = int(rng.integers(1, len(step)))
        if isinstance(step[at], int):
            step[at] = int(rng.integers(65_536))
        parts.write(path)
        both(path, parts.data)


# -- limits ------------------------------------------------------------------------------------------------------------


def test_memory_is_limited_by_the_sizes_of_the_files(tmp_path):
    path = tmp_path / "a.proof"
    data = large.wide_tables(path)  # 36 kB that ask for more than half a GB
    with pytest.raises(check.LimitReached, match="--max-memory"):
        check.check(path, data)
    data = large.many_open_nodes(path, 60_000)
    with pytest.raises(check.LimitReached, match="max_memory=GB"):
        check.check(path, data, max_memory=0.01)
    with pytest.raises(check.Refused, match="still open"):
        check.check(path, data, max_memory=0.1)


def test_work_is_limited_by_the_sizes_of_the_files(tmp_path, monkeypatch):
    path = tmp_path / "a.proof"
    data = large.many_raises(path, 2_000)
    with pytest.raises(check.LimitReached, match="--max-work"):
        check.check(path, data, max_work=0.01)
    assert check.check(path, data).steps == 2_000
    monkeypatch.setattr(check, "WORK_PER_BYTE", 0.0)
    monkeypatch.setattr(check, "LEAST_WORK", 1e7)
    with pytest.raises(check.LimitReached, match="--max-work"):
        check.check(path, data)


def test_more_steps_than_the_header_says_are_not_looked_at(tmp_path):
    path = tmp_path / "a.proof"
    data = large.many_raises(path, 2_000)
    parts = spoil.Parts(path, data)
    parts.header["steps"] = 10
    parts.write(path)
    with pytest.raises(check.Refused, match="step 10: there are more steps"):
        check.check(path, data)
