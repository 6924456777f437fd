"""Tables nobody prepared: each is read, or refused with words that help."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margotree.table import Category, ColumnOptions, MissingCells, Number, TableError, learn_encoding, read_table
from margotree.table.cells import parse_numbers
from margotree.table.delimited import sniff
from margotree.table.encoding_json import from_record, to_record


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return str(path)

    return write


def encoded(path, target="y", reading=None, **options):
    table = read_table(path, **(reading or {}))
    encoding, notes = learn_encoding(table, ColumnOptions(target=target, **options))
    return encoding, encoding.training(table), (*table.notes, *notes)


PLAIN = "a,b,y\n1,2.5,no\n3,4.5,yes\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", ";").replace(".", ","),
        PLAIN.replace(",", "\t").replace(".", ","),
        PLAIN.replace(",", "|"),
        PLAIN.replace("\n", "\r\n"),
        "\n\n" + PLAIN + "\n  ,,\n",
        '"a" , "b", y\n1, "2.5", no\n 3 ,4.5,"yes"\n',
    ],
)
def test_the_same_table_in_many_dresses(write, content):
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        found, samples, _ = encoded(write(content, encoding=encoding))
        assert found.features == ("a", "b") and samples.y.tolist() == ["no", "yes"]
        assert samples.X.tolist() == [[1, 2.5], [3, 4.5]]


def test_compressed_files_are_read_as_they_are(write):
    assert encoded(write(gzip.compress(PLAIN.encode()), "data.csv.gz"))[1].X.tolist() == [[1, 2.5], [3, 4.5]]


def test_headers_with_spaces_are_found_without_regard_to_case(write):
    found, samples, _ = encoded(write("Age in years ,y\n1,0\n2,1\n"), target=" Y")
    assert found.target == "y" and found.features == ("Age in years",) and samples.y.tolist() == [0, 1]


def test_a_header_that_comes_twice_is_numbered_and_that_is_said(write):
    found, _, notes = encoded(write("a,a,,y\n1,2,3,0\n2,1,4,1\n"))
    assert found.features == ("a", "a (2)", "column 3") and "a (2)" in notes[0]


def test_old_encodings_are_guessed_and_that_is_said(write):
    found, _, notes = encoded(write("größe,y\n1,0\n2,1\n", encoding="latin-1"))
    assert found.features == ("größe",) and "Windows-1252" in notes[0]


def test_words_become_features_and_two_words_become_one(write):
    path = write("sex,city,y\nm,Oslo,0\nf,Rome,1\nm,Ulm,1\n")
    found, samples, _ = encoded(path)
    assert found.features == ("sex=m", "city=Oslo", "city=Rome", "city=Ulm")
    assert samples.X.tolist() == [[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]


def test_columns_that_say_nothing_are_left_out_and_that_is_said(write):
    found, _, notes = encoded(write("a,same,empty,y\n1,5,,0\n2,5,,1\n"))
    assert found.features == ("a",)
    assert "column 'same' has the same value '5'" in notes[0] and "'empty' is empty" in notes[1]


def test_row_numbers_are_pointed_out(write):
    rows = "".join(f"{i},{i % 3},{i % 2}\n" for i in range(20))
    assert "--drop id" in encoded(write("id,a,y\n" + rows))[2][0]


HOLES = "a,b,y\n1,x,0\n,x,1\n3,?,0\n4,w,\n5,x,1\n"


def test_missing_cells_are_an_error_that_counts_them(write):
    with pytest.raises(MissingCells, match=r"in 2 of 5 rows \(the first is line 3; by column: 'a' 1, 'b' 1\)"):
        encoded(write(HOLES))


def test_rows_with_missing_cells_may_be_dropped(write):
    _, samples, _ = encoded(write(HOLES), missing="drop")
    assert samples.rows == [0, 4] and samples.X.tolist() == [[1, 1], [5, 1]]


def test_missing_cells_may_be_filled_and_new_files_get_the_same_filling(write):
    found, samples, _ = encoded(write(HOLES), missing="median")
    assert samples.rows == [0, 1, 2, 4]
    assert samples.X.tolist() == [[1, 1], [3.5, 1], [3, 1], [5, 1]]
    X, rows = found.apply(read_table(write("b,a,note\n,,new\n", "new.csv")))
    assert X.tolist() == [[3.5, 1]] and rows == [0]


def test_new_rows_with_missing_cells_may_be_skipped(write):
    found, _, _ = encoded(write(PLAIN))
    new = read_table(write("b,a\n1,2\n,3\n", "new.csv"))
    with pytest.raises(MissingCells):
        found.apply(new)
    X, rows = found.apply(new, missing="skip")
    assert X.tolist() == [[2, 1]] and rows == [0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \n", "is empty"),
        (b"a,b,y\n", "has a header but no rows"),
        (b"a b y\n1 2 0\n", "only one column"),
        (b"a,b,y\n1,2,0\n1,2\n", "line 3: 2 cells for 3 column names"),
        (b"a,z\n1,0\n2,1\n", "has no column 'y'; its columns are 'a', 'z'"),
        (b"a,yy\n1,0\n2,1\n", "did you mean 'yy'"),
        (b"a,y\n1,0\n2,0\n", "all rows have the label '0'"),
        (b"a,y\n1,\n2,\n", "target column 'y' is empty"),
        (b"a,y\n1,0\n1,1\n", "no usable column besides the target 'y'"),
        (b"a,y\n1,0\n2,1\n3,0\noops,1\n", "line 5: 'oops' in column 'a' is not a number.*--na oops"),
        (b"PK\x03\x04rest", "Excel or zip file.*save it as CSV"),
        (b"a,y\n1\x00,0\n", "NUL characters"),
        (("w,y\n" + "".join(f"word{i},{i % 2}\n" for i in range(40))).encode(), "40 different words.*--drop w"),
        (("w,y\n" + "".join(f'"1,{i}",{i % 2}\n' for i in range(40))).encode(), "--decimal ,"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words_that_help(write, content, words):
    with pytest.raises(TableError, match=words):
        encoded(write(content))


def test_a_missing_file_is_answered_with_the_nearest(write, monkeypatch, tmp_path):
    write(PLAIN, "heart.csv")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match=r"no file hart.csv; did you mean heart.csv\?"):
        read_table("hart.csv")


def test_new_files_are_held_to_the_training_file(write):
    found, _, _ = encoded(write("a,city,y\n1,Oslo,0\n2,Rome,1\n3,Ulm,1\n"))
    with pytest.raises(TableError, match="does not have the column 'city'"):
        found.apply(read_table(write("a,town\n1,Rome\n", "new.csv")))
    strange = read_table(write("city,a,z\nBari,1,1\n", "new.csv"))
    with pytest.raises(TableError, match="line 2: 'Bari' in column 'city' is not a word of the training file"):
        found.apply(strange)
    assert found.apply(strange, unknown="ignore")[0].tolist() == [[1, 0, 0, 0]]
    with pytest.raises(TableError, match="'x' in column 'a' is not a number"):
        found.apply(read_table(write("city,a\nRome,x\n", "new.csv")))


def test_one_label_against_the_rest(write):
    path = write("a,y\n1,red\n2,green\n3,blue\n")
    assert encoded(path, positive="red")[1].y.tolist() == ["red", "not red", "not red"]
    with pytest.raises(TableError, match="no row has the label 'pink'"):
        encoded(path, positive="pink")


def test_labels_may_be_whole_numbers_in_any_spelling(write):
    assert encoded(write("a;y\n1;0,0\n2;1.0\n"))[1].y.tolist() == [0, 1]


def test_weights_must_be_numbers(write):
    path = write("a,n,y\n1,2,0\n2,3,1\n")
    found, samples, _ = encoded(path, weight="n")
    assert found.features == ("a",) and samples.weight.tolist() == [2, 3]
    with pytest.raises(TableError, match="weights in column 'n'"):
        encoded(write("a,n,y\n1,-2,0\n2,3,1\n"), weight="n")


def test_without_a_header_columns_have_numbers(write):
    path = write("1,2,0\n3,4,1\n")
    found, _, _ = encoded(path, target="column 3", reading={"header": False})
    assert found.features == ("column 1", "column 2")
    with pytest.raises(TableError, match="no column"):
        encoded(path)
    assert "--no-header" in read_table(path).notes[0]


def test_parquet_and_csv_give_the_same_numbers(write, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [0.1, 1 / 3, None], "b": [1, 2, 3], "c": ["u", "v", "u"], "y": [True, False, True]})
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_csv(tmp_path / "data.csv", index=False)
    for missing in ("drop", "median"):
        one = encoded(str(tmp_path / "data.parquet"), missing=missing)[1]
        two = encoded(str(tmp_path / "data.csv"), missing=missing)[1]
        assert np.array_equal(one.X, two.X)
        assert [label.lower() for label in two.y] == one.y.tolist()


def test_an_encoding_survives_its_file(write):
    found, _, _ = encoded(write(HOLES), missing="median")
    again = from_record(json.loads(json.dumps(to_record(found))))
    assert again == found and isinstance(again.columns[0], Number) and isinstance(again.columns[1], Category)
    with pytest.raises(TableError, match="update margotree"):
        from_record(to_record(found) | {"version": 2})
    with pytest.raises(TableError, match="is not valid"):
        from_record(to_record(found) | {"columns": [{"kind": "poem"}]})


def test_a_fingerprint_knows_rows_again(write):
    one, two = encoded(write(PLAIN))[1], encoded(write(PLAIN.replace(",", ";")))[1]
    assert one.fingerprint() == two.fingerprint() != encoded(write(PLAIN.replace("4.5", "4.6")))[1].fingerprint()


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.sampled_from(["u", "v w", "x;y", 'q"q', "a,b"])), min_size=2, max_size=8
    ),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_what_a_csv_writer_wrote_is_read_back(rows, delimiter):
    import csv
    import io

    from margotree.table.cells import MISSING
    from margotree.table.delimited import from_text

    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows([["number", "word", "y"], *([*row, "l"] for row in rows)])
    table = from_text(out.getvalue(), "text", missing=MISSING)
    assert sniff(out.getvalue(), "text") == delimiter
    values, bad = parse_numbers(table.column("number"), table)
    assert values.tolist() == [row[0] for row in rows] and len(bad) == 0
    assert table.column("word") == [row[1] for row in rows]
