"""Fast kernels of MatMul."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from irexec.backend.chain import Epilogue
from irexec.backend.compressed import CompressedSource
from irexec.backend.compressed_kernels import compressed_kernels
from irexec.backend.kernel import SHARES, Candidate, Kernel, KernelContext, Order, Task, chain_keeps_type
from irexec.backend.linear import LinearGeometry, MatrixWeights, contiguous, linear_kernels, multiply_into, suits_blas
from irexec.backend.products import COPY, LONGEST_BLOCK, product_cost
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch

# Bytes of the output that a block computes at most, so that the chain finds it in cache.
_CACHED = 1 << 20

# Floating-point operations that are worth a block of their own.
_WORTH_A_BLOCK = 5_000_000

# Split a stack of small products in two above this size.
_MANY = 64

# The minimum number of rows of a matrix that are a block of their own.
_MINIMUM_ROWS = 128


@kernels("MatMul", since=1)
def _matmul_kernels(task: Task) -> list[Candidate]:
    """With a constant matrix on either side, or of two activations; f32 and f64."""
    if task.dtype(0) not in (np.dtype(np.float32), np.dtype(np.float64)):
        return []
    for constant in (1, 0):
        shape = task.shape(constant)
        if task.constants[constant] is not None and math.prod(shape[:-2]) == 1:
            return _with_constant(task, 1 - constant)
    if not math.prod((*task.output_shape(), *task.shape(0))):
        return []
    return [_matrices(task)]


def _with_constant(task: Task, activation: int) -> list[Candidate]:
    """Candidates where the other input is a constant matrix or vector."""
    source, geometry = task.constants[1 - activation], LinearGeometry.of(task, activation)
    work = geometry.tokens * geometry.features * geometry.inner
    if source is None or not geometry.sheets * work:
        return []
    if geometry.sheets > _MANY and 2 * work < _WORTH_A_BLOCK:
        return [_matrices(task)]
    transposed = task.attributes[("transpose_a", "transpose_b")[1 - activation]] != (activation == 0)
    by_feature = not transposed or len(source.shape) == 1
    if task.holding != "unpacked" and by_feature and isinstance(source, CompressedSource) and source.has_rows:
        return compressed_kernels(task, geometry, source)
    return linear_kernels(task, geometry, MatrixWeights(source, geometry.features, geometry.inner, not by_feature))


def _matrices(task: Task) -> Candidate:
    """Products of two stacks of matrices, with their estimate."""
    sizes = MatrixSizes.of(task)
    cost = sizes.cost(task.input_orders, task.inputs[0].dtype.itemsize)
    return Candidate(cost, partial(MatrixProducts, task, sizes), chain_keeps_type(task))


@dataclass(frozen=True)
class MatrixSizes:
    """Stacks of matrices (leading..., rows, inner) and (leading..., inner, columns).

    Attributes:
        vectors: for both operands whether it is a vector.
    """

    vectors: tuple[bool, bool]
    leading: tuple[int, ...]
    rows: int
    columns: int
    inner: int

    @staticmethod
    def of(task: Task) -> MatrixSizes:
        a, b = task.shape(0), task.shape(1)
        vectors = len(a) == 1, len(b) == 1
        rows, inner = (1, a[0]) if vectors[0] else a[:-3:-1] if task.attributes["transpose_a"] else a[-2:]
        columns = 1 if vectors[1] else b[-2 if task.attributes["transpose_b"] else -1]
        out = task.output_shape()
        return MatrixSizes(vectors, out[: len(out) - 2 + sum(vectors)], rows, columns, inner)

    def cost(self, orders: Sequence[Order | None], itemsize: int) -> float:
        """Estimated nanoseconds."""
        copies = 0.0
        for order, elements in zip(orders, (self.rows * self.inner, self.inner * self.columns), strict=False):
            if order is not None and len(order) > 1 and order[-1] < len(order) - 2:
                copies += COPY * 4 * elements
        return math.prod(self.leading) * (product_cost(self.rows, self.columns, self.inner, itemsize) + copies)


class MatrixProducts(Kernel):
    """Products of two stacks of matrices, by blocks of matrices or rows.

    Only operands that BLAS cannot read are copied.
    """

    def __init__(self, task: Task, sizes: MatrixSizes) -> None:
        self.task = task
        chain = task.chain if chain_keeps_type(task) else None
        self._swapped = task.attributes["transpose_a"], task.attributes["transpose_b"]
        self._vectors, self._leading = sizes.vectors, sizes.leading
        self._rows, self._columns, self._inner = sizes.rows, sizes.columns, sizes.inner
        self._is_right_shared = math.prod(task.shape(1)[:-2]) == 1
        self.blocks = list(self._cut())
        # The output's axes, with one of no axis for what a vector lacks.
        out, last = task.output_shape(), len(self._leading)
        rows, columns = (() if self._vectors[0] else (last,)), (() if self._vectors[1] else (len(out) - 1,))
        self.epilogue = Epilogue(chain, out, (*((axis,) for axis in range(last)), rows, columns))
        in_block = [index.stop - index.start for index in self.blocks[0]]
        elements = math.prod(in_block) * self._columns
        operands = math.prod(in_block[:-1]) * self._inner * (in_block[-1] + self._columns)
        super().__init__(
            "matrices by blocks",
            workspace=(elements + operands) * task.inputs[0].dtype.itemsize + 256 + self.epilogue.workspace(elements),
            splits=len(self.blocks) > 1,
        )

    def _cut(self) -> Iterator[tuple[slice, ...]]:
        """A slice of each leading axis, and of the rows."""
        rows, size = self._rows, self._rows * self._columns * 4
        work = 2 * rows * self._columns * self._inner
        count = min(-(-size // _CACHED) if self.task.chain is not None else 1, -(-rows // _MINIMUM_ROWS))
        if math.prod(self._leading) < SHARES:
            count = max(count, min(SHARES, work // _WORTH_A_BLOCK, -(-rows // _MINIMUM_ROWS)))
        count = max(count, min(work // LONGEST_BLOCK, -(-rows // _MINIMUM_ROWS)))
        step = -(-rows // max(count, 1))
        # Several matrices in a block, if they are small.
        together = max(1, min(_CACHED // max(size, 1), -(-_WORTH_A_BLOCK // max(work, 1)))) if step >= rows else 1
        parts = [slice(i, min(i + step, rows)) for i in range(0, rows, step)]
        return product(*_stacks(self._leading, together), parts)

    def _matrices(self, x: np.ndarray, index: int) -> np.ndarray:
        """An operand as a stack of matrices with all leading axes of the output."""
        if self._vectors[index]:
            x = x[None] if index == 0 else x[:, None]
        elif self._swapped[index]:
            x = x.swapaxes(-1, -2)
        return np.broadcast_to(x, (*self._leading, *x.shape[-2:]))

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        a, b = self._matrices(inputs[0], 0), self._matrices(inputs[1], 1)
        out = outputs[0]
        if self._vectors[1]:
            out = out[..., None]
        if self._vectors[0]:
            out = out[..., None, :]
        operands = self.epilogue.bind(inputs[len(self.task.inputs) :])

        def compute(index: int, scratch: Scratch) -> None:
            *stack, rows = self.blocks[index]
            part = out[(*stack, rows)]
            left = contiguous(scratch, a[(*stack, rows)])
            if (
                self._is_right_shared
                and (stacked := _one_matrix(left)) is not None
                and (rows_of_part := _one_matrix(part)) is not None
            ):
                multiply_into(scratch, stacked, contiguous(scratch, b[(0,) * len(stack)]), rows_of_part)
            else:
                multiply_into(scratch, left, contiguous(scratch, b[tuple(stack)]), part)
            self.epilogue.run(scratch, part, operands, (*stack, rows, slice(0, self._columns)))

        context.parallel(len(self.blocks), compute)


def _stacks(leading: Sequence[int], together: int) -> list[list[slice]]:
    """Slices of the leading axes for blocks of at most ``together`` matrices: last axes whole, one axis in parts."""
    stacks: list[list[slice]] = []
    for length in reversed(leading):
        step = max(1, min(together, length))
        stacks.insert(0, [slice(i, min(i + step, length)) for i in range(0, length, step)])
        together = together // length if step == length else 1
    return stacks


def _one_matrix(stack: np.ndarray) -> np.ndarray | None:
    """The rows of all matrices of a stack as one matrix, if BLAS can read this view."""
    *axes, columns = stack.shape
    present = [(length, stride) for length, stride in zip(axes, stack.strides, strict=False) if length != 1]
    if any(outer != length * inner for (_, outer), (length, inner) in pairwise(present)):
        return None
    matrix = stack.reshape(-1, columns)
    return matrix if suits_blas(matrix) else None
