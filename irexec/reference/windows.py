"""Windows that slide over spatial axes: padding and strided views, for any number of axes.

Arrays are (N, C, spatial...). A window has ``kernel`` points per axis, ``dilation`` apart, and moves by ``stride``.
Everything here is arithmetic on ints or a view; only ``pad`` copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.reference.limits import check_memory

Sizes = Sequence[int]
Pads = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class SlidingWindows:
    """Where the windows of one operation lie; every field has one value per spatial axis.

    Attributes:
        kernel: points of the window.
        strides: distance from one window to the next; 1 where there are no two, since any number up to 2^63 - 1 may be
            given.
        dilations: distance between neighbouring points of a window; 1 where there are no two.
        pads_begin, pads_end: padding before and after the data.
        counts: number of windows, that is the sizes of the result.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, numbers in (("strides", self.counts), ("dilations", self.kernel)):
            distances = zip(getattr(self, name), numbers, strict=True)
            object.__setattr__(self, name, tuple(distance if n > 1 else 1 for distance, n in distances))

    @property
    def pads(self) -> Pads:
        return self.pads_begin, self.pads_end


@dataclass(frozen=True)
class TransposedWindows:
    """Where the windows of a transposed convolution lie on its result; every field has one value per spatial axis.

    Attributes:
        strides, dilations: as for SlidingWindows, on the result.
        begins: number of cropped elements at the start of the natural result.
        natural: the sizes before anything is cropped.
        counts: the sizes of the result; beyond the end of the natural result it is zero.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    natural: tuple[int, ...]
    counts: tuple[int, ...]


def effective_kernel_size(kernel: Any, dilation: int) -> Any:
    """The span of a window along one axis, from its first point to its last, both included; for an int or any other
    arithmetic size."""
    return dilation * (kernel - 1) + 1


def pad(x: np.ndarray, pads: Pads, value: float = 0) -> np.ndarray:
    """``x`` with its last axes padded by ``value``; ``x`` itself where there is nothing to pad."""
    begins, ends = pads
    if not any(begins) and not any(ends):
        return x
    lead = x.ndim - len(begins)
    sizes = [size + b + e for size, b, e in zip(x.shape[lead:], begins, ends, strict=True)]
    check_memory((*x.shape[:lead], *sizes), x.dtype, "the padded input")
    padded = (
        np.full((*x.shape[:lead], *sizes), value, x.dtype) if value else np.zeros((*x.shape[:lead], *sizes), x.dtype)
    )
    inner = tuple(slice(b, b + size) for b, size in zip(begins, x.shape[lead:], strict=True))
    padded[(slice(None),) * lead + inner] = x
    return padded


def windows(x: np.ndarray, kernel: Sizes, strides: Sizes, dilations: Sizes, counts: Sizes) -> np.ndarray:
    """A read-only view (leading axes, counts..., kernel...) on an array that is padded already; ``counts`` windows must
    fit."""
    lead = x.ndim - len(kernel)
    item_strides = x.strides[lead:]
    between_windows = tuple(step * stride for step, stride in zip(item_strides, strides, strict=True))
    between_points = tuple(step * dilation for step, dilation in zip(item_strides, dilations, strict=True))
    shape = (*x.shape[:lead], *counts, *kernel)
    view_strides = (*x.strides[:lead], *between_windows, *between_points)
    return np.lib.stride_tricks.as_strided(x, shape, view_strides, writeable=False)


def tap_slices(tap: Sizes, counts: Sizes, strides: Sizes, dilations: Sizes) -> tuple[slice, ...]:
    """Where one point of the window meets the padded axes: ``counts`` positions per axis, ``stride`` apart."""
    axes = zip(tap, counts, strides, dilations, strict=True)
    return tuple(slice(t * d, t * d + s * (n - 1) + 1 if n else t * d, s) for t, n, s, d in axes)
