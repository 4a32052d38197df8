"""QLinearConv, QLinearMatMul, ConvInteger and MatMulInteger, recognised from exact products of integers in floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.levels import rounded_levels
from converters.ir_to_onnx.ops.convolution import known_sizes, window_attributes
from converters.ir_to_onnx.recognition import constant_of, has_flag, producer_of, recognises
from converters.ir_to_onnx.tensors import Tensor
from irexec.analysis.attributes import typed_attributes
from irexec.dtypes.elements import F32, I8, I32, U8, Element
from irexec.ir.graph import Node, Value
from irexec.schema.registry import resolve

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
    if found is None or found.bias is not None or (found.operator == "Conv" and not _is_taken(found.right)):
        return None
    return ctx.emit(
        f"{found.operator}Integer", found.left.bytes, found.right.bytes, found.left.zero, found.right.zero,
        element=I32, **found.attributes,
    )  # fmt: skip


def _is_taken(filter: _Levels) -> bool:
    """Whether ONNX Runtime's ConvInteger takes the filter: unsigned bytes with one zero point."""
    return filter.bytes.element is U8 and (filter.zero is None or filter.zero.shape in ((), (1,)))


@recognises("Convert")
def quantized_product(ctx: ExportContext) -> Tensor | None:
    """QLinearMatMul or QLinearConv: a product of bytes times both scales, divided by a scale, rounded to bytes.

    This module is imported, and its recognisers are asked, before linear_quantization, whose operator is the end of it.
    """
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
