"""C kernels along rows and columns of tensors: normalizations, Softmax and reductions.

irexec/native/source/rows.h has the other side.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, is_available, loaded
from irexec.backend.chain import Groups
from irexec.backend.kernel import Candidate, Order, Task, chain_keeps_type
from irexec.backend.native.chains import Axes, NativeChain, Operand, fits
from irexec.backend.native.convolution import STEP, overwritten
from irexec.backend.reduction import REDUCTIONS
from irexec.backend.registry import kernels
from irexec.backend.rows import constant_axes, groups_of
from irexec.dtypes.elements import F32
from irexec.native.structures import Parameters, structure
from irexec.schema.shape_rules import mvn_2_axes, normalize_axes, normalize_axis

TILE = 512
"""Floats of a tile; see chain.h."""

Target = structure("rows.h", "target")
"""A tensor that a kernel writes; strides in elements."""


def block_count(sizes: tuple[int, int, int], block: int, *, by_columns: bool) -> int:
    """Number of blocks for images, rows and columns: of rows, or of slabs of columns."""
    images, rows, columns = sizes
    return images * -(-(columns if by_columns else rows) // block)


def source_of(array: np.ndarray, axes: Axes, binding: Binding) -> Parameters:
    """A tensor that a kernel reads, whose columns follow each other in memory; copied where they do not."""
    array, strides = binding.read(array, axes, axes[2])
    return Operand(binding.address(array), *strides)


def target_of(array: np.ndarray, axes: Axes, binding: Binding, *, is_run: bool = False) -> Parameters:
    """The output of a kernel; ``is_run``: its columns are to follow each other in memory."""
    out, strides = binding.written(array, axes, innermost=axes[2][-1] if is_run else None)
    return Target(binding.address(out), *strides)


def _overwritten(task: Task, runs_chain: bool) -> tuple[int, ...]:
    """The inputs over which a kernel may write whose result has the shape of its data."""
    operands = overwritten(task, len(task.inputs)) if runs_chain else ()
    return (0, *operands) if task.output_orders[0] == task.input_orders[0] else operands


def axes_for(task: Task, groups: Groups) -> tuple[Axes, bool]:
    """The axes of groups (outer, columns) or (images, rows, columns), and whether the task's chain fits them.

    The outer axes of two groups are split where an operand of the chain is broadcast along some of them.
    """
    splits = list(_splits(groups))
    fitting = next((axes for axes in splits if fits(task, axes)), None)
    return (splits[0], False) if fitting is None else (fitting, True)


def _splits(groups: Groups) -> Iterator[Axes]:
    if len(groups) == 3:
        yield groups[0], groups[1], groups[2]
        return
    outer, columns = groups
    for count in range(max(1, len(outer))):
        yield outer[:count], outer[count:], columns


def _is_f32(task: Task) -> bool:
    """Whether the data is f32, and the result before a chain that may leave levels."""
    before = task if chain_keeps_type(task) else replace(task, outputs=task.inputs[:1])
    return is_available(before) and task.inputs[0].element is F32 and 0 not in task.shape(0)


def _sizes(task: Task, axes: Axes) -> tuple[int, int, int]:
    shape = task.shape(0)
    images, rows, columns = (math.prod(shape[axis] for axis in group) for group in axes)
    return images, rows, columns


_MODES = ("center", "inside_sqrt", "outside_sqrt", "add", "max")
"""The computations of normalization.c, in its order."""

# Elements of a block of rows, and of a slab of columns, which should stay in the second-level cache.
_NORMALIZATION_BLOCK, _NORMALIZATION_SLAB = 1 << 15, 1 << 17
# Nanoseconds of an element, of a set of elements, and of an element of a slab.
_NORMALIZATION_ELEMENT, _SET, _NORMALIZATION_COLUMN = 0.12, 25.0, 0.25

Normalization = structure("normalization.c", "normalization")


@dataclass(frozen=True)
class _Sets:
    """Elements that are normalized as one: a block of rows by columns of (images, rows, columns).

    Attributes:
        mode, eps: see ``_MODES``.
        channels: the group of axes that scale and shift have: 1 for rows, 2 for columns.
        runs_chain: whether the task's chain runs on tiles of these axes.
    """

    axes: Axes
    sizes: tuple[int, int, int]
    rows: int
    columns: int
    mode: str
    eps: float
    channels: int = 2
    runs_chain: bool = True

    @property
    def by_columns(self) -> bool:
        """Whether a slab of columns is normalized at once: runs of a set are short."""
        return self.channels == 2 and self.rows > 1 and self.columns < 4 * loaded().vector

    @property
    def block(self) -> int:
        """Rows of a block of rectangles, columns of a slab."""
        if not self.by_columns:
            return self.rows * max(1, _NORMALIZATION_BLOCK // (self.rows * self.columns))
        widest = max(
            loaded().vector, min(TILE // 2, _NORMALIZATION_SLAB // self.rows) // loaded().vector * loaded().vector
        )
        return max(1, widest // self.columns) * self.columns

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        images, rows, columns = self.sizes
        if self.by_columns:
            return images * -(-columns // self.block)
        return images * -(-rows // self.block) * (columns // self.columns)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        size = math.prod(self.sizes)
        if self.by_columns:
            return STEP + _NORMALIZATION_COLUMN * size
        return STEP + (_NORMALIZATION_ELEMENT * size + _SET * size / (self.rows * self.columns)) * max(
            1.0, 8 / loaded().vector
        )


class NativeNormalization(NativeKernel):
    """Sets of elements that are centered and divided, and the chain on them."""

    def __init__(self, task: Task, sets: _Sets) -> None:
        self.sets, self.own = sets, len(task.inputs)
        self.is_affine = self.own == 3
        chain = task.chain if sets.runs_chain else None
        self.chain = NativeChain(chain, task.operands, task.output_shape(), sets.axes)
        self.algorithm = "C, normalization"
        self.reads = None if self.is_affine else (0,)
        self.overwrites = _overwritten(task, sets.runs_chain)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        s = self.sets
        scale, shift = (binding.address(binding.in_order(inputs[i])) if self.is_affine else None for i in (1, 2))
        out = outputs[0]
        is_of_levels = out.dtype != np.float32
        parameters = Normalization(
            source_of(inputs[0], s.axes, binding), target_of(out, s.axes, binding, is_run=is_of_levels),
            self.chain.bind(inputs[self.own :], binding), scale, shift, int(s.channels == 1), int(s.channels == 2),
            *s.sizes, s.rows, s.columns, s.block, _MODES.index(s.mode), s.eps,
            binding.address(binding.unknown) if is_of_levels else None,
        )  # fmt: skip
        binding.call("irx_normalize_columns" if s.by_columns else "irx_normalize_rectangles", parameters, s.blocks)


@kernels("MVN", since=2)
def _mvn_2(task: Task) -> Iterator[Candidate]:
    a = task.attributes
    axes = mvn_2_axes(len(task.shape(0)), a["across_channels"], a["reduction_axes"])
    return _normalizations(task, axes, "inside_sqrt" if a["normalize_variance"] else "center")


@kernels("MVN", since=6)
def _mvn_6(task: Task) -> Iterator[Candidate]:
    a = task.attributes
    return _normalizations(task, constant_axes(task), a["eps_mode"] if a["normalize_variance"] else "center")


@kernels("NormalizeL2", since=1)
def _normalize_l2_1(task: Task) -> Iterator[Candidate]:
    return _normalizations(task, constant_axes(task), task.attributes["eps_mode"])


def _normalizations(task: Task, axes: Collection[int], mode: str) -> Iterator[Candidate]:
    if not _is_f32(task) or not axes:
        return
    groups = groups_of(task.shape(0), task.input_orders[0], axes)
    if groups is None:
        return
    found, runs_chain = axes_for(task, groups)
    sizes = _sizes(task, found)
    rows, columns = (1, sizes[2]) if len(groups) == 2 else (sizes[1], 1)
    sets = _Sets(found, sizes, rows, columns, mode, task.attributes["eps"], runs_chain=runs_chain)
    if sets.by_columns and not chain_keeps_type(task):
        sets = replace(sets, runs_chain=False)
    yield _candidate(task, sets)


@kernels("GroupNormalization", since=12)
def _group_normalization_12(task: Task) -> Iterator[Candidate]:
    if not _is_f32(task):
        return
    shape, order = task.shape(0), task.input_orders[0]
    spatial, width = tuple(range(2, len(shape))), shape[1] // task.attributes["num_groups"]
    groups: Groups = ((0,), (1,), spatial)
    is_last = order == (0, *spatial, 1)
    if is_last:
        groups = ((0,), spatial, (1,))
    elif order is not None and order != tuple(range(len(shape))):
        return
    axes, runs_chain = axes_for(task, groups)
    sizes = _sizes(task, axes)
    rows, columns = (sizes[1], width) if is_last else (width, sizes[2])
    eps, channels = task.attributes["epsilon"], 2 if is_last else 1
    yield _candidate(task, _Sets(axes, sizes, rows, columns, "inside_sqrt", eps, channels, runs_chain))


def _candidate(task: Task, sets: _Sets) -> Candidate:
    return Candidate(sets.cost, functools.partial(NativeNormalization, task, sets), runs_chain=sets.runs_chain)


# Elements of a block of rows, and of a slab of columns.
_BLOCK, _SLAB = 1 << 13, 1 << 14
# Nanoseconds of an element and of a row, with vectors of 8 floats or more.
_ELEMENT, _SOFTMAX_ROW = 0.4, 70.0

SoftmaxParameters = structure("softmax.c", "softmax")


@dataclass(frozen=True)
class _SoftmaxView:
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
        work = _ELEMENT * images * rows * columns + (0 if self.by_columns else _SOFTMAX_ROW * images * rows)
        return STEP + work * max(1.0, 12 / loaded().vector)


class NativeSoftmax(NativeKernel):
    """Softmax and the chain on it."""

    def __init__(self, task: Task, view: _SoftmaxView) -> None:
        self.view, self.own = view, len(task.inputs)
        self.logarithm = task.definition.type == "LogSoftmax"
        chain = task.chain if view.runs_chain else None
        self.chain = NativeChain(chain, task.operands, task.output_shape(), view.axes)
        self.algorithm = "C, softmax"
        self.overwrites = _overwritten(task, view.runs_chain)
        self.workspace = view.scratch

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
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
    if not _is_f32(task) or not shape:
        return
    axis = normalize_axis(task.attributes["axis"], len(shape))
    order = task.input_orders[0] or tuple(range(len(shape)))
    groups = groups_of(shape, order, (axis,))
    if groups is None:
        # The axis has size 1.
        groups = tuple(other for other in order if other != axis), (axis,)
    axes, runs_chain = axes_for(task, groups)
    view = _SoftmaxView(axes, _sizes(task, axes), len(groups) == 3, runs_chain)
    yield Candidate(view.cost, functools.partial(NativeSoftmax, task, view), runs_chain=runs_chain)


KINDS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")
"""The reductions of reduction.c, in its order."""

# Elements of a block.
_REDUCTION_BLOCK = 1 << 15
# Nanoseconds of an element, of a row and of a column, with vectors of 8 floats or more.
_REDUCTION_ELEMENT, _ROW, _COLUMN = 0.07, 12.0, 1.0

ReductionParameters = structure("reduction.c", "reduction")


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
            return max(1, min(TILE, _REDUCTION_BLOCK // columns))
        vector = loaded().vector
        return max(1, min(TILE, _REDUCTION_BLOCK // rows) // vector) * vector

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        images, rows, columns = self.sizes
        whole = -(-columns // loaded().vector) * loaded().vector
        results = _COLUMN * images * whole if self.by_columns else _ROW * images * rows
        return STEP + (_REDUCTION_ELEMENT * images * rows * whole + results) * max(1.0, 8 / loaded().vector)


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
        v = self.view
        parameters = ReductionParameters(
            source_of(inputs[0], v.data, binding), target_of(outputs[0], v.result, binding),
            self.chain.bind(inputs[self.own :], binding), *v.sizes, v.block, self.kind,
        )  # fmt: skip
        blocks = block_count(v.sizes, v.block, by_columns=v.by_columns)
        binding.call("irx_reduce_columns" if v.by_columns else "irx_reduce_rows", parameters, blocks)


def reduction(task: Task) -> Iterator[Candidate]:
    """f32, along constant axes."""
    source = task.constants[1]
    if _is_f32(task) and source is not None:
        axes = normalize_axes(source.array().ravel().tolist(), len(task.shape(0)), scalar=True)
        yield from reduction_over(task, axes, task.definition.type, keep=task.attributes["keep_dims"])


for _type in KINDS:
    kernels(_type, REDUCTIONS[_type])(reduction)


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
