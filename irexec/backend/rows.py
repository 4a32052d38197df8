"""Fast kernels of MVN and Softmax: blocks of whole sums, each followed by the chain.

The axes that are summed over may lie innermost in memory (rows), or with others inside of them (columns).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.blocks import Tiles
from irexec.backend.chain import Epilogue, Groups, merged
from irexec.backend.kernel import (
    SHARES,
    Candidate,
    Kernel,
    KernelContext,
    Order,
    Task,
    chain_keeps_type,
    has_elements,
)
from irexec.backend.reduction import add_products
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.schema.shape_rules import mvn_2_axes, normalize_axes, normalize_axis

# Bytes of a block, of a constant that names axes. A block of columns is larger, since short rows of them are slow.
_CACHED, _AXES_LIMIT = 1 << 18, 1 << 12
# Fraction of the squared mean below which the variance is mostly rounding.
_CANCELLED = 1e-6
# Nanoseconds of a block, of an element of MVN and of Softmax, of one that is copied in another order.
_BLOCK, _NORMALIZED, _EXPONENTIATED, _REORDERED = 15_000.0, 1.3, 3.0, 1.0
# Elements of a row of Softmax, and columns side by side, below which a block is turned: NumPy takes longer to begin a
# short row than to compute it.
_SHORT_ROW, _FEW_COLUMNS = 24, 64

RowFunction = Callable[[Scratch, np.ndarray, np.ndarray], None]
"""Writes a block (outer, summed, inner) from one of the same shape, which may be the same memory."""


def groups_of(shape: Sequence[int], order: Order | None, axes: Collection[int]) -> Groups | None:
    """The axes in memory order: (others, summed) or (others, summed, others); None for other orders."""
    runs: list[list[int]] = [[]]
    for axis in order or range(len(shape)):
        if shape[axis] == 1:
            runs[0].insert(0, axis)
        elif (axis in axes) == (len(runs) % 2 == 0):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return tuple(map(tuple, runs)) if len(runs) in (2, 3) else None


def constant_axes(task: Task) -> Collection[int]:
    """The axes that the second input names; none if it is not a constant."""
    known = None if task.constants[1] is None else task.constants[1].small(_AXES_LIMIT)
    return () if known is None else set(normalize_axes(map(int, known.ravel().tolist()), len(task.shape(0))))


@kernels("MVN", since=2)
def _mvn_2(task: Task) -> Iterator[Candidate]:
    a = task.attributes
    return _normalization(task, mvn_2_axes(len(task.shape(0)), a["across_channels"], a["reduction_axes"]))


@kernels("MVN", since=6)
def _mvn_6(task: Task) -> Iterator[Candidate]:
    return _normalization(task, constant_axes(task))


def _normalization(task: Task, axes: Collection[int]) -> Iterator[Candidate]:
    a = task.attributes
    inside = a.get("eps_mode", "inside_sqrt") == "inside_sqrt"
    function = partial(_normalize, a["eps"] if a["normalize_variance"] else None, inside)
    return _by_blocks(task, axes, "normalization by blocks", function, _NORMALIZED, 0)


@kernels("Softmax", since=1)
@kernels("Softmax", since=8)
def _softmax(task: Task) -> Iterator[Candidate]:
    rank = len(task.shape(0))
    axes = {normalize_axis(task.attributes["axis"], rank)} if rank else ()
    return _by_blocks(task, axes, "softmax by blocks", _exponentials, _EXPONENTIATED, _SHORT_ROW)


def _by_blocks(
    task: Task, axes: Collection[int], algorithm: str, function: RowFunction, element: float, short: int
) -> Iterator[Candidate]:
    shape, dtype = task.shape(0), task.inputs[0].dtype
    groups = groups_of(shape, task.input_orders[0], axes)
    if dtype in (np.float32, np.float64) and has_elements(task) and groups is not None and chain_keeps_type(task):
        groups = (*groups, ()) if len(groups) == 2 else groups
        outer, summed, inner = (math.prod(shape[axis] for axis in group) for group in groups)
        cached = _CACHED * SHARES // task.shares if inner > 1 else _CACHED
        tiles = Tiles.of(outer, inner, summed * dtype.itemsize, cached, 64, cut=outer == 1)
        moved = _REORDERED * (task.output_orders[0] != task.input_orders[0])
        # The number of threads must not choose the kernel.
        blocks = math.prod(shape) * dtype.itemsize // _CACHED + 1
        cost = (element + moved) * math.prod(shape) + _BLOCK * blocks
        is_turned = tiles.rows > 1 and (inner < _FEW_COLUMNS if inner > 1 else summed < short)
        yield Candidate(cost, partial(ByBlocks, task, groups, tiles, algorithm, function, is_turned))


class ByBlocks(Kernel):
    """A function along some axes of a tensor, in blocks.

    Args:
        groups: the axes (outer, summed, inner).
        tiles: parts of the outer and inner axes.
        is_turned: the function computes on blocks (1, summed, others).
    """

    def __init__(
        self, task: Task, groups: Groups, tiles: Tiles, algorithm: str, function: RowFunction, is_turned: bool
    ) -> None:
        super().__init__(algorithm, reads=(0,), splits=tiles.count > 1, records=True)
        self._groups, self._tiles, self._function, self._own = groups, tiles, function, len(task.inputs)
        self._epilogue = Epilogue(task.chain, task.output_shape(), groups)
        if task.output_orders[0] == task.input_orders[0]:
            self.overwrites = (0,)
        self._is_turned = is_turned
        summed = math.prod(task.shape(0)[axis] for axis in groups[1])
        elements = tiles.rows * summed * tiles.columns
        self.workspace = self._epilogue.workspace(elements) + 8 * elements * is_turned
        self.workspace += 16 * tiles.rows * tiles.columns * (summed // 4096 + 4) + 1024

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        data, out = inputs[0], outputs[0]
        source, target = (context.view(array, merged(array, data.shape, self._groups)) for array in (data, out))
        operands = context.bind(self._epilogue, inputs[self._own :])

        def block(index: int, scratch: Scratch) -> None:
            rows, columns = self._tiles.region(index)
            region = rows, slice(0, source.shape[1]), columns
            x, result = source[region], target[region]
            if self._is_turned:
                turned = scratch.take((1, x.shape[1], len(x) * x.shape[2]), x.dtype)
                view = turned.reshape(x.shape[1], len(x), x.shape[2]).swapaxes(0, 1)
                scratch.do(np.copyto, view, x)
                scratch.work(self._function, turned, turned)
                scratch.do(np.copyto, result, view)
            else:
                scratch.work(self._function, x, result)
            self._epilogue.run(scratch, target[region], operands, region)

        context.parallel(self._tiles.count, block)
        if not np.may_share_memory(target, out):
            view = out.transpose([axis for group in self._groups for axis in group])
            np.copyto(view, target.reshape(view.shape))


def _normalize(eps: float | None, inside: bool, scratch: Scratch, x: np.ndarray, out: np.ndarray) -> None:
    """Subtract the mean and, with ``eps``, divide by the standard deviation."""
    size = x.dtype.type(x.shape[1])
    mean, squares = (scratch.take((len(x), 1, x.shape[2]), x.dtype) for _ in range(2))
    add_products(scratch, [x], mean[:, 0])
    mean /= size
    np.subtract(x, mean, out=out)
    if eps is None:
        return
    add_products(scratch, [out, out], squares[:, 0])
    if (squares < _CANCELLED * size * mean * mean).any():
        add_products(scratch, [out], mean[:, 0])
        out -= mean / size
        add_products(scratch, [out, out], squares[:, 0])
    epsilon = x.dtype.type(eps)
    squares /= size
    np.multiply(out, np.reciprocal(np.sqrt(squares + epsilon) if inside else np.sqrt(squares) + epsilon), out=out)


def _exponentials(scratch: Scratch, x: np.ndarray, out: np.ndarray) -> None:
    """exp(x - maximum), divided by its sum."""
    total = scratch.take((len(x), 1, x.shape[2]), x.dtype)
    np.maximum.reduce(x, 1, out=total, keepdims=True)
    np.subtract(x, total, out=out)
    np.exp(out, out=out)
    add_products(scratch, [out], total[:, 0])
    np.divide(out, total, out=out)
