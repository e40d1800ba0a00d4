"""Models in files: bit-identical round trips, lazy reading, and files that are not what they should be."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import spngp
from soak.model_mutants import Parts
from spngp import GPRegressor, SPNGPRegressor, committees
from spngp.gp.exact import ExactGP
from spngp.io import SCHEMA, ModelFileError
from spngp.io.classes import CLASSES, class_of
from spngp.io.deferred import StoredGP
from spngp.io.objects import packed, unpacked
from spngp.io.tensors import TensorFile, checksum
from spngp.kernels import (
    Constant,
    Linear,
    Matern,
    Parameter,
    Periodic,
    PiecewiseConstant,
    Polynomial,
    RandomSlopes,
    RationalQuadratic,
    SquaredExponential,
)
from spngp.structure import Compact, EqualWidth, RandomAxes

COMMITTEES = [
    committees.ProductOfExperts,
    committees.GeneralizedProductOfExperts,
    committees.BayesianCommitteeMachine,
    committees.RobustBayesianCommitteeMachine,
]
RNG = np.random.default_rng(3)
X = RNG.uniform(-2, 2, (70, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]]) + 0.1 * RNG.standard_normal((70, 2))
Y[5, 1] = np.nan
X_NEW = RNG.uniform(-3, 3, (40, 2))

KERNELS = {
    "default": None,
    "linear": Linear(bias_variance=0.5),
    "polynomial": Polynomial(degree=3),
    "constant": SquaredExponential() + Constant(2.0),
    "periodic": Periodic(period=[1.0, 2.0]),
    "random slopes": RandomSlopes([1.0, 2.0]) + SquaredExponential(),
    "piecewise constant": PiecewiseConstant(1, [-0.5, 0.25]) + SquaredExponential(),
    "rational quadratic": RationalQuadratic(alpha=0.7),
    "matern": [Matern(nu, [0.5, 2.0]) for nu in (0.5, 1.5, 2.5)],
    "nested": (Linear() + SquaredExponential())
    * (Matern() + SquaredExponential(Parameter([1.0, 2.0], fixed=[True, False]), Parameter(1.0, (0.1, 9.0)))),
    "sklearn": sk.ConstantKernel(2.0, "fixed") * sk.RBF([1.0, 2.0]) + sk.WhiteKernel(0.1),
}


def fixed(**settings):
    size = {} if not isinstance(settings.get("structure", ""), str) else {"max_leaf_size": 25}
    return SPNGPRegressor(**{**size, "hyperparameters": "fixed", "random_state": 0, **settings})


CASES = {f"kernel {name}": fixed(kernels=kernel) for name, kernel in KERNELS.items()}
CASES |= {f"structure {s}": fixed(structure=s, n_partitions=2) for s in ("compact", "random", "equal-width")}
CASES |= {
    "equal rows": fixed(max_leaf_size=10),
    "factors not kept": fixed(memory_limit=4e-5, overlap=1.0),
    "structure object Compact": fixed(structure=Compact(20, n_partitions=2)),
    "structure object RandomAxes": fixed(structure=RandomAxes(40, spacing=1.3)),
    "structure object EqualWidth": fixed(structure=EqualWidth(30, n_partitions=2)),
    "overlap none": fixed(overlap=0.0),
    "margin": fixed(margin=[0.3, 0.1]),
    "adaptive": fixed(hyperparameters="adaptive"),
    "noise as a parameter": fixed(noise_variance=Parameter(0.01, (1e-4, 1.0))),
    "generator": fixed(structure="random", random_state=np.random.default_rng(5)),
    "legacy generator": fixed(structure="random", random_state=np.random.RandomState(5)),
    **{f"committee {kind.__name__}": kind(n_experts=4, random_state=0) for kind in COMMITTEES},
    "gp": GPRegressor(random_state=0),
    "gp with a kernel": GPRegressor(Matern(2.5), hyperparameters="fixed", noise_variance=0.02),
}


@pytest.fixture(scope="module")
def model():
    return fixed().fit(X, Y[:, 0])


@pytest.fixture
def path(tmp_path, model):
    model.save(tmp_path / "model.spngp")
    return tmp_path / "model.spngp"


def mixtures_equal(one, other):
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("log_weights", "means", "variances"))


@cache
def fitted(name, outputs):
    """A model of a case; tests work on copies."""
    y = Y[:, 0] if outputs == 1 else Y
    return copy.deepcopy(CASES[name]).fit(np.ones_like(X) if name == "equal rows" else X, y)


SEVERAL_OUTPUTS = ["kernel default", "structure random", "margin", "adaptive", "gp"]
SEVERAL_OUTPUTS += ["committee ProductOfExperts"]


@pytest.mark.parametrize(
    ("name", "outputs"), [*((name, 1) for name in CASES), *((name, 2) for name in SEVERAL_OUTPUTS)]
)
@pytest.mark.parametrize("with_factors", [False, True])
def test_round_trip_is_bit_identical(name, outputs, with_factors, tmp_path):
    model = copy.deepcopy(fitted(name, outputs))
    model.save(tmp_path / "m", with_factors=with_factors)
    loaded = spngp.load(tmp_path / "m")
    assert type(loaded) is type(model)
    if name == "factors not kept":
        assert not all(leaf.gp.has_factor for leaf, _, _ in loaded.network_.responsibilities())
    same = [p for p in model.get_params() if p != "random_state"]
    assert repr([loaded.get_params()[p] for p in same]) == repr([model.get_params()[p] for p in same])
    assert mixtures_equal(loaded.predict_dist(X_NEW), model.predict_dist(X_NEW))
    assert np.array_equal(loaded.predict(X_NEW), model.predict(X_NEW))
    if isinstance(model, tuple(COMMITTEES)):
        return
    assert np.array_equal(loaded.sample_y(X_NEW, 2, random_state=1), model.sample_y(X_NEW, 2, random_state=1))
    assert np.array_equal(loaded.predict_noise(X_NEW), model.predict_noise(X_NEW))
    assert np.array_equal(loaded.predict_kernel_weights(X_NEW), model.predict_kernel_weights(X_NEW))
    assert loaded.log_evidence_ == model.log_evidence_
    assert loaded.regions_ == model.regions_
    if isinstance(model, SPNGPRegressor):
        for one in (model, loaded):
            one.partial_fit(X_NEW, np.ones_like(Y[:, 0] if outputs == 1 else Y)[: len(X_NEW)])
        assert mixtures_equal(loaded.predict_dist(X), model.predict_dist(X))
        assert loaded.log_evidence_ == model.log_evidence_
    if "generator" in name:  # the generator goes on where it was
        assert loaded.random_state.random(3).tolist() == model.random_state.random(3).tolist()


def test_a_loaded_model_saves_to_the_same_bytes_even_onto_itself(path, model):
    before = path.read_bytes()
    loaded = spngp.load(path)
    loaded.save(path)
    assert path.read_bytes() == before
    assert np.array_equal(loaded.predict(X_NEW), model.predict(X_NEW))  # it still reads the file it came from


def test_a_loaded_model_copies_pickles_and_refits(path, model):
    loaded = spngp.load(path)
    for other in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(other.predict(X_NEW), model.predict(X_NEW))
        assert not any(isinstance(leaf.gp, StoredGP) for leaf, _, _ in other.network_.responsibilities())
    assert np.array_equal(loaded.fit(X, Y[:, 0]).predict(X_NEW), model.predict(X_NEW))


def test_many_large_arrays_in_one_list_keep_apart(tmp_path):
    model = committees.ProductOfExperts(n_experts=3, hyperparameters="fixed", random_state=0)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((900, 1))
    model.fit(rows, rows[:, 0]).save(tmp_path / "m")
    loaded = spngp.load(tmp_path / "m")
    assert len(model.expert_rows_) == 3
    for one, other in zip(loaded.expert_rows_, model.expert_rows_, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(loaded.predict(rows), model.predict(rows))


def test_names_of_inputs_survive(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["width", "<height>"])
    fixed().fit(frame, Y[:, 0]).save(tmp_path / "m")
    loaded = spngp.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == ["width", "<height>"]
    loaded.predict(frame)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["<height>", "width"]])


def test_factors_are_left_out_and_made_again_leaf_by_leaf(path, model, monkeypatch):
    assert not any(name.startswith("array.") for name in TensorFile(path).layout())
    loaded = spngp.load(path)
    made = []
    factor = ExactGP._factor
    monkeypatch.setattr(ExactGP, "_factor", lambda gp, *rest, **more: made.append(id(gp)) or factor(gp, *rest, **more))
    assert np.array_equal(loaded.predict(X_NEW), model.predict(X_NEW))
    assert not made  # means need none
    loaded.predict_dist(X_NEW[:1])
    reached = len(made)
    loaded.predict_dist(X_NEW[:1])
    assert len(made) == reached  # kept
    assert 0 < reached < len(loaded.network_.responsibilities())
    loaded.predict_dist(X_NEW)
    assert len(set(made)) == len(made)
    assert all(leaf.gp.has_factor for leaf, _, _ in loaded.network_.responsibilities())


def test_a_factor_that_was_extended_is_written(tmp_path):
    model = GPRegressor(SquaredExponential(), hyperparameters="fixed", random_state=0).fit(X[:50], Y[:50, 0])
    network = model.network_.condition(X[50:], Y[50:, 0])
    gp = network.responsibilities()[0].leaf.gp
    assert gp._extended
    assert not model.network_.responsibilities()[0].leaf.gp._extended
    one = fixed(overlap=0.0, outliers="trust").fit(X[:50], Y[:50, 0]).partial_fit(X[50:], Y[50:, 0])
    one.save(tmp_path / "m")
    loaded, found = spngp.load(tmp_path / "m").predict_dist(X_NEW), one.predict_dist(X_NEW)
    np.testing.assert_allclose(loaded.mean, found.mean, atol=1e-10)
    np.testing.assert_allclose(loaded.std, found.std, rtol=1e-10)


def test_positions_out_of_range_are_noticed_when_they_are_used(path):
    from safetensors.numpy import load_file, save_file

    tensors = load_file(path)
    name = next(name for name in tensors if "int32" in str(tensors[name].dtype))
    tensors[name] = tensors[name] + 10**6
    about, *records = unpacked(tensors["description"]).split("\n")
    about = json.loads(about)
    about["arrays"][name][2] = checksum(tensors[name])
    tensors["description"] = packed("\n".join([json.dumps(about), *records]))
    metadata = {"schema": SCHEMA, "checksum": checksum(tensors["description"])}
    save_file(tensors, path, {"spngp": json.dumps(metadata)})
    with pytest.raises(ModelFileError, match="is damaged: array"):
        spngp.load(path).predict_dist(X_NEW)
    with pytest.raises(ModelFileError, match="is damaged: array"):
        spngp.load(path, verify=True)


def test_numbers_that_are_none_are_refused_if_every_number_is_looked_at(path, model):
    model.save(path, with_factors=True)
    whole = Parts.of(path)
    for name, array in whole.arrays.items():
        if array.dtype != np.float64:
            continue
        parts = whole.copy()
        parts.arrays[name] = np.full_like(array, np.inf)
        parts.lines[0]["arrays"][name][2] = checksum(parts.arrays[name])
        path.write_bytes(parts.bytes())
        with pytest.raises(ModelFileError, match="is damaged: its description makes no model"):
            spngp.load(path, verify=True)


def test_lists_that_unfold_without_end_or_are_too_deep_are_refused(path):
    """Pairs of pairs of pairs: few bytes, but nobody could compare, hash or print them."""
    whole = path.read_bytes()
    for count, shared, message in ((60, 2, "parts of parts"), (40, 1, "stand in each other 30 times")):

        def unfold(records, count=count, shared=shared):
            root = records.pop()
            for _ in range(count):
                records.append(["tuple", [{"@": len(records) - 1}] * shared])
            root[1]["note_"] = {"@": len(records) - 1}
            records.append(root)

        path.write_bytes(whole)
        rewritten(path, lambda description, metadata, unfold=unfold: grown(description, unfold))
        with pytest.raises(ModelFileError, match=message):
            spngp.load(path)
    path.write_bytes(whole)
    key = {"tuple": [{"@": 0}]}
    rewritten(path, lambda description, metadata: grown(description, lambda records: keyed(records, key)))
    with pytest.raises(ModelFileError, match="no part of a model: '@'"):
        spngp.load(path)


def grown(description, change):
    """A description with other records and the same root."""
    change(description["records"])
    description["about"]["model"] = {"@": len(description["records"]) - 1}


def keyed(records, key):
    """The root knows a dictionary with this key."""
    root = records.pop()
    records.append(["dict", [[key, 1]]])
    root[1]["note_"] = {"@": len(records) - 1}
    records.append(root)


def test_a_description_that_unpacks_to_far_more_than_it_is_is_refused(path):
    rewritten(path, lambda description, metadata: description["records"].append(["strings", ["a" * 10**7]]))
    with pytest.raises(ModelFileError, match="damaged: its description"):
        spngp.load(path)


def test_reading_is_lazy(path, model):
    model.save(path, with_factors=True)
    loaded = spngp.load(path)
    gps = [leaf.gp for leaf, _, _ in loaded.network_.responsibilities()]
    assert all(isinstance(gp, StoredGP) for gp in gps)
    loaded.predict_dist(X_NEW[:1])
    read = ["_L" in gp.__dict__ for gp in gps]
    assert any(read)
    assert not all(read)
    for gp in gps:
        assert not gp._X.flags.writeable
        assert not gp._X.flags.owndata


def test_a_default_of_the_class_does_not_hide_what_was_stored(path, model, monkeypatch):
    want = model.predict(X_NEW)
    monkeypatch.setattr(ExactGP, "_alpha", np.zeros(0), raising=False)
    assert np.array_equal(spngp.load(path).predict(X_NEW), want)


def test_the_safetensors_package_reads_the_file(path):
    from safetensors.numpy import load_file

    tensors = load_file(path)
    file = TensorFile(path)
    assert set(tensors) == set(file.layout())
    for name, array in tensors.items():
        assert array.dtype == file.array(name).dtype
        assert np.array_equal(array, file.array(name))
    about = json.loads(unpacked(tensors["description"]).split("\n")[0])
    assert set(about["arrays"]) == set(tensors) - {"description"}
    total = sum(array.nbytes for array in tensors.values())
    assert path.stat().st_size < 1.2 * total


_CORE_ONLY = """
import sys
EXTRAS = ("safetensors", "typer", "rich", "pyarrow", "matplotlib", "plotly", "pandas", "polars")
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import numpy as np, spngp
X = np.linspace(0.0, 6.0, 30)[:, np.newaxis]
model = spngp.SPNGPRegressor(hyperparameters="fixed").fit(X, np.sin(X[:, 0]))
model.save(sys.argv[1])
assert np.array_equal(spngp.load(sys.argv[1], verify=True).predict(X), model.predict(X))
"""


def test_the_core_dependencies_are_enough_to_save_and_load(tmp_path):
    source = os.path.dirname(os.path.dirname(spngp.__file__))
    environment = {**os.environ, "PYTHONPATH": source}
    subprocess.run([sys.executable, "-c", _CORE_ONLY, str(tmp_path / "m")], env=environment, check=True)


def test_file_is_hardly_larger_than_its_arrays(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 3))
    model = SPNGPRegressor(max_leaf_size=200, hyperparameters="fixed").fit(rows, np.sin(rows.sum(axis=1)))
    model.save(tmp_path / "m")
    arrays = {}
    for network in (model._learnt.own, model._learnt.network):
        for leaf, _, _ in network.responsibilities():
            gp = leaf.gp
            for array in (gp._X, gp._y, gp._alpha, *([] if gp._L is None else [gp._L.array])):
                arrays[id(array)] = array.nbytes
    size = (tmp_path / "m").stat().st_size
    model.save(tmp_path / "m", with_factors=True)
    assert (tmp_path / "m").stat().st_size <= 1.2 * sum(arrays.values())
    assert size <= 0.1 * sum(arrays.values())


# What is not a model, or not any more.


def test_every_flipped_bit_is_noticed(path, model):
    whole = path.read_bytes()
    want = model.predict_dist(X_NEW)
    rng = np.random.default_rng(0)
    header = int.from_bytes(whole[:8], "little")
    places = [*range(8), *range(8, 8 + header, 37), *rng.integers(8 + header, len(whole), 150)]
    damaged = path.with_name("damaged.spngp")
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        damaged.write_bytes(flipped)
        with pytest.raises(ModelFileError) as caught:
            spngp.load(damaged, verify=True)
        assert "\n" not in str(caught.value)
        assert "damaged.spngp" in str(caught.value)
        with contextlib.suppress(ModelFileError):  # without being asked to verify: noticed when it would matter
            assert mixtures_equal(spngp.load(damaged).predict_dist(X_NEW), want)


def test_a_flipped_factor_is_noticed_when_it_is_used(path, model):
    from safetensors import safe_open

    model.save(path, with_factors=True)
    whole = bytearray(path.read_bytes())
    with safe_open(path, framework="np") as file:
        factors = [name for name in file.keys() if name.startswith("array.")]  # noqa: SIM118 - not a dict
    header = json.loads(whole[8 : 8 + int.from_bytes(whole[:8], "little")])
    for name in factors:
        start, stop = header[name]["data_offsets"]
        whole[8 + int.from_bytes(whole[:8], "little") + (start + stop) // 2] ^= 1
    path.write_bytes(whole)
    loaded = spngp.load(path)
    with pytest.raises(ModelFileError, match="damaged: array"):
        loaded.predict_dist(X_NEW)


@pytest.mark.parametrize("keep", [0, 1, 7, 8, 9, 100, 0.5, -1])
def test_truncated(path, keep):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(ModelFileError, match=r"truncated|empty|not a spngp model"):
        spngp.load(path)


def test_bytes_at_the_end(path):
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(ModelFileError, match="damaged"):
        spngp.load(path)


def _zip():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        # with a date of its own: tests are collected by several processes, which must agree on their names
        archive.writestr(zipfile.ZipInfo("model.json"), "{}" * 500)
    return buffer.getvalue()


class Hostile:
    def __reduce__(self):
        return os.abort, ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_zip(), "is a zip archive, not a spngp model"),
        (pickle.dumps({"a": 1}), "is a pickle, which is never read because it can run code, not a spngp model"),
        (pickle.dumps(Hostile()), "is a pickle"),
        (b"x,y\n1,2\n3,4\n", "is not a spngp model"),
        (b"\x10\0\0\0\0\0\0\0" + b"not json at all!", "is not a spngp model"),
        (b"\x02\0\0\0\0\0\0\0[]", "is not a spngp model"),
        (b"\x02\0\0\0\0\0\0\0{}", "is a safetensors file, but not a spngp model"),
        (b"\xff" * 64, "is not a spngp model"),
    ],
)
def test_other_files(tmp_path, content, message):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        spngp.load(tmp_path / "m")


def rewritten(path: Path, change) -> Path:
    """The file with another description, all checksums right: what a hostile writer would make."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(path)
    about, *records = map(json.loads, unpacked(tensors["description"]).splitlines())
    metadata = {"schema": SCHEMA}
    change({"about": about, "records": records}, metadata)
    text = "\n".join(map(json.dumps, [about, *records]))
    tensors["description"] = packed(text)
    metadata = {"checksum": checksum(tensors["description"]), **metadata}
    save_file(tensors, path, {"spngp": json.dumps(metadata)})
    return path


def test_a_later_schema(path):
    rewritten(path, lambda description, metadata: metadata.update(schema=SCHEMA + 1))
    with pytest.raises(
        ModelFileError, match=rf"later version of spngp \(schema {SCHEMA + 1}; .* reads {SCHEMA}\): update spngp"
    ):
        spngp.load(path)


def test_an_earlier_schema(path):
    rewritten(path, lambda description, metadata: metadata.update(schema=3))
    with pytest.raises(ModelFileError, match=rf"earlier version of spngp \(schema 3; .* reads 4 to {SCHEMA}\): fit"):
        spngp.load(path)


def _records(change):
    return lambda description, metadata: change(description["records"])


@pytest.mark.parametrize(
    "change",
    [
        _records(lambda records: records.clear()),
        _records(lambda records: records[-1].__setitem__(0, "os.system")),
        _records(lambda records: records[-1].__setitem__(0, "Popen")),
        _records(lambda records: records[-1].__setitem__(0, "sklearn.clone")),
        _records(lambda records: records[-1].__setitem__(1, None)),
        _records(lambda records: records[-1].__setitem__(1, {"_learnt": {"@": len(records) - 1}})),
        _records(lambda records: records[-1].__setitem__(1, {"_learnt": {"@": "0"}})),
        lambda description, metadata: description["about"].update(model={"@": 0}),
        lambda description, metadata: description["about"].update(model=3),
        lambda description, metadata: description["about"].pop("arrays"),
        lambda description, metadata: description["about"]["arrays"].popitem(),
        lambda description, metadata: metadata.update(schema="one"),
    ],
)
def test_a_description_that_makes_no_model(path, change):
    rewritten(path, change)
    with pytest.raises(ModelFileError) as caught:
        spngp.load(path)
    assert "\n" not in str(caught.value)


def test_arrays_of_a_wrong_size_are_refused_before_lapack_sees_them(path, model):
    model.save(path, with_factors=True)

    def shrink(records):
        for kind, contents in records:
            if kind == "Square":
                contents["array"]["array"][1:3] = [0, [2, 2]]

    rewritten(path, _records(shrink))
    with pytest.raises(ValueError, match="must be"):
        spngp.load(path).predict_dist(X_NEW)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(FileNotFoundError):
        spngp.load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="is a directory, but not a spngp model: it has no"):
        spngp.load(tmp_path)


# Writing


def test_only_fitted_estimators_of_ours_are_saved(tmp_path):
    from sklearn.exceptions import NotFittedError
    from sklearn.linear_model import LinearRegression

    with pytest.raises(NotFittedError):
        SPNGPRegressor().save(tmp_path / "m")
    with pytest.raises(ValueError, match="only estimators of spngp"):
        spngp.io.save(LinearRegression(), tmp_path / "m")
    with pytest.raises(ValueError, match="only estimators of spngp"):
        spngp.io.save({"a": 1}, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_kernel_of_ones_own_cannot_be_saved_and_the_old_file_stays(path):
    class Mine(SquaredExponential):
        pass

    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"cannot save a .*Mine"):
        fixed(kernels=Mine()).fit(X, Y[:, 0]).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_that_is_not_there(tmp_path, model):
    with pytest.raises(FileNotFoundError, match=r"nowhere.m\.spngp"):
        model.save(tmp_path / "nowhere" / "m.spngp")
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path)


def test_permissions_and_links_stay(path, model):
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640


_ENDLESS = """
import sys
import numpy as np, spngp
from spngp import io
model = spngp.load(sys.argv[1])
model.ballast_ = np.zeros(6_000_000)
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
"""


def test_a_process_killed_while_it_writes_leaves_a_whole_file(path, model):
    want = model.predict(X_NEW)
    source = os.path.dirname(os.path.dirname(spngp.__file__))
    command = [sys.executable, "-c", _ENDLESS, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": source})
    try:
        assert process.stdout.readline() == b"ready\n"
        # wait until a write is under way, then kill without warning
        for _ in range(2000):
            if any(item.stat().st_size > 100_000 for item in path.parent.glob(".*.part")):
                break
            time.sleep(0.001)
        else:
            pytest.fail("no write was seen")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert list(path.parent.glob(".*.part")), "the write was not interrupted"
    assert np.array_equal(spngp.load(path, verify=True).predict(X_NEW), want)


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_that_a_file_may_name_exists(name):
    assert class_of(name).__name__ == name
