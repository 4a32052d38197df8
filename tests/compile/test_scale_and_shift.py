"""Scales and shifts around products go into the weights, where nothing else reads what is between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irexec import Model
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import F16, F32, F64, Element
from irexec.ir.dims import Dim, PartialShape
from irexec.ir.graph import Value
from tests.support.passes import assert_agrees, optimized, refusals, types

Make = Callable[[Builder, Value], Value | tuple[Value, ...]]
PASS = ["fold scale and shift"]
IMAGE, VECTORS = (2, 6, 5, 5), (2, 3, 6)
WINDOWS = {"strides": (1, 1), "dilations": (1, 1)}
UNPADDED = WINDOWS | {"pads_begin": (0, 0), "pads_end": (0, 0)}
PADDED = WINDOWS | {"pads_begin": (1, 1), "pads_end": (0, 1)}


def numbers(*shape: int, seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(dtype)


def channels(count: int, seed: int = 1) -> np.ndarray:
    return numbers(count, 1, 1, seed=seed)


def convolution(b: Builder, x: Value, **attributes: object) -> Value:
    return b.emit("Convolution", x, numbers(4, 6, 3, 3), **UNPADDED | attributes)


def batch_norm(b: Builder, x: Value, count: int) -> Value:
    gamma, beta, mean = (numbers(count, seed=seed) for seed in range(3))
    return b.emit("BatchNormInference", x, gamma, beta, mean, np.abs(numbers(count, seed=3)) + 0.1, epsilon=1e-3)


def case(name: str, make: Make, left: list[str], shape: PartialShape = IMAGE, element: Element = F32):
    return pytest.param(make, left, shape, element, id=name)


CASES = [
    case("batch normalization", lambda b, x: batch_norm(b, convolution(b, x), 4), ["Convolution", "Add"]),
    case("of any batch", lambda b, x: batch_norm(b, convolution(b, x), 4), ["Convolution", "Add"], (Dim(), 6, Dim(), Dim())),
    case("bias, scale, bias", lambda b, x: b.emit("Add", b.emit("Multiply", b.emit("Add", convolution(b, x), channels(4, 1)),
         channels(4, 2)), channels(4, 3)), ["Convolution", "Add"]),
    case("bias twice", lambda b, x: b.emit("Add", b.emit("Add", convolution(b, x), channels(4, 1)), channels(4, 2)), ["Convolution", "Add"]),
    case("bias once", lambda b, x: b.emit("Add", convolution(b, x), channels(4, 1)), ["Convolution", "Add"]),
    case("a scale alone", lambda b, x: b.emit("Multiply", channels(4), convolution(b, x)), ["Convolution"]),
    case("scalars", lambda b, x: b.emit("Subtract", 3.0, b.emit("Divide", convolution(b, x), 7.0)), ["Convolution", "Add"]),
    case("subtracted", lambda b, x: b.emit("Subtract", convolution(b, x), channels(4)), ["Convolution", "Add"]),
    case("a divisor", lambda b, x: b.emit("Divide", 1.0, b.emit("Abs", convolution(b, x))), ["Convolution", "Abs", "Divide"]),
    case("the product as divisor", lambda b, x: b.emit("Divide", 1.0, convolution(b, x)), ["Convolution", "Divide"]),
    case("not by channel", lambda b, x: b.emit("Multiply", convolution(b, x), numbers(3)), ["Convolution", "Multiply"]),
    case("more axes", lambda b, x: b.emit("Multiply", convolution(b, x), numbers(1, 1, 1, 1, 1)), ["Convolution", "Multiply"]),
    case("not finite", lambda b, x: b.emit("Divide", convolution(b, x), np.zeros((4, 1, 1), np.float32)), ["Convolution", "Divide"]),
    case("too small", lambda b, x: b.emit("Multiply", convolution(b, x), 1e-30), ["Convolution", "Multiply"]),
    case("0 and 1", lambda b, x: b.emit("Multiply", convolution(b, x), np.array([0, 1, 0, -1], np.float32).reshape(4, 1, 1)), ["Convolution"]),
    case("two readers", lambda b, x: (lambda y: b.emit("Add", b.emit("Multiply", y, 2.0), b.emit("Relu", y)))(convolution(b, x)),
         ["Convolution", "Multiply", "Relu", "Add"]),
    case("a target", lambda b, x: (lambda y: (y, b.emit("Multiply", y, 2.0)))(convolution(b, x)), ["Convolution", "Multiply"]),
    case("groups", lambda b, x: batch_norm(b, b.emit("GroupConvolution", x, numbers(2, 2, 3, 3, 3), **PADDED), 4), ["GroupConvolution", "Add"]),
    case("depthwise", lambda b, x: batch_norm(b, b.emit("GroupConvolution", x, numbers(6, 1, 1, 3, 3), **PADDED), 6), ["GroupConvolution", "Add"]),
    case("one channel", lambda b, x: b.emit("Multiply", b.emit("Convolution", x, numbers(1, 6, 1, 1), **UNPADDED), channels(1)), ["Convolution"]),
    case("one channel that is broadcast", lambda b, x: b.emit(
        "Multiply", b.emit("Convolution", x, numbers(1, 6, 1, 1), **UNPADDED), channels(3)), ["Convolution", "Multiply"]),
    case("transposed", lambda b, x: batch_norm(b, b.emit("ConvolutionBackpropData", x, numbers(6, 4, 3, 3), **PADDED), 4), ["ConvolutionBackpropData", "Add"]),
    case("transposed groups", lambda b, x: batch_norm(
        b, b.emit("GroupConvolutionBackpropData", x, numbers(2, 3, 2, 3, 3), **PADDED), 4), ["GroupConvolutionBackpropData", "Add"]),
    case("before", lambda b, x: convolution(b, batch_norm(b, x, 6)), ["Convolution", "Add"]),
    case("before groups", lambda b, x: b.emit("GroupConvolution", batch_norm(b, x, 6), numbers(2, 2, 3, 3, 3), **UNPADDED), ["GroupConvolution", "Add"]),
    case("before padding", lambda b, x: convolution(b, batch_norm(b, x, 6), **PADDED), ["BatchNormInference", "Convolution"]),
    case("a scale before padding", lambda b, x: convolution(b, b.emit("Multiply", x, channels(6)), **PADDED), ["Convolution"]),
    case("mean and deviation of an image", lambda b, x: convolution(b, b.emit("Divide", b.emit("Subtract", x, channels(6)), 0.25), **PADDED),
         ["Subtract", "Convolution"]),
    case("a scale before a transposed one", lambda b, x: b.emit(
        "ConvolutionBackpropData", b.emit("Multiply", x, channels(6)), numbers(6, 4, 3, 3), **UNPADDED), ["ConvolutionBackpropData"]),
    case("a shift before a transposed one", lambda b, x: b.emit(
        "ConvolutionBackpropData", b.emit("Add", x, channels(6)), numbers(6, 4, 3, 3), **UNPADDED), ["Add", "ConvolutionBackpropData"]),
    case("a channel that is broadcast before", lambda b, x: convolution(b, b.emit("Multiply", x, channels(6))), ["Multiply", "Convolution"], (2, 1, 5, 5)),
    case("before and after", lambda b, x: batch_norm(b, convolution(b, batch_norm(b, x, 6)), 4), ["Convolution", "Add"]),
    case("MatMul", lambda b, x: b.emit("Add", b.emit("Multiply", b.emit("MatMul", x, numbers(6, 4)), numbers(4)), numbers(4)), ["MatMul", "Add"], VECTORS),
    case("transposed weights", lambda b, x: b.emit("Multiply", b.emit("MatMul", x, numbers(4, 6), transpose_b=True), numbers(4)), ["MatMul"], VECTORS),
    case("weights on the left", lambda b, x: b.emit("Multiply", b.emit("MatMul", numbers(4, 3), x), numbers(4, 1)), ["MatMul"], VECTORS),
    case("transposed on the left", lambda b, x: b.emit("Multiply", b.emit("MatMul", numbers(3, 4), x, transpose_a=True), numbers(4, 1)), ["MatMul"], VECTORS),
    case("rows", lambda b, x: b.emit("Multiply", b.emit("MatMul", x, numbers(6, 4)), numbers(3, 1)), ["MatMul", "Multiply"], VECTORS),
    case("a batch of weights", lambda b, x: b.emit("Multiply", b.emit("MatMul", x, numbers(2, 6, 4)), numbers(4)), ["MatMul"], VECTORS),
    case("a vector of weights", lambda b, x: b.emit("Multiply", b.emit("MatMul", x, numbers(6)), 2.0), ["MatMul", "Multiply"], VECTORS),
    case("no weights", lambda b, x: b.emit("Multiply", b.emit("MatMul", x, x, transpose_b=True), 2.0), ["MatMul", "Multiply"], VECTORS),
    case("f64", lambda b, x: b.emit("Multiply", b.emit("MatMul", x, numbers(6, 4, dtype=np.float64)), numbers(4, dtype=np.float64)), ["MatMul"], VECTORS, F64),
    case("f16", lambda b, x: b.emit("Multiply", b.emit("MatMul", x, numbers(6, 4, dtype=np.float16)), numbers(4, dtype=np.float16)),
         ["MatMul", "Multiply"], VECTORS, F16),
]  # fmt: skip


def model_of(make: Make, shape: PartialShape, element: Element) -> Model:
    builder = Builder("m")
    made = make(builder, builder.parameter(element, shape, "x"))
    for value in made if isinstance(made, tuple) else (made,):
        builder.result(value)
    return builder.model()


@pytest.mark.parametrize(("make", "left", "shape", "element"), CASES)
def test_cases(make: Make, left: list[str], shape: PartialShape, element: Element) -> None:
    model = model_of(make, shape, element)
    graph, _ = optimized(model, PASS)
    assert types(graph) == left
    x = numbers(*(size if isinstance(size, int) else 5 for size in shape or ())).astype(element.carrier)
    for names in (PASS, True):
        # Where a product divides, its rounding counts many times over.
        divides = "Divide" in left
        assert_agrees(model, [x], names, tolerance=2e-3 if element is F16 else 2e-4 if divides else 1e-5)


def test_shared_weights_stay() -> None:
    builder = Builder("m")
    x, weights = builder.parameter(F32, (3, 4), "x"), builder.constant(numbers(4, 4))
    first = builder.emit("Multiply", builder.emit("MatMul", x, weights), 2.0)
    builder.result(builder.emit("MatMul", first, weights))
    graph, rewriting = optimized(builder.model(), PASS)
    assert types(graph) == ["MatMul", "Multiply", "MatMul"]
    found = {reason for reasons in refusals(rewriting.report) for _, reason in reasons}
    assert found == {"its weights are read elsewhere too"}


def test_weights_are_scaled_in_double_precision_and_rounded_once() -> None:
    builder = Builder("m")
    x, weights, scales = (
        builder.parameter(F32, (3, 4), "x"),
        numbers(4, 5),
        [numbers(5, seed=seed) for seed in range(3)],
    )
    value = builder.emit("MatMul", x, weights)
    for scale in scales:
        value = builder.emit("Multiply", value, scale)
    builder.result(value)
    graph, _ = optimized(builder.model(), PASS)
    (product,) = graph
    assert product.inputs[1].known is not None
    expected = (weights * np.prod([scale.astype(np.float64) for scale in scales], axis=0)).astype(np.float32)
    np.testing.assert_array_equal(product.inputs[1].known, expected)
    assert [node.type for node in product.origins] == ["MatMul", "Multiply", "Multiply", "Multiply"]
