"""Data frames that are no table of numbers: words are read, of dates the column, its dtype and the remedy are named."""

import numpy as np
import pytest

from margotree import LocalSVMTreeClassifier, MargotClassifierCV

pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")

Y = [0, 1, 0, 1, 0, 1]
WORDS = {
    "category": pd.Series(list("ababab"), dtype="category"),
    "string": pd.Series(list("ababab"), dtype="string"),
    "object": pd.Series(["a", 1, 2, None, "x", 3], dtype=object),
}
ODD = {
    "datetime64": (pd.Series(pd.date_range("2020-01-01", periods=6)), "dates", r"\.dt\.days"),
    "datetime64.*UTC": (pd.Series(pd.date_range("2020-01-01", periods=6, tz="UTC")), "dates", r"\.dt\.days"),
    "timedelta64": (pd.Series(pd.to_timedelta(range(6), unit="D")), "durations", "total_seconds"),
    "period": (pd.Series(pd.period_range("2020-01", periods=6, freq="M")), "dates", "number of days"),
}
NUMBERS = {
    "bool": pd.Series([True, False] * 3),
    "category of numbers": pd.Series([1, 2, 1, 2, 3, 1], dtype="category"),
    "Int64": pd.Series([1, 2, 3, 4, 5, 6], dtype="Int64"),
    "float": pd.Series(np.arange(6.0)),
}
HOLES = {
    "Int64": pd.Series([1, 2, None, 4, 5, 6], dtype="Int64"),
    "boolean": pd.Series([True, None, False, True, True, False], dtype="boolean"),
    "object": pd.Series([1, None, 2, 2, 3, 3], dtype=object),
    "float": pd.Series([1, np.nan, 2, 2, 3, 3]),
}


@pytest.mark.parametrize("beside", [*NUMBERS, None])
@pytest.mark.parametrize("dtype", ODD)
def test_a_column_that_is_no_number_is_named_with_its_dtype_and_the_remedy(dtype, beside):
    column, holds, remedy = ODD[dtype]
    frame = pd.DataFrame({"ward": column} | ({} if beside is None else {"beside": NUMBERS[beside]}))
    words = rf"Columns that hold {holds}: 'ward' \(dtype {dtype}.*{remedy}"
    with pytest.raises(ValueError, match=words) as caught:
        LocalSVMTreeClassifier().fit(frame, Y)
    assert "'beside'" not in str(caught.value)
    numbers = frame.assign(ward=np.arange(6.0))
    fitted = LocalSVMTreeClassifier(depth=1).fit(numbers, Y)
    with pytest.raises(ValueError, match=words):
        fitted.predict(frame)


@pytest.mark.parametrize("dtype", WORDS)
def test_words_of_any_dtype_are_read(dtype):
    frame = pd.DataFrame({"ward": WORDS[dtype], "n": NUMBERS["Int64"]})
    model = LocalSVMTreeClassifier(depth=1, C=100).fit(frame, Y)
    assert {column.name for column in model.encoding_.columns} == {"ward", "n"}
    assert model.predict(frame).tolist() == model.tree_.predict(frame).tolist()
    numbers = frame.assign(ward=np.arange(6.0))
    with pytest.raises(ValueError, match=r"hold words: 'ward'.*categorical_features|could not convert"):
        LocalSVMTreeClassifier(depth=1).fit(numbers, Y).predict(frame)


def test_several_columns_are_told_at_once():
    frame = pd.DataFrame({"when": ODD["datetime64"][0], "ok": NUMBERS["bool"], "ward": WORDS["category"]})
    words = r"hold words: 'ward' .*hold dates: 'when' .*\(X\['when'\] - X\['when'\]\.min\(\)\)\.dt\.days"
    with pytest.raises(ValueError, match=words):
        LocalSVMTreeClassifier().fit(frame, Y)
    tree = LocalSVMTreeClassifier(depth=1).fit(frame.assign(when=1.0 * np.arange(6), ward=0.0), Y).tree_
    with pytest.raises(ValueError, match=r"hold words: 'ward' .*hold dates: 'when'"):
        tree.predict(frame)


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_in_any_dtype_are_numbers(kind):
    frame = pd.DataFrame({"a": NUMBERS[kind], "b": NUMBERS["bool"], "c": NUMBERS["float"]})
    plain = LocalSVMTreeClassifier(depth=1).fit(frame.astype(float), Y)
    assert LocalSVMTreeClassifier(depth=1).fit(frame, Y).predict(frame).tolist() == plain.predict(frame).tolist()


@pytest.mark.parametrize("kind", HOLES)
def test_columns_with_missing_values_are_named_where_training_had_none(kind):
    frame = pd.DataFrame({"whole": NUMBERS["float"], "holey": HOLES[kind], "ok": NUMBERS["bool"]})
    assert "holey missing" in LocalSVMTreeClassifier().fit(frame, Y).tree_.features
    model = LocalSVMTreeClassifier().fit(frame.assign(holey=NUMBERS["float"]), Y)
    with pytest.raises(ValueError, match=r"contains NaN(.|\n)*missing values: 'holey' \(1 row\)\.\nNo cell was"):
        model.predict(frame)


def test_dates_in_an_array_are_no_numbers_either():
    days = np.arange("2020-01-01", "2020-01-07", dtype="datetime64[D]")[:, None]
    with pytest.raises(ValueError, match=r"hold dates: 0 \(dtype datetime64"):
        LocalSVMTreeClassifier().fit(days, Y)


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, None, 1, 0, None],
        ["a", "b", None, "a", "b", None],
        [0, 1, np.nan, 1, 0, np.nan],
        np.array(["a", "b", np.nan, "a", "b", None], dtype=object),
        pd.Series([0, 1, None, 1, 0, None], dtype="Int64"),
        pd.Series(["a", "b", None, "a", "b", None]),
        pd.Series(["a", "b", None, "a", "b", None], dtype="category"),
        [0, 1, pd.NA, 1, 0, pd.NA],
    ],
)
@pytest.mark.parametrize("estimator", [LocalSVMTreeClassifier(), MargotClassifierCV()], ids=["fit", "cv"])
def test_missing_labels_are_told_with_their_rows(estimator, y):
    with pytest.raises(ValueError, match=r"Input y contains NaN: y has missing values at rows 2, 5 \(the first"):
        estimator.fit(np.arange(6.0)[:, None], y)
