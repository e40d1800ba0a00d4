"""Alternatives of a small set of several inputs, mixed by how well they predict outputs that are left out.

The evidence of a cut counts what its parts know from their own rows alone, while they predict with the rows around
them, and it knows nothing of the shape of the noise. Nor is any of the alternatives what made the rows: the one that is
likeliest is not the best prediction, a mixture is. So the weights w of the alternatives maximise

    Σ_i log Σ_a w_a p_a(y_i | all other rows),

which is called stacking (Yao, Vehtari, Simpson, Gelman: Using stacking to average Bayesian predictive distributions,
Bayesian Analysis, 2018). A model predicts with these weights until rows come or go. From then on weights follow from
evidence, as always, between the alternatives that stacking believes in most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spngp._support.types import Array, Indices
from spngp.learning.experts import Experts
from spngp.learning.held_out import Score
from spngp.learning.laplace import LEFT_AWAY, FreeExpert
from spngp.learning.tied import Tied
from spngp.network import Leaf, Node, Product, Sum

PLAIN, SMOOTH, CUT = "plain", "smooth", "cut"  # one noise for all rows; one that changes smoothly; several regions

# Nats that a further alternative pays for each kind of output, because its parameters have seen the outputs that are
# left out; and what it must gain then. Parameters that are many for the rows flatter it by about one each.
_PRICE, _LEAST_GAIN = 10.0, 3.0
_MANY_PARAMETERS = 0.5  # for each output that is left out, from which on each of them costs a nat
_IMAGINARY = 2.0  # rows that speak for each alternative beforehand
_STEPS = 2000  # of expectation–maximisation
_LEADING = 0.5  # of the largest weight, from which an alternative is kept when rows come or go


def with_further(scores: Mapping[str, Score], name: str, score: Score, n_parameters: Sequence[int]) -> dict[str, Score]:
    """``scores`` and one more at its price, if with it outputs that are left out are predicted better.

    ``n_parameters`` are those of its kernels, for each kind of output.
    """
    observed = ~np.isnan(score.log_densities)
    n_observed = observed.sum(axis=0)
    priced = score.log_densities - _prices(n_observed, np.asarray(n_parameters)) / np.maximum(n_observed, 1)
    more = {**scores, name: Score(priced, score.errors)}
    gain = _log_density(more) - _log_density(scores)
    return more if gain > _LEAST_GAIN * observed.any(axis=0).sum() else dict(scores)


def _prices(n_observed: Indices, n_parameters: Indices) -> Array:
    """What an alternative with so many parameters pays for so many outputs that are left out."""
    many = n_parameters > _MANY_PARAMETERS * n_observed
    return np.where(many, np.maximum(_PRICE, n_parameters), _PRICE)


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
    densities = np.exp(log_densities - log_densities.max(axis=0))
    weights = np.full(count, 1.0 / count)
    for _ in range(_STEPS):
        renewed = (weights * (densities @ (1.0 / (weights @ densities))) + _IMAGINARY) / (n + count * _IMAGINARY)
        moved = float(np.abs(renewed - weights).max())
        weights = renewed
        if moved < 1e-7:
            break
    return weights


def only(name: str, experts: Experts, tied: Tied) -> Experts:
    """The experts of one alternative; an output without it keeps the experts that it has."""

    def meant(own: list[FreeExpert]) -> list[FreeExpert]:
        if name == CUT:
            return [replace(expert, log_correction=expert.log_correction + LEFT_AWAY) for expert in own]
        return [expert for expert in own if name == _kind(expert.gp.noise_profile is not None)] or own

    keys = [(id(tied.regions), k) for k in range(len(tied.gps))]
    return {**experts, **{key: meant(experts[key]) for key in keys}}


def leading(scores: Mapping[str, Score], experts: Experts, tied: Tied) -> Experts:
    """The experts; those of alternatives with less than half of the largest stacking weight get a prior weight of zero.

    Not quite zero: :data:`LEFT_AWAY` nats less. Cuts are left away by raising the experts of all rows by as much.
    """
    result = dict(experts)
    for k in range(len(tied.gps)) if len(scores) > 1 else ():
        key = id(tied.regions), k
        weights = _weights_of(scores, k, any(own.gp.noise_profile is not None for own in experts[key]))
        kept = {name for name, weight in weights.items() if weight >= _LEADING * max(weights.values())}
        base = 0.0 if CUT in kept or CUT not in weights else -LEFT_AWAY
        result[key] = [
            replace(own, log_correction=own.log_correction + base + (0.0 if is_kept else LEFT_AWAY))
            for own in experts[key]
            for is_kept in [_kind(own.gp.noise_profile is not None) in kept]
        ]
    return result


def stacked(scores: Mapping[str, Score], posterior: Node) -> Node:
    """The posterior network of all alternatives, mixed by their stacking weights instead of by evidence."""
    if len(scores) < 2:
        return posterior
    if isinstance(posterior, Product):
        return posterior.rebuilt([_stacked(scores, k, root) for k, root in enumerate(posterior.children)])
    return _stacked(scores, 0, posterior)


def _stacked(scores: Mapping[str, Score], k: int, root: Node) -> Node:
    """The network of one output: a sum of the experts of all rows and of cuts, or the first of these alone."""
    whole, cuts = (root.children[0], root.children[1:]) if CUT in scores else (root, ())
    is_smooth = np.array([_is_smooth(child) for child in _experts_of(whole)])
    weights = _weights_of(scores, k, bool(is_smooth.any()))
    log_weights = {name: float(np.log(weight)) for name, weight in weights.items()}
    of_whole = np.logaddexp.reduce([own for name, own in log_weights.items() if name != CUT])
    if isinstance(whole, Sum):
        wanted = np.where(is_smooth, log_weights.get(SMOOTH, -np.inf), log_weights[PLAIN])
        within = np.empty(is_smooth.size)
        for among in (is_smooth, ~is_smooth):
            within[among] = whole.log_weights[among] - np.logaddexp.reduce(whole.log_weights[among], initial=-np.inf)
        whole = whole.narrowed(whole.children, within + wanted - of_whole)
    if not cuts:
        return whole
    assert isinstance(root, Sum)
    others = root.log_weights[1:]
    of_cuts = others - np.logaddexp.reduce(others) + log_weights[CUT]
    return root.narrowed([whole, *cuts], np.concatenate([[of_whole], of_cuts]))


def _experts_of(whole: Node) -> tuple[Node, ...]:
    return whole.children if isinstance(whole, Sum) else (whole,)


def _is_smooth(child: Node) -> bool:
    return isinstance(child, Leaf) and child.gp.noise_profile is not None


def _kind(is_smooth: bool) -> str:
    return SMOOTH if is_smooth else PLAIN


def _weights_of(scores: Mapping[str, Score], k: int, has_smooth: bool) -> dict[str, float]:
    """Stacking weights of the alternatives of one output."""
    names = [name for name in scores if name != SMOOTH or has_smooth]
    weights = stacking_weights(_of_output({name: scores[name] for name in names}, k))
    return dict(zip(names, weights.tolist(), strict=True))
