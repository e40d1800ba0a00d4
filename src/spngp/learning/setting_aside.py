"""Outputs that parameters are learnt without at first, because they look like gross errors; they are judged later.

Parameters that are learnt from a few gross errors explain them: a part that is short along many inputs takes the place
of the noise, and nothing is in doubt any more. To tied parameters errors are shown by the GP where training starts,
which knows of no output; to experts, and to cuts where the noise changes, by the tied GPs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.threads import map_leaves
from spngp._support.types import Array, Indices, Mask
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import FEW_ROWS, leave_one_out, misleading_rows
from spngp.gp.optimisation import Block
from spngp.learning.blocks import observed
from spngp.learning.plan import Plan
from spngp.learning.proportion import most_errors, told_by_inputs

_SEARCHES = 3  # one after the other: errors hide others
_FAR = 10.0  # standard deviations from what the others predict, as the middle half of all residuals shows them
_FAR_OF_FEW = 7.0  # the same of few rows, where Student's t makes it more


def without_errors(start: ExactGP, blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks without outputs that look like gross errors to the GP ``start``."""
    return [block if not (errors := errors_in(start, block)).any() else block.only(~errors) for block in blocks]


def errors_in(start: ExactGP, block: Block) -> Mask:
    """Which outputs mislead the others and are far from what these predict, unless they are too many to be errors.

    Where inputs tell which they are, they are a peak, a step or a rare level.
    """
    errors = np.zeros(block.y.size, dtype=bool)
    for _ in range(_SEARCHES):
        kept = np.flatnonzero(~errors)
        found = kept[_misleading(start, block.only(kept))]
        errors[found] = True
        if not found.size or errors.sum() > most_errors(block.y.size):
            break
    genuine = not errors.any() or errors.sum() > most_errors(block.y.size) or told_by_inputs(block.X, errors)
    return np.zeros_like(errors) if genuine else errors


def _misleading(start: ExactGP, block: Block) -> Indices:
    """Rows that mislead the others, far from them."""
    none = np.zeros(0, dtype=np.intp)
    try:
        gp = block.given_to(start)
    except NotPositiveDefiniteError:
        return none
    if gp.rows_seen_once.size < block.y.size:
        return none  # equal rows were merged: they have no residuals of their own
    if block.y.size <= FEW_ROWS:
        return misleading_rows(gp, _FAR_OF_FEW)[0]
    residuals, variances = leave_one_out(gp, np.arange(block.y.size))
    spread = 1.4826 * float(np.median(np.abs(residuals) / np.sqrt(variances + gp.noise_variance)))
    return misleading_rows(gp, _FAR * spread)[0]


def trusted_outputs(
    gps: Sequence[Sequence[ExactGP]], groups: Sequence[Indices], W: Array, sound: Array, plan: Plan
) -> Array:
    """The outputs with NaN for those that look like gross errors to tied GPs, the first of each output.

    ``groups`` are the rows of each region.
    """
    trusted = sound.copy()
    rows_of = list({rows.tobytes(): rows for rows in groups}.values())

    def set_aside(task: tuple[Indices, int]) -> None:
        rows, k = task
        rows = rows[~np.isnan(sound[rows, k])]
        if 1 < rows.size <= plan.block_size:
            errors = errors_in(gps[k][0], observed(rows, W, sound[:, k], plan.variances_of(k)))
            trusted[rows[errors], k] = np.nan

    map_leaves(set_aside, [(rows, k) for rows in rows_of for k in range(sound.shape[1])], plan.n_jobs)
    return trusted
