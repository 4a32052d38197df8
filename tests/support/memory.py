"""The peak memory of this process, on every system that the tests run on, and of a call."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

from irexec.tools.engines.engine import peak_bytes


def peak_kilobytes() -> int:
    """The largest resident size of this process so far, in units of 1,024 bytes."""
    return peak_bytes() // 1024


def traced_peak(call: Callable[[], object]) -> int:
    """The peak of the bytes that Python and NumPy allocated during the call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
