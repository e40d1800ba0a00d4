"""Deep mixtures of Gaussian-process experts with exact inference."""

from typing import TYPE_CHECKING, Any

from spngp._version import __version__

if TYPE_CHECKING:
    from spngp.estimators import GPRegressor, SPNGPRegressor
    from spngp.io import load

__all__ = ["GPRegressor", "SPNGPRegressor", "__version__", "load"]

# Names and modules are imported when first asked for, so that `spngp --help` need not wait for SciPy.
_HOMES = {"GPRegressor": "spngp.estimators", "SPNGPRegressor": "spngp.estimators", "load": "spngp.io"}
_MODULES = frozenset(
    {
        *("committees", "datasets", "estimators", "experiments", "io", "kernels", "leaf", "metrics", "network"),
        *("noise", "outofcore", "plotting", "predictive", "report", "scorers", "structure", "transformed"),
    }
)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"spngp.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'spngp' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
