"""Where ONNX and IR differ: transposed convolutions, indices, Resize, sequences and optionals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import converters
import irexec
from irexec.analysis.shape_inference import infer_shapes
from irexec.reference.resize import coordinates, nearest
from tests.support.onnx_models import model_of, run

X = np.array([[[1, 10]]], np.float32)
# The data [1, 10] and the kernel [1, 2, 3] give 1, 2, 3 + 10, 20, 30 with stride 2, without padding.
_TRANSPOSED = {
    "no padding": ("", [1, 2, 13, 20, 30]),
    "VALID": ('auto_pad = "VALID"', [1, 2, 13, 20, 30]),
    "SAME_UPPER removes the odd element at the end": ('auto_pad = "SAME_UPPER"', [1, 2, 13, 20]),
    "SAME_LOWER removes the odd element at the start": ('auto_pad = "SAME_LOWER"', [2, 13, 20, 30]),
    "pads": ("pads = [0, 2]", [1, 2, 13]),
    "output_padding": ("output_padding = [1]", [1, 2, 13, 20, 30, 0]),
    "pads and output_padding": ("pads = [1, 1], output_padding = [1]", [2, 13, 20, 30]),
    "output_shape removes the odd element at the start": ("output_shape = [4]", [2, 13, 20, 30]),
    "output_shape with VALID too": ('output_shape = [4], auto_pad = "VALID"', [2, 13, 20, 30]),
    "output_shape with SAME_LOWER too": ('output_shape = [4], auto_pad = "SAME_LOWER"', [2, 13, 20, 30]),
    "output_shape with SAME_UPPER removes it at the end": ('output_shape = [4], auto_pad = "SAME_UPPER"', [1, 2, 13, 20]),
    "output_shape with an even difference": ("output_shape = [3]", [2, 13, 20]),
    "output_shape with batch and channels": ("output_shape = [1, 1, 4]", [2, 13, 20, 30]),
    "output_shape overrides pads": ("output_shape = [4], pads = [2, 2]", [2, 13, 20, 30]),
    "output_padding is part of the total padding": ('auto_pad = "SAME_UPPER", output_padding = [1]', [2, 13, 20, 30]),
}  # fmt: skip


@pytest.mark.parametrize("domain", ["", "com.ms.internal.nhwc."])
@pytest.mark.parametrize("name", _TRANSPOSED)
def test_transposed_convolutions(name: str, domain: str) -> None:
    attributes, expected = _TRANSPOSED[name]
    last = bool(domain)
    given = ", ".join(filter(None, ["strides = [2]", attributes]))
    shape = "1,2,1" if last else "1,1,2"
    model = model_of(
        f"(float[{shape}] x) => (float y) {{ y = {domain}ConvTranspose <{given}> (x, w) }}", w=np.float32([[[1, 2, 3]]])
    )
    result = run(model, X.reshape(1, 2, 1) if last else X)[0]
    np.testing.assert_array_equal(result, np.float32(expected).reshape((1, -1, 1) if last else (1, 1, -1)))
    layer = next(node for node in converters.convert(model).nodes if node.type == "ConvolutionBackpropData")
    assert len(layer.inputs) == 2
    assert layer.attributes["auto_pad"] == "explicit"


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_a_kernel_smaller_than_the_stride_is_not_padded(mode: str) -> None:
    model = model_of(
        f'(float[1,1,2] x) => (float y) {{ y = ConvTranspose <strides = [3], auto_pad = "{mode}"> (x, w) }}',
        w=np.float32([[[1, 2]]]),
    )
    np.testing.assert_array_equal(run(model, X)[0], [[[1, 2, 0, 10, 20]]])


def test_output_padding_of_a_stride_is_refused() -> None:
    model = model_of(
        "(float[1,1,2] x) => (float y) { y = ConvTranspose <strides = [2], output_padding = [2]> (x, w) }",
        w=np.ones((1, 1, 3), np.float32),
    )
    with pytest.raises(irexec.ConversionError, match="output_padding 2 is not less than stride 2"):
        converters.convert(model)


DATA = np.float32([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    "shapes", ["float[2,3] x, int64[1,2] i", "float[a,b] x, int64[c,d] i", "float[?,?] x, int64[?,?] i"]
)
def test_indices_smaller_than_the_data(shapes: str) -> None:
    """Only the first two columns of the data are read."""
    text = shapes.replace("?", "")
    model = model_of(
        f"({shapes if '?' not in shapes else text.replace('[,]', '[p,q]')}) => (float y) {{ y = GatherElements <axis = 0> (x, i) }}"
    )
    if "?" in shapes:
        for info in model.graph.input:
            for dim in info.type.tensor_type.shape.dim:
                dim.ClearField("dim_param")
    np.testing.assert_array_equal(run(model, DATA, np.array([[1, 0]]))[0], [[4, 2]])


def test_indices_of_equal_sizes_need_no_slice() -> None:
    for shapes in ("float[2,3] x, int64[4,3] i", "float[a,n] x, int64[b,n] i"):
        converted = converters.convert(model_of(f"({shapes}) => (float y) {{ y = GatherElements <axis = 0> (x, i) }}"))
        assert "Slice" not in {node.type for node in converted.nodes}


@pytest.mark.parametrize(
    ("noop", "axes", "expected"),
    [(0, [], [[21]]), (1, [], DATA), (0, [0], [[5, 7, 9]]), (0, [-1], [[6], [15]]), (0, [0, -1], [[21]])],
)
def test_axes_that_may_be_empty_at_run_time(noop: int, axes: list[int], expected: object) -> None:
    model = model_of(
        f"(float[2,3] x, int64[n] a) => (float y) {{ y = ReduceSum <noop_with_empty_axes = {noop}> (x, a) }}"
    )
    np.testing.assert_array_equal(run(model, DATA, np.array(axes, np.int64))[0], np.float32(expected))


# Resize where the arithmetic of IR's Interpolate differs from that of ONNX: ties, old versions, sizes by scales.


_ROUNDING = {
    "round_prefer_floor": lambda q: math.ceil(q - Fraction(1, 2)),
    "round_prefer_ceil": lambda q: math.floor(q + Fraction(1, 2)),
}
_POSITION = {
    "half_pixel": lambda i, size, out: Fraction((2 * i + 1) * size, 2 * out) - Fraction(1, 2),
    "pytorch_half_pixel": lambda i, size, out: (Fraction((2 * i + 1) * size, 2 * out) - Fraction(1, 2) if out > 1 else Fraction(0)),
    "asymmetric": lambda i, size, out: Fraction(i * size, out),
    "tf_half_pixel_for_nn": lambda i, size, out: Fraction((2 * i + 1) * size, 2 * out),
}  # fmt: skip


def _exact(transformation: str, rounding: str, size: int, out: int) -> list[int]:
    picked = (_ROUNDING[rounding](_POSITION[transformation](i, size, out)) for i in range(out))
    return [min(max(index, 0), size - 1) for index in picked]


def _ties(transformation: str, rounding: str) -> list[tuple[int, int]]:
    """Every fifth pair of sizes up to 32 and 48 where f32 picks other pixels than exact arithmetic."""
    found = []
    for size in range(1, 33):
        for out in set(range(1, 49)) - {size}:
            scale = float(np.float32(out) / np.float32(size))
            taps = nearest(coordinates(transformation, size, out, scale), rounding, size, scale)
            if taps.index[:, 0].tolist() != _exact(transformation, rounding, size, out):
                found.append((size, out))
    return found[::5]


@pytest.mark.parametrize("by", ["sizes", "scales"])
@pytest.mark.parametrize("rounding", list(_ROUNDING))
@pytest.mark.parametrize("transformation", list(_POSITION))
@pytest.mark.sampled(8)
def test_ties_are_exact(transformation: str, rounding: str, by: str) -> None:
    """As in ONNX Runtime since 1.31 (onnxruntime#28291) and onnx.reference. Opset 11 has all of these transformations."""
    attributes = f'mode = "nearest", coordinate_transformation_mode = "{transformation}", nearest_mode = "{rounding}"'
    pairs = _ties(transformation, rounding)
    assert pairs
    for size, out in pairs:
        if by == "scales" and int(np.float32(size) * np.float32(out / size)) != out:
            continue
        given = {"z": np.array([1, out])} if by == "sizes" else {"z": np.array([1, out / size], np.float32)}
        inputs = "x, r, q, z" if by == "sizes" else "x, r, z"
        text = f"(float[1,{size}] x) => (float[1,{out}] y) <float[0] r = {{}}, float[0] q = {{}}> {{ y = Resize <{attributes}> ({inputs}) }}"
        (result,) = run(model_of(text, 11, **given), np.arange(size, dtype=np.float32)[None])
        assert result[0].tolist() == _exact(transformation, rounding, size, out), (size, out)


def test_ties_follow_a_new_size_of_the_input() -> None:
    """The pixels are computed from the sizes, so that the IR may be reshaped: 20 and 10 to 6."""
    text = '(float[1,20] x) => (float[1,6] y) <float[0] q = {}, int64[2] z = {1, 6}> { y = Resize <nearest_mode = "round_prefer_ceil"> (x, , q, z) }'
    model = converters.convert(model_of(text, 19))
    for size in (20, 10):
        model.reshape(f"1,{size}")
        (result,) = irexec.compile_model(model)([np.arange(size, dtype=np.float32)[None]]).values()
        assert result[0].tolist() == _exact("half_pixel", "round_prefer_ceil", size, 6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rounding", list(_ROUNDING))
@pytest.mark.parametrize("transformation", list(_POSITION))
def test_a_sum_of_f64_does_not_follow_another(transformation: str, rounding: str) -> None:
    """OpenVINO 2026.4 does not end compiling two of them that depend on a ShapeOf, whatever is multiplied between."""
    size, out = _ties(transformation, rounding)[0]
    attributes = f'mode = "nearest", coordinate_transformation_mode = "{transformation}", nearest_mode = "{rounding}"'
    text = f"(float[1,{size}] x) => (float[1,{out}] y) <float[0] q = {{}}, int64[2] z = {{1, {out}}}> {{ y = Resize <{attributes}> (x, , q, z) }}"
    model = converters.convert(model_of(text, 19))
    facts = infer_shapes(model).facts
    summed: set[irexec.Node] = set()
    for node in model.nodes:
        above = [value.node for value in node.inputs if value is not None and value.node in summed]
        if node.type in ("Add", "Subtract") and str(facts[node.outputs[0]].element) == "f64":
            assert not above
            summed.add(node)
        elif node.type in ("Multiply", "Divide") and above:
            summed.add(node)


def test_sizes_without_ties_are_one_interpolate() -> None:
    text = "(float[1,4] x) => (float[1,8] y) <float[0] q = {}, int64[2] z = {1, 8}> { y = Resize (x, , q, z) }"
    types = [node.type for node in converters.convert(model_of(text, 19)).nodes]
    assert types == ["Parameter", "Constant", "Constant", "Interpolate", "Result"]


@pytest.mark.parametrize("known", [True, False])
def test_resize_10_rounds_up_where_it_shrinks(known: bool) -> None:
    """The example of ONNX 1.5: 1 2 3 4 by 0.6 is 1 3; by 1.5, 1 1 2 3 3 4. ONNX Runtime agrees."""
    x = np.array([[1, 2, 3, 4]], np.float32)
    for scale, expected in ((0.6, [1, 3]), (1.5, [1, 1, 2, 3, 3, 4])):
        scales = np.array([1, scale], np.float32)
        if known:
            results = run(model_of("(float[1,4] x) => (float[1,?] y) { y = Resize (x, s) }", 10, s=scales), x)
        else:
            results = run(model_of("(float[1,4] x, float[2] s) => (float[?,?] y) { y = Resize (x, s) }", 10), x, scales)
        assert results[0].tolist() == [expected]


@pytest.mark.parametrize("attributes", ['mode = "linear", antialias = 1', 'mode = "cubic", exclude_outside = 1', 'mode = "linear"'])  # fmt: skip
def test_the_size_by_a_scale_is_computed_in_f32(attributes: str) -> None:
    """6 times 5/6, rounded to f32, is 5 in f32 and less in exact arithmetic. ONNX Runtime 1.32 gives 5 (onnx.reference 4)."""
    text = f"(float[1,1,6,6] x) => (float[1,1,?,?] y) {{ y = Resize <{attributes}> (x, , s) }}"
    (result,) = run(model_of(text, 19, s=np.array([1, 1, 1, 5 / 6], np.float32)), np.zeros((1, 1, 6, 6), np.float32))
    assert result.shape == (1, 1, 6, 5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_size_by_a_scale_that_interpolate_would_round_up(mode: str) -> None:
    """22 times 13/22 is 12 in f32 (ONNX Runtime 1.32 and onnx.reference); Interpolate adds 1e-6 to the scale: 13."""
    text = f'(float[1,1,2,22] x) => (float[1,1,?,?] y) {{ y = Resize <mode = "{mode}"> (x, , s) }}'
    model = model_of(text, 19, s=np.array([1, 1, 1, 13 / 22], np.float32))
    (result,) = run(model, np.zeros((1, 1, 2, 22), np.float32))
    assert result.shape == (1, 1, 2, 12)


@pytest.mark.parametrize("size", [2, 4, 6])
@pytest.mark.parametrize("rank", [3, 4])
def test_lrn_of_an_even_size(size: int, rank: int) -> None:
    """Channels c - floor((size - 1) / 2) to c + ceil((size - 1) / 2), as the specification has it; onnx.reference agrees.

    ONNX Runtime refuses even sizes.
    """
    x = np.random.default_rng(0).standard_normal((2, 5, 3, 2)[:rank]).astype(np.float32)
    before, after = (size - 1) // 2, -(-(size - 1) // 2)
    windows = [(x[:, max(0, c - before) : c + after + 1] ** 2).sum(1) for c in range(5)]
    expected = x / (2 + 0.3 / size * np.stack(windows, 1)) ** 0.6
    shape = ",".join(map(str, x.shape))
    text = f"(float[{shape}] x) => (float[{shape}] y) {{ y = LRN <size = {size}, alpha = 0.3, beta = 0.6, bias = 2.0> (x) }}"
    np.testing.assert_allclose(run(model_of(text, 13), x)[0], expected, rtol=1e-5)


# Sequences of tensors and optionals, resolved when a model is converted.


SEQUENCES_X = np.arange(6, dtype=np.float32).reshape(3, 2)
Y = SEQUENCES_X + 10


def test_inserted_erased_and_joined() -> None:
    graph = """(float[3,2] x, float[3,2] y) => (float z) <int64 first = {0}> {
        a = SequenceConstruct (x, y) b = SequenceInsert (a, y, first) c = SequenceErase (b) z = ConcatFromSequence <axis: int = 1> (c) }"""
    np.testing.assert_array_equal(run(model_of(graph), SEQUENCES_X, Y)[0], np.concatenate([Y, SEQUENCES_X], 1))


def test_stacked() -> None:
    graph = """(float[3,2] x, float[3,2] y) => (float z) {
        a = SequenceConstruct (x, y) z = ConcatFromSequence <axis: int = -1, new_axis: int = 1> (a) }"""
    np.testing.assert_array_equal(run(model_of(graph), SEQUENCES_X, Y)[0], np.stack([SEQUENCES_X, Y], -1))


def test_split_into_a_length_and_what_is_left() -> None:
    graph = """(float[3,2] x) => (float z, int64 n) <int64 two = {2}, int64 last = {-1}> {
        a = SplitToSequence (x, two) z = SequenceAt (a, last) n = SequenceLength (a) }"""
    part, count = run(model_of(graph), SEQUENCES_X)
    np.testing.assert_array_equal(part, SEQUENCES_X[2:])
    assert count == 2


def test_split_into_ones_without_their_axis() -> None:
    graph = """(float[3,2] x) => (float z) <int64 one = {1}> {
        a = SplitToSequence <keepdims: int = 0> (x) z = SequenceAt (a, one) }"""
    np.testing.assert_array_equal(run(model_of(graph), SEQUENCES_X)[0], SEQUENCES_X[1])


def test_lengths_known_only_when_it_runs() -> None:
    graph = """(float[3,2] x, int64[2] lengths) => (float z) <int64 one = {1}> { a = SplitToSequence (x, lengths) z = SequenceAt (a, one) }"""
    np.testing.assert_array_equal(run(model_of(graph), SEQUENCES_X, np.array([1, 2]))[0], SEQUENCES_X[1:])


def test_a_position_known_only_when_it_runs() -> None:
    graph = """(float[3,2] x, float[3,2] y, int64 position) => (float z) { a = SequenceConstruct (x, y) z = SequenceAt (a, position) }"""
    for position in (0, 1, -1, -2):
        np.testing.assert_array_equal(
            run(model_of(graph), SEQUENCES_X, Y, np.int64(position))[0], [SEQUENCES_X, Y][position]
        )


def test_a_body_for_each() -> None:
    graph = """(float[3,2] x, float[3,2] y, float[2] z) => (float out) {
        a = SequenceConstruct (x, y)
        b = SequenceMap (a, a, z) <body = each (float[3,2] p, float[3,2] q, float[2] r) => (float[3,2] s) { t = Mul (p, q) s = Add (t, r) }>
        out = ConcatFromSequence <axis: int = 0> (b) }"""
    z = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(
        run(model_of(graph), SEQUENCES_X, Y, z)[0], np.concatenate([SEQUENCES_X * SEQUENCES_X + z, Y * Y + z])
    )


def test_a_sequence_from_around_a_subgraph() -> None:
    graph = """(float[3,2] x, float[3,2] y, bool c) => (float out) <int64 one = {1}> {
        a = SequenceConstruct (x, y)
        out = If (c) <then_branch = yes () => (float[3,2] p) { p = SequenceAt (a, one) }, else_branch = no () => (float[3,2] q) { q = Neg (x) }> }"""
    np.testing.assert_array_equal(run(model_of(graph), SEQUENCES_X, Y, np.True_)[0], Y)
    np.testing.assert_array_equal(run(model_of(graph), SEQUENCES_X, Y, np.False_)[0], -SEQUENCES_X)


def test_optionals() -> None:
    graph = """(float[3,2] x) => (bool has, float y) { a = Optional (x) has = OptionalHasElement (a) y = OptionalGetElement (a) }"""
    has, same = run(model_of(graph), SEQUENCES_X)
    assert has
    np.testing.assert_array_equal(same, SEQUENCES_X)


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ("(float[3] x) => (float y) { a = SequenceConstruct (x) y = Relu (a) }", "'a' is not a tensor, and IR has tensors only"),
        ("(float[3] x) => (float y) { a = SequenceConstruct (x) y = Identity (a) }", "'a' is not a tensor"),
        ("(float[3] x) => (float a) { a = SequenceConstruct (x) }", "output 'a' of the graph: 'a' is not a tensor"),
        ("(float[3] x) => (float y) <int64 n = {3}> { a = SequenceConstruct (x) y = SequenceAt (a, n) }", "position 3 is out of range"),
        ("(float[3] x) => (int64 y) { y = SequenceLength (x) }", "its input is not a sequence of tensors"),
        ("(float[?] x) => (int64 y) { a = SplitToSequence (x) y = SequenceLength (a) }", "the number of tensors that"),
        ("(float[3] x) => (float y) { a = SequenceEmpty () y = ConcatFromSequence <axis: int = 0> (a) }", "an empty sequence"),
        ("(float[3] x, float[2] z, int64 n) => (float y) { a = SequenceConstruct (x, z) y = SequenceAt (a, n) }", "of different shapes"),
    ],
)  # fmt: skip
def test_what_is_refused(graph: str, says: str) -> None:
    import converters

    with pytest.raises(irexec.ConversionError, match=says):
        converters.convert(model_of(graph))
