"""Frames with words and missing cells in estimators and trees: one encoding, budgets of columns, files and exports."""

import io
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import margotree
from margotree import (
    HFSMargotClassifierCV,
    LocalSVMTreeClassifier,
    MargotClassifier,
    MargotRegressor,
    missing_pipeline,
)
from margotree.cli import main
from margotree.estimators.proof_checks import check_proof
from margotree.proof.check import Refused
from margotree.table.encoding import Category, Date, Number, Ordered
from margotree.table.encoding_json import from_record

pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")

QUICK = {"node_limit": 20, "engine": "alternating", "C": 10}


def patients(n=80, seed=0):
    """A frame with columns of every kind, missing cells in most of them, and a target."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({
        "age": rng.integers(20, 90, n).astype(float),
        "ward": rng.choice(["Medicine", "Surgery", "Intensive care", "Outpatient"], n),
        "smoker": pd.Categorical(rng.choice(["yes", "no"], n)),
        "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), categories=["low", "mid", "high"], ordered=True),
        "alone": rng.random(n) < 0.5,
        "visits": pd.array(rng.integers(0, 9, n), dtype="Int64"),
    })  # fmt: skip
    ill = X.ward.isin(["Medicine", "Surgery"]) & (X.smoker == "no")
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    X.loc[rng.random(n) < 0.1, "ward"] = None
    X.loc[rng.random(n) < 0.1, "grade"] = None
    X.loc[rng.random(n) < 0.1, "visits"] = pd.NA
    return X, pd.Series(np.where(ill, "ill", "well"), name="state")


def odd_rows():
    """Rows with what training did not have: unseen words, missing cells in whole columns, other types."""
    X, _ = patients(6, seed=3)
    X["ward"] = ["Garden", None, "surgery", " Medicine ", "Outpatient", "?"]
    X["smoker"] = [None, "perhaps", "yes", "no", "no", "yes"]
    X["alone"] = [True, None, False, True, True, False]
    X["grade"] = ["low", "unheard of", "mid", None, "high", "low"]
    return X


@pytest.fixture(scope="module")
def fitted():
    X, y = patients()
    return MargotClassifier(budget=2, **QUICK).fit(X, y), X, y


def test_columns_become_features_by_their_kind(fitted):
    model, X, _ = fitted
    kinds = {column.name: type(column) for column in model.encoding_.columns}
    assert kinds == {"age": Number, "ward": Category, "smoker": Category, "grade": Ordered, "alone": Number,
                     "visits": Number}  # fmt: skip
    assert model.feature_names_in_.tolist() == list(X.columns) and model.n_features_in_ == 6
    assert model.tree_.features == model.encoding_.features
    names = set(model.tree_.features)
    assert {"age missing", "ward missing", "ward=Surgery", "smoker=yes", "grade", "alone"} <= names
    assert "smoker=no" not in names and "alone missing" not in names
    by_name = {column.name: column for column in model.encoding_.columns}
    assert by_name["age"].fill == X.age.median() and by_name["grade"].values == ("low", "mid", "high")


def test_a_budget_counts_columns(fitted):
    model, X, y = fitted
    groups = np.array(model.encoding_.groups)
    used = [set(groups[w != 0]) for w in model.tree_.splits.w]
    assert all(len(columns) <= 2 for columns in used) and max(map(len, used)) == 2
    assert np.max(np.count_nonzero(model.tree_.splits.w, axis=1)) > 2
    assert model.score(X, y) > 0.9
    assert set(model.selected_features_) <= set(range(6)) and 1 in model.selected_features_
    assert model.feature_importances_.shape == (6,) and np.argmax(model.feature_importances_) in (1, 2)
    assert model.verify(X, y).feasible
    assert model.tree_.terms["groups"] == list(model.encoding_.groups)


def test_a_frame_without_missing_cells_and_with_two_words_per_column_trains_the_tree_of_its_numbers():
    """Such columns have one feature each, so that budgets of columns and of features are the same."""
    X, y = patients()
    X = X[["smoker", "alone"]].assign(age=X.age.fillna(0.0), visits=X.visits.fillna(0).astype(int))
    numbers = X.assign(smoker=(X.smoker == "yes") * 1.0).to_numpy(np.float64)
    ours, plain = (MargotClassifier(budget=2, **QUICK).fit(rows, y) for rows in (X, numbers))
    assert ours.encoding_ is not None and plain.encoding_ is None
    assert ours.tree_.splits.w.tolist() == plain.tree_.splits.w.tolist()
    assert ours.certificate_.objective == plain.certificate_.objective


def test_trees_and_their_files_read_rows_as_they_come(fitted, tmp_path):
    model, X, y = fitted
    model.save(tmp_path / "tree.json")
    tree = margotree.load(tmp_path / "tree.json")
    assert from_record(tree.terms["table"]).columns == model.encoding_.columns
    for rows in (X, odd_rows(), X.iloc[:, ::-1]):
        expected = model.predict(rows[list(X.columns)]).tolist()
        assert tree.predict(rows).tolist() == expected
        assert tree.predict_proba(rows).tolist() == model.predict_proba(rows[list(X.columns)]).tolist()
    assert tree.verify(X, y).feasible
    assert clone(model).fit(X, y).predict(X).tolist() == model.predict(X).tolist()


def test_the_command_line_reads_files_with_a_tree_of_a_frame(fitted, tmp_path, capsys):
    model, X, y = fitted
    model.save(tmp_path / "tree.json")
    X.assign(state=y).to_csv(tmp_path / "rows.csv", index=False)
    assert main(["predict", str(tmp_path / "tree.json"), str(tmp_path / "rows.csv"), "--quiet"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert rows["prediction"].tolist() == model.predict(X).tolist()
    assert main(["verify", str(tmp_path / "tree.json"), str(tmp_path / "rows.csv")]) == 0


def test_unseen_words_are_none_of_the_known_ones(fitted):
    model, X, _ = fitted
    row = X.iloc[[0]].copy()
    row["ward"] = "Garden"
    values = dict(zip(model.tree_.features, model.tree_.given(row)[0], strict=True))
    assert [value for name, value in values.items() if name.startswith("ward")] == [0.0] * 5


def test_rare_words_share_the_place_of_unseen_ones():
    rng = np.random.default_rng(0)
    words = [f"w{k:02d}" for k in rng.permutation(np.r_[np.repeat(np.arange(34), 3), np.repeat([0, 1, 2], 4)])]
    X = pd.DataFrame({"code": words, "x": rng.random(len(words))})
    model = LocalSVMTreeClassifier(depth=1).fit(X, rng.integers(0, 2, len(words)))
    assert len(model.encoding_.columns[0].values) == 32 and model.tree_.n_features == 33


def test_words_of_very_few_rows_have_no_feature_unless_they_are_needed():
    """In 300 rows a word needs 3 rows for a feature; in a column of three words, or without others, it needs none."""
    rng = np.random.default_rng(0)
    towns = rng.permutation(
        np.r_[["Basel"] * 120, ["Bern"] * 90, ["Chur"] * 82, ["Davos"] * 3, ["Egg"] * 2, ["Furna"] * 3]
    )
    answers = rng.permutation(np.r_[["yes"] * 200, ["no"] * 99, ["maybe"]])
    X, y = pd.DataFrame({"town": towns, "answer": answers}), rng.integers(0, 2, 300)
    model = LocalSVMTreeClassifier(depth=1).fit(X, y)
    assert model.encoding_.columns[0].values == ("Basel", "Bern", "Chur", "Davos", "Furna")
    assert model.encoding_.columns[1].values == ("maybe", "no", "yes")
    rare, unseen = X.iloc[[0, 0]].assign(town=["Egg", "Genf"]).pipe(model.predict)
    assert rare == unseen
    named = LocalSVMTreeClassifier(depth=1, handle_unknown="error").fit(X, y)
    assert "Egg" in named.encoding_.columns[0].values
    small = LocalSVMTreeClassifier(depth=1).fit(X[:100], y[:100])
    assert set(small.encoding_.columns[0].values) == set(towns[:100])


def test_words_of_an_array_are_named():
    X = np.array([[1, 7], [2, 3], [1, 3], [3, 7], [2, 7], [3, 3]], dtype=float)
    y = [0, 1, 0, 0, 1, 0]
    for named in ([0], [True, False]):
        model = LocalSVMTreeClassifier(depth=1, C=100, categorical_features=named).fit(X, y)
        assert model.tree_.features == ("x0=1", "x0=2", "x0=3", "x1")
        assert model.predict(X).tolist() == y
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert LocalSVMTreeClassifier(categorical_features=["a"]).fit(frame, y).tree_.features[0] == "a=1"
    text = X.astype(object)
    text[:, 1] = np.where(X[:, 1] == 7, "seven", "three")
    model = LocalSVMTreeClassifier(depth=1, categorical_features=[1]).fit(text, y)
    assert model.tree_.features == ("x0", "x1=three") and model.predict(text).shape == (6,)
    with pytest.raises(ValueError, match="'c' is neither the name nor the position of a column"):
        LocalSVMTreeClassifier(categorical_features=["c"]).fit(frame, y)


def test_arrays_with_missing_cells():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    y = (X[:, 0] > 0.5).astype(int)
    X[rng.random(60) < 0.2, 1] = np.nan
    model = MargotClassifier(**QUICK).fit(X, y)
    assert model.tree_.features == ("x0", "x1", "x1 missing", "x2")
    holes = np.full((1, 3), np.nan)
    assert model.predict(holes).tolist() == model.tree_.predict(holes).tolist()
    assert model.score(X, y) > 0.9
    plain = MargotClassifier(**QUICK).fit(np.nan_to_num(X), y)
    assert plain.encoding_ is None and "table" not in plain.tree_.terms
    with pytest.raises(ValueError, match="No cell was missing in training"):
        plain.predict(holes)


def test_unseen_words_are_an_error_if_asked(tmp_path, capsys):
    X, y = patients()
    model = LocalSVMTreeClassifier(C=10, handle_unknown="error").fit(X, y)
    model.save(tmp_path / "tree.json")
    tree, row = margotree.load(tmp_path / "tree.json"), X.iloc[[0]].copy()
    assert tree.predict(X).tolist() == model.predict(X).tolist()
    for name, word in (("ward", "Garden"), ("grade", "unheard of")):
        odd = row.astype({name: object}).assign(**{name: word})
        for predict in (model.predict, tree.predict):
            with pytest.raises(ValueError, match=f"'{word}' in column '{name}' is not a word of the training data"):
                predict(odd)
        odd.to_csv(tmp_path / "odd.csv", index=False)
        assert main(["predict", str(tmp_path / "tree.json"), str(tmp_path / "odd.csv"), "--quiet"]) == 3
        assert f"'{word}' in column '{name}' is not a word" in capsys.readouterr().err
        module = {}
        exec(tree.to_python(), module)
        with pytest.raises(ValueError, match=word):
            module["predict"](json.loads(odd.to_json(orient="records"))[0])
    with pytest.raises(ValueError, match="handle_unknown must be 'ignore' or 'error', got 'other'"):
        LocalSVMTreeClassifier(handle_unknown="other").fit(X, y)
    many = X.assign(ward=[f"w{k}" for k in range(len(X))])
    with pytest.raises(ValueError, match="80 different words, of which 32 have features"):
        LocalSVMTreeClassifier(handle_unknown="error").fit(many, y)


def test_dates_become_days_if_asked(tmp_path, capsys):
    X, y = patients(60)
    first = np.datetime64("2024-01-01")
    X["admitted"] = pd.to_datetime(first + np.arange(60)[::-1])
    X["text"] = [f"{day:%d.%m.%Y}" for day in pd.to_datetime(first + np.arange(60))]
    X.loc[3, "admitted"] = pd.NaT
    y = np.where(X.admitted.fillna(pd.Timestamp(first)) < pd.Timestamp("2024-01-20"), "early", "late")
    with pytest.raises(ValueError, match=r"hold dates: 'admitted'.*fit with dates='days-since'"):
        LocalSVMTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match="dates must be 'error' or 'days-since', got 'days'"):
        LocalSVMTreeClassifier(dates="days").fit(X, y)
    model = LocalSVMTreeClassifier(depth=1, C=100, dates="days-since").fit(X, y)
    dates = [column for column in model.encoding_.columns if isinstance(column, Date)]
    assert [(d.name, d.form, d.since, d.flag) for d in dates] == [
        ("admitted", "YYYY-MM-DD", "2024-01-01", True), ("text", "DD.MM.YYYY", "2024-01-01", False),
    ]  # fmt: skip
    assert model.score(X, y) == 1.0 and "admitted (days since 2024-01-01)" in model.export_text()
    model.save(tmp_path / "tree.json")
    assert margotree.load(tmp_path / "tree.json").predict(X).tolist() == model.predict(X).tolist()
    as_text = X.assign(admitted=X.admitted.dt.strftime("%Y-%m-%d"))
    assert model.predict(as_text).tolist() == model.predict(X).tolist()
    with pytest.raises(ValueError, match=r"'2024-01-01' in column 'text' is not a date of the form DD\.MM\.YYYY"):
        model.predict(X.assign(text="2024-01-01"))
    as_text.to_csv(tmp_path / "rows.csv", index=False)
    assert main(["predict", str(tmp_path / "tree.json"), str(tmp_path / "rows.csv"), "--quiet"]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert rows["prediction"].tolist() == model.predict(X).tolist()


def test_numbers_far_outside_the_training_range_are_noted_or_refused(tmp_path, capsys):
    X, y = patients(60)
    X["seen"] = [f"2024-01-{1 + k % 28:02}" for k in range(60)]
    model = LocalSVMTreeClassifier(C=10, dates="days-since").fit(X, y)
    model.save(tmp_path / "tree.json")
    far = X.head(8).assign(seen=["2024-01-05"] * 7 + ["2042-01-05"])
    far.loc[:2, "age"] = [900.0, -300.0, 120.0]  # the last one is outside, but not far
    far.to_csv(tmp_path / "far.csv", index=False)
    command = ["predict", str(tmp_path / "tree.json"), str(tmp_path / "far.csv"), "--json"]
    assert main(command) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    low, high = X.age.min(), X.age.max()
    assert (
        f"2 rows have values in column 'age' far outside the training range {low:g} to {high:g}, such as 900" in notes
    )
    assert any("'seen' far outside the training range 2024-01-01 to 2024-01-28, such as 2042-01-05" in n for n in notes)
    assert not any("visits" in note and "far" in note for note in notes)
    assert main([*command, "--strict"]) == 3
    assert "far outside the training range" in capsys.readouterr().err
    X.to_csv(tmp_path / "near.csv", index=False)
    assert main(["predict", str(tmp_path / "tree.json"), str(tmp_path / "near.csv"), "--strict", "--quiet"]) == 0


def test_pickles_searches_and_pandas_output(fitted):
    model, X, y = fitted
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(odd_rows()).tolist() == model.predict(odd_rows()).tolist()
    assert again.encoding_ == model.encoding_
    for kind in (MargotClassifier, LocalSVMTreeClassifier, MargotRegressor, HFSMargotClassifierCV):
        tags = get_tags(kind()).input_tags
        assert tags.allow_nan and tags.categorical
    columns = ColumnTransformer([("all", "passthrough", list(X.columns))], verbose_feature_names_out=False)
    pipeline = make_pipeline(columns, LocalSVMTreeClassifier(C=10)).set_output(transform="pandas").fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == list(X.columns)
    assert pipeline.predict(odd_rows()).tolist() == LocalSVMTreeClassifier(C=10).fit(X, y).predict(odd_rows()).tolist()
    search = GridSearchCV(pipeline, {"localsvmtreeclassifier__C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5


def test_a_proof_about_columns(tmp_path):
    X, y = patients(24)
    path = tmp_path / "a.proof"
    model = MargotClassifier(depth=1, C=1, budget=1, proof=path).fit(X, y)
    assert model.certificate_.gap <= 1e-4
    found = model.check_proof(path, X, y)
    assert found.bound >= (1 - 1e-8) * model.certificate_.bound
    assert "groups    6, which budgets count: 'age', 'age missing'; 'ward=" in str(found)
    model.save(tmp_path / "tree.json")
    X.assign(state=y).to_csv(tmp_path / "rows.csv", index=False)
    assert main(["check", str(path), str(tmp_path / "rows.csv"), "--tree", str(tmp_path / "tree.json")]) == 0
    tree = margotree.load(tmp_path / "tree.json")
    other = replace(tree, terms={**tree.terms, "groups": None})
    with pytest.raises(Refused, match="the proof is about groups"):
        check_proof(other, path, model.tree_.given(X), y)


def test_rows_without_weight_do_not_count():
    X, y = patients(60)
    weight = np.ones(60)
    weight[:20] = 0.0
    X.loc[:19, "ward"] = "Garden"
    model = LocalSVMTreeClassifier().fit(X, y, sample_weight=weight)
    assert model.encoding_.columns == LocalSVMTreeClassifier().fit(X[20:], y[20:]).encoding_.columns


def test_regressors_and_searches_take_frames():
    X, _ = patients(60)
    y = 2.0 * (X.ward == "Surgery") + X.age.fillna(50) / 50
    model = MargotRegressor(depth=2, leaf_budget=2, node_limit=10, engine="alternating").fit(X, y)
    assert model.score(X, y) > 0.8 and model.tree_.verify(X, y).feasible
    groups = np.array(model.encoding_.groups)
    assert all(len(set(groups[w != 0])) <= 2 for w in model.tree_.models.w)
    X, y = patients(60)
    scores = cross_val_score(LocalSVMTreeClassifier(C=10), X, y, cv=2)
    assert np.all(scores > 0.5)
    search = GridSearchCV(LocalSVMTreeClassifier(), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert search.predict(odd_rows()).shape == (6,)


def test_cross_validation_within_the_classifier():
    X, y = patients(60)
    settings = {"depths": [1], "Cs": [10.0], "budgets": [1, 2], "cv": 2, "engine": "alternating"}
    model = HFSMargotClassifierCV(**settings).fit(X, y)
    assert model.encoding_.columns[1].name == "ward" and model.predict(odd_rows()).shape == (6,)
    groups = np.array(model.encoding_.groups)
    assert len(set(groups[model.tree_.splits.w[0] != 0])) <= model.budget_
    assert model.verify(X, y).feasible


def test_a_column_of_words_at_a_tree_of_numbers_is_an_error():
    X, y = patients(40)
    model = LocalSVMTreeClassifier().fit(X[["age", "visits"]], y)
    with pytest.raises(ValueError, match="'old' in column 'age' is not a number"):
        model.predict(pd.DataFrame({"age": ["old"], "visits": [1]}))
    with pytest.raises(ValueError, match="infinity"):
        model.predict(pd.DataFrame({"age": [np.inf], "visits": [1]}))


def test_the_former_pipeline_is_an_alias():
    X, y = patients(40)
    with pytest.warns(FutureWarning, match="estimators accept missing values"):
        model = missing_pipeline(LocalSVMTreeClassifier())
    assert model.fit(X, y)[-1].encoding_ is not None
    with pytest.raises(ValueError, match="SimpleImputer"):
        missing_pipeline(LocalSVMTreeClassifier(), strategy="mean")


def test_python_code_of_a_tree_predicts_rows_as_they_come(fitted):
    model, X, _ = fitted
    names = {}
    exec(model.to_python(), names)
    for rows in (X, odd_rows()):
        records = json.loads(rows.to_json(orient="records"))
        assert names["predict_many"](records) == model.predict(rows).tolist()


def test_polars_frames():
    pl = pytest.importorskip("polars")
    X, y = patients()
    polar = pl.DataFrame({name: X[name].astype(object).where(X[name].notna(), None).tolist() for name in X.columns})
    polar = polar.with_columns(
        pl.col("smoker").cast(pl.Categorical), pl.col("grade").cast(pl.Enum(["low", "mid", "high"]))
    )
    model = LocalSVMTreeClassifier(C=10).fit(polar, y)
    plain = X.assign(grade=X.grade.astype(object))
    same = LocalSVMTreeClassifier(C=10).fit(plain, y)
    assert model.predict(polar).tolist() == same.predict(plain).tolist()
    assert model.tree_.predict(polar).tolist() == same.tree_.predict(plain).tolist()
