"""Quantization: FakeQuantize; QuantizeLinear, DequantizeLinear and products of integers, recognised.

Compressed weights are a constant of integers, which is converted, shifted and scaled: DequantizeLinear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.ops.convolution import known_sizes, window_attributes
from converters.ir_to_onnx.ops.elementwise import aligned
from converters.ir_to_onnx.ops.generation import converted
from converters.ir_to_onnx.opsets import accepted, is_computed
from converters.ir_to_onnx.registry import composed, constant_of, has_flag, producer, producer_of, recognises
from irexec.analysis.attributes import typed_attributes
from irexec.dtypes.elements import F16, F32, I8, I32, U8, Element, element
from irexec.ir.constants import constant_value
from irexec.ir.dims import PartialShape
from irexec.ir.graph import Node, Value
from irexec.schema.registry import resolve

_BYTES = {256, 255}
_TOLERANCE = 1e-4
"""Distance of a zero point from an integer, in levels: bounds are rounded to their type."""


@dataclass(frozen=True)
class _Scaling:
    """Scale and zero point of a range, and the axis along which they vary; None if they do not."""

    scale: np.ndarray
    zero: np.ndarray
    axis: int | None


@composed("FakeQuantize")
def fake_quantize(
    ctx: ExportContext, data: Tensor, input_low: Tensor, input_high: Tensor, output_low: Tensor, output_high: Tensor, *,
    levels: int, **alignment: Any,
) -> Tensor:  # fmt: skip
    """QuantizeLinear and DequantizeLinear of 255 or 256 levels if one is 0; others by Sub, Mul, Round and Where."""
    bounds = [aligned(ctx, data, x, **alignment) for x in (input_low, input_high, output_low, output_high)]
    if levels in _BYTES and data.element is F32:
        into, out = _scaling(data, bounds[0], bounds[1], levels), _scaling(data, bounds[2], bounds[3], levels)
        if into is not None and out is not None:
            return _quantized(ctx, data, into, out, levels)
    return _composed(ctx, data, bounds, levels)


def _scaling(data: Tensor, low: Tensor, high: Tensor, levels: int) -> _Scaling | None:
    """The scale of a range whose zero is a level; None if it is not, or varies along several axes."""
    if low.value is None or high.value is None or data.rank is None:
        return None
    bottom, top = np.broadcast_arrays(low.value.astype(np.float64), high.value.astype(np.float64))
    scale = (top - bottom) / (levels - 1)
    if bottom.size == 0 or (scale <= 0).any() or not np.isfinite(scale).all():
        return None
    zero = -bottom / scale
    whole = np.rint(zero)
    if (np.abs(zero - whole) > _TOLERANCE).any() or (whole < 0).any() or (whole > levels - 1).any():
        return None
    axes = [data.rank - bottom.ndim + i for i, size in enumerate(bottom.shape) if size > 1]
    if len(axes) > 1:
        return None
    axis = axes[0] if axes else None
    return _Scaling(scale.ravel() if axes else scale.ravel()[0], whole.ravel() if axes else whole.ravel()[0], axis)


def _quantized(ctx: ExportContext, data: Tensor, into: _Scaling, out: _Scaling, levels: int) -> Tensor:
    """Levels as bytes."""
    middle = levels // 2
    known = constant_value(data.constant) if data.constant is not None else data.value
    # Weights are signed if their zero is in the middle. Data are not: ONNX Runtime 1.32 loses the type of their zero.
    signed = known is not None and bool((into.zero == middle).all() and (out.zero == middle).all())
    kind: Element = I8 if signed else U8
    offset = 128 if signed and levels == 256 else 127 if signed else 0
    scales = [ctx.constant(part.scale, F32, shared=False) for part in (into, out)]
    zeros = [ctx.constant(part.zero - offset, kind, shared=False) for part in (into, out)]
    if known is not None:
        index = np.rint(known / _shaped(into.scale, into.axis, data) + _shaped(into.zero, into.axis, data))
        level = ctx.constant(np.clip(index, 0, levels - 1) - offset, kind)
        return ctx.emit("DequantizeLinear", level, scales[1], zeros[1], axis=out.axis, element=F32)
    if levels == 255:
        # The 256th level would be the lowest of i8, or the highest of u8.
        low = ctx.constant(_shaped(-into.zero * into.scale, into.axis, data), F32)
        high = ctx.constant(_shaped((levels - 1 - into.zero) * into.scale, into.axis, data), F32)
        data = ctx.emit("Min", ctx.emit("Max", data, low), high)
    level = ctx.emit("QuantizeLinear", data, scales[0], zeros[0], axis=into.axis)
    return ctx.emit("DequantizeLinear", level, scales[1], zeros[1], axis=out.axis, element=F32)


def _shaped(values: np.ndarray, axis: int | None, data: Tensor) -> np.ndarray:
    """Values along an axis of the data."""
    rank = data.require_rank("the data")
    return values if axis is None else values.reshape([-1] + [1] * (rank - axis - 1))


def _composed(ctx: ExportContext, data: Tensor, bounds: list[Tensor], levels: int) -> Tensor:
    kind = data.element
    x = ctx.cast(data, F32) if kind.bits < 32 else data
    low, high, out_low, out_high = (ctx.cast(bound, x.element) for bound in bounds)
    steps = ctx.scalar(levels - 1, x)
    scaled = ctx.emit("Mul", ctx.emit("Sub", x, low), steps)
    index = ctx.emit("Round", ctx.emit("Div", scaled, ctx.emit("Sub", high, low)))
    inside = _values(ctx, index, out_low, out_high, levels)
    below = ctx.emit("LessOrEqual", x, ctx.emit("Min", low, high))
    above = ctx.emit("Greater", x, ctx.emit("Max", low, high))
    return ctx.cast(ctx.where(below, out_low, ctx.where(above, out_high, inside)), kind)


def _values(ctx: ExportContext, index: Tensor, low: Tensor, high: Tensor, levels: int) -> Tensor:
    """The levels by index: (index - zero) * step where one is 0, else index * step + low."""
    if low.value is not None and high.value is not None:
        bottom, top = low.value.astype(np.float64), high.value.astype(np.float64)
        step = (top - bottom) / (levels - 1)
        with np.errstate(all="ignore"):
            zero = -bottom / step
        if np.isfinite(zero).all() and (np.abs(zero - np.rint(zero)) < _TOLERANCE).all():
            from_zero = ctx.emit("Sub", index, ctx.constant(np.rint(zero), index.element))
            return ctx.emit("Mul", from_zero, ctx.constant(step, index.element))
    size = ctx.emit("Div", ctx.emit("Sub", high, low), ctx.scalar(levels - 1, index))
    return ctx.emit("Add", ctx.emit("Mul", index, size), low)


@composed("FakeConvert")
def fake_convert(
    ctx: ExportContext, data: Tensor, scale: Tensor, shift: Tensor | None = None, *, destination_type: str
) -> Tensor:
    """Mul, Sub, Cast to f16 and to an 8-bit float and back, Add, Div; values beyond the type are clipped before."""
    if destination_type == "f8e4m3":
        ctx.remark("f8e4m3 is rounded as ONNX does it: small values and NaN differ from OpenVINO's FakeConvert")
    kind = data.element
    scaled = ctx.emit("Mul", data, scale)
    if shift is not None:
        scaled = ctx.emit("Sub", scaled, shift)
    halves = ctx.cast(scaled, F16)
    largest = 57344.0 if destination_type == "f8e5m2" else 448.0
    bounded = ctx.emit("Clip", halves, ctx.scalar(-largest, halves), ctx.scalar(largest, halves))
    result = ctx.cast(converted(ctx, bounded, element(destination_type)), kind)
    if shift is not None:
        result = ctx.emit("Add", result, shift)
    return ctx.emit("Div", result, scale)


_BLOCKED, _HALVES = 21, 19
"""Opsets since which DequantizeLinear takes blocks, and scales of f16."""


@recognises("Multiply")
def dequantized(ctx: ExportContext) -> Tensor | None:
    """Multiply(Convert(integers) - zero point, scale) of integers of 8 bits or fewer."""
    node = ctx.node
    for levels, scale in (node.inputs, node.inputs[::-1]):
        found = None if levels is None or scale is None else _dequantized(ctx, levels, scale)
        if found is not None:
            return found
    return None


def _dequantized(ctx: ExportContext, levels: Value, scale: Value) -> Tensor | None:
    source, zero = _integers(ctx, levels)
    factors, kind = constant_of(scale), ctx.element_of(scale)
    if source is None or factors is None or kind is None:
        return None
    integers = ctx.writer.tensor(source)
    if kind is F16 and ctx.opset < _HALVES:
        # The product is exact in f32 and rounded by the cast; ONNX Runtime does not round a Mul of halves.
        kind = F32
    layout = _layout(integers.shape, factors.shape)
    if layout is None or not _is_taken(ctx, "DequantizeLinear", integers.element, kind, layout):
        return None
    # Written if it is 0 as well: where it is absent, ONNX Runtime 1.32 takes i8 for u8 when it moves quantization.
    points = _zero_points(0 if zero is None else zero, integers.element, layout.shape)
    if points is None:
        return None
    return ctx.emit(
        "DequantizeLinear", integers, ctx.constant(factors.reshape(layout.shape), kind, shared=False),
        ctx.constant(points, integers.element, shared=False), axis=layout.axis, block_size=layout.block, element=kind,
    )  # fmt: skip


def _integers(ctx: ExportContext, levels: Value) -> tuple[Value | None, np.ndarray | None]:
    """The integers of few bits that are converted, and the zero point that is subtracted from them."""
    node, zero = levels.node, None
    if node.type == "Subtract":
        zero, minuend = constant_of(node.inputs[1]), node.inputs[0]
        if zero is None or minuend is None:
            return None, None
        node = minuend.node
    source = node.inputs[0] if node.type == "Convert" else None
    kind = None if source is None else ctx.element_of(source)
    return (source, zero) if kind is not None and kind.is_integer and kind.bits <= 8 else (None, None)


def _quantized_levels(ctx: ExportContext, divide: Node, zero: np.ndarray | None, kind: Element) -> Tensor | None:
    if divide.inputs[0] is None or divide.inputs[1] is None:
        return None
    x, scale = ctx.writer.tensor(divide.inputs[0]), constant_of(divide.inputs[1])
    layout = None if scale is None or x.element is not F32 else _layout(x.shape, scale.shape)
    if scale is None or layout is None or layout.block is not None:
        return None
    points = _zero_points(0 if zero is None else zero, kind, layout.shape)
    if points is None:
        return None
    return ctx.emit(
        "QuantizeLinear", x, ctx.constant(scale.reshape(layout.shape), F32, shared=False),
        ctx.constant(points, kind, shared=False), axis=layout.axis,
    )  # fmt: skip


@dataclass(frozen=True)
class _Layout:
    """The shape of the scale as DequantizeLinear takes it, its axis, and the size of blocks along it."""

    shape: tuple[int, ...]
    axis: int | None
    block: int | None


def _layout(weights: PartialShape, scale: tuple[int, ...]) -> _Layout | None:
    if weights is None or len(scale) > len(weights):
        return None
    rank = len(weights)
    full = (1,) * (rank - len(scale)) + tuple(scale)
    varying = [axis for axis, size in enumerate(full) if size != 1]
    if not varying:
        return _Layout((), None, None)
    if len(varying) == 1 and full[varying[0]] == weights[varying[0]]:
        return _Layout((full[varying[0]],), varying[0], None)
    blocked = [axis for axis in range(rank) if full[axis] != weights[axis]]
    whole = weights[blocked[0]] if len(blocked) == 1 else None
    if not isinstance(whole, int) or whole % full[blocked[0]]:
        return None
    return _Layout(full, blocked[0], whole // full[blocked[0]])


def _is_taken(ctx: ExportContext, type: str, kind: Element, scale: Element, layout: _Layout) -> bool:
    """Whether the operator of the opset, and its kernel in ONNX Runtime, takes the types and the blocks."""
    if layout.block is not None and ctx.opset < _BLOCKED:
        return False
    variables = ("T", "tensor(float)") if ctx.opset < _HALVES else ("T1", "T2")
    types = accepted(type, ctx.opset, "", variables[0])
    scales = accepted(type, ctx.opset, "", variables[1])
    is_taken = kind in types and scale in scales
    return is_taken and is_computed(type, ctx.opset, dict(zip(variables, (kind, scale), strict=True)))


def _zero_points(zero: Any, kind: Element, shape: tuple[int, ...]) -> np.ndarray | None:
    """Zero points of the type of the weights, in the shape of the scale; None if they are not integers of that type."""
    values = np.asarray(zero, np.float64)
    lowest = -(1 << (kind.bits - 1)) if kind.kind == "signed" else 0
    if (values != np.rint(values)).any() or (values < lowest).any() or (values >= lowest + (1 << kind.bits)).any():
        return None
    count = int(np.prod(shape, dtype=np.int64))
    if values.size not in (1, count):
        return None
    whole: np.ndarray = np.full(count, values.ravel()[0]) if values.size == 1 else values.ravel()
    return whole.reshape(shape)


_PAIRS = ((U8, U8), (U8, I8), (I8, I8))
"""Types of both factors that ONNX Runtime has kernels for."""


@dataclass(frozen=True)
class _Levels:
    """Bytes, and the zero point that is subtracted from them: a scalar or a vector; None if there is none."""

    bytes: Tensor
    zero: Tensor | None


@dataclass(frozen=True)
class _Product:
    """A convolution or matrix product of bytes.

    Attributes:
        operator: Conv or MatMul.
        left, right: the factors.
        bias: integers that are added; None if there are none.
        attributes: of the operator.
    """

    operator: str
    left: _Levels
    right: _Levels
    bias: Tensor | None
    attributes: dict[str, Any]


@recognises("Convert")
def integer_product(ctx: ExportContext) -> Tensor | None:
    """MatMulInteger or ConvInteger: a product of bytes, converted to i32."""
    source = ctx.node.inputs[0]
    if ctx.facts[0].element is not I32 or source is None or not _is_float(ctx, source):
        return None
    found = _product(ctx, source)
    if found is None or found.bias is not None or (found.operator == "Conv" and not _product_is_taken(found.right)):
        return None
    return ctx.emit(
        f"{found.operator}Integer", found.left.bytes, found.right.bytes, found.left.zero, found.right.zero,
        element=I32, **found.attributes,
    )  # fmt: skip


def _product_is_taken(filter: _Levels) -> bool:
    """Whether ONNX Runtime's ConvInteger takes the filter: unsigned bytes with one zero point."""
    return filter.bytes.element is U8 and (filter.zero is None or filter.zero.shape in ((), (1,)))


def _quantized_product(ctx: ExportContext) -> Tensor | None:
    """QLinearMatMul or QLinearConv: a product of bytes times both scales, divided by a scale, rounded to bytes."""
    kind = ctx.facts[0].element
    found = None if kind not in (U8, I8) else rounded_levels(ctx.node, kind)
    multiply = None if found is None else producer_of(found[0].inputs[0], "Multiply")
    scales = None if multiply is None else producer_of(multiply.inputs[1], "Multiply")
    if found is None or multiply is None or scales is None or kind is None or multiply.inputs[0] is None:
        return None
    product = _product(ctx, multiply.inputs[0])
    if product is None or product.left.bytes.element is not kind:
        return None
    channel = 1 if product.operator == "Conv" else -1
    left, right = _vector(ctx, scales.inputs[0], F32, None), _vector(ctx, scales.inputs[1], F32, channel)
    scale, zero = _vector(ctx, found[0].inputs[1], F32, None), _vector(ctx, found[1], kind, None)
    if left is None or right is None or scale is None or zero is None:
        return None
    zeros = [part.zero or ctx.constant(0, part.bytes.element, shared=False) for part in (product.left, product.right)]
    bias = [] if product.bias is None else [product.bias]
    return ctx.emit(
        f"QLinear{product.operator}", product.left.bytes, left, zeros[0], product.right.bytes, right, zeros[1], scale,
        zero, *bias, element=kind, **product.attributes,
    )  # fmt: skip


def _product(ctx: ExportContext, value: Value) -> _Product | None:
    """The product that is a value, in f32 or converted to it."""
    node = value.node if value.node.type != "Convert" or value.node.inputs[0] is None else value.node.inputs[0].node
    bias = None
    if node.type == "Add" and node.inputs[0] is not None:
        bias, node = _vector(ctx, node.inputs[1], I32, 1), node.inputs[0].node
        if bias is None or "Convolution" not in node.type:
            return None
    if node.type == "MatMul":
        left, right = _levels(ctx, node.inputs[0], None), _levels(ctx, node.inputs[1], -1)
        if left is None or right is None or has_flag(node, "transpose_a") or has_flag(node, "transpose_b"):
            return None
        return _Product("MatMul", left, right, bias, {}) if _is_pair(left, right) else None
    return _convolution(ctx, node, bias) if node.type in ("Convolution", "GroupConvolution") else None


def _convolution(ctx: ExportContext, node: Node, bias: Tensor | None) -> _Product | None:
    filter, groups = node.inputs[1], 1
    if node.type == "GroupConvolution":
        reshape = producer_of(filter, "Reshape")
        shape = None if filter is None else ctx.writer.tensor(filter).shape
        if reshape is None or not shape or not isinstance(shape[0], int):
            return None
        filter, groups = reshape.inputs[0], shape[0]
    left, right = _levels(ctx, node.inputs[0], None), _levels(ctx, filter, 0)
    if left is None or right is None or not _is_pair(left, right):
        return None
    kernel, data, filters = known_sizes(right.bytes.shape, 2), left.bytes.shape, right.bytes.shape
    if kernel is None or data is None or filters is None or not isinstance(filters[1], int):
        return None
    if data[1] != groups * filters[1]:
        return None
    given = typed_attributes(node, resolve(node.type, node.version)).require()["attributes"]
    options = window_attributes(given, data, kernel, len(kernel))
    return None if "auto_pad" in options else _Product("Conv", left, right, bias, options | {"group": groups})


def _is_pair(left: _Levels, right: _Levels) -> bool:
    return (left.bytes.element, right.bytes.element) in _PAIRS


def _levels(ctx: ExportContext, value: Value | None, axis: int | None) -> _Levels | None:
    """Convert(bytes), or Convert(bytes) - Convert(zero point), which varies along an axis at most."""
    subtract = producer_of(value, "Subtract")
    convert = producer_of(value if subtract is None else subtract.inputs[0], "Convert")
    source = None if convert is None else convert.inputs[0]
    if source is None or ctx.element_of(source) not in (U8, I8):
        return None
    tensor = ctx.writer.tensor(source)
    zero = None if subtract is None else _vector(ctx, subtract.inputs[1], tensor.element, axis, tensor.rank)
    return None if subtract is not None and zero is None else _Levels(tensor, zero)


def _vector(
    ctx: ExportContext, value: Value | None, kind: Element, axis: int | None, rank: int | None = None
) -> Tensor | None:
    """A parameter as the operators take it: of one element, or a vector along an axis.

    Args:
        ctx: the context.
        value: the parameter, converted and unsqueezed.
        kind: its element type before.
        axis: of the data; None for a parameter of one element.
        rank: of the data; None where it is that of ``value``.
    """
    source = value
    while source is not None and source.node.type in ("Convert", "Unsqueeze") and source.node.inputs[0] is not None:
        source = source.node.inputs[0]
    shape = None if value is None else ctx.writer.tensor(value).shape
    if value is None or source is None or shape is None or ctx.element_of(source) is not kind:
        return None
    sizes = [size for size in shape if isinstance(size, int)]
    varying = [i for i, size in enumerate(sizes) if size != 1]
    if len(sizes) != len(shape) or len(varying) > 1:
        return None
    if varying and (axis is None or varying[0] != axis % (rank or len(shape)) - ((rank or len(shape)) - len(shape))):
        return None
    part = constant_of(source)
    if part is not None:
        return ctx.constant(part.reshape(-1) if varying else part.reshape(()), kind, shared=False)
    tensor = ctx.writer.tensor(source)
    return tensor if tensor.rank is not None and tensor.rank <= 1 else None


def _is_float(ctx: ExportContext, value: Value) -> bool:
    kind = ctx.element_of(value)
    return kind is not None and kind.is_float


def rounded_levels(convert: Node, kind: Element | None) -> tuple[Node, Value | None] | None:
    """The Divide of Convert(Clamp(Round(x / scale) + zero point)), and the zero point; None of other layers."""
    clamp = producer(convert, 0, "Clamp")
    limits = None if clamp is None else (float(clamp.attributes["min"]), float(clamp.attributes["max"]))
    if limits != ((-128.0, 127.0) if kind is I8 else (0.0, 255.0)):
        return None
    add = producer(clamp, 0, "Add")
    rounded = producer(clamp if add is None else add, 0, "Round")
    divide = producer(rounded, 0, "Divide")
    if rounded is None or divide is None or rounded.attributes.get("mode", "half_to_even").lower() != "half_to_even":
        return None
    return divide, None if add is None else add.inputs[1]


@recognises("Convert")
def quantized(ctx: ExportContext) -> Tensor | None:
    """Convert(Clamp(Round(x / scale) + zero point)) to bytes, clamped to their range: the end of a quantised product
    too."""
    product = _quantized_product(ctx)
    if product is not None:
        return product
    kind = ctx.facts[0].element
    found = None if kind not in (I8, U8) else rounded_levels(ctx.node, kind)
    if found is None or kind is None:
        return None
    zero = constant_of(found[1])
    return None if found[1] is not None and zero is None else _quantized_levels(ctx, found[0], zero, kind)
