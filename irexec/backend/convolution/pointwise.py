"""Convolution with kernels of one point that computes one result for each pixel: a product on the pixels themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.filter_weights import FilterWeights, some_panels, split_outputs
from irexec.backend.convolution.geometry import Geometry, copied_pixels, flat_pixels, longest, multiply_groups, split
from irexec.backend.convolution.output import Output
from irexec.backend.kernel import SHARES, Kernel, KernelContext, Task
from irexec.backend.products import LANES, THIN, multiply, panel_width, panels, pixel_product_cost
from irexec.backend.scratch import Scratch

# Bytes of the result of a block: it stays in the second-level cache while the chain runs.
_BLOCK = 1 << 20
# Minimum sizes of a product for which BLAS's copy of the other operand does not count.
_PIXELS, _CHANNELS = 192, 32
# Multiplications that are worth several shares.
_WORTH = 3_000_000


class PointwiseBlocks:
    """The blocks of pixels and channels, and the estimated cost of the kernel.

    Args:
        channels_last: see Pointwise.
        result_last: whether the result is channels last.
    """

    def __init__(self, geometry: Geometry, channels_last: bool, result_last: bool) -> None:
        g = self.geometry = geometry
        self.channels_last = channels_last
        self._block_pixels, self.channels = _block_sizes(g, channels_last or result_last)
        self._product = g.groups * pixel_product_cost(g.outputs, g.inputs, g.pixels, channels_last)

    def _pixels(self) -> list[slice]:
        return split(self.geometry.pixels, self._block_pixels, SHARES)

    def _channels(self, outputs: int, whole: bool) -> list[slice]:
        if whole:
            return [slice(0, outputs)]
        if self.channels_last:
            panel = panel_width(outputs, self.geometry.inputs)
            return split_outputs(outputs, panel, -(-outputs // self.channels))
        return split(outputs, self.channels)

    def blocks(self, outputs: int, whole: bool) -> list[tuple[int, slice, slice]]:
        """Image, channels and pixels of each block; ``whole`` for all channels in each."""
        images, pixels, channels = range(self.geometry.images), self._pixels(), self._channels(outputs, whole)
        return [(n, c, p) for n in images for p in pixels for c in channels]

    def cost(self, data_last: bool, result_last: bool) -> float:
        """Nanoseconds, for data and a result that are channels last or not."""
        g = self.geometry
        blocks = g.images * len(self._pixels()) * len(self._channels(g.groups * g.outputs, g.groups > 1))
        copied = g.inputs * (data_last != self.channels_last) + g.outputs * (result_last != self.channels_last)
        return g.images * (self._product + g.groups * copied * g.pixels * 0.9) + 10_000 * blocks


class Pointwise(Kernel):
    """A product for each block of pixels, or of output channels.

    Args:
        channels_last: whether it is ``pixels (P, I) @ weights (I, O)``, for data and result that are channels last, or
            ``weights (O, I) @ pixels (I, P)``. Others are copied.
    """

    def __init__(self, task: Task, geometry: Geometry, channels_last: bool) -> None:
        assert geometry.is_pointwise, "a product on the pixels themselves computes one result for each of them"
        g = self.geometry = geometry
        self.channels_last = channels_last
        self.output = Output(task, g.computed)
        make = panels if channels_last else np.ascontiguousarray
        self.weights = FilterWeights(
            task.constants[1], make.__name__, make, (g.groups, g.outputs, g.inputs), g.computed
        )
        self.reads = (0,) if self.weights.is_constant else None
        self.splits = True
        self.records = self.weights.is_constant
        self.algorithm = "1x1 product, channels last" if channels_last else "1x1 product"
        self.sizes = PointwiseBlocks(g, channels_last, self.output.channels_last)
        self.blocks = self.sizes.blocks(g.groups * g.outputs, g.groups > 1)
        channels, pixels = longest([block[1] for block in self.blocks]), longest([block[2] for block in self.blocks])
        copied = (g.groups * g.inputs + channels) * pixels * g.computed.itemsize
        self.workspace = self.output.workspace(channels, pixels) + copied + 256

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g = self.geometry
        packed = self.weights.packed(inputs[1])
        out = self.output.bind(context, outputs[0], inputs, packed.spread)
        x = flat_pixels(inputs[0])
        if x is None:
            context.not_repeatable()
            x = np.ascontiguousarray(inputs[0]).reshape(g.images, g.groups * g.inputs, g.pixels)
        blocks = self.blocks if packed.spread is None else self.sizes.blocks(packed.rows, True)
        whole = g.groups > 1 or packed.spread is not None or self.sizes.channels >= g.outputs
        copies = x.dtype != g.computed or x.strides[1 if self.channels_last else 2] != x.itemsize

        def block(index: int, scratch: Scratch) -> None:
            image, some, pixels = blocks[index]
            result = out.block(scratch, image, some, pixels)
            data = x[image, :, pixels]
            if copies:
                data = copied_pixels(scratch, data, g.computed, self.channels_last)
            if self.channels_last:
                weights = packed.array if whole else some_panels(packed.array, some)
                multiply_groups(scratch, data.T.reshape(-1, g.groups, g.inputs).swapaxes(0, 1), weights, result)
            elif g.groups == 1:
                multiply(scratch, packed.array[0, some], data, result)
            else:
                scratch.do(
                    np.matmul,
                    packed.array,
                    data.reshape(g.groups, g.inputs, -1),
                    out=result.reshape(g.groups, packed.rows, -1),
                )
            out.finish(scratch, result, image, some, pixels)

        context.parallel(len(blocks), block)
        out.end()


def _block_sizes(g: Geometry, channels_last: bool) -> tuple[int, int]:
    """Pixels and output channels of a block.

    Blocks of channels are contiguous in the result, but each of them reads and copies all data again. Blocks of pixels
    do not, but the chain is slow on their short rows, so that they are computed elsewhere and copied. Channels last it
    is the blocks of pixels that are contiguous.
    """
    outputs, size = g.groups * g.outputs, g.computed.itemsize
    # From about 0.1 milliseconds on there should be something for each of several threads.
    wanted = 1 if g.macs < _WORTH * g.images else SHARES
    parts = max(wanted, g.pixels * outputs * size * 2 // (3 * _BLOCK))
    parts = parts if parts == 1 else -(-parts // SHARES) * SHARES
    pixels, channels = max(_PIXELS, -(-g.pixels // parts)), max(_CHANNELS, -(-outputs // parts))
    if parts == 1:
        return g.pixels, outputs
    if g.groups > 1 or (channels_last and (g.pixels > _PIXELS or parts > SHARES)):
        return min(pixels, g.pixels), outputs
    if channels_last:
        return g.pixels, channels
    by_channels = (parts - 1) * g.inputs * g.pixels * (0.1 if g.inputs <= THIN else 0.3)
    by_pixels = (parts - 1) * g.inputs * outputs * 0.3 + outputs * g.pixels * 0.25
    if by_pixels < by_channels or channels * g.pixels * size > 2 * _BLOCK:
        return min(-(-pixels // LANES) * LANES, g.pixels), outputs
    return g.pixels, min(-(-channels // _CHANNELS) * _CHANNELS, outputs)
