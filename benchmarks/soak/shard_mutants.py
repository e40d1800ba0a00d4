"""A model in shards of which one file is not what was written, or not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from soak.model_mutants import KINDS, Parts, places
from spngp.io.shards import MODEL
from spngp.io.tensors import checksum


class Shards:
    """An honest directory, and a copy in which one file at a time is changed."""

    def __init__(self, honest: Path, folder: Path) -> None:
        self._honest, self._path = honest, folder / "mutant"
        shutil.rmtree(self._path, ignore_errors=True)
        shutil.copytree(honest, self._path)
        self._files = sorted(path.relative_to(honest) for path in honest.rglob("*.spngp"))
        self._bytes = {name: (honest / name).read_bytes() for name in self._files}
        self._parts = {name: Parts.of(honest / name) for name in self._files}
        self._changed: set[Path] = set()

    def mutant(self, kind: str, rng: np.random.Generator) -> tuple[Path, str]:
        """The directory with another change."""
        for name in self._changed:
            self._write(name, self._bytes[name])
        self._changed = set()
        if kind == "none":
            return self._path, "honest"
        name = self._files[rng.integers(len(self._files))]
        if kind == "files swapped or gone":
            return self._path, self._disordered(name, rng)
        changed, told = KINDS[kind](self._bytes[name], self._parts[name], rng)
        self._change(name, changed)
        if name.name != MODEL and len(changed) != len(self._bytes[name]) and rng.random() < 0.8:
            self._change(Path(MODEL), self._with_size(int(name.stem), len(changed)))
        return self._path, f"{name}: {told}"

    def _disordered(self, name: Path, rng: np.random.Generator) -> str:
        other = self._files[rng.integers(len(self._files))]
        way = str(rng.choice(["gone", "other", "swapped", "folder", "link", "empty"]))
        if way == "gone":
            (self._path / name).unlink()
        elif way == "folder":
            (self._path / name).unlink()
            (self._path / name).mkdir()
        elif way == "link":
            (self._path / name).unlink()
            os.symlink("nowhere", self._path / name)
        elif way == "empty":
            self._change(name, b"")
        else:
            self._change(name, self._bytes[other])
            if way == "swapped":
                self._change(other, self._bytes[name])
            if name.name != MODEL and other.name != MODEL:
                self._change(Path(MODEL), self._with_size(int(name.stem), len(self._bytes[other])))
        self._changed |= {name}
        return f"{name}: {way}, {other}"

    def _change(self, name: Path, content: bytes) -> None:
        self._changed.add(name)
        self._write(name, content)

    def _write(self, name: Path, content: bytes) -> None:
        path = self._path / name
        if path.is_dir():
            path.rmdir()
        elif path.is_symlink():
            path.unlink()
        path.write_bytes(content)

    def _with_size(self, cell: int, size: int) -> bytes:
        """The file about the model, with the size that this shard now has: a hostile writer knows it, too."""
        parts = self._parts[Path(MODEL)].copy()
        reference: Any = next(item[key] for item, key in places(parts.lines) if key == "sizes")
        tensor, offset, _, _ = reference["array"]
        array = parts.arrays[tensor].copy()
        array.reshape(-1)[(offset or 0) + cell] = size
        parts.arrays[tensor] = array
        parts.lines[0]["arrays"][tensor][2] = checksum(array)
        return parts.bytes()
