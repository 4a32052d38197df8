"""com.microsoft: ranges."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.generation import range_11
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("Range", domain=COM_MICROSOFT)
def contrib_range(ctx: TranslationContext, start: Value, limit: Value, delta: Value | None = None) -> Value:
    return range_11(ctx, start, limit, ctx.constant(1, start) if delta is None else delta)
