"""Files from the web: what comes is checked before it appears in a folder, whole or not at all."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

from spngp._support.atomic import replacing
from spngp._support.types import Array
from spngp.datasets.formats import read_original
from spngp.datasets.originals import ORIGINALS, Original, values_checksum
from spngp.datasets.registry import File

_TIMEOUT = 30.0  # seconds without an answer
_LARGEST = 200_000_000  # bytes that a file may have


def download(file: File, url: str, target: Path) -> None:
    """Download a file as it is; it must have its checksum."""
    content, reason = _received(url)
    found = hashlib.sha256(content).hexdigest() if content else ""
    if found == file.sha256:
        _write(target, content)
        return
    received = f"the SHA-256 of what came is {found}" if content else "nothing came"
    raise ConnectionError(
        f"could not download {file.name} from {url}: {reason or 'the file there is damaged or another version'}; its "
        f"SHA-256 should be {file.sha256}, {received}; nothing was written to {target.parent}; put the file there "
        "yourself if you can get it elsewhere"
    )


def convert(file: File, original: Original, target: Path) -> Path:
    """Get a table in its original form, from the first address that has it, and write what it holds as CSV."""
    problems = []
    for url, member in original.addresses:
        content, reason = _received(url)
        if not content or reason:
            problems.append(f"{url}: {reason or 'nothing came'}")
            continue
        try:
            table = read_original(content, member)
        except ValueError as error:
            problems.append(f"{url}: {error}")
            continue
        table = table if original.decimals is None else np.round(table, original.decimals)
        if values_checksum(table) == original.values_sha256:
            _write(target, _csv(original.columns, table))
            return target
        problems.append(f"{url}: its {table.shape[0]} rows of {table.shape[1]} numbers are not those expected")
    raise ConnectionError(
        f"could not get {file.name} in its original form ({'; '.join(problems)}); nothing was written to "
        f"{target.parent}; put {file.name} there yourself if you can get it elsewhere"
    )


def is_converted(file: File, path: Path) -> bool:
    """Whether a file holds the numbers that the original form of a table must hold."""
    original = ORIGINALS.get(file.name.partition(".")[0])
    try:
        content = path.read_bytes()
        return original is not None and values_checksum(read_original(content)) == original.values_sha256
    except ValueError:
        return False


def _received(url: str) -> tuple[bytes, str]:
    """What comes from an address, and what went wrong; an answer that breaks off is told by both."""
    content = b""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            announced = answer.headers.get("Content-Length")
            while chunk := answer.read(2**20):
                content += chunk
                if len(content) > _LARGEST:
                    return b"", f"it has more than {_LARGEST:,} bytes"
        if announced is not None and announced.isdigit() and len(content) < int(announced):
            return content, f"only {len(content):,} of {int(announced):,} bytes came"
    except urllib.error.HTTPError as error:
        return b"", f"HTTP {error.code} {error.reason}"
    except (OSError, ValueError, http.client.HTTPException) as error:  # also of an address that is none
        return content, f"{getattr(error, 'reason', None) or error}"
    return content, ""


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary:
        temporary.write_bytes(content)


def _csv(columns: tuple[str, ...], table: Array) -> bytes:
    lines = [",".join(columns), *(",".join(map(repr, row)) for row in table.tolist())]
    return ("\n".join(lines) + "\n").encode()
