"""Element-wise functions of one tensor: a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from irexec.ir.facts import Fact
from irexec.ops.arithmetic import check_numeric
from irexec.reference.elementwise import mish, sigmoid, softplus
from irexec.reference.special import erf, erfinv, round_half_away
from irexec.schema.registry import op


def _define(type: str, since: int, function: Callable[[np.ndarray], Any], says: str, *, through_float: bool = False, **flags: Any) -> None:
    def kernel(data: np.ndarray) -> np.ndarray:
        if through_float and data.dtype.kind in "iu":
            return _whole(function(data.astype(np.float64)), data.dtype)
        return np.asarray(function(data))

    kernel.__doc__ = f"{says} Source: {type}-{since}."
    definition = op(type, since, **flags)(kernel)

    @definition.shape_rule
    def facts(data: Fact) -> Fact:
        check_numeric(data)
        return Fact(data.element, data.shape)


def _whole(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A function of integers is computed in double precision and cut towards zero."""
    return np.where(np.isfinite(values), values, 0).astype(np.int64).astype(dtype)


def _same_if_whole(function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    return lambda data: data.copy() if data.dtype.kind in "iuO" else function(data)


def _relu(x: np.ndarray) -> np.ndarray:
    """Clipped, as NumPy does it several times faster than the maximum with one number."""
    return np.clip(x, 0, np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max)


def _hsigmoid(x: np.ndarray) -> np.ndarray:
    kind = x.dtype.type
    return np.clip(x + kind(3), kind(0), kind(6)) / kind(6)


_define("Abs", 1, np.abs, "The absolute value.", symbolic=True)
_define("Negative", 1, np.negative, "The number with the other sign.", symbolic=True)
_define("Sign", 1, np.sign, "-1, 0 or 1; NaN for NaN.")
_define("Ceiling", 1, _same_if_whole(np.ceil), "The next whole number up.", symbolic=True)
_define("Floor", 1, _same_if_whole(np.floor), "The next whole number down.", symbolic=True)
_define("Sqrt", 1, np.sqrt, "The square root.", through_float=True)
_define("Exp", 1, np.exp, "e to the power of it.", through_float=True, widen=True, tolerance=2e-6)
_define("Log", 1, np.log, "The natural logarithm.", through_float=True, widen=True, tolerance=2e-6)
_define("Sin", 1, np.sin, "The sine, in radians.", through_float=True, widen=True, tolerance=2e-6)
_define("Cos", 1, np.cos, "The cosine, in radians.", through_float=True, widen=True, tolerance=2e-6)
_define("Tan", 1, np.tan, "The tangent, in radians.", through_float=True, widen=True, tolerance=1e-5)
_define("Asin", 1, np.arcsin, "The arc sine, in radians.", through_float=True, widen=True, tolerance=2e-6)
_define("Acos", 1, np.arccos, "The arc cosine, in radians.", through_float=True, widen=True, tolerance=2e-6)
_define("Atan", 1, np.arctan, "The arc tangent, in radians.", through_float=True, widen=True, tolerance=2e-6)
_define("Sinh", 1, np.sinh, "The hyperbolic sine.", through_float=True, widen=True, tolerance=2e-6)
_define("Cosh", 1, np.cosh, "The hyperbolic cosine.", through_float=True, widen=True, tolerance=2e-6)
_define("Tanh", 1, np.tanh, "The hyperbolic tangent.", through_float=True, widen=True, tolerance=2e-6)
_define("Asinh", 4, np.arcsinh, "The inverse hyperbolic sine.", through_float=True, widen=True, tolerance=2e-6)
_define("Acosh", 4, np.arccosh, "The inverse hyperbolic cosine.", through_float=True, widen=True, tolerance=2e-6)
_define("Atanh", 4, np.arctanh, "The inverse hyperbolic tangent.", through_float=True, widen=True, tolerance=2e-6)
_define("Erf", 1, erf, "The error function.", through_float=True, widen=True, tolerance=2e-6)
_define("ErfInv", 17, erfinv, "The inverse error function; the plugin is out by 1 in 2,000 near the ends.", widen=True, tolerance=2e-6)
_define("Relu", 1, _relu, "The number, or 0 if it is negative.")
_define("Sigmoid", 1, sigmoid, "1 / (1 + exp(-x)).", through_float=True, widen=True, tolerance=2e-6)
_define("SoftPlus", 4, softplus, "log(1 + exp(x)).", through_float=True, widen=True, tolerance=2e-6)
_define("SoftSign", 9, lambda x: x / (1 + np.abs(x)), "x / (1 + |x|).", through_float=True, widen=True, tolerance=2e-6)
_define("Mish", 4, mish, "x * tanh(log(1 + exp(x))).", through_float=True, widen=True, tolerance=4e-6)
_define("HSigmoid", 5, _hsigmoid, "min(max(x + 3, 0), 6) / 6.", through_float=True, widen=True)
_define("HSwish", 4, lambda x: x * _hsigmoid(x), "x * min(max(x + 3, 0), 6) / 6.", through_float=True, widen=True)


@op("Round", since=5)
def round_5(data: np.ndarray, *, mode: Literal["half_to_even", "half_away_from_zero"] = "half_to_even") -> np.ndarray:
    """The nearest whole number; halves go to the even one or away from zero. Source: Round-5."""
    if data.dtype.kind in "iu":
        return data.copy()
    if mode == "half_to_even":
        return np.asarray(np.rint(data))
    return np.asarray(round_half_away(data))


@round_5.shape_rule
def _round_5_facts(data: Fact, *, mode: str = "half_to_even") -> Fact:
    check_numeric(data)
    return Fact(data.element, data.shape)
