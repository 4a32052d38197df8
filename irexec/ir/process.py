"""The state of this process: locks that nobody holds after a fork, caches that threads share, and pauses of the
collection of cycles.

Another thread may hold a lock at the moment of a fork. It does not exist in the child, where the lock would be held for
ever. What such a lock guards may be changed by half in the child: a cache may have an entry more or less.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A lock that is free in a child after a fork."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LastUsed(Generic[Key, Value]):
    """The values that were used last, by key. A thread that makes one does not stop the others.

    Args:
        size: maximum number of stored values.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key, made if missing. Threads may make the same value at once; the first one is stored."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        fresh = make()
        with self._lock:
            value = self._values.setdefault(key, fresh)
            self._values.move_to_end(key)
            while self._is_over():
                self._values.popitem(last=False)
            return value

    def _is_over(self) -> bool:
        """Whether more is stored than should be."""
        return len(self._values) > self._size


def new_rlock() -> Any:
    """The same for one that its thread may take again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()
    if sys.version_info < (3, 12):
        # In Python 3.11 each has a lock for all objects of a class, which is held while a value is computed.
        modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _PACKAGES]
        for owner in {value for module in modules for value in vars(module).values() if isinstance(value, type)}:
            for member in vars(owner).values():
                if isinstance(member, functools.cached_property):
                    vars(member)["lock"] = threading.RLock()


_PACKAGES = ("irexec", "converters")

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)


class _Pause:
    """Number of blocks in all threads without collection, and whether collection was on before the first of them."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._blocks = 0
        self._was_enabled = False

    def enter(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def leave(self) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._was_enabled:
                gc.enable()

    def after_fork(self) -> None:
        """Forget the blocks of other threads, which a child process does not have."""
        if self._blocks and self._was_enabled:
            gc.enable()
        self._reset()


_pause = _Pause()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pause.after_fork)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No cycles are collected while the block lasts, in any thread; collection is then as it was.

    For blocks that make many objects which stay, such as a graph: again and again each of them would be looked at for
    cycles, which takes a fifth to a third of the time, and more for each layer the more layers there are. Blocks that
    free large arrays must not use it.
    """
    _pause.enter()
    try:
        yield
    finally:
        _pause.leave()
