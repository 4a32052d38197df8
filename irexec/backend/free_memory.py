"""Memory that was freed, given back to the system."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable


def return_free_memory() -> None:
    """Give back what the allocator holds of freed memory, where it is glibc's; nothing elsewhere.

    Packing a model's weights frees arrays of many sizes. From some megabytes on glibc keeps such memory for the next
    request, and it would count as the process's for as long as the model lives.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """``malloc_trim`` of the C library that the process uses; None without one."""
    if sys.platform != "linux":
        return None
    function: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return function
