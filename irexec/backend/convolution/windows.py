"""Depthwise convolution with the channels last in memory: sums over windows, whose inner loop runs over the channels.

NumPy's einsum multiplies and adds in one go over views of the padded data. Any number of spatial axes, strides and
dilations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from irexec.backend.blocks import finish_block
from irexec.backend.chain import Epilogue
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import longest, split
from irexec.backend.kernel import SHARES, Kernel, KernelContext, Task
from irexec.backend.scratch import Scratch
from irexec.reference.windows import SlidingWindows

# Bytes of sums that a block works on; its data lie beside them in the L2 cache.
_CACHED = 384 << 10
# Elements of an inner loop at most, if it computes more than one position: its sums stay in the L1 cache.
_INNER = 2048
# Multiplications that are worth several shares.
_WORTH = 400_000
# Nanoseconds: of a block's calls, of an inner loop, of a weight at an element, of an element that is copied or
# transposed.
_CALLS, _LOOP, _WEIGHT, _COPY, _TRANSPOSE = 20_000.0, 15.0, 0.21, 0.15, 0.6


def _together(channels: int, windows: SlidingWindows) -> int:
    """Number of neighbours in a row of the result whose channels one inner loop computes, with the weights repeated."""
    count = windows.counts[-1]
    if len(windows.counts) == 1 or windows.strides[-1] != 1:
        return 1
    return max((n for n in range(1, min(count, _INNER // channels) + 1) if count % n == 0), default=1)


def _sums_cost(channels: int, windows: SlidingWindows) -> float:
    """Nanoseconds of the sums over windows for one image."""
    loop = _LOOP / _together(channels, windows)
    return math.prod(windows.counts) * math.prod(windows.kernel) * (loop + _WEIGHT * channels)


def _blocks(task: Task, windows: SlidingWindows, dtype: np.dtype, shares: int) -> list[slice]:
    """The blocks of rows of the result."""
    images, channels, counts = *task.shape(0)[:2], windows.counts
    step = max(1, _CACHED // (math.prod(counts[1:]) * channels * dtype.itemsize))
    is_worth_it = math.prod(counts) * math.prod(windows.kernel) * channels >= _WORTH
    if images == 1 and is_worth_it:
        step = min(step, -(-counts[0] // shares))
    return split(counts[0], step, shares)


class DepthwiseWindows(Kernel):
    """Depthwise convolution of data with the channels last; one input and one output channel in each group."""

    def __init__(self, task: Task, windows: SlidingWindows, dtype: np.dtype) -> None:
        super().__init__("depthwise by windows, channels last", reads=(0,), records=True)
        self._dtype, self._windows, self._source = dtype, windows, task.constants[1]
        self._images, self._channels, *self._sizes = task.shape(0)
        self._last = (0, *range(2, len(self._sizes) + 2), 1)
        rows, *inner = self._last[1:-1]
        self._epilogue = Epilogue(task.chain, task.output_shape(), ((0,), (rows, *inner), (1,)))
        self._row, self._together = math.prod(windows.counts[1:]), _together(self._channels, windows)
        self._blocks = _blocks(task, windows, dtype, task.shares)
        step = longest(self._blocks)
        self.splits = self._images * len(self._blocks) > 1
        covered = math.prod(self._covered(slice(0, step))) * self._channels
        result = step * self._row * self._channels
        self.workspace = (2 * result + covered + math.prod(self._sizes) * self._channels) * dtype.itemsize + 256
        self.workspace += self._epilogue.workspace(result)

    @staticmethod
    def estimate(task: Task, windows: SlidingWindows, dtype: np.dtype) -> float:
        """The cost of the kernel of these arguments."""
        images, channels, *sizes = task.shape(0)
        last = (0, *range(2, len(sizes) + 2), 1)
        pixels, data = math.prod(windows.counts), math.prod(sizes) * channels
        moved = data * (_COPY + (task.input_orders[0] != last) * _TRANSPOSE)
        moved += pixels * channels * (task.output_orders[0] != last) * _TRANSPOSE
        return images * (_sums_cost(channels, windows) + moved + len(_blocks(task, windows, dtype, SHARES)) * _CALLS)

    def _covered(self, rows: slice) -> list[int]:
        """Number of positions of the padded data along each axis that the windows of a block of rows cover."""
        w = self._windows
        counts = [rows.stop - rows.start, *w.counts[1:]]
        return [
            (n - 1) * s + (k - 1) * d + 1 for n, k, s, d in zip(counts, w.kernel, w.strides, w.dilations, strict=True)
        ]

    def pack(self, store: ConstantStore) -> None:
        assert self._source is not None
        self._weights = store.get([self._source], ("channels last", self._dtype.str, self._together), self._moved)

    def _moved(self, weights: np.ndarray) -> np.ndarray:
        """(C, 1, 1, kernel...) to (kernel..., C), repeated for the positions of an inner loop."""
        return np.tile(np.ascontiguousarray(np.moveaxis(weights[:, 0, 0], 0, -1), self._dtype), self._together)

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        x, out = inputs[0].transpose(self._last), outputs[0].transpose(self._last)
        operands = context.bind(self._epilogue, inputs[2:])

        def block(index: int, scratch: Scratch) -> None:
            image, number = divmod(index, len(self._blocks))
            rows = self._blocks[number]
            target = out[image, rows]
            is_direct = target.dtype == self._dtype and target.flags.c_contiguous
            result = target if is_direct else scratch.take(target.shape, self._dtype)
            mark = scratch.mark()
            self._convolve(x[image], rows, result, scratch)
            scratch.release(mark)
            pixels = slice(rows.start * self._row, rows.stop * self._row)
            finish_block(
                result,
                target,
                self._epilogue,
                operands,
                (slice(image, image + 1), pixels, slice(0, self._channels)),
                scratch,
            )

        context.parallel(self._images * len(self._blocks), block)

    def _convolve(self, x: np.ndarray, rows: slice, out: np.ndarray, scratch: Scratch) -> None:
        """(spatial..., C) to a block of rows (rows, counts..., C)."""
        data = self._padded(x, rows, scratch)
        w = self._windows
        steps = data.strides[:-1]
        outer = [step * s for step, s in zip(steps, w.strides, strict=True)]
        outer[-1] *= self._together
        strides = (*outer, data.strides[-1], *(step * d for step, d in zip(steps, w.dilations, strict=True)))
        out = out.reshape(*out.shape[:-2], -1, self._together * self._channels)
        view = np.ndarray((*out.shape, *w.kernel), data.dtype, data, 0, strides)
        axes, kept = list(range(view.ndim)), out.ndim
        scratch.do(np.einsum, view, axes, self._weights, [*axes[kept:], kept - 1], axes[:kept], out=out)

    def _padded(self, x: np.ndarray, rows: slice, scratch: Scratch) -> np.ndarray:
        """The data that the windows of a block of rows cover, with zeros where they reach beyond it."""
        starts = [rows.start * self._windows.strides[0], *(0 for _ in self._sizes[1:])]
        covered = self._covered(rows)
        padded = scratch.take((*covered, self._channels), self._dtype)
        inside: list[slice] = []
        source: list[slice] = []
        for start, size, length, pad in zip(starts, self._sizes, covered, self._windows.pads_begin, strict=True):
            first = start - pad
            low, high = max(0, -first), max(0, min(length, size - first))
            high = max(low, high)
            for beyond in (slice(0, low), slice(high, length)):
                if beyond.start < beyond.stop:
                    scratch.do(padded[(*inside, beyond)].fill, 0)
            inside.append(slice(low, high))
            source.append(slice(first + low, first + high))
        scratch.do(np.copyto, padded[tuple(inside)], x[tuple(source)])
        return padded
