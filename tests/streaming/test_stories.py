"""Which story the last outputs tell: as before, more noise, a kernel that does not fit, or a new function.

Against brute force over all stories.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from spngp.gp.exact import ExactGP
from spngp.gp.growing import GrowingGP
from spngp.kernels import SquaredExponential
from spngp.streaming import ageing
from spngp.streaming.conditioned import Rows

PRIOR = ExactGP(SquaredExponential(0.7), 0.04)
QUIET = ExactGP(SquaredExponential(0.7), 1e-4)


def rows(n, changed=0, shift=0.0, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(n)
    if changed:
        y[-changed:] = np.sin(2 * X[-changed:, 0] + shift) + noise * rng.standard_normal(changed)
    return Rows(np.arange(n), X, y, np.full(n, 0.04))


def rough_rows(n, changed, size):
    """Of three inputs, without noise; what the last outputs are off by is no noise to a kernel that knows of none."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (n, 3))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2]
    y[-changed:] += size * rng.standard_normal(changed)
    return Rows(np.arange(n), X, y, np.full(n, 1e-4))


def evidence(prior, of, noise):
    """Of rows with these noises: their log evidence in one go."""
    return prior.condition(of.X, of.y, weights=prior.noise_variance / noise).log_evidence if of.y.size else 0.0


def farther(prior, given, factor, ago):
    """Log density of each output given those before it, the last ``ago`` of them with ``factor`` times the variance."""
    n, found = given.y.size, []
    for i in range(n):
        before = given.at(np.arange(i))
        mean, variance = (0.0, 1.0)
        if i:
            gp = prior.condition(before.X, before.y)
            (mean,), (variance,) = gp.predict(given.X[i : i + 1], latent=True)
        variance = (variance + given.noise[i]) * (factor if i >= n - ago else 1.0)
        found.append(norm.logpdf(given.y[i], mean, np.sqrt(variance)))
    return np.array(found)


def told(prior, given):
    """The best story of a new function and since when, and the best of all others."""
    n, judges = given.y.size, min(32, given.y.size // 2)
    first = given.at(np.arange(n - judges))
    start = evidence(prior, first, first.noise)
    new = []
    for factor in (1.0, 4.0, 16.0):
        for s in range(1, judges + 1):
            before, last = given.at(np.arange(n - s)), given.at(np.arange(n - s, n))
            new.append((evidence(prior, before, before.noise) - start + evidence(prior, last, factor * last.noise), s))
    others = [evidence(prior, given, given.noise) - start]
    for factor in (4.0, 16.0):
        for ago in (4, 8, 16, 32):
            others.append(farther(prior, given, factor, ago)[n - judges :].sum())
            noise = np.where(np.arange(n) >= n - ago, factor * given.noise, given.noise)
            if ago <= judges:
                others.append(evidence(prior, given, noise) - start)
            else:  # rows before the judges have another noise as well, and do not count
                among = given.at(np.arange(n - judges))
                others.append(evidence(prior, given, noise) - evidence(prior, among, noise[: n - judges]))
    return max(new), max(others)


CASES = {
    "as before": rows(80),
    "a new function": rows(80, 12, shift=2.5),
    "a new function, long ago": rows(80, 30, shift=2.5),
    "a new function with more noise": rows(80, 20, shift=3.0, noise=0.5),
    "more noise": rows(80, 12, noise=1.0),
    "much more noise": rows(80, 16, noise=3.0, seed=4),
    "a kernel that does not fit": rough_rows(80, 16, 0.3),
    "few rows": rows(9, 3, shift=3.0),
    "one judge": rows(3),
}


@pytest.mark.parametrize("name", CASES)
def test_the_most_probable_story_is_told(name):
    given, prior = CASES[name], QUIET if name == "a kernel that does not fit" else PRIOR
    (best, since), other = told(prior, given)
    found = ageing._new_since(SimpleNamespace(prior=prior), given)
    assert found == (since if best > other + 4.0 else None)
    if name in ("a new function", "a new function, long ago"):
        assert found is not None
    if name in ("as before", "a kernel that does not fit", "one judge"):
        assert found is None


def hard_to_tell(n, seed):
    """A function that has changed somewhat, with twice the noise: stories differ by little."""
    rng = np.random.default_rng([seed, 1])
    changed, shift = int(rng.integers(3, n // 2 + 1)), float(rng.uniform(0.8, 2.5))
    return rows(n, changed, shift, noise=float(rng.choice([0.35, 0.4, 0.45])), seed=seed)


@pytest.mark.parametrize(("n", "seed"), [(36, 42), (36, 68), (36, 72), (36, 76), (36, 79), (72, 43)])
def test_the_most_probable_story_is_told_where_it_is_hard_to_tell(n, seed):
    given = hard_to_tell(n, seed)
    (best, since), other = told(PRIOR, given)
    assert ageing._new_since(SimpleNamespace(prior=PRIOR), given) == (since if best > other + 4.0 else None)


def test_of_one_row_nothing_is_told():
    assert ageing._new_since(SimpleNamespace(prior=PRIOR), rows(1)) is None


def test_densities_add_up_to_the_evidence():
    given = rows(25)
    found = ageing._densities(GrowingGP.of(PRIOR, given.X, given.y, given.noise))
    assert found.shape == (25,)
    assert found.sum() == pytest.approx(PRIOR.condition(given.X, given.y).log_evidence, rel=1e-10)
