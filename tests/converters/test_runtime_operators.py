"""Operators of com.microsoft that ONNX Runtime has only for other devices than the CPU, and decoders of language models."""

from __future__ import annotations

import math

import numpy as np
import pytest

import converters
import irexec
from tests.support.onnx_models import model_of, run

X = np.random.default_rng(0).uniform(-2, 2, (2, 3, 4)).astype(np.float32)
BIAS = np.array([0.5, -0.5, 1, -1], np.float32)
_ERF = np.vectorize(math.erf)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + _ERF(x / math.sqrt(2)))


def _softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _of(graph: str, *inputs: np.ndarray, **constants: np.ndarray) -> list[np.ndarray]:
    return run(model_of(graph, **constants), *inputs)


def test_bias_add() -> None:
    y = _of(
        "(float[2,3,4] x, float[4] b, float[2,3,4] s) => (float y) { y = com.microsoft.BiasAdd (x, b, s) }", X, BIAS, X
    )[0]
    np.testing.assert_allclose(y, X + BIAS + X, rtol=1e-6)


def test_bias_split_gelu() -> None:
    y = _of("(float[2,3,4] x, float[4] b) => (float y) { y = com.microsoft.BiasSplitGelu (x, b) }", X, BIAS)[0]
    left, right = np.split(X + BIAS, 2, -1)
    np.testing.assert_allclose(y, left * _gelu(right), rtol=1e-5, atol=1e-6)


def test_gemm_fast_gelu() -> None:
    w = X[0].T.copy()
    y = _of("(float[2,3,4] x, float[4,3] w) => (float y) { y = com.microsoft.GemmFastGelu (x, w) }", X, w)[0]
    product = X @ w
    expected = product / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (product + 0.044715 * product**3)))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("inner", [0, 1])
def test_bias_softmax(inner: int) -> None:
    """The bias has no first axis, or no middle axis."""
    shape = (2, 4) if inner else (3, 4)
    bias = X.reshape(-1)[:8].reshape(shape) if inner else X[1]
    text = ",".join(map(str, shape))
    graph = f"(float[2,3,4] x, float[{text}] b) => (float y) {{ y = com.microsoft.BiasSoftmax <axis: int = 2, is_inner_broadcast: int = {inner}> (x, b) }}"
    y = _of(graph, X, bias)[0]
    np.testing.assert_allclose(y, _softmax(X + (bias[:, None] if inner else bias)), rtol=1e-5)


def test_bias_softmax_over_two_axes() -> None:
    graph = "(float[2,3,4] x, float[3,4] b) => (float y) { y = com.microsoft.BiasSoftmax <axis: int = 1, is_inner_broadcast: int = 0> (x, b) }"
    np.testing.assert_allclose(_of(graph, X, X[1])[0], _softmax((X + X[1]).reshape(2, 12)).reshape(X.shape), rtol=1e-5)


@pytest.mark.parametrize("last", [0, 1])
def test_group_norm(last: int) -> None:
    x = np.random.default_rng(1).normal(size=(2, 4, 3, 3)).astype(np.float32)
    parts = x.reshape(2, 2, -1)
    normal = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
    expected = normal.reshape(x.shape) * BIAS[:, None, None] + BIAS[::-1, None, None]
    expected = expected / (1 + np.exp(-expected))
    given = np.moveaxis(x, 1, -1).copy() if last else x
    size = ",".join(map(str, given.shape))
    graph = f"""(float[{size}] x, float[4] g, float[4] b) => (float y) {{
        y = com.microsoft.GroupNorm <activation: int = 1, channels_last: int = {last}, groups: int = 2> (x, g, b) }}"""
    y = _of(graph, given, BIAS, BIAS[::-1].copy())[0]
    np.testing.assert_allclose(y, np.moveaxis(expected, 1, -1) if last else expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ComplexMul", "ComplexMulConj"])
def test_complex_products(name: str) -> None:
    x, y = X[..., :2].copy(), X[..., 2:].copy()
    result = _of(f"(float[2,3,2] x, float[2,3,2] y) => (float z) {{ z = com.microsoft.{name} (x, y) }}", x, y)[0]
    left, right = x[..., 0] + 1j * x[..., 1], y[..., 0] + 1j * y[..., 1]
    product = left * (right.conj() if name.endswith("Conj") else right)
    np.testing.assert_allclose(result, np.stack([product.real, product.imag], -1), rtol=1e-5, atol=1e-6)


def test_transforms_of_real_signals() -> None:
    attributes = "<normalized: int = 0, onesided: int = 1, signal_ndim: int = 2>"
    y = _of(f"(float[2,3,4] x) => (float y) {{ y = com.microsoft.Rfft {attributes} (x) }}", X)[0]
    expected = np.fft.rfft2(X)
    np.testing.assert_allclose(y, np.stack([expected.real, expected.imag], -1), rtol=1e-4, atol=1e-4)
    again = _of(f"(float[2,3,3,2] x) => (float y) {{ y = com.microsoft.Irfft {attributes} (x) }}", y)[0]
    np.testing.assert_allclose(again, X, rtol=1e-4, atol=1e-5)


def test_finite_or_not() -> None:
    graph = "(float[2] x, float[2] y) => (bool z) { z = com.microsoft.IsAllFinite (x, y) }"
    fine = np.zeros(2, np.float32)
    assert _of(graph, fine, fine)[0]
    assert not _of(graph, fine, np.array([0, np.nan], np.float32))[0]
    assert not _of(graph, np.array([-np.inf, 0], np.float32), fine)[0]


def test_quantized_mean() -> None:
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    graph = """(uint8[2,3,4] x, float a, uint8 b, float c, uint8 d) => (uint8 y) {
        y = com.microsoft.QLinearReduceMean <axes: ints = [1], keepdims: int = 0> (x, a, b, c, d) }"""
    y = _of(graph, x, np.float32(0.5), np.uint8(4), np.float32(0.25), np.uint8(10))[0]
    np.testing.assert_array_equal(y, (x.astype(float).mean(1) - 4) * 0.5 / 0.25 + 10)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zero_points", [None, np.uint8, np.float32])
@pytest.mark.parametrize(("columns", "indices"), [(64, 64), (40, 40), (40, 48)])
def test_weights_whose_columns_have_the_scale_of_another_block(
    bits: int, zero_points: type | None, columns: int, indices: int
) -> None:
    rng, blocks = np.random.default_rng(0), -(-columns // 16)
    groups = rng.integers(0, blocks, indices).astype(np.int32)
    levels, scales = rng.integers(0, 1 << bits, (3, blocks * 16)), rng.random((3, blocks), np.float32)
    zeros = np.full((3, blocks), 1 << (bits - 1)) if zero_points is None else rng.integers(0, 1 << bits, (3, blocks))
    weights = (levels[:, :columns] - zeros[:, groups[:columns]]) * scales[:, groups[:columns]]
    constants = {"w": _bytes_of(levels, bits).reshape(3, blocks, -1), "s": scales.ravel(), "g": groups}
    if zero_points is not None:
        constants["z"] = _bytes_of(zeros, bits) if zero_points is np.uint8 else zeros.astype(np.float32)
        constants["z"] = constants["z"].ravel()
    x = rng.standard_normal((2, columns)).astype(np.float32)
    node = f"MatMulNBits <K: int = {columns}, N: int = 3, bits: int = {bits}, block_size: int = 16>"
    z = "" if zero_points is None else "z"
    y = _of(f"(float[2,{columns}] x) => (float y) {{ y = com.microsoft.{node} (x, w, s, {z}, g) }}", x, **constants)[0]
    np.testing.assert_allclose(y, x @ weights.T, rtol=1e-4, atol=1e-3)


def _bytes_of(values: np.ndarray, bits: int) -> np.ndarray:
    """Rows of values in whole bytes, the lowest bits first."""
    per_byte = 8 // bits
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % per_byte))).reshape(len(values), -1, per_byte)
    return (padded << np.arange(0, 8, bits)).sum(-1).astype(np.uint8)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ("(float[2,4,8] x, float[8,24] w) => (float y) { y = com.microsoft.Attention <num_heads: int = 2, do_rotary: int = 1> (x, w) }", "do_rotary"),
        ("(float[2,4,8] x, float[8,24] w) => (float y) { y = com.microsoft.Attention <num_heads: int = 3> (x, w) }", "cannot be split into 3 heads"),
        ('(float[2,3] x, float[3,2] w) => (float y) { y = com.microsoft.FusedGemm <activation: string = "Swish"> (x, w) }', "activation 'Swish'"),
        (
            "(float[2,32] x, float[3,2,8] w, float[6] s) => (float y) { y = com.microsoft.MatMulNBits <K: int = 32, N: int = 3, block_size: int = 16> (x, w, s) }",
            r"the packed values are f32\[3,2,8\], expected u8",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(graph: str, message: str) -> None:
    with pytest.raises(irexec.ConversionError, match=message):
        converters.convert(model_of(graph))


# A decoder as exporters of language models write it: prompt and single steps give the same as the whole sequence at
# once.


_GRAPH = """(int64[batch,length] ids, int64[batch,total] attention_mask, float[batch,1,past,16] past_key, float[batch,1,past,16] past_value)
        => (float logits, float present_key, float present_value) <int64 axis = {1}, int64[1] one = {1}, int64[1] last = {-1}> {
    x = Gather (table, ids)
    counted = ReduceSum (attention_mask, last)
    after = Sub (counted, one)
    seqlens = Cast <to: int = 6> (after)
    sizes = Shape (attention_mask)
    all64 = Gather (sizes, axis)
    total_length = Cast <to: int = 6> (all64)
    normal = SimplifiedLayerNormalization (x, scale)
    qkv = com.microsoft.MatMulNBits <K: int = 32, N: int = 64, bits: int = 4, block_size: int = 16> (normal, packed, steps)
    mixed, present_key, present_value = com.microsoft.GroupQueryAttention <num_heads: int = 2, kv_num_heads: int = 1, do_rotary: int = 1>
        (qkv, , , past_key, past_value, seqlens, total_length, cos, sin)
    projected = MatMul (mixed, w)
    normal2, a, b, sum2 = com.microsoft.SkipSimplifiedLayerNormalization (x, projected, scale)
    gated = com.microsoft.QuickGelu (normal2)
    logits = com.microsoft.FusedMatMul <transB: int = 1> (gated, table) }"""


def _constants() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    angles = np.arange(32)[:, None] / 100.0 ** (np.arange(8) / 8)
    return {
        "table": generator.normal(size=(11, 32)).astype(np.float32),
        "scale": generator.normal(size=32).astype(np.float32),
        "packed": generator.integers(0, 256, (64, 2, 8)).astype(np.uint8),
        "steps": generator.uniform(0.01, 0.05, 128).astype(np.float32),
        "w": generator.normal(size=(32, 32)).astype(np.float32),
        "cos": np.cos(angles).astype(np.float32),
        "sin": np.sin(angles).astype(np.float32),
    }


@pytest.mark.slow
def test_prompt_and_single_steps() -> None:
    text = _GRAPH.replace("a, b, sum2", ", , sum2")
    compiled = irexec.compile_model(converters.convert(model_of(text, 17, **_constants())))
    ids = np.array([[3, 1, 4, 1, 5, 9], [2, 7, 1, 8, 2, 8]])

    def run(part: np.ndarray, past: list[np.ndarray]) -> list[np.ndarray]:
        total = part.shape[1] + past[0].shape[2]
        return list(compiled([part, np.ones((2, total), np.int64), *past]).values())

    nothing = [np.zeros((2, 1, 0, 16), np.float32)] * 2
    whole, *_ = run(ids, nothing)
    logits, *past = run(ids[:, :4], nothing)
    found = [logits]
    for i in (4, 5):
        logits, *past = run(ids[:, i : i + 1], past)
        found.append(logits)
    assert past[0].shape == (2, 1, 6, 16)
    np.testing.assert_allclose(np.concatenate(found, 1), whole, rtol=1e-3, atol=1e-4)
    changed, *_ = run(np.where(np.arange(6) == 5, 0, ids), nothing)
    np.testing.assert_allclose(changed[:, :5], whole[:, :5], rtol=1e-3, atol=1e-4)
