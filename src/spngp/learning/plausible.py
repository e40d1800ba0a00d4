"""Which of several kernels are worth an expert in every region: those that predict about as well as the best.

Experts of a region are weighted by their evidence, which judges them as if the noise were Gaussian. A rough kernel can
be ahead there only because it follows heavy tails. So kernels are first compared by what they are for: the density of
each output given all others of its block, with the shape of the noise that suits each kernel. Of those that are left, a
kernel is kept if the evidence of a sum over kernels in every block gains by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._linalg.square import NotPositiveDefiniteError
from spngp._support.threads import map_leaves
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import leave_one_out, shares
from spngp.gp.optimisation import Block
from spngp.learning.noise_shapes import learn_noise_shape
from spngp.learning.search import Alternatives, evidence

_LEAST_LOSS = 10.0  # nats in all, for which a kernel is dropped
_LEAST_GAIN = 0.5  # nats a block that a sum must gain by one more kernel


def plausible(
    known: Alternatives, judges: Sequence[Block], behind: float, most: int, n_jobs: int | None = None
) -> Alternatives:
    """The ``most`` kernels that predict best on ``judges``, none of them ``behind`` nats a row behind the first."""
    if len(known.gps) == 1:
        return known
    scores = np.array(map_leaves(lambda gp: _log_density(gp, judges), known.gps, n_jobs))
    if not np.isfinite(scores.max()):
        return known
    limit = max(_LEAST_LOSS, behind * sum(block.y.size for block in judges))
    best_first = np.argsort(-scores, kind="stable")[:most]
    return known.only(np.sort(best_first[scores[best_first] >= scores.max() - limit]))


def needed(known: Alternatives, judges: Sequence[Block], n_jobs: int | None = None) -> Alternatives:
    """The likeliest kernel, and in turn those by which the evidence of a sum over kernels in every block gains most."""
    if len(known.gps) == 1:
        return known
    values = np.array(map_leaves(lambda gp: [evidence(gp, [block]) for block in judges], known.gps, n_jobs))
    if not np.isfinite(values).all():
        return known

    def of_sum(kernels: list[int]) -> float:
        return float((np.logaddexp.reduce(values[kernels], axis=0) - np.log(len(kernels))).sum())

    kept: list[int] = [int(values.sum(axis=1).argmax())]
    while len(kept) < len(known.gps):
        others = [j for j in range(len(known.gps)) if j not in kept]
        best = max(others, key=lambda j: of_sum([*kept, j]))
        if of_sum([*kept, best]) < of_sum(kept) + _LEAST_GAIN * len(judges):
            break
        kept.append(best)
    return known.only(np.sort(kept))


def _log_density(gp: ExactGP, blocks: Sequence[Block]) -> float:
    """Leave-one-out log density of all outputs, with the shape of the noise learnt from them."""
    try:
        held_out = np.concatenate([_held_out(gp, block) for block in blocks], axis=1)
    except NotPositiveDefiniteError:
        return -np.inf
    shape = learn_noise_shape(held_out)
    residuals, latent_variances, noise_variances, counted = held_out
    widths = latent_variances + noise_variances * np.array(shape.factors)[:, np.newaxis]
    parts = np.log(shape.weights)[:, np.newaxis] - 0.5 * np.log(2.0 * np.pi * widths) - 0.5 * residuals**2 / widths
    return float((counted * np.logaddexp.reduce(parts, axis=0)).sum())


def _held_out(gp: ExactGP, block: Block) -> Array:
    posterior = block.given_to(gp)
    rows = posterior.rows_seen_once
    residuals, variances = leave_one_out(posterior, rows)
    return np.stack(np.broadcast_arrays(residuals, variances, gp.noise_variance, shares(posterior, rows)))
