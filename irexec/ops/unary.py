"""Element-wise functions of one tensor: a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from irexec.ir.facts import Fact
from irexec.reference.integers import through_float
from irexec.reference.special import erf, erfinv, mish, round_half_away, sigmoid, softplus
from irexec.schema.elementwise import tested, unchanged
from irexec.schema.inputs import BOOLEAN_TYPE, FLOAT, INTEGER_OR_BOOLEAN, NUMERIC, ElementSet, NumericTensor
from irexec.schema.registry import op


def _define(
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


_define("Abs", 1, np.abs, "The absolute value.", symbolic=True)
_define("Negative", 1, np.negative, "The negated value.", symbolic=True)
_define("Sign", 1, np.sign, "-1, 0 or 1; NaN for NaN.")
_define("Ceiling", 1, _unless_integer(np.ceil), "Rounded up to an integer.", symbolic=True)
_define("Floor", 1, _unless_integer(np.floor), "Rounded down to an integer.", symbolic=True)
_define("Sqrt", 1, np.sqrt, "The square root.", rounded=True)
_define("Exp", 1, np.exp, "The exponential function.", rounded=True, widen=True, tolerance=2e-6)
_define("Log", 1, np.log, "The natural logarithm.", rounded=True, widen=True, tolerance=2e-6)
_define("Sin", 1, np.sin, "The sine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_define("Cos", 1, np.cos, "The cosine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_define("Tan", 1, np.tan, "The tangent, in radians.", rounded=True, widen=True, tolerance=1e-5)
_define("Asin", 1, np.arcsin, "The arc sine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_define("Acos", 1, np.arccos, "The arc cosine, in radians.", rounded=True, widen=True, tolerance=2e-6)
_define("Atan", 1, np.arctan, "The arc tangent, in radians.", rounded=True, widen=True, tolerance=2e-6)
_define("Sinh", 1, np.sinh, "The hyperbolic sine.", rounded=True, widen=True, tolerance=2e-6)
_define("Cosh", 1, np.cosh, "The hyperbolic cosine.", rounded=True, widen=True, tolerance=2e-6)
_define("Tanh", 1, np.tanh, "The hyperbolic tangent.", rounded=True, widen=True, tolerance=2e-6)
_define("Asinh", 4, np.arcsinh, "The inverse hyperbolic sine.", rounded=True, widen=True, tolerance=2e-6)
_define("Acosh", 4, np.arccosh, "The inverse hyperbolic cosine.", rounded=True, widen=True, tolerance=2e-6)
_define("Atanh", 4, np.arctanh, "The inverse hyperbolic tangent.", rounded=True, widen=True, tolerance=2e-6)
_define("Erf", 1, erf, "The error function.", rounded=True, widen=True, tolerance=2e-6)
_define(
    "ErfInv",
    17,
    erfinv,
    "The inverse error function (the plugin errs by up to 1 in 2,000).",
    elements=FLOAT,
    widen=True,
    tolerance=2e-6,
)
_define("Relu", 1, _relu, "max(x, 0).")
_define("Sigmoid", 1, sigmoid, "1 / (1 + exp(-x)).", rounded=True, widen=True, tolerance=2e-6)
_define("SoftPlus", 4, softplus, "log(1 + exp(x)).", elements=FLOAT, widen=True, tolerance=2e-6)
_define("SoftSign", 9, lambda x: x / (1 + np.abs(x)), "x / (1 + |x|).", elements=FLOAT, widen=True, tolerance=2e-6)
_define("Mish", 4, mish, "x * tanh(log(1 + exp(x))).", elements=FLOAT, widen=True, tolerance=4e-6)
_define("HSigmoid", 5, _hsigmoid, "min(max(x + 3, 0), 6) / 6.", rounded=True, widen=True)
_define("HSwish", 4, lambda x: x * _hsigmoid(x), "x * min(max(x + 3, 0), 6) / 6.", rounded=True, widen=True)
_define("LogicalNot", 1, np.logical_not, "Whether the element is false.", elements=BOOLEAN_TYPE)
_define("BitwiseNot", 13, np.invert, "Every bit inverted; for booleans the opposite.", elements=INTEGER_OR_BOOLEAN)
_define("IsFinite", 10, np.isfinite, "Whether each element is neither NaN nor infinite.", elements=FLOAT, rule=tested)
_define("IsNaN", 10, np.isnan, "Whether each element is NaN.", elements=FLOAT, rule=tested)


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
