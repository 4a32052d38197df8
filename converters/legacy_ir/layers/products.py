"""Matrix products: FullyConnected and Gemm."""

from __future__ import annotations

import math

from converters.legacy_ir.layer import Layer
from converters.legacy_ir.layers.convolution import with_biases
from converters.legacy_ir.registry import translates
from irexec.errors import check
from irexec.ir.graph import Value


@translates("FullyConnected", "InnerProduct")
def fully_connected(
    layer: Layer, data: Value, weights: Value | None = None, biases: Value | None = None, *, out_size: int
) -> Value:
    """Weights [out_size, all axes of the input but the first]; the output has two axes."""
    data = layer.f32(data)
    shape = layer.shape(data)
    check(len(shape) > 1, f"the input has rank {len(shape)}, expected 2 or more")
    inner = math.prod(shape[1:])
    if len(shape) > 2:
        data = layer.emit("Reshape", data, layer.constant([0, inner]), version=1, special_zero=True)
    sizes = (out_size, inner)
    matrix = layer.blob("weights", sizes) if weights is None else layer.reshaped(layer.f32(weights), sizes)
    product = layer.emit("MatMul", data, matrix, version=1, transpose_a=False, transpose_b=True)
    return with_biases(layer, product, biases, out_size)


@translates("Gemm")
def gemm(
    layer: Layer, a: Value, b: Value, c: Value | None = None, *, alpha: float = 1.0, beta: float = 1.0,
    transpose_a: bool = False, transpose_b: bool = False,
) -> Value:  # fmt: skip
    """alpha * op(a) op(b) + beta * c, over batches that broadcast."""
    product: Value = layer.emit(
        "MatMul", layer.f32(a), layer.f32(b), version=1, transpose_a=transpose_a, transpose_b=transpose_b
    )
    if alpha != 1:
        product = layer.emit("Multiply", product, alpha, version=1)
    if c is None:
        return product
    addend = layer.f32(c)
    if beta != 1:
        addend = layer.emit("Multiply", addend, beta, version=1)
    total: Value = layer.emit("Add", product, addend, version=1)
    return total
