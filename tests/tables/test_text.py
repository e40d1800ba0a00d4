"""Texts of a table: what is missing, decimal marks, quotes and length, columns nobody declared, formulas."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import spngp
from spngp.cli.app import app
from spngp.tables.reading import Source
from spngp.tables.schema import Declaration, learn_schema
from spngp.tables.undeclared import UndeclaredColumns
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
        inputs = learn_schema(Declaration(["y"], **declared), table, reader).inputs(table, reader)
        return np.asarray(inputs).tolist(), inputs.schema.names

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


def test_na_is_a_category_and_an_empty_field_is_missing(learn):
    text = 'land,y\nNA,1\n"NA",2\nDE,3\nDE,4\nDE,5\n{},6\n'
    inputs, names = learn(text.format("null"), one_hot=["land"])
    assert names == ["land=DE", "land=NA", "land=null"]
    assert inputs[0] == inputs[1] == [0.0, 1.0, 0.0]
    with pytest.raises(ValueError, match=r"missing values in 'land' \(1\), first in row 6"):
        learn(text.format(""), one_hot=["land"])
    with pytest.raises(ValueError, match=r"'NA' is none of its categories, DE, FR; a missing value is an empty field"):
        learn(text.format("FR"), ordinal={"land": ["DE", "FR"]})


def test_numbers_and_dates_may_be_missing_in_many_spellings(learn):
    rows = "".join(f'"{spelling}"," {spelling}",1\n' for spelling in MISSING)
    text = f"a,when,y\n1,1970-01-02,1\n3,1970-01-04,2\n{rows}"
    inputs, _ = learn(text, dates={"when": []}, impute=True)
    assert inputs == [[1.0, 1.0], [3.0, 3.0]] + [[1.0, 1.0]] * len(MISSING)
    with pytest.raises(ValueError, match=rf"'a' \({len(MISSING)}\), 'when' \({len(MISSING)}\), first in row 3"):
        learn(text, dates={"when": []})
    inputs, _ = learn("d,y\n02.01.1970,1\nNA,2\n", dates={"d": []}, date_format="%d.%m.%Y", impute=True)
    assert inputs == [[1.0], [1.0]]
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


def test_texts_that_are_too_long_are_refused(learn, tmp_path):
    for long, message in (
        ("k" * 1001, r"row 2, column 'c': 'kkk.*\.\.\. has 1,001 characters, a category at most 1,000; shorten it"),
        ("k" * 3_000_000, "line 3: a field has more than 131,072 characters, or a quote is never closed"),
        ("k" * 5_000_000, "line 3 has more than 4,194,304 characters"),
    ):
        with pytest.raises(ValueError, match=message):
            learn(f'c,y\nk,1\n"{long}",2\nk,3\n', one_hot=["c"])
    table, reader = pa.table({"c": ["k", "k" * 3_000_000], "y": [1, 2]}), Reader("data")
    with pytest.raises(ValueError, match=r"row 2, column 'c': .* has 3,000,000 characters") as caught:
        learn_schema(Declaration(["y"], one_hot=["c"]), table, reader)
    assert len(str(caught.value)) < 200
    schema = learn_schema(Declaration(["y"], one_hot=["c"]), table.slice(0, 1), reader)
    with pytest.raises(ValueError, match="is none of its categories, k") as caught:
        schema.inputs(table, reader)
    assert len(str(caught.value)) < 200


def test_quotes(learn):
    inputs, names = learn('c,y\n"a\nb",1\n"say ""x""",2\n5" pipe,3\n"a" ,4\n', one_hot=["c"])
    assert names == ["c=" + text for text in ('5" pipe', "a", "a\nb", 'say "x"')]
    assert np.argmax(inputs, axis=1).tolist() == [2, 3, 0, 1]
    with pytest.raises(ValueError, match="line 3: a quote is opened and never closed"):
        learn('c,y\na,1\nb,"2\nc,3\n', one_hot=["c"])
    with pytest.raises(ValueError, match="line 5: 1 fields where the header has 2"):
        learn('c,y\n"a\nb",1\n\nc\n', one_hot=["c"])


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
            reader.dates(table, name, ["days"], None)


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


def test_all_undeclared_columns_are_told_at_once_with_options_to_paste(tmp_path):
    with TableWriter.open(tmp_path / "d.csv") as writer:
        writer.write(MIXED.to_batches()[0])
    fit = ["fit", tmp_path / "d.csv", "-t", "y", "--hyperparameters", "fixed", "-o", tmp_path / "m.spngp"]
    code, _, told = run(*fit)
    assert code == 2
    assert told == (
        f"spngp: {tmp_path / 'd.csv'}: columns 'city', 'when', 'the note', 'kind' do not hold numbers; declare them: "
        "--one-hot city,kind --date when --id 'the note' (guessed from the values)\n"
    )
    assert run(*fit, "--one-hot", "city,kind", "--date", "when", "--id", "the note")[0] == 0


def test_undeclared_columns_in_python():
    def refused(table, **declared) -> UndeclaredColumns:
        with pytest.raises(UndeclaredColumns) as caught:
            learn_schema(Declaration(["y"], **declared), table, Reader("t"))
        return caught.value

    error = refused(MIXED)
    assert error.roles == {"city": "one-hot", "when": "date", "the note": "id", "kind": "one-hot"}
    error = refused(MIXED, one_hot=["city", "kind"], dates={"when": []})
    assert str(error) == (
        "t: column 'the note' does not hold numbers; declare it: --id 'the note' (guessed from the values)"
    )
    error = refused(MIXED, features=["a", "the note", "city"])
    assert str(error).endswith(
        "declare them: --one-hot city; leave out of the features: 'the note' (guessed from the values)"
    )
    typed = pa.table(
        {
            "moment": pa.array([0, 1, 2], pa.timestamp("s")),
            "list": [[1], [2], [3]],
            "coded": pa.array(["u", "v", "u"]).dictionary_encode(),
            "german": ["01.02.2024", "31.12.2024", None],
            "y": [1.0, 2.0, 3.0],
        }
    )
    roles = {"moment": "date", "list": "id", "coded": "one-hot"}
    assert refused(typed).roles == {**roles, "german": "id"}
    assert refused(typed, date_format="%d.%m.%Y").roles == {**roles, "german": "date"}
    coded = pa.table({"day": pa.array(["1970-01-02"] * 3).dictionary_encode(), "y": [1.0, 2.0, 3.0]})
    assert refused(coded).roles == {"day": "date"}
    assert Reader("t").dates(coded, "day", ["days"], None).tolist() == [[1.0]] * 3


def test_names_that_options_cannot_hold_are_told_as_toml(tmp_path):
    table = MIXED.select(["a", "city", "when", "y"]).rename_columns(["a", "city, town", "when=", "y"])
    with TableWriter.open(tmp_path / "d.csv") as writer:
        writer.write(table.to_batches()[0])
    fit = ["fit", tmp_path / "d.csv", "-t", "y", "--hyperparameters", "fixed", "-o", tmp_path / "m.spngp"]
    told = run(*fit)[2]
    advice = 'one-hot = ["city, town"], date = { "when=" = ["days"] }'
    assert f"declare them: in a file for --config, {advice} (guessed" in told
    (tmp_path / "c.toml").write_text(advice.replace("], date", "]\ndate"))
    assert run(*fit, "--config", tmp_path / "c.toml")[0] == 0


def test_a_slip_in_a_column_of_numbers_is_named_by_its_row(learn):
    with pytest.raises(ValueError, match="row 3, column 'a': 'x' is not a number") as caught:
        learn("a,y\n1,2\n2,3\nx,4\n4,5\n")
    assert not isinstance(caught.value, UndeclaredColumns)


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
