"""Ragged tensors of tokenizers: rows of different lengths, given by the begins and ends of each in flat values."""

from __future__ import annotations

from collections.abc import Sequence

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.ops.roi_sampling import largest
from converters.ir_to_onnx.ops.shape import as_i64
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import I64

_EXTENSION = "extension"


@exact("RaggedTensorPack", since=_EXTENSION)
def ragged_tensor_pack(ctx: ExportContext, begins: Tensor, ends: Tensor, data: Tensor) -> Tensor:
    """Identity."""
    return ctx.emit("Identity", data)


def _range(ctx: ExportContext, count: Tensor) -> Tensor:
    """The numbers below a count, i64."""
    return ctx.emit("Range", ctx.constant(0), ctx.reshape(as_i64(ctx, count), []), ctx.constant(1))


@composed("RaggedToDense", since=_EXTENSION)
def ragged_to_dense(
    ctx: ExportContext, begins: Tensor, ends: Tensor, data: Tensor, size: Tensor, default: Tensor,
    right: Tensor | None = None, *, pad_right: bool, m_pad_max_length: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Gather of the elements of each row, and of the default, which is put after the data, for the others."""
    width, first = ctx.reshape(as_i64(ctx, size), []), ctx.unsqueeze(as_i64(ctx, begins), -1)
    number, length = _range(ctx, size), width
    if not m_pad_max_length:
        length = ctx.emit("Min", ctx.emit("Sub", ctx.unsqueeze(as_i64(ctx, ends), -1), first), width)
    moved = ctx.emit("Sub", number, ctx.emit("Sub", width, length))
    at_left = ctx.emit("Less", number, ctx.emit("Max", length, ctx.constant(0)))
    at_right = ctx.emit("GreaterOrEqual", moved, ctx.constant(0))
    if right is not None:
        flag = ctx.reshape(right, [])
        place, is_own = ctx.where(flag, number, moved), _either(ctx, flag, at_left, at_right)
    else:
        place, is_own = (number, at_left) if pad_right else (moved, at_right)
    rest = ctx.slice(ctx.shape_of(data), 1, None, 0)
    row = ctx.emit("Expand", ctx.reshape(default, []), ctx.concat(ctx.ints(1), rest))
    index = ctx.where(is_own, ctx.emit("Add", first, place), ctx.slice(ctx.emit("Shape", data), 0, 1, 0))
    dense = ctx.emit("Gather", ctx.concat(data, row), index, axis=0)
    inner = data.require_rank("the data") - 1
    mask = ctx.where(is_own, ctx.constant(1), ctx.emit("Mul", index, ctx.constant(0)))
    if inner:
        mask = ctx.unsqueeze(mask, *(-1 - i for i in range(inner)))
    whole = ctx.emit("Expand", mask, ctx.emit("Shape", dense))
    return dense, ctx.emit("Equal", whole, ctx.constant(1))


def _either(ctx: ExportContext, condition: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
    """``then`` or ``otherwise``, booleans: Where of booleans is not in every runtime."""
    first = ctx.emit("And", condition, then)
    return ctx.emit("Or", first, ctx.emit("And", ctx.emit("Not", condition), otherwise))


@composed("RaggedToSparse", since=_EXTENSION)
def ragged_to_sparse(ctx: ExportContext, begins: Tensor, ends: Tensor) -> Tensor:
    """NonZero of a matrix that is true where a row has an element."""
    lengths = ctx.reshape(ctx.emit("Sub", as_i64(ctx, ends), as_i64(ctx, begins)), [-1])
    is_element = ctx.emit("Less", _range(ctx, largest(ctx, lengths)), ctx.unsqueeze(lengths, 1))
    return ctx.transpose(ctx.emit("NonZero", is_element), [1, 0])


@composed("RaggedToRagged", since=_EXTENSION)
def ragged_to_ragged(ctx: ExportContext, row_ids: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """The number of row ids below each row, and up to it: Less or LessOrEqual, Cast, ReduceSum."""
    row, ids = ctx.unsqueeze(_range(ctx, size), 1), as_i64(ctx, row_ids)
    begins, ends = (
        ctx.reduce("ReduceSum", ctx.cast(ctx.emit(type, ids, row), I64), [1]) for type in ("Less", "LessOrEqual")
    )
    return begins, ends


@composed("FuzeRagged", since=_EXTENSION)
def fuze_ragged(
    ctx: ExportContext, ragged_begins: Tensor, ragged_ends: Tensor, begins: Tensor, ends: Tensor
) -> tuple[Tensor, Tensor]:
    """Gather of the begin of the first string of each row, and of the end of its last one."""
    first, after = as_i64(ctx, ragged_begins), as_i64(ctx, ragged_ends)
    last = ctx.where(ctx.emit("Greater", after, first), ctx.emit("Sub", after, ctx.constant(1)), after)
    return ctx.emit("Gather", begins, first, axis=0), ctx.emit("Gather", ends, last, axis=0)


@composed("CombineSegments", since=_EXTENSION)
def combine_segments(ctx: ExportContext, *inputs: Tensor) -> tuple[Tensor, ...]:
    """NonZero of a tensor that is true where a row of a segment has an element, and Gather of its places in all
    values."""
    tensors, ids = inputs[:-1], ctx.reshape(inputs[-1], [-1])
    starts = [ctx.reshape(as_i64(ctx, x), [-1]) for x in tensors[0::3]]
    lengths = [
        ctx.emit("Sub", ctx.reshape(as_i64(ctx, end), [-1]), start)
        for end, start in zip(tensors[1::3], starts, strict=True)
    ]
    rows = ctx.emit("Max", *(ctx.emit("Shape", start) for start in starts))
    values = ctx.concat(*tensors[2::3])
    firsts, before = [], ctx.ints(0)
    for start, data in zip(starts, tensors[2::3], strict=True):
        firsts.append(ctx.emit("Add", start, before))
        before = ctx.emit("Add", before, ctx.emit("Shape", data))
    first, length = (
        ctx.concat(*(ctx.unsqueeze(ctx.emit("Expand", x, rows), 1) for x in parts), axis=1)
        for parts in (firsts, lengths)
    )
    is_element = ctx.emit("Less", _range(ctx, largest(ctx, length)), ctx.unsqueeze(length, 2))
    places = ctx.emit("NonZero", is_element)
    pairs, number = ctx.transpose(ctx.slice(places, 0, 2, 0), [1, 0]), ctx.squeeze(ctx.slice(places, 2, 3, 0), 0)
    joined = ctx.emit("Gather", values, ctx.emit("Add", ctx.emit("GatherND", first, pairs), number), axis=0)
    of_segment = ctx.emit("Gather", ids, ctx.squeeze(ctx.slice(places, 1, 2, 0), 0), axis=0)
    total = ctx.reduce("ReduceSum", length, [1])
    ends = ctx.emit("CumSum", total, ctx.constant(0))
    shape = next((x for x in reversed(tensors[0::3]) if x.require_rank("the begins")), tensors[0])
    begins, ends = (ctx.emit("Reshape", x, ctx.emit("Shape", shape)) for x in (ctx.emit("Sub", ends, total), ends))
    return begins, ends, joined, ctx.emit("Identity", begins), ctx.emit("Identity", ends), of_segment


@composed("Truncate", since=_EXTENSION)
def truncate(ctx: ExportContext, *inputs: Tensor, m_num_inputs: int) -> tuple[Tensor, ...]:
    """Begins or ends moved by Min, and for pairs of rows by Where; of a constant side and mode."""
    *tensors, limit, side, mode = inputs
    maximum = ctx.reshape(as_i64(ctx, limit), [])
    ragged = [tuple(as_i64(ctx, x) for x in tensors[i : i + 2]) for i in range(0, len(tensors), 3)]
    lengths = [ctx.emit("Sub", ends, begins) for begins, ends in ragged]
    if len(lengths) == 1:
        kept = [ctx.emit("Min", lengths[0], maximum)]
    else:
        kept = _kept(ctx, lengths, maximum, bytes(mode.require_value("the mode")).decode())
    at_right = bytes(side.require_value("the side")).decode() == "right"
    results: list[Tensor] = []
    for (begins, ends), length, values in zip(ragged, kept, tensors[2::3], strict=True):
        offsets = (begins, ctx.emit("Add", begins, length)) if at_right else (ctx.emit("Sub", ends, length), ends)
        results += [*offsets, ctx.emit("Identity", values)]
    return tuple(results)


def _kept(ctx: ExportContext, lengths: Sequence[Tensor], maximum: Tensor, mode: str) -> list[Tensor]:
    """The lengths that are kept of pairs of rows."""
    first, second = lengths
    too_long = ctx.emit("Greater", ctx.emit("Add", first, second), maximum)
    if mode != "longest_first":
        index = 0 if mode == "only_first" else 1
        cut = ctx.where(too_long, ctx.emit("Min", lengths[index], maximum), lengths[index])
        return [cut, second] if index == 0 else [first, cut]
    odd, small = (ctx.emit(type, maximum, ctx.constant(2)) for type in ("Mod", "Div"))
    large = ctx.emit("Add", small, odd)
    is_long = ctx.emit("GreaterOrEqual", first, large)
    other_is_long = ctx.emit("Greater", second, small)
    cut_first = ctx.emit("And", is_long, ctx.emit("Not", other_is_long))
    cut_second = ctx.emit("And", ctx.emit("Not", is_long), other_is_long)
    is_longer = ctx.cast(ctx.emit("GreaterOrEqual", first, second), I64)
    halves = [
        ctx.emit("Add", small, ctx.emit("Mul", odd, part))
        for part in (is_longer, ctx.emit("Sub", ctx.constant(1), is_longer))
    ]
    rests = [ctx.emit("Sub", maximum, length) for length in (second, first)]
    of_first = ctx.where(cut_first, rests[0], ctx.where(cut_second, first, halves[0]))
    of_second = ctx.where(cut_second, rests[1], ctx.where(cut_first, second, halves[1]))
    return [ctx.where(too_long, of, length) for of, length in zip((of_first, of_second), lengths, strict=True)]
