"""com.microsoft: the inverse of matrices."""

from __future__ import annotations

from converters.onnx.context import Context
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("Inverse", domain=COM_MICROSOFT)
def inverse(b: Context, x: Value) -> Value:
    return b.emit("Inverse", x, adjoint=False)
