import math
import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from margotree.problem import Problem, Splits, evaluate
from margotree.solution import (
    Certificate,
    Proved,
    Solution,
    Stopped,
    VerificationError,
    gap_statement,
    relative_gap,
    verify,
)


def certificate(**changes):
    facts = {
        "objective": 10.0,
        "bound": 9.0,
        "stopped": Stopped.TIME,
        "gap_target": 1e-4,
        "engine": "test",
        "engine_version": "1",
    }
    return Certificate(**(facts | changes))


def test_the_gap_is_a_share_of_the_objective():
    assert relative_gap(10.0, 9.0) == pytest.approx(0.1)
    assert relative_gap(10.0, 10.0) == 0.0
    assert relative_gap(10.0, -math.inf) == math.inf
    assert relative_gap(math.inf, 3.0) == math.inf
    assert relative_gap(0.0, 0.0) == 0.0


def test_only_a_solved_search_with_a_closed_gap_proves_optimality():
    assert certificate(bound=10.0, stopped=Stopped.SOLVED).proved is Proved.OPTIMAL
    assert certificate(bound=9.0, stopped=Stopped.SOLVED).proved is Proved.WITHIN_GAP
    assert certificate(bound=-math.inf, stopped=Stopped.SOLVED).proved is Proved.FEASIBLE


NOT_ACCURACY = "(this says nothing about accuracy)"


def test_the_statement_says_what_is_proved_with_its_number():
    solved = {"stopped": Stopped.SOLVED}
    smaller = "no tree has a training objective more than {} smaller " + NOT_ACCURACY
    assert certificate(bound=9.9995, **solved).statement == "optimal, " + smaller.format("0.005 %")
    none = f"optimal, no tree has a smaller training objective {NOT_ACCURACY}"
    assert certificate(bound=10.0, gap_target=0.0, **solved).statement == none
    assert certificate(bound=7.3).statement == smaller.format("27 %")
    assert certificate(bound=-math.inf).statement == "nothing is proved about better trees"
    assert certificate(bound=9.0, restriction="big M").statement == smaller.format("10 %") + ", under a restriction"


@pytest.mark.parametrize("bound", [5.0, 0.04, 0.0, -30.0])
def test_from_a_gap_of_a_half_on_nothing_useful_is_proved(bound):
    said = certificate(bound=bound).statement
    assert said.startswith("nothing useful is proved yet about better trees (the gap of the training objective is ")
    assert said.endswith("%; this says nothing about accuracy); a longer time limit may prove more")
    assert "no tree" not in said and "no tree has" in certificate(bound=5.0001).statement
    # Where more of nothing in particular would help, none is named.
    assert certificate(bound=bound, stopped=Stopped.PRECISION).statement.endswith("about accuracy)")
    assert "larger node limit may prove more" in certificate(bound=bound, stopped=Stopped.NODES).statement


def test_a_wide_target_that_is_met_is_not_called_optimal():
    wide = certificate(bound=7.6, gap_target=0.3, stopped=Stopped.SOLVED)
    assert wide.proved is Proved.WITHIN_GAP
    smaller = f"no tree has a training objective more than 24 % smaller {NOT_ACCURACY}"
    assert wide.statement == f"{smaller}; the target gap was 30 %"
    assert "optimal" not in str(wide) and wide.statement in str(wide)


@given(gap=st.floats(1e-12, 0.4999))
def test_a_gap_in_words_is_never_smaller_than_the_gap(gap):
    said = float(gap_statement(gap).removeprefix("no tree has a training objective more than ").split(" %")[0])
    assert said >= 100 * gap * (1 - 1e-7) and said <= max(1.02 * 100 * gap, 1e-4)


@pytest.mark.parametrize(
    ("facts", "earlier"),
    [
        ({"bound": 7.6, "gap_target": 0.3, "stopped": Stopped.SOLVED}, "optimal"),
        ({"bound": 7.6}, "feasible, within the gap"),
        ({"bound": -math.inf}, "feasible, no bound"),
    ],
)
def test_certificates_of_earlier_files_load(facts, earlier):
    one = certificate(**facts)
    assert Certificate.from_dict(one.to_dict() | {"proved": earlier}).to_dict() == one.to_dict()


@pytest.mark.parametrize("stopped", [s for s in Stopped if s is not Stopped.SOLVED])
def test_a_search_cut_short_never_claims_optimality(stopped):
    assert certificate(bound=9.99999, stopped=stopped).proved is not Proved.OPTIMAL


def test_a_bound_above_the_objective_is_a_contradiction():
    with pytest.raises(ValueError, match="contradicts"):
        certificate(bound=10.1)
    with pytest.raises(ValueError, match="contradicts"):
        certificate(bound=math.nan)
    assert certificate(bound=10.0 + 1e-8).bound == 10.0


def test_there_is_no_certificate_without_a_tree():
    with pytest.raises(ValueError, match="finite objective"):
        certificate(objective=math.inf)


floats = st.floats(allow_nan=False, allow_infinity=False, width=64)


@example(objective=0.0, below=1.0, stopped=Stopped.SOLVED, f0=math.nan, nodes=0, warnings=[])
@given(
    objective=floats,
    below=st.floats(0, 1e300) | st.just(math.inf),
    stopped=st.sampled_from(Stopped),
    f0=floats | st.just(math.nan),
    nodes=st.integers(0, 10**12),
    warnings=st.lists(st.text()),
)
def test_json_and_pickle_keep_every_bit(objective, below, stopped, f0, nodes, warnings):
    bound = objective - below
    one = certificate(objective=objective, bound=bound, stopped=stopped, f0=f0, nodes=nodes, warnings=tuple(warnings))
    for other in (Certificate.from_json(one.to_json()), pickle.loads(pickle.dumps(one))):
        assert other.to_dict() == one.to_dict()
        assert other.stopped is one.stopped and other.proved is one.proved
        assert np.float64(other.bound).tobytes() == np.float64(one.bound).tobytes()


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ({"proved": "optimal"}, "claims proved 'optimal'"),
        ({"gap": 0.0}, "claims gap 0.0"),
        ({"bound": 11.0}, "contradicts"),
        ({"extra": 1}, "unknown entries"),
        ({"stopped": "bored"}, "bored"),
    ],
)
def test_a_doctored_record_is_caught(lie, message):
    with pytest.raises(ValueError, match=message):
        Certificate.from_dict(certificate().to_dict() | lie)


def test_a_record_with_entries_missing_is_caught():
    with pytest.raises(ValueError, match="not a certificate"):
        Certificate.from_dict({"objective": 1.0})


def test_it_reads_as_a_proof_sheet():
    sheet = str(certificate(nodes=7, start_objective=12.0, restriction="big M", warnings=("slow",)))
    for words in ("objective 10, bound 9, gap 10 %", "time limit", "7 search nodes", "12", "big M", "warning: slow"):
        assert words in sheet
    assert "gap unknown" in str(certificate(bound=-math.inf))


# -- verify -------------------------------------------------------------------------------------------------------

PROBLEM = Problem.make([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [1, -1, 1], depth=2, budget=1, max_weight=5)
SPLITS = Splits(w=[[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], b=[-1.0, -1.0, 1.0])


def solution(splits=SPLITS, **changes):
    facts = {"objective": evaluate(PROBLEM, SPLITS).objective, "bound": 0.0}
    return Solution(splits=splits, certificate=certificate(**(facts | changes)))


def test_an_honest_answer_verifies():
    assert verify(PROBLEM, solution()).objective == evaluate(PROBLEM, SPLITS).objective


@pytest.mark.parametrize(
    ("corrupted", "message"),
    [
        (solution(objective=1.0), "claims the value 1.0"),
        (solution(objective=1e9, bound=1e8), "claims the value"),
        (solution(Splits(w=SPLITS.w, b=[-1.0 - 1e-6, -1.0, 1.0])), "claims the value"),
        (solution(Splits(w=SPLITS.w, b=[-2.0005, -1.0, 1.0])), "inside the routing band"),
        (solution(Splits(w=SPLITS.w + np.array([1.0, 0.0]), b=SPLITS.b)), "1 features more than its budget"),
        (solution(Splits(w=SPLITS.w * 3, b=SPLITS.b)), "exceeds max_weight by 1"),
        (solution(Splits(w=-SPLITS.w, b=SPLITS.b)), "claims the value"),
    ],
)
def test_a_corrupted_answer_is_caught(corrupted, message):
    with pytest.raises(VerificationError, match=message):
        verify(PROBLEM, corrupted)


def test_rounding_is_no_corruption():
    verify(PROBLEM, solution(Splits(w=SPLITS.w, b=[-1.0 - 1e-9, -1.0, 1.0])))


def test_a_bound_above_the_trees_own_value_is_caught_even_under_a_restriction():
    with pytest.raises(VerificationError, match="above the tree's own value"):
        verify(PROBLEM, solution(bound=1e3, restriction="big-M constants"))
