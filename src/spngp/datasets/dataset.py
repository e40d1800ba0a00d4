"""Rows of inputs and outputs with their names, and how they are divided into training and test rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from spngp._support.checks import as_generator
from spngp._support.types import Array, Indices, RandomState


@dataclass(frozen=True)
class Dataset:
    """Rows of inputs X (n, d) and outputs Y (n, p), with the names of their columns.

    Attributes
    ----------
    name : str
    X, Y : ndarray
    inputs, outputs : tuple of str
        Names of the columns of X and of Y.
    n_train : int, optional
        For sets with a published split: the first ``n_train`` rows are for training, the rest for testing.
    function, noise_std : ndarray, optional
        Of generated sets: the true function and the true standard deviation of the noise, in the shape of Y.
    """

    name: str
    X: Array
    Y: Array
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    n_train: int | None = None
    function: Array | None = None
    noise_std: Array | None = None

    def __len__(self) -> int:
        return self.X.shape[0]

    def take(self, rows: slice | Indices) -> Dataset:
        """Some of the rows, as a set of its own."""
        function = None if self.function is None else self.function[rows]
        noise_std = None if self.noise_std is None else self.noise_std[rows]
        return replace(self, X=self.X[rows], Y=self.Y[rows], n_train=None, function=function, noise_std=noise_std)

    def classic_split(self) -> tuple[Dataset, Dataset]:
        """The training and test rows that everybody uses, for the sets that have them (kin40k)."""
        if self.n_train is None:
            raise ValueError(f"the data set {self.name!r} has no split of its own; use random_split")
        return self.take(slice(self.n_train)), self.take(slice(self.n_train, None))

    def random_split(self, test_share: float = 0.1, random_state: RandomState = 0) -> tuple[Dataset, Dataset]:
        """Training and test rows drawn at random.

        Examples
        --------
        >>> from spngp import datasets
        >>> train, test = datasets.load("motorcycle").random_split(test_share=0.2, random_state=0)
        >>> len(train), len(test)
        (107, 26)
        """
        n_test = math.floor(test_share * len(self) + 1e-9)  # 0.1 · n may fall just short of a whole number
        if not 0 < n_test < len(self):
            raise ValueError(f"test_share must leave rows on both sides of {len(self)}, got {test_share!r}")
        order = as_generator(random_state).permutation(len(self))
        return self.take(order[n_test:]), self.take(order[:n_test])
