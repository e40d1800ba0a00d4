"""The header of a model file: small, read in proportion to its size, and nothing but what a header can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import spngp
from spngp import SPNGPRegressor
from spngp.io import ModelFileError
from spngp.io.header import largest_header, read_header, write_header
from spngp.io.tensors import TensorFile, checksum, write

MEGABYTE = 1_000_000

# For each file, as it is and then made so large that its header could be that of a model: by how many bytes the process
# grew beyond its largest size so far, and what was said.
_OPENING = """
import json, os, resource, sys
import spngp.io
def most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
for factor in (1, 5):
    for path in sys.argv[1:]:
        os.truncate(path, factor * os.path.getsize(path))
        before = most()
        try:
            spngp.load(path)
        except spngp.io.ModelFileError as error:
            print(json.dumps([most() - before, str(error)]))
"""


def run(code, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(spngp.__file__))}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def write_hostile(path, header, size=0):
    """A file with this header and nothing, or nothing but zeros, after it."""
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(max(size, file.tell()))


def entries(length):
    """So many bytes of entries without fault, for arrays of no size."""
    entry = ':{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    return ",".join(f'"{i:07x}"{entry}' for i in range(length // (len(entry) + 10))).encode()


HOSTILE = {
    "lists": b'{"a":[' + b"[]," * (20 * MEGABYTE // 3) + b"[]]}",
    "metadata": b'{"__metadata__":{"a":[' + b"[]," * (20 * MEGABYTE // 3) + b"[]]}}",
    "depth": b'{"a":' * (4 * MEGABYTE) + b"1" + b"}" * (4 * MEGABYTE),
    "entries": b"{" + entries(20 * MEGABYTE) + b"}",
}


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="the module resource is POSIX's")
def test_hostile_headers_of_20_megabytes(tmp_path):
    paths = [tmp_path / name for name in HOSTILE]
    for path in paths:
        write_hostile(path, HOSTILE[path.name])
    found = [json.loads(line) for line in run(_OPENING, *paths).splitlines()]
    for path, (needed, error), (needed_if_larger, error_if_larger) in zip(
        paths, found[: len(paths)], found[len(paths) :], strict=True
    ):
        size = len(HOSTILE[path.name])
        assert size > 19 * MEGABYTE
        assert error.startswith(f"{path} is not a spngp model, or is damaged: its header has {size:,} of its")
        assert needed < 5 * MEGABYTE, path.name  # it is not even read
        assert error_if_larger == f"{path} is damaged: its header does not hold what was written"
        # the bytes and the text of the header; entries without fault take memory as well
        assert needed_if_larger < (9 if path.name == "entries" else 2.5) * size, path.name


@pytest.mark.parametrize(
    "header",
    [
        b'{"a":1}',
        b'{"a":[]}',
        b'{"a":{}}',
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}',
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},}',
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}} x',
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
        b'{"a":{"dtype":"U8","shape":[-1],"data_offsets":[1,0]}}',
        b'{"a":{"dtype":"U8","shape":"12","data_offsets":[0,2]}}',
        b'{"a":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}}',
        b'{"a":{"dtype":"F65","shape":[0],"data_offsets":[0,0]}}',
        b'{"a":{"dtype":["U8"],"shape":[0],"data_offsets":[0,0]}}',
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}}',
        b'{a:{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}',
        b'{"__metadata__":[]}',
        b'{"__metadata__":{"spngp":3}}',
        b'{"__metadata__":{"spngp":"3"}}',
        b'{"__metadata__":{"spngp":"[1]"}}',
        b'{"a":' + b"[" * 900 + b"]" * 900 + b"}",
        b"{" * 60_000,
    ],
)
def test_what_is_no_header(header, tmp_path):
    write_hostile(tmp_path / "m", header)
    with pytest.raises(ModelFileError, match="m is damaged: its header does not hold what was written"):
        spngp.load(tmp_path / "m")


def test_arrays_must_follow_each_other_without_gaps_or_overlaps(tmp_path):
    one, two = (
        '"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}',
        '"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}',
    )
    for described in (f"{{{one},{two}}}", f"{{{two}}}"):
        write_hostile(tmp_path / "m", described.encode(), 8 + len(described) + 8 - 2 * (one not in described))
        with pytest.raises(ModelFileError, match="m is damaged: its header"):
            TensorFile(tmp_path / "m")


def test_space_between_entries_is_allowed():
    text = (
        b' \n{ "__metadata__" : {"spngp" : "{}"} ,\n"\\u00fc" : {"dtype":"F64","shape":[2], "data_offsets":[0,16]} } '
    )
    metadata, found = read_header(text[2:])
    assert metadata == {"spngp": "{}"}
    assert list(found) == ["ü"]
    assert (found["ü"].start, found["ü"].stop) == (8 + len(text) - 2, 24 + len(text) - 2)


def test_what_is_written_is_read(tmp_path):
    arrays = {
        "ü{}": np.arange(6.0).reshape(2, 3),
        "none": np.empty((0, 4)),
        "one": np.array(True),
        "bytes": np.uint8([7]),
    }
    write(tmp_path / "m", arrays, {"schema": 1})
    file = TensorFile(tmp_path / "m")
    assert file.metadata == {"schema": 1}
    for name, array in arrays.items():
        assert np.array_equal(file.array(name), array)
        assert file.array(name).shape == array.shape
        assert file.array(name).ctypes.data % array.dtype.itemsize == 0


def test_a_header_that_could_not_be_read_again_is_not_written():
    few = {f"{i}": np.empty(0) for i in range(20_000)}
    with pytest.raises(ValueError, match=r"^the header of a model file must have at most [\d,]+ bytes, got 1,"):
        write_header(few, {})


def test_the_header_of_a_model_is_small_for_its_size(tmp_path):
    rows = np.random.default_rng(0).standard_normal((3000, 2))
    model = SPNGPRegressor(max_leaf_size=135, hyperparameters="fixed", overlap=0.2, memory_limit=1e-3)
    model.fit(rows, np.sin(rows.sum(axis=1))).save(tmp_path / "m", with_factors=True)
    size = (tmp_path / "m").stat().st_size
    length = int.from_bytes((tmp_path / "m").read_bytes()[:8], "little")
    assert (
        len(TensorFile(tmp_path / "m").layout()) > 100
    )  # most of them not much larger than an array of its own must be
    assert length < 0.5 * largest_header(size)


_CHECKING = """
import resource, sys
from spngp.io.tensors import TensorFile
file = TensorFile(sys.argv[1])
file.checksums = {"a": int(sys.argv[2])}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
file.check_all()
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems count and release memory otherwise")
def test_checking_a_large_file_does_not_keep_it_in_memory(tmp_path):
    zeros = np.zeros(12 * MEGABYTE)
    write(tmp_path / "m", {"a": zeros}, {})
    assert int(run(_CHECKING, tmp_path / "m", checksum(zeros))) < zeros.nbytes / 4


def entries_of(text):
    try:
        metadata, found = read_header(text)
    except (ValueError, KeyError, TypeError):
        return "refused"
    return metadata, {name: (e.dtype, e.shape, e.start - len(text), e.stop - len(text)) for name, e in found.items()}


def test_the_pattern_reads_what_the_parser_reads():
    """A space after a colon makes an entry one for the parser: whatever is changed, both must say the same."""
    rng = np.random.default_rng(0)
    arrays = {"a": np.zeros((3, 2)), "b c": np.zeros(0, dtype=np.int64), "é": np.zeros((), dtype=np.uint8)}
    honest = write_header(arrays, {"k": "v"}).decode().rstrip()
    assert entries_of(honest.encode())[1].keys() == arrays.keys()
    refused = 0
    for _ in range(2000):
        text = list(honest)
        for place in rng.integers(0, len(text), rng.integers(0, 3)):
            text[place] = str(rng.choice(list('0159-.",:[]{}\\ eF')))
        changed = "".join(text)
        spaced = changed.replace('":{"dtype"', '": {"dtype"')
        found = entries_of(changed.encode())
        refused += found == "refused"
        assert found == entries_of(spaced.encode()), changed
    assert 200 < refused < 2000
