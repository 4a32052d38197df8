"""com.microsoft: the test for finite values."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("IsAllFinite", domain=COM_MICROSOFT)
def is_all_finite(ctx: TranslationContext, *inputs: Value, isinf_only: int = 0, isnan_only: int = 0) -> Value:
    """True if all values are finite; with isinf_only, if none is infinite; with isnan_only, if none is NaN."""
    if isinf_only and isnan_only:
        raise OpError("isinf_only and isnan_only exclude each other")
    kinds = ["IsInf"] * (not isnan_only) + ["IsNaN"] * (not isinf_only)
    not_finite: Expression | None = None
    for x in inputs:
        for kind in kinds:
            found = ctx.emit("ReduceLogicalOr", ctx.emit(kind, x), list(range(ctx.rank(x))), keep_dims=False)
            not_finite = Expression(ctx, found) if not_finite is None else not_finite | Expression(ctx, found)
    if not_finite is None:
        raise OpError("it has no inputs")
    return (~not_finite).value
