"""Old opsets, corner cases and operators of ONNX Runtime that the backend suite lacks. Expected values are written by hand or by NumPy."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import converters
import irexec
from converters.onnx.examine import examine
from irexec import ConversionError
from tests.support.onnx_models import model_of, run


def f32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


ROW = f32([1, 2, 3], [4, 5, 6])
MAP = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
NAN, INF = float("nan"), float("inf")

# opset, graph, constants, inputs, expected outputs
OLD: dict[str, tuple[int, str, dict[str, Any], list[Any], list[Any]]] = {
    "GridSample of integers is truncated": (20, "(int32[1,1,2,2] x) => (int32[1,1,1,3] y) { y = GridSample <align_corners: int = 1> (x, c) }", {"c": f32([[[-1, -1], [0, 0], [1, 0]]])}, [np.array([[[[1, 2], [3, 4]]]], np.int32)], [[[[[1, 2, 3]]]]]),
    "GridSample of integers in a volume": (20, "(int32[1,1,1,2,2] x) => (int32[1,1,1,1,2] y) { y = GridSample <align_corners: int = 1> (x, c) }", {"c": f32([[[[0, 0, 0], [1, 1, 0]]]])}, [np.array([[[[[1, 2], [3, 4]]]]], np.int32)], [[[[[[2, 4]]]]]]),
    "Add-1 broadcasts from an axis": (6, "(float[2,3] x) => (y) { y = Add <axis: int = 0, broadcast: int = 1> (x, c) }", {"c": f32(10, 20)}, [ROW], [[[11, 12, 13], [24, 25, 26]]]),
    "Mul-6 broadcasts from the last axis": (6, "(float[2,3] x) => (y) { y = Mul <broadcast: int = 1> (x, c) }", {"c": f32(1, 0, 2)}, [ROW], [[[1, 0, 6], [4, 0, 12]]]),
    "Pow-1 broadcasts from an axis": (6, "(float[2,3] x) => (y) { y = Pow <axis: int = -2, broadcast: int = 1> (x, c) }", {"c": f32(1, 2)}, [ROW], [[[1, 2, 3], [16, 25, 36]]]),
    "Less-1": (6, "(float[2,3] x) => (bool[2,3] y) { y = Less <broadcast: int = 1> (x, c) }", {"c": np.float32(3)}, [ROW], [[[1, 1, 0], [0, 0, 0]]]),
    "Swish of OpenVINO without its domain": (9, "(float[2] x) => (y) { y = Swish (x, c) }", {"c": f32(0)}, [f32(1, 2)], [[0.5, 1]]),
    "PRelu-6 has a slope per channel": (6, "(float[1,2,2] x) => (y) { y = PRelu(x, c) }", {"c": f32(10, 100)}, [f32([[-1, 1], [-1, 1]])], [[[[-10, 1], [-100, 1]]]]),
    "PRelu-9 broadcasts from the last axis": (9, "(float[1,2,2] x) => (y) { y = PRelu(x, c) }", {"c": f32(10, 100)}, [f32([[-1, 1], [-1, -1]])], [[[[-10, 1], [-10, -100]]]]),
    "Cast of floats to int4 rounds, ties to even": (21, "(float[6] x) => (int32[6] y) { q = Cast <to: int = 22> (x) y = Cast <to: int = 6> (q) }", {}, [f32(-3.5, -0.6, 0.5, 1.5, 2.5, 6.7)], [[-4, -1, 0, 2, 2, 7]]),
    "Cast of halves to uint4 rounds": (21, "(float16[4] x) => (int32[4] y) { q = Cast <to: int = 21> (x) y = Cast <to: int = 6> (q) }", {}, [np.float16([0.5, 1.5, 3.7, 14.6])], [[0, 2, 4, 15]]),
    "Cast of doubles to uint2 rounds": (25, "(double[4] x) => (int32[4] y) { q = Cast <to: int = 25> (x) y = Cast <to: int = 6> (q) }", {}, [np.float64([0.5, 0.9, 1.5, 2.6])], [[0, 1, 2, 3]]),
    "Cast of floats to int8 cuts": (21, "(float[4] x) => (int8[4] y) { y = Cast <to: int = 3> (x) }", {}, [f32(-3.5, -0.6, 2.5, 6.7)], [[-3, 0, 2, 6]]),
    "Cast-1 by name": (5, '(float[2] x) => (int32[2] y) { y = Cast <to: string = "INT32"> (x) }', {}, [f32(1.5, -1.5)], [[1, -1]]),
    "Clip-6": (6, "(float[3] x) => (y) { y = Clip <max: float = 1.0> (x) }", {}, [f32(-5, 0.5, 5)], [[-5, 0.5, 1]]),
    "Dropout-7 has a float mask": (7, "(float[2] x) => (float[2] y, float[2] m) { y, m = Dropout(x) }", {}, [f32(1, 2)], [[1, 2], [1, 1]]),
    "Gemm-1": (1, "(float[2,3] x) => (y) { y = Gemm <broadcast: int = 1, transB: int = 1, alpha: float = 0.5> (x, w, c) }", {"w": f32([1, 1, 1]), "c": f32(1)}, [ROW], [[[4], [8.5]]]),
    "Hardmax-11 over all axes from 1 on": (11, "(float[1,2,2] x) => (y) { y = Hardmax(x) }", {}, [f32([[1, 5], [5, 2]])], [[[[0, 1], [0, 0]]]]),
    "Pad-1": (1, "(float[2] x) => (y) { y = Pad <paddings: ints = [1, 0], value: float = 9.0> (x) }", {}, [f32(1, 2)], [[9, 1, 2]]),
    "Pad-2 with negative pads": (2, '(float[3] x) => (y) { y = Pad <pads: ints = [-1, 1], mode: string = "edge"> (x) }', {}, [f32(1, 2, 3)], [[2, 3, 3]]),
    "ReduceSum-11 by attribute": (11, "(float[2,3] x) => (y) { y = ReduceSum <axes: ints = [-1], keepdims: int = 0> (x) }", {}, [ROW], [[6, 15]]),
    "Reshape-1": (1, "(float[2,3] x) => (y) { y = Reshape <shape: ints = [0, 1, -1]> (x) }", {}, [ROW], [[[[1, 2, 3]], [[4, 5, 6]]]]),
    "Gemm-9 of integers, rounded once: 47.7 + 2.72": (9, "(int64[1,2] x, int64[2,1] z) => (y) { y = Gemm <alpha: float = 0.9, beta: float = 0.34> (x, z, c) }", {"c": np.array([8])}, [np.array([[1, 1]]), np.array([[27], [26]])], [[[50]]]),
    "Slice-1": (1, "(float[2,3] x) => (y) { y = Slice <starts: ints = [-2], ends: ints = [99], axes: ints = [1]> (x) }", {}, [ROW], [[[2, 3], [5, 6]]]),
    "Softmax-11 over all axes from 1 on": (11, "(float[1,2,2] x) => (y) { y = Softmax(x) }", {}, [f32([[0, 0], [0, 0]])], [[[[0.25, 0.25], [0.25, 0.25]]]]),
    "Softmax-13 over the last axis": (13, "(float[1,2,2] x) => (y) { y = Softmax(x) }", {}, [f32([[0, 0], [0, 0]])], [[[[0.5, 0.5], [0.5, 0.5]]]]),
    "Split-1 with lengths of the data's type": (1, "(float[2,3] x) => (a, b) { a, b = Split <axis: int = 1> (x, c) }", {"c": f32(1, 2)}, [ROW], [[[1], [4]], [[2, 3], [5, 6]]]),
    "Split-1 with lengths as an input": (1, "(float[2,3] x, float[2] c) => (a, b) { a, b = Split <axis: int = 1> (x, c) }", {}, [ROW, f32(1, 2)], [[[1], [4]], [[2, 3], [5, 6]]]),
    "Split-2": (2, "(float[2,3] x) => (a, b) { a, b = Split <axis: int = 1, split: ints = [1, 2]> (x) }", {}, [ROW], [[[1], [4]], [[2, 3], [5, 6]]]),
    "Split-18 with a smaller last part": (18, "(float[3] x) => (a, b) { a, b = Split <num_outputs: int = 2> (x) }", {}, [f32(1, 2, 3)], [[1, 2], [3]]),
    "Squeeze-11": (11, "(float[1,2,1] x) => (y) { y = Squeeze <axes: ints = [0]> (x) }", {}, [f32([[1], [2]])], [[[1], [2]]]),
    "Tile-1": (1, "(float[2] x) => (y) { y = Tile(x, n, a) }", {"n": f32(2), "a": f32(0)}, [f32(1, 2)], [[1, 2, 1, 2]]),
    "TopK-1": (1, "(float[3] x) => (float[2] v, int64[2] i) { v, i = TopK <k: int = 2> (x) }", {}, [f32(1, 3, 3)], [[3, 3], [1, 2]]),
    "Unsqueeze-1": (1, "(float[2] x) => (y) { y = Unsqueeze <axes: ints = [0, 2]> (x) }", {}, [f32(1, 2)], [[[[1], [2]]]]),
    "Upsample-7": (7, "(float[1,1,1,2] x) => (y) { y = Upsample <scales: floats = [1.0, 1.0, 1.0, 2.0]> (x) }", {}, [f32([[[1, 2]]])], [[[[[1, 1, 2, 2]]]]]),
    "Upsample-1": (1, '(float[1,1,1,2] x) => (y) { y = Upsample <height_scale: float = 2.0, width_scale: float = 1.0> (x) }', {}, [f32([[[1, 2]]])], [[[[[1, 2], [1, 2]]]]]),
    "BatchNormalization-7 with statistics per element": (7, "(float[2,2] x) => (y) { y = BatchNormalization <spatial: int = 0, epsilon: float = 0.0> (x, s, b, m, v) }", {"s": f32(1, 2), "b": f32(0, 1), "m": f32(1, 1), "v": f32(4, 1)}, [f32([3, 3], [5, 1])], [[[1, 5], [2, 1]]]),
    "GroupNormalization-18 with a scale per group": (18, "(float[1,4,2] x) => (y) { y = GroupNormalization <num_groups: int = 2, epsilon: float = 0.0> (x, s, b) }", {"s": f32(1, 2), "b": f32(0, 1)}, [f32([[1, 3], [1, 3], [0, 2], [2, 0]])], [[[[-1, 1], [-1, 1], [-1, 3], [3, -1]]]]),
}  # fmt: skip

CORNERS: dict[str, tuple[int, str, dict[str, Any], list[Any], list[Any]]] = {
    "Imputer of any rank": (18, "(float[] x) => (float[] y) { y = ai.onnx.ml.Imputer <imputed_value_floats: floats = [7.0, 8.0], replaced_value_float: float = 0.0> (x) }", {}, [f32([0, 0], [1, 0])], [[[7, 8], [1, 8]]]),
    "LogSoftmax of any rank": (18, "(float[] x) => (y) { y = LogSoftmax(x) }", {}, [f32([0, 0], [0, 0])], [[[-np.log(2)] * 2] * 2]),
    "ArgMax of any rank": (18, "(float[] x) => (int64[] y) { y = ArgMax <axis: int = -1, keepdims: int = 0> (x) }", {}, [f32([1, 2, 3], [3, 1, 2])], [[2, 0]]),
    "TopK of any rank": (18, "(float[] x) => (float[] v, int64[] i) { v, i = TopK <axis: int = 0> (x, k) }", {"k": np.int64([1])}, [f32([1, 5], [3, 1])], [[[3, 5]], [[1, 0]]]),
    "DynamicQuantizeLinear of any rank": (18, "(float[] x) => (uint8[] y, float[] s, uint8[] z) { y, s, z = DynamicQuantizeLinear(x) }", {}, [f32([0, 255], [2, 3])], [[[0, 255], [2, 3]], 1, 0]),
    "LogSoftmax-11 without an element": (11, "(float[a,b,0,3] x) => (y) { y = LogSoftmax <axis: int = 2> (x) }", {}, [np.zeros((2, 5, 0, 3), np.float32)], [np.zeros((2, 5, 0, 3))]),
    "Slice of any number of axes": (18, "(float[2,3] x, int64[n] a, int64[n] b) => (y) { y = Slice(x, a, b) }", {}, [ROW, np.int64([1, 0]), np.int64([2, 2])], [[[4, 5]]]),
    "Slice of as many axes as are named": (18, "(float[2,3] x, int64[n] a, int64[n] b) => (y) { y = Slice(x, a, b, c) }", {"c": np.int64([1])}, [ROW, np.int64([1]), np.int64([99])], [[[2, 3], [5, 6]]]),
    "Div of integers truncates": (14, "(int32[4] x) => (int32[4] y) { y = Div(x, c) }", {"c": np.int32([2, 2, -2, -2])}, [np.int32([7, -7, 7, -7])], [[3, -3, -3, 3]]),
    "Mod has the sign of the divisor": (13, "(int32[4] x) => (int32[4] y) { y = Mod(x, c) }", {"c": np.int32([3, 3, -3, -3])}, [np.int32([7, -7, 7, -7])], [[1, 2, -2, -1]]),
    "Mod with fmod has the sign of the dividend": (13, "(int32[4] x) => (int32[4] y) { y = Mod <fmod: int = 1> (x, c) }", {"c": np.int32([3, 3, -3, -3])}, [np.int32([7, -7, 7, -7])], [[1, -1, 1, -1]]),
    "Pow keeps the type of its base": (15, "(int32[2] x) => (int32[2] y) { y = Pow(x, c) }", {"c": f32(0.5, 2)}, [np.int32([9, 3])], [[3, 9]]),
    "Clip with a minimum above the maximum": (13, "(float[3] x) => (y) { y = Clip(x, a, b) }", {"a": np.float32(5), "b": np.float32(2)}, [f32(0, 3, 9)], [[2, 2, 2]]),
    "BitShift by the width and more": (28, '(int8[4] x) => (int8[4] y) { y = BitShift <direction: string = "RIGHT"> (x, c) }', {"c": np.int8([1, 8, 9, -1])}, [np.int8([-4, -4, 4, -4])], [[-2, -1, 0, -1]]),
    "ReduceLogSumExp of infinities": (18, "(float[2,2] x) => (y) { y = ReduceLogSumExp <keepdims: int = 0> (x, a) }", {"a": np.int64([1])}, [f32([-INF, -INF], [INF, 0])], [[-INF, INF]]),
    "ReduceLogSumExp of large numbers": (18, "(float[2] x) => (y) { y = ReduceLogSumExp(x) }", {}, [f32(1000, 1000)], [[1000 + np.log(2)]]),
    "ArgMax of the last index": (13, "(float[2,3] x) => (int64[2] y) { y = ArgMax <axis: int = 1, keepdims: int = 0, select_last_index: int = 1> (x) }", {}, [f32([1, 1, 0], [2, 2, 2])], [[1, 2]]),
    "Pad reflects more than once": (18, '(float[3] x) => (y) { y = Pad <mode: string = "reflect"> (x, p) }', {"p": np.int64([5, 4])}, [f32(1, 2, 3)], [[2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3]]),
    "Pad wraps more than once": (19, '(float[2] x) => (y) { y = Pad <mode: string = "wrap"> (x, p) }', {"p": np.int64([3, 1])}, [f32(1, 2)], [[2, 1, 2, 1, 2, 1]]),
    "MaxPool with column-major indices": (12, "(float[1,1,2,3] x) => (float[1,1,1,1] y, int64[1,1,1,1] i) { y, i = MaxPool <kernel_shape: ints = [2, 3], storage_order: int = 1> (x) }", {}, [f32([[[0, 0, 0], [9, 0, 0]]])], [[[[[9]]]], [[[[1]]]]]),
    "MatMulInteger beyond 24 bits": (10, "(uint8[1,600] x) => (int32[1,1] y) { y = MatMulInteger(x, w) }", {"w": np.full((600, 1), 255, np.uint8)}, [np.r_[np.full(599, 255), 254].astype(np.uint8)[None]], [[[599 * 255 * 255 + 254 * 255]]]),
    "AveragePool whose last window extends beyond the padding": (19, "(float[1,1,4] x) => (y) { y = AveragePool <kernel_shape: ints = [3], strides: ints = [2], pads: ints = [1, 0], ceil_mode: int = 1, count_include_pad: int = 1> (x) }", {}, [f32([[3, 3, 3, 6]])], [[[[2, 4]]]]),
    "QuantizeLinear rounds to even and saturates": (13, "(float[4] x) => (uint8[4] y) { y = QuantizeLinear(x, s, z) }", {"s": np.float32(2), "z": np.uint8(1)}, [f32(1, 3, -9, 900)], [[1, 3, 0, 255]]),
}  # fmt: skip

ROWS = OLD | CORNERS


@pytest.mark.parametrize("name", ROWS)
def test_operator(name: str) -> None:
    opset, graph, constants, inputs, expected = ROWS[name]
    results = run(
        model_of(_typed(graph), opset, **{key: np.asarray(value) for key, value in constants.items()}), *inputs
    )
    assert len(results) == len(expected)
    for result, expected_value in zip(results, expected, strict=True):
        assert result.shape == np.shape(expected_value)
        np.testing.assert_allclose(result, expected_value, rtol=1e-6)


def _typed(graph: str) -> str:
    """The graph with the type float for outputs without one."""
    head, _, rest = graph.partition("=> (")
    names, _, body = rest.partition(")")
    typed = [part if "[" in part or not part else f"float[] {part.strip()}" for part in names.split(", ")]
    return f"{head}=> ({', '.join(typed)}){body}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("transformation", ["half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric"])
def test_resize_against_the_reference(mode: str, antialias: int, transformation: str, policy: str) -> None:
    """Expected values from onnx.reference."""
    if antialias and (mode == "nearest" or transformation == "align_corners"):
        return
    attributes = f'mode: string = "{mode}", antialias: int = {antialias}, axes: ints = [2, 3], keep_aspect_ratio_policy: string = "{policy}"'
    attributes += f', coordinate_transformation_mode: string = "{transformation}"'
    model = model_of(
        f'(float[1,1,4,4] x) => (float[1,1,?,?] y) {{ y = Resize <{attributes}> (x, "", "", s) }}',
        19,
        s=np.int64([3, 7]),
    )
    (expected,) = ReferenceEvaluator(model).run(None, {"x": MAP})
    np.testing.assert_allclose(run(model, MAP)[0], expected, rtol=1e-4, atol=1e-4)


def test_deformable_convolution_of_other_ranks_is_an_operation_of_irexec() -> None:
    graph = "(float[1,1,4] x, float[1,2,3] o) => (float[1,1,3] y) { [d] y = DeformConv(x, w, o) }"
    model = model_of(graph, 22, w=np.ones((1, 1, 2), np.float32))
    with pytest.warns(UserWarning, match="DeformConv 'd' over 1 spatial axes becomes an operation of irexec's own"):
        converted = converters.convert(model)
    assert [node.version for node in converted.nodes if node.type == "DeformableConvolution"] == ["irexec"]


def test_transposed_convolution_is_resolved() -> None:
    """auto_pad and output_shape become explicit pads: runtimes disagree on them."""
    graph = '(float[1,1,3,3] x) => (float[1,1,?,?] y) { y = ConvTranspose <auto_pad: string = "SAME_UPPER", strides: ints = [2, 2]> (x, w) }'
    converted = converters.convert(model_of(graph, 11, w=np.ones((1, 1, 3, 3), np.float32)))
    node = next(node for node in converted.nodes if node.type == "ConvolutionBackpropData")
    assert len(node.ports) == 2
    assert {key: node.attributes[key] for key in ("auto_pad", "pads_begin", "pads_end", "output_padding")} == {
        "auto_pad": "explicit", "pads_begin": "0, 0", "pads_end": "1, 1", "output_padding": "0, 0",
    }  # fmt: skip


def test_transposed_convolution_of_unknown_size() -> None:
    """auto_pad needs no size of the data; output_shape is reached with the size of the run."""
    weights = np.ones((1, 1, 3), np.float32)
    same = '(float[1,1,?] x) => (float[1,1,?] y) { y = ConvTranspose <auto_pad: string = "SAME_LOWER", strides: ints = [2]> (x, w) }'
    np.testing.assert_array_equal(run(model_of(same, 11, w=weights), f32([[1, 1]]))[0].shape, (1, 1, 4))
    asked = "(float[1,1,?] x) => (float[1,1,5] y) { y = ConvTranspose <output_shape: ints = [5]> (x, w) }"
    np.testing.assert_array_equal(run(model_of(asked, 11, w=weights), f32([[1, 2]]))[0], [[[1, 3, 3, 2, 0]]])


def test_fused_convolution_adds_z_before_its_activation() -> None:
    graph = '(float[1,1,3] x, float[1,1,3] z) => (float[1,1,3] y) { y = com.microsoft.FusedConv <activation: string = "Relu"> (x, w, b, z) }'
    model = model_of(graph, 13, w=np.full((1, 1, 1), 2, np.float32), b=f32(1))
    np.testing.assert_array_equal(run(model, f32([[1, 2, 3]]), f32([[0, -9, 1]]))[0], [[[3, 0, 8]]])


CHANNELS_LAST = {
    "MaxPool": ("<kernel_shape: ints = [2]> (x)", {}),
    "AveragePool": ("<kernel_shape: ints = [2]> (x)", {}),
    "GlobalAveragePool": ("(x)", {}),
    "BatchNormalization": ("(x, s, b, m, v)", {"s": f32(1, 2), "b": f32(0, 1), "m": f32(1, 1), "v": f32(4, 1)}),
    "InstanceNormalization": ("(x, s, b)", {"s": f32(1, 2), "b": f32(0, 1)}),
}


@pytest.mark.parametrize("operator", CHANNELS_LAST)
def test_channels_last_is_the_same_between_transpositions(operator: str) -> None:
    arguments, constants = CHANNELS_LAST[operator]
    x = np.arange(8, dtype=np.float32).reshape(1, 4, 2)
    last = run(
        model_of(
            f"(float[1,4,2] x) => (float[1,?,2] y) {{ y = com.ms.internal.nhwc.{operator} {arguments} }}",
            14,
            **constants,
        ),
        x,
    )[0]
    first = model_of(f"(float[1,2,4] x) => (float[1,2,?] y) {{ y = {operator} {arguments} }}", 14, **constants)
    (expected,) = ReferenceEvaluator(first).run(None, {"x": x.transpose(0, 2, 1)})
    np.testing.assert_allclose(last, expected.transpose(0, 2, 1), rtol=1e-5, atol=1e-6)


def test_training_that_gives_more_than_one_output_is_refused() -> None:
    outputs = ", ".join(f"float[2] {name}" for name in "mvno")
    graph = f"(float[1,2,2] x) => (float[1,2,2] y, {outputs}) {{ y, m, v, n, o = BatchNormalization(x, s, s, s, s) }}"
    with pytest.raises(irexec.ConversionError, match="its output 1 cannot be converted") as caught:
        converters.convert(model_of(graph, 7, s=f32(1, 1)))
    assert caught.value.unsupported


_MACHINE = "coefficients = [1.0, -1.0], rho = [0.5], support_vectors = [1.0, 2.0], vectors_per_class = [1, 1], classlabels_ints = [0, 1]"


def _svc(attributes: str) -> str:
    return (
        f"(float[2,1] x) => (int64[2] y, float[2,2] z) {{ [svc] y, z = ai.onnx.ml.SVMClassifier <{attributes}> (x) }}"
    )


REFUSED = {
    "labels of maps": ("(float[2,3] x) => (z) { [zip] z = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2]> (x) }", r"node 'zip' .*: there are 2 labels for 3 scores"),
    "equal labels of maps": ("(float[2,2] x) => (z) { [zip] z = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 1]> (x) }", r"node 'zip' .*: two classes have the same label"),
    "maps as inputs": ("(float[2,2] x) => (y) { z = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2]> (x) [id] y = SequenceAt (z, z) }", r"'id'"),
    "probabilities of other pairs": (_svc(f"{_MACHINE}, prob_a = [1.0, 2.0], prob_b = [0.5]"), r"node 'svc' .*: prob_a and prob_b have 2 and 1 values, expected 1"),
    "probits of two classes": (_svc(f'{_MACHINE}, post_transform = "PROBIT"'), r"node 'svc' .*: PROBIT of two classes"),
    "a kernel without its parameters": (_svc(f'{_MACHINE}, kernel_type = "RBF"'), r"node 'svc' .*: kernel_params has 0 values"),
    "one axis for batch and time": ("(float[2,2] x, int64[2] n) => (y) { [turn] y = ReverseSequence <time_axis = 1> (x, n) }", r"node 'turn' .*: batch_axis is 1 and time_axis 1, expected 0 and 1 in either order"),
    "coefficients that do not fit": (_svc(_MACHINE.replace("1.0, -1.0", "1.0")), r"node 'svc' .*: coefficients has 1 value, expected 2"),
}  # fmt: skip


def test_support_vectors_whose_weights_would_be_large_are_refused() -> None:
    """A file of a few kilobytes says of how many classes and vectors they would be; pairs of classes are not made before."""
    many = f"rho = [0.5], coefficients = [1.0], vectors_per_class = [{', '.join(['1'] * 2000)}], classlabels_ints = [{', '.join(['1'] * 2000)}]"
    large = _MACHINE.replace("[1, 1]", "[100000000, 200000000]")
    for attributes, expected in (
        (many, "rho has 1 value, expected 1999000 for 2,000 classes"),
        (large, r"shape \[300000000, 1\] would take"),
    ):
        model = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]> g {_svc(attributes)}'
        )
        tracemalloc.start()
        with pytest.raises(irexec.ConversionError, match=expected):
            converters.convert(model)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000_000


@pytest.mark.parametrize("name", REFUSED)
def test_refusal_gives_the_node_and_the_reason(name: str) -> None:
    graph, expected = REFUSED[name]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]> g {graph}')
    with pytest.raises(irexec.ConversionError, match=expected):
        converters.convert(model)


# The node, and the shapes of its inputs x, p, q: ONNX broadcasts the parameters in one direction. ONNX Runtime refuses each.
ENLARGING = {
    "scale of channels": ("LayerNormalization <axis = 1> (x, p)", "1,3,1,1", "3", "3"),
    "bias of more axes": ("LayerNormalization (x, q, p)", "3,4", "2,3,4", "4"),
    "scale of rows": ("RMSNormalization (x, p)", "3,1", "4", "4"),
    "scales of other channels": ("InstanceNormalization (x, p, q)", "1,1,3", "4", "4"),
    "addend of more rows": ("Gemm (x, p, q)", "1,3", "3,4", "5,4"),
    "addend of more columns": ("Gemm (x, p, q)", "2,3", "3,1", "2,4"),
    "addend of more axes": ("Gemm (x, p, q)", "2,3", "3,4", "2,2,4"),
    "bias of other channels": ("Conv (x, p, q)", "1,1,3", "1,1,1", "3"),
    "bias of other channels, transposed": ("ConvTranspose (x, p, q)", "1,1,3", "1,1,1", "3"),
    "steps of other columns": ("QuantizeLinear (x, p)", "2,1", "3", "3"),
    "skip of another length": ("com.microsoft.SkipLayerNormalization (x, p, q)", "1,1,4", "1,3,4", "4"),
    "bias of a longer row": ("com.microsoft.BiasGelu (x, p)", "2,1", "4", "4"),
}


@pytest.mark.parametrize("name", ENLARGING)
def test_a_parameter_that_enlarges_the_data_is_refused(name: str) -> None:
    node, *shapes = ENLARGING[name]
    inputs = ", ".join(f"float[{shape}] {one}" for shape, one in zip(shapes, "xpq", strict=True))
    with pytest.raises(ConversionError, match=r"a parameter does not broadcast to the data: f32\["):
        converters.convert(model_of(f"({inputs}) => (y) {{ y = {node} }}", 23))


def test_cumulative_product_along_an_axis_from_an_input() -> None:
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for axis in (0, 1, -1, -2):
        y = run(model_of("(float[2,3] x, int64 axis) => (float y) { y = CumProd (x, axis) }", 26), x, np.int64(axis))[0]
        np.testing.assert_allclose(y, np.cumprod(x, axis))


@pytest.mark.parametrize("labels", ['classlabels_strings = ["cat", "dog"]', "classlabels_int64s = [4, 7]"])
def test_maps_become_an_output_for_each_label(labels: str) -> None:
    """Also where the scores are an output themselves."""
    graph = f"(float[N,2] x) => (z, p) {{ p = Neg(x) z = ai.onnx.ml.ZipMap <{labels}> (p) }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]> g {graph}')
    for output in model.graph.output:
        output.ClearField("type")
    converted = converters.convert(model)
    results = irexec.compile_model(converted)([np.array([[1, 2], [3, 4], [5, 6]], np.float32)])
    first, second = ("cat", "dog") if "cat" in labels else ("4", "7")
    assert [port.name for port in converted.outputs] == [f"z.{first}", f"z.{second}", "p"]
    assert results[f"z.{first}"].tolist() == [-1, -3, -5]
    assert results[f"z.{second}"].tolist() == [-2, -4, -6]
    assert results["p"].shape == (3, 2)
    found = examine(model)
    assert found.model is not None
    assert [str(finding) for finding in found.findings if finding.severity == "error"] == []


@pytest.mark.parametrize("name", ["int16", "uint16", "uint32", "uint64", "bool"])
def test_resize_of_types_that_interpolate_does_not_take(name: str) -> None:
    """Nearest values are copies, whatever their type. Source: Resize-19, any tensor type."""
    graph = f'({name}[1,1,2,2] x) => ({name}[1,1,4,4] y) {{ y = Resize <mode: string = "nearest"> (x, , s) }}'
    x = np.array([[[[1, 0], [0, 1]]]], bool if name == "bool" else name)
    if name == "uint32":
        x[0, 0, 0, 0] = 4_000_000_000
    y = run(model_of(graph, s=f32(1, 1, 2, 2)), x)[0]
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3))


# BitCast, which IR lacks, by arithmetic; expected values are NumPy views.


_FLOATS = {
    "float16": "uint16", "float32": "int32", "float64": "int64", "float32 ": "uint32", "float64 ": "uint64",
    "float16 ": "int16",
}  # fmt: skip
_VALUES = [0.0, -0.0, 1.0, -1.0, 0.1, -3.7e-5, 65504.0, 6e-8, -6e-8, 1e-3, np.inf, -np.inf]


def _cast(x: np.ndarray, kind: np.dtype) -> np.ndarray:
    to = helper.np_dtype_to_tensor_dtype(kind)
    source, target = (
        TensorProto.DataType.Name(code).lower() for code in (helper.np_dtype_to_tensor_dtype(x.dtype), to)
    )
    return run(model_of(f"({source}[{x.size}] x) => ({target} y) {{ y = BitCast <to: int = {to}> (x) }}", 26), x)[0]


@pytest.mark.parametrize("name", _FLOATS)
@pytest.mark.sampled(2)
def test_floats_to_bits_and_back(name: str) -> None:
    floats, integers = np.dtype(name.strip()), np.dtype(_FLOATS[name])
    limits = np.finfo(floats)
    edges = [
        limits.max, limits.min, limits.smallest_normal, limits.smallest_subnormal, -limits.smallest_subnormal,
        limits.eps,
    ]  # fmt: skip
    x = np.array([*_VALUES, *edges, *np.random.default_rng(0).normal(size=50)], np.float64).astype(floats)
    bits = _cast(x, integers)
    np.testing.assert_array_equal(bits, x.view(integers))
    again = _cast(bits, floats)
    np.testing.assert_array_equal(again.view(integers), x.view(integers))


def test_nan_stays_nan() -> None:
    x = np.array([np.nan], np.float32)
    assert _cast(x, np.dtype(np.int32)).tolist() == [0x7FC00000]
    assert np.isnan(_cast(x.view(np.int32), np.dtype(np.float32))).all()


def test_integers_wrap() -> None:
    x = np.array([-1, 127, -128], np.int8)
    np.testing.assert_array_equal(_cast(x, np.dtype(np.uint8)), x.view(np.uint8))


# ONNX operators that move data of 2 and 4 bits: OpenVINO's plugin moves them in bytes, beside its memory otherwise.


CODES = np.arange(32, dtype=np.uint8).reshape(4, 8)
E2M1 = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])

MOVES = (
    ("Gather", ["w", "i"], {}, lambda x: x[[1, 3]]),
    ("GatherND", ["w", "rows"], {}, lambda x: x[[1, 3]]),
    ("Slice", ["w", "i", "stop", "first"], {}, lambda x: x[1:4, 3:7]),
    ("Concat", ["w", "w"], {"axis": 1}, lambda x: np.concatenate([x, x], 1)),
    ("Split", ["w"], {"axis": 1, "num_outputs": 2}, lambda x: x[:, :4]),
    ("Tile", ["w", "i"], {}, lambda x: np.tile(x, (1, 3))),
)


@pytest.mark.parametrize(("type", "inputs", "attributes", "expected"), MOVES, ids=[move[0] for move in MOVES])
@pytest.mark.parametrize("bits", [2, 4])
def test_moves(type: str, inputs: list[str], attributes: dict, expected, bits: int) -> None:
    """The values are those of the codes, by the tables of the two types."""
    kind = TensorProto.UINT2 if bits == 2 else TensorProto.FLOAT4E2M1
    codes = CODES % (1 << bits)
    packed = sum(codes.reshape(-1, 8 // bits)[:, i] << (i * bits) for i in range(8 // bits)).astype(np.uint8)
    fixed = [helper.make_tensor("w", kind, CODES.shape, packed.tobytes(), raw=True)]
    for name, values in (("rows", [[1], [3]]), ("stop", [4, 7]), ("first", [0, 1])):
        fixed.append(onnx.numpy_helper.from_array(np.array(values, np.int64), name))
    nodes = [helper.make_node(type, inputs, ["moved", "rest"] if type == "Split" else ["moved"], **attributes)]
    nodes.append(helper.make_node("Cast", ["moved"], ["y"], to=TensorProto.FLOAT))
    given = helper.make_tensor_value_info("i", TensorProto.INT64, [2])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_empty_tensor_value_info("y")], fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    converted = irexec.convert(model.SerializeToString())
    assert "IR984" not in {one.code for one in irexec.validate(converted, portability=True)}
    (result,) = irexec.compile_model(converted)({"i": np.array([1, 3])}).values()
    np.testing.assert_array_equal(result, expected(codes.astype(np.float32) if bits == 2 else E2M1[codes]))


# Random operators: element type, range and distribution of their results, and the same results for the same seed.


def test_uniform_range_and_seed() -> None:
    graph = "() => (float y) { y = RandomUniform <shape: ints = [1000], low: float = -2.0, high: float = 3.0, seed: float = 7.0> () }"
    y = run(model_of(graph))[0]
    assert y.dtype == np.float32
    assert y.min() >= -2
    assert y.max() < 3
    assert abs(y.mean() - 0.5) < 0.2
    np.testing.assert_array_equal(y, run(model_of(graph))[0])


def test_normal_distribution() -> None:
    graph = "(double[2000] x) => (double y) { y = RandomNormalLike <mean: float = 1.0, scale: float = 2.0, seed: float = 3.0> (x) }"
    y = run(model_of(graph), np.zeros(2000))[0]
    assert y.dtype == np.float64
    assert abs(y.mean() - 1) < 0.2
    assert abs(y.std() - 2) < 0.2
    assert abs(np.mean(np.abs(y - 1) < 2) - 0.683) < 0.05


def test_bernoulli_probability() -> None:
    x = np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 1000)
    y = run(model_of("(float[3000] x) => (int64 y) { y = Bernoulli <dtype: int = 7, seed: float = 1.0> (x) }", 22), x)[
        0
    ]
    assert set(y.tolist()) == {0, 1}
    np.testing.assert_allclose(y.reshape(3, -1).mean(1), [0, 0.25, 1], atol=0.06)


def test_multinomial_probabilities() -> None:
    x = np.log(np.array([[1, 3], [8, 0.001]], np.float32))
    y = run(
        model_of("(float[2,2] x) => (int32 y) { y = Multinomial <sample_size: int = 1000, seed: float = 1.0> (x) }"), x
    )[0]
    assert y.dtype == np.int32
    np.testing.assert_allclose(y.mean(1), [0.75, 0], atol=0.06)


@pytest.mark.parametrize("operator", ["RandomUniform", "RandomNormal"])
def test_any_finite_seed(operator: str) -> None:
    for seed in (-7.5, 3e38):
        assert run(_seeded(operator, seed))[0].shape == (3,)
    for seed in (float("inf"), float("-inf"), float("nan")):
        with pytest.raises(ConversionError, match=r"the seed is (-?inf|nan), expected a finite value"):
            run(_seeded(operator, seed))


def _seeded(operator: str, seed: float) -> onnx.ModelProto:
    node = helper.make_node(operator, [], ["y"], shape=[3], seed=seed)
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_product_of_integers_times_infinity() -> None:
    """Gemm of integers with a factor that is none converts the product; what infinity makes of it is for Convert to say."""
    node = helper.make_node("Gemm", ["a", "a"], ["y"], alpha=float("inf"))
    shaped = [helper.make_tensor_value_info(name, TensorProto.INT32, [2, 2]) for name in "ay"]
    model = helper.make_model(
        helper.make_graph([node], "g", shaped[:1], shaped[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    assert run(model, np.ones((2, 2), np.int32))[0].shape == (2, 2)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("zero", [False, True])
def test_weights_in_blocks_have_an_axis_of_blocks(axis: int, zero: bool) -> None:
    """OpenVINO's CPU plugin is wrong where each element of 4 bits has a scale of its own (IR989)."""
    rng, kind = np.random.default_rng(axis), ml_dtypes.int4
    shape, scales = ((4, 6), (2, 6)) if axis == 0 else ((6, 4), (6, 2))
    constants: dict[str, np.ndarray] = {"w": rng.integers(-8, 8, shape).astype(kind)}
    constants["s"] = rng.uniform(0.5, 1.5, scales).astype(np.float32)
    if zero:
        constants["z"] = rng.integers(-8, 8, scales).astype(kind)
    step = f"d = DequantizeLinear <axis: int = {axis}, block_size: int = 2> ({', '.join(constants)})"
    product = "MatMul (x, d)" if axis == 0 else "Gemm <transB: int = 1> (x, d)"
    model = model_of(f"(float[3,4] x) => (float[3,6] y) {{ {step} y = {product} }}", 21, **constants)
    x = rng.standard_normal((3, 4)).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    np.testing.assert_allclose(run(model, x)[0], expected, rtol=1e-5)
    converted = converters.convert(model)
    held = {node.constant.shape for node in converted.walk() if node.constant and node.constant.element.name == "i4"}
    split, points = ((2, 2, 6), (2, 1, 6)) if axis == 0 else ((6, 2, 2), (6, 2, 1))
    assert held == ({split, points} if zero else {split})
    assert [one.code for one in irexec.validate(converted, portability=True)] == []
