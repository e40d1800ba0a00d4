"""Alternatives of a small set of several inputs, weighed by how well they predict outputs that are left out.

The evidence of a cut counts what its parts know from their own rows alone, while they predict with the rows around
them, and it knows nothing of the shape of the noise. Nor is any of the alternatives what made the rows: the one that is
likeliest is not the best prediction, a mixture is. So the weights w of the alternatives maximise

    Σ_i log Σ_a w_a p_a(y_i | all other rows),

which is called stacking (Yao, Vehtari, Simpson, Gelman: Using stacking to average Bayesian predictive distributions,
Bayesian Analysis, 2018). Their prior weights in the network are those that the rows turn into w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from spngp._support.types import Array, Mask
from spngp.learning.experts import Experts
from spngp.learning.held_out import Score
from spngp.learning.laplace import LEFT_AWAY, FreeExpert
from spngp.learning.plan import Plan
from spngp.learning.regional import prior_of
from spngp.learning.tied import Tied
from spngp.network import Node, Sum, conditioning

PLAIN, SMOOTH, CUT = "plain", "smooth", "cut"  # one noise for all rows; one that changes smoothly; several regions

# Nats that a further alternative pays, all rows together: its parameters have seen the outputs that are left out, so it
# is flattered by about one for each of them. And what it must gain then.
_PRICE, _LEAST_GAIN = 10.0, 3.0
_IMAGINARY = 2.0  # rows that speak for each alternative beforehand
_STEPS = 300  # of expectation–maximisation


def with_further(scores: Mapping[str, Score], name: str, score: Score) -> dict[str, Score]:
    """``scores`` and one more at its price, if with it outputs that are left out are predicted better."""
    price = _PRICE / int((~np.isnan(score.log_densities)).sum())
    more = {**scores, name: Score(score.log_densities - price, score.errors)}
    return more if _log_density(more) > _log_density(scores) + _LEAST_GAIN else dict(scores)


def _log_density(scores: Mapping[str, Score]) -> float:
    """Of all outputs that are left out, by the best mixture of the alternatives for each kind of output."""
    total = 0.0
    for k in range(next(iter(scores.values())).log_densities.shape[1]):
        parts = _of_output(scores, k)
        total += float(np.logaddexp.reduce(parts + np.log(stacking_weights(parts))[:, np.newaxis]).sum())
    return total


def _of_output(scores: Mapping[str, Score], k: int) -> Array:
    """Log densities of one kind of output, (alternatives, rows that have it)."""
    found = np.array([score.log_densities[:, k] for score in scores.values()])
    return found[:, ~np.isnan(found[0])]


def stacking_weights(log_densities: Array) -> Array:
    """Weights of alternatives by the log densities that they give to outputs that they have not seen.

    Parameters
    ----------
    log_densities : ndarray of shape (alternatives, n)

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.learning.stacking import stacking_weights
    >>> log_densities = np.log([[0.4, 0.4, 0.4, 0.1] * 50, [0.1, 0.1, 0.1, 0.4] * 50])
    >>> stacking_weights(log_densities).round(2)
    array([0.88, 0.12])
    """
    count, n = log_densities.shape
    weights = np.full(count, 1.0 / count)
    for _ in range(_STEPS):
        joint = log_densities + np.log(weights)[:, np.newaxis]
        shares = np.exp(joint - np.logaddexp.reduce(joint))
        weights = (shares.sum(axis=1) + _IMAGINARY) / (n + count * _IMAGINARY)
    return weights


def only(name: str, experts: Experts, tied: Tied) -> Experts:
    """The experts, those of other alternatives of all rows as good as left away."""

    def is_meant(own: FreeExpert) -> bool:
        return name == (PLAIN if own.gp.noise_profile is None else SMOOTH)

    result = dict(experts)
    for k in range(len(tied.gps)):
        own = experts[id(tied.regions), k]
        if name == CUT or any(map(is_meant, own)):  # an output may have the one kind alone
            shifts = [0.0 if is_meant(expert) else LEFT_AWAY for expert in own]
            result[id(tied.regions), k] = [
                replace(expert, log_correction=expert.log_correction + shift)
                for expert, shift in zip(own, shifts, strict=True)
            ]
    return result


def stacked(scores: Mapping[str, Score], tied: Tied, experts: Experts, X: Array, Y: Array, plan: Plan) -> Experts:
    """The experts, those of all rows with other prior weights: given the rows, alternatives have stacking weights."""
    if len(scores) < 2:
        return experts
    prior, keep = prior_of(tied.regions, experts, plan), conditioning.no_factors
    given = conditioning.condition(prior, X, Y, variances=plan.variances, n_jobs=plan.n_jobs, keep=keep)
    result = dict(experts)
    for k, root in enumerate(given.children if Y.shape[1] > 1 else [given]):
        key = id(tied.regions), k
        is_smooth = np.array([own.gp.noise_profile is not None for own in experts[key]])
        known = _log_shares(root, bool(tied.regions.partitions), is_smooth)
        of_output = {name: score for name, score in scores.items() if name in known}
        log_weights = np.log(stacking_weights(_of_output(of_output, k)))
        shifts = {name: float(own) - known[name] for name, own in zip(of_output, log_weights, strict=True)}
        reference = shifts.get(CUT, 0.0)
        result[key] = [
            replace(own, log_correction=own.log_correction + shifts[SMOOTH if smooth else PLAIN] - reference)
            for own, smooth in zip(experts[key], is_smooth, strict=True)
        ]
    return result


def _log_shares(root: Node, may_be_cut: bool, is_smooth: Mask) -> dict[str, float]:
    """Logs of the posterior probabilities of the alternatives of one output."""
    found: dict[str, float] = {}
    log_weight = 0.0
    if may_be_cut:
        log_weight, *others = cast("Sum", root).log_weights
        found[CUT] = float(np.logaddexp.reduce(others))
        root = root.children[0]
    log_weights = log_weight + (root.log_weights if isinstance(root, Sum) else np.zeros(1))
    for name, among in ((PLAIN, ~is_smooth), (SMOOTH, is_smooth)):
        if among.any():
            found[name] = float(np.logaddexp.reduce(log_weights[among]))
    return found
