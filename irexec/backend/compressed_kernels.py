"""Kernels that read compressed weights as they are stored: products, and rows of a table by Gather."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from irexec.backend.compressed import CompressedSource
from irexec.backend.constants import ConstantStore
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Task
from irexec.backend.linear import Block, Cut, LinearGeometry, LinearKernel, MatrixWeights, linear_candidates
from irexec.backend.products import TRANSPOSED_COPY, product_cost
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.dtypes.elements import I4, U4

# Number of weights of a block: for few tokens, where the block should stay in cache, for many, and for one, where the
# interpreter takes longer than the arithmetic of a small block.
_FEW_AT_ONCE, _MANY_AT_ONCE = 1 << 18, 1 << 20

# Up to this number of tokens, groups are multiplied before they are scaled.
_FEW_TOKENS = 64

# Groups of fewer elements are faster to scale than to multiply one by one.
_SMALLEST_GROUP = 32

# Nanoseconds to decompress a weight, unpacked and scaled; to unpack one of four bits; to convert a byte.
_SCALED, _UNPACKED, _CONVERTED = 1.0, 0.4, 0.2

_F32 = np.dtype(np.float32)


class CompressedWeights(MatrixWeights):
    """Weights (features, inner) that are decompressed on request.

    Args:
        in_bytes: hold weights of four bits in bytes; all others stay as they are stored.

    Attributes:
        is_interleaved: True if ``integers`` writes the even elements of each group before the odd ones.
        unpacking: nanoseconds to convert one weight to f32, unscaled.
    """

    def __init__(self, source: CompressedSource, tokens: int, in_bytes: bool) -> None:
        super().__init__(source, source.count, source.row, False)
        self.compressed = source
        weights = _FEW_AT_ONCE if 1 < tokens <= _FEW_TOKENS else _MANY_AT_ONCE
        self.limit = max(16, weights // source.row // 16 * 16)
        self._in_bytes, self._held = in_bytes and source.fits_bytes, np.empty(0, np.int8)
        self.is_interleaved = source.is_interleaved and not self._in_bytes
        self.unpacking = _UNPACKED if source.packed.element in (U4, I4) and not self._in_bytes else _CONVERTED
        self.cost = _SCALED - _UNPACKED + self.unpacking

    @cached_property
    def zero_point(self) -> np.ndarray | None:
        """The value to subtract from ``integers``: f32 (features, groups); None for zeros."""
        source = self.compressed
        found = None if source.zero_point is None or self._in_bytes else source.zero_point - source.middle
        return found if found is not None and found.any() else None

    def pack(self, store: ConstantStore) -> None:
        if self._in_bytes:
            self._held = self.compressed.bytes_by_group(store)

    def workspace(self, features: int) -> int:
        return 4 * features * self.compressed.row + 64

    def rows(self, scratch: Scratch, features: slice) -> np.ndarray:
        out = scratch.take((features.stop - features.start, self.compressed.row), _F32)
        if self._in_bytes:
            return self.compressed.rows_of_bytes(self._held, features.start, features.stop, out)
        return self.compressed.rows(features.start, features.stop, out)

    def integers(self, features: slice, out: np.ndarray) -> None:
        """The integers of some features, written to ``out``: f32 (groups, features, group)."""
        if self._in_bytes:
            np.copyto(out, self._held[:, features])
        else:
            self.compressed.integers(features.start, features.stop, out.swapaxes(0, 1))


class GroupedLinear(LinearKernel):
    """Kernel for few tokens: the integers of each group times the activations, then a product with the scales.

    The integers need not be scaled first. Zero points times the sums of the activations are subtracted from the
    products. Integers and zero points are taken relative to the middle of the integer type: otherwise a result would be
    the small difference of two large sums, which are rounded to float32.
    """

    def __init__(self, task: Task, geometry: LinearGeometry, weights: CompressedWeights) -> None:
        super().__init__(task, geometry, weights)
        source = weights.compressed
        self.compressed, self.source = weights, source
        tokens, features = self.block_shape
        self.algorithm = "groups of compressed weights @ activations.T, scaled"
        self.workspace += 4 * features * (source.row + tokens * (source.groups + 2)) + 4 * tokens * source.groups + 512

    @staticmethod
    def estimate(geometry: LinearGeometry, weights: MatrixWeights, cut: Cut, itemsize: int) -> float:
        assert isinstance(weights, CompressedWeights)
        g, group = geometry, weights.compressed.group
        one = product_cost(cut.features, cut.tokens, group) - 1000
        per_weight = weights.unpacking + (one * 0.8 + 0.3 * cut.tokens * cut.features) / (cut.features * group)
        copy = TRANSPOSED_COPY * g.sheets * g.features * cut.tokens
        return per_weight * g.sheets * g.features * g.inner + copy + 20_000 * g.sheets * cut.parts

    def prepare(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Activations (sheets, groups, group, tokens) in the order of the integers, and their sums over a group."""
        source = self.source
        pairs = 2 if self.compressed.is_interleaved else 1
        split = x.reshape(*x.shape[:2], source.groups, source.group // pairs, pairs)
        shape = len(x), source.groups, source.group, x.shape[1]
        ordered = np.ascontiguousarray(split.transpose(0, 2, 4, 3, 1)).reshape(shape)
        return ordered, None if self.compressed.zero_point is None else ordered.sum(2)

    def compute(
        self, scratch: Scratch, x: Any, target: np.ndarray, block: Block, operands: Sequence[np.ndarray]
    ) -> None:
        source, rows = self.source, block.features
        ordered, sums = x[0][block.sheet], None if x[1] is None else x[1][block.sheet]
        count, tokens = rows.stop - rows.start, ordered.shape[-1]
        integers = scratch.take((source.groups, count, source.group), _F32)
        self.compressed.integers(rows, integers)
        products = scratch.take((source.groups, count, tokens), _F32)
        np.matmul(integers, ordered, out=products)
        product = scratch.take((count, tokens), _F32)
        scale = source.scale[rows]
        np.matmul(scale[:, None, :], products.swapaxes(0, 1), out=product[:, None, :])
        if sums is not None and self.compressed.zero_point is not None:
            product -= np.matmul(self.compressed.zero_point[rows] * scale, sums)
        self.transpose(scratch, product, target, block, operands)


def compressed_kernels(task: Task, geometry: LinearGeometry, source: CompressedSource) -> list[Candidate]:
    """Candidates for a product with a compressed matrix whose rows are features."""
    weights = CompressedWeights(source, geometry.tokens, task.holding == "bytes")
    by_group = geometry.tokens <= _FEW_TOKENS and source.group >= _SMALLEST_GROUP
    return linear_candidates(task, geometry, weights, *([GroupedLinear] if by_group else []))


# Rows of a block on which a thread works: each takes some 20 microseconds.
_BLOCK = 16


@kernels("Gather", since=1)
@kernels("Gather", since=7)
@kernels("Gather", since=8)
def _gather_rows(task: Task) -> Iterator[Candidate]:
    """Gather of rows of a compressed matrix: only these are decompressed. The indices may be inputs."""
    source, axis = task.constants[0], task.inputs[2].known
    if (
        not isinstance(source, CompressedSource)
        or not source.has_rows
        or axis is None
        or task.attributes.get("batch_dims", 0)
    ):
        return
    if int(axis.reshape(-1)[0]) in (0, -2) and task.outputs[0].element is source.element:
        # No other kernel is worth holding the whole table unpacked.
        yield Candidate(0.0, partial(GatherRows, task, source), runs_chain=False)


class GatherRows(Kernel):
    """Rows of compressed weights; those of indices out of range are zeros."""

    def __init__(self, task: Task, source: CompressedSource) -> None:
        self._source = source
        self._count = math.prod(task.shape(1))
        super().__init__("decompressed rows", reads=(1,), splits=self._count > 2 * _BLOCK)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        source, result = self._source, outputs[0]
        indices = np.asarray(inputs[1]).reshape(-1).astype(np.intp)
        indices = np.where(indices < 0, indices + source.count, indices)
        whole = self._count, source.row
        out = result.reshape(whole) if result.flags.c_contiguous else np.empty(whole, np.float32)

        def rows(block: int, scratch: Scratch) -> None:
            for position in range(block * _BLOCK, min((block + 1) * _BLOCK, self._count)):
                index = int(indices[position])
                if 0 <= index < source.count:
                    source.rows(index, index + 1, out[position : position + 1])
                else:
                    out[position] = 0

        context.parallel(-(-self._count // _BLOCK), rows)
        if not result.flags.c_contiguous:
            result[...] = out.reshape(result.shape)
