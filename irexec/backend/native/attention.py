"""ScaledDotProductAttention by the C library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irexec.backend.attention import AttentionSizes
from irexec.backend.calls import Binding, NativeKernel, is_available, loaded, merged_strides
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.convolution import STEP
from irexec.backend.native.following import can_follow, followed
from irexec.backend.native.integer_products import unit
from irexec.backend.native.panels import padded, panel_of, product_cost
from irexec.backend.registry import kernels
from irexec.dtypes.elements import BOOLEAN, F32
from irexec.native.structures import Parameters, declared_in
from irexec.reference.integers import Scores

# Bytes of the scores of a group of rows, its rows, and columns of a block, at most.
_SCORES, _GROUP, _COLUMNS = 1 << 16, 48, 512
# Nanoseconds to pack a value, of a score, and of a row.
_PACK, _SCORE, _ROW = 0.4, 0.4, 30.0


@declared_in("attention.c", "matrices")
class Matrices(Parameters):
    """See irexec/native/source/attention.c."""


@declared_in("attention.c", "attention")
class AttentionParameters(Parameters):
    """See irexec/native/source/attention.c."""


class AttentionBlocks:
    """Blocks of an attention.

    Args:
        sizes: of the attention; ``columns`` are the maximum of a block where their number is not known.
        parts: maximum number of parts into which the rows of a matrix are cut.

    Attributes:
        row_parts: the number of parts.
        sizes: rows of a block and of a group, columns of a block, vectors of panels of keys and of values.
        workspace: bytes of scratch.
    """

    def __init__(self, sizes: AttentionSizes, parts: int = 1) -> None:
        s, row_block = sizes, -(-sizes.rows // parts)
        self.row_parts = -(-s.rows // row_block)
        columns = _even(s.columns, _COLUMNS, 3 * loaded().vector)
        pitch = padded(columns)
        group = min(_GROUP, max(8, _SCORES // (4 * pitch) // 8 * 8), -(-s.rows // 8) * 8)
        self.sizes = row_block, group, columns, panel_of(columns), panel_of(s.values)
        rows, packed = group + 8, pitch * s.width + padded(s.values) * columns
        sums = row_block * (2 + padded(s.values)) + pitch
        self.workspace = 8 * rows + 4 * (packed + rows * (s.width + pitch + padded(s.values) + 1) + sums)


def _even(size: int, most: int, multiple: int) -> int:
    """Columns of each of the blocks that are cut from ``size``, a multiple unless it is one block."""
    parts = -(-size // most)
    return size if parts <= 1 else -(-size // (parts * multiple)) * multiple


class NativeAttention(NativeKernel):
    """Blocks of rows of single matrices."""

    def __init__(self, task: Task, sizes: AttentionSizes) -> None:
        s = self.sizes = sizes
        self.causal = task.attributes["causal"]
        mask = task.inputs[3].element if task.has_input(3) and not self.causal else None
        source = task.constants[3] if mask is F32 else None
        if source is not None and not source.array().any():
            mask = None
        self.mask_kind = 0 if mask is None else 2 if mask is BOOLEAN else 1
        self.scores: Scores | None = task.attributes.get("scores")
        parts = 1 if task.threads == 1 else max(1, min(4 * task.threads // s.matrices, s.rows // 64))
        self.blocks = AttentionBlocks(s, parts)
        self.algorithm = "C, attention by blocks of rows" if self.scores is None else "C, attention to levels"
        self.workspace = self.blocks.workspace

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        s = self.sizes
        query, key, value, mask, scale, sink = (*inputs, None, None, None)[:6]
        out, strides = binding.written(outputs[0], self._axes())
        levels: tuple[float, ...] = (0, 0, 0, 0.0)
        if self.scores is not None:
            query, key = binding.with_stride(query, -1), binding.with_stride(key, -1)
            levels = unit(), self.scores.query_zero, self.scores.key_zero, self.scores.step
        scale = None if scale is None else binding.in_order(scale)
        parameters = AttentionParameters(
            self._matrices(query, (s.rows, s.width), binding), self._matrices(key, (s.columns, s.width), binding),
            self._matrices(value, (s.columns, s.values), binding),
            self._matrices(mask if self.mask_kind else None, (s.rows, s.columns), binding),
            self._matrices(sink, (s.rows, 1), binding), Matrices(binding.address(out), *strides),
            None if scale is None else binding.address(scale), 1 / math.sqrt(s.width), math.prod(s.leading[:-1]),
            s.leading[-1], 1, s.rows, s.columns, s.width, s.values, *self.blocks.sizes, self.mask_kind,
            int(self.causal), *levels,
        )  # fmt: skip
        binding.call("irx_attention", parameters, s.matrices * self.blocks.row_parts)

    def _axes(self) -> tuple[tuple[int, ...], ...]:
        count = len(self.sizes.leading)
        return tuple(range(count - 1)), (count - 1,), (count,), (count + 1,)

    def _matrices(self, array: np.ndarray | None, sizes: tuple[int, int], binding: Binding) -> Matrices:
        if array is None:
            return Matrices()
        whole = np.broadcast_to(array, (*self.sizes.leading, *sizes))
        strides = merged_strides(whole, self._axes())
        if strides is None:
            whole = binding.copied(whole)
            strides = merged_strides(whole, self._axes())
            assert strides is not None, "it is in order"
        return Matrices(binding.address(whole), *strides)


@kernels("ScaledDotProductAttention", since=13)
@kernels("IntegerAttention", since="irexec")
def attention(task: Task) -> Iterator[Candidate]:
    """f32, the first two inputs also levels, with an f32 or boolean mask."""
    first = 0 if "scores" not in task.attributes else 2
    given = [fact.element for i, fact in enumerate(task.inputs) if i >= first and i != 3 and fact.element is not None]
    if not is_available(task) or any(element is not F32 for element in given):
        return
    if task.has_input(3) and task.inputs[3].element not in (F32, BOOLEAN):
        return
    sizes = AttentionSizes.of(task)
    if sizes is None or (task.has_input(5) and task.shape(5)[-1:] not in ((), (1,))):
        return
    s = sizes
    products = product_cost(s.rows, s.width, s.columns) + product_cost(s.rows, s.columns, s.values)
    work = products + _PACK * s.columns * (s.width + s.values) + s.rows * (_SCORE * s.columns + _ROW)
    follows = can_follow(task)

    def make() -> NativeKernel:
        kernel = NativeAttention(task, s)
        return followed(kernel, task) if follows else kernel

    yield Candidate(STEP + s.matrices * work, make, runs_chain=follows)
