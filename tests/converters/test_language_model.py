"""A decoder as exporters of language models write it: prompt and single steps give the same as the whole sequence at once."""

from __future__ import annotations

import numpy as np

import converters
import irexec
from tests.support.onnx_models import model_of

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
