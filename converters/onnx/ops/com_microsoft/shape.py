"""com.microsoft: shapes."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("ExpandDims", domain=COM_MICROSOFT)
def expand_dims(b: Context, x: Value, axis: Value) -> Value:
    return b.unsqueeze(x, list(b.ints(axis, "axis")))
