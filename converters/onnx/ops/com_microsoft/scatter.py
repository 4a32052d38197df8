"""com.microsoft: triangles of matrices."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.scatter import trilu
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("Trilu", domain=COM_MICROSOFT)
def contrib_trilu(ctx: TranslationContext, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    return trilu(ctx, x, k, upper=upper)
