"""The peak memory of this process, on every system that the tests run on."""

from __future__ import annotations

from irexec.tools.process_memory import peak_bytes


def peak_kilobytes() -> int:
    """The largest resident size of this process so far, in units of 1,024 bytes."""
    return peak_bytes() // 1024
