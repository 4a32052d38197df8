"""Element-wise operators on two and more tensors: arithmetic, comparison, logic, bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converters.onnx.context import Context
from converters.onnx.registry import add, translates
from irexec.errors import OpError
from irexec.ir.graph import Value

_BINARY = {
    "Add": "Add", "Sub": "Subtract", "Mul": "Multiply", "And": "LogicalAnd", "Or": "LogicalOr", "Xor": "LogicalXor",
    "Equal": "Equal", "Greater": "Greater", "GreaterOrEqual": "GreaterEqual", "Less": "Less", "LessOrEqual": "LessEqual",
    "BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor",
}  # fmt: skip


def legacy(b: Context, x: Value, y: Value, broadcast: int, axis: int | None) -> Value:
    """The second operand as opsets before 7 align it: from ``axis`` on, or at the end."""
    if not broadcast or axis is None:
        return y
    trailing = b.rank(x) - (axis % b.rank(x)) - b.rank(y)
    if trailing <= 0:
        return y
    return b.emit("Unsqueeze", y, [b.rank(y) + i for i in range(trailing)])


def _table(operator: str, emit: Callable[[Context, Value, Value], Any]) -> None:
    def new(b: Context, x: Value, y: Value) -> Any:
        return emit(b, x, y)

    def old(b: Context, x: Value, y: Value, *, broadcast: int = 0, axis: int | None = None) -> Any:
        return emit(b, x, legacy(b, x, y, broadcast, axis))

    add(operator, 1, "", old)
    add(operator, 7, "", new)


def _plain(type: str) -> Callable[[Context, Value, Value], Any]:
    return lambda b, x, y: b.emit(type, x, y)


def _divide(b: Context, x: Value, y: Value) -> Any:
    """Of integers towards zero."""
    whole = b.element(x).is_integer
    return b.emit("Divide", x, y, m_pythondiv=not whole)


def _power(b: Context, x: Value, y: Value) -> Any:
    """The result has the type of the base."""
    base, exponent = b.element(x), b.element(y)
    if base is exponent:
        return b.emit("Power", x, y)
    if base.is_integer and exponent.is_float:
        raised = b.emit("Power", b.emit("Convert", x, destination_type=exponent), y)
        return b.emit("Convert", raised, destination_type=base)
    return b.emit("Power", x, b.emit("Convert", y, destination_type=base))


for _operator, _type in _BINARY.items():
    _table(_operator, _plain(_type))
_table("Div", _divide)
_table("Pow", _power)


@translates("Mod", since=10)
def mod(b: Context, x: Value, y: Value, *, fmod: int = 0) -> Value:
    """The sign of the dividend with fmod, else of the divisor."""
    return b.emit("Mod" if fmod else "FloorMod", x, y)


def _fold(b: Context, type: str, inputs: tuple[Value, ...]) -> Value:
    if not inputs:
        raise OpError("has no inputs")
    result = inputs[0]
    for value in inputs[1:]:
        result = b.emit(type, result, value)
    return result


@translates("Max")
def maximum(b: Context, *inputs: Value) -> Value:
    return _fold(b, "Maximum", inputs)


@translates("Min")
def minimum(b: Context, *inputs: Value) -> Value:
    return _fold(b, "Minimum", inputs)


@translates("Sum")
def total(b: Context, *inputs: Value) -> Value:
    return _fold(b, "Add", inputs)


@translates("Mean")
def mean(b: Context, *inputs: Value) -> Value:
    return b.emit("Divide", _fold(b, "Add", inputs), b.constant(len(inputs), inputs[0]))


@translates("BitShift", since=11)
def bit_shift(b: Context, x: Value, y: Value, *, direction: str) -> Value:
    if direction not in ("LEFT", "RIGHT"):
        raise OpError(f"direction is {direction!r}, expected LEFT or RIGHT")
    return b.emit("BitwiseLeftShift" if direction == "LEFT" else "BitwiseRightShift", x, y)


@translates("Where", since=9)
def where(b: Context, condition: Value, x: Value, y: Value) -> Value:
    return b.emit("Select", condition, x, y)


@translates("PRelu")
def prelu(b: Context, x: Value, slope: Value) -> Value:
    """ONNX aligns the slope at the end; IR takes a vector of slopes for the channels."""
    missing = b.rank(x) - b.rank(slope)
    if b.opset < 7 and b.rank(slope) == 1 and b.rank(x) > 1 and b.sizes(slope)[0] != 1:
        return b.emit("PRelu", x, slope)
    if missing > 0:
        slope = b.emit("Unsqueeze", slope, list(range(missing)))
    if b.element(x).is_integer:
        return b.emit("Select", b.emit("Less", x, b.constant(0, x)), b.emit("Multiply", x, slope), x)
    return b.emit("PRelu", x, slope)


@translates("Not")
def logical_not(b: Context, x: Value) -> Value:
    return b.emit("LogicalNot", x)


@translates("BitwiseNot", since=18)
def bitwise_not(b: Context, x: Value) -> Value:
    return b.emit("BitwiseNot", x)
