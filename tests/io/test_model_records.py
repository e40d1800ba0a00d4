"""Records that are not what was written, with every checksum right: refused when the file is opened, or harmless."""

from __future__ import annotations

import copy
import json
import os
import traceback

import numpy as np
import pytest

import spngp
from spngp import GPRegressor, SPNGPRegressor
from spngp.committees import RobustBayesianCommitteeMachine
from spngp.io import ModelFileError
from spngp.io.classes import CLASSES
from spngp.io.objects import SCHEMA, packed, unpacked
from spngp.io.tensors import TensorFile, checksum, write
from spngp.kernels import Constant, Linear, Matern, Parameter, Periodic, Polynomial, RationalQuadratic
from spngp.structure import Compact
from spngp.tables.schema import TableSchema

RNG = np.random.default_rng(11)
X = RNG.uniform(-2.0, 2.0, (14, 2))
Y = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 0] * X[:, 1]]) + 0.1 * RNG.standard_normal((14, 2))
Y[3, 1] = np.nan
X_NEW = RNG.uniform(-3.0, 3.0, (5, 2))


def _with_table():
    import pandas as pd

    frame = pd.DataFrame(X, columns=["width", "height"])
    model = SPNGPRegressor(Matern(1.5), max_leaf_size=8, hyperparameters="fixed", random_state=0).fit(frame, Y[:, 0])
    model.table_ = TableSchema(("price",))
    return model


def _with_an_outlier():
    """One output a hundred times as far off as all others has a noise of its own, so rows have weights."""
    rows = np.linspace(-2.0, 2.0, 24)[:, np.newaxis] * [1.0, -0.5]
    y = np.sin(rows[:, 0]) + 0.1 * np.random.default_rng(5).standard_normal(24)
    y[7] = 5000.0
    return SPNGPRegressor(Matern(1.5), max_leaf_size=15, hyperparameters="tied", random_state=0).fit(rows, y)


MODELS = {
    "two outputs": lambda: SPNGPRegressor(
        [Matern(2.5, [0.5, 2.0]), Linear(bias_variance=0.5) + Constant(2.0)],
        max_leaf_size=8,
        hyperparameters="fixed",
        random_state=np.random.default_rng(5),
    ).fit(X, Y),
    "structure object": lambda: SPNGPRegressor(
        RationalQuadratic() * Periodic([1.0, 2.0]) + Polynomial(3),
        structure=Compact(7),
        margin=[0.3, 0.1],
        hyperparameters="fixed",
        noise_variance=Parameter(0.01, (1e-4, 1.0)),
    ).fit(X, Y[:, :1]),
    "one GP": lambda: GPRegressor(Matern(0.5), hyperparameters="fixed", random_state=0).fit(X, Y[:, 0]),
    "committee": lambda: RobustBayesianCommitteeMachine(n_experts=3, hyperparameters="fixed", random_state=0).fit(X, Y),
    "table": _with_table,
    "outlier": _with_an_outlier,
}


FACTORS = ", with factors"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Each model's arrays, and the lines of its description; by its name, with factors after a mark."""

    def read(name):
        path = tmp_path_factory.mktemp("models") / "m.spngp"
        MODELS[name.removesuffix(FACTORS)]().save(path, with_factors=name.endswith(FACTORS))
        file = TensorFile(path)
        arrays = {key: file.array(key) for key in file.layout()}
        return arrays, [json.loads(line) for line in unpacked(arrays.pop("description")).split("\n")]

    known = {}
    return lambda name: known[name] if name in known else known.setdefault(name, read(name))


def write_description(path, arrays, lines):
    described = packed("\n".join(map(json.dumps, lines)))
    metadata = {"schema": SCHEMA, "checksum": checksum(described)}
    write(path, {**arrays, "description": described}, metadata)


OTHERS = [None, True, False, 0, 1, 2, -1, -7, 10**30, 0.5, -0.25, 1e300, "text", "", [], {}, [1], [[1.0, 2.0]]]
OTHERS += [{"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"tuple": []}, {"tuple": [1, 2]}, {"@": 0}]


def places(tree):
    """Every container in a JSON value with each of its keys."""
    found, stack = [], [tree]
    while stack:
        item = stack.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        found += [(item, key) for key in keys]
        stack += [item[key] for key in keys]
    return found


def mutate(lines, rng):
    """Change one thing in one line; says what."""
    at = int(rng.integers(len(lines)))
    containers = places(lines[at])
    container, key = containers[rng.integers(len(containers))]
    donor, donor_key = (lambda found: found[rng.integers(len(found))])(places(lines[rng.integers(len(lines))]))
    before = json.dumps(container[key])[:60]
    way = rng.choice(["delete", "rename", "other", "number", "swap", "copy", "class", "reference"])
    if way == "delete":
        del container[key]
    elif way == "rename" and isinstance(container, dict):
        container[str(rng.choice([f"{key}_", f"_{key}", "x", "__class__", "predict"]))] = container.pop(key)
    elif way == "number" and type(container[key]) in (int, float):
        number = container[key]
        others = [str(number), None, [number], -number, number + 1, number - 1, number * 10**6, -1e300, 10**400]
        container[key] = others[rng.integers(len(others))]
    elif way == "swap":
        container[key], donor[donor_key] = donor[donor_key], container[key]
    elif way == "copy":
        container[key] = copy.deepcopy(donor[donor_key])
    elif way == "class" and at:
        names = [*CLASSES, "list", "tuple", "dict", "slice", "strings", "Square", "Generator", "sklearn.RBF", "Popen"]
        container, key = lines[at], 0
        lines[at][0] = str(rng.choice(names))
    elif way == "reference":
        container[key] = {"@": int(rng.integers(-1, len(lines)))}
    else:
        container[key] = copy.deepcopy(OTHERS[rng.integers(len(OTHERS))])
    return f"line {at}: {way} {key!r}, {before}: now {json.dumps(lines[at])[:300]}"


def use(model, path):
    """All that a person may ask of a model, and that it gives numbers."""
    repr(model)
    mean, std = model.predict(X_NEW, return_std=True)
    mixture = model.predict_dist(X_NEW)
    numbers = [model.predict(X_NEW), mean, std, mixture.mean, mixture.std, *mixture.interval(0.9)]
    repr(model.log_evidence_)
    if hasattr(model, "network_"):
        repr(model.network_)
        repr(model.regions_)
        numbers += [model.sample_y(X_NEW, 2), model.predict_noise(X_NEW), model.predict_kernel_weights(X_NEW)]
        numbers += [model.outliers_]
    else:
        numbers += [model.noise_std_]
        repr(model.kernel_)
    assert all(np.isfinite(value).all() for value in numbers)
    model.save(path)
    if hasattr(model, "partial_fit"):
        shape = (5,) if mean.ndim == 1 else (5, mean.shape[1])
        model.partial_fit(X_NEW, np.linspace(0.0, 1.0, np.prod(shape)).reshape(shape))
        assert np.isfinite(model.predict(X_NEW)).all()


def raised_by_us(error):
    """Whether an error is a plain ValueError of our own, such as that a kernel overflows; not one of NumPy's."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, ValueError) and os.path.dirname(spngp.__file__) in frame.f_code.co_filename


def said(error):
    """The text of an error that may have none: it may show a part of the mutant."""
    return traceback.format_exception_only(error)[-1].strip()


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
            use(model, directory / "again")
        except Exception as error:
            if not raised_by_us(error):
                faults.append((what, "use", said(error)))
        used += 1
    return refused, used, faults


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # asked without names, on purpose
@pytest.mark.parametrize("name", [*MODELS, "one GP" + FACTORS, "committee" + FACTORS])
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
