"""Records that are not what was written, with every checksum right: refused when the file is opened, or harmless."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import spngp
from soak.honest_models import FACTORS, MODELS, X_NEW, save_model
from soak.model_mutants import Parts, mutate, raised_by_us, said, use
from spngp.io import ModelFileError, consistency
from spngp.network.units import Affine, Units


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Each model's arrays, and the lines of its description; by its name, with factors after a mark."""

    def read(name):
        path = tmp_path_factory.mktemp("models") / "m.spngp"
        save_model(name, path)
        parts = Parts.of(path)
        return parts.arrays, parts.lines

    known = {}
    return lambda name: known[name] if name in known else known.setdefault(name, read(name))


def write_description(path, arrays, lines):
    path.write_bytes(Parts(arrays, lines).bytes())


def survey(saved, name, count, seed, directory):
    """What became of so many mutants: how many were refused and how many in use, and the faults."""
    arrays, lines = saved(name)
    rng = np.random.default_rng([seed, list(MODELS).index(name.removesuffix(FACTORS))])
    refused, used, faults = 0, 0, []
    for _ in range(count):
        changed = copy.deepcopy(lines)
        what = mutate(changed, rng)
        write_description(directory / "m", arrays, changed)
        try:
            model = spngp.load(directory / "m")
        except ModelFileError as error:
            refused += 1
            if "\n" in str(error):
                faults.append((what, "message", said(error)))
            continue
        except Exception as error:
            faults.append((what, "load", said(error)))
            continue
        try:
            use(model, X_NEW, directory / "again")
        except Exception as error:
            if not raised_by_us(error):
                faults.append((what, "use", said(error)))
        used += 1
    return refused, used, faults


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # asked without names, on purpose
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name == "changing noise" else [])
        for name in (*MODELS, "one GP" + FACTORS, "committee" + FACTORS)
    ],
)
def test_mutants_are_refused_on_opening_or_do_no_harm(name, saved, tmp_path):
    refused, used, faults = survey(saved, name, 50, 0, tmp_path)
    assert not faults, "\n".join(map(str, faults))
    assert refused > 0
    assert refused + used == 50


def first(lines, kind):
    """The contents of the first record of a kind."""
    return next(line[1] for line in lines[1:] if line[0] == kind)


def given(lines):
    """The first GP that was given rows of the model."""
    return next(line[1] for line in lines[1:] if line[0] == "ExactGP" and "rows" in line[1])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("one GP", lambda lines: first(lines, "ExactGP").pop("_alpha"), "ExactGP must have the attributes"),
        ("one GP", lambda lines: first(lines, "ExactGP").update(n_own="14"), "n_own of ExactGP must be <class 'int'>"),
        ("one GP", lambda lines: first(lines, "ExactGP").update(n_own=15), "no more own rows than rows, got 15"),
        (
            "one GP",
            lambda lines: given(lines)["_y"]["taken"][0]["array"].__setitem__(2, [13]),
            r"alpha of a GP must have shape \(13,\)",
        ),
        (
            "one GP" + FACTORS,
            lambda lines: first(lines, "Square")["array"]["array"].__setitem__(2, [7, 28]),
            "a factor",
        ),
        ("one GP", lambda lines: first(lines, "ExactGP").update(_y={"again": True}), "_y cannot be computed again"),
        ("one GP", lambda lines: first(lines, "ExactGP").update(rows=3), "rows must be those of a model"),
        ("one GP", lambda lines: given(lines).pop("rows"), "_X must be taken from rows by positions"),
        (
            "one GP",
            lambda lines: given(lines)["_y"]["taken"].__setitem__(1, 1),
            "must have the output, got 1",
        ),
        ("one GP", lambda lines: first(lines, "Rows").update(Y=first(lines, "Rows")["X"] and 1), "rows must be arrays"),
        ("one GP", lambda lines: first(lines, "Leaf").update(output=1), "a leaf must model an output of its units"),
        ("one GP", lambda lines: first(lines, "Matern").update(nu=1.0), "nu of Matern must be 0.5, 1.5 or 2.5"),
        ("one GP", lambda lines: first(lines, "GPRegressor").update(n_jobs="all"), "'n_jobs' parameter of GPRegressor"),
        ("one GP", lambda lines: first(lines, "GPRegressor").update(predict=1), "GPRegressor must have the attributes"),
        ("one GP", lambda lines: first(lines, "GPRegressor").update(n_features_in_=-1), "n_features_in_ must be 2, "),
        ("one GP", lambda lines: first(lines, "GPRegressor").update(n_features_in_=3), "n_features_in_ must be 2, "),
        (
            "changing noise",
            lambda lines: first(lines, "slice").__setitem__(0, -0.0),
            "a slice must have three whole numbers or null, got -0.0, ",
        ),
        (
            "changing noise",
            lambda lines: first(lines, "slice").pop(),
            "a slice must have three whole numbers or null, got",
        ),
        ("table", lambda lines: first(lines, "Split").update(axis=2), "must know the cuts below it"),
        ("table", lambda lines: first(lines, "Split").update(at={"tuple": [0.1, 0.2]}), "must cover its box"),
        ("table", lambda lines: first(lines, "Column").update(kind="text"), "must be of a known kind, got text"),
        ("committee", lambda lines: first(lines, lines[-1][0]).update(n_outputs_=1), "outputs must have experts each"),
        ("outlier", lambda lines: first(lines, "Repeats").update(n_rows=1), "n_rows must be >= "),
        (
            "outlier",
            lambda lines: first(lines, "NoiseShape").update(weights={"tuple": [0.5]}),
            "a weight for each|sum to",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(name, change, message, saved, tmp_path):
    arrays, lines = saved(name)
    changed = copy.deepcopy(lines)
    change(changed)
    write_description(tmp_path / "m", arrays, changed)
    with pytest.raises(ModelFileError, match=f"m is damaged: its description makes no model .*{message}") as caught:
        spngp.load(tmp_path / "m")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_saves_to_the_same_bytes(name, tmp_path):
    MODELS[name]().save(tmp_path / "m")
    spngp.load(tmp_path / "m").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_what_a_file_could_not_be_opened_with_is_not_saved(tmp_path):
    model = MODELS["one GP"]()
    for changes in ({"n_jobs": "all"}, {"kernel": "linear"}, {"random_state": "seed"}, {"noise_variance": -1.0}):
        with pytest.raises((ValueError, TypeError), match=f"{next(iter(changes))}"):
            copy.deepcopy(model).set_params(**changes).save(tmp_path / "m")
    model._note = "mine"
    with pytest.raises(ValueError, match="GPRegressor must have the attributes"):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())
    del model._note
    model.note_ = "mine"
    model.save(tmp_path / "m")
    assert spngp.load(tmp_path / "m").note_ == "mine"


def test_scales_whose_squares_overflow_are_refused():
    fine, large = (Units(Affine(np.zeros(2), np.ones(2)), Affine(np.zeros(1), np.array([s]))) for s in (1e150, 1e160))
    consistency.check("Units", fine)
    with pytest.raises(ValueError, match="squares of the outputs' scales must be finite"):
        consistency.check("Units", large)


def test_numbers_of_rows_far_apart_are_compared_without_overflow(tmp_path):
    path = tmp_path / "m.spngp"
    save_model("streamed", path)
    parts = Parts.of(path)
    integers = next(array for name, array in parts.arrays.items() if name == "small.int64")
    refused = 0
    for place in range(integers.size):
        changed = copy.deepcopy(parts)
        array = changed.arrays["small.int64"].copy()
        array.flat[place] = np.iinfo(np.int64).min
        changed.arrays["small.int64"] = array
        path.write_bytes(changed.bytes())
        try:
            model = spngp.load(path)
        except ModelFileError:
            refused += 1
            continue
        assert model.row_numbers_.min() >= 0
        assert model.outliers_.ndim == 2
    assert refused > 0
