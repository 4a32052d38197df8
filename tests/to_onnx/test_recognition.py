"""ONNX that came in goes out as itself: operators that IR has in pieces are recognised."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import converters
from converters.ir_to_onnx import registry
from tests.support.exported import run_onnx
from tests.support.onnx_models import model_of

_RNG = np.random.default_rng(5)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.uniform(0.5, 1.5, shape).astype(np.float32)


W, B, C, D = _floats(8), _floats(8), _floats(3), _floats(3)
SCALE, U8, I8 = np.float32(0.02), np.uint8(120), np.int8(3)
SCALES, ZEROS = _floats(3) / 50, np.array([1, 2, 3], np.int8)
FILTER, BIAS = _RNG.integers(-99, 99, (6, 2, 3, 3), np.int8), _RNG.integers(-99, 99, 6, np.int32)
OF_FILTER, NO_ZEROS = _floats(6) / 50, np.zeros(6, np.int8)
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
    ("(float[2,4,L,8] q, float[2,2,K,8] k, float[2,2,K,6] v) => (float[2,4,L,6] y)"
     " { y = Attention <is_causal = 1, scale = 0.2> (q, k, v) }", ""),
    ("(float[2,4,5,8] q, float[2,4,7,8] k, float[2,4,7,8] v, float[5,7] m) => (float[2,4,5,8] y)"
     " { y = Attention (q, k, v, m) }", ""),
    ("(float[2,4,5,8] q, float[2,4,7,8] k, float[2,4,7,8] v, bool[2,1,5,7] m) => (float[2,4,5,8] y)"
     " { y = Attention (q, k, v, m) }", ""),
    ("(float[2,L,12] q, float[2,K,6] k, float[2,K,8] v) => (float[2,L,16] y)"
     " { y = Attention <q_num_heads = 4, kv_num_heads = 2> (q, k, v) }", ""),
    ("(float[2,4,5,8] x, float[2,5,4] c, float[2,5,4] s) => (float[2,4,5,8] y) { y = RotaryEmbedding (x, c, s) }", ""),
    ("(float[2,4,5,8] x, float[200,2] c, float[200,2] s, int64[2,5] p) => (float[2,4,5,8] y)"
     " { y = RotaryEmbedding <interleaved = 1, rotary_embedding_dim = 4> (x, c, s, p) }", ""),
    ("(float[2,5,32] x, float[200,4] c, float[200,4] s, int64[2,5] p) => (float[2,5,32] y)"
     " { y = RotaryEmbedding <num_heads = 4> (x, c, s, p) }", ""),
    ("(float[N,3,8,8] x) => (float[N,3,1,1] y) { y = GlobalAveragePool (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = HardSwish (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Gelu (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Mish (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = LeakyRelu <alpha = 0.2> (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Elu (x) }", ""),
    ("(float[N,8] x) => (float[N,8] y) { y = Softmax (x) }", ""),
    ("(float[N,8] x) => (int64[N,1] y) { y = ArgMax <axis = 1> (x) }", ""),
    ("(float[N,3,8] x) => (uint8[N,3,8] y) { y = QuantizeLinear (x, SCALE, U8) }", "SCALE U8"),
    ("(float[N,3,8] x) => (int8[N,3,8] y) { y = QuantizeLinear <axis = 1> (x, SCALES, ZEROS) }", "SCALES ZEROS"),
    ("(uint8[N,4,6,6] x) => (uint8[N,6,2,2] y) { y = QLinearConv <group = 2, strides = [2, 2]>"
     " (x, SCALE, U8, FILTER, OF_FILTER, NO_ZEROS, SCALE, U8, BIAS) }", "SCALE U8 FILTER OF_FILTER NO_ZEROS BIAS"),
    ("(uint8[N,2,6,6] x) => (uint8[N,6,6,6] y) { y = QLinearConv <pads = [1, 1, 1, 1]>"
     " (x, SCALE, U8, FILTER, SCALE, I8, SCALE, U8) }", "SCALE U8 FILTER I8"),
    ("(uint8[N,8] x) => (uint8[N,3] y) { y = QLinearMatMul (x, SCALE, U8, MATRIX, SCALES, U8, SCALE, U8) }",
     "SCALE SCALES U8 MATRIX"),
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
