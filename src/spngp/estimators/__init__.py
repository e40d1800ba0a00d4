"""The scikit-learn face: regressors on a network, and committees to compare with, on one base."""

from spngp.estimators.regressors import GPRegressor, SPNGPRegressor

__all__ = ["GPRegressor", "SPNGPRegressor"]
