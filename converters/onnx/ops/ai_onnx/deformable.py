"""Deformable convolution."""

from __future__ import annotations

from converters.onnx.algorithms.convolution import add_bias, conv_windows
from converters.onnx.algorithms.windows import WindowAttributes
from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.ir.graph import Value


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
