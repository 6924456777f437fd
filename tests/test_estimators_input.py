"""Bad input gets a message that says what is wrong and what to do; odd input that makes sense just works."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from margotree import HFSMargotClassifier, LocalSVMTreeClassifier, MargotClassifier, SFSMargotClassifier
from margotree.engines import EngineError

pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")

X = np.array([[0.0, 0.1], [0.1, 0.9], [0.9, 0.2], [1.0, 1.0], [0.5, 0.4], [0.3, 0.6]])
y = np.array([0, 1, 1, 0, 1, 0])


def with_cell(value):
    changed = X.astype(object)
    changed[0, 0] = value
    return changed


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (with_cell(np.inf), y, "Input X contains infinity"),
        (with_cell("tall"), y, "could not convert string to float: 'tall'"),
        (pd.DataFrame({"a": [None] * 6, "b": ["u"] * 6}), y, "no column of X has a number or two different words"),
        (pd.DataFrame({"a": X[:, 0], "b": [{}] * 6}), y, "hold other objects: 'b'"),
        (X, np.full(6, 1), "two classes, but the samples given .* are of one class only: 1"),
        (X, np.linspace(0, 1, 6), "Unknown label type: continuous"),
        (X, np.array(["a", 1, "a", 1, "a", 1], dtype=object), "Unknown label type"),
        (X, np.column_stack([y, y]), "y should be a 1d array|multilabel"),
        (X, y[:-1], r"inconsistent numbers of samples: \[6, 5\]"),
        (X[:0], y[:0], r"Found array with 0 sample\(s\)"),
        (X[:, :0], y, r"Found array with 0 feature\(s\)"),
        (X[:, 0], y, "Expected 2D array, got 1D array instead"),
        (X, None, "requires y to be passed"),
        (X, [0, 1, np.nan, 0, 1, 0], "Input y contains NaN"),
        (csr_matrix(X), y, "Sparse data was passed"),
        (X[:1], y[:1], "one class only"),
        (np.array([[-1e308, 0.0], [1e308, 1.0]]), [0, 1], "divide that column by a constant"),
    ],
)
@pytest.mark.parametrize("estimator", [MargotClassifier(), LocalSVMTreeClassifier()], ids=["margot", "local"])
def test_bad_samples(estimator, X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(X, y)


def test_columns_of_words_are_named_and_the_way_out_is_shown():
    fitted = LocalSVMTreeClassifier().fit(pd.DataFrame({"age": X[:, 0]}), y)
    with pytest.raises(ValueError, match=r"Columns that hold words: 0 \(dtype object, such as 'tall'\).*categorical"):
        LocalSVMTreeClassifier().fit(with_cell("tall"), y)
    with pytest.raises(ValueError, match=r"Columns that hold words: 'age' \(dtype \w+, such as 'old'\)"):
        fitted.predict(pd.DataFrame({"age": ["old", "3"]}))
    with pytest.raises(ValueError, match=r"contains NaN(.|\n)*No cell was missing in training"):
        fitted.predict(pd.DataFrame({"age": [np.nan, 3.0]}))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1], r"inconsistent numbers of samples: \[6, 3\]"),
        ([1, 1, 1, 1, 1, -1], "Negative values in data passed to `sample_weight`"),
        ([0] * 6, "at least one non-zero number"),
        ([1, 1, 1, 1, 1, np.nan], "sample_weight contains NaN"),
        (np.ones((6, 1)), "1D array or scalar"),
        ([1, 0, 0, 1, 0, 1], "one class only: 0"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        LocalSVMTreeClassifier().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (MargotClassifier(C=0), "C must be finite and > 0, got 0"),
        (MargotClassifier(C=-1), "C must be finite and > 0, got -1"),
        (MargotClassifier(C=[1, 2, 3, 4]), "C must be one number, 2 numbers .* or 3 .* for depth 2, got 4"),
        (MargotClassifier(C="big"), "C must be a number or a list of numbers, got 'big'"),
        (HFSMargotClassifier(budget=0), "budget must be finite and >= 1, got 0"),
        (HFSMargotClassifier(budget=1.5), "budget must be whole numbers of features, got 1.5"),
        (SFSMargotClassifier(alpha=-1), "alpha must be finite and >= 0, got -1"),
        (LocalSVMTreeClassifier(alpha=1), "no budget is given"),
        (MargotClassifier(depth=0), "depth must be a whole number from 1 to 10, got 0"),
        (MargotClassifier(depth=12), "depth must be a whole number from 1 to 10, got 12"),
        (MargotClassifier(depth="two"), "depth must be a whole number from 1 to 10, got 'two'"),
        (MargotClassifier(band=0), "band must be a positive finite number, got 0"),
        (MargotClassifier(max_weight=0), "max_weight must be a positive finite number, got 0"),
        (MargotClassifier(engine="cplexx"), "unknown engine 'cplexx'; there are: auto, .*scip"),
        (MargotClassifier(engine=None), "'engine' parameter of MargotClassifier must be the name of an engine"),
        (MargotClassifier(time_limit=0), "'time_limit' parameter of MargotClassifier must be a positive number"),
        (MargotClassifier(gap=-0.1), r"'gap' parameter of MargotClassifier must be a number in the range \[0, 1\]"),
        (MargotClassifier(gap="small"), "'gap' parameter"),
        (MargotClassifier(scale="standard"), "'scale' parameter of MargotClassifier must be 'minmax' or None"),
        (MargotClassifier(n_jobs=0), "'n_jobs' parameter"),
        (MargotClassifier(random_state=-1), "'random_state' parameter"),
        (MargotClassifier(verbose="loud"), "'verbose' parameter"),
        (MargotClassifier(class_weight="equal"), "'class_weight' parameter"),
        (MargotClassifier(class_weight={0: 1.0, 1: -1.0}), "positive finite weight"),
        (MargotClassifier(class_weight={"x": 1.0}), "not in class_weight"),
    ],
)
def test_bad_parameters_are_found_at_fit(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


def test_an_engine_that_is_not_installed_says_what_to_install(monkeypatch):
    monkeypatch.setattr("margotree.engines.mip.adapter.find_spec", lambda name: None)
    with pytest.raises(EngineError, match=r"engine 'gurobi' is not installed: .*pip install"):
        MargotClassifier(engine="gurobi").fit(X, y)


def test_an_engine_that_cannot_take_the_problem_names_those_that_can():
    with pytest.raises(EngineError, match=r"highs .*engines that do: .*scip"):
        MargotClassifier(engine="highs").fit(X, y)


@pytest.mark.parametrize(
    "estimator", [MargotClassifier(), HFSMargotClassifier(), SFSMargotClassifier(), LocalSVMTreeClassifier()]
)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (X[:, :1], y),
        (np.column_stack([X[:, 0], np.full(6, 3.0)]), y),
        (np.full((6, 2), 3.0), y),
        (np.vstack([X, X]), np.append(y, 1 - y)),
        (X[:2], y[:2]),
        (X.astype(np.float32), y),
        (np.asfortranarray(X), y),
        (X * 1e-300, y),
        (X * 1e300, y),
        ((X * 10).astype(int), y.astype(bool)),
    ],
    ids=[
        "one feature",
        "a constant column",
        "all points equal",
        "equal points with opposite labels",
        "two samples",
        "float32",
        "Fortran order",
        "tiny values",
        "huge values",
        "integers and booleans",
    ],
)
def test_odd_but_sensible_data_work(estimator, X, y):
    fitted = estimator.fit(X, y)
    fitted.verify(X, y)
    assert set(fitted.predict(X)) <= set(y)
    assert np.all(np.isfinite(fitted.decision_function(X)))
    assert np.allclose(fitted.predict_proba(X).sum(axis=1), 1)
    assert fitted.export_text()
