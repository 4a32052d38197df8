"""Element-wise operations: functions of one tensor, and of two that are broadcast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.registry import add, composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import BOOLEAN, F64, I64, Element
from irexec.errors import check


def aligned(ctx: ExportContext, a: Tensor, b: Tensor, mode: str, axis: int = 0) -> Tensor:
    """``b`` reshaped so that NumPy's broadcasting does what ``auto_broadcast`` asks."""
    if mode != "pdpd" or b.shape == ():
        return b
    rank, sizes = a.require_rank("the first input"), b.require_shape("the second input")
    start = rank - len(sizes) if axis == -1 else axis
    extra = len(sizes) - (rank - start)
    for size in sizes[rank - start :] if extra > 0 else ():
        check(size == 1, "the second input has more axes than the first, and they are not of size 1")
    if extra > 0:
        return ctx.squeeze(b, *range(rank - start, len(sizes)))
    added = -extra
    return ctx.unsqueeze(b, *range(len(sizes), len(sizes) + added)) if added else b


def through_float(ctx: ExportContext, function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A function of floats; of integers it is computed in f64, and the results are rounded, halves to even."""
    if x.element.is_float:
        return function(x)
    whole = ctx.emit("Round", function(ctx.cast(x, F64)), shape=x.shape)
    return rounded_cast(ctx, whole, x.element)


def rounded_cast(ctx: ExportContext, whole: Tensor, element: Element) -> Tensor:
    """Floats without a fraction as integers: bytes saturate, so that a negative result is 0 in u8."""
    if element.bits > 8:
        return ctx.cast(whole, element)
    limits = np.iinfo(element.carrier)
    clipped = ctx.emit("Clip", whole, ctx.scalar(limits.min, whole), ctx.scalar(limits.max, whole), shape=whole.shape)
    return ctx.cast(clipped, element)


_FUNCTIONS = {
    "Abs": "Abs", "Negative": "Neg", "Sign": "Sign", "Sqrt": "Sqrt", "Exp": "Exp", "Log": "Log",
    "Sin": "Sin", "Cos": "Cos", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan", "Sinh": "Sinh",
    "Cosh": "Cosh", "Tanh": "Tanh", "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Erf": "Erf",
    "Sigmoid": "Sigmoid",
}  # fmt: skip
_EXACT_OF_INTEGERS = ("Abs", "Negative", "Sign")


def _function(type: str, onnx: str) -> None:
    def translate(ctx: ExportContext, data: Tensor) -> Tensor:
        if type in _EXACT_OF_INTEGERS:
            return ctx.emit(onnx, data, shape=data.shape)
        return through_float(ctx, lambda x: ctx.emit(onnx, x, shape=x.shape), data)

    text = onnx if type in _EXACT_OF_INTEGERS else f"{onnx}; of integers computed in f64 and rounded"
    add(type, "exact", text, translate)


for _type, _onnx in _FUNCTIONS.items():
    _function(_type, _onnx)


@exact("Ceiling", "Floor")
def ceiling_floor(ctx: ExportContext, data: Tensor) -> Tensor:
    """Ceil, Floor; integers are unchanged."""
    if not data.element.is_float:
        return ctx.emit("Identity", data)
    return ctx.emit({"Ceiling": "Ceil", "Floor": "Floor"}[ctx.node.type], data)


@exact("Round")
def round_(ctx: ExportContext, data: Tensor, *, mode: str) -> Tensor:
    """Round; halves away from zero are composed: sign(x) * floor(abs(x) + 0.5)."""
    if not data.element.is_float:
        return ctx.emit("Identity", data)
    if mode == "half_to_even":
        return ctx.emit("Round", data)
    magnitude = ctx.emit("Abs", data)
    # Adding 0.5 to the largest float below 0.5 would give 1.
    whole = ctx.emit("Floor", magnitude)
    rest = ctx.emit("Sub", magnitude, whole)
    up = ctx.cast(ctx.emit("GreaterOrEqual", rest, ctx.scalar(0.5, data)), data.element)
    result = ctx.emit("Mul", ctx.emit("Sign", data), ctx.emit("Add", whole, up))
    # Infinity - infinity is NaN, which no comparison finds; -0 stays itself.
    return ctx.where(ctx.emit("Equal", whole, magnitude), data, result)


@exact("LogicalNot")
def logical_not(ctx: ExportContext, data: Tensor) -> Tensor:
    """Not."""
    return ctx.emit("Not", data)


@composed("BitwiseNot")
def bitwise_not(ctx: ExportContext, data: Tensor) -> Tensor:
    """BitwiseNot from opset 18 on, else -1 - x; Not of booleans."""
    if data.element is BOOLEAN:
        return ctx.emit("Not", data)
    if ctx.has("BitwiseNot"):
        return ctx.emit("BitwiseNot", data)
    top = -1 if data.element.kind == "signed" else (1 << data.element.bits) - 1
    return ctx.emit("Sub", ctx.scalar(top, data), data)


@exact("IsNaN")
def is_nan(ctx: ExportContext, data: Tensor) -> Tensor:
    """IsNaN."""
    return ctx.emit("IsNaN", data)


@exact("IsInf")
def is_inf(ctx: ExportContext, data: Tensor, *, detect_negative: bool, detect_positive: bool) -> Tensor:
    """IsInf."""
    return ctx.emit("IsInf", data, detect_negative=int(detect_negative), detect_positive=int(detect_positive))


@composed("IsFinite")
def is_finite(ctx: ExportContext, data: Tensor) -> Tensor:
    """x - x is equal to 0."""
    return ctx.emit("Equal", ctx.emit("Sub", data, data), ctx.scalar(0, data))


@composed("ErfInv")
def erf_inv(ctx: ExportContext, data: Tensor) -> Tensor:
    """Giles' approximation in f64, and two steps of Newton's method."""
    x = ctx.cast(data, F64)

    def number(value: float) -> Tensor:
        return ctx.constant(value, F64)

    def times(a: Tensor, b: Tensor) -> Tensor:
        return ctx.emit("Mul", a, b)

    w = ctx.emit("Neg", ctx.emit("Log", times(ctx.emit("Sub", number(1), x), ctx.emit("Add", number(1), x))))
    near, far = ctx.emit("Sub", w, number(2.5)), ctx.emit("Sub", ctx.emit("Sqrt", w), number(3))
    y = ctx.where(ctx.emit("Less", w, number(5)), _horner(ctx, near, _NEAR), _horner(ctx, far, _FAR))
    y = times(y, x)
    for _ in range(2):
        slope = times(number(2 / np.sqrt(np.pi)), ctx.emit("Exp", ctx.emit("Neg", times(y, y))))
        error = ctx.emit("Sub", ctx.emit("Erf", y), x)
        y = ctx.emit("Sub", y, ctx.emit("Div", error, slope))
    edge = ctx.emit("Equal", ctx.emit("Abs", x), number(1))
    infinite = times(x, number(np.inf))
    return ctx.where(edge, ctx.cast(infinite, data.element), ctx.cast(y, data.element))


_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
_FAR = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip
"""M. Giles, Approximating the erfinv function, GPU Computing Gems 2, 2011: single precision."""


def _horner(ctx: ExportContext, x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    total = ctx.constant(coefficients[0], F64)
    for value in coefficients[1:]:
        total = ctx.emit("Add", ctx.emit("Mul", total, x), ctx.constant(value, F64))
    return total


_BINARY = {
    "Add": "Add", "Subtract": "Sub", "Multiply": "Mul", "Maximum": "Max", "Minimum": "Min",
    "LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor", "Xor": "Xor",
    "Equal": "Equal", "Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
}  # fmt: skip


def _binary(type: str, onnx: str) -> None:
    def translate(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
        return ctx.emit(onnx, a, aligned(ctx, a, b, auto_broadcast))

    add(type, "exact", onnx, translate)


for _type, _onnx in _BINARY.items():
    _binary(_type, _onnx)


@composed("NotEqual")
def not_equal(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
    """Not(Equal(a, b))."""
    return ctx.emit("Not", ctx.emit("Equal", a, aligned(ctx, a, b, auto_broadcast)))


@exact("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
    """BitwiseAnd, BitwiseOr, BitwiseXor (opset 18); And, Or, Xor of booleans."""
    b = aligned(ctx, a, b, auto_broadcast)
    return ctx.emit(ctx.node.type.removeprefix("Bitwise") if a.element is BOOLEAN else ctx.node.type, a, b)


@composed("BitwiseLeftShift", "BitwiseRightShift")
def shift(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
    """BitShift of unsigned types; of signed ones multiplied by a power of 2, or divided by it and rounded down."""
    b = aligned(ctx, a, b, auto_broadcast)
    left = ctx.node.type == "BitwiseLeftShift"
    if a.element.kind == "unsigned":
        return ctx.emit("BitShift", a, b, direction="LEFT" if left else "RIGHT")
    wide = ctx.cast(a, I64) if not left else a
    power = ctx.cast(ctx.emit("Pow", ctx.constant(2, F64), ctx.cast(b, F64)), wide.element)
    if left:
        return ctx.emit("Mul", a, power)
    return ctx.cast(floor_divide(ctx, wide, power), a.element)


@exact("Divide")
def divide(ctx: ExportContext, a: Tensor, b: Tensor, *, m_pythondiv: bool, auto_broadcast: str) -> Tensor:
    """Div; signed integers that are rounded down are composed."""
    b = aligned(ctx, a, b, auto_broadcast)
    if a.element.kind == "signed" and m_pythondiv:
        return floor_divide(ctx, a, b)
    return ctx.emit("Div", a, b)


def floor_divide(ctx: ExportContext, a: Tensor, b: Tensor) -> Tensor:
    """The quotient of signed integers, rounded down: the truncated one, minus 1 where the two remainders differ.

    Their difference is 0 or b: unlike that of a and a remainder, it cannot overflow.
    """
    difference = ctx.emit("Sub", ctx.emit("Mod", a, b), ctx.emit("Mod", a, b, fmod=1))
    return ctx.emit("Sub", ctx.emit("Div", a, b), ctx.emit("Div", difference, b))


@exact("Mod")
def mod(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
    """Mod with fmod = 1."""
    return ctx.emit("Mod", a, aligned(ctx, a, b, auto_broadcast), fmod=1)


@exact("FloorMod")
def floor_mod(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
    """Mod; of floats composed: Mod with fmod = 1, plus b where the signs differ."""
    b = aligned(ctx, a, b, auto_broadcast)
    if not a.element.is_float:
        return ctx.emit("Mod", a, b)
    rest = ctx.emit("Mod", a, b, fmod=1)
    zero = ctx.scalar(0, rest)
    differ = ctx.emit("Less", ctx.emit("Mul", ctx.emit("Sign", rest), ctx.emit("Sign", b)), zero)
    return ctx.where(differ, ctx.emit("Add", rest, b), rest)


@exact("Power")
def power(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
    """Pow; integers are computed in f64."""
    b = aligned(ctx, a, b, auto_broadcast)
    if a.element.is_float:
        return ctx.emit("Pow", a, b)
    result = ctx.emit("Pow", ctx.cast(a, F64), ctx.cast(b, F64))
    # By way of i64, so that the low bits of a result beyond the type are kept.
    return ctx.cast(ctx.cast(result, I64), a.element)


@composed("SquaredDifference")
def squared_difference(ctx: ExportContext, a: Tensor, b: Tensor, *, auto_broadcast: str) -> Tensor:
    """(a - b) * (a - b)."""
    difference = ctx.emit("Sub", a, aligned(ctx, a, b, auto_broadcast))
    return ctx.emit("Mul", difference, difference)


@exact("Select")
def select(ctx: ExportContext, cond: Tensor, then: Tensor, else_: Tensor, *, auto_broadcast: str) -> Tensor:
    """Where."""
    if auto_broadcast == "pdpd":
        cond, else_ = aligned(ctx, then, cond, "pdpd"), aligned(ctx, then, else_, "pdpd")
    return ctx.where(cond, then, else_)
