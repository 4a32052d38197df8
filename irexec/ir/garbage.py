"""Collection of reference cycles while a large graph is made."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
