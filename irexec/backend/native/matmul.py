"""MatMul by the C library: with a constant matrix, packed once, and of two activations, of which one is packed in each
run."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, NativeKernel, element_strides, is_available, loaded
from irexec.backend.constants import ConstantStore
from irexec.backend.copies import Copy, array_at, bind_copies
from irexec.backend.kernel import Candidate, Task
from irexec.backend.linear import LinearGeometry
from irexec.backend.matmul import MatrixSizes
from irexec.backend.native.chains import NativeChain, fits
from irexec.backend.native.convolution import STEP, Product, overwritten, zeros
from irexec.backend.native.elementwise import can_follow, followed
from irexec.backend.native.panels import READ, Cut, pack, padded, panel_of, product_cost, rows_as_windows, table_bytes
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32
from irexec.native.structures import Parameters, structure

# Values of a matrix that is not packed: tables of words, of which others read rows as they are stored.
_LARGEST = 1 << 23
# Nanoseconds to pack a value in a run, and to copy one whose neighbours lie elsewhere.
_PACK, _COPIED, _REORDERED = 0.15, 0.35, 1.0

Packing = structure("product.c", "packing")


class _Matrices(NativeKernel):
    """Products of matrices, ``images`` of them, (rows, depth) by (depth, columns), of floats or pairs of bf16."""

    pairs = False

    def __init__(self, task: Task, axes: tuple[tuple[int, ...], ...], sizes: tuple[int, int, int, int]) -> None:
        self.images, self.rows, self.depth, self.columns = sizes
        images, rows, columns = axes
        self.axes, self.own = (images, rows, columns), len(task.inputs)
        self.chain = NativeChain(
            task.chain, task.operands, task.output_shape(), self.axes, takes_bias=True, takes_addend=True
        )
        self.panel = panel_of(self.columns)
        self.cut = Cut.of(self.images, self.rows, 1, self.depth, self.columns, task.threads)
        self.overwrites = overwritten(task, self.own)
        self.workspace = table_bytes(self.cut.block_rows(self.rows), 1)

    def _multiply(
        self, rows: tuple[int, int, int], weights: tuple[int, int], inputs: Sequence[Any], out: Any, binding: Binding
    ) -> None:
        """Bind the product.

        Args:
            rows: address, and strides of images and rows, of the left matrices.
            weights: address of the packed right ones, and the stride of images.
        """
        operands = inputs[self.own :]
        out, strides = binding.written(out, self.axes)
        address, image, row = rows
        window = rows_as_windows(address, image, row, self.rows, binding.address(zeros(self.depth)))
        parameters = Product(
            window, *weights, self.chain.bias(operands, binding), self.chain.addend(operands, binding),
            binding.address(out), *strides,
            self.chain.bind(operands, binding), self.depth, 1, self.columns, self.panel, self.rows, self.cut.rows,
            self.cut.panels, *self.chain.limits, self.pairs,
        )  # fmt: skip
        binding.call("irx_product", parameters, self.images * self.cut.rows * self.cut.panels)


class NativeLinear(_Matrices):
    """Activations by a constant matrix."""

    def __init__(self, task: Task, geometry: LinearGeometry) -> None:
        g = self.geometry = geometry
        super().__init__(task, g.groups, (g.sheets, g.tokens, g.inner, g.features))
        self.source = task.constants[1 - g.activation]
        self.by_feature = is_by_feature(task, g)
        self.reads = (g.activation,)
        self.algorithm = "C, product with packed weights"
        self.copies = not has_rows(task, g)
        self.shared_workspace = 4 * g.sheets * g.tokens * g.inner if self.copies else 0

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "the matrix is a constant"
        inner, features = self.depth, self.columns

        def make(matrix: np.ndarray) -> np.ndarray:
            rows = matrix.reshape(features, inner).T if self.by_feature else matrix.reshape(inner, features)
            return pack(rows[None])

        self.weights = store.get([self.source], ("native matrix", inner, features, self.by_feature), make)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        x = inputs[self.geometry.activation]
        weights = binding.address(self.weights), 0
        if self.copies:
            lying = sheets_of(self.geometry, x, binding)
            sheets = array_at(binding.shared, lying.shape)
            bind_copies([Copy(lying, sheets)], binding)
        else:
            sheets = activations(self.geometry, x, binding)
        image, row, _ = element_strides(sheets)
        self._multiply((binding.address(sheets), image, row), weights, inputs, outputs[0], binding)


class NativeFeatures(_Matrices):
    """A constant matrix, as it lies in memory, by activations, which are packed in each run.

    Large matrices are not held twice, and a table of words is shared with a Gather.
    """

    def __init__(self, task: Task, geometry: LinearGeometry) -> None:
        g = self.geometry = geometry
        sheets, tokens, features = g.groups
        super().__init__(task, (sheets, features, tokens), (g.sheets, g.features, g.inner, g.tokens))
        self.source = task.constants[1 - g.activation]
        self.reads = (g.activation,)
        self.algorithm = "C, product with weights as they lie"
        self.shared_workspace = self.images * padded(self.columns) * self.depth * 4

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "the matrix is a constant"
        matrix = store.array(self.source).reshape(self.rows, self.depth)
        self.weights = np.require(matrix, requirements=["C", "A"])

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        sheets = sheets_of(self.geometry, inputs[self.geometry.activation], binding)
        image, token, inner = element_strides(sheets)
        packing = packing_of(
            (binding.address(sheets), image, inner, token), binding.shared, self.depth, self.columns, self.panel
        )
        binding.call("irx_pack", packing, self.images * packing.panels_each)
        rows = binding.address(self.weights), 0, self.depth
        self._multiply(rows, (binding.shared, padded(self.columns) * self.depth), inputs, outputs[0], binding)


def packing_of(matrix: tuple[int, int, int, int], out: int, depth: int, columns: int, panel: int) -> Parameters:
    """The packing of matrices.

    Args:
        matrix: address, and strides of images, rows and columns.
        out: the address of the panels.
    """
    return Packing(*matrix, out, depth, columns, panel, -(-columns // (panel * loaded().vector)))


def sheets_of(geometry: LinearGeometry, x: np.ndarray, binding: Binding) -> np.ndarray:
    """Activations as (sheets, tokens, inner)."""
    sheets = geometry.matrices(x)
    return sheets if np.may_share_memory(x, sheets) else geometry.matrices(binding.copied(x))


def activations(geometry: LinearGeometry, x: np.ndarray, binding: Binding) -> np.ndarray:
    """Activations as (sheets, tokens, inner), whose elements along the last axis follow each other in memory."""
    return binding.with_stride(sheets_of(geometry, x, binding), 2)


class NativeMatrices(_Matrices):
    """Two stacks of matrices; the right ones are packed in each run."""

    def __init__(self, task: Task, sizes: MatrixSizes) -> None:
        last = len(sizes.leading)
        axes = tuple(range(last)), (last,), (last + 1,)
        super().__init__(task, axes, (math.prod(sizes.leading), sizes.rows, sizes.inner, sizes.columns))
        self.sizes = sizes
        self.swapped = task.attributes["transpose_a"], task.attributes["transpose_b"]
        # One right matrix for all is packed once.
        self.packed = 1 if math.prod(task.shape(1)[:-2]) == 1 else self.images
        self.algorithm = "C, product of matrices"
        self.shared_workspace = self.packed * padded(self.columns) * self.depth * 4

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        left, right = self._left(inputs[0], binding), self._strides(self._stack(inputs[1], 1), binding)
        matrix = right[0], right[1] if self.packed > 1 else 0, *right[2:]
        packing = packing_of(matrix, binding.shared, self.depth, self.columns, self.panel)
        binding.call("irx_pack", packing, self.packed * packing.panels_each)
        each = padded(self.columns) * self.depth if self.packed > 1 else 0
        self._multiply(left, (binding.shared, each), inputs, outputs[0], binding)

    def _left(self, x: np.ndarray, binding: Binding) -> tuple[int, int, int]:
        a = self._stack(x, 0)
        # The whole stack is copied, and not what it repeats: a second copy would be made of memory that is not filled.
        return self._strides(binding.with_stride(a, a.ndim - 1), binding)[:3]

    def _stack(self, x: np.ndarray, index: int) -> np.ndarray:
        x = x.swapaxes(-1, -2) if self.swapped[index] else x
        return np.broadcast_to(x, (*self.sizes.leading, *x.shape[-2:]))

    def _strides(self, x: np.ndarray, binding: Binding) -> tuple[int, int, int, int]:
        """The address, and the strides of images, rows and columns."""
        last = x.ndim - 2
        x, strides = binding.read(x, (tuple(range(last)), (last,), (last + 1,)))
        image, row, column = strides
        return binding.address(x), image, row, column


class NativeConstantMatrices(NativeMatrices):
    """A stack of activations by one of constant matrices, such as those of experts, which are packed once."""

    def __init__(self, task: Task, sizes: MatrixSizes) -> None:
        super().__init__(task, sizes)
        self.source = task.constants[1]
        self.reads = (0,)
        self.algorithm = "C, product with packed matrices"
        self.shared_workspace = 0

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "the matrices are constant"
        shape = self.images, self.depth, self.columns

        def make(matrices: np.ndarray) -> np.ndarray:
            return pack(self._stack(matrices, 1).reshape(shape))

        self.weights = store.get([self.source], ("native matrices", *shape, self.swapped[1]), make)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        weights = binding.address(self.weights), padded(self.columns) * self.depth
        self._multiply(self._left(inputs[0], binding), weights, inputs, outputs[0], binding)


@kernels("MatMul", since=1)
def _matmul(task: Task) -> Iterator[Candidate]:
    """f32, with a constant matrix on either side or of two activations."""
    if not is_available(task) or not all(fact.element is F32 for fact in task.inputs):
        return
    if not math.prod((*task.output_shape(), *task.shape(0))):
        return
    constant = constant_matrix(task)
    if constant is None:
        yield from _stacks(task)
    elif task.holding == "unpacked" or not hasattr(task.constants[constant], "has_rows"):
        yield from _linear(task, LinearGeometry.of(task, 1 - constant))


def constant_matrix(task: Task) -> int | None:
    """The input that is one constant matrix, if there is one."""
    sides = (i for i in (1, 0) if task.constants[i] is not None and math.prod(task.shape(i)[:-2]) == 1)
    return next(sides, None)


def is_packed(task: Task, geometry: LinearGeometry) -> bool:
    """Whether the constant matrix may be packed, and the chain runs on tiles."""
    return fits(task, geometry.groups) and geometry.features * geometry.inner <= _LARGEST


def _linear(task: Task, g: LinearGeometry) -> Iterator[Candidate]:
    sheets, tokens, features = g.groups
    if is_by_feature(task, g) and fits(task, (sheets, features, tokens)):
        cost = 2 * STEP + g.sheets * (_PACK * g.tokens * g.inner + product_cost(g.features, g.inner, g.tokens))
        cost += READ * g.features * g.inner + (0.4 * g.sheets * g.tokens * g.features if g.contiguous != 1 else 0.0)
        yield Candidate(cost, functools.partial(NativeFeatures, task, g))
    if not is_packed(task, g):
        return
    cost = STEP + g.sheets * product_cost(g.tokens, g.inner, g.features)
    cost += reordering_cost(task, g, STEP + _COPIED * g.sheets * g.tokens * g.inner)
    yield Candidate(cost, functools.partial(NativeLinear, task, g))


def is_by_feature(task: Task, g: LinearGeometry) -> bool:
    """Whether the constant matrix is stored as (features, inner)."""
    transposed: bool = task.attributes[("transpose_a", "transpose_b")[1 - g.activation]]
    return transposed != (g.activation == 1)


def reordering_cost(task: Task, g: LinearGeometry, copied: float) -> float:
    """Nanoseconds that orders in memory add to a product.

    Args:
        copied: of copying the activations, where their rows are not contiguous.
    """
    cost = 0.0 if has_rows(task, g) else copied
    if g.contiguous == 1:
        cost += 0.4 * g.sheets * g.tokens * g.features
    return cost


def has_rows(task: Task, g: LinearGeometry) -> bool:
    """Whether the rows of the activations are contiguous."""
    return g.inner == 1 or _is_innermost(task, g.activation, 2 if g.swapped else 1)


def _is_innermost(task: Task, index: int, axis: int) -> bool:
    """Whether elements of an input follow each other in memory along an axis, which is counted from the last one."""
    own = task.shape(index)
    order = task.input_orders[index] or range(len(own))
    return next((i for i in reversed(order) if own[i] != 1), len(own) - 1) == len(own) - axis


def _stacks(task: Task) -> Iterator[Candidate]:
    sizes = MatrixSizes.of(task)
    if any(sizes.vectors):
        return
    last = len(sizes.leading)
    is_fused = fits(task, (tuple(range(last)), (last,), (last + 1,)))
    if task.output_orders[0] is not None or not (is_fused or can_follow(task)):
        return
    images, source = math.prod(sizes.leading), task.constants[1]
    is_constant = source is not None and math.prod(task.shape(1)[:-2]) == images
    # Stacks of compressed weights that native/compressed.py does not read are unpacked all the same.
    is_constant = is_constant and sizes.columns * sizes.inner <= _LARGEST
    kind = NativeConstantMatrices if is_constant else NativeMatrices
    packed = 0 if is_constant else images * sizes.columns * sizes.inner
    cost = 2 * STEP + _PACK * packed + images * product_cost(sizes.rows, sizes.inner, sizes.columns)
    if math.prod(task.shape(0)[:-2]) not in (1, images) or math.prod(task.shape(1)[:-2]) not in (1, images):
        cost += _REORDERED * (packed + images * sizes.rows * sizes.inner)
    if sizes.inner > 1 and not _is_innermost(task, 0, 2 if task.attributes["transpose_a"] else 1):
        cost += STEP + _COPIED * images * sizes.rows * sizes.inner
    if is_fused:
        yield Candidate(cost, functools.partial(kind, task, sizes))
        return
    # A mask that is the same for some heads is repeated along a part of the images.
    alone = replace(task, chain=None, operands=(), input_orders=task.input_orders[:2])
    yield Candidate(cost + STEP, lambda: followed(kind(alone, sizes), task))
