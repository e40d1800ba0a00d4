"""Settings of ``spngp fit``: from the command line, a TOML file, or their defaults, in this order.

The file uses the names of the options, with or without dashes: ``max-leaf-size = 300`` or ``max_leaf_size = 300``.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import typer

_WORDS = {
    "structure": ("compact", "random", "equal-width"),
    "hyperparameters": ("adaptive", "tied", "independent", "fixed"),
}


@dataclass(frozen=True)
class FitSettings:
    """Everything that ``spngp fit`` can be told; None leaves the choice to the library."""

    target: list[str] = field(default_factory=list)
    features: list[str] | None = None
    id: list[str] = field(default_factory=list)
    one_hot: list[str] = field(default_factory=list)
    ordinal: dict[str, list[str]] = field(default_factory=dict)
    date: dict[str, list[str]] = field(default_factory=dict)
    date_format: str | None = None
    impute: bool = False
    output: str | None = None
    holdout: float = 0.1
    max_leaf_size: int | None = None
    overlap: float | None = None
    structure: str | None = None
    n_partitions: int | None = None
    hyperparameters: str | None = None
    noise_variance: float | None = None
    memory_limit: float | None = None
    jobs: int = -1
    seed: int = 0

    def of_estimator(self) -> dict[str, Any]:
        """Those that the estimator takes, where given."""
        names = ("max_leaf_size", "overlap", "structure", "n_partitions", "hyperparameters", "noise_variance")
        given = {name: getattr(self, name) for name in (*names, "memory_limit") if getattr(self, name) is not None}
        return {**given, "n_jobs": self.jobs, "random_state": self.seed}


def fit_settings(config: str | None, given: Mapping[str, Any]) -> FitSettings:
    """The settings: what was given on the command line (None: not given) before what the file says."""
    values = _from_file(config) if config is not None else {}
    values.update({name: value for name, value in given.items() if value is not None})
    return FitSettings(**values)


def check_values(settings: FitSettings) -> None:
    """Raise an error in the command line's words where the estimator's would be Python's."""
    from spngp.estimators.constraints import LARGEST_OVERLAP

    for name, words in _WORDS.items():
        value = getattr(settings, name)
        if value is not None and value not in words:
            raise _wrong(name, f"{', '.join(words[:-1])} or {words[-1]}", repr(value))
    ranges: dict[str, tuple[str, Callable[[float], bool]]] = {
        "overlap": (f"at least 0 and at most {LARGEST_OVERLAP:g}", lambda x: 0 <= x <= LARGEST_OVERLAP),
        "max_leaf_size": ("at least 1", lambda x: x >= 1),
        "n_partitions": ("at least 1", lambda x: x >= 1),
        "noise_variance": ("at least 0", lambda x: 0 <= x < math.inf),
        "memory_limit": ("above 0", lambda x: 0 < x < math.inf),
        "jobs": ("a number other than 0, -1 for one on each core", lambda x: x != 0),
    }
    for name, (allowed, holds) in ranges.items():
        value = getattr(settings, name)
        if value is not None and not holds(value):
            raise _wrong(name, allowed, f"{value:g}")


def _wrong(name: str, allowed: str, seen: str) -> typer.BadParameter:
    return typer.BadParameter(f"must be {allowed}, got {seen}", param_hint=f"--{name.replace('_', '-')}")


def _from_file(path: str) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        entries = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is not TOML that can be read: it is nested too deep") from None
    known = {item.name for item in fields(FitSettings)}
    values = {}
    for entry, value in entries.items():
        name = entry.replace("-", "_")
        if name not in known:
            raise ValueError(f"{path}: unknown setting {entry!r}; known are {', '.join(sorted(known))}")
        kind, convert = _KINDS[name]
        converted = convert(value)
        if converted is None:
            raise ValueError(f"{path}: {entry} must be {kind}, got {value!r}")
        values[name] = converted
    return values


def comma_separated(values: Sequence[str] | None) -> list[str] | None:
    """``["a,b", "c"]`` as ``["a", "b", "c"]``; None stays None."""
    if values is None:
        return None
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def assignments(values: Sequence[str] | None) -> dict[str, list[str]] | None:
    """``["size=S,M,L", "when"]`` as ``{"size": ["S", "M", "L"], "when": []}``; None stays None."""
    if values is None:
        return None
    return {
        name.strip(): comma_separated([listed]) or [] for name, _, listed in (value.partition("=") for value in values)
    }


def _texts(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) and all(isinstance(item, str) for item in value) else None


def _table(value: Any) -> dict[str, list[str]] | None:
    if isinstance(value, dict):
        converted = {name: _texts(item) for name, item in value.items()}
        return None if None in converted.values() else {name: item or [] for name, item in converted.items()}
    return assignments(_texts(value))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _of_type(kind: type) -> Callable[[Any], Any]:
    return lambda value: value if type(value) is kind else None


_LIST: tuple[str, Callable[[Any], Any]] = ("a name or a list of names", _texts)
_MAP: tuple[str, Callable[[Any], Any]] = ("a table of names to lists of texts", _table)
_TEXT: tuple[str, Callable[[Any], Any]] = ("a text", _of_type(str))
_INTEGER: tuple[str, Callable[[Any], Any]] = ("an integer", _of_type(int))
_NUMBER: tuple[str, Callable[[Any], Any]] = ("a number", _number)
_FLAG: tuple[str, Callable[[Any], Any]] = ("true or false", _of_type(bool))

_KINDS = {
    "target": _LIST,
    "features": _LIST,
    "id": _LIST,
    "one_hot": _LIST,
    "ordinal": _MAP,
    "date": _MAP,
    "date_format": _TEXT,
    "impute": _FLAG,
    "output": _TEXT,
    "holdout": _NUMBER,
    "max_leaf_size": _INTEGER,
    "overlap": _NUMBER,
    "structure": _TEXT,
    "n_partitions": _INTEGER,
    "hyperparameters": _TEXT,
    "noise_variance": _NUMBER,
    "memory_limit": _NUMBER,
    "jobs": _INTEGER,
    "seed": _INTEGER,
}
