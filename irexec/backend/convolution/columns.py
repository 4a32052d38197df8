"""Convolution by products for each group and block: of copied windows, or of the pixels for kernels of one point."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from irexec.backend.convolution.filter_weights import (
    FilterKernel,
    FilterWeights,
    relative,
    shared,
    some_panels,
    span,
    split_outputs,
)
from irexec.backend.convolution.geometry import (
    Geometry,
    Region,
    Slices,
    blocks_of,
    columns_of,
    copied_pixels,
    flat_pixels,
    is_channels_last,
    longest,
    multiply_groups,
    pixels_of,
    split,
    strided,
)
from irexec.backend.convolution.output import Output
from irexec.backend.kernel import SHARES, KernelContext, Task
from irexec.backend.products import LANES, THIN, multiply, panel_width, panels, pixel_product_cost
from irexec.backend.scratch import Scratch
from irexec.reference.windows import SlidingWindows, effective_kernel_size

# Bytes of columns that leave room for the result in the second-level cache, and what a block may take at most.
_COLUMNS = 1 << 20
_LIMIT = 4 << 20
# Multiplications that are worth several shares.
_WORTH = 6_000_000
# Bytes of the result of a block: it stays in the second-level cache while the chain runs.
_BLOCK = 1 << 20
# Minimum sizes of a product for which BLAS's copy of the other operand does not count.
_PIXELS, _CHANNELS = 192, 32
# Multiplications that are worth several shares.
_PIXELS_WORTH = 3_000_000


class Columns(FilterKernel):
    """Any kernel, stride, dilation, padding and number of groups.

    Args:
        channels_last: whether the columns are (pixels, kernel, channels), which is cheap to copy from data that is
            channels last, or (channels, kernel, pixels).
    """

    def __init__(self, task: Task, geometry: Geometry, channels_last: bool) -> None:
        g = self.geometry = geometry
        self.channels_last = channels_last
        # Windows are cut from data that lies in memory as the columns do.
        self.copies = is_channels_last(task.input_orders[0]) != channels_last
        self.in_phases = not channels_last and g.windows.strides[-1] > 1 and g.windows.kernel[-1] > 1
        self.output = Output(task, g.computed)
        make = channels_last_matrix if channels_last else _matrix
        shape = (g.groups, g.outputs, g.inputs, *g.windows.kernel)
        weights = FilterWeights(task.constants[1], make.__name__, make, shape, g.computed)
        super().__init__("columns, channels last" if channels_last else "columns", weights)
        by_outputs, self.blocks = _blocks(g)
        panel = panel_width(g.outputs, g.depth) if channels_last else g.outputs
        # Few pixels: threads share ranges of outputs, and each copies all windows; else they share the pixels.
        self.shares = shared(split_outputs(g.outputs, panel, SHARES if by_outputs else 1), task.shares)
        self.workspace = self._workspace()

    @staticmethod
    def estimate(task: Task, geometry: Geometry, channels_last: bool) -> float:
        """The cost of the kernel of these arguments."""
        data_last, result_last = is_channels_last(task.input_orders[0]), is_channels_last(task.output_orders[0])
        return _cost(geometry, channels_last, data_last, result_last, len(_blocks(geometry)[1]))

    def _workspace(self) -> int:
        # Ranges of about equal length end with one of the longest.
        g, largest = self.geometry, self.blocks[-1]
        pixels = math.prod(part.stop - part.start for part in largest)
        read = math.prod(_read(g, largest)[1]) * g.windows.strides[-1]
        elements = g.groups * (g.depth * pixels + g.inputs * read)
        return elements * g.computed.itemsize + self.output.workspace(g.groups * g.outputs, pixels) + 256

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g = self.geometry
        packed = self.weights.packed(inputs[1])
        out = self.output.bind(context, outputs[0], inputs, packed.spread)
        x = inputs[0]
        rows = packed.rows
        shares = self.shares if packed.spread is None and g.groups == 1 else [[slice(0, g.groups * rows)]]

        def block(index: int, scratch: Scratch) -> None:
            index, share = divmod(index, len(shares))
            image, number = divmod(index, len(self.blocks))
            pixels, channels = self.spans[number], span(shares[share])
            result = out.block(scratch, image, channels, pixels)
            mark = scratch.mark()
            columns = self._columns(scratch, x[image], number)
            for some in shares[share]:
                values = result[relative(some, channels)]
                if self.channels_last:
                    multiply_groups(scratch, columns, some_panels(packed.array, some), values)
                elif g.groups == 1:
                    multiply(scratch, packed.array[0, some], columns[0], values)
                else:
                    scratch.do(np.matmul, packed.array, columns, out=values.reshape(g.groups, rows, -1))
            scratch.release(mark)
            out.finish(scratch, result, image, channels, pixels)

        context.parallel(g.images * len(self.blocks) * len(shares), block)
        out.end()

    @functools.cached_property
    def spans(self) -> list[slice]:
        """Position of each block among the pixels of the result."""
        return [pixels_of(block, self.geometry.windows.counts) for block in self.blocks]

    @functools.cached_property
    def regions(self) -> list[Region]:
        """The region that each block reads. The last axis is rounded up to a multiple of the stride."""
        g, stride = self.geometry, self.geometry.windows.strides[-1] if self.in_phases else 1
        found = []
        for where in self.blocks:
            begins, sizes = _read(g, where)
            found.append(Region(g.sizes, begins, (*sizes[:-1], -(-sizes[-1] // stride) * stride)))
        return found

    def _columns(self, scratch: Scratch, image: np.ndarray, number: int) -> np.ndarray:
        """The windows of a block as (groups, depth, pixels), or (groups, pixels, depth) if channels last."""
        g, w = self.geometry, self.geometry.windows
        lengths = [part.stop - part.start for part in self.blocks[number]]
        area = self.regions[number]
        if not self.in_phases:
            return columns_of(scratch, image, area, w, lengths, g.groups, g.computed, self.channels_last, self.copies)
        columns = scratch.take((len(image), *w.kernel, *lengths), g.computed)
        mark = scratch.mark()
        phases = area.in_phases(scratch, image, g.computed, w.strides[-1])
        for tap in range(w.kernel[-1]):
            view = _phase_windows(phases, w, tap, lengths)
            scratch.do(np.copyto, columns[(slice(None),) * len(lengths) + (tap,)], view)
        scratch.release(mark)
        return columns.reshape(g.groups, g.depth, math.prod(lengths))


def _phase_windows(phases: np.ndarray, w: SlidingWindows, tap: int, lengths: Sequence[int]) -> np.ndarray:
    """The values that one tap of the last axis meets, as (C, kernel without its last axis..., lengths...)."""
    offset, remainder = divmod(tap * w.dilations[-1], w.strides[-1])
    channel, *rows, phase, item = phases.strides
    shape = (len(phases), *w.kernel[:-1], *lengths)
    points = (row * dilation for row, dilation in zip(rows, w.dilations[:-1], strict=True))
    steps = (row * stride for row, stride in zip(rows, w.strides[:-1], strict=True))
    return strided(phases, shape, (channel, *points, *steps, item), remainder * phase + offset * item)


def _matrix(weights: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weights).reshape(*weights.shape[:2], -1)


def channels_last_matrix(weights: np.ndarray) -> np.ndarray:
    """(groups, outputs, inputs, kernel...) as panels of columns (kernel..., inputs)."""
    return panels(np.moveaxis(weights, 2, -1).reshape(*weights.shape[:2], -1))


def _read(g: Geometry, where: Slices) -> tuple[list[int], list[int]]:
    """Where the data begins that a block of windows reads, and its sizes."""
    w = g.windows
    begins = [part.start * stride - pad for part, stride, pad in zip(where, w.strides, w.pads_begin, strict=True)]
    lengths = [part.stop - part.start for part in where]
    spans = [effective_kernel_size(k, d) for k, d in zip(w.kernel, w.dilations, strict=True)]
    sizes = [(length - 1) * stride + span for length, stride, span in zip(lengths, w.strides, spans, strict=True)]
    return begins, sizes


def _blocks(g: Geometry) -> tuple[bool, list[Slices]]:
    """Whether threads share the output channels rather than the pixels, and the blocks of pixels."""
    by_outputs = g.groups == 1 and g.macs >= _WORTH * g.images and g.outputs > 2 * g.pixels
    shares = 1 if by_outputs else SHARES
    return by_outputs, blocks_of(g.windows.counts, _block_pixels(g, shares), shares)


def _block_pixels(g: Geometry, shares: int) -> int:
    """Pixels of a block."""
    per_pixel = g.groups * g.depth * g.computed.itemsize
    result = g.groups * g.outputs * g.computed.itemsize
    pixels = max(64, min(_COLUMNS // per_pixel, 2 * _COLUMNS // result))
    if per_pixel * pixels > _LIMIT:
        pixels = max(1, _LIMIT // per_pixel)
    if g.macs >= _WORTH * g.images:
        pixels = min(pixels, -(-g.pixels // shares))
    return min(pixels, g.pixels)


def _cost(g: Geometry, channels_last: bool, data_last: bool, result_last: bool, blocks: int) -> float:
    product = g.groups * pixel_product_cost(g.outputs, g.depth, g.pixels, channels_last)
    repacked = g.groups * (blocks - 1) * g.outputs * g.depth * 0.25
    read = g.groups * g.inputs * math.prod(g.sizes) * (0.3 if channels_last == data_last else 1.2)
    # A run of memory that is copied at once begins at a cost of its own.
    run = g.inputs * g.windows.kernel[-1] if channels_last else g.windows.counts[-1]
    copied = g.groups * g.depth * g.pixels * (0.25 + 10 / run)
    moved = g.groups * g.outputs * g.pixels * (0.2 if channels_last == result_last else 0.9)
    return g.images * (product + repacked + read + copied + moved + 15_000 * blocks)


class Part(NamedTuple):
    """The result of one product."""

    channels: slice
    pixels: slice


class Block(NamedTuple):
    """A part of the result of an image, of one product or several that follow each other."""

    image: int
    channels: slice
    pixels: slice
    parts: list[Part]


class PointwiseBlocks:
    """The blocks of pixels and channels, and the estimated cost of the kernel.

    Args:
        channels_last: see Pointwise.
        result_last: whether the result is channels last.
    """

    def __init__(self, geometry: Geometry, channels_last: bool, result_last: bool) -> None:
        g = self.geometry = geometry
        self.channels_last = channels_last
        self._block_pixels, self.channels = _block_sizes(g, channels_last or result_last)
        self._product = g.groups * pixel_product_cost(g.outputs, g.inputs, g.pixels, channels_last)

    def _pixels(self) -> list[slice]:
        return split(self.geometry.pixels, self._block_pixels, SHARES)

    def _channels(self, outputs: int, whole: bool) -> list[slice]:
        if whole:
            return [slice(0, outputs)]
        if self.channels_last:
            panel = panel_width(outputs, self.geometry.inputs)
            return split_outputs(outputs, panel, -(-outputs // self.channels))
        return split(outputs, self.channels)

    def blocks(self, outputs: int, whole: bool, shares: int) -> list[Block]:
        """The blocks for a number of shares; ``whole`` for all channels in each.

        Where products are cut for ``SHARES`` alone, those of a share are one block, if that stays in cache.
        """
        g = self.geometry
        parts = [Part(c, p) for p in self._pixels() for c in self._channels(outputs, whole)]
        in_cache = -(-2 * outputs * g.pixels * g.computed.itemsize // (3 * _BLOCK))
        count = len(parts) if len(parts) > SHARES else max(shares, in_cache)
        return [
            Block(n, span([part.channels for part in run]), span([part.pixels for part in run]), run)
            for n in range(g.images)
            for run in shared(parts, count)
        ]

    def cost(self, data_last: bool, result_last: bool) -> float:
        """Nanoseconds, for data and a result that are channels last or not."""
        g = self.geometry
        blocks = g.images * len(self._pixels()) * len(self._channels(g.groups * g.outputs, g.groups > 1))
        copied = g.inputs * (data_last != self.channels_last) + g.outputs * (result_last != self.channels_last)
        return g.images * (self._product + g.groups * copied * g.pixels * 0.9) + 10_000 * blocks


class Pointwise(FilterKernel):
    """A product for each block of pixels, or of output channels.

    Args:
        channels_last: whether it is ``pixels (P, I) @ weights (I, O)``, for data and result that are channels last, or
            ``weights (O, I) @ pixels (I, P)``. Others are copied.
    """

    def __init__(self, task: Task, geometry: Geometry, channels_last: bool) -> None:
        assert geometry.is_pointwise, "a product on the pixels themselves computes one result for each of them"
        g = self.geometry = geometry
        self.channels_last = channels_last
        self.output = Output(task, g.computed)
        make = panels if channels_last else np.ascontiguousarray
        shape = (g.groups, g.outputs, g.inputs)
        weights = FilterWeights(task.constants[1], make.__name__, make, shape, g.computed)
        super().__init__("1x1 product, channels last" if channels_last else "1x1 product", weights)
        self.sizes = PointwiseBlocks(g, channels_last, self.output.channels_last)
        self.shares = task.shares
        self.blocks = self.sizes.blocks(g.groups * g.outputs, g.groups > 1, self.shares)
        channels = longest([block.channels for block in self.blocks])
        pixels = longest([block.pixels for block in self.blocks])
        copied = (g.groups * g.inputs + channels) * pixels * g.computed.itemsize
        self.workspace = self.output.workspace(channels, pixels) + copied + 256

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g = self.geometry
        packed = self.weights.packed(inputs[1])
        out = self.output.bind(context, outputs[0], inputs, packed.spread)
        x = flat_pixels(inputs[0])
        if x is None:
            context.not_repeatable()
            x = np.ascontiguousarray(inputs[0]).reshape(g.images, g.groups * g.inputs, g.pixels)
        blocks = self.blocks if packed.spread is None else self.sizes.blocks(packed.rows, True, self.shares)
        copies = x.dtype != g.computed or x.strides[1 if self.channels_last else 2] != x.itemsize

        def block(index: int, scratch: Scratch) -> None:
            image, channels, pixels, parts = blocks[index]
            result = out.block(scratch, image, channels, pixels)
            read = x[image, :, pixels]
            if copies:
                read = copied_pixels(scratch, read, g.computed, self.channels_last)
            for some, these in parts:
                columns = relative(these, pixels)
                data, values = read[:, columns], result[relative(some, channels), columns]
                if self.channels_last:
                    rows = data.T.reshape(-1, g.groups, g.inputs).swapaxes(0, 1)
                    multiply_groups(scratch, rows, some_panels(packed.array, some), values)
                elif g.groups == 1:
                    multiply(scratch, packed.array[0, some], data, values)
                else:
                    scratch.do(
                        np.matmul,
                        packed.array,
                        data.reshape(g.groups, g.inputs, -1),
                        out=values.reshape(g.groups, packed.rows, -1),
                    )
            out.finish(scratch, result, image, channels, pixels)

        context.parallel(len(blocks), block)
        out.end()


def _block_sizes(g: Geometry, channels_last: bool) -> tuple[int, int]:
    """Pixels and output channels of a block.

    Blocks of channels are contiguous in the result, but each of them reads and copies all data again. Blocks of pixels
    do not, but the chain is slow on their short rows, so that they are computed elsewhere and copied. Channels last it
    is the blocks of pixels that are contiguous.
    """
    outputs, size = g.groups * g.outputs, g.computed.itemsize
    # From about 0.1 milliseconds on there should be something for each of several threads.
    wanted = 1 if g.macs < _PIXELS_WORTH * g.images else SHARES
    parts = max(wanted, g.pixels * outputs * size * 2 // (3 * _BLOCK))
    parts = parts if parts == 1 else -(-parts // SHARES) * SHARES
    pixels, channels = max(_PIXELS, -(-g.pixels // parts)), max(_CHANNELS, -(-outputs // parts))
    if parts == 1:
        return g.pixels, outputs
    if g.groups > 1 or (channels_last and (g.pixels > _PIXELS or parts > SHARES)):
        return min(pixels, g.pixels), outputs
    if channels_last:
        return g.pixels, channels
    by_channels = (parts - 1) * g.inputs * g.pixels * (0.1 if g.inputs <= THIN else 0.3)
    by_pixels = (parts - 1) * g.inputs * outputs * 0.3 + outputs * g.pixels * 0.25
    if by_pixels < by_channels or channels * g.pixels * size > 2 * _BLOCK:
        return min(-(-pixels // LANES) * LANES, g.pixels), outputs
    return g.pixels, min(-(-channels // _CHANNELS) * _CHANNELS, outputs)
