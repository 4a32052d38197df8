"""Reductions by the C library, over constant axes."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Collection, Iterator, Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

from irexec.backend.calls import Binding, NativeKernel, is_available, loaded
from irexec.backend.kernel import Candidate, Order, Task
from irexec.backend.native.chains import Axes, NativeChain, Operand, fits
from irexec.backend.native.convolution import STEP, overwritten
from irexec.backend.native.rows import TILE, Target, block_count, source_of, target_of
from irexec.backend.registry import Candidates, kernels
from irexec.dtypes.elements import F32
from irexec.schema.shape_rules import normalize_axes

KINDS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")
"""The reductions of reduction.c, in its order."""

# Elements of a block.
_BLOCK = 1 << 15
# Nanoseconds of an element, of a row and of a column, with vectors of 8 floats or more.
_ELEMENT, _ROW, _COLUMN = 0.07, 12.0, 1.0


class ReductionParameters(ctypes.Structure):
    """See irexec/native/source/reduction.c."""

    _fields_ = (
        ("data", Operand), ("out", Target), ("after", c_void_p), ("images", c_int64), ("rows", c_int64),
        ("columns", c_int64), ("block", c_int64), ("kind", c_int64),
    )  # fmt: skip


@dataclass(frozen=True)
class _View:
    """Data as images, rows and columns, of which the rows or the columns are reduced to one.

    Attributes:
        data, result: the axes of input and output.
    """

    data: Axes
    result: Axes
    sizes: tuple[int, int, int]
    by_columns: bool

    @property
    def block(self) -> int:
        """Rows of a block, or columns of a slab."""
        _, rows, columns = self.sizes
        if not self.by_columns:
            return max(1, min(TILE, _BLOCK // columns))
        vector = loaded().vector
        return max(1, min(TILE, _BLOCK // rows) // vector) * vector

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        images, rows, columns = self.sizes
        whole = -(-columns // loaded().vector) * loaded().vector
        results = _COLUMN * images * whole if self.by_columns else _ROW * images * rows
        return STEP + (_ELEMENT * images * rows * whole + results) * max(1.0, 8 / loaded().vector)


class NativeReduction(NativeKernel):
    """A reduction and the chain on its result."""

    def __init__(self, task: Task, view: _View, kind: str, runs_chain: bool) -> None:
        self.view, self.own, self.kind = view, len(task.inputs), KINDS.index(kind)
        chain = task.chain if runs_chain else None
        self.chain = NativeChain(chain, task.operands, task.output_shape(), view.result)
        self.reads = (0,)
        self.algorithm = "C, reduction"
        self.overwrites = overwritten(task, self.own) if runs_chain else ()

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        v = self.view
        parameters = ReductionParameters(
            source_of(inputs[0], v.data, binding), target_of(outputs[0], v.result, binding),
            self.chain.bind(inputs[self.own :], binding), *v.sizes, v.block, self.kind,
        )  # fmt: skip
        blocks = block_count(v.sizes, v.block, by_columns=v.by_columns)
        binding.call("irx_reduce_columns" if v.by_columns else "irx_reduce_rows", parameters, blocks)


def _register(type: str) -> Candidates:
    @kernels(type, 4 if type in ("ReduceL1", "ReduceL2") else 1)
    def reduce(task: Task) -> Iterator[Candidate]:
        source = task.constants[1]
        if not is_available(task) or task.inputs[0].element is not F32 or source is None or 0 in task.shape(0):
            return
        axes = normalize_axes(source.array().ravel().tolist(), len(task.shape(0)), scalar=True)
        yield from reduction_over(task, axes, type, keep=task.attributes["keep_dims"])

    return reduce


for _type in KINDS:
    _register(_type)


def reduction_over(task: Task, axes: Collection[int], kind: str, *, keep: bool) -> Iterator[Candidate]:
    """The reduction ``kind`` of f32 input 0 over these axes; with ``keep`` they stay as axes of size 1."""
    views = _views(task.shape(0), task.input_orders[0], axes, keep=keep)
    if views:
        view = next((view for view in views if fits(task, view.result)), None)
        make = functools.partial(NativeReduction, task, view or views[0], kind, view is not None)
        yield Candidate(views[0].cost, make, runs_chain=view is not None)


def _views(shape: Sequence[int], order: Order | None, axes: Collection[int], *, keep: bool) -> list[_View]:
    """The views of a reduction, the simplest one first; none where kept and reduced axes alternate more than once in
    memory, or no axis is reduced."""
    runs: tuple[list[int], list[int], list[int]] = [], [], []
    position = 0
    for axis in order or range(len(shape)):
        if shape[axis] == 1:
            runs[int(axis in axes)].append(axis)
            continue
        position += (axis in axes) != (position == 1)
        if position > 2:
            return []
        runs[position].append(axis)
    outer, reduced, inner = (tuple(run) for run in runs)
    if not reduced:
        return []
    numbers = {axis: i for i, axis in enumerate(axis for axis in range(len(shape)) if keep or axis not in axes)}

    def view(first: tuple[int, ...], rows: tuple[int, ...], columns: tuple[int, ...], by_columns: bool) -> _View:
        images, count, width = (math.prod(shape[axis] for axis in run) for run in (first, rows, columns))
        ones, results = (rows, columns) if by_columns else (columns, rows)
        result = tuple(tuple(numbers[axis] for axis in run if axis in numbers) for run in (first, ones, results))
        return _View((first, rows, columns), (result[0], result[1], result[2]), (images, count, width), by_columns)

    if math.prod(shape[axis] for axis in inner) > 1:
        return [view(outer, reduced, inner, True)]
    kept = outer + inner
    return [view(kept[:count], kept[count:], reduced, False) for count in range(max(1, len(kept)))]
