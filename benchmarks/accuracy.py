"""Accuracy and time of ``SPNGPRegressor()`` with default arguments against its peers, on the same splits in one run.

    SPNGP_DATA=../shared/data python benchmarks/accuracy.py --sets energy,concrete --models spngp,sklearn,lightgbm

Every split is 90/10 (Kin40K: its classic split, once), outputs are standardised by the training rows, and figures are
mean ± standard error over the splits: RMSE, NLPD, CRPS, share of 95 % intervals that hold, seconds to fit and to
predict. Peers that are not installed are left out by name (``pip install .[bench]``; PyTorch and GPBoost are large).
LightGBM gives no density: its figures are those of a Gaussian with the variance of the residuals on a held-out tenth of
the training rows.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

import reporting
from spngp import SPNGPRegressor, datasets, metrics
from spngp.predictive import GaussianMixture

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Fitted = Callable[[np.ndarray], GaussianMixture]


def splits(name: str, count: int) -> list[Rows]:
    data = datasets.load(name)
    if data.n_train is not None:
        return [standardised(*data.classic_split())]
    return [standardised(*data.random_split(0.1, seed)) for seed in range(count)]


def standardised(train: datasets.Dataset, test: datasets.Dataset) -> Rows:
    """Inputs and the first output of both, in units of the training rows."""
    inputs, outputs = StandardScaler().fit(train.X), StandardScaler().fit(train.Y)
    (X, y), (X_test, y_test) = ((inputs.transform(rows.X), outputs.transform(rows.Y)[:, 0]) for rows in (train, test))
    return X, y, X_test, y_test


def gaussian(mean: np.ndarray, variance: np.ndarray) -> GaussianMixture:
    return GaussianMixture(np.zeros((mean.size, 1)), mean[:, np.newaxis], variance[:, np.newaxis])


def spngp(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    return SPNGPRegressor(random_state=seed).fit(X, y).predict_dist


def spngp_2_threads(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    return SPNGPRegressor(random_state=seed, n_jobs=2).fit(X, y).predict_dist


def sklearn(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    if len(y) > 1000:
        raise NotImplementedError("an exact GP on this number of rows takes many minutes")
    kernel = ConstantKernel(1.0) * Matern(np.full(X.shape[1], np.sqrt(X.shape[1])), (1e-3, 1e3), nu=1.5) + WhiteKernel(
        0.05, (1e-4, 4.0)
    )
    model = GaussianProcessRegressor(kernel, random_state=seed).fit(X, y)

    def predict(X_test: np.ndarray) -> GaussianMixture:
        mean, std = model.predict(X_test, return_std=True)
        return gaussian(mean, std**2)

    return predict


def gpboost(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    import gpboost as library

    model = library.GPModel(
        gp_coords=X,
        cov_function="matern_ard",
        cov_fct_shape=1.5,
        gp_approx="vecchia",
        num_neighbors=30,
        likelihood="gaussian",
        seed=seed,
    )
    model.fit(y=y)

    def predict(X_test: np.ndarray) -> GaussianMixture:
        found = model.predict(gp_coords_pred=X_test, predict_var=True, predict_response=True)
        return gaussian(found["mu"], found["var"])

    return predict


def svgp(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    import gpytorch
    import torch

    torch.manual_seed(seed)
    X_t, y_t = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    inducing = X_t[torch.randperm(len(y))[:512]].clone()

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self) -> None:
            distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
            super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, distribution))
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=X.shape[1])
            )

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model, likelihood = Model(), gpytorch.likelihoods.GaussianLikelihood()
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.01)
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, len(y))
    model.train()
    likelihood.train()
    for _ in range(20):
        for batch in torch.randperm(len(y)).split(256 if len(y) < 50_000 else 1024):
            optimiser.zero_grad()
            (-bound(model(X_t[batch]), y_t[batch])).backward()
            optimiser.step()
    model.eval()
    likelihood.eval()

    def predict(X_test: np.ndarray) -> GaussianMixture:
        with torch.no_grad():
            found = likelihood(model(torch.tensor(X_test, dtype=torch.float32)))
        return gaussian(found.mean.numpy().astype(float), found.variance.numpy().astype(float))

    return predict


def lightgbm(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from lightgbm import LGBMRegressor

    options = {"n_estimators": 1000, "learning_rate": 0.05, "verbose": -1, "random_state": seed, "n_jobs": 1}
    held_out = np.random.default_rng(seed).random(len(y)) < 0.1
    check = LGBMRegressor(**options).fit(X[~held_out], y[~held_out])
    variance = float(np.mean((check.predict(X[held_out]) - y[held_out]) ** 2))
    model = LGBMRegressor(**options).fit(X, y)

    def predict(X_test: np.ndarray) -> GaussianMixture:
        mean = np.asarray(model.predict(X_test))
        return gaussian(mean, np.full(mean.size, variance))

    return predict


def ngboost(X: np.ndarray, y: np.ndarray, seed: int) -> Fitted:
    from ngboost import NGBRegressor

    model = NGBRegressor(n_estimators=500, verbose=False, random_state=seed).fit(X, y)

    def predict(X_test: np.ndarray) -> GaussianMixture:
        found = model.pred_dist(X_test)
        return gaussian(found.loc, found.scale**2)

    return predict


MODELS: dict[str, Callable[[np.ndarray, np.ndarray, int], Fitted]] = {
    "spngp": spngp,
    "spngp-2": spngp_2_threads,
    "sklearn": sklearn,
    "gpboost": gpboost,
    "svgp": svgp,
    "lightgbm": lightgbm,
    "ngboost": ngboost,
}
SETS = ["yacht", "energy", "concrete", "airfoil", "wine", "ccpp", "kin40k"]
COLUMNS = ("RMSE", "NLPD", "CRPS", "95 % holds", "fit s", "predict s")


def measure(model: str, rows: Rows, seed: int) -> list[float]:
    X, y, X_test, y_test = rows
    start = time.perf_counter()
    predict = MODELS[model](X, y, seed)
    fitted = time.perf_counter()
    mixture = predict(X_test)
    done = time.perf_counter()
    scores = metrics.scores(mixture, y_test)
    return [scores.rmse, scores.nlpd, scores.crps, scores.coverage[0.95], fitted - start, done - fitted]


def main(argv: list[str] | None = None) -> int:
    parser = reporting.parser(__doc__)
    parser.add_argument("--sets", type=reporting.names, default=SETS)
    parser.add_argument("--models", type=reporting.names, default=list(MODELS), help=f"of {', '.join(MODELS)}")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--csv", type=Path, help="append the rows to this file as well")
    arguments = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    reporting.print_head(["set", "model", *COLUMNS])
    for name in arguments.sets:
        try:
            data = splits(name, arguments.splits)
        except (ValueError, OSError) as reason:
            raise SystemExit(f"accuracy.py: {reason}") from None
        for model in arguments.models:
            try:
                figures = np.array([measure(model, rows, seed) for seed, rows in enumerate(data)])
            except (ImportError, NotImplementedError) as reason:
                reporting.print_row([name, model, f"left out: {reason}"])
                continue
            means, errors = figures.mean(axis=0), figures.std(axis=0, ddof=min(1, len(data) - 1)) / np.sqrt(len(data))
            cells = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(means[:3], errors[:3], strict=True)]
            cells += [f"{means[3]:.3f}", f"{means[4]:.1f}", f"{means[5]:.2f}"]
            reporting.print_row([name, model, *cells])
            if arguments.csv:
                with arguments.csv.open("a", newline="") as file:
                    csv.writer(file).writerows([name, model, i, *row] for i, row in enumerate(figures.tolist()))
    return 0


if __name__ == "__main__":
    reporting.run(main)
