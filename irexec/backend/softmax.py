"""Fast Softmax and LogSoftmax: maximum, exponentials and sum of a block of rows while it is in cache."""

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
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.schema.shape_rules import normalize_axis

# Bytes of a block.
_CACHED = 256 << 10
# Elements of a row that NumPy computes in about the time that it takes to begin one.
_SHORT = 512
# Nanoseconds: of a call of a NumPy function, of a row in one, of an element, of an element copied in another order.
_CALL, _ROW, _ELEMENT, _REORDERED = 1500.0, 60.0, 1.3, 1.0


@kernels("Softmax", since=1)
@kernels("Softmax", since=8)
@kernels("LogSoftmax", since=5)
def softmax(task: Task) -> Iterator[Candidate]:
    """Candidates for float types and any axis."""
    dtype = working_type(task)
    if dtype is not None and task.shape(0) and has_elements(task) and chain_keeps_type(task):
        view = _View.of(task, dtype)
        yield Candidate(view.cost, partial(Softmax, task, dtype, view))


@dataclass(frozen=True)
class _View:
    """Data seen in its order in memory as (outer, elements, inner), in blocks."""

    order: Order
    groups: Groups
    elements: int
    tiles: Tiles
    is_reordered: bool

    @staticmethod
    def of(task: Task, dtype: np.dtype) -> _View:
        shape = task.shape(0)
        axes = tuple(range(len(shape)))
        order = task.input_orders[0] or axes
        at = order.index(normalize_axis(task.attributes["axis"], len(shape)))
        groups = (order[:at], order[at : at + 1], order[at + 1 :])
        outer, count, inner = (math.prod(shape[i] for i in group) for group in groups)
        tiles = Tiles.of(outer, inner, count * dtype.itemsize, _CACHED, 64)
        return _View(order, groups, count, tiles, (task.output_orders[0] or axes) != order)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes of the three axes."""
        return self.tiles.outer, self.elements, self.tiles.inner

    @property
    def cost(self) -> float:
        """Estimated nanoseconds."""
        calls = self.tiles.count * 6 * _CALL + self.tiles.outer * 4 * _ROW
        return calls + math.prod(self.sizes) * (_ELEMENT + _REORDERED * self.is_reordered)


class Softmax(Kernel):
    """Softmax of data seen in its order in memory as (outer, elements, inner)."""

    def __init__(self, task: Task, dtype: np.dtype, view: _View) -> None:
        tiles = view.tiles
        super().__init__(algorithm="softmax by blocks of rows", splits=tiles.count > 1, records=True)
        self._dtype, self._logarithm = dtype, task.definition.type == "LogSoftmax"
        self._order, self._sizes, self._tiles = view.order, view.sizes, tiles
        self._epilogue = Epilogue(task.chain, task.output_shape(), view.groups)
        elements = tiles.rows * tiles.columns * view.elements
        values = 2 * elements + 4 * tiles.rows * tiles.columns + view.elements
        self.workspace = values * max(4, dtype.itemsize) + 512 + self._epilogue.workspace(elements)

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        x = context.view(inputs[0], inputs[0].transpose(self._order).reshape(self._sizes))
        given = outputs[0].transpose(self._order)
        out = context.view(given, given.reshape(self._sizes))
        operands = context.bind(self._epilogue, inputs[1:])

        def block(index: int, scratch: Scratch) -> None:
            rows, columns = self._tiles.region(index)
            target = out[rows, :, columns]
            result = (
                target
                if target.dtype == self._dtype and _has_long_rows(target)
                else scratch.take(target.shape, self._dtype)
            )
            mark = scratch.mark()
            scratch.work(self._normalize, x[rows, :, columns], result)
            scratch.release(mark)
            finish_block(result, target, self._epilogue, operands, (rows, slice(0, self._sizes[1]), columns), scratch)

        context.parallel(self._tiles.count, block)
        if not np.may_share_memory(out, given):
            np.copyto(given, out.reshape(given.shape))

    def _normalize(self, scratch: Scratch, x: np.ndarray, out: np.ndarray) -> None:
        """(rows, elements, columns) to ``out``, which is C-contiguous or has long rows."""
        if x.dtype != self._dtype:
            np.copyto(out, x)
            x = out
        spread = scratch.take(out.shape, self._dtype)
        values = scratch.take((len(x), 1, x.shape[2]), self._dtype)
        np.maximum.reduce(x, axis=1, keepdims=True, out=values)
        _with_each(np.subtract, x, values, out, spread)
        exponentials = spread if self._logarithm else out
        np.exp(out, out=exponentials)
        self._sum(exponentials, values, scratch)
        if self._logarithm:
            np.log(values, out=values)
            _with_each(np.subtract, out, values, out, spread)
        else:
            _with_each(np.divide, out, values, out, spread)

    def _sum(self, x: np.ndarray, out: np.ndarray, scratch: Scratch) -> None:
        """Sums of (rows, elements, columns) as (rows, 1, columns): products with ones are faster than NumPy's sums."""
        ones = scratch.take((x.shape[1],), self._dtype)
        ones.fill(1)
        if x.shape[2] == 1:
            np.matmul(x[:, :, 0], ones, out=out[:, 0, 0])
        else:
            np.matmul(ones, x, out=out[:, 0])


def _has_long_rows(x: np.ndarray) -> bool:
    return x.flags.c_contiguous or (x.strides[-1] == x.itemsize and x.shape[-1] >= _SHORT)


def _with_each(function: np.ufunc, x: np.ndarray, values: np.ndarray, out: np.ndarray, spread: np.ndarray) -> None:
    """``function`` of x (rows, elements, columns) and ``values`` (rows, 1, columns).

    Short rows take longer to begin than to compute: they are joined, once the values are repeated for each element.
    """
    if x.shape[1] * x.shape[2] < _SHORT or (1 < x.shape[2] < _SHORT):
        np.copyto(spread, values)
        values = spread
    function(x, values, out=out)
