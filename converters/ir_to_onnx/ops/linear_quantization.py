"""QuantizeLinear and DequantizeLinear, recognised from the layers that compute them.

Compressed weights are a constant of integers, which is converted, shifted and scaled: DequantizeLinear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.kernels import is_computed
from converters.ir_to_onnx.levels import rounded_levels
from converters.ir_to_onnx.opsets import accepted
from converters.ir_to_onnx.recognition import constant_of, recognises
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F16, F32, I8, U8, Element
from irexec.ir.dims import PartialShape
from irexec.ir.graph import Node, Value

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


@recognises("Convert")
def quantized(ctx: ExportContext) -> Tensor | None:
    """Convert(Clamp(Round(x / scale) + zero point)) to bytes, clamped to their range."""
    kind = ctx.facts[0].element
    found = None if kind not in (I8, U8) else rounded_levels(ctx.node, kind)
    if found is None or kind is None:
        return None
    zero = constant_of(found[1])
    return None if found[1] is not None and zero is None else _quantized(ctx, found[0], zero, kind)


def _quantized(ctx: ExportContext, divide: Node, zero: np.ndarray | None, kind: Element) -> Tensor | None:
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
