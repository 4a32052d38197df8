"""Sizes of attention: equal ones, and the axis of heads that Reshape and Transpose split from the last axis."""

from __future__ import annotations

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.recognition import constant_of, producer_of
from converters.ir_to_onnx.tensors import Tensor
from irexec.ir.dims import Shape, Size
from irexec.ir.graph import Value

_HEADS_FIRST = [0, 2, 1, 3]


def are_equal(a: Size, b: Size) -> bool:
    """Whether two sizes certainly are equal."""
    return a == b and (isinstance(a, int) or bool(a.name))


def shape_of_value(ctx: ExportContext, value: Value) -> Shape:
    """The shape of a value; () if its rank is not known."""
    return ctx.writer.tensor(value).shape or ()


def moved(value: Value | None) -> Value | None:
    """The source of a Transpose that exchanges the axes of heads and of the length."""
    transpose = producer_of(value, "Transpose")
    order = None if transpose is None else constant_of(transpose.inputs[1])
    return (
        transpose.inputs[0] if transpose is not None and order is not None and order.tolist() == _HEADS_FIRST else None
    )


def flat(ctx: ExportContext, value: Value) -> Tensor | None:
    """(batch, length, heads * size), from which heads were split."""
    reshape = producer_of(moved(value), "Reshape")
    source = None if reshape is None else reshape.inputs[0]
    if source is None:
        return None
    tensor, heads = ctx.writer.tensor(source), shape_of_value(ctx, value)
    return tensor if tensor.shape is not None and is_joined(tensor.shape, heads, heads) else None


def is_joined(flat: Shape, heads: Shape, sizes: Shape) -> bool:
    """Whether a shape is (batch, length, heads * size)."""
    number, size = heads[1], sizes[3]
    if len(flat) != 3 or not isinstance(number, int) or not isinstance(size, int):
        return False
    return are_equal(flat[0], heads[0]) and are_equal(flat[1], heads[2]) and flat[2] == number * size
