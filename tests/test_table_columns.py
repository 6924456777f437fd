"""Columns that nobody looked at: what is noted, what is understood, what is refused, and in how many messages."""

import datetime

import numpy as np
import pytest

from easy import easy_rows, write_rows
from margotree.table import ColumnOptions, Number, TableError, learn_encoding, read_table
from margotree.table.encoding_json import from_record, to_record


@pytest.fixture
def taken(tmp_path):
    """Learn from easy.csv with further columns, given as functions of row and position."""

    def taken(columns=None, rows=None, reading=None, **options):
        rows = rows or easy_rows()
        rows = [{**{n: f(row, k) for n, f in (columns or {}).items()}, **row} for k, row in enumerate(rows)]
        table = read_table(write_rows(tmp_path / "easy.csv", rows), **(reading or {}))
        encoding, notes = learn_encoding(table, ColumnOptions(**{"target": "died", **options}))
        return encoding, encoding.training(table), [*table.notes, *notes]

    return taken


IDS = (np.random.default_rng(3).permutation(90_000) + 10_000).tolist()
DAYS = [datetime.date(2019, 1, 1) + datetime.timedelta(days=37 * k % 1500) for k in range(500)]


def test_an_honest_table_gets_no_note(taken):
    assert taken()[2] == []


@pytest.mark.parametrize(
    ("name", "cell", "words"),
    [
        ("pid", lambda row, k: k + 1, "numbers the rows"),
        ("pat", lambda row, k: IDS[k], "a different whole number in every row: it seems to be an identifier"),
        ("patient id", lambda row, k: IDS[k // 2 + k // 4], "has the name of an identifier"),
        ("seen", lambda row, k: f"{DAYS[k]:%Y%m%d}", "seems to hold dates such as 20190101"),
        ("month", lambda row, k: f"{DAYS[k]:%Y%m}", "seems to hold dates such as 201901"),
        ("day", lambda row, k: f"{DAYS[k % 9]:%d.%m.%Y}", "holds dates, treated as words"),
        ("home", lambda row, k: f"{1000 + 190 * k:05d}", "leading zeros such as 01000"),
        ("Zip code", lambda row, k: 10_000 + 7 * (k % 60), "codes such as postcodes"),
        ("outcome", lambda row, k: {"yes": "dead", "no": "alive"}[row["died"]], "alone predicts the target"),
        ("flag", lambda row, k: int(row["died"] == "yes"), "alone predicts the target"),
        ("days", lambda row, k: 0.5 + k % 7 + 10 * (row["died"] == "yes" and k > 2), "alone predicts the target"),
    ],
)
def test_columns_that_may_not_belong_are_noted(taken, name, cell, words):
    _, _, (note,) = taken({name: cell})
    drop = f'--drop "{name}"' if " " in name else f"--drop {name}"
    assert repr(name) in note and words in note and note.endswith(f"add {drop}")
    assert taken({name: cell}, drop=[name])[2] == []


def test_a_column_that_is_filled_in_for_one_class_only_is_noted(taken):
    died_on = {"died_on": lambda row, k: k % 90 if row["died"] == "yes" else ""}
    _, _, (note,) = taken(died_on, missing="median")
    assert "'died_on' is empty exactly where the target is 'no'" in note and "--drop died_on" in note


def test_all_suspicions_come_in_one_note(taken):
    columns = {
        "pat": lambda row, k: IDS[k],
        "seen": lambda row, k: f"{DAYS[k]:%Y%m%d}",
        "the zip": lambda row, k: 10_000 + k % 70,
        "dead": lambda row, k: row["died"].upper(),
    }
    _, _, (note,) = taken(columns)
    assert note.startswith("4 columns may be unsuitable") and all(repr(name) in note for name in columns)
    assert note.endswith('to leave out all of them, add --drop pat --drop seen --drop "the zip" --drop dead')


def test_all_refusals_come_in_one_message(taken):
    columns = {
        "name": lambda row, k: f"Patient {k}",
        "seen": lambda row, k: DAYS[k].isoformat(),
        "dose": lambda row, k: k if k % 5 else "unknown",
        "stay": lambda row, k: f"{k} days" if k % 2 else f"{k} weeks",
    }
    with pytest.raises(TableError) as refused:
        taken(columns)
    message = str(refused.value)
    assert message.startswith("4 columns cannot be used") and "these are dates" in message
    assert "'unknown' in column 'dose'" in message and "several: day, week" in message
    assert message.endswith("--drop name --drop seen --drop dose --drop stay")


def test_names_that_differ_by_a_blank_are_an_error(tmp_path):
    (tmp_path / "data.csv").write_text("age,age ,y\n1,2,0\n2,3,1\n")
    with pytest.raises(TableError, match=r"differ in blanks only: 'age' \(column 1\) and 'age ' \(column 2\).*rename"):
        read_table(str(tmp_path / "data.csv"))


def test_amounts_with_a_unit_are_numbers(taken):
    columns = {
        "sat": lambda row, k: f"{80 + k % 20}%",
        "term": lambda row, k: f"{1 + k % 48} month{'s' if k % 48 else ''}",
        "since": lambda row, k: ["Jan", "FEB", "March", "dec."][k % 4],
    }
    encoding, samples, notes = taken(columns)
    assert encoding.features[:3] == ("sat", "term", "since")
    assert all(isinstance(column, Number) for column in encoding.columns[:3])
    assert samples.X[:4, :3].tolist() == [[80, 1, 1], [81, 2, 2], [82, 3, 3], [83, 4, 12]]
    assert len(notes) == 3 and "'80%' are read as numbers" in notes[0] and "--categorical since" in notes[2]
    assert from_record(to_record(encoding)) == encoding
    assert "since=Jan" in taken(columns, categorical=["since"])[0].features


def test_a_unit_left_off_in_a_new_file_is_noted(taken, tmp_path):
    from margotree.table import notes_about

    encoding, _, _ = taken({"sat": lambda row, k: f"{80 + k % 20} %"})
    bare = read_table(write_rows(tmp_path / "new.csv", [{"sat": 88, **row} for row in easy_rows(3)]))
    assert encoding.apply(bare)[0][:, 0].tolist() == [88] * 3
    assert "column 'sat' has the unit '%' in the training file" in notes_about(encoding, bare)[0]
    odd = read_table(write_rows(tmp_path / "odd.csv", [{"sat": "88 points", **row} for row in easy_rows(3)]))
    with pytest.raises(TableError, match="'88 points' in column 'sat' is not a number"):
        encoding.apply(odd)


def test_words_in_several_spellings_are_one(taken):
    rows = easy_rows()
    for k in range(0, 500, 4):
        rows[k]["smoker"] = rows[k]["smoker"].title() + " "
        rows[k]["died"] = rows[k]["died"].upper()
    encoding, samples, notes = taken(rows=rows)
    plain, expected, _ = taken()
    assert encoding.columns == plain.columns and np.array_equal(samples.X, expected.X)
    assert samples.y.tolist() == expected.y.tolist()
    assert "'NO' as 'no'; 'YES' as 'yes'" in notes[0] and "in column 'smoker'" in notes[1]
    assert set(taken(rows=rows, positive="Yes")[1].y.tolist()) == {"yes", "not yes"}


def test_one_word_in_two_spellings_says_nothing(taken):
    encoding, _, notes = taken({"ward": lambda row, k: ["A", "a "][k % 2]})
    assert "ward" not in encoding.features[0] and "has the same value" in notes[0]


@pytest.mark.parametrize("first", ["sep=;\n", "sep=;\r\n", '"sep=;"\n', "SEP=;\n"])
def test_excel_s_own_line_is_no_header(tmp_path, first):
    (tmp_path / "data.csv").write_text(first + "a;b;y\n1,5;u;0\n2;v;1\nx;v;1\n", newline="")
    table = read_table(str(tmp_path / "data.csv"))
    assert table.names == ("a", "b", "y") and table.lines == [3, 4, 5]


def test_excel_files_are_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "patients"
    sheet.append([])
    rows = easy_rows(40)
    sheet.append([*rows[0], "seen", "ok"])
    for row in rows:
        sheet.append([*row.values(), datetime.datetime(2024, 3, 1), True])
    sheet["A4"] = None
    book.create_sheet("notes").append(["nothing"])
    path = str(tmp_path / "easy.xlsx")
    book.save(path)
    table = read_table(path)
    assert table.names == (*rows[0], "seen", "ok") and table.n_rows == 40 and table.lines[0] == 3
    assert table.column("age")[:3] == [str(rows[0]["age"]), "", str(rows[2]["age"])]
    assert [float(cell) for cell in table.column("crp")] == [row["crp"] for row in rows]
    assert set(table.column("seen")) == {"2024-03-01"} and set(table.column("ok")) == {"true"}
    assert "--sheet" in table.notes[0] and "'notes'" in table.notes[0]
    with pytest.raises(TableError, match="no sheet 'patient'; did you mean 'patients'"):
        read_table(path, sheet="patient")
    with pytest.raises(TableError, match="header but no rows"):
        read_table(path, sheet="notes")
    (tmp_path / "broken.xlsx").write_text("no zip")
    with pytest.raises(TableError, match="cannot be read as an Excel file"):
        read_table(str(tmp_path / "broken.xlsx"))


def test_without_openpyxl_the_message_says_what_to_install(tmp_path, monkeypatch):
    from margotree.table import excel

    (tmp_path / "easy.xlsx").write_bytes(b"PK\x03\x04")
    monkeypatch.setattr(excel, "find_spec", lambda name: None)
    with pytest.raises(TableError, match=r'pip install "margotree\[excel\]"'):
        read_table(str(tmp_path / "easy.xlsx"))
