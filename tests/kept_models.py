"""Models kept as files, one of every schema, with what they predict; ``python tests/kept_models.py`` adds the present.

When the schema is raised, files of released ones must still be opened; those of versions never released may go.
"""

import json
from pathlib import Path

import numpy as np

import spngp
from spngp.io import SCHEMA
from spngp.kernels import Constant, Linear, Matern, Periodic

FOLDER = Path(__file__).parent / "io" / "data"
X_NEW = np.array([[0.0, 0.0], [0.5, -1.0], [-1.5, 2.0], [3.0, 3.0]])


def made():
    """A model of two outputs, two kernels and several regions, with a missing output and rows that came later."""
    rng = np.random.default_rng(20)
    X = rng.uniform(-2.0, 2.0, (40, 2)).round(3)
    Y = np.column_stack([np.sin(2.0 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1]]) + 0.1 * rng.standard_normal((40, 2))
    Y[3, 1] = np.nan
    kernels = [Matern(2.5, [0.5, 2.0]), Linear(bias_variance=0.5) * Constant(2.0) + Periodic([1.0, 2.0])]
    model = spngp.SPNGPRegressor(kernels, max_leaf_size=12, overlap=1.0, hyperparameters="fixed", random_state=0)
    return model.fit(X[:36], Y[:36].round(3)).partial_fit(X[36:], Y[36:].round(3))


def told(model):
    """What a model predicts, as a file can keep it."""
    mean, low, high = model.predict(X_NEW, interval=0.9)
    std = model.predict(X_NEW, return_std=True)[1]
    return {"mean": mean.tolist(), "std": std.tolist(), "low": low.tolist(), "high": high.tolist()}


def main():
    FOLDER.mkdir(exist_ok=True)
    model = made()
    model.save(FOLDER / f"schema-{SCHEMA}.spngp")
    (FOLDER / f"schema-{SCHEMA}.json").write_text(json.dumps(told(model), indent=1) + "\n")


if __name__ == "__main__":
    main()
