import numpy as np
import pytest

from margotree.problem import MAX_DEPTH, Problem, Splits, per_node

X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
y = np.array([1.0, -1.0, 1.0])


def make(**changes):
    return Problem.make(**({"X": X, "y": y, "depth": 2} | changes))


def test_budgets_and_penalties_count_groups_of_features():
    splits = Splits(w=[[1.0, 0.0], [1.0, 2.0], [0.0, 0.0]], b=[5.0, 1.0, 1.0])
    plain, grouped = (make(budget=1, alpha=3.0, groups=groups) for groups in (None, [9, 9]))
    assert plain.evaluate(splits).objective == grouped.evaluate(splits).objective + 3.0
    hard, hard_grouped = (make(budget=1, groups=groups) for groups in (None, [9, 9]))
    assert hard.evaluate(splits).over_budget == 1 and hard_grouped.evaluate(splits).over_budget == 0
    assert grouped.n_groups == 1 and grouped.group_of.tolist() == [0, 0]
    assert make(groups=[3, -1]).groups is None  # every feature is a group


def test_a_number_is_spread_over_all_nodes():
    assert per_node("C", 3, 2, low=0).tolist() == [3, 3, 3]


def test_one_number_a_level():
    assert per_node("C", [1, 2], 2, low=0).tolist() == [1, 2, 2]
    assert per_node("C", [1, 2, 3], 3, low=0).tolist() == [1, 2, 2, 3, 3, 3, 3]


def test_one_number_a_node():
    assert per_node("C", [1, 2, 3], 2, low=0).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"C": 0}, "C must be finite and > 0"),
        ({"C": -1.0}, "C must be finite and > 0"),
        ({"C": np.nan}, "C must be finite and > 0"),
        ({"C": [1, 2, 3, 4]}, r"one number, 2 numbers \(one per level\) or 3 \(one per node\) for depth 2, got 4"),
        ({"C": "much"}, "C must be a number or a list of numbers"),
        ({"budget": 0}, "budget must be finite and >= 1"),
        ({"budget": 1.5}, "budget must be whole numbers"),
        ({"groups": [0]}, "groups must hold one whole number for each of the 2 features"),
        ({"groups": [0.5, 1.0]}, "groups must hold one whole number"),
        ({"budget": 1, "alpha": -1}, "alpha must be finite and >= 0"),
        ({"alpha": 1}, "no budget is given"),
        ({"depth": 0}, f"depth must be a whole number from 1 to {MAX_DEPTH}, got 0"),
        ({"depth": 12}, f"depth must be a whole number from 1 to {MAX_DEPTH}, got 12"),
        ({"depth": 2.0}, "depth must be a whole number"),
        ({"depth": True}, "depth must be a whole number"),
        ({"eps": 0}, "eps must be a positive finite number, got 0"),
        ({"eps": "thin"}, "eps must be a positive finite number, got 'thin'"),
        ({"max_weight": -2}, "max_weight must be a positive finite number"),
        ({"y": [1, 0, 1]}, r"-1 and \+1 only"),
        ({"y": [1, -1]}, "of one length"),
        ({"weight": [1, -1, 1]}, "weight must not be negative"),
        ({"X": X * np.nan}, "NaN or infinity"),
        ({"X": np.zeros((0, 2)), "y": []}, "at least one sample"),
    ],
)
def test_a_wrong_statement_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_the_problem_owns_its_data():
    mine = X.copy()
    problem = make(X=mine)
    mine[0, 0] = 99.0
    assert problem.X[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        problem.X[0, 0] = 1.0


def test_the_model_follows_from_budget_and_alpha():
    assert make().model == "margot"
    assert make(budget=1).model == "hfs"
    assert make(budget=1, alpha=0.5).model == "sfs"


def test_a_budget_beyond_the_number_of_features_means_all():
    problem = Problem.make([[0.0, 1.0], [1.0, 0.0]], [-1, 1], depth=2, budget=[5, 1])
    assert problem.budget.tolist() == [2, 1, 1]
