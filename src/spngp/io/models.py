"""Save and load: a model's description and arrays in one file, or in a directory of shards."""

from __future__ import annotations

import os
from typing import Any

from spngp.io import consistency
from spngp.io.classes import ESTIMATORS, class_of
from spngp.io.fields import check_attributes
from spngp.io.lean import Lean
from spngp.io.objects import read_object, write_object
from spngp.io.shards import copy_directory, is_sharded, load_directory
from spngp.io.tensors import ModelFileError
from spngp.transformed import Fitted


def save(model: Any, path: str | os.PathLike[str], *, with_factors: bool = False) -> None:
    """Write a fitted model to one file, whole or not at all: what stood at ``path`` stays until the new file is safe.

    A model in shards (:mod:`spngp.outofcore`) becomes a directory.

    By default the file holds rows and parameters. Cholesky factors, by far the largest part of a model, are left out;
    when the model is opened, an expert computes its own on the first call that asks it for a variance, to the same
    bits. ``with_factors`` writes them as well, for a model that must answer its first call at once.

    Examples
    --------
    >>> import tempfile, os
    >>> import numpy as np
    >>> import spngp
    >>> from spngp import datasets
    >>> data = datasets.load("motorcycle")
    >>> model = spngp.GPRegressor(random_state=0).fit(data.X, data.Y[:, 0])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "model.spngp")
    ...     model.save(path)
    ...     loaded = spngp.load(path)
    ...     bool(np.array_equal(loaded.predict(data.X), model.predict(data.X)))
    True
    """
    from sklearn.utils.validation import check_is_fitted

    name = type(model).__name__
    if name not in ESTIMATORS or type(model) is not class_of(name):
        raise ValueError(f"only estimators of spngp can be saved, got {type(model).__module__}.{name}")
    check_is_fitted(model)
    # what was set after the fit would only be refused when the file is opened
    check_attributes(name, model.__dict__)
    consistency.check(name, model)
    if any(isinstance(of, Fitted) for of in vars(model).get("targets_", [])):
        raise ValueError(
            f"a model whose target is a transformer cannot be saved, got {vars(model)['target']!r}: a file holds "
            "no objects of others; use target='log', or transform y before the fit"
        )
    if is_sharded(model):
        copy_directory(model, path)
        return
    write_object(path, model, None if with_factors else Lean.of(model))


def load(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Open a saved model: at once, however large, since arrays are mapped and read only when a prediction needs them.

    It predicts what the saved one did, to the last bit, and can be updated by ``partial_fit``. The file must stay as it
    is while the model is in use; saving over it is safe. Of a directory of shards, a cell of the model is opened when a
    row falls into it.

    Parameters
    ----------
    path : path-like
    verify : bool
        Compare every array with its checksum and look at every number now, instead of when they are first used.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or was written by another version with other contents.
    """
    if os.path.isdir(path):
        return load_directory(path, verify=verify)
    model = read_object(path, verify=verify)
    if type(model).__name__ not in ESTIMATORS:
        raise ModelFileError(f"{path} holds a {type(model).__name__}, not an estimator")
    return model
