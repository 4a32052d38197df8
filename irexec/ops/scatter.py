"""Elements and slices updated at indices: ScatterUpdate, ScatterElementsUpdate, ScatterNDUpdate.

Of several updates of the same element the last one is kept. A minimum or maximum with NaN is NaN, where OpenVINO's
two implementations differ from each other.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import PartialShape, Shape, high, low, may_equal, shape_text
from irexec.ir.facts import Fact
from irexec.ir.integers import integer
from irexec.reference.indexing import from_front
from irexec.schema.inputs import AnyTensor, IndexTensor, IntegerElement, IntegerTensor, Rank, Tensor
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, open_shape, unify_elements

UpdatedTensor = Annotated[AnyTensor, Rank(1, None)]
IndicesTensor = Annotated[IntegerTensor, Rank(1, None)]
NDIndices = Annotated[IndexTensor, Rank(1, None)]
ElementsReduction = Literal["none", "sum", "prod", "min", "max", "mean"]
NDReduction = Literal["none", "sum", "sub", "prod", "min", "max"]

# Booleans add up to "or" and multiply to "and" by themselves; their difference is "xor" (ScatterNDUpdate-15).
_MERGES = {"sum": np.add, "sub": np.subtract, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def _merge(target: np.ndarray, index: tuple[Any, ...], updates: np.ndarray, reduction: str) -> None:
    if reduction == "none":
        # updates[()] is the object itself where updates has rank 0; an array would be stored as an element.
        target[index] = updates[()]
        return
    merge = np.logical_xor if reduction == "sub" and target.dtype == np.bool_ else _MERGES[reduction]
    with np.errstate(all="ignore"):
        merge.at(target, index, updates)


def _axis(axis: np.ndarray, rank: int) -> int:
    return normalize_axis(integer(axis, "axis"), rank)


def _check_fits(updates: PartialShape, expected: Shape, what: str) -> None:
    """Raise OpError unless the updates can have the expected shape."""
    if updates is None:
        return
    text = f"updates {shape_text(updates)} do not fit {what}, expected {shape_text(expected)}"
    check(len(updates) == len(expected), text)
    check(all(map(may_equal, updates, expected)), text)


@op("ScatterUpdate", since=3, symbolic=True)
def scatter_update_3(
    data: UpdatedTensor, indices: IntegerTensor, updates: AnyTensor, axis: IntegerElement
) -> np.ndarray:
    """``data`` with the slices at ``indices`` along ``axis`` replaced; negative indices are out of range.

    ``updates`` have the shape of ``data`` with ``axis`` replaced by the shape of ``indices``. Source: ScatterUpdate-3.
    """
    along = _axis(axis, data.ndim)
    result = data.copy()
    # A vector of indices: for a scalar one NumPy would store an array as an element of an object array.
    positions = from_front(indices.reshape(-1), data.shape[along], negative=False)
    slices = updates.reshape(*data.shape[:along], positions.size, *data.shape[along + 1 :])
    result[(slice(None),) * along + (positions,)] = slices
    return result


@scatter_update_3.shape_rule
def _scatter_update_3_facts(data: Fact, indices: Fact, updates: Fact, axis: Fact) -> Fact:
    kind = unify_elements(data, updates)
    if data.shape is None or indices.shape is None:
        return Fact(kind, data.shape)
    rank = len(data.shape) + len(indices.shape) - 1
    check(
        updates.rank in (None, rank),
        f"updates have rank {updates.rank}, expected {rank} for data {data} and indices {indices}",
    )
    given = axis.scalar("axis")
    if given is not None:
        along = normalize_axis(given, len(data.shape))
        expected = (*data.shape[:along], *indices.shape, *data.shape[along + 1 :])
        _check_fits(updates.shape, expected, f"data {data} and indices {indices} along axis {along}")
    return Fact(kind, data.shape)


def _scatter_elements(
    data: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: np.ndarray, reduction: str, use_init_val: bool
) -> np.ndarray:
    along = _axis(axis, data.ndim)
    grids = np.ogrid[tuple(slice(size) for size in indices.shape)]
    positions = from_front(indices, data.shape[along])
    index = tuple(positions if i == along else grid for i, grid in enumerate(grids))
    result = data.copy()
    if reduction == "mean":
        return _means(result, index, updates, use_init_val)
    if not use_init_val and reduction in ("sum", "prod"):
        result[index] = reduction == "prod"
    elif not use_init_val:
        # The minimum and maximum are among the updates themselves.
        result[index] = updates
    _merge(result, index, updates, reduction)
    return result


def _means(sums: np.ndarray, index: tuple[Any, ...], updates: np.ndarray, use_init_val: bool) -> np.ndarray:
    """Means of the updates of each element, and its initial value if asked for; of integers rounded down."""
    counts = np.full(sums.shape, int(use_init_val), np.uint64 if sums.dtype == np.uint64 else np.int64)
    if not use_init_val:
        sums[index] = 0
    _merge(sums, index, updates, "sum")
    np.add.at(counts, index, 1)
    counts = np.maximum(counts, 1)
    with np.errstate(all="ignore"):
        means = sums / counts if sums.dtype.kind == "f" else sums // counts
    return means.astype(sums.dtype)


@op("ScatterElementsUpdate", since=3, symbolic=True)
def scatter_elements_update_3(
    data: UpdatedTensor, indices: IndicesTensor, updates: UpdatedTensor, axis: IntegerElement
) -> np.ndarray:
    """``data`` with each element of ``updates`` at its own position, but at the given index along ``axis``.

    ``indices`` and ``updates`` have the same shape, of the rank of ``data``; negative indices are counted from the end.
    Source: ScatterElementsUpdate-3.
    """
    return _scatter_elements(data, indices, updates, axis, "none", True)


@scatter_elements_update_3.shape_rule
def _scatter_elements_facts(data: Fact, indices: Fact, updates: Fact, axis: Fact) -> Fact:
    kind = unify_elements(data, updates)
    given = axis.scalar("axis")
    if indices.shape is not None:
        _check_fits(updates.shape, indices.shape, f"indices {indices}")
    shape = indices.shape if indices.shape is not None else updates.shape
    if data.shape is not None and shape is not None:
        check(len(data.shape) == len(shape), f"data {data} and indices {indices} have different ranks")
    if data.shape is not None and given is not None:
        along = normalize_axis(given, len(data.shape))
        for i, (size, count) in enumerate(zip(data.shape, shape or (), strict=False)):
            top = high(size)
            fits = i == along or top is None or low(count) <= top
            check(
                fits,
                f"indices {indices} are larger than data {data} along axis {i}, which is not the axis {along} of the "
                "indices",
            )
    return Fact(kind, data.shape if data.shape is not None or shape is None else open_shape(len(shape)))


@op("ScatterElementsUpdate", since=12, symbolic=True, widen=True, tolerance=2e-6)
def scatter_elements_update_12(
    data: Annotated[Tensor, Rank(1, None)],
    indices: IndicesTensor,
    updates: Annotated[Tensor, Rank(1, None)],
    axis: IntegerElement,
    *,
    reduction: ElementsReduction = "none",
    use_init_val: bool = True,
) -> np.ndarray:
    """Same as ScatterElementsUpdate-3; updates can also be reduced with the elements of data, or with each other alone.

    The mean of integers is rounded down. Without ``use_init_val`` a minimum of infinities is infinite,
    as specified; OpenVINO gives the largest finite number. Source: ScatterElementsUpdate-12.
    """
    return _scatter_elements(data, indices, updates, axis, reduction, use_init_val)


@scatter_elements_update_12.shape_rule
def _scatter_elements_update_12_facts(data: Fact, indices: Fact, updates: Fact, axis: Fact, *, reduction: str) -> Fact:
    if data.element is not None:
        check(data.element.kind != "boolean" or reduction != "mean", "reduction mean is not defined for booleans")
    return _scatter_elements_facts(data, indices, updates, axis)


def _scatter_nd(data: np.ndarray, indices: np.ndarray, updates: np.ndarray, reduction: str) -> np.ndarray:
    depth = indices.shape[-1]
    count = math.prod(indices.shape[:-1])
    positions = from_front(indices.reshape(count, depth), data.shape[:depth])
    result = data.copy()
    # One more axis in front, so that indices of depth 0 mean all of the data.
    index = (np.zeros(count, np.int64), *positions.T)
    _merge(result[None], index, updates.reshape(count, *data.shape[depth:]), reduction)
    return result


@op("ScatterNDUpdate", since=4, symbolic=True)
def scatter_nd_update_4(data: UpdatedTensor, indices: NDIndices, updates: AnyTensor) -> np.ndarray:
    """``data`` with the slices at the positions in the last axis of ``indices`` replaced.

    ``updates`` have the shape of ``indices`` without its last axis, then that of the slices. Negative
    indices are counted from the end. Source: ScatterNDUpdate-3 (opset4).
    """
    return _scatter_nd(data, indices, updates, "none")


@op("ScatterNDUpdate", since=15, symbolic=True, widen=True, tolerance=2e-6)
def scatter_nd_update_15(
    data: Annotated[Tensor, Rank(1, None)], indices: NDIndices, updates: Tensor, *, reduction: NDReduction = "none"
) -> np.ndarray:
    """Same as ScatterNDUpdate-3; updates can also be reduced with the elements of data. Source: ScatterNDUpdate-15."""
    return _scatter_nd(data, indices, updates, reduction)


@scatter_nd_update_4.shape_rule
@scatter_nd_update_15.shape_rule
def _scatter_nd_facts(data: Fact, indices: Fact, updates: Fact) -> Fact:
    kind = unify_elements(data, updates)
    if indices.shape is None:
        return Fact(kind, data.shape)
    depth = indices.shape[-1]
    if data.shape is None or not isinstance(depth, int):
        return Fact(kind, data.shape)
    check(depth <= len(data.shape), f"indices {indices} have {depth} columns, data {data} has fewer axes")
    expected = (*indices.shape[:-1], *data.shape[depth:])
    if expected or updates.rank != 1:
        _check_fits(updates.shape, expected, f"data {data} and indices {indices}")
    else:
        check(
            may_equal(updates.shape[0] if updates.shape else 1, 1),
            f"updates {updates} have more than the one element that is updated",
        )
    return Fact(kind, data.shape)
