"""Tables from files to numbers: dialects, columns that are no numbers, and errors that say where."""

from __future__ import annotations

import datetime
import gzip
import io
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from spngp.tables.reading import Source
from spngp.tables.schema import Declaration, TableColumn, learn_schema, schema_of
from spngp.tables.values import Reader
from spngp.tables.writing import TableWriter


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "data.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def numbers(path: str, target: str = "y", **declared):
    """Inputs with their names, and outputs."""
    source = Source(path)
    table, reader = source.table(), Reader("data", source.decimal)
    schema = learn_schema(Declaration([target], **declared), table, reader)
    inputs = schema.inputs(table, reader)
    return np.asarray(inputs).tolist(), inputs.schema.names, schema.outputs(table, reader)[:, 0].tolist()


PLAIN = ([[1.0, 2.0], [3.0, 4.5]], ["a", "b"], [10.0, 20.0])


@pytest.mark.parametrize(
    "content",
    [
        "a,b,y\n1,2,10\n3,4.5,20\n",
        "a,b,y\r\n1,2,10\r\n3,4.5,20",
        "\ufeffa,b,y\n1,2,10\n3,4.5,20\n",
        "a;b;y\n1;2;10\n3;4.5;20\n",
        "a;b;y\n1;2;10\n3;4,5;20\n",
        "\ufeffa;b;y\n1,0;2;10\n3;4,5;20\n",
        "a\tb\ty\n1\t2\t10\n3\t4.5\t20\n",
        "a|b|y\n1|2|10\n3|4.5|20\n",
        '"a","b","y"\n"1","2","10"\n"3","4.5","20"\n',
        " a , b , y \n 1 , 2 , 10 \n 3 ,4.5 , 20 \n",
        "a,b,y\n1,2,10\n\n3,4.5,20\n\n",
        "a,b,y\n1,2,10\n3,4.5,20\n".encode("utf-16"),
    ],
    ids=["plain", "crlf", "bom", "semicolon", "comma", "both", "tab", "bar", "quoted", "spaces", "blank", "utf-16"],
)
def test_dialects(write, content):
    assert numbers(write(content)) == PLAIN


def test_compressed_parquet_and_standard_input(write, tmp_path, monkeypatch):
    text = b"a,b,y\n1,2,10\n3,4.5,20\n"
    assert numbers(write(gzip.compress(text), "data.csv.gz")) == PLAIN
    table = pa.table({"a": [1, 3], "b": pa.array([2, 4.5], pa.float32()), "y": [10, 20]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert numbers(str(tmp_path / "t.parquet")) == PLAIN
    for content in (text, (tmp_path / "t.parquet").read_bytes()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert numbers("-") == PLAIN


def test_a_header_in_quotes_keeps_its_delimiters(write):
    content = '"a, or so","b\nc",y\n1,2,3\n'
    with pytest.raises(ValueError, match="must have its header in one line"):
        Source(write(content)).table()
    assert Source(write('"a, or so",y\n1,3\n')).columns == ["a, or so", "y"]


def test_batches_are_bounded_and_whole(write):
    text = "a,y\n" + "".join(f"{i},{2 * i}\n" for i in range(2500))
    batches = list(Source(write(text)).batches(1000))
    assert [batch.num_rows for batch in batches] == [1000, 1000, 500]
    assert [int(value) for batch in batches for value in batch.column("a").to_pylist()] == list(range(2500))


def test_columns_that_are_not_numbers(write):
    path = write("when,size,colour,flag,y\n2024-01-01,S,red,1,1\n2024-01-02 12:00,L,blue,0,2\n1970-01-01,M,red,1,3\n")
    inputs, names, _ = numbers(
        path,
        one_hot=["colour"],
        ordinal={"size": ["S", "M", "L"]},
        dates={"when": ["days", "weekday", "hour", "year", "dayofyear"]},
    )
    assert names[:5] == ["when", "when.weekday", "when.hour", "when.year", "when.dayofyear"]
    assert names[5:] == ["size", "colour=blue", "colour=red", "flag"]
    assert inputs == [
        [19723.0, 0.0, 0.0, 2024.0, 1.0, 0.0, 0.0, 1.0, 1.0],
        [19724.5, 1.0, 12.0, 2024.0, 2.0, 2.0, 1.0, 0.0, 0.0],
        [0.0, 3.0, 0.0, 1970.0, 1.0, 1.0, 0.0, 1.0, 1.0],
    ]


@pytest.mark.parametrize("rows", ["0,250;1,125\n1;2,5", "1,250;1,125\n2,500;2,250", "1,25;1\n2,500;2"])
def test_three_decimals_after_a_comma_are_no_thousands(write, rows):
    inputs, _, _ = numbers(write(f"a;y\n{rows}\n"))
    assert inputs[0][0] == float(rows.split(";")[0].replace(",", "."))


def test_dates_in_other_forms(write, tmp_path):
    inputs, _, _ = numbers(write("d,y\n02.01.1970,1\n04.01.1970,2\n"), dates={"d": []}, date_format="%d.%m.%Y")
    assert inputs == [[1.0], [3.0]]
    inputs, _, _ = numbers(write("d,y\n1970-01-02T00:00:00Z,1\n1970-01-02T01:00:00+01:00,2\n"), dates={"d": ["days"]})
    assert inputs == [[1.0], [1.0]]
    moments = [datetime.datetime(1970, 1, 2), None, datetime.datetime(1970, 1, 4)]
    for kind in (pa.timestamp("ns"), pa.date32()):
        pa.parquet.write_table(pa.table({"d": pa.array(moments, kind), "y": [1, 2, 3]}), tmp_path / "d.parquet")
        inputs, _, _ = numbers(str(tmp_path / "d.parquet"), dates={"d": []}, impute=True)
        assert inputs == [[1.0], [1.0], [3.0]]  # the lower median is a date that was seen


def test_what_is_missing_is_refused_or_filled(write):
    path = write("a,c,y\n1,u,1\n,v,2\n5,,3\n9,v,\n")
    with pytest.raises(ValueError, match=r"missing values in 'a' \(1\), 'c' \(1\), first in row 2; --impute"):
        numbers(path, one_hot=["c"])
    inputs, names, outputs = numbers(path, one_hot=["c"], impute=True)
    assert names == ["a", "c=u", "c=v"]
    assert inputs == [[1.0, 1.0, 0.0], [5.0, 0.0, 1.0], [5.0, 0.0, 1.0], [9.0, 0.0, 1.0]]
    assert np.isnan(outputs[3])


def test_the_schema_of_a_fit_reads_later_tables(write):
    source = Source(write("c,a,y\nu,1,1\nv,2,2\n"))
    schema = learn_schema(Declaration(["y"], one_hot=["c"]), source.table(), Reader("fit"))
    later = pa.table({"other": ["x"], "a": ["7"], "c": ["v"]})
    assert np.asarray(schema.inputs(later, Reader("new"))).tolist() == [[0.0, 1.0, 7.0]]
    reader = Reader("new")
    reader.first_row = 101
    with pytest.raises(ValueError, match=r"new, row 102, column 'c': 'w' is none of its categories, u, v"):
        schema.inputs(pa.table({"a": ["7", "8"], "c": ["v", "w"]}), reader)
    with pytest.raises(ValueError, match="new has no column 'c'"):
        schema.check(["a", "y"], "new", targets=False)
    with pytest.raises(ValueError, match="missing values in 'a'"):
        schema.inputs(pa.table({"a": pa.array([None], pa.string()), "c": ["v"]}), Reader("new"))
    filled = replace(schema, impute=True).inputs(pa.table({"a": pa.array([None], pa.string()), "c": ["v"]}), reader)
    assert np.asarray(filled).tolist() == [[0.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("content", "declared", "message"),
    [
        ("", {}, "is empty"),
        ("\n1,2\n", {}, "first line is blank"),
        ("a,y\n", {}, "has a header but no rows"),
        ("a,b\n1,2\n", {}, "has no column 'y'; it has 'a', 'b'"),
        ("a,Y\n1,2\n", {"features": ["a"]}, "has no column 'y'"),
        ("age,y\n1,2\n", {"features": ["agee"]}, "has no column 'agee'; did you mean 'age'?"),
        ("a,b,a,y\n1,2,3,4\n", {}, "column 'a' stands twice in the header, as columns 1 and 3"),
        ("a,y\n1,2\n3\n", {}, "line 3: 1 fields where the header has 2"),
        ("a,y\n1,2\n3,4,5\n", {}, "line 3: 3 fields where the header has 2"),
        ("a,y\n1,2\nred,4\n", {}, "row 2, column 'a': 'red' is not a number"),
        ("a,y\n1,2\n3,?\n", {}, "row 2, column 'y': '\\?' is not a number"),
        ("a,y\n1,2\n1e999,4\n", {}, "row 2, column 'a': inf is not a finite number"),
        ("a,y\n1,2\n", {"features": ["y"]}, "column 'y' is given two roles, or twice"),
        ("a,y\n1,2\n", {"ids": ["a"]}, "has no input column beside the target"),
        ("a,b,y\n1,2,3\n", {"features": ["a"], "one_hot": ["b"]}, "column 'b' is declared but is not among the inputs"),
        ("a,y\n1,2\n", {"one_hot": ["a"], "dates": {"a": []}}, "column 'a' is given two roles"),
        ("a,y\n1,2\n", {"ordinal": {"a": ["1"]}}, "two or more different categories"),
        ("a,y\nX,2\n", {"ordinal": {"a": ["S", "M"]}}, "row 1, column 'a': 'X' is none of its categories, S, M"),
        ("a,y\n1,2\n", {"dates": {"a": ["decade"]}}, "a date becomes days, year, .* got 'decade' for column 'a'"),
        ("a,y\n2024-13-01,2\n", {"dates": {"a": []}}, "row 1, column 'a': '2024-13-01' is not a date like"),
        ("a,y\nx,2\n", {"dates": {"a": []}, "date_format": "%d.%m.%Y"}, "'x' is not a date of the form '%d.%m.%Y'"),
        (
            "a,y\n31.02.2024,2\n",
            {"dates": {"a": []}, "date_format": "%d.%m.%Y"},
            "'31.02.2024' is not a date of",
        ),
        (
            "a;y\n999;2\n1,000;3\n",
            {},
            "row 2, column 'a': the column holds '999' and '1,000', whose comma may stand for",
        ),
        ('"a\nb",y\n1,2\n', {}, "must have its header in one line: a quoted name goes on"),
        (b"gr\xf6\xdfe,y\n1,2\n", {}, "is not text in UTF-8, its header at least; save it as UTF-8"),
        ("a,y\n2024-01-01,2\n2024-01-01T00:00Z,3\n", {"dates": {"a": []}}, "mixes dates with and without an offset"),
        ("a,y\n,2\n,3\n", {"impute": True}, "column 'a' has no values"),
        (b"a,y\n1,2\n\xff,3\n", {}, "is not UTF-8 text"),
        (b"PK\x03\x04abc", {}, "is a zip archive, not CSV or Parquet"),
        (b"PAR1 no more of it", {}, "is not a whole Parquet file"),
        (b"\x00\x01\x02\x03", {}, "is neither CSV nor Parquet"),
    ],
)
def test_errors_say_what_and_where(write, content, declared, message):
    with pytest.raises(ValueError, match=message) as caught:
        numbers(write(content), **declared)
    assert len(str(caught.value).splitlines()) == 1


def test_a_gzip_file_that_is_none_and_one_that_is_cut(write):
    with pytest.raises(ValueError, match=r"data\.csv\.gz"):
        Source(write("a,y\n1,2\n", "data.csv.gz")).table()
    with pytest.raises(ValueError, match="is gzip, not CSV"):
        Source(write(gzip.compress(b"a,y\n1,2\n"), "data.csv"))
    whole = gzip.compress("".join(f"{i},{i * i}\n" for i in range(100_000)).encode())
    with pytest.raises(ValueError, match="cut"):
        Source(write(whole[:-2000], "cut.csv.gz")).table()


def test_types_of_parquet_columns(tmp_path):
    table = pa.table(
        {
            "flag": [True, False],
            "category": pa.array(["1", "2"]).dictionary_encode(),
            "money": pa.array([1, 2], pa.decimal128(10, 2)),
            "empty": pa.nulls(2),
            "when": pa.array([0, 1], pa.timestamp("s")),
            "list": [[1], [2]],
        }
    )
    reader = Reader("t")
    assert reader.numbers(table, "flag").tolist() == [1.0, 0.0]
    assert reader.numbers(table, "category").tolist() == [1.0, 2.0]
    assert reader.numbers(table, "money").tolist() == [1.0, 2.0]
    assert np.isnan(reader.numbers(table, "empty")).all()
    with pytest.raises(ValueError, match="'when' holds dates"):
        reader.numbers(table, "when")
    with pytest.raises(ValueError, match="'list' holds list"):
        reader.numbers(table, "list")


def test_models_fitted_in_python_take_tables_too():
    class Named:
        n_features_in_, n_outputs_, feature_names_in_ = 2, 1, np.array(["a", "b"], dtype=object)

    class Unnamed:
        n_features_in_, n_outputs_ = 2, 1

    named = schema_of(Named(), ["b", "a", "y"], "t")
    assert named.columns == (TableColumn("a"), TableColumn("b"))
    assert named.targets == ("y",)
    with pytest.raises(ValueError, match="t has the columns 'y', 'id' beside the inputs; a model fitted in"):
        schema_of(Named(), ["b", "a", "y", "id"], "t")
    assert schema_of(Named(), ["b", "a", "id"], "t", targets=False).targets == ()  # not what is predicted
    assert schema_of(Unnamed(), ["p", "q", "r"], "t").input_names == ["p", "q"]
    assert schema_of(Unnamed(), ["p", "q"], "t").targets == ()
    with pytest.raises(ValueError, match="has 4 columns; the model was fitted without names and needs its 2 inputs"):
        schema_of(Unnamed(), ["p", "q", "r", "s"], "t")


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_written_tables_are_whole_or_not_there(tmp_path, name):
    path = tmp_path / name
    batch = pa.RecordBatch.from_pydict({"id, or so": ["007", None], "y": [0.1, np.inf]})
    with TableWriter.open(path) as writer:
        writer.write(batch)
        writer.write(batch)
    assert writer.n_rows == 4
    before = path.read_bytes()
    table = Source(str(path)).table()
    assert table.column("id, or so").to_pylist() == ["007", None] * 2
    assert [float(value) for value in table.column("y").to_pylist()] == [0.1, np.inf] * 2

    def fail():
        with TableWriter.open(path) as writer:
            writer.write(batch)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ValueError, match=r"must be a \.csv or \.parquet file"), TableWriter.open(tmp_path / "x.txt"):
        pass


def test_text_is_written_some_rows_at_a_time(tmp_path):
    values = np.random.default_rng(0).standard_normal((3000, 100))
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in values.T], names=[f"c{j}" for j in range(100)])
    tracemalloc.start()
    try:
        with TableWriter.open(tmp_path / "out.csv") as writer:
            writer.write(batch)
            writer.write(batch.slice(0, 0))
            writer.write(batch.slice(7, 1))
        assert tracemalloc.get_traced_memory()[1] < 10e6  # it was 16 MB
    finally:
        tracemalloc.stop()
    written = np.genfromtxt(tmp_path / "out.csv", delimiter=",", names=True)
    assert written.dtype.names == tuple(batch.schema.names)
    found = np.array(written.tolist())
    np.testing.assert_array_equal(found[:-1], values)
    np.testing.assert_array_equal(found[-1], values[7])
