"""Fast reductions of float tensors along constant axes.

Neighbouring axes (in memory) that are reduced, or kept, are merged. Sums are einsum's, which adds rows several times
faster than np.add.reduce. BLAS would be faster still by a third, but rounds the last rows and columns of a matrix in
another way than those before: the means of equal channels would differ, and a Softmax of very large values amplifies
that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from irexec.backend.blocks import Tiles, finish_block
from irexec.backend.chain import Epilogue
from irexec.backend.kernel import (
    Candidate,
    Kernel,
    KernelContext,
    Order,
    Task,
    chain_keeps_type,
    has_elements,
    working_type,
)
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.schema.shape_rules import normalize_axes

# Bytes of input that a block reads.
_CACHED = 256 << 10
# Nanoseconds: of a call of a NumPy function, of an element that is added, that is combined in another way.
_CALL, _ADDED, _COMBINED = 1500.0, 0.15, 0.3

# Elements that are added one after the other.
_LONG_SUM = 4096

_UFUNCS = {"ReduceMax": np.fmax, "ReduceMin": np.fmin, "ReduceProd": np.multiply}


REDUCTIONS = {
    "ReduceSum": 1,
    "ReduceMean": 1,
    "ReduceMax": 1,
    "ReduceMin": 1,
    "ReduceProd": 1,
    "ReduceL1": 4,
    "ReduceL2": 4,
}
"""The release in which each reduction appeared."""


def reduction(task: Task) -> Iterator[Candidate]:
    """Floating-point types, along constant axes."""
    source = task.constants[1]
    if working_type(task) is not None and source is not None and has_elements(task) and chain_keeps_type(task):
        axes = normalize_axes(source.array().ravel().tolist(), len(task.shape(0)), scalar=True)
        keep = task.attributes["keep_dims"]
        yield from reduction_over(task, tuple(sorted(set(axes))), task.definition.type, keep=keep)


for _type, _since in REDUCTIONS.items():
    kernels(_type, _since)(reduction)


@kernels("AvgPool", since=1)
@kernels("AvgPool", since=14)
@kernels("AvgPool", since=16)
@kernels("AdaptiveAvgPool", since=8)
def mean_of_pixels(task: Task) -> Iterator[Candidate]:
    """One window over all data, without padding."""
    sizes = task.shape(0)[2:]
    if task.definition.type == "AdaptiveAvgPool":
        is_whole = set(task.output_shape()[2:]) == {1}
    else:
        windows = task.attributes["attributes"].windows(sizes)
        is_whole = windows.kernel == sizes and not any(map(any, windows.pads))
    if is_whole and has_elements(task) and chain_keeps_type(task):
        yield from reduction_over(task, tuple(range(2, len(sizes) + 2)), "ReduceMean", keep=True)


def reduction_over(task: Task, axes: Sequence[int], type: str, *, keep: bool) -> Iterator[Candidate]:
    """The reduction ``type`` of input 0 over these axes; with ``keep`` they stay as axes of size 1.

    There is none where kept and reduced axes alternate more than once in memory.
    """
    dtype = working_type(task)
    order = task.input_orders[0] or tuple(range(len(task.shape(0))))
    merged = _merged(task.shape(0), order, axes)
    if dtype is not None and merged is not None and axes:
        outer, reduced, inner = merged
        tiles = Tiles.of(outer, inner, reduced * dtype.itemsize, _CACHED, 64, cut=outer == 1)
        element = _ADDED if type in ("ReduceSum", "ReduceMean") else _COMBINED
        cost = tiles.count * _CALL * 4 + math.prod(merged) * element
        yield Candidate(cost, partial(Reduction, task, dtype, order, axes, reduced, tiles, type, keep))


def _merged(shape: Sequence[int], order: Order, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """The sizes of kept, reduced and kept axes, merged; None if these do not follow each other like that."""
    sizes = [1, 1, 1]
    position = 0
    for axis in order:
        if shape[axis] == 1:
            continue
        if (axis in axes) != (position == 1):
            position += 1
        if position > 2:
            return None
        sizes[position] *= shape[axis]
    return sizes[0], sizes[1], sizes[2]


class Reduction(Kernel):
    """A reduction of data seen as (outer, reduced, inner).

    Args:
        order: the order in memory in which the data is seen like that.
        reduced: elements of a sum.
        tiles: the blocks.
    """

    def __init__(
        self,
        task: Task,
        dtype: np.dtype,
        order: Order,
        axes: Sequence[int],
        reduced: int,
        tiles: Tiles,
        type: str,
        keep: bool,
    ) -> None:
        algorithm = "reduction of rows" if tiles.inner == 1 else "reduction of columns"
        super().__init__(algorithm, reads=(0,), splits=tiles.count > 1, records=True)
        self._dtype, self._order, self._type = dtype, order, type
        self._reduced, self._tiles = reduced, tiles
        self._own = len(task.inputs)
        result = task.output_shape()
        kept = [axis for axis in order if axis not in axes]
        numbers = {axis: i for i, axis in enumerate(axis for axis in range(len(order)) if axis not in axes)}
        # The axes of the output, those that are kept in the order of the data's memory.
        self._result = (*axes, *kept) if keep else tuple(numbers[axis] for axis in kept)
        split = _split(task.shape(0), kept, tiles.outer)
        first, second = (
            self._result[: len(self._result) - len(kept) + split],
            self._result[len(self._result) - len(kept) + split :],
        )
        self._epilogue = Epilogue(task.chain, result, (first, second))
        results = tiles.rows * tiles.columns
        partial_sums = reduced // _LONG_SUM * 2 + 2
        self.workspace = (
            (results * (2 + reduced + partial_sums)) * dtype.itemsize + 512 + self._epilogue.workspace(results)
        )

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        outer, inner = self._tiles.outer, self._tiles.inner
        x = context.view(inputs[0], inputs[0].transpose(self._order).reshape(outer, self._reduced, inner))
        given = outputs[0].transpose(self._result)
        out = context.view(given, given.reshape(outer, inner))
        operands = context.bind(self._epilogue, inputs[self._own :])

        def block(index: int, scratch: Scratch) -> None:
            rows, columns = self._tiles.region(index)
            target = out[rows, columns]
            result = scratch.take(target.shape, self._dtype)
            scratch.work(self._reduce, x[rows, :, columns], result)
            finish_block(result, target, self._epilogue, operands, (rows, columns), scratch)

        context.parallel(self._tiles.count, block)
        if not np.may_share_memory(out, given):
            np.copyto(given, out.reshape(given.shape))

    def _reduce(self, scratch: Scratch, x: np.ndarray, out: np.ndarray) -> None:
        """(rows, reduced, columns) to (rows, columns)."""
        if x.dtype != self._dtype:
            wide = scratch.take(x.shape, self._dtype)
            np.copyto(wide, x)
            x = wide
        if self._type in _UFUNCS:
            _UFUNCS[self._type].reduce(x, axis=1, out=out)
            return
        if self._type == "ReduceL1":
            x = np.abs(x, out=scratch.take(x.shape, self._dtype))
        add_products(scratch, [x, x] if self._type == "ReduceL2" else [x], out)
        if self._type == "ReduceL2":
            np.sqrt(out, out=out)
        elif self._type == "ReduceMean":
            np.divide(out, self._reduced, out=out)


def add_products(scratch: Scratch, factors: Sequence[np.ndarray], out: np.ndarray) -> None:
    """Sums of products of arrays (rows, reduced, columns) as (rows, columns).

    Long sums are computed in parts, for their accuracy.
    """
    rows, count, columns = factors[0].shape
    if count > _LONG_SUM:
        starts = range(0, count, _LONG_SUM)
        parts = scratch.take((rows, len(starts), columns), out.dtype)
        for index, first in enumerate(starts):
            add_products(scratch, [x[:, first : first + _LONG_SUM] for x in factors], parts[:, index])
        add_products(scratch, [parts], out)
    elif columns == 1:
        np.einsum(*(part for x in factors for part in (x[:, :, 0], [0, 1])), [0], out=out[:, 0])
    else:
        np.einsum(*(part for x in factors for part in (x, [0, 1, 2])), [0, 2], out=out)


def _split(shape: Sequence[int], kept: Sequence[int], outer: int) -> int:
    """Number of the kept axes that are merged into ``outer``."""
    size, count = 1, 0
    while count < len(kept) and size * shape[kept[count]] <= outer:
        size *= shape[kept[count]]
        count += 1
    return count
