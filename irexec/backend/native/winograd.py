"""Convolutions of 3 by 3 by Winograd's algorithm in C: transforms, and a product of each point with packed weights."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from ctypes import c_double, c_int64, c_void_p
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, element_strides, is_available, loaded
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution import winograd
from irexec.backend.convolution.geometry import Geometry, is_channels_last
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.chains import NativeChain, fits
from irexec.backend.native.convolution import STEP, Product, channel_axes, overwritten, zeros
from irexec.backend.native.panels import Cut, pack, panel_of, product_cost
from irexec.backend.native.sharing import blocks_for
from irexec.backend.native.windows import rows_as_windows, table_bytes
from irexec.backend.registry import kernels

# Bytes of points and products of a part: most of a second-level cache, or more where weights are read for every part.
_PART, _MANY_PART, _MANY = 1 << 20, 3 << 20, 192
# Vectors of so many floats have products and sums with one rounding. With two the error of m = 6 is over 1e-5.
_FUSED = 8
# Nanoseconds of a multiplication of vectors in a transform, and to read and write a vector of a point.
_MULTIPLY, _MOVE = 0.25, 0.9


class _Tiling(ctypes.Structure):
    """See irexec/native/source/winograd.c."""

    _fields_ = (
        ("size", c_int64), ("down", c_int64), ("across", c_int64), ("first", c_int64), ("count", c_int64),
        ("blocks", c_int64), ("matrix", c_void_p),
    )  # fmt: skip


class _Spreading(ctypes.Structure):
    """See winograd.c."""

    _fields_ = (
        ("tiles", _Tiling), ("data", c_void_p), ("data_image", c_int64), ("data_row", c_int64), ("data_pixel", c_int64),
        ("height", c_int64), ("width", c_int64), ("top", c_int64), ("left", c_int64), ("channels", c_int64),
        ("points", c_void_p),
    )  # fmt: skip


class _Gathering(ctypes.Structure):
    """See winograd.c."""

    _fields_ = (
        ("tiles", _Tiling), ("products", c_void_p), ("outputs", c_int64), ("height", c_int64), ("width", c_int64),
        ("bias", c_void_p), ("out", c_void_p), ("out_image", c_int64), ("out_row", c_int64), ("out_column", c_int64),
        ("after", c_void_p), ("low", c_double), ("high", c_double),
    )  # fmt: skip


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


class NativeWinograd(NativeKernel):
    """A convolution of channels last of one group, with strides and dilations of 1."""

    def __init__(self, task: Task, tiles: Tiles) -> None:
        g = self.geometry = tiles.geometry
        self.tiles, self.source, self.own = tiles, task.constants[1], len(task.inputs)
        self.axes = channel_axes(4)
        self.chain = NativeChain(task.chain, task.operands, task.output_shape(), self.axes, takes_bias=True)
        self.panel, self.threads = panel_of(g.outputs), task.threads
        self.cut = Cut.of(tiles.points, tiles.largest, 1, g.inputs, g.outputs, task.threads)
        self.overwrites = overwritten(task, self.own)
        self.reads = (0,)
        self.algorithm = f"C, Winograd F({tiles.tile}x{tiles.tile}, 3x3)"
        self.workspace = table_bytes(self.cut.block_rows(tiles.largest), 1)
        self.shared_workspace = 4 * tiles.points * tiles.largest * (g.inputs + g.outputs)

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "weights are constants"
        g, tile = self.geometry, self.tiles.tile

        def make(filter: np.ndarray) -> np.ndarray:
            return pack(winograd.transformed(tile, filter.reshape(g.outputs, g.inputs, 3, 3)))

        self.weights = store.get([self.source], ("native winograd", tile, self.panel), make)
        f32 = np.dtype(np.float32)
        self.spread, self.gather = (winograd.matrix(tile, which, f32) for which in ("input", "output"))

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
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
                for matrix in (self.spread, self.gather)
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

    def _product(self, count: int, products: int, binding: Binding) -> Product:
        """The products of the points of a part."""
        g = self.geometry
        window = rows_as_windows(binding.shared, count * g.inputs, g.inputs, count, binding.address(zeros(g.inputs)))
        each = self.weights.size // self.tiles.points
        return Product(
            window, binding.address(self.weights), each, None, None, products, count * g.outputs, g.outputs, 1, None,
            g.inputs, 1, g.outputs, self.panel, count, min(self.cut.rows, count), self.cut.panels, -math.inf, math.inf,
        )  # fmt: skip


@kernels("Convolution", since=1)
def convolution(task: Task) -> Iterator[Candidate]:
    """Constant weights, f32, two spatial axes, channels last."""
    if not is_available(task) or task.constants[1] is None:
        return
    g = Geometry.of(task, grouped=False)
    if g is None or g.dtype != np.float32 or not is_channels_last(task.input_orders[0]):
        return
    if not fits(task, channel_axes(len(task.output_shape()))):
        return
    reordered = 0.0 if is_channels_last(task.output_orders[0]) else 0.4 * g.images * g.outputs * g.pixels
    for tile in winograd.TILES:
        if winograd.suits(g, tile) and (tile < 6 or loaded().vector >= _FUSED):
            tiles = Tiles(g, tile)
            yield Candidate(tiles.cost + reordered, functools.partial(NativeWinograd, task, tiles))
