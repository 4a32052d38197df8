"""Convolutions by the C library: depthwise, products of windows with packed weights, Winograd's for 3 by 3."""

from __future__ import annotations

import functools
import itertools
import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, element_strides, is_available, is_run, loaded, merged_strides
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution import winograd
from irexec.backend.convolution.geometry import Geometry, is_channels_last
from irexec.backend.copies import channels_last
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.chains import Axes, NativeChain, fits
from irexec.backend.native.panels import (
    Cut,
    blocks_for,
    imbalance,
    pack,
    padded,
    panel_of,
    product_cost,
    rows_as_windows,
    table_bytes,
    windows_of,
)
from irexec.backend.registry import kernels
from irexec.native.structures import Parameters, structure

# Channels of a tap up to which the taps along the last axis are put together, in a padded copy of the data.
_FEW = 12
# Nanoseconds to copy a value to channels last, and of a step.
_COPY, STEP = 0.35, 500
# Nanoseconds for a multiplication, for an output and for a pixel.
_TAP, _OUTPUT, _PIXEL = 0.04, 0.1, 8.0
# Pixels that are summed at once, and channels of a cache line.
_PIXELS, _LINE = 4, 16
# The largest share relative to an equal one that is not avoided.
_UNEQUAL = 1.1

Product = structure("product.c", "product")


@functools.cache
def zeros(count: int) -> np.ndarray:
    """A shared array of at least ``count`` zeros."""
    return np.zeros(max(1, count), np.float32)


def channel_axes(rank: int) -> Axes:
    """Images, pixels and channels of (N, C, spatial...)."""
    return (0,), tuple(range(2, rank)), (1,)


class _Convolution(NativeKernel):
    """A convolution with a constant filter, packed as ``key`` says."""

    def __init__(self, task: Task, geometry: Geometry, key: Hashable, *, takes_addend: bool = False) -> None:
        shape = task.output_shape()
        self.geometry, self.key, self.axes = geometry, key, channel_axes(len(shape))
        self.source, self.own, self.reads = task.constants[1], len(task.inputs), (0,)
        self.chain = NativeChain(
            task.chain, task.operands, shape, self.axes, takes_bias=True, takes_addend=takes_addend
        )
        self.overwrites = overwritten(task, self.own)

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "weights are constants"
        self.weights: np.ndarray = store.get([self.source], self.key, self._packed)

    @abstractmethod
    def _packed(self, filter: np.ndarray) -> np.ndarray:
        """The filter as the calls read it."""


class NativeConvolution(_Convolution):
    """A convolution of data that is channels last, or is copied so.

    Attributes:
        pairs: whether its values are words of two of bf16.

    Args:
        copies: whether the data is copied to channels last and padded, before taps that follow each other are taken
            as one.
    """

    pairs = False

    def __init__(self, task: Task, geometry: Geometry, copies: bool) -> None:
        g, self.copies, self.panel = geometry, copies, panel_of(geometry.outputs)
        super().__init__(task, g, ("native", g.groups, g.outputs, self.panel), takes_addend=True)
        self.windows, self.depth = g.windows, g.inputs
        if copies:
            self.padded_shape = tuple(
                size + before + after
                for size, before, after in zip(g.sizes, g.windows.pads_begin, g.windows.pads_end, strict=True)
            )
            zero = (0,) * len(g.sizes)
            self.windows = replace(g.windows, pads_begin=zero, pads_end=zero)
            self.merges = g.groups == 1 and g.windows.dilations[-1] == 1
            if self.merges:
                self.depth = g.inputs * g.windows.kernel[-1]
        taps = g.depth // self.depth
        self.cut = Cut.of(g.images * g.groups, g.pixels, taps, self.depth, g.outputs, task.threads)
        self.algorithm = "C, direct convolution" if g.points > 1 else "C, 1x1 product"
        copied = 4 * g.images * g.groups * g.inputs * math.prod(self.padded_shape) if copies else 0
        self.workspace, self.shared_workspace = table_bytes(self.cut.block_rows(g.pixels), taps), copied

    def _packed(self, filter: np.ndarray) -> np.ndarray:
        g = self.geometry
        weights = filter.reshape(g.groups, g.outputs, g.inputs, g.points)
        return pack(weights.transpose(0, 3, 2, 1).reshape(g.groups, g.depth, g.outputs))

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g, operands = self.geometry, inputs[self.own :]
        out, strides = binding.written(outputs[0], self.axes)
        low, high = self.chain.limits
        parameters = Product(
            self._windows(inputs[0], binding), binding.address(self.weights), 0, self.chain.bias(operands, binding),
            self.chain.addend(operands, binding), binding.address(out), *strides, self.chain.bind(operands, binding),
            self.depth, g.groups, g.outputs, self.panel, g.pixels, self.cut.rows, self.cut.panels, low, high,
            self.pairs,
        )  # fmt: skip
        binding.call("irx_product", parameters, g.images * g.groups * self.cut.rows * self.cut.panels)

    def _windows(self, x: np.ndarray, binding: Binding) -> Parameters:
        if not self.copies and self.geometry.is_pointwise:
            strides = merged_strides(x, self.axes)
            if strides is not None and is_run(x, self.axes[2]):
                address, pixels = binding.address(x), self.geometry.pixels
                return rows_as_windows(address, strides[0], strides[1], pixels, binding.address(zeros(self.depth)))
        if not self.copies:
            return windows_of(binding.with_stride(x, 1), self.windows, zeros(self.depth), binding)
        w = self.geometry.windows
        padded = channels_last(x, binding.shared, binding, list(zip(w.pads_begin, w.pads_end, strict=True)))
        made = windows_of(padded, self.windows, zeros(self.depth), binding)
        if self.merges:
            made.kernel[2] = 1
        return made


def overwritten(task: Task, own: int) -> tuple[int, ...]:
    """The operands that the output may lie upon: read and written at the same position, tile by tile."""
    orders = task.input_orders[own:] or (None,) * len(task.operands)
    return tuple(
        own + i
        for i, fact in enumerate(task.operands)
        if fact.shape == task.output_shape() and orders[i] == (task.output_orders or (None,))[0]
    )


def geometry_of(task: Task) -> Geometry | None:
    """The geometry for constant weights, f32, up to three spatial axes and a chain on tiles; None for anything else."""
    if not is_available(task) or task.constants[1] is None or not fits(task, channel_axes(len(task.output_shape()))):
        return None
    g = Geometry.of(task)
    return g if g is not None and g.dtype == np.float32 and len(g.sizes) <= 3 else None


def has_channels_last(task: Task, geometry: Geometry) -> bool:
    """Whether the channels of the data follow each other in memory."""
    return is_channels_last(task.input_orders[0]) or math.prod(geometry.sizes) == 1


def edges_cost(task: Task, geometry: Geometry) -> float:
    """Nanoseconds of a convolution besides the product: its table, and a result in another order."""
    g = geometry
    is_last = is_channels_last(task.output_orders[0]) or g.pixels == 1
    return g.images * g.pixels * (g.points * 3 + (0.0 if is_last else 0.4 * g.groups * g.outputs)) + STEP


@kernels("Convolution", since=1)
@kernels("GroupConvolution", since=1)
def convolution(task: Task) -> Iterator[Candidate]:
    """One group, or groups of more than one channel."""
    g = geometry_of(task)
    if g is None or (g.groups > 1 and g.inputs == g.outputs == 1):
        return
    product = g.images * g.groups * product_cost(g.pixels, g.depth, g.outputs) + edges_cost(task, g)
    if has_channels_last(task, g) and (g.inputs > _FEW or g.groups > 1 or g.points == 1):
        yield Candidate(product, functools.partial(NativeConvolution, task, g, False))
    else:
        copied = _COPY * g.images * g.groups * g.inputs * math.prod(g.sizes) + STEP
        yield Candidate(product + copied, functools.partial(NativeConvolution, task, g, True))


# Bytes of points and products of a part: most of a second-level cache, or more where weights are read for every part.
_PART, _MANY_PART, _MANY = 1 << 20, 3 << 20, 192
# Vectors of this number of floats have products and sums with one rounding. With two the error of m = 6 is over 1e-5.
_FUSED = 8
# Nanoseconds of a multiplication of vectors in a transform, and to read and write a vector of a point.
_MULTIPLY, _MOVE = 0.25, 0.9

_Tiling = structure("winograd.c", "tiling")
_Spreading = structure("winograd.c", "spreading")
_Gathering = structure("winograd.c", "gathering")


class Tiles:
    """The tiles of m * m results of all images, and the parts that are computed one after the other.

    Attributes:
        points: products of a tile.
        parts: pairs of the first tile and the number of tiles.
    """

    def __init__(self, geometry: Geometry, tile: int) -> None:
        g = self.geometry = geometry
        self.tile, self.points = tile, (tile + 2) ** 2
        self.down, self.across = (-(-count // tile) for count in g.windows.counts)
        count = g.images * self.down * self.across
        limit = _MANY_PART if min(g.inputs, g.outputs) >= _MANY else _PART
        parts = -(-count * self.points * 4 * (g.inputs + g.outputs) // limit)
        bounds = [count * i // parts for i in range(parts + 1)]
        self.parts = [(first, end - first) for first, end in itertools.pairwise(bounds) if end > first]
        self.largest = max(count for _, count in self.parts)

    @functools.cached_property
    def transforms(self) -> float:
        """Nanoseconds on one thread of the transforms of a tile, before and after the products."""
        g, m, n = self.geometry, self.tile, self.tile + 2
        inputs, outputs = (-(-channels // loaded().vector) for channels in (g.inputs, g.outputs))
        before = inputs * (2 * n**3 * _MULTIPLY + 2 * n * n * _MOVE)
        return before + outputs * ((m * n * n + m * m * n) * _MULTIPLY + 2 * n * n * _MOVE)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds on one thread."""
        g = self.geometry
        products = sum(self.points * product_cost(count, g.inputs, g.outputs) for _, count in self.parts)
        tiles = sum(count for _, count in self.parts)
        held = 0.5 * self.points * g.inputs * g.outputs
        return products + tiles * self.transforms + 3 * STEP * len(self.parts) + held


class NativeWinograd(_Convolution):
    """A convolution of channels last of one group, with strides and dilations of 1."""

    def __init__(self, task: Task, tiles: Tiles) -> None:
        g, self.tiles, self.threads = tiles.geometry, tiles, task.threads
        self.panel = panel_of(g.outputs)
        super().__init__(task, g, ("native winograd", tiles.tile, self.panel))
        self.cut = Cut.of(tiles.points, tiles.largest, 1, g.inputs, g.outputs, task.threads)
        self.algorithm = f"C, Winograd F({tiles.tile}x{tiles.tile}, 3x3)"
        self.workspace = table_bytes(self.cut.block_rows(tiles.largest), 1)
        self.shared_workspace = 4 * tiles.points * tiles.largest * (g.inputs + g.outputs)

    def _packed(self, filter: np.ndarray) -> np.ndarray:
        g = self.geometry
        return pack(winograd.transformed(self.tiles.tile, filter.reshape(g.outputs, g.inputs, 3, 3)))

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g, t, operands = self.geometry, self.tiles, inputs[self.own :]
        x = binding.with_stride(inputs[0], 1)
        out, strides = binding.written(outputs[0], self.axes)
        bias, after = self.chain.bias(operands, binding), self.chain.bind(operands, binding)
        image, _, row, pixel = element_strides(x)
        products = binding.shared + 4 * t.points * t.largest * g.inputs
        for first, count in t.parts:
            blocks = blocks_for(count * t.transforms / 2, self.threads)
            before, later = (
                _Tiling(t.tile, t.down, t.across, first, count, min(blocks, count), binding.address(matrix))
                for matrix in (winograd.matrix(t.tile, which, self.weights.dtype) for which in ("input", "output"))
            )
            spreading = _Spreading(
                before, binding.address(x), image, row, pixel, *g.sizes, *g.windows.pads_begin, g.inputs,
                binding.shared,
            )  # fmt: skip
            binding.call("irx_winograd_spread", spreading, before.blocks)
            binding.call("irx_product", self._product(count, products, binding), t.points * self._parts(count))
            gathering = _Gathering(
                later, products, g.outputs, *g.windows.counts, bias, binding.address(out), *strides, after,
                *self.chain.limits,
            )  # fmt: skip
            binding.call("irx_winograd_gather", gathering, later.blocks)

    def _parts(self, count: int) -> int:
        return min(self.cut.rows, count) * self.cut.panels

    def _product(self, count: int, products: int, binding: Binding) -> Parameters:
        """The products of the points of a part."""
        g = self.geometry
        window = rows_as_windows(binding.shared, count * g.inputs, g.inputs, count, binding.address(zeros(g.inputs)))
        each = self.weights.size // self.tiles.points
        return Product(
            window, binding.address(self.weights), each, None, None, products, count * g.outputs, g.outputs, 1, None,
            g.inputs, 1, g.outputs, self.panel, count, min(self.cut.rows, count), self.cut.panels, -math.inf, math.inf,
            False,
        )  # fmt: skip


@kernels("Convolution", since=1)
def winograd_convolution(task: Task) -> Iterator[Candidate]:
    """Two spatial axes, channels last."""
    g = geometry_of(task)
    if g is None or not is_channels_last(task.input_orders[0]):
        return
    reordered = 0.0 if is_channels_last(task.output_orders[0]) else 0.4 * g.images * g.outputs * g.pixels
    for tile in winograd.TILES:
        if winograd.suits(g, tile) and (tile < 6 or loaded().vector >= _FUSED):
            tiles = Tiles(g, tile)
            yield Candidate(tiles.cost + reordered, functools.partial(NativeWinograd, task, tiles))


Depthwise = structure("depthwise.c", "depthwise")


class NativeDepthwise(_Convolution):
    """One kernel for each channel, of data and result that are channels last."""

    def __init__(self, task: Task, geometry: Geometry) -> None:
        g = geometry
        super().__init__(task, g, ("native depthwise", g.groups))
        self.row_parts, self.channel_parts = parts_of(g, task.threads)
        self.algorithm = "C, depthwise"
        *rows, taps = g.windows.kernel
        # Two pointers for each row of the kernel, and as many as its pixels have taps, at strides of up to 2.
        self.workspace = 8 * math.prod(rows) * (2 + max(_PIXELS * taps, 2 * (_PIXELS - 1) + taps))

    def _packed(self, filter: np.ndarray) -> np.ndarray:
        g = self.geometry
        whole = np.zeros((g.points, padded(g.groups)), np.float32)
        whole[:, : g.groups] = filter.reshape(g.groups, g.points).T
        return whole

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g, operands = self.geometry, inputs[self.own :]
        out, (image, row, _) = binding.written(outputs[0], self.axes, innermost=1)
        parameters = Depthwise(
            windows_of(binding.with_stride(inputs[0], 1), g.windows, zeros(padded(g.groups)), binding),
            binding.address(self.weights), self._bias(operands, binding), binding.address(out), image, row,
            self.chain.bind(operands, binding), g.groups, self.row_parts, self.channel_parts, *self.chain.limits,
        )  # fmt: skip
        binding.call("irx_depthwise", parameters, g.images * self.row_parts * self.channel_parts)

    def _bias(self, operands: Sequence[np.ndarray], binding: Binding) -> int:
        """The address of the bias, of whole vectors."""
        size = padded(self.geometry.groups)
        found = self.chain.bias(operands, binding)
        if found is None:
            return binding.address(zeros(size))
        if size == self.geometry.groups:
            return found
        program = self.chain.program
        assert program is not None and program.bias is not None
        binding.repeatable = binding.repeatable and not operands[program.bias].flags.writeable
        made = np.zeros(size, np.float32)
        made[: self.geometry.groups] = operands[program.bias].reshape(-1)
        return binding.address(made)


def parts_of(geometry: Geometry, threads: int) -> tuple[int, int]:
    """The parts of the rows, and of the channels, that blocks consist of."""
    g = geometry
    rows, lines = math.prod(g.windows.counts[:-1]), -(-g.groups // _LINE)
    wanted = -(-blocks_for(_nanoseconds(g), threads) // g.images)
    # Rows as long as shares of them are equal: their data is one run of memory.
    if imbalance(rows, wanted) <= max(_UNEQUAL, imbalance(lines, wanted)):
        return min(rows, wanted), 1
    return 1, min(lines, wanted)


def _nanoseconds(geometry: Geometry) -> float:
    """Estimated nanoseconds on one thread."""
    g = geometry
    return g.macs * _TAP + g.images * g.groups * g.pixels * _OUTPUT + g.images * g.pixels * _PIXEL


@kernels("GroupConvolution", since=1)
def depthwise(task: Task) -> Iterator[Candidate]:
    """One input and one output channel in each group, channels last."""
    g = geometry_of(task)
    if g is None or not g.inputs == g.outputs == 1:
        return
    is_last = is_channels_last(task.input_orders[0]) and is_channels_last(task.output_orders[0])
    if is_last or g.pixels == 1:
        yield Candidate(STEP + _nanoseconds(g), functools.partial(NativeDepthwise, task, g))
