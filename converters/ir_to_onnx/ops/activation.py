"""Activations, Softmax and LogSoftmax."""

from __future__ import annotations

import math

import numpy as np

from converters.ir_to_onnx.context import ExportContext
from converters.ir_to_onnx.kernels import is_computed
from converters.ir_to_onnx.ops.elementwise import through_float
from converters.ir_to_onnx.registry import composed, exact
from converters.ir_to_onnx.tensors import Tensor
from irexec.dtypes.elements import F32
from irexec.errors import check


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
