"""Shapes, conversions of element types, generated and random tensors."""

from __future__ import annotations

import math

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.opsets import accepted
from converters.ir_to_onnx.registry import composed, exact
from irexec.dtypes.elements import F4E2M1, F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, I8, I32, I64, U8, Element
from irexec.errors import check
from irexec.ir.dims import may_equal


@exact("ShapeOf")
def shape_of(ctx: ExportContext, data: Tensor, *, output_type: str = "i64") -> Tensor:
    """Shape; i32 by a Cast."""
    return ctx.emit("Shape", data)


def as_i64(ctx: ExportContext, tensor: Tensor) -> Tensor:
    """Integers as i64, of which ONNX's shapes and axes are."""
    if tensor.element is I64:
        return tensor
    if tensor.value is not None:
        return ctx.constant(tensor.value.astype(np.int64))
    return ctx.cast(tensor, I64)


def as_vector(ctx: ExportContext, tensor: Tensor) -> Tensor:
    """A tensor of one element as a vector of it; a vector is left as it is."""
    if tensor.rank == 1:
        return tensor
    if tensor.value is not None:
        return ctx.constant(tensor.value.reshape(-1), tensor.element)
    return ctx.reshape(tensor, [-1])


@exact("Reshape")
def reshape(ctx: ExportContext, data: Tensor, shape: Tensor, *, special_zero: bool) -> Tensor:
    """Reshape, with allowzero where zeros are sizes; -1 beside a 0 is computed from the shape."""
    pattern = as_i64(ctx, shape)
    known = None if shape.value is None else shape.require_ints("the shape")
    if special_zero:
        return ctx.emit("Reshape", data, pattern)
    if known is not None and 0 not in known:
        return ctx.emit("Reshape", data, pattern)
    if known is not None and -1 in known:
        sizes = ctx.facts[0].shape
        check(sizes is not None and all(isinstance(size, int) for size in sizes),
              f"the shape {list(known)} has -1 beside a size of 0, and the result is not known")  # fmt: skip
        assert sizes is not None
        return ctx.emit("Reshape", data, ctx.ints(*(int(s) for s in sizes if isinstance(s, int))), allowzero=1)
    if known is None and ctx.opset < 14:
        return ctx.emit("Reshape", data, pattern)
    return ctx.emit("Reshape", data, pattern, allowzero=1)


@exact("Squeeze")
def squeeze(ctx: ExportContext, data: Tensor, axes: Tensor | None = None, *, allow_axis_skip: bool = False) -> Tensor:
    """Squeeze; axes of another size than 1 are left out, as IR keeps them: where that is known when the model runs, the
    sizes that stay are selected, and the data gets them by a Reshape."""
    if data.shape == ():
        return ctx.emit("Identity", data)
    if axes is None:
        return ctx.emit("Squeeze", data)
    if axes.value is None:
        return _squeezed_where_1(ctx, data, as_vector(ctx, as_i64(ctx, axes)))
    given = axes.require_ints("the axes")
    if not given:
        return ctx.emit("Squeeze", data)
    if data.shape is None:
        return ctx.emit("Squeeze", data, ctx.ints(*given))
    rank = len(data.shape)
    kept = sorted({axis % rank for axis in given if may_equal(data.shape[axis], 1)})
    unknown = [axis for axis in kept if data.shape and not isinstance(data.shape[axis], int)]
    if unknown and allow_axis_skip:
        return _squeezed_where_1(ctx, data, ctx.ints(*kept))
    if not kept:
        return ctx.emit("Identity", data)
    return ctx.emit("Squeeze", data, ctx.ints(*kept))


def _squeezed_where_1(ctx: ExportContext, data: Tensor, axes: Tensor) -> Tensor:
    """The data without those of the axes that have size 1 when the model runs."""
    sizes = ctx.emit("Shape", data)
    none, chosen = (ctx.emit("Sub", tensor, tensor) for tensor in (sizes, axes))
    marked = ctx.emit("ScatterElements", none, axes, ctx.emit("Add", chosen, ctx.ints(1)))
    is_removed = ctx.emit("And", ctx.emit("Equal", sizes, ctx.ints(1)), ctx.emit("Equal", marked, ctx.ints(1)))
    left = ctx.emit("Compress", sizes, ctx.emit("Not", is_removed), axis=0)
    return ctx.emit("Reshape", data, left, allowzero=1 if ctx.opset >= 14 else None)


@exact("Unsqueeze")
def unsqueeze(ctx: ExportContext, data: Tensor, axes: Tensor) -> Tensor:
    """Unsqueeze."""
    vector = as_vector(ctx, as_i64(ctx, axes))
    return ctx.emit("Unsqueeze", data, vector)


def converted(ctx: ExportContext, data: Tensor, to: Element) -> Tensor:
    """Cast as Convert does: to f8 without saturation, from f64 to f16 by way of f32, to integers of few bits by way of
    bytes, as ONNX Runtime rounds floats to them."""
    known = to is F4E2M1 or (to.onnx is not None and to in accepted("Cast", ctx.opset, "", "T2"))
    check(known, f"ONNX of opset {ctx.opset} does not cast to {to}")
    if to.is_integer and to.bits < 8 and data.element.is_float:
        data = ctx.cast(ctx.cast(data, I32), I8 if to.kind == "signed" else U8)
    if to is F4E2M1:
        return _f4e2m1(ctx, ctx.cast(data, F32))
    if to is F8E8M0:
        return _f8e8m0(ctx, data)
    if data.element is F64 and to is F16:
        data = ctx.cast(data, F32)
    assert to.onnx is not None
    if to in (F8E4M3, F8E5M2):
        return ctx.emit("Cast", data, to=to.onnx.number, saturate=0, element=to)
    return ctx.cast(data, to) if data.element is not to else ctx.emit("Identity", data)


def _f4e2m1(ctx: ExportContext, data: Tensor) -> Tensor:
    """Values rounded to f4e2m1, ties to even: multiples of 0.5 below 2, of 1 below 4, of 2 up to 6; NaN is 6."""
    top = ctx.scalar(6, data)
    data = ctx.where(ctx.emit("IsNaN", data), top, ctx.emit("Clip", data, ctx.scalar(-6, data), top))
    size = ctx.emit("Abs", data)
    step = ctx.where(ctx.emit("Less", size, ctx.scalar(4, data)), ctx.scalar(1, data), ctx.scalar(2, data))
    step = ctx.where(ctx.emit("Less", size, ctx.scalar(2, data)), ctx.scalar(0.5, data), step)
    return ctx.emit("Mul", ctx.emit("Round", ctx.emit("Div", data, step)), step, shape=data.shape)


def _f8e8m0(ctx: ExportContext, data: Tensor) -> Tensor:
    """Cast of the nearest power of two; ties go to an even code, which is the exponent + 127.

    ONNX's round_mode nearest takes the larger one.
    """
    assert F8E8M0.onnx is not None
    x = ctx.cast(data, F64)
    below = ctx.emit("Cast", data, to=F8E8M0.onnx.number, saturate=1, round_mode="down", element=F8E8M0)
    low = ctx.cast(below, F64)
    exponent = ctx.emit("Round", ctx.emit("Div", ctx.emit("Log", low), ctx.constant(math.log(2), F64)))
    middle, half = ctx.emit("Mul", low, ctx.constant(1.5, F64)), ctx.emit("Mul", exponent, ctx.constant(0.5, F64))
    is_tie, is_odd = ctx.emit("Equal", x, middle), ctx.emit("Equal", half, ctx.emit("Floor", half))
    is_above = ctx.emit("Or", ctx.emit("Greater", x, middle), ctx.emit("And", is_tie, is_odd))
    nearest = ctx.where(is_above, ctx.emit("Mul", low, ctx.constant(2, F64)), low)
    return ctx.emit("Cast", nearest, to=F8E8M0.onnx.number, saturate=1, round_mode="nearest", element=F8E8M0)


@exact("Convert")
def convert(ctx: ExportContext, data: Tensor, *, destination_type: Element) -> Tensor:
    """Cast; floats beyond the range of an integer type are not defined in ONNX."""
    return converted(ctx, data, destination_type)


@composed("ConvertLike")
def convert_like(ctx: ExportContext, data: Tensor, like: Tensor) -> Tensor:
    """Cast to the element type of the other input, which is known."""
    return converted(ctx, data, like.element)


@exact("Identity")
def identity(ctx: ExportContext, data: Tensor) -> Tensor:
    """Identity."""
    return ctx.emit("Identity", data)


@composed("ConvertPromoteTypes")
def convert_promote_types(
    ctx: ExportContext, input_0: Tensor, input_1: Tensor, *, promote_unsafe: bool, pytorch_scalar_promotion: bool,
    u64_integer_promotion_target: Element,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Two Casts to the type that is inferred for both."""
    kind = ctx.facts[0].element
    check(kind is not None, "the type to which both inputs are promoted is not known")
    assert kind is not None
    return converted(ctx, input_0, kind), converted(ctx, input_1, kind)


@exact("Range", since=1)
def range_1(ctx: ExportContext, start: Tensor, stop: Tensor, step: Tensor) -> Tensor:
    """Range."""
    return _range(ctx, start, stop, step, start.element)


@exact("Range", since=4)
def range_4(ctx: ExportContext, start: Tensor, stop: Tensor, step: Tensor, *, output_type: Element) -> Tensor:
    """Range of inputs that are cast to the type of the result."""
    return _range(ctx, start, stop, step, output_type)


def _range(ctx: ExportContext, start: Tensor, stop: Tensor, step: Tensor, kind: Element) -> Tensor:
    """Floats are computed in f64 and rounded once; integers are truncated first."""
    work = F64 if kind.is_float else I64
    first, last, stride = (ctx.cast(ctx.reshape(x, []) if x.rank != 0 else x, work) for x in (start, stop, step))
    if work is I64 and step.element.is_float:
        # A fraction becomes a stride of 0, which ONNX refuses; the range is empty then.
        none = ctx.emit("Equal", stride, ctx.constant(0))
        last, stride = ctx.emit("Where", none, first, last), ctx.emit("Where", none, ctx.constant(1), stride)
    return ctx.cast(ctx.emit("Range", first, last, stride), kind)


@exact("OneHot")
def one_hot(
    ctx: ExportContext, indices: Tensor, depth: Tensor, on_value: Tensor, off_value: Tensor, *, axis: int,
    negative_indices_mode: str = "ignore_negative",
) -> Tensor:  # fmt: skip
    """OneHot; negative indices, which ONNX counts from the end, are replaced by the depth if they are to be ignored."""
    places, size = as_i64(ctx, indices), ctx.reshape(as_i64(ctx, depth), [])
    if negative_indices_mode == "ignore_negative":
        places = ctx.where(ctx.emit("Less", places, ctx.constant(0)), size, places)
    values = ctx.concat(ctx.reshape(off_value, [1]), ctx.reshape(on_value, [1]))
    if indices.rank == 0:
        # ONNX needs an axis of indices.
        return ctx.squeeze(ctx.emit("OneHot", ctx.reshape(places, [1]), size, values, axis=-1), 0)
    return ctx.emit("OneHot", places, size, values, axis=axis)


@composed("Eye")
def eye(
    ctx: ExportContext, num_rows: Tensor, num_columns: Tensor, diagonal_index: Tensor,
    batch_shape: Tensor | None = None, *, output_type: Element,
) -> Tensor:  # fmt: skip
    """Range of rows + diagonal is equal to Range of columns; Expand for batches."""
    rows, columns, diagonal = (ctx.reshape(as_i64(ctx, x), []) for x in (num_rows, num_columns, diagonal_index))
    zero, one = ctx.constant(0), ctx.constant(1)
    row, column = (ctx.emit("Range", zero, count, one) for count in (rows, columns))
    on = ctx.emit("Equal", ctx.unsqueeze(ctx.emit("Add", row, diagonal), 1), ctx.unsqueeze(column, 0))
    matrix = ctx.cast(on, output_type)
    if batch_shape is None:
        return matrix
    sizes = ctx.concat(as_i64(ctx, batch_shape), ctx.unsqueeze(rows, 0), ctx.unsqueeze(columns, 0))
    return ctx.emit("Expand", matrix, sizes)


_OTHER_NUMBERS = "its random numbers have the same distribution, but are others"


def _unit(ctx: ExportContext, shape: Tensor, kind: Element, seed: int) -> Tensor:
    """Random numbers in [0, 1) of a computed shape."""
    assert kind.onnx is not None
    ctx.remark(_OTHER_NUMBERS)
    like = ctx.emit("Expand", ctx.constant(0, kind), shape)
    start = float(seed) if seed else None
    return ctx.emit("RandomUniformLike", like, dtype=kind.onnx.number, low=0.0, high=1.0, seed=start, element=kind)


@composed("RandomUniform")
def random_uniform(
    ctx: ExportContext, shape: Tensor, min_val: Tensor, max_val: Tensor, *, output_type: str, global_seed: int,
    op_seed: int, alignment: str,
) -> Tensor:  # fmt: skip
    """RandomUniformLike, Mul, Add; Floor for integers. The numbers are others than those of OpenVINO."""
    kind = min_val.element
    work = F64 if kind.bits > 32 or (not kind.is_float and kind.bits == 32) else F32
    low, high = (ctx.cast(ctx.reshape(x, []), work) for x in (min_val, max_val))
    unit = _unit(ctx, as_i64(ctx, shape), work, global_seed or op_seed)
    spread = ctx.emit("Mul", unit, ctx.emit("Sub", high, low))
    if not kind.is_float:
        spread = ctx.emit("Floor", spread)
    return ctx.cast(ctx.emit("Add", spread, low), kind)


@composed("Multinomial")
def multinomial(
    ctx: ExportContext, probs: Tensor, num_samples: Tensor, *, convert_type: str, with_replacement: bool,
    log_probs: bool, global_seed: int, op_seed: int,
) -> Tensor:  # fmt: skip
    """Cumulative probabilities below RandomUniformLike are counted; without replacement TopK of Gumbel noise."""
    rank, seed = probs.require_rank("the probabilities"), global_seed or op_seed
    rows = ctx.cast(probs, F32)
    count = ctx.reshape(as_i64(ctx, num_samples), [1])
    if not with_replacement:
        logs = rows if log_probs else ctx.emit("Log", rows)
        unit = _unit(ctx, ctx.emit("Shape", rows), F32, seed)
        noise = ctx.emit("Neg", ctx.emit("Log", ctx.emit("Neg", ctx.emit("Log", unit))))
        return ctx.emit_all("TopK", 2, ctx.emit("Add", logs, noise), count, axis=-1)[1]
    weights = ctx.emit("Exp", rows) if log_probs else rows
    sums = ctx.emit("CumSum", weights, ctx.constant(rank - 1))
    total = ctx.slice(sums, -1, None, -1)
    lead = [ctx.slice(ctx.emit("Shape", rows), 0, 1, 0)] if rank == 2 else []
    chosen = ctx.emit("Mul", _unit(ctx, ctx.concat(*lead, count), F32, seed), total)
    below = ctx.emit("Less", ctx.unsqueeze(sums, -2), ctx.unsqueeze(chosen, -1))
    return ctx.reduce("ReduceSum", ctx.cast(below, I64), [-1])
