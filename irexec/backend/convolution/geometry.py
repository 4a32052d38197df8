"""Sizes of a convolution, the blocks of its result, the data that a block reads, and products by groups."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.backend.kernel import Order, Task
from irexec.backend.products import multiply_rows
from irexec.backend.scratch import Scratch
from irexec.reference.windows import SlidingWindows, windows
from irexec.schema.convolution import ConvolutionAttributes

Slices = tuple[slice, ...]


@dataclass(frozen=True)
class Geometry:
    """A convolution of data (N, groups * inputs, sizes...) with weights (groups, outputs, inputs, kernel...).

    Attributes:
        dtype: of the data.
        images: N.
        windows: kernel, strides, dilations, pads and the spatial sizes of the result.
    """

    dtype: np.dtype
    images: int
    groups: int
    outputs: int
    inputs: int
    sizes: tuple[int, ...]
    windows: SlidingWindows

    @staticmethod
    def of(task: Task) -> Geometry | None:
        """The geometry of a Convolution or GroupConvolution; None for other types than floats and for empty tensors."""
        dtype = float_type(task)
        if dtype is None:
            return None
        return convolution_geometry(dtype, task.shape(0), filter_shape(task), task.attributes["attributes"])

    @functools.cached_property
    def computed(self) -> np.dtype:
        """The type to compute in."""
        return widened(self.dtype)

    @functools.cached_property
    def points(self) -> int:
        """Number of points of the kernel."""
        return math.prod(self.windows.kernel)

    @functools.cached_property
    def depth(self) -> int:
        """Products that are summed for one value of the result."""
        return self.inputs * self.points

    @functools.cached_property
    def pixels(self) -> int:
        """Number of pixels of one image of the result."""
        return math.prod(self.windows.counts)

    @property
    def is_pointwise(self) -> bool:
        """Whether each pixel of the result is of one pixel of the data, in order, and all pixels are.

        The strides do not say so: that of a single window is 1 whatever the attribute is, of data of any size.
        """
        w = self.windows
        return self.points == 1 and w.counts == self.sizes and not any(w.pads_begin) and not any(w.pads_end)

    @property
    def macs(self) -> int:
        """Multiplications of the direct convolution."""
        return self.images * self.groups * self.outputs * self.depth * self.pixels


# Selecting layouts asks for the same geometries again and again.
@functools.lru_cache(maxsize=1 << 10)
def convolution_geometry(
    dtype: np.dtype, data: tuple[int, ...], filter: tuple[int, ...], attributes: ConvolutionAttributes
) -> Geometry:
    """The geometry of data (N, C, sizes...) and a filter (groups, outputs, inputs, kernel...)."""
    groups, outputs, inputs, *kernel = filter
    windows = sliding_windows(attributes, data[2:], tuple(kernel))
    return Geometry(dtype, data[0], groups, outputs, inputs, data[2:], windows)


@functools.lru_cache(maxsize=1 << 10)
def sliding_windows(
    attributes: ConvolutionAttributes, sizes: tuple[int, ...], kernel: tuple[int, ...]
) -> SlidingWindows:
    """The windows of a kernel on data of these spatial sizes, computed once."""
    return attributes.windows(sizes, kernel)


def filter_shape(task: Task) -> tuple[int, ...]:
    """The shape of the weights of any convolution, with an axis of groups in front."""
    return task.shape(1) if "Group" in task.definition.type else (1, *task.shape(1))


def float_type(task: Task) -> np.dtype | None:
    """The type of data and filter; None if it is not a float type of NumPy, or something is empty."""
    element = task.inputs[0].element
    if element is None or not element.native or element is not task.inputs[1].element:
        return None
    is_empty = 0 in (*task.shape(0), *task.shape(1), *task.output_shape())
    dtype = np.dtype(element.carrier)
    return dtype if dtype.kind == "f" and not is_empty else None


def widened(dtype: np.dtype) -> np.dtype:
    """The type to compute in: float16 is widened."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def is_channels_last(order: Order | None) -> bool:
    """Whether the channels of (N, C, spatial...) are innermost in memory."""
    return order is not None and len(order) > 2 and order[-1] == 1


def split(count: int, size: int, multiple: int = 1) -> list[slice]:
    """0 .. count - 1 in about equal ranges of at most ``size``: one, or a multiple of a number of ranges."""
    parts = -(-count // max(1, size))
    if parts > 1:
        parts = min(count, -(-parts // multiple) * multiple)
    edges = [count * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def longest(ranges: Sequence[slice]) -> int:
    """The length of the longest range."""
    return max(part.stop - part.start for part in ranges)


def blocks_of(counts: Sequence[int], pixels: int, multiple: int = 1) -> list[Slices]:
    """The positions (counts...) in blocks of at most about ``pixels``, each of which is contiguous in C order.

    Args:
        multiple: as for ``split``.
    """
    for axis in range(len(counts)):
        inner = math.prod(counts[axis + 1 :])
        if inner <= pixels or axis == len(counts) - 1:
            ranges = split(counts[axis], max(1, pixels // inner), multiple)
            whole = tuple(slice(0, count) for count in counts[axis + 1 :])
            lead = np.ndindex(*counts[:axis])
            return [(*(slice(i, i + 1) for i in index), part, *whole) for index in lead for part in ranges]
    return [()]


def pixels_of(block: Slices, counts: Sequence[int]) -> slice:
    """Positions of a block of ``blocks_of``, in C order."""
    first = 0
    for part, count in zip(block, counts, strict=True):
        first = first * count + part.start
    return slice(first, first + math.prod(part.stop - part.start for part in block))


def flat_pixels(x: np.ndarray) -> np.ndarray | None:
    """(N, C, spatial...) as the view (N, C, pixels); None if the spatial axes cannot be merged."""
    if x.flags.c_contiguous:
        return x.reshape(x.shape[0], x.shape[1], -1)
    last = x.transpose(0, *range(2, x.ndim), 1)
    if last.flags.c_contiguous:
        return last.reshape(x.shape[0], -1, x.shape[1]).swapaxes(1, 2)
    stride, expected = x.itemsize, None
    for size, step in zip(reversed(x.shape[2:]), reversed(x.strides[2:]), strict=True):
        if size == 1:
            continue
        if expected is None:
            stride = step
        elif step != expected:
            return None
        expected = size * step
    shape = (*x.shape[:2], math.prod(x.shape[2:]))
    return np.lib.stride_tricks.as_strided(x, shape, (*x.strides[:2], stride))


def strided(x: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> np.ndarray:
    """A view of a C-contiguous array from ``offset`` bytes on; NumPy's as_strided takes several microseconds."""
    return np.ndarray(shape, x.dtype, x, offset, strides)


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


def _beyond(axis: int, inside: slice, size: int) -> list[Slices]:
    """The sizes of the region before and after the image, along an axis."""
    before = (slice(None),) * axis
    parts = (slice(0, inside.start), slice(inside.stop, size))
    return [(*before, part) for part in parts if part.start < part.stop]


def columns_of(
    scratch: Scratch,
    image: np.ndarray,
    area: Region,
    w: SlidingWindows,
    lengths: Sequence[int],
    groups: int,
    dtype: np.dtype,
    channels_last: bool,
    copies: bool = False,
) -> np.ndarray:
    """Some windows on a region of an image, as (groups, inputs * taps, pixels), or (groups, pixels, taps * inputs) if
    ``channels_last``.

    Args:
        lengths: numbers of windows along each axis.
        copies: as for ``Region.of``.
    """
    rank, inputs = len(lengths), len(image) // groups
    inner, outer = range(2 + rank, 2 + 2 * rank), range(2, 2 + rank)
    shape = (*lengths, *w.kernel, inputs) if channels_last else (inputs, *w.kernel, *lengths)
    columns = scratch.take((groups, *shape), dtype)
    mark = scratch.mark()
    view = windows(area.of(scratch, image, dtype, channels_last, copies), w.kernel, w.strides, w.dilations, lengths)
    by_group = view.reshape(groups, inputs, *view.shape[1:])
    order = (0, *outer, *inner, 1) if channels_last else (0, 1, *inner, *outer)
    scratch.do(np.copyto, columns, by_group.transpose(order))
    scratch.release(mark)
    pixels, depth = math.prod(lengths), inputs * math.prod(w.kernel)
    return columns.reshape((groups, pixels, depth) if channels_last else (groups, depth, pixels))


def copied_pixels(scratch: Scratch, data: np.ndarray, dtype: np.dtype, channels_last: bool) -> np.ndarray:
    """A copy of (channels, pixels) that is contiguous, or whose transpose is if ``channels_last``."""
    copy = scratch.take(data.shape[::-1], dtype).T if channels_last else scratch.take(data.shape, dtype)
    scratch.do(np.copyto, copy, data)
    return copy


def multiply_groups(scratch: Scratch, rows: np.ndarray, weights: np.ndarray, result: np.ndarray) -> None:
    """Write (groups * outputs, pixels) from rows (groups, pixels, inputs) and weights (groups, outputs, inputs)."""
    groups, pixels, _ = rows.shape
    is_direct = result.strides[0] == result.itemsize
    values = result.T if is_direct else scratch.take(result.T.shape, result.dtype)
    if groups == 1:
        multiply_rows(scratch, rows[0], weights[0], values)
    else:
        multiply_rows(scratch, rows, weights, values.reshape(pixels, groups, -1).swapaxes(0, 1))
    if not is_direct:
        scratch.do(np.copyto, result, values.T)
