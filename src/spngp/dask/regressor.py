"""``DaskSPNGPRegressor``: the estimator for Dask collections."""

from __future__ import annotations

import shutil
import weakref
from functools import lru_cache
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError

from spngp._support.directories import remove_directory, temporary_directory
from spngp._support.types import Array
from spngp.dask.collections import answers, for_each_partition, input_names, is_frame, target_names
from spngp.dask.engine import Workers, default_client
from spngp.estimators import SPNGPRegressor
from spngp.estimators.answers import Question
from spngp.io import load
from spngp.io.shards import directory_of, is_model_directory
from spngp.outofcore.fitting import Job, fit
from spngp.outofcore.pieces import write_table
from spngp.outofcore.spill import removed

_WEIGHT, _VARIANCE = "sample_weight of the fit", "y_variance of the fit"  # columns that partitions are written with


class DaskSPNGPRegressor(RegressorMixin, BaseEstimator):
    """:class:`~spngp.SPNGPRegressor` for Dask DataFrames and Arrays, fitted and used by the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the client that was made last.
    directory : path-like, optional
        Where rows are sorted and the model is kept: a directory that all workers see. By default a temporary one of
        this machine, which serves a cluster of local processes and goes with the model.
    **params
        Parameters of :class:`~spngp.SPNGPRegressor`.

    Attributes
    ----------
    path_ : Path
        The model, a directory of shards that :func:`spngp.load` opens.
    """

    path_: Path

    def __init__(self, client: Any = None, directory: Any = None, **params: Any) -> None:
        self.client, self.directory = client, directory
        self._model = SPNGPRegressor(**params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Its own parameters and those of the model."""
        return {"client": self.client, "directory": self.directory, **self._model.get_params(deep)}

    def set_params(self, **params: Any) -> Self:
        """Set any of them."""
        for name in ("client", "directory"):
            if name in params:
                setattr(self, name, params.pop(name))
        self._model.set_params(**params)
        return self

    def fit(self, X: Any, y: Any, sample_weight: Any = None, y_variance: Any = None) -> Self:
        """Fit to a Dask DataFrame or Array X and a Series, DataFrame or Array y of the same partitions.

        ``sample_weight`` and ``y_variance``, Series or Arrays of these partitions with one number for each row, are as
        in :meth:`spngp.SPNGPRegressor.fit`. Every partition is computed once. A fit that fails leaves the estimator as
        it was.
        """
        client = default_client() if self.client is None else self.client
        given = None if self.directory is None else Path(self.directory)
        home = temporary_directory(given, None if given is None else _has_model)
        try:
            workers = Workers(client, home / "steps")
            targets = target_names(y, input_names(X))
            facts = {name: of for name, of in ((_WEIGHT, sample_weight), (_VARIANCE, y_variance)) if of is not None}
            writer = _Writer(str(home / "input"), input_names(X), targets, list(facts))
            workers.compute(for_each_partition([X, y, *facts.values()], writer))
            dataset = ds.dataset(str(home / "input"), format="arrow")
            job = Job(
                dataset=dataset,
                inputs=input_names(X),
                targets=targets,
                output=home / "model",
                as_columns=getattr(y, "ndim", 1) == 2,
                named=is_frame(X),
                weight=_WEIGHT if _WEIGHT in facts else None,
                variance=_VARIANCE if _VARIANCE in facts else None,
            )
            fit(self._model, job, workers)
            workers.close()
            shutil.rmtree(home / "input", ignore_errors=True)
        except BaseException:
            removed(home)
            raise
        self.path_, self.targets_ = home / "model", targets
        if given is None:
            self._remover = weakref.finalize(self, remove_directory, home)
        return self

    def predict(self, X: Any, return_std: bool = False, *, interval: Any = None, quantiles: Any = None) -> Any:
        """As :meth:`spngp.SPNGPRegressor.predict`, lazily: partitions are predicted when they are computed.

        Workers open the model by its path, and of it the cells that their rows fall into. The answer to a DataFrame are
        Series (DataFrames for several outputs or quantiles), the answer to an Array Arrays.
        """
        Question.of(return_std, interval, quantiles)  # raises an error now, not when it is computed
        ask = {"return_std": return_std, "interval": interval, "quantiles": quantiles}
        return answers(X, _Predictor(str(self._fitted()), ask), ask, self.targets_)

    def to_local(self) -> SPNGPRegressor:
        """The model as an estimator of this process, which opens shards as it needs them."""
        model = cast("SPNGPRegressor", load(self._fitted()))
        directory_of(model).kept_by(self)
        return model

    @property
    def log_evidence_(self) -> float:
        """log p(y | X) of the training rows, in the units of y."""
        return self.to_local().log_evidence_

    def _fitted(self) -> Path:
        if not hasattr(self, "path_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self.path_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "path_")


def _has_model(directory: Path) -> bool:
    """Whether a fit has put a model there: it is its user's."""
    return is_model_directory(directory / "model")


class _Writer:
    """Writes a partition to a file, from which all else goes on."""

    def __init__(self, directory: str, inputs: list[str], targets: list[str], facts: list[str]) -> None:
        self._directory, self._inputs, self._targets, self._facts = directory, inputs, targets, facts

    def __call__(self, number: int, X: Any, y: Any, *facts: Any) -> None:
        table = _as_table(X, self._inputs, number, True)
        further = [_as_table(y, self._targets, number)]
        further += [_as_table(values, [name], number) for name, values in zip(self._facts, facts, strict=True)]
        for called, columns in zip(["y", *self._facts], further, strict=True):
            if table.num_rows != columns.num_rows:
                counts = f"{table.num_rows} and {columns.num_rows}"
                raise ValueError(f"partition {number}: X and {called} must have as many rows, got {counts}")
        if table.num_rows:
            for columns in further:
                for name in columns.schema.names:
                    table = table.append_column(name, columns[name])
            write_table(Path(self._directory) / f"partition-{number:06d}.arrow", table)


def _as_table(rows: Any, names: list[str], number: int, refuses_nan: bool = False) -> Any:
    if hasattr(rows, "to_frame"):
        rows = rows.to_frame()
    if hasattr(rows, "columns"):
        found = [str(name) for name in rows.columns]
        if len(found) != len(names) or (len(names) > 1 and found != names):
            raise ValueError(f"partition {number}: columns must be {', '.join(names)}, got {', '.join(found)}")
        table = pa.Table.from_pandas(rows, preserve_index=False)
        return table.rename_columns(names)
    array: Array = np.asarray(rows)
    array = array[:, np.newaxis] if array.ndim == 1 else array
    if array.shape[1] != len(names):
        raise ValueError(f"partition {number}: there must be {len(names)} columns, got {array.shape[1]}")
    if refuses_nan and (lacking := np.isnan(array).any(axis=0)).any():
        raise ValueError(f"partition {number}: column {names[int(np.argmax(lacking))]!r} contains NaN")
    return pa.table({name: array[:, j] for j, name in enumerate(names)})


class _Predictor:
    """Predicts a partition: what a graph holds instead of the model."""

    def __init__(self, path: str, ask: dict[str, Any]) -> None:
        self._path, self._ask = path, ask

    def __call__(self, rows: Any) -> list[Array]:
        found = _opened(self._path).predict(rows, **self._ask)
        return list(found) if isinstance(found, tuple) else [found]

    def __dask_tokenize__(self) -> Any:
        return (self._path, sorted(self._ask.items(), key=str))


@lru_cache(maxsize=2)
def _opened(path: str) -> SPNGPRegressor:
    """The model at a path, opened once by each process."""
    return cast("SPNGPRegressor", load(path))
