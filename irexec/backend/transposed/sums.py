"""Transposed convolution by one product of every pixel with every tap, and sums of the taps of each phase.

The data is padded by the pixels that the taps of the first and last values meet beyond it. Then every tap of a phase is
a run of memory as long as the image, which begins a few pixels later for each of them, and the sums run over whole
images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from irexec.backend.convolution.filter_weights import Arrange, FilterWeights
from irexec.backend.convolution.geometry import longest, split
from irexec.backend.convolution.regions import Region
from irexec.backend.kernel import SHARES, Task
from irexec.backend.products import multiply, pixel_product_cost
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import AxisPhase
from irexec.backend.transposed.row_blocks import Blocks, RowBlocks

# Bytes of the values of all taps of a block.
_PARTS = 1 << 20

Phase = tuple[AxisPhase, ...]


class TapBlocks(Blocks):
    """Blocks of output channels, and of the first spatial axis of the phases where the images are large."""

    @cached_property
    def phases(self) -> list[Phase]:
        """The phases that have taps."""
        return [phase for phase in self.geometry.phases if all(axis.taps for axis in phase)]

    @cached_property
    def margins(self) -> tuple[list[int], list[int]]:
        """The pixel of a phase's value 0 along each axis, and the number of further pixels beyond its values."""
        low, high = [], []
        for axis in range(len(self.geometry.kernel)):
            phases = [phase[axis] for phase in self.phases]
            first = min((p.first for p in phases), default=0)
            low.append(first)
            high.append(max((p.first + p.step * (len(p.taps) - 1) for p in phases), default=0) - first)
        return low, high

    @cached_property
    def _counts(self) -> list[int]:
        """The maximum number of values of a phase, along each axis."""
        windows = self.geometry.windows
        return [-(-count // stride) for count, stride in zip(windows.counts, windows.strides, strict=True)]

    def read(self, rows: int) -> list[int]:
        """The sizes of the padded data for so many rows of the phases."""
        return [size + more for size, more in zip((rows, *self._counts[1:]), self.margins[1], strict=True)]

    def _channel(self, rows: int) -> int:
        """Bytes of the values of all taps of a channel."""
        return self.geometry.points * math.prod(self.read(rows)) * self.geometry.computed.itemsize

    @cached_property
    def rows(self) -> list[slice]:
        maximum = self._counts[0]
        bytes = self._channel(maximum)
        is_whole = bytes <= _PARTS // 2
        return split(maximum, maximum if is_whole else max(1, 4 * self.margins[1][0], maximum * (_PARTS // 2) // bytes))

    @cached_property
    def parts(self) -> list[slice]:
        """Ranges of the output channels of one group."""
        g = self.geometry
        parts = 1 if g.macs < 10_000_000 else SHARES
        return split(g.outputs, min(max(1, _PARTS // self._channel(self.rows[0].stop)), -(-g.outputs // parts)))

    @property
    def channels(self) -> list[slice]:
        starts = range(0, self.geometry.groups * self.geometry.outputs, self.geometry.outputs)
        return [slice(start + part.start, start + part.stop) for start in starts for part in self.parts]

    @property
    def scratch(self) -> int:
        g, read = self.geometry, math.prod(self.read(longest(self.rows)))
        return (g.inputs + longest(self.parts) * (g.points + 2)) * read * g.computed.itemsize

    def cost(self, data_last: bool, result_last: bool) -> float:
        g, parts = self.geometry, len(self.parts)
        pixels = math.prod(self.read(self.rows[0].stop)) * len(self.rows)
        product = pixel_product_cost(g.outputs * g.points, g.inputs, pixels) + (parts - 1) * g.inputs * pixels * 0.3
        written = g.outputs * math.prod(g.windows.counts) * (2.5 if result_last else 0.6)
        summed = g.outputs * g.points * pixels * 0.4 + written
        read = g.inputs * pixels * parts * (0.8 if data_last else 0.2)
        blocks = g.images * g.groups * len(self.rows) * parts
        return g.images * g.groups * (product + summed + read) + blocks * 3000 * (len(self.phases) + 1)


class TapSums(RowBlocks):
    """One product of every pixel with every tap of some channels, and sums of the taps of each phase."""

    def __init__(self, task: Task, blocks: TapBlocks, arrange: Arrange | None = None) -> None:
        g = blocks.geometry
        weights = FilterWeights(task.constants[1], "taps", _matrix, g.weights, g.computed, share=False, arrange=arrange)
        super().__init__(task, blocks, "product and sums of taps", weights)
        self.phases, self._read, self.low = blocks.phases, blocks.read, blocks.margins[0]
        self.empty = [phase for phase in g.phases if not all(axis.taps for axis in phase)]

    def compute(
        self, scratch: Scratch, image: np.ndarray, matrices: Any, rows: slice, channels: slice, result: np.ndarray
    ) -> None:
        g = self.geometry
        group, first = divmod(channels.start, g.outputs)
        matrix = matrices[group, first * g.points : (first + len(result)) * g.points]
        self._rows(scratch, image.reshape(g.groups, g.inputs, *g.sizes)[group], matrix, rows, self.with_sizes(result))

    def _rows(self, scratch: Scratch, image: np.ndarray, matrix: np.ndarray, rows: slice, into: np.ndarray) -> None:
        """Compute the rows of all phases, and write them to (outputs, sizes...)."""
        g = self.geometry
        for phase in self.empty:
            scratch.do(self._target(into, phase).fill, 0)
        if not self.phases:
            return
        read = self._read(rows.stop - rows.start)
        area = Region(g.sizes, [self.low[0] + rows.start, *self.low[1:]], read)
        data = area.of(scratch, image, g.computed, False)
        if not data.flags.c_contiguous:
            copy = scratch.take(data.shape, g.computed)
            scratch.do(np.copyto, copy, data)
            data = copy
        pixels = math.prod(read)
        parts = scratch.take((len(into), *g.kernel, pixels), g.computed)
        multiply(scratch, matrix, data.reshape(g.inputs, pixels), parts.reshape(-1, pixels))
        for phase in self.phases:
            mark = scratch.mark()
            target = self._target(into, phase)
            summed = self._sum(scratch, parts, phase, read)
            scratch.do(np.copyto, target, summed[(slice(None), *(slice(0, size) for size in target.shape[1:]))])
            scratch.release(mark)

    def _target(self, into: np.ndarray, phase: Phase) -> np.ndarray:
        steps = zip(phase, self.geometry.windows.strides, strict=True)
        return into[(slice(None), *(slice(axis.remainder, None, stride) for axis, stride in steps))]

    def _sum(self, scratch: Scratch, parts: np.ndarray, phase: Phase, read: Sequence[int]) -> np.ndarray:
        """The sum over a phase's taps as (outputs, sizes of the padded data...), undefined beyond the phase."""
        strides = [math.prod(read[axis + 1 :]) for axis in range(len(read))]
        pieces = []
        for taps in np.ndindex(*(len(axis.taps) for axis in phase)):
            offset = 0
            for position, axis, low, stride in zip(taps, phase, self.low, strides, strict=True):
                offset += (axis.first + axis.step * position - low) * stride
            tap = tuple(axis.taps[position] for position, axis in zip(taps, phase, strict=True))
            pieces.append((offset, parts[(slice(None), *tap)]))
        pixels = math.prod(read)
        whole = scratch.take((len(parts), pixels), self.geometry.computed)
        # Nothing after the last value of a phase is needed, so the piece that begins last decides the length.
        length = pixels - max(offset for offset, _ in pieces)
        summed = whole[:, :length]
        (first, a), *others = pieces
        if not others:
            scratch.do(np.copyto, summed, a[:, first : first + length])
        for offset, b in others[:1]:
            scratch.do(np.add, a[:, first : first + length], b[:, offset : offset + length], out=summed)
        for offset, b in others[1:]:
            scratch.do(np.add, summed, b[:, offset : offset + length], out=summed)
        return whole.reshape(len(parts), *read)


def _matrix(weights: np.ndarray) -> np.ndarray:
    """(groups, outputs * points, inputs)."""
    groups, inputs = weights.shape[:2]
    return np.ascontiguousarray(weights.reshape(groups, inputs, -1).swapaxes(1, 2))
