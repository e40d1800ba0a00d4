"""Tables from files to numbers: dialects, columns that are no numbers, and errors that say where."""

from __future__ import annotations

import datetime
import gzip
import io
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from spngp.columns import learn_columns
from spngp.tables.reading import Source
from spngp.tables.schema import Declaration, TableSchema, absent_columns, learn_table, schema_of, typed_inputs
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
    declaration = Declaration([target], **declared)
    typed = learn_table(declaration, table, reader).inputs
    outputs = TableSchema((target,)).outputs(table, reader)
    columns = learn_columns(typed, outputs, declaration.orders_and_parts)
    return columns.encode(typed).tolist(), columns.input_names, outputs[:, 0].tolist()


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
        categories=["colour"],
        ordinal={"size": ["S", "M", "L"]},
        dates={"when": ["days", "weekday", "hour", "year", "dayofyear"]},
    )
    assert names[:5] == ["when", "when.weekday", "when.hour", "when.year", "when.dayofyear"]
    assert names[5:] == ["size", "colour", "flag"]
    assert inputs == [
        [19723.0, 0.0, 0.0, 2024.0, 1.0, 0.0, 2.0, 1.0],
        [19724.5, 1.0, 12.0, 2024.0, 2.0, 2.0, 0.0, 0.0],
        [0.0, 3.0, 0.0, 1970.0, 1.0, 1.0, 2.0, 1.0],
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
        inputs, names, _ = numbers(str(tmp_path / "d.parquet"), dates={"d": []})
        assert names == ["d", "d missing"]
        assert inputs == [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]


def test_what_is_missing_is_told_apart(write):
    inputs, names, outputs = numbers(write("a,c,y\n1,u,1\n,v,2\n5,,3\n9,v,\n"), categories=["c"])
    assert names == ["a", "a missing", "c"]
    assert [row[:2] for row in inputs] == [[1.0, 0.0], [5.0, 1.0], [5.0, 0.0], [9.0, 0.0]]
    codes = [row[2] for row in inputs]
    assert codes[1] == codes[3]
    assert len(set(codes)) == 3  # one for rows without a level
    assert np.isnan(outputs[3])


def test_the_columns_of_a_fit_read_later_tables(write):
    source = Source(write("c,a,y\nu,1,1\nv,2,2\n"))
    typed = learn_table(Declaration(["y"]), source.table(), Reader("fit")).inputs
    columns = learn_columns(typed, np.array([[1.0], [2.0]]))

    def later(**values):
        batch = pa.table(values).to_batches()[0]
        return columns.encode(typed_inputs(columns, batch, Reader("new"), TableSchema(("y",)), columns.names))

    assert later(other=["x"], a=["7"], c=["v"]).tolist() == [[2.0, 7.0]]
    assert later(a=["7"], c=["w"]).tolist() == [[1.0, 7.0]]  # the code of unseen levels, in the middle
    assert later(a=["7"]).tolist() == [[1.0, 7.0]]
    assert np.isnan(later(a=pa.array([None], pa.string()), c=["v"])).tolist() == [[False, True]]
    with pytest.raises(ValueError, match="new, row 1, column 'a': 'x' is not a number"):
        later(a=["x"], c=["v"])
    assert absent_columns(["c", "a"], ["a", "y"], "new") == ["c"]
    with pytest.raises(ValueError, match="new has no column 'price'; did you mean 'prices'"):
        absent_columns(["price", "a"], ["a", "prices"], "new")
    with pytest.raises(ValueError, match="new has no column 'c'; it has 'y'"):
        absent_columns(["c", "a"], ["y"], "new")


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
        ("a,y\n1,2\n", {"features": ["y"]}, "column 'y' is the target and no input; leave it out of the features"),
        ("a,b,y\n1,2,3\n", {"features": ["a", "a"]}, "column 'a' is given two roles, or twice"),
        ("a,y\n1,2\n", {"ids": ["a"]}, "has no input column beside the target"),
        (
            "a,b,y\n1,2,3\n",
            {"features": ["a"], "categories": ["b"]},
            "column 'b' is declared but is not among the inputs",
        ),
        ("a,y\n1,2\n", {"categories": ["a"], "dates": {"a": []}}, "column 'a' is given two roles"),
        ("a,y\n1,2\n", {"ordinal": {"a": ["1"]}}, "two or more different levels"),
        ("a,y\nX,2\n", {"ordinal": {"a": ["S", "M"]}}, "column 'a', row 0: 'X' is none of its levels, S, M"),
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
        ("a,y\n,2\n,3\n", {}, "column 'a' has no values; leave it out"),
        ("a,b,y\n1,x,2\nu,2,3\n3,3,4\n", {}, "column 'a': 'u' is not a number .*; data, row 1, column 'b': 'x' is not"),
        ("a,y\n31.05.2024,1\n2024-06-01,2\n1.7.2024,3\n", {}, "'31.05.2024' is not a date like .* --date-format says"),
        (b"a,y\n1,2\n\xff,3\n", {}, "is not UTF-8 text"),
        (
            ",".join(f"c{i}" for i in range(10_002)) + ",y\n" + "1," * 10_002 + "2\n",
            {},
            "data has 10,002 columns, 10,000",
        ),
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

    named, names = schema_of(Named(), ["b", "a", "y"], "t")
    assert names == ["a", "b"]
    assert named.targets == ("y",)
    with pytest.raises(ValueError, match="t has the columns 'y', 'id' beside the inputs; a model fitted in"):
        schema_of(Named(), ["b", "a", "y", "id"], "t")
    assert schema_of(Named(), ["b", "a", "id"], "t", targets=False)[0].targets == ()  # not what is predicted
    assert schema_of(Unnamed(), ["p", "q", "r"], "t") == (TableSchema(("r",)), ["p", "q"])
    assert schema_of(Unnamed(), ["p", "q"], "t")[0].targets == ()
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


@pytest.mark.long
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


@pytest.mark.parametrize(
    "moments",
    [
        pa.array([2**30, 0], pa.date32()),
        pa.array([None, -(2**62)], pa.timestamp("us")),
        pa.array([2**62, 0], pa.duration("s")),
        pa.array([0, 1], pa.timestamp("ms", "Mars/Phobos")),
    ],
)
def test_moments_that_python_does_not_know_are_refused(moments, tmp_path):
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"when": moments}), path)
    with pytest.raises(ValueError, match=r"rows\.parquet: column 'when' holds .* years 1 to 9999 .*, got others"):
        Source(path).table()
