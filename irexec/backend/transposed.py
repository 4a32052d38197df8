"""Fast kernels of transposed convolutions: each phase is a convolution with stride 1, by columns and one product."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from irexec.backend.convolution.filter_weights import FilterKernel, FilterWeights, relative, shared, span
from irexec.backend.convolution.geometry import (
    Region,
    columns_of,
    filter_shape,
    float_type,
    is_channels_last,
    longest,
    multiply_groups,
    split,
    widened,
)
from irexec.backend.convolution.output import Output
from irexec.backend.kernel import SHARES, Candidate, KernelContext, Task
from irexec.backend.products import multiply, panels, pixel_product_cost
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.reference.windows import SlidingWindows, TransposedWindows
from irexec.schema.convolution import BackpropAttributes


@dataclass(frozen=True)
class AxisPhase:
    """One remainder along one axis: value ``remainder + stride * q`` is the sum over the taps.

    Attributes:
        remainder: of the position in the result.
        taps: indexes in the kernel, in the order of the pixels that they meet.
        first: the pixel that the first tap meets for q = 0; it may be negative.
        step: from the pixel of one tap to that of the next.
        count: values of the phase.
    """

    remainder: int
    taps: tuple[int, ...]
    first: int
    step: int
    count: int


Phase = tuple[AxisPhase, ...]


@dataclass(frozen=True)
class TransposedGeometry:
    """Data (N, groups * inputs, sizes...), weights (groups, inputs, outputs, kernel...).

    Attributes:
        dtype: of the data.
        images: N.
        windows: strides, dilations, what is cropped and the sizes of the result.
    """

    dtype: np.dtype
    images: int
    groups: int
    inputs: int
    outputs: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    windows: TransposedWindows

    @functools.cached_property
    def computed(self) -> np.dtype:
        """The type to compute in."""
        return widened(self.dtype)

    @property
    def weights(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (self.groups, self.inputs, self.outputs, *self.kernel)

    @property
    def points(self) -> int:
        """Number of points of the kernel."""
        return math.prod(self.kernel)

    @property
    def macs(self) -> int:
        return self.images * self.groups * self.inputs * self.outputs * self.points * math.prod(self.sizes)

    @property
    def unrolled(self) -> int:
        """About how many phases and taps are looked at one by one."""
        phases = list(map(min, self.windows.strides, self.windows.counts))
        return math.prod(phases) + sum(phase * taps for phase, taps in zip(phases, self.kernel, strict=True))

    @functools.cached_property
    def axes(self) -> tuple[Phase, ...]:
        """The phases with values along each axis."""
        return tuple(self._phases_along(axis) for axis in range(len(self.kernel)))

    def _phases_along(self, axis: int) -> Phase:
        w = self.windows
        stride, dilation, begin, count = w.strides[axis], w.dilations[axis], w.begins[axis], w.counts[axis]
        found = []
        for remainder in range(min(stride, count)):
            met = sorted(
                ((remainder + begin - tap * dilation) // stride, tap)
                for tap in range(self.kernel[axis])
                if (remainder + begin - tap * dilation) % stride == 0
            )
            step = met[1][0] - met[0][0] if len(met) > 1 else 1
            first = met[0][0] if met else 0
            found.append(
                AxisPhase(remainder, tuple(tap for _, tap in met), first, step, -(-(count - remainder) // stride))
            )
        return tuple(found)

    @functools.cached_property
    def phases(self) -> list[Phase]:
        """All combinations of the phases along the axes."""
        return list(itertools.product(*self.axes))


def windows_of_phase(phase: Phase) -> SlidingWindows:
    """The windows of a phase on data that it does not pad."""
    one = (1,) * len(phase)
    kernel, steps = tuple(len(axis.taps) for axis in phase), tuple(axis.step for axis in phase)
    return SlidingWindows(kernel, one, steps, one, one, tuple(axis.count for axis in phase))


def positions(phase: Phase, strides: Sequence[int]) -> tuple[slice, ...]:
    """Where the values of a phase are along the spatial axes of the result."""
    return tuple(slice(axis.remainder, None, stride) for axis, stride in zip(phase, strides, strict=True))


def backprop_geometry(task: Task) -> TransposedGeometry:
    """The geometry of a task of ConvolutionBackpropData or GroupConvolutionBackpropData."""
    wanted = task.output_shape()[2:] if task.has_input(2) else None
    dtype = task.inputs[0].dtype
    return geometry_of(dtype, task.shape(0), filter_shape(task), wanted, task.attributes["attributes"])


# Selecting layouts asks for the same geometries again and again.
@functools.lru_cache(maxsize=1 << 5)
def geometry_of(
    dtype: np.dtype,
    data: tuple[int, ...],
    filter: tuple[int, ...],
    wanted: tuple[int, ...] | None,
    attributes: BackpropAttributes,
) -> TransposedGeometry:
    """The geometry of data (N, C, sizes...) and a filter (groups, inputs, outputs, kernel...)."""
    groups, inputs, outputs, *kernel = filter
    windows = attributes.windows(data[2:], kernel, wanted)
    return TransposedGeometry(dtype, data[0], groups, inputs, outputs, data[2:], tuple(kernel), windows)


# Bytes of the columns of a block, and of the scratch that a kernel may ask for.
_COLUMNS, _WORKSPACE = 1 << 20, 8 << 20
# Phases and taps that are listed one by one; with more, compiling would take longer than the fast kernels save.
_UNROLLED = 1 << 14


@kernels("ConvolutionBackpropData", since=1)
@kernels("GroupConvolutionBackpropData", since=1)
def convolution_backprop_data(task: Task) -> Iterator[Candidate]:
    """Any number of groups."""
    geometry = None if float_type(task) is None else backprop_geometry(task)
    if geometry is None or geometry.unrolled > _UNROLLED:
        return
    data_last, result_last = is_channels_last(task.input_orders[0]), is_channels_last(task.output_orders[0])
    output = Output(task, geometry.computed)
    for channels_last in (False, True) if data_last or result_last else (False,):
        blocks = PhaseBlocks(geometry, channels_last)
        if blocks.workspace(output, blocks.shares(output, SHARES)) <= _WORKSPACE:
            yield Candidate(blocks.cost(data_last, output.channels_last), partial(PhaseColumns, task, blocks))


@dataclass(frozen=True)
class PhaseBlocks:
    """Blocks of the first spatial axis of the phases, or of output channels where the images are small.

    Args:
        channels_last: whether columns are (pixels, taps, channels), or (channels, taps, pixels).
    """

    geometry: TransposedGeometry
    channels_last: bool

    @cached_property
    def rows(self) -> list[slice]:
        """Ranges of the first spatial axis of the phases, each of which gives as many rows times the stride."""
        g, phases = self.geometry, self.geometry.phases
        taps = max(math.prod(len(axis.taps) for axis in phase) for phase in phases)
        inner = max(math.prod(axis.count for axis in phase[1:]) for phase in phases)
        per_row = g.groups * g.inputs * taps * inner * g.computed.itemsize
        return split(max(phase[0].count for phase in phases), max(1, _COLUMNS // max(1, per_row)))

    @cached_property
    def channels(self) -> list[slice]:
        """Ranges of the output channels of all groups."""
        g = self.geometry
        if g.groups > 1:
            return [slice(0, g.groups * g.outputs)]
        is_whole = self.channels_last or len(self.rows) > 1 or g.macs < 10_000_000
        parts = 1 if is_whole else min(SHARES, max(1, g.outputs // 32))
        return split(g.outputs, -(-g.outputs // parts))

    def shares(self, output: Output, count: int) -> list[list[slice]]:
        """The ranges of channels of each share: ``count`` of them, or more where the blocks of these are too large."""
        cuts = (shared(self.channels, number) for number in range(count, SHARES))
        return next((cut for cut in cuts if self.workspace(output, cut) <= _WORKSPACE), shared(self.channels, SHARES))

    def workspace(self, output: Output, shares: Sequence[Sequence[slice]]) -> int:
        """Bytes of scratch of a block, with that of the chain."""
        g, rows = self.geometry, longest(self.rows)
        columns, read, values = 0, 0, 0
        for phase in g.phases:
            taps = math.prod(len(axis.taps) for axis in phase)
            pixels = rows * math.prod(axis.count for axis in phase[1:])
            columns, values = max(columns, g.inputs * taps * pixels), max(values, g.outputs * pixels)
            read = max(read, g.inputs * math.prod(_sizes(phase, min(rows, phase[0].count))))
        pixels = min(rows * g.windows.strides[0], g.windows.counts[0]) * math.prod(g.windows.counts[1:])
        own = g.groups * (columns + read + values) * g.computed.itemsize
        return own + output.workspace(longest([*map(span, shares)]), pixels) + 512

    def cost(self, data_last: bool, result_last: bool) -> float:
        """Estimated nanoseconds for data and a result in C order or channels last."""
        g = self.geometry
        per_input = 0.35 if self.channels_last == data_last else 0.8
        per_output = 0.5 if self.channels_last == result_last else 1.0
        cost = 0.0
        for phase in g.phases:
            depth = g.inputs * math.prod(len(axis.taps) for axis in phase)
            pixels = math.prod(axis.count for axis in phase)
            product = pixel_product_cost(g.outputs, depth, pixels, self.channels_last)
            cost += g.images * g.groups * (product + depth * pixels * per_input + g.outputs * pixels * per_output)
        return cost + 5000 * len(g.phases) * len(self.rows) * len(self.channels) * g.images


class PhaseColumns(FilterKernel):
    """The convolution of each phase by columns."""

    def __init__(self, task: Task, blocks: PhaseBlocks) -> None:
        g = self.geometry = blocks.geometry
        self.channels_last, self.phases = blocks.channels_last, g.phases
        self.rows = blocks.rows
        key = ("phases", self.channels_last, *self._taps())
        weights = FilterWeights(task.constants[1], key, self._matrices, g.weights, g.computed, share=False)
        super().__init__("phases by columns, channels last" if self.channels_last else "phases by columns", weights)
        self.output = Output(task, g.computed)
        self.shares = blocks.shares(self.output, task.shares)
        self.workspace = blocks.workspace(self.output, self.shares)

    def _taps(self) -> list[tuple[tuple[int, ...], ...]]:
        return [tuple(axis.taps for axis in phase) for phase in self.phases]

    def _matrices(self, weights: np.ndarray) -> list[np.ndarray]:
        """The weights of each phase, (groups, outputs, inputs * taps), in panels if channels last."""
        groups, inputs, outputs = weights.shape[:3]
        made = []
        for taps in self._taps():
            picked = (
                weights[(slice(None),) * 3 + np.ix_(*taps)]
                if all(taps)
                else weights.reshape(groups, inputs, outputs, -1)[..., :0]
            )
            order = (0, 2, *range(3, picked.ndim), 1) if self.channels_last else (0, 2, 1, *range(3, picked.ndim))
            matrix = picked.transpose(order).reshape(groups, outputs, -1)
            made.append(panels(matrix) if self.channels_last else np.ascontiguousarray(matrix))
        return made

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g, x = self.geometry, inputs[0]
        matrices = self.weights.packed(inputs[1]).array
        out = self.output.bind(context, outputs[0], inputs)
        stride, counts = g.windows.strides[0], g.windows.counts
        inner = math.prod(counts[1:])
        blocks = [(n, r, s) for n in range(g.images) for r in self.rows for s in self.shares]

        def block(index: int, scratch: Scratch) -> None:
            image, rows, ranges = blocks[index]
            channels = span(ranges)
            first, last = rows.start * stride, min(rows.stop * stride, counts[0])
            if first >= last:
                return
            pixels = slice(first * inner, last * inner)
            result = out.block(scratch, image, channels, pixels)
            into = result.reshape(g.groups, -1, last - first, *counts[1:])
            for phase, matrix in zip(self.phases, matrices, strict=True):
                mark = scratch.mark()
                self._phase(scratch, x[image], phase, matrix, rows, into, ranges)
                scratch.release(mark)
            out.finish(scratch, result, image, channels, pixels)

        context.parallel(len(blocks), block)
        out.end()

    def _phase(
        self,
        scratch: Scratch,
        image: np.ndarray,
        phase: Phase,
        matrix: np.ndarray,
        rows: slice,
        into: np.ndarray,
        ranges: Sequence[slice],
    ) -> None:
        """Compute the rows of one phase, and write them to their positions in (groups, outputs, sizes...).

        Channels last, or of several groups, there is one range of outputs.
        """
        g = self.geometry
        last = min(rows.stop, phase[0].count)
        if last <= rows.start:
            return
        lengths = [last - rows.start, *(axis.count for axis in phase[1:])]
        target = into[(slice(None), slice(None), *positions(phase, g.windows.strides))]
        if not all(axis.taps for axis in phase):
            scratch.do(target.fill, 0)
            return
        begins = [phase[0].first + rows.start, *(axis.first for axis in phase[1:])]
        area, w = Region(g.sizes, begins, _sizes(phase, lengths[0])), windows_of_phase(phase)
        columns = columns_of(scratch, image, area, w, lengths, g.groups, g.computed, self.channels_last)
        if self.channels_last:
            values = scratch.take((columns.shape[1], g.groups * g.outputs), g.computed).T
            multiply_groups(scratch, columns, matrix, values)
        else:
            values = scratch.take((into.shape[0] * into.shape[1], columns.shape[2]), g.computed)
            if g.groups == 1:
                for some in ranges:
                    own = relative(some, span(ranges))
                    multiply(scratch, matrix[0, some], columns[0], values[own])
            else:
                scratch.do(np.matmul, matrix, columns, out=values.reshape(g.groups, -1, columns.shape[2]))
        scratch.do(np.copyto, target, values.reshape(target.shape))


def _sizes(phase: Phase, rows: int) -> list[int]:
    """Sizes of the data that ``rows`` rows of a phase read."""
    lengths = [rows, *(axis.count for axis in phase[1:])]
    return [length + axis.step * max(0, len(axis.taps) - 1) for length, axis in zip(lengths, phase, strict=True)]
