"""Products and convolutions of levels by the C library."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, element_strides, loaded
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import Geometry, convolution_geometry, filter_shape, is_channels_last
from irexec.backend.copies import Copy, array_at, bind_copies, bordered
from irexec.backend.kernel import Candidate, Task
from irexec.backend.linear import LinearGeometry
from irexec.backend.native.chains import NativeChain, fits
from irexec.backend.native.convolution import STEP, channel_axes
from irexec.backend.native.integer_products import IntegerKernel, packed_words, unit, zero_levels
from irexec.backend.native.matmul import activations
from irexec.backend.native.panels import (
    Cut,
    blocks_for,
    padded,
    panel_of,
    row_block,
    rows_as_windows,
    table_bytes,
    windows_of,
)
from irexec.backend.native.transposed import phase_windows, weights_of
from irexec.backend.registry import kernels
from irexec.backend.scratch import aligned
from irexec.backend.transposed import Phase, TransposedGeometry, geometry_of, positions
from irexec.dtypes.elements import F32, U8
from irexec.native.library import library
from irexec.native.structures import structure

# Products of a nanosecond on one thread, by the elements of a word (native_products.py): VNNI, and pairs of 16 bits.
_RATE = {4: 150.0, 2: 40.0}
# Nanoseconds to copy a byte, to copy it to another order, to widen it, to read a weight, and to write a result whose
# neighbours in memory are those of another row.
_COPY, _REORDERED, _WIDEN, _READ, _SCATTERED = 0.05, 0.35, 0.06, 0.03, 0.4


class IntegerConvolution(IntegerKernel):
    """A convolution of levels that are channels last, or are copied so, with borders of the zero level."""

    def __init__(self, task: Task, geometry: Geometry, copies: bool) -> None:
        s = self.geometry = geometry
        self.copies, self.channels, self.windows = copies, s.inputs, s.windows
        taps = s.points
        self.merges = False
        if copies:
            self.channels = -(-s.inputs // unit()) * unit()
            zero = (0,) * len(s.sizes)
            self.windows = replace(s.windows, pads_begin=zero, pads_end=zero)
            self.merges = s.groups == 1 and s.windows.dilations[-1] == 1
            if self.merges:
                taps //= s.windows.kernel[-1]
        depth = self.channels * (s.points // taps)
        around = zip(s.sizes, s.windows.pads_begin, s.windows.pads_end, strict=True)
        self.spatial = tuple(size + a + b for size, a, b in around) if copies else s.sizes
        super().__init__(
            task, channel_axes(len(task.output_shape())), (s.images, s.groups, s.pixels, s.outputs), taps, depth
        )
        # Four bytes of a word may lie behind the last channel.
        size = aligned(s.images * s.groups * self.channels * math.prod(self.spatial) + 64)
        self.copied = size if copies else 0
        self.shared_workspace = self.copied + (0 if unit() == 4 else 2 * size)
        self.algorithm = "C, convolution of integers" if s.points > 1 else "C, 1x1 product of integers"

    def _key(self) -> tuple[Any, ...]:
        return (self.channels,)

    def _matrices(self, integers: np.ndarray) -> np.ndarray:
        s = self.geometry
        weights = integers.reshape(s.groups, s.outputs, s.inputs, s.points).transpose(0, 3, 2, 1)
        more = self.channels - s.inputs
        whole = np.pad(weights, [(0, 0), (0, 0), (0, more), (0, 0)]) if more else weights
        return whole.reshape(s.groups, s.points * self.channels, s.outputs)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        s, x = self.geometry, inputs[0]
        zeros = zero_levels(self.grid.zero, self.depth)
        pads = list(zip(s.windows.pads_begin, s.windows.pads_end, strict=True))
        copy = (s.groups, s.inputs, self.channels) if self.copies else None
        x = self.channels_last(x, copy, pads, binding.shared + self.copied, binding)
        window = windows_of(x, self.windows, zeros, binding)
        if self.merges:
            window.kernel[2] = 1
        self._multiply(window, inputs, outputs[0], binding)


IntegerWinogradParameters = structure("integer_winograd.c", "integer_winograd")

# Rows of the matrix that transforms weights, twice those of F(2, 3).
_FILTER = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int16)
# Channels up to which four times a result fits in 32 bits.
_EXACT = (2**31 - 1) // (4 * 255 * 9 * 128)
# Nanoseconds to transform a tile before and after the products, for each input and output channel.
_BEFORE, _AFTER = 1.6, 2.4


class IntegerWinograd(IntegerKernel):
    """A convolution of 3 by 3 of levels that are channels last, by Winograd's F(2 x 2, 3 x 3)."""

    def __init__(self, task: Task, geometry: Geometry) -> None:
        s = self.geometry = geometry
        super().__init__(task, channel_axes(4), (s.images, 1, s.pixels, s.outputs), 1, s.inputs)
        self.down, self.across = (-(-count // 2) for count in s.windows.counts)
        self.tiles = s.images * self.down * self.across
        self.cut = Cut.of(1, self.tiles, 16, s.inputs, s.outputs, task.threads, 1)
        # A tile has 16 points of 16 bits in each channel, and a pointer to each.
        block = self.cut.block_rows(self.tiles)
        self.workspace = 32 * s.inputs * block + table_bytes(block, 16)
        self.shared_workspace = 2 * aligned(s.images * s.inputs * math.prod(s.sizes) + 64)
        self.algorithm = "C, Winograd F(2x2, 3x3) of integers"

    def _packed(self, integers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        s = self.geometry
        filter = integers.reshape(s.outputs, s.inputs, 3, 3).astype(np.int16)
        points = np.matmul(_FILTER, filter @ _FILTER.T).transpose(2, 3, 1, 0)
        start = np.zeros(padded(s.outputs), np.int32)
        start[: s.outputs] = -self.grid.zero * integers.reshape(s.outputs, -1).sum(axis=1, dtype=np.int64)
        return packed_words(points.reshape(16, s.inputs, s.outputs), self.panel), start

    def _key(self) -> tuple[Any, ...]:
        return ("winograd",)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        s = self.geometry
        x = self.channels_last(inputs[0], None, (), binding.shared, binding)
        window = windows_of(x, s.windows, zero_levels(self.grid.zero, s.inputs), binding)
        out, strides = binding.written(outputs[0], self.axes, innermost=1 if self.is_levels else None)
        parameters = IntegerWinogradParameters(
            window, binding.address(self.weights), binding.address(self.start),
            self._ending(inputs[self.own :], out, strides, binding), s.inputs, s.outputs, self.panel, self.down,
            self.across, self.tiles, self.cut.rows, self.cut.panels,
        )  # fmt: skip
        binding.call("irx_integer_winograd", parameters, self.cut.rows * self.cut.panels)


def _winograd_cost(s: Geometry) -> float:
    """Estimated nanoseconds on one thread."""
    tiles = s.images * math.prod(-(-count // 2) for count in s.windows.counts)
    transforms = tiles * (_BEFORE * s.inputs + _AFTER * s.outputs)
    return transforms + 16 * _cost(1, tiles, s.inputs, s.outputs) + s.images * s.outputs * s.pixels * 0.12


def _suits_winograd(s: Geometry) -> bool:
    w = s.windows
    is_three = s.groups == 1 and w.kernel == (3, 3) and set(w.strides) == set(w.dilations) == {1}
    return unit() == 2 and is_three and s.inputs % (2 * loaded().vector) == 0 and s.inputs <= _EXACT


def _cost(images: int, rows: int, depth: int, columns: int) -> float:
    """Estimated nanoseconds of products on one thread."""
    work = padded(columns) * depth
    return images * (work * rows / _RATE[unit()] + rows * columns * 0.12) + work * _READ + STEP


def _is_available(task: Task) -> bool:
    if not task.native or library() is None or any(c is None for c in task.constants[1:3]):
        return False
    if any(0 in fact.static_shape for fact in (*task.inputs, *task.outputs)):
        return False
    return task.outputs[0].element in (F32, U8)


IntegerDepthwiseParameters = structure("integer_depthwise.c", "integer_depthwise")


class IntegerDepthwise(IntegerKernel):
    """One kernel of integers for each channel, of levels that are channels last."""

    def __init__(self, task: Task, geometry: Geometry) -> None:
        s = self.geometry = geometry
        axes = channel_axes(len(task.output_shape()))
        super().__init__(task, axes, (s.images, 1, s.pixels, s.groups), s.points, 1)
        self.block = row_block(s.pixels, s.points, s.groups // 4, blocks_for(_depthwise_cost(s), task.threads))
        self.workspace = 0
        self.algorithm = "C, depthwise convolution of integers"

    def _packed(self, integers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Words of taps for each chunk of channels, in the order in which C interleaves bytes."""
        s = self.geometry
        across, word = s.windows.kernel[-1], _taps_of_word()
        rows, first = s.points // across, 0
        made: list[np.ndarray] = []
        begins: list[np.ndarray] = []
        start = np.zeros(s.groups + 64, np.int32)
        start[: s.groups] = -self.grid.zero * integers.reshape(s.groups, s.points).sum(axis=1, dtype=np.int64)
        deep = np.zeros((s.groups + 64, -(-rows // word) * word, across), np.int16 if word == 2 else np.int8)
        deep[: s.groups, :rows] = integers.reshape(s.groups, rows, across)
        while first < s.groups:
            left = s.groups - first
            size = 16 if word == 2 or left <= 32 else 64
            part, begin = deep[first : first + size], start[first : first + size]
            if word == 2:
                made.append(part.reshape(16, -1, 2, across).transpose(1, 3, 0, 2))
                begins.append(begin)
            else:
                # Lanes of 16 channels, of which each vector has four.
                made.append(part.reshape(size // 16, 4, 4, -1, 4, across).transpose(3, 5, 1, 0, 2, 4))
                begins.append(begin.reshape(size // 16, 4, 4).swapaxes(0, 1))
            first += size
        start = np.concatenate([part.reshape(-1) for part in begins])
        return np.concatenate([part.reshape(-1) for part in made]), start

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        s = self.geometry
        out, strides = binding.written(outputs[0], self.axes, innermost=1)
        x = binding.with_stride(inputs[0], 1)
        zeros = np.full(s.groups + 64, self.grid.zero, np.uint8)
        parameters = IntegerDepthwiseParameters(
            windows_of(x, s.windows, zeros, binding), binding.address(self.weights), binding.address(self.start),
            self._ending(inputs[self.own :], out, strides, binding), s.groups, _taps_of_word(), s.pixels,
            -(-s.pixels // self.block),
        )  # fmt: skip
        binding.call("irx_integer_depthwise", parameters, s.images * parameters.row_parts)


# The widest kernel of a depthwise convolution, whose positions C keeps in a buffer.
_WIDEST = 32
# Pixels that a depthwise convolution sums at once; products of a nanosecond, and nanoseconds of an output and a pixel.
_PIXELS, _TAPS, _OUTPUT, _PIXEL = 4, {4: 40.0, 2: 12.0}, 0.12, 10.0


def _taps_of_word() -> int:
    """The taps of a depthwise kernel that one instruction adds: strips of four are written for AVX-512."""
    return unit() if loaded().vector == 16 else 2


def _depthwise_cost(s: Geometry) -> float:
    outputs, pixels = s.images * s.groups * s.pixels, s.images * s.pixels
    return STEP + outputs * (s.points / _TAPS[_taps_of_word()] + _OUTPUT) + pixels * (_PIXEL + 2 * s.points)


class _Phase(IntegerKernel):
    """The product of one phase of a transposed convolution; see backend.transposed.geometry."""

    def __init__(self, task: Task, geometry: TransposedGeometry, axes: Phase, channels: int) -> None:
        g = self.geometry = geometry
        self.phase, self.channels = axes, channels
        taps, pixels = math.prod(len(axis.taps) for axis in axes), math.prod(axis.count for axis in axes)
        sizes = g.images, g.groups, pixels, g.outputs
        super().__init__(task, channel_axes(2 + len(axes)), sizes, taps, channels)

    def _key(self) -> tuple[Any, ...]:
        return (self.channels, *(axis.taps for axis in self.phase))

    def _matrices(self, integers: np.ndarray) -> np.ndarray:
        g = self.geometry
        whole = np.zeros((g.groups, self.taps, self.channels, g.outputs), integers.dtype)
        whole[:, :, : g.inputs] = weights_of(self.phase, integers.reshape(g.weights))
        return whole.reshape(g.groups, self.taps * self.channels, g.outputs)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind; the data is as the products read it."""
        window = phase_windows(inputs[0], self.phase, zero_levels(self.grid.zero, self.depth), binding)
        self._multiply(window, inputs, outputs[0], binding)


class IntegerTransposed(NativeKernel):
    """Phases of a transposed convolution of levels, whose results are copied to their positions."""

    def __init__(self, task: Task, geometry: TransposedGeometry, copies: bool) -> None:
        g = self.geometry = geometry
        self.copies, self.reads = copies, (0,)
        self.channels = -(-g.inputs // unit()) * unit() if copies else g.inputs
        phases = [axes for axes in g.phases if all(axis.count for axis in axes)]
        self.phases = [_Phase(task, g, axes, self.channels) for axes in phases]
        self.algorithm = "C, phases as products of integers"
        data = aligned(g.images * g.groups * self.channels * math.prod(g.sizes) + 64)
        self.copied, self.widened = data if copies else 0, 0 if unit() == 4 else 2 * data
        item = 1 if task.outputs[0].element is U8 else 4
        results = sum(aligned(item * g.images * g.groups * g.outputs * one.rows) for one in self.phases)
        self.workspace = max((one.workspace for one in self.phases), default=0)
        self.shared_workspace = self.copied + self.widened + results

    def pack(self, store: ConstantStore) -> None:
        for phase in self.phases:
            phase.pack(store)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g, x, scattered = self.geometry, inputs[0], []
        copy = (g.groups, g.inputs, self.channels) if self.copies else None
        x = self.phases[0].channels_last(x, copy, [(0, 0)] * len(g.sizes), binding.shared + self.copied, binding)
        address, out = binding.shared + self.copied + self.widened, np.moveaxis(outputs[0], 1, -1)
        for phase in self.phases:
            target = out[(slice(None), *positions(phase.phase, g.windows.strides))]
            result = array_at(address, target.shape, target.dtype)
            address += aligned(result.nbytes)
            phase.bind([x, *inputs[1:]], [np.moveaxis(result, -1, 1)], binding)
            scattered.append(Copy(result, target))
        bind_copies(scattered, binding)


@kernels("IntegerConvolutionBackpropData", since="irexec")
def convolution_backprop_data(task: Task) -> Iterator[Candidate]:
    """Up to three spatial axes; chains read values of channels alone."""
    axes = channel_axes(len(task.output_shape()))
    if not _is_available(task) or len(task.shape(0)) > 5 or not fits(task, axes):
        return
    arguments = (1, *task.shape(1)), None, task.attributes["attributes"]
    g = geometry_of(np.dtype(np.float32), task.shape(0), *arguments)
    cost = STEP + _REORDERED * math.prod(task.output_shape())
    for phase in g.phases:
        pixels, taps = math.prod(axis.count for axis in phase), math.prod(len(axis.taps) for axis in phase)
        cost += _cost(g.images, pixels, taps * -(-g.inputs // 4) * 4, g.outputs) + g.images * pixels * taps * 3
    size = math.prod(task.shape(0))
    is_last = is_channels_last(task.input_orders[0]) or math.prod(g.sizes) == 1
    copies = not is_last or g.inputs % unit() != 0
    if copies:
        cost += (_COPY if is_last else _REORDERED) * size + STEP
    yield Candidate(cost, functools.partial(IntegerTransposed, task, g, copies))


@kernels("IntegerConvolution", since="irexec")
@kernels("IntegerGroupConvolution", since="irexec")
def convolution(task: Task) -> Iterator[Candidate]:
    """Up to three spatial axes, groups of any number of channels."""
    axes = channel_axes(len(task.output_shape()))
    if not _is_available(task) or len(task.shape(0)) > 5 or not fits(task, axes):
        return
    s = convolution_geometry(np.dtype(np.uint8), task.shape(0), filter_shape(task), task.attributes["attributes"])
    is_last = is_channels_last(task.input_orders[0]) or math.prod(s.sizes) == 1
    is_out = is_channels_last(task.output_orders[0]) or s.pixels == 1
    is_depthwise = task.definition.type == "IntegerGroupConvolution" and s.inputs == s.outputs == 1
    if is_depthwise and is_last and is_out and s.windows.kernel[-1] <= _WIDEST:
        yield Candidate(_depthwise_cost(s), functools.partial(IntegerDepthwise, task, s))
        return
    cost = _cost(s.images * s.groups, s.pixels, -(-s.inputs // 4) * 4 * s.points, s.outputs)
    cost += s.images * s.groups * s.pixels * s.points * 3
    size = s.images * s.groups * s.inputs * math.prod(s.sizes)
    if not is_out:
        cost += _SCATTERED * s.images * s.groups * s.outputs * s.pixels
    if unit() == 2:
        cost += _WIDEN * size
    if is_last and _suits_winograd(s):
        yield Candidate(_winograd_cost(s) + _WIDEN * size, functools.partial(IntegerWinograd, task, s))
    if is_last and s.inputs % unit() == 0 and (s.inputs > 16 or s.points == 1):
        yield Candidate(cost, functools.partial(IntegerConvolution, task, s, False))
    else:
        cost += (_COPY if is_last else _REORDERED) * size + STEP
        yield Candidate(cost, functools.partial(IntegerConvolution, task, s, True))


class IntegerLinear(IntegerKernel):
    """Levels by a matrix of integers."""

    def __init__(self, task: Task, geometry: LinearGeometry) -> None:
        g = self.geometry = geometry
        self.inner = -(-g.inner // unit()) * unit()
        self.transposed = task.attributes["transpose_b"]
        super().__init__(task, g.groups, (g.sheets, 1, g.tokens, g.features), 1, self.inner)
        self.size = aligned(g.sheets * g.tokens * self.inner + 64)
        self.shared_workspace = self.size * (1 if unit() == 4 else 3)
        self.algorithm = "C, product of integers"

    def _key(self) -> tuple[Any, ...]:
        return (self.transposed, self.inner)

    def _matrices(self, integers: np.ndarray) -> np.ndarray:
        g = self.geometry
        matrix = integers.reshape(g.features, g.inner).T if self.transposed else integers.reshape(g.inner, g.features)
        more = self.inner - g.inner
        return (np.pad(matrix, [(0, more), (0, 0)]) if more else matrix)[None]

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g = self.geometry
        sheets = g.matrices(inputs[0])
        is_view = np.may_share_memory(sheets, inputs[0])
        if not is_view:
            sheets = g.matrices(binding.copied(inputs[0]))
        if self.inner != g.inner or not sheets.flags.c_contiguous:
            made = array_at(binding.shared, (g.sheets, g.tokens, self.inner), np.dtype(np.uint8))
            pads = [(0, 0), (0, 0), (0, self.inner - g.inner)]
            bind_copies([*bordered(sheets, made, pads, np.zeros((), np.uint8))], binding)
            sheets = made
        sheets = self.as_words(sheets, binding.shared + self.size, binding)
        image, row, _ = element_strides(sheets)
        zeros = binding.address(zero_levels(self.grid.zero, self.inner))
        window = rows_as_windows(binding.address(sheets), image, row, self.rows, zeros)
        self._multiply(window, inputs, outputs[0], binding)


@kernels("IntegerMatMul", since="irexec")
def matmul(task: Task) -> Iterator[Candidate]:
    """Activations on the left, a matrix on the right."""
    if not _is_available(task) or len(task.shape(1)) != 2:
        return
    g = LinearGeometry.of(task, 0)
    if not fits(task, g.groups):
        return
    cost = _cost(g.sheets, g.tokens, g.inner, g.features) + _COPY * g.sheets * g.tokens * g.inner
    yield Candidate(cost + _cost_of_orders(task, g), functools.partial(IntegerLinear, task, g))


def _cost_of_orders(task: Task, g: LinearGeometry) -> float:
    """Nanoseconds of copies, where rows of the data or of the result do not lie in one piece."""
    cost, depth = 0.0, len(task.shape(0)) - (2 if task.attributes["transpose_a"] else 1)
    if (task.input_orders[0] or range(len(task.shape(0))))[-1] != depth:
        cost += _REORDERED * g.sheets * g.tokens * g.inner + STEP
    rank = len(task.output_shape())
    if (task.output_orders[0] or range(rank))[-1] != rank - 1:
        cost += (_SCATTERED if task.outputs[0].element is F32 else 2.0) * g.sheets * g.tokens * g.features
    return cost


Quantization = structure("integer_product.c", "quantization")
DynamicProduct = structure("integer_product.c", "dynamic_product")

_VALUES, _LEVEL = 16, 128
"""Values that the groups of a row are whole multiples of, and the level of 0."""


class DynamicLinear(NativeKernel):
    """Rows of floats, quantised by groups in each run, by a matrix of integers whose rows are features."""

    def __init__(self, task: Task, geometry: LinearGeometry) -> None:
        g = self.geometry = geometry
        self.group, self.reads, self.own = task.attributes["group"], (0,), len(task.inputs)
        self.sources = task.constants[1:4]
        self.pitch, self.rows = -(-g.inner // _VALUES) * _VALUES, g.sheets * g.tokens
        self.groups, self.panel = -(-g.inner // self.group), panel_of(g.features)
        self.chain = NativeChain(task.chain, task.operands, task.output_shape(), g.groups, takes_bias=True)
        self.cut = Cut.of(g.sheets, g.tokens, 1, g.inner, g.features, task.threads)
        # Integers of all rows, their scales and their sums.
        self.size, self.each = aligned(self.rows * self.pitch * 4 // unit()), aligned(4 * self.rows * self.groups)
        self.shared_workspace = self.size + 2 * self.each + 64
        self.algorithm = f"C, product of integers, rows by groups of {self.group}"

    def pack(self, store: ConstantStore) -> None:
        sources = [one for one in self.sources if one is not None]
        assert len(sources) == 3, "weights are constants"
        key = ("dynamic panels", self.group, unit())
        self.weights, self.start, self.scales, self.zeros = store.get(sources, key, self._packed)

    def _packed(self, integers: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> tuple[Any, ...]:
        """Panels of words; and for each group of a row and each column what takes 128 off, the scale and the zero
        point, of which there are none if all are 0."""
        g = self.geometry
        matrix = np.zeros((self.pitch, g.features), np.int8)
        matrix[: g.inner] = integers.T
        first = np.arange(0, self.pitch, self.group)
        start = -_LEVEL * np.add.reduceat(matrix, first, axis=0, dtype=np.int32)
        # A group of a row lies in one of the weights.
        own = first * scale.shape[1] // g.inner
        zeros = _by_panel(zero.T[own], np.int32, self.panel) if zero.any() else None
        scales = _by_panel(scale.T[own], np.float32, self.panel)
        return packed_words(matrix[None], self.panel), _by_panel(start, np.int32, self.panel), scales, zeros

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g, operands = self.geometry, inputs[self.own :]
        x = activations(g, inputs[0], binding)
        levels = aligned(binding.shared)
        scales, sums = levels + self.size, levels + self.size + self.each
        rows = Quantization(
            binding.address(x), *element_strides(x)[:2], levels, scales, sums, g.inner, self.group, self.pitch, unit(),
            g.tokens, self.rows,
        )  # fmt: skip
        binding.call("irx_quantize_rows", rows, self.rows)
        out, strides = binding.written(outputs[0], g.groups)
        product = DynamicProduct(
            levels, scales, sums, binding.address(self.weights), binding.address(self.start),
            binding.address(self.scales), None if self.zeros is None else binding.address(self.zeros),
            self.chain.bias(operands, binding), binding.address(out), *strides, self.chain.bind(operands, binding),
            self.group, self.pitch, unit(), g.features, self.panel, g.tokens, self.cut.rows, self.cut.panels,
            *self.chain.limits,
        )  # fmt: skip
        binding.call("irx_dynamic_product", product, g.sheets * self.cut.rows * self.cut.panels)


def _by_panel(values: np.ndarray, kind: type, vectors: int) -> np.ndarray:
    """Values (groups, columns) as they are read: panel by panel the groups of its columns, in whole vectors."""
    made: np.ndarray = np.zeros((len(values), padded(values.shape[1])), kind)
    made[:, : values.shape[1]] = values
    width = vectors * padded(1)
    panels = np.split(made, range(width, made.shape[1], width), axis=1)
    return np.concatenate([panel.reshape(-1) for panel in panels])


@kernels("DynamicMatMul", since="irexec")
def dynamic_matmul(task: Task) -> Iterator[Candidate]:
    """Rows of any strides, whose values are next to each other or are copied so."""
    if not _is_available(task) or task.outputs[0].element is not F32:
        return
    g = LinearGeometry.of(task, 0)
    if fits(task, g.groups):
        cost = _cost(g.sheets, g.tokens, g.inner, g.features) + g.sheets * g.tokens * g.inner
        yield Candidate(cost + _cost_of_orders(task, g), functools.partial(DynamicLinear, task, g))
