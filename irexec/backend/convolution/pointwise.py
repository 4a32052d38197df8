"""Convolution with kernels of one point and stride 1: a product on the pixels themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import Geometry, flat_pixels, is_channels_last, is_matrix, split
from irexec.backend.convolution.output import Output
from irexec.backend.convolution.weights import Weights
from irexec.backend.kernel import Context, Kernel, Task
from irexec.backend.products import multiply, product_cost
from irexec.backend.scratch import Scratch

# Bytes of the result of a block: it stays in the second-level cache while the chain runs.
_BLOCK = 1 << 20
# What a product should have at least, so that copying the other operand into BLAS's order does not count.
_PIXELS, _CHANNELS = 192, 32
# Pixels of a block that is not contiguous in the result.
_ROW = 4096


class Pointwise(Kernel):
    """``weights (O, I) @ pixels (I, P)`` for blocks of pixels, or of output channels where there are few pixels."""

    def __init__(self, task: Task, geometry: Geometry) -> None:
        g = self.geometry = geometry
        self.output = Output(task, g.computed)
        self.weights = Weights(task.constants[1], "matrix", _matrix, (g.groups, g.outputs, g.inputs), g.computed)
        self.reads = (0,) if self.weights.is_constant else None
        self.runs_chain = True
        self.splits = True
        channels_last = is_channels_last(task.input_orders[0])
        self.algorithm = "1x1 product, channels last" if channels_last else "1x1 product"
        self.pixels, self.channels = _block_sizes(g, self.output.channels_last)
        self.cost = _cost(g, channels_last, self.output.channels_last)
        copied = g.groups * g.inputs * self.pixels * g.computed.itemsize
        self.workspace = self.output.workspace(self.channels, self.pixels) + copied + 256

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> None:
        g = self.geometry
        packed = self.weights.packed(inputs[1])
        out = self.output.bind(outputs[0], inputs, packed.spread)
        x = flat_pixels(inputs[0])
        if x is None:
            x = np.ascontiguousarray(inputs[0]).reshape(g.images, g.groups * g.inputs, g.pixels)
        rows = packed.array.shape[1]
        whole = g.groups > 1 or packed.spread is not None
        channels = [slice(0, g.groups * rows)] if whole else split(rows, self.channels)
        blocks = [(n, c, p) for n in range(g.images) for p in split(g.pixels, self.pixels) for c in channels]

        def block(index: int, scratch: Scratch) -> None:
            image, some, pixels = blocks[index]
            result = out.block(scratch, image, some, pixels)
            data = _compact(scratch, x[image, :, pixels], g.computed)
            if g.groups == 1:
                multiply(packed.array[0, some], data, result)
            else:
                by_group = result.reshape(g.groups, rows, -1)
                np.matmul(packed.array, data.reshape(g.groups, g.inputs, -1), out=by_group)
            out.finish(scratch, result, image, some, pixels)

        context.parallel(len(blocks), block)
        out.end()


def _matrix(weights: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weights)


def _compact(scratch: Scratch, data: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``data`` itself if BLAS takes it, else a copy."""
    if data.dtype == dtype and is_matrix(data):
        return data
    copy = scratch.take(data.shape, dtype)
    np.copyto(copy, data)
    return copy


def _block_sizes(g: Geometry, channels_last: bool) -> tuple[int, int]:
    """Pixels and output channels of a block.

    A block is contiguous in the result where that is possible: all pixels of some channels, or all channels of some pixels.
    """
    outputs = g.groups * g.outputs
    size = g.computed.itemsize
    # From about 0.2 milliseconds on there should be something for each of several threads.
    parts = min(4, max(1, g.macs // (10_000_000 * g.images)))
    if channels_last or g.groups > 1:
        fitting = max(_PIXELS, min(_BLOCK // (size * outputs), -(-g.pixels // parts)))
        return min(fitting, g.pixels), outputs
    channels = max(_CHANNELS, min(_BLOCK // (size * g.pixels), -(-outputs // parts)))
    channels = -(-channels // _CHANNELS) * _CHANNELS
    pixels = g.pixels
    if channels * pixels * size > 2 * _BLOCK:
        pixels = max(_ROW, 2 * _BLOCK // (channels * size))
    return min(pixels, g.pixels), min(channels, outputs)


def _cost(g: Geometry, channels_last: bool, result_last: bool) -> float:
    return g.images * g.groups * product_cost(g.outputs, g.inputs, g.pixels, channels_last, result_last)
