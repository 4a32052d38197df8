"""com.microsoft: sums, complex products and distances."""

from __future__ import annotations

from converters.onnx.algorithms.expression import Expression
from converters.onnx.context import Context
from converters.onnx.registry import COM_MICROSOFT, translates
from irexec.errors import OpError
from irexec.ir.graph import Value


@translates("BiasAdd", domain=COM_MICROSOFT)
def bias_add(b: Context, x: Value, bias: Value, skip: Value) -> Value:
    return b.emit("Add", b.emit("Add", x, bias), skip)


@translates("ComplexMul", domain=COM_MICROSOFT)
def complex_mul(b: Context, x: Value, y: Value) -> Value:
    return _complex_product(b, x, y, conjugate=False)


@translates("ComplexMulConj", domain=COM_MICROSOFT)
def complex_mul_conj(b: Context, x: Value, y: Value) -> Value:
    return _complex_product(b, x, y, conjugate=True)


def _complex_product(b: Context, x: Value, y: Value, *, conjugate: bool) -> Value:
    """The product of pairs of real and imaginary parts on the last axis; ``conjugate``: of the second factor."""
    parts: list[Expression] = []
    for side in (x, y):
        last = b.rank(side) - 1
        if b.sizes(side)[last] != 2:
            raise OpError(f"the last axis of {b.fact(side)} does not have size 2")
        parts += [Expression(b, part) for part in b.emit("Split", side, b.constant(last), num_splits=2)]
    real, imaginary, other_real, other_imaginary = parts
    other_imaginary = -other_imaginary if conjugate else other_imaginary
    product = [real * other_real - imaginary * other_imaginary, real * other_imaginary + imaginary * other_real]
    return b.emit("Concat", *(part.value for part in product), axis=-1)


@translates("CDist", domain=COM_MICROSOFT)
def cdist(b: Context, x: Value, y: Value, *, metric: str = "sqeuclidean") -> Value:
    """The distances between all rows of one matrix and all rows of another."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise OpError(f"metric is {metric!r}, expected sqeuclidean or euclidean")
    difference = Expression(b, x).unsqueeze(1) - Expression(b, y).unsqueeze(0)
    squares = Expression(b, b.emit("ReduceSum", (difference * difference).value, [2], keep_dims=False))
    return squares.value if metric == "sqeuclidean" else squares.sqrt().value
