"""ScaledDotProductAttention by the C library, and attention whose keys and values are appended to variables."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from irexec.backend.attention import AttentionSizes
from irexec.backend.calls import Binding, NativeKernel, element_strides, is_available, loaded
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.convolution import STEP
from irexec.backend.native.elementwise import can_follow, followed
from irexec.backend.native.integer_products import unit
from irexec.backend.native.panels import padded, panel_of, product_cost
from irexec.backend.registry import kernels
from irexec.dtypes.elements import BOOLEAN, F32
from irexec.errors import OpError, check
from irexec.ir.dims import shape_text
from irexec.native.structures import Parameters, structure
from irexec.reference.grids import Scores
from irexec.schema.registry import resolve

# Bytes of the scores of a group of rows, its rows, and columns of a block, at most.
_SCORES, _GROUP, _COLUMNS = 1 << 17, 64, 768
# Nanoseconds to pack a value, of a score, and of a row.
_PACK, _SCORE, _ROW = 0.4, 0.4, 30.0
# Columns that a block is planned for: their number is known in a run.
_CACHED_COLUMNS = 512
# Free rows of a new buffer: a part of the rows that it has, and some more.
_PART, _MORE = 4, 64

Matrices = structure("attention.c", "matrices")
AttentionParameters = structure("attention.c", "attention")


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

    def _matrices(self, array: np.ndarray | None, sizes: tuple[int, int], binding: Binding) -> Parameters:
        if array is None:
            return Matrices()
        whole = np.broadcast_to(array, (*self.sizes.leading, *sizes))
        whole, strides = binding.read(whole, self._axes())
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


Append = structure("attention.c", "append")


class NativeCachedAttention(NativeKernel):
    """Appends the rows of a run, then attends to all rows."""

    def __init__(self, task: Task) -> None:
        self.batch, self.heads, self.rows, self.width = task.shape(0)
        self.key_heads, self.values = task.shape(1)[1], task.shape(2)[3]
        self.attributes, self.late, self.reads_state = task.attributes, task.definition.late, True
        # One row of each head: the heads that share keys are the rows of a matrix.
        self.merges = self.rows == 1
        inner = self.key_heads if self.merges else self.heads
        rows = self.heads // self.key_heads if self.merges else self.rows
        self.matrices = self.batch * inner
        parts = 1 if task.threads == 1 else max(1, min(4 * task.threads // self.matrices, rows // 64))
        sizes = AttentionSizes((self.batch, inner), rows, _CACHED_COLUMNS, self.width, self.values)
        self.blocks = AttentionBlocks(sizes, parts)
        self.mask_kind = 0 if task.attributes["causal"] else 2 if task.inputs[3].element is BOOLEAN else 1
        self.algorithm = "C, attention with a cache in place"
        self.workspace = self.blocks.workspace

    @property
    def shared(self) -> int:
        """Heads of the query for each head of the keys."""
        return self.heads // self.key_heads

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        query, key, value, _, scale = inputs[:5]
        out, _ = binding.written(outputs[0], ((0,), (1,), (2,), (3,)))
        appended = Append(
            (Matrices * 2)(*(Matrices(binding.address(x), *element_strides(x)) for x in (key, value))),
            (Matrices * 2)(), self.key_heads, self.rows, (self.width, self.values),
        )  # fmt: skip
        outer, inner, rows = self.batch, self.key_heads if self.merges else self.heads, self.rows
        names = "row_block", "group", "column_block", "key_panel", "value_panel"
        parameters = AttentionParameters(
            query=self._by_head(query, binding), out=self._by_head(out, binding), scale=binding.address(scale),
            outer=outer, inner=inner, shared=1 if self.merges else self.shared,
            rows=self.shared if self.merges else rows, width=self.width, values=self.values,
            mask_kind=self.mask_kind, causal=int(self.attributes["causal"]),
            **dict(zip(names, self.blocks.sizes, strict=True)),
        )  # fmt: skip
        binding.call("irx_append", appended, 2 * self.batch * self.key_heads)
        binding.call("irx_attention", parameters, self.matrices * self.blocks.row_parts)
        held: list[Any] = []
        binding.kept.append(held)
        binding.late.append(functools.partial(self._complete, appended, parameters, held))

    def _complete(self, appended: Parameters, parameters: Parameters, held: list[Any], inputs: Sequence[Any]) -> None:
        """Extend the variables of a run, and let the calls write their new rows and read them and the mask."""
        mask, beams, variables = inputs[3], inputs[5], inputs[8]
        held.clear()
        for i, name in enumerate(("key", "value")):
            variable = self.attributes[f"{name}_variable"]
            given = variables.get(variable)
            before = self._picked(inputs[6 + i] if given is None else given, beams, (self.width, self.values)[i])
            whole = extended(before, self.rows, in_place=before is given)
            variables[variable] = whole
            held.append(whole)
            address, strides = whole.ctypes.data, element_strides(whole)
            setattr(parameters, name, Matrices(address, *strides))
            appended.target[i] = Matrices(address + before.shape[2] * whole.strides[2], *strides)
        check(held[0].shape[2] == held[1].shape[2], "the variables of keys and values have different lengths")
        parameters.columns = held[0].shape[2]
        if self.mask_kind:
            parameters.mask = self._mask(mask, parameters.columns, held)

    def _picked(self, before: np.ndarray, beams: np.ndarray, width: int) -> np.ndarray:
        """The rows of a variable whose batch entries are those of ``beams``."""
        # Messages are made where they are needed: this is done in every run.
        if before.ndim != 4 or before.dtype != np.float32:
            raise OpError(f"a cache is {before.dtype}{shape_text(before.shape)}")
        kept = before
        if beams.shape != before.shape[:1] or beams.tolist() != [*range(len(beams))]:
            kept = resolve("Gather", "opset8").kernel(before, beams, np.zeros((), np.int64))
        if (*kept.shape[:2], kept.shape[3]) != (self.batch, self.key_heads, width):
            raise OpError(f"a cache of shape {shape_text(before.shape)} is extended by rows of other sizes")
        return kept

    def _mask(self, mask: np.ndarray, columns: int, held: list[Any]) -> Parameters:
        shape = self.batch, self.heads, self.rows, columns
        if mask.ndim > 4 or any(a not in (1, b) for a, b in zip(mask.shape[::-1], shape[::-1], strict=False)):
            raise OpError(f"attention_mask {shape_text(mask.shape)} does not fit scores {shape_text(shape)}")
        whole = mask if mask.flags.aligned else mask.copy()
        held.append(whole)
        strides = [0 if n == 1 else stride for n, stride in zip(mask.shape, element_strides(whole), strict=True)]
        return self._of_heads(whole.ctypes.data, [0] * (4 - mask.ndim) + strides)

    def _by_head(self, array: np.ndarray, binding: Binding) -> Parameters:
        return self._of_heads(binding.address(array), element_strides(array))

    def _of_heads(self, address: int, strides: Sequence[int]) -> Parameters:
        """An array (batch, heads, rows, columns) of these strides as the matrices of the calls."""
        outer, head, row, column = strides
        if self.merges:
            return Matrices(address, outer, head * self.shared, head, column)
        return Matrices(address, outer, head, row, column)


def extended(before: np.ndarray, rows: int, *, in_place: bool) -> np.ndarray:
    """An array (batch, heads, length, columns) with more rows along axis 2, whose values are not set.

    It lies in the memory of the array where that has free rows behind it, else in a new buffer with free rows.

    Args:
        in_place: whether the array is a variable, whose free rows nobody reads.
    """
    batch, heads, length, columns = before.shape
    buffer = _buffer_of(before) if in_place else None
    if buffer is None or buffer.shape[2] < length + rows:
        more = length + rows
        buffer = np.empty((batch, heads, more + more // _PART + _MORE, columns), before.dtype)
        buffer[:, :, :length] = before
    return buffer[:, :, : length + rows]


def _buffer_of(array: np.ndarray) -> np.ndarray | None:
    """The buffer of which the array is the first rows; None if it is not."""
    buffer = array.base
    if not isinstance(buffer, np.ndarray) or buffer.ndim != 4 or buffer.dtype != array.dtype:
        return None
    same = buffer.shape[:2] == array.shape[:2] and buffer.shape[3] == array.shape[3]
    same = same and buffer.strides == array.strides and buffer.ctypes.data == array.ctypes.data
    return buffer if same else None


@kernels("CachedAttention", since="irexec")
def cached_attention(task: Task) -> Iterator[Candidate]:
    """f32, with an f32 or boolean mask."""
    if not is_available(task) or task.inputs[3].element not in (F32, BOOLEAN) or 0 in (*task.shape(0), *task.shape(2)):
        return
    yield Candidate(STEP, functools.partial(NativeCachedAttention, task), runs_chain=False)
