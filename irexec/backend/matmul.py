"""Fast kernels of MatMul."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from irexec.backend.chain import Epilogue
from irexec.backend.compressed import CompressedSource
from irexec.backend.compressed_linear import compressed_kernels
from irexec.backend.kernel import Context, Kernel, Task
from irexec.backend.linear import Geometry, Weights, blasable, contiguous, linear_kernels
from irexec.backend.product_cost import COPY, product_cost
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch

# Bytes of the output that a block computes at most, so that the chain finds it in cache.
_CACHED = 1 << 20

# Floating-point operations that are worth a block of their own.
_WORTH_A_BLOCK = 5_000_000

# The fewest rows of a matrix that are a block of their own.
_FEWEST_ROWS = 128


@kernels("MatMul", since=1)
def _matmul_kernels(task: Task) -> list[Kernel]:
    """With a constant matrix on either side, or of two activations; f32 and f64."""
    if task.dtype(0) not in (np.dtype(np.float32), np.dtype(np.float64)):
        return []
    for constant in (1, 0):
        shape = task.shape(constant)
        if task.constants[constant] is not None and math.prod(shape[:-2]) == 1:
            return _with_constant(task, 1 - constant)
    if not math.prod((*task.output_shape(), *task.shape(0))):
        return []
    return [MatrixProducts(task)]


def _with_constant(task: Task, activation: int) -> list[Kernel]:
    """Candidates where the other input is a constant matrix or vector."""
    source, geometry = task.constants[1 - activation], Geometry.of(task, activation)
    if source is None or not geometry.sheets * geometry.tokens * geometry.features * geometry.inner:
        return []
    transposed = task.attributes[("transpose_a", "transpose_b")[1 - activation]] != (activation == 0)
    by_feature = not transposed or len(source.shape) == 1
    if not task.unpack and by_feature and isinstance(source, CompressedSource) and source.has_rows:
        return compressed_kernels(task, geometry, source)
    return linear_kernels(task, geometry, Weights(source, geometry.features, geometry.inner, not by_feature))


class MatrixProducts(Kernel):
    """Products of two stacks of matrices, in blocks of matrices or of rows of a matrix; nothing is copied that BLAS takes as it is."""

    def __init__(self, task: Task) -> None:
        self.task = task
        dtype = task.dtype(0)
        assert dtype is not None
        chain = task.chain if task.chain is None or task.chain.result == dtype else None
        self._vectors = [len(task.shape(i)) == 1 for i in (0, 1)]
        self._swapped = task.attributes["transpose_a"], task.attributes["transpose_b"]
        out = task.output_shape()
        self._leading = out[: len(out) - 2 + sum(self._vectors)]
        a, b = (self._matrices(np.broadcast_to(np.empty((), dtype), task.shape(i)), i) for i in (0, 1))
        self._rows, self._columns, self._inner = a.shape[-2], b.shape[-1], a.shape[-1]
        self.blocks = list(self._cut(task.threads))
        # The output's axes, with one of no axis for what a vector lacks.
        last = len(self._leading)
        rows, columns = (() if self._vectors[0] else (last,)), (() if self._vectors[1] else (len(out) - 1,))
        self.epilogue = Epilogue(chain, out, (*((axis,) for axis in range(last)), rows, columns))
        in_block = [index.stop - index.start for index in self.blocks[0]]
        elements = math.prod(in_block) * self._columns
        operands = math.prod(in_block[:-1]) * self._inner * (in_block[-1] + self._columns)
        super().__init__(
            "matrices by blocks",
            self._estimate(dtype.itemsize),
            runs_chain=chain is task.chain,
            workspace=(elements + operands) * dtype.itemsize + 256 + self.epilogue.workspace(elements),
            splits=len(self.blocks) > 1,
        )

    def _estimate(self, itemsize: int) -> float:
        copies = 0.0
        for i, elements in ((0, self._rows * self._inner), (1, self._inner * self._columns)):
            order = self.task.input_orders[i]
            if order is not None and len(order) > 1 and order[-1] < len(order) - 2:
                copies += COPY * 4 * elements
        one = product_cost(self._rows, self._columns, self._inner, itemsize)
        return math.prod(self._leading) * (one + copies)

    def _cut(self, threads: int) -> Iterator[tuple[slice, ...]]:
        """A slice of each leading axis, and of the rows."""
        rows, size = self._rows, self._rows * self._columns * 4
        work = 2 * rows * self._columns * self._inner
        count = min(-(-size // _CACHED) if self.task.chain is not None else 1, -(-rows // _FEWEST_ROWS))
        if threads > 1 and math.prod(self._leading) < threads:
            count = max(count, min(threads, work // _WORTH_A_BLOCK, -(-rows // _FEWEST_ROWS)))
        step = -(-rows // max(count, 1))
        *outer, last = self._leading or (1,)
        # Several matrices in a block, if they are small.
        together = last if not self._leading else max(1, min(_CACHED // max(size, 1), -(-_WORTH_A_BLOCK // max(work, 1))))
        if step < rows:
            together = 1
        singles = [[slice(i, i + 1) for i in range(length)] for length in outer]
        stacks = [slice(i, min(i + together, last)) for i in range(0, last, together)] if self._leading else []
        parts = [slice(i, min(i + step, rows)) for i in range(0, rows, step)]
        return product(*singles, *([stacks] if self._leading else []), parts)

    def _matrices(self, x: np.ndarray, index: int) -> np.ndarray:
        """An operand as a stack of matrices with all leading axes of the output."""
        if self._vectors[index]:
            x = x[None] if index == 0 else x[:, None]
        elif self._swapped[index]:
            x = x.swapaxes(-1, -2)
        return np.broadcast_to(x, (*self._leading, *x.shape[-2:]))

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: Context) -> None:
        a, b = self._matrices(inputs[0], 0), self._matrices(inputs[1], 1)
        out = outputs[0]
        if self._vectors[1]:
            out = out[..., None]
        if self._vectors[0]:
            out = out[..., None, :]
        operands = self.epilogue.bind(inputs[len(self.task.inputs) :])

        def compute(index: int, scratch: Scratch) -> None:
            *stack, rows = self.blocks[index]
            left, right = contiguous(scratch, a[(*stack, rows)]), contiguous(scratch, b[tuple(stack)])
            part = out[(*stack, rows)]
            if blasable(part):
                np.matmul(left, right, out=part)
            else:
                np.copyto(part, np.matmul(left, right, out=scratch.take(part.shape, part.dtype)))
            self.epilogue.run(scratch, part, operands, (*stack, rows, slice(0, self._columns)))

        context.parallel(len(self.blocks), compute)
