"""The part of an image that a block of windows reads, with zeros beyond the border."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irexec.backend.scratch import Scratch

Index = tuple[slice, ...]


class Region:
    """A part of images (C, spatial...) of certain sizes.

    Args:
        available: the spatial sizes of the images.
        begins: where the region begins; it may be negative.
        sizes: its sizes; it may go beyond the end.
    """

    def __init__(self, available: Sequence[int], begins: Sequence[int], sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        source, target = [slice(None)], [slice(None)]
        for have, begin, size in zip(available, begins, sizes, strict=True):
            low = min(size, max(0, -begin))
            high = max(low, min(size, have - begin))
            source.append(slice(begin + low, begin + high))
            target.append(slice(low, high))
        # Where the region lies in the image, and where that is in the region.
        self.source, self.target = tuple(source), tuple(target)
        self.beyond = [index for axis, size in enumerate(sizes, 1) for index in _beyond(axis, self.target[axis], size)]

    def of(
        self, scratch: Scratch, image: np.ndarray, dtype: np.dtype, channels_last: bool, copies: bool = False
    ) -> np.ndarray:
        """The region (C, sizes...) of an image.

        It is a view if it lies inside and the type is ``dtype``, unless ``copies``; else a contiguous copy, whose
        channels are innermost if ``channels_last``.
        """
        part = image[self.source]
        if not self.beyond and image.dtype == dtype and not copies:
            return part
        if channels_last:
            buffer = scratch.take((*self.sizes, len(image)), dtype)
            buffer = buffer.transpose(-1, *range(len(self.sizes)))
        else:
            buffer = scratch.take((len(image), *self.sizes), dtype)
        for index in self.beyond:
            scratch.do(buffer[index].fill, 0)
        scratch.do(np.copyto, buffer[self.target], part)
        return buffer

    def in_phases(self, scratch: Scratch, image: np.ndarray, dtype: np.dtype, stride: int) -> np.ndarray:
        """A copy (C, sizes..., stride, size of the last axis / stride): the last axis is split by remainder.

        Windows that move by ``stride`` read contiguous memory of it. The last size must be a multiple of the stride.
        """
        buffer = scratch.take((len(image), *self.sizes[:-1], stride, self.sizes[-1] // stride), dtype)
        if self.beyond:
            scratch.do(buffer.fill, 0)
        inner, outer = self.target[-1], self.source[-1]
        for remainder in range(stride):
            first = inner.start + (remainder - inner.start) % stride
            count = -(-(inner.stop - first) // stride)
            if count > 0:
                columns = slice(outer.start + first - inner.start, outer.stop, stride)
                within = slice(first // stride, first // stride + count)
                phase = buffer[..., remainder, :]
                scratch.do(np.copyto, phase[(*self.target[:-1], within)], image[(*self.source[:-1], columns)])
        return buffer


def _beyond(axis: int, inside: slice, size: int) -> list[Index]:
    """The sizes of the region before and after the image, along an axis."""
    before = (slice(None),) * axis
    parts = (slice(0, inside.start), slice(inside.stop, size))
    return [(*before, part) for part in parts if part.start < part.stop]
