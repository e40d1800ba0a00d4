"""Files that were written by earlier versions are opened, and predict what they did."""

import json

import numpy as np
import pytest

import spngp
from kept_models import FOLDER, X_NEW, made, told
from spngp.io import SCHEMA

KEPT = sorted(FOLDER.glob("schema-*.spngp"))


def test_there_is_one_of_the_present_schema():
    assert FOLDER / f"schema-{SCHEMA}.spngp" in KEPT, "python tests/kept_models.py writes it"


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_model_predicts_what_it_did(path):
    assert path.stat().st_size < 30_000
    model = spngp.load(path, verify=True)
    expected = json.loads(path.with_suffix(".json").read_text())
    for name, values in told(model).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-7, atol=1e-9, err_msg=name)
    assert model.partial_fit(X_NEW[:1], np.zeros((1, 2))).row_numbers_.size == 41


def test_the_same_model_made_now_predicts_the_same():
    expected = json.loads((FOLDER / f"schema-{SCHEMA}.json").read_text())
    for name, values in told(made()).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-6, atol=1e-8, err_msg=name)
