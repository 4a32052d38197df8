"""Depthwise convolution with the channels last in memory: for each point of the kernel one multiplication and one addition.

Both run over long rows of (pixels, channels). A point of the kernel is left out for the output positions for which it
lies in the padding, so nothing is padded. Any number of spatial axes, strides and dilations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from irexec.backend.blocks import finish_block, result_block
from irexec.backend.chain import Epilogue
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Context, Kernel, Task
from irexec.backend.scratch import Scratch
from irexec.reference.windows import SlidingWindows

# Bytes of sums that a block works on; products of the same size lie beside them in the L2 cache.
_CACHED = 192 << 10
# Bytes of weights repeated for each pixel of a row, up to which rows of pixels are faster than single pixels.
_REPEATED = 384 << 10
# Nanoseconds: of a call of a NumPy function, of its inner loop, of a weight at an element, of a transposed element.
_CALL, _LOOP, _TAP, _TRANSPOSE = 1500.0, 40.0, 0.31, 1.1

Slices = tuple[slice, ...]


@dataclass(frozen=True)
class Tap:
    """A point of the kernel.

    Attributes:
        index: its position in the kernel.
        out: the output positions along each axis for which it reads inside the data.
        data: the positions of the data that it reads for them.
    """

    index: tuple[int, ...]
    out: Slices
    data: Slices

    @property
    def covers(self) -> int:
        """The number of output positions for which it reads inside the data."""
        return math.prod(part.stop - part.start for part in self.out)


def taps_inside(windows: SlidingWindows, sizes: Sequence[int], rows: slice) -> list[Tap]:
    """The points of the kernel that read inside the data for some position of an output block, the one that does for most first.

    Args:
        rows: the positions of the block along the first spatial axis; along the others it has all.
    """
    found = []
    for index in itertools.product(*map(range, windows.kernel)):
        out, data = [], []
        for axis, tap in enumerate(index):
            stride, shift = windows.strides[axis], tap * windows.dilations[axis] - windows.pads_begin[axis]
            low, high = (rows.start, rows.stop) if axis == 0 else (0, windows.counts[axis])
            first = max(low, -(shift // stride))
            last = max(first, min(high, (sizes[axis] - 1 - shift) // stride + 1))
            out.append(slice(first - low, last - low))
            data.append(slice(first * stride + shift, max(0, (last - 1) * stride + shift + 1), stride))
        if all(part.start < part.stop for part in out):
            found.append(Tap(index, tuple(out), tuple(data)))
    return sorted(found, key=lambda tap: -tap.covers)


class DepthwiseTaps(Kernel):
    """Depthwise convolution of data with the channels last; one input and one output channel in each group."""

    def __init__(self, task: Task, windows: SlidingWindows, dtype: np.dtype) -> None:
        super().__init__(reads=(0,), runs_chain=True)
        self._dtype, self._windows, self._source = dtype, windows, task.constants[1]
        self._images, self._channels, *self._sizes = task.shape(0)
        self._last = (0, *range(2, len(self._sizes) + 2), 1)
        rows, *inner = self._last[1:-1]
        self._epilogue = Epilogue(task.chain, task.output_shape(), ((0,), (rows, *inner), (1,)))
        self._split()
        self.algorithm = "depthwise by weights, channels last"
        self.cost = self._estimate(task.input_orders[0] != self._last, task.output_orders[0] != self._last)
        self.splits = self._images * len(self._blocks) > 1
        self.workspace = self._bytes(task)

    def _split(self) -> None:
        """Blocks of rows along the first spatial axis, and how many pixels of a row the weights are repeated for."""
        counts, itemsize = self._windows.counts, self._dtype.itemsize
        self._row = math.prod(counts[1:])
        step = max(1, _CACHED // (self._row * self._channels * itemsize))
        self._blocks = [slice(first, min(first + step, counts[0])) for first in range(0, counts[0], step)]
        self._taps = [taps_inside(self._windows, self._sizes, rows) for rows in self._blocks]
        one_row = math.prod(self._windows.kernel) * counts[-1] * self._channels * itemsize
        self._repeats = counts[-1] if self._windows.strides[-1] == 1 and one_row <= _REPEATED else 1

    def _estimate(self, moves_input: bool, moves_output: bool) -> float:
        elements = sum(tap.covers for taps in self._taps for tap in taps) * self._channels
        loops = 2 * elements / (self._repeats * self._channels)
        calls = 2 * sum(map(len, self._taps)) + 4 * len(self._blocks)
        moved = math.prod(self._sizes) * moves_input + math.prod(self._windows.counts) * moves_output
        return self._images * (elements * _TAP + loops * _LOOP + calls * _CALL + moved * self._channels * _TRANSPOSE)

    def _bytes(self, task: Task) -> int:
        rows = max(block.stop - block.start for block in self._blocks)
        result = rows * self._row * self._channels
        moved = math.prod(self._sizes) * self._channels
        return (2 * result + moved) * self._dtype.itemsize + 256 + self._epilogue.workspace(result)

    def pack(self, store: ConstantStore) -> None:
        assert self._source is not None
        self._weights = store.get([self._source], ("channels last", self._repeats, self._dtype.str), self._repeated)

    def _repeated(self, weights: np.ndarray) -> np.ndarray:
        """(C, 1, 1, kernel...) to (kernel..., repeats * C)."""
        last = np.moveaxis(weights[:, 0, 0].astype(self._dtype, copy=False), 0, -1)
        return np.ascontiguousarray(np.tile(last, self._repeats))

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: Context) -> None:
        x, out = inputs[0].transpose(self._last), outputs[0].transpose(self._last)
        operands = self._epilogue.bind(inputs[2:])
        if x.dtype != self._dtype or not _is_packed(x):
            x = np.ascontiguousarray(x, self._dtype)

        def block(index: int, scratch: Scratch) -> None:
            image, number = divmod(index, len(self._blocks))
            rows = self._blocks[number]
            target = out[image, rows]
            result = result_block(target, self._dtype, target.ndim, scratch)
            mark = scratch.mark()
            self._convolve(x[image], self._taps[number], result, scratch)
            scratch.release(mark)
            pixels = slice(rows.start * self._row, rows.stop * self._row)
            region = (slice(image, image + 1), pixels, slice(0, self._channels))
            finish_block(result, target, self._epilogue, operands, region, scratch)

        context.parallel(self._images * len(self._blocks), block)

    def _convolve(self, x: np.ndarray, taps: Sequence[Tap], out: np.ndarray, scratch: Scratch) -> None:
        """(spatial..., C) to a block of rows (rows, counts..., C)."""
        products = scratch.take((out.size,), self._dtype)
        rest = list(taps)
        if rest and rest[0].covers * self._channels == out.size:
            tap = rest.pop(0)
            np.multiply(self._merged(x[tap.data]), self._weights[tap.index][: self._length(tap)], out=self._merged(out))
        else:
            out[...] = 0
        for tap in rest:
            part, data = self._merged(out[tap.out]), self._merged(x[tap.data])
            product = products[: data.size].reshape(data.shape)
            np.multiply(data, self._weights[tap.index][: self._length(tap)], out=product)
            np.add(part, product, out=part)

    def _length(self, tap: Tap) -> int:
        return (tap.out[-1].stop - tap.out[-1].start if self._repeats > 1 else 1) * self._channels

    def _merged(self, x: np.ndarray) -> np.ndarray:
        """The last two axes as one where the weights are repeated for a row of pixels."""
        return x.reshape(*x.shape[:-2], -1) if self._repeats > 1 else x


def _is_packed(x: np.ndarray) -> bool:
    """Whether the elements of a row (the last two axes) follow each other."""
    return x.strides[-1] == x.itemsize and (x.shape[-2] == 1 or x.strides[-2] == x.itemsize * x.shape[-1])
