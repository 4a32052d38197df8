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
from irexec.backend.linear import LinearGeometry
from irexec.backend.native.chains import NativeChain, fits
from irexec.backend.native.convolution import STEP, overwritten
from irexec.backend.native.matmul import activations, reordering_cost
from irexec.backend.native.panels import panel_of
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32, I4, I8, U2, U4, U8, unpack
from irexec.native.structures import Parameters, declared_in

# The largest number of rows that use unpacked weights. The number of weights of a column that are unpacked at once:
# few for one tile of rows, to stay in the first-level cache; more for several tiles, because the sums of each tile are
# read and written for each part.
_ROWS, _ONE_TILE, _SEVERAL = 1024, 128, 256
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


@declared_in("compressed.c", "compressed_product")
class CompressedProduct(Parameters):
    """See irexec/native/source/compressed.c."""


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


def packed_bits(source: CompressedSource) -> int:
    """Bits of a weight in a word."""
    return max(4, source.packed.element.bits)


def packed_panels(source: CompressedSource, stored: np.ndarray) -> Panels:
    """The weights of a source as panels; integers of 2 and 4 bits become unsigned ones of 4, those of 8 bits signed."""
    element, columns = source.packed.element, width()
    bits, middle = packed_bits(source), {I4: 8, U8: -128}.get(element, 0)
    mask = np.uint32({I4: 0x88888888, U8: 0x80808080}.get(element, 0))
    words = _words(source, stored.reshape(source.count, -1))
    count, rest = divmod(source.count, columns)
    panels = np.empty((count + bool(rest), words.shape[1], columns), np.uint32)
    copies = [Copy(words[: count * columns].reshape(count, columns, words.shape[1]).swapaxes(1, 2), panels[:count])]
    if rest:
        copies += bordered(words[count * columns :].T, panels[count], [(0, 0), (0, columns - rest)])
    copied(copies)
    if mask:
        np.bitwise_xor(panels, mask, out=panels)
    zero_point = np.zeros_like(source.scale) if source.zero_point is None else source.zero_point
    zeros = zero_point + np.float32(middle)
    implied = bool((zeros == (8 if bits == 4 else 0)).all())
    return Panels(panels, _by_panel(source.scale, columns), None if implied else _by_panel(zeros, columns))


def _words(source: CompressedSource, rows: np.ndarray) -> np.ndarray:
    """The bytes of some rows as words of 32 bits; each group begins with a new word."""
    bits = packed_bits(source)
    if source.group * bits % 32 == 0 and bits == source.packed.element.bits:
        return rows.view("<u4")
    shape = len(rows), source.groups, source.group
    integers = unpack(source.packed.element, rows.reshape(-1), math.prod(shape)).view(np.uint8).reshape(shape)
    padded: np.ndarray = np.zeros((*shape[:2], -(-source.group * bits // 32) * 32 // bits), np.uint8)
    padded[..., : source.group] = integers
    if bits == 4:
        padded = padded[..., ::2] & 15 | padded[..., 1::2] << 4
    return padded.reshape(len(rows), -1).view("<u4")


def _by_panel(parameters: np.ndarray, columns: int) -> np.ndarray:
    """Scales or zero points (features, groups) as (panels, groups, columns), padded with zeros."""
    features, groups = parameters.shape
    count = -(-features // columns)
    made = np.zeros((count * columns, groups), np.float32)
    made[:features] = parameters
    return np.ascontiguousarray(made.reshape(count, columns, groups).swapaxes(1, 2))


class NativeCompressed(NativeKernel):
    """Activations by a matrix of compressed weights whose rows are features."""

    def __init__(self, task: Task, geometry: LinearGeometry, source: CompressedSource) -> None:
        g = self.geometry = geometry
        self.source, self.reads = source, (g.activation,)
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
        self.algorithm = f"C, product with weights of {source.packed.element.bits} bits"
        self.unpacked, rows = _SEVERAL if g.tokens > _TILE else _ONE_TILE, self.row_block + _REPEATED
        self.workspace = 4 * columns * (self.unpacked + rows) + 8 * rows + 4 * _FEW * self._row_size()

    def _row_size(self) -> int:
        """Values of a row with those that fill its words, and sums of runs of words, in a product of few rows."""
        bits, source = packed_bits(self.source), self.source
        words = -(-source.group * bits // 32)
        return (
            source.groups * (words * 32 // bits + -(-words // _RUNS[bits]) * _SUMS)
            if self.geometry.tokens <= _FEW
            else 0
        )

    def pack(self, store: ConstantStore) -> None:
        source = self.source
        self.panels: Panels = store.get([source.bytes], "panels", functools.partial(packed_panels, source))

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        g, operands, panels = self.geometry, inputs[self.own :], self.panels
        x = activations(g, inputs[g.activation], binding)
        out, strides = binding.written(outputs[0], g.groups)
        parameters = CompressedProduct(
            binding.address(x), *element_strides(x)[:2], binding.address(panels.words), binding.address(panels.scales),
            None if panels.zeros is None else binding.address(panels.zeros), self.chain.bias(operands, binding),
            binding.address(out), *strides, self.chain.bind(operands, binding), g.inner, self.source.group,
            g.features, packed_bits(self.source), self.panel, self.unpacked, g.tokens, self.row_block,
            self.panel_block, *self.chain.limits,
        )  # fmt: skip
        binding.call("irx_compressed_product", parameters, self.blocks)


def _even(rows: int, parts: int) -> int:
    """Rows of each part, in whole tiles."""
    return min(rows, -(-rows // (parts * _TILE)) * _TILE)


@kernels("MatMul", since=1)
def _compressed(task: Task) -> Iterator[Candidate]:
    """f32, with a constant of compressed weights on either side, of which each row is a feature."""
    if task.holding == "unpacked" or not is_available(task) or not all(fact.element is F32 for fact in task.inputs):
        return
    for constant in (1, 0):
        source = task.constants[constant]
        if isinstance(source, CompressedSource) and _is_packable(source):
            transposed = task.attributes[("transpose_a", "transpose_b")[constant]] != (constant == 1)
            sizes = *task.output_shape(), *task.shape(1 - constant)
            if not transposed and all(sizes):
                yield from _product(task, LinearGeometry.of(task, 1 - constant), source)
            return


def _is_packable(source: CompressedSource) -> bool:
    """True if the library computes with the type; it cannot round weights to f16."""
    return not source.in_f16 and source.has_rows and source.packed.element in (U2, U4, I4, U8, I8)


def _product(task: Task, g: LinearGeometry, source: CompressedSource) -> Iterator[Candidate]:
    if not fits(task, g.groups):
        return
    vector, blocks = loaded().vector, -(-g.tokens // _ROWS)
    each = _UNPACK[vector] * blocks * (1 + 8 / source.group) + _MULTIPLY[vector] * g.tokens
    cost = (
        STEP
        + g.sheets * g.features * (each * g.inner + 0.05 * g.tokens)
        + reordering_cost(task, g, g.sheets * g.tokens * g.inner + 20_000.0)
    )
    yield Candidate(cost, functools.partial(NativeCompressed, task, g, source))
