"""Locks, so that one thread at a time changes a model; kept apart from models, which are copied, pickled and saved."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

_guard = threading.Lock()
_locks: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()


def lock_of(model: object) -> threading.RLock:
    """The lock to hold while changing the model; a copy of the model has another one."""
    with _guard:
        return _locks.setdefault(model, threading.RLock())
