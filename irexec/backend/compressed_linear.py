"""Products with weights that stay compressed: they are decompressed by blocks of features on each run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irexec.backend.compressed import CompressedSource
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Kernel, Task
from irexec.backend.linear import Block, DirectLinear, Geometry, LinearKernel, TransposedLinear, Weights
from irexec.backend.product_cost import TRANSPOSED_COPY, product_cost
from irexec.backend.scratch import Scratch

# Weights that are decompressed at once, for few tokens, for which they should stay in cache, and for many.
_FEW_AT_ONCE, _MANY_AT_ONCE = 1 << 18, 1 << 20

# Up to so many tokens groups are multiplied before they are scaled.
_FEW_TOKENS = 64

# Groups of fewer elements cost more to multiply one by one than to scale.
_SMALLEST_GROUP = 32

# Nanoseconds to decompress a weight: unpacked and scaled, and unpacked only.
_SCALED, _UNPACKED = 1.0, 0.4

_F32 = np.dtype(np.float32)


def _at_once(weights: int, inner: int) -> int:
    return max(16, weights // inner // 16 * 16)


class CompressedWeights(Weights):
    """Weights (features, inner) that are decompressed when they are asked for."""

    def __init__(self, source: CompressedSource, tokens: int) -> None:
        super().__init__(source, source.count, source.row, False)
        self.compressed = source
        self.limit = _at_once(_FEW_AT_ONCE if tokens <= _FEW_TOKENS else _MANY_AT_ONCE, source.row)
        self.cost = _SCALED

    def pack(self, store: ConstantStore) -> None:
        """Nothing is kept."""

    def workspace(self, features: int) -> int:
        return 4 * features * self.compressed.row + 64

    def rows(self, scratch: Scratch, features: slice) -> np.ndarray:
        out = scratch.take((features.stop - features.start, self.compressed.row), _F32)
        return self.compressed.rows(features.start, features.stop, out)


class GroupedLinear(LinearKernel):
    """For few tokens: the integers of each group times the activations, and a second product with the scales.

    The integers need not be scaled first. Zero points times the sums of the activations are subtracted from the products. Both
    are taken relative to the middle of the integer type: otherwise a result would be the small difference of two large sums,
    which are rounded to float32.
    """

    def __init__(self, task: Task, geometry: Geometry, weights: CompressedWeights) -> None:
        super().__init__(task, geometry, weights)
        source = weights.compressed
        self.source = source
        zero_point = None if source.zero_point is None else source.zero_point - np.float32(source.middle)
        self._zero_point = zero_point if zero_point is not None and zero_point.any() else None
        features, tokens = self.block_shape[1], self.block_shape[0]
        self.algorithm = "groups of compressed weights @ activations.T, scaled"
        self.workspace += 4 * features * (source.row + tokens * (source.groups + 2)) + 4 * tokens * source.groups + 512
        one = product_cost(features, tokens, source.group) - 1000
        per_weight = _UNPACKED + (one * 0.8 + 0.3 * tokens * features) / (features * source.group)
        self.cost = per_weight * geometry.sheets * geometry.features * geometry.inner
        self.cost += TRANSPOSED_COPY * geometry.sheets * geometry.features * tokens + 20_000 * len(self.blocks)

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """As (sheets, groups, group, tokens) in the order of the integers, and their sums (sheets, groups, tokens)."""
        source = self.source
        pairs = 2 if source.is_interleaved else 1
        split = x.reshape(*x.shape[:2], source.groups, source.group // pairs, pairs)
        shape = len(x), source.groups, source.group, x.shape[1]
        ordered = np.ascontiguousarray(split.transpose(0, 2, 4, 3, 1)).reshape(shape)
        return ordered, None if self._zero_point is None else ordered.sum(2)

    def compute(
        self, scratch: Scratch, x: Any, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]
    ) -> None:
        source, (first, last) = self.source, (block.features.start, block.features.stop)
        ordered, sums = x[0][block.sheet], None if x[1] is None else x[1][block.sheet]
        count, tokens = last - first, ordered.shape[-1]
        integers = scratch.take((count, source.groups, source.group), _F32)
        source.integers(first, last, integers)
        products = scratch.take((count, source.groups, tokens), _F32)
        np.matmul(integers.swapaxes(0, 1), ordered, out=products.swapaxes(0, 1))
        product = scratch.take((count, tokens), _F32)
        scale = source.scale[first:last]
        np.matmul(scale[:, None, :], products, out=product[:, None, :])
        if sums is not None and self._zero_point is not None:
            product -= np.matmul(self._zero_point[first:last] * scale, sums)
        self.transpose(scratch, product, target, block, operands)


def compressed_kernels(task: Task, geometry: Geometry, source: CompressedSource) -> list[Kernel]:
    """Candidates for a product with a compressed matrix whose rows are features."""
    weights = CompressedWeights(source, geometry.tokens)
    kernels: list[Kernel] = [DirectLinear(task, geometry, weights)]
    if geometry.contiguous != 1 and geometry.tokens > 1:
        kernels.append(TransposedLinear(task, geometry, weights))
    if geometry.tokens <= _FEW_TOKENS and source.group >= _SMALLEST_GROUP:
        kernels.append(GroupedLinear(task, geometry, weights))
    return kernels
