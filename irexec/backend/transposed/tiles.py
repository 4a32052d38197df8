"""Transposed convolution whose stride is its kernel, channels last: each pixel becomes a tile, which products write."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irexec.backend.convolution.geometry import is_channels_last, split
from irexec.backend.convolution.weights import Arrange, Weights
from irexec.backend.kernel import Task
from irexec.backend.products import pixel_product_cost
from irexec.backend.scratch import Scratch
from irexec.backend.transposed.geometry import TransposedGeometry
from irexec.backend.transposed.row_blocks import RowBlocks

# Bytes of the result of a block.
_BLOCK = 1 << 20


class PixelTiles(RowBlocks):
    """One product for each row of pixels and each row of the kernel: (pixels, inputs) @ (inputs, row of the kernel, outputs)."""

    def __init__(self, task: Task, geometry: TransposedGeometry, arrange: Arrange | None = None) -> None:
        g = geometry
        weights = Weights(task.constants[1], "tiles", _matrices, g.weights, g.computed, share=False, arrange=arrange)
        super().__init__(task, g, "products of pixels to tiles, channels last", weights)
        self.channels = [slice(0, g.outputs)]
        per_row = math.prod(g.windows.counts) // g.sizes[0] * g.outputs * g.computed.itemsize
        rows = max(1, _BLOCK // per_row)
        self.rows = split(g.sizes[0], rows if task.threads == 1 else min(rows, -(-g.sizes[0] // (task.threads))))
        pixels = max(part.stop - part.start for part in self.rows) * math.prod(g.windows.counts) // g.sizes[0]
        copied = (
            g.inputs * math.prod(g.sizes[1:]) * max(part.stop - part.start for part in self.rows) * g.computed.itemsize
        )
        self.workspace = self.output.workspace(g.outputs, pixels) + copied + 256
        self.cost = self._cost(is_channels_last(task.input_orders[0]))

    def compute(
        self, scratch: Scratch, image: np.ndarray, matrices: Any, rows: slice, channels: slice, result: np.ndarray
    ) -> None:
        self._multiply(
            scratch, _contiguous(scratch, np.moveaxis(image, 0, -1)[rows], self.geometry.computed), matrices, result
        )

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
        scratch.do(np.matmul, data[(slice(None),) * rank + (None,) * rank], matrices, out=view.transpose(order))
        if not is_direct:
            scratch.do(np.copyto, result, values.T)

    def _cost(self, data_last: bool) -> float:
        g = self.geometry
        pixels = math.prod(g.sizes)
        product = pixel_product_cost(g.outputs * g.points, g.inputs, pixels, True)
        copied = (0 if data_last else g.inputs * pixels * 0.9) + (
            0 if self.output.channels_last else g.outputs * g.points * pixels * 0.9
        )
        # A product is too large for the kernels that leave the weights as they are, and there is one for each row of pixels.
        rows = pixels // g.sizes[-1]
        per_row = g.inputs * g.outputs * g.kernel[-1]
        if per_row * g.sizes[-1] > 1_000_000:
            copied += rows * g.points // g.kernel[-1] * per_row * 0.3
        return g.images * (product + copied + 150 * pixels * g.points / (g.sizes[-1] * g.kernel[-1])) + 3000 * len(
            self.rows
        )


def _contiguous(scratch: Scratch, data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if data.flags.c_contiguous and data.dtype == dtype:
        return data
    copy = scratch.take(data.shape, dtype)
    scratch.do(np.copyto, copy, data)
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
