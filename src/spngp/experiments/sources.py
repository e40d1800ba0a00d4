"""Which code decides about results: a fingerprint of its source files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import spngp

# Rooms and files at the top level that show, read or write, but compute nothing that an experiment tells.
_WITHOUT_INFLUENCE = frozenset({"cli", "io", "plotting", "report", "tables", "__main__.py", "_version.py"})
_GENERATED = "_built.py"  # the version, different after every commit


def sources_hash(package: Path = Path(spngp.__file__).parent) -> str:
    """A hash of all source files of the package (Python and C) that can change what an experiment finds."""
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in (".py", ".c")):
        parts = path.relative_to(package).parts
        if parts[0] not in _WITHOUT_INFLUENCE and parts[-1] != _GENERATED:
            content = path.read_bytes()
            digest.update(f"{'/'.join(parts)} {len(content)}\n".encode() + content)
    return digest.hexdigest()
