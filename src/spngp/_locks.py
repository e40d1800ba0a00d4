"""One thread at a time changes a model. Locks are kept beside the models, which are copied, pickled and saved."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

_guard = threading.Lock()
_locks: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()


def lock_of(model: object) -> threading.RLock:
    """The lock that whoever changes the model holds; a copy of the model has another."""
    with _guard:
        return _locks.setdefault(model, threading.RLock())
