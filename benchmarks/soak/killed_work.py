"""Work that is killed: how it begins, what one run does, and what may be found afterwards.

A state is the contents of everything that a user sees: files without a dot at the beginning of their names, by name. It
must be that before a run or that after one, whatever happened; and after another run nothing else may be there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

State = dict[str, str]


@dataclass(frozen=True)
class Work:
    """What is killed.

    Attributes
    ----------
    name : str
    prepare : callable
        Puts into an empty folder what a run starts from.
    run : callable
        Works in the folder, which is the working directory.
    again : callable
        The next run after one that was killed.
    """

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[], None]
    again: Callable[[], None]


def state(folder: Path) -> State:
    """Every file that a user sees, by its digest."""
    found = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            found[str(Path(*parts))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def strays(folder: Path) -> list[str]:
    """What a user does not want to see: hidden files, part files, and empty folders."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.name.startswith(".") or path.name.endswith(".part") or (path.is_dir() and not any(path.iterdir()))
    )


def rows(n: int, seed: int = 0) -> Any:
    """A table with two inputs and a target."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return pa.table({"a": X[:, 0], "b": X[:, 1], "y": np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)})


def _model(n: int, **settings: Any) -> Any:
    from spngp import SPNGPRegressor
    from spngp.kernels import Matern

    table = rows(n, seed=n)
    settings = {"max_leaf_size": 40, "hyperparameters": "fixed", "random_state": 0, **settings}
    return SPNGPRegressor(Matern(1.5), **settings).fit(table.select(["a", "b"]), table["y"].to_numpy())


def command(*arguments: str) -> None:
    """A command of the command line; one that fails is an error."""
    from soak.table_mutants import run_command

    code, told = run_command(*arguments)
    if code:
        raise OSError(told.strip())


def _save() -> None:
    _OBJECTS["large"].save("m.spngp", with_factors=True)


def _prepare_save(folder: Path) -> None:
    _OBJECTS["small"].save(folder / "m.spngp")


def _prepare_update(folder: Path) -> None:
    import pyarrow.csv

    from spngp.tables.schema import TableSchema

    model = _model(60)
    model.table_ = TableSchema(("y",))
    model.save(folder / "m.spngp")
    pyarrow.csv.write_csv(rows(12, seed=5), folder / "new.csv")


def _update() -> None:
    command("update", "m.spngp", "new.csv")


def _fit_large(*options: str) -> None:
    settings = ["--hyperparameters", "fixed", "--max-leaf-size", "30", "--overlap", "0.5", "--jobs", "1"]
    command("fit", "rows.parquet", "--target", "y", "--engine", "outofcore", "-o", "model", *settings, *options)


def _prepare_fit(folder: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(rows(2500), folder / "rows.parquet", row_group_size=1000)
    shutil.copytree(_in_shards("older model"), folder / "model")  # one that the new one replaces


def _prepare_spill(folder: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(rows(2500), folder / "rows.parquet", row_group_size=1000)


def _prepare_copy(folder: Path) -> None:
    _in_shards("the newer model")  # here, and not in the process that is killed
    shutil.copytree(_in_shards("older model"), folder / "copy")


def _copy() -> None:
    import spngp

    spngp.load(_in_shards("the newer model")).save("copy")


def _prepare_report(folder: Path) -> None:
    _OBJECTS["small"].save(folder / "m.spngp")
    (folder / "report.html").write_text("<html>an older page</html>")


def _report() -> None:
    from spngp.report import write_report

    table = rows(30, seed=2)
    write_report(_OBJECTS["small"], "report.html", table.select(["a", "b"]).to_pandas(), table["y"].to_numpy())


def _prepare_predict(folder: Path) -> None:
    import pyarrow.csv

    _OBJECTS["small"].save(folder / "m.spngp")
    pyarrow.csv.write_csv(rows(4000, seed=6).select(["a", "b"]), folder / "rows.csv")
    (folder / "out.csv").write_text("a,b\nolder,one\n")


def _predict() -> None:
    command("predict", "m.spngp", "rows.csv", "-o", "out.csv")


def _next_save() -> None:
    _OBJECTS["large"].save("m.spngp")


_OBJECTS: dict[str, Any] = {}
_FOLDERS: dict[str, Path] = {}


def begin(home: Path) -> None:
    """Make what most kinds of work start from."""
    home.mkdir(parents=True)
    _OBJECTS["small"], _OBJECTS["large"], _OBJECTS["home"] = _model(60), _model(400, max_leaf_size=150), home


def _in_shards(name: str) -> Path:
    """A model in shards, made when it is first asked for."""
    import pyarrow.parquet as pq

    if name not in _FOLDERS:
        folder, here = _OBJECTS["home"] / name, Path.cwd()
        folder.mkdir()
        pq.write_table(rows(2500, len(name)), folder / "rows.parquet")
        os.chdir(folder)
        _fit_large()
        os.chdir(here)
        _FOLDERS[name] = folder / "model"
    return _FOLDERS[name]


WORK = (
    Work("save", _prepare_save, _save, _next_save),
    Work("update", _prepare_update, _update, _next_save),
    Work("fit --resume, over a model", _prepare_fit, _fit_large, lambda: _fit_large("--resume")),
    Work("spill, then from the start", _prepare_spill, _fit_large, _fit_large),
    Work("save of shards, over a model", _prepare_copy, _copy, _copy),
    Work("report", _prepare_report, _report, _report),
    Work("predict", _prepare_predict, _predict, _predict),
)
