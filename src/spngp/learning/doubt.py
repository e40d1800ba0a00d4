"""Outputs in doubt: which of them get a noise of their own, judged alike in a fit and when rows come later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from spngp._standardise import few_of
from spngp._typing import Array, Mask
from spngp.network import Node, conditioning
from spngp.residuals import outliers

_SCREENINGS = 4  # for outputs in doubt, at most: a large one hides smaller ones

# Given outputs with NaN for those in doubt, and which of them were found just now: the prior learnt without them.
LearnAgain: TypeAlias = Callable[[Array, Mask], Node]


@dataclass(frozen=True)
class Judged:
    """The result of a judgement.

    Attributes
    ----------
    prior : Node
        Learnt again where it had been learnt from outputs in doubt.
    own : Node
        A posterior of own rows, without outputs in doubt and without factors; some leaves may be of an earlier prior.
    own_noise : ndarray, optional
        In the shape of Y, the variance of the noise of outputs in doubt and NaN for all others; None if all are others.
    """

    prior: Node
    own: Node
    own_noise: Array | None


def beyond_reach(Y: Array, reach: Array) -> Mask:
    """Outputs out of all proportion: further off than ``reach``, one number per output, and few of all rows.

    Where many are that far off, outputs have become others, and none is out of proportion.
    """
    beyond = np.abs(Y) > reach
    return np.asarray(beyond & (beyond.sum(axis=0) <= few_of(Y.shape[0])))


def noise_beyond_reach(Y: Array, reach: Array) -> Array | None:
    """Own noise of outputs out of all proportion, which is their square; NaN for all others, None if there are none."""
    beyond = beyond_reach(Y, reach)
    return np.where(beyond, Y * Y, np.nan) if beyond.any() else None


def without_doubted(Y: Array, own_noise: Array | None) -> Array:
    """Outputs with NaN for those in doubt."""
    return Y if own_noise is None else np.where(np.isnan(own_noise), Y, np.nan)


def judge(
    prior: Node,
    X: Array,
    Y: Array,
    own_noise: Array | None,
    n_jobs: int | None,
    *,
    learn_again: LearnAgain | None = None,
    among: Mask | None = None,
    known: Node | None = None,
) -> Judged:
    """Find outputs in doubt besides those that have an ``own_noise`` already, by what all others of their region say.

    Regions where some were found are looked at again for what they hid. ``among`` restricts doubt to the outputs marked
    there; ``known`` is an earlier posterior, for leaves that have got no further rows since and doubt none of theirs.
    """
    in_doubt: Mask | None = None
    for _ in range(_SCREENINGS):
        sound = without_doubted(Y, own_noise)
        known = own = conditioning.condition(
            prior, X, sound, own_noise=own_noise, known=known, n_jobs=n_jobs, keep=conditioning.no_factors
        )
        found = outliers(own, X, sound, n_jobs, near=in_doubt, among=among)
        if found is None:
            break
        own_noise = found if own_noise is None else np.where(np.isnan(found), own_noise, found)
        in_doubt = ~np.isnan(found)
        if learn_again is not None:
            # what was learnt from outputs in doubt is learnt again without, and may then show others
            prior = learn_again(without_doubted(Y, own_noise), in_doubt)
    return Judged(prior, own, own_noise)
