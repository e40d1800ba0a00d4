"""Outputs in doubt: which outputs get a noise variance of their own, in a fit and when rows are added later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from spngp._support.types import Array, Mask
from spngp.gp.row_weights import KnownVariances
from spngp.learning.proportion import most_errors
from spngp.learning.screening import outliers
from spngp.network import Node, conditioning

_SCREENINGS = 4  # searches for outputs in doubt, at most: a large outlier inflates the noise and so hides smaller ones

# ``learn_again(Y, found)``: the prior learnt from Y, which has NaN for outputs in doubt; ``found`` marks the new ones.
LearnAgain: TypeAlias = Callable[[Array, Mask], Node]


@dataclass(frozen=True)
class Judged:
    """What :func:`judge` found.

    Attributes
    ----------
    prior : Node
        The prior network, learnt again without the outputs in doubt.
    own : Node
        The posterior given own rows, without outputs in doubt. Its leaves keep no factors, and after the last search
        some may still be conditioned from an earlier prior.
    own_noise : ndarray, optional
        In the shape of Y: the noise variance of each output in doubt, NaN elsewhere. None if no output is in doubt.
    """

    prior: Node
    own: Node
    own_noise: Array | None


def beyond_reach(Y: Array, reach: Array) -> Mask:
    """Which outputs are out of all proportion: farther from zero than ``reach``, one number per output.

    At most a few of all rows can be (:func:`most_errors`). Where more are that far off, the data have changed and none
    is out of proportion.
    """
    beyond = np.abs(Y) > reach
    return np.asarray(beyond & (beyond.sum(axis=0) <= most_errors(Y.shape[0])))


def noise_beyond_reach(Y: Array, reach: Array) -> Array | None:
    """In the shape of Y, the square of each output out of all proportion, as its noise variance; NaN elsewhere.

    None if no output is out of all proportion.
    """
    beyond = beyond_reach(Y, reach)
    return np.where(beyond, Y * Y, np.nan) if beyond.any() else None


def without_doubted(Y: Array, own_noise: Array | None) -> Array:
    """Y with NaN for the outputs in doubt, those that have an ``own_noise``."""
    return Y if own_noise is None else np.where(np.isnan(own_noise), Y, np.nan)


def judge(
    prior: Node,
    X: Array,
    Y: Array,
    own_noise: Array | None,
    n_jobs: int | None,
    *,
    learn_again: LearnAgain | None = None,
    variances: KnownVariances | None = None,
    among: Mask | None = None,
    suspects: Mask | None = None,
    known: Node | None = None,
) -> Judged:
    """Find outputs in doubt: those that the other rows of their region contradict.

    A region where some were found is searched again, because they may have hidden others.

    Parameters
    ----------
    prior : Node
    X, Y : ndarray
        All rows, in the units of learning.
    own_noise : ndarray or None
        In the shape of Y, the noise variance of outputs that are in doubt already, NaN elsewhere.
    n_jobs : int or None
    learn_again : callable, optional
        Learns the prior again without the outputs in doubt; without it, the prior stays.
    variances : KnownVariances, optional
        In the shape of Y, what is known of the noise of outputs.
    among : ndarray of bool, optional
        In the shape of Y, the outputs that may come into doubt; all by default.
    suspects : ndarray of bool, optional
        In the shape of Y, outputs that the prior was learnt without because they look like errors.
    known : Node, optional
        An earlier posterior of own rows. Leaves that still have the same rows, none of them in doubt, are taken from
        it instead of being computed again.
    """
    in_doubt: Mask | None = None
    for _ in range(_SCREENINGS):
        sound = without_doubted(Y, own_noise)
        known = own = conditioning.condition(
            prior,
            X,
            sound,
            own_noise=own_noise,
            variances=variances,
            known=known,
            n_jobs=n_jobs,
            keep=conditioning.no_factors,
        )
        found = outliers(own, X, sound, n_jobs, near=in_doubt, among=among, suspects=suspects)
        if found is None:
            break
        own_noise = found if own_noise is None else np.where(np.isnan(found), own_noise, found)
        in_doubt = ~np.isnan(found)
        if learn_again is not None:
            # parameters learnt without the outputs in doubt may reveal further ones
            prior = learn_again(without_doubted(Y, own_noise), in_doubt)
    return Judged(prior, own, own_noise)
