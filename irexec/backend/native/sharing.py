"""Number of blocks of a step in C: threads get equal shares, and any number of blocks gives the same results.

Every kernel computes a value of its result in the same way wherever a block begins.
"""

from __future__ import annotations

# Nanoseconds of work that pay for a second thread, and of a block of longer work (tests/benchmarks/native_products.py).
_LEAST, _BLOCK = 10_000, 50_000
# Blocks for each thread, at most.
_MOST = 8


def blocks_for(nanoseconds: float, threads: int) -> int:
    """The blocks of a step that takes this long on one thread: one, or as many for each thread."""
    if threads == 1 or nanoseconds < _LEAST:
        return 1
    return threads * max(1, min(_MOST, round(nanoseconds / (threads * _BLOCK))))


def imbalance(units: int, parts: int) -> float:
    """The largest of so many parts of units, of which each is whole, relative to an equal one."""
    return -(-units // parts) * parts / units
