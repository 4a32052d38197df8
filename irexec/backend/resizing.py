"""Fast Interpolate and AdaptiveAvgPool: one product with a small matrix for each resized axis, by blocks.

A position of the result depends on few neighbouring positions of the data. So an axis is cut into pieces of some
positions, each of them a product of the part of the data that it depends on with a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from irexec.backend.blocks import Tiles, finish_block
from irexec.backend.chain import Epilogue, Groups
from irexec.backend.eligibility import chain_keeps_type, has_elements, working_type
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Order, Task
from irexec.backend.reduction import reduction_over
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import F16
from irexec.reference.interpolate import float_steps, scales_of
from irexec.reference.pooling import adaptive_windows
from irexec.reference.resize import Taps, by_taps
from irexec.schema.shape_rules import normalize_axes

# Bytes of results that a block computes, positions of a piece.
_CACHED, _PIECE = 512 << 10, 48
# Positions of the result or of the data along an axis, beyond which listing copies or pieces would take longer than
# they save, and matrices more memory.
_LONGEST = 1 << 17
# Nanoseconds: of a call of a NumPy function, of a copied element; multiplications and additions for each nanosecond.
_CALL, _COPY, _FLOPS = 1500.0, 0.4, 50.0


@kernels("Interpolate", since=1)
@kernels("Interpolate", since=4)
@kernels("Interpolate", since=11)
def interpolate(task: Task) -> Iterator[Candidate]:
    """Candidates for float types without padding; nearest for any type that NumPy has."""
    found = interpolation(task)
    if found is not None:
        yield _resize(task, *found)


def interpolation(task: Task) -> tuple[np.dtype, list[tuple[int, Taps]]] | None:
    """The type to compute in, and the axes to resize with their tables; None for the reference kernel."""
    attributes, shape, out = task.attributes["attributes"], task.shape(0), task.output_shape()
    since = task.definition.since
    given = _inputs_of(task)
    if (
        given is None
        or any(map(any, attributes.pads(len(shape))))
        or not has_elements(task)
        or not chain_keeps_type(task)
    ):
        return None
    axes, scales = given
    params = attributes.params(axes, len(shape)) if since == 1 else attributes.params
    dtype = np.dtype(np.float32) if task.inputs[0].element is F16 else working_type(task)
    if params.mode == "nearest" and task.inputs[0].element is not None and task.inputs[0].element.native:
        dtype = task.inputs[0].element.carrier
    if dtype is None or dtype.kind == "O" or params.mode == "area":
        return None
    sizes = [out[axis] for axis in axes]
    if max((*sizes, *(shape[axis] for axis in axes)), default=0) > _LONGEST:
        return None
    steps = float_steps(shape, params, axes, sizes, scales_of(shape, axes, sizes) if scales is None else scales)
    return dtype, [(axis, taps) for axis, taps in steps if not _is_identity(taps)]


def _inputs_of(task: Task) -> tuple[Sequence[int], list[float] | None] | None:
    """The axes and, where coordinates go by them, the scales; None where they are not constants."""
    attributes, rank = task.attributes["attributes"], len(task.shape(0))
    if task.definition.since == 1:
        return normalize_axes(attributes.axes, rank), None
    position = 3 if task.definition.since == 4 else 2
    axes: Sequence[int] = range(rank)
    if task.has_input(position):
        source = task.constants[position]
        if source is None:
            return None
        axes = source.array().ravel().tolist()
    if not attributes.by_scales:
        return normalize_axes(axes, rank), None
    scales = task.constants[position - 1]
    return None if scales is None else (normalize_axes(axes, rank), scales.array().ravel().tolist()[: len(axes)])


def _is_identity(taps: Taps) -> bool:
    index = taps.index
    copies = taps.weight is None or (index.shape[1] == 1 and bool((taps.weight == 1).all()))
    return copies and len(index) == taps.size and bool((index[:, 0] == np.arange(taps.size)).all())


@kernels("AdaptiveAvgPool", since=8)
def adaptive_avg_pool(task: Task) -> Iterator[Candidate]:
    """Candidates for float types; one mean for each channel is a reduction."""
    dtype, sizes, out = working_type(task), task.shape(0)[2:], task.output_shape()[2:]
    if dtype is None or not has_elements(task) or not chain_keeps_type(task):
        return
    if set(out) == {1}:
        yield from reduction_over(task, tuple(range(2, len(sizes) + 2)), "ReduceMean", keep=True)
        return
    if max(*sizes, *out) <= _LONGEST:
        yield _resize(task, dtype, adaptive_steps(task))


def adaptive_steps(task: Task) -> list[tuple[int, Taps]]:
    """The axes of AdaptiveAvgPool with their tables."""
    steps = []
    for axis, (size, count) in enumerate(zip(task.shape(0)[2:], task.output_shape()[2:], strict=True), 2):
        index, inside = adaptive_windows(size, count)
        steps.append((axis, Taps(index, inside / inside.sum(1, keepdims=True), size)))
    return steps


@dataclass(frozen=True, eq=False)
class _Piece:
    """Result positions along an axis, data positions that they depend on, and weights (data, result)."""

    out: slice
    data: slice
    matrix: np.ndarray


@dataclass(frozen=True, eq=False)
class _Step:
    """An axis to be resized.

    Attributes:
        axis: its position among the axes of a block.
        pieces: the products; empty where positions are copied.
        copies: pairs of slices (result, data) where positions are copied.
    """

    axis: int
    taps: Taps
    pieces: tuple[_Piece, ...]
    copies: tuple[tuple[slice, slice], ...] = ()


def _step_of(axis: int, taps: Taps, dtype: np.dtype) -> _Step:
    if taps.weight is None:
        return _Step(axis, taps, (), tuple(_runs(taps.index[:, 0])))
    pieces = []
    for start in range(0, len(taps.index), _PIECE):
        part = slice(start, min(start + _PIECE, len(taps.index)))
        index, weight = taps.index[part], taps.weight[part]
        used = index[weight != 0] if weight.any() else index
        first, last = int(used.min()), int(used.max()) + 1
        matrix = np.zeros((last - first, len(index)), dtype)
        inside = (index >= first) & (index < last)
        columns = np.broadcast_to(np.arange(len(index))[:, None], index.shape)
        np.add.at(matrix, (index[inside] - first, columns[inside]), weight[inside])
        pieces.append(_Piece(part, slice(first, last), matrix))
    return _Step(axis, taps, tuple(pieces))


def _runs(index: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Copies at constant distances that equal gathering by ``index``; as few as possible."""
    count, size = len(index), int(index.max()) + 1
    factor = count // size if size and count % size == 0 else 0
    if factor and bool((index == np.arange(count) // factor).all()):
        yield from ((slice(offset, None, factor), slice(0, size)) for offset in range(factor))
        return
    start = 0
    while start < count:
        distance = int(index[start + 1] - index[start]) if start + 1 < count else 1
        stop = start + 1
        while distance > 0 and stop < count and index[stop] - index[stop - 1] == distance:
            stop += 1
        begin = int(index[start])
        yield slice(start, stop), slice(begin, begin + (stop - start - 1) * max(distance, 1) + 1, max(distance, 1))
        start = stop


def _resize(task: Task, dtype: np.dtype, steps: Sequence[tuple[int, Taps]]) -> Candidate:
    view = _View.of(task, dtype, steps)
    return Candidate(view.cost, partial(Resize, task, view))


@dataclass(frozen=True, eq=False)
class _View:
    """Data seen in its order in memory, in blocks of outer positions; of inner ones if there is one outer position.

    Attributes:
        dtype: the type to compute in.
        groups: axes before the first and after the last one that is resized are seen as one each.
        data, sizes: the sizes of these groups in data and result.
    """

    dtype: np.dtype
    order: Order
    groups: Groups
    data: tuple[int, ...]
    sizes: tuple[int, ...]
    steps: tuple[_Step, ...]
    tiles: Tiles

    @staticmethod
    def of(task: Task, dtype: np.dtype, steps: Sequence[tuple[int, Taps]]) -> _View:
        shape, out = task.shape(0), task.output_shape()
        order: Order = task.input_orders[0] or tuple(range(len(shape)))
        at = sorted(order.index(axis) for axis, _ in steps) or [len(shape) - 1]
        groups = (order[: at[0]], *((axis,) for axis in order[at[0] : at[-1] + 1]), order[at[-1] + 1 :])
        data, sizes = (tuple(math.prod(each[axis] for axis in group) for group in groups) for each in (shape, out))
        made = tuple(_step_of(order.index(axis) - at[0] + 1, taps, dtype) for axis, taps in steps)
        size = max(math.prod(sizes[1:-1]), math.prod(data[1:-1])) * dtype.itemsize
        tiles = Tiles.of(sizes[0], sizes[-1], size, _CACHED, 16, cut=sizes[0] == 1)
        return _View(dtype, order, groups, data, sizes, made, tiles)

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        flops, calls, sizes = 0.0, 4.0, list(self.data)
        for step in self.steps:
            sizes[step.axis] = self.sizes[step.axis]
            deepest = max((piece.matrix.shape[0] for piece in step.pieces), default=0)
            flops += math.prod(sizes) * (2 * deepest / _FLOPS + (_COPY if step.copies else 0))
            calls += len(step.pieces) + len(step.copies)
        return self.tiles.count * calls * _CALL + flops + math.prod(self.sizes) * _COPY


class Resize(Kernel):
    """Resizing of one axis after the other, each by its table, in the memory order of the data."""

    def __init__(self, task: Task, view: _View) -> None:
        splits = view.tiles.count > 1
        super().__init__("resizing by products with matrices", reads=(0,), splits=splits, records=True)
        self._dtype, self._own, self._order = view.dtype, len(task.inputs), view.order
        self._groups, self._data, self._sizes = view.groups, view.data, view.sizes
        self._steps, self._tiles = view.steps, view.tiles
        self._epilogue = Epilogue(task.chain, task.output_shape(), view.groups)
        largest = max(math.prod(view.sizes[1:-1]), math.prod(view.data[1:-1]))
        elements = view.tiles.rows * view.tiles.columns * largest
        self.workspace = (len(view.steps) + 2) * (
            elements * max(4, view.dtype.itemsize) + 64
        ) + self._epilogue.workspace(elements)

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        x = context.view(inputs[0], inputs[0].transpose(self._order).reshape(self._data))
        given = outputs[0].transpose(self._order)
        out = context.view(given, given.reshape(self._sizes))
        operands = context.bind(self._epilogue, inputs[self._own :])

        def block(index: int, scratch: Scratch) -> None:
            rows, columns = self._tiles.region(index)
            target = out[rows, ..., columns]
            result = self._resized(x[rows, ..., columns], target, scratch)
            region = (rows, *(slice(0, size) for size in self._sizes[1:-1]), columns)
            finish_block(result, target, self._epilogue, operands, region, scratch)

        context.parallel(self._tiles.count, block)
        if not np.may_share_memory(out, given):
            np.copyto(given, out.reshape(given.shape))

    def _resized(self, x: np.ndarray, target: np.ndarray, scratch: Scratch) -> np.ndarray:
        """The result for a block: ``target``, or an array of its shape in the type to compute in."""
        if x.dtype != self._dtype or (self._steps and self._steps[0].pieces and not x.flags.c_contiguous):
            copy = scratch.take(x.shape, self._dtype)
            scratch.do(np.copyto, copy, x)
            x = copy
        for number, step in enumerate(self._steps):
            shape = (*x.shape[: step.axis], self._sizes[step.axis], *x.shape[step.axis + 1 :])
            last = number == len(self._steps) - 1 and target.dtype == self._dtype and target.flags.c_contiguous
            result = target if last else scratch.take(shape, self._dtype)
            scratch.work(self._resize, x, step, result)
            x = result
        if not self._steps:
            scratch.do(np.copyto, target, x, casting="same_kind")
            return target
        return x

    def _resize(self, scratch: Scratch, x: np.ndarray, step: _Step, out: np.ndarray) -> None:
        before = (slice(None),) * step.axis
        for to, source in step.copies:
            out[(*before, to)] = x[(*before, source)]
        if not step.pieces:
            return
        if not np.isfinite(x.sum()):
            # A product would spread an infinity or NaN to where its weight is zero.
            np.copyto(out, by_taps(x, step.axis, step.taps))
            return
        lead = math.prod(x.shape[: step.axis])
        inner = math.prod(x.shape[step.axis + 1 :])
        data, result = x.reshape(lead, -1, inner), out.reshape(lead, -1, inner)
        for piece in step.pieces:
            if inner == 1:
                np.matmul(data[:, piece.data, 0], piece.matrix, out=result[:, piece.out, 0])
            else:
                np.matmul(piece.matrix.T, data[:, piece.data], out=result[:, piece.out])
