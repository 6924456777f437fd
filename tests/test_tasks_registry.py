"""Tasks of other packages: their names, their checks, and what is said about mistakes."""

import numpy as np
import pytest

from margotree import MargotRegressor
from margotree.problem import Items, Multiclass, Problem, Regression, register_task
from margotree.problem.tasks import registry, task_from_record, task_record


class Tube(Regression):
    """No loss between ``y - under`` and ``y + over``."""

    name = "tube of the tests"

    def __init__(self, under, over, p=1.0):
        self.under, self.over, self.p = under, over, p

    def items(self, y, *, last, side=None, choice=None):
        if not last:
            return Regression().items(y, last=last, side=side)
        return Items(p=np.full(len(y), self.p), m=np.ones(len(y)), r=y - self.under, l=y + self.over)

    def proof_losses(self):
        return {"kind": "intervals", "below": self.p, "above": 1.0, "under": self.under, "over": self.over}


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))


def table():
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    return X, np.where(X[:, 0] > 0.5, 3 * X[:, 1], 1 - X[:, 1])


def test_a_task_is_printed_with_its_parameters():
    assert repr(Tube(0.1, 0.2)) == "Tube(under=0.1, over=0.2, p=1.0)"
    assert repr(Regression(0.5)) == "Regression(epsilon=0.5)" and repr(Multiclass(3)) == "Multiclass(n_classes=3)"
    assert "Tube" in repr(MargotRegressor(loss=Tube(0.1, 0.2)))


def test_a_task_of_an_installed_package_is_found(monkeypatch):
    class Entry:
        name = Tube.name

        def load(self):
            return Tube

    registry._load_entry_points.cache_clear()
    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry()] if group == "margotree.tasks" else [])
    assert task_from_record(task_record(Tube(0.1, 0.2))) == Tube(0.1, 0.2)
    registry._load_entry_points.cache_clear()


def test_a_regressor_with_a_task_is_saved_proved_and_verified(tmp_path):
    register_task(Tube.name, Tube)
    X, y = table()
    model = MargotRegressor(depth=2, loss=Tube(0.1, 0.2), node_limit=5, proof=tmp_path / "a.proof").fit(X, y)
    assert model.check_proof(tmp_path / "a.proof", X, y).bound == model.certificate_.bound
    model.tree_.save(tmp_path / "tree.json")
    again = type(model.tree_).load(tmp_path / "tree.json")
    assert again.verify(X, y).objective == pytest.approx(model.certificate_.objective)


def test_mistakes_are_reported_when_a_problem_or_a_tree_is_made():
    X, y = table()
    with pytest.raises(ValueError, match="must not be negative"):
        Problem.make(X, y, task=Tube(0.1, 0.2, p=-1.0), depth=2)
    with pytest.raises(ValueError, match="must not overlap"):
        Problem.make(X, y, task=Tube(-0.5, 0.2), depth=2)
    with pytest.raises(ValueError, match="must be finite"):
        Problem.make(X, y, task=Tube(0.1, np.inf), depth=2)
    with pytest.raises(ValueError, match="not registered"):
        task_from_record({"name": "unheard of", "parameters": {}})
    with pytest.raises(ValueError, match="name and a class"):
        register_task("", Tube)

    class NoName(Tube):
        name = "regression"

    with pytest.raises(ValueError, match="a name of its own"):
        MargotRegressor(depth=1, loss=NoName(0.1, 0.2), node_limit=1).fit(X, y)
    with pytest.raises(ValueError, match="finite number, a string or None"):
        task_record(Tube(np.zeros(2), 0.2))
