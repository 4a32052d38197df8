"""Elements and slices gathered and updated at indices: Gather, Scatter.

Of several updates of the same element the last one is kept. A minimum or maximum with NaN is NaN, where OpenVINO's
two implementations differ from each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Shape, count, high, low, may_equal, meet_shapes, shape_text
from irexec.ir.facts import Fact, integer
from irexec.reference.indexing import as_indices, from_front
from irexec.reference.limits import check_time
from irexec.schema.opdef import (
    INDEX,
    SCALAR,
    VECTOR,
    AnyTensor,
    IndexTensor,
    IntegerElement,
    IntegerTensor,
    NumericTensor,
    Rank,
    Tensor,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, open_shape, unify_elements

GatheredTensor = Annotated[AnyTensor, Rank(1, None)]
IndicesTensor = Annotated[IntegerTensor, Rank(1, None)]
Beams = Annotated[NumericTensor, Rank(3)]


def _zero(data: np.ndarray) -> np.ndarray:
    """0 of the element type; an empty string for strings."""
    is_string = data.dtype == object and data.size > 0 and isinstance(data.flat[0], str)
    return np.array("", object) if is_string else np.zeros((), data.dtype)


def _take_batched(data: np.ndarray, indices: np.ndarray, axis: int, batch: int) -> np.ndarray:
    """np.take for each batch of the data with its own indices."""
    grids = np.ogrid[tuple(slice(size) for size in data.shape[:batch])] if batch else []
    lead = data.ndim - axis - 1
    inner = tuple(np.moveaxis(data, axis, batch).shape[batch + 1 :])
    rows = np.moveaxis(data, axis, batch)
    index = tuple(grid.reshape(grid.shape + (1,) * (indices.ndim - batch)) for grid in grids)
    taken = rows[(*index, indices)]
    # The axes of the indices come before those between batch and axis: move them after these.
    between = len(inner) - lead
    count = indices.ndim - batch
    source = [*range(batch), *range(batch + count, batch + count + between), *range(batch, batch + count)]
    return taken.transpose([*source, *range(len(source), taken.ndim)])


@op("Gather", since=1, symbolic=True)
def gather_1(data: GatheredTensor, indices: IntegerTensor, axis: IntegerTensor) -> np.ndarray:
    """Slices of ``data`` along ``axis``; an index out of range gives zeros. Source: Gather-1."""
    return gather_8.kernel(data, indices, axis)


@op("Gather", since=7, symbolic=True)
def gather_7(data: GatheredTensor, indices: IntegerTensor, axis: IntegerTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices of ``data`` along ``axis``, batch by batch; an index out of range gives zeros. Source: Gather-7."""
    return gather_8.kernel(data, indices, axis, batch_dims=batch_dims)


@op("Gather", since=8, symbolic=True)
def gather_8(data: GatheredTensor, indices: IntegerTensor, axis: IntegerTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices of ``data`` along ``axis``, batch by batch; negative indices are counted from the end.

    An index out of range gives zeros. Source: Gather-8.
    """
    along = _axis(axis, data.ndim)
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    size = data.shape[along]
    if batch == 0 and indices.size and indices.dtype.kind in "iu" and indices.min() >= 0 and indices.max() < size:
        return np.take(data, as_indices(indices), along)
    wrapped = np.where(indices < 0, indices.astype(np.int64) + size, indices)
    inside = (wrapped >= 0) & (wrapped < size)
    safe = np.where(inside, wrapped, 0).astype(np.int64)
    if size == 0:
        return np.full((*data.shape[:along], *indices.shape[batch:], *data.shape[along + 1 :]), _zero(data), data.dtype)
    taken = np.take(data, as_indices(safe), along) if batch == 0 else _take_batched(data, safe, along, batch)
    if inside.all():
        return taken
    before, after = (1,) * (along - batch), (1,) * (data.ndim - along - 1)
    mask = inside.reshape(inside.shape[:batch] + before + inside.shape[batch:] + after)
    return np.where(mask, taken, _zero(data)).astype(data.dtype)


@gather_1.shape_rule
@gather_7.shape_rule
@gather_8.shape_rule
def _gather_facts(data: Fact, indices: Fact, axis: Fact, *, batch_dims: int = 0) -> Fact:
    given = axis.scalar("axis")
    if data.shape is None or indices.shape is None:
        return Fact(data.element, None)
    rank = len(data.shape)
    batch = batch_dims + len(indices.shape) if batch_dims < 0 else batch_dims
    check(
        0 <= batch <= min(rank, len(indices.shape)),
        f"batch_dims {batch_dims} is out of range for data {data} and indices {indices}",
    )
    if given is None:
        shared = meet_shapes(data.shape[:batch], indices.shape[:batch]) or ()
        return Fact(data.element, (*shared, *((ANY,) * (rank + len(indices.shape) - 2 * batch - 1))))
    along = normalize_axis(given, rank)
    check(batch <= along, f"batch_dims {batch_dims} is above axis {along}")
    front = meet_shapes(data.shape[:batch], indices.shape[:batch]) or ()
    return Fact(data.element, (*front, *data.shape[batch:along], *indices.shape[batch:], *data.shape[along + 1 :]))


@op("GatherElements", since=6)
def gather_elements_6(data: GatheredTensor, indices: Annotated[IndicesTensor, INDEX], *, axis: int) -> np.ndarray:
    """Elements of ``data`` at the positions of ``indices``, but at the given index along ``axis``.

    Negative indices are counted from the end. Source: GatherElements-6.
    """
    axis = normalize_axis(axis, data.ndim)
    along = from_front(indices, data.shape[axis])
    grids = np.ix_(*map(np.arange, indices.shape))
    return data[tuple(along if i == axis else grid for i, grid in enumerate(grids))]


@gather_elements_6.shape_rule
def _gather_elements_6_facts(data: Fact, indices: Fact, *, axis: int) -> Fact:
    if data.shape is not None and indices.shape is not None:
        check(len(data.shape) == len(indices.shape), f"data {data} and indices {indices} have different ranks")
    return Fact(data.element, _elements_shape(indices.shape, data.shape, axis))


def _elements_shape(indices: PartialShape, data: PartialShape, axis: int) -> PartialShape:
    if data is None:
        return indices
    axis = normalize_axis(axis, len(data))
    if indices is None:
        return (*data[:axis], ANY, *data[axis + 1 :])
    rest = meet_shapes(_without(indices, axis), _without(data, axis)) or ()
    return (*rest[:axis], indices[axis], *rest[axis:])


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def _gather_nd_rule(*, merged: bool) -> Callable[..., Fact]:
    def rule(data: Fact, indices: Fact, *, batch_dims: int) -> Fact:
        batch = batch_dims
        check(batch >= 0, f"batch_dims {batch} is negative")
        if data.shape is None or indices.shape is None:
            return Fact(data.element, None)
        check(
            batch < min(len(data.shape), len(indices.shape)),
            f"batch_dims {batch} is out of range for data {data} and indices {indices}",
        )
        depth = indices.shape[-1]
        front = meet_shapes(data.shape[:batch], indices.shape[:batch]) or ()
        if not isinstance(depth, int):
            return Fact(data.element, None)
        check(
            depth + batch <= len(data.shape),
            f"indices {indices} have {depth} columns, data {data} has fewer axes after {batch}",
        )
        if merged and batch > 1:
            front = (count(front),)
        return Fact(data.element, (*front, *indices.shape[batch:-1], *data.shape[batch + depth :]))

    return rule


@op("GatherND", since=5)
def gather_nd_5(data: GatheredTensor, indices: IndicesTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices at the positions in the last axis of ``indices``; the batch axes are merged into one.

    An index out of range is an error. Source: GatherND-5.
    """
    taken = gather_nd_8.kernel(data, indices, batch_dims=batch_dims)
    if batch_dims <= 1:
        return taken
    return taken.reshape(int(np.prod(taken.shape[:batch_dims])), *taken.shape[batch_dims:])


gather_nd_5.shape_rule(_gather_nd_rule(merged=True))


@op("GatherND", since=8)
def gather_nd_8(data: GatheredTensor, indices: IndicesTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices at the positions in the last axis of ``indices``; the batch axes are kept.

    An index out of range is an error. Source: GatherND-8.
    """
    batch, depth = batch_dims, indices.shape[-1]
    known = from_front(indices, data.shape[batch : batch + depth])
    grids = np.ogrid[tuple(slice(n) for n in data.shape[:batch])] if batch else []
    lead = [grid.reshape(grid.shape + (1,) * (indices.ndim - 1 - batch)) for grid in grids]
    if not lead and not depth:
        return np.broadcast_to(data, (*indices.shape[:-1], *data.shape)).copy()
    return np.asarray(data[(*lead, *(known[..., i] for i in range(depth)))], data.dtype)


gather_nd_8.shape_rule(_gather_nd_rule(merged=False))


@op("GatherTree", since=1)
def gather_tree_1(
    step_ids: Beams,
    parent_idx: Beams,
    max_seq_len: Annotated[NumericTensor, VECTOR],
    end_token: Annotated[NumericTensor, SCALAR],
) -> np.ndarray:
    """The beams [time, batch, beam] of a search, each traced back from its last step through its parents.

    After its first ``end_token``, and from max_seq_len [batch] on, a beam has end tokens. Source: GatherTree-1.
    """
    time, batch, beams = step_ids.shape
    lengths = np.minimum(max_seq_len.astype(np.int64), time)
    end = end_token.reshape(-1)[0]
    result = np.full_like(step_ids, end)
    parents = np.broadcast_to(np.arange(beams), (batch, beams))
    for step in reversed(range(time)):
        check_time()
        within = (step < lengths)[:, None]
        result[step] = np.where(within, np.take_along_axis(step_ids[step], parents, 1), end)
        before = np.take_along_axis(parent_idx[step], parents, 1).astype(np.int64)
        parents = np.where(within, before, parents)
        # The parents of the first step are not used.
        parents = from_front(parents, beams, negative=False) if step else parents
    return np.where(np.logical_or.accumulate(result == end, 0), end, result).astype(step_ids.dtype)


@gather_tree_1.shape_rule
def _gather_tree_1_facts(step_ids: Fact, parent_idx: Fact, max_seq_len: Fact, end_token: Fact) -> Fact:
    kind = unify_elements(step_ids, parent_idx, max_seq_len, end_token)
    shape = meet_shapes(step_ids.shape, parent_idx.shape)
    if max_seq_len.shape:
        shape = meet_shapes(shape, (ANY, max_seq_len.shape[0], ANY))
    return Fact(kind, shape)


UpdatedTensor = Annotated[AnyTensor, Rank(1, None)]
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
    return scatter_elements_update_12.kernel(data, indices, updates, axis)


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
            where = f"along axis {i}, which is not the axis {along} of the indices"
            fits = i == along or top is None or low(count) <= top
            check(fits, f"indices {indices} are larger than data {data} {where}")
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


@scatter_elements_update_12.shape_rule
def _scatter_elements_update_12_facts(data: Fact, indices: Fact, updates: Fact, axis: Fact, *, reduction: str) -> Fact:
    if data.element is not None:
        check(data.element.kind != "boolean" or reduction != "mean", "reduction mean is not defined for booleans")
    return _scatter_elements_facts(data, indices, updates, axis)


@op("ScatterNDUpdate", since=4, symbolic=True)
def scatter_nd_update_4(data: UpdatedTensor, indices: NDIndices, updates: AnyTensor) -> np.ndarray:
    """``data`` with the slices at the positions in the last axis of ``indices`` replaced.

    ``updates`` have the shape of ``indices`` without its last axis, then that of the slices. Negative
    indices are counted from the end. Source: ScatterNDUpdate-3 (opset4).
    """
    return scatter_nd_update_15.kernel(data, indices, updates)


@op("ScatterNDUpdate", since=15, symbolic=True, widen=True, tolerance=2e-6)
def scatter_nd_update_15(
    data: Annotated[Tensor, Rank(1, None)], indices: NDIndices, updates: Tensor, *, reduction: NDReduction = "none"
) -> np.ndarray:
    """Same as ScatterNDUpdate-3; updates can also be reduced with the elements of data. Source: ScatterNDUpdate-15."""
    depth, count = indices.shape[-1], math.prod(indices.shape[:-1])
    positions = from_front(indices.reshape(count, depth), data.shape[:depth])
    result = data.copy()
    # One more axis in front, so that indices of depth 0 mean all of the data.
    index = (np.zeros(count, np.int64), *positions.T)
    _merge(result[None], index, updates.reshape(count, *data.shape[depth:]), reduction)
    return result


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
