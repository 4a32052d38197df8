"""Convolution."""

from __future__ import annotations

from typing import Annotated, Literal

from converters.onnx.algorithms.convolution import add_bias, conv_windows, convolve
from converters.onnx.algorithms.expression import Expression
from converters.onnx.algorithms.windows import WindowAttributes, Windows
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value
from irexec.schema.inputs import Rank


@translates("Conv")
def conv(
    ctx: TranslationContext, x: Value, w: Value, bias: Value | None = None, *, group: int = 1, given: WindowAttributes
) -> Value:
    windows = conv_windows(ctx, w, given)
    return add_bias(ctx, convolve(ctx, x, w, group, windows), bias, ctx.rank(w))


@translates("CausalConvWithState", since=27)
def causal_conv_with_state(
    ctx: TranslationContext, x: Annotated[Value, Rank(3)], w: Annotated[Value, Rank(3)],
    bias: Annotated[Value, Rank(1)] | None = None, past_state: Annotated[Value, Rank(3)] | None = None, *,
    activation: Literal["none", "silu", "swish"] = "none",
) -> tuple[Value, ...]:  # fmt: skip
    """A depthwise convolution over the past state and the data; the last values of both are the new state."""
    channels, _, kernel = ctx.static(w, "the weights")
    if past_state is not None:
        padded = ctx.emit("Concat", past_state, x, axis=2)
    else:
        padded = ctx.emit("Pad", x, [0, 0, kernel - 1], [0, 0, 0], ctx.constant(0, x), pad_mode="constant")
    windows = Windows.of([kernel], WindowAttributes())
    y = add_bias(ctx, convolve(ctx, padded, w, channels, windows), bias, 3)
    y = y if activation == "none" else ctx.emit("Swish", y)
    length = Expression(ctx, ctx.size(padded, 2)).unsqueeze(0)
    return y, ctx.emit("Slice", padded, (length - (kernel - 1)).value, length.value, [1], [2])
