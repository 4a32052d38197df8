"""Convolution, also with offsets of its points."""

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
    before = (Expression(ctx, ctx.size(w, 2)) - 1).unsqueeze(0).settled()
    if past_state is not None:
        padded = ctx.emit("Concat", past_state, x, axis=2)
    else:
        begins = Expression(ctx, ctx.emit("Concat", [0, 0], before.value, axis=0)).settled()
        padded = ctx.emit("Pad", x, begins.value, [0, 0, 0], ctx.constant(0, x), pad_mode="constant")
    windows = Windows.of([1], WindowAttributes())
    y = add_bias(ctx, ctx.emit("GroupConvolution", padded, ctx.unsqueeze(w, [1]), **windows.attributes()), bias, 3)
    y = y if activation == "none" else ctx.emit("Swish", y)
    length = Expression(ctx, ctx.size(padded, 2)).unsqueeze(0)
    return y, ctx.emit("Slice", padded, (length - before).value, length.value, [1], [2])


@translates("DeformConv", since=19, without=["auto_pad"])
def deform_conv(
    ctx: TranslationContext, x: Value, w: Value, offset: Value, bias: Value | None = None, mask: Value | None = None, *,
    given: WindowAttributes, group: int = 1, offset_group: int = 1,
) -> Value:  # fmt: skip
    """DeformableConvolution-8 for two spatial axes, else irexec's own operation."""
    windows = conv_windows(ctx, w, given)
    rank = len(windows.kernel)
    if rank != 2:
        kind = f"DeformConv {ctx.name!r} over {rank} spatial axes"
        ctx.warn(f"{kind} becomes an operation of irexec's own, which OpenVINO does not load")
    y = ctx.emit(
        "DeformableConvolution", x, offset, w, mask, version=8 if rank == 2 else "irexec", group=group,
        deformable_group=offset_group, bilinear_interpolation_pad=True, **windows.attributes(),
    )  # fmt: skip
    return add_bias(ctx, y, bias, rank + 2)
