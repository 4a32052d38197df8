"""com.microsoft: the test for finite values."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Context
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("IsAllFinite", domain=COM_MICROSOFT)
def is_all_finite(b: Context, *inputs: Value, isinf_only: int = 0, isnan_only: int = 0) -> Value:
    """Whether no number of all inputs is infinite or NaN, or only one of both."""
    if isinf_only and isnan_only:
        raise OpError("isinf_only and isnan_only exclude each other")
    kinds = ["IsInf"] * (not isnan_only) + ["IsNaN"] * (not isinf_only)
    odd: Expression | None = None
    for x in inputs:
        for kind in kinds:
            found = b.emit("ReduceLogicalOr", b.emit(kind, x), list(range(b.rank(x))), keep_dims=False)
            odd = Expression(b, found) if odd is None else odd | Expression(b, found)
    if odd is None:
        raise OpError("it has no inputs")
    return (~odd).value
