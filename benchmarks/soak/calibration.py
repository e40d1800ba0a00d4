"""Simulation-based calibration: data drawn from what the model assumes, and how often its statements come true.

Fixed: a network at random (structure, weights, kernels and noise), a draw of its outputs by a sampler that shares no
code with spngp, the posterior given some of the rows, and P(y ≤ the output) of one that was left out. That number is
uniform if the posterior is right.

Learnt: kernel, hyper-parameters and noise drawn from the prior of small sets (``spngp.learning.settings``), a function
and outputs from them, and intervals of ``SPNGPRegressor()`` on 200 further rows. Below, the same with data that do not
come from its prior (``benchmarks/honesty_sections/coverage.py``), which shows what honesty costs there.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import kstest

import reference
from honesty_sections.coverage import LEVELS, N_TEST, judged
from soak import Effort, Table
from soak.cases import each
from soak.drawn import Generator, network, rows
from spngp import SPNGPRegressor
from spngp.gp.exact import ExactGP
from spngp.learning.averaging import alternatives_of
from spngp.learning.defaults import default_kernels, noise_parameter, simple_kernels
from spngp.learning.settings import drawn

SAMPLE = 0.01
LEAST_P = 0.001
SHAPES = ((20, 1), (20, 2), (50, 1), (50, 2), (50, 5), (50, 10))
OTHER_SHAPES = ((20, 1), (50, 2), (50, 10))
OTHER_LAWS = {"gp": "Gaussian, other prior", "heteroscedastic": "grows tenfold", "student": "Student's t, 3"}
FIGURE = Path(__file__).resolve().parents[2] / "docs" / "calibration.png"


def allowed(n: int, d: int) -> float:
    """Points by which the share of outputs inside an interval may be off."""
    return 3.0 if n >= 20 and d <= 2 else 5.0


def fixed_transform(seed: int, number: int) -> float:
    """P(y ≤ the output that was left out), of a posterior network whose prior the outputs were drawn from."""
    rng = np.random.default_rng([seed, number, 9])
    d = int(rng.integers(1, 3))
    while (root := network(rng, ((-1.5, 1.5),) * d, (0,), 3)).n_induced_trees > 40:
        pass
    X = rows(rng, int(rng.integers(2, 10)), d)
    y = _outputs(root, X, rng)
    return float(root.condition(X[1:], y[1:]).predict_dist(X[:1]).cdf(y[:1])[0])


def _outputs(root: object, X: np.ndarray, rng: Generator) -> np.ndarray:
    """A draw of all outputs: of a tree by its weight, then of its joint Gaussian."""
    trees = reference.Enumeration(root).joint_components(X, latent=False)
    weights = np.array([weight for weight, *_ in trees])
    _, mean, covariance = trees[rng.choice(len(trees), p=weights / weights.sum())]
    return mean + np.linalg.cholesky(covariance) @ rng.standard_normal(mean.size)


def learnt_transforms(n: int, d: int, seed: int, number: int) -> np.ndarray:
    """P(y ≤ the output) at 200 new rows, by a model that has learnt everything from n rows of a draw of its prior."""
    rng = np.random.default_rng([seed, number, n, d, 10])
    starts = [ExactGP(kernel, noise_parameter(1.0, n)) for kernel in default_kernels(d)]
    gp = drawn(alternatives_of(["smooth", "rough"], starts, starts, simple_kernels(d)), rng)
    total = n + N_TEST
    X = rng.standard_normal((total, d)) if number % 2 else rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (total, d))
    covariance = gp.kernel.gram(X) + (gp.noise_variance + 1e-10) * np.eye(total)
    y = np.linalg.cholesky(covariance) @ rng.standard_normal(total)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SPNGPRegressor(random_state=number).fit(X[:n], y[:n])
    return model.predict_dist(X[n:]).cdf(y[n:])


def other_law(kind: str, n: int, d: int, seed: int, number: int) -> np.ndarray:
    """Shares of new outputs inside the intervals of a model, for data of another law."""
    return judged(kind, n, d, ["default"], 10_000 * (seed + 1) + number)[0, 2:]


class Cell(NamedTuple):
    """Shares of outputs inside 50, 80 and 95 % intervals, with their standard errors, in per cent."""

    law: str
    n: int
    d: int
    sets: int
    shares: np.ndarray
    errors: np.ndarray
    judged: bool

    @staticmethod
    def of(law: str, n: int, d: int, shares: np.ndarray, judged: bool) -> Cell:
        """From the shares of each set."""
        spread = 100.0 * shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
        return Cell(law, n, d, len(shares), 100.0 * shares.mean(axis=0), spread, judged)

    def off(self) -> np.ndarray:
        """By how many points the shares are off."""
        return self.shares - 100.0 * np.array(LEVELS)

    def inside(self) -> bool:
        """Whether all shares are within their bound."""
        return bool((np.abs(self.off()) <= allowed(self.n, self.d)).all())

    def row(self) -> tuple[str, ...]:
        """Cells of a table."""
        told = [f"{share:.1f} ± {error:.1f}" for share, error in zip(self.shares, self.errors, strict=True)]
        within = ("yes" if self.inside() else "NO") + ("" if self.judged else " (not judged)")
        return self.law, str(self.n), str(self.d), str(self.sets), *told, within


def run(effort: Effort) -> Table:
    full = effort.share >= 1.0
    draws = 2000 if effort.share > SAMPLE else 100  # they are cheap
    fixed = np.array(each(partial(fixed_transform, effort.seed), draws, effort.n_jobs))
    p_value = float(kstest(fixed, "uniform").pvalue)
    cells, learnt = [], []
    for n, d in SHAPES if effort.share > 0.05 else SHAPES[1:2]:
        sets = effort.count(120, 3)
        found = np.array(each(partial(learnt_transforms, n, d, effort.seed), sets, effort.n_jobs, 4))
        learnt.append(found.ravel())
        holds = np.stack([np.abs(found - 0.5) <= 0.5 * level for level in LEVELS], axis=-1).mean(axis=1)
        cells.append(Cell.of("Gaussian, its prior", n, d, holds, full))
    for kind, law in OTHER_LAWS.items():
        for n, d in OTHER_SHAPES if effort.share > 0.05 else ():
            sets = effort.count(80 if kind == "gp" else 40, 3)
            shares = each(partial(other_law, kind, n, d, effort.seed), sets, effort.n_jobs, 4)
            cells.append(Cell.of(law, n, d, np.array(shares), full and kind == "gp"))
    if full:
        draw_figure(fixed, np.concatenate(learnt), cells)
    inside = [cell.inside() for cell in cells if cell.judged]
    body: list[Sequence[str]] = [cell.row() for cell in cells]
    learnt_words = "not judged, from so few sets"
    if full:
        worst = max(float(np.abs(cell.off()).max()) for cell in cells if cell.judged)
        learnt_words = f"{sum(inside)} of {len(inside)} cells within their bounds, worst off by {worst:.1f} points"
    return Table(
        "Simulation-based calibration",
        ("noise", "rows", "inputs", "sets", "50 %", "80 %", "95 %", "within its bound"),
        body,
        p_value > LEAST_P and all(inside),
        f"everything fixed: {fixed.size} draws, Kolmogorov-Smirnov p = {p_value:.3f} (bound {LEAST_P:g}); everything "
        f"learnt: {learnt_words}",
        (
            "Shares of 200 new outputs a set inside 50, 80 and 95 % intervals, with the standard error over sets. The "
            "bounds are 3 points for one and two inputs, from 20 rows on, and 5 points for up to ten inputs from 50 "
            "rows on. Judged are data with the noise that the model assumes, Gaussian and everywhere the same: "
            "functions and noise drawn from its own prior, and from another one. Other laws of the noise are told, and "
            "not judged.",
        ),
        "calibration.png" if FIGURE.exists() else None,
    )


def draw_figure(fixed: np.ndarray, learnt: np.ndarray, cells: Sequence[Cell]) -> None:
    """Histograms of both transforms, and how far each cell is off."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", width_ratios=[1, 1, 1.5])
    names = (f"everything fixed, {fixed.size:,} draws", f"everything learnt, {learnt.size:,} outputs")
    for axis, values, name in zip(axes[:2], (fixed, learnt), names, strict=True):
        axis.hist(values, bins=20, range=(0, 1), density=True, color="#7fa8c9")
        axis.axhline(1.0, color="black", linewidth=0.8)
        axis.set(title=name, xlabel="P(y ≤ the output)", xlim=(0, 1), ylim=(0, 1.6), ylabel="density")
        axis.title.set_size(10)
    own = [cell for cell in cells if cell.law == "Gaussian, its prior"]
    places = np.arange(len(own))
    for j, (level, colour) in enumerate(zip(LEVELS, ("#4c78a8", "#f58518", "#54a24b"), strict=True)):
        off = [cell.off()[j] for cell in own]
        errors = [2.0 * cell.errors[j] for cell in own]
        axes[2].errorbar(places + 0.15 * (j - 1), off, errors, fmt="o", ms=4, color=colour, label=f"{100 * level:g} %")
    for place, cell in zip(places, own, strict=True):
        axes[2].hlines([-allowed(cell.n, cell.d), allowed(cell.n, cell.d)], place - 0.4, place + 0.4, colors="grey")
    axes[2].axhline(0.0, color="black", linewidth=0.8)
    axes[2].set(xticks=places, xticklabels=[f"{cell.n} × {cell.d}" for cell in own], xlabel="rows × inputs")
    axes[2].set(ylabel="points off", ylim=(-7, 7), title="intervals, ± 2 standard errors; grey: bounds")
    axes[2].title.set_size(10)
    axes[2].legend(frameon=False, fontsize=8, ncols=3, loc="upper center")
    figure.savefig(FIGURE, dpi=110)
    plt.close(figure)
