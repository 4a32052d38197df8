"""Transposed convolution whose phases read the same windows of the data, shifted.

The windows are copied once for all phases.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irexec.backend.convolution.filter_weights import Arrange, FilterWeights
from irexec.backend.convolution.geometry import is_channels_last, split
from irexec.backend.convolution.rows import multiply_groups
from irexec.backend.kernel import Task
from irexec.backend.products import multiply, panels, pixel_product_cost
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import TransposedGeometry
from irexec.backend.transposed.phases import columns_of
from irexec.backend.transposed.row_blocks import RowBlocks

# Bytes of the columns of a block, and of its products.
_BLOCK = 3 << 19


class SharedWindows(RowBlocks):
    """One product of the windows with the weights of all phases, and a copy of each phase's part to its positions.

    Args:
        channels_last: whether the columns are (pixels, taps, channels), or (channels, taps, pixels).
        arrange: for a filter whose axes are in another order.
    """

    def __init__(
        self, task: Task, geometry: TransposedGeometry, channels_last: bool, arrange: Arrange | None = None
    ) -> None:
        g = geometry
        self.channels_last, self.phases = channels_last, g.phases
        axes = g.axes
        self.kernel = [len(phases[0].taps) for phases in axes]
        self.steps = [phases[0].step for phases in axes]
        self.low = [min(phase.first for phase in phases) for phases in axes]
        # Number of windows along each axis, and how many more windows than values a phase has.
        self.windows = [
            max(p.first + p.count for p in phases) - low for phases, low in zip(axes, self.low, strict=True)
        ]
        self.maximum = max(phase.count for phase in axes[0])
        key = ("all phases", channels_last, *(tuple(axis.taps for axis in phase) for phase in self.phases))
        weights = FilterWeights(
            task.constants[1], key, self._matrix, g.weights, g.computed, share=False, arrange=arrange
        )
        super().__init__(
            task, g, "windows of all phases, channels last" if channels_last else "windows of all phases", weights
        )
        self.channels = [slice(0, g.outputs)]
        self.rows = split(self.maximum, self._rows(task.threads))
        self.workspace = self._workspace()
        self.cost = self._cost(is_channels_last(task.input_orders[0]))

    @property
    def _depth(self) -> int:
        return self.geometry.inputs * math.prod(self.kernel)

    def _rows(self, threads: int) -> int:
        """Rows of the phases in a block."""
        g = self.geometry
        per_row = math.prod(self.windows[1:]) * (self._depth + g.outputs * len(self.phases)) * g.computed.itemsize
        rows = max(4, _BLOCK // per_row)
        return rows if threads == 1 or g.macs < 10_000_000 else max(4, min(rows, -(-self.maximum // threads)))

    def _workspace(self) -> int:
        g = self.geometry
        rows = max(part.stop - part.start for part in self.rows)
        extra = self.windows[0] - self.maximum
        pixels = (rows + extra) * math.prod(self.windows[1:])
        read = g.inputs * (rows + extra + self.steps[0] * self.kernel[0])
        for size, step, taps in zip(self.windows[1:], self.steps[1:], self.kernel[1:], strict=True):
            read *= size + step * taps
        elements = pixels * (self._depth + g.outputs * len(self.phases)) + read
        whole = min(rows * g.windows.strides[0], g.windows.counts[0]) * math.prod(g.windows.counts[1:])
        return elements * g.computed.itemsize + self.output.workspace(g.outputs, whole) + 512

    def _matrix(self, weights: np.ndarray) -> np.ndarray:
        """(1, phases * outputs, depth), in panels if channels last."""
        picked = []
        for phase in self.phases:
            taps = weights[0][(slice(None),) * 2 + np.ix_(*(axis.taps for axis in phase))]
            order = (1, *range(2, taps.ndim), 0) if self.channels_last else (1, 0, *range(2, taps.ndim))
            picked.append(taps.transpose(order).reshape(taps.shape[1], -1))
        matrix = np.concatenate(picked)[None]
        return panels(matrix) if self.channels_last else matrix

    def compute(
        self, scratch: Scratch, image: np.ndarray, matrices: Any, rows: slice, channels: slice, result: np.ndarray
    ) -> None:
        values = self._multiply(scratch, image, matrices, rows)
        self._place(scratch, values, rows, self.with_sizes(result))

    def _multiply(self, scratch: Scratch, image: np.ndarray, matrix: np.ndarray, rows: slice) -> np.ndarray:
        """The products of the windows that some rows of the phases meet, as (phases, outputs, windows...)."""
        g, phases = self.geometry, len(self.phases)
        lengths = [rows.stop - rows.start + self.windows[0] - self.maximum, *self.windows[1:]]
        pixels = math.prod(lengths)
        begins = [self.low[0] + rows.start, *self.low[1:]]
        if self.channels_last:
            values = scratch.take((pixels, phases * g.outputs), g.computed).T
        else:
            values = scratch.take((phases * g.outputs, pixels), g.computed)
        mark = scratch.mark()
        columns = columns_of(scratch, image, g, begins, self.kernel, self.steps, lengths, self.channels_last)
        if self.channels_last:
            multiply_groups(scratch, columns, matrix, values)
        else:
            multiply(scratch, matrix[0], columns[0], values)
        scratch.release(mark)
        return values.reshape(phases, g.outputs, *lengths)

    def _place(self, scratch: Scratch, values: np.ndarray, rows: slice, into: np.ndarray) -> None:
        """Copy each phase's part of the products to its positions in (outputs, sizes...)."""
        for part, phase in zip(values, self.phases, strict=True):
            steps = zip(phase, self.geometry.windows.strides, strict=True)
            target = into[(slice(None), *(slice(axis.remainder, None, stride) for axis, stride in steps))]
            shifts = [axis.first - low for axis, low in zip(phase, self.low, strict=True)]
            spans = zip(shifts, target.shape[1:], strict=True)
            scratch.do(np.copyto, target, part[(slice(None), *(slice(shift, shift + size) for shift, size in spans))])

    def _cost(self, data_last: bool) -> float:
        g = self.geometry
        pixels = math.prod(self.windows) * (
            1 + (len(self.rows) - 1) * (self.windows[0] - self.maximum) / self.windows[0]
        )
        product = pixel_product_cost(g.outputs * len(self.phases), self._depth, int(pixels), self.channels_last)
        product += (len(self.rows) - 1) * g.outputs * len(self.phases) * self._depth * 0.3
        copied = self._depth * pixels * (0.35 if self.channels_last == data_last else 0.8)
        per_output = 0.5 if self.channels_last == self.output.channels_last else 1.0
        moved = g.outputs * math.prod(g.windows.counts) * per_output
        return g.images * (product + copied + moved + 5000 * (len(self.phases) + 4) * len(self.rows))


def share_windows(g: TransposedGeometry) -> bool:
    """Whether all phases have as many taps, equally far from each other."""
    if g.groups > 1 or math.prod(g.windows.strides) == 1:
        return False
    for stride, phases in zip(g.windows.strides, g.axes, strict=True):
        if len(phases) < stride or len({(len(phase.taps), phase.step) for phase in phases}) > 1 or not phases[0].taps:
            return False
    return True
