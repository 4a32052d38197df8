"""Sets of layers that hold a fault, and changes on trial that tell which of them is at fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irexec import Builder, Model
from irexec.ir.graph import Value
from irexec.tools.compare import compare
from irexec.tools.compare.comparison import comparison_sections
from irexec.tools.compare.edits import Theirs, edits
from tests.support.tiers import some_rows
from tests.tools.compare.test_evidence import likely

RNG = np.random.default_rng(23)
PACKED, SHIFTS = RNG.normal(size=(8, 24)).astype(np.float32) / 3, RNG.normal(size=24).astype(np.float32)
SQUARE, HEAD = RNG.normal(size=(8, 8)).astype(np.float32), RNG.normal(size=(8, 5)).astype(np.float32)
ROWS = {"x": RNG.normal(size=(1, 6, 8)).astype(np.float32)}


def attention(name: str, fault: bool = False) -> Model:
    """Attention with its weights in one constant of A and in three of B, and with other axes of size 1."""
    b = Builder(name)
    x = b.emit("Tanh", b.parameter("f32", (1, 6, 8), "x"), name=f"{name}.tanh")
    if name == "A":
        packed = b.emit("Add", b.emit("MatMul", x, PACKED, name="A.packed"), SHIFTS, name="A.shift")
        parts = list(b.emit("Split", packed, np.array(2), num_splits=3, name="A.split"))
    else:
        parts = []
        for i, letter in enumerate("qkv"):
            own = slice(8 * i, 8 * i + 8)
            shift = SHIFTS[own].copy()
            shift[3] += fault and letter == "v"
            product = b.emit("MatMul", x, PACKED[:, own].copy(), name=f"B.{letter}")
            parts.append(b.emit("Add", product, shift, name=f"B.{letter}.shift"))
    heads = [b.emit("Reshape", part, np.array([1, 6, 2, 4]), special_zero=False) for part in parts]
    q, k, v = (b.emit("Transpose", head, np.array([0, 2, 1, 3])) for head in heads)
    y = b.emit("ScaledDotProductAttention", q, k, v, causal=False, name=f"{name}.attention")
    if name == "A":
        y = b.emit("Transpose", y, np.array([2, 0, 1, 3]), name="A.moved")
        y = b.emit("MatMul", b.emit("Reshape", y, np.array([6, 8]), special_zero=False), SQUARE, name="A.out")
        y = b.emit("Reshape", y, np.array([1, 6, 8]), special_zero=False, name="A.back")
    else:
        y = b.emit("Transpose", y, np.array([0, 2, 1, 3]), name="B.moved")
        y = b.emit("MatMul", b.emit("Reshape", y, np.array([1, 6, 8]), special_zero=False), SQUARE, name="B.out")
    b.result(b.emit("MatMul", b.emit("Add", y, x, name=f"{name}.sum"), HEAD, name=f"{name}.head"))
    return b.model()


@pytest.mark.slow
def test_a_part_of_a_constant_of_a_is_a_correction() -> None:
    assert compare(attention("A"), attention("B"), ROWS).agrees
    assert likely(compare(attention("A"), attention("B", True), ROWS)) == ["B.v.shift"]


def test_a_product_with_swapped_operands_is_named_though_its_tensor_is_another_one_of_a() -> None:
    """The swapped product is A's transposed one, and its Transpose is A's product: only the next layer differs."""

    def model(name: str, fault: bool = False) -> Model:
        b = Builder(name)
        x = b.parameter("f32", (1, 8, 8), "x")
        one, other = (
            b.emit("MatMul", x, weights, name=f"{name}.{i}") for i, weights in enumerate((SQUARE, PACKED[:, :8]))
        )
        operands = (other, one) if fault else (one, other)
        y = b.emit("MatMul", *operands, transpose_b=True, name=f"{name}.product")
        y = b.emit("Transpose", y, np.array([0, 2, 1]), name=f"{name}.move")
        y = b.emit("Reshape", y, np.array([1, 1, 64]), special_zero=False, name=f"{name}.flat")
        y = b.emit("MatMul", y, np.random.default_rng(3).normal(size=(64, 5)).astype(np.float32), name=f"{name}.head")
        b.result(b.emit("Softmax", y, axis=2, name=f"{name}.soft"))
        return b.model()

    x = {"x": RNG.normal(size=(1, 8, 8)).astype(np.float32)}
    assert compare(model("A"), model("B"), x).agrees
    assert set(likely(compare(model("A"), model("B", True), x))) == {"B.move", "B.product"}


def masked(name: str, fault: bool = False) -> Model:
    """Two blocks after one another, with a mask: a Constant in A, computed from a size in B."""
    b = Builder(name)
    x = b.parameter("f32", (1, 8, 8), "x")
    if name == "A":
        region = (np.arange(8) >= 5).astype(np.float32)
        mask: Value | np.ndarray = np.where(region[:, None] == region[None], 0, -100).astype(np.float32)[None]
    else:
        size = b.emit("Gather", b.emit("ShapeOf", x, name="sizes"), np.array(1), np.array(0), name="size")
        line = b.emit("Range", np.array(0), size, np.array(1), output_type="i64", name="line")
        border = size if fault else b.emit("Add", size, np.array(-3), name="border")
        region_b = b.emit("Convert", b.emit("GreaterEqual", line, border, name="is_after"), destination_type="f32")
        rows, columns = (b.emit("Unsqueeze", region_b, np.array(axis), name=f"line{axis}") for axis in (0, 1))
        apart = b.emit("NotEqual", rows, columns, name="apart")
        mask = b.emit("Select", apart, np.float32(-100), np.float32(0), name="select")
        mask = b.emit("Unsqueeze", mask, np.array(0), name="mask")
    y = b.emit("MatMul", x, x, transpose_b=True, name=f"{name}.scores")
    for i in range(2):
        y = b.emit("Add", y, mask, name=f"{name}.mask{i}")
    y = b.emit("MatMul", b.emit("Softmax", y, axis=2, name=f"{name}.soft"), x, name=f"{name}.product")
    shape: Value | np.ndarray = np.array([1, 8, 2, 4])
    if name == "B":
        size = b.emit("Gather", b.emit("ShapeOf", y, name="sizes2"), np.array([0, 1]), np.array(0), name="size2")
        shape = b.emit("Concat", size, np.array([2, 4]), axis=0, name="shape2")
    y = b.emit("Reshape", y, shape, special_zero=False, name=f"{name}.heads")
    y = b.emit("Reshape", b.emit("Transpose", y, np.array([0, 1, 3, 2])), np.array([1, 8, 8]), special_zero=False)
    y = normalized(b, b.emit("MatMul", y, SQUARE, name=f"{name}.first"), f"{name}.norm1")
    y = b.emit("Add", y, normalized(b, b.emit("MatMul", y, SQUARE), f"{name}.norm2"), name=f"{name}.sum")
    b.result(b.emit("MatMul", y, HEAD, name=f"{name}.head"))
    return b.model()


def normalized(b: Builder, x: Value, name: str) -> Value:
    y = b.emit("MVN", x, np.array([2]), normalize_variance=True, eps=1e-5, eps_mode="inside_sqrt", name=f"{name}.mvn")
    scale, shift = SHIFTS[:8], SHIFTS[8:16]
    return b.emit("Add", b.emit("Multiply", y, scale, name=f"{name}.scale"), shift, name=f"{name}.shift")


@pytest.mark.slow
def test_a_layer_that_is_missing_where_sizes_are_computed_is_traced_to_its_reader() -> None:
    x = {"x": RNG.normal(size=(1, 8, 8)).astype(np.float32)}
    assert compare(masked("A"), masked("B"), x).agrees
    found = likely(compare(masked("A"), masked("B", True), x))
    assert "is_after" in found
    assert len(found) <= 5


def windows(name: str, fault: bool = False) -> Model:
    """Two blocks with a factor and the ends of slices from sizes; A has both as Constants, the ends as one element."""
    b = Builder(name)
    y = b.emit("Tanh", b.parameter("f32", (3, 7, 7, 4), "x"), name=f"{name}.tanh")
    if name == "B":
        sizes = b.emit("ShapeOf", y, name="sizes")
        end = b.emit("Gather", sizes, np.array([1, 2]), np.array(0), name="end")
    for block in range(2):
        residual = y
        y = b.emit("MatMul", y, SQUARE[:4, 4 * block : 4 * block + 4].copy(), name=f"{name}.product{block}")
        if name == "A":
            y = b.emit("MatMul", y, SQUARE[4:, :4] * np.float32(0.5**0.5), name=f"A.scaled{block}")
            y = b.emit("Slice", y, np.array([0]), np.array([7]), np.array([1]), np.array([2]), name=f"A.slice{block}")
        else:
            channels = b.emit("Gather", sizes, np.array(3), np.array(0), name=f"channels{block}")
            operands = (np.array(2), channels) if fault and block else (channels, np.array(2))
            heads = b.emit("Convert", b.emit("Divide", *operands, name=f"heads{block}"), destination_type="f32")
            y = b.emit("Multiply", y, b.emit("Power", heads, np.float32(-0.5), name=f"factor{block}"))
            y = b.emit("MatMul", y, SQUARE[4:, :4].copy(), name=f"B.scaled{block}")
            for i in range(4 * block):
                y = b.emit("Transpose", y, np.array([0, 2, 1, 3]), name=f"B.move{i}")
            y = b.emit("Slice", y, np.array([0, 0]), end, np.array([1, 1]), np.array([1, 2]), name=f"B.slice{block}")
        y = b.emit("Add", y, residual, name=f"{name}.sum{block}")
    b.result(b.emit("MatMul", y, SQUARE[:4, :3].copy(), name=f"{name}.head"))
    return b.model()


@pytest.mark.slow
def test_values_that_are_not_a_number_from_sizes_are_traced_to_their_layer() -> None:
    x = {"x": RNG.normal(size=(3, 7, 7, 4)).astype(np.float32)}
    assert compare(windows("A"), windows("B"), x).agrees
    assert likely(compare(windows("A"), windows("B", True), x)) == ["heads1"]


def test_a_result_that_is_an_input_is_a_fault() -> None:
    """No layer of B computes the result: rounding does not explain the difference."""

    def model(name: str, fault: bool = False) -> Model:
        b = Builder(name)
        x = b.parameter("f32", (1, 6, 8), "x")
        y = b.emit("MatMul", b.emit("Tanh", x, name=f"{name}.tanh"), SQUARE, name=f"{name}.product")
        b.result(x if fault else b.emit("Add", x, y, name=f"{name}.sum"))
        b.result(y)
        return b.model()

    assert compare(model("A"), model("B"), ROWS).agrees
    found = compare(model("A"), model("B", True), ROWS)
    assert not found.agrees
    assert found.verdict == ""
    assert likely(found) == ["x"]


def test_a_product_may_be_missing_on_either_side_of_layers_that_move_elements() -> None:
    """With one window the layers that move elements change nothing."""

    def model(name: str, fault: bool = False) -> Model:
        b = Builder(name)
        x = b.emit("Tanh", b.parameter("f32", (1, 6, 8), "x"), name=f"{name}.tanh")
        x = b.emit("Reshape", x, np.array([1, 1, 6, 8]), special_zero=False, name=f"{name}.windows")
        x = b.emit("Transpose", x, np.array([1, 0, 2, 3]), name=f"{name}.order")
        x = b.emit("Reshape", x, np.array([6, 8]), special_zero=False, name=f"{name}.rows")
        key = x if fault else b.emit("MatMul", x, SQUARE, name=f"{name}.key")
        key = b.emit("Reshape", key, np.array([1, 6, 2, 4]), special_zero=name == "A", name=f"{name}.heads")
        key = b.emit("Transpose", key, np.array([0, 2, 1, 3]), name=f"{name}.move")
        query = b.emit("MatMul", x, PACKED[:, :8].copy(), name=f"{name}.query")
        query = b.emit(
            "Transpose", b.emit("Reshape", query, np.array([1, 6, 2, 4]), special_zero=False), np.array([0, 2, 1, 3])
        )
        b.result(b.emit("Softmax", b.emit("MatMul", query, key, transpose_b=True, name=f"{name}.scores"), axis=3))
        return b.model()

    assert compare(model("A"), model("B"), ROWS).agrees
    found = likely(compare(model("A"), model("B", True), ROWS))
    assert "B.heads" in found
    assert len(found) <= 5


@pytest.mark.slow
def test_a_sum_with_a_mask_of_zeros_is_innocent() -> None:
    """A's masked tensor in place of the scores gives A's result too, since the sums change nothing."""

    def model(name: str, fault: bool = False) -> Model:
        b = Builder(name)
        x = b.parameter("f32", (1, 8, 8), "x")
        y = b.emit("MatMul", x, x, transpose_b=True, name=f"{name}.scores")
        mask = (np.arange(8) >= 5).astype(np.float32) * np.ones((8, 1), np.float32)
        if name == "A":
            y = b.emit("Relu", b.emit("Subtract", y, -200 * mask, name="A.mask"), name="A.relu")
        else:
            size = b.emit("Gather", b.emit("ShapeOf", x, name="sizes"), np.array(1), np.array(0), name="size")
            line = b.emit("Range", np.array(0), size, np.array(1), output_type="i64", name="line")
            border = size if fault else b.emit("Add", size, np.array(-3), name="border")
            is_after = b.emit("GreaterEqual", line, border, name="is_after")
            for i in range(2):
                y = b.emit("Add", y, b.emit("Select", is_after, np.float32(100), np.float32(0)), name=f"B.mask{i}")
            y = b.emit("Relu", y, name="B.relu")
            for i in range(6):
                y = b.emit("Transpose", y, np.array([0, 2, 1]), name=f"B.move{i}")
        y = b.emit("MatMul", b.emit("Softmax", y, axis=2, name=f"{name}.soft"), x, name=f"{name}.product")
        b.result(b.emit("MatMul", y, HEAD, name=f"{name}.head"))
        return b.model()

    x = {"x": RNG.normal(size=(1, 8, 8)).astype(np.float32)}
    assert compare(model("A"), model("B"), x).agrees
    assert likely(compare(model("A"), model("B", True), x)) == ["is_after"]


def test_two_of_many_operands_are_exchanged_on_trial() -> None:
    def model(name: str, fault: bool = False) -> Model:
        b = Builder(name)
        x = b.parameter("f32", (1, 3, 5, 8), "x")
        y = b.emit("Tanh", x, name=f"{name}.tanh")
        if name == "A":
            y = b.emit(
                "Pad",
                y,
                np.array([0, 0, 0, 0]),
                np.array([0, 0, 3, 1]),
                np.float32(0),
                pad_mode="constant",
                name="A.pad",
            )
        else:
            size = b.emit("Gather", b.emit("ShapeOf", x, name="sizes"), np.array([1]), np.array(0), name="size")
            one = b.emit("Subtract", size, np.array([2]), name="one")
            parts = [np.array([0])] * 6 + [size, one]
            if fault:
                parts[6], parts[7] = parts[7], parts[6]
            pads = b.emit(
                "Split", b.emit("Concat", *parts, axis=0, name="pads"), np.array(0), num_splits=2, name="ends"
            )
            y = b.emit("Pad", y, *pads, np.float32(0), pad_mode="constant", name="B.pad")
        y = b.emit(
            "MatMul", b.emit("ReduceMean", y, np.array([2, 3]), keep_dims=False), SQUARE[:3].copy(), name=f"{name}.head"
        )
        b.result(b.emit("Softmax", y, axis=1))
        return b.model()

    x = {"x": -np.abs(RNG.normal(size=(1, 3, 5, 8))).astype(np.float32)}
    assert compare(model("A"), model("B"), x).agrees
    assert likely(compare(model("A"), model("B", True), x)) == ["pads"]


def test_the_largest_integer_has_no_larger_one() -> None:
    b = Builder("b")
    end = np.array([np.iinfo(np.int64).max])
    y = b.emit("Slice", b.parameter("f32", (6, 8), "x"), np.array([1]), end, np.array([1]), np.array([0]), name="y")
    texts = [edit.text for edit in edits(y.node, Theirs((), ()), set())]
    assert f"[{end[0] - 1}] at input 2" in texts


# Several layers of B may be at fault, since A has other layers there: a change on trial tells which of them is.


TRIAL_RNG = np.random.default_rng(17)
TRIAL_SQUARE, TRIAL_HEAD = (TRIAL_RNG.normal(size=size).astype(np.float32) for size in ((8, 8), (8, 3)))
BIAS, SCALE = TRIAL_RNG.normal(size=8).astype(np.float32), TRIAL_RNG.uniform(0.5, 2, 8).astype(np.float32)
TRIAL_ROWS = {"x": TRIAL_RNG.normal(size=(8, 8)).astype(np.float32)}


def scaled_projection(name: str, fault: str = "") -> Model:
    """A projection with a bias and a scale; B scales first, and adds the product of both constants."""
    b = Builder(name)
    x = b.emit("Tanh", b.parameter("f32", (8, 8), "x"), name=f"{name}.tanh")
    operands = (b.constant(TRIAL_SQUARE), x) if fault == "exchanged" else (x, b.constant(TRIAL_SQUARE))
    y = x if fault == "missing" else b.emit("MatMul", *operands, name=f"{name}.product")
    if name == "A":
        y = b.emit("Multiply", b.emit("Add", y, BIAS, name="A.shift"), SCALE, name="A.scale")
    else:
        scale = np.rint(SCALE * 8) / np.float32(8) if fault == "rounded" else SCALE
        y = b.emit("Add", b.emit("Multiply", y, scale, name="B.scale"), BIAS * SCALE, name="B.shift")
    y = b.emit("Softmax", b.emit("Add", y, x, name=f"{name}.sum"), axis=1, name=f"{name}.soft")
    b.result(b.emit("MatMul", y, TRIAL_HEAD, name=f"{name}.head"))
    return b.model()


@pytest.mark.parametrize(("fault", "layer"), [("exchanged", "B.product"), ("rounded", "B.scale")])
def test_a_layer_is_named_by_its_correction(fault: str, layer: str) -> None:
    """The constant of the sum is innocent: A has it as the product of two."""
    assert compare(scaled_projection("A"), scaled_projection("B"), TRIAL_ROWS).agrees
    found = compare(scaled_projection("A"), scaled_projection("B", fault), TRIAL_ROWS)
    assert likely(found) == [layer]
    text = "\n".join(map(str, comparison_sections(found)))
    assert fault == "exchanged" or f"; the layer at fault is {layer!r}" in text


def test_the_reader_of_a_missing_layer_is_in_the_set() -> None:
    """A adds and scales in another order, so that no tensor between the missing layer and the sum is a pair."""
    found = likely(compare(scaled_projection("A"), scaled_projection("B", "missing"), TRIAL_ROWS))
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
    x = {"x": TRIAL_RNG.normal(size=(1, 4, 6, 6)).astype(np.float32)}
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "layer"), some_rows([("order", "move"), ("exchanged", "shape")], [("exchanged", "shape")])
)
def test_layers_that_move_elements_and_their_shapes_are_told_apart(fault: str, layer: str) -> None:
    x = {"x": TRIAL_RNG.normal(size=(1, 8, 3, 3)).astype(np.float32)}
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

    x = {"x": TRIAL_RNG.normal(size=(4, 4)).astype(np.float32)}
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
    b.result(b.emit("MatMul", y, TRIAL_SQUARE[:6], name=f"{name}.y"))
    return b.model()


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "layer"), some_rows([("token", "places"), ("table", "wide")], [("token", "places")]))
def test_layers_that_a_has_as_a_constant_are_told_apart_by_the_elements_that_differ(fault: str, layer: str) -> None:
    x = {"x": TRIAL_RNG.normal(size=(1, 9, 6)).astype(np.float32)}
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
        y = b.emit("Add", b.emit("MatMul", flat, TRIAL_SQUARE, name=f"{name}.product"), BIAS, name=f"{name}.bias")
        b.result(b.emit("Softmax", y, axis=2, name=f"{name}.soft"))
        return b.model()

    x = {"x": TRIAL_RNG.normal(size=(1, 7, 2, 4)).astype(np.float32)}
    assert compare(model("A", [1, 0, 2, 3]), model("B", [0, 1, 2, 3]), x).agrees
    assert likely(compare(model("A", [1, 0, 2, 3]), model("B", [1, 0, 2, 3]), x)) == ["B.move"]
