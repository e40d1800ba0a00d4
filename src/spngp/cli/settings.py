"""Settings of ``spngp fit``, each declared once: its option, its entry in a TOML file, what is allowed, its default.

The command line goes before the file, and the file before the defaults. The file uses the names of the options, with
or without dashes: ``max-leaf-size = 300`` or ``max_leaf_size = 300``.
"""

from __future__ import annotations

import inspect
import math
import reprlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from spngp._support.limits import LARGEST_OVERLAP


@dataclass(frozen=True)
class Kind:
    """How a value is read.

    Attributes
    ----------
    type : type
        What the command line takes.
    told : str
        What an error about the file calls it.
    of_file : callable
        Turns a value of the file into the setting; None if it is not a valid one.
    of_option : callable
        Turns what the command line took into the setting.
    """

    type: Any
    told: str
    of_file: Callable[[Any], Any]
    of_option: Callable[[Any], Any] = lambda value: value


def comma_separated(values: Sequence[str]) -> list[str]:
    """``["a,b", "c"]`` as ``["a", "b", "c"]``."""
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


def assignments(values: Sequence[str]) -> dict[str, list[str]]:
    """``["size=S,M,L", "when"]`` as ``{"size": ["S", "M", "L"], "when": []}``."""
    parts = (value.partition("=") for value in values)
    return {name.strip(): comma_separated([listed]) for name, _, listed in parts}


def _texts(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    return value if isinstance(value, list) and all(isinstance(item, str) for item in value) else None


def _table(value: Any) -> dict[str, list[str]] | None:
    if isinstance(value, dict):
        converted = {name: _texts(item) for name, item in value.items()}
        return None if None in converted.values() else {name: item or [] for name, item in converted.items()}
    texts = _texts(value)
    return None if texts is None else assignments(texts)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _numbers(value: Any) -> list[float] | None:
    values = [_number(item) for item in (value if isinstance(value, list) else [value])]
    return [item for item in values if item is not None] if values and None not in values else None


def _numbers_of_option(value: str) -> list[float]:
    try:
        return [float(part) for part in value.split(",")]
    except ValueError:
        raise typer.BadParameter(f"must be numbers with commas between, got {value!r}", param_hint="--margin") from None


def _of_type(kind: type) -> Callable[[Any], Any]:
    return lambda value: value if type(value) is kind else None


_NAME_LIST = Kind(list[str], "a name or a list of names", _texts)
_NAMES = Kind(list[str], "a name or a list of names", _texts, comma_separated)
_MAP = Kind(list[str], "a table of names to lists of texts", _table, assignments)
_TEXT = Kind(str, "a text", _of_type(str))
_FLAG = Kind(bool, "true or false", _of_type(bool))
_INTEGER = Kind(int, "an integer", _of_type(int))
_NUMBER = Kind(float, "a number", _number)
_NUMBERS = Kind(str, "a number or a list of numbers", _numbers, _numbers_of_option)


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes
    ----------
    name : str
        In Python and in the file; the option is ``--name`` unless ``flags`` say otherwise.
    parameter : str or None
        The estimator's parameter, where it is one.
    words : tuple of str
        If given, the value is one of these.
    allowed, holds : str, callable
        Which numbers are allowed, in words and as a test.
    """

    name: str
    kind: Kind
    help: str
    metavar: str | None = None
    default: Any = None
    flags: tuple[str, ...] = ()
    panel: str | None = None
    parameter: str | None = None
    words: tuple[str, ...] = ()
    allowed: str = ""
    holds: Callable[[Any], bool] = lambda value: True

    @property
    def option(self) -> str:
        """The option's name on the command line."""
        return self.flags[0] if self.flags else f"--{self.name.replace('_', '-')}"

    def typer_parameter(self) -> inspect.Parameter:
        """The option as Typer takes it, None where it was not given."""
        flags = self.flags or (self.option,)
        told = self.help if not self.words else f"{', '.join(self.words[:-1])} or {self.words[-1]}."
        option = typer.Option(*flags, metavar=self.metavar, rich_help_panel=self.panel, help=told, show_default=False)
        annotation: Any = Annotated.__class_getitem__((self.kind.type | None, option))  # type: ignore[attr-defined]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)

    def check(self, value: Any) -> None:
        """Raise an error in the command line's words if the value is not allowed."""
        if value is None:
            return
        if self.words and value not in self.words:
            raise self._wrong(f"{', '.join(self.words[:-1])} or {self.words[-1]}", repr(value))
        if not self.holds(value):
            raise self._wrong(self.allowed, f"{value:g}" if isinstance(value, int | float) else repr(value))

    def _wrong(self, allowed: str, seen: str) -> typer.BadParameter:
        return typer.BadParameter(f"must be {allowed}, got {seen}", param_hint=self.option)


def _column(name: str, kind: Kind, metavar: str | None, told: str, **extra: Any) -> Setting:
    return Setting(name, kind, told, metavar, panel="Columns", **extra)


def _model(name: str, kind: Kind, metavar: str, told: str = "", **extra: Any) -> Setting:
    return Setting(name, kind, told, metavar, panel="Model", parameter=name, **extra)


def _at_least(least: float) -> dict[str, Any]:
    return {"allowed": f"at least {least:g}", "holds": lambda value: least <= value < math.inf}


SETTINGS = (
    Setting("target", _NAME_LIST, "Column to predict; may be repeated.", "NAME", [], ("--target", "-t")),
    Setting("output", _TEXT, "Model file to write, such as model.spngp.", "FILE", flags=("--output", "-o")),
    Setting(
        "with_factors",
        _FLAG,
        "Save Cholesky factors as well: larger by far, quick from the first prediction on.",
        default=False,
        flags=("--with-factors",),
    ),
    Setting(
        "holdout",
        _NUMBER,
        "Rows held out to measure accuracy; 0.1 by default.",
        "SHARE",
        0.1,
        allowed="at least 0 and below 1",
        holds=lambda value: 0.0 <= value < 1.0,
    ),
    Setting(
        "seed",
        _INTEGER,
        "Of everything random; 0 by default.",
        "N",
        0,
        parameter="random_state",
        allowed="a whole number >= 0",
        holds=lambda value: value >= 0,
    ),
    Setting(
        "jobs",
        _INTEGER,
        "Threads; one on each core by default.",
        "N",
        -1,
        parameter="n_jobs",
        allowed="a number other than 0, -1 for one on each core",
        holds=lambda value: value != 0,
    ),
    _column("features", _NAMES, "A,B", "Inputs; by default all but targets, ids and what looks like ids."),
    _column("id", _NAMES, "A,B", "Not inputs.", default=[]),
    _column("number", _NAMES, "A,B", "Numbers, whatever they look like.", default=[]),
    _column("category", _NAMES, "A,B", "Levels without order.", default=[]),
    _column("ordinal", _MAP, "A=S,M,L", "Levels in their order.", default={}),
    _column(
        "date",
        _MAP,
        "A=PARTS",
        "Dates, turned into any of days,time,week,season,year,month,day,weekday,dayofyear,hour; by default the days "
        "and, where they span enough, the circles of the day (time), the week and the year (season).",
        default={},
    ),
    _column("date_format", _TEXT, "FORMAT", "Such as %d.%m.%Y; ISO by default."),
    _column(
        "unknown",
        _TEXT,
        "WORD",
        "A level that the fit has not seen: predicted from the prior over levels, or an error.",
        words=("prior", "error"),
        parameter="unknown",
    ),
    _column("weight", _TEXT, "NAME", "How often each row counts; may be a fraction."),
    _column("variance", _TEXT, "NAME", "Known variance of each target's measurement."),
    Setting(
        "target_scale",
        _TEXT,
        "Learn the target's logarithm.",
        "NAME",
        panel="Model",
        parameter="target",
        words=("log", "auto"),
    ),
    _model("structure", _TEXT, "NAME", words=("compact", "random", "equal-width")),
    _model("max_leaf_size", _INTEGER, "N", "Most rows in a region.", **_at_least(1)),
    _model("n_partitions", _INTEGER, "N", "Alternative cuts of every region.", **_at_least(1)),
    _model(
        "overlap",
        _NUMBER,
        "X",
        "Rows seen beyond a region's border, per own row.",
        allowed=f"at least 0 and at most {LARGEST_OVERLAP:g}",
        holds=lambda value: 0 <= value <= LARGEST_OVERLAP,
    ),
    _model(
        "margin",
        _NUMBERS,
        "X[,X…]",
        "Instead: rows seen up to this distance beyond it, for all inputs or one each.",
        allowed="numbers of at least 0",
        holds=lambda values: all(0 <= value < math.inf for value in values),
    ),
    _model("hyperparameters", _TEXT, "NAME", words=("adaptive", "tied", "independent", "fixed")),
    _model("noise_variance", _NUMBER, "X", "Of the target's noise, if it is known.", **_at_least(0)),
    _model("noise_shape", _TEXT, "NAME", words=("learnt", "gaussian")),
    _model("outliers", _TEXT, "NAME", words=("doubt", "trust")),
    _model(
        "memory_limit",
        _NUMBER,
        "GB",
        "That the model may hold, factors included.",
        allowed="above 0",
        holds=lambda value: 0 < value < math.inf,
    ),
)


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every setting, handed to it as keywords; they stand after its first argument."""
    parameters = list(inspect.signature(command, eval_str=True).parameters.values())
    further = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in parameters[1:] if item.name != "given"]
    options = [setting.typer_parameter() for setting in SETTINGS]
    whole = [parameters[0], *options[:2], *further, *options[2:]]
    command.__signature__ = inspect.Signature(whole)  # type: ignore[attr-defined]
    command.__annotations__ = {item.name: item.annotation for item in whole} | {"return": None}
    return command


def fit_settings(config: str | None, given: Mapping[str, Any]) -> SimpleNamespace:
    """All settings by name: what the command line was given (None or empty: not given), the file, the defaults."""
    values = {setting.name: setting.default for setting in SETTINGS}
    values |= _from_file(config) if config is not None else {}
    for setting in SETTINGS:
        value = given[setting.name]
        if value is not None and value != []:
            values[setting.name] = setting.kind.of_option(value)
        setting.check(values[setting.name])
    if values["overlap"] is not None and values["margin"] is not None:
        raise typer.BadParameter("goes without --overlap: give one of them", param_hint="--margin")
    return SimpleNamespace(**values)


def estimator_parameters(settings: SimpleNamespace) -> dict[str, Any]:
    """The settings that are parameters of the estimator, if they were given."""
    found = {item.parameter: getattr(settings, item.name) for item in SETTINGS if item.parameter is not None}
    given = {name: value for name, value in found.items() if value is not None}
    if len(given.get("margin", ())) == 1:  # one for all inputs
        given["margin"] = given["margin"][0]
    return given


def _from_file(path: str) -> dict[str, Any]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        entries = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is not TOML that can be read: it is nested too deep") from None
    known = {setting.name: setting for setting in SETTINGS}
    values = {}
    for entry, value in entries.items():
        name = entry.replace("-", "_")
        if name not in known:
            raise ValueError(f"{path}: unknown setting {entry!r}; known are {', '.join(sorted(known))}")
        converted = known[name].kind.of_file(value)
        if converted is None:
            raise ValueError(f"{path}: {entry} must be {known[name].kind.told}, got {reprlib.repr(value)}")
        values[name] = converted
    return values
