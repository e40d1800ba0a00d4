"""A GP of a model file, whose rows and factor are read, and compared with their checksums, when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spngp._support.types import Array
from spngp.gp.exact import ExactGP
from spngp.kernels import Kernel

# Attributes that are read later: nearly all of a file's bytes.
READ_LATER = ("_X", "_y", "_L", "_alpha")


class StoredGP(ExactGP):
    """A GP of a model file."""

    _attributes: Mapping[str, Any]
    _read: Callable[[str], None]

    @staticmethod
    def of(gp: ExactGP, read: Callable[[str], None]) -> StoredGP:
        """The same GP; ``read`` is called with an attribute's name before its contents are first used."""
        stored = object.__new__(StoredGP)
        eager = {name: value for name, value in gp.__dict__.items() if name not in READ_LATER}
        stored.__dict__.update(eager, _attributes=gp.__dict__, _read=read)
        return stored

    def __getattribute__(self, name: str) -> Any:
        # __getattr__ would not be called for attributes that have a default in the class
        if name in READ_LATER:
            held = object.__getattribute__(self, "__dict__")
            if name not in held:
                held["_read"](name)
                held[name] = held["_attributes"][name]
        return object.__getattribute__(self, name)

    @property
    def shape_of_rows(self) -> tuple[int, int]:
        """Rows and columns of what it was conditioned on, without reading it."""
        n, d = self._attributes["_X"].shape
        return n, d

    def attributes(self) -> dict[str, Any]:
        """Everything a plain GP would hold, in its order."""
        return {name: getattr(self, name) for name in self._attributes}

    def with_theta(self, theta: Array) -> ExactGP:
        """A plain GP: the prior with the free parameters set to exp(theta)."""
        return self._prior().with_theta(theta)

    def with_kernel(self, kernel: Kernel) -> ExactGP:
        """A plain GP: the prior with another kernel and the same noise."""
        return self._prior().with_kernel(kernel)

    def _prior(self) -> ExactGP:
        """What both begin with, without reading rows, which they forget."""
        return _plain({name: self.__dict__[name] for name in self._attributes if name not in READ_LATER})

    def __reduce__(self) -> Any:
        return _plain, (self.attributes(),)


def _plain(attributes: dict[str, Any]) -> ExactGP:
    gp = object.__new__(ExactGP)
    gp.__dict__.update(attributes)
    return gp
