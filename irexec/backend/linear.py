"""Products of activations with a constant matrix.

They are seen as sheets of (tokens, inner) times the transpose of (features, inner), whichever side of MatMul the
constant is on. OpenBLAS is fastest if the longer axis of the result is not the contiguous one: for few tokens the
product is computed as weights @ activations.T and transposed while it is copied, block by block in cache, which costs
less than it gains.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.chain import Epilogue, Groups, merged
from irexec.backend.constants import ConstantSource, ConstantStore
from irexec.backend.kernel import SHARES, Candidate, Kernel, KernelContext, Order, Task, chain_keeps_type
from irexec.backend.products import (
    COPY,
    LONGEST_BLOCK,
    TRANSPOSED_COPY,
    UNPACKED_LIMIT,
    product_cost,
    unpacked_product_cost,
)
from irexec.backend.scratch import Scratch

# Elements to which the chain is applied at once.
_CHAINED = 1 << 15

# Features that are transposed at once.
_TRANSPOSED = 128

# Bytes of the output that a block computes at most. Cutting a product costs more than a chain that reads it from the
# last cache; what is transposed afterwards should be near.
_DIRECT_LIMIT, _TRANSPOSED_LIMIT = 1 << 24, 1 << 20

# Nanoseconds of work that are worth a block of their own.
_WORTH_A_BLOCK = 50_000


@dataclass(frozen=True)
class LinearGeometry:
    """A product as ``sheets`` times (tokens, inner) @ (features, inner).T.

    Attributes:
        activation: index of the input that is not the constant.
        swapped: whether tokens are the last axis of that input.
        groups: the axes of the output that are sheets, tokens and features.
        contiguous: the one of these groups (0, 1, 2) that is innermost in the output.
    """

    sheets: int
    tokens: int
    inner: int
    features: int
    activation: int
    swapped: bool
    groups: Groups
    contiguous: int

    @staticmethod
    def of(task: Task, activation: int) -> LinearGeometry:
        """The geometry of a MatMul whose other operand is a constant matrix or vector.

        All axes before the tokens are merged with them where input and output lie in memory so; otherwise they are
        sheets.
        """
        shape, out = task.shape(activation), task.output_shape()
        swapped = len(shape) > 1 and (activation == 1) != task.attributes[("transpose_a", "transpose_b")[activation]]
        of_vectors = [len(task.shape(i)) == 1 for i in (0, 1)]
        leading = tuple(range(len(out) - 2 + sum(of_vectors)))
        axes = [() if of_vectors[0] else (len(leading),), () if of_vectors[1] else (len(out) - 1,)]
        tokens, features = axes[activation], axes[1 - activation]
        own = [*range(len(shape) - 2), *([len(shape) - (1 if swapped else 2)] if len(shape) > 1 else [])]
        groups: Groups = (leading, tokens, features)
        if merges((*leading, *tokens), out, task.output_orders[0]) and merges(
            own, shape, task.input_orders[activation]
        ):
            groups = ((), (*leading, *tokens), features)
        sizes = [math.prod(out[axis] for axis in group) for group in groups]
        inner = shape[-2 if swapped else -1]
        return LinearGeometry(
            sizes[0],
            sizes[1],
            inner,
            sizes[2],
            activation,
            swapped,
            groups,
            innermost(groups, out, task.output_orders[0]),
        )

    def matrices(self, x: np.ndarray) -> np.ndarray:
        """The activations as (sheets, tokens, inner)."""
        return (x.swapaxes(-1, -2) if self.swapped else x).reshape(self.sheets, self.tokens, self.inner)


def merges(axes: Sequence[int], shape: Sequence[int], order: Order | None) -> bool:
    """Whether the axes are one axis of a view of an array of that order."""
    present = [axis for axis in (order or range(len(shape))) if shape[axis] != 1]
    wanted = [axis for axis in axes if shape[axis] != 1]
    return not wanted or any(present[i : i + len(wanted)] == wanted for i in range(len(present)))


def innermost(groups: Groups, shape: Sequence[int], order: Order | None) -> int:
    for axis in reversed(order or range(len(shape))):
        if shape[axis] != 1:
            return next(i for i, group in enumerate(groups) if axis in group)
    return 2


def suits_blas(matrix: np.ndarray) -> bool:
    """True if BLAS takes the last two axes: one is contiguous, and the stride of the other covers it."""
    *_, rows, columns = matrix.shape
    *_, outer, inner = matrix.strides
    size = matrix.itemsize
    if not matrix.flags.aligned or outer % size or inner % size:
        return False
    return (inner == size and outer >= columns * size) or (outer == size and inner >= rows * size)


def contiguous(scratch: Scratch, matrix: np.ndarray) -> np.ndarray:
    """The matrix or stack of matrices, copied into scratch if BLAS cannot read it."""
    if suits_blas(matrix):
        return matrix
    copy = scratch.take(matrix.shape, matrix.dtype)
    np.copyto(copy, matrix)
    return copy


def multiply_into(scratch: Scratch, left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
    """Write a product, by way of scratch where BLAS cannot write."""
    if suits_blas(out):
        np.matmul(left, right, out=out)
    else:
        np.copyto(out, np.matmul(left, right, out=scratch.take(out.shape, out.dtype)))


class MatrixWeights:
    """A constant matrix (features, inner).

    Args:
        source: the constant, of shape (features, inner) or, if ``transposed``, (inner, features), with any axes of size
            1 in front.

    Attributes:
        limit: maximum number of features that are asked for at once; None for any number.
        cost: nanoseconds of each weight in each run.
    """

    limit: int | None = None
    cost = 0.0

    def __init__(self, source: ConstantSource, features: int, inner: int, transposed: bool) -> None:
        self.source, self.transposed, self._shape = source, transposed, (features, inner)
        self._matrix: np.ndarray | None = None

    def pack(self, store: ConstantStore) -> None:
        """Shared as stored if the weights of each feature are contiguous; otherwise transposed."""
        if self.transposed:
            self._matrix = store.get([self.source], "transposed matrix", self._packed)
        else:
            self._matrix = np.require(store.array(self.source).reshape(self._shape), requirements=["C", "A"])

    def _packed(self, array: np.ndarray) -> np.ndarray:
        return np.require(array.reshape(self._shape[::-1]).T, requirements=["C", "A"])

    def workspace(self, features: int) -> int:
        """Bytes of scratch that ``rows`` uses for this number of features."""
        return 0

    def rows(self, scratch: Scratch, features: slice) -> np.ndarray:
        """The weights of some features."""
        assert self._matrix is not None
        return self._matrix[features]


@dataclass(frozen=True)
class Block:
    sheet: int
    tokens: slice
    features: slice


@dataclass(frozen=True)
class Cut:
    """How a product is cut: into blocks of tokens where these are many, else of features.

    Attributes:
        by_tokens: whether the blocks are of tokens.
        parts: number of blocks of each sheet.
        tokens, features: sizes of a block; the last one of a sheet may have fewer.
    """

    by_tokens: bool
    parts: int
    tokens: int
    features: int

    @staticmethod
    def of(g: LinearGeometry, weights: MatrixWeights, limit: int, itemsize: int) -> Cut:
        """The cut for blocks whose output has at most ``limit`` bytes."""
        by_tokens = weights.limit is None and (g.tokens > 512 or g.tokens >= g.features)
        length, other = (g.tokens, g.features) if by_tokens else (g.features, g.tokens)
        work = 2 * g.tokens * g.features * g.inner
        count, worth = max(-(-length * other * itemsize // limit), work // LONGEST_BLOCK), work // 100 // _WORTH_A_BLOCK
        if g.sheets < SHARES:
            count = max(count, min(-(-SHARES // g.sheets), worth))
        size = min(-(-length // max(count, 1) // 16) * 16 or 1, weights.limit or length, length)
        tokens, features = (size, other) if by_tokens else (other, size)
        return Cut(by_tokens, -(-length // size), tokens, features)

    def blocks(self, g: LinearGeometry) -> list[Block]:
        """The blocks of all sheets."""
        length, size = (g.tokens, self.tokens) if self.by_tokens else (g.features, self.features)
        parts = [slice(start, min(start + size, length)) for start in range(0, length, size)]
        whole = slice(0, g.features if self.by_tokens else g.tokens)
        return [
            Block(sheet, *((part, whole) if self.by_tokens else (whole, part)))
            for sheet in range(g.sheets)
            for part in parts
        ]


class LinearKernel(Kernel):
    """A product with constant weights in blocks of tokens or features, each followed by the chain.

    A subclass estimates its cost and computes a block.
    """

    limit = _DIRECT_LIMIT

    @classmethod
    def candidate(cls, task: Task, geometry: LinearGeometry, weights: MatrixWeights) -> Candidate:
        """The kernel with its estimate."""
        itemsize = task.inputs[geometry.activation].dtype.itemsize
        cut = Cut.of(geometry, weights, cls.limit, itemsize)
        cost = cls.estimate(geometry, weights, cut, itemsize)
        return Candidate(cost, partial(cls, task, geometry, weights), runs_chain=chain_keeps_type(task))

    @staticmethod
    @abstractmethod
    def estimate(geometry: LinearGeometry, weights: MatrixWeights, cut: Cut, itemsize: int) -> float:
        """Estimated nanoseconds on one thread."""

    def __init__(self, task: Task, geometry: LinearGeometry, weights: MatrixWeights) -> None:
        dtype, chain = task.inputs[geometry.activation].dtype, task.chain if chain_keeps_type(task) else None
        self.task, self.geometry, self.weights, self.dtype = task, geometry, weights, dtype
        # The chain works on blocks in the order in which they lie in memory.
        self._by_features = geometry.contiguous == 1
        sheets, tokens, features = geometry.groups
        groups = (sheets, features, tokens) if self._by_features else geometry.groups
        self.epilogue = Epilogue(chain, task.output_shape(), groups)
        cut = Cut.of(geometry, weights, self.limit, dtype.itemsize)
        self.blocks, self.block_shape = cut.blocks(geometry), (cut.tokens, cut.features)
        super().__init__(
            reads=(geometry.activation,),
            workspace=self.epilogue.workspace(min(2 * _CHAINED, math.prod(self.block_shape)))
            + weights.workspace(self.block_shape[1]),
            splits=len(self.blocks) > 1,
        )

    def pack(self, store: ConstantStore) -> None:
        self.weights.pack(store)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        g, out = self.geometry, outputs[0]
        x = self.prepare(g.matrices(inputs[g.activation]))
        target = merged(out, out.shape, g.groups)
        operands = self.epilogue.bind(inputs[len(self.task.inputs) :])

        def compute(index: int, scratch: Scratch) -> None:
            self.compute(scratch, x, target, self.blocks[index], operands)

        context.parallel(len(self.blocks), compute)
        if not np.may_share_memory(target, out):
            axes = [axis for group in g.groups for axis in group]
            view = out.transpose(axes)
            np.copyto(view, target.reshape(view.shape))

    def prepare(self, x: np.ndarray) -> Any:
        """The activations (sheets, tokens, inner) in the form that blocks read, made once for each run."""
        return x

    @abstractmethod
    def compute(
        self, scratch: Scratch, x: Any, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]
    ) -> None:
        """Write a block of ``target`` (sheets, tokens, features) from the result of ``prepare``."""

    def transpose(
        self, scratch: Scratch, product: np.ndarray, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]
    ) -> None:
        """Copy (features, tokens) to a block of ``target`` and apply the chain, in pieces that stay in cache."""
        part = target[block.sheet, block.tokens, block.features]
        count, tokens = product.shape
        step = max(_TRANSPOSED, _CHAINED // max(tokens, 1) // _TRANSPOSED * _TRANSPOSED)
        at_once = step if tokens == 1 else _TRANSPOSED
        for start in range(0, count, step):
            stop = min(start + step, count)
            for first in range(start, stop, at_once):
                features = slice(first, min(first + at_once, stop))
                np.copyto(part[:, features], product[features].T)
            offset = block.features.start
            self.finish(
                scratch, target, Block(block.sheet, block.tokens, slice(offset + start, offset + stop)), operands
            )

    def finish(self, scratch: Scratch, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]) -> None:
        """Apply the chain to a block of ``target``, in pieces that stay in cache."""
        if self.epilogue.chain is None:
            return
        rows, columns = (block.features, block.tokens) if self._by_features else (block.tokens, block.features)
        sheet, array = slice(block.sheet, block.sheet + 1), target.swapaxes(1, 2) if self._by_features else target
        step = max(1, _CHAINED // (columns.stop - columns.start))
        for start in range(rows.start, rows.stop, step):
            region = sheet, slice(start, min(start + step, rows.stop)), columns
            self.epilogue.run(scratch, array[region], operands, region)


class DirectLinear(LinearKernel):
    """The product is written to the output in the output's own order."""

    def __init__(self, task: Task, geometry: LinearGeometry, weights: MatrixWeights) -> None:
        super().__init__(task, geometry, weights)
        self.algorithm = "activations @ weights.T" if geometry.contiguous == 2 else "weights @ activations.T"

    @staticmethod
    def estimate(geometry: LinearGeometry, weights: MatrixWeights, cut: Cut, itemsize: int) -> float:
        g = geometry
        rows, columns = (cut.tokens, cut.features) if g.contiguous == 2 else (cut.features, cut.tokens)
        product = g.sheets * cut.parts * product_cost(rows, columns, g.inner, itemsize)
        copy = TRANSPOSED_COPY * g.sheets * g.tokens * g.features if g.contiguous == 0 else 0
        return _weights_cost(g, weights, cut) + product + copy

    def compute(
        self, scratch: Scratch, x: Any, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]
    ) -> None:
        x = contiguous(scratch, x[block.sheet, block.tokens])
        part = target[block.sheet, block.tokens, block.features]
        weights = self.weights.rows(scratch, block.features)
        multiply_into(scratch, x, weights.T, part)
        self.finish(scratch, target, block, operands)


class TransposedLinear(LinearKernel):
    """weights @ activations.T into scratch, from there transposed to the output."""

    limit = _TRANSPOSED_LIMIT

    def __init__(self, task: Task, geometry: LinearGeometry, weights: MatrixWeights) -> None:
        super().__init__(task, geometry, weights)
        self.algorithm = "weights @ activations.T, transposed by blocks"
        self.workspace += math.prod(self.block_shape) * self.dtype.itemsize + 64

    @staticmethod
    def estimate(geometry: LinearGeometry, weights: MatrixWeights, cut: Cut, itemsize: int) -> float:
        g = geometry
        product = g.sheets * cut.parts * product_cost(cut.features, cut.tokens, g.inner, itemsize)
        copy = (TRANSPOSED_COPY if g.contiguous != 1 else COPY) * g.sheets * g.tokens * g.features
        return _weights_cost(g, weights, cut) + product + copy

    def compute(
        self, scratch: Scratch, x: Any, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]
    ) -> None:
        x = contiguous(scratch, x[block.sheet, block.tokens])
        weights = self.weights.rows(scratch, block.features)
        product = scratch.take((len(weights), len(x)), self.dtype)
        np.matmul(weights, x.T, out=product)
        self.transpose(scratch, product, target, block, operands)


class NarrowLinear(LinearKernel):
    """Few tokens: products of as many features as OpenBLAS multiplies without packing them."""

    def __init__(self, task: Task, geometry: LinearGeometry, weights: MatrixWeights) -> None:
        super().__init__(task, geometry, weights)
        self.algorithm = "activations @ weights.T by unpacked tiles"
        self._tile = _unpacked_features(geometry)

    @staticmethod
    def estimate(geometry: LinearGeometry, weights: MatrixWeights, cut: Cut, itemsize: int) -> float:
        g = geometry
        return g.sheets * cut.parts * unpacked_product_cost(cut.tokens, cut.features, g.inner, itemsize)

    def compute(
        self, scratch: Scratch, x: Any, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]
    ) -> None:
        x = contiguous(scratch, x[block.sheet, block.tokens])
        part = target[block.sheet, block.tokens, block.features]
        weights = self.weights.rows(scratch, block.features)
        count = len(weights) // self._tile if part.strides[1] == part.itemsize else 0
        tiled = count * self._tile
        if count:
            tiles = weights[:tiled].reshape(count, self._tile, -1).swapaxes(1, 2)
            np.matmul(x, tiles, out=part[:, :tiled].reshape(len(x), count, self._tile).swapaxes(0, 1))
        if tiled < len(weights):
            rest = part[:, tiled:]
            np.copyto(rest, np.matmul(x, weights[tiled:].T, out=scratch.take(rest.shape, rest.dtype)))
        self.finish(scratch, target, block, operands)


def _weights_cost(g: LinearGeometry, weights: MatrixWeights, cut: Cut) -> float:
    """Nanoseconds in which the weights are made, once for each block of tokens."""
    return weights.cost * g.features * g.inner * (g.sheets * (cut.parts if cut.by_tokens else 1))


def _unpacked_features(g: LinearGeometry) -> int:
    """The features of a product of all tokens that OpenBLAS does not pack."""
    return UNPACKED_LIMIT // (g.tokens * g.inner) // 16 * 16


def linear_candidates(
    task: Task, geometry: LinearGeometry, weights: MatrixWeights, *others: type[LinearKernel]
) -> list[Candidate]:
    """Candidates for a product with a constant matrix: those for any weights, and the given ones."""
    kinds: list[type[LinearKernel]] = [DirectLinear]
    if geometry.contiguous != 1 and geometry.tokens > 1:
        kinds.append(TransposedLinear)
    return [kind.candidate(task, geometry, weights) for kind in (*kinds, *others)]


def linear_kernels(task: Task, geometry: LinearGeometry, weights: MatrixWeights) -> list[Candidate]:
    """Candidates for a product with a matrix that is not compressed."""
    is_narrow = geometry.contiguous == 2 and 1 < geometry.tokens <= 12 and _unpacked_features(geometry) >= 16
    return linear_candidates(task, geometry, weights, *([NarrowLinear] if is_narrow else []))
