"""Softmax and LogSoftmax by the C library, along any axis."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator, Sequence
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

from irexec.backend.calls import Binding, NativeKernel, is_available, loaded
from irexec.backend.kernel import Candidate, Task
from irexec.backend.native.chains import Axes, NativeChain, Operand
from irexec.backend.native.convolution import STEP, overwritten
from irexec.backend.native.rows import TILE, Target, axes_for, block_count, groups_of, source_of, target_of
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32
from irexec.schema.shape_rules import normalize_axis

# Elements of a block of rows, and of a slab of columns.
_BLOCK, _SLAB = 1 << 13, 1 << 14
# Nanoseconds of an element and of a row, with vectors of 8 floats or more.
_ELEMENT, _ROW = 0.4, 70.0


class SoftmaxParameters(ctypes.Structure):
    """See irexec/native/source/softmax.c."""

    _fields_ = (
        ("data", Operand), ("out", Target), ("after", c_void_p), ("images", c_int64), ("rows", c_int64),
        ("columns", c_int64), ("block", c_int64), ("logarithm", c_int64),
    )  # fmt: skip


@dataclass(frozen=True)
class _View:
    """Data as images, rows and columns, of which the rows or the columns add up to 1."""

    axes: Axes
    sizes: tuple[int, int, int]
    by_columns: bool
    runs_chain: bool

    @property
    def block(self) -> int:
        """Rows of a block, or columns of a slab."""
        if not self.by_columns:
            return max(1, _BLOCK // self.sizes[2])
        vector = loaded().vector
        return max(1, min(TILE, _SLAB // self.sizes[1]) // vector) * vector

    @property
    def scratch(self) -> int:
        """Bytes of scratch."""
        return 4 * (self.sizes[1] * self.block if self.by_columns else -(-self.sizes[2] // TILE) * TILE)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        images, rows, columns = self.sizes
        work = _ELEMENT * images * rows * columns + (0 if self.by_columns else _ROW * images * rows)
        return STEP + work * max(1.0, 12 / loaded().vector)


class NativeSoftmax(NativeKernel):
    """Softmax and the chain on it."""

    def __init__(self, task: Task, view: _View) -> None:
        self.view, self.own = view, len(task.inputs)
        self.logarithm = task.definition.type == "LogSoftmax"
        chain = task.chain if view.runs_chain else None
        self.chain = NativeChain(chain, task.operands, task.output_shape(), view.axes)
        self.algorithm = "C, softmax"
        self.overwrites = overwritten(task, self.own) if view.runs_chain else ()
        if task.output_orders[0] == task.input_orders[0]:
            self.overwrites = (0, *self.overwrites)
        self.workspace = view.scratch

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        """See NativeKernel.bind."""
        v = self.view
        parameters = SoftmaxParameters(
            source_of(inputs[0], v.axes, binding), target_of(outputs[0], v.axes, binding),
            self.chain.bind(inputs[self.own :], binding), *v.sizes, v.block, int(self.logarithm),
        )  # fmt: skip
        blocks = block_count(v.sizes, v.block, by_columns=v.by_columns)
        binding.call("irx_softmax_columns" if v.by_columns else "irx_softmax_rows", parameters, blocks)


@kernels("Softmax", since=1)
@kernels("Softmax", since=8)
@kernels("LogSoftmax", since=5)
def softmax(task: Task) -> Iterator[Candidate]:
    """f32, along any axis."""
    shape = task.shape(0)
    if not is_available(task) or task.inputs[0].element is not F32 or not shape or 0 in shape:
        return
    axis = normalize_axis(task.attributes["axis"], len(shape))
    order = task.input_orders[0] or tuple(range(len(shape)))
    groups = groups_of(shape, order, (axis,))
    if groups is None:
        # The axis has size 1.
        groups = tuple(other for other in order if other != axis), (axis,)
    axes, runs_chain = axes_for(task, groups)
    images, rows, columns = (math.prod(shape[axis] for axis in group) for group in axes)
    view = _View(axes, (images, rows, columns), len(groups) == 3, runs_chain)
    yield Candidate(view.cost, functools.partial(NativeSoftmax, task, view), runs_chain=runs_chain)
