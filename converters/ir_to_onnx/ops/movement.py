"""Operations that move elements: transpose, concatenate, split, slice, reverse, roll, broadcast, pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.generation import as_i64, as_vector
from converters.ir_to_onnx.registry import composed, exact
from irexec.dtypes.elements import I64
from irexec.errors import check
from irexec.schema.shape_rules import pdpd_start


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
        # -amount modulo size; 0 for an axis of size 0.
        divisor = ctx.emit("Max", size, ctx.ints(1))
        start = ctx.emit("Mod", ctx.emit("Neg", ctx.cast(amount, I64)), divisor)
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


_FIRST, _LAST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


@exact("Slice")
def slice_(
    ctx: ExportContext, data: Tensor, start: Tensor, stop: Tensor, step: Tensor, axes: Tensor | None = None
) -> Tensor:
    """Slice."""
    bounds = [as_i64(ctx, bound) for bound in (start, stop, step)]
    order = None if axes is None else as_i64(ctx, axes)
    if order is None:
        check(bounds[0].shape is not None and isinstance(bounds[0].shape[0], int), "the number of axes is not known")
        assert bounds[0].shape is not None
        count = bounds[0].shape[0]
        assert isinstance(count, int)
        order = ctx.ints(*range(count))
    return ctx.emit("Slice", data, bounds[0], _stop(ctx, bounds[1], bounds[2]), order, bounds[2])


def _stop(ctx: ExportContext, stops: Tensor, steps: Tensor) -> Tensor:
    """The stops of slices; ONNX Runtime takes INT32_MAX and INT64_MAX as the end of the slice for any step, and for a
    negative one they are beyond its start."""
    if steps.value is not None and (steps.value > 0).all():
        return stops
    largest = np.iinfo(np.int32).max - 1
    if stops.value is None or steps.value is None:
        clipped = ctx.emit("Min", stops, ctx.constant(largest))
        return ctx.where(ctx.emit("Less", steps, ctx.constant(0)), clipped, stops)
    return ctx.ints(*np.where(steps.value < 0, np.minimum(stops.value, largest), stops.value).tolist())


def _has(mask: Sequence[int], i: int) -> bool:
    return i < len(mask) and bool(mask[i])


@exact("StridedSlice")
def strided_slice(
    ctx: ExportContext, data: Tensor, begin: Tensor, end: Tensor, strides: Tensor | None = None, *,
    begin_mask: Sequence[int], end_mask: Sequence[int], new_axis_mask: Sequence[int],
    shrink_axis_mask: Sequence[int], ellipsis_mask: Sequence[int],
) -> Tensor:  # fmt: skip
    """Slice, then Squeeze of single indices and Unsqueeze of new axes; an ellipsis is resolved by the rank."""
    shape = begin.require_shape("the start")
    check(len(shape) == 1 and isinstance(shape[0], int), "the number of axes that are sliced is not known")
    assert isinstance(shape[0], int)
    count = shape[0]
    kinds = [
        "ellipsis" if _has(ellipsis_mask, i) else "new" if _has(new_axis_mask, i)
        else "index" if _has(shrink_axis_mask, i) else "slice"
        for i in range(count)
    ]  # fmt: skip
    sliced = sum(kind in ("slice", "index") for kind in kinds)
    hidden = data.require_rank("the data") - sliced if "ellipsis" in kinds else 0
    starts, stops, steps, axes, gone, new = [], [], [], list[int](), list[int](), list[int]()
    axis = place = 0
    for i, kind in enumerate(kinds):
        if kind == "ellipsis":
            axis, place = axis + hidden, place + hidden
        elif kind == "new":
            new.append(place)
            place += 1
        else:
            first, last, step = _entry(ctx, i, kind, begin, end, strides, begin_mask, end_mask)
            starts.append(first)
            stops.append(last)
            steps.append(step)
            axes.append(axis)
            gone += [axis] if kind == "index" else []
            axis, place = axis + 1, place + (kind == "slice")
    result = data
    if axes:
        parts = [ctx.concat(*bounds) for bounds in (starts, stops)]
        result = ctx.emit("Slice", data, parts[0], parts[1], ctx.ints(*axes), ctx.concat(*steps))
    if gone:
        result = ctx.squeeze(result, *gone)
    if new:
        result = ctx.unsqueeze(result, *new)
    return result if result is not data else ctx.emit("Identity", data)


def _entry(
    ctx: ExportContext, i: int, kind: str, begin: Tensor, end: Tensor, strides: Tensor | None,
    begin_mask: Sequence[int], end_mask: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Start, stop and step of one axis, each a vector of one element."""
    step = ctx.ints(1) if strides is None or kind == "index" else _element(ctx, strides, i)
    backwards = step.value is not None and int(step.value[0]) < 0
    is_open = kind == "slice" and (_has(begin_mask, i) or _has(end_mask, i))
    check(step.value is not None or not is_open, "a bound is left open, and the sign of the stride is not known")
    if kind == "index":
        # The mask of a bound does not count for a single index.
        first = _element(ctx, begin, i)
        return first, _after(ctx, first), ctx.ints(1)
    # The specification of Slice: INT_MAX is the end of the axis, and INT_MIN, for negative steps, its beginning.
    first = ctx.ints(_LAST if backwards else 0) if _has(begin_mask, i) else _element(ctx, begin, i)
    if _has(end_mask, i):
        return first, ctx.ints(_FIRST if backwards else _LAST), step
    return first, _stop(ctx, _element(ctx, end, i), step), step


def _after(ctx: ExportContext, first: Tensor) -> Tensor:
    """The stop of a slice of one element: the end of the axis for index -1."""
    if first.value is not None:
        return ctx.ints(int(first.value[0]) + 1 or _LAST)
    following = ctx.emit("Add", first, ctx.ints(1))
    result: Tensor = ctx.where(ctx.emit("Equal", following, ctx.ints(0)), ctx.ints(_LAST), following)
    return result


def _element(ctx: ExportContext, vector: Tensor, i: int) -> Tensor:
    if vector.value is not None:
        return ctx.ints(vector.require_ints("a bound")[i])
    if vector.shape == (1,):
        return as_i64(ctx, vector)
    return ctx.slice(as_i64(ctx, vector), i, i + 1, 0)


@composed("SliceScatter")
def slice_scatter(
    ctx: ExportContext, data: Tensor, updates: Tensor, start: Tensor, stop: Tensor, step: Tensor,
    axes: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The indices of all elements are sliced, and ScatterElements writes the updates to the flattened data there."""
    total = ctx.count(data)
    if total is not None:
        numbers = ctx.constant(np.arange(total).reshape([int(s) for s in data.require_shape("the data")]))
    else:
        count = ctx.emit("Size", data)
        line = ctx.emit("Range", ctx.constant(0), count, ctx.constant(1))
        numbers = ctx.emit("Reshape", line, ctx.emit("Shape", data))
    places = ctx.reshape(slice_(ctx, numbers, start, stop, step, axes), [-1])
    flat = ctx.emit("ScatterElements", ctx.reshape(data, [-1]), places, ctx.reshape(updates, [-1]), axis=0)
    return ctx.emit("Reshape", flat, ctx.shape_of(data), allowzero=1 if data.is_known_empty() else None)


_END = int(np.iinfo(np.int64).max)


@exact("Broadcast")
def broadcast(
    ctx: ExportContext,
    data: Tensor,
    target_shape: Tensor,
    axes_mapping: Tensor | None = None,
    *,
    mode: str,
    mode_axis: int | None = None,
) -> Tensor:
    """Expand; with axes_mapping after Transpose and Unsqueeze."""
    target = as_i64(ctx, target_shape)
    if mode in ("explicit", "none") and axes_mapping is not None:
        axes = axes_mapping.require_ints("axes_mapping")
        data = _placed(ctx, data, axes, _length(target))
    elif mode == "pdpd":
        rank = data.require_rank("the data")
        end = _length(target) - pdpd_start(_length(target), rank, mode_axis)
        data = ctx.unsqueeze(data, *range(rank, end)) if end > rank else data
    return ctx.emit("Expand", data, target)


def _length(vector: Tensor) -> int:
    shape = vector.require_shape("the target shape")
    check(len(shape) == 1 and isinstance(shape[0], int), "the rank of the target shape is not known")
    assert isinstance(shape[0], int)
    return shape[0]


def _placed(ctx: ExportContext, data: Tensor, axes: tuple[int, ...], rank: int) -> Tensor:
    """The axes of the data at the given ones of ``rank``."""
    order = [int(axis) for axis in np.argsort(axes)]
    if order != sorted(order):
        data = ctx.transpose(data, order)
    new = [axis for axis in range(rank) if axis not in axes]
    return ctx.unsqueeze(data, *new) if new else data


@exact("Tile")
def tile(ctx: ExportContext, data: Tensor, repeats: Tensor) -> Tensor:
    """Tile; of the data and the repeats the shorter gets ones in front."""
    given, rank, count = as_i64(ctx, repeats), data.require_rank("the data"), _length(repeats)
    given = ctx.emit("Max", given, ctx.ints(0)) if given.value is None or (given.value < 0).any() else given
    if count > rank:
        data = ctx.unsqueeze(data, *range(count - rank))
    elif count < rank:
        given = ctx.concat(ctx.ints(*[1] * (rank - count)), given)
    return ctx.emit("Tile", data, given)


@exact("Pad")
def pad(
    ctx: ExportContext, data: Tensor, pads_begin: Tensor, pads_end: Tensor, pad_value: Tensor | None = None, *,
    pad_mode: str,
) -> Tensor:  # fmt: skip
    """Pad; symmetric by Concat of reversed slices, negative pads of modes other than constant by a Slice."""
    if data.shape == ():
        return ctx.emit("Identity", data)
    if pad_mode == "symmetric":
        begin, end = pads_begin.require_ints("pads_begin"), pads_end.require_ints("pads_end")
        return _cropped(ctx, _symmetric(ctx, data, begin, end), begin, end)
    if pads_begin.value is None or pads_end.value is None or pad_mode == "constant":
        begins, ends = as_i64(ctx, pads_begin), as_i64(ctx, pads_end)
        if pad_mode == "constant":
            return _padded(ctx, data, ctx.concat(begins, ends), pad_value, pad_mode)
        return _cropped_by(
            ctx, _padded(ctx, data, _positive(ctx, ctx.concat(begins, ends)), None, pad_mode), begins, ends
        )
    begin, end = pads_begin.require_ints("pads_begin"), pads_end.require_ints("pads_end")
    grown = _padded(ctx, data, ctx.ints(*(max(pad, 0) for pad in (*begin, *end))), pad_value, pad_mode)
    return _cropped(ctx, grown, begin, end)


def _padded(ctx: ExportContext, data: Tensor, pads: Tensor, value: Tensor | None, mode: str) -> Tensor:
    scalar = None if value is None or mode != "constant" else value if value.rank == 0 else ctx.reshape(value, [])
    return ctx.emit("Pad", data, pads, scalar, mode=mode)


def _positive(ctx: ExportContext, pads: Tensor) -> Tensor:
    return ctx.emit("Max", pads, ctx.ints(0))


def _cropped_by(ctx: ExportContext, data: Tensor, begins: Tensor, ends: Tensor) -> Tensor:
    """The data without the elements that negative pads, computed when the model runs, remove."""
    axes = ctx.ints(*range(data.require_rank("the data") if data.shape is not None else _length(begins)))
    starts = _positive(ctx, ctx.emit("Neg", begins))
    is_cut = ctx.emit("Less", ends, ctx.ints(0))
    return ctx.emit("Slice", data, starts, ctx.where(is_cut, ends, ctx.ints(_END)), axes)


def _cropped(ctx: ExportContext, data: Tensor, begin: tuple[int, ...], end: tuple[int, ...]) -> Tensor:
    """The data without the elements that negative pads remove."""
    axes = [i for i, pair in enumerate(zip(begin, end, strict=True)) if min(pair) < 0]
    if not axes:
        return data
    stops = [min(end[i], 0) or _END for i in axes]
    return ctx.emit("Slice", data, ctx.ints(*(max(-begin[i], 0) for i in axes)), ctx.ints(*stops), ctx.ints(*axes))


def _symmetric(ctx: ExportContext, data: Tensor, begin: tuple[int, ...], end: tuple[int, ...]) -> Tensor:
    """Reflected with the edge: the first elements reversed in front, the last ones reversed behind."""
    result = data
    for axis, (first, last) in enumerate(zip(begin, end, strict=True)):
        parts = [flipped(ctx, ctx.slice(result, 0, first, axis), [axis])] if first > 0 else []
        parts += [result]
        parts += [flipped(ctx, ctx.slice(result, -last, None, axis), [axis])] if last > 0 else []
        result = ctx.concat(*parts, axis=axis)
    return result if result is not data else ctx.cast(ctx.emit("Identity", data), data.element)
