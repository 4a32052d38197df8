"""Workspace of one thread while it works on one block."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_ALIGNMENT = 64


class Scratch:
    """Uninitialised arrays from one buffer; ``clear`` releases all of them.

    Args:
        size: bytes of the buffer. An array that does not fit is allocated on its own, so that an estimate that was
            too low costs time, never a result.
    """

    def __init__(self, buffer: np.ndarray) -> None:
        self._buffer = buffer
        self._used = 0

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
        self._used = -(-(start + size) // _ALIGNMENT) * _ALIGNMENT
        return np.ndarray(shape, dtype, self._buffer, start)

    def mark(self) -> int:
        """How much is in use, for ``release``."""
        return self._used

    def release(self, mark: int) -> None:
        """Release what was taken since ``mark``."""
        self._used = mark

    def clear(self) -> None:
        """Release everything."""
        self._used = 0


def scratch_size(*arrays: tuple[Sequence[int], np.dtype]) -> int:
    """Bytes that arrays of these shapes and types take together."""
    return sum(-(-math.prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT for shape, dtype in arrays)
