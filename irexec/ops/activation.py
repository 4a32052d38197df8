"""Activations that take parameters, and Softmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from irexec.dtypes.elements import F32
from irexec.errors import check
from irexec.ir.dims import broadcastable_to
from irexec.ir.facts import Fact
from irexec.ops.arithmetic import check_numeric
from irexec.reference.elementwise import cubic_tanh, elu, gelu, swish
from irexec.reference.integers import through_float
from irexec.reference.special import erf
from irexec.schema.axes import normalize_axis
from irexec.schema.element_checks import check_float, unify_elements
from irexec.schema.registry import op
from irexec.schema.rules import check_scalar


@op("Clamp", since=1)
def clamp_1(data: np.ndarray, *, min: float, max: float) -> np.ndarray:
    """The number, or the bound beyond which it is; bounds of integers are rounded inwards. Source: Clamp-1."""
    if data.dtype.kind == "f":
        return np.clip(data, data.dtype.type(min), data.dtype.type(max))
    limits = np.iinfo(data.dtype)
    low, high = _whole(min, math.ceil, limits), _whole(max, math.floor, limits)
    return np.clip(data, data.dtype.type(low), data.dtype.type(high))


def _whole(bound: float, round_: Callable[[float], int], limits: np.iinfo) -> int:
    if math.isinf(bound) or bound >= limits.max or bound <= limits.min:
        return limits.max if bound > 0 else limits.min
    return round_(bound)


@clamp_1.shape_rule
def _clamp_1_facts(data: Fact, *, min: float, max: float) -> Fact:
    check(min <= max, f"min {min:g} is above max {max:g}")
    return Fact(data.element, data.shape)


@op("Elu", since=1, widen=True, tolerance=2e-6)
def elu_1(data: np.ndarray, *, alpha: float) -> np.ndarray:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere; results of integers are rounded. Source: Elu-1."""
    return through_float(lambda x: elu(x, alpha), data)


@elu_1.shape_rule
def _elu_1_facts(data: Fact, *, alpha: float) -> Fact:
    check_numeric(data)
    return Fact(data.element, data.shape)


@op("Selu", since=1, widen=True, tolerance=2e-6)
def selu_1(data: np.ndarray, alpha: np.ndarray, lambda_: np.ndarray) -> np.ndarray:
    """lambda * (x where it is positive, alpha * (exp(x) - 1) elsewhere). Source: Selu-1."""
    alpha, scale = alpha.reshape(-1)[0], lambda_.reshape(-1)[0]
    return scale * np.where(data > 0, data, alpha * np.expm1(np.minimum(data, data.dtype.type(0))))


@selu_1.shape_rule
def _selu_1_facts(data: Fact, alpha: Fact, lambda_: Fact) -> Fact:
    kind = unify_elements(data, alpha, lambda_)
    check_float(Fact(kind, data.shape), "data")
    for fact, what in ((alpha, "alpha"), (lambda_, "lambda")):
        check_scalar(fact, what)
    return Fact(kind, data.shape)


@op("HardSigmoid", since=1, widen=True)
def hard_sigmoid_1(data: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """alpha * x + beta, kept within 0..1. Source: HardSigmoid-1."""
    kind = data.dtype.type
    return np.clip(alpha.reshape(-1)[0] * data + beta.reshape(-1)[0], kind(0), kind(1))


@hard_sigmoid_1.shape_rule
def _hard_sigmoid_1_facts(data: Fact, alpha: Fact, beta: Fact) -> Fact:
    kind = unify_elements(data, alpha, beta)
    for fact, what in ((alpha, "alpha"), (beta, "beta")):
        check_scalar(fact, what)
    return Fact(kind, data.shape)


@op("PRelu", since=1)
def prelu_1(data: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """x where it is positive, slope * x elsewhere.

    A slope of one axis as long as the channels goes along axis 1; any other is broadcast to the data
    as NumPy does. Source: PRelu-1 and openvino ``reference/prelu.hpp``.
    """
    if slope.ndim == 1 and data.ndim > 1 and slope.shape[0] == data.shape[1]:
        slope = slope.reshape((1, -1) + (1,) * (data.ndim - 2))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(data < 0, data * slope, data)


@prelu_1.bind
def _prelu_1_bind(data: Fact, slope: Fact) -> Callable[..., np.ndarray] | None:
    """Known slopes: the positive part and the sloped negative part added, without a choice for every number."""
    slopes = slope.known
    if data.element is not F32 or data.shape is None or slopes is None or not np.isfinite(slopes).all():
        return None
    if slopes.ndim == 1 and len(data.shape) > 1:
        if not isinstance(data.shape[1], int):
            return None
        if slopes.shape[0] == data.shape[1]:
            slopes = slopes.reshape((1, -1) + (1,) * (len(data.shape) - 2))

    def prelu(data: np.ndarray, _: np.ndarray) -> np.ndarray:
        # A row of zeros: with a single number these functions are four times slower.
        zeros = np.zeros(data.shape[-1:], data.dtype)
        out = np.asarray(np.minimum(data, zeros))
        with np.errstate(over="ignore"):
            out *= slopes
        out += np.maximum(data, zeros)
        return out

    return prelu


@prelu_1.shape_rule
def _prelu_1_facts(data: Fact, slope: Fact) -> Fact:
    kind = unify_elements(data, slope)
    if data.is_static and slope.is_static and data.shape is not None and slope.shape is not None:
        channels = len(slope.shape) == 1 and len(data.shape) > 1 and slope.shape[0] == data.shape[1]
        check(channels or broadcastable_to(slope.shape, data.shape), f"slope {slope} cannot be broadcast to data {data}")
    return Fact(kind, data.shape)


@op("Swish", since=4, widen=True, tolerance=2e-6)
def swish_4(data: np.ndarray, beta: np.ndarray | None = None) -> np.ndarray:
    """x / (1 + exp(-beta * x)), beta 1 unless given. Source: Swish-4."""
    with np.errstate(over="ignore", invalid="ignore"):
        return swish(data, 1 if beta is None else beta.reshape(-1)[0])


@swish_4.shape_rule
def _swish_4_facts(data: Fact, beta: Fact | None = None) -> Fact:
    check_float(data, "data")
    if beta is not None:
        unify_elements(data, beta)
        check_scalar(beta, "beta")
    return Fact(data.element, data.shape)


def _gelu(data: np.ndarray, mode: str) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return gelu(data, lambda x: erf(x * math.sqrt(0.5)) if mode == "erf" else cubic_tanh(x))


@op("Gelu", since=2, widen=True, tolerance=4e-6)
def gelu_2(data: np.ndarray) -> np.ndarray:
    """x * (1 + erf(x / sqrt(2))) / 2. Source: Gelu-2."""
    return _gelu(data, "erf")


@gelu_2.shape_rule
def _gelu_2_facts(data: Fact) -> Fact:
    check_float(data, "data")
    return Fact(data.element, data.shape)


@op("Gelu", since=7, widen=True, tolerance=4e-6)
def gelu_7(data: np.ndarray, *, approximation_mode: Literal["erf", "tanh"] = "erf") -> np.ndarray:
    """x times the normal distribution's integral to x, exactly or through tanh. Source: Gelu-7."""
    return _gelu(data, approximation_mode.lower())


@gelu_7.shape_rule
def _gelu_7_facts(data: Fact, *, approximation_mode: str = "erf") -> Fact:
    check_float(data, "data")
    return Fact(data.element, data.shape)


def _below_greatest(data: np.ndarray, axis: int) -> np.ndarray:
    """x less the greatest along the axis, so that no exponential overflows; data must not be empty."""
    with np.errstate(invalid="ignore"):
        return np.asarray(data - data.max(axis, keepdims=True))


def softmax(data: np.ndarray, axis: int) -> np.ndarray:
    """exp(x) over its sum along ``axis``, in the type of floating-point ``data``; a number without axes gives 1."""
    if data.ndim == 0:
        return np.ones_like(data)
    if data.size == 0:
        return data.copy()
    weights = _below_greatest(data, axis)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis, keepdims=True)
    return weights


def _along(data: Fact, axis: int) -> Fact:
    check_float(data, "data")
    if data.shape is not None:
        normalize_axis(axis, max(len(data.shape), 1))
    return Fact(data.element, data.shape)


@op("Softmax", since=1, widen=True, tolerance=4e-6)
def softmax_1(data: np.ndarray, *, axis: int = 1) -> np.ndarray:
    """exp(x) over its sum along ``axis``. Source: Softmax-1."""
    return softmax(data, axis)


@softmax_1.shape_rule
def _softmax_1_facts(data: Fact, *, axis: int = 1) -> Fact:
    check(axis >= 0, f"axis {axis} is negative, which Softmax-1 does not take")
    return _along(data, axis)


@op("Softmax", since=8, widen=True, tolerance=4e-6)
def softmax_8(data: np.ndarray, *, axis: int = 1) -> np.ndarray:
    """exp(x) over its sum along ``axis``, which may count from the end. Source: Softmax-8."""
    return softmax(data, axis)


@softmax_8.shape_rule
def _softmax_8_facts(data: Fact, *, axis: int = 1) -> Fact:
    return _along(data, axis)


@op("LogSoftmax", since=5, widen=True, tolerance=4e-6)
def log_softmax_5(data: np.ndarray, *, axis: int = 1) -> np.ndarray:
    """The logarithm of Softmax along ``axis``. Source: LogSoftmax-5."""
    if data.ndim == 0:
        return np.zeros_like(data)
    if data.size == 0:
        return data.copy()
    shifted = _below_greatest(data, axis)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


@log_softmax_5.shape_rule
def _log_softmax_5_facts(data: Fact, *, axis: int = 1) -> Fact:
    return _along(data, axis)
