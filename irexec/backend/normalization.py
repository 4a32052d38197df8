"""Fast kernels of normalization, in cached blocks: mean, variance, division and chain.

The axes that are normalized over are taken as they lie in memory: innermost (rows), or with others inside of them
(columns), such as the features of (batch, features, tokens) or the pixels of an image whose channels are last.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from irexec.backend.chain import Epilogue, Groups, merged
from irexec.backend.kernel import Candidate, Kernel, KernelContext, Order, Task
from irexec.backend.registry import kernels
from irexec.backend.scratch import Scratch
from irexec.schema.shape_rules import mvn_2_axes, normalize_axes

# Elements that are normalized at once.
_CACHED = 1 << 16

# Columns that are normalized together, if there are so many.
_SHORTEST = 256

# Sums of more elements are computed in pairs, for their accuracy.
_LONG_SUM = 8192

# Fraction of the squared mean below which the variance is mostly rounding, and is computed from the differences.
_CANCELLED = 1e-6

# Bytes of a constant that names axes.
_AXES_LIMIT = 1 << 12

# Nanoseconds for an element: the three passes over rows, the passes over columns.
_ROW_COST, _COLUMN_COST = 1.3, 1.5

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Formula:
    """The computation on each set of elements.

    Attributes:
        centers: whether the mean is subtracted.
        factor: from the mean square (or, if not ``centers``, the sum of squares) to what the elements are multiplied
            by; None: nothing.
    """

    centers: bool
    factor: Callable[[np.ndarray], np.ndarray] | None


def _by_variance(eps: float, inside: bool) -> Callable[[np.ndarray], np.ndarray]:
    def factor(variance: np.ndarray) -> np.ndarray:
        epsilon = variance.dtype.type(eps)
        return np.reciprocal(np.sqrt(variance + epsilon) if inside else np.sqrt(variance) + epsilon)

    return factor


def _by_length(eps: float, adds: bool) -> Callable[[np.ndarray], np.ndarray]:
    def factor(total: np.ndarray) -> np.ndarray:
        epsilon = total.dtype.type(eps)
        return np.reciprocal(np.sqrt(total + epsilon if adds else np.maximum(total, epsilon)))

    return factor


@kernels("MVN", since=2)
def _mvn_2(task: Task) -> list[Candidate]:
    a = task.attributes
    axes = mvn_2_axes(len(task.shape(0)), a["across_channels"], a["reduction_axes"])
    return _normalizations(task, axes, Formula(True, _by_variance(a["eps"], True) if a["normalize_variance"] else None))


@kernels("MVN", since=6)
def _mvn_6(task: Task) -> list[Candidate]:
    a = task.attributes
    factor = _by_variance(a["eps"], a["eps_mode"] == "inside_sqrt") if a["normalize_variance"] else None
    return _normalizations(task, constant_axes(task), Formula(True, factor))


@kernels("NormalizeL2", since=1)
def _normalize_l2_1(task: Task) -> list[Candidate]:
    return _normalizations(
        task,
        constant_axes(task),
        Formula(False, _by_length(task.attributes["eps"], task.attributes["eps_mode"] == "add")),
    )


def constant_axes(task: Task) -> Collection[int]:
    """The axes that the second input names; none if it is not a constant."""
    known = None if task.constants[1] is None else task.constants[1].small(_AXES_LIMIT)
    return () if known is None else set(normalize_axes(map(int, known.ravel().tolist()), len(task.shape(0))))


def _normalizations(task: Task, axes: Collection[int], formula: Formula) -> list[Candidate]:
    shape = task.shape(0)
    if task.dtype(0) not in _FLOATS or not math.prod(shape) or not axes:
        return []
    groups = groups_of(shape, task.input_orders[0], axes)
    if groups is None:
        return []
    return [(RowNormalization if len(groups) == 2 else ColumnNormalization).candidate(task, groups, formula)]


@kernels("GroupNormalization", since=12)
def _group_normalization_12(task: Task) -> list[Candidate]:
    shape, order, groups = task.shape(0), task.input_orders[0], task.attributes["num_groups"]
    if task.dtype(0) not in _FLOATS or not math.prod(shape):
        return []
    formula, spatial = Formula(True, _by_variance(task.attributes["epsilon"], True)), tuple(range(2, len(shape)))
    if order is None or order == tuple(range(len(shape))):
        return [GroupRows.candidate(task, ((0,), (1,), spatial), formula, shape[1] // groups)]
    if order == (0, *spatial, 1):
        return [ColumnNormalization.candidate(task, ((0,), spatial, (1,)), formula, shape[1] // groups)]
    return []


def groups_of(shape: Sequence[int], order: Order | None, axes: Collection[int]) -> Groups | None:
    """The axes in memory order: (others, normalized) or (others, normalized, others); None for other orders."""
    runs: list[list[int]] = [[]]
    for axis in order or range(len(shape)):
        if shape[axis] == 1:
            runs[0].insert(0, axis)
        elif (axis in axes) == (len(runs) % 2 == 0):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return tuple(map(tuple, runs)) if len(runs) in (2, 3) else None


class _Normalization(Kernel):
    """A normalization in pieces; a subclass computes one.

    Args:
        groups: axes of the input and the output, in the order in which pieces have them.
        extent: number of elements of each of these groups in a piece.
        width: so many neighbours of the innermost group, or rows of the one before, are normalized together (the
            channels of a group).

    Attributes:
        element_cost: nanoseconds of an element.
    """

    element_cost = _ROW_COST

    @classmethod
    def candidate(cls, task: Task, groups: Groups, formula: Formula, width: int = 1) -> Candidate:
        """The kernel with its estimate."""
        sizes = [math.prod(task.shape(0)[axis] for axis in group) for group in groups]
        extent = cls.extent(sizes, width)
        pieces = math.prod(-(-size // part) for size, part in zip(sizes, extent, strict=True))
        return Candidate(
            cls.element_cost * math.prod(sizes) + 15_000 * pieces,
            partial(cls, task, groups, formula, extent, width),
            runs_chain=task.chain is None or task.chain.result == task.dtype(0),
        )

    @staticmethod
    @abstractmethod
    def extent(sizes: Sequence[int], width: int) -> Sequence[int]:
        """Number of elements of each group of axes in a piece."""

    def __init__(self, task: Task, groups: Groups, formula: Formula, extent: Sequence[int], width: int) -> None:
        self.task, self.groups, self.formula = task, groups, formula
        shape = task.output_shape()
        dtype = task.dtype(0)
        assert dtype is not None
        chain = task.chain if task.chain is None or task.chain.result == dtype else None
        self.dtype, self.epilogue = dtype, Epilogue(chain, shape, groups)
        sizes = [math.prod(shape[axis] for axis in group) for group in groups]
        self.pieces = list(np.ndindex(*(-(-size // part) for size, part in zip(sizes, extent, strict=True))))
        self._sizes, self._extent, self._width = sizes, extent, width
        self._is_affine = len(task.inputs) == 3
        elements = math.prod(map(min, sizes, extent))
        super().__init__(
            "normalization by blocks",
            reads=None if self._is_affine else (0,),
            workspace=max(4, dtype.itemsize) * 3 * elements + self.epilogue.workspace(elements) + 4096,
            splits=len(self.pieces) > 1,
            records=True,
        )
        if task.output_orders[0] == task.input_orders[0]:
            self.overwrites = (0,)

    def region(self, piece: Sequence[int]) -> tuple[slice, ...]:
        """The slices of a piece."""
        triples = zip(piece, self._extent, self._sizes, strict=True)
        return tuple(slice(index * part, min((index + 1) * part, size)) for index, part, size in triples)

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any], context: KernelContext) -> None:
        data, out = inputs[0], outputs[0]
        source, target = (context.view(array, merged(array, data.shape, self.groups)) for array in (data, out))
        operands = context.bind(self.epilogue, inputs[len(self.task.inputs) :])

        def compute(index: int, scratch: Scratch) -> None:
            region = self.region(self.pieces[index])
            part = target[region]
            scratch.work(self.normalize, source[region], part, region, inputs)
            self.epilogue.run(scratch, part, operands, region)

        context.parallel(len(self.pieces), compute)
        if not np.may_share_memory(target, out):
            view = out.transpose([axis for group in self.groups for axis in group])
            np.copyto(view, target.reshape(view.shape))

    @abstractmethod
    def normalize(
        self, scratch: Scratch, x: np.ndarray, out: np.ndarray, region: Sequence[slice], inputs: Sequence[Any]
    ) -> None:
        """Write a piece. ``out`` may be the memory of ``x``."""


def _row_sums(scratch: Scratch, x: np.ndarray) -> np.ndarray:
    """The sums of rows (N, M), as (N, 1)."""
    total = scratch.take((len(x), 1), x.dtype)
    if x.shape[1] > _LONG_SUM or x.strides[1] != x.itemsize:
        return np.add.reduce(x, 1, out=total, keepdims=True)
    return np.matmul(x, np.ones((x.shape[1], 1), x.dtype), out=total)


def _row_squares(scratch: Scratch, x: np.ndarray) -> np.ndarray:
    """The sums of the squares of rows (N, M), as (N, 1)."""
    if x.shape[1] > _LONG_SUM:
        mark = scratch.mark()
        total = np.add.reduce(np.multiply(x, x, out=scratch.take(x.shape, x.dtype)), 1, keepdims=True)
        scratch.release(mark)
        return np.asarray(total)
    return np.asarray(np.vecdot(x, x))[:, None]


def _normalize_rows(scratch: Scratch, formula: Formula, x: np.ndarray, out: np.ndarray) -> np.ndarray | None:
    """Write rows (N, M) less their mean; the factors (N, 1) by which they are still to be multiplied."""
    size = x.shape[1]
    centered = x
    if formula.centers:
        mean = _row_sums(scratch, x)
        mean /= size
        centered = np.subtract(x, mean, out=out)
    if formula.factor is None:
        return None
    squares = _row_squares(scratch, centered)
    if not formula.centers:
        return formula.factor(squares)
    if (squares < _CANCELLED * size * mean * mean).any():
        centered -= _row_sums(scratch, centered) / size
        squares = _row_squares(scratch, centered)
    return formula.factor(squares / x.dtype.type(size))


class RowNormalization(_Normalization):
    """Normalization over the innermost axes: (others, normalized)."""

    @staticmethod
    def extent(sizes: Sequence[int], width: int) -> Sequence[int]:
        return max(1, _CACHED // sizes[1]), sizes[1]

    def normalize(
        self, scratch: Scratch, x: np.ndarray, out: np.ndarray, region: Sequence[slice], inputs: Sequence[Any]
    ) -> None:
        factor = _normalize_rows(scratch, self.formula, x, out)
        if factor is not None:
            np.multiply(out if self.formula.centers else x, factor, out=out)


class GroupRows(_Normalization):
    """GroupNormalization of (images, channels, pixels) in C order."""

    @staticmethod
    def extent(sizes: Sequence[int], width: int) -> Sequence[int]:
        _, channels, pixels = sizes
        return 1, max(1, min(channels // width, _CACHED // (width * pixels))) * width, pixels

    def normalize(
        self, scratch: Scratch, x: np.ndarray, out: np.ndarray, region: Sequence[slice], inputs: Sequence[Any]
    ) -> None:
        _, channels, pixels = x.shape
        shape = channels // self._width, self._width * pixels
        rows = scratch.take(shape, x.dtype)
        factor = _normalize_rows(scratch, self.formula, x.reshape(shape), rows)
        assert factor is not None
        scale, bias = (inputs[i][region[1]][:, None] for i in (1, 2))
        factors = np.repeat(factor, self._width, 0) * scale
        np.multiply(rows.reshape(channels, pixels), factors, out=out[0])
        out[0] += bias


class ColumnNormalization(_Normalization):
    """Normalization over axes with others inside of them: (others, normalized, others)."""

    element_cost = _COLUMN_COST

    @staticmethod
    def extent(sizes: Sequence[int], width: int) -> Sequence[int]:
        _, length, columns = sizes
        # Short pieces of rows cost more than what leaves the nearest cache.
        wanted = max(_SHORTEST, 4 * _CACHED // length)
        return 1, length, max(width, min(columns, wanted) // width * width)

    def normalize(
        self, scratch: Scratch, x: np.ndarray, out: np.ndarray, region: Sequence[slice], inputs: Sequence[Any]
    ) -> None:
        x, out = x[0], out[0]
        size = x.dtype.type(len(x) * self._width)
        centered = x
        if self.formula.centers:
            mean = self._together(_column_sums(x)) / size
            centered = np.subtract(x, mean, out=out)
        factor: np.ndarray | None = None
        if self.formula.factor is not None:
            products = scratch.take(x.shape, x.dtype)
            squares = self._together(_column_sums(np.multiply(centered, centered, out=products)))
            if self.formula.centers and (squares < _CANCELLED * size * mean * mean).any():
                centered -= self._together(_column_sums(centered)) / size
                squares = self._together(_column_sums(np.multiply(centered, centered, out=products)))
            factor = self.formula.factor(squares / size if self.formula.centers else squares)
        if self._is_affine:
            factor = inputs[1][region[2]] if factor is None else factor * inputs[1][region[2]]
        if factor is not None:
            np.multiply(centered, factor, out=out)
        if self._is_affine:
            out += inputs[2][region[2]]

    def _together(self, sums: np.ndarray) -> np.ndarray:
        """Sums of single columns as those of the columns that are normalized together, for each of them."""
        if self._width == 1:
            return sums
        return np.repeat(np.add.reduce(sums.reshape(-1, self._width), 1), self._width)


def _column_sums(x: np.ndarray) -> np.ndarray:
    """The sums of columns of (M, N), as (N,); partial sums are added in pairs if there are many."""
    if len(x) <= _LONG_SUM:
        return np.asarray(np.matmul(np.ones(len(x), x.dtype), x))
    parts = range(0, len(x), _LONG_SUM)
    return np.asarray(
        np.add.reduce(np.stack([np.add.reduce(x[i : i + _LONG_SUM], 0, dtype=np.float64) for i in parts]), 0).astype(
            x.dtype
        )
    )
