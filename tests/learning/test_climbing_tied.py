"""Tied parameters by Newton steps: as high as L-BFGS, with and without a curvature that is known beforehand."""

import numpy as np
import pytest

from spngp.gp import optimisation
from spngp.gp.exact import ExactGP
from spngp.gp.optimisation import Convergence, climb
from spngp.kernels import Parameter, SquaredExponential
from spngp.learning.blocks import blocks_of
from spngp.learning.defaults import default_kernels, noise_parameter
from spngp.learning.plan import Effort
from spngp.learning.tied_evidence import climb_tied, evidence, fit_tied, tied_prior

N_BLOCKS = 6
START = ExactGP(default_kernels(4)[0], noise_parameter(1.0, 600))
PRIOR = tied_prior(START, Effort())


def regions(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.7, 1.7, (600, 4))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.3 * X[:, 2] + 0.1 * rng.standard_normal(600)  # nothing along the last
    return blocks_of(np.array_split(np.argsort(X[:, 0]), N_BLOCKS), X, y, None)


@pytest.fixture
def counted(monkeypatch):
    """How often an evidence with its gradient was asked for."""
    calls, original = [], optimisation.LeafEvidence.__call__
    monkeypatch.setattr(optimisation.LeafEvidence, "__call__", lambda *given: calls.append(1) or original(*given))
    return calls


@pytest.mark.parametrize("seed", range(3))
def test_as_high_as_l_bfgs(seed):
    blocks = regions(seed)
    found, _ = climb_tied(START, blocks, 40, PRIOR)
    other = fit_tied([START], blocks, 40, priors=[PRIOR])[0]
    assert evidence(found, blocks) > evidence(other, blocks) - 0.5


def test_a_known_curvature_saves_the_evaluations_that_it_took(counted):
    blocks = regions(3)
    found, curvature = climb_tied(START, blocks, 60, PRIOR)
    np.testing.assert_allclose(curvature, curvature.T, atol=1e-9)
    counted.clear()
    again, _ = climb_tied(found, blocks, 60, PRIOR, curvature)
    assert len(counted) <= 3 * N_BLOCKS
    assert evidence(again, blocks) >= evidence(found, blocks) - 1e-6


def test_an_unfinished_climb_is_told_and_a_finished_one_is_not():
    for evaluations, unfinished in ((3, 1), (60, 0)):
        convergence = Convergence()
        climb_tied(START, regions(0), evaluations, PRIOR, convergence=convergence)
        assert (convergence.runs, len(convergence.unfinished)) == (1, unfinished)


def test_without_free_parameters_nothing_moves():
    gp = ExactGP(SquaredExponential(Parameter(1.0, fixed=True), Parameter(1.0, fixed=True)), Parameter(0.1, fixed=True))
    found, curvature = climb_tied(gp, regions(0), 10, tied_prior(gp, Effort()))
    assert found is gp
    assert curvature.shape == (0, 0)


def test_a_flat_direction_does_not_hold_up_the_others():
    top, curvature = np.array([1.2, 50.0]), np.diag([100.0, 1e-4])  # a Newton step is far too long along the second

    def parabola(theta):
        away = theta - top
        return -0.5 * float(away @ curvature @ away), -curvature @ away

    wide = np.full((2, 2), [-60.0, 60.0])
    found = climb(parabola, np.zeros(2), wide, curvature, 3, 1e-9)  # two steps
    assert found.theta[0] == pytest.approx(1.2, abs=0.01)
    assert found.theta[1] <= 3.0  # no step is longer than 1.5
    assert found.last_gain > 0
