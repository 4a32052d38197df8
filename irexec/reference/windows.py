"""Windows that slide over spatial axes: sizes, padding and strided views, for any number of axes.

Arrays are (N, C, spatial...). A window has ``kernel`` points per axis, ``dilation`` apart, and moves
by ``stride``. Everything here is exact arithmetic on ints or a view; only ``pad`` copies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Sizes = Sequence[int]
Pads = tuple[tuple[int, ...], tuple[int, ...]]


def extent(kernel: int, dilation: int) -> int:
    """How far a window reaches along one axis, from its first point to its last, both included."""
    return dilation * (kernel - 1) + 1


def same_pads(size: int, kernel: int, stride: int, dilation: int, upper: bool) -> tuple[int, int]:
    """Padding (begin, end) that gives ``ceil(size / stride)`` windows; an odd one goes to the end if ``upper``."""
    total = max(0, (-(-size // stride) - 1) * stride + extent(kernel, dilation) - size)
    less = total // 2
    return (less, total - less) if upper else (total - less, less)


def resolve_pads(auto_pad: str, sizes: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, pads_begin: Sizes, pads_end: Sizes) -> Pads:
    """Padding (begins, ends) of a forward window operation by the rule ``auto_pad``, in lower case.

    "explicit" gives the pads as they are (empty: zeros), "valid" zeros, "same_upper" and "same_lower" what
    ``same_pads`` says; the given pads are ignored then.
    """
    rank = len(sizes)
    if auto_pad in ("same_upper", "same_lower"):
        pairs = [same_pads(*axis, upper=auto_pad == "same_upper") for axis in zip(sizes, kernel, strides, dilations, strict=True)]
        return tuple(b for b, _ in pairs), tuple(e for _, e in pairs)
    if auto_pad == "valid":
        return (0,) * rank, (0,) * rank
    return tuple(pads_begin) or (0,) * rank, tuple(pads_end) or (0,) * rank


def window_counts(sizes: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes, pads: Pads) -> tuple[int, ...]:
    """How many windows fit along each axis once it is padded (rounded down; never below 0)."""
    axes = zip(sizes, kernel, strides, dilations, *pads, strict=True)
    return tuple(max(0, (size + b + e - extent(k, d)) // s + 1) for size, k, s, d, b, e in axes)


def pad(x: np.ndarray, pads: Pads, value: float = 0) -> np.ndarray:
    """``x`` with its last axes padded by ``value``; ``x`` itself where there is nothing to pad."""
    begins, ends = pads
    if not any(begins) and not any(ends):
        return x
    lead = x.ndim - len(begins)
    sizes = [size + b + e for size, b, e in zip(x.shape[lead:], begins, ends, strict=True)]
    padded = np.full((*x.shape[:lead], *sizes), value, x.dtype) if value else np.zeros((*x.shape[:lead], *sizes), x.dtype)
    inner = tuple(slice(b, b + size) for b, size in zip(begins, x.shape[lead:], strict=True))
    padded[(slice(None),) * lead + inner] = x
    return padded


def windows(x: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, counts: Sizes | None = None) -> np.ndarray:
    """A read-only view (leading axes, counts..., kernel...) on an array that is padded already.

    ``counts`` says how many windows are wanted per axis; as many as fit unless told. They must fit.
    """
    rank = len(kernel)
    lead = x.ndim - rank
    if counts is None:
        counts = window_counts(x.shape[lead:], kernel, strides, dilations, ((0,) * rank, (0,) * rank))
    steps = x.strides[lead:]
    moves = tuple(step * s for step, s in zip(steps, strides, strict=True))
    points = tuple(step * d for step, d in zip(steps, dilations, strict=True))
    shape = (*x.shape[:lead], *counts, *kernel)
    return np.lib.stride_tricks.as_strided(x, shape, (*x.strides[:lead], *moves, *points), writeable=False)


def tap_slices(tap: Sizes, counts: Sizes, strides: Sizes, dilations: Sizes) -> tuple[slice, ...]:
    """Where one point of the window meets the padded axes: ``counts`` positions per axis, ``stride`` apart."""
    axes = zip(tap, counts, strides, dilations, strict=True)
    return tuple(slice(t * d, t * d + s * (n - 1) + 1 if n else t * d, s) for t, n, s, d in axes)
