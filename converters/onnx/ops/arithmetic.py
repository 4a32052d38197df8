"""Element-wise operators on two and more tensors: arithmetic, comparison, logic, bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from converters.onnx.context import Context
from converters.onnx.expression import Expression
from converters.onnx.registry import add, translates
from irexec.errors import OpError
from irexec.ir.graph import Value

# With an explicit axis before opset 7.
_OLD = {
    "Add": "Add", "Sub": "Subtract", "Mul": "Multiply", "And": "LogicalAnd", "Or": "LogicalOr", "Xor": "LogicalXor", "Equal": "Equal",
    "Greater": "Greater", "Less": "Less",
}  # fmt: skip
_NEW = {
    12: {"GreaterOrEqual": "GreaterEqual", "LessOrEqual": "LessEqual"},
    18: {"BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor"},
}

Emit = Callable[[Context, Value, Value], Any]


def _aligned(b: Context, x: Value, y: Value, axis: int | None) -> Value:
    """The second operand as opsets before 7 stretch it: its axes are those of the first from ``axis`` on, or its last."""
    if axis is None:
        return y
    behind = b.rank(x) - b.axis(axis, x) - b.rank(y)
    return b.unsqueeze(y, [b.rank(y) + i for i in range(behind)])


def _row(operator: str, since: int, emit: Emit) -> None:
    def translate(b: Context, x: Value, y: Value) -> Any:
        return emit(b, x, y)

    add(operator, since, "", translate)


def _old_row(operator: str, emit: Emit) -> None:
    def translate(b: Context, x: Value, y: Value, *, broadcast: int = 0, axis: int | None = None) -> Any:
        return emit(b, x, _aligned(b, x, y, axis) if broadcast else y)

    add(operator, 1, "", translate)
    _row(operator, 7, emit)


def _plain(type: str) -> Emit:
    return lambda b, x, y: b.emit(type, x, y)


def _divide(b: Context, x: Value, y: Value) -> Any:
    """Of integers towards zero."""
    return b.emit("Divide", x, y, m_pythondiv=not b.element(x).is_integer)


def _power(b: Context, x: Value, y: Value) -> Any:
    """Computed in the exponent's type where that is the wider float; the result has the type of the base."""
    base, exponent = b.element(x), b.element(y)
    wide = exponent if exponent.is_float and (base.is_integer or exponent.bits > base.bits) else base
    return b.convert(b.emit("Power", b.convert(x, wide), b.convert(y, wide)), base)


for _operator, _type in _OLD.items():
    _old_row(_operator, _plain(_type))
for _since, _names in _NEW.items():
    for _operator, _type in _names.items():
        _row(_operator, _since, _plain(_type))
_old_row("Div", _divide)
_old_row("Pow", _power)


@translates("Mod", since=10)
def mod(b: Context, x: Value, y: Value, *, fmod: int = 0) -> Value:
    """The sign of the dividend with fmod, else of the divisor."""
    return b.emit("Mod" if fmod else "FloorMod", x, y)


def _fold(b: Context, type: str, inputs: tuple[Value, ...]) -> Value:
    if not inputs:
        raise OpError("it has no inputs")
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
    """Shifts by the width of the type and more, or by less than 0, leave the sign: IR does not define them."""
    if direction not in ("LEFT", "RIGHT"):
        raise OpError(f"direction is {direction!r}, expected LEFT or RIGHT")
    kind, type = b.element(x), "BitwiseLeftShift" if direction == "LEFT" else "BitwiseRightShift"
    amounts = b.known(y)
    if amounts is not None and bool(((amounts >= 0) & (amounts < kind.bits)).all()):
        return b.emit(type, x, y)
    shift = Expression(b, y)
    beyond = shift > (kind.bits - 1)
    if kind.kind == "signed":
        beyond = beyond | (shift < 0)
    shifted = Expression(b, b.emit(type, x, beyond.choose(0, shift).value))
    if kind.kind == "signed" and direction == "RIGHT":
        return beyond.choose(Expression(b, b.emit(type, x, b.constant(kind.bits - 1, y))), shifted).value
    return beyond.choose(0, shifted).value


@translates("Where", since=9)
def where(b: Context, condition: Value, x: Value, y: Value) -> Value:
    return b.emit("Select", condition, x, y)
