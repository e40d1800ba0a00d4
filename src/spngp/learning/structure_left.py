"""Structure that a GP has left in its residuals: along which inputs, one or two at a time, and how fine it is.

A GP whose hyper-parameters missed something calls it noise. Its standardised leave-one-out residuals then agree among
rows that lie close together along the right inputs, however far apart along all others. So rows are sorted into cells
along one input or two, and

    T = Σ_cell (Σ_{i in cell} z_i)² / Σ_i z_i²

is compared with what it would be if the GP were right, which draws from the GP tell. A few hundred such tests take as
long as a few evaluations of the evidence, and see a fine wave along one input of ten that no kernel over all ten
inputs would find from where it starts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from spngp._support.types import Array, Indices
from spngp.gp.exact import ExactGP
from spngp.gp.leave_one_out import standardised_residuals
from spngp.gp.optimisation import Block

_DRAWS = 20  # of residuals from the GP
_LARGEST_RESIDUAL = 3.0  # in standard deviations; larger ones count no more than this, so that no outlier decides
_FEWEST_ROWS = 100  # below, residuals tell too little
_FINENESS = (4, 16, 64, 256)  # numbers of cells along one input, up to half as many as rows
_FINENESS_OF_PAIRS = (4, 16, 64)  # numbers of cells along each of two inputs, together at most as many as rows
_MOST_PAIRED = 16  # inputs; of more, those that tell most alone
_TOLD = 0.1  # of the variance of residuals, from which on what is left is worth a warning
_SIGNIFICANT = 6.0  # standard deviations: a few hundred tests are made, and a false alarm costs time only
# Most cells along two inputs show at a glance that nothing stands out: T against its mean over a few draws, as a χ²
# variable with as many degrees of freedom as cells. Those farthest above it are compared with all draws.
_GLANCED_AT = 4  # draws
_WORTH_A_LOOK = 2.5  # standard deviations above the mean
_MOST_LOOKED_AT = 40  # kinds of cells


class StructureLeftWarning(UserWarning):
    """Residuals still depend on inputs in a way that no kernel follows: the model calls it noise."""


@dataclass(frozen=True)
class Finding:
    """Residuals that depend on one input or two.

    Attributes
    ----------
    inputs : tuple of int
    widths : tuple of float
        Of the cells in which they agree, along each of these inputs.
    share : float
        Of the variance of the residuals, explained by the cells' means.
    score : float
        Standard deviations from what the GP expects.
    """

    inputs: tuple[int, ...]
    widths: tuple[float, ...]
    share: float
    score: float


def warn_of_structure(findings: Sequence[Finding], names: Sequence[str] = ()) -> None:
    """Warn, once and in words, of what is left and worth more than a tenth of the residuals' variance.

    ``names`` are those of the inputs; without them they are counted.
    """
    told = [finding for finding in findings if finding.share > _TOLD]
    if told:
        called = [" and ".join(names[j] if names else str(j) for j in finding.inputs) for finding in told]
        shares = [f"{what} ({finding.share:.0%})" for what, finding in zip(called, told, strict=True)]
        listed = f"{', on '.join(shares)}" if names else f"input {', on input '.join(shares)} of X, counted from 0"
        warnings.warn(
            f"leave-one-out residuals still depend on {listed}; in brackets the share of their variance, which the "
            "model takes for noise: other kernels or more rows may explain it",
            StructureLeftWarning,
            stacklevel=2,
        )


def structure_left(
    gp: ExactGP, blocks: Sequence[Block], most: int, least_share: float, rng: np.random.Generator
) -> list[Finding]:
    """What the residuals of ``gp`` on these blocks still depend on, the clearest first, each beyond those before it.

    No more than ``most`` findings, each of which explains at least ``least_share`` of the residuals' variance.
    """
    blocks = [Block(*block) for block in blocks]
    X = np.concatenate([block.X for block in blocks])
    if X.shape[0] < _FEWEST_ROWS:
        return []
    residuals = np.concatenate([_residuals(gp, block, rng) for block in blocks])
    grid = _Grid(X)
    found: list[Finding] = []
    while len(found) < most:
        clearest = _clearest(grid, residuals, least_share)
        if clearest is None or any(set(clearest[0].inputs) & set(before.inputs) for before in found):
            break  # what is left along the same inputs is better judged when the first has been learnt
        found.append(clearest[0])
        residuals = residuals - clearest[1].means(residuals)
    return found


def _residuals(gp: ExactGP, block: Block, rng: np.random.Generator) -> Array:
    """Standardised residuals, the rows' and draws, none larger than counts."""
    found = standardised_residuals(gp, block.X, block.y, _DRAWS, rng, block.variances)
    return np.ascontiguousarray(np.clip(found, -_LARGEST_RESIDUAL, _LARGEST_RESIDUAL))


@dataclass(frozen=True)
class _Cells:
    """Rows sorted into cells along some inputs; ``order`` puts those of a cell side by side, from ``starts`` on."""

    inputs: tuple[int, ...]
    widths: tuple[float, ...]
    order: Indices
    starts: Indices

    @staticmethod
    def of(inputs: tuple[int, ...], widths: tuple[float, ...], codes: Indices) -> _Cells:
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        return _Cells(inputs, widths, order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])))

    @property
    def sizes(self) -> Indices:
        return np.diff(self.starts, append=self.order.size)

    def sums(self, residuals: Array) -> Array:
        return np.asarray(np.add.reduceat(residuals[self.order], self.starts, axis=0))

    def means(self, residuals: Array) -> Array:
        """For every row, the mean of its cell."""
        means = np.empty_like(residuals)
        means[self.order] = np.repeat(self.sums(residuals) / self.sizes[:, np.newaxis], self.sizes, axis=0)
        return means

    def score(self, residuals: Array) -> float:
        """How far T is above what the draws say, in standard deviations.

        T is close to a multiple of a χ² variable; its cube root is close to a normal one (Wilson and Hilferty).
        """
        sums = self.sums(residuals)
        T = np.einsum("ij,ij->j", sums, sums) / np.maximum(np.einsum("ij,ij->j", residuals, residuals), 1e-300)
        mean, variance = float(T[1:].mean()), float(T[1:].var(ddof=1))
        if not (mean > 0 and variance > 0):
            return 0.0
        spread = variance / (9.0 * mean * mean)  # 2/9 by the degrees of freedom
        return float((np.cbrt(T[0] / mean) - 1.0 + spread) / np.sqrt(spread))

    def share(self, residuals: Array) -> float:
        """Of the variance that the means of cells explain, less what means of as few rows would explain by chance."""
        sums, z = self.sums(residuals[:, :1])[:, 0], residuals[:, 0]
        between, total = float(np.sum(sums**2 / self.sizes)), float(z @ z)
        left = max(z.size - self.starts.size, 1)
        return 1.0 - (total - between) / max(total, 1e-300) * z.size / left


class _Grid:
    """Bins of equal counts along every input, several times as fine each time; equal values share a bin."""

    def __init__(self, X: Array) -> None:
        self.n, self.d = X.shape
        self._bins: dict[tuple[int, int], tuple[Indices, float]] = {}
        for j in range(self.d):
            ordered = np.sort(X[:, j])
            extent = float(ordered[-1 - self.n // 50] - ordered[self.n // 50]) or float(ordered[-1] - ordered[0])
            known = 1
            for fineness in _FINENESS:
                edges = np.unique(ordered[np.arange(1, fineness) * self.n // fineness])
                edges = edges[edges > ordered[0]]
                if 2 * fineness > self.n or edges.size + 1 == known:
                    break  # cells would hold single rows, or there are no more distinct values
                known = edges.size + 1
                self._bins[j, fineness] = np.searchsorted(edges, X[:, j], side="right"), extent / known

    def alone(self) -> Iterator[_Cells]:
        """Cells along single inputs."""
        for (j, _), (codes, width) in self._bins.items():
            yield _Cells.of((j,), (width,), codes)

    def paired(self, inputs: Sequence[int], residuals: Array) -> list[_Cells]:
        """Cells along two of these inputs, those that stand out most at a glance."""
        columns = np.ascontiguousarray(residuals[:, : 1 + _GLANCED_AT].T)
        totals = np.maximum(np.einsum("ij,ij->i", columns, columns), 1e-300)
        found = []
        for (j, k), (a, b) in product(combinations(inputs, 2), product(_FINENESS_OF_PAIRS, repeat=2)):
            if a * b <= self.n and (j, a) in self._bins and (k, b) in self._bins:
                (first, width), (second, height) = self._bins[j, a], self._bins[k, b]
                codes = first * b + second
                sums = [np.bincount(codes, column) for column in columns]
                T = np.array([float(own @ own) for own in sums]) / totals
                spread = 2.0 / (9.0 * np.count_nonzero(np.bincount(codes)))
                score = (np.cbrt(T[0] / max(T[1:].mean(), 1e-300)) - 1.0 + spread) / np.sqrt(spread)
                if score > _WORTH_A_LOOK:
                    found.append((score, (j, k), (width, height), codes))
        found.sort(key=lambda one: -one[0])
        return [_Cells.of(*cells[1:]) for cells in found[:_MOST_LOOKED_AT]]


def _clearest(grid: _Grid, residuals: Array, least_share: float) -> tuple[Finding, _Cells] | None:
    """The cells whose means stand out most, if any do; along two inputs only if none do along one.

    Two effects along one input each also show in cells along both, but are two.
    """
    alone = [(cells.score(residuals), cells) for cells in grid.alone()]
    found = _finding(alone, residuals, least_share)
    if found is not None:
        return found
    inputs = list(range(grid.d))
    if grid.d > _MOST_PAIRED:
        telling = np.full(grid.d, -np.inf)
        for score, cells in alone:
            telling[cells.inputs[0]] = max(telling[cells.inputs[0]], score)
        inputs = sorted(np.argsort(-telling, kind="stable")[:_MOST_PAIRED].tolist())
    paired = [(cells.score(residuals), cells) for cells in grid.paired(inputs, residuals)]
    return _finding(paired, residuals, least_share)


def _finding(
    scored: Sequence[tuple[float, _Cells]], residuals: Array, least_share: float
) -> tuple[Finding, _Cells] | None:
    score, cells = max(scored, key=lambda item: item[0], default=(-np.inf, None))
    if cells is None or score < _SIGNIFICANT:
        return None
    share = cells.share(residuals)
    return (Finding(cells.inputs, cells.widths, share, score), cells) if share > least_share else None
