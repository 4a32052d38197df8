"""Element-wise operations: arithmetic on two tensors, functions of one, comparisons, logic, Select."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from irexec.dtypes.elements import BOOLEAN, Element, element_of
from irexec.errors import check
from irexec.ir.dims import Size, low
from irexec.ir.facts import Fact
from irexec.ops.conversion import converted
from irexec.reference.integers import through_float
from irexec.reference.special import erf, erfinv, mish, power, round_half_away, sigmoid, softplus
from irexec.schema.opdef import (
    ANY_TYPE,
    BOOLEAN_TYPE,
    FLOAT,
    INTEGER,
    INTEGER_OR_BOOLEAN,
    NUMERIC,
    AnyTensor,
    BooleanTensor,
    ElementSet,
    FloatTensor,
    NumericTensor,
    unchanged,
)
from irexec.schema.registry import op
from irexec.schema.shape_rules import Broadcasting, align, broadcast, unify_elements


def _binary(
    type: str,
    since: int,
    function: Callable[..., Any],
    doc: str,
    *,
    elements: ElementSet = NUMERIC,
    result: Element | None = None,
    **flags: Any,
) -> None:
    """Register version ``since`` of operation ``type``: ``function`` of two broadcast tensors.

    Args:
        doc: the first sentence of the docstring.
        elements: the element types of the inputs, which must be the same.
        result: the element type of the result; None for the type of the inputs.
    """

    def kernel(
        a: np.ndarray, b: np.ndarray, *, auto_broadcast: Broadcasting = "numpy", auto_broadcast_axis: int | None = None
    ) -> np.ndarray:
        a, b = align(a, b, auto_broadcast, auto_broadcast_axis)
        return np.asarray(function(a, b))

    kernel.__doc__ = f"{doc} Source: {type}-{since}."
    kernel.__annotations__ |= dict.fromkeys(("a", "b"), Annotated[np.ndarray, elements])
    definition = op(type, since, **flags)(kernel)

    @definition.shape_rule
    def shape_rule(a: Fact, b: Fact, *, auto_broadcast: Broadcasting, auto_broadcast_axis: int | None) -> Fact:
        shared = unify_elements(a, b)
        return Fact(result or shared, broadcast([a.shape, b.shape], auto_broadcast, auto_broadcast_axis))


def _tested(data: Fact) -> Fact:
    """The shape rule where the result says of each element of ``data`` whether something holds."""
    return Fact(BOOLEAN, data.shape)


def _squared_difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    difference = np.subtract(a, b)
    return np.multiply(difference, difference)


def _mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The remainder with the sign of ``a``, as in C; an integer modulo 0 is 0."""
    return np.fmod(a, b)


def _floor_mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype == object or b.dtype == object:
        return _each(a, b, lambda x, y: 0 if y == 0 else x % y)
    return np.mod(a, b)


def _each(a: np.ndarray, b: np.ndarray, function: Callable[[Any, Any], Size]) -> np.ndarray:
    """The function of each pair of an object array of int | Dim, for divisions by 0, where Python raises."""
    return np.asarray(np.frompyfunc(function, 2, 1)(a, b), object)


def _truncated(a: Size, b: Size) -> Size:
    """The quotient rounded towards zero; of bounds only where that is also the quotient rounded down."""
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    check(low(a) >= 0 and low(b) >= 0, f"{a} / {b} rounded towards zero is not known")
    return a // b


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integers are computed in double precision and converted as Convert does, as OpenVINO's reference does by
    std::pow."""
    if a.dtype.kind in "iu":
        return converted(np.power(a.astype(np.float64), b.astype(np.float64)), element_of(a.dtype))
    return power(a, b)


def divide(a: np.ndarray, b: np.ndarray, floor: bool) -> np.ndarray:
    """a / b; of integers rounded down if ``floor``, else towards zero, and 0 where b is 0."""
    if a.dtype == object or b.dtype == object:
        return _each(a, b, lambda x, y: 0 if y == 0 else x // y if floor else _truncated(x, y))
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    if floor or a.dtype.kind == "u":
        return quotient
    return (quotient + ((quotient < 0) & (quotient * b != a) & (b != 0))).astype(a.dtype)


_binary("Add", 1, np.add, "a + b; integers wrap.", symbolic=True)
_binary("Subtract", 1, np.subtract, "a - b; integers wrap.", symbolic=True)
_binary("Multiply", 1, np.multiply, "a * b; integers wrap.", symbolic=True)
_binary("Maximum", 1, np.maximum, "max(a, b).", symbolic=True)
_binary("Minimum", 1, np.minimum, "min(a, b).", symbolic=True)
_binary("Mod", 1, _mod, "The remainder of a / b, with the sign of a.")
_binary("FloorMod", 1, _floor_mod, "The remainder of a / b, with the sign of b.", symbolic=True)
_binary("Power", 1, _power, "a to the power of b.", tolerance=2e-6)
_binary("SquaredDifference", 1, _squared_difference, "(a - b) squared; integers wrap.")


@op("Divide", since=1, symbolic=True)
def divide_1(
    a: NumericTensor,
    b: NumericTensor,
    *,
    m_pythondiv: bool = True,
    auto_broadcast: Broadcasting = "numpy",
    auto_broadcast_axis: int | None = None,
) -> np.ndarray:
    """a / b. Integers are rounded down, or towards zero if ``m_pythondiv`` is false.

    Source: Divide-1. OpenVINO's reference rounds down where m_pythondiv is true, its CPU plugin truncates.
    The result of dividing an integer by 0 is not specified; here it is 0.
    """
    a, b = align(a, b, auto_broadcast, auto_broadcast_axis)
    with np.errstate(all="ignore"):
        return divide(a, b, m_pythondiv)


@divide_1.shape_rule
def _divide_1_facts(a: Fact, b: Fact, *, auto_broadcast: Broadcasting, auto_broadcast_axis: int | None) -> Fact:
    return Fact(unify_elements(a, b), broadcast([a.shape, b.shape], auto_broadcast, auto_broadcast_axis))


def _unary(
    type: str,
    since: int,
    function: Callable[[np.ndarray], Any],
    doc: str,
    *,
    elements: ElementSet = NUMERIC,
    rounded: bool = False,
    rule: Callable[[Fact], Fact] = unchanged,
    **flags: Any,
) -> None:
    """Register a version of ``type``; where it is ``rounded`` the function takes floats, and results of integers are
    rounded."""

    def kernel(data: np.ndarray) -> np.ndarray:
        return through_float(function, data) if rounded else np.asarray(function(data))

    kernel.__annotations__["data"] = Annotated[np.ndarray, elements]
    kernel.__doc__ = f"{doc} Source: {type}-{since}."
    op(type, since, **flags)(kernel).shape_rule(rule)


def _unless_integer(function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    return lambda data: data.copy() if data.dtype.kind in "iuO" else function(data)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, x.dtype.type(0))


def _hsigmoid(x: np.ndarray) -> np.ndarray:
    kind = x.dtype.type
    return np.clip(x + kind(3), kind(0), kind(6)) / kind(6)


_unary("Abs", 1, np.abs, "The absolute value.", symbolic=True)
_unary("Negative", 1, np.negative, "The negated value.", symbolic=True)
_unary("Sign", 1, np.sign, "-1, 0 or 1; NaN for NaN.")
_unary("Ceiling", 1, _unless_integer(np.ceil), "Rounded up to an integer.", symbolic=True)
_unary("Floor", 1, _unless_integer(np.floor), "Rounded down to an integer.", symbolic=True)
_unary("Sqrt", 1, np.sqrt, "The square root.", rounded=True)
_unary("Exp", 1, np.exp, "The exponential function.", rounded=True, widen=True, tolerance=2e-6)
_unary("Log", 1, np.log, "The natural logarithm.", rounded=True, widen=True, tolerance=2e-6)
_unary("Sin", 1, np.sin, "The sine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_unary("Cos", 1, np.cos, "The cosine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_unary("Tan", 1, np.tan, "The tangent, in radians.", rounded=True, widen=True, tolerance=1e-5)
_unary("Asin", 1, np.arcsin, "The arc sine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_unary("Acos", 1, np.arccos, "The arc cosine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_unary("Atan", 1, np.arctan, "The arc tangent, in radians.", rounded=True, widen=True, tolerance=2e-6)
_unary("Sinh", 1, np.sinh, "The hyperbolic sine.", rounded=True, widen=True, tolerance=2e-6)
_unary("Cosh", 1, np.cosh, "The hyperbolic cosine.", rounded=True, widen=True, tolerance=2e-6)
_unary("Tanh", 1, np.tanh, "The hyperbolic tangent.", rounded=True, widen=True, tolerance=2e-6)
_unary("Asinh", 4, np.arcsinh, "The inverse hyperbolic sine.", rounded=True, widen=True, tolerance=2e-6)
_unary("Acosh", 4, np.arccosh, "The inverse hyperbolic cosine.", rounded=True, widen=True, tolerance=2e-6)
_unary("Atanh", 4, np.arctanh, "The inverse hyperbolic tangent.", rounded=True, widen=True, tolerance=2e-6)
_unary("Erf", 1, erf, "The error function.", rounded=True, widen=True, tolerance=2e-6)
_unary(
    "ErfInv",
    17,
    erfinv,
    "The inverse error function (the plugin errs by up to 1 in 2,000).",
    elements=FLOAT,
    widen=True,
    tolerance=2e-6,
)
_unary("Relu", 1, _relu, "max(x, 0).")
_unary("Sigmoid", 1, sigmoid, "1 / (1 + exp(-x)).", rounded=True, widen=True, tolerance=2e-6)
_unary("SoftPlus", 4, softplus, "log(1 + exp(x)).", elements=FLOAT, widen=True, tolerance=2e-6)
_unary("SoftSign", 9, lambda x: x / (1 + np.abs(x)), "x / (1 + |x|).", elements=FLOAT, widen=True, tolerance=2e-6)
_unary("Mish", 4, mish, "x * tanh(log(1 + exp(x))).", elements=FLOAT, widen=True, tolerance=4e-6)
_unary("HSigmoid", 5, _hsigmoid, "min(max(x + 3, 0), 6) / 6.", rounded=True, widen=True)
_unary("HSwish", 4, lambda x: x * _hsigmoid(x), "x * min(max(x + 3, 0), 6) / 6.", rounded=True, widen=True)
_unary("LogicalNot", 1, np.logical_not, "Whether the element is false.", elements=BOOLEAN_TYPE)
_unary("BitwiseNot", 13, np.invert, "Every bit inverted; for booleans the opposite.", elements=INTEGER_OR_BOOLEAN)
_unary("IsFinite", 10, np.isfinite, "Whether each element is neither NaN nor infinite.", elements=FLOAT, rule=_tested)
_unary("IsNaN", 10, np.isnan, "Whether each element is NaN.", elements=FLOAT, rule=_tested)


@op("Round", since=5)
def round_5(
    data: NumericTensor, *, mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even"
) -> np.ndarray:
    """The nearest integer; halves are rounded to the even one or away from zero. Source: Round-5."""
    if data.dtype.kind in "iu":
        return data.copy()
    if mode == "half_to_even":
        return np.asarray(np.rint(data))
    return np.asarray(round_half_away(data))


round_5.shape_rule(unchanged)


_binary("LogicalAnd", 1, np.logical_and, "a and b.", elements=BOOLEAN_TYPE)
_binary("LogicalOr", 1, np.logical_or, "a or b.", elements=BOOLEAN_TYPE)
_binary("LogicalXor", 1, np.logical_xor, "Whether exactly one of a and b is true.", elements=BOOLEAN_TYPE)
_binary("Xor", 1, np.logical_xor, "Whether exactly one of a and b is true.", elements=BOOLEAN_TYPE)


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    def shift(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(function(a, b), a.dtype)

    return shift


_binary("BitwiseAnd", 13, np.bitwise_and, "a & b, bit by bit; a and b for booleans.", elements=INTEGER_OR_BOOLEAN)
_binary("BitwiseOr", 13, np.bitwise_or, "a | b, bit by bit; a or b for booleans.", elements=INTEGER_OR_BOOLEAN)
_binary("BitwiseXor", 13, np.bitwise_xor, "a ^ b, bit by bit; exclusive or for booleans.", elements=INTEGER_OR_BOOLEAN)
_binary("BitwiseLeftShift", 15, _shift(np.left_shift), "a << b; bits beyond the type are lost.", elements=INTEGER)
_binary("BitwiseRightShift", 15, _shift(np.right_shift), "a >> b; the sign is kept.", elements=INTEGER)


@op("Select", since=1, symbolic=True)
def select_1(
    cond: BooleanTensor,
    then: AnyTensor,
    else_: AnyTensor,
    *,
    auto_broadcast: Broadcasting = "numpy",
    auto_broadcast_axis: int | None = None,
) -> np.ndarray:
    """``then`` where ``cond`` is true, ``else`` elsewhere.

    With pdpd ``cond`` and ``else`` are broadcast to ``then``, from ``auto_broadcast_axis`` on. Source: Select-1.
    """
    if auto_broadcast == "pdpd":
        cond, else_ = (align(then, one, auto_broadcast, auto_broadcast_axis)[1] for one in (cond, else_))
    return np.where(cond.astype(np.bool_), then, else_)


@select_1.shape_rule
def _select_1_facts(
    cond: Fact, then: Fact, else_: Fact, *, auto_broadcast: Broadcasting, auto_broadcast_axis: int | None
) -> Fact:
    kind = unify_elements(then, else_)
    if auto_broadcast == "pdpd":
        shape = broadcast([then.shape, else_.shape], "pdpd", auto_broadcast_axis)
        return Fact(kind, broadcast([shape, cond.shape], "pdpd", auto_broadcast_axis))
    return Fact(kind, broadcast([cond.shape, then.shape, else_.shape], auto_broadcast))


_binary("Equal", 1, np.equal, "Whether a = b; false where either is NaN.", elements=ANY_TYPE, result=BOOLEAN)
_binary("NotEqual", 1, np.not_equal, "Whether a differs from b.", elements=ANY_TYPE, result=BOOLEAN)
_binary("Less", 1, np.less, "Whether a < b.", elements=ANY_TYPE, result=BOOLEAN)
_binary("LessEqual", 1, np.less_equal, "Whether a <= b.", elements=ANY_TYPE, result=BOOLEAN)
_binary("Greater", 1, np.greater, "Whether a > b.", elements=ANY_TYPE, result=BOOLEAN)
_binary("GreaterEqual", 1, np.greater_equal, "Whether a >= b.", elements=ANY_TYPE, result=BOOLEAN)


@op("IsInf", since=10)
def is_inf_10(data: FloatTensor, *, detect_negative: bool = True, detect_positive: bool = True) -> np.ndarray:
    """Whether each element is infinite, with a sign that is to be detected. Source: IsInf-10."""
    found = np.zeros(data.shape, np.bool_)
    if detect_negative:
        found |= np.isneginf(data)
    if detect_positive:
        found |= np.isposinf(data)
    return found


is_inf_10.shape_rule(_tested)
