"""Constraints on parameters, as scikit-learn checks them, whose error messages list the allowed values in our order."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import StrOptions


class Words(StrOptions):
    """One of a few words, or an instance of one of a few classes.

    Parameters
    ----------
    *words : str
        In the order in which an error lists them.
    instances : tuple of type
        Classes whose instances are allowed as well.
    called : str
        What an error calls these instances.

    Examples
    --------
    >>> from spngp.estimators.constraints import Words
    >>> print(Words("doubt", "trust"))
    a str among {'doubt', 'trust'}
    """

    def __init__(self, *words: str, instances: tuple[type, ...] = (), called: str = "") -> None:
        super().__init__(set(words))
        self._instances = instances
        self._told = f"a str among {{{', '.join(map(repr, words))}}}" + (f" or {called}" if called else "")

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the value is allowed."""
        return isinstance(val, self._instances) or bool(super().is_satisfied_by(val))

    def __str__(self) -> str:
        return self._told
