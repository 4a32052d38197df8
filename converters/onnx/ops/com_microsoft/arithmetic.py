"""com.microsoft: sums, complex products and distances."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import TranslationContext
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("BiasAdd", domain=COM_MICROSOFT)
def bias_add(ctx: TranslationContext, x: Value, bias: Value, skip: Value) -> Value:
    return ctx.emit("Add", ctx.emit("Add", x, bias), skip)


@translates("ComplexMul", domain=COM_MICROSOFT)
def complex_mul(ctx: TranslationContext, x: Value, y: Value) -> Value:
    return _complex_product(ctx, x, y, conjugate=False)


@translates("ComplexMulConj", domain=COM_MICROSOFT)
def complex_mul_conj(ctx: TranslationContext, x: Value, y: Value) -> Value:
    return _complex_product(ctx, x, y, conjugate=True)


def _complex_product(ctx: TranslationContext, x: Value, y: Value, *, conjugate: bool) -> Value:
    """The product of complex values, whose parts are on the last axis; ``conjugate`` conjugates the second factor."""
    parts: list[Expression] = []
    for side in (x, y):
        last = ctx.rank(side) - 1
        if ctx.sizes(side)[last] != 2:
            raise OpError(f"the last axis of {ctx.fact(side)} does not have size 2")
        parts += [Expression(ctx, part) for part in ctx.emit("Split", side, ctx.constant(last), num_splits=2)]
    real, imaginary, other_real, other_imaginary = parts
    other_imaginary = -other_imaginary if conjugate else other_imaginary
    product = [real * other_real - imaginary * other_imaginary, real * other_imaginary + imaginary * other_real]
    return ctx.emit("Concat", *(part.value for part in product), axis=-1)


@translates("CDist", domain=COM_MICROSOFT)
def cdist(ctx: TranslationContext, x: Value, y: Value, *, metric: str = "sqeuclidean") -> Value:
    """Distances between all rows of one matrix and all rows of another."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise OpError(f"metric is {metric!r}, expected sqeuclidean or euclidean")
    difference = Expression(ctx, x).unsqueeze(1) - Expression(ctx, y).unsqueeze(0)
    squares = Expression(ctx, ctx.emit("ReduceSum", (difference * difference).value, [2], keep_dims=False))
    return squares.value if metric == "sqeuclidean" else squares.sqrt().value
