"""com.microsoft: padding."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.broadcasting import pad_11
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("Pad", domain=COM_MICROSOFT)
def contrib_pad(
    ctx: TranslationContext, x: Value, pads: Value, value: Value | None = None, *, mode: str = "constant"
) -> Value:
    """The pads may have a leading axis of size 1."""
    return pad_11(ctx, x, ctx.emit("Reshape", pads, [-1], special_zero=False), value, mode=mode)
