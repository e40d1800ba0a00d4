"""A GP of a model file, whose rows and factor are read, and compared with their checksums, when first asked for.

What the file does without is computed then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from spngp._linalg.square import Square
from spngp._support.consistency import must
from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.gp.noise_profile import NoiseProfile
from spngp.kernels import Kernel

# Attributes that are read later: nearly all of a file's bytes.
READ_LATER = ("_X", "_y", "_L", "_alpha")

# Returns an attribute, read and checked; none if it is to be computed from the others.
Read: TypeAlias = Callable[[], Any] | None


class StoredGP(ExactGP):
    """A GP of a model file."""

    _attributes: Mapping[str, Any]
    _read: Mapping[str, Read]

    @staticmethod
    def of(gp: ExactGP, read: Mapping[str, Read]) -> StoredGP:
        """The same GP, of which :data:`READ_LATER` are read when they are first used; ``gp`` has their shapes."""
        stored = object.__new__(StoredGP)
        eager = {name: value for name, value in gp.__dict__.items() if name not in READ_LATER}
        stored.__dict__.update(eager, _attributes=gp.__dict__, _read=dict(read))
        return stored

    def __getattribute__(self, name: str) -> Any:
        # __getattr__ would not be called for attributes that have a default in the class
        if name in READ_LATER:
            held = object.__getattribute__(self, "__dict__")
            if name not in held:
                read = held["_read"][name]
                held[name] = self._computed(name) if read is None else read()
        return object.__getattribute__(self, name)

    def check_contents(self) -> None:
        """Raise an error unless all that is read later can be used; nothing of it is kept."""
        for name, read in self._read.items():
            value = None if read is None else read()
            if isinstance(value, Square):
                must((value.array.diagonal() > 0.0).all(), "the diagonal of a factor must be > 0", "others")
                value = np.tril(value.array)
            must(value is None or np.isfinite(value).all(), f"{name.lstrip('_')} of a GP must be finite", "others")

    def _computed(self, name: str) -> Any:
        """The factor, or C⁻¹y: as when the GP was conditioned, so with the same bits."""
        if name == "_L":
            return self._factor(None, scratch=False)[0]
        L, alpha = self._present_factor(), self._y.copy()
        L.solve(alpha)
        L.solve_transposed(alpha)
        return alpha

    @property
    def has_factor(self) -> bool:
        """Whether the Cholesky factor is kept in memory, from its first use on."""
        if self._read["_L"] is None:
            return True
        return self._L is not None

    @property
    def shape_of_rows(self) -> tuple[int, int]:
        """Rows and columns of what it was conditioned on, without reading it."""
        n, d = self._attributes["_X"].shape
        return n, d

    @property
    def needs_factor(self) -> bool:
        """Whether its factor is to be kept and has not been computed yet."""
        return self._read["_L"] is None and "_L" not in self.__dict__

    def attributes(self) -> dict[str, Any]:
        """Everything a plain GP would hold, in its order."""
        return {name: getattr(self, name) for name in self._attributes}

    def with_theta(self, theta: Array) -> ExactGP:
        """A plain GP: the prior with the free parameters set to exp(theta)."""
        return self._prior().with_theta(theta)

    def with_kernel(self, kernel: Kernel) -> ExactGP:
        """A plain GP: the prior with another kernel and the same noise."""
        return self._prior().with_kernel(kernel)

    def with_noise_profile(self, profile: NoiseProfile | None) -> ExactGP:
        """A plain GP: the prior with noise that changes with the inputs, or with the same noise everywhere."""
        return self._prior().with_noise_profile(profile)

    def _prior(self) -> ExactGP:
        """What both begin with, without reading rows, which they forget."""
        return _plain({name: self.__dict__[name] for name in self._attributes if name not in READ_LATER})

    def __reduce__(self) -> Any:
        return _plain, (self.attributes(),)


def _plain(attributes: dict[str, Any]) -> ExactGP:
    gp = object.__new__(ExactGP)
    gp.__dict__.update(attributes)
    return gp
