"""Settings of kernels that share a region, put together by kernel and told in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spngp._support.types import Array
from spngp._support.wording import counted

_MIDDLE = (0.05, 0.5, 0.95)  # of what the settings say
_COUNTS = 0.1  # share of a kernel's variance that a part must have for its length-scales to count
_STEP_TOLD = 0.05  # share of settings with a step along an input that a sentence names
_TOLD = 0.005  # share of a kernel that a sentence names
_KERNELS, _INPUTS, _JUMPS = 4, 4, 6  # named in a sentence
_NO_EFFECT = 3.0  # length-scales longer than this many ranges of an input

Number = Callable[[float], str]
Place = Callable[[int, float, int], str]


@dataclass(frozen=True)
class Range:
    """What the settings say about one number: the middle 90 % of their weight, and its median."""

    low: float
    middle: float
    high: float

    def scaled(self, factor: float) -> Range:
        """Times a factor."""
        return Range(factor * self.low, factor * self.middle, factor * self.high)

    def text(self, number: Number, unit: str = "") -> str:
        """In words: one number if the settings agree within a hundredth."""
        behind = f" {unit}" if unit else ""
        if self.high - self.low <= 0.01 * abs(self.middle):
            return number(self.middle) + behind
        return f"{number(self.low)} to {number(self.high)}{behind}"


@dataclass(frozen=True)
class Group:
    """The settings of one kernel in one region, with noise that changes with the inputs or does not.

    Attributes
    ----------
    label : str
        Of the kernel.
    count : int
        How many settings.
    share : float
        Of all kernels in the region.
    noise_std : Range
    parameters : tuple of Range
        In the order of ``identities``.
    identities : tuple of dict
        What each parameter is, as in ``regions_``.
    context_rows : int
        That the heaviest setting sees beyond the border.
    log_evidence : Range
    noise_varies : bool
    """

    label: str
    count: int
    share: float
    noise_std: Range
    parameters: tuple[Range, ...]
    identities: tuple[dict[str, Any], ...]
    context_rows: int
    log_evidence: Range
    noise_varies: bool = False

    def name(self, names: Mapping[str, str]) -> str:
        """What it is called, given the names of kernels by their labels."""
        return names.get(self.label, self.label) + (" with changing noise" if self.noise_varies else "")


def grouped(records: Sequence[dict[str, Any]]) -> list[Group]:
    """The records of ``regions_`` that share one box and output, by kernel and kind of noise, largest share first."""
    total = sum(record["weight"] for record in records)
    by_label: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for record in records:
        by_label.setdefault((record["kernel"], record["noise_varies"]), []).append(record)
    groups = []
    for (label, noise_varies), members in by_label.items():
        weights = np.array([member["weight"] for member in members])
        shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(members), 1.0 / len(members))
        values = np.array([list(member["parameters"].values()) for member in members]).reshape(len(members), -1)
        groups.append(
            Group(
                label,
                len(members),
                float(weights.sum() / total) if total > 0 else 0.0,
                _range(np.array([member["noise_std"] for member in members]), shares),
                tuple(_range(column, shares) for column in values.T),
                tuple(members[0]["identities"]),
                int(members[int(np.argmax(weights))]["context_rows"]),
                _range(np.array([member["log_evidence"] for member in members]), shares),
                noise_varies,
            )
        )
    return sorted(groups, key=lambda group: -group.share)


def in_words(
    records: Sequence[dict[str, Any]],
    inputs: Sequence[str],
    names: dict[str, str],
    number: Number = "{:.3g}".format,
    spans: Array | None = None,
    noise_factor: float = 1.0,
    units: Sequence[str] | None = None,
    coded: Container[int] = (),
    place: Place | None = None,
) -> str:
    """Which settings of which kernels share a region, in a sentence.

    ``names`` says what to call each kernel. ``spans``, the range of each input, tells which length-scales are short.
    The noise is told times ``noise_factor``. ``units`` has those of the inputs, then that of the output. Length-scales
    of ``coded`` inputs, which hold levels, are not told: they are no distances. ``place(i, value, digits)`` writes a
    value of input i with its unit.

    Examples
    --------
    >>> import numpy as np
    >>> from spngp import SPNGPRegressor
    >>> from spngp.plotting.names import short_names
    >>> from spngp.plotting.settings import in_words
    >>> x = np.linspace(0, 5, 30)
    >>> model = SPNGPRegressor(kernels=None, hyperparameters="fixed").fit(x[:, np.newaxis], np.sin(x))
    >>> print(in_words(model.regions_, ["x"], short_names(model)))
    2 kernels share it: SE + SE 93 %, Mat 3/2 + Mat 3/2 7 %; length-scale of x 1.04; noise ±0.16
    """
    groups = grouped(records)
    count = sum(group.count for group in groups)
    told_of = [group for group in groups if group.share >= _TOLD]
    kernels = ", ".join(f"{group.name(names)} {100 * group.share:.0f} %" for group in told_of[:_KERNELS])
    more = f" and {len(groups) - len(told_of[:_KERNELS])} more" if len(groups) > len(told_of[:_KERNELS]) else ""
    if count == 1:
        start = f"one kernel, {groups[0].name(names)}"
    elif count == len(groups) and len(told_of) == 1:
        start = f"{groups[0].name(names)} explains it best of {counted(count, 'kernel')}"
    elif count == len(groups):
        start = f"{counted(count, 'kernel')} share it: {kernels}{more}"
    elif len(groups) == 1:
        start = f"{counted(count, 'setting')} of {groups[0].name(names)} share it"
    else:
        start = f"{counted(count, 'setting')} of {counted(len(groups), 'kernel')} share it: {kernels}{more}"
    weights = np.array([record["weight"] for record in records])
    shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(records), 1.0 / len(records))
    scales = np.array([shortest_scales(record, len(inputs)) for record in records])
    told, numbers = [], [i for i in range(len(inputs)) if i not in coded]
    ranges = {i: _range(scales[:, i], shares) for i in numbers if np.isfinite(scales[:, i]).any()}
    span = np.ones(len(inputs)) if spans is None else np.where(spans > 0, spans, 1.0)
    if spans is not None:
        ranges = {i: found for i, found in ranges.items() if found.middle <= _NO_EFFECT * span[i]}
    shown = sorted(sorted(ranges, key=lambda i: ranges[i].middle / span[i])[:_INPUTS])
    unit = [""] * (len(inputs) + 1) if units is None else units
    told += [f"length-scale of {inputs[i]} {ranges[i].text(number, unit[i])}" for i in shown]
    noise = _range(np.array([record["noise_std"] for record in records]), shares)

    def plain(i: int, value: float, digits: int) -> str:
        return f"{value:.{digits}g}" + (f" {unit[i]}" if unit[i] else "")

    told = [*_steps(records, shares, inputs, place or plain), *_jumps(records, shares, inputs, place or plain), *told]
    return "; ".join([start, *told, f"noise ±{noise.scaled(noise_factor).text(number, unit[-1])}"])


def _steps(records: Sequence[dict[str, Any]], shares: Array, inputs: Sequence[str], place: Place) -> list[str]:
    """Where the settings say that there is a step, the likeliest input first."""
    found: dict[int, list[tuple[float, float]]] = {}
    for record, share in zip(records, shares, strict=True):
        for step in record["steps"]:
            found.setdefault(step["input"], []).append((step["at"], float(share)))
    told = []
    for i, places in sorted(found.items(), key=lambda item: -sum(share for _, share in item[1])):
        at, weights = np.array(places).T
        if weights.sum() >= _STEP_TOLD:
            found_at = _range(at, weights / weights.sum())
            low, high = (place(i, value, _digits(found_at)) for value in (found_at.low, found_at.high))
            where = low if low == high else f"{low} to {high}"
            told.append(f"{100 * min(weights.sum(), 1.0):.0f} % for a step of {inputs[i]} at {where}")
    return told


def _jumps(records: Sequence[dict[str, Any]], shares: Array, inputs: Sequence[str], place: Place) -> list[str]:
    """Where the settings say that the function jumps, as the likeliest of them says it."""
    told = []
    for i in sorted({jumps["input"] for record in records for jumps in record["jumps"]}):
        of_input = [[jumps["at"] for jumps in record["jumps"] if jumps["input"] == i] for record in records]
        share = sum(float(share) for found, share in zip(of_input, shares, strict=True) if found)
        if share >= _STEP_TOLD:
            cuts = max(((float(w), found[0]) for found, w in zip(of_input, shares, strict=True) if found))[1]
            digits = digits_apart(cuts)
            some = [place(i, cut, digits) for cut in cuts[:_JUMPS]]
            more = f" and {len(cuts) - _JUMPS} more" if len(cuts) > _JUMPS else ""
            certain = "" if share >= 1.0 - _TOLD else f"{100 * share:.0f} % for "
            told.append(f"{certain}jumps along {inputs[i]} at {', '.join(some)}{more}")
    return told


def digits_apart(values: Sequence[float]) -> int:
    """So many that ascending values differ."""
    return max((_digits(Range(low, low, high)) for low, high in itertools.pairwise(values)), default=3)


def _digits(found: Range) -> int:
    """So many that the ends of a range differ."""
    size, width = max(abs(found.low), abs(found.high)), found.high - found.low
    return min(12, max(3, math.ceil(math.log10(size / width)) + 1)) if 0 < width <= size else 3 if width else 6


def shortest_scales(record: dict[str, Any], n_inputs: int) -> Array:
    """The shortest length-scale of each input among the parts of a kernel that count; infinite without any."""
    scales = np.full(n_inputs, np.inf)
    pairs = list(zip(record["identities"], record["parameters"].values(), strict=True))
    curves = {tuple(identity["part"]) for identity, _ in pairs if identity["role"] == "length_scale"}
    sizes = {tuple(identity["part"]): value for identity, value in pairs if identity["role"] == "variance"}
    variances = {part: value for part, value in sizes.items() if part in curves}  # steps and constants are not compared
    total = sum(variances.values())
    for identity, value in pairs:
        if identity["role"] != "length_scale":
            continue
        if total > 0 and variances.get(tuple(identity["part"]), total) < _COUNTS * total:
            continue
        where = slice(None) if identity["input"] is None else identity["input"]
        scales[where] = np.minimum(scales[where], value)
    return scales


def _range(values: Array, shares: Array) -> Range:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(shares[order])
    picked = [values[order[min(int(np.searchsorted(reached, q)), values.size - 1)]] for q in _MIDDLE]
    return Range(*(float(value) for value in picked))
