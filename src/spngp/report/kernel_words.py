"""Parameters of kernels in words and in the units of columns: how far apart rows may be and still be alike."""

from __future__ import annotations

import math
from typing import Any

from spngp.plotting.settings import Group, Range
from spngp.report.columns import Column, with_unit
from spngp.report.text import number

_NO_EFFECT = 3.0  # length-scales longer than this many ranges of a column
_SAME_LEVELS = 99.8  # % that levels are alike; less moves predictions if the kernel is large
_SHOWN = 12  # columns, at most

_MEANINGS = {
    "SquaredExponential": "smooth curves",
    "Matern": "curves with kinks",
    "RationalQuadratic": "curves that are smooth on several scales",
    "Periodic": "curves that repeat themselves",
    "Linear": "straight lines",
    "Polynomial": "polynomials",
    "Constant": "the same value everywhere",
    "RandomSlopes": "a straight line for each level",
    "Step": "two levels",
}


def meaning(label: str, n_parts: int = 0) -> str:
    """What functions a kernel describes, from its label; empty for one of the user's own.

    ``n_parts`` is the number of its curves if there are more than the label says, found where residuals had structure.

    Examples
    --------
    >>> from spngp.report.kernel_words import meaning
    >>> meaning("SquaredExponential + SquaredExponential"), meaning("Matern(1.5) (one length-scale)")
    ('smooth curves, a slow and a fast one', 'curves with kinks, equally fast along all columns')
    """
    shared = label.endswith(" (one length-scale)")
    parts = label.partition(" #")[0].removesuffix(" (one length-scale)").split(" + ")
    kinds = [part.partition("(")[0] for part in parts]
    if any(kind not in _MEANINGS for kind in kinds):
        return ""
    words = " and ".join(dict.fromkeys(_MEANINGS[kind] for kind in kinds))
    if len(parts) == 2 and kinds[0] == kinds[1] and kinds[0] not in ("Linear", "Constant"):
        words += ", a slow and a fast one"
    elif len(parts) > len(set(kinds)):
        words += f", a sum of {len(parts)}"
    if n_parts > len(parts):
        words += f", {n_parts - len(parts)} more for fine structure"
    return words + (", equally fast along all columns" if shared else "")


def parameter_table(group: Group, columns: list[Column], spans: dict[int, float], unit: str) -> dict[str, list[Any]]:
    r"""What the settings of a kernel say: a row for each column, a column for each part of a sum or product.

    ``spans`` has the range of each input in the rows learnt from.

    Examples
    --------
    >>> from spngp.plotting.settings import Group, Range
    >>> from spngp.report.columns import Column
    >>> from spngp.report.kernel_words import parameter_table
    >>> roles = [("length_scale", 0, (0,)), ("variance", None, (0,)), ("length_scale", 0, (1,))]
    >>> identities = tuple({"role": role, "input": i, "part": part} for role, i, part in roles)
    >>> values = (Range(2.0, 2.0, 2.0), Range(9.0, 9.0, 9.0), Range(800.0, 800.0, 800.0))
    >>> group = Group("a", 1, 1.0, values[0], values, identities, 0, values[0])
    >>> parameter_table(group, [Column("time", "number", (0,), unit="ms")], {0: 50.0}, "g")["rows"]
    [['size', '±3\xa0g', ''], ['time: alike within', '2\xa0ms', 'no effect']]

    Of straight lines, what a column has is a slope:

    >>> group = Group("RandomSlopes + Linear", 1, 1.0, values[0], values, identities, 0, values[0])
    >>> parameter_table(group, [Column("time", "number", (0,), unit="ms")], {0: 50.0}, "g")["rows"][1][1]
    'slope ±1.5\xa0g/ms'
    """
    cells: dict[str, dict[str, str]] = {}
    parts = list(dict.fromkeys(_part(identity) for identity in group.identities))
    straight = {part for part, kind in zip(parts, group.label.split(" + "), strict=False) if kind == "RandomSlopes"}
    sizes = {
        _part(identity): math.sqrt(value.middle)
        for identity, value in zip(group.identities, group.parameters, strict=True)
        if identity["role"] == "variance"
    }
    for identity, value in zip(group.identities, group.parameters, strict=True):
        told = _size(identity, value, unit)
        if told is not None:
            cells.setdefault(told[0], {})[_part(identity)] = told[1]
    whole = [column for column in columns if not column.part]
    for column in whole[:_SHOWN]:
        for part in parts:
            scales = [
                (identity, value)
                for identity, value in zip(group.identities, group.parameters, strict=True)
                if _part(identity) == part
                and identity["role"] in ("length_scale", "period")
                and (identity["input"] is None or identity["input"] in column.inputs)
            ]
            for role in ("length_scale", "period"):
                found = [(identity, value) for identity, value in scales if identity["role"] == role]
                if found:
                    title = f"{column.name}: {'alike within' if role == 'length_scale' else 'repeats every'}"
                    told_reach = _reach(column, found, spans, role)
                    if part in straight and column.kind != "category" and told_reach != "no effect":
                        told_reach = _slope(sizes[part] / found[0][1].middle, _unit(column), unit)
                    cells.setdefault(title, {})[part] = told_reach
    left = len(whole) - _SHOWN
    rows = [[name, *(row.get(part, "") for part in parts)] for name, row in cells.items()]
    return {"parts": parts, "rows": rows, "left": [left] if left > 0 else []}


def _size(identity: dict[str, Any], value: Range, unit: str) -> tuple[str, str] | None:
    role = identity["role"]
    if role in ("length_scale", "period"):
        return None
    if role in ("variance", "bias_variance"):
        root = Range(*(math.sqrt(v) for v in (value.low, value.middle, value.high)))
        name = "size" if role == "variance" else "size of a constant"
        return name, "±" + with_unit(root.text(number3), unit)
    return role.replace("_", " "), value.text(number3)


def _reach(column: Column, found: list[tuple[dict[str, Any], Range]], spans: dict[int, float], role: str) -> str:
    """How far rows may differ in a column and still be about half alike."""
    if column.kind == "category" and role == "length_scale":
        shortest = min((value for _, value in found), key=lambda value: value.middle)
        alike = [100.0 * math.exp(-0.5 / v**2) if v > 0 else 0.0 for v in (shortest.low, shortest.high)]
        if alike[0] > _SAME_LEVELS:
            return "no effect"
        low, high = (f"{v:.0f}" if v < 99.0 else f"{v:.1f}" for v in alike)
        if alike[1] < 1.0:
            return "levels unlike"
        return f"levels {low}\u00a0% alike" if low == high else f"levels {low} to {high}\u00a0% alike"
    i = column.inputs[0]
    value = next((v for identity, v in found if identity["input"] in (i, None)), found[0][1])
    span = spans.get(i, 0.0)
    if column.levels and role == "length_scale" and value.high < 0.4:
        return "levels unlike"
    if role == "length_scale" and span > 0 and value.low > _NO_EFFECT * span:
        return "no effect"
    if role == "length_scale" and span > 0 and value.high > _NO_EFFECT * span:
        value = Range(value.low, value.middle, math.inf)
        return f"{with_unit(number3(value.low), _unit(column))} or more"
    return with_unit(value.text(number3), _unit(column))


def _slope(size: float, of_column: str, of_output: str) -> str:
    """A slope with its unit, as far as units are known."""
    unit = f"{of_output or 'units'}/{of_column}" if of_column else f"{of_output}/unit" if of_output else ""
    return f"slope ±{with_unit(number3(size), unit)}"


def _unit(column: Column) -> str:
    if column.kind == "date":
        return "days"
    return "steps" if column.levels else column.unit


def _part(identity: dict[str, Any]) -> str:
    return "part " + ".".join(str(i + 1) for i in identity["part"]) if identity["part"] else "value"


def number3(value: float) -> str:
    """Three digits."""
    return number(value, 3)
