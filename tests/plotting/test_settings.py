"""Settings that share a region: put together by kernel, told in words and drawn as one."""

import numpy as np
import pytest

from spngp import SPNGPRegressor
from spngp.kernels import SquaredExponential
from spngp.network import Leaf, Sum
from spngp.plotting import NetworkDisplay
from spngp.plotting.expert_regions import expert_regions
from spngp.plotting.names import leaf_name
from spngp.plotting.settings import grouped, in_words, shortest_scales


def record(kernel, weight, scale, noise, variance=1.0, part=()):
    identities = [
        {"role": "length_scale", "input": 0, "part": part},
        {"role": "variance", "input": None, "part": part},
    ]
    return {
        "kernel": kernel,
        "weight": weight,
        "parameters": {"length_scale": scale, "variance": variance},
        "identities": identities,
        "steps": [],
        "jumps": [],
        "noise_std": noise,
        "noise_varies": False,
        "context_rows": 0,
        "log_evidence": -1.0,
    }


RECORDS = [record("A", 0.1, 0.3, 0.1), record("A", 0.2, 1.1, 0.2), record("B", 0.7, 0.5, 0.4)]


def test_records_are_put_together_by_kernel():
    second, first = sorted(grouped(RECORDS), key=lambda group: group.share)
    assert (first.label, first.count, first.share) == ("B", 1, pytest.approx(0.7))
    assert (second.label, second.count, second.share) == ("A", 2, pytest.approx(0.3))
    scale = second.parameters[0]
    assert (scale.low, scale.middle, scale.high) == (0.3, 1.1, 1.1)  # by weight: 1.1 has two thirds


def test_a_sentence_tells_who_shares_a_region():
    assert in_words(RECORDS, ["x"], {}) == (
        "3 settings of 2 kernels share it: B 70 %, A 30 %; length-scale of x 0.3 to 1.1; noise ±0.1 to 0.4"
    )
    assert in_words(RECORDS[:2], ["x"], {"A": "SE"}).startswith("2 settings of SE share it; ")
    assert in_words(RECORDS[1:], ["x"], {}).startswith("2 kernels share it: B 78 %, A 22 %; ")
    one = [record("A", 1e-9, 0.3, 0.1), record("B", 1.0, 0.5, 0.4)]
    said = in_words(one, ["x"], {}, spans=np.array([0.01]), units=["km", "min"])
    assert said == "B explains it best of 2 kernels; noise ±0.4 min"  # as long as that, x has no effect
    assert (
        in_words(one[1:], ["x"], {}, units=["km", "min"]) == "one kernel, B; length-scale of x 0.5 km; noise ±0.4 min"
    )


def test_a_sentence_tells_where_a_step_is():
    steps = [{**RECORDS[i], "steps": [{"input": 0, "at": at}]} for i, at in enumerate((61.0, 62.5))]
    said = in_words([*steps, RECORDS[2]], ["load"], {}, units=["kg", ""])
    assert "; 30 % for a step of load at 61 kg to 62.5 kg; length-scale" in said
    years = [{**RECORDS[i], "steps": [{"input": 0, "at": at}]} for i, at in enumerate((1992.04, 2010.9))]
    assert "; 30 % for a step of year at 1992 to 2011; " in in_words([*years, RECORDS[2]], ["year"], {})
    one = [{**RECORDS[0], "steps": [{"input": 0, "at": 1992.04}]}]
    assert "; 100 % for a step of year at 1992.04; " in in_words(one, ["year"], {})


def test_a_sentence_tells_where_the_function_jumps():
    jumping = [{**RECORDS[i], "jumps": [{"input": 0, "at": [6.5, 9.25]}]} for i in range(2)]
    said = in_words([*jumping, RECORDS[2]], ["hour"], {}, units=["h", ""])
    assert "; 30 % for jumps along hour at 6.5 h, 9.25 h; length-scale" in said
    many = [{**RECORDS[0], "jumps": [{"input": 0, "at": [float(i) for i in range(9)]}]}]
    assert "; jumps along hour at 0, 1, 2, 3, 4, 5 and 3 more; " in in_words(many, ["hour"], {})


def test_parts_of_little_variance_have_no_say():
    slow, fast = record("A", 1.0, 5.0, 0.1, 1.0, (0,)), record("A", 1.0, 0.1, 0.1, 1e-3, (1,))
    both = {
        **slow,
        "identities": slow["identities"] + fast["identities"],
        "parameters": {f"{i}": value for i, value in enumerate([5.0, 1.0, 0.1, 1e-3])},
    }
    assert shortest_scales(both, 2).tolist() == [5.0, np.inf]


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (30, 3))
    return SPNGPRegressor(random_state=0).fit(X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(30))


def test_shares_in_a_region_are_those_of_the_posterior(small):
    (region,) = expert_regions(small)
    weights = sorted((item["weight"] for item in small.regions_), reverse=True)
    np.testing.assert_allclose([expert["share"] for expert in region.experts], weights, atol=1e-12)


def test_settings_of_a_kernel_are_drawn_as_one(small):
    pytest.importorskip("matplotlib")
    names = [leaf_name(leaf) for leaf, _, _ in small.network_.responsibilities()]
    counts = {name: names.count(name) for name in names}
    display = NetworkDisplay.from_estimator(small)
    assert display.n_drawn_ == 1 + sum(1 if count >= 4 else count for count in counts.values()) < 1 + len(names)
    drawn = [text.get_text() for text in display.ax_.texts]
    assert any(f"{max(counts.values())} settings" in text for text in drawn)
    assert NetworkDisplay.from_estimator(small, group_settings=False).n_drawn_ == 1 + len(names)
    by_hand = Sum([Leaf(SquaredExponential(scale)) for scale in (1.0, 2.0, 3.0, 4.0, 5.0)])
    assert NetworkDisplay.from_network(by_hand).n_drawn_ == 6


def test_remarks_and_further_parts_leave_the_short_name():
    kernel = SquaredExponential()
    assert leaf_name(Leaf(kernel, label="SquaredExponential (one length-scale)")) == "SE (one length-scale)"
    assert leaf_name(Leaf(kernel + kernel, label="SquaredExponential")) == "SE"
