"""Transposed convolution whose stride is its kernel, channels last: each pixel becomes a tile, which products write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import is_channels_last, split
from irexec.backend.convolution.output import Output
from irexec.backend.convolution.weights import Arrange, Weights
from irexec.backend.kernel import Context, Kernel, Task
from irexec.backend.products import product_cost
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import TransposedGeometry

# Bytes of the result of a block.
_BLOCK = 1 << 20


class PixelTiles(Kernel):
    """One product for each row of pixels and each row of the kernel: (pixels, inputs) @ (inputs, row of the kernel, outputs)."""

    def __init__(self, task: Task, geometry: TransposedGeometry, arrange: Arrange | None = None) -> None:
        g = self.geometry = geometry
        self.algorithm, self.runs_chain, self.splits = "products of pixels to tiles, channels last", True, True
        self.output = Output(task, g.computed)
        self.weights = Weights(task.constants[1], "tiles", _matrices, g.weights, g.computed, share=False, arrange=arrange)
        self.reads = (0,) if self.weights.is_constant else None
        per_row = math.prod(g.windows.counts) // g.sizes[0] * g.outputs * g.computed.itemsize
        rows = max(1, _BLOCK // per_row)
        self.rows = split(g.sizes[0], rows if task.threads == 1 else min(rows, -(-g.sizes[0] // (2 * task.threads))))
        pixels = max(part.stop - part.start for part in self.rows) * math.prod(g.windows.counts) // g.sizes[0]
        copied = g.inputs * math.prod(g.sizes[1:]) * max(part.stop - part.start for part in self.rows) * g.computed.itemsize
        self.workspace = self.output.workspace(g.outputs, pixels) + copied + 256
        self.cost = self._cost(is_channels_last(task.input_orders[0]))

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> None:
        g = self.geometry
        matrices = self.weights.packed(inputs[1]).array
        out = self.output.bind(outputs[0], inputs)
        x, stride, counts = np.moveaxis(inputs[0], 1, -1), g.windows.strides[0], g.windows.counts
        inner = math.prod(counts[1:])
        channels = slice(0, g.outputs)

        def block(index: int, scratch: Scratch) -> None:
            image, number = divmod(index, len(self.rows))
            part = self.rows[number]
            pixels = slice(part.start * stride * inner, part.stop * stride * inner)
            result = out.block(scratch, image, channels, pixels)
            data = _contiguous(scratch, x[image, part], g.computed)
            self._multiply(scratch, data, matrices, result)
            out.finish(scratch, result, image, channels, pixels)

        context.parallel(g.images * len(self.rows), block)
        out.end()

    def _multiply(self, scratch: Scratch, data: np.ndarray, matrices: np.ndarray, result: np.ndarray) -> None:
        """Data (sizes..., inputs) to (outputs, pixels)."""
        g = self.geometry
        is_direct = result.strides[0] == result.itemsize and result.strides[1] == g.outputs * result.itemsize
        values = result.T if is_direct else scratch.take(result.T.shape, result.dtype)
        # Axes of pixels and of the kernel alternate; the last two and the channels are one.
        split_axes = [size for pair in zip(data.shape[:-2], g.kernel[:-1], strict=True) for size in pair]
        rank = len(g.kernel) - 1
        view = values.reshape(*split_axes, data.shape[-2], g.kernel[-1] * g.outputs)
        order = (*range(0, 2 * rank, 2), *range(1, 2 * rank, 2), 2 * rank, 2 * rank + 1)
        np.matmul(data[(slice(None),) * rank + (None,) * rank], matrices, out=view.transpose(order))
        if not is_direct:
            np.copyto(result, values.T)

    def _cost(self, data_last: bool) -> float:
        g = self.geometry
        pixels = math.prod(g.sizes)
        product = product_cost(g.outputs * g.points, g.inputs, pixels, True)
        copied = (0 if data_last else g.inputs * pixels * 0.9) + (0 if self.output.channels_last else g.outputs * g.points * pixels * 0.9)
        # A product is too large for the kernels that leave the weights as they are, and there is one for each row of pixels.
        rows = pixels // g.sizes[-1]
        per_row = g.inputs * g.outputs * g.kernel[-1]
        if per_row * g.sizes[-1] > 1_000_000:
            copied += rows * g.points // g.kernel[-1] * per_row * 0.3
        return g.images * (product + copied + 150 * pixels * g.points / (g.sizes[-1] * g.kernel[-1])) + 3000 * len(self.rows)


def _contiguous(scratch: Scratch, data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if data.flags.c_contiguous and data.dtype == dtype:
        return data
    copy = scratch.take(data.shape, dtype)
    np.copyto(copy, data)
    return copy


def _matrices(weights: np.ndarray) -> np.ndarray:
    """(1, inputs, outputs, kernel...) to (kernel without its last axis..., inputs, last axis of the kernel * outputs)."""
    _, inputs, outputs, *kernel = weights.shape
    rank = len(kernel)
    arranged = weights[0].transpose(*range(2, 1 + rank), 0, 1 + rank, 1)
    return np.ascontiguousarray(arranged).reshape(*kernel[:-1], inputs, kernel[-1] * outputs)


def suits(g: TransposedGeometry) -> bool:
    """Whether every pixel has a tile of its own, and nothing is cropped."""
    w = g.windows
    is_tiled = g.kernel == w.strides and all(d == 1 or k == 1 for d, k in zip(w.dilations, g.kernel, strict=True))
    return g.groups == 1 and is_tiled and not any(w.begins) and w.counts == w.natural
