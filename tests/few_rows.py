"""Data sets cut down to their first rows. Only tests import this module."""

from dataclasses import replace

MOST_ROWS = 150


def few_rows(load):
    """``datasets.load`` for the first rows only; where a set has training and test rows, the first are for training."""

    def loaded(name):
        data = load(name)
        return replace(data.take(slice(2 * MOST_ROWS)), n_train=data.n_train and MOST_ROWS)

    return loaded
