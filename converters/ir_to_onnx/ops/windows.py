"""Pooling, adaptive pooling, reductions along axes, and blocks of images."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.convolution import known_sizes
from converters.ir_to_onnx.ops.elementwise import rounded_cast
from converters.ir_to_onnx.ops.generation import as_i64, as_vector
from converters.ir_to_onnx.ops.movement import multiplied, reshape_to, sizes_of
from converters.ir_to_onnx.registry import add, composed, exact
from irexec.dtypes.elements import BOOLEAN, F32, F64, U8, lowest
from irexec.errors import check
from irexec.schema.windows import explicit_pads, per_axis, resolve_pads
from irexec.schema.windows import known_sizes as sizes_known


def _dilations(attributes: Any) -> tuple[int, ...]:
    return per_axis(getattr(attributes, "dilations", ()), len(attributes.kernel), 1)


def _pool_attributes(ctx: ExportContext, data: Tensor, attributes: Any) -> dict[str, Any]:
    """Attributes of ONNX's pooling that yield the same windows.

    Rounding up is rounding down with pads that are longer by stride - 1. Where the sizes are known, pads are such that
    the last window ends where they do.
    """
    kernel, strides, dilations = attributes.kernel, attributes.strides, _dilations(attributes)
    common: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    if any(dilation != 1 for dilation in dilations):
        common["dilations"] = dilations
    spatial = known_sizes(data.shape, 2)
    if spatial is not None:
        placed = attributes.windows(spatial)
        return common | {"pads": [*placed.pads_begin, *_ends(placed, spatial)]}
    if attributes.auto_pad in ("same_upper", "same_lower"):
        check(attributes.rounding_type == "floor", "same pads rounded up depend on sizes that are not known")
        touch = all(stride <= size for stride, size in zip(strides, kernel, strict=True))
        # ONNX Runtime takes pads below 0 for an error, and does not count dilations.
        check(touch and "dilations" not in common, "same pads of such windows depend on sizes that are not known")
        return common | {"auto_pad": attributes.auto_pad.upper()}
    begins, ends = explicit_pads(attributes.auto_pad, attributes.pads_begin, attributes.pads_end, len(kernel))
    if attributes.rounding_type == "ceil_torch":
        return common | {"pads": [*begins, *ends], "ceil_mode": 1}
    if attributes.rounding_type == "ceil":
        ends = tuple(end + stride - 1 for end, stride in zip(ends, strides, strict=True))
    return common | {"pads": [*begins, *ends]}


def _ends(placed: Any, spatial: Sequence[int]) -> list[int]:
    """Pads at the end with which rounding down gives as many windows as there are."""
    ends = []
    axes = zip(spatial, placed.counts, placed.kernel, placed.strides, placed.dilations, placed.pads_begin, strict=True)
    for (size, count, kernel, stride, dilation, begin), end in zip(axes, placed.pads_end, strict=True):
        needed = (count - 1) * stride + dilation * (kernel - 1) + 1 - size - begin
        # One more window must not fit.
        ends.append(min(max(needed, end), needed + stride - 1))
    return ends


def _is_allowed(options: dict[str, Any], kernel: Sequence[int]) -> bool:
    """Whether ONNX Runtime takes the pads: each is shorter than the kernel."""
    pads = options.get("pads", ())
    return all(0 <= pad < size for pad, size in zip(pads, (*kernel, *kernel), strict=False))


def _in_floats(ctx: ExportContext, data: Tensor) -> Tensor:
    """The data in a type of which ONNX's operators compute windows: integers in floats that have their values."""
    return data if data.element.is_float else ctx.cast(data, F32 if data.element.bits <= 16 else F64)


@exact("MaxPool")
def max_pool(ctx: ExportContext, data: Tensor, *, attributes: Any) -> tuple[Tensor | None, ...]:
    """MaxPool; indices of the data flattened from another axis than 0 by a Mod."""
    kind, options = data.element, _pool_attributes(ctx, data, attributes)
    wants_indices = ctx.is_used(1)
    x = _in_floats(ctx, data)
    if not _is_allowed(options, attributes.kernel):
        check(not wants_indices, "pads as long as the kernel, of which ONNX Runtime has no indices")
        pads, rank = options["pads"], len(attributes.kernel)
        x = ctx.emit("Pad", x, ctx.ints(0, 0, *pads[:rank], 0, 0, *pads[rank:]), ctx.scalar(float(lowest(kind)), x))
        options["pads"] = [0] * (2 * rank)
    if not wants_indices:
        return ctx.cast(ctx.emit("MaxPool", x, **options), kind), None
    values, indices = ctx.emit_all("MaxPool", 2, x, **options)
    return ctx.cast(values, kind), _flattened_from(ctx, data, indices, attributes.axis)


def _flattened_from(ctx: ExportContext, data: Tensor, indices: Tensor, axis: int) -> Tensor:
    rank = data.require_rank("the data")
    if axis % rank == 0:
        return indices
    sizes = ctx.slice(ctx.shape_of(data), axis % rank, None, 0)
    return ctx.emit("Mod", indices, ctx.reduce("ReduceProd", sizes, [0], keep=True))


@exact("AvgPool")
def avg_pool(ctx: ExportContext, data: Tensor, *, attributes: Any) -> Tensor:
    """AveragePool; of integers in f64."""
    kind, options = data.element, _pool_attributes(ctx, data, attributes)
    x = _in_floats(ctx, data)
    has_pads = attributes.auto_pad in ("same_upper", "same_lower") or (
        attributes.auto_pad == "explicit" and any((*attributes.pads_begin, *attributes.pads_end))
    )
    spatial = known_sizes(data.shape, 2)
    if spatial is not None:
        has_pads = any(map(any, attributes.windows(spatial).pads))
    counts_all = has_pads and not attributes.exclude_pad
    check(not counts_all or "ceil_mode" not in options, "how far the last window reaches depends on sizes not known")
    if _is_allowed(options, attributes.kernel) and ("dilations" not in options or ctx.opset >= 19):
        result = ctx.emit("AveragePool", x, count_include_pad=int(counts_all), **options)
    else:
        result = _sums(ctx, x, options, counts_all)
    return result if kind.is_float else rounded_cast(ctx, ctx.emit("Round", result), kind)


def _sums(ctx: ExportContext, x: Tensor, options: dict[str, Any], counts_all: bool) -> Tensor:
    """Means as quotients of two Convs with ones, for pads and dilations that AveragePool does not take."""
    check("pads" in options and "ceil_mode" not in options, "the pads depend on sizes that are not known")
    kernel, pads = options.pop("kernel_shape"), options.pop("pads")
    rank, channels = len(kernel), x.require_shape("the data")[1]
    check(isinstance(channels, int), "the number of channels is not known")
    assert isinstance(channels, int)

    def sums(image: Tensor, groups: int) -> Tensor:
        padded = ctx.emit("Pad", image, ctx.ints(0, 0, *pads[:rank], 0, 0, *pads[rank:]))
        return ctx.emit("Conv", padded, ctx.constant(np.ones((groups, 1, *kernel)), x.element), group=groups, **options)

    total = sums(x, channels)
    if counts_all:
        return ctx.emit("Div", total, ctx.scalar(math.prod(kernel), x))
    sizes = ctx.concat(ctx.ints(1, 1), ctx.slice(ctx.shape_of(x), 2, None, 0))
    counts = sums(ctx.emit("Expand", ctx.scalar(1, x), sizes), 1)
    return ctx.emit("Div", total, ctx.emit("Max", counts, ctx.scalar(1, x)))


@composed("AdaptiveAvgPool")
def adaptive_avg_pool(ctx: ExportContext, data: Tensor, output_shape: Tensor) -> Tensor:
    """Products with constant matrices of the means along each axis; a single output by ReduceMean."""
    kind, x = data.element, _in_floats(ctx, data)
    outs = output_shape.require_ints("output_shape")
    if all(out == 1 for out in outs):
        result = ctx.reduce("ReduceMean", x, range(2, 2 + len(outs)), keep=True)
    else:
        sizes = known_sizes(data.shape, 2)
        check(sizes is not None, "the sizes of the data are not known")
        result, counts = x, np.ones(1)
        for axis, (size, out) in enumerate(zip(sizes or (), outs, strict=True)):
            weights = _windows(size, out)
            counts = np.multiply.outer(counts, weights.sum(1))
            if kind.is_float:
                weights /= weights.sum(1, keepdims=True)
            result = _along(ctx, result, ctx.constant(weights, x.element), axis + 2, len(outs) + 2)
        if not kind.is_float:
            # Sums of integers are exact, so that a mean between two of them is rounded as such.
            result = ctx.emit("Div", result, ctx.constant(counts, x.element))
    return result if kind.is_float else rounded_cast(ctx, ctx.emit("Round", result), kind)


def _parts(size: int, out: int) -> list[tuple[int, int]]:
    """Start and stop of the windows that divide an axis."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def _windows(size: int, out: int) -> np.ndarray:
    """The matrix [out, size] that is 1 in each window."""
    matrix = np.zeros((out, size))
    for row, (start, stop) in zip(matrix, _parts(size, out), strict=True):
        row[start:stop] = 1
    return matrix


def _along(ctx: ExportContext, x: Tensor, matrix: Tensor, axis: int, rank: int) -> Tensor:
    """The product of a matrix and the data along one axis."""
    order = [i for i in range(rank) if i != axis] + [axis]
    product = ctx.emit("MatMul", ctx.transpose(x, order), ctx.transpose(matrix, [1, 0]))
    return ctx.transpose(product, [order.index(i) for i in range(rank)])


@composed("AdaptiveMaxPool")
def adaptive_max_pool(
    ctx: ExportContext, data: Tensor, output_shape: Tensor, *, index_element_type: str
) -> tuple[Tensor | None, ...]:
    """Each window gathered by constant indices, then ReduceMax and ArgMax."""
    sizes, outs = known_sizes(data.shape, 2), output_shape.require_ints("output_shape")
    check(sizes is not None, "the sizes of the data are not known")
    assert sizes is not None
    places = _window_indices(sizes, outs)
    shape = data.require_shape("the data")
    lead = [0, 0]
    flat = ctx.emit("Reshape", data, ctx.ints(*lead, math.prod(sizes))) if shape else data
    gathered = ctx.emit("Gather", flat, ctx.constant(places), axis=2)
    values = ctx.emit("Reshape", ctx.reduce("ReduceMax", gathered, [3]), ctx.ints(*lead, *outs))
    if not ctx.is_used(1):
        return values, None
    best = ctx.emit("ArgMax", gathered, axis=3, keepdims=1)
    table = ctx.unsqueeze(ctx.constant(places), 0, 1)
    table = ctx.emit("Expand", table, ctx.emit("Shape", gathered))
    indices = ctx.emit("GatherElements", table, best, axis=3)
    return values, ctx.emit("Reshape", indices, ctx.ints(*lead, *outs))


def _window_indices(sizes: Sequence[int], outs: Sequence[int]) -> np.ndarray:
    """The flattened positions of each window, filled up with its first one: [windows, longest]."""
    grids = [_parts(size, out) for size, out in zip(sizes, outs, strict=True)]
    found = []
    for index in np.ndindex(*outs):
        ranges = [np.arange(*grids[axis][i]) for axis, i in enumerate(index)]
        found.append(np.ravel_multi_index(np.meshgrid(*ranges, indexing="ij"), sizes).ravel())
    longest = max((len(window) for window in found), default=1)
    filled = [np.concatenate([window, np.full(longest - len(window), window[0])]) for window in found]
    return np.array(filled, np.int64).reshape(-1, longest)


_REDUCTIONS = {
    "ReduceSum": "ReduceSum", "ReduceMean": "ReduceMean", "ReduceProd": "ReduceProd", "ReduceMax": "ReduceMax",
    "ReduceMin": "ReduceMin", "ReduceL1": "ReduceL1", "ReduceL2": "ReduceL2",
}  # fmt: skip


def _reduction(type: str, onnx: str) -> None:
    def translate(ctx: ExportContext, data: Tensor, axes: Tensor, *, keep_dims: bool) -> Tensor:
        if type == "ReduceL2" and not data.element.is_float:
            return ctx.cast(_reduced(ctx, onnx, ctx.cast(data, F64), axes, keep_dims), data.element)
        if type == "ReduceMean" and data.element.is_integer:
            return _integer_mean(ctx, data, axes, keep_dims)
        return _reduced(ctx, onnx, data, axes, keep_dims)

    add(type, "exact", onnx, translate)


@composed("ReduceLogicalAnd", "ReduceLogicalOr")
def reduce_logical(ctx: ExportContext, data: Tensor, axes: Tensor, *, keep_dims: bool) -> Tensor:
    """ReduceMin, ReduceMax of bytes."""
    type = "ReduceMin" if ctx.node.type == "ReduceLogicalAnd" else "ReduceMax"
    return ctx.cast(_reduced(ctx, type, ctx.cast(data, U8), axes, keep_dims), BOOLEAN)


def _integer_mean(ctx: ExportContext, data: Tensor, axes: Tensor, keep: bool) -> Tensor:
    """The sum, which wraps, divided by the number of elements; 0 for no elements."""
    shape = data.require_shape("the data")
    chosen = axes.require_ints("the axes") if shape else ()
    total = _reduced(ctx, "ReduceSum", data, axes, keep)
    count = ctx.constant(1)
    for axis in sorted({axis % len(shape) for axis in chosen}):
        size = shape[axis]
        known = isinstance(size, int)
        part = ctx.constant(size) if known else ctx.emit("Gather", ctx.emit("Shape", data), ctx.constant(axis))
        count = ctx.emit("Mul", count, part)
    return ctx.emit("Div", total, ctx.cast(ctx.emit("Max", count, ctx.constant(1)), data.element))


def _reduced(ctx: ExportContext, type: str, data: Tensor, axes: Tensor, keep: bool) -> Tensor:
    as_input = ctx.opset >= (13 if type == "ReduceSum" else 18)
    if axes.value is None:
        check(as_input, f"the axes are computed when the model runs, and ONNX's {type} takes them from opset 18 on")
        vector = as_vector(ctx, as_i64(ctx, axes))
        return ctx.emit(type, data, vector, keepdims=int(keep), noop_with_empty_axes=1)
    given = axes.require_ints("the axes")
    if not given or data.shape == ():
        # ONNX reduces all axes where none is given.
        return ctx.emit("Abs" if type in ("ReduceL1", "ReduceL2") else "Identity", data)
    rank = data.rank
    is_spatial = rank is not None and 2 < rank < 6 and sorted(axis % rank for axis in given) == list(range(2, rank))
    if type == "ReduceMean" and keep and is_spatial and data.element.is_float and not data.is_known_empty():
        return ctx.emit("GlobalAveragePool", data)
    return ctx.reduce(type, data, given if rank is None else sorted({axis % rank for axis in given}), keep)


for _type, _onnx in _REDUCTIONS.items():
    _reduction(_type, _onnx)


@composed("SpaceToBatch")
def space_to_batch(
    ctx: ExportContext, data: Tensor, block_shape: Tensor, pads_begin: Tensor, pads_end: Tensor
) -> Tensor:
    """Pad, Reshape, Transpose, Reshape."""
    blocks = block_shape.require_ints("block_shape")[1:]
    begins, ends = pads_begin.require_ints("pads_begin"), pads_end.require_ints("pads_end")
    shape = data.require_shape("the data")
    padded = ctx.emit("Pad", data, ctx.ints(*begins, *ends)) if any((*begins, *ends)) else data
    padded.shape = tuple(size + begin + end for size, begin, end in zip(shape, begins, ends, strict=True))
    batch, *sizes = sizes_of(ctx, padded)
    outer = [multiplied(ctx, size, block, divide=True) for size, block in zip(sizes, blocks, strict=True)]
    split = reshape_to(ctx, padded, [batch, *(part for pair in zip(outer, blocks, strict=True) for part in pair)])
    axes = range(len(blocks))
    moved = ctx.transpose(split, [*(2 + 2 * i for i in axes), 0, *(1 + 2 * i for i in axes)])
    return reshape_to(ctx, moved, [multiplied(ctx, batch, math.prod(blocks)), *outer])


@composed("BatchToSpace")
def batch_to_space(
    ctx: ExportContext, data: Tensor, block_shape: Tensor, crops_begin: Tensor, crops_end: Tensor
) -> Tensor:
    """Reshape, Transpose, Reshape, Slice."""
    blocks = block_shape.require_ints("block_shape")[1:]
    batch, *sizes = sizes_of(ctx, data)
    rest = multiplied(ctx, batch, math.prod(blocks), divide=True)
    split = reshape_to(ctx, data, [*blocks, rest, *sizes])
    count = len(blocks)
    moved = ctx.transpose(split, [count, *(axis for i in range(count) for axis in (count + 1 + i, i))])
    grown = [multiplied(ctx, size, block) for size, block in zip(sizes, blocks, strict=True)]
    whole = reshape_to(ctx, moved, [rest, *grown])
    begins, ends = crops_begin.require_ints("crops_begin"), crops_end.require_ints("crops_end")
    cut = [axis for axis, pair in enumerate(zip(begins, ends, strict=True)) if any(pair)]
    if not cut:
        return whole
    stops = [-ends[axis] or (1 << 62) for axis in cut]
    return ctx.emit("Slice", whole, ctx.ints(*(begins[axis] for axis in cut)), ctx.ints(*stops), ctx.ints(*cut))


@composed("ExtractImagePatches")
def extract_image_patches(ctx: ExportContext, data: Tensor, *, attributes: Any) -> Tensor:
    """Pad, a Slice for each position of the patch, Concat along the channels."""
    a, spatial = attributes, known_sizes(data.shape, 2)
    check(spatial is not None, "the sizes of the images are not known")
    assert spatial is not None
    counts = sizes_known(a.counts(spatial))
    begins, ends = resolve_pads(a.auto_pad, spatial, a.sizes, a.strides, a.rates, (), ())
    padded = data
    if any((*begins, *ends)):
        padded = ctx.emit("Pad", data, ctx.ints(0, 0, *begins, 0, 0, *ends))
    parts = []
    for tap in itertools.product(*map(range, a.sizes)):
        starts = [position * rate for position, rate in zip(tap, a.rates, strict=True)]
        stops = [
            start + (count - 1) * stride + 1 if count else start
            for start, count, stride in zip(starts, counts, a.strides, strict=True)
        ]
        parts.append(
            ctx.emit("Slice", padded, ctx.ints(*starts), ctx.ints(*stops), ctx.ints(2, 3), ctx.ints(*a.strides))
        )
    return ctx.concat(*parts, axis=1)


@exact("Col2Im")
def col2im(ctx: ExportContext, data: Tensor, output_size: Tensor, kernel_size: Tensor, *, attributes: Any) -> Tensor:
    """Col2Im; columns without a batch are unsqueezed."""
    a, rank = attributes, data.require_rank("the columns")
    columns = ctx.unsqueeze(data, 0) if rank == 2 else data
    sizes, kernel = (
        ctx.ints(*x.require_ints("a size")) if x.value is not None else x for x in (output_size, kernel_size)
    )
    image = ctx.emit(
        "Col2Im", columns, sizes, kernel, strides=a.strides or None, dilations=a.dilations or None,
        pads=[*(a.pads_begin or (0, 0)), *(a.pads_end or (0, 0))],
    )  # fmt: skip
    return ctx.squeeze(image, 0) if rank == 2 else image
