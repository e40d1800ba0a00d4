"""Legends that cover no data: outside the axes."""

from __future__ import annotations

from typing import Any


def legend_below(figure: Any, *axes: Any) -> None:
    """One legend below a figure in constrained layout, with the labels of the given axes, each once."""
    distinct: dict[str, Any] = {}
    for ax in axes:
        handles, names = ax.get_legend_handles_labels()
        for handle, name in zip(handles, names, strict=True):
            distinct.setdefault(name, handle)
    figure.legend(
        list(distinct.values()), list(distinct), loc="outside lower center", ncols=len(distinct), frameon=False
    )
