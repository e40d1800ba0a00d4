"""Steps among few rows: gains against the evidence itself, and that they are found, placed honestly and not made up."""

import numpy as np
import pytest
from scipy.special import logsumexp

import spngp
from spngp import SPNGPRegressor
from spngp.gp import ExactGP
from spngp.gp.optimisation import Block
from spngp.gp.row_weights import KnownVariances
from spngp.kernels import Constant, Matern, Parameter, Step
from spngp.learning.averaging import with_steps
from spngp.learning.settings import Alternative, learn_settings
from spngp.learning.steps import cuts_of, moved, step_in, with_step


def stepped(n=24, d=2, noise=0.3, seed=0, at=0.2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = np.where(X[:, 0] > at, 1.0, -1.0) + noise * rng.standard_normal(n)
    return Block(X, y - y.mean())


BASES = {
    "constant": ExactGP(Constant(1.0), 0.4),
    "curve": ExactGP(Constant(1.0) + Matern(1.5, 0.8, 0.7), 0.2),
}


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize(
    "known",
    [
        None,
        KnownVariances(np.linspace(0.0, 0.5, 24)),
        KnownVariances(np.linspace(0.0, 0.5, 24), np.linspace(0.3, 1.0, 24)),
        KnownVariances(None, np.linspace(0.3, 1.0, 24)),
    ],
    ids=["learnt noise", "known variances", "both", "shares"],
)
def test_gains_are_those_of_the_evidence(base, known):
    block = stepped()
    X = block.X.copy()
    X[:4, 1] = X[4, 1]  # equal values are not separated
    block = Block(X, block.y, known)
    cuts = cuts_of(base, block, [0, 1], variance=1.3)
    without = block.given_to(base).log_evidence
    total = []
    for axis in (0, 1):
        values = np.unique(X[:, axis])
        positions = 0.5 * (values[1:] + values[:-1])
        below = np.array([(X[:, axis] <= at).sum() for at in positions])
        positions = positions[(below >= 3) & (below <= 21)]
        for at in positions:
            step = Step(axis, at, 1.3)
            gain = block.given_to(ExactGP(base.kernel + step, base.noise_variance)).log_evidence - without
            assert cuts.gain_at(step) == pytest.approx(gain, abs=1e-9)
            total.append(gain - np.log(2 * positions.size))
    assert cuts.gains.size == len(total)
    assert cuts.gain_anywhere == pytest.approx(logsumexp(total), abs=1e-9)


def test_the_step_of_a_kernel_is_compared_with_itself_elsewhere():
    block = stepped()
    gp = with_step(BASES["curve"], 1, 0.1)
    gp = gp.with_theta(gp.theta + 0.3)
    cuts = cuts_of(gp, block, [0, 1])
    before = block.given_to(gp).log_evidence
    for axis, at in ((0, 0.21), (1, -0.4)):
        elsewhere = moved(gp, axis, at)
        gain = block.given_to(elsewhere).log_evidence - before
        assert cuts.gain_at(step_in(elsewhere)) - cuts.gain_at(step_in(gp)) == pytest.approx(gain, abs=1e-9)


def test_inputs_without_any_probability_are_left_out():
    block = stepped(60)
    cuts = cuts_of(BASES["constant"], block, [0, 1])
    assert cuts.plausible_inputs() == [0]
    assert cuts.best()[0] == 0
    assert {cuts.drawn(np.random.default_rng(seed))[0] for seed in range(20)} == {0}


def test_what_cannot_be_inverted_is_not_cut(monkeypatch):
    def singular(matrix):
        raise np.linalg.LinAlgError("singular")

    monkeypatch.setattr(np.linalg, "inv", singular)
    block = stepped()
    constant = BASES["constant"]
    assert cuts_of(constant, block, [0, 1]) is None
    assert with_steps([Alternative("Constant", constant, constant)], block, [0, 1]) == []
    step = with_step(constant, 0, 0.2)
    found = learn_settings(
        [Alternative("constant", constant, constant), Alternative("step", step, step, steps_along=(0, 1))],
        block,
        np.random.default_rng(0),
    )
    assert {setting.label for setting in found.drawn} == {"constant"}


def test_steps_are_proposed_alone_and_beside_a_curve():
    block = stepped(40)
    names = ("Constant", "Matern(1.5) (one length-scale)")
    alternatives = [Alternative(name, gp, gp) for name, gp in zip(names, BASES.values(), strict=True)]
    alone, beside = with_steps(alternatives, block, [0, 1])
    assert (alone.label, beside.label) == ("Step", "Step + Matern(1.5) (one length-scale)")
    low, high = block.X[block.X[:, 0] <= 0.2, 0].max(), block.X[block.X[:, 0] > 0.2, 0].min()
    for own in (alone, beside):
        assert step_in(own.prior).axis == 0
        assert low <= step_in(own.prior).at < high
    assert alone.weight + beside.weight == pytest.approx(2.0)


def test_nothing_to_cut():
    block = stepped(5)
    assert cuts_of(BASES["constant"], block, [0, 1]) is None
    assert cuts_of(BASES["constant"], Block(np.zeros((24, 2)), stepped().y), [0, 1]) is None
    assert cuts_of(BASES["constant"], stepped(), []) is None


def test_the_evidence_of_a_step_somewhere_is_a_sum_over_cuts():
    block = stepped(30, noise=1.0)
    block = Block(block.X, 0.4 * block.y)  # so that neither is certain
    fixed = Parameter(1.0, fixed=True)
    constant = ExactGP(Constant(fixed), Parameter(1.0, fixed=True))
    step = ExactGP(Constant(fixed) + Step(0, float(np.median(block.X[:, 0])), fixed), Parameter(1.0, fixed=True))
    alternatives = [
        Alternative("constant", constant, constant),
        Alternative("step", step, step, steps_along=(0, 1)),
    ]
    found = learn_settings(alternatives, block, np.random.default_rng(0))
    share = sum(setting.share for setting in found.drawn if setting.label == "step")
    anywhere = cuts_of(constant, block, (0, 1)).gain_anywhere
    assert np.log(share / (1 - share)) == pytest.approx(anywhere, abs=1e-6)
    assert found.gain_of_steps == pytest.approx(np.log1p(np.exp(anywhere)), abs=1e-3)
    for setting in found.drawn:
        assert setting.log_evidence == pytest.approx(block.given_to(setting.gp).log_evidence, abs=1e-8)


@pytest.mark.parametrize("d", [1, 3])
def test_a_step_is_found_and_its_place_is_in_doubt(d, tmp_path):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (240, d)) * 50.0 + 300.0
    y = np.where(X[:, -1] > 310.0, 7.0, 3.0) + 0.4 * rng.standard_normal(240)
    model = SPNGPRegressor(random_state=0).fit(X[:40], y[:40])
    assert np.sqrt(np.mean((model.predict(X[40:]) - y[40:]) ** 2)) < 0.8
    leaves = [(leaf.kernel, weight) for leaf, _, weight in model.network_.responsibilities()]
    steps = [(part, weight) for kernel, weight in leaves for part in kernel.parts if isinstance(part, Step)]
    assert sum(weight for _, weight in steps) > 0.9
    assert all(part.axis == d - 1 for part, _ in steps)
    below, above = X[:40][X[:40, -1] <= 310.0, -1].max(), X[:40][X[:40, -1] > 310.0, -1].min()
    positions = np.array([part.at for part, _ in steps])  # in the units of X
    inside = (below <= positions) & (positions <= above)
    assert inside.mean() > 0.8
    assert np.unique(positions[inside]).size > 5  # anywhere between two rows
    at = np.linspace(below, above, 5)[1:-1, np.newaxis].repeat(d, axis=1)
    assert (model.predict(at, return_std=True)[1] > 0.8).any()  # either of the two levels
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(spngp.load(tmp_path / "m").predict(X[40:]), model.predict(X[40:]))
    model.partial_fit(X[40:44], y[40:44])
    assert np.isfinite(model.predict(X[44:])).all()


def test_codes_of_levels_are_not_cut():
    import pandas as pd

    rng = np.random.default_rng(1)
    level = rng.integers(0, 4, 40)
    table = pd.DataFrame({"size": rng.uniform(size=40), "kind": np.array(list("abcd"))[level]})
    y = np.where(level > 1, 1.0, -1.0) + 3.0 * (table["size"] > 0.4) + 0.1 * rng.standard_normal(40)
    model = SPNGPRegressor(random_state=0).fit(table, y)
    kernels = [leaf.kernel for leaf, _, _ in model.network_.responsibilities()]
    steps = [part for kernel in kernels for part in getattr(kernel, "parts", ()) if isinstance(part, Step)]
    assert {part.axis for part in steps} == {0}


def test_rows_next_to_a_step_are_no_errors():
    rng = np.random.default_rng([2, 300, 4])
    X = rng.uniform(0.0, 1.0, (300, 3))
    y = np.sin(6 * X[:, 1]) + 30.0 * (X[:, 0] > 0.9) + 0.1 * rng.standard_normal(300)
    model = SPNGPRegressor(random_state=2).fit(X, y)
    assert len(model.outliers_) == 0
