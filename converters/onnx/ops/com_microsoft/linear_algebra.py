"""com.microsoft: the inverse of matrices."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("Inverse", domain=COM_MICROSOFT)
def inverse(ctx: TranslationContext, x: Value) -> Value:
    return ctx.emit("Inverse", x, adjoint=False)
