"""One column of a table, and the inputs of the model that it becomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spngp._support.checks import shown
from spngp._support.types import Array, Mask
from spngp.columns import dates
from spngp.columns.frames import Values

MISSING_LEVEL = "(missing)"  # the level of rows without one, where there were such rows in the fit
KINDS = ("number", "boolean", "duration", "date", "ordinal", "category")


@dataclass(frozen=True)
class Column:
    """How a column becomes inputs.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "duration", "date", "ordinal", "category"}
        A duration is a number of seconds. An ordinal column has levels in an order and becomes their positions, counted
        from 0. A category has levels without order and becomes their codes.
    levels : tuple of str
        Of an ordinal column in their order. Of a category by the mean rank of their outputs in the fit, so that a cut
        between codes separates levels of high from levels of low outputs, and then those that rows brought which were
        added later; kernels see only which codes are equal.
    unseen : int
        Of a category: the code of all levels that are not listed. Codes of levels are even, 0, 2, 4 …; this one is odd
        and stands where half of the rows had lower codes when everything was learnt. Every odd code is that of a level
        not seen.
    parts : tuple of str
        What a date becomes; see :data:`spngp.columns.dates.DATE_PARTS`.
    gaps : bool
        Whether values were missing in rows learnt from. A missing value of a category then has the level ``(missing)``;
        one of another kind becomes ``fill``, and a last input tells missing ones (1) from others (0).
    fill : tuple of float
        For each input, what stands for a missing value: the median. Empty for categories.
    """

    name: str
    kind: str = "number"
    levels: tuple[str, ...] = ()
    unseen: int = 0
    parts: tuple[str, ...] = ()
    gaps: bool = False
    fill: tuple[float, ...] = ()

    @property
    def input_names(self) -> list[str]:
        """Names of the model's inputs that come from this column."""
        names = dates.input_names(self.name, self.parts) if self.kind == "date" else [self.name]
        return [*names, f"{self.name} missing"] if self._has_indicator else names

    @property
    def level_counts(self) -> tuple[int, ...]:
        """For each input the number of its codes; 0 for numbers."""
        if self.kind == "category":
            return (2 * len(self.levels),)
        n_numbers = len(self.input_names) - self._has_indicator
        return (0,) * n_numbers + ((2,) if self._has_indicator else ())

    @property
    def may_be_missing(self) -> bool:
        """Whether a missing value has a meaning that was learnt, or that of a level not seen before."""
        return self.gaps or self.kind == "category"

    @property
    def is_plain(self) -> bool:
        """Whether it is a number that enters as it is and is never missing."""
        return self.kind in ("number", "boolean") and not self.gaps

    @property
    def _has_indicator(self) -> bool:
        return self.gaps and self.kind != "category"

    def encode(self, values: Values, refuse_unseen: bool = False) -> Array:
        """Inputs (n, …); NaN where a value is missing that was never missing in the fit."""
        if self.kind == "category":
            return self._codes(values, refuse_unseen)[:, np.newaxis]
        if self.kind == "ordinal":
            place = {level: float(i) for i, level in enumerate(self.levels)}
            found = [np.nan if text is None else self._known(text, place, row) for row, text in enumerate(values.texts)]
            columns = np.array(found).reshape(-1, 1)
        elif self.kind == "date":
            columns = dates.encode(values.numbers, self.parts)
        else:
            columns = values.numbers[:, np.newaxis]
        missing = np.isnan(columns[:, 0])
        if not self._has_indicator:
            return columns
        filled = np.where(missing[:, np.newaxis], self.fill, columns)
        return np.column_stack([filled, missing.astype(np.float64)])

    def _codes(self, values: Values, refuse_unseen: bool) -> Array:
        code = {level: 2.0 * i for i, level in enumerate(self.levels)}
        absent = code.get(MISSING_LEVEL, float(self.unseen)) if self.gaps else float(self.unseen)
        if refuse_unseen:
            for row, text in enumerate(values.texts):
                if text is not None and text not in code:
                    raise self._unknown(text, row)
        return np.array([absent if text is None else code.get(text, self.unseen) for text in values.texts], dtype=float)

    def _known(self, text: str, place: dict[str, float], row: int) -> float:
        if text not in place:
            raise self._unknown(text, row)
        return place[text]

    def _unknown(self, text: str, row: int) -> ValueError:
        listed = ", ".join(self.levels[:8]) + (f" and {len(self.levels) - 8} more" if len(self.levels) > 8 else "")
        return ValueError(f"column {self.name!r}, row {row}: {shown(text)} is none of its levels, {listed}")

    def level_of(self, code: float) -> str | None:
        """The level of a code, or of a position in an order; None for a code of unseen levels."""
        if self.kind == "ordinal":
            return self.levels[round(min(max(code, 0.0), len(self.levels) - 1.0))]
        return None if round(code) % 2 else self.levels[round(code) // 2]

    def levels_between(self, low: float, high: float) -> tuple[str, ...]:
        """Levels of a category whose codes lie in (low, high]: a side of a region."""
        codes = 2 * np.arange(len(self.levels))
        inside: Mask = (codes > low) & (codes <= high)
        return tuple(level for level, own in zip(self.levels, inside, strict=True) if own)
