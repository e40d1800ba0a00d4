"""Rows as models are learnt from them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from spngp._support.types import Array, Indices


def canonical_order(X: Array, Y: Array) -> Indices:
    """Rows in ascending order, by the first input, then by the next ones, then by outputs.

    Models are learnt from rows in this order, so that they do not depend on the order in which rows are given: what is
    learnt is to be a fact about the rows, and weights are to be worth the same as repetition wherever equal rows stand.
    """
    order = np.argsort(X[:, 0], kind="stable")
    ordered = X[order, 0]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort([*Y.T[::-1], *X.T[::-1]])
    return order


def is_elsewhere(X: Any) -> bool:
    """Whether X is no rows but tells where they are: a data set of Arrow's, a path, or an iterator of batches."""
    return isinstance(X, str | os.PathLike) or hasattr(X, "get_fragments") or isinstance(X, Iterator)


def must_have_outputs(Y: Array) -> None:
    """Raise an error if an output has no value in any row that counts."""
    empty = np.isnan(Y).all(axis=0)
    if empty.any():
        raise ValueError(
            f"Input y contains NaN only, in output {int(np.argmax(empty))}, where sample_weight is positive: there is "
            "nothing to learn from"
        )
