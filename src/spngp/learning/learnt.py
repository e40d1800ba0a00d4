"""What was learnt: a posterior network, and everything that is needed to add rows to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from spngp._support.memory import Budget
from spngp._support.types import Array, Indices
from spngp.box import Box
from spngp.gp.exact import ExactGP
from spngp.gp.row_weights import KnownVariances
from spngp.learning.surprises import Surprises
from spngp.learning.upkeep import Upkeep
from spngp.network import Node, conditioning
from spngp.network.placement import place, route
from spngp.network.pruning import prune
from spngp.network.row_noise import Kind, RowNoise, averages, tells_apart
from spngp.network.units import Units
from spngp.noise import NoiseShape
from spngp.structure.context import NearestContext

# Posterior probability below which an expert gets no context rows: they would be costly and change hardly anything.
LEAST_WEIGHT = 0.01


@dataclass(frozen=True, kw_only=True)
class Learnt:
    """What was learnt, and the rows it was learnt from, so that more can be added.

    Attributes
    ----------
    X, Y : ndarray
        All rows, in the order in which they came, in the units of the user.
    units : Units
        The units that learning works in. Everything below is in these units, except for ``network``.
    prior : Node
        The network before it was conditioned on any row.
    own : Node
        The posterior network whose leaves know their own rows only.
    seeing : Node
        The same network whose leaves see context rows as well; alternatives of a small set may have other weights, see
        :mod:`spngp.learning.stacking`.
    network : Node
        The network that predicts: ``seeing`` in the units of the user, with the shape of the noise.
    tiles : list of Box
        Boxes that cover the space without overlap; context rows are searched for tile by tile.
    scales : ndarray
        Length-scales of the metric, one per input.
    overlap : float or ndarray
        A number: context rows per own row. An array: a margin per input.
    block_size : int
        Most rows of a region that enter a block. Regions are no larger, except where equal rows cannot be cut.
    budget : Budget
        Decides which experts keep their factors.
    n_fitted : int
        Number of rows that regions and parameters were learnt from; later rows were added by an update.
    output_spreads : ndarray
        Standard deviation of each output of the fit.
    reach : ndarray
        For each output, the distance from zero beyond which it is in doubt at once.
    doubts_outliers : bool
        Whether outputs may come into doubt and get a noise variance of their own.
    learns_noise_shape : bool
        Whether the noise may have another shape than a Gaussian's.
    noise_shapes : list of NoiseShape
        One per output.
    own_noise : ndarray, optional
        In the shape of Y: the noise variance of each output in doubt, NaN elsewhere. None if no output is in doubt.
    variances : ndarray, optional
        In the shape of Y, known variances of outputs, in the squared units of the user.
    shares : ndarray of shape (n,), optional
        The share of a row that each row counts as, where a user gave fractional weights.
    negligible : float
        Probability of all alternatives together that ``seeing`` goes without; ``own`` has them all, so that rows that
        are added may bring any of them back.
    surprise_variances : ndarray, optional
        For each output, the variance of a surprise; None if there are none.
    tied : list of list of ExactGP
        For each output, one prior per kernel with the tied parameters: experts of regions that are cut or learnt again
        later start from them.
    labels : list of list of str
        What these kernels are called.
    upkeep : Upkeep, optional
        What has happened since the fit; None if nothing has.
    noise_kinds : list of (int, str)
        Whose noise rows of other regions are seen with, see :func:`spngp.network.row_noise.noise_kinds`; if empty, as
        in files of earlier versions, the average of each output.
    noise_prior_std : float
        Standard deviation of the prior on the log noise variance of experts: regions that are learnt again later have
        the freedom that those of the fit had.
    """

    X: Array
    Y: Array
    units: Units
    prior: Node
    own: Node
    seeing: Node
    network: Node
    tiles: list[Box]
    scales: Array
    overlap: float | Array
    block_size: int
    budget: Budget
    n_fitted: int
    output_spreads: Array
    reach: Array
    doubts_outliers: bool
    learns_noise_shape: bool
    noise_shapes: list[NoiseShape]
    own_noise: Array | None = None
    negligible: float = 0.0
    variances: Array | None = None
    shares: Array | None = None
    surprise_variances: Array | None = None
    tied: list[list[ExactGP]] = field(default_factory=list)
    labels: list[list[str]] = field(default_factory=list)
    upkeep: Upkeep | None = None
    noise_kinds: list[tuple[int, str]] = field(default_factory=list)
    noise_prior_std: float = 0.5

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Whose noise rows of other regions are seen with."""
        return tuple(self.noise_kinds) or averages(self.Y.shape[1])

    def with_rows_in(self, order: Indices) -> Learnt:
        """The same with its rows in another order, such as that in which they came."""
        known = (self.own_noise, self.variances, self.shares)
        own_noise, variances, shares = (None if part is None else part[order] for part in known)
        return replace(self, X=self.X[order], Y=self.Y[order], own_noise=own_noise, variances=variances, shares=shares)

    def surprises(self, n_observed: Indices) -> Surprises:
        """What may surprise after so many outputs of each kind."""
        return Surprises(n_observed, self.surprise_variances)

    def known_variances(self, n_rows: int) -> KnownVariances | None:
        """What is known of the noise of the first rows, in the units of learning."""
        variances = None if self.variances is None else _lengthened(self.variances, n_rows, 0.0)
        shares = None if self.shares is None else _lengthened(self.shares, n_rows, 1.0)
        known = KnownVariances.of(variances, shares, self.Y.shape[1])
        return None if known is None else known.divided_by(self.units.outputs.scale)

    def knowing(self, further: KnownVariances | None, Y: Array) -> Learnt:
        """The same with what is known of the noise of further outputs Y, which are still to be added."""
        further = further or KnownVariances()
        shares = None if further.shares is None else further.shares[:, 0]
        variances = _followed_by(self.variances, further.variances, np.zeros(self.Y.shape), np.zeros(Y.shape))
        return replace(
            self,
            variances=variances,
            shares=_followed_by(self.shares, shares, np.ones(self.Y.shape[0]), np.ones(Y.shape[0])),
        )


def _followed_by(before: Array | None, now: Array | None, unknown_before: Array, unknown_now: Array) -> Array | None:
    """What is known of rows and of further ones; None if nothing is."""
    if before is None and now is None:
        return None
    return np.concatenate([unknown_before if before is None else before, unknown_now if now is None else now])


def _lengthened(known: Array, n_rows: int, value: float) -> Array:
    """The first rows of an array, with a value for those that it lacks."""
    further = np.full((max(0, n_rows - known.shape[0]), *known.shape[1:]), value)
    return np.concatenate([known[:n_rows], further])


def given_rows(
    learnt: Learnt,
    X: Array,
    Y: Array,
    own_noise: Array | None,
    known: Node | None,
    n_jobs: int | None,
    weighed: Callable[[Node], Node] = lambda own: own,
) -> Learnt:
    """The exact posterior given all rows X and Y; they begin with the rows that ``learnt`` has seen.

    Parameters
    ----------
    learnt : Learnt
    X, Y : ndarray
        In the units of the user.
    own_noise : ndarray or None
        In the shape of Y, the noise variance of outputs in doubt, NaN elsewhere.
    known : Node or None
        A posterior of own rows without the outputs in doubt. Leaves that have none are taken from it, if context rows
        are to be added: its leaves have no factors, and context makes new ones.
    n_jobs : int or None
    weighed : callable
        The posterior of own rows with the weights that it predicts with, if these are others than Bayes' rule gives.
    """

    def within_budget(sizes: list[int]) -> list[bool]:
        return learnt.budget.keep(sizes, X.shape[1])

    W, Z = learnt.units.inputs.apply(X), learnt.units.outputs.apply(Y)
    sees_context = np.ndim(learnt.overlap) > 0 or bool(learnt.overlap)
    # leaves with context are factored again below, so until then only their evidence is needed
    keep = conditioning.no_factors if sees_context else within_budget
    known = known if sees_context else None
    n_seen = learnt.Y.shape[0]
    if known is None and _same_noise(learnt.own_noise, own_noise, n_seen):
        root, new = learnt.own, slice(n_seen, None)
    else:
        root, new = learnt.prior, slice(None)
    noise = None if own_noise is None else own_noise[new]
    variances = learnt.known_variances(X.shape[0])
    given = None if variances is None else variances[new]
    own = conditioning.condition(
        root, W[new], Z[new], own_noise=noise, variances=given, known=known, n_jobs=n_jobs, keep=keep
    )
    learnt = replace(learnt, own=own, seeing=prune(weighed(own), learnt.negligible), X=X, Y=Y, own_noise=own_noise)
    return _with_context(learnt, W, Z, n_jobs, within_budget) if sees_context else learnt


def _same_noise(before: Array | None, now: Array | None, n_seen: int) -> bool:
    """Whether the first ``n_seen`` rows have the same noise variances as before."""
    if before is None or now is None:
        other = now if before is None else before
        return other is None or bool(np.isnan(other[:n_seen]).all())
    return np.array_equal(before, now[:n_seen], equal_nan=True)


def _with_context(learnt: Learnt, X: Array, Y: Array, n_jobs: int | None, keep: conditioning.Keep) -> Learnt:
    """``learnt`` with context rows for its plausible experts; X and Y are in the units of learning."""
    overlap = learnt.overlap
    context: conditioning.Context
    if np.ndim(overlap):
        context = conditioning.within_margin(X, overlap)
    else:
        most = int(float(overlap) * learnt.block_size)
        placed = place(learnt.seeing)
        rows = {item.box: own for item, own in zip(placed, route(placed, X), strict=True)}
        # where a tile was pruned, because its probability is zero, the whole space is searched: it finds the same rows
        tiles = learnt.tiles if all(tile in rows for tile in learnt.tiles) else [Box.EVERYWHERE]
        context = NearestContext(X, rows, tiles, learnt.scales, float(overlap), most)
    seeing = conditioning.add_context(
        learnt.seeing,
        X,
        Y,
        context,
        least_weight=LEAST_WEIGHT,
        own_noise=learnt.own_noise,
        variances=learnt.known_variances(X.shape[0]),
        n_jobs=n_jobs,
        keep=keep,
        row_noise=noise_of_rows(learnt, X, learnt.own_noise),
    )
    return replace(learnt, seeing=seeing)


def noise_of_rows(learnt: Learnt, W: Array, own_noise: Array | None) -> RowNoise:
    """The noise of all rows, in the units of learning, as leaves of other regions see it."""
    telling = learnt.own if tells_apart(learnt.kinds) else learnt.seeing
    return RowNoise.of(place(telling), W, own_noise, learnt.kinds)
