"""Which check each object of a model file must pass, so that no later call on the model fails.

When an object is checked, its types (:mod:`spngp.io.fields`) and its parts have been checked before. Of arrays that
are read later (:mod:`spngp.io.deferred`), only shapes are checked. The checks themselves live with their classes, in
the ``consistency`` module of each room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spngp.columns.consistency import check_column, check_columns
from spngp.estimators.consistency import check_estimator
from spngp.gp.consistency import check_gp, check_noise_profile, check_repeats
from spngp.io.classes import ESTIMATORS
from spngp.kernels import Kernel
from spngp.kernels.consistency import check_combination, check_kernel, check_parameter, check_table
from spngp.learning.consistency import check_budget, check_learnt, check_sharded
from spngp.network.consistency import (
    check_affine,
    check_box,
    check_leaf,
    check_noise_shape,
    check_product,
    check_split,
    check_sum,
    check_units,
)
from spngp.tables.consistency import check_table_of

_CHECKS: dict[str, Callable[[Any], None]] = {
    "Parameter": check_parameter,
    "ParameterTable": check_table,
    "KernelSum": check_combination,
    "KernelProduct": check_combination,
    "Repeats": check_repeats,
    "ExactGP": check_gp,
    "Leaf": check_leaf,
    "Sum": check_sum,
    "Split": check_split,
    "Product": check_product,
    "Box": check_box,
    "NoiseShape": check_noise_shape,
    "NoiseProfile": check_noise_profile,
    "Affine": check_affine,
    "Units": check_units,
    "Budget": check_budget,
    "Learnt": check_learnt,
    "Sharded": check_sharded,
    "Column": check_column,
    "InputColumns": check_columns,
}


def check(name: str, value: Any) -> None:
    """Raise an error unless an object of the class of this name can be used."""
    if name in ESTIMATORS:
        check_estimator(value)
        check_table_of(value)
    elif name in _CHECKS:
        _CHECKS[name](value)
    elif isinstance(value, Kernel):
        check_kernel(value)
