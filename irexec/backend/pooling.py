"""Fast MaxPool and AvgPool, of which only the values are read.

A block of channels is padded once, in the order in which it lies in memory. One axis after the other, the points of the
window are then combined with shifts of the block as one long row: what a shift carries over from a neighbouring row
falls on positions that are not read. At the end the positions at which windows begin are copied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.blocks import finish_block
from irexec.backend.chain import Epilogue
from irexec.backend.eligibility import chain_keeps_type, has_elements, working_type
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.reduction import reduction_over
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.reference.pooling import lowest, window_populations
from irexec.reference.windows import SlidingWindows, effective_kernel_size

# Bytes of a padded block.
_CACHED = 256 << 10
# Nanoseconds: of a call of a NumPy function, of an element of a contiguous row combined, copied, copied with strides.
_CALL, _PASS, _COPY, _STRIDED = 1200.0, 0.16, 0.3, 0.6


@kernels("MaxPool", since=1)
@kernels("MaxPool", since=8)
@kernels("MaxPool", since=14)
def max_pool(task: Task) -> Iterator[Candidate]:
    """Candidates for any type that NumPy has, if nothing reads the indices."""
    element = task.inputs[0].element
    if element is None or not element.native or element.carrier.kind not in "fiu" or any(task.wanted[1:]):
        return
    if has_elements(task) and chain_keeps_type(task):
        dtype = element.carrier
        sizes, function = _Sizes.of(task, windows_of(task), dtype), np.fmax if dtype.kind == "f" else np.maximum
        yield Candidate(sizes.cost, partial(Pool, task, sizes, function, lowest(dtype)))


@kernels("AvgPool", since=1)
@kernels("AvgPool", since=14)
@kernels("AvgPool", since=16)
def avg_pool(task: Task) -> Iterator[Candidate]:
    """Candidates for float types; a window over all data is a mean over axes."""
    dtype = working_type(task)
    if dtype is None or not has_elements(task) or not chain_keeps_type(task):
        return
    windows = windows_of(task)
    if windows.kernel == task.shape(0)[2:] and not any(map(any, windows.pads)):
        yield from reduction_over(task, tuple(range(2, len(task.shape(0)))), "ReduceMean", keep=True)
    else:
        sizes = _Sizes.of(task, windows, dtype)
        yield Candidate(sizes.cost, partial(Pool, task, sizes, np.add, 0, factors(task, windows, dtype)))


def windows_of(task: Task) -> SlidingWindows:
    """The windows of a pooling task."""
    windows: SlidingWindows = task.attributes["attributes"].windows(task.shape(0)[2:])
    return windows


def factors(task: Task, windows: SlidingWindows, dtype: np.dtype) -> np.ndarray:
    """Factors of the sums of windows (counts...), or one factor for all: one over the number of points that count."""
    if not task.attributes["attributes"].exclude_pad and any(map(any, windows.pads)):
        return np.array(1 / math.prod(windows.kernel), dtype)
    counts = window_populations(task.shape(0)[2:], windows)
    factors = np.where(counts > 0, 1 / np.maximum(counts, 1), 0).astype(dtype)
    return factors if np.ptp(factors) else factors.reshape(-1)[0]


@dataclass(frozen=True)
class _Sizes:
    """Blocks of channels of an image.

    Attributes:
        dtype: the type to compute in.
        padded: the spatial sizes with padding, and with the part of the last windows beyond it (rounding up).
        axes: of a block (channels, spatial...), from the outermost to the innermost in memory.
        step: channels of a block.
    """

    dtype: np.dtype
    windows: SlidingWindows
    images: int
    channels: int
    sizes: tuple[int, ...]
    padded: tuple[int, ...]
    axes: tuple[int, ...]
    step: int

    @staticmethod
    def of(task: Task, windows: SlidingWindows, dtype: np.dtype) -> _Sizes:
        images, channels, *sizes = task.shape(0)
        rank, order = len(sizes), task.input_orders[0]
        axes = (*range(1, rank + 1), 0) if order is not None and order[-1] == 1 else tuple(range(rank + 1))
        padded = _padded(windows, sizes)
        step = max(1, _CACHED // (math.prod(padded) * dtype.itemsize))
        # Rows of channels stay long where they are the innermost axis.
        step = min(channels, max(step, 32 if axes[-1] == 0 else 1))
        return _Sizes(dtype, windows, images, channels, tuple(sizes), padded, axes, step)

    @property
    def slices(self) -> int:
        """Number of blocks of an image."""
        return -(-self.channels // self.step)

    @property
    def copies(self) -> bool:
        """Whether data is copied between its pads."""
        return self.padded != self.sizes

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        planes, passes = self.images * self.channels, sum(map(_passes, self.windows.kernel))
        elements, results = planes * math.prod(self.padded), planes * math.prod(self.windows.counts)
        calls = self.images * self.slices * (passes + 6) * _CALL
        return calls + elements * (passes * _PASS + _COPY * self.copies) + results * _STRIDED


def _padded(w: SlidingWindows, sizes: Sequence[int]) -> tuple[int, ...]:
    axes = zip(sizes, w.kernel, w.strides, w.dilations, w.pads_begin, w.pads_end, w.counts, strict=True)
    return tuple(
        max(begin + size + end, (count - 1) * stride + effective_kernel_size(kernel, dilation))
        for size, kernel, stride, dilation, begin, end, count in axes
    )


class Pool(Kernel):
    """Windows reduced by a function of two arguments.

    Args:
        function: combines two points.
        start: the value of padding.
        factors: factors of the results, (counts...).
    """

    def __init__(
        self, task: Task, sizes: _Sizes, function: Any, start: float, factors: np.ndarray | None = None
    ) -> None:
        super().__init__(algorithm="pooling by shifted rows", reads=(0,), records=True)
        self._windows, self._dtype, self._function, self._start, self._factors = (
            sizes.windows,
            sizes.dtype,
            function,
            start,
            factors,
        )
        self._images, self._channels, self._sizes = sizes.images, sizes.channels, sizes.sizes
        self._axes, self._step, self._slices = sizes.axes, sizes.step, sizes.slices
        self._padded, self._copies = sizes.padded, sizes.copies
        self._own = len(task.inputs)
        self._epilogue = Epilogue(task.chain, task.output_shape(), ((0,), *((axis + 1,) for axis in self._axes)))
        self.splits = self._images * self._slices > 1
        row, results = math.prod(sizes.padded) * sizes.dtype.itemsize, self._step * math.prod(sizes.windows.counts)
        self.workspace = 5 * self._step * row + results * sizes.dtype.itemsize + 512 + self._epilogue.workspace(results)

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        x, out = inputs[0], outputs[0]
        operands = context.bind(self._epilogue, inputs[self._own :])

        def block(index: int, scratch: Scratch) -> None:
            image, part = divmod(index, self._slices)
            channels = slice(part * self._step, min(self._channels, (part + 1) * self._step))
            target = out[image, channels].transpose(self._axes)
            result = self._reduced(x[image, channels].transpose(self._axes), scratch)
            region = [slice(0, size) for size in target.shape]
            region[self._axes.index(0)] = channels
            if self._dtype == target.dtype:
                scratch.do(np.copyto, target, result)
                result = target
            else:
                wide = scratch.take(result.shape, self._dtype)
                scratch.do(np.copyto, wide, result)
                result = wide
            self._scaled(result, scratch)
            finish_block(result, target, self._epilogue, operands, (slice(image, image + 1), *region), scratch)

        context.parallel(self._images * self._slices, block)

    def _reduced(self, x: np.ndarray, scratch: Scratch) -> np.ndarray:
        """The results for a block (channels and spatial axes as they lie in memory)."""
        whole = self._with_padding(x, scratch)
        flat, step = whole.reshape(-1), 1
        spare = [scratch.take(flat.shape, self._dtype) for _ in range(4)]
        w = self._windows
        used = [slice(None)] * whole.ndim
        for position in reversed(range(whole.ndim)):
            axis = self._axes[position] - 1
            if axis >= 0:
                flat = _combined(self._function, flat, w.kernel[axis], step * w.dilations[axis], spare, scratch)
                used[position] = slice(0, (w.counts[axis] - 1) * w.strides[axis] + 1, w.strides[axis])
            step *= whole.shape[position]
        return flat.reshape(whole.shape)[tuple(used)]

    def _with_padding(self, x: np.ndarray, scratch: Scratch) -> np.ndarray:
        """The block in the type to compute in, C-contiguous, with its padding."""
        if not self._copies and x.dtype == self._dtype and x.flags.c_contiguous:
            return x
        sizes = (x.shape[self._axes.index(0)], *self._padded)
        whole = scratch.take([sizes[axis] for axis in self._axes], self._dtype)
        inner = [slice(None)] * whole.ndim
        for axis, (begin, size) in enumerate(zip(self._windows.pads_begin, self._sizes, strict=True)):
            position = self._axes.index(axis + 1)
            inner[position] = slice(begin, begin + size)
            outside = inner[:position]
            for part in (slice(0, begin), slice(begin + size, None)):
                scratch.do(whole[(*outside, part)].fill, self._start)
        scratch.do(np.copyto, whole[tuple(inner)], x)
        return whole

    def _scaled(self, target: np.ndarray, scratch: Scratch) -> None:
        """Turn sums into means, in place."""
        factors = self._factors
        if factors is not None:
            if factors.ndim:
                # Without the axis of the channels, the spatial axes keep their order.
                factors = np.expand_dims(factors, self._axes.index(0))
            scratch.do(np.multiply, target, factors, out=target)


def _combined(
    function: Any, points: np.ndarray, count: int, step: int, spare: Sequence[np.ndarray], scratch: Scratch
) -> np.ndarray:
    """``count`` values of a row, ``step`` apart, combined from each position on.

    The last positions, for which the row is too short, hold anything. The result is one of the spare arrays, or
    ``points``.
    """
    size, power, result, covered = points.size, points, None, 0
    length = 1
    while True:
        if count & length:
            if result is None:
                result = power
            else:
                kept = size - covered * step
                target = _free(spare, points, power) if result is points or result is power else result
                scratch.do(function, result[:kept], power[covered * step :], out=target[:kept])
                result = target
            covered += length
        if covered == count and result is not None:
            return result
        kept = size - length * step
        target = _free(spare, points, result, power)
        scratch.do(function, power[:kept], power[length * step :], out=target[:kept])
        power, length = target, 2 * length


def _free(spare: Sequence[np.ndarray], *used: np.ndarray | None) -> np.ndarray:
    """An array that is none of these."""
    return next(array for array in spare if not any(array is one for one in used))


def _passes(count: int) -> int:
    """The functions that combine so many points."""
    return count.bit_length() - 1 + count.bit_count() - 1
