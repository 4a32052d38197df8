"""Arithmetic, comparison, logic, one-input functions and activations."""

from __future__ import annotations

import math

from tests.oracle.draw import FLOATS, INTEGERS, NUMBERS, Draw, Shape, Table, model
from tests.support.cases import Case, Typed, typed

DRAWS = Table()
_ARITHMETIC = ("Add", "Subtract", "Multiply", "Maximum", "Minimum", "SquaredDifference")
_QUOTIENTS = ("Divide", "Mod", "FloorMod")
_COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
_WIDE = (*FLOATS, *INTEGERS)


def _shapes(d: Draw) -> tuple[Shape, Shape, str | None]:
    """Two shapes and how they broadcast."""
    mode = d.pick(None, "numpy", "numpy", "none", "pdpd")
    if mode == "none":
        shape = d.shape()
        return shape, shape, mode
    if mode == "pdpd":
        # Only what aligns at the front: the axis itself is not written.
        first = d.shape(1)
        return first, first[: d.size(0, len(first))], mode
    return *d.pair(), mode


def _divisor(drawn: Typed) -> Typed:
    """Integers are not divided by 0, nor the least of them by -1."""
    if drawn.array.dtype.kind == "f":
        return drawn
    array = drawn.array.copy()
    array[(array == 0) | (array == -1 if array.dtype.kind == "i" else False)] = 3
    return Typed(drawn.element, array)


@DRAWS.row(*((type, 1) for type in (*_ARITHMETIC, *_COMPARISONS)))
def binary(d: Draw, type: str, since: int) -> Case:
    a, b, mode = _shapes(d)
    kind = d.pick(*_WIDE, *(("boolean",) if type in ("Equal", "NotEqual") else ()))
    draw = d.special if d.chance() else d.steps
    return model(type, since, draw(a, kind), draw(b, kind), auto_broadcast=mode)


@DRAWS.row(*((type, 1) for type in _QUOTIENTS))
def quotient(d: Draw, type: str, since: int) -> Case:
    a, b, mode = _shapes(d)
    kind = d.pick(*_WIDE)
    extra = {"m_pythondiv": d.pick(None, True, False)} if type == "Divide" else {}
    return model(type, since, d.steps(a, kind, -20, 20), _divisor(d.steps(b, kind, -6, 6)), auto_broadcast=mode, **extra)


@DRAWS.row(("Power", 1))
def power(d: Draw, type: str, since: int) -> Case:
    a, b, mode = _shapes(d)
    kind = d.pick(*_WIDE)
    return model(type, since, d.steps(a, kind, -4, 4), d.steps(b, kind, 0 if kind[0] in "iu" else -3, 3), auto_broadcast=mode)


@DRAWS.row(("LogicalAnd", 1), ("LogicalOr", 1), ("LogicalXor", 1), ("Xor", 1))
def logical(d: Draw, type: str, since: int) -> Case:
    a, b, mode = _shapes(d)
    return model(type, since, d.tensor(a, "boolean"), d.tensor(b, "boolean"), auto_broadcast=mode)


@DRAWS.row(("BitwiseAnd", 13), ("BitwiseOr", 13), ("BitwiseXor", 13))
def bitwise(d: Draw, type: str, since: int) -> Case:
    a, b, mode = _shapes(d)
    kind = d.pick(*INTEGERS, "boolean")
    return model(type, since, d.tensor(a, kind, -100, 100), d.tensor(b, kind, -100, 100), auto_broadcast=mode)


@DRAWS.row(("BitwiseLeftShift", 15), ("BitwiseRightShift", 15))
def shift(d: Draw, type: str, since: int) -> Case:
    a, b, mode = _shapes(d)
    kind = d.pick(*INTEGERS)
    return model(type, since, d.tensor(a, kind, 0, 100), d.tensor(b, kind, 0, 6), auto_broadcast=mode)


@DRAWS.row(("LogicalNot", 1), ("BitwiseNot", 13))
def negation(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.tensor(d.shape(), "boolean" if type == "LogicalNot" else (*INTEGERS, "boolean")))


@DRAWS.row(("Select", 1))
def select(d: Draw, type: str, since: int) -> Case:
    whole = d.shape()
    mode = d.pick(None, "numpy", "none", "pdpd")
    kind = d.pick(*_WIDE, "boolean")
    if mode == "none":
        shapes = [whole] * 3
    elif mode == "pdpd":
        shapes = [whole, whole, d.pick(whole, [1] * len(whole))]
    else:
        shapes = [d.shrunk(whole), d.shrunk(whole), d.shrunk(whole)]
    condition, then, otherwise = shapes
    return model(type, since, d.tensor(condition, "boolean"), d.tensor(then, kind), d.tensor(otherwise, kind), auto_broadcast=mode)


_EVERYWHERE = {
    "Abs": 1, "Ceiling": 1, "Floor": 1, "Negative": 1, "Relu": 1, "Sign": 1,
}  # fmt: skip
# Functions whose results of integers are rounded.
_ROUNDED = {
    "Atan": 1, "Asinh": 4, "Cos": 1, "Cosh": 1, "Erf": 1, "Exp": 1, "HSigmoid": 5, "HSwish": 4, "Sigmoid": 1,
    "Sin": 1, "Sinh": 1, "Tan": 1, "Tanh": 1,
}  # fmt: skip
_OF_FLOATS = {"Mish": 4, "SoftPlus": 4, "SoftSign": 9, "Gelu": 2, "IsFinite": 10, "IsNaN": 10}
# The values for which the function is defined; it takes integers too.
_BETWEEN = {
    ("Acos", 1): (-1, 1),
    ("Asin", 1): (-1, 1),
    ("Atanh", 4): (-0.99, 0.99),
    ("Acosh", 4): (1, 9),
    ("Log", 1): (0.01, 9),
    ("Sqrt", 1): (0, 9),
}


@DRAWS.row(*_EVERYWHERE.items())
def of_numbers(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.special(d.shape(), NUMBERS))


@DRAWS.row(*_OF_FLOATS.items())
def of_floats(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.special(d.shape(), low=-8, high=8))


@DRAWS.row(*_ROUNDED.items())
def rounded(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.special(d.shape(), _WIDE, low=-8, high=8))


@DRAWS.row(*_BETWEEN)
def between(d: Draw, type: str, since: int) -> Case:
    low, high = _BETWEEN[type, since]
    kind = d.pick(*_WIDE)
    if kind in INTEGERS:
        return model(type, since, d.tensor(d.shape(), kind, math.ceil(low), math.floor(high)))
    return model(type, since, d.special(d.shape(), kind, low, high))


@DRAWS.row(("Round", 5))
def rounding(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.pick(d.special, d.steps)(d.shape(), NUMBERS), mode=d.pick(None, "half_to_even", "half_away_from_zero"))


@DRAWS.row(("IsInf", 10))
def infinite(d: Draw, type: str, since: int) -> Case:
    sides = {f"detect_{side}": d.pick(None, True, False) for side in ("negative", "positive")}
    return model(type, since, d.special(d.shape()), **sides)


@DRAWS.row(("Gelu", 7))
def gelu(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.special(d.shape()), approximation_mode=d.pick(None, "erf", "tanh", "ERF", "TANH"))


@DRAWS.row(("Elu", 1))
def elu(d: Draw, type: str, since: int) -> Case:
    return model(type, since, d.special(d.shape(), _WIDE), alpha=d.pick(0.5, 1.0, 2.5, 0.0))


@DRAWS.row(("Clamp", 1))
def clamp(d: Draw, type: str, since: int) -> Case:
    low, high = d.pick((-1.0, 2.0), (-2.5, 0.5), (0.0, 6.0), (float("-inf"), 3.0), (-1.0, float("inf")), (0.3, 1.7))
    return model(type, since, d.special(d.shape(), NUMBERS), min=low, max=high)


@DRAWS.row(("Swish", 4))
def swish(d: Draw, type: str, since: int) -> Case:
    data = d.special(d.shape())
    beta = typed(data.element.name, d.pick(0.5, 1.0, -2.0)) if d.chance() else None
    return model(type, since, data, beta)


@DRAWS.row(("HardSigmoid", 1), ("Selu", 1))
def two_constants(d: Draw, type: str, since: int) -> Case:
    data = d.special(d.shape(), _WIDE if type == "HardSigmoid" else FLOATS)
    kind = data.element.name
    first, second = d.pick(
        *((1, 0), (0, 1), (2, -1 if kind[0] == "i" else 1)) if kind in INTEGERS else ((0.2, 0.5), (1.5, 1.25), (1.0, 0.25))
    )
    one = d.chance(0.2) and type == "Selu"
    return model(type, since, data, typed(kind, [first] if one else first), typed(kind, [second] if one else second))


@DRAWS.row(("PRelu", 1))
def prelu(d: Draw, type: str, since: int) -> Case:
    data = d.special(d.shape(1, 4, 0), _WIDE)
    shape = list(data.array.shape)
    slopes = [[1], d.shrunk(shape), shape[-1:], *([shape[1:2], [1, shape[1], *[1] * (len(shape) - 2)]] if len(shape) > 1 else [])]
    return model(type, since, data, d.tensor(d.pick(*slopes), data.element.name))


@DRAWS.row(("Softmax", 1), ("Softmax", 8), ("LogSoftmax", 5))
def softmax(d: Draw, type: str, since: int) -> Case:
    shape = d.shape(1)
    axis = d.size(0, len(shape) - 1) if (type, since) == ("Softmax", 1) else d.axis(len(shape))
    return model(type, since, d.tensor(shape, FLOATS, -9, 9), axis=axis)
