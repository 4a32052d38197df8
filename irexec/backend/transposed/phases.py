"""Transposed convolution by phases: each one is a convolution with stride 1, computed by columns and one product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from irexec.backend.convolution.filter_weights import Arrange, FilterWeights
from irexec.backend.convolution.geometry import longest, split
from irexec.backend.convolution.regions import Region
from irexec.backend.convolution.rows import multiply_groups
from irexec.backend.kernel import SHARES, Task
from irexec.backend.products import multiply, panels, pixel_product_cost
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import AxisPhase, TransposedGeometry
from irexec.backend.transposed.row_blocks import Blocks, RowBlocks
from irexec.reference.windows import windows

# Bytes of the columns of a block.
_COLUMNS = 1 << 20

Phase = tuple[AxisPhase, ...]


class PhaseBlocks(Blocks):
    """Blocks of the first spatial axis of the phases, or of output channels where the images are small."""

    @cached_property
    def rows(self) -> list[slice]:
        g, phases = self.geometry, self.geometry.phases
        taps = max(math.prod(len(axis.taps) for axis in phase) for phase in phases)
        inner = max(math.prod(axis.count for axis in phase[1:]) for phase in phases)
        per_row = g.groups * g.inputs * taps * inner * g.computed.itemsize
        return split(max(phase[0].count for phase in phases), max(1, _COLUMNS // max(1, per_row)))

    @cached_property
    def channels(self) -> list[slice]:
        g = self.geometry
        if g.groups > 1:
            return [slice(0, g.groups * g.outputs)]
        is_whole = self.channels_last or len(self.rows) > 1 or g.macs < 10_000_000
        parts = 1 if is_whole else min(SHARES, max(1, g.outputs // 32))
        return split(g.outputs, -(-g.outputs // parts))

    @property
    def scratch(self) -> int:
        g, rows = self.geometry, longest(self.rows)
        columns, read, values = 0, 0, 0
        for phase in g.phases:
            taps = math.prod(len(axis.taps) for axis in phase)
            pixels = rows * math.prod(axis.count for axis in phase[1:])
            columns, values = max(columns, g.inputs * taps * pixels), max(values, g.outputs * pixels)
            read = max(read, g.inputs * math.prod(_sizes(phase, min(rows, phase[0].count))))
        return g.groups * (columns + read + values) * g.computed.itemsize

    def cost(self, data_last: bool, result_last: bool) -> float:
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


class PhaseColumns(RowBlocks):
    """The convolution of each phase by columns.

    Args:
        arrange: for a filter whose axes are in another order.
    """

    def __init__(self, task: Task, blocks: PhaseBlocks, arrange: Arrange | None = None) -> None:
        g = blocks.geometry
        self.channels_last, self.phases = blocks.channels_last, g.phases
        key = ("phases", self.channels_last, *self._taps())
        weights = FilterWeights(
            task.constants[1], key, self._matrices, g.weights, g.computed, share=False, arrange=arrange
        )
        algorithm = "phases by columns, channels last" if self.channels_last else "phases by columns"
        super().__init__(task, blocks, algorithm, weights)

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

    def compute(
        self, scratch: Scratch, image: np.ndarray, matrices: Any, rows: slice, channels: slice, result: np.ndarray
    ) -> None:
        into = result.reshape(self.geometry.groups, -1, *self.with_sizes(result).shape[1:])
        for phase, matrix in zip(self.phases, matrices, strict=True):
            mark = scratch.mark()
            # Channels last or of several groups there is one range of channels.
            self._phase(scratch, image, phase, matrix if self.channels_last else matrix[:, channels], rows, into)
            scratch.release(mark)

    def _phase(
        self, scratch: Scratch, image: np.ndarray, phase: Phase, matrix: np.ndarray, rows: slice, into: np.ndarray
    ) -> None:
        """Compute the rows of one phase, and write them to their positions in (groups, outputs, sizes...)."""
        g = self.geometry
        last = min(rows.stop, phase[0].count)
        if last <= rows.start:
            return
        lengths = [last - rows.start, *(axis.count for axis in phase[1:])]
        steps = zip(phase, g.windows.strides, strict=True)
        target = into[(slice(None), slice(None), *(slice(axis.remainder, None, stride) for axis, stride in steps))]
        if not all(axis.taps for axis in phase):
            scratch.do(target.fill, 0)
            return
        begins = [phase[0].first + rows.start, *(axis.first for axis in phase[1:])]
        kernel, steps_of_taps = [len(axis.taps) for axis in phase], [axis.step for axis in phase]
        columns = columns_of(scratch, image, g, begins, kernel, steps_of_taps, lengths, self.channels_last)
        if self.channels_last:
            values = scratch.take((columns.shape[1], g.groups * g.outputs), g.computed).T
            multiply_groups(scratch, columns, matrix, values)
        else:
            values = scratch.take((g.groups * matrix.shape[1], columns.shape[2]), g.computed)
            if g.groups == 1:
                multiply(scratch, matrix[0], columns[0], values)
            else:
                scratch.do(np.matmul, matrix, columns, out=values.reshape(g.groups, -1, columns.shape[2]))
        scratch.do(np.copyto, target, values.reshape(target.shape))


def columns_of(
    scratch: Scratch,
    image: np.ndarray,
    g: TransposedGeometry,
    begins: Sequence[int],
    kernel: Sequence[int],
    steps: Sequence[int],
    lengths: Sequence[int],
    channels_last: bool,
) -> np.ndarray:
    """Windows of ``kernel`` taps, as (groups, inputs * taps, pixels) or (groups, pixels, taps * inputs)."""
    rank, pixels, depth = len(kernel), math.prod(lengths), g.inputs * math.prod(kernel)
    sizes = [length + step * (taps - 1) for length, step, taps in zip(lengths, steps, kernel, strict=True)]
    data = Region(g.sizes, begins, sizes).of(scratch, image, g.computed, channels_last)
    view = windows(data, kernel, (1,) * rank, steps, lengths)
    if channels_last:
        columns = scratch.take((g.groups, *lengths, *kernel, g.inputs), g.computed)
        by_group = view.reshape(g.groups, g.inputs, *view.shape[1:]) if g.groups > 1 else view[None]
        scratch.do(np.copyto, columns, by_group.transpose(0, *range(2, 2 + 2 * rank), 1))
        return columns.reshape(g.groups, pixels, depth)
    columns = scratch.take((len(image), *kernel, *lengths), g.computed)
    scratch.do(np.copyto, columns, view.transpose(0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank)))
    return columns.reshape(g.groups, depth, pixels)


def _sizes(phase: Phase, rows: int) -> list[int]:
    """The sizes of the data that so many rows of a phase read."""
    lengths = [rows, *(axis.count for axis in phase[1:])]
    return [length + axis.step * max(0, len(axis.taps) - 1) for length, axis in zip(lengths, phase, strict=True)]
