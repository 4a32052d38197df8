"""Transposed convolution by phases: each one is a convolution with stride 1, computed by columns and one product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import is_channels_last, split
from irexec.backend.convolution.output import Output
from irexec.backend.convolution.regions import region
from irexec.backend.convolution.weights import Arrange, Weights
from irexec.backend.kernel import Context, Kernel, Task
from irexec.backend.products import multiply, product_cost
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import AxisPhase, TransposedGeometry
from irexec.reference.windows import windows

# Bytes of the columns of a block.
_COLUMNS = 1 << 20

Phase = tuple[AxisPhase, ...]


class PhaseColumns(Kernel):
    """Blocks of the first spatial axis of the phases, or of output channels where the images are small."""

    def __init__(self, task: Task, geometry: TransposedGeometry, arrange: Arrange | None = None) -> None:
        g = self.geometry = geometry
        self.algorithm, self.runs_chain, self.splits = "phases by columns", True, True
        self.output = Output(task, g.computed)
        self.phases = g.phases()
        self.weights = Weights(
            task.constants[1], ("phases", *self._taps()), self._matrices, g.weights, g.computed, share=False, arrange=arrange
        )
        self.reads = (0,) if self.weights.is_constant else None
        self.rows, self.channels = self._blocks(task.threads)
        self.workspace = self._workspace()
        self.cost = self._cost(is_channels_last(task.input_orders[0]))

    def _taps(self) -> list[tuple[tuple[int, ...], ...]]:
        return [tuple(axis.taps for axis in phase) for phase in self.phases]

    def _matrices(self, weights: np.ndarray) -> list[np.ndarray]:
        """For each phase (groups, outputs, inputs * taps)."""
        groups, inputs, outputs = weights.shape[:3]
        made = []
        for taps in self._taps():
            picked = weights[(slice(None),) * 3 + np.ix_(*taps)] if all(taps) else weights[..., :0].reshape(groups, inputs, outputs, 0)
            made.append(np.ascontiguousarray(picked.swapaxes(1, 2)).reshape(groups, outputs, -1))
        return made

    def _blocks(self, threads: int) -> tuple[list[slice], list[slice]]:
        """Ranges of the first axis of the phases, and ranges of output channels."""
        g = self.geometry
        most = max(phase[0].count for phase in self.phases)
        taps = max(math.prod(len(axis.taps) for axis in phase) for phase in self.phases)
        inner = max(math.prod(axis.count for axis in phase[1:]) for phase in self.phases)
        per_row = g.groups * g.inputs * taps * inner * g.computed.itemsize
        rows = split(most, max(1, _COLUMNS // max(1, per_row)))
        parts = 1 if g.groups > 1 or len(rows) > 1 or threads == 1 or g.macs < 10_000_000 else min(2 * threads, max(1, g.outputs // 32))
        return rows, split(g.outputs, -(-g.outputs // parts))

    def _workspace(self) -> int:
        g = self.geometry
        rows = max(part.stop - part.start for part in self.rows)
        columns, read, values = 0, 0, 0
        for phase in self.phases:
            taps = math.prod(len(axis.taps) for axis in phase)
            pixels = rows * math.prod(axis.count for axis in phase[1:])
            columns, values = max(columns, g.inputs * taps * pixels), max(values, g.outputs * pixels)
            read = max(read, g.inputs * math.prod(_sizes(phase, min(rows, phase[0].count))))
        whole = min(rows * g.windows.strides[0], g.windows.counts[0]) * math.prod(g.windows.counts[1:])
        return g.groups * (columns + read + values) * g.computed.itemsize + self.output.workspace(g.groups * g.outputs, whole) + 512

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> None:
        g, x = self.geometry, inputs[0]
        matrices = self.weights.packed(inputs[1]).array
        out = self.output.bind(outputs[0], inputs)
        stride, counts = g.windows.strides[0], g.windows.counts
        inner = math.prod(counts[1:])
        blocks = [(n, r, c) for n in range(g.images) for r in self.rows for c in self.channels]

        def block(index: int, scratch: Scratch) -> None:
            image, rows, some = blocks[index]
            first, last = rows.start * stride, min(rows.stop * stride, counts[0])
            if first >= last:
                return
            channels = slice(some.start, some.stop) if g.groups == 1 else slice(0, g.groups * g.outputs)
            pixels = slice(first * inner, last * inner)
            result = out.block(scratch, image, channels, pixels)
            into = result.reshape(g.groups, -1, last - first, *counts[1:])
            for phase, matrix in zip(self.phases, matrices, strict=True):
                mark = scratch.mark()
                self._phase(scratch, x[image], phase, matrix[:, some], rows, into)
                scratch.release(mark)
            out.finish(scratch, result, image, channels, pixels)

        context.parallel(len(blocks), block)
        out.end()

    def _phase(self, scratch: Scratch, image: np.ndarray, phase: Phase, matrix: np.ndarray, rows: slice, into: np.ndarray) -> None:
        """Compute the rows of one phase, and write them to their positions in (groups, outputs, sizes...)."""
        g = self.geometry
        last = min(rows.stop, phase[0].count)
        if last <= rows.start:
            return
        lengths = [last - rows.start, *(axis.count for axis in phase[1:])]
        steps = zip(phase, g.windows.strides, strict=True)
        target = into[(slice(None), slice(None), *(slice(axis.remainder, None, stride) for axis, stride in steps))]
        if not all(axis.taps for axis in phase):
            target[...] = 0
            return
        begins = [phase[0].first + rows.start, *(axis.first for axis in phase[1:])]
        kernel = [len(axis.taps) for axis in phase]
        rank, pixels = len(kernel), math.prod(lengths)
        columns = scratch.take((len(image), *kernel, *lengths), g.computed)
        data = region(scratch, image, begins, _sizes(phase, lengths[0]), g.computed, False)
        view = windows(data, kernel, (1,) * rank, [axis.step for axis in phase], lengths)
        np.copyto(columns, view.transpose(0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank)))
        values = scratch.take((g.groups, matrix.shape[1], pixels), g.computed)
        matrices = columns.reshape(g.groups, g.inputs * math.prod(kernel), pixels)
        if g.groups == 1:
            multiply(matrix[0], matrices[0], values[0])
        else:
            np.matmul(matrix, matrices, out=values)
        np.copyto(target, values.reshape(target.shape))

    def _cost(self, data_last: bool) -> float:
        g = self.geometry
        cost = 0.0
        for phase in self.phases:
            depth = g.inputs * math.prod(len(axis.taps) for axis in phase)
            pixels = math.prod(axis.count for axis in phase)
            product = product_cost(g.outputs, depth, pixels) + depth * pixels * (0.8 if data_last else 0.35) + g.outputs * pixels * 0.8
            cost += g.images * g.groups * product
        return cost + 5000 * len(self.phases) * len(self.rows) * len(self.channels) * g.images


def _sizes(phase: Phase, rows: int) -> list[int]:
    """The sizes of the data that so many rows of a phase read."""
    lengths = [rows, *(axis.count for axis in phase[1:])]
    return [length + axis.step * max(0, len(axis.taps) - 1) for length, axis in zip(lengths, phase, strict=True)]
