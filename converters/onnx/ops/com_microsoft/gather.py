"""com.microsoft: values picked by index."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.gather import gather_nd
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("GatherND", domain=COM_MICROSOFT)
def contrib_gather_nd(ctx: TranslationContext, data: Value, indices: Value) -> Value:
    return gather_nd(ctx, data, indices)
