"""Operations that move elements: transpose, concatenate, split, rearrange blocks, reverse, roll."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Literal

import numpy as np

from irexec.errors import OpError, check
from irexec.ir.dims import ANY, Size, at_least, count, exact_quotient, high, low, may_equal, meet, shape_text
from irexec.ir.facts import EveryOutput, Fact, integer, integers
from irexec.schema.attributes import Positive
from irexec.schema.opdef import (
    INDEX,
    INTEGER_OR_BOOLEAN,
    VECTOR,
    AnyTensor,
    AxesTensor,
    IntegerElement,
    IntegerScalar,
    IntegerVector,
    NumericTensor,
    Rank,
    unchanged,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import normalize_axes, normalize_axis, open_shape, unify_elements, vector_length


@op("Transpose", since=1, symbolic=True, view=True)
def transpose_1(data: AnyTensor, order: IntegerVector) -> np.ndarray:
    """``data`` with its axes permuted; reversed if ``order`` is empty. Source: Transpose-1."""
    axes = integers(order, "order")
    return data.transpose(axes) if axes else data.transpose()


@transpose_1.shape_rule
def _transpose_1_facts(data: Fact, order: Fact) -> Fact:
    if data.shape is None:
        return Fact(data.element, open_shape(vector_length(order) or None))
    rank = len(data.shape)
    axes = order.ints("order")
    if axes is None:
        given = order.shape[0] if order.shape else ANY
        check(may_equal(given, 0) or may_equal(given, rank), f"order has {given} elements for data {data}")
        return Fact(data.element, (ANY,) * rank)
    axes = axes or tuple(reversed(range(rank)))
    check(sorted(axes) == list(range(rank)), f"order {list(axes)} is not a permutation of the axes of {data}")
    return Fact(data.element, tuple(data.shape[axis] for axis in axes))


@op("Concat", since=1, symbolic=True)
def concat_1(*inputs: Annotated[AnyTensor, Rank(1, None)], axis: int) -> np.ndarray:
    """The tensors concatenated along ``axis``. Source: Concat-1."""
    return np.concatenate(inputs, axis)


@concat_1.shape_rule
def _concat_1_facts(*inputs: Fact, axis: int) -> Fact:
    check(len(inputs) > 0, "has no inputs")
    kind = unify_elements(*inputs)
    shapes = [fact.shape for fact in inputs if fact.shape is not None]
    if not shapes:
        return Fact(kind, None)
    rank = len(shapes[0])
    along = normalize_axis(axis, rank)
    for shape in shapes:
        check(len(shape) == rank, f"shapes {shape_text(shapes[0])} and {shape_text(shape)} have different ranks")
    sizes: list[Size] = []
    for i in range(rank):
        column = [ANY if fact.shape is None else fact.shape[i] for fact in inputs]
        sizes.append(sum(column, 0) if i == along else functools.reduce(meet, column))
    return Fact(kind, tuple(sizes))


SplitTensor = Annotated[AnyTensor, Rank(1, None)]


@op("Split", since=1, symbolic=True, view=True)
def split_1(data: SplitTensor, axis: IntegerScalar, *, num_splits: Positive) -> tuple[np.ndarray, ...]:
    """``num_splits`` equal parts along ``axis``. Source: Split-1."""
    return tuple(np.split(data, num_splits, integer(axis, "axis")))


@split_1.shape_rule
def _split_1_facts(data: Fact, axis: Fact, *, num_splits: int) -> tuple[Fact, ...]:
    check(num_splits < 1 << 16, f"num_splits {num_splits} is more than a layer can have outputs")
    given = axis.scalar("axis")
    if data.shape is None or given is None:
        return (Fact(data.element, open_shape(data.rank)),) * num_splits
    along = normalize_axis(given, len(data.shape))
    message = f"axis {along} of {data} cannot be split into {num_splits} equal parts"
    part = _divided(data.shape[along], num_splits, message)
    return (Fact(data.element, (*data.shape[:along], part, *data.shape[along + 1 :])),) * num_splits


def _divided(size: Size, by: int, message: str) -> Size:
    """The exact quotient; OpError with the message if there is none."""
    try:
        return exact_quotient(size, by)
    except OpError:
        raise OpError(message) from None


@op("VariadicSplit", since=1, symbolic=True, view=True)
def variadic_split_1(data: SplitTensor, axis: IntegerElement, split_lengths: IntegerVector) -> tuple[np.ndarray, ...]:
    """Parts of the given lengths along ``axis``; -1 stands for the rest. Source: VariadicSplit-1."""
    along = integer(axis, "axis")
    lengths = integers(split_lengths, "split_lengths")
    rest = data.shape[along] - sum(length for length in lengths if length != -1)
    stops = np.cumsum([rest if length == -1 else length for length in lengths])
    # np.split returns one part for an empty list of lengths.
    return tuple(np.split(data, stops[:-1], along)[: len(lengths)])


@variadic_split_1.shape_rule
def _variadic_split_1_facts(data: Fact, axis: Fact, split_lengths: Fact) -> tuple[Fact, ...] | EveryOutput:
    given, lengths = axis.scalar("axis"), split_lengths.sizes("split_lengths")
    count = len(lengths) if lengths is not None else split_lengths.shape[0] if split_lengths.shape else None
    if not isinstance(count, int):
        return EveryOutput(Fact(data.element, open_shape(data.rank)))
    check(count < 1 << 16, f"{count} parts are more than a layer can have outputs")
    parts = lengths if lengths is not None else (ANY,) * count
    if data.shape is None or given is None:
        return (Fact(data.element, open_shape(data.rank)),) * len(parts)
    along = normalize_axis(given, len(data.shape))
    sizes = _part_sizes(data.shape[along], parts, f"axis {along} of {data}")
    return tuple(Fact(data.element, (*data.shape[:along], size, *data.shape[along + 1 :])) for size in sizes)


def _part_sizes(size: Size, parts: tuple[Size, ...], what: str) -> list[Size]:
    text = f"{what} cannot be split into parts of {', '.join(map(str, parts))}"
    check(sum(part == -1 for part in parts) <= 1 and all(part >= -1 for part in parts if isinstance(part, int)), text)
    given: Size = sum((part for part in parts if part != -1), 0)
    rest: Size = ANY
    if isinstance(given, int) and isinstance(size, int):
        check(given <= size if -1 in parts else given == size, text)
        rest = size - given
    elif isinstance(given, int):
        rest = at_least(size - given, 0)
    # An unknown length that may be negative may be -1, the rest.
    return [rest if part == -1 else part if low(part) >= 0 else ANY for part in parts]


SpatialTensor = Annotated[AnyTensor, Rank(3, None)]
DepthMode = Literal["blocks_first", "depth_first"]


@op("DepthToSpace", since=1, view=True)
def depth_to_space_1(data: SpatialTensor, *, mode: DepthMode, block_size: Positive = 1) -> np.ndarray:
    """Blocks of channels moved to blocks of spatial positions, for any number of spatial axes.

    Source: DepthToSpace-1.
    """
    n, c, *spatial = data.shape
    k = len(spatial)
    blocks = (block_size,) * k
    depth = c // block_size**k
    if mode == "blocks_first":
        split = data.reshape(n, *blocks, depth, *spatial)
        order = [0, k + 1] + [axis for i in range(k) for axis in (k + 2 + i, 1 + i)]
    else:
        split = data.reshape(n, depth, *blocks, *spatial)
        order = [0, 1] + [axis for i in range(k) for axis in (k + 2 + i, 2 + i)]
    return split.transpose(order).reshape(n, depth, *(size * block_size for size in spatial))


@depth_to_space_1.shape_rule
def _depth_to_space_1_facts(data: Fact, *, block_size: int) -> Fact:
    if data.shape is None:
        return Fact(data.element, None)
    n, c, *spatial = data.shape
    block = block_size ** len(spatial)
    depth = _divided(c, block, f"{c} channels cannot be split into blocks of {block}")
    return Fact(data.element, (n, depth, *(size * block_size for size in spatial)))


@op("SpaceToDepth", since=1, view=True)
def space_to_depth_1(data: SpatialTensor, *, mode: DepthMode, block_size: Positive = 1) -> np.ndarray:
    """Blocks of spatial positions moved to channels, for any number of spatial axes. Source: SpaceToDepth-1."""
    n, c, *spatial = data.shape
    k = len(spatial)
    split = data.reshape(n, c, *(part for size in spatial for part in (size // block_size, block_size)))
    outer, inner = [2 + 2 * i for i in range(k)], [3 + 2 * i for i in range(k)]
    order = [0, *inner, 1, *outer] if mode == "blocks_first" else [0, 1, *inner, *outer]
    return split.transpose(order).reshape(n, c * block_size**k, *(size // block_size for size in spatial))


@space_to_depth_1.shape_rule
def _space_to_depth_1_facts(data: Fact, *, block_size: int) -> Fact:
    if data.shape is None:
        return Fact(data.element, None)
    n, c, *spatial = data.shape
    parts = [
        _divided(size, block_size, f"spatial size {size} is not a multiple of block_size {block_size}")
        for size in spatial
    ]
    return Fact(data.element, (n, c * block_size ** len(spatial), *parts))


@op("ShuffleChannels", since=1, view=True)
def shuffle_channels_1(data: Annotated[AnyTensor, Rank(1, None)], *, axis: int = 1, group: Positive = 1) -> np.ndarray:
    """The axis reshaped to (group, size / group) and transposed. Source: ShuffleChannels-1."""
    along = normalize_axis(axis, data.ndim)
    size = data.shape[along]
    split = data.reshape(*data.shape[:along], group, size // group, *data.shape[along + 1 :])
    return np.swapaxes(split, along, along + 1).reshape(data.shape)


@shuffle_channels_1.shape_rule
def _shuffle_channels_1_facts(data: Fact, *, axis: int, group: int) -> Fact:
    if data.shape is not None:
        size = data.shape[normalize_axis(axis, len(data.shape))]
        _divided(size, group, f"axis {axis} of {data} cannot be split into {group} groups")
    return Fact(data.element, data.shape)


AxesOrMask = Annotated[np.ndarray, INTEGER_OR_BOOLEAN, VECTOR]


@op("Reverse", since=1, symbolic=True, view=True)
def reverse_1(data: AnyTensor, axes: AxesOrMask, *, mode: Literal["index", "mask"]) -> np.ndarray:
    """``data`` reversed along the given axes; in mode mask ``axes`` has one boolean for each axis. Source:
    Reverse-1."""
    given = integers(axes, "axes")
    reversed_axes = [i for i, on in enumerate(given) if on] if mode == "mask" else normalize_axes(given, data.ndim)
    return np.asarray(np.flip(data, tuple(set(reversed_axes))), data.dtype)


@reverse_1.shape_rule
def _reverse_1_facts(data: Fact, axes: Fact, *, mode: str) -> Fact:
    known = axes.ints("axes")
    if data.shape is not None and axes.shape is not None and mode == "mask":
        number = count(axes.shape)
        check(may_equal(number, len(data.shape)), f"the mask has {number} elements for data {data}")
    elif data.shape is not None and known is not None:
        normalize_axes(known, len(data.shape))
    return Fact(data.element, data.shape)


@op("ReverseSequence", since=1)
def reverse_sequence_1(
    data: Annotated[AnyTensor, Rank(2, None)],
    seq_lengths: Annotated[NumericTensor, VECTOR],
    *,
    batch_axis: int = 0,
    seq_axis: int = 1,
) -> np.ndarray:
    """The first ``seq_lengths[index]`` elements along ``seq_axis`` reversed, at each index along ``batch_axis``.

    Source: ReverseSequence-1.
    """
    batch, along = normalize_axis(batch_axis, data.ndim), normalize_axis(seq_axis, data.ndim)
    grids = np.ogrid[tuple(slice(size) for size in data.shape)]
    lengths = _lengths(seq_lengths, data.shape[along]).reshape([-1 if i == batch else 1 for i in range(data.ndim)])
    position = grids[along]
    source = np.where(position < lengths, lengths - 1 - position, position)
    index = tuple(source if i == along else grid for i, grid in enumerate(grids))
    return data[index]


def _lengths(seq_lengths: np.ndarray, longest: int | None) -> np.ndarray:
    """The lengths as i64, fractions cut off, as in OpenVINO; OpError for one below 0 or above ``longest``, if that is
    known."""
    wrong = ~((seq_lengths > -1) & (seq_lengths < (math.inf if longest is None else longest + 1)))
    if wrong.any():
        expected = "0 or more" if longest is None else f"0 to {longest}, the size of the axis"
        raise OpError(f"seq_lengths has {seq_lengths[wrong].tolist()[0]}, expected {expected}")
    return seq_lengths.astype(np.int64)


@reverse_sequence_1.shape_rule
def _reverse_sequence_1_facts(data: Fact, seq_lengths: Fact, *, batch_axis: int, seq_axis: int) -> Fact:
    if data.shape is None:
        return Fact(data.element, None)
    rank = len(data.shape)
    batch, along = normalize_axis(batch_axis, rank, "batch_axis"), normalize_axis(seq_axis, rank, "seq_axis")
    if seq_lengths.known is not None:
        _lengths(seq_lengths.known, high(data.shape[along]))
    shape = list(data.shape)
    if seq_lengths.shape:
        shape[batch] = meet(shape[batch], seq_lengths.shape[0])
    return Fact(data.element, tuple(shape))


@op("Identity", since=16, symbolic=True, view=True)
def identity_16(data: AnyTensor) -> np.ndarray:
    """``data`` itself. Source: Identity-16."""
    return data


identity_16.shape_rule(unchanged)


@op("Roll", since=7)
def roll_7(data: AnyTensor, shift: Annotated[AxesTensor, INDEX], axes: Annotated[AxesTensor, INDEX]) -> np.ndarray:
    """``data`` rotated along the axes: elements shifted beyond the end come first. Source: Roll-7."""
    along = integers(axes, "axes")
    shifts = integers(shift, "shift")
    return np.roll(data, shifts * len(along) if len(shifts) == 1 else shifts, along)


@roll_7.shape_rule
def _roll_7_facts(data: Fact, shift: Fact, axes: Fact) -> Fact:
    known = axes.ints("axes")
    if data.shape is not None and known is not None:
        normalize_axes(known, len(data.shape))
    if shift.shape and axes.shape is not None:
        fits = axes.shape != () and may_equal(shift.shape[0], axes.shape[0])
        shapes = f"shift has the shape {shape_text(shift.shape)}, axes {shape_text(axes.shape)}"
        check(fits, f"{shapes}: expected a scalar, or one shift for each axis")
    return Fact(data.element, data.shape)
