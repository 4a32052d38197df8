"""com.microsoft: distinct values."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.ops.ai_onnx.searching import unique
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.ir.graph import Value


@translates("Unique", domain=COM_MICROSOFT)
def contrib_unique(ctx: TranslationContext, x: Value) -> tuple[Value, ...]:
    """In the order of first occurrence: the values, the index of each element in them, and the counts."""
    values, _, which, counts = unique(ctx, x, sorted=0)
    return values, which, counts
