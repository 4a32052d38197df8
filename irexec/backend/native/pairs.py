"""Products whose operands are rounded to bf16, where ``precision`` is "bf16": words of two of them, summed in f32.

Such a word takes the place of a float in a product: data and weights have half the depth. The data is rounded in each
run. Processors with AVX-512 BF16 multiply and add twice as many of them as floats.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irexec.backend.calls import Binding, element_strides, is_available, loaded
from irexec.backend.constants import ConstantStore
from irexec.backend.convolution.geometry import Geometry
from irexec.backend.copies import array_at
from irexec.backend.kernel import Candidate, Task
from irexec.backend.linear import LinearGeometry
from irexec.backend.native.convolution import STEP, NativeConvolution, edges_cost, geometry_of, has_channels_last
from irexec.backend.native.matmul import (
    NativeLinear,
    activations,
    constant_matrix,
    has_rows,
    is_packed,
    reordering_cost,
)
from irexec.backend.native.panels import pack, product_cost
from irexec.backend.registry import kernels
from irexec.dtypes.elements import F32
from irexec.dtypes.layouts import bf16_bits
from irexec.native.structures import Parameters, structure

# Time of a product relative to one of floats (tests.benchmarks.networks), and nanoseconds to round a value.
_TIME, _ROUND = 0.55, 0.06
# Values that a block rounds.
_EACH = 1 << 14

_Narrowing = structure("product.c", "narrowing")


def words_of(matrices: np.ndarray) -> np.ndarray:
    """Matrices (groups, depth, columns) as words of two values of bf16 that follow each other along the depth.

    Returns:
        (groups, depth / 2, columns): their bits as floats.
    """
    groups, depth, columns = matrices.shape
    codes = bf16_bits(matrices).reshape(groups, depth // 2, 2, columns)
    return np.ascontiguousarray(codes.swapaxes(2, 3)).view(np.float32)[..., 0]


def _rounded(binding: Binding, given: tuple[int, int, int], sizes: tuple[int, int, int]) -> np.ndarray:
    """Add the call that rounds data, and return its words, (images, rows, depth / 2), in the shared scratch.

    Args:
        given: the address of the data, and its strides of images and rows.
        sizes: images, rows and depth.
    """
    images, rows, depth = sizes
    each = max(1, _EACH // depth)
    parameters = _Narrowing(*given, binding.shared, depth, rows, images * rows, each)
    binding.call("irx_narrow", parameters, -(-images * rows // each))
    return array_at(binding.shared, (images, rows, depth // 2))


class PairConvolution(NativeConvolution):
    """A convolution of channels last, an even number in each group."""

    pairs = True

    def __init__(self, task: Task, geometry: Geometry) -> None:
        super().__init__(task, replace(geometry, inputs=geometry.inputs // 2), False)
        self.channels = geometry.groups * geometry.inputs
        self.key = ("pairs", geometry.groups, geometry.outputs, self.panel)
        self.algorithm += " of bf16"
        self.shared_workspace = 2 * geometry.images * math.prod(geometry.sizes) * self.channels

    def _packed(self, filter: np.ndarray) -> np.ndarray:
        g = self.geometry
        weights = filter.reshape(g.groups, g.outputs, 2 * g.inputs, g.points)
        return pack(words_of(weights.transpose(0, 3, 2, 1).reshape(g.groups, 2 * g.depth, g.outputs)))

    def _windows(self, x: np.ndarray, binding: Binding) -> Parameters:
        g = self.geometry
        x, (image, pixel, _) = binding.read(x, self.axes, self.axes[2])
        sizes = g.images, math.prod(g.sizes), self.channels
        words = _rounded(binding, (binding.address(x), image, pixel), sizes)
        return super()._windows(np.moveaxis(words.reshape(g.images, *g.sizes, -1), -1, 1), binding)


class PairLinear(NativeLinear):
    """Activations whose rows are contiguous, of an even size, by a constant matrix."""

    pairs = True

    def __init__(self, task: Task, geometry: LinearGeometry) -> None:
        super().__init__(task, replace(geometry, inner=geometry.inner // 2))
        self.whole = geometry
        self.algorithm += " of bf16"
        self.shared_workspace = 2 * geometry.sheets * geometry.tokens * geometry.inner

    def pack(self, store: ConstantStore) -> None:
        assert self.source is not None, "the matrix is a constant"
        inner, features = self.whole.inner, self.columns

        def make(matrix: np.ndarray) -> np.ndarray:
            rows = matrix.reshape(features, inner).T if self.by_feature else matrix.reshape(inner, features)
            return pack(words_of(rows[None]))

        self.weights = store.get([self.source], ("pairs", inner, features, self.by_feature), make)

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any], binding: Binding) -> None:
        sheets = activations(self.whole, inputs[self.geometry.activation], binding)
        image, row, _ = element_strides(sheets)
        words = _rounded(binding, (binding.address(sheets), image, row), sheets.shape)
        strides = words.shape[1] * self.depth, self.depth
        self._multiply((binding.shared, *strides), (binding.address(self.weights), 0), inputs, outputs[0], binding)


def _is_offered(task: Task, depth: int) -> bool:
    return is_available(task) and loaded().has_pairs and depth % 2 == 0


@kernels("Convolution", since=1)
@kernels("GroupConvolution", since=1)
def _convolution(task: Task) -> Iterator[Candidate]:
    """Channels last."""
    g = geometry_of(task) if task.bf16 else None
    if g is None or not _is_offered(task, g.inputs) or not has_channels_last(task, g):
        return
    product = g.images * g.groups * product_cost(g.pixels, g.depth, g.outputs)
    rounded = g.images * g.groups * g.inputs * math.prod(g.sizes)
    cost = _TIME * product + edges_cost(task, g) + _ROUND * rounded + STEP
    yield Candidate(cost, functools.partial(PairConvolution, task, g))


@kernels("MatMul", since=1)
def _matmul(task: Task) -> Iterator[Candidate]:
    """Floats by one constant matrix, which is packed."""
    constant = constant_matrix(task) if task.bf16 else None
    if constant is None or not all(fact.element is F32 for fact in task.inputs) or not math.prod(task.output_shape()):
        return
    g = LinearGeometry.of(task, 1 - constant)
    if g.inner and _is_offered(task, g.inner) and is_packed(task, g) and has_rows(task, g):
        product = g.sheets * product_cost(g.tokens, g.inner, g.features)
        cost = _TIME * product + reordering_cost(task, g, 0.0) + _ROUND * g.sheets * g.tokens * g.inner + 2 * STEP
        yield Candidate(cost, functools.partial(PairLinear, task, g))
