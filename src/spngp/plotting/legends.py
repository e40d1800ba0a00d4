"""Legends that cover no data: outside the axes."""

from __future__ import annotations

from typing import Any

_COLUMNS = 6  # entries beside each other at most


def legend_below(figure: Any, *axes: Any) -> None:
    """One legend below a figure in constrained layout, with the labels of the given axes, each once."""
    distinct: dict[str, Any] = {}
    for ax in axes:
        handles, names = ax.get_legend_handles_labels()
        for handle, name in zip(handles, names, strict=True):
            distinct.setdefault(name, handle)
    columns = min(len(distinct), _COLUMNS)
    figure.legend(list(distinct.values()), list(distinct), loc="outside lower center", ncols=columns, frameon=False)
