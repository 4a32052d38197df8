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
    """Pairs on the last axis; the second factor conjugated if ``conjugate``."""
    parts: list[Expression] = []
    for side in (x, y):
        last = b.rank(side) - 1
        if b.sizes(side)[last] != 2:
            raise OpError(f"the last axis of {b.fact(side)} does not hold pairs")
        parts += [Expression(b, part) for part in b.emit("Split", side, b.constant(last), num_splits=2)]
    real, imaginary, again, turned = parts
    turned = -turned if conjugate else turned
    product = [real * again - imaginary * turned, real * turned + imaginary * again]
    return b.emit("Concat", *(part.value for part in product), axis=-1)


@translates("CDist", domain=COM_MICROSOFT)
def cdist(b: Context, x: Value, y: Value, *, metric: str = "sqeuclidean") -> Value:
    """The distances of all rows of one matrix from all of another."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise OpError(f"metric is {metric!r}, expected sqeuclidean or euclidean")
    apart = Expression(b, x).unsqueeze(1) - Expression(b, y).unsqueeze(0)
    squares = Expression(b, b.emit("ReduceSum", (apart * apart).value, [2], keep_dims=False))
    return squares.value if metric == "sqeuclidean" else squares.sqrt().value
