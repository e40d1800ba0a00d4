"""Objects of a model file whose attributes are read when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spngp.gp.exact import ExactGP
from spngp.io.classes import Reference
from spngp.learning import Learnt


class Deferred:
    """An object of a model file, some of whose attributes are read, and checked, when first asked for."""

    @staticmethod
    def make(kind: type, references: Callable[[], dict[str, Reference]], decode: Callable[[Reference], Any]) -> Any:
        """An instance of a subclass of this one; ``references`` gives what each deferred attribute stands for."""
        value: Any = object.__new__(kind)
        value.__dict__.update(_references=references, _decode=decode)
        return value

    def __getattribute__(self, name: str) -> Any:
        # not __getattr__: a default in the class would hide what was stored
        own = object.__getattribute__(self, "__dict__")
        if name not in own and not name.startswith("__"):
            references = _references_of(own)
            if name in references:
                own[name] = own["_decode"](references[name])
        return object.__getattribute__(self, name)

    def attributes(self) -> dict[str, Any]:
        """Everything a plain object would hold."""
        names = dict.fromkeys([*_references_of(self.__dict__), *self.__dict__])
        return {name: getattr(self, name) for name in names if name not in ("_references", "_decode")}

    def __reduce__(self) -> Any:
        return _plain, (type(self).__mro__[2], self.attributes())


def _references_of(own: dict[str, Any]) -> dict[str, Reference]:
    """What the deferred attributes stand for, parsed when first asked for."""
    references: Any = own.get("_references", {})
    if callable(references):
        references = own["_references"] = references()
    return references


def _plain(kind: type, attributes: dict[str, Any]) -> Any:
    value: Any = object.__new__(kind)
    value.__dict__.update(attributes)
    return value


class StoredGP(Deferred, ExactGP):
    """A GP of a model file."""


class StoredLearnt(Deferred, Learnt):
    """What was learnt, of a model file; the networks without context and without rows wait for an update."""
