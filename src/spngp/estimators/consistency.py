"""How the attributes of an estimator must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spngp._support.consistency import must, must_have_shape
from spngp.columns.consistency import check_columns
from spngp.estimators.targets import check_target
from spngp.gp.consistency import check_inputs_of
from spngp.gp.exact import ExactGP
from spngp.learning import defaults
from spngp.learning.sharded import Sharded
from spngp.transformed import Fitted, Log, Unchanged


def check_estimator(model: Any) -> None:
    """Raise an error unless the parameters of an estimator and what it has learnt fit each other."""
    d, p = model.n_features_in_, model.n_outputs_
    n_columns = d
    if hasattr(model, "columns_"):
        check_columns(model.columns_)
        given = len(model.columns_.columns)
        some_ignored = hasattr(model, "feature_names_in_") or not model.columns_.is_plain  # perhaps
        fits = n_columns >= given if some_ignored else n_columns == given
        must(fits, f"n_features_in_ must be {given}{' or more' if some_ignored else ''}", n_columns)
        d = len(model.columns_.input_names)
    model._validate_params()
    random_state = model.random_state
    known = random_state is None or isinstance(
        random_state, int | np.integer | np.random.Generator | np.random.RandomState
    )
    must(known, "random_state must be None, an integer or a generator", type(random_state).__name__)
    must(model.y_ndim_ in ((1, 2) if p == 1 else (2,)), "several outputs must be columns", model.y_ndim_)
    kernels = model.kernels if hasattr(model, "kernels") else model.kernel
    if kernels is not None:
        for kernel, _ in defaults.as_kernels(kernels):
            kernel.check_inputs(d)
    if hasattr(model, "experts_"):
        _check_experts(model.experts_, d, p)
        must_have_shape(model.units_.inputs.mean, (d,), "means of the inputs")
        must_have_shape(model.units_.outputs.mean, (p,), "means of the outputs")
    else:
        must(model.kernel_names_, "a model must have kernels", "none")
        check_target(model.target, None)
        known = all(isinstance(of, Unchanged | Log | Fitted) for of in model.targets_)
        must(known and len(model.targets_) == p, f"{p} outputs must have as many targets", len(model.targets_))
        if isinstance(model._learnt, Sharded):
            must_have_shape(model._learnt.units.inputs.mean, (d,), "means of the inputs")
            must_have_shape(model._learnt.units.outputs.mean, (p,), "means of the outputs")
        else:
            X, Y = model._remembered()
            must_have_shape(X, (X.shape[0], d), "X")
            must_have_shape(Y, (Y.shape[0], p), "Y")
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        is_text = isinstance(names, np.ndarray) and names.dtype == object and all(type(name) is str for name in names)
        must(
            is_text and names.shape == (n_columns,),
            f"{n_columns} columns must have as many names",
            type(names).__name__,
        )


def _check_experts(experts: Sequence[Sequence[ExactGP]], n_inputs: int, n_outputs: int) -> None:
    must(len(experts) == n_outputs, f"{n_outputs} outputs must have experts each", len(experts))
    for gps in experts:
        must(gps, "an output must have experts", "none")
        check_inputs_of(gps, n_inputs)
