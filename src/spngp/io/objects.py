"""One object with all its parts in one file: a model, or a part of one."""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._version import __version__
from spngp.io.decoding import Decoder
from spngp.io.encoding import Encoder
from spngp.io.lean import Lean
from spngp.io.tensors import ModelFileError, TensorFile, checksum, write

SCHEMA = 6  # raised whenever what a record holds changes
_OLDEST = 4  # that can be opened

_DESCRIPTION = "description"  # the array of bytes that holds the text: a line about the model, then its records


_MOST_TIMES = 100  # times as long as its bytes in the file: the longest text of a description


def packed(text: str) -> NDArray[np.uint8]:
    """A description as a file holds it."""
    return np.frombuffer(zlib.compress(text.encode(), 6), dtype=np.uint8)


def unpacked(described: NDArray[np.uint8]) -> str:
    """The text of a description; one that is damaged, or longer than any of ours, is a ValueError."""
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(described.tobytes(), _MOST_TIMES * described.size)
    except zlib.error as error:
        raise ValueError(f"no description: {error}") from None
    if not unpacking.eof:
        raise ValueError(f"a description must have at most {_MOST_TIMES} times its bytes in the file")
    return text.decode()


def write_object(path: str | os.PathLike[str], value: Any, lean: Lean | None) -> None:
    """Write a model, or a part of one, to one file."""
    encoder = Encoder(lean)
    _write(path, encoder, encoder.encode(value))


def write_parts(path: str | os.PathLike[str], parts: Sequence[Any], lean: Lean | None) -> None:
    """Write several objects to one file, each of which can be read alone (:class:`Parts`)."""
    encoder = Encoder(lean)
    _write(path, encoder, [encoder.encode(part) for part in parts])


def _write(path: str | os.PathLike[str], encoder: Encoder, root: Any) -> None:
    encoder.finish()
    about = {
        "spngp": __version__,
        "model": root,
        "arrays": {
            name: [array.dtype.str, list(array.shape), checksum(array)] for name, array in encoder.tensors.items()
        },
    }
    text = "\n".join([json.dumps(about), *encoder.records])
    described = packed(text)
    metadata = {"schema": SCHEMA, "checksum": checksum(described)}
    write(path, {**encoder.tensors, _DESCRIPTION: described}, metadata)


def read_object(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """A model, or a part of one, from one file."""
    decoder, root = _opened(path, verify)
    value = decoder.decode(root)
    if verify:
        decoder.check_stored()
    return value


class Parts:
    """A file of several objects, which are made when they are asked for."""

    def __init__(self, path: str | os.PathLike[str], *, verify: bool = False) -> None:
        self._decoder, self._roots = _opened(path, verify)
        self._lock = threading.Lock()
        if type(self._roots) is not list:
            raise ModelFileError(f"{path} is a model, not a part of one")

    def __len__(self) -> int:
        return len(self._roots)

    def __getitem__(self, place: int) -> Any:
        with self._lock:
            return self._decoder.decode(self._roots[place])

    def check_stored(self) -> None:
        """Raise an error unless what is read later of the objects made so far can be used."""
        self._decoder.check_stored()


def _opened(path: str | os.PathLike[str], verify: bool) -> tuple[Decoder, Any]:
    file = TensorFile(path)
    if file.metadata is None:
        raise ModelFileError(f"{file.path} is a safetensors file, but not a spngp model")
    schema = file.metadata.get("schema")
    if type(schema) is not int or schema < 1:
        raise file.damaged("its header")
    if schema > SCHEMA:
        raise ModelFileError(
            f"{file.path} was written by a later version of spngp (schema {schema}; this one, {__version__}, reads "
            f"{SCHEMA}): update spngp"
        )
    if schema < _OLDEST:
        raise ModelFileError(
            f"{file.path} was written by an earlier version of spngp (schema {schema}; this one, {__version__}, reads "
            f"{_OLDEST} to {SCHEMA}): fit the model again"
        )
    # Everything below was written by `save`, so whatever does not fit means damage.
    try:
        described = file.array(_DESCRIPTION)
        if checksum(described) != file.metadata["checksum"]:
            raise file.damaged("its description")
        first, *records = unpacked(described).split("\n")
        about = json.loads(first)
        expected = {name: (dtype, tuple(shape)) for name, (dtype, shape, _) in about["arrays"].items()}
        if expected != {name: entry for name, entry in file.layout().items() if name != _DESCRIPTION}:
            raise file.damaged("its header")
        file.checksums = {name: total for name, (_, _, total) in about["arrays"].items()}
        if not all(type(total) is int for total in file.checksums.values()):
            raise file.damaged("its description")
        if verify:
            file.check_all()
        return Decoder(records, file), about["model"]
    except ModelFileError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise file.damaged("its description") from None
