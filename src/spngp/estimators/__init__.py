"""Estimators with the interface of scikit-learn: regressors on a network, and committees to compare them with."""

from spngp.estimators.regressors import GPRegressor, SPNGPRegressor

__all__ = ["GPRegressor", "SPNGPRegressor"]
