"""ONNX that came in goes out as itself, compressed weights as DequantizeLinear, and older opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import converters
import irexec
from converters.ir_to_onnx import registry
from converters.ir_to_onnx.export import export
from converters.ir_to_onnx.graph_writer import ExportError
from converters.ir_to_onnx.registry import translation_of
from irexec.analysis.builder import Builder
from irexec.ir.graph import Value
from irexec.testing import Case
from tests.support.exported import run_onnx
from tests.support.onnx_models import model_of
from tests.support.tiers import some_rows
from tests.to_onnx.exceptions import EXCEPT, REFUSED, is_listed
from tests.to_onnx.kernels import TABLE, table
from tests.to_onnx.sweep import cases, expected_of, exported

_RNG = np.random.default_rng(5)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.uniform(0.5, 1.5, shape).astype(np.float32)


W, B, C, D = _floats(8), _floats(8), _floats(3), _floats(3)
SCALE, U8, I8 = np.float32(0.02), np.uint8(120), np.int8(3)
SCALES, ZEROS = _floats(3) / 50, np.array([1, 2, 3], np.int8)
FILTER, BIAS = _RNG.integers(-99, 99, (6, 2, 3, 3), np.int8), _RNG.integers(-99, 99, 6, np.int32)
OF_FILTER, NO_ZEROS = _floats(6) / 50, np.zeros(6, np.int8)
KERNEL, LINE, OFFSET, PAIR = _floats(6, 2, 3, 3), _floats(6, 2, 3), _floats(6), _floats(2)
WEIGHTS, ROW = _floats(3, 8), _floats(1, 8)
MATRIX = _RNG.integers(0, 255, (8, 3), np.uint8)

GRAPHS = [
    ("(float[N,4,8] x) => (float[N,4,8] y) { y = LayerNormalization <epsilon = 0.001> (x, W, B) }", "W B"),
    ("(float[N,4,8] x) => (float[N,4,8] y) { y = LayerNormalization (x, W) }", "W"),
    ("(float[N,3,8,8] x) => (float[N,3,8,8] y) { y = InstanceNormalization (x, C, D) }", "C D"),
    ("(float[N,4,8] x) => (float[N,4,8] y) { y = RMSNormalization (x, W) }", "W"),
    ("(float[N,4,8] x, float[8] w, float[8] b) => (float[N,4,8] y) { y = LayerNormalization (x, w, b) }", ""),
    ("(float[N,4,8] x, float[8] w) => (float[N,4,8] y) { y = RMSNormalization (x, w) }", ""),
    ("(float[N,3,5] x, float[3] w, float[3] b) => (float[N,3,5] y) { y = InstanceNormalization (x, w, b) }", ""),
    ("(float[2,4,L,8] q, float[2,4,K,8] k, float[2,4,K,6] v) => (float[2,4,L,6] y) { y = Attention (q, k, v) }", ""),
    ("(float[2,4,L,8] q, float[2,2,K,8] k, float[2,2,K,6] v) => (float[2,4,L,6] y)" " { y = Attention <is_causal = 1, scale = 0.2> (q, k, v) }", ""),
    ("(float[2,4,5,8] q, float[2,4,7,8] k, float[2,4,7,8] v, float[5,7] m) => (float[2,4,5,8] y)" " { y = Attention (q, k, v, m) }", ""),
    ("(float[2,4,5,8] q, float[2,4,7,8] k, float[2,4,7,8] v, bool[2,1,5,7] m) => (float[2,4,5,8] y)" " { y = Attention (q, k, v, m) }", ""),
    ("(float[2,L,12] q, float[2,K,6] k, float[2,K,8] v) => (float[2,L,16] y)" " { y = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v) }", ""),
    ("(float[2,4,5,8] x, float[2,5,4] c, float[2,5,4] s) => (float[2,4,5,8] y) { y = RotaryEmbedding (x, c, s) }", ""),
    ("(float[2,4,5,8] x, float[200,2] c, float[200,2] s, int64[2,5] p) => (float[2,4,5,8] y)"
     " { y = RotaryEmbedding <interleaved = 1, rotary_embedding_dim = 4> (x, c, s, p) }", ""),
    ("(float[2,5,32] x, float[200,4] c, float[200,4] s, int64[2,5] p) => (float[2,5,32] y)" " { y = RotaryEmbedding <num_heads = 4> (x, c, s, p) }", ""),
    ("(float[N,3,8,8] x) => (float[N,3,1,1] y) { y = GlobalAveragePool (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = HardSwish (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = HardSigmoid <alpha = 0.3, beta = 0.6> (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Gelu (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Mish (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = LeakyRelu <alpha = 0.2> (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Elu (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Softmax (x) }", ""),
    ("(float[N,8] x) => (int64[N,1] y) { y = ArgMax <axis = 1> (x) }", ""),
    ("(float[N,2,H,6] x) => (float[N,6,V,6] y) { y = Conv <pads = [1, 1, 1, 1]> (x, KERNEL, OFFSET) }", "KERNEL OFFSET"),
    ('(float[N,4,6] x) => (float[N,6,3] y) { y = Conv <group = 2, strides = [2], auto_pad = "SAME_LOWER">' " (x, LINE, OFFSET) }", "LINE OFFSET"),
    ("(float[N,6,6,6] x) => (float[N,2,13,13] y) { y = ConvTranspose <strides = [2, 2]> (x, KERNEL, PAIR) }", "KERNEL PAIR"),
    ("(float[N,8] x) => (float[N,3] y) { y = Gemm <transB = 1> (x, WEIGHTS, C) }", "WEIGHTS C"),
    ("(float[N,3] x) => (float[N,8] y) { y = Gemm (x, WEIGHTS, ROW) }", "WEIGHTS ROW"),
    ("(float[N,3,8] x) => (uint8[N,3,8] y) { y = QuantizeLinear (x, SCALE, U8) }", "SCALE U8"),
    ("(float[N,3,8] x) => (int8[N,3,8] y) { y = QuantizeLinear <axis = 1> (x, SCALES, ZEROS) }", "SCALES ZEROS"),
    ("(uint8[N,4,6,6] x) => (uint8[N,6,2,2] y) { y = QLinearConv <group = 2, strides = [2, 2]>"
     " (x, SCALE, U8, FILTER, OF_FILTER, NO_ZEROS, SCALE, U8, BIAS) }", "SCALE U8 FILTER OF_FILTER NO_ZEROS BIAS"),
    ("(uint8[N,2,6,6] x) => (uint8[N,6,6,6] y) { y = QLinearConv <pads = [1, 1, 1, 1]>"
     " (x, SCALE, U8, FILTER, SCALE, I8, SCALE, U8) }", "SCALE U8 FILTER I8"),
    ("(uint8[N,8] x) => (uint8[N,3] y) { y = QLinearMatMul (x, SCALE, U8, MATRIX, SCALES, U8, SCALE, U8) }", "SCALE SCALES U8 MATRIX"),
    ("(uint8[N,8] x, uint8 z) => (int32[N,3] y) { y = MatMulInteger (x, MATRIX, z, U8) }", "U8 MATRIX"),
    ("(uint8[N,2,6,6] x, uint8[5,2,3,3] w) => (int32[N,5,4,4] y) { y = ConvInteger (x, w, U8) }", "U8"),
    ("(uint8[N,3,8] x) => (float[N,3,8] y) { y = DequantizeLinear (x, SCALE, U8) }", "SCALE U8"),
    ("(int8[N,3,8] x) => (float[N,3,8] y) { y = DequantizeLinear <axis = 1> (x, SCALES, ZEROS) }", "SCALES ZEROS"),
]  # fmt: skip


@pytest.fixture(params=[1, -1], ids=["in order", "reversed"])
def _order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most one recogniser of a type takes a layer, whichever is asked first."""
    registry._load()
    for type, functions in registry._RECOGNISERS.items():
        monkeypatch.setitem(registry._RECOGNISERS, type, functions[:: request.param])


@pytest.mark.usefixtures("_order")
@pytest.mark.parametrize(("graph", "constants"), GRAPHS, ids=[graph.split("= ", 1)[1] for graph, _ in GRAPHS])
def test_operator_survives(graph: str, constants: str) -> None:
    given = {name: np.asarray(globals()[name]) for name in constants.split()}
    before = model_of(graph, 24, **given)
    after = converters.to_onnx(converters.convert(before))
    onnx.checker.check_model(after, full_check=True)
    operator = before.graph.node[0].op_type
    left = [node.op_type for node in after.graph.node if node.op_type not in ("Squeeze", "Unsqueeze")]
    assert left == [operator]
    inputs = [_input(info.type.tensor_type) for info in before.graph.input]
    (old,), (new,) = (run_onnx(model, inputs)[0] for model in (before, after))
    np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "graph",
    [
        "(float[2,2,8,8] x) => (float[2,6,6,6] y) { p = Conv (x, KERNEL) y = Add (p, OFFSET) }",
        "(float[2,2,8,8] x) => (float[2,6,6,6] p, float[2,6,6,6] y) { p = Conv (x, KERNEL) y = Add (p, TALL) }",
        "(float[2,2,8,8] x) => (float[2,6,6,6] y) { p = Conv (x, KERNEL) q = Add (p, TALL) y = Mul (p, q) }",
        "(float[1,2,8,8] x) => (float[2,6,6,6] y) { p = Conv (x, KERNEL) y = Add (p, BATCH) }",
        "(float[2,2,8,8] x, float[6,1,1] b) => (float[2,6,6,6] y) { p = Conv (x, KERNEL) y = Add (b, p) }",
        "(float[2,3] x) => (float[2,8] y) { p = MatMul (x, WEIGHTS) y = Add (p, PAIR) }",
    ],
)
def test_another_sum_is_not_a_bias(graph: str) -> None:
    tall, pair = OFFSET.reshape(6, 1, 1), PAIR.reshape(2, 1)
    batch = _floats(2, 6, 1, 1)
    given = {"KERNEL": KERNEL, "OFFSET": OFFSET, "TALL": tall, "BATCH": batch, "WEIGHTS": WEIGHTS, "PAIR": pair}
    before = model_of(graph, 24, **{name: array for name, array in given.items() if f" {name})" in graph})
    after = converters.to_onnx(converters.convert(before))
    assert "Add" in [node.op_type for node in after.graph.node]
    inputs = [_input(info.type.tensor_type) for info in before.graph.input]
    for new, old in zip(*(run_onnx(model, inputs)[0] for model in (after, before)), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-5)


def _input(kind: onnx.TypeProto.Tensor) -> np.ndarray:
    """Random values; sizes with a name are 2."""
    shape = [dim.dim_value or 2 for dim in kind.shape.dim]
    values = _RNG.integers(0, 100, shape)
    if kind.elem_type == onnx.TensorProto.FLOAT:
        return _RNG.uniform(-3, 3, shape).astype(np.float32)
    if kind.elem_type == onnx.TensorProto.BOOL:
        # A query that sees no key gives 0.
        return (values > 50) & (np.arange(shape[-2])[:, None] > 0)
    return values.astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))


# Compressed weights are DequantizeLinear, whatever their type, zero point and groups are.


_QUANTIZATION_RNG = np.random.default_rng(3)
X = _QUANTIZATION_RNG.uniform(-1, 1, (2, 8)).astype(np.float32)


def _model(
    element: str, levels: np.ndarray, scale: np.ndarray, zero: np.ndarray | None, by: str = "f32"
) -> irexec.Model:
    """x times the transposed weights (levels - zero) * scale, of shape [6, 8]."""
    builder = Builder("m")
    weights: Value = builder.emit("Convert", builder.constant(levels, element), destination_type=by)
    if zero is not None:
        points = builder.emit("Convert", builder.constant(zero, element), destination_type=by)
        weights = builder.emit("Subtract", weights, points)
    weights = builder.emit("Multiply", weights, builder.constant(scale, by))
    if levels.ndim == 3:
        weights = builder.emit("Reshape", weights, builder.constant([6, 8]), special_zero=False)
    weights = builder.emit("Convert", weights, destination_type="f32")
    x = builder.parameter("f32", ["?", 8], "x")
    builder.result(builder.emit("MatMul", x, weights, transpose_b=True, name="y"))
    return builder.model()


def _levels(element: str, *shape: int) -> np.ndarray:
    low, high = {"u4": (0, 16), "i4": (-8, 8), "u8": (0, 256), "i8": (-128, 128)}[element]
    return _QUANTIZATION_RNG.integers(low, high, shape)


CASES = [
    ("i8", (6, 8), (6, 1), None), ("u8", (6, 8), (6, 1), (6, 1)), ("u8", (6, 8), (), ()), ("i8", (6, 8), (1, 8), (1, 1)),
    ("i4", (6, 2, 4), (6, 2, 1), None), ("u4", (6, 2, 4), (6, 2, 1), (6, 2, 1)), ("u4", (6, 2, 4), (6, 2, 1), ()),
    ("u4", (6, 8), (6, 1), (6, 1)), ("i8", (6, 2, 4), (6, 2, 1), None),
]  # fmt: skip


@pytest.mark.parametrize("by", ["f32", "f16"])
@pytest.mark.parametrize(("element", "shape", "of_scale", "of_zero"), CASES)
def test_dequantize_linear(
    element: str, shape: tuple[int, ...], of_scale: tuple[int, ...], of_zero: tuple[int, ...] | None, by: str
) -> None:
    levels, zero = _levels(element, *shape), None if of_zero is None else _levels(element, *of_zero)
    scale = _QUANTIZATION_RNG.uniform(0.01, 0.1, of_scale).astype(np.float32 if by == "f32" else np.float16)
    model = _model(element, levels, scale, zero, by)
    proto = irexec.to_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    operators = [node.op_type for node in proto.graph.node]
    assert operators.count("DequantizeLinear") == 1
    assert "Sub" not in operators
    kinds = {onnx.TensorProto.DataType.Name(tensor.data_type) for tensor in proto.graph.initializer}
    assert {"i8": "INT8", "u8": "UINT8", "i4": "INT4", "u4": "UINT4"}[element] in kinds
    kind = np.dtype(scale.dtype)
    weights = ((levels - (0 if zero is None else zero)).astype(kind) * scale).astype(np.float32).reshape(6, 8)
    (result,), _ = run_onnx(proto, [X])
    np.testing.assert_allclose(result, X @ weights.T, rtol=1e-5, atol=1e-5)


def test_an_older_opset_scales_halves_in_f32() -> None:
    """Until opset 19 the scale is f32. ONNX Runtime does not round the product where it is a Mul of halves."""
    levels, scale = _levels("i8", 6, 8), _QUANTIZATION_RNG.uniform(0.01, 0.1, (6, 1)).astype(np.float16)
    proto = irexec.to_onnx(_model("i8", levels, scale, None, "f16"), opset=17)
    onnx.checker.check_model(proto, full_check=True)
    assert "DequantizeLinear" in [node.op_type for node in proto.graph.node]
    (result,), _ = run_onnx(proto, [X])
    weights = (levels.astype(np.float16) * scale).astype(np.float32)
    np.testing.assert_allclose(result, X @ weights.T, rtol=1e-5, atol=1e-5)


def test_an_older_opset_has_no_blocks() -> None:
    model = _model("i8", _levels("i8", 6, 2, 4), np.ones((6, 2, 1), np.float32), None)
    operators = [node.op_type for node in irexec.to_onnx(model, opset=17).graph.node]
    assert "DequantizeLinear" not in operators
    assert "Cast" in operators


def test_a_zero_point_between_levels_is_subtracted() -> None:
    builder = Builder("m")
    weights = builder.emit("Convert", builder.constant(_levels("i8", 6, 8), "i8"), destination_type="f32")
    weights = builder.emit("Subtract", weights, builder.constant(0.5, "f32"))
    weights = builder.emit("Multiply", weights, builder.constant(0.1, "f32"))
    builder.result(builder.emit("MatMul", builder.parameter("f32", [2, 8], "x"), weights, transpose_b=True))
    assert "Sub" in [node.op_type for node in irexec.to_onnx(builder.model()).graph.node]


# Older opsets: operators that they lack are composed of others, or the layer is refused with a reason that says so.


_RECURRENT = ("GRU", "LSTM", "RNN")
_UNREAD = "GridSample interpolation only supports"
"""Said by the evaluator of onnx, which knows the modes of GridSample by their names of opset 20 alone."""
_ROWS = [(family, row) for family, row in cases() if not row.type.startswith(_RECURRENT)]


@pytest.mark.slow
@pytest.mark.parametrize(("opset", "step"), some_rows([(13, 33), (13, 11), (17, 11), (21, 11)], [(13, 33)]))
def test_rows(opset: int, step: int) -> None:
    broken = []
    for family, row in _ROWS[opset % 7 :: step]:
        if is_listed(row, EXCEPT) or is_listed(row, REFUSED):
            continue
        reason = _outcome(family, row, opset)
        if reason and f"opset {opset}" not in reason:
            broken.append(f"{row.id}: {reason}")
    assert not broken, "\n".join(broken)


def _is_written(row: Case) -> bool:
    translation = translation_of(row.definition)
    return translation is not None and translation.function is not None


def _outcome(family: str, row: Case, opset: int) -> str:
    """The reason for which a row is refused or differs; empty if it is written and gives what it gives in IR."""
    try:
        exported(row, expected_of(family, row), opset)
    except ExportError as error:
        return error.layers[0].reason if _is_written(row) else ""
    except Exception as error:
        # A runtime raises errors of its own; all rows are looked at.
        return "" if opset < 20 and _UNREAD in str(error) else f"{error!r:.300}"
    return ""


def test_the_kernels_are_those_of_onnx_runtime() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    if not onnxruntime.__version__.startswith("1.32."):
        pytest.skip("the table is that of ONNX Runtime 1.32")
    assert table() == TABLE.read_text("utf-8"), "python -m tests.to_onnx.kernels makes it anew"


def test_by_default_onnx_runtime_has_every_operator() -> None:
    """ONNX Runtime 1.32 has no Swish of opset 25 and no RoiAlign of opset 22."""
    onnxruntime = pytest.importorskip("onnxruntime")
    x, rois, images = np.array([[[[1, -2], [3, 6]]]], np.float32), np.array([[0, 0, 1, 1]], np.float32), np.array([0])
    g = Builder()
    data = g.parameter("f32", [1, 1, 2, 2], "x")
    g.result(g.emit("Swish", data), "swish")
    options = {"pooled_h": 1, "pooled_w": 1, "sampling_ratio": 1, "spatial_scale": 1.0, "mode": "avg"}
    g.result(g.emit("ROIAlign", data, g.constant(rois), g.constant(images), **options), "means")
    model = g.model()
    assert export(model, 25).proto.opset_import[0].version == 25
    proto = export(model).proto
    assert proto.opset_import[0].version == 21
    swish, means = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(swish, x / (1 + np.exp(-x)), rtol=1e-6)
    # The only point of the box is amid all four pixels.
    np.testing.assert_array_equal(means, [[[[2]]]])
