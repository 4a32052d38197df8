"""Limits of the current run, checked in the middle of a kernel: before a large temporary array, and in long loops.

The outputs of a kernel are known from shape inference and are checked before it is called. These checks are for
temporaries that only the kernel knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import numpy as np

from irexec.errors import OpError

ADDRESSABLE = (1 << 63) - 1
"""Bytes that can be addressed."""

SMALL = 16 << 20
"""Bytes that are allocated without asking, which takes a quarter of a millisecond."""


class Limits(Protocol):
    """Limits of memory and time."""

    def check_memory(self, size: int, what: str) -> None:
        """Raise OpError unless ``size`` bytes may be allocated; ``what`` says what takes them."""

    def check_time(self, layer: str = "") -> None:
        """Raise RunTimeoutError if the run has taken too long."""


_limits: ContextVar[Limits | None] = ContextVar("limits", default=None)


@contextmanager
def limited(limits: Limits) -> Iterator[None]:
    """The calling thread keeps the limits while the context lasts."""
    token = _limits.set(limits)
    try:
        yield
    finally:
        _limits.reset(token)


def check_memory(shape: Sequence[int], dtype: np.dtype, what: str) -> None:
    """Raise OpError unless an array may be allocated; ``what`` is its name in the message."""
    size = math.prod(map(int, shape)) * dtype.itemsize
    if size < SMALL:
        return
    text = f"{what} {dtype}{[int(length) for length in shape]}"
    limits = _limits.get()
    if limits is not None:
        limits.check_memory(size, text)
    else:
        check_address(size, text)


def blocks(count: int, each: int, largest: int) -> Iterator[slice]:
    """Slices of ``count`` entries of ``each`` values, with at most ``largest`` values in each slice, or one entry."""
    step = max(largest // max(each, 1), 1)
    for begin in range(0, count, step):
        yield slice(begin, min(begin + step, count))


class Growth:
    """Memory of a result that Python builds piece by piece, whose size is not known before.

    Args:
        what: its name in messages.
    """

    def __init__(self, what: str) -> None:
        self._what, self._pending = what, 0

    def add(self, size: int) -> None:
        """Raise OpError if there is not enough memory for as many bytes as were added since the last check."""
        self._pending += size
        if self._pending >= SMALL:
            pending, self._pending = self._pending, 0
            check_time()
            check_memory((pending,), np.dtype(np.uint8), self._what)


def check_address(size: int, what: str) -> None:
    """Raise OpError if ``size`` bytes are more than any memory has; ``what`` says what takes them."""
    if size > ADDRESSABLE:
        raise OpError(f"{what} takes {size} bytes, and at most {ADDRESSABLE} can be addressed")


def check_time() -> None:
    """Raise RunTimeoutError if the run has taken too long; for loops whose length follows from the values or sizes of a
    model."""
    limits = _limits.get()
    if limits is not None:
        limits.check_time()
