"""What a model file may be made of: a closed list of classes, and how records refer to each other.

Every object becomes one record ``[type, contents]``, a line of JSON; contents refer to other records by their position,
parts before wholes, so shared parts stay shared and nothing can refer to itself. A type is a key of :data:`CLASSES`, or
one of a few plain ones, and is never looked up by what a file says.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_PARAMETER = "spngp.kernels.parameter"
_KERNELS = "spngp.kernels"
_NODES = "spngp.network.nodes"
_STRATEGIES = "spngp.structure.strategies"
SKLEARN = "sklearn.gaussian_process.kernels"

# The classes that a file may name, and where they live. Their state is all their attributes.
CLASSES: dict[str, str] = {
    "SPNGPRegressor": "spngp.estimators",
    "GPRegressor": "spngp.estimators",
    "ProductOfExperts": "spngp.estimators.committees",
    "GeneralizedProductOfExperts": "spngp.estimators.committees",
    "BayesianCommitteeMachine": "spngp.estimators.committees",
    "RobustBayesianCommitteeMachine": "spngp.estimators.committees",
    "Learnt": "spngp.learning",
    "Sharded": "spngp.learning.sharded",
    "Upkeep": "spngp.learning.upkeep",
    "Event": "spngp.learning.upkeep",
    "Affine": "spngp.network.units",
    "Units": "spngp.network.units",
    "NoiseShape": "spngp.noise",
    "NoiseProfile": "spngp.gp.noise_profile",
    **dict.fromkeys(["Unchanged", "Log"], "spngp.transformed"),
    "Budget": "spngp._support.memory",
    "Repeats": "spngp.gp.row_weights",
    "TableSchema": "spngp.tables.schema",
    "InputColumns": "spngp.columns",
    "Column": "spngp.columns",
    "ExactGP": "spngp.gp.exact",
    "Box": "spngp.box",
    "Parameter": _PARAMETER,
    "ParameterTable": _PARAMETER,
    "Identity": _PARAMETER,
    **dict.fromkeys(["Leaf", "Sum", "Split", "Product"], _NODES),
    **dict.fromkeys(["Compact", "RandomAxes", "EqualWidth"], _STRATEGIES),
    **dict.fromkeys(["SquaredExponential", "Matern", "RationalQuadratic", "Periodic"], _KERNELS),
    **dict.fromkeys(["Linear", "Polynomial", "Constant", "RandomSlopes", "Step", "PiecewiseConstant"], _KERNELS),
    **dict.fromkeys(["KernelSum", "KernelProduct"], _KERNELS),
}

ESTIMATORS = frozenset(name for name, home in CLASSES.items() if home.startswith("spngp.estimators"))

# scikit-learn's kernels, as a user may have given them: rebuilt by their constructors.
SKLEARN_KERNELS = frozenset(
    {
        *("RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct", "WhiteKernel", "ConstantKernel"),
        *("Sum", "Product", "Exponentiation"),
    }
)

# How a record refers to a part: a scalar stands for itself, a float that JSON does not know is {"float": "nan"}, an
# array {"array": [tensor, offset, shape, order]}, a tuple of numbers {"tuple": [...]}, anything else {"@": position}.
Reference = Any


@cache
def class_of(name: str) -> type:
    """The class that a record's type stands for."""
    kind: type = getattr(import_module(CLASSES[name]), name)
    return kind
