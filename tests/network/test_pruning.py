"""Alternatives that the data rule out are left away; what remains is the posterior given that none of them holds."""

import numpy as np
import pytest

from spngp.kernels import Linear, Matern, SquaredExponential
from spngp.network import Leaf, Split, Sum
from spngp.network.pruning import prune, prune_prior


def alternatives(noise):
    return Sum([Leaf(SquaredExponential(0.5), noise), Leaf(Matern(1.5, 2.0), noise), Leaf(Linear(), noise)])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, (40, 1)), axis=0)
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(40)


PRIOR = Sum([Split(0, [0.0], [alternatives(0.01), alternatives(0.01)]), alternatives(0.02)], [0.9, 0.1])


def probabilities(posterior):
    """Of every child of a sum: that an induced tree uses it. The root is a sum of a split of sums, and of a sum."""
    tops = np.exp(posterior.log_weights)
    split, other = posterior.children
    found = [("root", c, p) for c, p in enumerate(tops)]
    for name, top, node in (("left", 0, split.children[0]), ("right", 0, split.children[1]), ("other", 1, other)):
        found += [(name, c, tops[top] * p) for c, p in enumerate(np.exp(node.log_weights))]
    return found


def n_children(node):
    return len(node.children) + sum(map(n_children, node.children))


@pytest.mark.parametrize("bound", [0.0, 1e-12, 1e-6, 1e-3, 0.05, 0.3])
def test_so_much_probability_is_left_away_and_no_more(rows, bound):
    posterior = PRIOR.condition(*rows)
    pruned = prune(posterior, bound)
    sums = {
        name: [p for of, _, p in probabilities(posterior) if of == name] for name in ("root", "left", "right", "other")
    }
    small = sorted(p for ps in sums.values() for c, p in enumerate(ps) if c != int(np.argmax(ps)))
    dropped = int((np.cumsum(small) <= bound).sum())
    assert dropped > 0 or bound <= 1e-12
    if not dropped:
        assert pruned is posterior
        return
    assert n_children(pruned) < n_children(posterior)
    assert pruned.log_evidence == posterior.log_evidence
    at, y = np.linspace(-3.5, 3.5, 25)[:, np.newaxis], np.linspace(-1.5, 1.5, 25)
    whole, less = posterior.predict_dist(at), pruned.predict_dist(at)
    np.testing.assert_allclose(less.weights.sum(axis=-1), 1.0, rtol=1e-12)
    assert np.abs(less.cdf(y) - whole.cdf(y)).max() <= bound / (1 - bound)


@pytest.mark.parametrize("bound", [0.0, 1e-6, 0.05])
def test_a_prior_is_cut_down_as_its_posterior_is(rows, bound):
    posterior = PRIOR.condition(*rows)
    prior, log_left = prune_prior(PRIOR, posterior, bound)
    pruned = prune(posterior, bound)
    again = prior.condition(*rows)
    assert n_children(prior) == n_children(pruned)
    if pruned is posterior:
        assert prior is PRIOR
        assert log_left == 0.0
        return
    assert log_left < 0.0
    evidence = again.log_evidence + log_left  # of the data, and that none of the others holds
    assert posterior.log_evidence + np.log1p(-bound) <= evidence + 1e-9
    assert evidence <= posterior.log_evidence + 1e-9
    at = np.linspace(-3.5, 3.5, 9)[:, np.newaxis]
    np.testing.assert_allclose(again.predict_dist(at).mean, pruned.predict_dist(at).mean, atol=1e-10)
    np.testing.assert_allclose(again.predict_dist(at).var, pruned.predict_dist(at).var, atol=1e-10)
