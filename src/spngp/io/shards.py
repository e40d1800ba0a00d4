"""Models in directories: a small file about the model, and a shard for each cell, opened when a row falls into it.

A directory is written aside and renamed when it is whole, its ``model.spngp`` last: one without that file is no model.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from spngp._support.consistency import must
from spngp._support.directories import directory_beside, let_go, put_directory, remove_directory
from spngp._support.memory import GIGABYTE, default_limit
from spngp._support.threads import blas_libraries
from spngp._support.types import Array
from spngp.estimators.elsewhere import sharded_of, with_shelf
from spngp.io.classes import ESTIMATORS
from spngp.io.lean import Lean, Rows
from spngp.io.objects import Parts, read_object, write_object, write_parts
from spngp.io.tensors import ModelFileError, is_model
from spngp.learning.consistency import check_tree
from spngp.learning.sharded import Sharded
from spngp.network import Node
from spngp.network.consistency import check_network
from spngp.network.units import Units
from spngp.structure.cells import CellTree

M = TypeVar("M")

MODEL = "model.spngp"  # about the model; whoever finds it finds a whole model
_SHARDS = "shards"
_IN_MEMORY = 4.0  # times its bytes in the file that an open shard takes
_SHARE = 0.25  # of the memory limit that open shards take


def shard_path(directory: str | os.PathLike[str], cell: int) -> Path:
    """Where the shard of a cell is."""
    return Path(directory) / _SHARDS / f"{cell:06d}.spngp"


def write_network(path: Path, network: Node, X: Array, Y: Array, units: Units) -> None:
    """Write a network whose leaves have seen rows of X and Y, which are in the units of the user."""
    path.parent.mkdir(exist_ok=True)
    write_object(path, network, Lean(Rows(X, Y, units)))


def read_network(path: Path) -> Node:
    """A network, whose rows are read when they are used."""
    return _network(read_object(path), path)


def write_cell(path: Path, tree: CellTree, networks: Sequence[Node], X: Array, Y: Array, units: Units) -> int:
    """Write a shard: the regions of a cell, whose leaves have seen rows of X and Y; returns its bytes."""
    path.parent.mkdir(exist_ok=True)
    write_parts(path, [[tree.axes, tree.at, tree.children], *networks], Lean(Rows(X, Y, units)))
    return path.stat().st_size


class Cell:
    """An open shard, whose regions are made when they are asked for.

    Parameters
    ----------
    path : Path
    n_inputs, n_outputs : int
        Of the model that it is a part of.
    verify : bool
        Look at every region and every number now.
    """

    def __init__(self, path: Path, n_inputs: int, n_outputs: int, *, verify: bool = False) -> None:
        self._path, self._sizes = path, (n_inputs, n_outputs)
        self._parts = Parts(path, verify=verify)
        try:
            self.tree = CellTree(*self._parts[0])
            check_tree(self.tree)
            must((self.tree.axes < n_inputs).all(), f"cuts must be along {n_inputs} inputs", "others")
            must(len(self._parts) == self.tree.n_cells + 1, f"there must be {self.tree.n_cells} regions", "others")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(path, error) from None
        if verify:
            for region in range(self.tree.n_cells):
                self.network(region)
            self._parts.check_stored()

    def network(self, region: int) -> Node:
        """The network of a region."""
        network = _network(self._parts[region + 1], self._path)
        try:
            check_network(network, *self._sizes)
        except ValueError as error:
            raise _damaged(self._path, error) from None
        return network


def _damaged(path: Path, error: Exception) -> ModelFileError:
    if isinstance(error, ModelFileError):
        return error
    return ModelFileError(f"{path} is damaged: its description makes no part of its model ({error})")


def _network(found: Any, path: Path) -> Node:
    if not isinstance(found, Node):
        raise ModelFileError(f"{path} holds a {type(found).__name__}, not a network")
    return found


class Directory:
    """The shelf that a directory is: shards are opened when asked for, and those used last stay open.

    Parameters
    ----------
    path : path-like
    limit : float
        Gigabytes that open shards may take, about.
    n_inputs, n_outputs : int
        Of the model.
    """

    def __init__(self, path: str | os.PathLike[str], limit: float, n_inputs: int, n_outputs: int) -> None:
        self.path, self._limit, self._sizes = Path(path), limit, (n_inputs, n_outputs)
        self._keeper: Any = None
        self._open: OrderedDict[int, tuple[Cell, float]] = OrderedDict()
        self._lock = threading.Lock()

    def cell(self, cell: int) -> Cell:
        """The shard of a cell, opened now or before."""
        with self._lock:
            if cell in self._open:
                self._open.move_to_end(cell)
                return self._open[cell][0]
            path = shard_path(self.path, cell)
            try:
                found = Cell(path, *self._sizes)
            except FileNotFoundError:
                raise ModelFileError(f"{self.path} is damaged: {path.name} is not there") from None
            self._open[cell] = (found, _IN_MEMORY * path.stat().st_size / GIGABYTE)
            while len(self._open) > 1 and sum(size for _, size in self._open.values()) > self._limit:
                self._open.popitem(last=False)
            return found

    def owning(self, directory: Path) -> Directory:
        """The same shelf; the directory goes when it does."""
        shelf = Directory(self.path, self._limit, *self._sizes)
        weakref.finalize(shelf, remove_directory, directory)
        return shelf

    def one_at_a_time(self) -> Directory:
        """A shelf of the same shards that keeps the last one open and no other."""
        shelf = Directory(self.path, 0.0, *self._sizes)
        shelf.kept_by(self)  # with which temporary shards would go
        return shelf

    def kept_by(self, keeper: Any) -> None:
        """Hold on to an object with which the directory would go."""
        self._keeper = keeper

    def __getstate__(self) -> dict[str, Any]:
        return {"arguments": (self.path, self._limit, *self._sizes)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(*state["arguments"])  # type: ignore[misc]


def is_sharded(model: Any) -> bool:
    """Whether a model lies in shards."""
    return sharded_of(model) is not None


@contextlib.contextmanager
def directory_replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new directory beside ``path``, which takes its place if the ``with`` statement ends without an error."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(20, "A model in shards is a directory, and there is a file", str(path))
    aside = directory_beside(target)
    try:
        yield aside
        put_in_place(aside, target)
    except BaseException:
        remove_directory(aside)
        raise


def put_in_place(aside: Path, target: Path) -> None:
    """Rename a whole directory to its name; the model that stood there goes."""
    if target.exists() and not is_model_directory(target) and any(target.iterdir()):
        raise FileExistsError(17, "There is a directory that is no model", str(target))
    old = put_directory(aside, target)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    let_go(aside)


def is_model_directory(path: str | os.PathLike[str]) -> bool:
    """Whether a directory holds a model in shards."""
    manifest = Path(path) / MODEL
    return manifest.is_file() and is_model(manifest)


def write_about(directory: Path, model: Any) -> None:
    """Write the file about a model whose shards are in the directory: the last step."""
    sharded = sharded_of(model)
    assert sharded is not None
    write_object(directory / MODEL, with_shelf(model, None), Lean())


def directory_of(model: Any) -> Directory:
    """The directory that a model in shards is in."""
    sharded = sharded_of(model)
    assert sharded is not None
    assert isinstance(sharded.shelf, Directory)
    return sharded.shelf


def one_shard_at_a_time(model: M) -> M:
    """The same model in shards, of which it keeps the last one open and no other."""
    return with_shelf(model, directory_of(model).one_at_a_time())


def copy_directory(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model in shards to another directory, whole or not at all."""
    sharded, source = sharded_of(model), directory_of(model).path
    assert sharded is not None
    if Path(path).exists() and os.path.samefile(path, source):
        return
    with directory_replacing(path) as aside:
        for cell in range(sharded.rows.size):
            shard_path(aside, cell).parent.mkdir(exist_ok=True)
            shutil.copyfile(shard_path(source, cell), shard_path(aside, cell))
        write_about(aside, model)


def load_directory(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Open a model in shards, each of which must be there, of its size; with ``verify``, all of them are read."""
    manifest = Path(path) / MODEL
    if not manifest.is_file():
        raise ModelFileError(f"{path} is a directory, but not a spngp model: it has no {MODEL}")
    model = read_object(manifest, verify=verify)
    sharded = sharded_of(model) if type(model).__name__ in ESTIMATORS else None
    if sharded is None:
        raise ModelFileError(f"{manifest} is not that of a model in shards")
    _check_sizes(path, sharded)
    n_inputs, n_outputs = sharded.units.inputs.mean.size, sharded.units.outputs.mean.size
    if verify:
        for cell in range(sharded.rows.size):
            Cell(shard_path(path, cell), n_inputs, n_outputs, verify=True)
    blas_libraries()  # found now, so that the first row need not wait for it
    limit = getattr(model, "memory_limit", None)
    share = _SHARE * (default_limit() if limit is None else float(limit))
    return with_shelf(model, Directory(path, share, n_inputs, n_outputs))


def _check_sizes(path: str | os.PathLike[str], sharded: Sharded) -> None:
    """Raise an error unless all shards are there, each of its size."""
    for cell, size in enumerate(sharded.sizes.tolist()):
        shard = shard_path(path, cell)
        found = shard.stat().st_size if shard.is_file() else None
        if found != size:
            seen = "not there" if found is None else f"{found:,} bytes"
            raise ModelFileError(f"{path} is damaged: {shard.name} must have {size:,} bytes, got {seen}")
