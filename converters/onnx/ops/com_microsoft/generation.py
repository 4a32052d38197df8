"""com.microsoft: ranges."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.ops.ai_onnx.generation import range_11
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("Range", domain=COM_MICROSOFT)
def contrib_range(b: Context, start: Value, limit: Value, delta: Value | None = None) -> Value:
    return range_11(b, start, limit, b.constant(1, start) if delta is None else delta)
