"""What is removed because it changes nothing or is computed twice, and what joins the operation before it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irexec
from irexec.analysis.builder import Builder
from irexec.dtypes.elements import BF16, F16, F32, F64, I8, I32, I64, U4, Element
from irexec.ir.dims import Dim
from irexec.ir.graph import Value
from tests.support.passes import assert_agrees, assert_same_signs, optimized, refusals, types

Make = Callable[[Builder, Value], Value]
SHAPE = (2, 3, 4, 1)
MASKS = {"begin_mask": (0, 0), "end_mask": (0, 0)}
NEAREST = {"mode": "nearest", "shape_calculation_mode": "sizes"}


def case(name: str, make: Make, left: list[str], element: Element = F32, shape: tuple[int | Dim, ...] = SHAPE):
    return pytest.param(make, left, element, shape, id=name)


def model_of(make: Make, element: Element = F32, shape: tuple[int | Dim, ...] = SHAPE) -> irexec.Model:
    builder = Builder("m")
    builder.result(make(builder, builder.parameter(element, shape, "x")))
    return builder.model()


def special(element: Element, shape: tuple[int | Dim, ...]) -> np.ndarray:
    """Values among which are zeros of both signs, infinities and NaN."""
    sizes = [size if isinstance(size, int) else 3 for size in shape]
    array = np.random.default_rng(0).integers(-9, 9, sizes).astype(element.carrier)
    if element in (F16, F32, F64):
        numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-5]
        array.reshape(-1)[: len(numbers)] = numbers[: array.size]
    return array


def c(builder: Builder, values: object, dtype: type = np.float32) -> Value:
    return builder.constant(np.array(values, dtype))


NO_OPS = [
    case("Identity", lambda b, x: b.emit("Identity", x), []),
    case("Convert to the same type", lambda b, x: b.emit("Convert", x, destination_type=F32), []),
    case("Convert of any shape", lambda b, x: b.emit("Convert", x, destination_type=F32), [], shape=(Dim(), 2)),
    case("Convert that loses", lambda b, x: b.emit("Convert", b.emit("Convert", x, destination_type=F16), destination_type=F32), ["Convert", "Convert"]),
    case("Convert there and back", lambda b, x: b.emit("Convert", b.emit("Convert", x, destination_type=F64), destination_type=F32), []),
    case("integers there and back", lambda b, x: b.emit("Convert", b.emit("Convert", x, destination_type=I64), destination_type=I8), [], I8),
    case("integers by way of f32", lambda b, x: b.emit("Convert", b.emit("Convert", x, destination_type=F32), destination_type=I32),
         ["Convert", "Convert"], I32),
    case("a narrow carrier", lambda b, x: b.emit("Convert", b.emit("Convert", x, destination_type=U4), destination_type=I8), ["Convert", "Convert"], I8),
    case("bf16 is not f32", lambda b, x: b.emit("Convert", b.emit("Convert", x, destination_type=BF16), destination_type=F32), ["Convert", "Convert"]),
    case("Reshape to the same shape", lambda b, x: b.emit("Reshape", x, [2, -1, 0, 1], special_zero=True), []),
    case("Reshape to another", lambda b, x: b.emit("Reshape", x, [3, 2, 4, 1], special_zero=False), ["Reshape"]),
    case("Squeeze of a larger axis", lambda b, x: b.emit("Squeeze", x, [1]), []),
    case("Transpose in order", lambda b, x: b.emit("Transpose", x, [0, 1, 2, 3]), []),
    case("Transpose of axes of size 1", lambda b, x: b.emit("Transpose", x, [1, 0, 2]), [], shape=(1, 1, 3)),
    case("Transpose that permutes", lambda b, x: b.emit("Transpose", x, [1, 0, 2]), ["Transpose"], shape=(3, 3, 1)),
    case("reversed axes", lambda b, x: b.emit("Transpose", x, c(b, [], np.int64)), ["Transpose"], shape=(3, 3)),
    case("Broadcast", lambda b, x: b.emit("Broadcast", x, [3, 4, 1], mode="bidirectional"), []),
    case("Broadcast with a permutation", lambda b, x: b.emit("Broadcast", x, [3, 3], [1, 0], mode="explicit"), ["Broadcast"], shape=(3, 3)),
    case("Tile", lambda b, x: b.emit("Tile", x, [1, 1]), []),
    case("Tile that repeats", lambda b, x: b.emit("Tile", x, [2, 1]), ["Tile"]),
    case("Pad by nothing", lambda b, x: b.emit("Pad", x, [0] * 4, [0] * 4, pad_mode="reflect"), []),
    case("Pad that shifts", lambda b, x: b.emit("Pad", x, [1, 0, 0, 0], [-1, 0, 0, 0], pad_mode="constant"), ["Pad"]),
    case("Slice of everything", lambda b, x: b.emit("Slice", x, [0], [99], [1], [1]), []),
    case("Slice backwards", lambda b, x: b.emit("Slice", x, [-1], [-99], [-1], [1]), ["Slice"]),
    case("StridedSlice of everything", lambda b, x: b.emit("StridedSlice", x, [0, 0], [2, 3], [1, 1], **MASKS), []),
    case("StridedSlice backwards", lambda b, x: b.emit("StridedSlice", x, [0, 2], [2, -9], [1, -1], **MASKS), ["StridedSlice"]),
    case("Interpolate to the same size", lambda b, x: b.emit("Interpolate", x, [4], [2], version=11, **NEAREST), []),
    case("Interpolate between elements", lambda b, x: b.emit("Interpolate", x, [4], [2], version=11, **NEAREST | {"mode": "linear"}), ["Interpolate"]),
    case("Interpolate by a scale that is rounded", lambda b, x: b.emit(
        "Interpolate", x, [4], c(b, [1.2]), [2], version=4, **NEAREST | {"shape_calculation_mode": "scales"}), ["Interpolate"]),
    case("Concat of one", lambda b, x: b.emit("Concat", x, axis=0), []),
    case("Split into one part", lambda b, x: b.emit("Split", x, c(b, 1, np.int64), num_splits=1)[0], []),
    case("Multiply by 1", lambda b, x: b.emit("Multiply", x, c(b, [[1], [1], [1], [1]])), []),
    case("1 times", lambda b, x: b.emit("Multiply", c(b, 1), x), [], shape=(Dim(), 2)),
    case("1 that broadcasts", lambda b, x: b.emit("Multiply", x, c(b, np.ones((2, 3, 4, 5)))), ["Multiply"]),
    case("1 of higher rank", lambda b, x: b.emit("Multiply", x, c(b, np.ones((1, 1, 1)))), ["Multiply"], shape=(Dim(), 2)),
    case("Divide by 1", lambda b, x: b.emit("Divide", x, c(b, 1)), []),
    case("1 divided", lambda b, x: b.emit("Divide", c(b, 1), x), ["Divide"]),
    case("Subtract 0", lambda b, x: b.emit("Subtract", x, c(b, 0)), []),
    case("Subtract -0", lambda b, x: b.emit("Subtract", x, c(b, -0.0)), ["Subtract"]),
    case("Add -0", lambda b, x: b.emit("Add", c(b, -0.0), x), []),
    case("Add 0", lambda b, x: b.emit("Add", x, c(b, 0)), ["Add"]),
    case("Add 0 to integers", lambda b, x: b.emit("Add", x, c(b, 0, np.int32)), [], I32),
    case("Power of 1", lambda b, x: b.emit("Power", x, c(b, 1)), []),
    case("Relu twice", lambda b, x: b.emit("Relu", b.emit("Relu", x)), ["Relu"]),
    case("other bounds", lambda b, x: b.emit("Clamp", b.emit("Clamp", x, min=0.0, max=6.0), min=0.0, max=5.0), ["Clamp", "Clamp"]),
    case("Negative twice", lambda b, x: b.emit("Negative", b.emit("Negative", x)), ["Negative", "Negative"]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "left", "element", "shape"), NO_OPS)
def test_no_ops(make: Make, left: list[str], element: Element, shape: tuple[int | Dim, ...]) -> None:
    model = model_of(make, element, shape)
    graph, _ = optimized(model, ["remove no-ops"])
    assert types(graph) == left
    assert_agrees(model, [special(element, shape)], ["remove no-ops"])
    assert_same_signs(model, [special(element, shape)], ["remove no-ops"])


def test_what_is_left_has_a_reason() -> None:
    model = model_of(lambda b, x: b.emit("Slice", x, [-1], [-99], [-1], [1]))
    _, rewriting = optimized(model, ["remove no-ops"])
    assert refusals(rewriting.report) == [[("remove no-ops", "it may reverse axes")]]


def _sum_of_two(type: str, *inputs: object, **attributes: object) -> Make:
    return lambda b, x: b.emit("Add", *(b.emit(type, x, *inputs, **attributes) for _ in range(2)))


DUPLICATES = [
    case("the same", _sum_of_two("Softmax", axis=1), ["Softmax", "Add"]),
    case("the same constants", _sum_of_two("ReduceSum", [1], keep_dims=True), ["ReduceSum", "Add"]),
    case("one after the other", lambda b, x: b.emit("Add", b.emit("Exp", b.emit("Relu", x)), b.emit("Exp", b.emit("Relu", x))), ["Relu", "Exp", "Add"]),
    case("other attributes", lambda b, x: b.emit("Add", b.emit("Softmax", x, axis=1), b.emit("Softmax", x, axis=2)), ["Softmax", "Softmax", "Add"]),
    case("constants of another type", lambda b, x: b.emit(
        "Add", b.emit("ReduceSum", x, [1], keep_dims=True), b.emit("ReduceSum", x, c(b, [1], np.int32), keep_dims=True)),
        ["ReduceSum", "ReduceSum", "Add"]),
    case("constants of another shape", lambda b, x: b.emit(
        "Add", b.emit("Multiply", x, c(b, [1, 2, 3])), b.emit("Multiply", x, c(b, [[1], [2], [3]]))),
        ["Multiply", "Multiply", "Add"], shape=(3, 3)),
    case("random", lambda b, x: b.emit("Add", *(b.emit(
        "RandomUniform", [2], c(b, 0), c(b, 1e-30), output_type=F32, global_seed=0, op_seed=0) for _ in range(2))),
        ["RandomUniform", "RandomUniform", "Add"]),
]  # fmt: skip


@pytest.mark.parametrize(("make", "left", "element", "shape"), DUPLICATES)
def test_duplicates(make: Make, left: list[str], element: Element, shape: tuple[int | Dim, ...]) -> None:
    model = model_of(make, element, shape)
    graph, _ = optimized(model, ["merge duplicates"])
    assert types(graph) == left
    if "RandomUniform" not in left:
        # Fast kernels may round otherwise than the reference kernels.
        assert_agrees(model, [special(element, shape)], ["merge duplicates"], tolerance=1e-6)


def test_targets_of_removed_operations_are_given_apart() -> None:
    builder = Builder("m")
    x = builder.parameter(F32, (2, 2), "x")
    for value in (builder.emit("Identity", x), builder.emit("Relu", x), builder.emit("Relu", x)):
        builder.result(value)
    given = np.array([[1, -1], [2, -2]], np.float32)
    arrays = list(irexec.compile_model(builder.model())([given]).values())
    np.testing.assert_array_equal(arrays[0], given)
    np.testing.assert_array_equal(arrays[1], arrays[2])
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in (given, *arrays[i + 1 :]))


def _size(b: Builder, of: Value, *axes: int) -> Value:
    shape = b.emit("ShapeOf", of, version=3, output_type=I64)
    return b.emit("Gather", shape, c(b, axes, np.int64), c(b, 0, np.int64), version=8, batch_dims=0)


@pytest.mark.parametrize(
    ("indices", "axis", "read", "left"),
    [
        ([1, 0, 1], 0, [2], ["Gather", "ShapeOf"]),
        ([1, 0, 1], 0, [1, 2], ["Gather", "ShapeOf"]),
        ([1, 0, 1], 0, [0], ["Gather", "Gather", "ShapeOf"]),
        ([1, 0, 1], -1, [2], ["Gather", "Gather", "ShapeOf"]),
        ([[1, 0, 1]], 0, [2], ["Gather", "Gather", "ShapeOf"]),
    ],
)
def test_sizes_that_a_gather_keeps(indices: list[int], axis: int, read: list[int], left: list[str]) -> None:
    """The data has unknown sizes, or nothing would be left."""
    builder = Builder("m")
    x = builder.parameter(F32, (Dim(), Dim(), Dim()), "x")
    picked = builder.emit(
        "Gather", x, c(builder, indices, np.int64), c(builder, axis, np.int64), version=8, batch_dims=0
    )
    builder.result(_size(builder, picked, *read))
    model = builder.model()
    assert sorted(types(optimized(model, ["remove no-ops"])[0])) == left
    assert_agrees(model, [np.zeros((2, 3, 5), np.float32)], True)


# Which element-wise operations join the operation before them. What is expected is computed by NumPy in float64.


X = np.random.default_rng(0).uniform(-1, 1, (1, 4, 6)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).uniform(-1, 1, (6, 5)).astype(np.float32)
ROWS = np.random.default_rng(2).uniform(-1, 1, (3, 4, 5)).astype(np.float32)
PRODUCT = X.astype(np.float64) @ WEIGHTS

FusingMake = Callable[[Builder, Value], list[Value]]

CASES: dict[str, tuple[FusingMake, list[np.ndarray], list[str]]] = {
    "one that broadcasts the product": (lambda b, y: [b.emit("Add", y, ROWS)], [PRODUCT + ROWS], ["MatMul", "Add"]),
    "after one that keeps the shape": (lambda b, y: [b.emit("Add", b.emit("Abs", y), ROWS)], [np.abs(PRODUCT) + ROWS], ["MatMul+Abs", "Add"]),
    "of a product that is a result too": (lambda b, y: [b.emit("Abs", y), y], [np.abs(PRODUCT), PRODUCT], ["MatMul", "Abs"]),
    "before a value that is a result too": (
        lambda b, y: [(z := b.emit("Abs", y)), b.emit("Sqrt", z)], [np.abs(PRODUCT), np.sqrt(np.abs(PRODUCT))], ["MatMul+Abs", "Sqrt"],
    ),
    "two that meet again": (
        lambda b, y: [b.emit("Multiply", b.emit("Abs", y), b.emit("Exp", y))], [np.abs(PRODUCT) * np.exp(PRODUCT)], ["MatMul+Abs+Exp+Multiply"],
    ),
    "a reduction of one of two": (
        lambda b, y: [b.emit("Subtract", (z := b.emit("Exp", y)), b.emit("ReduceMax", z, np.array([2]), keep_dims=True))],
        [np.exp(PRODUCT) - np.exp(PRODUCT).max(2, keepdims=True)], ["MatMul+Exp", "ReduceMax", "Subtract"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    make, expected, steps = CASES[name]
    builder = Builder("m")
    x = builder.parameter("f32", X.shape, "x")
    for value in make(builder, builder.emit("MatMul", x, WEIGHTS)):
        builder.result(value)
    compiled = irexec.compile_model(builder.model(), threads=1)
    assert [row.operation for row in compiled.plan.steps] == steps
    for actual, values in zip(compiled(X).values(), expected, strict=True):
        np.testing.assert_allclose(actual, values, rtol=1e-5, atol=1e-6)
