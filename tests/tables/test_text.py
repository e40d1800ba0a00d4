"""Texts of a table: what is missing, decimal marks, quotes and length, columns nobody declared, formulas."""

from __future__ import annotations

import datetime
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import spngp
from spngp.cli.app import app
from spngp.columns import learn_columns
from spngp.tables.guessing import guess_role
from spngp.tables.reading import Source
from spngp.tables.schema import Declaration, TableSchema, learn_table
from spngp.tables.values import MISSING, Reader
from spngp.tables.writing import TableWriter


@pytest.fixture
def learn(tmp_path):
    """Inputs of a table with their names, from its text."""

    def learn(content: str, **declared):
        path = tmp_path / "data.csv"
        path.write_text(content, encoding="utf-8", newline="")
        source = Source(path)
        table, reader = source.table(), Reader("data", source.decimal)
        declaration = Declaration(["y"], **declared)
        typed = learn_table(declaration, table, reader).inputs
        outputs = TableSchema(("y",)).outputs(table, reader)
        columns = learn_columns(typed, outputs, declaration.orders_and_parts)
        return columns.encode(typed).tolist(), columns

    return learn


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


# What is missing

SPELLINGS = ["NA", "null", "nan", "n/a", "#N/A", "NaN", "None", "NULL", ' "x" ', "  ", "007", "-", "a\r\nb"]


def test_ids_come_back_as_they_were(tmp_path):
    model = spngp.GPRegressor(hyperparameters="fixed")
    model.fit(pa.table({"a": [0.0, 1.0, 2.0]}), np.array([0.0, 1.0, 0.0])).save(tmp_path / "m.spngp")
    with TableWriter.open(tmp_path / "new.csv") as writer:
        writer.write(pa.record_batch({"id": [*SPELLINGS, ""], "a": [1.0] * (len(SPELLINGS) + 1)}))
    assert run("predict", tmp_path / "m.spngp", tmp_path / "new.csv", "-o", tmp_path / "p.csv")[0] == 0
    ids = Source(tmp_path / "p.csv").table().column("id").to_pylist()
    assert ids == [*SPELLINGS, None]


def test_na_is_a_level_and_an_empty_field_is_missing(learn):
    text = 'land,y\nNA,1\n"NA",2\nDE,3\nDE,4\nDE,5\n{},6\n'
    inputs, columns = learn(text.format("null"), categories=["land"])
    assert set(columns.columns[0].levels) == {"DE", "NA", "null"}
    assert inputs[0] == inputs[1]
    _, columns = learn(text.format(""), categories=["land"])
    assert set(columns.columns[0].levels) == {"DE", "NA", "(missing)"}
    with pytest.raises(ValueError, match=r"'NA' is none of its levels, DE, FR"):
        learn(text.format("FR"), ordinal={"land": ["DE", "FR"]})


def test_numbers_and_dates_may_be_missing_in_many_spellings(learn):
    rows = "".join(f'"{spelling}"," {spelling}",1\n' for spelling in MISSING)
    text = f"a,when,y\n1,1970-01-02,1\n3,1970-01-04,2\n{rows}"
    inputs, _ = learn(text, dates={"when": []})
    assert inputs == [[1.0, 0.0, 1.0, 0.0], [3.0, 0.0, 3.0, 0.0]] + [[2.0, 1.0, 2.0, 1.0]] * len(MISSING)
    inputs, _ = learn("d,y\n02.01.1970,1\nNA,2\n", dates={"d": []}, date_format="%d.%m.%Y")
    assert inputs == [[1.0, 0.0], [1.0, 1.0]]
    for other in ("-", "?", "missing"):
        with pytest.raises(ValueError, match=r"row 3, column 'a': .* is not a number"):
            learn(f"a,y\n1,1\n2,2\n{other},3\n")


# Decimal marks, far below the lines that the dialect is judged by

FAR = 200


def test_a_point_among_decimal_commas_is_an_error_wherever_it_stands(learn):
    rows = "".join(f"{i},5;{i}\n" for i in range(FAR))
    assert learn(f"a;y\n{rows}")[0][-1] == [FAR - 0.5]
    with pytest.raises(ValueError, match=rf"data, row {FAR + 1}, column 'a': '1\.500' has a point, and other numbers"):
        learn(f"a;y\n{rows}1.500;7\n")
    with pytest.raises(ValueError, match=rf"row {FAR + 1}, column 'a': '1\.500,25' has a point"):
        learn(f"a;y\n{rows}1.500,25;7\n")


@pytest.mark.parametrize("before", ["7;7\n", "1.5;7\n"])
def test_a_comma_among_other_numbers_is_an_error_wherever_it_stands(learn, before):
    message = rf"row {FAR + 1}, column 'a': '1,500' is not a number \(write decimals with a point, thousands without"
    with pytest.raises(ValueError, match=message):
        learn(f"a;y\n{before * FAR}1,500;7\n")
    with pytest.raises(ValueError, match=message):
        learn(f"a,y\n{before.replace(';', ',') * FAR}" + '"1,500",7\n')


def test_commas_that_may_separate_thousands_are_an_error_wherever_that_shows(learn):
    rows = "1,250;1\n" * FAR
    assert learn(f"a;y\n{rows}")[0][0] == [1.25]
    with pytest.raises(
        ValueError, match=rf"row {FAR + 1}, column 'a': the column holds '999' and '1,250', whose comma"
    ):
        learn(f"a;y\n{rows}999;2\n")
    for proof in ("999;2\n0,5;3\n", "999;2,5\n"):  # no thousands: in this column, or another
        assert learn(f"a;y\n{rows}{proof}")[0][FAR] == [999.0]
    with pytest.raises(ValueError, match=rf"row {FAR + 1}, column 'a': '1,250,000' is not a number"):
        learn(f"a;y\n{rows}1,250,000;2\n")


def test_thousands_are_found_across_batches(tmp_path):
    reader = Reader("data", ",")
    reader.numbers(pa.record_batch({"a": ["1,250"]}), "a")
    reader.first_row = 2
    with pytest.raises(ValueError, match="data, row 2, column 'a': the column holds '12' and '1,250'"):
        reader.numbers(pa.record_batch({"a": ["12"]}), "a")


# Long texts, quotes


def test_a_long_header_is_read_and_a_longer_one_refused(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"a_column_with_a_long_name_{i:06d}" for i in range(6000)]
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")  # 198,000 characters
    assert Source(path).columns == names
    path.write_text("x" * 140_000 + ",y\n1,2\n")
    with pytest.raises(ValueError, match=r"has a column's name of more than 131,072 characters"):
        Source(path)
    path.write_text(",".join(names * 2) + "\n")
    with pytest.raises(ValueError, match=r"must have a header, names in one line, of less than 262,144 bytes"):
        Source(path)


def test_texts_that_are_too_long_are_refused(learn):
    for long, message in (
        ("k" * 1001, "column 'c' holds a text of 1,001 characters, a level has at most 1,000; shorten it"),
        ("k" * 3_000_000, "line 3: a field has more than 131,072 characters, or a quote is never closed"),
        ("k" * 5_000_000, "line 3 has more than 4,194,304 characters"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            learn(f'c,y\nk,1\n"{long}",2\nk,3\n', categories=["c"])
        assert len(str(caught.value)) < 300


def test_quotes(learn):
    inputs, columns = learn('c,y\n"a\nb",1\n"say ""x""",2\n5" pipe,3\n"a" ,4\n', categories=["c"])
    assert columns.columns[0].levels == ("a\nb", 'say "x"', '5" pipe', "a")  # by their outputs
    assert columns.decode(np.array(inputs))["c"] == ["a\nb", 'say "x"', '5" pipe', "a"]
    with pytest.raises(ValueError, match="line 3: a quote is opened and never closed"):
        learn('c,y\na,1\nb,"2\nc,3\n', categories=["c"])
    with pytest.raises(ValueError, match="line 5: 1 fields where the header has 2"):
        learn('c,y\n"a\nb",1\n\nc\n', categories=["c"])


def test_batches_are_short_where_rows_are_long(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,note\n" + ("1," + "n" * 100_000 + "\n") * 100)
    batches = [batch.num_rows for batch in Source(path).batches(1000)]
    assert sum(batches) == 100
    assert max(batches) == 42  # 4,194,304 characters and what is left of a line


# Types of Parquet


def test_durations_and_times_become_seconds():
    table = pa.table(
        {
            "took": pa.array([datetime.timedelta(minutes=1.5), None], pa.duration("us")),
            "short": pa.array([1500, -500], pa.duration("ms")),
            "at": pa.array([datetime.time(0, 1), datetime.time(1, 0)], pa.time32("s")),
            "exactly": pa.array([datetime.time(0, 0, 0, 500_000), None], pa.time64("ns")),
        }
    )
    reader = Reader("t")
    assert np.array_equal(reader.numbers(table, "took"), [90.0, np.nan], equal_nan=True)
    assert reader.numbers(table, "short").tolist() == [1.5, -0.5]
    assert reader.numbers(table, "at").tolist() == [60.0, 3600.0]
    assert reader.numbers(table, "exactly")[0] == 0.5
    for name in table.schema.names:
        with pytest.raises(ValueError, match=f"t: column '{name}' holds (duration|time).*, not dates; it is a number"):
            reader.moments(table, name, None)


# Columns that nobody declared

N = 40
MIXED = pa.table(
    {
        "a": [str(i) for i in range(N)],
        "city": [("Ulm", "Bonn", "Köln")[i % 3] for i in range(N)],
        "when": [f"2024-01-{1 + i % 31:02d}" for i in range(N)],
        "the note": [f"note {i}" for i in range(N)],
        "kind": ["u" if i % 2 else "v" for i in range(N)],
        "y": [float(i % 7) for i in range(N)],
    }
)


def test_what_was_guessed_is_told_as_options_to_paste(tmp_path):
    with TableWriter.open(tmp_path / "d.csv") as writer:
        writer.write(MIXED.to_batches()[0])
    fit = ["fit", tmp_path / "d.csv", "-t", "y", "--hyperparameters", "fixed", "-o", tmp_path / "m.spngp"]
    code, _, told = run(*fit)
    assert code == 0
    options = "--category city,kind --date when --id 'the note'"
    assert told.splitlines()[:2] == [
        f"spngp: {tmp_path / 'd.csv'}: guessed {options}",
        f"spngp: {tmp_path / 'd.csv'}: left out, as it looks like an identifier: 'the note'; --category or --number "
        "takes it in",
    ]
    guessed = spngp.load(tmp_path / "m.spngp")
    code, _, told = run(*fit, *shlex.split(options))
    assert code == 0
    assert "guessed" not in told
    declared = spngp.load(tmp_path / "m.spngp")
    assert declared.columns_ == guessed.columns_
    np.testing.assert_array_equal(declared.X_train_, guessed.X_train_)


def test_roles():
    def roles(table, date_format=None):
        return {name: guess_role(name, table.column(name), date_format) for name in table.schema.names if name != "y"}

    assert roles(MIXED) == {"a": "number", "city": "category", "when": "date", "the note": "id", "kind": "category"}
    typed = pa.table(
        {
            "moment": pa.array([0, 1, 2], pa.timestamp("s")),
            "list": [[1], [2], [3]],
            "coded": pa.array(["u", "v", "u"]).dictionary_encode(),
            "german": ["01.02.2024", "31.12.2024", None],
            "day": pa.array(["1970-01-02"] * 3).dictionary_encode(),
        }
    )
    wanted = {"moment": "date", "list": "id", "coded": "category", "german": "date", "day": "date"}
    assert roles(typed) == roles(typed, "%d.%m.%Y") == wanted
    numbers = list(range(30))
    named = {"order_id": numbers, "orderId": numbers, "ID": numbers, "day": numbers, "paid": numbers, "bid": numbers}
    wanted = {name: "id" if name in ("order_id", "orderId", "ID") else "number" for name in named}
    assert roles(pa.table(named)) == wanted
    assert roles(pa.table({name: [str(n) for n in values] for name, values in named.items()})) == wanted
    assert roles(pa.table({"id": [1, 1, *numbers]})) == {"id": "number"}  # it repeats: a group, say


def test_an_identifier_that_is_asked_for(learn):
    rows = "".join(f"note {i},{i}\n" for i in range(40))
    with pytest.raises(ValueError, match="column 'c' has 40 levels in 40 rows: it looks like an identifier"):
        learn(f"c,y\n{rows}", features=["c"])
    with pytest.raises(ValueError, match="has no input column: all look like identifiers"):
        learn(f"c,y\n{rows}")


def test_names_that_options_cannot_hold_are_told_as_toml(tmp_path):
    table = MIXED.select(["a", "city", "when", "y"]).rename_columns(["a", "city, town", "when=", "y"])
    with TableWriter.open(tmp_path / "d.csv") as writer:
        writer.write(table.to_batches()[0])
    fit = ["fit", tmp_path / "d.csv", "-t", "y", "--hyperparameters", "fixed", "-o", tmp_path / "m.spngp"]
    told = run(*fit)[2]
    advice = 'category = ["city, town"], date = { "when=" = [] }'
    assert f"guessed in a file for --config, {advice}\n" in told
    (tmp_path / "c.toml").write_text(advice.replace("], date", "]\ndate"))
    code, _, told = run(*fit, "--config", tmp_path / "c.toml")
    assert code == 0
    assert "guessed" not in told


def test_a_slip_in_a_column_of_numbers_is_named_by_its_row(learn):
    with pytest.raises(ValueError, match="row 3, column 'a': 'x' is not a number"):
        learn("a,y\n1,2\n2,3\nx,4\n4,5\n")


# Formulas, and where output may go

TEXTS = ["=1+1", "+cmd", "-x", "@sum", "\tx", "\rx", "-1.5", "+2e3", "-1,5", "a=b", "", "'=1"]
ESCAPED = ["'=1+1", "'+cmd", "'-x", "'@sum", "'\tx", "'\rx", "-1.5", "+2e3", "-1,5", "a=b", None, "'=1"]


def test_formulas_are_escaped_when_asked_and_never_else(tmp_path):
    model = spngp.GPRegressor(hyperparameters="fixed")
    model.fit(pa.table({"a": [0.0, 1.0, 2.0]}), np.array([0.0, 1.0, 0.0])).save(tmp_path / "m.spngp")
    with TableWriter.open(tmp_path / "new.csv") as writer:
        writer.write(pa.record_batch({"=id": TEXTS, "a": [1.0] * len(TEXTS)}))
    predict = ["predict", tmp_path / "m.spngp", tmp_path / "new.csv", "-o", tmp_path / "p.csv"]
    assert run(*predict)[0] == 0
    table = Source(tmp_path / "p.csv").table()
    assert table.column("=id").to_pylist() == [text or None for text in TEXTS]
    assert run(*predict, "--escape-formulas")[0] == 0
    escaped = Source(tmp_path / "p.csv").table()
    assert escaped.column("'=id").to_pylist() == ESCAPED
    assert escaped.column("y_mean") == table.column("y_mean")
    code, _, told = run(*predict[:-1], tmp_path / "p.parquet", "--escape-formulas")
    assert (code, told) == (2, f"spngp: only CSV has formulas to escape, got '{tmp_path / 'p.parquet'}'\n")


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_is_told_with_the_name_of_the_output(tmp_path, name):
    (tmp_path / name).symlink_to("/dev/full")
    batch = pa.record_batch({"y": np.arange(100_000.0)})
    with pytest.raises(OSError, match="No space left on device") as caught, TableWriter.open(tmp_path / name) as writer:
        writer.write(batch)
    assert caught.value.filename == str(tmp_path / name)


def test_fit_and_predict_say_the_same_of_a_folder_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.csv").write_text("a,y\n1,2\n2,3\n")
    spngp.GPRegressor(hyperparameters="fixed").fit([[0.0], [1.0]], [0.0, 1.0]).save("m.spngp")
    told = [
        run("fit", "d.csv", "-t", "y", "-o", "nowhere/x.csv"),
        run("predict", "m.spngp", "d.csv", "-o", "nowhere/x.csv"),
    ]
    assert told[0] == told[1] == (2, "", "spngp: nowhere: No such directory; make it first\n")
