"""Workspace of one thread while it works on one block, and the calls of NumPy that the block consists of.

Making views and choosing workspace takes the interpreter about as long as NumPy needs for a block of some ten thousand
elements. In a plan whose tensors have fixed offsets in an arena, the calls of a block are the same in every run, so
they are recorded in the first one (``record``) and only repeated afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

ALIGNMENT = 64

Call = Callable[[], object]

Block = Callable[[int, "Scratch"], object]
"""Computes the block of an index, with a scratch of its own."""


class Scratch:
    """Uninitialised arrays from one buffer; ``clear`` releases all of them.

    Args:
        size: bytes of the buffer. An array that does not fit is allocated on its own, so a low estimate costs
            time, never a result.
    """

    def __init__(self, buffer: np.ndarray) -> None:
        self._buffer = buffer
        self._used = 0
        self._calls: list[Call] | None = None

    @property
    def address(self) -> int:
        """The address of the buffer."""
        return self._buffer.ctypes.data

    @staticmethod
    def of_size(size: int) -> Scratch:
        """A scratch with a buffer of its own, of ``size`` bytes."""
        return Scratch(np.empty(size, np.uint8))

    def take(self, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
        """An uninitialised C-contiguous array, valid until ``clear`` or ``release`` of an earlier mark."""
        start = self._used
        size = math.prod(shape) * dtype.itemsize
        if start + size > self._buffer.size:
            return np.empty(shape, dtype)
        self._used = aligned(start + size)
        return np.ndarray(shape, dtype, self._buffer, start)

    def do(self, function: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """Call a function on arrays, and record the call."""
        function(*arguments, **options)
        if self._calls is not None:
            self._calls.append(partial(function, *arguments, **options))

    def work(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call ``function(scratch, *arguments)``, which manages workspace of its own, and record it as one call."""
        calls, self._calls = self._calls, None
        mark = self._used
        try:
            function(self, *arguments)
        finally:
            self._calls = calls
        self._used = mark
        if calls is not None:
            calls.append(partial(self._again, mark, function, arguments))

    def _again(self, mark: int, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self._used = mark
        function(self, *arguments)

    def record(self, block: Callable[[Scratch], object]) -> list[Call]:
        """Run a block whose calls are all made by ``do`` and ``work``.

        Returns the calls that run it again on the same arrays.
        """
        self._calls = calls = list[Call]()
        try:
            block(self)
        finally:
            self._calls = None
        return calls

    def mark(self) -> int:
        """Bytes in use, for ``release``."""
        return self._used

    def release(self, mark: int) -> None:
        """Release all arrays taken since ``mark``."""
        self._used = mark

    def clear(self) -> None:
        """Release everything."""
        self._used = 0

    def overwrite(self) -> None:
        """Fill the buffer with bytes that are NaN in every float type."""
        self._buffer.fill(0xFF)


def scratch_size(*arrays: tuple[Sequence[int], np.dtype]) -> int:
    """Total bytes of arrays of these shapes and types."""
    return sum(aligned(math.prod(shape) * dtype.itemsize) for shape, dtype in arrays)


@dataclass(frozen=True)
class Workspace:
    """Scratch that a kernel asks for.

    Attributes:
        shared: bytes that all threads share.
        each: bytes of each thread.
    """

    shared: int = 0
    each: int = 0

    def size(self, threads: int) -> int:
        """Bytes for ``threads`` threads."""
        return aligned(self.shared) + threads * aligned(self.each)

    def cut(self, buffer: np.ndarray, threads: int) -> tuple[Scratch, list[Scratch]]:
        """The shared scratch, and that of each thread, at equal distances, which C kernels rely on.

        Args:
            buffer: of ``size`` bytes at least.
        """
        starts = [aligned(self.shared) + i * aligned(self.each) for i in range(threads)]
        return Scratch(buffer[: self.shared]), [Scratch(buffer[start : start + self.each]) for start in starts]


def aligned(size: int) -> int:
    """Bytes in whole cache lines."""
    return -(-size // ALIGNMENT) * ALIGNMENT
