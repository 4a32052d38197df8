"""The core that a thread runs on, and moves to another core.

Linux wakes a thread on its last core, and searches no idle core if the cores are busy most of the time. A worker that
was once on the core of its caller stays there, and the two take turns instead of running side by side.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable


def _find() -> Callable[[], int] | None:
    """sched_getcpu of the C library, called without giving up the interpreter lock; None where there is none."""
    if sys.platform != "linux":
        return None
    try:
        found = ctypes.PyDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    found.argtypes, found.restype = [], ctypes.c_int
    return found


_sched_getcpu = _find()


def current_core() -> int | None:
    """The index of the core on which the calling thread runs; None where the system does not provide it."""
    if _sched_getcpu is None:
        return None
    core = _sched_getcpu()
    return core if core >= 0 else None


def leave_core(core: int, model: int) -> None:
    """Move the calling thread to another core that thread ``model`` (its native id) may use, and keep it off this one.

    Nothing changes where there is no other core, or where the system refuses.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):
        others = os.sched_getaffinity(model) - {core}
        if others:
            os.sched_setaffinity(0, others)
