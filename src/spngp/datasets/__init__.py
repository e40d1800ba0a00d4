"""Data sets by name: embedded, generated, or found in ``$SPNGP_DATA``, in the user's cache or by download.

>>> from spngp import datasets
>>> [entry.name for entry in datasets.REGISTRY.values() if entry.in_paper]
['motorcycle', 'nonstationary', 'energy', 'concrete', 'ccpp', 'kin40k']
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from spngp.datasets.dataset import Dataset
from spngp.datasets.registry import REGISTRY, Entry, File, find
from spngp.datasets.storage import Status, obtain, status, statuses
from spngp.datasets.synthetic import nonstationary, regional
from spngp.datasets.table import join, read

__all__ = [
    "REGISTRY",
    "Dataset",
    "Entry",
    "File",
    "Status",
    "fetch",
    "find",
    "load",
    "nonstationary",
    "regional",
    "status",
    "statuses",
]


def load(name: str, verify: bool = True) -> Dataset:
    """A data set by its name; ``datasets.REGISTRY`` has them all.

    ``"motorcycle"`` ships with the package: 133 measurements of head acceleration (g) over time (ms) in a simulated
    motorcycle crash, from Silverman (1985). ``"nonstationary"`` is generated (:func:`nonstationary` takes other sizes
    and seeds). All other sets are files, looked for in ``$SPNGP_DATA``, then in the user's cache; see
    :mod:`spngp.datasets.storage`.

    Parameters
    ----------
    name : str
    verify : bool
        Whether files must have the checksum of the registry. False accepts your own conversion from a set's home page
        if it has the right numbers of rows and columns; results may then differ from published ones.

    Examples
    --------
    >>> from spngp import datasets
    >>> data = datasets.load("motorcycle")
    >>> data.X.shape, data.inputs, data.outputs
    ((133, 1), ('times',), ('accel',))
    """
    entry = find(name)
    if name == "nonstationary":
        return nonstationary()
    if not entry.files:
        with resources.as_file(resources.files(__package__).joinpath(f"{name}.csv")) as path:
            return join(entry, [read([path], entry, entry.rows)])
    return join(entry, [read(obtain(entry, file, verify), entry, file.rows) for file in entry.files])


def fetch(name: str, mirror: str | None = None) -> list[Path]:
    """Make sure that a data set is on this machine, and say where: nothing for embedded and generated ones.

    Parameters
    ----------
    name : str
    mirror : str, optional
        Address of a web folder that holds the files under their names; ``$SPNGP_DATA_URL`` by default.
    """
    entry = find(name)
    return [path for file in entry.files for path in obtain(entry, file, mirror=mirror)]
