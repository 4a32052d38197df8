"""Products with compressed weights by the C library: integers of 2, 4 or 8 bits, packed once and unpacked in its inner
loop; irexec/native/source/compressed.c has the other side."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, copied, element_strides, is_available, loaded
from irexec.backend.compressed import CompressedSource
from irexec.backend.constants import ConstantStore
from irexec.backend.copies import Copy, bordered
from irexec.backend.kernel import Candidate, Task
from irexec.backend.linear import LinearGeometry, innermost
from irexec.backend.matmul import MatrixSizes
from irexec.backend.native.chains import NativeChain, fits
from irexec.backend.native.convolution import STEP, overwritten
from irexec.backend.native.matmul import activations, reordering_cost
from irexec.backend.native.panels import panel_of
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32, I4, I8, U2, U4, U8, Element, unpack
from irexec.native.structures import structure

# The largest number of rows that use unpacked weights. The number of weights of a column that are unpacked at once, by
# the rows: few for one tile, to stay in the first-level cache; more for several, because the sums of each tile are read
# and written for each part; as many as the second-level cache holds for many.
_ROWS, _UNPACKED, _MOST_UNPACKED = 1024, {24: 128, 256: 256}, 1536
# Products of so few rows do not unpack weights.
_FEW = 4
# Words of a run by the bits of a weight, and sums of each.
_RUNS, _SUMS = {4: 4, 8: 8}, 4
# Rows of a tile of every level divide this; rows of a table behind the last one.
_TILE, _REPEATED = 24, 8
# Multiplications of a block, for balance between threads.
_BLOCK = 500_000
# Nanoseconds to unpack a weight and to multiply it by a row, by the size of a vector.
_UNPACK, _MULTIPLY = {16: 0.03, 8: 0.06, 4: 0.3}, {16: 0.012, 8: 0.022, 4: 0.07}

CompressedProduct = structure("compressed.c", "compressed_product")


@dataclass(frozen=True)
class Stack:
    """Matrices of compressed weights, one for all rows or one for each image, such as those of experts.

    Attributes:
        source: the weights, in whatever order.
        count, features, inner: matrices, outputs of each, and weights of an output.
        groups: of the weights of an output.
        by_column: whether the features are the last axis of the weights.
    """

    source: CompressedSource
    count: int
    features: int
    inner: int
    groups: int
    by_column: bool

    @staticmethod
    def of(source: CompressedSource, by_column: bool) -> Stack | None:
        """The weights (..., features, inner), or (..., inner, features); None if groups are not along the inner axis,
        or rows do not begin with a byte."""
        if len(source.shape) < 2:
            return None
        *leading, features, inner = source.shape
        if by_column:
            inner, features = features, inner
        sizes, count = source.packed.shape, math.prod(leading)
        axis, bits = len(sizes) - (2 if by_column else 1), source.packed.element.bits
        if axis < 0 or not count * features * inner or inner * bits % 8:
            return None
        groups, left = divmod(math.prod(sizes), count * features * sizes[axis])
        if left or groups * sizes[axis] != inner or (by_column and sizes[-1] != features):
            return None
        for parameter in (source.stored_scale, source.stored_zero_point):
            if parameter is not None and (*(1,) * (len(sizes) - parameter.ndim), *parameter.shape)[axis] != 1:
                return None
        return Stack(source, count, features, inner, groups, by_column)

    @property
    def group(self) -> int:
        """Weights of a group."""
        return self.inner // self.groups

    def by_feature(self, parameter: np.ndarray) -> np.ndarray:
        """A scale or zero point as f32 (count * features, groups)."""
        sizes = list(self.source.packed.shape)
        sizes[-2 if self.by_column else -1] = 1
        whole = np.broadcast_to(parameter, sizes)
        if self.by_column:
            whole = whole.reshape(self.count, self.groups, self.features).swapaxes(1, 2)
        return whole.reshape(self.count * self.features, self.groups).astype(np.float32)


@dataclass(frozen=True)
class Panels:
    """Packed weights.

    Attributes:
        words: uint32 (panels, words of a column, columns of a panel).
        scales: f32 (panels, groups, columns of a panel).
        zeros: zero points of the integers as they are packed, likewise; None if all are 8 (4 bits) or 0 (8 bits).
    """

    words: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None


def width() -> int:
    """Columns of packed words."""
    return 2 * loaded().vector


def packed_bits(element: Element) -> int:
    """Bits of a weight in a word."""
    return max(4, element.bits)


def packed_panels(stack: Stack, stored: np.ndarray) -> Panels:
    """The weights of a stack as panels; integers of 2 and 4 bits become unsigned ones of 4, those of 8 bits signed."""
    element, columns, rows = stack.source.packed.element, width(), stack.count * stack.features
    bits, middle = packed_bits(element), {I4: 8, U8: -128}.get(element, 0)
    mask = np.uint32({I4: 0x88888888, U8: 0x80808080}.get(element, 0))
    words = _words(stack, stored)
    count, rest = divmod(rows, columns)
    panels = np.empty((count + bool(rest), words.shape[1], columns), np.uint32)
    copies = [Copy(words[: count * columns].reshape(count, columns, words.shape[1]).swapaxes(1, 2), panels[:count])]
    if rest:
        copies += bordered(words[count * columns :].T, panels[count], [(0, 0), (0, columns - rest)])
    copied(copies)
    if mask:
        np.bitwise_xor(panels, mask, out=panels)
    stored_zeros = stack.source.stored_zero_point
    zeros = stack.by_feature(np.zeros(1) if stored_zeros is None else stored_zeros) + np.float32(middle)
    implied = bool((zeros == (8 if bits == 4 else 0)).all())
    scales = _by_panel(stack.by_feature(stack.source.stored_scale), columns)
    return Panels(panels, scales, None if implied else _by_panel(zeros, columns))


def _words(stack: Stack, stored: np.ndarray) -> np.ndarray:
    """The bytes of the features of all matrices as words of 32 bits; each group begins with a new word."""
    element, rows = stack.source.packed.element, stack.count * stack.features
    bits = packed_bits(element)
    if stack.group * bits % 32 == 0 and bits == element.bits and not stack.by_column:
        return stored.reshape(rows, -1).view("<u4")
    integers = unpack(element, stored.reshape(-1), rows * stack.inner).view(np.uint8)
    if stack.by_column:
        integers = integers.reshape(stack.count, stack.inner, stack.features).swapaxes(1, 2)
    shape = rows, stack.groups, stack.group
    padded: np.ndarray = np.zeros((*shape[:2], -(-stack.group * bits // 32) * 32 // bits), np.uint8)
    padded[..., : stack.group] = integers.reshape(shape)
    if bits == 4:
        padded = padded[..., ::2] & 15 | padded[..., 1::2] << 4
    return padded.reshape(rows, -1).view("<u4")


def _by_panel(parameters: np.ndarray, columns: int) -> np.ndarray:
    """Scales or zero points (features, groups) as (panels, groups, columns), padded with zeros."""
    features, groups = parameters.shape
    count = -(-features // columns)
    made = np.zeros((count * columns, groups), np.float32)
    made[:features] = parameters
    return np.ascontiguousarray(made.reshape(count, columns, groups).swapaxes(1, 2))


class NativeCompressed(NativeKernel):
    """Activations by compressed weights: a matrix for all sheets, or one for each."""

    def __init__(self, task: Task, geometry: LinearGeometry, stack: Stack) -> None:
        g = self.geometry = geometry
        self.stack, self.reads = stack, (g.activation,)
        self.bits, self.is_one = packed_bits(stack.source.packed.element), stack.count == 1
        self.own = len(task.inputs)
        self.chain = NativeChain(task.chain, task.operands, task.output_shape(), g.groups, takes_bias=True)
        self.row_block = _even(g.tokens, -(-g.tokens // _ROWS))
        self.row_blocks = -(-g.tokens // self.row_block)
        self.panel = 2 if g.tokens <= _FEW else panel_of(g.features)
        columns = self.panel * loaded().vector
        panels, work = -(-g.features // columns), g.sheets * g.tokens * g.features * g.inner
        wanted = 1 if task.threads == 1 else max(1, min(8 * task.threads, work // _BLOCK))
        self.panel_block = max(1, panels * g.sheets * self.row_blocks // wanted)
        self.blocks = g.sheets * self.row_blocks * -(-panels // self.panel_block)
        self.overwrites = overwritten(task, self.own)
        self.algorithm = f"C, product with weights of {stack.source.packed.element.bits} bits"
        self.unpacked = next((size for rows, size in _UNPACKED.items() if g.tokens <= rows), _MOST_UNPACKED)
        rows = self.row_block + _REPEATED
        self.workspace = 4 * columns * (self.unpacked + rows) + 8 * rows + 4 * _FEW * self._row_size()

    def _row_size(self) -> int:
        """Values of a row with those that fill its words, and sums of runs of words, in a product of few rows."""
        bits, stack = self.bits, self.stack
        words = -(-stack.group * bits // 32)
        return (
            stack.groups * (words * 32 // bits + -(-words // _RUNS[bits]) * _SUMS)
            if self.geometry.tokens <= _FEW
            else 0
        )

    def pack(self, store: ConstantStore) -> None:
        stack = self.stack
        key = "panels", stack.by_column
        self.panels: Panels = store.get([stack.source.bytes], key, functools.partial(packed_panels, stack))

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        g, operands, panels = self.geometry, inputs[self.own :], self.panels
        x = inputs[g.activation]
        if not self.is_one:
            whole = np.broadcast_to(x, (*outputs[0].shape[:-2], *x.shape[-2:]))
            x = whole.reshape(g.sheets, *x.shape[-2:])
            if not np.may_share_memory(x, whole):
                x = binding.copied(whole).reshape(x.shape)
        x = activations(g, x, binding)
        of_words, of_scales = (0 if self.is_one else one.size // g.sheets for one in (panels.words, panels.scales))
        out, strides = binding.written(outputs[0], g.groups)
        parameters = CompressedProduct(
            binding.address(x), *element_strides(x)[:2], binding.address(panels.words), binding.address(panels.scales),
            None if panels.zeros is None else binding.address(panels.zeros), self.chain.bias(operands, binding),
            binding.address(out), *strides, self.chain.bind(operands, binding), of_words, of_scales,
            g.inner, self.stack.group, g.features, self.bits, self.panel, self.unpacked, g.tokens, self.row_block,
            self.panel_block, *self.chain.limits,
        )  # fmt: skip
        binding.call("irx_compressed_product", parameters, self.blocks)


def _even(rows: int, parts: int) -> int:
    """Rows of each part, in whole tiles."""
    return min(rows, -(-rows // (parts * _TILE)) * _TILE)


@kernels("MatMul", since=1)
def _compressed(task: Task) -> Iterator[Candidate]:
    """f32, with a constant of compressed weights on either side, or a stack of them on the right."""
    if task.holding == "unpacked" or not is_available(task) or not all(fact.element is F32 for fact in task.inputs):
        return
    for constant in (1, 0):
        source = task.constants[constant]
        if isinstance(source, CompressedSource):
            by_column = task.attributes[("transpose_a", "transpose_b")[constant]] != (constant == 1)
            stack = Stack.of(source, by_column) if _is_computed(source) else None
            if stack is not None and all((*task.output_shape(), *task.shape(1 - constant))):
                yield from _product(task, constant, stack)
            return


def _is_computed(source: CompressedSource) -> bool:
    """True if the library computes with the type; it cannot round weights to f16."""
    return not source.in_f16 and source.packed.element in (U2, U4, I4, U8, I8)


def _product(task: Task, constant: int, stack: Stack) -> Iterator[Candidate]:
    if stack.count == 1:
        g = LinearGeometry.of(task, 1 - constant)
    else:
        sizes, shape = MatrixSizes.of(task), task.shape(0)
        if constant == 0 or len(shape) < 2 or math.prod(sizes.leading) != stack.count or stack.features % width():
            return
        axes = tuple(range(len(sizes.leading))), (len(sizes.leading),), (len(sizes.leading) + 1,)
        swapped = task.attributes["transpose_a"]
        first = innermost(axes, task.output_shape(), task.output_orders[0])
        g = LinearGeometry(stack.count, sizes.rows, sizes.inner, sizes.columns, 0, swapped, axes, first)
    if not fits(task, g.groups):
        return
    vector, blocks = loaded().vector, -(-g.tokens // _ROWS)
    each = _UNPACK[vector] * blocks * (1 + 8 / stack.group) + _MULTIPLY[vector] * g.tokens
    cost = (
        STEP
        + g.sheets * g.features * (each * g.inner + 0.05 * g.tokens)
        + reordering_cost(task, g, g.sheets * g.tokens * g.inner + 20_000.0)
    )
    # Elsewhere no other kernel leaves the weights compressed.
    has_others = stack.count == 1 and not stack.by_column
    yield Candidate(cost if has_others else 0.0, functools.partial(NativeCompressed, task, g, stack))
