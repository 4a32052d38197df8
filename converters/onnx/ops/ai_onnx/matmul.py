"""Products of matrices."""

from __future__ import annotations

from converters.onnx.context import TranslationContext
from converters.onnx.registry import translates
from irexec.dtypes.elements import F64
from irexec.ir.graph import Value


@translates("MatMul")
def matmul(ctx: TranslationContext, x: Value, y: Value) -> Value:
    return ctx.emit("MatMul", x, y)


@translates("Gemm")
@translates("Gemm", since=7, without=["broadcast"])
def gemm(
    ctx: TranslationContext, x: Value, y: Value, z: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0,
    transA: int = 0, transB: int = 0, broadcast: int = 0,
) -> Value:  # fmt: skip
    """alpha * A @ B + beta * C; C broadcasts as in NumPy. ``broadcast`` has no effect: shapes are equal without it."""
    product = ctx.emit("MatMul", x, y, transpose_a=bool(transA), transpose_b=bool(transB))
    result = _scaled(ctx, product, alpha)
    return result if z is None else ctx.emit("Add", result, _scaled(ctx, z, beta))


def _scaled(ctx: TranslationContext, x: Value, factor: float) -> Value:
    kind = ctx.element(x)
    if factor == 1.0:
        return x
    if kind.is_float or float(factor).is_integer():
        return ctx.emit("Multiply", x, ctx.constant(factor, x))
    return ctx.convert(ctx.emit("Multiply", ctx.convert(x, F64), ctx.constant(factor, F64)), kind)
