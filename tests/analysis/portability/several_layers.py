"""Models of differences that need several layers or a body: no row of one operation shows them."""

from __future__ import annotations

import numpy as np

from irexec import Builder, Model
from irexec.ir.graph import BackEdge, Body, PortMap


def iterated(*, reads_slices: bool) -> Model:
    """A TensorIterator over three rows of its first input, whose body adds them to its second input, or doubles that each time."""
    builder = Builder("m")
    inner = Builder("body", inside=builder)
    row, state = inner.parameter("f32", (1, 4), "row"), inner.parameter("f32", (1, 4), "state")
    left = inner.emit("Add", state, row if reads_slices else state)
    results = [inner.result(left), inner.result(left)]
    graph = inner.model()
    sliced = {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"}
    body = Body(
        graph,
        port_maps=[
            PortMap("input", 0, row.node.id, dict(sliced)),
            PortMap("input", 1, state.node.id, {}),
            PortMap("output", 2, results[0].id, dict(sliced)),
        ],
        back_edges=[BackEdge(results[1].id, state.node.id)],
    )
    rows, start = builder.parameter("f32", (3, 4), "rows"), builder.parameter("f32", (1, 4), "start")
    (stacked,) = builder.emit("TensorIterator", rows, start, bodies={"body": body}, name="iterated")
    builder.result(stacked)
    return builder.model()


def quantised(*, by_channel: bool) -> Model:
    """A pooled convolution, scaled by channel or as a whole, and quantised with one range; all of it in f16."""
    rng = np.random.default_rng(0)
    builder = Builder("m")
    x = builder.parameter("f16", (1, 3, 12, 12), "x")
    weights = builder.constant(rng.standard_normal((16, 3, 1, 1)) * 0.5, "f16")
    same = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)}
    x = builder.emit("Convolution", x, weights, dilations=(1, 1), **same)
    x, _ = builder.emit("MaxPool", x, dilations=(1, 1), kernel=(2, 2), **same | {"strides": (2, 2)})
    scale = np.exp2(np.arange(16) % 3).reshape(1, 16, 1, 1) if by_channel else np.full((1, 1, 1, 1), 2.0)
    x = builder.emit("Multiply", x, builder.constant(scale, "f16"))
    low, high = builder.constant(-4.0, "f16"), builder.constant(3.96875, "f16")
    builder.result(builder.emit("FakeQuantize", x, low, high, low, high, levels=256))
    return builder.model()


def with_levels(low: float, high: float, type: str = "Convolution", *, bits: int = 7) -> Model:
    """A product of 256 levels and of weights; with weights of 7 bits no processor saturates its sums."""
    builder, is_matrix = Builder("m"), type == "MatMul"
    ends = np.float32(low), np.float32(high)
    x = builder.parameter("f32", (6, 8) if is_matrix else (1, 8, 6, 6), "x")
    x = builder.emit("FakeQuantize", x, *ends, *ends, levels=256)
    shape = {"MatMul": (8, 5), "Convolution": (5, 8, 1, 1), "GroupConvolution": (8, 1, 1, 1, 1)}[type]
    top = 2 ** (bits - 1)
    integers = builder.constant(np.random.default_rng(0).integers(1 - top, top, shape).astype(np.int8))
    weights = builder.emit("Multiply", builder.emit("Convert", integers, destination_type="f32"), np.float32(0.01))
    same = {"strides": (1, 1), "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    builder.result(builder.emit(type, x, weights, **{} if is_matrix else same))
    return builder.model()


def strided(*, padded: bool) -> Model:
    """A Relu and a convolution of stride 2 by kernels of size 1."""
    builder = Builder("m")
    weights = np.random.default_rng(0).standard_normal((8, 4, 1, 1)).astype(np.float32)
    pads = (1, 1) if padded else (0, 0)
    x = builder.emit("Relu", builder.parameter("f32", (2, 4, 7, 5), "x"))
    x = builder.emit("Convolution", x, weights, strides=(2, 2), pads_begin=pads, pads_end=pads, dilations=(1, 1))
    builder.result(x)
    return builder.model()


def unsorted(*, reads_indices: bool) -> Model:
    """Unique values in the order of their first occurrence, with or without the indices into them."""
    builder = Builder("m")
    outputs = builder.emit("Unique", builder.parameter("f32", (64,), "x"), version=10, sorted=False)
    builder.result(outputs[0])
    if reads_indices:
        builder.result(outputs[2])
    return builder.model()


def looped(
    *, iterations: int, runs: bool = True, reads_state: bool = False, trips: str = "i64", again: str = "boolean"
) -> Model:
    """A Loop whose state the body computes from another input; the initial state is 5, -5, 5.

    ``trips`` is the element type of the number of iterations, ``again`` that of the body's condition.
    """
    builder = Builder("m")
    inner = Builder("body", inside=builder)
    state, other = inner.parameter("f32", (3,), "state"), inner.parameter("f32", (3,), "other")
    next_state = inner.emit("Add", other, state if reads_state else other)
    results = [inner.result(inner.constant(np.array(1), again)), inner.result(next_state)]
    body = Body(
        inner.model(),
        port_maps=[
            PortMap("input", 2, state.node.id, {}),
            PortMap("input", 3, other.node.id, {}),
            PortMap("output", -1, results[0].id, {"purpose": "execution_condition"}),
            PortMap("output", 4, results[1].id, {}),
        ],
        back_edges=[BackEdge(results[1].id, state.node.id)],
    )
    start = builder.constant(np.float32([5, -5, 5]), "f32")
    count, condition = builder.constant(np.array(iterations), trips), builder.constant(np.array(runs), "boolean")
    inputs = (count, condition, start, builder.parameter("f32", (3,), "x"))
    (last,) = builder.emit("Loop", *inputs, bodies={"body": body}, name="looped")
    builder.result(last)
    return builder.model()


def shared(type: str, *, readers: int = 1) -> Model:
    """A Loop of three iterations whose body computes a layer of an input that all iterations share, and keeps each result."""
    builder = Builder("m")
    inner = Builder("body", inside=builder)
    state, data = inner.parameter("f32", (4, 6), "state"), inner.parameter("f32", (4, 6), "data")
    if type == "Softmax":
        made = inner.emit("Softmax", data, axis=1)
    else:
        flat = inner.emit("Reshape", data, inner.constant([6, 4], "i64"), special_zero=False)
        made = inner.emit("Concat", *[inner.emit(type, flat)] * 2, axis=0)
    if readers == 2:
        made = inner.emit("Add", made, data)
    kept = inner.emit("Unsqueeze", made, inner.constant([0], "i64"))
    results = [inner.result(inner.constant(np.array(1), "boolean")), inner.result(inner.emit("Tanh", state))]
    results.append(inner.result(kept))
    body = Body(
        inner.model(),
        port_maps=[
            PortMap("input", 2, state.node.id, {}),
            PortMap("input", 3, data.node.id, {}),
            PortMap("output", -1, results[0].id, {"purpose": "execution_condition"}),
            PortMap("output", 4, results[1].id, {}),
            PortMap("output", 5, results[2].id, {"axis": "0", "start": "0", "end": "-1", "stride": "1", "part_size": "1"}),
        ],
        back_edges=[BackEdge(results[1].id, state.node.id)],
    )  # fmt: skip
    counted = builder.constant(np.array(3), "i64"), builder.constant(np.array(1), "boolean")
    data_of_model = builder.parameter("f32", (4, 6), "x"), builder.parameter("f32", (4, 6), "y")
    builder.result(builder.emit("Loop", *counted, *data_of_model, bodies={"body": body}, name="shared")[1])
    return builder.model()


def transposed(*types: str, back: tuple[int, ...] = (0, 2, 1)) -> Model:
    """A convolution of one spatial axis, whose result is transposed, changed, and transposed back."""
    builder = Builder("m")
    weights = np.random.default_rng(0).standard_normal((8, 4, 1)).astype(np.float32)
    x = builder.parameter("f32", (2, 4, 6), "x")
    x = builder.emit("Convolution", x, weights, strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,))
    x = builder.emit("Transpose", x, builder.constant([0, 2, 1], "i64"))
    for type in types:
        x = builder.emit(type, x)
    builder.result(builder.emit("Transpose", x, builder.constant(back, "i64")))
    return builder.model()


def padded(stride: int, group: bool = False) -> Model:
    """A Pad with zeros before a transposed convolution that cuts the same number of elements."""
    builder = Builder("m")
    x, one = builder.parameter("f32", (2, 4, 6, 5), "x"), builder.constant([0, 0, 1, 1], "i64")
    x = builder.emit("Pad", x, one, one, pad_mode="constant")
    weights = np.random.default_rng(0).standard_normal((4, 1, 1, 3, 3) if group else (4, 2, 3, 3)).astype(np.float32)
    type = "GroupConvolutionBackpropData" if group else "ConvolutionBackpropData"
    of = {"strides": (stride,) * 2, "pads_begin": (1, 1), "pads_end": (1, 1), "dilations": (1, 1)}
    builder.result(builder.emit(type, x, weights, **of))
    return builder.model()


def scaled(type: str, scale: tuple[int, ...], zero: tuple[int, ...] | None = None, element: str = "u8") -> Model:
    """Rows, or a product, of compressed weights of 16 rows of 64, in groups of 16 where the scale has three axes."""
    rng, builder = np.random.default_rng(0), Builder("m")
    shape = (16, 64) if len(scale) == 2 else (16, 4, 16)
    held = builder.emit("Convert", builder.constant(rng.integers(0, 8, shape), element), destination_type="f16")
    if zero is not None:
        points = builder.constant(rng.integers(0, 8, zero), element)
        held = builder.emit("Subtract", held, builder.emit("Convert", points, destination_type="f16"))
    held = builder.emit("Multiply", held, builder.constant(rng.uniform(0.01, 0.1, scale).astype(np.float16)))
    if len(scale) == 3:
        held = builder.emit("Reshape", held, builder.constant([16, 64], "i64"), special_zero=False)
    held = builder.emit("Convert", held, destination_type="f32")
    if type == "Gather":
        found = builder.emit(
            "Gather", held, builder.parameter("i64", (3,), "x"), builder.constant(0, "i64"), batch_dims=0
        )
    else:
        found = builder.emit("MatMul", builder.parameter("f32", (2, 64), "x"), held, transpose_b=True)
    builder.result(found)
    return builder.model()


def divided(by: float) -> Model:
    """A division by a constant in f16, whose quotient is a result in f32."""
    builder = Builder("m")
    quotient = builder.emit("Divide", builder.parameter("f16", (8,), "x"), builder.constant(by, "f16"))
    builder.result(builder.emit("Convert", quotient, destination_type="f32"))
    return builder.model()


def in_groups(size: int, element: str = "i8", *, by_column: bool = False) -> Model:
    """A product with weights in four groups of a size, or, for a size of 1, with a scale for each element."""
    rng, builder = np.random.default_rng(size), Builder("groups")
    order, flat_shape = ((1, 2, 0), (4 * size, 34)) if by_column else ((0, 1, 2), (34, 4 * size))
    levels = rng.integers(0, 8, (34, 4, size)).transpose(order)
    scales = rng.uniform(0.01, 0.1, (34, 4, 1)).astype(np.float16).transpose(order)
    if size == 1:
        levels, scales = levels.reshape(flat_shape), scales.reshape(flat_shape)
    held = builder.emit("Convert", builder.constant(levels, element), destination_type="f16")
    flat = builder.emit("Multiply", held, builder.constant(scales))
    if size > 1:
        flat = builder.emit("Reshape", flat, builder.constant(np.array(flat_shape)), special_zero=False)
    x = builder.parameter("f32", (1, 4 * size), "x")
    weights = builder.emit("Convert", flat, destination_type="f32")
    builder.result(builder.emit("MatMul", x, weights, transpose_b=not by_column, name="product"))
    return builder.model()


def compressed(*, part: str) -> Model:
    """A transposed 1x1 convolution with compressed weights of the second part of its data."""
    builder = Builder("m")
    x, axis = builder.parameter("f32", (1, 8, 4, 4), "x"), builder.constant(1, "i64")
    if part == "Split":
        data = builder.emit("Split", x, axis, num_splits=2)[1]
    else:
        data = builder.emit("VariadicSplit", x, axis, builder.constant([4, 4], "i64"))[1]
    integers = builder.constant(np.arange(32).reshape(8, 4, 1, 1), "u8")
    scale = builder.constant(np.full((8, 1, 1, 1), 0.5), "f32")
    weights = builder.emit("Multiply", builder.emit("Convert", integers, destination_type="f32"), scale)
    same = {"strides": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0), "dilations": (1, 1)}
    y = builder.emit("Convolution", data, weights, name="conv", **same)
    builder.result(builder.emit("Transpose", y, builder.constant([0, 2, 3, 1], "i64")))
    return builder.model()


def extreme(type: str, before: str, *, first: str = "") -> Model:
    """A maximum of the values of a function, after another one; some of its operands are negative."""
    builder = Builder("m")
    x = builder.emit("Subtract", builder.parameter("f32", (4, 9), "x"), builder.constant(0.5, "f32"))
    if first == "epsilon":
        squares = builder.emit(
            "ReduceSum", builder.emit("Multiply", x, x), builder.constant([1], "i64"), keep_dims=True
        )
        x = builder.emit("Divide", x, builder.emit("Sqrt", builder.emit("Add", squares, builder.constant(1e-6, "f32"))))
    elif first:
        x = builder.emit(first, x)
    x = builder.emit("Transpose", builder.emit(before, x), builder.constant([1, 0], "i64"))
    if type == "TopK":
        (x, _) = builder.emit("TopK", x, builder.constant(2, "i64"), axis=0, mode="max", sort="value")
    elif type.startswith("Reduce"):
        x = builder.emit(type, x, builder.constant([0], "i64"))
    else:
        x = builder.emit(type, x, builder.constant(0.25, "f32"))
    builder.result(x)
    return builder.model()


def kept(variable_shape: str, shape: str = "2,3") -> Model:
    """A sum in a variable."""
    builder = Builder("sum in a variable")
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": variable_shape}
    old = builder.emit("ReadValue", builder.constant(np.zeros((2, 3)), "f32"), **variable)
    total = builder.emit("Add", old, builder.parameter("f32", shape, "x"))
    builder.emit("Assign", total, variable_id="v")
    builder.result(total)
    return builder.model()


def attended(*, causal: bool, gathered: bool = True) -> Model:
    """Attention to variables to which keys and values are appended."""
    builder = Builder("caches")
    query, *new = (builder.parameter("f32", "?,2,?,8", name) for name in ("query", "key", "value"))
    beams = builder.parameter("i32", "?", "beams") if gathered else None
    joined = []
    for name, rows in zip("kv", new, strict=True):
        start = builder.emit("Slice", rows, np.int64([0]), np.int64([0]), np.int64([1]), np.int64([2]))
        past = builder.emit("ReadValue", start, variable_id=name, variable_type="f32", variable_shape="?,2,?,8")
        if beams is not None:
            past = builder.emit("Gather", past, beams, np.int64(0))
        joined.append(builder.emit("Concat", past, rows, axis=2))
        builder.emit("Assign", joined[-1], variable_id=name)
    builder.result(builder.emit("ScaledDotProductAttention", query, *joined, causal=causal))
    return builder.model()


SEVERAL_LAYERS = {
    "IR1002": (attended(causal=False), attended(causal=True)),
    "IR1003": (attended(causal=False), attended(causal=False, gathered=False)),
    "IR992": (kept("2,3"), kept("?,3"), kept("?,?")),
    "IR986": (
        extreme("ReduceMax", "Sqrt", first="Abs"),
        *(extreme(type, "Sqrt") for type in ("ReduceMax", "ReduceMin", "TopK", "Maximum", "Minimum")),
        extreme("TopK", "Log"),
    ),
    "IR983": (compressed(part="Split"), compressed(part="VariadicSplit")),
    "IR989": (
        in_groups(12, by_column=True), in_groups(6), in_groups(10), in_groups(7, "i4"), in_groups(48, "u4"),
        in_groups(6, by_column=True), in_groups(48, "u4", by_column=True),
        in_groups(1, "i4"), in_groups(1, "u4", by_column=True),
    ),
    "IR995": (shared("Softmax", readers=2), shared("Softmax"), shared("Sigmoid")),
    "IR996": (transposed("Tanh", back=(1, 0, 2)), transposed("Tanh"), transposed("Relu", "Exp")),
    "IR997": (padded(1), padded(2), padded(2, group=True)),
    "IR998": (
        scaled("MatMul", (16, 1), (16, 1)),
        *(scaled("MatMul", (16, 1), (1, 64), element) for element in ("u8", "i8", "u4", "i4")),
        *(scaled(type, (16, 4, 1), (1, 4, 1)) for type in ("MatMul", "Gather")),
        scaled("MatMul", (1, 64)),
        scaled("Gather", (1, 64)),
    ),
    "IR1001": (
        with_levels(-0.5, 2.05),
        with_levels(-0.504, 2.046),
        with_levels(-0.504, 2.046, "GroupConvolution"),
    ),
    "IR941": (iterated(reads_slices=True), iterated(reads_slices=False)),
    "IR942": (quantised(by_channel=False), quantised(by_channel=True)),
    "IR971": (strided(padded=False), strided(padded=True)),
    "IR943": (unsorted(reads_indices=True), unsorted(reads_indices=False)),
    "IR981": (looped(iterations=2, trips="u16", again="u8"), looped(iterations=2, trips="u8"), looped(iterations=2, again="i32")),
    "IR944": (looped(iterations=0, reads_state=True), looped(iterations=0)),
    "IR945": (divided(4.0), divided(3.0)),
    "IR974": (looped(iterations=3, reads_state=True), looped(iterations=3, runs=False, reads_state=True)),
}  # fmt: skip
"""By code, a model without the difference and models with it."""
