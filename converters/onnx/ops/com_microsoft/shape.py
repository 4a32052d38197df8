"""com.microsoft: shapes."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("ExpandDims", domain=COM_MICROSOFT)
def expand_dims(ctx: TranslationContext, x: Value, axis: Value) -> Value:
    return ctx.unsqueeze(x, list(ctx.ints(axis, "axis")))
