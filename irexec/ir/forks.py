"""Locks that nobody holds in a child after a fork.

Another thread may hold a lock at the moment of a fork. It does not exist in the child, where the lock would be held for
ever. What such a lock guards may be changed by half in the child: a cache may have an entry more or less.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A lock that is free in a child after a fork."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """The same for one that its thread may take again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()
    if sys.version_info < (3, 12):
        _free_cached_properties()


def _free_cached_properties() -> None:
    """In Python 3.11 each has a lock for all objects of a class, which is held while a value is computed."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _PACKAGES]
    for owner in {value for module in modules for value in vars(module).values() if isinstance(value, type)}:
        for member in vars(owner).values():
            if isinstance(member, functools.cached_property):
                vars(member)["lock"] = threading.RLock()


_PACKAGES = ("irexec", "converters")

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
