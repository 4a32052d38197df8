"""Elements and slices gathered by their indices."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from irexec.errors import check
from irexec.ir.dims import ANY, PartialShape, Shape, count, meet_shapes
from irexec.ir.facts import Fact
from irexec.ir.integers import integer
from irexec.reference.indexing import as_indices, from_front
from irexec.reference.limits import check_time
from irexec.schema.inputs import INDEX, SCALAR, VECTOR, AnyTensor, IntegerTensor, NumericTensor, Rank
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axis, unify_elements

GatheredTensor = Annotated[AnyTensor, Rank(1, None)]
IndicesTensor = Annotated[IntegerTensor, Rank(1, None)]
Beams = Annotated[NumericTensor, Rank(3)]


def _gather(data: np.ndarray, indices: np.ndarray, axis: np.ndarray, batch_dims: int) -> np.ndarray:
    along = normalize_axis(integer(axis, "axis"), data.ndim)
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
    mask = inside.reshape(
        inside.shape[:batch] + (1,) * (along - batch) + inside.shape[batch:] + (1,) * (data.ndim - along - 1)
    )
    return np.where(mask, taken, _zero(data)).astype(data.dtype)


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
    return _gather(data, indices, axis, 0)


@op("Gather", since=7, symbolic=True)
def gather_7(data: GatheredTensor, indices: IntegerTensor, axis: IntegerTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices of ``data`` along ``axis``, batch by batch; an index out of range gives zeros. Source: Gather-7."""
    return _gather(data, indices, axis, batch_dims)


@op("Gather", since=8, symbolic=True)
def gather_8(data: GatheredTensor, indices: IntegerTensor, axis: IntegerTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices of ``data`` along ``axis``, batch by batch; negative indices are counted from the end.

    An index out of range gives zeros. Source: Gather-8.
    """
    return _gather(data, indices, axis, batch_dims)


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
    if data.shape is None or indices.shape is None:
        return Fact(data.element, _elements_shape(indices.shape, data.shape, axis))
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


def _gather_nd(data: np.ndarray, indices: np.ndarray, batch: int) -> np.ndarray:
    depth = indices.shape[-1]
    known = from_front(indices, data.shape[batch : batch + depth])
    grids = np.ogrid[tuple(slice(n) for n in data.shape[:batch])] if batch else []
    lead = [grid.reshape(grid.shape + (1,) * (indices.ndim - 1 - batch)) for grid in grids]
    if not lead and not depth:
        return np.broadcast_to(data, (*indices.shape[:-1], *data.shape)).copy()
    return np.asarray(data[(*lead, *(known[..., i] for i in range(depth)))], data.dtype)


def _gather_nd_facts(data: Fact, indices: Fact, batch: int, *, merged: bool) -> Fact:
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


@op("GatherND", since=5)
def gather_nd_5(data: GatheredTensor, indices: IndicesTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices at the positions in the last axis of ``indices``; the batch axes are merged into one.

    An index out of range is an error. Source: GatherND-5.
    """
    taken = _gather_nd(data, indices, batch_dims)
    if batch_dims <= 1:
        return taken
    return taken.reshape(int(np.prod(taken.shape[:batch_dims])), *taken.shape[batch_dims:])


@gather_nd_5.shape_rule
def _gather_nd_5_facts(data: Fact, indices: Fact, *, batch_dims: int) -> Fact:
    return _gather_nd_facts(data, indices, batch_dims, merged=True)


@op("GatherND", since=8)
def gather_nd_8(data: GatheredTensor, indices: IndicesTensor, *, batch_dims: int = 0) -> np.ndarray:
    """Slices at the positions in the last axis of ``indices``; the batch axes are kept.

    An index out of range is an error. Source: GatherND-8.
    """
    return _gather_nd(data, indices, batch_dims)


@gather_nd_8.shape_rule
def _gather_nd_8_facts(data: Fact, indices: Fact, *, batch_dims: int) -> Fact:
    return _gather_nd_facts(data, indices, batch_dims, merged=False)


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
