"""Layers of B that A has as one Constant: distances of positions, from which a bias of attention is made."""

from __future__ import annotations

import numpy as np
import pytest

from irexec import Builder, Model
from irexec.ir.graph import Value
from irexec.tools.compare import compare
from tests.tools.compare.test_evidence import likely

RNG = np.random.default_rng(11)
SIZE = WIDTH = 16
QUERY, KEY, BIAS, OUT = (
    RNG.normal(size=size).astype(np.float32) for size in ((WIDTH, WIDTH), (WIDTH, WIDTH), (SIZE,), (SIZE, 5))
)
DISTANCES = np.arange(SIZE)[None, :] - np.arange(SIZE)[:, None]


def attention(name: str, fault: str, distances: Value | np.ndarray | None) -> Model:
    """Scores plus a bias that depends on distances of positions; these are computed where they are not given."""
    b = Builder(name)
    x = b.parameter("f32", (-1, WIDTH), "x")
    if distances is None:
        distances = computed_distances(b, x, fault)
    far = b.emit("Abs", distances, name=f"{name}.far")
    bias = b.emit("Gather", BIAS, far, np.array(0), name=f"{name}.bias")
    query = b.emit("MatMul", x, QUERY, name=f"{name}.query")
    key = b.emit("MatMul", x, KEY, name=f"{name}.key")
    scores = b.emit("MatMul", query, key, transpose_b=fault != "transpose_b", name=f"{name}.scores")
    total = b.emit(
        "Add", scores, b.emit("Multiply", bias, b.emit("Convert", b.emit("Sign", distances), destination_type="f32"))
    )
    b.result(b.emit("MatMul", b.emit("Softmax", total, axis=1, name=f"{name}.softmax"), OUT, name=f"{name}.out"))
    return b.model()


def computed_distances(b: Builder, x: Value, fault: str) -> Value:
    """The distances of all positions, from the shape of the input."""
    size = b.emit("Gather", b.emit("ShapeOf", x), np.array(0), np.array(0))
    positions = b.emit("Range", np.array(0), size, np.array(1), output_type="i64", name="positions")
    one = b.emit("Unsqueeze", positions, np.array(0), name="columns")
    other = b.emit("Unsqueeze", positions, np.array(1), name="rows")
    operands = (other, one) if fault == "swapped" else (one, other)
    return b.emit("Subtract", *operands, name="distances")


@pytest.mark.parametrize(("fault", "layer"), [("swapped", "distances"), ("transpose_b", "B.scores")])
def test_a_fault_in_or_behind_what_a_has_as_a_constant_is_named(fault: str, layer: str) -> None:
    """A has the distances as a Constant: no tensor of A is theirs, and neither fault hides the other."""
    x = {"x": RNG.normal(size=(SIZE, WIDTH)).astype(np.float32)}
    assert compare(attention("A", "", DISTANCES), attention("B", "", None), x).agrees
    found = compare(attention("A", "", DISTANCES), attention("B", fault, None), x)
    assert likely(found) == [layer]


def test_a_transpose_some_layers_ahead_of_the_first_difference_is_named() -> None:
    """Layers between compute each pixel by itself, so that their tensors are those of A in another order of axes."""
    pointwise, kernel = (RNG.normal(size=size).astype(np.float32) for size in ((3, 3, 1, 1), (3, 3, 3, 3)))

    def model(name: str, axes: list[int]) -> Model:
        b = Builder(name)
        windows = {"strides": (1, 1), "dilations": (1, 1)}
        x = b.emit("Transpose", b.parameter("f32", (1, 6, 6, 3), "x"), np.array(axes), name=f"{name}.move")
        x = b.emit("Convolution", x, pointwise, name=f"{name}.pixels", pads_begin=(0, 0), pads_end=(0, 0), **windows)
        x = b.emit("Tanh", x, name=f"{name}.tanh")
        x = b.emit("Convolution", x, kernel, name=f"{name}.windows", pads_begin=(1, 1), pads_end=(1, 1), **windows)
        b.result(b.emit("Relu", x, name=f"{name}.relu"))
        return b.model()

    assert "B.move" in likely(compare(model("A", [0, 3, 1, 2]), model("B", [0, 3, 2, 1])))


def test_a_product_with_swapped_operands_is_named_where_it_moves_axes_alone() -> None:
    """W x is the transpose of x W where x and W are symmetric; only the layer behind it shows other values."""
    square, shift = RNG.normal(size=(6, 6)).astype(np.float32), RNG.normal(size=6).astype(np.float32)
    square += square.T

    def model(name: str, swapped: bool) -> Model:
        b = Builder(name)
        x = b.emit("Tanh", b.parameter("f32", (6, 6), "x"), name=f"{name}.tanh")
        product = b.emit("MatMul", *((square, x) if swapped else (x, square)), name=f"{name}.product")
        b.result(b.emit("Softmax", b.emit("Add", product, shift, name=f"{name}.shift"), axis=1, name=f"{name}.y"))
        return b.model()

    values = RNG.normal(size=(6, 6)).astype(np.float32)
    found = compare(model("A", False), model("B", True), {"x": values + values.T})
    assert "B.product" in likely(found)


@pytest.mark.parametrize("fault", [False, True])
def test_an_axis_of_size_1_elsewhere_is_not_a_fault(fault: bool) -> None:
    """A Reshape of one exporter has the axis of size 1 in another place; the product after it needs no other shape."""
    weights = RNG.normal(size=(3, 4)).astype(np.float32)

    def model(name: str, shape: list[int], flat: list[int], weights: np.ndarray) -> Model:
        b = Builder(name)
        x = b.emit("Relu", b.parameter("f32", (4, 3), "x"), name=f"{name}.relu")
        x = b.emit("Reshape", x, np.array(shape), special_zero=name == "A", name=f"{name}.axes")
        x = b.emit("Reshape", x, np.array(flat), special_zero=False, name=f"{name}.flat")
        b.result(b.emit("MatMul", x, weights, name=f"{name}.y"))
        return b.model()

    found = compare(model("A", [1, 4, 3], [4, 3], weights), model("B", [4, 1, 3], [4, 3], weights * (1 + fault)))
    assert found.agrees is not fault
    assert not fault or "B.y" in likely(found)
