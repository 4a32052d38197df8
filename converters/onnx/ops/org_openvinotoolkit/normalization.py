"""org.openvinotoolkit: quantization, normalization and Swish.

Source: OpenVINO's ONNX frontend, ``src/op/org.openvinotoolkit``.
"""

from __future__ import annotations

from typing import Annotated

from converters.onnx.context import TranslationContext
from converters.onnx.registry import openvino_operator
from irexec.errors import ConversionError, OpError
from irexec.ir.graph import Value
from irexec.schema.inputs import ONE_ELEMENT


@openvino_operator("FakeQuantize")
def fake_quantize(
    ctx: TranslationContext, x: Value, input_low: Value, input_high: Value, output_low: Value, output_high: Value, *,
    levels: int,
) -> Value:  # fmt: skip
    return ctx.emit("FakeQuantize", x, input_low, input_high, output_low, output_high, levels=levels)


@openvino_operator("Swish")
def swish(ctx: TranslationContext, x: Value, beta: Annotated[Value, ONE_ELEMENT] | None = None) -> Value:
    return ctx.emit("Swish", x, ctx.constant(1, x) if beta is None else ctx.scalar(beta))


@openvino_operator("GroupNorm", "ExperimentalDetectronGroupNorm")
def group_norm(
    ctx: TranslationContext, x: Value, scale: Value, bias: Value, *, num_groups: int, eps: float = 1e-6
) -> Value:
    """Scale and bias have one value per channel, in any shape."""
    vectors = [part if ctx.rank(part) == 1 else ctx.reshape(part, [-1]) for part in (scale, bias)]
    return ctx.emit("GroupNormalization", x, *vectors, num_groups=num_groups, epsilon=eps)


@openvino_operator("Normalize")
def normalize(
    ctx: TranslationContext, x: Value, weights: Value, *, eps: float = 0.0, across_spatial: int = 0,
    channel_shared: int = 0,
) -> Value:  # fmt: skip
    """x / sqrt(sum of squares + eps), over the channels or all axes but the first, times the weights.

    The weights are one per channel, unless they are shared: then they broadcast from the last axis.
    """
    rank = ctx.rank(x, "the data")
    if rank < 2:
        raise OpError(f"the data {ctx.fact(x)} has no channels")
    if channel_shared:
        if ctx.rank(weights, "the weights") != 1 or ctx.known(weights) is None:
            raise ConversionError("weights that channels share must be a constant vector", unsupported=True)
    else:
        weights = ctx.along_channels(weights if ctx.rank(weights) == 1 else ctx.reshape(weights, [-1]), rank)
    axes = list(range(1, rank)) if across_spatial else [1]
    return ctx.emit("Multiply", ctx.emit("NormalizeL2", x, axes, eps=eps, eps_mode="add"), weights)
