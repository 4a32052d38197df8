"""The part of an image that a block of windows reads, with zeros beyond the border."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.backend.scratch import Scratch


def region(
    scratch: Scratch,
    image: np.ndarray,
    begins: Sequence[int],
    sizes: Sequence[int],
    dtype: np.dtype,
    channels_last: bool,
    copies: bool = False,
) -> np.ndarray:
    """``image`` (C, spatial...) from ``begins``, which may be negative, in ``sizes``, which may go beyond the end.

    It is a view if the region lies inside and the type is ``dtype``, unless ``copies``; else a contiguous copy, whose channels are
    innermost if ``channels_last``.
    """
    source, target, is_inside = _overlap(image.shape[1:], begins, sizes)
    part = image[(slice(None), *source)]
    if is_inside and image.dtype == dtype and not copies:
        return part
    if channels_last:
        buffer = np.moveaxis(scratch.take((*sizes, len(image)), dtype), -1, 0)
    else:
        buffer = scratch.take((len(image), *sizes), dtype)
    for axis, inner in enumerate(target, 1):
        before = (slice(None),) * axis
        buffer[(*before, slice(0, inner.start))] = 0
        buffer[(*before, slice(inner.stop, None))] = 0
    buffer[(slice(None), *target)] = part
    return buffer


def region_in_phases(
    scratch: Scratch, image: np.ndarray, begins: Sequence[int], sizes: Sequence[int], dtype: np.dtype, stride: int
) -> np.ndarray:
    """As ``region``, with the last axis split by the remainder of its position: (C, spatial..., stride, ceil(size / stride)).

    Windows that move by ``stride`` read contiguous memory of it.
    """
    length = -(-sizes[-1] // stride)
    buffer = scratch.take((len(image), *sizes[:-1], stride, length), dtype)
    source, target, _ = _overlap(image.shape[1:], begins, (*sizes[:-1], length * stride))
    if any(inner.start or inner.stop < size for inner, size in zip(target, (*sizes[:-1], length * stride), strict=True)):
        buffer[...] = 0
    for remainder in range(stride):
        first = target[-1].start + (remainder - target[-1].start) % stride
        count = -(-(target[-1].stop - first) // stride)
        if count > 0:
            columns = slice(source[-1].start + first - target[-1].start, source[-1].stop, stride)
            within = slice(first // stride, first // stride + count)
            buffer[(slice(None), *target[:-1], slice(remainder, remainder + 1), within)] = image[(slice(None), *source[:-1], None, columns)]
    return buffer


def _overlap(available: Sequence[int], begins: Sequence[int], sizes: Sequence[int]) -> tuple[list[slice], list[slice], bool]:
    """Where the region lies in the image, where that is in the region, and whether all of it does."""
    source, target, is_inside = [], [], True
    for have, begin, size in zip(available, begins, sizes, strict=True):
        low = min(size, max(0, -begin))
        high = max(low, min(size, have - begin))
        source.append(slice(begin + low, begin + high))
        target.append(slice(low, high))
        is_inside = is_inside and low == 0 and high == size
    return source, target, is_inside
