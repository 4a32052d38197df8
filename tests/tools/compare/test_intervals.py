"""Faults between tensors that agree and one that differs, where A has other layers: the set that holds them is small."""

from __future__ import annotations

import numpy as np

from irexec import Builder, Model
from irexec.ir.graph import Value
from irexec.tools.compare import compare
from irexec.tools.compare.edits import Theirs, edits
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


def test_values_that_are_not_a_number_from_sizes_are_traced_to_their_layer() -> None:
    x = {"x": RNG.normal(size=(3, 7, 7, 4)).astype(np.float32)}
    assert compare(windows("A"), windows("B"), x).agrees
    assert likely(compare(windows("A"), windows("B", True), x)) == ["heads1"]


def test_a_result_that_is_an_input_is_a_fault() -> None:
    """No layer of B computes the result: rounding is no reason for the difference."""

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
