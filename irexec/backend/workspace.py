"""Thread-local buffers, so that kernels do not ask the system for pages on every call.

A buffer belongs to the thread and to the purpose it was asked for; it is valid until the same thread asks again
for the same purpose. Kernels cut their work into blocks, so that no buffer grows far beyond ``BLOCK`` bytes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import numpy as np

# About what stays in a second-level cache shared by two purposes, and still gives BLAS long rows.
BLOCK = 4 << 20

_KEPT = threading.local()


def thread_buffer(purpose: str, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An uninitialised C-contiguous array."""
    size = math.prod(shape) * dtype.itemsize
    buffers: dict[str, np.ndarray] = _KEPT.__dict__.setdefault("buffers", {})
    buffer = buffers.get(purpose)
    if buffer is None or buffer.nbytes < size:
        buffer = buffers[purpose] = np.empty(max(size, 1), np.uint8)
    return buffer[:size].view(dtype).reshape(shape)


def padded(x: np.ndarray, begins: Sequence[int], ends: Sequence[int]) -> np.ndarray:
    """``x`` with its last axes padded by zeros, in a thread-local buffer; ``x`` itself where there is nothing to pad."""
    if not any(begins) and not any(ends):
        return x
    lead = x.ndim - len(begins)
    sizes = [size + b + e for size, b, e in zip(x.shape[lead:], begins, ends, strict=True)]
    buffer = thread_buffer("padded", (*x.shape[:lead], *sizes), x.dtype)
    for axis, (b, e) in enumerate(zip(begins, ends, strict=True), lead):
        before = (slice(None),) * axis
        buffer[(*before, slice(0, b))] = 0
        buffer[(*before, slice(buffer.shape[axis] - e, None))] = 0
    inner = tuple(slice(b, b + size) for b, size in zip(begins, x.shape[lead:], strict=True))
    buffer[(slice(None),) * lead + inner] = x
    return buffer
