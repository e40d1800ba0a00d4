"""Save and load: a model's description and arrays in one file."""

from __future__ import annotations

import json
import os
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spngp._version import __version__
from spngp.io import consistency
from spngp.io.classes import ESTIMATORS, class_of
from spngp.io.decoding import Decoder
from spngp.io.encoding import Encoder
from spngp.io.fields import check_attributes
from spngp.io.lean import Lean
from spngp.io.tensors import ModelFileError, TensorFile, checksum, write
from spngp.transformed import Fitted

SCHEMA = 4  # raised whenever what a record holds changes

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


def save(model: Any, path: str | os.PathLike[str], *, with_factors: bool = False) -> None:
    """Write a fitted model to one file, whole or not at all: what stood at ``path`` stays until the new file is safe.

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
    encoder = Encoder(None if with_factors else Lean(model))
    root = encoder.encode(model)
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


def load(path: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Open a saved model: at once, however large, since arrays are mapped and read only when a prediction needs them.

    It predicts what the saved one did, to the last bit, and can be updated by ``partial_fit``. The file must stay as it
    is while the model is in use; saving over it is safe.

    Parameters
    ----------
    path : path-like
    verify : bool
        Compare every array with its checksum now, instead of when it is first used.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, or was written by another version with other contents.
    """
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
    if schema < SCHEMA:
        raise ModelFileError(
            f"{file.path} was written by an earlier version of spngp (schema {schema}; this one, {__version__}, reads "
            f"{SCHEMA}): fit the model again"
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
        model = Decoder(records, file).decode(about["model"])
    except ModelFileError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise file.damaged("its description") from None
    if type(model).__name__ not in ESTIMATORS:
        raise ModelFileError(f"{file.path} holds a {type(model).__name__}, not an estimator")
    return model
