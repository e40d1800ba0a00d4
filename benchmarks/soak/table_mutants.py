"""Tables and files of settings that are not what was written, given to the command line in this process."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_FIT = ["--hyperparameters", "fixed", "--jobs", "1", "--no-holdout", "-o", "m.spngp", "--force"]
_FIELDS = ["", "NA", "nan", "inf", "-inf", "1e999", "1e-999", "9" * 400, "0x1F", "1_000", "1,5", "=1+1", '"', '"a', "é"]
_FIELDS += ["\x00", "\x1b[2J", "2024-02-30", "2024-01-01T00:00:00Z", "TRUE", "a\nb", "'", "\ufeff", "a" * 200_000, "٣"]
_BYTES = [b'"', b",", b";", b"\n", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\t", b"PAR1", b"\x80\x05."]
_VALUES = ["-1", "0", "1e999", "nan", "true", '"a"', "[]", "[[]]", "{}", "9" * 30, "1979-05-27", "''", "[" * 3000]
_VALUES += ["{a = {b = 1}}", '"\\ud800"', "0.5", "inf", "[1, 'a']", '"""', "1_000"]
_TOML = """\
target = "y"
features = ["a", "when", "size", "b"]
category = "b"
max-leaf-size = 20
overlap = 0.5
seed = 3
structure = "compact"
noise_shape = "gaussian"
date_format = "%Y-%m-%d"
[date]
when = ["days"]
[ordinal]
size = ["S", "M", "L"]
"""


def write_honest(folder: Path) -> None:
    """A small table in three forms, a model of it, and settings."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    rng = np.random.default_rng(3)
    days = np.datetime64("2024-01-01") + rng.integers(300, size=40)
    a, size, b = rng.normal(size=40).round(4), rng.choice(["S", "M", "L"], 40), rng.choice(["x", "y, z", "é"], 40)
    columns = {"a": a, "when": days.astype(str), "size": size, "b": b, "y": (a + rng.normal(size=40)).round(4)}
    table = pa.table(columns)
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes(), mtime=0))
    pq.write_table(table, folder / "rows.parquet", row_group_size=15)
    (folder / "fit.toml").write_text(_TOML, encoding="utf-8")
    here = Path.cwd()
    os.chdir(folder)
    try:
        code, told = run_command("fit", "rows.csv", "--config", "fit.toml", *_FIT)
        assert code == 0, told
    finally:
        os.chdir(here)


@cache
def _command_line() -> Any:
    """All commands; Typer evaluates their annotations when it makes them, so that is done once."""
    import typer.main

    from spngp.cli.app import app

    return typer.main.get_command(app)


def run_command(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it wrote to standard error."""
    told = io.StringIO()
    with redirect_stderr(told), redirect_stdout(io.StringIO()):
        try:
            _command_line().main(list(arguments))
        except SystemExit as ended:
            return int(ended.code or 0), told.getvalue()
    raise AssertionError("a command must exit")


def text_mutant(whole: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """CSV with other fields, lines, bytes or another encoding."""
    lines = whole.split(b"\n")
    at = int(rng.integers(len(lines) - 1))
    way = str(rng.choice(["field", "field", "field", "byte", "flip", "line", "cut", "encoding", "wide", "header"]))
    if way in ("field", "header"):
        at = 0 if way == "header" else at
        fields = lines[at].split(b",")
        value = str(rng.choice(_FIELDS)) if way == "field" else str(rng.choice([*_FIELDS, "a", "y", "a" * 300_000]))
        fields[rng.integers(len(fields))] = value.encode()
        lines[at] = b",".join(fields)
        return b"\n".join(lines), f"{way} {value[:40]!r} in line {at}"
    if way == "line":
        other = lines[rng.integers(len(lines))]
        lines[at] = [other, b"", other + b"," + other, b"\xff" * 30, b'"' + other][rng.integers(5)]
        return b"\n".join(lines), f"line {at}"
    if way == "wide":
        return whole.replace(b"\n", b"," * int(10 ** rng.uniform(0, 4)) + b"\n"), way
    if way == "encoding":
        codec = str(rng.choice(["utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7", "utf-8-sig"]))
        return whole.decode().encode(codec), codec
    return _any_bytes(whole, way, rng), way


def _any_bytes(whole: bytes, way: str, rng: np.random.Generator) -> bytes:
    if way == "flip":
        changed = np.frombuffer(whole, np.uint8).copy()
        at = rng.integers(changed.size, size=int(2 ** rng.integers(6)))
        changed[at] ^= (1 << rng.integers(8, size=at.size)).astype(np.uint8)
        return changed.tobytes()
    start, stop = sorted(rng.integers(len(whole) + 1, size=2).tolist())
    if way == "byte":
        return whole[:start] + _BYTES[rng.integers(len(_BYTES))] + whole[start:]
    return [whole[:start], whole[start:], whole[:start] + whole[stop:], whole[:stop] + whole[start:]][rng.integers(4)]


def packed_mutant(whole: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """A compressed CSV: damaged, with a damaged text in it, or one that unpacks to far more than it is."""
    way = str(rng.choice(["flip", "cut", "byte", "inside", "inside", "bomb"]))
    if way == "inside":
        text, told = text_mutant(gzip.decompress(whole), rng)
        return gzip.compress(text, 1), f"inside: {told}"
    if way == "bomb":
        filler = [b"0" * 20_000_000, b"0,0,0,0,0\n" * 200_000][rng.integers(2)]
        return gzip.compress(gzip.decompress(whole) + filler, 1), way
    return _any_bytes(whole, way, rng), way


def parquet_mutant(whole: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Parquet with damaged bytes, or with columns of other types."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    way = str(rng.choice(["flip", "cut", "byte", "end", "column", "column", "rows"]))
    if way == "end":  # of the file, where its description is
        at = len(whole) - int(rng.integers(4, 400))
        return whole[:at] + rng.bytes(int(rng.integers(1, 9))) + whole[at + 1 :], way
    if way not in ("column", "rows"):
        return _any_bytes(whole, way, rng), way
    table = pq.read_table(pa.BufferReader(whole))
    if way == "rows":
        table = [table.slice(0, 0), table.slice(3, 1), pa.concat_tables([table] * 3), table.select([])][rng.integers(4)]
    else:
        place, n = int(rng.integers(table.num_columns)), table.num_rows
        kinds: dict[str, Callable[[], Any]] = {
            "null": lambda: pa.nulls(n),
            "list": lambda: pa.array([[1.0]] * n),
            "struct": lambda: pa.array([{"a": 1}] * n),
            "bytes": lambda: pa.array([b"\xff\xfe"] * n),
            "huge": lambda: pa.array([2**62] * n),
            "unsigned": lambda: pa.array([2**64 - 1] * n, pa.uint64()),
            "infinite": lambda: pa.array([np.inf] * n),
            "bool": lambda: pa.array([True, None] * (n // 2)),
            "duration": lambda: pa.array([3] * n, pa.duration("ns")),
            "timestamp": lambda: pa.array([2**62] * n, pa.timestamp("ns")),
            "date": lambda: pa.array([2**30] * n, pa.date32()),
            "decimal": lambda: pa.array([10**30] * n, pa.decimal128(38)),
            "dictionary": lambda: pa.array(["S"] * n).dictionary_encode(),
            "half": lambda: pa.array(np.ones(n, np.float16)),
            "twice": lambda: table.column(0),
        }
        kind = str(rng.choice(list(kinds)))
        name = table.column_names[place] if kind != "twice" else table.column_names[0]
        table, way = table.set_column(place, name, kinds[kind]()), f"{name} is {kind}"
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue(), way


def toml_mutant(whole: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Settings with other values, names, bytes, or deep ones."""
    lines = whole.split(b"\n")
    at = int(rng.integers(len(lines) - 1))
    way = str(rng.choice(["value", "value", "value", "name", "flip", "byte", "cut", "line"]))
    name, _, value = lines[at].partition(b" = ")
    if way == "value":
        value = _VALUES[rng.integers(len(_VALUES))].encode()
        lines[at] = name + b" = " + value
    elif way == "name":
        lines[at] = str(
            rng.choice(["margin", "a.b.c", "jobs", "id", "weight", "x" * 5000, ".".join("a" * 3000)])
        ).encode()
        lines[at] += b" = " + value
    elif way == "line":
        lines[at] = lines[rng.integers(len(lines))]
    else:
        return _any_bytes(whole, way, rng), way
    return b"\n".join(lines), f"{way}: {lines[at][:80]!r}"


KINDS: dict[str, tuple[str, Callable[[bytes, np.random.Generator], tuple[bytes, str]]]] = {
    "CSV": ("rows.csv", text_mutant),
    "CSV, packed": ("rows.csv.gz", packed_mutant),
    "Parquet": ("rows.parquet", parquet_mutant),
    "TOML": ("fit.toml", toml_mutant),
}


def cases(job: dict[str, Any], folder: Path, told: list[str]) -> Callable[[int], Iterator[str]]:
    """Mutants of a kind, each given to ``spngp predict`` or ``spngp fit``."""
    os.chdir(folder)
    honest = Path(job["honest"])
    name, mutant = KINDS[job["model"]]
    whole = (honest / name).read_bytes()
    given = name.replace("rows", "mutant").replace("fit", "mutant")

    def case(number: int) -> Iterator[str]:
        rng = np.random.default_rng([job["seed"], job["place"], number])
        changed, what = (whole, "honest") if job["kind"] == "none" else mutant(whole, rng)
        Path(given).write_bytes(changed)
        if job["model"] == "TOML":
            command = ["fit", str(honest / "rows.csv"), "--config", given, *_FIT]
        elif number % 3:
            command = ["predict", str(honest / "m.spngp"), given, "-o", "out.csv", "--force"]
        else:
            command = ["fit", given, "--config", str(honest / "fit.toml"), *_FIT]
        told[0] = f"{command[0]}: {what}"
        code, said = run_command(*command)
        lines = said.splitlines()
        assert code in (0, 2), f"exit code {code}: {said[-300:]}"
        if code == 2:
            notes = ("warning: ", ": taken as missing in every row", ": guessed --", ": left out, as ")
            assert len([line for line in lines if not any(note in line for note in notes)]) == 1, said[-300:]
        assert len(lines) < 20, said[-300:]
        assert all(len(line) < 1000 for line in lines), f"a message of {len(said)} characters: {said[:300]}"
        yield "refused" if code else "of use"

    return case
