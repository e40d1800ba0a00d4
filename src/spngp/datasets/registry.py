"""Which data sets there are: their sizes, where they come from, and the files that hold them.

A file is a CSV table (gzip-compressed if its name ends in .gz) with one line of column names, inputs first, outputs
last. Its checksum is the SHA-256 of the file as it lies on the disk. Home pages publish spreadsheets and archives, not
these tables: :mod:`spngp.datasets.originals` knows where, and :mod:`spngp.datasets.storage` reads them. Kin40K's home
has its columns as plain text, in several files that are read side by side; their checksums are those of our tables
written in the format of that home, whose files agree with them in size and in every line that was compared.
"""

from __future__ import annotations

from dataclasses import dataclass

_UCI = "https://archive.ics.uci.edu/dataset/"


@dataclass(frozen=True)
class File:
    """One table.

    Attributes
    ----------
    name : str
    rows : int
    sha256 : str
    url : str, optional
        Where it can be downloaded as it is.
    sources : tuple of File
        Files that hold its columns without their names, separated by blanks: the same table in another form.
    """

    name: str
    rows: int
    sha256: str
    url: str | None = None
    sources: tuple[File, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One data set.

    Attributes
    ----------
    name, title : str
    rows, inputs, outputs : int
        N, D_X and D_Y.
    home : str
        Page or publication that describes the data.
    files : tuple of File
        Training rows, then test rows, if there are two; none for sets that ship with the package or are generated.
    in_paper : bool
        Whether the experiments of the paper use it; all other sets serve to choose defaults.
    columns : tuple of str
        Names of the columns, for files that do not tell.
    note : str
        How the values differ from those at home.
    """

    name: str
    title: str
    rows: int
    inputs: int
    outputs: int
    home: str
    files: tuple[File, ...] = ()
    in_paper: bool = False
    columns: tuple[str, ...] = ()
    note: str = ""

    @property
    def n_train(self) -> int | None:
        """Rows for training, where the set has a split of its own."""
        return self.files[0].rows if len(self.files) == 2 else None


_KIN40K = "https://raw.githubusercontent.com/trungngv/fgp/beb4dc37ed6de490845c497030966885b2445f1e/data/kin40k/"


def _kin40k(part: str, rows: int, sha256: str, data_sha256: str, labels_sha256: str) -> File:
    sources = tuple(
        File(f"kin40k_{part}_{kind}.asc", rows, digest, f"{_KIN40K}kin40k_{part}_{kind}.asc")
        for kind, digest in (("data", data_sha256), ("labels", labels_sha256))
    )
    return File(f"kin40k_{part}.csv.gz", rows, sha256, sources=sources)


_CENTRED = "every column centred on its mean, five digits"

_ENTRIES = (
    Entry("motorcycle", "Acceleration in a crash", 133, 1, 1, "Silverman (1985)", in_paper=True),
    Entry("nonstationary", "Synthetic, changing noise", 501, 1, 1, "generated", in_paper=True),
    Entry(
        "energy",
        "Heating and cooling loads",
        *(768, 8, 2),
        _UCI + "242/energy+efficiency",
        (File("energy.csv", 768, "18005a6a1dd3abbda78a2d7d6911dd2e566c0d72f8d6f8ff8e6a125e8b5df330"),),
        in_paper=True,
    ),
    Entry(
        "concrete",
        "Strength of concrete",
        *(1_030, 8, 1),
        _UCI + "165/concrete+compressive+strength",
        (File("concrete.csv", 1_030, "b24cceef6a88f066414b68774860fdaf27c16e760596c94f4e6153a1761dd566"),),
        in_paper=True,
    ),
    Entry(
        "ccpp",
        "Combined cycle power plant",
        *(9_568, 4, 1),
        _UCI + "294/combined+cycle+power+plant",
        (File("ccpp.csv", 9_568, "2a192e005b4a62f3685102ea692661fdf7d1eaf7f32391235288497da175733f"),),
        in_paper=True,
    ),
    Entry(
        "kin40k",
        "Kinematics of a robot arm",
        *(40_000, 8, 1),
        "https://github.com/trungngv/fgp/tree/master/data/kin40k",
        (
            _kin40k(
                "train",
                10_000,
                "4add783b92c8417189f6f9995ef354a297f3d033ff6fa14b8f68d708e91e9944",
                "586beb1ebe6ed0bd8988d86494183b438814ca3ee56b7616b917ff0a8e3cca55",
                "0a5851bda3dabfb2009aeb0ff7e781c85221db0dad91e6cdc7948bd97173b005",
            ),
            _kin40k(
                "test",
                30_000,
                "aba1d3e8e4dcf3b2e64e09c17a2f8d9221cf18f49cfd24fa3b1ee44aa01a88ea",
                "75ff1d28e23e5be45fc70094dcf2bba4e93af585fa75dd6790c7f69710224ce0",
                "3a6568c4824f9cc83e3e9df900ef146aea11e383d466daabb9eea50949cbffe0",
            ),
        ),
        in_paper=True,
        columns=(*(f"theta{i}" for i in range(1, 9)), "distance"),
    ),
    Entry(
        "yacht",
        "Resistance of sailing yachts",
        *(308, 6, 1),
        _UCI + "243/yacht+hydrodynamics",
        (File("yacht.csv", 308, "30aca93490d89f3b49b1973f4a1fa2014506465b512c50e4435184aab6466219"),),
    ),
    Entry(
        "airfoil",
        "Self-noise of airfoils",
        *(1_503, 5, 1),
        _UCI + "291/airfoil+self+noise",
        (File("airfoil.csv.gz", 1_503, "0c264e43cb70e156a2ae431706a29afbf6a12dcc2e86a581c65993d98d70a41b"),),
        note=_CENTRED,
    ),
    Entry(
        "wine",
        "Quality of red wine",
        *(1_599, 11, 1),
        _UCI + "186/wine+quality",
        (File("wine.csv", 1_599, "4ad5413478ff4ab55db59a9b87766f06d51a251903f5764cdc497e4d5db9dc87"),),
        note="red wines only",
    ),
    Entry(
        "pumadyn32nm",
        "Dynamics of a Puma robot arm",
        *(8_192, 32, 1),
        "https://www.cs.toronto.edu/~delve/data/pumadyn/desc.html",
        (File("pumadyn32nm.csv.gz", 8_192, "505c2f24a746dd84669eaca04f567aed088456d82f24b425e221ac51926459ed"),),
        note="every column standardised, five digits",
    ),
    Entry(
        "naval",
        "Decay of a ship's engine",
        *(11_934, 16, 2),
        _UCI + "316/condition+based+maintenance+of+naval+propulsion+plants",
        (File("naval.csv.gz", 11_934, "187d57e591f7be94ef1218e6e2e036ebc7de67ebdf096f44de746a6f9567b39a"),),
    ),
    Entry(
        "keggdirected",
        "Metabolic pathways",
        *(48_827, 20, 1),
        _UCI + "220/kegg+metabolic+relation+network+directed",
        (File("keggdirected.csv.gz", 48_827, "e2f6d95d0b7e2a874208626a73e68d3c71b2aa925b0d91042ac7a1b60becce05"),),
        note=_CENTRED,
    ),
)

REGISTRY = {entry.name: entry for entry in _ENTRIES}


def find(name: str) -> Entry:
    """The entry of a data set, or an error that lists the known ones."""
    if not isinstance(name, str) or name not in REGISTRY:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(REGISTRY)}")
    return REGISTRY[name]
