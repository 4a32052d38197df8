"""Operations that move elements: transpose, concatenate, split, rearrange blocks, reverse, roll."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.shape import as_i64, as_vector
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import I64
from irexec.errors import check


@exact("Transpose")
def transpose(ctx: ExportContext, data: Tensor, order: Tensor) -> Tensor:
    """Transpose; by an order that is computed, Gather at computed positions."""
    if order.value is None and order.shape != (0,):
        return _transposed_by(ctx, data, order)
    axes = order.require_ints("the order")
    if not axes:
        return ctx.emit("Transpose", data)
    return ctx.emit("Transpose", data, perm=axes)


def _transposed_by(ctx: ExportContext, data: Tensor, order: Tensor) -> Tensor:
    """The flattened data gathered at the sum of the indices of the result times the strides of their axes."""
    rank = data.require_rank("the data")
    axes = as_i64(ctx, order)
    sizes = ctx.emit("Shape", data)
    shape = ctx.emit("Gather", sizes, axes)
    # The stride of an axis is the product of the sizes after it.
    after = [ctx.reduce("ReduceProd", ctx.slice(sizes, axis + 1, None, 0), [0], keep=True) for axis in range(rank - 1)]
    strides = ctx.emit("Gather", ctx.concat(*after, ctx.ints(1)), axes)
    places = ctx.constant(0)
    for axis in range(rank):
        count, stride = (ctx.emit("Gather", x, ctx.constant(axis)) for x in (shape, strides))
        index = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
        line = ctx.reshape(ctx.emit("Mul", index, stride), [-1] + [1] * (rank - axis - 1))
        places = ctx.emit("Add", places, line)
    return ctx.emit("Gather", ctx.reshape(data, [-1]), places)


@exact("Concat")
def concat(ctx: ExportContext, *inputs: Tensor, axis: int) -> Tensor:
    """Concat."""
    return ctx.emit("Concat", *inputs, axis=axis)


def split_into(ctx: ExportContext, data: Tensor, axis: int, lengths: Tensor, count: int) -> tuple[Tensor, ...]:
    """Parts of the given lengths along an axis."""
    return ctx.emit_all("Split", count, data, lengths, axis=axis)


@exact("Split")
def split(ctx: ExportContext, data: Tensor, axis: Tensor, *, num_splits: int) -> tuple[Tensor, ...]:
    """Split, of which the axis is constant."""
    along = axis.require_ints("the axis")[0]
    if num_splits == 1:
        return (ctx.emit("Identity", data),)
    size = None if data.shape is None else data.shape[along]
    if isinstance(size, int):
        return split_into(ctx, data, along, ctx.ints(*[size // num_splits] * num_splits), num_splits)
    number = num_splits if ctx.opset >= 18 else None
    return ctx.emit_all("Split", num_splits, data, axis=along, num_outputs=number)


@exact("VariadicSplit")
def variadic_split(ctx: ExportContext, data: Tensor, axis: Tensor, split_lengths: Tensor) -> tuple[Tensor, ...]:
    """Split, of which the axis is constant; a length of -1 is computed from the shape."""
    along = axis.require_ints("the axis")[0]
    count = len(ctx.node.outputs)
    lengths = as_i64(ctx, split_lengths)
    if lengths.value is None:
        return split_into(ctx, data, along, _without_rest(ctx, data, lengths, along), count)
    if -1 not in lengths.value:
        return split_into(ctx, data, along, lengths, count)
    given = lengths.require_ints("the lengths")
    rest = -sum(length for length in given if length != -1)
    size = None if data.shape is None else data.shape[along]
    if isinstance(size, int):
        parts = ctx.ints(*(size + rest if length == -1 else length for length in given))
    else:
        left = ctx.emit("Add", ctx.slice(ctx.emit("Shape", data), along, along + 1 or None, 0), ctx.ints(rest))
        parts = ctx.concat(*(left if length == -1 else ctx.ints(length) for length in given))
    return split_into(ctx, data, along, parts, count)


def _without_rest(ctx: ExportContext, data: Tensor, lengths: Tensor, axis: int) -> Tensor:
    """Computed lengths, with the rest of the axis in place of -1."""
    size = ctx.slice(ctx.shape_of(data), axis, axis + 1 or None, 0)
    given = ctx.emit("ReduceSum", ctx.emit("Max", lengths, ctx.ints(0)), ctx.ints(0), keepdims=1)
    return ctx.where(ctx.emit("Less", lengths, ctx.ints(0)), ctx.emit("Sub", size, given), lengths)


def sizes_of(ctx: ExportContext, data: Tensor) -> list[Tensor]:
    """The sizes of a tensor, each a vector of one element; known ones are constants."""
    shape = data.require_shape("the data")
    whole: Tensor | None = None
    found = []
    for axis, size in enumerate(shape):
        if isinstance(size, int):
            found.append(ctx.ints(size))
        else:
            whole = whole or ctx.emit("Shape", data)
            assert whole is not None
            found.append(ctx.slice(whole, axis, axis + 1, 0))
    return found


def reshape_to(ctx: ExportContext, data: Tensor, sizes: Sequence[Tensor | int]) -> Tensor:
    """The data in a shape of known sizes and of vectors of one element; one of -1 is inferred."""
    parts = [ctx.ints(size) if isinstance(size, int) else size for size in sizes]
    if all(part.value is not None for part in parts):
        flat = [part.require_ints("a size")[0] for part in parts]
        return ctx.emit("Reshape", data, ctx.ints(*flat), allowzero=1 if 0 in flat else None)
    return ctx.emit("Reshape", data, ctx.concat(*parts))


def multiplied(ctx: ExportContext, size: Tensor, factor: int, divide: bool = False) -> Tensor:
    """A size multiplied or divided by a constant."""
    if size.value is not None:
        value = int(size.value.ravel()[0])
        return ctx.ints(value // factor if divide else value * factor)
    return ctx.emit("Div" if divide else "Mul", size, ctx.ints(factor))


@exact("DepthToSpace")
def depth_to_space(ctx: ExportContext, data: Tensor, *, mode: str, block_size: int) -> Tensor:
    """DepthToSpace of images; of other ranks composed of Reshape and Transpose."""
    if data.rank == 4 and not data.is_known_empty():
        return ctx.emit("DepthToSpace", data, blocksize=block_size, mode="DCR" if mode == "blocks_first" else "CRD")
    n, c, *spatial = sizes_of(ctx, data)
    k, blocks = len(spatial), [block_size] * len(spatial)
    depth = multiplied(ctx, c, block_size**k, divide=True)
    if mode == "blocks_first":
        split = reshape_to(ctx, data, [n, *blocks, depth, *spatial])
        order = [0, k + 1] + [axis for i in range(k) for axis in (k + 2 + i, 1 + i)]
    else:
        split = reshape_to(ctx, data, [n, depth, *blocks, *spatial])
        order = [0, 1] + [axis for i in range(k) for axis in (k + 2 + i, 2 + i)]
    grown = [multiplied(ctx, size, block_size) for size in spatial]
    return reshape_to(ctx, ctx.transpose(split, order), [n, depth, *grown])


@exact("SpaceToDepth")
def space_to_depth(ctx: ExportContext, data: Tensor, *, mode: str, block_size: int) -> Tensor:
    """SpaceToDepth of images with blocks first; others composed of Reshape and Transpose."""
    if data.rank == 4 and mode == "blocks_first" and not data.is_known_empty():
        return ctx.emit("SpaceToDepth", data, blocksize=block_size)
    n, c, *spatial = sizes_of(ctx, data)
    k = len(spatial)
    outer_sizes = [multiplied(ctx, size, block_size, divide=True) for size in spatial]
    split = reshape_to(ctx, data, [n, c, *(part for size in outer_sizes for part in (size, block_size))])
    outer, inner = [2 + 2 * i for i in range(k)], [3 + 2 * i for i in range(k)]
    order = [0, *inner, 1, *outer] if mode == "blocks_first" else [0, 1, *inner, *outer]
    return reshape_to(ctx, ctx.transpose(split, order), [n, multiplied(ctx, c, block_size**k), *outer_sizes])


@composed("ShuffleChannels")
def shuffle_channels(ctx: ExportContext, data: Tensor, *, axis: int, group: int) -> Tensor:
    """Reshape, Transpose, Reshape."""
    sizes = sizes_of(ctx, data)
    along = axis % len(sizes)
    split_sizes: list[Tensor | int] = [
        *sizes[:along],
        group,
        multiplied(ctx, sizes[along], group, divide=True),
        *sizes[along + 1 :],
    ]
    split = reshape_to(ctx, data, split_sizes)
    order = list(range(len(split_sizes)))
    order[along], order[along + 1] = order[along + 1], order[along]
    return reshape_to(ctx, ctx.transpose(split, order), sizes)


@composed("Reverse")
def reverse(ctx: ExportContext, data: Tensor, axes: Tensor, *, mode: str) -> Tensor:
    """Slice with steps of -1."""
    given = axes.require_ints("the axes")
    rank = data.require_rank("the data") if any(axis < 0 for axis in given) else 0
    chosen = [i for i, on in enumerate(given) if on] if mode == "mask" else _distinct(given, rank)
    if not chosen:
        return ctx.emit("Identity", data)
    return flipped(ctx, data, chosen)


def _distinct(axes: Sequence[int], rank: int) -> list[int]:
    """The axes counted from the front, each once."""
    return sorted({axis + rank if axis < 0 else axis for axis in axes})


def flipped(ctx: ExportContext, data: Tensor, axes: Sequence[int]) -> Tensor:
    """The data reversed along axes."""
    count, lowest = len(axes), int(np.iinfo(np.int64).min)
    result: Tensor = ctx.emit(
        "Slice", data, ctx.ints(*[-1] * count), ctx.ints(*[lowest] * count), ctx.ints(*axes), ctx.ints(*[-1] * count),
        shape=data.shape,
    )  # fmt: skip
    return result


@exact("ReverseSequence")
def reverse_sequence(
    ctx: ExportContext, data: Tensor, seq_lengths: Tensor, *, batch_axis: int, seq_axis: int
) -> Tensor:
    """ReverseSequence, with Transposes for axes that ONNX does not have: it has batch and time first."""
    rank = data.require_rank("the data")
    batch, along = batch_axis % rank, seq_axis % rank
    lengths = as_i64(ctx, seq_lengths)
    if {batch, along} == {0, 1}:
        return ctx.emit("ReverseSequence", data, lengths, batch_axis=batch, time_axis=along)
    order = [batch, along, *(axis for axis in range(rank) if axis not in (batch, along))]
    moved = ctx.emit("ReverseSequence", ctx.transpose(data, order), lengths, batch_axis=0, time_axis=1)
    return ctx.transpose(moved, [order.index(axis) for axis in range(rank)])


@composed("Roll")
def roll(ctx: ExportContext, data: Tensor, shift: Tensor, axes: Tensor) -> Tensor:
    """Slice and Concat for each axis; shifts that are computed, modulo the size of the axis."""
    along = axes.require_ints("the axes")
    for i, axis in enumerate(along):
        amount = _shift_of(ctx, shift, i)
        size = ctx.slice(ctx.emit("Shape", data), axis, axis + 1 or None, 0)
        start = _nonnegative_remainder(ctx, amount, size)
        at, step = ctx.ints(axis), ctx.ints(1)
        tail = ctx.emit("Slice", data, start, ctx.ints(int(np.iinfo(np.int64).max)), at, step)
        head = ctx.emit("Slice", data, ctx.ints(0), start, at, step)
        data = ctx.emit("Concat", tail, head, axis=axis)
    return data if along else ctx.emit("Identity", data)


def _shift_of(ctx: ExportContext, shift: Tensor, i: int) -> Tensor:
    """The shift of the axis of index ``i`` as a vector of one element."""
    vector = as_vector(ctx, as_i64(ctx, shift))
    if vector.value is not None:
        values = vector.require_ints("the shift")
        return ctx.ints(values[0] if len(values) == 1 else values[i])
    check(vector.shape is not None and isinstance(vector.shape[0], int), "the number of shifts is not known")
    return vector if vector.shape == (1,) else ctx.slice(vector, i, i + 1, 0)


def _nonnegative_remainder(ctx: ExportContext, amount: Tensor, size: Tensor) -> Tensor:
    """-amount modulo size; 0 for an axis of size 0."""
    divisor = ctx.emit("Max", size, ctx.ints(1))
    return ctx.emit("Mod", ctx.emit("Neg", ctx.cast(amount, I64)), divisor)
