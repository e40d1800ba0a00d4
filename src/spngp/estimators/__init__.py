"""Estimators with the interface of scikit-learn: regressors on a network, and committees to compare them with."""

from spngp.estimators.gp_regressor import GPRegressor
from spngp.estimators.regressors import SPNGPRegressor

__all__ = ["GPRegressor", "SPNGPRegressor"]
