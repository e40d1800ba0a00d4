"""Data sets by name."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

import numpy as np

from spngp._typing import Array

_OUTPUTS = {"motorcycle": 1}  # how many of the last columns are outputs


class Dataset(NamedTuple):
    """Rows of inputs X (n, d) and outputs Y (n, p), with the names of their columns."""

    X: Array
    Y: Array
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def load(name: str) -> Dataset:
    """A data set that ships with the package.

    ``"motorcycle"``: 133 measurements of head acceleration (g) over time (ms) in a simulated motorcycle crash, from
    Silverman (1985).

    Examples
    --------
    >>> from spngp import datasets
    >>> data = datasets.load("motorcycle")
    >>> data.X.shape, data.inputs, data.outputs
    ((133, 1), ('times',), ('accel',))
    """
    if name not in _OUTPUTS:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(sorted(_OUTPUTS))}")
    text = resources.files(__package__).joinpath(f"{name}.csv").read_text(encoding="utf-8")
    header, *lines = text.splitlines()
    table = np.array([[float(field) for field in line.split(",")] for line in lines])
    names, split = tuple(header.split(",")), table.shape[1] - _OUTPUTS[name]
    return Dataset(table[:, :split], table[:, split:], names[:split], names[split:])
