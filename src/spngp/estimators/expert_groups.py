"""How the rows of a committee are shared out to its experts, and which experts take part in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spngp._support.types import Array, Indices

# Σ rows³ over the experts in training, to which the cost of one evaluation is proportional: 12 experts of 500 rows.
_TRAINING_COST = 12 * 500.0**3


def random_groups(n_rows: int, n_groups: int, rng: np.random.Generator) -> list[Indices]:
    """Random groups whose sizes differ by one row at most."""
    return [np.sort(group) for group in np.array_split(rng.permutation(n_rows), n_groups)]


def compact_groups(X: Array, n_groups: int) -> list[Indices]:
    """Compact groups whose sizes differ by one row at most, by cutting the widest side of a group again and again."""
    groups, stack = [], [(np.arange(X.shape[0]), n_groups)]
    while stack:
        rows, count = stack.pop()
        if count == 1:
            groups.append(np.sort(rows))
            continue
        axis = int(np.argmax(np.ptp(X[rows], axis=0)))
        ordered = rows[np.argsort(X[rows, axis], kind="stable")]
        lower = count // 2
        at = rows.size * lower // count
        stack += [(ordered[at:], count - lower), (ordered[:at], lower)]
    return groups


def affordable(groups: Sequence[Indices], rng: np.random.Generator) -> list[Indices]:
    """The groups to train on: random ones, until the cost reaches ``_TRAINING_COST``; one at least."""
    chosen, cost = [], 0.0
    for i in rng.permutation(len(groups)):
        chosen.append(groups[i])
        cost += float(groups[i].size) ** 3
        if cost >= _TRAINING_COST:
            break
    return chosen
