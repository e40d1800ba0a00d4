"""SPN-GPs for skpro (the extra ``skpro``): a probabilistic regressor that predicts the whole mixture."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from skpro.distributions.base import BaseDistribution
from skpro.regression.base import BaseProbaRegressor

from spngp._support.types import Array
from spngp.estimators import SPNGPRegressor
from spngp.kernels import SquaredExponential
from spngp.mixture_spread import mean_absolute, mean_difference
from spngp.predictive import GaussianMixture


class MixtureDistribution(BaseDistribution):
    """A predictive distribution of ours as one of skpro's: rows and columns of mixtures.

    Parameters
    ----------
    mixture : GaussianMixture or TransformedMixture
        Of shape (rows, outputs), or () for a single one.
    index, columns : pandas.Index, optional

    Examples
    --------
    >>> import numpy as np
    >>> from spngp.adapters.skpro import MixtureDistribution
    >>> from spngp.predictive import GaussianMixture
    >>> means = np.array([[[-1.0, 1.0]], [[0.0, 2.0]]])
    >>> MixtureDistribution(GaussianMixture(np.log(np.full((2, 1, 2), 0.5)), means, np.ones((2, 1, 2)))).mean()
         0
    0  0.0
    1  1.0
    """

    _tags = {  # noqa: RUF012 - skpro's way
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "continuous",
        "distr:paramtype": "nonparametric",
        "broadcast_init": "off",
    }

    def __init__(self, mixture: Any, index: Any = None, columns: Any = None) -> None:
        self.mixture = mixture
        if index is None and mixture.shape:
            index = pd.RangeIndex(mixture.shape[0])
        if columns is None and mixture.shape:
            columns = pd.RangeIndex(mixture.shape[1])
        super().__init__(index=index, columns=columns)

    def _mean(self) -> Array:
        return np.asarray(self.mixture.mean)

    def _var(self) -> Array:
        return np.asarray(self.mixture.var)

    def _log_pdf(self, x: Any) -> Array:
        return np.asarray(self.mixture.logpdf(self._in_shape(x)))

    def _pdf(self, x: Any) -> Array:
        return np.exp(self._log_pdf(x))

    def _cdf(self, x: Any) -> Array:
        return np.asarray(self.mixture.cdf(self._in_shape(x)))

    def _ppf(self, p: Any) -> Array:
        levels = self._in_shape(p)
        found = np.empty(levels.shape)
        for level in np.unique(levels):
            found = np.where(levels == level, self.mixture.quantile(float(level)), found)
        return found

    def _energy_self(self) -> Array:
        if not isinstance(self.mixture, GaussianMixture):
            return np.asarray(super()._energy_self())
        return self._summed(mean_difference(*self._parts()))

    def _energy_x(self, x: Any) -> Array:
        if not isinstance(self.mixture, GaussianMixture):
            return np.asarray(super()._energy_x(x))
        weights, means, variances = self._parts()
        away = mean_absolute(self._in_shape(x).reshape(-1, 1) - means, variances)
        return self._summed(np.einsum("ik,ik->i", weights, away))

    def _parts(self) -> tuple[Array, Array, Array]:
        """Weights, means and variances, (mixtures, components); those of components that are not used do not matter."""
        size = self.mixture.means.shape[-1]
        weights, means, variances = (
            part.reshape(-1, size) for part in (self.mixture.weights, self.mixture.means, self.mixture.variances)
        )
        return weights, np.where(weights > 0, means, 0.0), np.where(weights > 0, variances, 1.0)

    def _summed(self, of_each: Array) -> Array:
        """Over the outputs, as skpro has it."""
        return of_each.reshape(self.mixture.shape).sum(axis=1) if self.mixture.shape else np.asarray(of_each[0])

    def _in_shape(self, x: Any) -> Array:
        return np.broadcast_to(np.asarray(x, dtype=np.float64), self.mixture.shape)

    def _sample(self, n_samples: int | None = None) -> Any:
        draws = self.mixture.sample(1 if n_samples is None else n_samples)
        if not self.mixture.shape:
            return float(draws[0]) if n_samples is None else pd.DataFrame(draws)
        frames = [pd.DataFrame(part, self.index, self.columns) for part in np.moveaxis(draws, -1, 0)]
        return frames[0] if n_samples is None else pd.concat(frames, keys=range(n_samples))

    def _iloc(self, rowidx: Any = None, colidx: Any = None) -> Any:
        if isinstance(rowidx, int | np.integer) and isinstance(colidx, int | np.integer):
            return self._iat(rowidx, colidx)
        rows, columns = (
            np.atleast_1d(np.arange(size)[slice(None) if index is None else index])
            for index, size in ((rowidx, len(self.index)), (colidx, len(self.columns)))
        )
        return MixtureDistribution(
            self.mixture[rows][:, columns], index=self.index[rows], columns=self.columns[columns]
        )

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> Any:
        return MixtureDistribution(self.mixture[rowidx, colidx])

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings that skpro tests the class with."""
        rng = np.random.default_rng(0)
        table = GaussianMixture(
            np.log(rng.dirichlet(np.ones(3), (3, 2))), rng.normal(size=(3, 2, 3)), rng.uniform(0.1, 1.0, (3, 2, 3))
        )
        one = GaussianMixture(np.log([0.3, 0.7]), np.array([-1.0, 1.0]), np.array([0.5, 0.2]))
        named = {"index": pd.Index([1, 2, 5]), "columns": pd.Index(["a", "b"])}
        return [{"mixture": table}, {"mixture": one}, {"mixture": table, **named}]


class SPNGPProbaRegressor(BaseProbaRegressor):
    """An SPN-GP as a probabilistic regressor of skpro's: ``predict_proba`` returns the whole mixture at each row.

    Parameters
    ----------
    regressor : SPNGPRegressor or GPRegressor, optional
        The model, with its settings; by default ``SPNGPRegressor()``. A clone of it is fitted, ``regressor_``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from spngp import SPNGPRegressor
    >>> from spngp.adapters.skpro import SPNGPProbaRegressor
    >>> X = pd.DataFrame({"x": np.linspace(0.0, 6.0, 40)})
    >>> y = pd.DataFrame({"y": np.sin(X["x"])})
    >>> model = SPNGPProbaRegressor(SPNGPRegressor(random_state=0)).fit(X, y)
    >>> bool((model.predict_interval(X, coverage=0.9).to_numpy()[:, 0] < y["y"]).all())
    True
    """

    _tags = {  # noqa: RUF012 - skpro's way
        "capability:multioutput": True,
        "capability:missing": False,
        "capability:update": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, regressor: Any = None) -> None:
        self.regressor = regressor
        super().__init__()

    def _fit(self, X: Any, y: Any, C: Any = None) -> Self:
        self.regressor_ = SPNGPRegressor() if self.regressor is None else clone(self.regressor)
        self._columns = y.columns
        self.regressor_.fit(_numbers(X), y.to_numpy(dtype=np.float64))
        return self

    def _update(self, X: Any, y: Any, C: Any = None) -> Self:
        self.regressor_.partial_fit(_numbers(X), y.to_numpy(dtype=np.float64))
        return self

    def _predict(self, X: Any) -> Any:
        return pd.DataFrame(self.regressor_.predict(_numbers(X)), X.index, self._columns)

    def _predict_proba(self, X: Any) -> MixtureDistribution:
        return MixtureDistribution(self.regressor_.predict_dist(_numbers(X)), index=X.index, columns=self._columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Settings that skpro tests the class with: quick ones."""
        quick: dict[str, Any] = {"hyperparameters": "fixed", "random_state": 0}
        return [
            {"regressor": SPNGPRegressor(SquaredExponential(length_scale=50.0), max_leaf_size=50, **quick)},
            {"regressor": SPNGPRegressor(max_leaf_size=80, overlap=1.0, **quick)},
        ]


def _numbers(X: Any) -> Any:
    """A table whose columns have names that scikit-learn knows: texts."""
    return X.set_axis([str(name) for name in X.columns], axis=1)
