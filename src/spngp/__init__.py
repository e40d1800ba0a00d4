"""Deep mixtures of Gaussian-process experts with exact inference."""

from spngp._version import __version__
from spngp.estimators import GPRegressor, SPNGPRegressor

__all__ = ["GPRegressor", "SPNGPRegressor", "__version__"]
