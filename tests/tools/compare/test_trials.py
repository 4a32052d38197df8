"""Several layers of B may be at fault, since A has other layers there: a change on trial tells which of them is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec import Builder, Model
from irexec.ir.graph import Value
from irexec.tools.compare import compare
from irexec.tools.compare.sections import comparison_sections
from tests.tools.compare.test_evidence import likely

RNG = np.random.default_rng(17)
SQUARE, HEAD = (RNG.normal(size=size).astype(np.float32) for size in ((8, 8), (8, 3)))
BIAS, SCALE = RNG.normal(size=8).astype(np.float32), RNG.uniform(0.5, 2, 8).astype(np.float32)
ROWS = {"x": RNG.normal(size=(8, 8)).astype(np.float32)}


def scaled_projection(name: str, fault: str = "") -> Model:
    """A projection with a bias and a scale; B scales first, and adds the product of both constants."""
    b = Builder(name)
    x = b.emit("Tanh", b.parameter("f32", (8, 8), "x"), name=f"{name}.tanh")
    operands = (b.constant(SQUARE), x) if fault == "exchanged" else (x, b.constant(SQUARE))
    y = x if fault == "missing" else b.emit("MatMul", *operands, name=f"{name}.product")
    if name == "A":
        y = b.emit("Multiply", b.emit("Add", y, BIAS, name="A.shift"), SCALE, name="A.scale")
    else:
        scale = np.rint(SCALE * 8) / np.float32(8) if fault == "rounded" else SCALE
        y = b.emit("Add", b.emit("Multiply", y, scale, name="B.scale"), BIAS * SCALE, name="B.shift")
    y = b.emit("Softmax", b.emit("Add", y, x, name=f"{name}.sum"), axis=1, name=f"{name}.soft")
    b.result(b.emit("MatMul", y, HEAD, name=f"{name}.head"))
    return b.model()


@pytest.mark.parametrize(("fault", "layer"), [("exchanged", "B.product"), ("rounded", "B.scale")])
def test_a_layer_is_named_by_its_correction(fault: str, layer: str) -> None:
    """The constant of the sum is innocent: A has it as the product of two."""
    assert compare(scaled_projection("A"), scaled_projection("B"), ROWS).agrees
    found = compare(scaled_projection("A"), scaled_projection("B", fault), ROWS)
    assert likely(found) == [layer]
    text = "\n".join(map(str, comparison_sections(found)))
    assert fault == "exchanged" or f"; the layer at fault is {layer!r}" in text


def test_the_reader_of_a_missing_layer_is_in_the_set() -> None:
    """A adds and scales in another order, so that no tensor between the missing layer and the sum is a pair."""
    found = likely(compare(scaled_projection("A"), scaled_projection("B", "missing"), ROWS))
    assert "B.scale" in found and len(found) <= 3


def groups(name: str, epsilon: float = 1e-5, activation: str = "Swish", groups: int = 2) -> Model:
    """A group normalization between convolutions: one layer in B, several in A."""
    b = Builder(name)
    windows = {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1)}
    kernels = np.random.default_rng(5).normal(size=(2, 4, 4, 3, 3)).astype(np.float32)
    scale, shift = (np.random.default_rng(seed).normal(size=4).astype(np.float32) for seed in (6, 7))
    x = b.emit("Convolution", b.parameter("f32", (1, 4, 6, 6), "x"), kernels[0] * 0.01, name=f"{name}.first", **windows)
    if name == "A":
        x = b.emit("Reshape", x, np.array([1, 2, -1]), special_zero=False, name="A.grouped")
        x = b.emit("MVN", x, np.array([2]), normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt", name="A.mvn")
        x = b.emit("Reshape", x, np.array([1, 4, 6, 6]), special_zero=False, name="A.ungrouped")
        x = b.emit("Multiply", x, scale.reshape(1, 4, 1, 1), name="A.scale")
        x = b.emit("Add", x, shift.reshape(1, 4, 1, 1), name="A.shift")
        x = b.emit("Multiply", x, b.emit("Sigmoid", x, name="A.sigmoid"), name="A.swish")
    else:
        x = b.emit("GroupNormalization", x, scale, shift, num_groups=groups, epsilon=epsilon, name="B.norm")
        x = b.emit(activation, x, name="B.swish")
    x = b.emit("Convolution", x, kernels[1], name=f"{name}.second", **windows)
    b.result(b.emit("ReduceMean", x, np.array([2, 3]), keep_dims=False, name=f"{name}.mean"))
    return b.model()


@pytest.mark.parametrize(("changed", "count"), [({"epsilon": 1e-2}, 1), ({"groups": 4}, 3)])
def test_a_normalization_that_a_writes_as_several_layers_is_named(changed: dict[str, Any], count: int) -> None:
    """Where no change of the layer gives A's tensor, it is named with the two after it, which A writes otherwise."""
    x = {"x": RNG.normal(size=(1, 4, 6, 6)).astype(np.float32)}
    assert compare(groups("A"), groups("B"), x).agrees
    found = likely(compare(groups("A"), groups("B", **changed), x))
    assert "B.norm" in found and len(found) == count


def shuffled(name: str, fault: str = "") -> Model:
    """DepthToSpace of A, written by B as two Reshapes and a Transpose with sizes from the input."""
    b = Builder(name)
    x = b.emit("Tanh", b.parameter("f32", (1, 8, 3, 3), "x"), name=f"{name}.tanh")
    if name == "A":
        x = b.emit("DepthToSpace", x, mode="depth_first", block_size=2, name="A.shuffle")
    else:
        sizes = b.emit("ShapeOf", x, name="sizes")
        height, width = (b.emit("Gather", sizes, np.array([i]), np.array(0), name=f"size{i}") for i in (2, 3))
        parts = [np.array([1]), np.array([2]), np.array([2]), np.array([2]), height, width]
        if fault == "exchanged":
            parts[1], parts[4] = parts[4], parts[1]
        shape = b.emit("Concat", *parts, axis=0, name="shape")
        x = b.emit("Reshape", x, shape, special_zero=False, name="split")
        order = [0, 1, 4, 2, 3, 5] if fault == "order" else [0, 1, 4, 2, 5, 3]
        x = b.emit("Transpose", x, np.array(order), name="move")
        x = b.emit("Reshape", x, np.array([1, 2, 6, 6]), special_zero=False, name="merged")
    x = b.emit("MatMul", x, RNG_HEAD, name=f"{name}.head")
    b.result(b.emit("Softmax", x, axis=3, name=f"{name}.soft"))
    return b.model()


RNG_HEAD = np.random.default_rng(8).normal(size=(6, 5)).astype(np.float32)


@pytest.mark.parametrize(("fault", "layer"), [("order", "move"), ("exchanged", "shape")])
def test_layers_that_move_elements_and_their_shapes_are_told_apart(fault: str, layer: str) -> None:
    x = {"x": RNG.normal(size=(1, 8, 3, 3)).astype(np.float32)}
    assert compare(shuffled("A"), shuffled("B"), x).agrees
    assert likely(compare(shuffled("A"), shuffled("B", fault), x)) == [layer]


def test_guessed_pairs_of_positions_are_not_crossed() -> None:
    """The sum of rows and columns is the same; only the layer that reads them in another order is at fault."""

    def model(name: str, fault: bool = False) -> Model:
        b = Builder(name)
        x = b.parameter("f32", (-1, 4), "x")
        size = b.emit("Gather", b.emit("ShapeOf", x), np.array(0), np.array(0))
        line = b.emit("Range", np.array(0), size, np.array(1), output_type="i64", name=f"{name}.range")
        square = b.emit("Concat", *[b.emit("Unsqueeze", size, np.array(0))] * 2, axis=0, name=f"{name}.square")
        rows = b.emit("Broadcast", b.emit("Unsqueeze", line, np.array(1)), square, name=f"{name}.rows")
        columns = b.emit("Broadcast", line, square, name=f"{name}.columns")
        parts = [b.emit("Unsqueeze", one, np.array(2)) for one in (rows, columns)]
        grid = b.emit("Concat", *(parts[::-1] if fault else parts), axis=2, name=f"{name}.grid")
        grid = b.emit("Convert", grid, destination_type="f32", name=f"{name}.float")
        b.result(b.emit("MatMul", grid, np.array([[1], [10]], np.float32), name=f"{name}.y"))
        return b.model()

    x = {"x": RNG.normal(size=(4, 4)).astype(np.float32)}
    assert compare(model("A"), model("B"), x).agrees
    assert likely(compare(model("A"), model("B", True), x)) == ["B.grid"]


def positions(name: str, fault: str = "") -> Model:
    """Embeddings of positions, interpolated: a Constant in A, layers with a shape of the input in B."""
    rng = np.random.default_rng(9)
    token, table = rng.normal(size=(1, 1, 6)).astype(np.float32), rng.normal(size=(1, 6, 4)).astype(np.float32)
    b = Builder(name)
    x: Value = b.parameter("f32", (1, 9, 6), "x")
    if name == "A":
        wide = np.repeat(table, 2, axis=2).transpose(0, 2, 1)
        places: Value | np.ndarray = np.concatenate([token, wide], axis=1)
    else:
        token[0, 0, 2] += 3.0 * (fault == "token")
        shifted = table + np.float32(0.2) * rng.normal(size=table.shape).astype(np.float32) * (fault == "table")
        size = b.emit("Gather", b.emit("ShapeOf", x), np.array([1]), np.array(0), name="count")
        size = b.emit("Subtract", size, np.array([1]), name="size")
        size = b.emit("Convert", size, destination_type="i32", name="short")
        wide_b = b.emit(
            "Interpolate", shifted, size, np.array([2.0], np.float32), np.array([2]), version=4, name="wide",
            mode="nearest", shape_calculation_mode="sizes", coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )  # fmt: skip
        moved = b.emit("Transpose", wide_b, np.array([0, 2, 1]), name="moved")
        places = b.emit("Concat", token, moved, axis=1, name="places")
    y = b.emit("MVN", b.emit("Add", x, places, name=f"{name}.sum"), np.array([2]), normalize_variance=True, eps=1e-5,
               eps_mode="inside_sqrt", name=f"{name}.mvn")  # fmt: skip
    b.result(b.emit("MatMul", y, SQUARE[:6], name=f"{name}.y"))
    return b.model()


@pytest.mark.parametrize(("fault", "layer"), [("token", "places"), ("table", "wide")])
def test_layers_that_a_has_as_a_constant_are_told_apart_by_the_elements_that_differ(fault: str, layer: str) -> None:
    x = {"x": RNG.normal(size=(1, 9, 6)).astype(np.float32)}
    assert compare(positions("A"), positions("B"), x).agrees
    assert likely(compare(positions("A"), positions("B", fault), x))[0] == layer


def test_an_order_of_axes_is_traced_through_layers_that_keep_it() -> None:
    """With a batch of 1 a Transpose may move no element and still exchange two axes, which only the result shows."""

    def model(name: str, axes: list[int]) -> Model:
        b = Builder(name)
        x = b.emit("Tanh", b.parameter("f32", (1, 7, 2, 4), "x"), name=f"{name}.tanh")
        moved = b.emit("Transpose", x, np.array(axes), name=f"{name}.move")
        flat = b.emit("Reshape", moved, np.array([0, 0, -1]), special_zero=True, name=f"{name}.flat")
        if name == "A":
            flat = b.emit("Transpose", flat, np.array([1, 0, 2]), name="A.back")
        y = b.emit("Add", b.emit("MatMul", flat, SQUARE, name=f"{name}.product"), BIAS, name=f"{name}.bias")
        b.result(b.emit("Softmax", y, axis=2, name=f"{name}.soft"))
        return b.model()

    x = {"x": RNG.normal(size=(1, 7, 2, 4)).astype(np.float32)}
    assert compare(model("A", [1, 0, 2, 3]), model("B", [0, 1, 2, 3]), x).agrees
    assert likely(compare(model("A", [1, 0, 2, 3]), model("B", [1, 0, 2, 3]), x)) == ["B.move"]
