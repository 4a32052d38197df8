"""com.microsoft: activations, alone and as ONNX Runtime fuses them into other operators."""

from __future__ import annotations

from collections.abc import Sequence

from converters.onnx.context import Context
from converters.onnx.ops.ai_onnx.activation import clip_1, hard_sigmoid, leaky_relu
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value
from irexec.messages import counted

_PARAMETERS = {"Relu": 0, "Tanh": 0, "Sigmoid": 0, "Silu": 0, "LeakyRelu": 1, "Clip": 2, "HardSigmoid": 2}


def fused_activation(b: Context, x: Value, name: str, parameters: Sequence[float] | None) -> Value:
    """The activation that ONNX Runtime fused into an operator, by its name; "" for none.

    Raises:
        OpError: the name is unknown, or the activation takes another number of parameters.
    """
    values = list(parameters or ())
    if not name:
        return x
    if name not in _PARAMETERS:
        raise OpError(f"activation {name!r} is not one of {', '.join(_PARAMETERS)}")
    if len(values) != _PARAMETERS[name]:
        raise OpError(f"activation {name} has {counted(len(values), 'parameter')}, expected {_PARAMETERS[name]}")
    if name == "LeakyRelu":
        return leaky_relu(b, x, alpha=values[0])
    if name == "Clip":
        return clip_1(b, x, min=values[0], max=values[1])
    if name == "HardSigmoid":
        return hard_sigmoid(b, x, alpha=values[0], beta=values[1])
    return b.emit({"Silu": "Swish"}.get(name, name), x)


@translates("Gelu", domain=COM_MICROSOFT)
def gelu(b: Context, x: Value) -> Value:
    return b.emit("Gelu", x, approximation_mode="erf")


@translates("BiasGelu", domain=COM_MICROSOFT)
def bias_gelu(b: Context, x: Value, bias: Value) -> Value:
    return gelu(b, b.emit("Add", x, bias))


@translates("FastGelu", domain=COM_MICROSOFT)
def fast_gelu(b: Context, x: Value, bias: Value | None = None) -> Value:
    return b.emit("Gelu", x if bias is None else b.emit("Add", x, bias), approximation_mode="tanh")


@translates("QuickGelu", domain=COM_MICROSOFT)
def quick_gelu(b: Context, x: Value, *, alpha: float = 1.702) -> Value:
    """x * sigmoid(alpha * x)."""
    return b.emit("Swish", x, b.constant(alpha, x))


@translates("BiasSplitGelu", domain=COM_MICROSOFT)
def bias_split_gelu(b: Context, x: Value, bias: Value) -> Value:
    """The first half of the last axis times the Gelu of the second half."""
    halves = b.emit("Split", b.emit("Add", x, bias), b.constant(b.rank(x) - 1), num_splits=2)
    return b.emit("Multiply", halves[0], gelu(b, halves[1]))


@translates("BiasSoftmax", domain=COM_MICROSOFT)
def bias_softmax(b: Context, data: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int) -> Value:
    """Softmax over all axes from ``axis`` on together. The bias broadcasts over the first of the axes before, or over the last."""
    rank, first = b.rank(data), b.axis(axis, data)
    missing = rank - b.rank(bias)
    if missing > 0 and is_inner_broadcast:
        # The axes of the bias are the outer axes of the batch and those of the softmax.
        bias = b.unsqueeze(bias, list(range(first - missing, first)))
    summed = b.emit("Add", data, bias)
    if first == rank - 1:
        return b.emit("Softmax", summed, axis=first)
    flat = b.emit("Reshape", summed, [*[0] * first, -1], special_zero=True)
    return b.emit("Reshape", b.emit("Softmax", flat, axis=first), b.shape_of(summed), special_zero=False)
