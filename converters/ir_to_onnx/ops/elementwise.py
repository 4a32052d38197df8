"""Element-wise operations: functions of one tensor, of two that are broadcast, activations, Softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.graph import Tensor
from converters.ir_to_onnx.opsets import is_computed
from converters.ir_to_onnx.registry import add, composed, exact
from irexec.dtypes.elements import BOOLEAN, F32, F64, I64, Element
from irexec.errors import check
from irexec.schema.shape_rules import pdpd_start


def aligned(ctx: ExportContext, a: Tensor, b: Tensor, auto_broadcast: str, auto_broadcast_axis: int | None) -> Tensor:
    """``b`` reshaped so that NumPy's broadcasting does what ``auto_broadcast`` and its axis ask."""
    if auto_broadcast != "pdpd" or b.shape == ():
        return b
    rank, sizes = a.require_rank("the first input"), b.require_shape("the second input")
    start = pdpd_start(rank, len(sizes), auto_broadcast_axis)
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
    """Polynomials in f64 of w = -log(1 - x * x), and of its root where w is large."""
    x = ctx.cast(data, F64)

    def number(value: float) -> Tensor:
        return ctx.constant(value, F64)

    def times(a: Tensor, b: Tensor) -> Tensor:
        return ctx.emit("Mul", a, b)

    w = ctx.emit("Neg", ctx.emit("Log", times(ctx.emit("Sub", number(1), x), ctx.emit("Add", number(1), x))))
    root = ctx.emit("Sqrt", w)
    mid, far = (_horner(ctx, ctx.emit("Sub", root, number(c)), row) for c, row in ((3.25, _MID), (5.05, _FAR)))
    near = _horner(ctx, ctx.emit("Sub", w, number(3.125)), _NEAR)
    y = ctx.where(ctx.emit("Less", w, number(16)), mid, far)
    y = times(ctx.where(ctx.emit("Less", w, number(6.25)), near, y), x)
    edge = ctx.emit("Equal", ctx.emit("Abs", x), number(1))
    infinite = times(x, number(np.inf))
    return ctx.where(edge, ctx.cast(infinite, data.element), ctx.cast(y, data.element))


_NEAR = (
    2.929134269995582e-18, -7.55426354647956e-17, 1.917131023988204e-16, 5.473268339775546e-15, -4.250626154685931e-14,
    -6.833963458411081e-14, 2.647105037759463e-12, -1.30658176164614e-11, -5.421240211186386e-11, 1.0515996003282e-09,
    -4.112482215702939e-09, -2.90713787863303e-08, 4.234785522997498e-07, -1.365467689310132e-06,
    -1.388252319372694e-05, 0.0001867342068843772, -0.0007407025342136235, -0.006033670871090657, 0.2401581824255912,
    1.653654562683086,
)  # fmt: skip
_MID = (
    2.224468962514272e-07, 8.902816621870887e-07, -4.200489741766651e-06, 3.481242381153746e-06, 1.256407660469029e-05,
    -4.758323847041773e-05, 6.826147698063464e-05, 2.410090988400991e-05, -0.0003550341837041183, 0.0009532793930763844,
    -0.001688275788970826, 0.002491442797907525, -0.003751208501456502, 0.00537091453480063, 1.005258967694136,
    3.083885610492303,
)  # fmt: skip
_FAR = (
    1.21021087951126e-09, -3.933943151253619e-09, 5.623855604869024e-09, -9.21333652762723e-09, 2.194035796726891e-08,
    -5.65462296222256e-08, 2.015744137263849e-07, -9.063744958364577e-07, 4.193862883080482e-06, -1.837469860138816e-05,
    7.124031456011194e-05, -0.0002003119902287638, -0.0001698580914688088, 1.010285017597288, 4.90042105144364,
)  # fmt: skip
"""Interpolations of erfinv(x) / x at Chebyshev points, from the highest power on; their relative error is below 1e-13.

The variables are those of M. Giles, Approximating the erfinv function, GPU Computing Gems 2, 2011.
"""


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
    def translate(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
        return ctx.emit(onnx, a, aligned(ctx, a, b, **alignment))

    add(type, "exact", onnx, translate)


for _type, _onnx in _BINARY.items():
    _binary(_type, _onnx)


@composed("NotEqual")
def not_equal(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
    """Not(Equal(a, b))."""
    return ctx.emit("Not", ctx.emit("Equal", a, aligned(ctx, a, b, **alignment)))


@exact("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bitwise(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
    """BitwiseAnd, BitwiseOr, BitwiseXor (opset 18); And, Or, Xor of booleans."""
    b = aligned(ctx, a, b, **alignment)
    return ctx.emit(ctx.node.type.removeprefix("Bitwise") if a.element is BOOLEAN else ctx.node.type, a, b)


@composed("BitwiseLeftShift", "BitwiseRightShift")
def shift(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
    """BitShift of unsigned types; of signed ones multiplied by a power of 2, or divided by it and rounded down."""
    b = aligned(ctx, a, b, **alignment)
    left = ctx.node.type == "BitwiseLeftShift"
    if a.element.kind == "unsigned":
        return ctx.emit("BitShift", a, b, direction="LEFT" if left else "RIGHT")
    wide = ctx.cast(a, I64) if not left else a
    power = ctx.cast(ctx.emit("Pow", ctx.constant(2, F64), ctx.cast(b, F64)), wide.element)
    if left:
        return ctx.emit("Mul", a, power)
    return ctx.cast(floor_divide(ctx, wide, power), a.element)


@exact("Divide")
def divide(ctx: ExportContext, a: Tensor, b: Tensor, *, m_pythondiv: bool, **alignment: Any) -> Tensor:
    """Div; signed integers that are rounded down are composed."""
    b = aligned(ctx, a, b, **alignment)
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
def mod(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
    """Mod with fmod = 1."""
    return ctx.emit("Mod", a, aligned(ctx, a, b, **alignment), fmod=1)


@exact("FloorMod")
def floor_mod(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
    """Mod; of floats composed: Mod with fmod = 1, plus b where the signs differ."""
    b = aligned(ctx, a, b, **alignment)
    if not a.element.is_float:
        return ctx.emit("Mod", a, b)
    rest = ctx.emit("Mod", a, b, fmod=1)
    zero = ctx.scalar(0, rest)
    differ = ctx.emit("Less", ctx.emit("Mul", ctx.emit("Sign", rest), ctx.emit("Sign", b)), zero)
    return ctx.where(differ, ctx.emit("Add", rest, b), rest)


@exact("Power")
def power(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
    """Pow; integers are computed in f64."""
    b = aligned(ctx, a, b, **alignment)
    if a.element.is_float:
        return ctx.emit("Pow", a, b)
    result = ctx.emit("Pow", ctx.cast(a, F64), ctx.cast(b, F64))
    # By way of i64, so that the low bits of a result beyond the type are kept.
    return ctx.cast(ctx.cast(result, I64), a.element)


@composed("SquaredDifference")
def squared_difference(ctx: ExportContext, a: Tensor, b: Tensor, **alignment: Any) -> Tensor:
    """(a - b) * (a - b)."""
    difference = ctx.emit("Sub", a, aligned(ctx, a, b, **alignment))
    return ctx.emit("Mul", difference, difference)


@exact("Select")
def select(ctx: ExportContext, cond: Tensor, then: Tensor, else_: Tensor, **alignment: Any) -> Tensor:
    """Where."""
    if alignment["auto_broadcast"] == "pdpd":
        cond, else_ = aligned(ctx, then, cond, **alignment), aligned(ctx, then, else_, **alignment)
    return ctx.where(cond, then, else_)


@exact("Relu")
def relu(ctx: ExportContext, data: Tensor) -> Tensor:
    """Relu; Max with 0 of types that it does not take."""
    if data.element.is_float:
        return ctx.emit("Relu", data)
    return ctx.emit("Max", data, ctx.scalar(0, data))


@exact("Clamp")
def clamp(ctx: ExportContext, data: Tensor, *, min: float, max: float) -> Tensor:
    """Clip; for integers min is rounded up and max down."""
    if data.element.is_float:
        return ctx.emit("Clip", data, ctx.scalar(min, data), ctx.scalar(max, data))
    limits = np.iinfo(data.element.carrier)
    low = math.ceil(min) if math.isfinite(min) else (limits.max if min > 0 else limits.min)
    high = math.floor(max) if math.isfinite(max) else (limits.max if max > 0 else limits.min)
    bounds = [sorted((limits.min, bound, limits.max))[1] for bound in (low, high)]
    return ctx.emit("Clip", data, ctx.scalar(bounds[0], data), ctx.scalar(bounds[1], data))


@exact("Elu")
def elu(ctx: ExportContext, data: Tensor, *, alpha: float) -> Tensor:
    """Elu; of integers computed in f64 and rounded."""
    return through_float(ctx, lambda x: ctx.emit("Elu", x, alpha=alpha, shape=x.shape), data)


@exact("Selu")
def selu(ctx: ExportContext, data: Tensor, alpha: Tensor, lambda_: Tensor) -> Tensor:
    """Selu with constant alpha and lambda in f32; others are composed of Exp, Min and Where."""
    if alpha.value is not None and lambda_.value is not None and data.element is F32:
        a, scale = float(alpha.value.ravel()[0]), float(lambda_.value.ravel()[0])
        if a >= 0 and scale > 0:
            return ctx.emit("Selu", data, alpha=a, gamma=scale)
    factor, gain = ctx.reshape(alpha, []), ctx.reshape(lambda_, [])
    zero = ctx.scalar(0, data)
    lower = ctx.emit("Sub", ctx.emit("Exp", ctx.emit("Min", data, zero)), ctx.scalar(1, data))
    chosen = ctx.where(ctx.emit("Greater", data, zero), data, ctx.emit("Mul", factor, lower))
    return ctx.emit("Mul", gain, chosen)


@composed("HardSigmoid")
def hard_sigmoid(ctx: ExportContext, data: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """HardSigmoid with constant alpha and beta, else Clip(alpha * x + beta, 0, 1)."""
    if alpha.value is not None and beta.value is not None and data.element.is_float:
        a, b = float(alpha.value.ravel()[0]), float(beta.value.ravel()[0])
        return ctx.emit("HardSigmoid", data, alpha=a, beta=b)
    line = ctx.emit("Add", ctx.emit("Mul", ctx.reshape(alpha, []), data), ctx.reshape(beta, []))
    return ctx.emit("Clip", line, ctx.scalar(0, data), ctx.scalar(1, data))


@composed("HSigmoid")
def h_sigmoid(ctx: ExportContext, data: Tensor) -> Tensor:
    """Clip(x + 3, 0, 6) / 6."""
    return through_float(ctx, lambda x: _h_sigmoid(ctx, x), data)


def _h_sigmoid(ctx: ExportContext, x: Tensor) -> Tensor:
    shifted = ctx.emit("Add", x, ctx.scalar(3, x))
    return ctx.emit("Div", ctx.emit("Clip", shifted, ctx.scalar(0, x), ctx.scalar(6, x)), ctx.scalar(6, x))


@exact("HSwish")
def h_swish(ctx: ExportContext, data: Tensor) -> Tensor:
    """HardSwish from opset 14 on; before, and of integers, x * Clip(x + 3, 0, 6) / 6."""
    if ctx.has("HardSwish") and data.element.is_float:
        return ctx.emit("HardSwish", data)
    return through_float(ctx, lambda x: ctx.emit("Mul", x, _h_sigmoid(ctx, x)), data)


@exact("SoftPlus")
def soft_plus(ctx: ExportContext, data: Tensor) -> Tensor:
    """Softplus."""
    return ctx.emit("Softplus", data)


@exact("SoftSign")
def soft_sign(ctx: ExportContext, data: Tensor) -> Tensor:
    """Softsign."""
    return ctx.emit("Softsign", data)


@exact("Mish")
def mish(ctx: ExportContext, data: Tensor) -> Tensor:
    """Mish from opset 18 on, before x * Tanh(Softplus(x))."""
    if ctx.has("Mish"):
        return ctx.emit("Mish", data)
    return ctx.emit("Mul", data, ctx.emit("Tanh", ctx.emit("Softplus", data)))


@composed("Swish")
def swish(ctx: ExportContext, data: Tensor, beta: Tensor | None = None) -> Tensor:
    """Swish with a constant beta from opset 24 on, else x * Sigmoid(beta * x)."""
    if ctx.has("Swish") and (beta is None or beta.value is not None):
        alpha = 1.0 if beta is None or beta.value is None else float(beta.value.ravel()[0])
        return ctx.emit("Swish", data, alpha=alpha)
    scaled = data if beta is None else ctx.emit("Mul", data, ctx.reshape(beta, []))
    return ctx.emit("Mul", data, ctx.emit("Sigmoid", scaled))


@exact("Gelu")
def gelu(ctx: ExportContext, data: Tensor, *, approximation_mode: str = "erf") -> Tensor:
    """Gelu from opset 20 on, before composed of Erf or Tanh."""
    if ctx.has("Gelu"):
        return ctx.emit("Gelu", data, approximate="tanh" if approximation_mode == "tanh" else "none")
    one, half = ctx.scalar(1, data), ctx.scalar(0.5, data)
    if approximation_mode == "erf":
        inner = ctx.emit("Erf", ctx.emit("Div", data, ctx.scalar(math.sqrt(2), data)))
    else:
        cube = ctx.emit("Mul", data, ctx.emit("Mul", data, data))
        line = ctx.emit("Add", data, ctx.emit("Mul", cube, ctx.scalar(0.044715, data)))
        inner = ctx.emit("Tanh", ctx.emit("Mul", line, ctx.scalar(math.sqrt(2 / math.pi), data)))
    return ctx.emit("Mul", ctx.emit("Mul", data, half), ctx.emit("Add", one, inner))


@exact("PRelu")
def prelu(ctx: ExportContext, data: Tensor, slope: Tensor) -> Tensor:
    """PRelu, with a slope of one element per channel reshaped to lie along axis 1; LeakyRelu of a constant scalar.

    Where ONNX Runtime has no kernel for the type, Mul, Less and Where compute it.
    """
    if slope.value is not None and slope.value.size == 1 and data.element.is_float and (slope.rank or 0) <= 1:
        return ctx.emit("LeakyRelu", data, alpha=float(slope.value.ravel()[0]))
    sizes = slope.require_shape("the slope")
    rank = data.require_rank("the data")
    slope = ctx.cast(slope, data.element)
    assert data.shape is not None
    if len(sizes) == 1 and rank > 1:
        if sizes[0] == data.shape[1]:
            slope = ctx.unsqueeze(slope, *range(1, rank - 1)) if rank > 2 else slope
        else:
            is_known = sizes[0] == 1 or isinstance(data.shape[1], int)
            check(is_known, "whether the slope has one element per channel is not known")
    if not is_computed("PRelu", ctx.opset, {"T": data.element}):
        return ctx.where(ctx.emit("Less", data, ctx.scalar(0, data)), ctx.emit("Mul", data, slope), data)
    return ctx.emit("PRelu", data, slope)


@exact("Softmax")
def softmax(ctx: ExportContext, data: Tensor, *, axis: int) -> Tensor:
    """Softmax."""
    return _along(ctx, "Softmax", data, axis)


@exact("LogSoftmax")
def log_softmax(ctx: ExportContext, data: Tensor, *, axis: int) -> Tensor:
    """LogSoftmax."""
    return _along(ctx, "LogSoftmax", data, axis)


def _along(ctx: ExportContext, type: str, data: Tensor, axis: int) -> Tensor:
    if data.shape == ():
        # IR allows axis 0 of a scalar, ONNX has none.
        return ctx.squeeze(ctx.emit(type, ctx.unsqueeze(data, 0), axis=0), 0)
    return ctx.emit(type, data, axis=axis)
