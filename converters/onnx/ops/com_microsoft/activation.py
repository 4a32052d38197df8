"""com.microsoft: activations, single and fused into other operators."""

from __future__ import annotations

from collections.abc import Sequence

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.activation import clip_1, hard_sigmoid, leaky_relu
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted

_PARAMETERS = {
    "Relu": 0, "Tanh": 0, "Sigmoid": 0, "Silu": 0, "HardSwish": 0, "LeakyRelu": 1, "Clip": 2, "HardSigmoid": 2
}  # fmt: skip
_NAMES_IN_IR = {"Silu": "Swish", "HardSwish": "HSwish"}


def fused_activation(ctx: TranslationContext, x: Value, name: str, parameters: Sequence[float] | None) -> Value:
    """The activation of this name, which ONNX Runtime has fused into an operator; "" is no activation.

    Raises:
        OpError: the name is unknown, or the number of parameters is wrong.
    """
    values = list(parameters or ())
    if not name:
        return x
    if name not in _PARAMETERS:
        raise OpError(f"activation {name!r} is not one of {', '.join(_PARAMETERS)}")
    if len(values) != _PARAMETERS[name]:
        raise OpError(f"activation {name} has {counted(len(values), 'parameter')}, expected {_PARAMETERS[name]}")
    if name == "LeakyRelu":
        return leaky_relu(ctx, x, alpha=values[0])
    if name == "Clip":
        return clip_1(ctx, x, min=values[0], max=values[1])
    if name == "HardSigmoid":
        return hard_sigmoid(ctx, x, alpha=values[0], beta=values[1])
    return ctx.emit(_NAMES_IN_IR.get(name, name), x)


@translates("Gelu", domain=COM_MICROSOFT)
def gelu(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Gelu", x, approximation_mode="erf")


@translates("BiasGelu", domain=COM_MICROSOFT)
def bias_gelu(ctx: TranslationContext, x: Value, bias: Value) -> Value:
    return gelu(ctx, ctx.emit("Add", x, bias))


@translates("FastGelu", domain=COM_MICROSOFT)
def fast_gelu(ctx: TranslationContext, x: Value, bias: Value | None = None) -> Value:
    return ctx.emit("Gelu", x if bias is None else ctx.emit("Add", x, bias), approximation_mode="tanh")


@translates("QuickGelu", domain=COM_MICROSOFT)
def quick_gelu(ctx: TranslationContext, x: Value, *, alpha: float = 1.702) -> Value:
    """x * sigmoid(alpha * x)."""
    return ctx.emit("Swish", x, ctx.constant(alpha, x))


@translates("BiasSplitGelu", domain=COM_MICROSOFT)
def bias_split_gelu(ctx: TranslationContext, x: Value, bias: Value) -> Value:
    """The first half of the last axis times the Gelu of the second half."""
    halves = ctx.emit("Split", ctx.emit("Add", x, bias), ctx.constant(ctx.rank(x) - 1), num_splits=2)
    return ctx.emit("Multiply", halves[0], gelu(ctx, halves[1]))


@translates("BiasSoftmax", domain=COM_MICROSOFT)
def bias_softmax(ctx: TranslationContext, data: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int) -> Value:
    """Softmax over the flattened axes from ``axis`` on, of data plus bias.

    The bias lacks the first axes of the data, or with is_inner_broadcast the last axes before ``axis``.
    """
    rank, first = ctx.rank(data), ctx.axis(axis, data)
    missing = rank - ctx.rank(bias)
    if missing > 0 and is_inner_broadcast:
        # The axes of the bias are the outer axes of the batch and those of the softmax.
        bias = ctx.unsqueeze(bias, list(range(first - missing, first)))
    summed = ctx.emit("Add", data, bias)
    if first == rank - 1:
        return ctx.emit("Softmax", summed, axis=first)
    flat = ctx.emit("Reshape", summed, [*[0] * first, -1], special_zero=True)
    return ctx.emit("Reshape", ctx.emit("Softmax", flat, axis=first), ctx.shape_of(summed), special_zero=False)
