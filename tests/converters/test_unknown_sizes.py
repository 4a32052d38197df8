"""Operators whose weights or heads have sizes that are known only when the model runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import converters
import irexec
from tests.support.onnx_models import model_of

ROWS = {
    "Conv": (
        "(float[1,4,9,9] x, float[M,C,H,W] w) => (float[N,M,A,B] y) { y = Conv <strides = [2, 1], pads = [1, 0, 1, 0]> (x, w) }",
        [(1, 4, 9, 9), (6, 4, 3, 2)],
    ),
    "Conv of groups": (
        '(float[1,4,9] x, float[M,C,K] w, float[M] b) => (float[N,M,A] y) { y = Conv <group = 2, auto_pad = "SAME_UPPER"> (x, w, b) }',
        [(1, 4, 9), (6, 2, 3), (6,)],
    ),
    "DFT of complex values": (
        "(float[1,4,P] x) => (float[1,4,2] y) <int64 axis = {1}> { y = DFT (x, , axis) }",
        [(1, 4, 2)],
    ),
    "DFT of real values": (
        "(float[1,5,P] x) => (float[1,A,2] y) <int64 axis = {1}> { y = DFT <onesided = 1> (x, , axis) }",
        [(1, 5, 1)],
    ),
    "STFT": (
        "(float[1,16,P] x, float[4] w) => (float[1,A,B,2] y) <int64 step = {2}> { y = STFT <onesided = 0> (x, step, w) }",
        [(1, 16, 1), (4,)],
    ),
    "RotaryEmbedding": (
        "(float[1,2,3,S] x, float[1,3,H] c, float[1,3,H] s) => (float[1,2,3,S] y) { y = RotaryEmbedding (x, c, s) }",
        [(1, 2, 3, 8), (1, 3, 4), (1, 3, 4)],
    ),
    "RotaryEmbedding, interleaved": (
        "(float[1,3,S] x, float[1,3,H] c, float[1,3,H] s) => (float[1,3,S] y)"
        " { y = RotaryEmbedding <interleaved = 1, num_heads = 2> (x, c, s) }",
        [(1, 3, 16), (1, 3, 4), (1, 3, 4)],
    ),
    "RotaryEmbedding of a part": (
        "(float[1,2,3,S] x, float[1,3,2] c, float[1,3,2] s) => (float[1,2,3,S] y)"
        " { y = RotaryEmbedding <rotary_embedding_dim = 4, interleaved = 1> (x, c, s) }",
        [(1, 2, 3, 8), (1, 3, 2), (1, 3, 2)],
    ),
}


@pytest.mark.parametrize(("graph", "shapes"), ROWS.values(), ids=ROWS)
def test_sizes_may_be_unknown(graph: str, shapes: list[tuple[int, ...]]) -> None:
    """The reference evaluator of onnx gives the same."""
    reference = pytest.importorskip("onnx.reference")
    model = model_of(graph, 23)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    names = [info.name for info in model.graph.input]
    given: Any = dict(zip(names, arrays, strict=True))
    expected = reference.ReferenceEvaluator(model).run(None, given)[0]
    np.testing.assert_allclose(
        irexec.compile_model(converters.convert(model))(given)[0], expected, rtol=1e-4, atol=1e-5
    )
