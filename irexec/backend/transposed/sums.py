"""Transposed convolution by one product of every pixel with every tap, and sums of the taps of each phase.

The data is padded by the pixels that the taps of the first and last values meet beyond it. Then every tap of a phase is
a run of memory as long as the image, which begins a few pixels later for each of them, and the sums run over whole
images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.convolution.filter_weights import Arrange, FilterWeights
from irexec.backend.convolution.geometry import is_channels_last, split
from irexec.backend.convolution.regions import Region
from irexec.backend.kernel import Task
from irexec.backend.products import multiply, pixel_product_cost
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import AxisPhase, TransposedGeometry
from irexec.backend.transposed.row_blocks import RowBlocks

# Bytes of the values of all taps of a block.
_PARTS = 1 << 20

Phase = tuple[AxisPhase, ...]


class TapSums(RowBlocks):
    """Blocks of output channels, and of the first spatial axis of the phases where the images are large."""

    def __init__(self, task: Task, geometry: TransposedGeometry, arrange: Arrange | None = None) -> None:
        g = geometry
        weights = FilterWeights(task.constants[1], "taps", _matrix, g.weights, g.computed, share=False, arrange=arrange)
        super().__init__(task, g, "product and sums of taps", weights)
        self.phases = [phase for phase in g.phases if all(axis.taps for axis in phase)]
        self.empty = [phase for phase in g.phases if not all(axis.taps for axis in phase)]
        self.low, self.high = self._margins()
        self.rows, self.parts = self._blocks(task.threads)
        self.channels = [
            slice(k + part.start, k + part.stop)
            for k in range(0, g.groups * g.outputs, g.outputs)
            for part in self.parts
        ]
        self.workspace = self._workspace()
        self.cost = self._cost(is_channels_last(task.input_orders[0]))

    def _margins(self) -> tuple[list[int], list[int]]:
        """The pixel of a phase's value 0 along each axis, and the number of further pixels beyond its values."""
        low, high = [], []
        for axis in range(len(self.geometry.kernel)):
            phases = [phase[axis] for phase in self.phases]
            first = min((p.first for p in phases), default=0)
            low.append(first)
            high.append(max((p.first + p.step * (len(p.taps) - 1) for p in phases), default=0) - first)
        return low, high

    @property
    def _counts(self) -> list[int]:
        """Maximum size of a phase along each axis."""
        return [
            -(-count // stride)
            for count, stride in zip(self.geometry.windows.counts, self.geometry.windows.strides, strict=True)
        ]

    def _read(self, rows: int) -> list[int]:
        """The sizes of the padded data for so many rows of the phases."""
        return [size + more for size, more in zip((rows, *self._counts[1:]), self.high, strict=True)]

    def _blocks(self, threads: int) -> tuple[list[slice], list[slice]]:
        g, maximum = self.geometry, self._counts[0]
        per_channel = g.points * math.prod(self._read(maximum)) * g.computed.itemsize
        rows = split(maximum, maximum)
        if per_channel > _PARTS // 2:
            rows = split(maximum, max(1, 4 * self.high[0], maximum * (_PARTS // 2) // per_channel))
            per_channel = g.points * math.prod(self._read(rows[0].stop)) * g.computed.itemsize
        parts = 1 if threads == 1 or g.macs < 10_000_000 else threads
        wanted = min(max(1, _PARTS // per_channel), -(-g.outputs // parts))
        return rows, split(g.outputs, wanted)

    def _workspace(self) -> int:
        g = self.geometry
        rows = max(part.stop - part.start for part in self.rows)
        channels = max(part.stop - part.start for part in self.parts)
        read = math.prod(self._read(rows))
        elements = g.inputs * read + channels * (g.points + 2) * read
        whole = min(rows * g.windows.strides[0], g.windows.counts[0]) * math.prod(g.windows.counts[1:])
        return elements * g.computed.itemsize + self.output.workspace(channels, whole) + 512

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

    def _cost(self, data_last: bool) -> float:
        g = self.geometry
        pixels = math.prod(self._read(self.rows[0].stop)) * len(self.rows)
        product = (
            pixel_product_cost(g.outputs * g.points, g.inputs, pixels) + (len(self.parts) - 1) * g.inputs * pixels * 0.3
        )
        summed = g.outputs * g.points * pixels * 0.4 + g.outputs * math.prod(g.windows.counts) * (
            2.5 if self.output.channels_last else 0.6
        )
        blocks = g.images * g.groups * len(self.rows) * len(self.parts)
        read = g.inputs * pixels * len(self.parts) * (0.8 if data_last else 0.2)
        return g.images * g.groups * (product + summed + read) + blocks * 3000 * (len(self.phases) + 1)


def _matrix(weights: np.ndarray) -> np.ndarray:
    """(groups, outputs * points, inputs)."""
    groups, inputs = weights.shape[:2]
    return np.ascontiguousarray(weights.reshape(groups, inputs, -1).swapaxes(1, 2))
