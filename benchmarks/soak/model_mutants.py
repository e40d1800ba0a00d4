"""Model files that are not what was written: how they are made, and what a person may ask of one that can be opened.

A mutant is made from the bytes of an honest file. Kinds from ``records`` on have every checksum right: they are what a
hostile writer, or another program with a fault, would make.
"""

from __future__ import annotations

import copy
import json
import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import spngp
from spngp.io.classes import CLASSES
from spngp.io.header import write_header
from spngp.io.objects import SCHEMA, packed, unpacked
from spngp.io.tensors import TensorFile, checksum

_DESCRIPTION = "description"
OTHERS: list[Any] = [None, True, False, 0, 1, 2, -1, -7, 10**30, 0.5, -0.25, 1e300, "text", "", [], {}, [1]]
OTHERS += [[[1.0, 2.0]], {"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"tuple": []}, {"tuple": [1, 2]}]
OTHERS += [{"@": 0}, "\ud800", "\x00\x1b[2J", -0.0, 2**63]
_SIZES: list[Any] = [-1, 0, 1, 2, 3, 7, 10**6, 2**31, 2**62, 2**64, True, 1.5, "3", None]
_TYPES = ["F64", "F32", "I64", "I32", "U64", "U32", "U8", "BOOL", "F16", "", "O"]


@dataclass
class Parts:
    """A model file taken apart: its arrays, and the lines of its description as JSON values."""

    arrays: dict[str, NDArray[Any]]
    lines: list[Any]

    @staticmethod
    def of(path: str | os.PathLike[str]) -> Parts:
        """Those of a file."""
        file = TensorFile(path)
        arrays = {key: file.array(key).copy() for key in file.layout()}
        return Parts(arrays, [json.loads(line) for line in unpacked(arrays.pop(_DESCRIPTION)).split("\n")])

    def copy(self) -> Parts:
        """The same, to be changed; arrays are replaced, not changed."""
        return Parts(dict(self.arrays), copy.deepcopy(self.lines))

    def bytes(self, text: str | None = None, header: Callable[[dict[str, Any]], None] | None = None) -> bytes:
        """The file with all checksums right; ``text`` instead of its lines, ``header`` changes what the header says."""
        described = packed("\n".join(map(json.dumps, self.lines)) if text is None else text)
        arrays = {**self.arrays, _DESCRIPTION: described}
        ordered = dict(sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))
        metadata = {"spngp": json.dumps({"schema": SCHEMA, "checksum": checksum(described)})}
        told = write_header(ordered, metadata)
        if header is not None:
            entries = json.loads(told)
            header(entries)
            told = json.dumps(entries).encode("utf-8", "surrogatepass")
        return b"".join([len(told).to_bytes(8, "little"), told, *(array.tobytes() for array in ordered.values())])


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container in a JSON value with each of its keys."""
    found, stack = [], [tree]
    while stack:
        item = stack.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        found += [(item, key) for key in keys]
        stack += [item[key] for key in keys]
    return found


def mutate(lines: list[Any], rng: np.random.Generator) -> str:
    """Change one thing in one line; says what."""
    at = int(rng.integers(len(lines)))
    containers = places(lines[at])
    if not containers:
        lines[at] = []
        return f"line {at}: emptied"
    container, key = containers[rng.integers(len(containers))]
    donors = places(lines[rng.integers(len(lines))]) or containers
    donor, donor_key = donors[rng.integers(len(donors))]
    before = json.dumps(container[key])[:60]
    way = rng.choice(["delete", "rename", "other", "number", "swap", "copy", "class", "reference"])
    if way == "delete":
        del container[key]
    elif way == "rename" and isinstance(container, dict):
        container[str(rng.choice([f"{key}_", f"_{key}", "x", "__class__", "predict"]))] = container.pop(key)
    elif way == "number" and type(container[key]) in (int, float):
        number = container[key]
        others = [str(number), None, [number], -number, number + 1, number - 1, number * 10**6, -1e300, 10**400]
        container[key] = others[rng.integers(len(others))]
    elif way == "swap":
        container[key], donor[donor_key] = donor[donor_key], container[key]
        if _contains_itself(lines):  # a part was swapped with what it is in
            container[key] = None
    elif way == "copy":
        container[key] = copy.deepcopy(donor[donor_key])
    elif way == "class" and at:
        names = [*CLASSES, "list", "tuple", "dict", "slice", "strings", "Square", "Generator", "sklearn.RBF", "Popen"]
        lines[at] = [str(rng.choice(names)), *lines[at][1:]] if isinstance(lines[at], list) else lines[at]
    elif way == "reference":
        container[key] = {"@": int(rng.integers(-1, len(lines)))}
    else:
        container[key] = copy.deepcopy(OTHERS[rng.integers(len(OTHERS))])
    return f"line {at}: {way} {key!r}, {before}: now {json.dumps(lines[at])[:300]}"


def _contains_itself(lines: list[Any]) -> bool:
    try:
        json.dumps(lines)
    except ValueError:
        return True
    return False


# Kinds of mutants: ``kind(whole, parts, rng)`` returns the bytes of the file, and says what was done.


def flipped(whole: bytes, parts: Parts, rng: np.random.Generator) -> tuple[bytes, str]:
    """One to 64 bits are flipped."""
    changed = np.frombuffer(whole, np.uint8).copy()
    at = rng.integers(changed.size, size=int(2 ** rng.integers(7)))
    changed[at] ^= (1 << rng.integers(8, size=at.size)).astype(np.uint8)
    return changed.tobytes(), f"bits of bytes {at[:4]}"


def cut(whole: bytes, parts: Parts, rng: np.random.Generator) -> tuple[bytes, str]:
    """Bytes are missing, doubled, zero or from elsewhere."""
    start, stop = sorted(rng.integers(len(whole) + 1, size=2).tolist())
    stop = min(stop, start + int(2 ** rng.integers(1, 14)))
    to = int(rng.integers(len(whole)))
    way = str(rng.choice(["end", "delete", "double", "zero", "copy", "append", "nothing left"]))
    changed = {
        "end": lambda: whole[:start],
        "delete": lambda: whole[:start] + whole[stop:],
        "double": lambda: whole[:stop] + whole[start:],
        "zero": lambda: whole[:start] + bytes(stop - start) + whole[stop:],
        "copy": lambda: (whole[:to] + whole[start:stop] + whole[to + stop - start :])[: len(whole)],
        "append": lambda: whole + bytes(int(rng.integers(1, 9000))),
        "nothing left": lambda: whole[: int(rng.integers(0, 20))],
    }[way]()
    return changed, f"{way} {start} to {stop}"


def records(whole: bytes, parts: Parts, rng: np.random.Generator) -> tuple[bytes, str]:
    """One to three things in the description are others."""
    changed = parts.copy()
    what = [mutate(changed.lines, rng) for _ in range(int(rng.choice([1, 1, 1, 2, 3])))]
    return changed.bytes(), "; ".join(what)


def shapes(whole: bytes, parts: Parts, rng: np.random.Generator) -> tuple[bytes, str]:
    """Lies about arrays: in records, in the header, or in the header and the description alike."""
    changed = parts.copy()
    if rng.random() < 0.5:
        held = [item["array"] for item, key in places(changed.lines) if key == "array" and isinstance(item, dict)]
        held = [reference for reference in held if isinstance(reference, list) and len(reference) == 4]
        reference = held[rng.integers(len(held))]
        before, at = str(reference), int(rng.integers(4))
        if at == 2:
            reference[2] = _another_shape(reference[2], rng)
        else:
            names = [*parts.arrays, _DESCRIPTION, "none", 3]
            others = (names, [*_SIZES, None], None, ["C", "F", "", "A", 1, None, "CF"])[at]
            assert others is not None
            reference[at] = others[rng.integers(len(others))]
        return changed.bytes(), f"reference {before} is {reference}"
    told: list[str] = []

    def lie(header: dict[str, Any]) -> None:
        name = str(rng.choice([key for key in header if key != "__metadata__"]))
        entry, way = header[name], str(rng.choice(["dtype", "shape", "data_offsets", "name", "extra", "key"]))
        told.append(f"{way} of {name}, {entry}")
        if way == "dtype":
            entry["dtype"] = _TYPES[rng.integers(len(_TYPES))]
        elif way == "shape":
            entry["shape"] = _another_shape(entry["shape"], rng)
        elif way == "data_offsets":
            entry["data_offsets"][rng.integers(2)] = _SIZES[rng.integers(len(_SIZES))]
        elif way == "name":
            header[str(rng.choice(["x", "", "__metadata__", "description", "é" * 300]))] = header.pop(name)
        elif way == "extra":
            header["extra"] = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
        else:
            entry.pop(str(rng.choice(list(entry))))

    whole = changed.bytes(header=lie)
    if rng.random() < 0.5:  # the description says the same as the header
        length = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + length])
        kinds = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U64": "<u8", "U32": "<u4", "U8": "|u1"}
        arrays = changed.lines[0]["arrays"]
        for name, entry in header.items():
            if name in arrays and isinstance(entry, dict) and "shape" in entry and "dtype" in entry:
                arrays[name][:2] = [kinds.get(entry["dtype"], "|b1"), entry["shape"]]
        agreed = changed.bytes()
        start = 8 + int.from_bytes(agreed[:8], "little")
        fresh = json.loads(agreed[8:start])
        header["__metadata__"] = fresh["__metadata__"]
        if isinstance(header.get(_DESCRIPTION), dict) and _DESCRIPTION in fresh:
            header[_DESCRIPTION] = fresh[_DESCRIPTION]
        text = json.dumps(header).encode("utf-8", "surrogatepass")
        whole = len(text).to_bytes(8, "little") + text + agreed[start:]
    return whole, told[0]


def _another_shape(shape: list[Any], rng: np.random.Generator) -> list[Any]:
    way = int(rng.integers(6))
    if way == 0:
        return shape[::-1]
    if way == 1:
        return [*shape, 1]
    if way == 2:
        return [1, *shape]
    if way == 3:
        return shape[1:]
    if way == 4:
        return [int(np.prod(shape))] if shape else [2]
    changed = list(shape) or [1]
    changed[rng.integers(len(changed))] = _SIZES[rng.integers(len(_SIZES))]
    return changed


def contents(whole: bytes, parts: Parts, rng: np.random.Generator) -> tuple[bytes, str]:
    """Numbers of an array are others."""
    changed = parts.copy()
    name = str(rng.choice([name for name, array in parts.arrays.items() if array.size]))
    array = parts.arrays[name].copy()
    at = rng.integers(array.size, size=int(rng.choice([1, 1, 3, array.size])))
    if array.dtype.kind == "f":
        value: Any = rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, -1e-300, 1e160, 5e-324])
    elif array.dtype.kind == "b":
        value = bool(rng.integers(2))
    else:
        value = int(rng.choice([0, -1, -7, 10**6, np.iinfo(array.dtype).max, np.iinfo(array.dtype).min]))
    array.reshape(-1)[at] = value
    changed.arrays[name] = array
    changed.lines[0]["arrays"][name][2] = checksum(array)
    return changed.bytes(), f"{at.size} of {name} are {value}"


def deep(whole: bytes, parts: Parts, rng: np.random.Generator) -> tuple[bytes, str]:
    """JSON that is deep, long, or far larger than its bytes."""
    depth = int(10 ** rng.uniform(1.0, 5.0))
    at = int(rng.integers(len(parts.lines)))
    lines = [json.dumps(line) for line in parts.lines]
    root = parts.lines[-1][1] if isinstance(parts.lines[-1][1], dict) else {}
    way = str(rng.choice(list(_DEEP)))
    told = f"{way}, {depth}, line {at}"
    if way == "header":
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        return len(nested).to_bytes(8, "little") + nested + bytes(4 * len(nested)), told
    if way in ("chain", "laughs", "laughs as keys"):
        first, count = len(lines) - 2, min(depth, 3000) if way == "chain" else 60
        last = lines.pop()
        lines.append('["tuple", [1, 2]]')
        for i in range(count):
            below = {"@": first + i}
            lines.append(json.dumps(["tuple", [below] if way == "chain" else [below, below]]))
        mark = {"@": first + count}
        if way == "laughs as keys":
            lines.append(json.dumps(["dict", [[mark, 1]]]))
            mark = {"@": first + count + 1}
        name = str(rng.choice(["note_", *root])) if root else "note_"
        kind, held = json.loads(last)
        lines.append(json.dumps([kind, {**held, name: mark} if isinstance(held, dict) else [*held, mark]]))
        about = json.loads(lines[0])
        about["model"] = {"@": len(lines) - 2}
        lines[0] = json.dumps(about)
        told = f"{told}, {name}"
    else:
        lines[at] = _DEEP[way](lines[at], depth)
    return parts.bytes("\n".join(lines)), told


_DEEP: dict[str, Callable[[str, int], str]] = {
    "lists": lambda line, depth: line[:-1] + "," + "[" * depth + "]" * depth + line[-1],
    "objects": lambda line, depth: '["list", [' + '{"tuple": [' * depth + "]}" * depth + "]]",
    "number": lambda line, depth: line.replace(": ", ": " + "9" * depth, 1),
    "text": lambda line, depth: line.replace('"', '"' + "a" * depth, 1),
    "blank records": lambda line, depth: line + "\n" * depth,
    "many": lambda line, depth: '["list", [' + ",".join(["[]"] * depth) + "]]",
    "header": lambda line, depth: line,
    "chain": lambda line, depth: line,
    "laughs": lambda line, depth: line,
    "laughs as keys": lambda line, depth: line,
}

KINDS = {
    "bits flipped": flipped,
    "cut, doubled, zeroed": cut,
    "records": records,
    "shapes and offsets": shapes,
    "contents": contents,
    "deep or long JSON": deep,
}


class NotFinite(AssertionError):  # noqa: N818 - it is a finding
    """A model that was opened predicts something that is no number."""


def use(model: Any, X_new: NDArray[Any], path: Path) -> None:
    """All that a person may ask of a model, and that it gives numbers."""
    repr(model)
    mean, std = model.predict(X_new, return_std=True)
    mixture = model.predict_dist(X_new)
    numbers = [model.predict(X_new), mean, std, mixture.mean, mixture.std, *mixture.interval(0.9)]
    repr(model.log_evidence_)
    if hasattr(model, "experts_"):
        numbers += [model.noise_std_]
        repr(model.kernel_)
    else:
        repr(model.network_)
        repr(model.regions_)
        numbers += [model.sample_y(X_new, 2), model.predict_noise(X_new), model.predict_kernel_weights(X_new)]
        numbers += [model.outliers_]
    if not all(np.isfinite(value).all() for value in numbers):
        raise NotFinite("a prediction is not finite")
    model.save(path)
    if hasattr(model, "partial_fit"):
        n = X_new.shape[0]
        shape = (n,) if mean.ndim == 1 else (n, mean.shape[1])
        model.partial_fit(X_new, np.linspace(0.0, 1.0, int(np.prod(shape))).reshape(shape))
        if not np.isfinite(model.predict(X_new)).all():
            raise NotFinite("a prediction after an update is not finite")


def raised_by_us(error: BaseException) -> bool:
    """Whether an error is a plain ValueError of our own, such as that a kernel overflows; not one of NumPy's."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, ValueError) and os.path.dirname(spngp.__file__) in frame.f_code.co_filename


def said(error: BaseException) -> str:
    """The text of an error that may have none: it may show a part of the mutant."""
    return traceback.format_exception_only(error)[-1].strip()
