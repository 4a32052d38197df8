"""Compressed weights as DequantizeLinear: a constant of integers that is converted, shifted and scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.opsets import accepted
from converters.ir_to_onnx.recognition import recognises
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import Element
from irexec.ir.constants import constant_value
from irexec.ir.graph import Node, Value

_BLOCKED, _HALVES = 21, 19
"""Opsets since which DequantizeLinear takes blocks, and scales of f16."""


@recognises("Multiply")
def dequantized(ctx: ExportContext) -> Tensor | None:
    """Multiply(Convert(constant) - zero point, scale) of 8 bits or fewer."""
    node = ctx.node
    for levels, scale in (node.inputs, node.inputs[::-1]):
        found = None if levels is None or scale is None else _dequantized(ctx, levels, scale)
        if found is not None:
            return found
    return None


def _dequantized(ctx: ExportContext, levels: Value, scale: Value) -> Tensor | None:
    weights, zero = _weights(levels)
    factors = _constant(scale)
    kind = ctx.element_of(scale)
    if weights is None or factors is None or kind is None or weights.node.constant is None:
        return None
    constant = weights.node.constant
    layout = _layout(constant.shape, factors.shape)
    if layout is None or not _is_taken(ctx, constant.element, kind, layout):
        return None
    # Written if it is 0 as well: where it is absent, ONNX Runtime 1.32 takes i8 for u8 when it moves quantization.
    points = _zero_points(0 if zero is None else zero, constant.element, layout.shape)
    if points is None:
        return None
    return ctx.emit(
        "DequantizeLinear", ctx.writer.tensor(weights), ctx.constant(factors.reshape(layout.shape), kind, shared=False),
        ctx.constant(points, constant.element, shared=False),
        axis=layout.axis, block_size=layout.block, element=kind,
    )  # fmt: skip


def _weights(levels: Value) -> tuple[Value | None, np.ndarray | None]:
    """The constant of integers, and the zero point that is subtracted from it."""
    node = levels.node
    if node.type == "Subtract" and node.inputs[0] is not None and node.inputs[1] is not None:
        zero = _constant(node.inputs[1])
        return (None, None) if zero is None else (_integers(node.inputs[0]), zero)
    return _integers(levels), None


def _integers(value: Value) -> Value | None:
    """The constant of integers of few bits that a Convert reads."""
    source = value.node.inputs[0] if value.node.type == "Convert" else None
    constant = None if source is None else source.node.constant
    return source if constant is not None and constant.element.is_integer and constant.element.bits <= 8 else None


def _constant(value: Value) -> np.ndarray | None:
    """The elements of a constant, also of one that is converted."""
    node: Node = value.node
    if node.type == "Convert" and node.inputs[0] is not None:
        node = node.inputs[0].node
    return None if node.constant is None else constant_value(node.constant)


@dataclass(frozen=True)
class _Layout:
    """The shape of the scale as DequantizeLinear takes it, its axis, and the size of blocks along it."""

    shape: tuple[int, ...]
    axis: int | None
    block: int | None


def _layout(weights: tuple[int, ...], scale: tuple[int, ...]) -> _Layout | None:
    rank = len(weights)
    if len(scale) > rank:
        return None
    full = (1,) * (rank - len(scale)) + tuple(scale)
    varying = [axis for axis, size in enumerate(full) if size != 1]
    if not varying:
        return _Layout((), None, None)
    if len(varying) == 1 and full[varying[0]] == weights[varying[0]]:
        return _Layout((full[varying[0]],), varying[0], None)
    blocked = [axis for axis in range(rank) if full[axis] != weights[axis]]
    if len(blocked) != 1 or weights[blocked[0]] % full[blocked[0]]:
        return None
    return _Layout(full, blocked[0], weights[blocked[0]] // full[blocked[0]])


def _is_taken(ctx: ExportContext, kind: Element, scale: Element, layout: _Layout) -> bool:
    """Whether DequantizeLinear of the opset takes the types and the blocks."""
    if layout.block is not None and ctx.opset < _BLOCKED:
        return False
    variables = ("T", "tensor(float)") if ctx.opset < _HALVES else ("T1", "T2")
    types = accepted("DequantizeLinear", ctx.opset, "", variables[0])
    scales = accepted("DequantizeLinear", ctx.opset, "", variables[1])
    return kind in types and scale in scales


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
