"""Cached reads: values that are read from the database once and again after a change."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from app.domain.change_set import ChangeSet
from app.storage.engine.store import Store

K = TypeVar("K")
V = TypeVar("V")


class CachedReads(Generic[K, V]):
    """Values by key, dropped by each relevant change. Thread-safe; reading blocks."""

    def __init__(
        self, store: Store, read: Callable[[K], V], is_relevant: Callable[[ChangeSet], bool]
    ) -> None:
        self._read = read
        self._is_relevant = is_relevant
        self._known: dict[K, V] = {}
        self._changes = 0
        self._lock = threading.Lock()
        store.subscribe(self._on_changed)

    def get(self, key: K) -> V:
        """Return the value of a key.

        It is read without the lock, which the writer takes to announce a change.
        """
        with self._lock:
            if key in self._known:
                return self._known[key]
            changes = self._changes
        value = self._read(key)
        with self._lock:
            if changes == self._changes:
                self._known[key] = value
        return value

    def _on_changed(self, changed: ChangeSet) -> None:
        if self._is_relevant(changed):
            with self._lock:
                self._changes += 1
                self._known.clear()
