"""Fast Softmax and LogSoftmax: maximum, exponentials and sum of a block of rows while it is in cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from irexec.backend.blocks import finish_block
from irexec.backend.chain import Epilogue
from irexec.backend.eligibility import chain_keeps_type, has_elements, working_type
from irexec.backend.kernel import Kernel, KernelContext, Task
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.schema.axes import normalize_axis

# Bytes of a block.
_CACHED = 256 << 10
# Elements of a row that NumPy computes in about the time that it takes to begin one.
_SHORT = 512
# Nanoseconds: of a call of a NumPy function, of a row in one, of an element, of an element copied in another order.
_CALL, _ROW, _ELEMENT, _REORDERED = 1500.0, 60.0, 1.3, 1.0


@kernels("Softmax", since=1)
@kernels("Softmax", since=8)
@kernels("LogSoftmax", since=5)
def softmax(task: Task) -> Iterator[Kernel]:
    """Candidates for float types and any axis."""
    dtype = working_type(task)
    if dtype is not None and task.shape(0) and has_elements(task) and chain_keeps_type(task):
        yield Softmax(task, dtype)


class Softmax(Kernel):
    """Softmax of data seen in its order in memory as (outer, elements, inner)."""

    def __init__(self, task: Task, dtype: np.dtype) -> None:
        super().__init__(algorithm="softmax by blocks of rows", runs_chain=True, records=True)
        self._dtype, self._logarithm = dtype, task.definition.type == "LogSoftmax"
        shape = task.shape(0)
        axis = normalize_axis(task.attributes["axis"], len(shape))
        order = task.input_orders[0] or tuple(range(len(shape)))
        at = order.index(axis)
        self._groups = (order[:at], order[at : at + 1], order[at + 1 :])
        self._order = order
        self._sizes = [math.prod(shape[i] for i in group) for group in self._groups]
        self._epilogue = Epilogue(task.chain, task.output_shape(), self._groups)
        self._split((task.output_orders[0] or tuple(range(len(shape)))) != order)

    def _split(self, reordered: bool) -> None:
        outer, count, inner = self._sizes
        size = count * self._dtype.itemsize
        self._columns = inner if size * inner <= _CACHED else min(inner, max(64, _CACHED // size))
        self._rows = max(1, min(outer, _CACHED // (size * self._columns)))
        self._parts = -(-inner // self._columns)
        self._blocks = -(-outer // self._rows) * self._parts
        self.splits = self._blocks > 1
        elements = self._rows * self._columns * count
        self.workspace = (
            (2 * elements + 4 * self._rows * self._columns + count) * max(4, self._dtype.itemsize)
            + 512
            + self._epilogue.workspace(elements)
        )
        self.cost = (
            self._blocks * 6 * _CALL + outer * 4 * _ROW + math.prod(self._sizes) * (_ELEMENT + _REORDERED * reordered)
        )

    def run(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], context: KernelContext) -> None:
        x = context.view(inputs[0], inputs[0].transpose(self._order).reshape(self._sizes))
        given = outputs[0].transpose(self._order)
        out = context.view(given, given.reshape(self._sizes))
        operands = context.bind(self._epilogue, inputs[1:])

        def block(index: int, scratch: Scratch) -> None:
            row, column = divmod(index, self._parts)
            rows = slice(row * self._rows, min(self._sizes[0], (row + 1) * self._rows))
            columns = slice(column * self._columns, min(self._sizes[2], (column + 1) * self._columns))
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

        context.parallel(self._blocks, block)
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
